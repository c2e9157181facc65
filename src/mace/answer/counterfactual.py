"""One answer: a row that the real model puts in the target, what it changes, and its proven bounds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from types import MappingProxyType
from typing import Any, NoReturn

from mace.answer.plain import part, plain, scalar, scalars, status_of
from mace.answer.region import RecourseRegion
from mace.answer.score import AnswerScores, Threshold
from mace.certify.certificate import Certificate
from mace.errors import InvalidOption
from mace.problem import Status
from mace.slips import COUNTERFACTUALS, no_attribute
from mace.space import Feature, FeatureSpace, Point, Real, Scalar, Wording
from mace.space.features import restore
from mace.space.wording import cells, padded
from mace.space.wording import show_value as show_value

AS_IN_DATA = Wording()
"""The wording that calls everything what it is called in the data."""


@dataclass(frozen=True, slots=True)
class Change:
    """One feature that changes.

    Attributes
    ----------
    feature : str
        Its name.
    before, after : scalar
        Its values in the factual and in the counterfactual.
    dtype : str, optional
        That of a real feature where it is not float64.
    weight : float, optional
        The distance of this change alone; in l1, what it adds to the distance. ``None`` of an effect, and where it is not known.
    """

    feature: str
    before: Scalar
    after: Scalar
    dtype: str | None = field(default=None, repr=False, compare=False)
    weight: float | None = field(default=None, repr=False, compare=False)

    __setstate__ = restore

    @classmethod
    def of(cls, space: FeatureSpace, name: str, before: Scalar, after: Scalar, weight: float | None = None) -> Change:
        """Return the change of a feature of a space."""
        return cls(name, before, after, real_dtype(space[name]), weight)

    def to_dict(self) -> dict[str, Any]:
        """Return the change as plain data for JSON."""
        made = {"feature": self.feature, "before": plain(self.before), "after": plain(self.after)}
        further = {"dtype": self.dtype, "weight": self.weight}
        return made | {key: each for key, each in further.items() if each is not None}

    @classmethod
    def from_dict(cls, data: object) -> Change:
        """Return the change that :meth:`to_dict` wrote."""
        get = partial(part, data, "a change")
        before, after = (scalar(get(name, Scalar | None)) for name in ("before", "after"))
        known = data if isinstance(data, Mapping) else {}
        dtype = None if known.get("dtype") is None else get("dtype", str)
        weight = None if known.get("weight") is None else get("weight", float)
        return cls(get("feature", str), before, after, dtype, weight)

    @property
    def texts(self) -> tuple[str, str]:
        """The two values for people, in the decimals of the feature's dtype."""
        return show_value(self.before, self.dtype), show_value(self.after, self.dtype)

    def __str__(self) -> str:
        return self.said()

    def said(self, wording: Wording = AS_IN_DATA) -> str:
        """Return the change in a few words, by the names that people know."""
        return f"{wording.name(self.feature)}: {' -> '.join(self.called(wording))}"

    def called(self, wording: Wording) -> tuple[str, str]:
        """Return the two values by the names that people know, and with their units."""
        before, after = self.texts
        return wording.value(self.feature, before), wording.value(self.feature, after)

    @property
    def arrow(self) -> str:
        """Up or down for a number, across for anything else."""
        if isinstance(self.before, str | bool) or isinstance(self.after, str | bool):
            return "\u2192"
        return "\u25b2" if self.after > self.before else "\u25bc" if self.after < self.before else "\u2192"


