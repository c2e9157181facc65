"""The incumbent of a search: the nearest valid point found so far, the lower bound proved so far, and what they took."""

from __future__ import annotations

import math
from fractions import Fraction

from mace.exact import float_down, float_up
from mace.problem import INTERRUPTED, Bounds, Evidence, Limits, Problem
from mace.solvers.domains import representable
from mace.space import Point

BAND = "rounding leaves the points between lower and upper undecided: the model's own arithmetic is too coarse there"


class Incumbent:
    """The best point and the bound of one search.

    No valid point is nearer than ``lower``; ``point``, at distance ``upper``, is the nearest so far. ``calls`` counts questions to the
    oracle, ``reason`` says why the search was stopped. What is left to search is pruned where it is nearer than the best point by no more
    than a ``share`` of the accuracy.
    """

    def __init__(self, problem: Problem, limits: Limits, share: Fraction = Fraction(9, 10)) -> None:
        self.problem, self.limits, self.share = problem, limits, share
        self.lower = Fraction(0)
        self.upper: Fraction | None = None
        self.point: Point | None = None
        self.calls = 0
        self.reason = ""
        self._valid: dict[Point, bool] = {}
        self._distances: dict[Point, Fraction] = {}

    # ---- points

    def is_nearer(self, point: Point) -> bool:
        """Return whether a point is nearer than the best so far."""
        return self.upper is None or self._distance(point) < self.upper

    def _distance(self, point: Point) -> Fraction:
        """Return the distance of a point, which is computed once."""
        if point not in self._distances:
            self._distances[point] = self.problem.distance(point)
        return self._distances[point]

    def is_valid(self, point: Point) -> bool:
        """Return whether a point is plausible and the real model puts it in the goal; each point is asked about once."""
        if point not in self._valid:
            self._valid[point] = self.problem.is_valid(point)
        return self._valid[point]

    def take(self, point: Point) -> None:
        """Make a point the incumbent that is known to be valid and no farther than the best so far."""
        self.upper, self.point = self._distance(point), point

    def offer(self, point: Point) -> bool:
        """Take a point where it is nearer and valid; return whether it is."""
        if not self.is_nearer(point) or not self.is_valid(point):
            return False
        self.take(point)
        return True

    def offer_rounded(self, point: Point) -> bool:
        """Take a point, or a row near it whose numbers its columns can hold; return whether one is nearer and valid."""
        return any(map(self.offer, representable(self.problem, point)))

    # ---- the interval

    def cutoff(self) -> Fraction | None:
        """Return the distance from which on nothing is sought: the best less a share of the accuracy; ``None`` without a point."""
        return None if self.upper is None else self.upper - self.share * self.problem.accuracy

    def prove(self, bound: Fraction) -> None:
        """Raise the lower bound to one that is proved, up to the distance of the best point; report the progress."""
        self.lower = max(self.lower, bound if self.upper is None else min(bound, self.upper))
        self.report()

    def is_closed(self) -> bool:
        """Return whether the bounds are within the accuracy of each other."""
        return self.upper is not None and self.upper - self.lower <= self.problem.accuracy

    def report(self) -> None:
        """Report the bounds to whoever watches the progress."""
        if self.limits.on_progress is not None:
            upper = math.inf if self.upper is None else float_up(self.upper)
            self.limits.on_progress(float_down(self.lower), upper, self.calls)

    def bounds(
        self, *, doubt: str = BAND, notes: dict[str, int] | None = None, evidence: Evidence | None = None
    ) -> Bounds:
        """Return what is proved; ``doubt`` is why a gap is left where the search was not stopped. An interrupt is passed on always."""
        is_done = self.is_closed() and self.reason != INTERRUPTED
        reason = "" if is_done else self.reason or doubt
        return Bounds(
            self.lower, self.upper, self.point, reason=reason, calls=self.calls, notes=notes or {}, evidence=evidence
        )

    def infeasible(self, *, notes: dict[str, int] | None = None, evidence: Evidence | None = None) -> Bounds:
        """Return that there is proved to be no valid point at all."""
        return Bounds(Fraction(0), is_infeasible=True, calls=self.calls, notes=notes or {}, evidence=evidence)
