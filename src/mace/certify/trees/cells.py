"""Each feature's domain cut into cells, found anew from the form, the conditions and the cuts of a proof.

Between two neighbouring cuts no tree tells two values apart, and no condition on the feature alone does. Costs are whole numbers of
2^-58, rounded down, so that their sums are exact and never above the true distance; where distances may be above 1, they are measured in
units in which they are not.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from mace.certify.verdict import Unchecked
from mace.constraints.differ import CountDifferent, counts
from mace.distances import PartsMetric, PercentileMetric
from mace.distances.change import change, written_change, written_range
from mace.distances.norm import Parts
from mace.distances.percentile import Percentiles
from mace.exact import Flags, Floats, Ints, float_down, greatest_float, least_float, next_float, rounded_in
from mace.language import holds, syntax
from mace.problem import Problem
from mace.space import Categorical, Feature, Integer, Ordinal, Real, Value
from mace.space.decimals import decimal_of, dtype_of

SCALE = 2**58
COST_ROUNDING = 1 - 2.0**-49
"""A cost takes at most ten roundings, each of at most 2^-53 of it."""

SIX_DOWN = 1 - 2.0**-50
"""What is known to within six roundings, times this, is not above what it stands for."""

WIDEST = 1e300
"""A range beyond this is not divided by in floats."""


@dataclass(frozen=True, slots=True)
class CellAxis:
    """One feature.

    Attributes
    ----------
    low, high : float arrays
        The least and the greatest value of each cell that the domain and the conditions on this feature alone leave; of a feature with
        levels, each level that they leave is a cell of its own, with its position.
    add, top : int arrays
        The least that a value of the cell adds to the sum of a distance, and its share in the maximum, in units of 1 / SCALE.
    own : int
        The cheapest cell; costs do not fall on the way from it, for features that are not sets.
    home : int
        The cell with the factual's own value, -1 where there is none: in every other cell all values are changes.
    is_set : bool
        Whether a box holds a set of cells rather than a range.
    may_be_missing : bool
        Whether the feature may be missing.
    missing_add, missing_top : int
        What being missing costs.
    differs : bool array, conditions x cells
        Where some value of the cell may count as different from an earlier counterfactual.
    missing_differs : bool array
        Where being missing does.
    missing_changes : bool
        Whether being missing is a change.
    """

    low: Floats
    high: Floats
    add: Ints
    top: Ints
    own: int
    home: int
    is_set: bool
    may_be_missing: bool
    missing_add: int
    missing_top: int
    differs: Flags
    missing_differs: Flags
    missing_changes: bool

    @property
    def size(self) -> int:
        """How many cells there are."""
        return len(self.low)

    def cells_up_to(self, value: float) -> int:
        """Return how many cells lie at or below a value at which cells are cut."""
        return int(np.searchsorted(self.high, value, side="right"))


def make_axes(problem: Problem, cuts: list[Floats]) -> list[CellAxis]:
    """Return the axes of a problem; ``cuts`` are the values of each feature at which cells must end."""
    assert isinstance(problem.metric, PartsMetric)
    metric, _ = problem.metric.up_to_one()
    scales = scales_of(problem)
    guards = _single_guards(problem)
    earlier = counts(problem.conditions)
    never = any(not holds(guard, {}) for guard in guards.get("", []))
    axes = []
    for j, (name, feature) in enumerate(problem.space.items()):
        if feature.range > WIDEST:
            raise Unchecked(f"the range of {name!r} is too wide to be divided by in floats")
        own, parts = problem.factual[j], metric.parts[j]
        if isinstance(feature, Ordinal | Categorical):
            low = high = np.array(
                [float(k) for k in range(feature.size) if _all_hold(guards.get(name, []), name, Fraction(k))]
            )
        else:
            alike = [border for c in earlier for border in _alike_borders(feature, j, c)]
            low, high = _numeric_cells(name, feature, own, np.append(cuts[j], alike), guards.get(name, []))
        if never:
            low, high = low[:0], high[:0]
        add, top = cell_costs(feature, own, parts, low, high, scales[j])
        is_missing_allowed = feature.missing and _all_hold(guards.get(name, []), name, None) and not never
        lost = np.array([own is not None])
        missing_add, missing_top = change_costs(parts, lost.astype(np.float64), lost)
        axes.append(
            CellAxis(
                low=low,
                high=high,
                add=add,
                top=top,
                own=int(np.argmin(add + top)) if len(low) else 0,
                home=_home(own, low, high),
                is_set=isinstance(feature, Ordinal | Categorical),
                may_be_missing=is_missing_allowed,
                missing_add=int(missing_add[0]),
                missing_top=int(missing_top[0]),
                differs=np.array([_differs(feature, j, c, low, high) for c in earlier], dtype=bool).reshape(
                    len(earlier), len(low)
                ),
                missing_differs=np.array([c.counts(j) and c.earlier[j] is not None for c in earlier], dtype=bool),
                missing_changes=own is not None,
            )
        )
    return axes


def threshold(problem: Problem, lower: Fraction | None) -> int:
    """Return the cost, in units of 1 / SCALE, from which on a point is not nearer than ``lower``; ``None`` is any distance."""
    assert isinstance(problem.metric, PartsMetric)
    metric, unit = problem.metric.up_to_one()
    return 2**62 if lower is None else math.ceil((lower / unit) ** metric.power * SCALE)


def _home(own: Value, low: Floats, high: Floats) -> int:
    """Return the cell that holds a value, -1 where none does."""
    holding = np.flatnonzero((low <= own) & (own <= high)) if own is not None else np.empty(0, dtype=np.int64)
    return int(holding[0]) if len(holding) else -1


# ---- cells


def _numeric_cells(
    name: str, feature: Real | Integer, own: Value, cuts: Floats, guards: list[syntax.Guard]
) -> tuple[Floats, Floats]:
    """Return the least and the greatest value of each cell that holds one."""
    borders = sorted(
        {border for guard in guards for constant in syntax.compared_with(guard) or () for border in _borders(constant)}
    )
    joined = np.concatenate([cuts, np.array(borders, dtype=np.float64)])
    ends = np.unique(joined[(joined >= feature.low) & (joined < feature.high)])
    low = np.concatenate([[float(feature.low)], np.nextafter(ends, math.inf)])
    high = np.concatenate([ends, [float(feature.high)]])
    if guards:
        # Between two borders every guard is constant.
        region = np.searchsorted(np.array(borders), low)
        allowed = {
            int(r): _all_hold(guards, name, Fraction(float(low[np.argmax(region == r)]))) for r in np.unique(region)
        }
        kept = np.array([allowed[int(r)] for r in region], dtype=bool)
        low, high = low[kept], high[kept]
    first, last = on_grid(feature, low, high)
    if own is not None:
        home = (low <= own) & (own <= high)
        first, last = np.where(home, np.minimum(first, own), first), np.where(home, np.maximum(last, own), last)
    filled = first <= last
    return first[filled], last[filled]


def on_grid(feature: Real | Integer, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Return the first and the last value of the feature in each range, in the wrong order where there is none."""
    if feature.step is None:
        return rounded_in(low, high, feature.floats) if isinstance(feature, Real) else (np.ceil(low), np.floor(high))
    if feature.low == feature.high:
        return low, high
    # One more than the decimals give: its float may still be the end of the range.
    steps = range((feature.size or 0) + 1)

    def at(k: int) -> float:
        return float(feature.value_at(k)) if 0 <= k < len(steps) else math.inf if k >= 0 else -math.inf

    first = [at(bisect.bisect_left(steps, value, key=feature.value_at)) for value in low]
    last = [at(bisect.bisect_right(steps, value, key=feature.value_at) - 1) for value in high]
    return np.array(first), np.array(last)


