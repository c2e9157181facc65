"""What a search has in hand, and the questions that it puts to other lanes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from mace.clock import check
from mace.constraints.differ import CountDifferent
from mace.exact import float_down, float_up
from mace.forms import Alternatives, Composite, Network, clearance
from mace.language import syntax
from mace.problem import INTERRUPTED, Bounds, Limits, Problem
from mace.solvers.bisection import BAND
from mace.solvers.dtypes import held
from mace.solvers.milp.polish import nudge
from mace.solvers.milp.seek import seek
from mace.solvers.witness import is_finite
from mace.space import Point

SHARE = Fraction(1, 4)
"""The share of the accuracy that each question to another lane may leave open."""


@dataclass(frozen=True, slots=True)
class Stated:
    """Margins over the scores of a form, as they are; an outcome of 1 counts."""

    stated: Alternatives
    slack: Fraction = Fraction(0)

    def accepts(self, outcome: Fraction) -> bool:
        """Return whether an outcome counts."""
        return outcome == 1

    def alternatives(self, outputs: int, *, ties_last: bool) -> Alternatives:
        """Return the margins."""
        return self.stated

    def of_result(self, result: str) -> syntax.Guard:
        """Return that an outcome counts."""
        return syntax.Compare("==", syntax.Variable(result), syntax.ONE)


class Hand:
    """The nearest valid point, the bound proved so far, and what they have cost."""

    def __init__(self, problem: Problem, limits: Limits) -> None:
        assert isinstance(problem.form, Composite)
        self.problem, self.form, self.limits = problem, problem.form, limits
        self.lower = Fraction(0)
        self.upper: Fraction | None = None
        self.point: Point | None = None
        self.reason = ""
        self.is_infeasible = False
        self.calls = self.rounds = 0
        self.excluded: list[CountDifferent] = []
        self.is_finite = is_finite(problem)

    def begin(self) -> Point | None:
        """Look for a first point; return it."""
        first = seek(self.problem, self.limits) if self.limits.remaining() > 0 else None
        if first is not None:
            self.accept(first)
        return first

    def accept(self, point: Point) -> bool:
        """Take a point, or a row beside it that its columns hold, where it is valid and nearer; return whether one is."""
        return any(map(self._accept, held(self.problem, point)))

    def _accept(self, point: Point) -> bool:
        distance = self.problem.distance(point)
        if self.upper is not None and distance >= self.upper:
            return False
        if not (self.problem.is_plausible(point) and self.problem.is_reached(point)):
            return False
        self.upper, self.point = distance, point
        return True

    def is_beside(self, point: Point, lower: Fraction) -> bool:
        """Return whether a point a little farther out than ``point`` is valid, within ε of a bound."""
        radius = lower + Fraction(9, 10) * self.problem.accuracy
        return any(self.accept(other) for other in nudge(self.problem, point, radius))

    def exclude(self, point: Point) -> bool:
        """On a finite space, leave out a point that rounding may put in the goal and the real model refuses."""
        if not self.is_finite or not self.form.is_settled(point, self.problem.goal):
            return False
        if self.problem.is_plausible(point) and self.problem.is_reached(point):
            return False
        self.excluded.append(CountDifferent(self.problem.space, point, 1, Fraction(0)))
        return True

    def prove(self, bound: Fraction) -> None:
        """Take over a bound that is proved."""
        self.lower = max(self.lower, bound if self.upper is None else min(bound, self.upper))
        if self.limits.on_progress is not None:
            upper = math.inf if self.upper is None else float_up(self.upper)
            self.limits.on_progress(float_down(self.lower), upper, self.calls)

    def is_closed(self) -> bool:
        """Return whether the bounds are within the accuracy."""
        return self.upper is not None and self.upper - self.lower <= self.problem.accuracy

    def question(self, form: Composite | Network, stated: Alternatives) -> Problem:
        """Return the question for another lane: the nearest point at which a form fulfils the margins."""

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
            accuracy=self.problem.accuracy * SHARE,
        )

    def asked(self, question: Problem, *, record: bool = False) -> Bounds:
        """Ask another lane."""
        from mace.solvers.choose import choose

        found = choose("auto", question).solve(question, Limits(self.limits.deadline, record=record))
        self.calls += max(1, found.calls)
        self.rounds += 1
        return found

    def is_late(self, found: Bounds) -> bool:
        """Return whether an answer says that it is time to stop."""
        return self.limits.remaining() <= 0 or found.reason == INTERRUPTED

    def bounds(self) -> Bounds:
        """Return what is proved."""
        notes = {"rounds": self.rounds}
        if self.is_infeasible:
            return Bounds(Fraction(0), is_infeasible=True, calls=self.calls, notes=notes)
        reason = "" if self.is_closed() else self.reason or BAND
        return Bounds(self.lower, self.upper, self.point, reason=reason, calls=self.calls, notes=notes)


def _may_reach(form: Composite | Network, point: Point, stated: Alternatives) -> bool:
    """Return whether a form fulfils margins at a point, or would but for the rounding of its own numbers."""
    own = tuple((Fraction(value or 0), Fraction(value or 0)) for value in point)
    return clearance(form.exact_scores(point), stated) + form.rounding(own) >= 0
