"""The incumbent: the nearest valid point, the bound proved so far, and what the search has cost."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

from mace.exact import float_down, float_up
from mace.problem import Bounds, Limits, Problem
from mace.solvers.dtypes import held
from mace.space import Point

SHARE = Fraction(3, 4)
"""The share of the accuracy by which a node may be nearer than the incumbent and still be pruned."""


class MilpIncumbent:
    """What the searches of successive balls share."""

    def __init__(self, problem: Problem, limits: Limits) -> None:
        self.problem = problem
        self.limits = limits
        self.lower = Fraction(0)
        self.upper: Fraction | None = None
        self.point: Point | None = None
        self.reason = ""
        self.calls = self.nodes = self.programs = self.polished = 0
        self.ruled_out: list[Point] = []
        self._valid: dict[Point, bool] = {}
        self._told = -1

    def cutoff(self) -> float:
        """Return the distance from which on nothing is of interest."""
        return math.inf if self.upper is None else float_down(self.upper - SHARE * self.problem.accuracy)

    def is_valid(self, point: Point) -> bool:
        """Return whether a point is plausible and the real model puts it in the goal."""
        if point not in self._valid:
            self._valid[point] = self.problem.is_plausible(point) and self.problem.is_reached(point)
        return self._valid[point]

    def accept(self, point: Point) -> bool:
        """Take a point, rounded to the dtypes of its columns, where it is valid and nearer; return whether it is."""
        return any(map(self._accept, held(self.problem, point)))

    def _accept(self, point: Point) -> bool:
        distance = self.problem.distance(point)
        if self.upper is not None and distance >= self.upper:
            return False
        if not self.is_valid(point):
            return False
        self.point, self.upper = point, distance
        return True

    def prove(self, bound: float) -> None:
        """Take over a bound that is proved; an infinite one says that no point is left."""
        if math.isfinite(bound):
            proved = Fraction(bound)
            self.lower = max(self.lower, proved if self.upper is None else min(proved, self.upper))
        elif bound > 0 and self.upper is not None:
            self.lower = self.upper
        self._report()

    def _report(self) -> None:
        if self.limits.on_progress is not None and self.calls > self._told:
            self._told = self.calls
            upper = math.inf if self.upper is None else float_up(self.upper)
            self.limits.on_progress(float_down(self.lower), upper, self.calls)

    def is_closed(self) -> bool:
        """Return whether the bounds are within the accuracy."""
        return self.upper is not None and self.upper - self.lower <= self.problem.accuracy

    def bounds(self, *, is_infeasible: bool = False) -> Bounds:
        """Return what is proved."""
        notes = {"nodes": self.nodes, "programs": self.programs, "polished": self.polished}
        bounds = Bounds(self.lower, self.upper, self.point, reason=self.reason, calls=self.calls, notes=notes)
        if is_infeasible:
            bounds = Bounds(self.lower, is_infeasible=True, calls=self.calls, notes=notes)
        if not self.limits.record:
            return bounds
        return replace(bounds, evidence={"lane": "milp", "excluded": [list(point) for point in self.ruled_out]})
