"""The questions that the lane of curves puts to other lanes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from mace.clock import check
from mace.constraints.differ import CountDifferent
from mace.forms import Alternatives, Composite, Network, Stated, TreeEnsemble, clearance
from mace.forms.form import box_at
from mace.problem import Bounds, Limits, Problem
from mace.solvers.incumbent import Incumbent
from mace.solvers.witness import is_finite
from mace.space import Point

ACCURACY_SHARE = Fraction(1, 4)
"""The share of the accuracy that each question to another lane may leave open."""


class Questions:
    """What is asked of other lanes, and what they took.

    Parameters
    ----------
    incumbent : Incumbent
        Of the whole search; its calls are counted.

    Attributes
    ----------
    excluded : list of CountDifferent
        Points that rounding may put in the goal and the real model refuses.
    """

    def __init__(self, incumbent: Incumbent) -> None:
        self.incumbent, self.problem = incumbent, incumbent.problem
        self.rounds = 0
        self.excluded: list[CountDifferent] = []

    def exclude(self, point: Point) -> bool:
        """On a finite space, leave a point out that the real model refuses for certain; return whether it does."""
        if not is_finite(self.problem) or not self.problem.form.is_settled(point, self.problem.goal):
            return False
        if self.incumbent.is_valid(point):
            return False
        self.excluded.append(CountDifferent(self.problem.space, point, 1, Fraction(0)))
        return True

    def make(self, form: Composite | Network | TreeEnsemble, stated: Alternatives) -> Problem:
        """Return the question for the nearest point at which a form fulfils margins."""

        def ask(points: Sequence[Point]) -> list[Fraction]:
            outcomes: list[Fraction] = []
            for point in points:
                if outcomes:
                    check()
                outcomes.append(Fraction(int(_may_reach(form, point, stated))))
            return outcomes

        return replace(
            self.problem,
            form=form,
            ask=ask,
            goal=Stated(stated),
            conditions=(*self.problem.conditions, *self.excluded),
            accuracy=self.problem.accuracy * ACCURACY_SHARE,
        )

    def answer(self, question: Problem, *, record: bool = False) -> Bounds:
        """Ask the lane that ``solver="auto"`` takes."""
        from mace.solvers.choose import choose

        found = choose("auto", question).solve(question, Limits(self.incumbent.limits.deadline, record=record))
        self.incumbent.calls += max(1, found.calls)
        self.rounds += 1
        return found


def _may_reach(form: Composite | Network | TreeEnsemble, point: Point, stated: Alternatives) -> bool:
    """Return whether a form fulfils margins at a point, or would but for the rounding of its own numbers."""
    rounding = form.rounding if isinstance(form, TreeEnsemble) else form.rounding(box_at(point))
    return clearance(form.exact_scores(point), stated) + rounding >= 0
