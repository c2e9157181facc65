"""PocketSearch: boxes on which the model's output is one constant, where only distances from given rows are left to decide.

Within a cell no tree tells values apart, but distances from rows do. A pocket is searched by itself, value by value: its point nearest to
the factual is moved towards the row that it is to be near (or away from the one that it is to be far from) as far as needed, and the box is
cut there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from mace.clock import check
from mace.distances import PartsMetric, point_values
from mace.exact import Flags, Floats
from mace.problem import Problem
from mace.solvers.domains import next_value, reachable
from mace.solvers.trees.rows import ROUNDING_ROOM, RowGroup, changes
from mace.space import Point, Real, Value

MOST_POCKET_BOXES = 4000
"""After so many boxes what is left of a pocket stays open."""

NARROWEST = 1e-13
"""A number whose range is down to this share of the whole is not cut further."""

Spans = tuple[Floats, Floats]
"""The ends of the ranges of numbers, or of the levels, that a feature may have, in ascending order."""

Ranges = tuple[Spans | None, ...]
"""What each feature may be; ``None`` where it is missing."""


@dataclass(frozen=True, slots=True, eq=False)
class Pocket:
    """A box on which the model's output is one constant, not outside of the goal.

    Attributes
    ----------
    ranges : Ranges
        What each feature may be.
    cost : float
        None of its points that fulfil the conditions costs less.
    is_sure : bool
        Whether the output is surely in the goal.
    step : int
        Where the box stands in the recorded branching.
    """

    ranges: Ranges
    cost: float
    is_sure: bool
    step: int


@dataclass(slots=True)
class PocketAnswer:
    """What a search of a pocket found: its nearest point with its cost, if any; a bound for all others; the branching.

    ``code``, ``at`` and ``value`` are as in the branching of a ball.
    """

    point: Point | None
    cost: float
    floor: float = math.inf
    code: list[int] = field(default_factory=list)
    at: list[int] = field(default_factory=list)
    value: list[float] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class PocketCut:
    """Where a box is cut: the levels of the left side as bits, or the greatest value of that side, and which side comes first."""

    feature: int
    levels: int
    value: float
    right_first: bool


class PocketSearch:
    """Searches the pockets of one question."""

    def __init__(self, problem: Problem, groups: Sequence[RowGroup]) -> None:
        self.problem = problem
        self.all = self.groups = groups
        self.features = list(problem.space.values())
        self.own = [None if value is None else float(value) for value in problem.factual]
        assert isinstance(problem.metric, PartsMetric)
        self.costs = problem.metric.costs

    def nearest(self, pocket: Pocket, is_mask: Flags, limit: float, *, tolerance: float = 0.0) -> PocketAnswer:
        """Return the point of a pocket that fulfils the conditions and costs least, where that is below ``limit``.

        What costs less than that by no more than ``tolerance`` is not looked for; ``floor`` says what there may be.
        """
        found, boxes = PocketAnswer(None, limit), 0
        self.groups = self._left_of(pocket.ranges, is_mask, limit)
        waiting: list[Ranges | None] = [pocket.ranges]
        while waiting:
            ranges = waiting.pop()
            check()
            boxes += 1
            cut = None
            if ranges is not None:
                cut = self._examine(ranges, is_mask, found, tolerance, is_late=boxes > MOST_POCKET_BOXES)
            found.code.append(-1 if cut is None else 2 * cut.feature + int(cut.right_first))
            found.at.append(-1 if cut is None else cut.levels)
            found.value.append(0.0 if cut is None else cut.value)
            if cut is not None and ranges is not None:
                left, right = self._parts(ranges, cut)
                waiting += [left, right] if cut.right_first else [right, left]
        return found

    def _left_of(self, ranges: Ranges, is_mask: Flags, limit: float) -> list[RowGroup]:
        """Return the groups without the rows that count nowhere in a box below ``limit``; all of those of which too few do."""
        near = _nearest_of(ranges, self.own)
        left = []
        for group in self.all:
            kept = self._bounds(group, ranges, near, is_mask) < limit
            left.append(group.only(kept) if kept.sum() >= group.least else group)
        return left

    # ---- one box

    def _examine(
        self, ranges: Ranges, is_mask: Flags, found: PocketAnswer, tolerance: float, *, is_late: bool
    ) -> PocketCut | None:
        """Return where to cut a box; ``None`` where it is closed. Keep its nearest point, if that fulfils the conditions."""
        near = _nearest_of(ranges, self.own)
        bound = max(self.cost_of(near), *(self._bound(group, ranges, near, is_mask) for group in self.groups))
        if bound >= found.cost - tolerance:
            if bound < found.cost:
                found.floor = min(found.floor, bound)
            return None
        if self._offer(near, found):
            return None
        if is_late:
            found.floor = min(found.floor, bound)
            return None
        moved = self._moved(ranges, near, is_mask, is_sure=False)
        if moved is not None and not self._offer(moved[0], found):
            # Rounding may have left it just outside of a limit.
            surely = self._moved(ranges, near, is_mask, is_sure=True)
            self._offer((surely or moved)[0], found)
        cut = self._cut(ranges, near, is_mask, *(moved or (near, ())))
        if cut is None and not all(
            spans is None or (len(spans[0]) == 1 and spans[0][0] == spans[1][0]) for spans in ranges
        ):
            found.floor = min(found.floor, bound)
        return cut

    def _offer(self, numbers: Sequence[float | None], found: PocketAnswer) -> bool:
        """Keep a point that fulfils the conditions, if it costs less; return whether it fulfils them."""
        point = self.point(numbers)
        if not self.is_allowed(point):
            return False
        cost = self.cost_of(numbers)
        if cost < found.cost:
            found.point, found.cost = point, cost
        return True

    def is_allowed(self, point: Point) -> bool:
        """Return whether a point fulfils every condition."""
        values = point_values(self.problem.space, point)
        return all(condition.holds(values) for condition in self.problem.conditions)

    def point(self, numbers: Sequence[float | None]) -> Point:
        """Return numbers, ``None`` where missing, as a point."""
        return tuple(
            None if number is None else float(number) if isinstance(feature, Real) else int(number)
            for feature, number in zip(self.features, numbers, strict=True)
        )

    def cost_of(self, numbers: Sequence[float | None]) -> float:
        """Return the cost of a point."""
        group = self.groups[0]
        jump, slope, square, peak = self.costs
        at, own = (np.array([np.nan if each is None else each for each in row]) for row in (numbers, self.own))
        delta = changes(group, own[None, :], at)[0]
        add = np.where(delta > 0, jump, 0.0) + (slope + square * delta) * delta
        # From left to right, as the kernels do.
        return sum(map(float, add), 0.0) + float((peak * delta).max())

    # ---- distances from rows

    def _apart(self, group: RowGroup, ranges: Ranges, is_mask: Flags) -> Floats:
        """Return what each feature adds to the distance of each row from a box: at least, or at most from a row to be far from."""
        rows = group.numbers
        made = np.empty(rows.shape)
        for j, spans in enumerate(ranges):
            own = rows[:, j]
            if spans is None:
                made[:, j] = ~np.isnan(own)
                continue
            lows, highs = spans
            with np.errstate(invalid="ignore"):
                if group.is_category[j]:
                    each = (
                        (own[:, None] != lows).astype(np.float64)
                        if group.scales[j]
                        else np.zeros((len(own), len(lows)))
                    )
                elif is_mask[j]:
                    each = np.abs(own[:, None] - lows) * group.scales[j]
                elif group.is_far:
                    each = np.abs(own[:, None] - np.array([lows[0], highs[-1]])) * group.scales[j]
                else:
                    each = np.maximum(np.maximum(lows[0] - own, own - highs[-1]), 0.0)[:, None] * group.scales[j]
            made[:, j] = np.where(np.isnan(own), 1.0, each.max(axis=1) if group.is_far else each.min(axis=1))
        return group.cost(slice(None), made)

    def _at(self, group: RowGroup, numbers: Sequence[float | None]) -> Floats:
        """Return what each feature adds to the distance of each row from a point."""
        point = np.array([np.nan if each is None else each for each in numbers])
        return group.cost(slice(None), changes(group, group.numbers, point))

    def _bounds(self, group: RowGroup, ranges: Ranges, near: Sequence[float | None], is_mask: Flags) -> Floats:
        """Return for each row the least cost of a point of a box at which it counts; infinite where there is none."""
        apart = self._apart(group, ranges, is_mask)
        distance = group.total(apart)
        counts = distance >= group.limit if group.is_far else distance <= group.limit
        if not group.has_way:
            return np.where(counts, 0.0, np.inf)
        at, own = (np.array([np.nan if each is None else each for each in row]) for row in (near, self.own))
        spent = group.cost(slice(None), changes(group, own[None, :], at))
        if group.is_far:
            way = group.limit - group.total(np.minimum(apart - spent, group.home))
        else:
            way = group.total(np.maximum(group.home, spent + apart)) - group.limit
        return np.where(counts, way, np.inf)

    def _bound(self, group: RowGroup, ranges: Ranges, near: Sequence[float | None], is_mask: Flags) -> float:
        bounds = self._bounds(group, ranges, near, is_mask)
        return float(np.sort(bounds)[group.least - 1])

    # ---- moving and cutting

    def _moved(
        self, ranges: Ranges, near: list[float | None], is_mask: Flags, *, is_sure: bool
    ) -> tuple[list[float | None], tuple[int, ...]] | None:
        """Return the nearest point moved as far as needed for one more row to count, and the features moved; the last one in part.

        ``None`` where as many rows as needed count.
        """
        for group in self.groups:
            at = self._at(group, near)
            distance = group.total(at)
            slack = 2 * (abs(group.limit - group.sure) + ROUNDING_ROOM)
            counts = distance >= group.limit + slack if group.is_far else distance <= group.limit - slack
            bounds = np.where(counts, np.inf, self._bounds(group, ranges, near, is_mask))
            row = int(np.argmin(bounds))
            if counts.sum() >= group.least or not np.isfinite(bounds[row]):
                continue
            edge = (
                group.sure if is_sure else group.limit + ROUNDING_ROOM if group.is_far else group.limit - ROUNDING_ROOM
            )
            apart = self._apart(group, ranges, is_mask)[row]
            return self._toward(group, row, edge, ranges, near, at[row], apart, is_mask)
        return None

    def _toward(
        self,
        group: RowGroup,
        row: int,
        limit: float,
        ranges: Ranges,
        near: list[float | None],
        at: Floats,
        apart: Floats,
        is_mask: Flags,
    ) -> tuple[list[float | None], tuple[int, ...]]:
        """Return a point moved until a row is within the limit, or beyond it, or as far as the box goes, and the features moved."""
        gains = apart - at if group.is_far else at - apart
        moved, order = list(near), list[int]()
        # Features whose values lie close together come last: they can be moved in part.
        grain = np.array([self._grain(j, is_mask) for j in range(len(near))])
        for is_whole in (True, False):
            for j in np.lexsort((-gains, -grain)):
                spans, goal = ranges[j], group.numbers[row, j]
                lacking = self._lacking(group, row, moved, limit)
                if lacking <= 0:
                    return moved, tuple(order)
                if (
                    spans is None
                    or gains[j] <= ROUNDING_ROOM
                    or math.isnan(goal)
                    or j in order
                    or (gains[j] > lacking) == is_whole
                ):
                    continue
                moved[j] = self._value(group, j, spans, near[j], goal, lacking, is_mask)
                order.append(int(j))
        return moved, tuple(order)

    def _lacking(self, group: RowGroup, row: int, numbers: Sequence[float | None], limit: float) -> float:
        distance = float(group.total(self._at(group, numbers))[row])
        return limit - distance if group.is_far else distance - limit

    def _grain(self, j: int, is_mask: Flags) -> float:
        """Return the share of the range from one value of a feature to the next."""
        feature = self.features[j]
        if is_mask[j] or not feature.range:
            return 1.0
        step = getattr(feature, "step", None)
        return (
            float(Fraction(step) / feature.range)
            if step
            else 0.0
            if isinstance(feature, Real)
            else float(1 / feature.range)
        )

    def _value(
        self, group: RowGroup, j: int, spans: Spans, value: float | None, goal: float, lacking: float, is_mask: Flags
    ) -> float:
        """Return the value of a feature moved as far as is lacking: to the row, or from it, or in part."""
        lows, highs = spans
        assert value is not None
        if group.is_category[j] or is_mask[j]:
            apart = np.abs(lows - goal)
            return float(lows[int(np.argmax(apart) if group.is_far else np.argmin(apart))])
        end = goal
        if group.is_far:
            end = float(lows[0]) if abs(lows[0] - goal) > abs(highs[-1] - goal) else float(highs[-1])
        end = min(max(end, float(lows[0])), float(highs[-1]))
        slope = float(group.costs.peak[j] if group.is_max else group.costs.slope[j])
        if slope > 0 and not group.costs.jump[j] and not group.costs.square[j]:
            step = (lacking + ROUNDING_ROOM) / slope / group.scales[j]
            if step < abs(end - value):
                end = value + math.copysign(step, end - value)
        is_up = end > value
        number = next_value(self.features[j], Fraction(end), up=is_up)
        return _nearest(spans, float(number)) if number is not None else value

    def _cut(
        self,
        ranges: Ranges,
        near: list[float | None],
        is_mask: Flags,
        moved: Sequence[float | None],
        order: Sequence[int],
    ) -> PocketCut | None:
        """Return a cut between the nearest point and one that was moved; anywhere, where that is the same; ``None`` where there is none."""
        for j in reversed(order):
            spans, here, there = ranges[j], near[j], moved[j]
            if spans is None or here is None or there is None or here == there:
                continue
            if is_mask[j]:
                return PocketCut(j, 1 << int(here), 0.0, right_first=False)
            if there > here:
                return PocketCut(j, -1, self._before(j, there), right_first=False)
            return PocketCut(j, -1, there, right_first=True)
        widths = [
            0.0
            if spans is None
            else (len(spans[0]) - 1.0)
            if is_mask[j]
            else (spans[1][-1] - spans[0][0]) * group_scale
            for j, (spans, group_scale) in enumerate(zip(ranges, self.groups[0].scales, strict=True))
        ]
        j = int(np.argmax(widths))
        spans, here = ranges[j], near[j]
        if spans is None or here is None or widths[j] < NARROWEST:
            return None
        lows, highs = spans
        if is_mask[j]:
            return PocketCut(j, 1 << int(here), 0.0, right_first=False)
        if here < highs[-1]:
            middle = next_value(self.features[j], Fraction((here + float(highs[-1])) / 2), up=False)
            return PocketCut(j, -1, max(_float(middle), here), right_first=False)
        middle = next_value(self.features[j], Fraction((here + float(lows[0])) / 2), up=False)
        return PocketCut(j, -1, min(_float(middle), self._before(j, here)), right_first=True)

    def _parts(self, ranges: Ranges, cut: PocketCut) -> tuple[Ranges | None, Ranges | None]:
        """Return the left and the right part of a box; ``None`` for one that is empty."""
        spans, j = ranges[cut.feature], cut.feature
        assert spans is not None
        lows, highs = spans
        if cut.levels >= 0:
            chosen = np.array([cut.levels >> int(level) & 1 == 1 for level in lows])
            sides = [(lows[chosen], highs[chosen]), (lows[~chosen], highs[~chosen])]
        else:
            after = math.nextafter(cut.value, math.inf)
            sides = [(lows, np.minimum(highs, cut.value)), (np.maximum(lows, after), highs)]
            sides = [reachable(self.features[j], self.problem.factual[j], *side) for side in sides]
            sides = [(low[low <= high], high[low <= high]) for low, high in sides]
        left, right = ((*ranges[:j], side, *ranges[j + 1 :]) if len(side[0]) else None for side in sides)
        return left, right

    def _before(self, j: int, value: float) -> float:
        """Return a number below a value of a feature such that no value lies between."""
        feature = self.features[j]
        return math.nextafter(value, -math.inf) if isinstance(feature, Real) else value - 1.0


def _float(value: Value) -> float:
    assert value is not None
    return float(value)


def _nearest(spans: Spans, own: float | None) -> float:
    """Return the number of some ranges that is nearest to another; 0 stands for a missing one."""
    lows, highs = spans
    clamped = np.minimum(np.maximum(0.0 if own is None else own, lows), highs)
    return float(clamped[int(np.argmin(np.abs(clamped - (0.0 if own is None else own))))])


def _nearest_of(ranges: Ranges, own: Sequence[float | None]) -> list[float | None]:
    """Return the point of a box that is nearest to another."""
    return [None if spans is None else _nearest(spans, number) for spans, number in zip(ranges, own, strict=True)]
