"""The paper's Algorithm 1: binary search on the distance with a satisfiability oracle, in exact fractions.

Three numbers close in on the optimum:

``lower``
    Proved: no plausible point that the deployed model may put in the goal is nearer.
``ceiling``
    Some point that the model *may* put in the goal has this distance.
``upper``
    The distance of the nearest point that the real model *has* put in the goal.

The oracle is asked about what is possible: the goal widened by the rounding of the deployed arithmetic. A witness that
the real model refuses is excluded where that is a sound thing to do (its cell for trees, the point itself on a finite space); otherwise it
lowers the ceiling only, and when lower and ceiling have met, one more question, about what is certain (the goal narrowed by
the rounding), gives the point. What then remains is an honest gap.

At most 2 + ceil(log2(1/ε)) questions, not counting refused witnesses and the settling of such a gap.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Protocol

from mace.clock import OutOfTime
from mace.distances import distance_down
from mace.language import syntax
from mace.problem import LATE, Answer, Bounds, Limits, Problem, Sat, Unknown, Unsat
from mace.solvers.incumbent import Incumbent
from mace.solvers.witness import can_exclude, candidates, exclusion, implausible, is_finite, point_region
from mace.space import Point


class Oracle(Protocol):
    """Answers whether a plausible point within a distance may, or must, reach the goal."""

    def possible(self, bound: Fraction | None) -> Answer:
        """Ask for a point that the deployed model may put in the goal, within distance ``bound``."""

    def certain(self, bound: Fraction | None) -> Answer:
        """Ask for a point that the deployed model puts in the goal whatever the rounding."""

    def exclude(self, region: syntax.Guard) -> None:
        """Leave a region out of all further answers."""


class Stopped(Exception):
    """The oracle answered *unknown*: the bounds stay where they are."""


class Bisection:
    """One run of Algorithm 1."""

    def __init__(self, problem: Problem, oracle: Oracle, limits: Limits) -> None:
        self.problem = problem
        self.oracle = oracle
        self.incumbent = Incumbent(problem, limits)
        self.ceiling: Fraction | None = None
        self.accepted: Point = problem.factual
        self.excluded: list[Point] = []
        self.refused = self.settling = self.allowed = 0

    def run(self) -> Bounds:
        """Search until lower and upper are within ε, or the oracle gives up."""
        incumbent = self.incumbent
        try:
            self._first()
            if self.ceiling is None:
                return incumbent.infeasible(notes=self._notes())
            tolerance = power_of_two_below(self.problem.accuracy)
            self.allowed = 2 + max(0, math.ceil(math.log2(max(self.ceiling, Fraction(1)) / tolerance)))
            incumbent.lower = self.problem.metric.next_above(Fraction(0))
            self._close_in()
            self._settle()
            self._sharpen()
            assert self._spent() <= self.allowed, "Algorithm 1 asked more often than it may"
        except Stopped as stop:
            incumbent.reason = str(stop)
        except OutOfTime:
            incumbent.reason = LATE
        if incumbent.point is not None:
            # Where the distance is a root, ``upper`` is that root rounded up, and ``lower`` may lie between the two.
            measure = self.problem.metric.measure(incumbent.point)
            incumbent.lower = min(incumbent.lower, distance_down(self.problem.metric, measure))
        return incumbent.bounds(notes=self._notes())

    # ---- the three steps

    def _first(self) -> None:
        """Ask without a bound on the distance: *unsat* is `infeasible`, *sat* gives the first upper bound."""
        if can_exclude(self.problem, self.problem.factual) is None:
            if self._certain(None):
                self.ceiling = self.incumbent.upper
                return
            self.settling += 1
        self._possible(None)

    def _close_in(self) -> None:
        """Halve the interval between lower and ceiling until it is at most the tolerance."""
        tolerance = power_of_two_below(self.problem.accuracy)
        while self.ceiling is not None and self.ceiling - self.incumbent.lower > tolerance:
            middle = (self.incumbent.lower + self.ceiling) / 2
            if not self._possible(middle):
                self.incumbent.lower = self.problem.metric.next_above(middle)

    def _settle(self) -> None:
        """Find a point that stays in the goal whatever the rounding, at less than ε from lower."""
        incumbent, accuracy = self.incumbent, self.problem.accuracy
        if incumbent.point is not None and self._is_beyond_rounding():
            return
        near = incumbent.lower + (accuracy + power_of_two_below(accuracy)) / 2
        if self._certain(near):
            return
        if incumbent.upper is None:
            self.settling += 1
            self._certain(None)
        if incumbent.upper is None or incumbent.is_closed():
            return
        while incumbent.upper - near > accuracy:
            self.settling += 1
            middle = (near + incumbent.upper) / 2
            if not self._certain(middle):
                near = middle

    def _sharpen(self) -> None:
        """On a finite space, spend what is left of the allowed questions on the optimum itself, not just within ε of it."""
        incumbent = self.incumbent
        while incumbent.upper is not None and incumbent.lower < incumbent.upper and self._spent() < self.allowed:
            region = point_region(self.problem, self.accepted) if is_finite(self.problem) else None
            if region is None:
                return
            self.oracle.exclude(region)
            self.excluded.append(self.accepted)
            bound = incumbent.upper - (incumbent.upper - incumbent.lower) / 2**60
            if not self._possible(bound):
                incumbent.lower = max(incumbent.lower, bound)
                incumbent.report()
                return

    # ---- asking

    def _possible(self, bound: Fraction | None) -> bool:
        while True:
            answer = self._ask(self.oracle.possible(bound))
            if answer is None:
                return False
            region = self._judge(answer)
            if region is not None:
                self.refused += 1
                self.oracle.exclude(region)
                continue
            distance = self._exact_distance(answer)
            if bound is not None:
                distance = min(distance, bound)
            self.ceiling = distance if self.ceiling is None else min(self.ceiling, distance)
            self.incumbent.report()
            return True

    def _certain(self, bound: Fraction | None) -> bool:
        before = self.incumbent.upper
        answer = self._ask(self.oracle.certain(bound))
        if answer is not None:
            self._judge(answer)
        self.incumbent.report()
        return self.incumbent.upper != before

    def _ask(self, answer: Answer) -> Sat | None:
        self.incumbent.calls += 1
        match answer:
            case Sat():
                return answer
            case Unsat():
                return None
            case Unknown(reason):
                raise Stopped(reason)

    def _judge(self, answer: Sat) -> syntax.Guard | None:
        """Ask the real model about a witness: keep it where valid and nearer; return the region that a refusal rules out, if any."""
        for point in candidates(self.problem, answer.values):
            if not self.problem.is_plausible(point):
                continue
            if not self.problem.is_reached(point):
                return self._ruled_out(exclusion(self.problem, point, answer.values), point)
            self.accepted = point
            if self.incumbent.is_nearer(point):
                self.incumbent.take(point)
            return None
        # No row near the witness is plausible; on a finite space the witness is itself the row, so it goes.
        return self._ruled_out(implausible(self.problem, answer.values), next(candidates(self.problem, answer.values)))

    def _ruled_out(self, region: syntax.Guard | None, point: Point) -> syntax.Guard | None:
        """Note the point that a region is about, for a checker to ask about again."""
        if region is not None:
            self.excluded.append(point)
        return region

    # ---- the interval

    def _exact_distance(self, answer: Sat) -> Fraction:
        point = tuple(answer.values[name] for name in self.problem.space)
        return self.problem.distance(point)  # type: ignore[arg-type]

    def _is_beyond_rounding(self) -> bool:
        point, form = self.incumbent.point, self.problem.form
        assert point is not None
        if not self.incumbent.is_closed():
            return False
        return form.cell(point) is not None or form.is_beyond_rounding(
            point, self.problem.goal, self.problem.box(self.incumbent.upper)
        )

    def _notes(self) -> dict[str, int]:
        return {"refused": self.refused, "settling": self.settling}

    def _spent(self) -> int:
        """Return the questions that count against the allowance."""
        return self.incumbent.calls - self.refused - self.settling


def power_of_two_below(value: Fraction) -> Fraction:
    """Return the greatest power of two that is not above ``value``."""
    exponent = math.floor(math.log2(value))
    power = Fraction(2) ** exponent
    return power if power <= value else power / 2
