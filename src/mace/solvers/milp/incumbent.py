"""The incumbent of the general lane: what outlives the search of a ball."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

from mace.exact import float_down
from mace.problem import Bounds, Limits, Problem
from mace.solvers.incumbent import Incumbent
from mace.space import Point


class MilpIncumbent(Incumbent):
    """The best point and bound, the effort so far, and the rows at which a node was closed by asking about them alone."""

    def __init__(self, problem: Problem, limits: Limits) -> None:
        super().__init__(problem, limits, share=Fraction(3, 4))
        self.nodes = self.programs = self.polished = 0
        self.ruled_out: list[Point] = []
        self._reported = -1

    def float_cutoff(self) -> float:
        """Return the distance from which on nothing is sought."""
        cutoff = self.cutoff()
        return math.inf if cutoff is None else float_down(cutoff)

    def prove_float(self, bound: float) -> None:
        """Raise the lower bound to one that is proved; an infinite one says that no point is left."""
        if math.isfinite(bound):
            self.prove(Fraction(bound))
        else:
            self.prove(self.upper if bound > 0 and self.upper is not None else self.lower)

    def report(self) -> None:
        """Report the bounds, at most once between two questions to the oracle."""
        if self.calls > self._reported:
            self._reported = self.calls
            super().report()

    def finished(self, *, is_infeasible: bool = False) -> Bounds:
        """Return what is proved."""
        notes = {"nodes": self.nodes, "programs": self.programs, "polished": self.polished}
        excluded = [list(point) for point in self.ruled_out]
        evidence = {"lane": "milp", "excluded": excluded} if self.limits.record else None
        if is_infeasible:
            return replace(self.infeasible(notes=notes, evidence=evidence), lower=self.lower)
        return self.bounds(notes=notes, evidence=evidence)