def _borders(constant: Fraction) -> list[float]:
    """Return where cells end so that each lies below, on or above a number."""
    at = float_down(constant)
    return [math.nextafter(at, -math.inf), at] if at == constant else [at]


def _alike_borders(feature: Real | Integer, j: int, condition: CountDifferent) -> list[float]:
    """Return where cells of feature number ``j`` end so that all of each, or nothing of it, counts as different."""
    earlier = condition.earlier[j]
    if earlier is None or not condition.counts(j):
        return []
    if isinstance(feature, Integer) or condition.by == 0:
        return _borders(Fraction(earlier))
    if condition.written:
        old, reach, dtype = decimal_of(feature, earlier), condition.by * written_range(feature), dtype_of(feature)
        return [greatest_float(old - reach, dtype), next_float(least_float(old + reach, dtype), -math.inf, dtype)]
    reach = condition.by * feature.range
    return [*_borders(Fraction(earlier) - reach), *_borders(Fraction(earlier) + reach)]


# ---- costs


def scales_of(problem: Problem) -> tuple[Percentiles | None, ...]:
    """Return the people by whose values each feature's change is measured; ``None`` where it is measured by the range."""
    metric = problem.metric
    return metric.scales if isinstance(metric, PercentileMetric) else (None,) * len(problem.space)


