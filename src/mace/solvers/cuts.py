"""Conditions that are no guards, for the search that cuts boxes: what each leaves of a box, and where a box is cut.

A cut never loses a row that fulfils its condition: floats decide only where they are sure.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mace.constraints import Condition
from mace.near import UNSURE, Neighbours
from mace.solvers.regions import Range, Region
from mace.space import Point, Value

Floats = NDArray[np.float64]

FINEST = 1e-13
"""A number is not moved by less than this share of its range."""


Snap = Callable[[int, Fraction, bool], Value]
"""Gives the value of a feature at a number, or beside it: above it where the last argument says so."""


class NeighboursCut:
    """Boxes are kept to what lies within the radius of enough rows.

    ``narrow`` gives what the condition leaves of a box, or a little more. ``places`` are where a box may be cut so that a point that fails
    lies in a smaller part: a feature, a number (or a level, which is cut off), and whether the point lies below it. ``repaired`` are
    points near one that fails at which the condition may hold.
    """

    def __init__(self, condition: Neighbours) -> None:
        self.condition = condition
        self.limit = float(condition.limit)
        self.names = list(condition.space)
        self.slope = condition.metrics[0].costs.slope
        reach = [float(condition.metrics[0].reach(j, condition.radius)) + UNSURE for j in range(len(self.names))]
        self.reach = np.array(reach)

    def narrow(self, region: Region) -> Region | None:
        """Drop rows that are too far from the whole box; keep to the hull of what the others reach."""
        least, most = self._changes(region)
        nearest = self.condition.measures(least)
        alive = nearest <= self.limit + UNSURE
        if int(alive.sum()) < self.condition.least:
            return None
        if int((self.condition.measures(most) <= self.limit - UNSURE).sum()) >= self.condition.least:
            return region
        left = dict(region)
        room = (self.limit - nearest[alive] + 2 * UNSURE)[:, None]
        with np.errstate(divide="ignore"):
            reach = np.minimum(least[alive] + room / np.where(self.slope > 0, self.slope, 0.0), self.reach)
        for j, name in enumerate(self.names):
            left[name] = self._within(j, left[name], self.condition.numbers[alive, j], reach[:, j])
            if left[name].is_empty:
                return None
        return region if all(left[name] == each for name, each in region.items()) else left

    def _within(self, j: int, left: Range, own: Floats, reach: Floats) -> Range:
        """Return what is left of one feature where some row is near enough; all of it where a change of 1 is."""
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
        return left.between(Fraction(float((own - width).min())), Fraction(float((own + width).max())))

    def _changes(self, region: Region) -> tuple[Floats, Floats]:
        """Return the least and the greatest change of each feature from each row to the rows of a box."""
        rows = self.condition.numbers
        least, most = np.zeros_like(rows), np.zeros_like(rows)
        for j, left in enumerate(region.values()):
            own = rows[:, j]
            if not left.has_values:
                least[:, j] = most[:, j] = 1.0
            elif left.levels is not None:
                levels = np.array(sorted(left.levels))
                least[:, j] = ~np.isin(own, levels)
                most[:, j] = 1.0 if len(levels) > 1 else least[:, j]
            else:
                low, high = float(left.low), float(left.high)
                scale = self.condition.scales[j]
                least[:, j] = np.maximum(np.maximum(low - own, own - high), 0.0) * scale
                most[:, j] = np.maximum(np.abs(low - own), np.abs(high - own)) * scale
            if left.missing and left.has_values:
                least[:, j], most[:, j] = np.minimum(least[:, j], 1.0), np.maximum(most[:, j], 1.0)
            lost = np.isnan(own)
            least[lost, j] = 0.0 if left.missing else 1.0
            most[lost, j] = 0.0 if left.missing and not left.has_values else 1.0
        return least, most

    def places(self, region: Region, point: Point) -> Iterator[tuple[str, Fraction, bool]]:
        """Cut between the point and the row that is nearest among those that it lacks, in the feature that lies farthest."""
        changes = self.condition.changes(point)
        measures = self.condition.measures(changes)
        row = int(np.argsort(measures, kind="stable")[self.condition.least - 1])
        excess = max(float(measures[row]) - self.limit, 0.0)
        for j in np.argsort(-changes[row] * np.maximum(self.slope, 1e-9), kind="stable"):
            moved = self._moved(int(j), row, point[j], changes[row, j], excess)
            if moved is not None:
                yield self.names[j], *moved

    def _moved(self, j: int, row: int, value: Value, change: float, excess: float) -> tuple[Fraction, bool] | None:
        """Return half way to where moving one feature alone would do, or to the row; for a feature without order, the level."""
        goal = self.condition.numbers[row, j]
        if value is None or math.isnan(goal) or change == 0:
            return None
        if self.condition.is_category[j]:
            return Fraction(value), False
        needed = min(change, excess / self.slope[j]) if self.slope[j] > 0 else change / 2
        if needed < FINEST:
            return None
        sign = 1 if goal > value else -1
        return Fraction(value) + sign * Fraction(float(needed / self.condition.scales[j])) / 2, sign > 0

    def repaired(self, point: Point, snap: Snap) -> Iterator[Point]:
        """Move the point to the nearest rows, feature by feature, until it is near enough; then, all the way."""
        changes = self.condition.changes(point)
        measures = self.condition.measures(changes)
        for row in np.argsort(measures, kind="stable")[: self.condition.least + 2]:
            own, moved = self.condition.rows[row], list(point)
            for j in np.argsort(-self.slope * changes[row], kind="stable"):
                if moved[j] != own[j]:
                    moved[j] = self._toward(int(j), int(row), tuple(moved), snap)
                    yield tuple(moved)
                    moved[j] = own[j]
            yield own

    def _toward(self, j: int, row: int, point: Point, snap: Snap) -> Value:
        """Return one feature's value moved toward a row's, no farther than needed."""
        value, goal = point[j], self.condition.rows[row][j]
        if value is None or goal is None or self.condition.is_category[j] or not self.slope[j] > 0:
            return goal
        excess = float(self.condition.measures(self.condition.changes(point))[row]) - self.limit
        step = (max(excess, 0.0) / self.slope[j] + 1e-12) / self.condition.scales[j]
        if step >= abs(goal - value):
            return goal
        return snap(j, Fraction(value + step if goal > value else value - step), goal > value)


Cut = NeighboursCut
"""A condition that is no guard."""


def cut_of(condition: Condition) -> Cut | None:
    """Return a condition as a cut; ``None`` where there is no such way."""
    return NeighboursCut(condition) if isinstance(condition, Neighbours) else None
