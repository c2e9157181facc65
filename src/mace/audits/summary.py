"""The figures of an audit: each group, and how groups differ, with bootstrap intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mace.audits.people import GRANTED, NO_RECOURSE, OUTCOMES, RECOURSE, Person, plain_fields
from mace.errors import cut

EVERYONE = "everyone"
CONFIDENCE = 0.95
LEAST_FOR_INTERVAL = 10
"""Fewer people than this say nothing about an interval; the mean is given alone."""

QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)

Values = NDArray[np.float64]


def _granted(people: Sequence[Person]) -> list[float]:
    return [float(person.outcome == GRANTED) for person in people if person.outcome != "error"]


def _share(people: Sequence[Person], outcome: str) -> list[float]:
    return [float(person.outcome == outcome) for person in people if person.outcome not in (GRANTED, "error")]


def _with_recourse(people: Sequence[Person]) -> list[Person]:
    return [person for person in people if person.outcome == RECOURSE]


MEASURES = {
    "granted": ("share at the target already", _granted),
    "recourse": ("share of the others with recourse in hand", lambda people: _share(people, RECOURSE)),
    "fixed": ("share of the others proved to have none", lambda people: _share(people, NO_RECOURSE)),
    "distance": ("mean distance of the nearest", lambda people: [p.distance for p in _with_recourse(people)]),
    "changes": (
        "mean number of features changed",
        lambda people: [float(len(p.changed)) for p in _with_recourse(people)],
    ),
    "touches": (
        "share of the nearest that touch a protected feature",
        lambda people: [float(bool(p.touches)) for p in _with_recourse(people)],
    ),
    "price": (
        "mean further distance with them held",
        lambda people: [p.price for p in _with_recourse(people) if math.isfinite(p.price)],
    ),
}
"""What groups are compared by: a mean over the people to whom it applies."""


@dataclass(frozen=True, slots=True)
class ConfidenceInterval:
    """A mean with its bootstrap interval; NaN where it applies to nobody, the ends NaN where it applies to fewer than 10."""

    value: float
    low: float
    high: float
    people: int

    def to_dict(self) -> dict[str, Any]:
        """Return the interval as plain data for JSON."""
        return plain_fields(self)

    def __str__(self) -> str:
        if not self.people or math.isnan(self.value):
            return "-"
        if math.isnan(self.low):
            return f"{self.value:.4g} (few: {self.people})"
        return f"{self.value:.4g} ({self.low:.4g} to {self.high:.4g})"


@dataclass(frozen=True, slots=True)
class GroupSummary:
    """One group of an audit.

    Attributes
    ----------
    column, value : str
        Which group; everyone where the column is empty.
    outcomes : dict
        How many people have each outcome.
    proved_nearest : int
        How many answers in hand are proved nearest, to within 1e-6.
    measures : dict of ConfidenceInterval
        The means of ``MEASURES``.
    distances, lowers : dict
        Quantiles of the distance in hand, and of its proven lower bounds, over those with recourse.
    levers : dict
        Feature to the share of nearest counterfactuals that change it, most used first.
    protected : dict
        Protected feature to the share of nearest counterfactuals that change it.
    held : dict
        Of those whose nearest touches a protected feature, how many have each outcome with all of them held.
    relative_price : float
        The mean of the further distance over the distance, among those who have both and whose nearest touches one; NaN where nobody.
    """

    column: str
    value: str
    outcomes: dict[str, int]
    proved_nearest: int
    measures: dict[str, ConfidenceInterval]
    distances: dict[str, float]
    lowers: dict[str, float]
    levers: dict[str, float]
    protected: dict[str, float]
    held: dict[str, int]
    relative_price: float

    def __repr__(self) -> str:
        counted = ", ".join(f"{count} {outcome}" for outcome, count in self.outcomes.items() if count)
        return f"<GroupSummary of {cut(self.name, 80)}: {self.people} people, {counted}>"

    @property
    def name(self) -> str:
        """The group in words."""
        return f"{self.column} {self.value}" if self.column else self.value

    @property
    def people(self) -> int:
        """How many people there are."""
        return sum(self.outcomes.values())

    @property
    def asked(self) -> int:
        """How many of them are not at the target, and could be asked."""
        return self.people - self.outcomes[GRANTED] - self.outcomes["error"]

    def to_dict(self) -> dict[str, Any]:
        """Return the group as plain data for JSON."""
        first = {"column": self.column, "value": self.value, "people": self.people}
        measures = {name: interval.to_dict() for name, interval in self.measures.items()}
        return first | plain_fields(self) | {"measures": measures}


@dataclass(frozen=True, slots=True)
class Disparity:
    """How a group differs from the largest of its column: the difference of the means, with its bootstrap interval.

    ``difference.people`` is the smaller of the two groups.
    """

    column: str
    value: str
    reference: str
    measure: str
    difference: ConfidenceInterval

    @property
    def is_clear(self) -> bool:
        """Whether the interval leaves 0 out."""
        return not self.difference.low <= 0 <= self.difference.high and math.isfinite(self.difference.low)

    def to_dict(self) -> dict[str, Any]:
        """Return the disparity as plain data for JSON."""
        return plain_fields(self) | {"difference": self.difference.to_dict(), "is_clear": self.is_clear}


def summary_of(
    column: str, value: str, people: Sequence[Person], protected: Sequence[str], resamples: int, seed: int
) -> GroupSummary:
    """Return the figures of a group."""
    found = _with_recourse(people)
    touching = [person for person in found if person.touches]
    prices = [person.price / person.distance for person in touching if math.isfinite(person.price) and person.distance]
    changed = {name for person in found for name in person.changed}
    levers = {name: sum(name in person.changed for person in found) / len(found) for name in sorted(changed)}
    return GroupSummary(
        column=column,
        value=value,
        outcomes={name: sum(person.outcome == name for person in people) for name in OUTCOMES},
        proved_nearest=sum(person.distance - person.lower <= 1e-6 for person in found),
        measures={
            name: _interval(np.array(measure(people)), resamples, seed) for name, (_, measure) in MEASURES.items()
        },
        distances=_quantiles([person.distance for person in found]),
        lowers=_quantiles([person.lower for person in found]),
        levers=dict(sorted(levers.items(), key=lambda pair: (-pair[1], pair[0]))),
        protected={name: levers.get(name, 0.0) for name in protected} if found else {},
        held={name: sum(person.held_outcome == name for person in touching) for name in OUTCOMES[1:]},
        relative_price=float(np.mean(prices)) if prices else math.nan,
    )


def _quantiles(values: list[float]) -> dict[str, float]:
    if not values:
        return {}
    named = {f"{share:.0%}": float(np.quantile(values, share)) for share in QUANTILES}
    return {"least": min(values), **named, "most": max(values), "mean": float(np.mean(values))}


def means(values: Values, resamples: int, seed: int) -> Values:
    """Return the means of bootstrap resamples, the same for the same seed."""
    rng = np.random.default_rng(seed)
    made = [values[rng.integers(0, len(values), len(values))].mean() for _ in range(resamples)]
    return np.array(made)


def _interval(values: Values, resamples: int, seed: int) -> ConfidenceInterval:
    if not len(values):
        return ConfidenceInterval(math.nan, math.nan, math.nan, 0)
    low, high = _ends(means(values, resamples, seed)) if len(values) >= LEAST_FOR_INTERVAL else (math.nan, math.nan)
    return ConfidenceInterval(float(values.mean()), low, high, len(values))


def _ends(sample: Values) -> tuple[float, float]:
    low, high = np.quantile(sample, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return float(low), float(high)


def disparities_of(column: str, groups: dict[str, list[Person]], resamples: int, seed: int) -> tuple[Disparity, ...]:
    """Return how each group of a column differs from the largest one."""
    reference = max(groups, key=lambda value: (len(groups[value]), value))
    made = []
    for value, people in groups.items():
        if value == reference:
            continue
        for name, (_, measure) in MEASURES.items():
            own, other = np.array(measure(people)), np.array(measure(groups[reference]))
            made.append(Disparity(column, value, reference, name, _difference(own, other, resamples, seed)))
    return tuple(made)


def _difference(own: Values, other: Values, resamples: int, seed: int) -> ConfidenceInterval:
    if not len(own) or not len(other):
        return ConfidenceInterval(math.nan, math.nan, math.nan, 0)
    fewest = min(len(own), len(other))
    low = high = math.nan
    if fewest >= LEAST_FOR_INTERVAL:
        low, high = _ends(means(own, resamples, seed) - means(other, resamples, seed + 1))
    return ConfidenceInterval(float(own.mean() - other.mean()), low, high, fewest)
