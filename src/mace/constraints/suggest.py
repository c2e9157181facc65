"""Constraints that hold in data, for review: orderings, implications, dependencies, pairs that move together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np

from mace.constraints.combine import AllOf, Implies
from mace.constraints.condition import Constraint
from mace.constraints.fixed import Fixed
from mace.constraints.rule import Comparison
from mace.constraints.terms import Feature, Literal
from mace.errors import InvalidOption
from mace.exact import Floats
from mace.space import Categorical, Date, FeatureSpace, Integer, Level, Ordinal, Real

LEAST_SEEN = 30
"""A level, or a pair of rows, must be seen this often before anything is concluded from it."""

MOST_PAIRS = 20_000
MOST_LEVELS_LOOKED_AT = 40


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A constraint that holds in data.

    Attributes
    ----------
    kind : str
        ``protected``, ``ordering``, ``implication``, ``dependency`` or ``monotone``.
    constraint : Constraint
        What may be passed on to ``explain``, after review.
    support : float
        The share of the rows (of the pairs of rows, for ``monotone``) in which it holds.
    rows : int
        Of how many.
    """

    kind: str
    constraint: Constraint
    support: float
    rows: int

    def __str__(self) -> str:
        return f"{self.kind}: {getattr(self.constraint, 'text', self.constraint)} ({self.support:.1%} of {self.rows:,})"


def suggest_constraints(frame: Any, space: FeatureSpace, *, support: float = 1.0) -> list[Suggestion]:
    """Return constraints that hold in a frame, strongest first; they are offered for review and never applied.

    The first one fixes the features that the space protects, if there are any.

    Parameters
    ----------
    frame : data frame
        Rows over the features of the space.
    space : FeatureSpace
        The features.
    support : float
        The least share of the rows that must fulfil a constraint.

    Examples
    --------
    >>> import pandas as pd
    >>> from mace.space import FeatureSpace, integer
    >>> frame = pd.DataFrame({"late_30": [k % 5 for k in range(60)], "late_any": [k % 5 + k % 3 for k in range(60)]})
    >>> space = FeatureSpace({"late_30": integer(0, 9), "late_any": integer(0, 9)})
    >>> print(suggest_constraints(frame, space)[0])
    ordering: late_30 <= late_any (100.0% of 60)
    """
    if isinstance(support, bool) or not isinstance(support, int | float) or not 0.5 < support <= 1:
        raise InvalidOption(f"support={support!r}; give a share above 0.5 and at most 1.")
    points = [space.point(row) for row in frame.to_dict("records")]
    columns = {
        name: np.array([np.nan if point[j] is None else point[j] for point in points], dtype=float)
        for j, name in enumerate(space)
    }
    protected = [Suggestion("protected", Fixed(space.protected), 1.0, len(points))] if space.protected else []
    found = [
        *protected,
        *_orderings(columns, space, support),
        *_monotone(columns, space, support),
        *_dependencies(columns, space, support),
    ]
    kinds = ("protected", "ordering", "dependency", "implication", "monotone")
    return sorted(found, key=lambda each: (-each.support, kinds.index(each.kind), -each.rows))


def _orderings(columns: dict[str, Floats], space: FeatureSpace, support: float) -> Iterator[Suggestion]:
    numbers = [name for name, feature in space.items() if isinstance(feature, Real | Integer)]
    for one, other in permutations(numbers, 2):
        if getattr(space[one], "unit", None) != getattr(space[other], "unit", None):
            continue
        a, b = _both(columns[one], columns[other])
        if len(a) < LEAST_SEEN or a.max() <= b.min():
            continue
        share = float((a <= b).mean())
        if share >= support and (a < b).any():
            yield Suggestion("ordering", Comparison((Feature(one), Feature(other)), ("<=",)), share, len(a))


def _monotone(columns: dict[str, Floats], space: FeatureSpace, support: float) -> Iterator[Suggestion]:
    """Yield the pairs of which one never falls while the other rises, over random pairs of rows."""
    rng = np.random.default_rng(0)
    ordered = [name for name, feature in space.items() if not isinstance(feature, Categorical)]
    for one, other in permutations(ordered, 2):
        a, b = _both(columns[one], columns[other])
        if len(a) < LEAST_SEEN:
            continue
        first, second = rng.integers(len(a), size=(2, MOST_PAIRS))
        rises = a[second] > a[first]
        if rises.sum() < LEAST_SEEN or len(np.unique(b)) < 2:
            continue
        share = float((b[second] >= b[first])[rises].mean())
        if share >= support:
            rising = Comparison((Feature(one), Feature(one, is_old=True)), (">",))
            follows = Comparison((Feature(other), Feature(other, is_old=True)), (">=",))
            yield Suggestion("monotone", Implies(rising, follows), share, int(rises.sum()))


def _dependencies(columns: dict[str, Floats], space: FeatureSpace, support: float) -> Iterator[Suggestion]:
    """Yield what each level of a feature says about another; where all of them say something, that is one dependency."""
    for one, other in permutations(_with_few_values(columns, space), 2):
        a, b = _both(columns[one], columns[other])
        usual = _most_frequent(b)
        if len(a) < LEAST_SEEN or usual is None:
            continue
        implied: list[tuple[Constraint, float, int]] = []
        values = np.unique(a)
        for value in values:
            seen = b[a == value]
            then = _most_frequent(seen)
            if then is None or len(seen) < LEAST_SEEN:
                continue
            share = float((seen == then).mean())
            if share >= support and (b != then).any():
                implied.append((Implies(_is(space, one, value), _is(space, other, then)), share, len(seen)))
        if implied and len(implied) == len(values) > 1:
            rows = sum(count for _, _, count in implied)
            share = sum(share * count for _, share, count in implied) / rows
            yield Suggestion("dependency", AllOf(tuple(each for each, _, _ in implied)), share, rows)
        else:
            yield from (Suggestion("implication", each, share, count) for each, share, count in implied)


def _with_few_values(columns: dict[str, Floats], space: FeatureSpace) -> list[str]:
    return [
        name
        for name, feature in space.items()
        if not isinstance(feature, Real) and len(np.unique(columns[name])) <= MOST_LEVELS_LOOKED_AT
    ]


def _both(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Return two columns without the rows in which either is missing."""
    known = ~(np.isnan(a) | np.isnan(b))
    return a[known], b[known]


def _most_frequent(values: Floats) -> float | None:
    if not len(values):
        return None
    each, counts = np.unique(values, return_counts=True)
    return float(each[counts.argmax()])


def _is(space: FeatureSpace, name: str, number: float) -> Comparison:
    feature = space[name]
    value: Level = int(number)
    if isinstance(feature, Ordinal | Categorical):
        value = feature.levels[int(number)]
    elif isinstance(feature, Date):
        value = feature.text(number)
    return Comparison((Feature(name), Literal(value)), ("==",))
