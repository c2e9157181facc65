"""The people of an audit: what became of each row, without and with the protected features held."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mace.answer.explanation import Explanation
from mace.answer.question import Question
from mace.batch import Batch
from mace.constraints import fixed
from mace.errors import InvalidOption, did_you_mean, listed
from mace.explainer import Explainer
from mace.problem import Status
from mace.space import Date
from mace.space.dates import UNITS, as_text, column_microseconds, unit_of
from mace.space.wording import MISSING, show_value

if TYPE_CHECKING:
    import pandas as pd

GRANTED, RECOURSE, NO_RECOURSE, UNKNOWN, ERROR = "granted", "recourse", "none", "unknown", "error"
OUTCOMES = (GRANTED, RECOURSE, NO_RECOURSE, UNKNOWN, ERROR)
"""At the target already; a counterfactual is in hand; proved that there is none; neither; the row cannot be explained."""

MOST_GROUPS = 50
MOST_NUMBERS, BANDS = 10, 4
"""A column of more numbers, or dates, than this is compared in bands."""


@dataclass(frozen=True, slots=True)
class Person:
    """What an audit found out about one row.

    Attributes
    ----------
    row : label
        The row's index in the frame.
    groups : dict
        Group column to the person's value.
    outcome : str
        One of ``OUTCOMES``.
    distance, lower : float
        Of the nearest counterfactual in hand, and proved; NaN and 0 where there is none in hand.
    changed : tuple of str
        The features that it changes.
    touches : tuple of str
        Those of them that are protected.
    held_outcome : str
        The outcome with every protected feature held.
    held_distance, held_lower : float
        The distance then.
    error : str
        Why the row cannot be explained.
    """

    row: object
    groups: dict[str, str]
    outcome: str
    distance: float = math.nan
    lower: float = 0.0
    changed: tuple[str, ...] = ()
    touches: tuple[str, ...] = ()
    held_outcome: str = ""
    held_distance: float = math.nan
    held_lower: float = 0.0
    error: str = ""

    @property
    def is_fixed(self) -> bool:
        """Whether it is proved that no counterfactual exists."""
        return self.outcome == NO_RECOURSE

    @property
    def price(self) -> float:
        """How much farther it is with the protected features held, NaN where one of the two is not in hand."""
        return self.held_distance - self.distance

    def to_dict(self) -> dict[str, Any]:
        """Return the person as plain data for JSON."""
        return plain_fields(self) | {"row": self.row if isinstance(self.row, int | str) else str(self.row)}


def plain_fields(record: Any) -> dict[str, Any]:
    """Return the fields of a data class as plain data for JSON: a tuple is a list, a number that is not finite ``None``."""
    return {each.name: _plain(getattr(record, each.name)) for each in fields(record)}


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return list(value) if isinstance(value, tuple) else value


Explain = Callable[[Any, Question], Batch]
"""Asks a question about some rows."""


def people_of(
    explainer: Explainer,
    frame: pd.DataFrame,
    groups: Sequence[str],
    protected: Sequence[str],
    question: Question,
    explain: Explain,
) -> tuple[Person, ...]:
    """Explain everyone, and once more, with the protected features held, those whose answer touches one.

    An answer that touches no protected feature is the nearest with them held too, so nobody else need be asked again.
    """
    names = list(explainer.space)
    labels = [_labels(frame, group) for group in groups]
    members = [dict(zip(groups, values, strict=True)) for values in zip(*labels, strict=True)] or [{}] * len(frame)
    people = [
        _person(Person(label, member, UNKNOWN), explanation, protected)
        for label, member, explanation in zip(
            frame.index.tolist(), members, explain(frame[names], question), strict=True
        )
    ]
    touching = [number for number, person in enumerate(people) if person.touches]
    if touching:
        held = question.but(constraints=(*question.constraints, fixed(*protected)))
        second = explain(frame[names].iloc[touching], held)
        for number, explanation in zip(touching, second, strict=True):
            people[number] = _held(people[number], explanation)
    return tuple(people)


def _labels(frame: pd.DataFrame, group: str) -> list[str]:
    if group not in frame.columns:
        raise InvalidOption(
            f"groups: the frame has no column {group!r}.{did_you_mean(group, frame.columns)} "
            f"Its columns: {listed(map(str, frame.columns))}."
        )
    values = frame[group].astype(object).where(frame[group].notna(), MISSING)
    known = values[frame[group].notna()]
    bands = _bands_of(known) if known.nunique() > MOST_NUMBERS else None
    if bands is not None:
        values[frame[group].notna()] = bands
    if values.nunique() > MOST_GROUPS:
        raise InvalidOption(
            f"groups: {group!r} has {values.nunique()} values; at most {MOST_GROUPS}. Put them into classes first."
        )
    return [_shown(value) for value in values]


def _shown(value: object) -> str:
    try:
        return show_value(as_text(value))
    except ValueError:  # a moment with a time zone
        return str(value)


def _bands_of(known: Any) -> list[str] | None:
    """Return the bands of a column of numbers, or of dates; ``None`` for any other."""
    if all(isinstance(each, Real) and math.isfinite(each) for each in known):
        return _bands(known.to_numpy(float), _number)
    try:
        found = column_microseconds(known)
    except ValueError:
        return None
    unit = unit_of(found)
    return _bands(found, lambda value: Date(0, 0, unit=unit).text(int(value) // UNITS[unit]))


def _bands(numbers: npt.NDArray[np.float64], text: Callable[[Any], str]) -> list[str]:
    """Return the band of each number, with about as many people each, called by its ends: "19 to 26"."""
    edges = np.unique(np.quantile(numbers, np.arange(1, BANDS) / BANDS, method="inverted_cdf"))
    places = np.searchsorted(edges, numbers)
    members = {place: numbers[places == place] for place in set(places.tolist())}
    names = {place: f"{text(each.min())} to {text(each.max())}" for place, each in members.items()}
    return [names[place] for place in places.tolist()]


def _number(value: float) -> str:
    return str(int(value)) if value.is_integer() else str(float(value))


def in_order(name: str) -> tuple[float, str]:
    """Return what sorts the groups of a column: bands by their first number, then the rest by name."""
    try:
        return float(name.partition(" to ")[0]), name
    except ValueError:
        return math.inf, name


def _outcome(explanation: Explanation) -> str:
    if explanation:
        return RECOURSE
    return {Status.INFEASIBLE: NO_RECOURSE, Status.ERROR: ERROR, Status.REACHED: GRANTED}.get(
        explanation.status, UNKNOWN
    )


def _person(person: Person, explanation: Explanation, protected: Sequence[str]) -> Person:
    outcome = _outcome(explanation)
    if outcome in (GRANTED, ERROR):
        return replace(person, outcome=outcome, error=explanation.error)
    changed = tuple(change.feature for change in explanation[0].changes) if explanation else ()
    touches = tuple(name for name in changed if name in protected)
    distance = explanation[0].distance if explanation else math.nan
    return replace(
        person,
        outcome=outcome,
        distance=distance,
        lower=explanation.lower,
        changed=changed,
        touches=touches,
        held_outcome="" if touches else outcome,
        held_distance=math.nan if touches else distance,
        held_lower=0.0 if touches else explanation.lower,
    )


def _held(person: Person, explanation: Explanation) -> Person:
    return replace(
        person,
        held_outcome=_outcome(explanation),
        held_distance=explanation[0].distance if explanation else math.nan,
        held_lower=explanation.lower,
    )
