"""A model that was read, and whether it still is what was read."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from mace.errors import MaceError, ModelChanged, UnsupportedModel
from mace.forms import UnreadForm
from mace.models.agreement import agrees, agrees_on_probabilities
from mace.models.contents import contents
from mace.models.fingerprint import fingerprint
from mace.models.reading import Reading
from mace.models.unread import read_or_ask
from mace.models.watch import Watch
from mace.space import FeatureSpace, Point

TRUSTED_FOR = 20
"""After the model was checked and found to be the same, so many times that time passes before a doubt makes it be checked again."""

ROWS_COMPARED = 4
"""Of rows that are asked together, so many are compared with the form: what rests on such an answer rests on the model itself."""


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
        self._asked = replace(read_now, form=_detached(read_now.form))
        self._trusted_until = 0.0
        rate = self._asked.rate
        self.reading: Reading = replace(self._asked, ask=self._ask, rate=None if rate is None else self._rate)

    @cached_property
    def fingerprint(self) -> dict[str, str]:
        """The hashes of the model as it was read."""
        return fingerprint(self.reading)

    @property
    def is_unread(self) -> bool:
        """Whether the model could not be read, and is only asked."""
        return isinstance(self._asked.form, UnreadForm)

    @contextmanager
    def question(self) -> Iterator[None]:
        """Raise :class:`ModelChanged` where the model is not the one that was read, before a question or because it fails."""
        if not self._watch.is_same():
            self.check("parts of it were replaced, as fitting does")
        try:
            yield
        except Exception as error:
            if self.is_unread:
                raise
            if isinstance(error, UnsupportedModel) or not isinstance(error, MaceError):
                self.check("it fails where it was asked", error)
            raise

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
        outcomes = self._asked.ask(points)
        if not agrees(self._asked.form, points[:ROWS_COMPARED], outcomes[:ROWS_COMPARED]):
            self._doubt()
        return outcomes

    def _rate(self, points: Sequence[Point], code: int) -> list[Fraction]:
        assert self._asked.rate is not None
        outcomes = self._asked.rate(points, code)
        if not agrees_on_probabilities(self._asked.form, points[:ROWS_COMPARED], code, outcomes[:ROWS_COMPARED]):
            self._doubt()
        return outcomes

    def _doubt(self) -> None:
        """See to an answer that the form does not give: it is rounding at a boundary, or the model is another one."""
        if time.monotonic() >= self._trusted_until:
            self.check("it no longer answers as it did then")


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
