"""The search of the general lane, a few nodes at a time beside that of another lane.

It goes as it would go alone, without the points of the other: so it takes as many nodes.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

from mace.problem import Bounds, Limits, Problem
from mace.solvers import milp
from mace.solvers.abilities import obstacle
from mace.solvers.milp.incumbent import MilpIncumbent
from mace.solvers.milp.search import steps


class Rival:
    """One question, asked of the general lane in turns; over at once where that lane does not take it.

    Attributes
    ----------
    name : str
        That of the lane.
    is_over : bool
        The search has ended, whatever it proved.
    """

    name = "milp"

    def __init__(self, problem: Problem, limits: Limits) -> None:
        self.incumbent = MilpIncumbent(problem, replace(limits, on_progress=None, effort=math.inf))
        self._steps = steps(self.incumbent)
        self._is_infeasible = False
        self.is_over = bool(obstacle(milp, problem))

    def run(self, nodes: int) -> None:
        """Go on until so many nodes are done in all."""
        while not self.is_over and self.incumbent.nodes < nodes:
            ended = next(self._steps, None)
            self.is_over, self._is_infeasible = ended is None or ended, bool(ended)

    @property
    def is_decided(self) -> bool:
        """Whether it has proved the nearest point, or that there is none."""
        return self.is_over and (self._is_infeasible or self.incumbent.is_closed())

    @property
    def lower(self) -> Fraction:
        """What it has proved so far."""
        return self.incumbent.lower

    def bounds(self) -> Bounds:
        """Return what it has proved."""
        return self.incumbent.finished(is_infeasible=self._is_infeasible)
