"""A model that was read, and whether it still is what was read."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import fields, is_dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from mace.errors import MaceError, ModelChanged, UnsupportedModel
from mace.forms import Composite, Form, Network, TreeEnsemble, UnreadForm
from mace.models.agreement import agrees, agrees_on_probabilities
from mace.models.contents import contents
from mace.models.fingerprint import fingerprint
from mace.models.foresight import foreseen, is_row_by_row
from mace.models.reading import Reading
from mace.models.unread import read_or_ask
from mace.models.watch import Watch
from mace.space import Feature, FeatureSpace, Integer, Point, Real

TRUSTED_FOR = 20
"""How long a model that was found to be the same is trusted before a doubt makes it be checked again, as a multiple of what the check
took."""

ROWS_COMPARED = 4
"""How many of the rows that are asked together are compared with the form: what rests on such an answer rests on the model itself."""

MOST_REMEMBERED = 256
"""The most rows asked together whose answers are kept while a question lasts."""

Expected = dict[Point, Fraction]
"""Rows and what the model, when it is asked, must say of them."""

Said = dict[tuple[Point, int | None], Fraction]
"""What the model said of a row, or of the probability of a class there."""


class Memory(threading.local):
    """What the model has said of rows that were asked about alone, while a question lasts or a block; each thread has its own.

    Attributes
    ----------
    said : dict, optional
        What it said; ``None`` outside of questions.
    expected : dict, optional
        In a block: what was foreseen, and the model is to confirm. ``None`` where it is asked at once.
    foresees : bool
        Whether rows that can be foreseen are not asked about.
    """

    def __init__(self) -> None:
        self.said: Said | None = None
        self.expected: Expected | None = None
        self.foresees = False


class LiveModel:
    """A model as read, which is watched from then on.

    Replaced parts are noticed at the start of the next question. Numbers that are edited in place are noticed where the model's answer to
    a row is not the one that its form gives, and by :meth:`check`, which looks at all that the model holds.

    Parameters
    ----------
    model : estimator, pipeline or function
        The model as deployed.
    space : FeatureSpace
        Its features.
    unread : str, optional
        What to do with a model that cannot be read; it is refused where nothing is said.
    """

    def __init__(self, model: Any, space: FeatureSpace, unread: str | None = None) -> None:
        self._model, self._space, self._unread = model, space, unread
        self._watch, self._contents = Watch(model), contents(model)
        read_now = read_or_ask(model, space, unread)
        self._trusted_until = 0.0
        self._read: Reading = replace(read_now, form=_detached(read_now.form))
        self._answer_for(self._read)

    def _answer_for(self, reading: Reading) -> None:
        """Be asked for a model as read."""
        self._asked = reading
        self.memory = Memory()
        rate = reading.rate
        self.reading: Reading = replace(reading, ask=self._ask, rate=None if rate is None else self._rate)

    def within(self, space: FeatureSpace) -> LiveModel | None:
        """Return the model over a space of the same features with narrower ranges, or grids, without reading it once more.

        ``None`` where that would not do. The :attr:`fingerprint` is that of the space over which it was read.
        """
        form = _narrowed(self._read.form, space) if _lies_in(space, self._space) else None
        if form is None:
            return None
        made = copy(self)
        made._answer_for(replace(self._read, form=form))
        return made

    @cached_property
    def fingerprint(self) -> dict[str, str]:
        """The hashes of the model as it was read."""
        return fingerprint(self._read)

    @property
    def is_unread(self) -> bool:
        """Whether the model could not be read, and is only asked."""
        return isinstance(self._asked.form, UnreadForm)

    @property
    def is_narrowed(self) -> bool:
        """Whether it was read over a wider space."""
        return self._asked is not self._read

    @contextmanager
    def question(self) -> Iterator[None]:
        """Raise :class:`ModelChanged` where the model is not the one that was read, before a question or because it fails.

        Until the question is answered, no row is asked about alone twice. Questions inside others, or inside a block, are part of these.
        """
        is_part = self.memory.said is not None
        if not is_part:
            self.check_parts()
            self.memory.said = {}
        try:
            yield
        except Exception as error:
            if self.is_unread:
                raise
            if isinstance(error, UnsupportedModel) or not isinstance(error, MaceError):
                self.check("it fails where it was asked", error)
            raise
        finally:
            if not is_part:
                self.memory.said = None

    @contextmanager
    def foreseeing(self) -> Iterator[None]:
        """Take what the form says of a row, where that is sure whatever the rounding, for what the model says.

        For points that are steps on the way and are handed to nobody: the model is asked about what is.
        """
        memory, before = self.memory, self.memory.foresees
        memory.foresees = True
        try:
            yield
        finally:
            memory.foresees = before

    @property
    def is_in_block(self) -> bool:
        """Whether this thread asks about the people of a block."""
        return self.memory.expected is not None

    def check_parts(self) -> None:
        """Raise :class:`ModelChanged` where parts of the model were replaced by others."""
        if not self._watch.is_same():
            self.check("parts of it were replaced, as fitting does")

    def check(self, sign: str = "its numbers are others", cause: Exception | None = None) -> None:
        """Raise :class:`ModelChanged` where the model is another one; ``sign`` is what looks like it.

        It is read again, unless it holds what it held when it was read.
        """
        begun = time.monotonic()
        watch, held = Watch(self._model), contents(self._model)
        is_same = held is not None and held == self._contents
        if not is_same:
            try:
                is_same = fingerprint(read_or_ask(self._model, self._space, self._unread)) == self.fingerprint
            except Exception as error:  # half a model may fail in any way
                if self.is_unread:
                    raise
                cause = error
        if not is_same:
            raise ModelChanged(
                f"the model was changed after it was read: {sign}. Answers about what it was would be wrong. "
                "Read it as it is now: mace.Explainer(model, space)."
            ) from cause
        self._watch, self._contents = watch, held
        self._trusted_until = time.monotonic() + TRUSTED_FOR * (time.monotonic() - begun)

    def _ask(self, points: Sequence[Point]) -> list[Fraction]:
        said, expected = self.memory.said, self.memory.expected
        if self.memory.foresees:
            known = [code for code in foreseen(self._asked.form, points) if code is not None]
            if len(known) == len(points):
                return known
        if said is None or len(points) != 1:
            if said and is_row_by_row(self._asked.form) and all((point, None) in said for point in points):
                return [said[point, None] for point in points]
            outcomes = self._ask_now(points)
            if said is not None and len(points) <= MOST_REMEMBERED and is_row_by_row(self._asked.form):
                said.update(((point, None), outcome) for point, outcome in zip(points, outcomes, strict=True))
            return outcomes
        (point,) = points
        if (point, None) in said:
            return [said[point, None]]
        if expected is not None:
            code = expected[point] if point in expected else foreseen(self._asked.form, points)[0]
            if code is not None:
                expected[point] = code
                return [code]
        said[point, None] = self._ask_alone(point, said)
        return [said[point, None]]

    def _ask_alone(self, point: Point, said: Said) -> Fraction:
        """Return what the model says of a row, and keep the probabilities, or scores, where its prediction follows from these."""
        if self._asked.ask_rated is None:
            return self._ask_now([point])[0]
        ((outcome, rates),) = self._asked.ask_rated([point])
        said.update(((point, code), rate) for code, rate in enumerate(rates))
        if not agrees(self._asked.form, [point], [outcome]):
            self._doubt()
        return outcome

    def known_rates(self, points: Sequence[Point], code: int) -> list[Fraction] | None:
        """Return the probability, or score, of a class in rows that were asked about alone since the question began.

        ``None`` where one of them is not known.
        """
        said = self.memory.said or {}
        return [said[point, code] for point in points] if all((point, code) in said for point in points) else None

    def _ask_now(self, points: Sequence[Point]) -> list[Fraction]:
        outcomes = self._asked.ask(points)
        if not agrees(self._asked.form, points[:ROWS_COMPARED], outcomes[:ROWS_COMPARED]):
            self._doubt()
        return outcomes

    def _rate(self, points: Sequence[Point], code: int) -> list[Fraction]:
        said = self.memory.said
        if said is None or len(points) != 1:
            return self._rate_now(points, code)
        (point,) = points
        if (point, code) not in said:
            said[point, code] = self._rate_now(points, code)[0]
        return [said[point, code]]

    def _rate_now(self, points: Sequence[Point], code: int) -> list[Fraction]:
        assert self._asked.rate is not None
        outcomes = self._asked.rate(points, code)
        if not agrees_on_probabilities(self._asked.form, points[:ROWS_COMPARED], code, outcomes[:ROWS_COMPARED]):
            self._doubt()
        return outcomes

    def _doubt(self) -> None:
        """See to an answer that the form does not give: it is rounding at a boundary, or the model is another one."""
        if time.monotonic() >= self._trusted_until:
            self.check("it no longer answers as it did then")

    # ---- many rows

    def said_of_all(self, points: Sequence[Point]) -> list[Fraction] | None:
        """Return what the model says of rows that it is asked about together; ``None`` where it fails."""
        self.check_parts()
        try:
            return self._asked.ask(points)
        except MaceError:
            return None

    def surely_said(self, points: Sequence[Point]) -> Expected:
        """Ask about rows in one call; return what the model says of those of which it must say the same when they are asked about alone.

        A row is left out where rounding could tell a block from a single row, where the model says something else than its form, and
        where the model fails.
        """
        known, is_exact = foreseen(self._asked.form, points), is_row_by_row(self._asked.form)
        if not is_exact and not any(code is not None for code in known):
            return {}
        each = zip(points, self.said_of_all(points) or (), known, strict=False)
        return {point: found for point, found, code in each if (is_exact if code is None else found == code)}


class Block:
    """People about whom a model is asked in few calls.

    Within ``with block:``, what the model says of a further row is foreseen, where that is sure whatever the rounding, rather than
    asked. :meth:`expected` hands out what was foreseen since it was last called; :meth:`are_confirmed` asks the model about it.

    Parameters
    ----------
    live : LiveModel
        The model.
    points : sequence of Point
        The factuals, of which the model is asked at once.
    """

    def __init__(self, live: LiveModel, points: Sequence[Point]) -> None:
        self._live = live
        self._said: Said = {(point, None): code for point, code in (live.surely_said(points).items() if points else ())}

    def __enter__(self) -> Block:
        memory = self._live.memory
        memory.said, memory.expected = self._said, {}
        return self

    def __exit__(self, *error: object) -> None:
        memory = self._live.memory
        memory.said = memory.expected = None

    def expected(self) -> Expected:
        """Return what was foreseen, and begin anew."""
        memory = self._live.memory
        found, memory.expected = memory.expected, {}
        return found or {}

    def are_confirmed(self, expected: Sequence[Expected]) -> list[bool]:
        """Ask the model about everything that was foreseen, in one call; return whether it says so, one by one."""
        points = list(dict.fromkeys(point for each in expected for point in each))
        said = dict(zip(points, self._live.said_of_all(points) or (), strict=False)) if points else {}
        return [all(said.get(point) == code for point, code in each.items()) for each in expected]


def _lies_in(space: FeatureSpace, wide: FeatureSpace) -> bool:
    """Return whether every row of a space is one of another, which is the same but for ranges and grids of numbers."""

    def is_in(feature: Feature, other: Feature) -> bool:
        if type(feature) is not type(other) or feature.missing != other.missing:
            return False
        if not isinstance(feature, Real | Integer):
            return feature == other
        assert isinstance(other, Real | Integer)
        ends: Any = {"low": other.low, "high": other.high}
        same = replace(feature, **ends, step=None, observed=None)
        return other.step is None and other.low <= feature.low and feature.high <= other.high and same == other

    return space.names == wide.names and all(map(is_in, space.values(), wide.values()))


def _narrowed(form: Form, space: FeatureSpace) -> Form | None:
    """Return a form over narrower ranges: what holds of every row holds of these. ``None`` where a form may count on its ranges."""
    if isinstance(form, TreeEnsemble | Network):
        return replace(form, space=space)
    if not isinstance(form, Composite):
        return None
    inner: list[Any] = [_narrowed(part.form, space) for part in form.parts]
    if any(each is None for each in inner):
        return None
    parts: Any = tuple(replace(part, form=each) for part, each in zip(form.parts, inner, strict=True))
    made = replace(form, space=space, parts=parts)
    made.prepare()
    return made


def _detached(part: Any) -> Any:
    """Return a form with arrays of its own, so that it stays as it was read where the model's arrays are edited."""
    if isinstance(part, np.ndarray):
        return part.copy()
    if isinstance(part, tuple) and not hasattr(part, "_fields"):
        return tuple(map(_detached, part))
    if is_dataclass(part) and not isinstance(part, type) and type(part).__module__.startswith("mace.forms."):
        own = {field.name: getattr(part, field.name) for field in fields(part) if field.init}
        return replace(part, **{name: _detached(value) for name, value in own.items()})
    return part
