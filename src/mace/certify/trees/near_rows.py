"""Rows of data that a point must be near: which cells and leaves of a box no point within the ball can use that is near them all.

Each row gives one or two sums over features with a limit, of whole numbers that are rounded down: what the cells of a point add to the
distance from the row, at most the row's limit; and, where that is the distance that is minimised, the way from the factual over the point
to the row, which is shorter than the limits of ball and row together. Between the factual and the row all of a feature's way counts, in
whichever cell the point lies.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np

from mace.certify.trees.cells import SCALE, CellAxis, cell_costs, change_costs
from mace.certify.trees.leaves import Leaves
from mace.certify.verdict import Unchecked
from mace.constraints.near_data import Neighbour
from mace.distances import NormMetric
from mace.distances.change import written_room
from mace.exact import Flags, Floats, Ints
from mace.problem import Problem
from mace.space import Categorical

NO_POINT = 2**62
"""What a cell costs that is not there: more than all others together."""

LARGEST_WHOLE = 2.0**53


@dataclass(frozen=True, slots=True)
class Shrunk:
    """What is left of a box: the range of each feature, and the set of each with sets."""

    low: Ints
    high: Ints
    inside: dict[int, Flags]


class NearRows:
    """The rows that a question with some features missing must be near; the cells of all features lie behind each other.

    Attributes
    ----------
    spend : int array, sums x cells
        What each cell adds to each sum.
    room : int array
        What the features that are missing leave of the limit of each sum.
    """

    def __init__(
        self, problem: Problem, axes: list[CellAxis], missing: Flags, limit: int, lost: tuple[int, int]
    ) -> None:
        found = [condition for condition in problem.conditions if isinstance(condition, Neighbour)]
        self.axes, self.missing, self.limit, (self.lost_add, self.lost_top) = axes, missing, limit, lost
        self.present = [j for j, is_lost in enumerate(missing) if not is_lost]
        sums = [each for condition in found for each in self._sums(problem, condition)]
        self.count = len(sums)
        if not self.count or not all(axes[j].size for j in self.present):
            self.count = 0
            return
        sizes = [axes[j].size for j in self.present]
        self.off = np.concatenate([[0], np.cumsum(sizes)])
        self.feature, self.place = (
            np.repeat(np.arange(len(sizes)), sizes),
            np.concatenate([np.arange(n) for n in sizes]),
        )
        self.spend: Ints = np.array([np.concatenate([cells[j] for j in self.present]) for cells, _ in sums])
        self.room: Ints = np.array([room for _, room in sums], dtype=np.int64)
        self.add, self.top = (np.concatenate([getattr(axes[j], name) for j in self.present]) for name in ("add", "top"))
        self.thrifty = np.array([[each[a:b].argmin() for a, b in pairwise(self.off)] for each in self.spend])
        self._refuse_dips()

    def _sums(self, problem: Problem, condition: Neighbour) -> list[tuple[list[Ints], int]]:
        """Return for each sum what each cell of each feature adds, and what may be added by the features that are not missing."""
        data, row = condition.data, condition.data.rows[condition.row]
        if any(value is not None and abs(value) > LARGEST_WHOLE for value in row):
            raise Unchecked("a whole number of near_data is too large for floats")
        metric, unit = data.metric.up_to_one()
        off = max(map(written_room, problem.space.values())) if data.written else Fraction(0)
        most = min(math.floor(((data.radius + off) / unit) ** metric.power * SCALE), 4 * SCALE)
        features = list(problem.space.values())
        away: list[Ints] = []
        lost = 0
        for j, axis in enumerate(self.axes):
            away.append(cell_costs(features[j], row[j], metric.parts[j], axis.low, axis.high)[0])
            if self.missing[j]:
                is_change = np.array([row[j] is not None])
                lost += int(change_costs(metric.parts[j], is_change.astype(np.float64), is_change)[0][0])
        sums = [(away, most - lost)]
        if self._rises_evenly(problem, data.metric) and self.limit < NO_POINT:
            ways = [self._way(problem, j, row[j], metric.parts[j], away[j]) for j in range(len(self.axes))]
            sums.append((ways, most + self.limit - lost - self.lost_add))
        return sums

    def _way(self, problem: Problem, j: int, goal: float | int | None, parts: object, away: Ints) -> Ints:
        """Return what each cell of a feature adds to the way from the factual over a point to a row."""
        axis, own, feature = self.axes[j], problem.factual[j], list(problem.space.values())[j]
        if own is None or goal is None or axis.is_set or feature.range == 0:
            return away + axis.add
        first, last = min(float(own), float(goal)), max(float(own), float(goal))
        beyond: Floats = np.maximum(np.maximum(axis.low - last, first - axis.high), 0.0)
        deltas = (last - first + 2.0 * beyond) / float(feature.range)
        return change_costs(parts, deltas, deltas > 0)[0]  # type: ignore[arg-type]

    @staticmethod
    def _rises_evenly(problem: Problem, own: NormMetric) -> bool:
        """Return whether the distance that is minimised is that of the data, and rises evenly with each ordered feature."""
        metric = problem.metric
        is_same = isinstance(metric, NormMetric) and (metric.norms, metric.weights) == (own.norms, own.weights)
        ordered = [
            part
            for part, feature in zip(own.parts, problem.space.values(), strict=True)
            if not isinstance(feature, Categorical)
        ]
        return is_same and own.power == 1 and not any(part.jump or part.square for part in ordered)

    def _refuse_dips(self) -> None:
        """Raise unless what a range of cells adds does not fall on the way from its least: the least of a part is then at an end of it."""
        for number, least in enumerate(self.thrifty):
            for k, j in enumerate(self.present):
                each = self.spend[number, self.off[k] : self.off[k + 1]]
                if not self.axes[j].is_set and (
                    (np.diff(each[: least[k] + 1]) > 0).any() or (np.diff(each[least[k] :]) < 0).any()
                ):
                    raise Unchecked("distances from a row of near_data do not rise from cell to cell")

    # ---- boxes

    def shrunk(self, low: Ints, high: Ints, inside: dict[int, Flags]) -> Shrunk | None:
        """Return the part of a box, or a little more, with points of the ball that are near every row; ``None`` where there is none."""
        at = np.array(self.present)
        alive = (self.place >= low[at][self.feature]) & (self.place <= high[at][self.feature])
        for k, j in enumerate(self.present):
            if self.axes[j].is_set:
                alive[self.off[k] : self.off[k + 1]] = inside[j]
        before = -1
        while before != (before := int(alive.sum())):
            kept = self._kept(alive)
            if kept is None:
                return None
            alive = kept
        low, high, inside = low.copy(), high.copy(), dict(inside)
        for k, j in enumerate(self.present):
            left = alive[self.off[k] : self.off[k + 1]]
            if self.axes[j].is_set:
                inside[j] = left
            else:
                low[j], high[j] = left.argmax(), len(left) - 1 - left[::-1].argmax()
        return Shrunk(low, high, inside)

    def _kept(self, alive: Flags) -> Flags | None:
        """Return the cells of some that are left for points of the ball that are near every row, the other features costing least."""
        starts = self.off[:-1]
        if not np.logical_or.reduceat(alive, starts).all():
            return None
        least = np.minimum.reduceat(np.where(alive, self.spend, NO_POINT), starts, axis=1)
        room = self.room - least.sum(axis=1)
        if (room < 0).any():
            return None
        alive = alive & (self.spend <= (room[:, None] + least)[:, self.feature]).all(axis=0)
        if not np.logical_or.reduceat(alive, starts).all():
            return None
        add, top = (np.minimum.reduceat(np.where(alive, each, NO_POINT), starts) for each in (self.add, self.top))
        rest = self.lost_add + int(add.sum()) - add
        *_, second, peak = sorted([self.lost_top, self.lost_top, *top.tolist()])
        others = np.where(top == peak, second, peak)
        return np.asarray(
            alive & (rest[self.feature] + self.add + np.maximum(others[self.feature], self.top) < self.limit)
        )

    def kept_by(self, leaves: Leaves, chosen: Ints, box: Shrunk) -> tuple[Flags, Ints, Ints]:
        """Return which of some leaves hold a point of a box that is near each row, taken alone, and what it costs at least."""
        low, high = np.maximum(leaves.low[chosen], box.low), np.minimum(leaves.high[chosen], box.high)
        useful = np.ones(len(chosen), dtype=bool)
        room = np.repeat(self.room[:, None], len(chosen), axis=1)
        add, top = np.full(len(chosen), self.lost_add), np.full(len(chosen), self.lost_top)
        for k, j in enumerate(self.present):
            axis, spend = self.axes[j], self.spend[:, self.off[k] : self.off[k + 1]]
            if axis.is_set:
                held = leaves.inside[j][chosen] & box.inside[j]
                useful &= held.any(axis=1)
                room -= np.where(held[None], spend[:, None, :], NO_POINT // 4).min(axis=2)
                cell = np.where(held, axis.add + axis.top, NO_POINT).argmin(axis=1)
            else:
                a, b = low[:, j], high[:, j]
                useful &= a <= b
                b = np.maximum(a, b).clip(0, axis.size - 1)
                a = np.minimum(a, b)
                cell = np.clip(axis.own, a, b)
                for number in range(self.count):
                    room[number] -= spend[number, np.clip(self.thrifty[number, k], a, b)]
            add += axis.add[cell]
            top = np.maximum(top, axis.top[cell])
        return useful & (room >= 0).all(axis=0) & (add + top < self.limit), add, top
