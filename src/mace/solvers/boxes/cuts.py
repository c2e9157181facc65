"""Conditions that are no guards, for the search that cuts boxes: what each leaves of a box, and where a box is cut.

A cut never loses a row that fulfils its condition: floats decide only where they are sure.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mace.constraints import Condition
from mace.constraints.condition import GuardCondition, Values
from mace.constraints.near_data import Neighbours
from mace.constraints.typical import USUAL, Usual
from mace.distances import NormMetric
from mace.distances.change import change
from mace.problem import Evidence, Limits, Problem
from mace.reductions.regions import Range, Region, guard_of, whole_region
from mace.registry import Registry
from mace.space import Categorical, Point, Value

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

MOST_EDGES = 24
"""So many edges of one feature are looked at before a box is cut."""

FINEST = 1e-13
"""A number is not moved by less than this share of its range."""


@dataclass(frozen=True, slots=True)
class Left:
    """What a condition leaves of a box.

    Attributes
    ----------
    region : Region, optional
        The box, or a part of it with every row that fulfils the condition; ``None`` where there is no such row.
    cut : Cut
        What is left to hold on it.
    floor : Fraction
        No row of the box that fulfils the condition is nearer than this.
    proof : Evidence, optional
        The tree lane's proof of the floor, or that there is no such row, where it has one.
    """

    region: Region | None
    cut: Cut
    floor: Fraction = Fraction(0)
    proof: Evidence | None = None


class Cut(Protocol):
    """A condition that is no guard, on a box."""

    @property
    def condition(self) -> Condition:
        """The condition."""
        ...

    def narrow(self, region: Region) -> Left:
        """Return what the condition leaves of a box."""
        ...

    def may_hold(self, point: Point, values: Values) -> bool:
        """Return whether a point fulfils the condition, as far as is easily told."""
        ...

    def sides(self, point: Point) -> tuple[Cut, Cut] | None:
        """Return two cuts one of which holds wherever this one does; ``None`` where only boxes are cut."""
        ...

    def places(self, point: Point) -> Iterator[tuple[str, Fraction, bool]]:
        """Yield where a box may be cut around a point that fails: a feature, a number or level, and whether the point lies below it."""
        ...

    def repaired(self, point: Point, snap: Snap) -> Iterator[Point]:
        """Yield points near one that fails at which the condition may hold."""
        ...


Snap = Callable[[int, Fraction, bool], Value]
"""Gives the value of a feature at a number, or beside it: above it where the last argument says so."""


@dataclass(frozen=True)
class NeighboursCut:
    """Boxes are kept to what lies within the radius of enough rows.

    The search goes through the rows: of each, one side has it as a neighbour, the other goes without. Once enough rows are neighbours,
    boxes are cut between a point and the row from which it lies too far.

    Attributes
    ----------
    condition : Neighbours
        What is to hold.
    problem : Problem
        The question, for its distance.
    alive, needed : bool arrays
        Which rows may count here, and which must.
    """

    condition: Neighbours
    problem: Problem
    alive: Flags
    needed: Flags

    @property
    def limit(self) -> float:
        """The radius in the unit of the measure."""
        return float(self.condition.limit)

    @property
    def slope(self) -> Floats:
        """What a whole change of each feature adds to the distance at least."""
        return self.condition.metric.costs.slope

    def narrow(self, region: Region) -> Left:
        """Return what the condition leaves of a box or a little more, the rows that still count, and a bound on the distance there."""
        least = self._changes(region)
        nearest = self.condition.measures(least)
        alive = self.alive & (nearest <= self.limit + self.condition.unsure)
        if int(alive.sum()) < self.condition.least or (self.needed & ~alive).any():
            return Left(None, self)
        left = dict(region)
        room = (self.limit - nearest + 2 * self.condition.unsure)[:, None]
        with np.errstate(divide="ignore"):
            reach = np.minimum(least + room / np.where(self.slope > 0, self.slope, 0.0), self._reach)
        groups = [np.array([row]) for row in np.flatnonzero(self.needed)]
        if len(groups) < self.condition.least:
            groups.append(np.flatnonzero(alive))
        for rows in groups:
            for j, name in enumerate(region):
                left[name] = self._within(j, left[name], self.condition.numbers[rows, j], reach[rows, j])
                if left[name].is_empty:
                    return Left(None, self)
        kept = region if all(left[name] == each for name, each in region.items()) else left
        return Left(kept, replace(self, alive=alive), self._floor(region, alive, least))

    @property
    def _reach(self) -> Floats:
        metric, radius = self.condition.metric, self.condition.radius
        return np.array(
            [float(metric.reach(j, radius)) + self.condition.unsure for j in range(len(self.condition.space))]
        )

    def _floor(self, region: Region, alive: Flags, least: Floats) -> Fraction:
        """Return a bound on the distance of a row that fulfils the condition: it is no nearer than a neighbour less the radius."""
        metric, own = self.problem.metric, self.condition.metric
        if not isinstance(metric, NormMetric) or (metric.norms, metric.weights) != (own.norms, own.weights):
            return Fraction(0)
        between = self.condition.changes(self.problem.factual)
        if (self.slope > 0).all():
            # Of l1, each feature's way from the factual over the box to the row.
            between = np.maximum(between, least + self._ways(region)[None, :])
        floors = np.sort(own.floats(between)[alive] ** (1 / own.power) - float(self.condition.radius))
        floor = float(floors[self.condition.least - 1])
        if self.needed.any():
            needed = own.floats(between)[self.needed] ** (1 / own.power) - float(self.condition.radius)
            floor = max(floor, float(needed.max()))
        return max(Fraction(0), Fraction(floor) - self.condition.off - Fraction(1, 10**8))

    def _ways(self, region: Region) -> Floats:
        """Return the least change of each feature from the factual to a box."""
        ways = []
        for (feature, left), own, scale in zip(
            zip(self.condition.space.values(), region.values(), strict=True),
            self.problem.factual,
            self.condition.scales,
            strict=True,
        ):
            if own is None or left.missing or not left.has_values:
                ways.append(0.0)
            elif left.levels is not None:
                ways.append(float(own not in left.levels and feature.range > 0))
            else:
                ways.append(max(float(left.low) - own, own - float(left.high), 0.0) * scale)
        return np.array(ways)

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

    def _changes(self, region: Region) -> Floats:
        """Return the least change of each feature from each row to the rows of a box."""
        rows = self.condition.numbers
        least = np.zeros_like(rows)
        for j, left in enumerate(region.values()):
            own = rows[:, j]
            if not left.has_values:
                least[:, j] = 1.0
            elif left.levels is not None:
                least[:, j] = ~np.isin(own, sorted(left.levels))
            else:
                beside = np.maximum(float(left.low) - own, own - float(left.high))
                least[:, j] = np.maximum(beside, 0.0) * self.condition.scales[j]
            least[np.isnan(own), j] = 0.0 if left.missing else 1.0
        return least

    def may_hold(self, point: Point, values: Values) -> bool:
        """Return whether a point fulfils the condition."""
        return self.condition.holds(values)

    def sides(self, point: Point) -> tuple[NeighboursCut, NeighboursCut] | None:
        """Return the search with the row nearest to the factual as a neighbour, and without; ``None`` once there are enough."""
        if int(self.needed.sum()) >= self.condition.least:
            return None
        free = np.flatnonzero(self.alive & ~self.needed)
        far = self.condition.measures(self.condition.changes(self.problem.factual))[free]
        row = free[int(np.argmin(far))]
        one = np.arange(len(self.alive)) == row
        return replace(self, needed=self.needed | one), replace(self, alive=self.alive & ~one)

    def places(self, point: Point) -> Iterator[tuple[str, Fraction, bool]]:
        """Yield where a box may be cut so that a point that fails lies in a smaller part: a feature, a number (or a level, which is cut
        off), and whether the point lies below it. The feature that lies farthest from the row comes first."""
        changes = self.condition.changes(point)
        measures = self.condition.measures(changes)
        row = int(np.argmax(np.where(self.needed, measures, -1.0)))
        excess = max(float(measures[row]) - self.limit, 0.0)
        names = list(self.condition.space)
        for j in np.argsort(-changes[row] * np.maximum(self.slope, 1e-9), kind="stable"):
            moved = self._moved(int(j), row, point[j], changes[row, j], excess)
            if moved is not None:
                yield names[j], *moved

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
        """Yield points near one that fails at which the condition may hold: moved to the nearest rows, feature by feature."""
        changes = self.condition.changes(point)
        measures = np.where(self.alive, self.condition.measures(changes), np.inf)
        for row in np.argsort(measures, kind="stable")[: self.condition.least]:
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


@dataclass(frozen=True)
class UsualCut:
    """Boxes are bounded by the nearest row that an isolation forest calls usual, which the tree lane finds.

    A box is cut at an edge of the forest between the point that fails and that row, so that the points of either part are better alike.
    """

    condition: Usual
    problem: Problem
    limits: Limits
    nearest: Point | None = None
    floor: Fraction = Fraction(0)

    def narrow(self, region: Region) -> Left:
        """Return the box, the nearest usual row of it, and that row's distance; no box where no row of it is usual."""
        from mace.solvers import trees

        if self.nearest is not None and _holds_point(region, self.nearest):
            # It is the nearest of the box around this one, and lies in it.
            return Left(region, self, self.floor)
        whole = whole_region(self.problem.space, self.problem.factual)
        guards = [guard_of(name, left, whole[name]) for name, left in region.items() if left != whole[name]]
        asked = replace(
            self.problem,
            form=self.condition.form,
            ask=self.condition.reading.ask,
            goal=USUAL,
            conditions=tuple(map(GuardCondition, guards)),
        )
        if trees.supports(asked):
            return Left(region, self)
        found = trees.solve(asked, self.limits)
        if found.is_infeasible:
            return Left(None, self, proof=found.evidence)
        return Left(region, replace(self, nearest=found.point, floor=found.lower), found.lower, found.evidence)

    def may_hold(self, point: Point, values: Values) -> bool:
        """Return whether the forest, as its depths tell, calls a point usual."""
        return self.condition.expected(point)

    def sides(self, point: Point) -> None:
        """Return ``None``: there is nothing to choose but where to cut."""

    def places(self, point: Point) -> Iterator[tuple[str, Fraction, bool]]:
        """Yield edges of the forest between the point and the nearest usual row; first those that deepen the leaves much, of features that
        lie far apart."""
        if self.nearest is None:
            return
        steps: list[tuple[str, Fraction, bool]] = []
        moved: list[Point] = []
        apart: list[float] = []
        for feature, (here, there) in enumerate(zip(point, self.nearest, strict=True)):
            if here is None or there is None or here == there:
                continue
            for place, value in self._edges(feature, here, there):
                steps.append((self.condition.space.names[feature], place, here < there))
                moved.append((*point[:feature], value, *point[feature + 1 :]))
                apart.append(float(change(self.condition.space[steps[-1][0]], here, there)))
        if not steps:
            return
        depths = self.condition.depths([point, *moved])
        gains = np.diff(depths)
        for number in range(1, len(steps)):
            if steps[number][0] != steps[number - 1][0]:
                gains[number] = depths[number + 1] - depths[0]
        for number in np.argsort(-gains * np.array(apart), kind="stable"):
            yield steps[number]

    def _edges(self, feature: int, here: float, there: float) -> Iterator[tuple[Fraction, float]]:
        """Yield where the forest tells values apart on the way between two, and a value beyond each, from here on."""
        if isinstance(list(self.condition.space.values())[feature], Categorical):
            yield Fraction(here), there
            return
        for edge in self._edges_of(feature, min(here, there), max(here, there))[:: 1 if here < there else -1]:
            after = math.nextafter(edge, math.inf)
            # No float lies between an edge and this, so each is on one side.
            yield (Fraction(edge) + Fraction(after)) / 2, after if here < there else edge

    def _edges_of(self, feature: int, low: float, high: float) -> list[float]:
        """Return the edges of an ordered feature from a number on to below another, the least first; at most so many of them."""
        form, found = self.condition.form, set()
        for number, column in enumerate(form.columns):
            if column.feature != feature:
                continue
            edges = np.unique(form.edge[(form.left >= 0) & (form.column == number)])
            if column.table is not None:
                found |= {k + 0.5 for k in range(int(low), int(high))}
            else:
                found |= set(edges[(edges >= low) & (edges < high)].tolist())
        each = sorted(found)
        return (
            each
            if len(each) <= MOST_EDGES
            else [each[k] for k in np.linspace(0, len(each) - 1, MOST_EDGES).astype(int)]
        )

    def repaired(self, point: Point, snap: Snap) -> Iterator[Point]:
        """Yield the point moved toward the nearest usual row, feature by feature, until it is usual; that row; and the changes of both."""
        if self.nearest is None:
            return
        ways = zip(self.nearest, point, self.problem.factual, strict=True)
        both = tuple(here if there == own else there for there, here, own in ways)
        at = point
        while at != self.nearest and not self.condition.expected(at):
            moved = [
                (*at[:j], there, *at[j + 1 :])
                for j, (here, there) in enumerate(zip(at, self.nearest, strict=True))
                if here != there
            ]
            at = moved[int(np.argmax(self.condition.depths(moved)))]
        for each in (at, both, self.nearest):
            if self.condition.expected(each):
                yield each


