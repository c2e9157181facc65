"""Bounds on distances from rows of data: a row that fulfils ``near_data`` is no nearer than its neighbour less the radius."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property

import numpy as np

from mace.constraints.near_data import Neighbours
from mace.distances import NormMetric
from mace.exact import Flags, Floats, Ints, root_down
from mace.problem import Problem
from mace.reductions.regions import Range, Region
from mace.space import Categorical, Feature, Value

CLOSE = 1e-9
"""Lengths in floats that differ by less than this are compared exactly."""

ROOM = Fraction(1, 10**8)
"""Bounds are lower by this, so that a checker, which rounds ways down, can close what they close."""


LENGTH_UNITS = 2.0**40
"""Lengths are compared in units of one of so many, so that rows that are equally far stay in order."""


class Ways:
    """The ways from the factual over a box to the rows of the data: the triangle inequality.

    Attributes
    ----------
    metric : NormMetric, optional
        The distance; ``None`` where that from the data is another one, so that nothing is known.
    changes : float array, rows x features
        The changes from the factual to the rows, in floats.
    is_linear : bool
        Whether each feature that changes adds to a way what it changes from the factual to the box and from there to the row.
    """

    def __init__(self, condition: Neighbours, problem: Problem) -> None:
        self.condition, self.problem = condition, problem
        metric, own = problem.metric, condition.metric
        is_same = isinstance(metric, NormMetric) and (metric.norms, metric.weights) == (own.norms, own.weights)
        self.metric = metric if is_same and isinstance(metric, NormMetric) else None
        self.changes = self._shortest(condition.changes(problem.factual))
        self.is_linear = bool((own.costs.slope > 0).all())
        self._direct: dict[int, Fraction] = {}
        self._meets: dict[int, Flags] = {}

    @cached_property
    def lengths(self) -> Floats:
        """How far each row is from the factual, in whole units that are coarse enough for a checker to know them as well."""
        metric, unit = self.condition.metric.up_to_one()
        return np.asarray(np.rint(self.condition.measures(self.changes) / unit**metric.power * LENGTH_UNITS))

    def floor(self, region: Region, rows: Ints, least: Floats, needed: Flags) -> Fraction:
        """Return a bound on the distance of a row of a box that fulfils the condition with some rows of the data.

        ``least`` is what each feature changes at least from each of them to the box; those ``needed`` must be neighbours. Floats only say
        which neighbour is the farthest: with a bound that is a little too low, no answer that is as near as can be would end the search.
        """
        if self.metric is None:
            return Fraction(0)
        changes = self.changes[rows]
        longer = np.zeros_like(least)
        if self.is_linear:
            longer = np.maximum(least + self._changes_to(region)[None, :] - changes, 0.0)
        lengths = self.metric.floats(changes + longer)
        kth = np.sort(lengths)[self.condition.least - 1]
        farthest = np.flatnonzero((lengths >= kth) & (lengths <= kth + CLOSE))
        length = min(self._length(int(rows[place]), region, longer[place]) for place in farthest)
        if needed.any():
            place = int(np.argmax(np.where(needed, lengths, -1.0)))
            length = max(length, self._length(int(rows[place]), region, longer[place]))
        if self.metric.power == 2:
            length = root_down(length)
        return max(Fraction(0), length - self.condition.radius - self.condition.off - ROOM)

    def meets(self, row: int) -> Flags:
        """Return which rows may have a neighbour in common with one of them: those within twice the radius."""
        condition = self.condition
        if row not in self._meets:
            apart = condition.measures(self._shortest(condition.changes(condition.rows[row])))
            most = 2 * float(condition.radius + condition.off) + CLOSE
            self._meets[row] = apart <= (most if condition.metric.power == 1 else math.inf)
        return self._meets[row]

    def _shortest(self, changes: Floats) -> Floats:
        """Return the changes on the shortest ways: over a missing value a way is 2 long, where values may differ by more."""
        return np.where([feature.missing for feature in self.problem.space.values()], np.minimum(changes, 2.0), changes)

    def _length(self, row: int, region: Region, longer: Floats) -> Fraction:
        """Return the measure of the least changes on the way to a row, exactly."""
        metric, point = self.metric, self.condition.rows[row]
        assert metric is not None
        is_direct = not (longer > CLOSE).any()
        if is_direct and row in self._direct:
            return self._direct[row]
        total = top = Fraction(0)
        names = zip(region.values(), self.problem.space.values(), metric.factual, point, metric.parts, strict=True)
        for j, (left, feature, own, goal, parts) in enumerate(names):
            delta = metric.delta(j, feature, goal)
            delta = min(delta, Fraction(2)) if feature.missing else delta
            if longer[j] > CLOSE:
                delta = max(delta, least_change(feature, left, own) + least_change(feature, left, goal))
            if delta:
                total += parts.jump + (parts.slope + parts.square * delta) * delta
                top = max(top, parts.peak * delta)
        if is_direct:
            self._direct[row] = total + top
        return total + top

    def _changes_to(self, region: Region) -> Floats:
        """Return the least change of each feature from the factual to a box, in floats."""
        least = []
        scales = self.condition.scales
        for feature, left, own, scale in zip(
            self.problem.space.values(), region.values(), self.problem.factual, scales, strict=True
        ):
            if own is None or left.missing or not left.has_values:
                least.append(0.0)
            elif left.levels is not None:
                least.append(float(own not in left.levels and feature.range > 0))
            else:
                least.append(max(float(left.low) - own, own - float(left.high), 0.0) * scale)
        return np.array(least)


def least_change(feature: Feature, left: Range, own: Value) -> Fraction:
    """Return the least change of a feature from a value to a range, or less."""
    if own is None or left.missing or not left.has_values or not feature.range:
        return Fraction(0)
    if isinstance(feature, Categorical):
        return Fraction(int(left.levels is not None and own not in left.levels))
    if left.levels is not None:
        return Fraction(0)
    return max(left.low - Fraction(own), Fraction(own) - left.high, Fraction(0)) / feature.range
