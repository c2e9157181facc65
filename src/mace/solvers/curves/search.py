"""Polylines above and below each sigmoid, finer round by round, and another lane for what they make.

Replaced by polylines that lie above it (below it, where a small mean is sought), a mean of sigmoids becomes piecewise linear and larger,
so that the nearest point of *that* model is a lower bound for the real one. The polylines touch the sigmoids at chosen scores. Each round
has them touch at the scores of the point that was just found, so that it is not found again unless the real model accepts it. With
polylines on the other side of the sigmoids every point that is found is valid. Such points are asked for once the bound says how far away
they are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from mace.clock import OutOfTime
from mace.exact import Floats
from mace.forms import Alternatives, Box, Composite, Curved, Margin, Network, Part, Polyline, Voting, Weighted
from mace.forms.polyline import above_sigmoid, below_sigmoid, nearest_knot
from mace.problem import INTERRUPTED, LATE, Bounds, Evidence, Limits, Problem
from mace.reductions.polylines import lowered
from mace.solvers.curves.questions import Questions
from mace.solvers.incumbent import Incumbent
from mace.solvers.milp.polish import nudge
from mace.solvers.milp.seek import seek
from mace.space import Point

FIRST_TANGENTS = (-7.0, -4.0, -2.5, -1.5, -0.7, 0.0, 0.7, 1.5, 2.5, 4.0, 7.0)
FIRST_OF_NETWORKS = (0.0,)
"""Scores that the polylines touch to begin with; each is one more unit to the network lane, which needs few."""

STOPPED_SHORT = "the lane that answers with polylines ended with less than it had proved before"
"""Why there is no proof, where asking for it gives another bound."""

SAME = 1e-10
"""Scores this near to one that is touched add nothing."""


@dataclass(frozen=True, slots=True)
class PolylineQuestion:
    """What was asked of another lane: the question, the polylines in it by sigmoid, and the points left out."""

    asked: Problem
    polylines: tuple[dict[str, Polyline], ...]
    excluded: tuple[Point, ...]


class CurveSearch:
    """One question."""

    def __init__(self, problem: Problem, limits: Limits) -> None:
        assert isinstance(problem.form, Composite)
        self.problem, self.form = problem, problem.form
        self.incumbent = Incumbent(problem, limits)
        self.questions = Questions(self.incumbent)
        self.is_infeasible = False
        self.alternatives = self.form.alternatives(problem.goal)
        are_networks = all(isinstance(part.form, Network) for part in self.form.parts)
        self.touching: list[tuple[float, ...]] = [FIRST_OF_NETWORKS if are_networks else FIRST_TANGENTS] * len(
            self.form.parts
        )
        self.proved_by: PolylineQuestion | None = None

    def run(self) -> Bounds:
        """Ask round after round until lower and upper are within ε; then ask for the proof, where one is wanted."""
        whole = self.incumbent.limits
        if not whole.record:
            return self._run()
        self.incumbent.limits = whole.first_half()
        bounds = self._run()
        self.incumbent.limits = whole
        return replace(bounds, evidence=self._proof(bounds))

    def _proof(self, bounds: Bounds) -> Evidence | None:
        """Return the polylines that gave the bound, and the proof of the lane that answered; or why there is none."""
        question = self.proved_by
        if question is None or (bounds.lower <= 0 and not bounds.is_infeasible):
            return None
        try:
            found = self.questions.answer(question.asked, record=True)
        except KeyboardInterrupt:
            return {"lane": "curves", "missing": INTERRUPTED}
        except OutOfTime:
            return {"lane": "curves", "missing": LATE}
        is_short = not found.is_infeasible and (bounds.is_infeasible or found.lower < bounds.lower)
        inner = {} if is_short else found.evidence or {}
        if not inner:
            inner = {"missing": LATE if self.incumbent.limits.remaining() <= 0 else STOPPED_SHORT}
        if "missing" in inner:
            return {"lane": "curves", "missing": inner["missing"]}
        curves = [{side: _written(line) for side, line in each.items()} for each in question.polylines]
        return {"lane": "curves", "curves": curves, "excluded": list(map(list, question.excluded)), "proof": inner}

    def _run(self) -> Bounds:
        incumbent = self.incumbent
        try:
            self._touch(self.problem.factual)
            first = seek(self.problem, incumbent.limits) if incumbent.limits.remaining() > 0 else None
            if first is not None:
                incumbent.offer_rounded(first)
                self._touch(first)
            while not incumbent.is_closed() and self._round():
                pass
        except KeyboardInterrupt:
            incumbent.reason = INTERRUPTED
        except OutOfTime:
            incumbent.reason = LATE
        notes = {"rounds": self.questions.rounds}
        return incumbent.infeasible(notes=notes) if self.is_infeasible else incumbent.bounds(notes=notes)

    def _round(self) -> bool:
        """Ask for the nearest point of the model with larger sigmoids, then of the one with smaller; return whether to go on."""
        incumbent = self.incumbent
        if incumbent.limits.remaining() <= 0:
            incumbent.reason = LATE
            return False
        question = self._question(widened=True)
        found = self.questions.answer(question.asked)
        if found.is_infeasible:
            self.is_infeasible = incumbent.upper is None
            incumbent.prove(incumbent.upper or Fraction(0))
            self.proved_by = question
            return False
        if self.proved_by is None or found.lower > incumbent.lower:
            self.proved_by = question
        incumbent.prove(found.lower)
        if found.point is None or incumbent.is_closed() or self._is_late(found):
            incumbent.reason = found.reason or LATE
            return False
        is_new = self._touch(found.point)
        if incumbent.offer_rounded(found.point) or self._is_valid_farther_out(found.point):
            return is_new
        inner = self.questions.answer(self._question(widened=False).asked)
        if inner.point is not None:
            incumbent.offer_rounded(inner.point)
            is_new |= self._touch(inner.point)
        if self._is_late(inner):
            incumbent.reason = inner.reason or LATE
            return False
        return is_new or self.questions.exclude(found.point)

    def _is_late(self, found: Bounds) -> bool:
        """Return whether an answer says that it is time to stop."""
        return self.incumbent.limits.remaining() <= 0 or found.reason == INTERRUPTED

    def _is_valid_farther_out(self, point: Point) -> bool:
        """Return whether a point a little farther out than ``point``, within ε of the bound, is valid and nearer than the best."""
        radius = self.incumbent.lower + Fraction(9, 10) * self.problem.accuracy
        return any(self.incumbent.offer_rounded(other) for other in nudge(self.problem, point, radius))

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

    def _question(self, *, widened: bool) -> PolylineQuestion:
        """Return the question for another lane: the nearest point of the model with polylines for sigmoids."""
        box = self.problem.box(self.incumbent.upper)
        rounding = self.form.rounding(box) + self.problem.goal.slack
        stated, sides = restated(self.alternatives, rounding if widened else -2 * rounding, widened=widened)
        whole, polylines = self._with_polylines(box, sides)
        excluded = tuple(condition.earlier for condition in self.questions.excluded)
        return PolylineQuestion(self.questions.make(lowered(whole) or whole, stated), polylines, excluded)

    def _with_polylines(self, box: Box, sides: tuple[int, ...]) -> tuple[Composite, tuple[dict[str, Polyline], ...]]:
        """Return the model with one output a side: 1 has polylines that make it larger, -1 smaller; and the polylines of each sigmoid."""
        parts: list[Part] = []
        polylines: list[dict[str, Polyline]] = []
        for part, touching in zip(self.form.parts, self.touching, strict=True):
            match part:
                case Weighted(form, factors):
                    parts.append(Weighted(form, np.repeat(factors, len(sides), axis=0)))
                case Voting(form, added):
                    parts.append(Voting(form, np.repeat(added, len(sides), axis=1)))
                case Curved(form, None, factors):
                    low, high = (float(end[0]) for end in form.score_bounds(box))
                    polylines.append({})
                    for k, side in enumerate(sides):
                        name = "above" if side * factors[0] > 0 else "below"
                        made = (above_sigmoid if name == "above" else below_sigmoid)(touching, low, high)
                        polylines[-1][name] = made
                        parts.append(Curved(form, made, np.eye(len(sides))[k] * factors[0]))
                case Curved(form, curve, factors):
                    parts.append(Curved(form, curve, np.repeat(factors, len(sides))))
        return Composite(self.problem.space, tuple(parts), np.repeat(self.form.base, len(sides))), tuple(polylines)


def _written(line: Polyline) -> dict[str, Floats]:
    return {"knots": np.array(line.knots), "heights": np.array(line.heights)}


def restated(alternatives: Alternatives, rounding: Fraction, *, widened: bool) -> tuple[Alternatives, tuple[int, ...]]:
    """State margins over upper or lower envelopes of the outputs (``widened``: a relaxation, else a restriction), with the side of each."""
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
