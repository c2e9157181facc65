"""A best-first search over boxes: in each, another lane finds the nearest point of a model that is larger than the real one there.

Where the real model refuses that point, the box is cut along the feature that makes the linear functions fit best. Valid points lie on
the way on from such points, away from the row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from mace.clock import OutOfTime
from mace.forms import Composite, clearance
from mace.forms.form import box_at
from mace.problem import INTERRUPTED, LATE, Bounds, Evidence, Limits, Problem
from mace.reductions.noise_box import inside
from mace.reductions.regions import Region, lies_in, whole_region, within_reach
from mace.solvers.boxes.best_first import BestFirst, outermost, ranges_dict
from mace.solvers.curves.questions import Questions
from mace.solvers.incumbent import BAND, Incumbent
from mace.solvers.milp.seek import seek
from mace.solvers.ratios.bounds import looseness
from mace.solvers.ratios.cuts import Cuts
from mace.solvers.ratios.question import Margins, box_of, in_floats, question_of
from mace.space import Point, Real

STEPS_OUT = 40
"""How many points are tried on the way on from a point, each step half of the one before."""

LEAST_GAIN = 0.02
"""A cut that leaves more than all but this share of what the linear functions are too large is no better than any other."""

MOST_COMPARED = 500
"""The most boxes of a proof that are compared with each other."""


@dataclass(frozen=True, slots=True, eq=False)
class ProvedPiece:
    """A box, the bound that was proved of it (``None``: it holds nothing at all), and what goes into a certificate."""

    region: Region
    lower: Fraction | None
    entry: dict[str, Any]

    def is_enough(self, lower: Fraction | None) -> bool:
        """Return whether it proves a lower bound; ``None`` is that there is nothing at all."""
        return self.lower is None or (lower is not None and self.lower >= lower)


@dataclass(frozen=True, slots=True, eq=False)
class OpenPiece:
    """An open box, and what is proved of a box around it."""

    region: Region
    proved: ProvedPiece | None = None


class RatioSearch:
    """One question."""

    def __init__(self, problem: Problem, limits: Limits) -> None:
        assert isinstance(problem.form, Composite)
        self.problem, self.form, self.limits = problem, problem.form, limits
        self.incumbent = Incumbent(problem, limits)
        self.questions = Questions(self.incumbent)
        self.margins = Margins.of(self.form, self.form.alternatives(problem.goal))
        self.whole = whole_region(problem.space, problem.factual)
        self.queue: BestFirst[OpenPiece] = BestFirst(self.incumbent, self._examine)
        self.proofs: dict[int, ProvedPiece | None] = {}
        self.cuts = Cuts(problem, self.form)

    def run(self) -> Bounds:
        """Search until lower and upper are within ε, or no box is left."""
        try:
            first = seek(self.problem, self.limits) if self.limits.remaining() > 0 else None
            if first is not None:
                self.incumbent.offer_rounded(first)
        except KeyboardInterrupt:
            self.incumbent.reason = INTERRUPTED
        except OutOfTime:
            self.incumbent.reason = LATE
        if self.incumbent.reason:
            return self.incumbent.bounds()
        self.queue.push(Fraction(0), OpenPiece(self.whole))
        for box in self.queue.run():
            self._keep(box.proved)
        bounds = self.queue.bounds(BAND, {"boxes": self.questions.rounds})
        return replace(bounds, evidence=self._evidence(bounds))

    def _keep(self, proved: ProvedPiece | None) -> None:
        self.proofs[id(proved)] = proved

    def _close(self, lower: Fraction, proved: ProvedPiece | None) -> None:
        self.queue.close(lower)
        self._keep(proved)

    # ---- one box

    def _examine(self, lower: Fraction, box: OpenPiece) -> None:
        """Ask another lane about a box; close it, or cut it. ``lower`` is what was proved of a box around it."""
        near = within_reach(self.problem, box.region, self.incumbent.upper)
        if near is None:
            assert self.incumbent.upper is not None
            self.queue.close(self.incumbent.upper)
            return
        region = in_floats(near)
        if any(left.is_empty for left in region.values()):
            return
        asked = question_of(self.problem, self.margins, box_of(region))
        question = inside(self.questions.make(asked.form, asked.stated), region)
        found = self.questions.answer(question, record=self.limits.record)
        if found.reason == INTERRUPTED:
            raise KeyboardInterrupt
        if self.limits.record and self.limits.remaining() <= 0 and "missing" in (found.evidence or {"missing": LATE}):
            # There was no time for its proof: only what was proved before is claimed.
            if found.point is not None:
                self._offer(found.point)
            self._close(lower, box.proved)
            self.incumbent.reason = found.reason or LATE
            return
        entry = {"ranges": ranges_dict(region, self.whole), "linear": list(asked.linear), "proof": found.evidence}
        proved = _better(ProvedPiece(region, None if found.is_infeasible else found.lower, entry), box.proved)
        if found.is_infeasible:
            self._keep(proved)
            return
        lower = max(lower, found.lower)
        if found.point is None or self.queue.is_beaten(lower):
            self._close(lower, proved)
            if found.point is None:
                self.incumbent.reason = found.reason or LATE
            return
        self._offer(found.point)
        if self.queue.is_beaten(lower):
            self._close(lower, proved)
        else:
            self._cut(lower, OpenPiece(region, proved), found.point)

    def _offer(self, point: Point) -> None:
        """Offer a point to the incumbent, and where it is refused the nearest valid one on the way on."""
        if self.incumbent.offer_rounded(point):
            return
        beyond = [other for other in _farther_out(self.problem, point) if self.incumbent.is_nearer(other)]
        reached = self.problem.reaching(list(filter(self.problem.is_plausible, beyond)))
        any(map(self.incumbent.offer, sorted(reached, key=self.problem.distance)[:3]))

    def _cut(self, lower: Fraction, box: OpenPiece, point: Point) -> None:
        """Open the parts of a box whose nearest point is refused; leave the point out, or close the box, where rounding decides it."""
        may_reach = clearance(self.form.exact_scores(point), self.margins.alternatives)
        is_in_doubt = may_reach + self.form.rounding(box_at(point)) + self.problem.goal.slack >= 0
        parts = [box.region] if is_in_doubt and self.questions.exclude(point) else self._parts(box.region)
        if not parts:
            parts = [box.region] if self.questions.exclude(point) else []
        if not parts:
            self._close(lower, box.proved)
        for part in parts:
            self.queue.push(lower, replace(box, region=part))
        self.queue.report()

    def _parts(self, region: Region) -> list[Region]:
        """Return the halves of a box along the feature that makes the linear functions fit best; where none does, along the widest."""
        choices: list[tuple[float, Fraction, list[Region]]] = []
        for name in self.problem.space:
            halves = self.cuts.halves(name, region[name])
            if len(halves) < 2:
                continue
            parts = [region | {name: half} for half in halves]
            left = sum(looseness(self.form, self.margins.weights, box_of(part)) for part in parts) / 2
            choices.append((left, self.cuts.width(name, region[name]), parts))
        if not choices:
            return []
        best = min(choices, key=lambda choice: choice[0])
        own = looseness(self.form, self.margins.weights, box_of(region))
        if best[0] > own * (1 - LEAST_GAIN):
            best = max(choices, key=lambda choice: choice[1])
        return best[2]

    # ---- evidence

    def _evidence(self, bounds: Bounds) -> Evidence | None:
        """Return the closed boxes, each with its linear functions and the proof of the lane that was asked; or why there is none."""
        if not self.limits.record:
            return None
        lower = None if bounds.is_infeasible else bounds.lower
        enough = [proved for proved in self.proofs.values() if proved is not None and proved.is_enough(lower)]
        kept = outermost(enough, lambda outer, inner: lies_in(inner.region, outer.region), MOST_COMPARED)
        entries = [proved.entry for proved in kept]
        for entry in entries:
            if entry["proof"] is None or "missing" in entry["proof"]:
                return {"lane": "ratios", "missing": (entry["proof"] or {}).get("missing", "a box has no proof")}
        excluded = [list(condition.earlier) for condition in self.questions.excluded]
        return {"lane": "ratios", "boxes": entries, "excluded": excluded}


def _better(first: ProvedPiece, second: ProvedPiece | None) -> ProvedPiece:
    """Return which of two proofs proves more; the first where they prove the same."""
    return first if second is None or first.is_enough(second.lower) else second


def _farther_out(problem: Problem, point: Point) -> Iterator[Point]:
    """Yield points on the way on from the row through a point: ever nearer to it."""
    for k in range(1, STEPS_OUT):
        yield tuple(
            feature.nearest(min(max(float(value + (value - own) * 2.0 ** (3 - k)), feature.low), feature.high))
            if isinstance(feature, Real) and feature.size is None and value is not None and own is not None
            else value
            for feature, value, own in zip(problem.space.values(), point, problem.factual, strict=True)
        )
