"""``near_data`` as a part of the search: boxes are kept to what lies near enough rows of the data."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from mace.constraints.condition import Values
from mace.constraints.near_data import Neighbour, Neighbours
from mace.exact import Flags, Floats, Ints
from mace.problem import Limits, Problem
from mace.reductions.regions import Range, Region
from mace.solvers.boxes.branching import NARROWEST_CUT, branch_at, next_value
from mace.solvers.boxes.cuts import Branch, Left
from mace.solvers.boxes.ways import CLOSE, Ways
from mace.space import Integer, Point, Real, Value

MOVES_EACH = 4
"""A point is moved toward rows at most so often for each of its features."""


@dataclass(frozen=True)
class NeighboursCut:
    """Boxes are kept to what lies within the radius of enough rows of the data.

    The search branches on rows first: one side has a row as a neighbour, the other goes without it. Once enough rows are neighbours, boxes
    are cut between a point and the neighbour from which it lies too far. Floats decide only where their rounding cannot matter.

    Attributes
    ----------
    condition : Neighbours
        The condition.
    problem : Problem
        The question, for its distance.
    ways : Ways
        What bounds the distance by way of the rows.
    alive, needed : bool arrays
        Which rows may count here, and which must.
    """

    condition: Neighbours
    problem: Problem
    ways: Ways
    alive: Flags
    needed: Flags

    @property
    def limit(self) -> float:
        """The radius in the unit of the measure."""
        return float(self.condition.limit)

    @property
    def slope(self) -> Floats:
        """The least that a change of 1 in each feature adds to the distance."""
        return self.condition.metric.costs.slope

    @property
    def has_enough(self) -> bool:
        """Whether as many rows must be neighbours as the condition asks for."""
        return int(self.needed.sum()) >= self.condition.least

    def narrow(self, region: Region) -> Left:
        """Return what the condition leaves of a box or a little more, with the rows that still count, and a bound on the distance."""
        rows = np.flatnonzero(self.needed if self.has_enough else self.alive)
        needed = self.needed[rows]
        least = self._changes(region, rows)
        nearest = self.condition.measures(least)
        near = nearest <= self.limit + self.condition.unsure
        if int(near.sum()) < self.condition.least or (needed & ~near).any():
            return Left(None, self)
        alive = self.alive.copy()
        alive[rows[~near]] = False
        left = dict(region)
        room = (self.limit - nearest + 2 * self.condition.unsure)[:, None]
        with np.errstate(divide="ignore"):
            reach = np.minimum(least + room / np.where(self.slope > 0, self.slope, 0.0), self.condition.reach)
        groups = [np.array([place]) for place in np.flatnonzero(needed)]
        if not self.has_enough:
            groups.append(np.flatnonzero(near))
        for group in groups:
            for j, name in enumerate(region):
                left[name] = self._within(j, left[name], self.condition.numbers[rows[group], j], reach[group, j])
                if left[name].is_empty:
                    return Left(None, self)
        kept = region if all(left[name] is each for name, each in region.items()) else left
        floor = self.ways.floor(region, rows[near], least[near], needed[near])
        neighbours = tuple(Neighbour(self.condition, int(row)) for row in np.flatnonzero(self.needed))
        return Left(kept, replace(self, alive=alive), floor, neighbours=neighbours, is_undecided=not self.has_enough)

    def _within(self, j: int, left: Range, own: Floats, reach: Floats) -> Range:
        """Return what is left of one feature where some row is near enough; all of it where even a change of 1 is near enough."""
        if (reach >= 1).any():
            return left
        if not np.isnan(own).any():
            left = replace(left, missing=False)
        own, reach = own[~np.isnan(own)], reach[~np.isnan(own)]
        if not len(own):
            return left.nothing_but_missing()
        if left.levels is not None:
            return left.only(int(value) for value in own)
        if not self.condition.scales[j] or not left.has_values:
            return left
        width = reach / self.condition.scales[j]
        low, high = float((own - width).min()), float((own + width).max())
        if low <= float(left.low) and high >= float(left.high):
            return left
        return left.between(Fraction(low), Fraction(high))

    def _changes(self, region: Region, rows: Ints) -> Floats:
        """Return the least change of each feature from some rows of the data to the rows of a box."""
        numbers = self.condition.numbers[rows]
        least = np.zeros_like(numbers)
        for j, left in enumerate(region.values()):
            own = numbers[:, j]
            if not left.has_values:
                least[:, j] = 1.0
            elif left.levels is not None:
                least[:, j] = ~np.isin(own, sorted(left.levels))
            else:
                outside = np.maximum(float(left.low) - own, own - float(left.high))
                least[:, j] = np.maximum(outside, 0.0) * self.condition.scales[j]
            if left.missing:
                least[:, j] = np.minimum(least[:, j], 1.0)
            least[np.isnan(own), j] = 0.0 if left.missing else 1.0
        return least

    def may_hold(self, point: Point, values: Values) -> bool:
        """Return whether a point fulfils the condition."""
        return self.condition.holds(values)

    def branch(self, region: Region, point: Point) -> list[Branch] | None:
        """Return the box with a further row as a neighbour, and without; once there are enough, parts of the box."""
        if self.has_enough:
            parts = branch_at(self.problem, region, point, self._steps(point))
            return None if parts is None else [(part, self) for part in parts]
        if all(left.is_single for left in region.values()):
            return []
        return [(region, side) for side in self._sides()]

    def _sides(self) -> tuple[NeighboursCut, NeighboursCut]:
        """Return the condition with the row nearest to the factual as a neighbour, and without."""
        free = np.flatnonzero(self.alive & ~self.needed)
        row = free[int(np.argmin(self.ways.lengths[free]))]
        one = np.arange(len(self.alive)) == row
        with_row = replace(self, alive=self.alive & self.ways.meets(int(row)), needed=self.needed | one)
        return with_row, replace(self, alive=self.alive & ~one)

    def _steps(self, point: Point) -> Iterator[tuple[str, Fraction, bool]]:
        """Yield where ``branch_at`` may cut a box so that a point that fails lies in a smaller part.

        The feature that lies farthest from the row comes first.
        """
        changes = self.condition.changes(point)
        measures = self.condition.measures(changes)
        row = int(np.argmax(np.where(self.needed, measures, -1.0)))
        excess = max(float(measures[row]) - self.limit, 0.0)
        names = list(self.condition.space)
        for j in np.argsort(-changes[row] * np.maximum(self.slope, 1e-9), kind="stable"):
            moved = self._half_way(int(j), row, point[j], changes[row, j], excess)
            if moved is not None:
                yield names[j], *moved

    def _half_way(self, j: int, row: int, value: Value, change: float, excess: float) -> tuple[Fraction, bool] | None:
        """Return the number half way to where moving one feature alone is enough, or to the row; for a feature without order, the level."""
        goal = self.condition.numbers[row, j]
        if value is None or math.isnan(goal) or change == 0:
            return None
        if self.condition.is_category[j]:
            return Fraction(value), False
        needed = min(change, excess / self.slope[j]) if self.slope[j] > 0 else change / 2
        if needed < NARROWEST_CUT:
            return None
        sign = 1 if goal > value else -1
        return Fraction(value) + sign * Fraction(float(needed / self.condition.scales[j])) / 2, sign > 0

    def repaired(self, point: Point) -> Iterator[Point]:
        """Yield points near one that fails at which the condition may hold: moved to the nearest rows, feature by feature."""
        near_all = self._near_all(point) if self.has_enough else None
        if near_all is not None:
            yield near_all
            yield from self._finer(near_all)
            if self.condition.least > 1:
                return
        changes = self.condition.changes(point)
        measures = np.where(self.needed if self.has_enough else self.alive, self.condition.measures(changes), np.inf)
        for row in np.argsort(measures, kind="stable")[: self.condition.least]:
            own, moved = self.condition.rows[row], list(point)
            for j in np.argsort(-self.slope * changes[row], kind="stable"):
                if moved[j] != own[j]:
                    moved[j] = self._toward(int(j), int(row), tuple(moved))
                    yield tuple(moved)
                    moved[j] = own[j]
            yield own

    def _near_all(self, point: Point) -> Point | None:
        """Return a point moved to within the radius of every row that must be a neighbour, and back as far as that allows."""
        moved, rows = point, np.flatnonzero(self.needed)
        for _ in range(MOVES_EACH * len(point)):
            changes = self.condition.changes(moved, rows)
            excess = self.condition.measures(changes) - self.limit
            worst = int(np.argmax(excess))
            if excess[worst] <= 0:
                return self._moved_back(moved, self._coarse_first)
            j = self._best_move(changes, excess, worst, moved)
            if j is None:
                return None
            moved = (*moved[:j], self._toward(j, int(rows[worst]), moved), *moved[j + 1 :])
        return None

    def _best_move(self, changes: Floats, excess: Floats, worst: int, point: Point) -> int | None:
        """Return the feature that leaves rows the least excess when it moves toward the one that lies too far, no farther than needed."""
        numbers, ordered = self.condition.numbers[self.needed], ~self.condition.is_category
        at = np.array([np.nan if value is None else float(value) for value in point])
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(ordered, np.minimum(excess[worst] / (self.slope * changes[worst]), 1.0), 1.0)
            to = at + share * (numbers[worst] - at)
            after = np.where(ordered, np.abs(numbers - to) * self.condition.scales, numbers != to)
        after = np.where(np.isnan(after), changes, after)
        costs = self.condition.metric.costs
        added = costs.jump * ((after > 0) * 1.0 - (changes > 0)) + self.slope * (after - changes)
        added += costs.square * (after * after - changes * changes)
        left = np.maximum(excess[:, None] + added, 0.0).sum(axis=0)
        left = np.where(changes[worst] > 0, left, np.inf)
        best = int(np.argmin(left))
        return best if left[best] < np.maximum(excess, 0.0).sum() else None

    def _finer(self, point: Point) -> Iterator[Point]:
        """Yield points near one that is near every row: one number a few steps farther from the factual or nearer to it, and others made up
        for that, the finest last."""
        features, rows = list(self.problem.space.values()), np.flatnonzero(self.needed)
        for j in self._coarse_first[:-1]:
            value, own, feature = point[j], self.problem.factual[j], features[j]
            if value is None or own is None or value == own or not isinstance(feature, Integer):
                continue
            for steps in (1, 2, 3, -1, -2, -3):
                moved = value + (steps if value > own else -steps) * (feature.step or 1)
                if feature.low <= moved <= feature.high:
                    other = self._balanced((*point[:j], moved, *point[j + 1 :]), j, rows)
                    if (self.condition.measures(self.condition.changes(other, rows)) <= self.limit).all():
                        yield other

    def _balanced(self, point: Point, moved: int, rows: Ints) -> Point:
        """Return a point of which one feature was moved with the finest moved toward the row that is too far, or others back."""
        measures = self.condition.measures(self.condition.changes(point, rows))
        worst, fine = int(np.argmax(measures)), self._coarse_first[-1]
        if measures[worst] > self.limit:
            return (*point[:fine], self._toward(fine, int(rows[worst]), point), *point[fine + 1 :])
        return self._moved_back(point, [j for j in self._coarse_first if j != moved])

    def _moved_back(self, point: Point, order: Iterable[int]) -> Point:
        """Return a point with its numbers moved toward the factual, one after the other, as far as its neighbours allow."""
        rows = np.flatnonzero(self.needed)
        for j in order:
            value, own = point[j], self.problem.factual[j]
            if value is None or own is None or value == own:
                continue
            slack = self.limit - float(self.condition.measures(self.condition.changes(point, rows)).max()) - CLOSE
            step = max(slack, 0.0) / self.slope[j] / self.condition.scales[j]
            goal = own if step >= abs(own - value) else value + step if own > value else value - step
            back = next_value(self.problem, j, Fraction(goal), up=own < value) if goal != own else own
            point = (*point[:j], back, *point[j + 1 :])
        return point

    @cached_property
    def _coarse_first(self) -> list[int]:
        """The ordered features whose changes count, those first whose next value is farthest."""
        features = list(self.problem.space.values())
        size = {
            j: self.slope[j]
            * self.condition.scales[j]
            * float(getattr(features[j], "step", None) or not isinstance(features[j], Real))
            for j in np.flatnonzero(
                ~self.condition.is_category & (self.slope > 0) & (self.condition.scales > 0)
            ).tolist()
        }
        return sorted(size, key=lambda j: -size[j])

    def _toward(self, j: int, row: int, point: Point) -> Value:
        """Return one feature's value moved toward a row's, no farther than needed."""
        value, goal = point[j], self.condition.rows[row][j]
        if value is None or goal is None or self.condition.is_category[j] or not self.slope[j] > 0:
            return goal
        alone = np.array([row])
        excess = float(self.condition.measures(self.condition.changes(point, alone))[0]) - self.limit
        step = (max(excess, 0.0) / self.slope[j] + 1e-12) / self.condition.scales[j]
        if step >= abs(goal - value):
            return goal
        return next_value(self.problem, j, Fraction(value + step if goal > value else value - step), up=goal > value)


def neighbours_cut(condition: Neighbours, problem: Problem, limits: Limits) -> NeighboursCut:
    """Return the cut of neighbours, all of which may count."""
    rows = len(condition.rows)
    return NeighboursCut(
        condition, problem, Ways(condition, problem), np.ones(rows, dtype=bool), np.zeros(rows, dtype=bool)
    )