def _holds_point(region: Region, point: Point) -> bool:
    """Return whether a row lies in a box."""
    for left, value in zip(region.values(), point, strict=True):
        if value is None:
            if not left.missing:
                return False
        elif left.levels is not None:
            if value not in left.levels:
                return False
        elif not left.low <= value <= left.high:
            return False
    return True


CUTS = Registry(
    "cuts",
    {
        "near_data": "mace.solvers.boxes.cuts:neighbours_cut",
        "typical": "mace.solvers.boxes.cuts:usual_cut",
    },
)
"""What makes the cut of a condition, by the name that the condition gives it."""


def cut_of(condition: Condition, problem: Problem, limits: Limits) -> Cut:
    """Return a condition of a problem as a cut."""
    made: Cut = CUTS.load(getattr(condition, "cut", ""))(condition, problem, limits)
    return made


def usual_cut(condition: Usual, problem: Problem, limits: Limits) -> UsualCut:
    """Return the cut of a forest; its proofs are the tree lane's."""
    from mace.solvers import trees

    trees.prepare()
    return UsualCut(condition, problem, Limits(limits.deadline, record=limits.record))


def neighbours_cut(condition: Neighbours, problem: Problem, limits: Limits) -> NeighboursCut:
    """Return the cut of neighbours, all of which may count."""
    rows = len(condition.rows)
    return NeighboursCut(condition, problem, np.ones(rows, dtype=bool), np.zeros(rows, dtype=bool))
