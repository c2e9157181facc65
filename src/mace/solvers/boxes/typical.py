"""``typical`` as a part of the search: boxes are bounded by the nearest row that an isolation forest calls usual."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from mace.constraints.condition import Values
from mace.constraints.typical import USUAL, Usual
from mace.distances.change import change
from mace.problem import Limits, Problem
from mace.reductions.noise_box import inside
from mace.reductions.regions import Region
from mace.solvers.boxes.branching import branch_at
from mace.solvers.boxes.cuts import Branch, Left
from mace.space import Categorical, Point

MOST_EDGES = 24
"""Edges of one feature that are compared before a box is cut."""


@dataclass(frozen=True)
class UsualCut:
    """Boxes are bounded by the nearest row that an isolation forest calls usual, which the tree lane finds.

    A box is cut at an edge of the forest between the point that fails and that row.
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
            # The nearest usual row of the box that this one is a part of lies in it.
            return Left(region, self, self.floor)
        usual = replace(
            self.problem, form=self.condition.form, ask=self.condition.reading.ask, goal=USUAL, conditions=()
        )
        asked = inside(usual, region)
        if trees.supports(asked):
            return Left(region, self)
        found = trees.solve(asked, self.limits)
        if found.is_infeasible:
            return Left(None, self, proof=found.evidence, forest=self._number)
        near = replace(self, nearest=found.point, floor=found.lower)
        return Left(region, near, found.lower, found.evidence, self._number)

    @property
    def _number(self) -> int:
        """Which of the isolation forests of the problem this is."""
        forests = [condition for condition in self.problem.conditions if isinstance(condition, Usual)]
        return next(number for number, condition in enumerate(forests) if condition is self.condition)

    def may_hold(self, point: Point, values: Values) -> bool:
        """Return whether the forest, as its depths tell, calls a point usual."""
        return self.condition.expected(point)

    def branch(self, region: Region, point: Point) -> list[Branch] | None:
        """Return the parts of a box, cut at an edge of the forest."""
        parts = branch_at(self.problem, region, point, self._steps(point))
        return None if parts is None else [(part, self) for part in parts]

    def _steps(self, point: Point) -> Iterator[tuple[str, Fraction, bool]]:
        """Yield where ``branch_at`` may cut a box: edges of the forest between the point and the nearest usual row.

        First come edges that deepen the leaves much, of features in which the two rows lie far apart.
        """
        if self.nearest is None:
            return
        steps: list[tuple[str, Fraction, bool]] = []
        moved: list[Point] = []
        apart: list[float] = []
        for feature, (here, there) in enumerate(zip(point, self.nearest, strict=True)):
            if here is None or there is None or here == there:
                continue
            for at, value in self._edges(feature, here, there):
                steps.append((self.condition.space.names[feature], at, here < there))
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
        """Yield the edges of the forest from one value to another, each as a number that no float is, with the next value beyond it."""
        if isinstance(list(self.condition.space.values())[feature], Categorical):
            yield Fraction(here), there
            return
        for edge in self._edges_of(feature, min(here, there), max(here, there))[:: 1 if here < there else -1]:
            after = math.nextafter(edge, math.inf)
            # No float lies between an edge and this, so each is on one side.
            yield (Fraction(edge) + Fraction(after)) / 2, after if here < there else edge

    def _edges_of(self, feature: int, low: float, high: float) -> list[float]:
        """Return the edges of an ordered feature between two numbers, the least first; ``MOST_EDGES`` of them where they are more."""
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

    def repaired(self, point: Point) -> Iterator[Point]:
        """Yield candidates: the point moved toward the nearest usual row until it is usual, the changes of both together, and that row."""
        if self.nearest is None:
            return
        rows = zip(self.nearest, point, self.problem.factual, strict=True)
        both = tuple(here if there == own else there for there, here, own in rows)
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
    return all(
        left.missing
        if value is None
        else value in left.levels
        if left.levels is not None
        else left.low <= value <= left.high
        for left, value in zip(region.values(), point, strict=True)
    )


def usual_cut(condition: Usual, problem: Problem, limits: Limits) -> UsualCut:
    """Return the cut of a forest; its proofs are the tree lane's."""
    from mace.solvers import trees

    trees.prepare()
    return UsualCut(condition, problem, Limits(limits.deadline, record=limits.record))