@dataclass(frozen=True, slots=True)
class Counterfactual:
    """A row that the real model puts in the target, with proven bounds.

    Attributes
    ----------
    values : dict
        The row in the original features, Python scalars, NaN where missing.
    changes : tuple of Change
        What differs from the factual, in the space's order.
    distance : float
        Its distance from the factual, rounded up.
    lower : float
        Proved: nothing nearer than this reaches the target. Rounded down.
    status : Status
        ``optimal`` or ``feasible``.
    prediction : label
        What the real model says of the row.
    solver : str
        Which lane answered.
    seconds : float
        Wall time inside the solver.
    calls : int
        Questions that the lane asked its oracle.
    certificate : Certificate, optional
        The answer with its proof, for :func:`~mace.verify`; only with ``certify=True``.
    actions : tuple of str, optional
        With causes: the features that are acted upon; the other changes are effects of these.
    held_by : tuple of str or int, optional
        Of a set of models: those in which the row reaches the target, by their names or places; see :func:`~mace.agree`.
    """

    values: dict[str, Scalar]
    changes: tuple[Change, ...]
    distance: float
    lower: float
    status: Status
    prediction: Scalar
    solver: str
    seconds: float
    calls: int = 0
    certificate: Certificate | None = field(default=None, repr=False)
    actions: tuple[str, ...] | None = None
    _widen: Callable[..., RecourseRegion] | None = field(default=None, repr=False, compare=False)
    _scores: AnswerScores | None = field(default=None, repr=False, compare=False)
    _place: int = field(default=0, repr=False, compare=False)
    held_by: tuple[Scalar, ...] | None = None

    @property
    def score(self) -> float | None:
        """What the model reports of this row; see :attr:`mace.Explanation.score`."""
        return None if self._scores is None else self._scores.at(self._place)

    @property
    def score_before(self) -> float | None:
        """What the model reports of the factual."""
        return None if self._scores is None else self._scores.at(0)

    @property
    def score_texts(self) -> tuple[str, str] | None:
        """Both scores for people, in as many digits as tell them from the threshold; ``None`` where they are not known."""
        before, after = self.score_before, self.score
        if self._scores is None or before is None or after is None:
            return None
        return self._scores.shown(before), self._scores.shown(after)

    @property
    def score_of(self) -> str:
        """What is scored: ``"P(good)"``, ``"score of good"``, ``"prediction"``; empty where nothing is."""
        return "" if self._scores is None else self._scores.of

    @property
    def threshold(self) -> Threshold:
        """Where the target begins on the scale of the score; ``None`` where there is no such number."""
        return None if self._scores is None else self._scores.threshold

    @classmethod
    def of(
        cls,
        space: FeatureSpace,
        factual: Point,
        row: Point,
        *,
        weights: Mapping[str, float] = MappingProxyType({}),
        **known: Any,
    ) -> Counterfactual:
        """Return a row of a space as an answer about a factual; ``weights`` are those of its changes, ``known`` the other attributes."""
        values, before = space.values_of(row), space.values_of(factual)
        changed = [name for name, new, old in zip(space, row, factual, strict=True) if new != old]
        changes = tuple(Change.of(space, name, before[name], values[name], weights.get(name)) for name in changed)
        return cls(values=values, changes=changes, **known)

    def __getstate__(self) -> list[Any]:
        return [None if each.name == "_widen" else getattr(self, each.name) for each in fields(self)]

    __setstate__ = restore

    def __getattr__(self, name: str) -> NoReturn:
        raise no_attribute(
            "the counterfactual", name, COUNTERFACTUALS, (each for each in dir(type(self)) if each[0] != "_")
        )

    def region(
        self, features: Iterable[str] | None = None, *, time_limit: float | None = None, solver: str = "auto"
    ) -> RecourseRegion:
        """Widen the answer into a region in which every plausible row is proved to be predicted like it.

        See :meth:`mace.Explainer.region`, which also takes an answer that was pickled or copied from elsewhere.
        """
        if self._widen is None:
            raise InvalidOption(
                "region: this answer was pickled, and has left its explainer behind. Use explainer.region(answer)."
            )
        return self._widen(self, features, time_limit=time_limit, solver=solver)

    def __repr__(self) -> str:
        changed = shortened_list([str(change) for change in self.changes], 120)
        return f"<Counterfactual: {changed}; distance {self.distance:.6g} ({self.status})>"

    def __str__(self) -> str:
        return self.said()

    def said(self, wording: Wording = AS_IN_DATA) -> str:
        """Return the changes as a table of plain text, and the summary, by the names that people know."""
        rows = [("feature", "now", "instead")]
        rows += [(self.named(c, wording), *c.called(wording)) for c in self.changes]
        widths = [max(cells(row[column]) for row in rows) for column in range(3)]
        lines = [
            "  ".join(padded(cell, width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
        ]
        return "\n".join([*lines, self.summary(wording)])

    def named(self, change: Change, wording: Wording = AS_IN_DATA) -> str:
        """Return the feature of a change, and whether it is an effect of others."""
        is_effect = self.actions is not None and change.feature not in self.actions
        name = wording.name(change.feature)
        return f"{name} (effect)" if is_effect else name

    def summary(self, wording: Wording = AS_IN_DATA) -> str:
        """Return the prediction and the bounds in a line; where there is a score, it and the prediction in one of their own."""
        scored = "" if self._scores is None else self._scores.said(self._place, wording)
        predicted = f"predicted {wording.outcome(self.prediction)}" + (f": {scored}\n" if scored else "; ")
        proved = "not proved nearest" if self.solver == "search" else f"proved at least {self.lower:.6g}"
        held = "" if self.held_by is None else f"; held by {', '.join(map(str, self.held_by))}"
        return f"{predicted}distance {self.distance:.6g}, {proved} ({self.status}){held}"

    def to_dict(self) -> dict[str, Any]:
        """Return the counterfactual as plain data for JSON; a missing value is ``None``."""
        return {
            "values": {name: plain(value) for name, value in self.values.items()},
            "changes": [change.to_dict() for change in self.changes],
            "distance": self.distance,
            "lower": self.lower,
            "status": str(self.status),
            "prediction": self.prediction,
            "solver": self.solver,
            "seconds": self.seconds,
            "calls": self.calls,
            "score": self.score,
            **({} if self.actions is None else {"actions": list(self.actions)}),
            **({} if self.held_by is None else {"held_by": list(self.held_by)}),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Counterfactual:
        """Return the counterfactual that :meth:`to_dict` wrote; it has no certificate."""
        get = partial(part, data, "a counterfactual")
        changes = get("changes", list)
        actions = None if data.get("actions") is None else get("actions", list)
        return cls(
            values=scalars(get("values", dict)),
            changes=tuple(Change.from_dict(each) for each in changes),
            distance=get("distance", float),
            lower=get("lower", float),
            status=status_of(get("status", str)),
            prediction=get("prediction", Scalar),
            solver=get("solver", str),
            seconds=get("seconds", float),
            calls=get("calls", int),
            actions=None if actions is None else tuple(map(str, actions)),
            held_by=None if data.get("held_by") is None else tuple(map(scalar, get("held_by", list))),
        )


def shortened_list(texts: Sequence[str], most: int) -> str:
    """Return texts with commas between them; those that do not fit into so many characters are counted."""
    shown: list[str] = []
    for text in texts:
        if sum(map(len, shown)) + len(text) > most:
            break
        shown.append(text)
    rest = len(texts) - len(shown)
    return ", ".join([*shown, *([f"and {rest} more" if shown else f"{rest} changes"] if rest else [])]) or "nothing"


def real_dtype(feature: Feature) -> str | None:
    """Return the dtype of a real feature."""
    return feature.dtype if isinstance(feature, Real) else None
