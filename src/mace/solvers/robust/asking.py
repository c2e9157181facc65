"""Asking a lane, on behalf of a search for robust answers."""

from __future__ import annotations

from mace.constraints.robust import Sturdy
from mace.problem import INTERRUPTED, Bounds, Limits, Problem
from mace.reductions.noise_box import Choose, refusing
from mace.solvers.incumbent import Incumbent
from mace.space import Point


class Asking:
    """The lanes that answer the questions of one search; each question counts as a call.

    Parameters
    ----------
    incumbent : Incumbent
        Of the search.
    choose : callable
        Gives the lane of a question.
    """

    def __init__(self, incumbent: Incumbent, choose: Choose) -> None:
        self.incumbent, self.choose = incumbent, choose

    def ask(self, problem: Problem, limits: Limits | None = None, *, record: bool = False) -> Bounds:
        """Return a lane's answer within limits, by default the search's own; an interrupt goes on to the search."""
        own = self.incumbent.limits
        self.incumbent.calls += 1
        found = self.choose(problem)(problem, limits or Limits(own.deadline, record=record and own.record))
        if found.reason == INTERRUPTED:
            raise KeyboardInterrupt
        return found

    def refusing(self, problem: Problem, noise: Sturdy, point: Point) -> Bounds:
        """Ask for a row within the noise of a point that is not in the target: where there is none, the point is robust."""
        return self.ask(refusing(problem, noise, point), record=True)
