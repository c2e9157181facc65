"""The figures of an audit: each group, and how groups differ, with bootstrap intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mace.audits.people import GRANTED, NO_RECOURSE, OUTCOMES, RECOURSE, Person, plain_fields
from mace.errors import cut

EVERYONE = "everyone"
CONFIDENCE = 0.95
LEAST_FOR_INTERVAL = 10
"""A group of fewer people than this is small: it gets no interval, no curve, and is not compared."""

CLEAR = 0.05
"""A difference is clear whose p-value, corrected for the number of comparisons, is at most this."""

CORRECTION = "Holm"

LEAST_DEALS, MOST_DEALS = 40, 20_000
"""How often people are dealt to two groups at random: for each comparison of the audit, and at most."""

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
    def is_small(self) -> bool:
        """Whether there are too few people to say anything of the group but what became of each."""
        return self.people < LEAST_FOR_INTERVAL

    @property
    def asked(self) -> int:
        """How many of them are not at the target, and could be asked."""
        return self.people - self.outcomes[GRANTED] - self.outcomes["error"]

    def to_dict(self) -> dict[str, Any]:
        """Return the group as plain data for JSON."""
        first = {"column": self.column, "value": self.value, "people": self.people}
        measures = {name: interval.to_dict() for name, interval in self.measures.items()}
        return first | {"is_small": self.is_small} | plain_fields(self) | {"measures": measures}


@dataclass(frozen=True, slots=True)
class Disparity:
    """How a group differs from the largest of its column: the difference of the means, with its bootstrap interval.

    ``difference.people`` is the smaller of the two groups. ``p_value`` is how often people who are dealt to the two groups at random differ
    as much, and ``corrected`` the same after Holm's correction for all comparisons of the audit; both NaN where a group is small or
    everybody is alike.
    """

    column: str
    value: str
    reference: str
    measure: str
    difference: ConfidenceInterval
    p_value: float = math.nan
    corrected: float = math.nan

    @property
    def is_compared(self) -> bool:
        """Whether this is one of the comparisons that are corrected for."""
        return math.isfinite(self.p_value)

    @property
    def is_clear(self) -> bool:
        """Whether chance is an unlikely cause, the number of comparisons taken into account."""
        return self.corrected <= CLEAR

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


def all_disparities(groups: dict[str, dict[str, list[Person]]], resamples: int, seed: int) -> tuple[Disparity, ...]:
    """Return how the groups of every column differ from the largest one of theirs, corrected for how many are compared."""
    pairs = sum(max(len(values) - 1, 0) for values in groups.values())
    deals = min(max(resamples, LEAST_DEALS * pairs * len(MEASURES)), MOST_DEALS)
    made = [
        each
        for column, values in groups.items()
        if len(values) > 1
        for each in _disparities_of(column, values, resamples, deals, seed)
    ]
    compared = [each for each in made if each.is_compared]
    corrected = dict(zip(map(id, compared), holm([each.p_value for each in compared]), strict=True))
    return tuple(replace(each, corrected=corrected.get(id(each), math.nan)) for each in made)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values after Holm's step-down correction: the chance of even one false alarm among all stays below the level.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = sorted(range(len(p_values)), key=lambda place: p_values[place])
    made, least = [1.0] * len(p_values), 0.0
    for rank, place in enumerate(order):
        least = max(least, min(1.0, (len(p_values) - rank) * p_values[place]))
        made[place] = least
    return made


def chance(own: Values, other: Values, deals: int, seed: int) -> float:
    """Return how often two groups that are dealt at random from the same people differ in their means as much as these do.

    For shares that is Fisher's exact test; for other means it is counted over ``deals`` deals. NaN where a group is small, or everybody is
    alike.
    """
    pooled = np.concatenate([own, other])
    if min(len(own), len(other)) < LEAST_FOR_INTERVAL or not np.ptp(pooled):
        return math.nan
    if np.isin(pooled, (0.0, 1.0)).all():
        from scipy.stats import fisher_exact

        return float(fisher_exact([[own.sum(), (1 - own).sum()], [other.sum(), (1 - other).sum()]])[1])
    rng, found = np.random.default_rng(seed), 0
    gap = abs(own.mean() - other.mean()) * (1 - 1e-12)
    block = max(1, 1_000_000 // len(pooled))
    for begin in range(0, deals, block):
        dealt = rng.permuted(np.tile(pooled, (min(block, deals - begin), 1)), axis=1)
        found += int((abs(dealt[:, : len(own)].mean(axis=1) - dealt[:, len(own) :].mean(axis=1)) >= gap).sum())
    return (1 + found) / (1 + deals)


def _disparities_of(
    column: str, groups: dict[str, list[Person]], resamples: int, deals: int, seed: int
) -> list[Disparity]:
    """Return how each group of a column differs from the largest one."""
    reference = max(groups, key=lambda value: (len(groups[value]), value))
    made = []
    for value, people in groups.items():
        if value == reference:
            continue
        for name, (_, measure) in MEASURES.items():
            own, other = np.array(measure(people)), np.array(measure(groups[reference]))
            difference = _difference(own, other, resamples, seed)
            made.append(Disparity(column, value, reference, name, difference, chance(own, other, deals, seed)))
    return made


def _difference(own: Values, other: Values, resamples: int, seed: int) -> ConfidenceInterval:
    if not len(own) or not len(other):
        return ConfidenceInterval(math.nan, math.nan, math.nan, 0)
    fewest = min(len(own), len(other))
    low = high = math.nan
    if fewest >= LEAST_FOR_INTERVAL:
        low, high = _ends(means(own, resamples, seed) - means(other, resamples, seed + 1))
    return ConfidenceInterval(float(own.mean() - other.mean()), low, high, fewest)
