"""Robust answers: the lane is asked for the nearest point, then for a row within the noise of it that is not in the target.

Such a row is a counterexample: it refutes every point whose perturbation reaches it. These points, or those around a whole box of refused
rows, are pruned. Of a network, copies with their input shifted by the perturbation, or pinned to a counterexample, must reach the goal too:
a robust answer brings all of them there. Tree ensembles have a search of their own (:mod:`mace.solvers.robust.trees`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice

from mace.clock import OutOfTime
from mace.constraints.robust import RobustCondition
from mace.distances import NormMetric, distance_down
from mace.exact import float_up
from mace.forms import Network, TreeEnsemble
from mace.problem import LATE, SPENT, Bounds, Evidence, Limits, Problem, timed
from mace.reductions.noise_box import inside
from mace.reductions.regions import Region, lies_in, whole_region, within_reach
from mace.reductions.shifted_network import STAY, Moves, shifted
from mace.reductions.tree_copies import NoCopies
from mace.solvers.abilities import Choose, Lane
from mace.solvers.boxes.best_first import BestFirst, outermost, ranges_dict
from mace.solvers.robust.attack import Valley, WorstRows
from mace.solvers.robust.copies import ShiftedCopies
from mace.solvers.robust.incumbent import RobustIncumbent, foreseeing
from mace.solvers.robust.ranges import only, outside
from mace.solvers.robust.refused import refused_box
from mace.solvers.robust.trees import RobustTreeSearch
from mace.space import Point, Real

MOST_PINNED = 12
"""The most copies that are pinned to refused rows in one box."""

FIRST_EFFORT, MORE_EFFORT = 64, 4
"""How many nodes a question may take at first, and how many times as many where its point is robust or none was found."""

CUTS_TRIED = 288
"""How many cuts are tried to close a box before the nearest row in it is asked for."""

MUCH_NEARER = Fraction(3, 4)
"""To which share of its distance the incumbent must have come before cuts that did not close a box are tried again."""

MOST_OF_THE_TIME = 0.7
"""The share of the time left that a question may take at most."""

ROUNDED = Fraction(1, 10**9)
"""More than the rounding of the lower bounds that a lane reports."""

BARELY = 1 + Fraction(1, 2**40)
MOST_BOXES = 1000
"""The most boxes that are proved."""

UNDECIDED_BOX = "the box around points between lower and upper is neither proved nor refuted"
NO_PROOF = "the search rests on boxes of refused rows or on a target that is reached in several ways, of which there is no proof"


@timed
def solve(problem: Problem, limits: Limits, choose: Choose, lane: Lane) -> Bounds:
    """Find the nearest robust counterfactual, with a lane that takes the problem without noise."""
    (noise,), rest = problem.apart(RobustCondition)
    if isinstance(problem.form, TreeEnsemble):
        with suppress(NoCopies):
            return RobustTreeSearch(
                rest, noise, limits, choose, narrows=getattr(lane.solver, "GOES_BY_FORM", False)
            ).run()
    return RobustSearch(problem, rest, noise, limits, choose, lane).run()


class _Beaten(Exception):
    """Nothing that is still sought is nearer than the incumbent."""


Closed = tuple[Region, tuple[Moves, ...]]
"""A pruned box, with the perturbed copies that none of its rows brings to the goal together."""


@dataclass(frozen=True, slots=True, eq=False)
class NoisyBox:
    """An open box, and (``patience``) how many nodes a question about it may take.

    Its rows must bring the ``pinned`` copies to the goal, since noise leads from all of them to these values. ``source`` is the box, asked
    about before, whose answer is this one's bound; ``None`` where the bound is its own distance.
    """

    region: Region
    pinned: tuple[Moves, ...]
    patience: float
    source: Closed | None = None


class RobustSearch:
    """One question with noise; ``rest`` is the question without it."""

    def __init__(
        self, problem: Problem, rest: Problem, noise: RobustCondition, limits: Limits, choose: Choose, lane: Lane
    ) -> None:
        problem, rest = foreseeing(problem), foreseeing(rest)
        self.problem, self.rest, self.noise, self.solver = problem, rest, noise, lane.solver
        self.whole = whole_region(problem.space, problem.factual)
        self.incumbent = RobustIncumbent(problem, limits, choose)
        self.queue: BestFirst[NoisyBox] = BestFirst(self.incumbent, self._examine)
        self.copies = ShiftedCopies(problem, noise)
        self.worst_rows = WorstRows(problem, noise)
        # On a finite space the optimum itself is wanted; values of some grids are a little off in the kernels.
        grids = [each for each in problem.space.values() if isinstance(each, Real) and each.step is not None]
        self.is_plainly_real = not self.queue.is_exact and all(each.is_exact_grid for each in grids)
        self.first: Bounds | None = None
        self.around: Evidence | None = None
        self.doubt = ""
        self.closed: list[Closed] = []
        # By the identity of a box, which is kept here: what a few cuts did not close, and the incumbent's distance then.
        self.not_emptied: dict[int, tuple[Closed, Fraction]] = {}
        self.is_proved_by_copies = len(self.copies.goals) == 1 and isinstance(problem.metric, NormMetric)

    def run(self) -> Bounds:
        """Search; then prove what was found where that is asked for."""
        limits = self.incumbent.limits
        if limits.record:
            self.incumbent.limits = limits.first_half()
        patience = FIRST_EFFORT if isinstance(self.problem.form, Network) else math.inf
        self._push(Fraction(0), NoisyBox(self.whole, (), patience))
        left = self.queue.run()
        bounds = self.queue.bounds(self.doubt or UNDECIDED_BOX)
        if not limits.record:
            return bounds
        self.incumbent.limits = limits
        try:
            return replace(bounds, evidence=self._evidence(None if bounds.is_infeasible else bounds.lower, left))
        except (KeyboardInterrupt, OutOfTime):
            return bounds

    def _push(self, lower: Fraction, box: NoisyBox) -> None:
        """Open a box; ``lower`` bounds the box that it is a part of."""
        nearest = self._nearest(box.region)
        self.queue.push(max(lower, nearest), replace(box, source=None) if nearest >= lower else box)

    def _push_parts(self, lower: Fraction, box: NoisyBox, parts: list[Region]) -> None:
        for part in parts:
            self._push(lower, replace(box, region=part))

    def _nearest(self, region: Region) -> Fraction:
        """Return a distance below which a box has no row."""
        if not isinstance(self.problem.metric, NormMetric):
            return Fraction(0)
        pairs = zip(region.values(), self.problem.factual, strict=True)
        point = tuple(
            own if own is None or left.missing or left.levels is not None or left.low > left.high
            else min(max(own, left.low), left.high)
            for left, own in pairs
        )  # fmt: skip
        # The ends of ranges may be no floats.
        return distance_down(self.problem.metric, self.problem.metric.measure(point))  # type: ignore[arg-type]

    # ---- one box

    def _examine(self, lower: Fraction, box: NoisyBox) -> None:
        """Ask about a box; close it, or cut out of it rows that are not robust."""
        parts = self.copies.cut_at_a_turn(box.region)
        if len(parts) > 1:
            self._push_parts(lower, box, parts)
            return
        near = within_reach(self.problem, box.region, self.incumbent.upper)
        if near is None:
            self.closed.append((box.region, tuple(self.copies.of(box.region, box.pinned))))
            return
        copies = self.copies.of(near, box.pinned)
        asked = box.region, tuple(copies)
        question = shifted(inside(self.rest, near), copies)
        if len(copies) > 1 and self._is_empty(question, asked):
            self._close_beaten(asked)
            return
        found = self._ask_while_nearer(question, box.patience)
        if found is None or found.is_infeasible:
            if found is None:
                self._close_beaten(asked)
            else:
                self.closed.append(asked)
            return
        if found.lower >= lower:
            lower, box = found.lower, replace(box, source=asked)
        is_cut_short = found.reason in (LATE, SPENT) and self.incumbent.limits.remaining() > 0
        if self.queue.is_beaten(lower) or (found.point is None and not is_cut_short):
            self._close(lower, box.source or asked)
            self.doubt = found.reason or self.doubt
        elif found.point is None:
            self._push(lower, replace(box, patience=MORE_EFFORT * box.patience))
        else:
            self._look_around(lower, box, found.point, asked, near, is_cut_short=is_cut_short)

    def _look_around(
        self, lower: Fraction, box: NoisyBox, point: Point, asked: Closed, near: Region, *, is_cut_short: bool
    ) -> None:
        """Take the nearest point of a box where it is robust; else cut the rows out of the box that the same counterexample refutes."""
        source = box.source or asked
        worst = self.worst_rows.near(point)
        if worst is None:
            refusing = self.incumbent.ask_around(self.rest, self.noise, point)
            if refusing.is_infeasible:
                self._accept(point, refusing.evidence)
                if is_cut_short and not self.queue.is_beaten(lower):
                    self._repair(point)
                    self._push(lower, replace(box, patience=MORE_EFFORT * box.patience))
                else:
                    self._close(lower, source)
                return
            if refusing.point is None:
                self._close(lower, source)
                self.incumbent.reason = refusing.reason
                return
            worst = self.worst_rows.from_refused(refusing.point, point)
        valleys = self._repair(point)
        rows = [valley.row for valley in valleys if valley.is_inside]
        is_refuted = self.copies.add_offset(worst, point)
        for valley in valleys:
            if not valley.is_inside:
                self.copies.add_offset(valley.row)
        if not is_refuted:
            rows.sort(key=lambda row: not self.worst_rows.undoes(row, point))
            if not rows or not self.worst_rows.undoes(rows[0], point):
                rows.insert(0, worst)
        self._cut_out(lower, box, rows, needs_first=not is_refuted)
        self.queue.report()

    def _is_empty(self, question: Problem, asked: Closed) -> bool:
        """Return whether a few cuts prove that no row nearer than the incumbent answers a question: cheaper than asking for the nearest.

        Where they do not, they are not tried again with the same box and copies before the incumbent is much nearer.
        """
        cutoff, refutes = self.incumbent.cutoff(), getattr(self.solver, "refutes", None)
        if cutoff is None or refutes is None or not self.is_plainly_real:
            return False
        (_, copies), before = self.not_emptied.get(id(asked[0]), (asked, math.inf))
        if copies == asked[1] and cutoff >= MUCH_NEARER * before:
            return False
        until = self.incumbent.limits.deadline
        if refutes(question, cutoff + ROUNDED, Limits(until, record=True, effort=CUTS_TRIED)):
            return True
        self.not_emptied[id(asked[0])] = asked, cutoff
        return False

    def _close_beaten(self, closed: Closed) -> None:
        """Count a box as closed that holds no row nearer than the incumbent."""
        cutoff = self.incumbent.cutoff()
        assert cutoff is not None
        self._close(cutoff, closed)

    def _close(self, lower: Fraction, closed: Closed) -> None:
        self.queue.close(lower)
        self.closed.append(closed)

    def _cut_out(self, lower: Fraction, box: NoisyBox, rows: list[Point], *, needs_first: bool) -> None:
        """Cut a box into the rows from which noise leads to all of some rows, and the others; the former get copies pinned to these.

        Where ``needs_first``, the first one is refused. Where no copy can be pinned to it, the rows from which noise leads there are cut
        out, and with them all from which noise leads to a whole box of refused rows.
        """
        for number, row in enumerate(rows):
            has_room = len(box.pinned) < MOST_PINNED and self.copies.has_room(len(box.pinned))
            copy = self.copies.pinned_at(row) if has_room else None
            if copy is not None and copy not in box.pinned:
                refused = {
                    name: only(self.whole[name], row[self.problem.space.index(name)]) for name in self.noise.radii
                }
                kept = self._kept(lower, box, refused)
                box = replace(box, region=kept, pinned=(*box.pinned, copy))
            elif needs_first and not number:
                # There is no proof of such boxes.
                self.is_proved_by_copies = False
                self._kept(lower, box, refused_box(self.rest, self.noise, self.incumbent, row, box.region))
                return
        self._push(lower, box)

    def _kept(self, lower: Fraction, box: NoisyBox, refused: Region) -> Region:
        """Return the rows of a box from which noise leads to another box; open what is left of it."""
        inner, outer = dict(box.region), []
        for name, left in refused.items():
            parts, kept = outside(self.problem, self.noise, name, box.region[name], left)
            outer += [inner | {name: part} for part in parts]
            inner[name] = kept
        self._push_parts(lower, box, outer)
        return inner

    def _accept(self, point: Point, evidence: Evidence | None) -> None:
        """Take a point that is proved robust."""
        self.noise.remember(point)
        if self.incumbent.offer(point):
            self.around = evidence

    def _repair(self, point: Point) -> list[Valley]:
        """Look for a robust point near a refuted one, and take it where it is nearer than the incumbent; return its valleys."""
        found = self.worst_rows.repaired(self.rest, point)
        if found is None:
            return []
        repaired, valleys = found
        if self.incumbent.is_nearer(repaired):
            refusing = self.incumbent.ask_around(self.rest, self.noise, repaired)
            if refusing.is_infeasible:
                self._accept(repaired, refusing.evidence)
        return valleys

    def _ask_while_nearer(self, problem: Problem, patience: float) -> Bounds | None:
        """Ask for the nearest point; ``None`` as soon as it is clear that none is nearer than the incumbent.

        Whether a point is robust is often seen long before it is proved nearest: a question is given little time at first.
        """
        until = time.monotonic() + MOST_OF_THE_TIME * self.incumbent.limits.remaining()
        if self.first is None:
            # The only question whose proof is of use: it is about all rows, without any copy.
            self.first = self.incumbent.ask(
                problem, Limits(until, record=self.incumbent.limits.record, effort=patience)
            )
            return self.first
        cutoff = self.incumbent.cutoff()
        if cutoff is None:
            return self.incumbent.ask(problem, Limits(until, effort=patience))
        enough = float_up(cutoff + ROUNDED)

        def look(lower: float, upper: float, calls: int) -> None:
            if lower >= enough:
                raise _Beaten

        try:
            return self.incumbent.ask(problem, Limits(until, look, effort=patience))
        except _Beaten:
            return None

    # ---- evidence

    def _evidence(self, lower: Fraction | None, left: list[NoisyBox]) -> Evidence:
        """Return the proofs: of the box around the answer, and of ``lower``.

        Where the nearest row of all is robust, the proof of the first question, without noise, is enough.
        """
        made: Evidence = {"lane": "robust", "places": [], "proof": None, "around": self.around, "missing": NO_PROOF}
        if getattr(self.solver, "ASKS_EVERY_ROW", False):
            return {**made, "proof": {"lane": "enumerate"}, "around": {"lane": "enumerate"}}
        first = self.first
        if first is not None and (first.is_infeasible or (lower is not None and first.lower >= lower)):
            made["proof"] = first.evidence
        elif self.is_proved_by_copies:
            made["proof"], made["missing"] = self._proofs(lower, self._closed_boxes(lower, left))
        return made

    def _closed_boxes(self, lower: Fraction | None, left: list[NoisyBox]) -> list[Closed]:
        """Return the boxes that were closed, and those that are left, without those that are too far."""
        found = list(self.closed)
        for box in left:
            if box.source is not None:
                found.append(box.source)
            else:
                parts = islice(self._parts_nearer(box.region, lower), MOST_BOXES + 1)
                found += [(part, tuple(self.copies.of(part, box.pinned))) for part in parts]
        near = [each for each in found if self._may_be_nearer(each[0], lower)]
        return outermost(near, lambda outer, inner: lies_in(inner[0], outer[0]), MOST_BOXES)

    def _parts_nearer(self, region: Region, lower: Fraction | None) -> Iterator[Region]:
        """Yield the parts of a box in which no offset leads out of the domain of some rows only, without those that are too far."""
        pending = [region]
        while pending:
            parts = self.copies.cut_at_a_turn(pending.pop())
            if len(parts) == 1:
                yield parts[0]
            else:
                pending += [part for part in parts if self._may_be_nearer(part, lower)]

    def _may_be_nearer(self, region: Region, lower: Fraction | None) -> bool:
        """Return whether a box may have rows nearer than a bound, with room for a checker that measures in rounded numbers."""
        return lower is None or self._nearest(region) < lower * BARELY

    def _proofs(self, lower: Fraction | None, boxes: list[Closed]) -> tuple[Evidence | None, str]:
        """Return the proof that no row nearer than ``lower`` brings its copies to the goal in any box; or why there is none."""
        if len(boxes) > MOST_BOXES:
            return None, f"the search closed {len(boxes):,} boxes, and at most {MOST_BOXES:,} have proofs"
        made: list[Evidence] = []
        for region, copies in boxes:
            if self.incumbent.limits.remaining() <= 0:
                return None, "the time limit left no time for the proof"
            proof = self._proof_of(shifted(inside(self.rest, region), copies), lower)
            if proof is None or "missing" in proof:
                return None, f"a box has no proof: {(proof or {}).get('missing', 'its lane makes none')}"
            moves = [self._written(each) for each in copies]
            ranges = ranges_dict(region, self.whole)
            made.append({"ranges": ranges, "moves": [each for each in moves if each], "proof": proof})
        return {"lane": "moved", "boxes": made}, ""

    def _proof_of(self, asked: Problem, lower: Fraction | None) -> Evidence | None:
        """Return the proof that nothing nearer than ``lower`` is in the goal of a question."""
        prove = getattr(self.solver, "prove", None)
        if prove is not None:
            limits = Limits(self.incumbent.limits.deadline, record=True)
            proof: Evidence | None = prove(asked, lower, self.incumbent.upper, limits)
            if proof is not None:
                return proof
        found = self.incumbent.ask(asked, record=True)
        return found.evidence if found.is_infeasible or (lower is not None and found.lower >= lower) else None

    def _written(self, moves: Moves) -> dict[str, dict[str, float]]:
        """Return how rows are moved, as evidence: without the features that stay."""
        return {
            name: {"at" if move.is_pinned else "by": float(move.number)}
            for name, move in zip(self.problem.space, moves, strict=True)
            if move != STAY
        }
