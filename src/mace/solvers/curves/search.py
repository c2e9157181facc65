"""Polylines above and below each sigmoid, finer round by round, and another lane for what they make.

Replaced by polylines that lie above it (below it, where less is what is sought), a mean of sigmoids becomes piecewise linear and larger,
so that the nearest point of *that* model is a lower bound for the real one. The polylines touch the sigmoids at chosen scores. Each round
has them touch at the scores of the point that was just found, so that it is not found again unless the real model accepts it. With the
polylines exchanged every point that is found is valid: so points come from there, once the bound says how far away they are.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from mace.forms import Alternatives, Box, Composite, Curved, Margin, Network, Part, Voting, Weighted
from mace.forms.polyline import above_sigmoid, below_sigmoid, nearest_knot
from mace.problem import Bounds, Limits, Problem
from mace.solvers.curves.hand import LATE, Hand
from mace.solvers.curves.lowered import lowered
from mace.space import Point

FIRST = (-7.0, -4.0, -2.5, -1.5, -0.7, 0.0, 0.7, 1.5, 2.5, 4.0, 7.0)
FIRST_OF_NETWORKS = (0.0,)
"""Scores that the polylines touch to begin with; each is one more unit to the network lane, which needs few."""

SAME = 1e-10
"""Scores this near to one that is touched add nothing."""


class Search:
    """One question."""

    def __init__(self, problem: Problem, limits: Limits) -> None:
        self.hand = Hand(problem, limits)
        self.problem, self.form = problem, self.hand.form
        self.alternatives = problem.goal.alternatives(self.form.outputs, ties_last=False)
        are_networks = all(isinstance(part.form, Network) for part in self.form.parts)
        self.touching: list[tuple[float, ...]] = [FIRST_OF_NETWORKS if are_networks else FIRST] * len(self.form.parts)

    def run(self) -> Bounds:
        """Ask round after round until lower and upper are within ε."""
        hand = self.hand
        try:
            self._touch(self.problem.factual)
            first = hand.begin()
            if first is not None:
                self._touch(first)
            while not hand.is_closed() and self._round():
                pass
        except KeyboardInterrupt:
            hand.reason = "interrupted"
        return hand.bounds()

    def _round(self) -> bool:
        """Ask for the nearest point of the model with larger sigmoids, then of the one with smaller; return whether to go on."""
        hand = self.hand
        if hand.limits.remaining() <= 0:
            hand.reason = LATE
            return False
        found = self._asked(widened=True)
        if found.is_infeasible:
            hand.is_infeasible = hand.upper is None
            hand.prove(hand.upper or Fraction(0))
            return False
        hand.prove(found.lower)
        if found.point is None or hand.is_closed() or hand.is_late(found):
            hand.reason = found.reason or LATE
            return False
        is_new = self._touch(found.point)
        if hand.accept(found.point) or hand.is_beside(found.point, hand.lower):
            return is_new
        inner = self._asked(widened=False)
        if inner.point is not None:
            hand.accept(inner.point)
            is_new |= self._touch(inner.point)
        if hand.is_late(inner):
            hand.reason = inner.reason or LATE
            return False
        return is_new or hand.exclude(found.point)

    def _touch(self, point: Point) -> bool:
        """Have the polylines touch the sigmoids at the scores of a point; return whether that is new."""
        is_new = False
        for number, part in enumerate(self.form.parts):
            if isinstance(part, Curved) and part.curve is None:
                z = float(part.form.exact_scores(point)[0])
                if nearest_knot(self.touching[number], z) > SAME * (1 + abs(z)):
                    self.touching[number] = tuple(sorted((*self.touching[number], z)))
                    is_new = True
        return is_new

    # ---- the model with polylines

    def _asked(self, *, widened: bool) -> Bounds:
        """Ask another lane for the nearest point of the model with polylines for sigmoids."""
        box = self.problem.box(self.hand.upper)
        rounding = self.form.rounding(box) + self.problem.goal.slack
        stated, sides = restated(self.alternatives, rounding if widened else -2 * rounding, widened=widened)
        whole = self._with_polylines(box, sides)
        return self.hand.asked(lowered(whole) or whole, stated)

    def _with_polylines(self, box: Box, sides: tuple[int, ...]) -> Composite:
        """Return the model with one output a side: 1 has polylines that make it larger, -1 smaller."""
        parts: list[Part] = []
        for part, touching in zip(self.form.parts, self.touching, strict=True):
            match part:
                case Weighted(form, factors):
                    parts.append(Weighted(form, np.repeat(factors, len(sides), axis=0)))
                case Voting(form, added):
                    parts.append(Voting(form, np.repeat(added, len(sides), axis=1)))
                case Curved(form, None, factors):
                    low, high = (float(end[0]) for end in form.score_bounds(box))
                    for k, side in enumerate(sides):
                        made = (above_sigmoid if side * factors[0] > 0 else below_sigmoid)(touching, low, high)
                        parts.append(Curved(form, made, np.eye(len(sides))[k] * factors[0]))
                case Curved(form, curve, factors):
                    parts.append(Curved(form, curve, np.repeat(factors, len(sides))))
        return Composite(self.problem.space, tuple(parts), np.repeat(self.form.base, len(sides)))


def restated(alternatives: Alternatives, rounding: Fraction, *, widened: bool) -> tuple[Alternatives, tuple[int, ...]]:
    """Return margins over outputs made larger or smaller, whichever helps (or hurts, where not ``widened``), and which these are."""
    sides: list[int] = []

    def output(score: int | None, sign: int) -> int | None:
        if score is None:
            return None
        side = sign if widened else -sign
        if side not in sides:
            sides.append(side)
        return sides.index(side)

    stated = tuple(
        tuple(Margin(output(m.plus, 1), output(m.minus, -1), m.shift + rounding) for m in margins)
        for margins in alternatives
    )
    return stated, tuple(sides)
