"""Limits on the distances from given rows: near enough rows of some data, or far from an earlier answer.

A *group* is one such condition: at least ``least`` of its rows lie within a limit, or its one row lies at least so far away. What matters
of a box is how far each row lies from it at least (at most, for a row to be far from), and, where the distance is the one that is
minimised, how long the way from the factual over the box to the row is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from mace.constraints.differ import FarFrom
from mace.constraints.near_data import UNSURE, Neighbours
from mace.distances import NormMetric
from mace.distances.change import written_room
from mace.distances.metric import FloatParts
from mace.exact import Flags, Floats
from mace.problem import Problem
from mace.solvers.trees import kernels
from mace.solvers.trees.grid import Ints
from mace.space import Categorical, Point

NO_LEVEL = 62
"""Where a box of levels, as bits, has none."""

ROUNDING_ROOM = 1e-12
"""More than the rounding of a distance in floats."""


@dataclass(frozen=True, eq=False)
class RowGroup:
    """One condition.

    Attributes
    ----------
    numbers : float array, rows x features
        The rows, NaN where missing.
    least : int
        How many rows must lie within the limit.
    limit, sure : float
        A row within ``limit`` may count, one within ``sure`` surely does; beyond them, where it is to be far from.
    is_far, is_max, has_way : bool
        Whether it is a row to be far from; whether its distance is a maximum over features; whether it is the one that is minimised.
    scales : float array
        What a step of 1 in each feature changes.
    is_category : bool array
        Which features have no order.
    costs : FloatParts
        What changes add to the distance.
    home : float array, rows x features
        What each feature adds to the distance of the factual from each row.
    """

    numbers: Floats
    least: int
    limit: float
    sure: float
    is_far: bool
    is_max: bool
    has_way: bool
    scales: Floats
    is_category: Flags
    costs: FloatParts
    home: Floats

    def cost(self, features: Ints | slice, deltas: Floats) -> Floats:
        """Return what changes of some features, one a column, add to the distance; or to the maximum that it is."""
        jump, slope, square, peak = (part[features] for part in self.costs)
        found: Floats = peak * deltas if self.is_max else (deltas > 0) * jump + (slope + square * deltas) * deltas
        return found

    def total(self, each: Floats) -> Floats:
        """Return distances, given what each feature adds."""
        found: Floats = each.max(axis=1) if self.is_max else each.sum(axis=1)
        return found

    def only(self, kept: Flags) -> RowGroup:
        """Return the group with some of its rows."""
        return replace(self, numbers=self.numbers[kept], home=self.home[kept])

    @cached_property
    def _are_beside(self) -> Flags:
        """Which rows may have a point within the limit of both."""
        near = np.zeros((len(self.numbers), len(self.numbers)))
        for j, own in enumerate(self.numbers.T):
            apart = own[:, None] != own if self.is_category[j] else np.abs(own[:, None] - own)
            lost = np.isnan(own)
            delta = np.where(lost[:, None] | lost, lost[:, None] != lost, apart * self.scales[j])
            if self.is_category[j]:
                delta = (delta > 0).astype(np.float64)
            each = self.cost(np.array([j]), delta[..., None])[..., 0]
            near = np.maximum(near, each) if self.is_max else near + each
        # A sum of squares is at most four times the limit: the distances themselves add up.
        factor = 4.0 if self.costs.square.any() else 2.0
        made: Flags = near <= factor * self.limit
        np.fill_diagonal(made, val=False)
        return made

    def beside(self, kept: Ints) -> tuple[Ints, Ints]:
        """Return, of some rows, those beside each, row after row, by their places among them; and how many these are."""
        if self.least < 2:
            return np.empty(0, dtype=np.int64), np.zeros(len(kept), dtype=np.int64)
        row, other = np.nonzero(self._are_beside[np.ix_(kept, kept)])
        return other.astype(np.int64), np.bincount(row, minlength=len(kept)).astype(np.int64)

    def floors(self) -> Floats:
        """Return for each row a distance from the factual below which it does not count."""
        away = self.total(self.home)
        if not self.has_way:
            return np.zeros(len(away))
        found: Floats = np.maximum(self.limit - away if self.is_far else away - self.limit, 0.0)
        return found


def groups_of(problem: Problem) -> list[RowGroup]:
    """Return the groups of a problem, whose distance is in units in which none is above 1."""
    return [_group(problem, each) for each in problem.conditions if isinstance(each, Neighbours | FarFrom)]


def why_not(problem: Problem) -> str:
    """Return why the limits on distances of a problem cannot be taken; empty where they can."""
    metric = problem.metric
    only_counts = isinstance(metric, NormMetric) and not any(part.any() for part in metric.costs[1:])
    for each in problem.conditions:
        if not isinstance(each, Neighbours | FarFrom):
            continue
        costs = each.metric.up_to_one()[0].costs
        if costs.peak.any() and (costs.jump.any() or costs.slope.any()):
            return "a limit is on a mixture with a maximum over features"
        is_same = _is_same(problem, each) and each.metric.power == 1
        if not is_same and not (only_counts and isinstance(each, Neighbours)):
            return "a limit is on another distance than the one that is asked for"
    return ""


def _is_same(problem: Problem, condition: Neighbours | FarFrom) -> bool:
    metric, own = problem.metric, condition.metric
    if not isinstance(metric, NormMetric):
        return False
    metric, own = metric.up_to_one()[0], own.up_to_one()[0]
    return (metric.norms, metric.weights) == (own.norms, own.weights)


def _group(problem: Problem, condition: Neighbours | FarFrom) -> RowGroup:
    metric, unit = condition.metric.up_to_one()
    is_far = isinstance(condition, FarFrom)
    features = list(problem.space.values())
    off = max(map(written_room, features)) if condition.written else Fraction(0)
    sign = -1 if is_far else 1
    ends = [max((condition.radius + sign * room) / unit, Fraction(0)) for room in (off, -off)]
    limit, sure = (float(end) ** metric.power for end in ends)
    rows: Sequence[Point] = (condition.earlier,) if isinstance(condition, FarFrom) else condition.rows
    numbers = np.array([[np.nan if value is None else float(value) for value in row] for row in rows])
    scales = np.array([float(1 / feature.range) if feature.range else 0.0 for feature in features])
    is_category = np.array([isinstance(feature, Categorical) for feature in features])
    own = np.array([np.nan if value is None else float(value) for value in problem.factual])
    group = RowGroup(
        numbers=numbers,
        least=condition.least if isinstance(condition, Neighbours) else 1,
        limit=limit + sign * ROUNDING_ROOM,
        sure=sure - sign * UNSURE,
        is_far=is_far,
        is_max=bool(metric.costs.peak.any()),
        has_way=_is_same(problem, condition) and metric.power == 1,
        scales=scales,
        is_category=is_category,
        costs=metric.costs,
        home=np.empty(0),
    )
    object.__setattr__(group, "home", group.cost(slice(None), changes(group, numbers, own)))
    return group


def changes(group: RowGroup, rows: Floats, point: Floats) -> Floats:
    """Return the change of each feature between each row and a point, NaN where missing."""
    moved = np.where(group.is_category, (rows != point) & (group.scales > 0), np.abs(rows - point) * group.scales)
    here, there = np.isnan(point), np.isnan(rows)
    found: Floats = np.where(here | there, here != there, moved).astype(np.float64)
    return found


def block_rows(
    groups: Sequence[RowGroup], pattern: Flags, off: Ints, low: Floats, high: Floats, value: Floats, radius: float
) -> kernels.Rows:
    """Return what the kernels read of groups: the least, or greatest, distance of each row that may count within a ball from each block.

    ``low`` and ``high`` are the ends of each block, ``value`` is the one nearest to the factual in it.
    """
    feature = np.repeat(np.arange(len(off) - 1), np.diff(off))
    begin, tables, beside, start = [0], [], [np.empty(0, dtype=np.int64)], [np.zeros(1, dtype=np.int64)]
    for group in groups:
        kept = np.flatnonzero(group.floors() < radius)
        tables.append(_tables(group, kept, pattern, feature, low, high, value))
        others, counts = group.beside(kept)
        beside.append(begin[-1] + others)
        start.append(sum(map(len, beside[:-1])) + np.cumsum(counts))
        begin.append(begin[-1] + len(kept))
    left, right, at, home, level = (
        np.ascontiguousarray(np.concatenate([table[k] for table in tables], axis=1))
        if tables
        else np.empty((len(feature) if k < 3 else len(pattern), 0))
        for k in range(5)
    )
    full = [group.cost(slice(None), np.ones((1, len(pattern))))[0] for group in groups]
    return kernels.Rows(
        begin=np.array(begin, dtype=np.int64),
        least=np.array([group.least for group in groups], dtype=np.int64),
        limit=np.array([group.limit for group in groups], dtype=np.float64),
        sure=np.array([group.sure for group in groups], dtype=np.float64),
        is_far=np.array([group.is_far for group in groups], dtype=np.bool_),
        is_max=np.array([group.is_max for group in groups], dtype=np.bool_),
        has_way=np.array([group.has_way for group in groups], dtype=np.bool_),
        has_jump=np.array([bool(group.costs.jump.any()) for group in groups], dtype=np.bool_),
        left=left,
        right=right,
        at=at,
        home=home,
        level=level.astype(np.int64),
        full=np.array(full).reshape(len(groups), len(pattern)),
        is_category=groups[0].is_category if groups else np.zeros(len(pattern), dtype=np.bool_),
        beside=np.concatenate(beside),
        start=np.concatenate(start),
    )


def _tables(
    group: RowGroup, kept: Ints, pattern: Flags, feature: Ints, low: Floats, high: Floats, value: Floats
) -> tuple[Floats, ...]:
    """Return, blocks x rows, what being left and right of a row costs at an end of a block, and what its value costs; and the factual's.

    Last, features x rows, the levels.
    """
    own = group.numbers[kept][:, feature].T
    scale, lost = group.scales[feature][:, None], np.isnan(own)
    ends = []
    with np.errstate(invalid="ignore"):
        for apart in (
            np.abs(low[:, None] - own) if group.is_far else np.maximum(low[:, None] - own, 0.0),
            np.abs(high[:, None] - own) if group.is_far else np.maximum(own - high[:, None], 0.0),
            np.abs(value[:, None] - own),
        ):
            moved = np.where(group.is_category[feature][:, None], (apart > 0) & (scale > 0), apart * scale)
            moved = np.where(pattern[feature][:, None], ~lost, np.where(lost, 1.0, moved))
            ends.append(group.cost(feature, moved.T).T)
    level = np.where(np.isnan(group.numbers[kept]), NO_LEVEL, group.numbers[kept]).T
    return *ends, group.home[kept].T, np.where(group.is_category[:, None], level, 0.0)


@cache
def no_rows() -> kernels.Rows:
    """Return the tables of no group."""
    nothing = np.zeros(0)
    return block_rows([], np.zeros(0, dtype=np.bool_), np.zeros(1, dtype=np.int64), nothing, nothing, nothing, 0.0)


def nearest_rows(group: RowGroup) -> NDArray[np.int64]:
    """Return the rows of a group, the nearest to the factual first."""
    order: NDArray[np.int64] = np.argsort(group.total(group.home), kind="stable")
    return order
