"""The incumbent of a search for robust answers, which asks lanes: for points, and for refused rows within the noise of a point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from mace.constraints.robust import RobustCondition
from mace.forms import Outcomes
from mace.models.foresight import foreseen
from mace.problem import INTERRUPTED, Bounds, Limits, Problem
from mace.reductions.noise_box import counterexample_question
from mace.solvers.abilities import Choose
from mace.solvers.incumbent import Incumbent
from mace.space import Point


class RobustIncumbent(Incumbent):
    """The best point and bound; each question to a lane, which ``choose`` gives, is a call."""

    def __init__(self, problem: Problem, limits: Limits, choose: Choose) -> None:
        super().__init__(problem, limits)
        self.choose = choose

    def ask(self, problem: Problem, limits: Limits | None = None, *, record: bool = False) -> Bounds:
        """Return a lane's answer within limits, by default the search's own; an interrupt goes on to the search."""
        self.calls += 1
        limits = limits or Limits(self.limits.deadline, record=record and self.limits.record)
        found = self.choose(problem).solve(problem, limits)
        if found.reason == INTERRUPTED:
            raise KeyboardInterrupt
        return found

    def ask_around(self, problem: Problem, noise: RobustCondition, point: Point) -> Bounds:
        """Ask for a row within the noise of a point that is not in the target: where there is none, the point is robust."""
        return self.ask(counterexample_question(problem, noise, point), record=True)


def foreseeing(problem: Problem) -> Problem:
    """Return a problem whose model is asked only about rows of which its form does not say for certain what it answers.

    For questions on the way to an answer: of these most are about rows that are refused in the end. An answer itself is put to the model.
    """
    if not isinstance(problem.goal, Outcomes):
        return problem
    form, model = problem.form, problem.ask

    def ask(points: Sequence[Point]) -> list[Fraction]:
        codes = foreseen(form, points)
        in_doubt = [point for point, code in zip(points, codes, strict=True) if code is None]
        said = iter(model(in_doubt) if in_doubt else ())
        return [next(said) if code is None else code for code in codes]

    return replace(problem, ask=ask)