def cell_costs(
    feature: Feature, own: Value, parts: Parts, low: Floats, high: Floats, scale: Percentiles | None = None
) -> tuple[Ints, Ints]:
    """Return the least that a value of each cell adds to the sum of a distance, and its share in the maximum, in units of 1 / SCALE."""
    return change_costs(parts, *_changes(feature, own, low, high, scale))


def _changes(
    feature: Feature, own: Value, low: Floats, high: Floats, scale: Percentiles | None
) -> tuple[Floats, Flags]:
    """Return the least change δ in each cell, to within three roundings, and whether every value of it is a change."""
    if own is None:
        return np.ones(len(low)), np.ones(len(low), dtype=bool)
    if feature.range == 0:
        return np.zeros(len(low)), np.zeros(len(low), dtype=bool)
    if isinstance(feature, Categorical):
        return (low != own).astype(np.float64), np.asarray(low != own)
    nearest = np.clip(float(own), low, high)
    if scale is not None:
        return scale.floats(float(own), nearest) * SIX_DOWN, np.asarray(nearest != own)
    return np.abs(nearest - float(own)) / float(feature.range), np.asarray(nearest != own)


@lru_cache(maxsize=4096)
def rounded_down(parts: Parts) -> tuple[float, float, float, float]:
    """Return jump, slope, square and peak as floats that are not above them."""
    return float_down(parts.jump), float_down(parts.slope), float_down(parts.square), float_down(parts.peak)


def costs_at(axes: list[CellAxis], cells: Iterable[int], missing: Flags) -> list[tuple[int, int]]:
    """Return what a point in some cells costs, feature by feature: in the sum and in the maximum. Missing features have no cell."""
    return [
        (axis.missing_add, axis.missing_top) if lost else (int(axis.add[cell]), int(axis.top[cell]))
        for axis, cell, lost in zip(axes, cells, missing, strict=True)
    ]


def cells_within(axes: list[CellAxis], costs: list[tuple[int, int]], limit: int) -> list[Flags]:
    """Return the cells that a point with a cost below ``limit`` may have, where the other features cost at least ``costs``."""
    total = sum(add for add, _ in costs)
    *_, second, peak = sorted([0, 0, *(top for _, top in costs)])
    return [
        total - add + axis.add + np.maximum(axis.top, second if top == peak else peak) < limit
        for axis, (add, top) in zip(axes, costs, strict=True)
    ]


def change_costs(parts: Parts, deltas: Floats, changed: Flags) -> tuple[Ints, Ints]:
    """Return what changes cost, rounded down: jump + slope δ + square δ² in the sum, peak δ in the maximum."""
    _, slope, square, peak = rounded_down(parts)
    add = np.floor((slope + square * deltas) * deltas * COST_ROUNDING * SCALE).astype(np.int64)
    add += math.floor(parts.jump * SCALE)
    top = np.floor(peak * deltas * COST_ROUNDING * SCALE).astype(np.int64)
    return np.where(changed, add, 0), np.where(changed, top, 0)


def _differs(feature: Feature, j: int, condition: CountDifferent, low: Floats, high: Floats) -> Flags:
    """Return where some value of a cell of feature number ``j`` counts as different: the farther end does, if any."""
    earlier = condition.earlier[j]
    if not condition.counts(j):
        return np.zeros(len(low), dtype=bool)
    if earlier is None:
        return np.ones(len(low), dtype=bool)
    if not isinstance(feature, Real) or condition.by == 0:
        return np.asarray((low != earlier) | (high != earlier))
    delta = written_change if condition.written else change
    ends = [
        max(delta(feature, float(a), earlier), delta(feature, float(b), earlier)) >= condition.by
        for a, b in zip(low, high, strict=True)
    ]
    return np.array(ends, dtype=bool)


# ---- conditions on one feature alone


def _single_guards(problem: Problem) -> dict[str, list[syntax.Guard]]:
    """Return the guards on each feature alone, under "" those on none; other conditions are left out, so that more is proved than is
    claimed."""
    found: dict[str, list[syntax.Guard]] = {}
    for guard in problem.guards:
        names = syntax.variables(guard)
        if len(names) <= 1 and syntax.compared_with(guard) is not None:
            found.setdefault(next(iter(names), ""), []).append(guard)
    return found


def _all_hold(guards: list[syntax.Guard], name: str, value: Fraction | None) -> bool:
    return all(holds(guard, {name: value}) for guard in guards)
