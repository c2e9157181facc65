"""Conditions across features, for the lanes of our own: a best-first search over boxes.

The lane answers a box without the conditions that it cannot take; its answer bounds the box. Where the point that it finds fulfils
the conditions, the box is done. Otherwise the condition that fails says where the box is branched, and narrows each part.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from mace.constraints import Condition
from mace.constraints.near_data import Neighbour, Neighbours
from mace.constraints.views import View
from mace.distances import point_values
from mace.forms import Network
from mace.forms.decision import clearance
from mace.forms.scoring import column_values
from mace.language import syntax
from mace.problem import INTERRUPTED, LATE, SPENT, Bounds, Evidence, Limits, Problem, timed
from mace.reductions.noise_box import inside
from mace.reductions.regions import Range, Region, has_point, lies_in, whole_region, within_reach
from mace.solvers.abilities import Solver, why_not_taken
from mace.solvers.boxes.best_first import BestFirst, outermost, ranges_dict
from mace.solvers.boxes.cuts import CUTS, Cut
from mace.solvers.boxes.guards import GuardsCut
from mace.solvers.incumbent import BAND, Incumbent
from mace.space import Point

FAR_OFF = Fraction(1, 1000)
"""A score this far outside of the goal is outside whatever the rounding."""

MOST_NODES = 1000
"""Nodes after which a lane is no longer asked to stay near rows of data."""

MOST_COMPARED = 500
"""The most boxes of a proof that are compared with each other."""

MOST_EXACT = 16
"""Boxes after which a search that keeps to data ends within the accuracy on a finite space, too: many rows are about as near data."""

NARROW = "the conditions leave only values that floats hardly tell apart"


def divided(
    problem: Problem, lane: Solver, limits: Limits | None = None
) -> tuple[Problem, tuple[syntax.Guard, ...], tuple[Cut, ...]] | None:
    """Return the problem that a lane can take, and what is left; ``None`` where it cannot take it that way either."""
    limits = limits or Limits()
    simple: list[Condition] = []
    guards: list[syntax.Guard] = []
    cuts: list[Cut] = []
    for condition in problem.conditions:
        if not why_not_taken(condition, lane.TAKES, problem.space):
            simple.append(condition)
        elif not condition.why_not(View.GUARD, problem.space):
            guards.append(condition.formula(""))
        elif not condition.why_not(View.CUT, problem.space):
            cuts.append(CUTS.load(getattr(condition, "cut", ""))(condition, problem, limits))
        else:
            return None
    asked = replace(problem, conditions=tuple(simple))
    return None if lane.supports(asked) else (asked, tuple(guards), tuple(cuts))


@timed
def solve(problem: Problem, limits: Limits, lane: Solver) -> Bounds:
    """Find the nearest counterfactual, the lane asked about box after box."""
    made = divided(problem, lane, limits)
    assert made is not None
    asked, guards, cuts = made
    return ConditionSearch(problem, limits, lane, asked, GuardsCut(problem, guards)).run(cuts)


@dataclass(frozen=True, slots=True, eq=False)
class ProvedBox:
    """A box, the lower bound that was proved of it (``None``: it holds nothing at all), and the proof.

    The proof is about the model, or, where ``forest`` is a number, about that one of the isolation forests. It is about those rows of the
    box that have these ``neighbours``.
    """

    region: Region
    lower: Fraction | None
    evidence: Evidence | None
    forest: int | None = None
    neighbours: tuple[Neighbour, ...] = ()

    def is_enough(self, lower: Fraction | None) -> bool:
        """Return whether it proves a lower bound; ``None`` is that there is nothing at all."""
        return self.lower is None or (lower is not None and self.lower >= lower)


def _better(first: ProvedBox | None, second: ProvedBox | None) -> ProvedBox | None:
    """Return which of two proofs proves more; the first where they prove the same."""
    if first is None or second is None:
        return first or second
    return first if first.is_enough(second.lower) else second


@dataclass(frozen=True, slots=True, eq=False)
class OpenBox:
    """An open box: its ranges, the conditions left to hold on it, guards first, and what is proved of a box around it.

    ``neighbours`` are the rows of data that the lane is asked to stay near, ``undecided`` is a condition that is
    branched on without a point, ``found`` is what the lane found in the box that this is a part of.
    """

    region: Region
    cuts: tuple[Cut, ...]
    neighbours: tuple[Neighbour, ...] = ()
    undecided: Cut | None = None
    proved: ProvedBox | None = None
    found: Bounds | None = None


class ConditionSearch:
    """One question with conditions that its lane cannot take."""

    def __init__(self, problem: Problem, limits: Limits, lane: Solver, asked: Problem, guards: GuardsCut) -> None:
        self.problem, self.limits, self.lane, self.asked, self.guards = problem, limits, lane, asked, guards
        self.whole = whole_region(problem.space, problem.factual)
        self.incumbent = Incumbent(problem, limits)
        self.queue: BestFirst[OpenBox] = BestFirst(self.incumbent, self._examine)
        self.boxes = 0
        self.most_exact = math.inf
        self.is_near = True
        self.doubt = BAND
        self.proofs: dict[int, ProvedBox | None] = {}
        self.seen: set[tuple[Range, ...]] = set()

    def run(self, cuts: tuple[Cut, ...]) -> Bounds:
        """Search under guards and cuts, and return what is proved."""
        self.most_exact = MOST_EXACT if cuts else math.inf
        self._push(Fraction(0), OpenBox(self.whole, (self.guards, *cuts)))
        for box in self.queue.run():
            self._keep(box.proved)
        bounds = self.queue.bounds(self.doubt, {"boxes": self.boxes})
        return replace(bounds, evidence=self._evidence(None if bounds.is_infeasible else bounds.lower))

    def _push(self, lower: Fraction, box: OpenBox) -> None:
        """Open what the conditions leave of a box; ``lower`` bounds the box that it is a part of."""
        region, proved = box.region, box.proved
        kept: list[Cut] = []
        neighbours: list[Neighbour] = []
        undecided: Cut | None = None
        for cut in box.cuts:
            made = cut.narrow(region)
            if made.proof is not None:
                floor = None if made.region is None else made.floor
                proved = _better(proved, ProvedBox(region, floor, made.proof, made.forest))
            if made.region is None:
                if proved is not None and proved.lower is None:
                    self._keep(proved)
                return
            region, lower = made.region, max(lower, made.floor)
            kept.append(made.cut)
            undecided = made.cut if undecided is None and made.is_undecided else undecided
            neighbours += [
                each for each in made.neighbours if not why_not_taken(each, self.lane.TAKES, self.problem.space)
            ]
        # Where there are more conditions than guards, equal boxes may differ in what is left of a condition.
        if len(kept) == 1 and tuple(region.values()) in self.seen:
            return
        self.seen.add(tuple(region.values()))
        self.queue.push(lower, OpenBox(region, tuple(kept), tuple(neighbours), undecided, proved, box.found))

    def _close(self, lower: Fraction, proved: ProvedBox | None) -> None:
        self.queue.close(lower)
        self._keep(proved)

    def _keep(self, proved: ProvedBox | None) -> None:
        self.proofs[id(proved)] = proved

    # ---- one box

    def _examine(self, lower: Fraction, box: OpenBox) -> None:
        """Ask the lane about a box; close it, or branch. ``lower`` is what was proved of a box around it."""
        near = within_reach(self.problem, box.region, self.incumbent.upper)
        region = None if near is None else self.guards.narrow(near).region
        if region is None:
            # What is left out fails a condition, or is no nearer than the incumbent.
            if self.incumbent.upper is not None:
                self.queue.close(self.incumbent.upper)
            return
        if box.found is not None and self._is_found_in(region, box):
            # What is nearest in a box is nearest in each part that has it.
            self._settle(max(lower, box.found.lower), replace(box, region=region), box.found)
            return
        if box.undecided is not None and box.found is not None and _is_beyond(lower, region, box.found):
            self._branch(lower, replace(box, region=region), box.found.point, box.undecided)
            return
        found, neighbours = self._ask(region, box)
        if found.reason == INTERRUPTED:
            raise KeyboardInterrupt
        self.boxes += 1
        self.queue.is_exact &= self.boxes < self.most_exact
        self.incumbent.calls += found.calls
        if found.evidence is not None and "missing" in found.evidence and self.limits.remaining() <= 0:
            # There was no time for its proof: only what was proved before is claimed.
            if found.point is not None and self._failing(found.point, box.cuts) is None:
                self._offer(found.point)
            self._close(lower, box.proved)
            self.incumbent.reason = found.reason or LATE
            return
        mine = ProvedBox(region, None if found.is_infeasible else found.lower, found.evidence, neighbours=neighbours)
        proved = _better(mine, box.proved)
        if found.is_infeasible:
            self._keep(proved)
        else:
            self._settle(max(lower, found.lower), OpenBox(region, box.cuts, box.neighbours, None, proved), found)

    def _ask(self, region: Region, box: OpenBox) -> tuple[Bounds, tuple[Neighbour, ...]]:
        """Ask the lane about what is left of a box; return what it found, and the rows near which it was asked for it.

        Once a question near rows takes many nodes, none is asked any more: what distances from rows rule out is weak where cells are wide,
        and a lane may have stronger bounds without them.
        """
        limits = Limits(self.limits.deadline, record=self.limits.record, within=self.incumbent.upper)
        if box.neighbours and self.is_near:
            near = replace(self.asked, conditions=(*self.asked.conditions, *box.neighbours))
            found = self.lane.solve(inside(near, region), replace(limits, effort=MOST_NODES))
            if found.reason != SPENT:
                return found, box.neighbours
            self.is_near = False
        return self.lane.solve(inside(self.asked, region), limits), ()

    def _settle(self, lower: Fraction, box: OpenBox, found: Bounds) -> None:
        """Close a box in which the lane has ``found`` something, or branch."""
        if found.point is None or self.queue.is_beaten(lower):
            self._close(lower, box.proved)
            if found.point is None:
                self.incumbent.reason = found.reason
        elif (failing := self._failing(found.point, box.cuts)) is None:
            self._offer(found.point)
            self._close(lower, box.proved)
        else:
            self._branch(lower, replace(box, found=found), found.point, failing)

    def _branch(self, lower: Fraction, box: OpenBox, point: Point | None, failing: Cut) -> None:
        """Open the parts of a box whose nearest point fails a condition; close the box where it is too narrow to be cut."""
        assert point is not None
        parts = failing.branch(box.region, point)
        for other in failing.repaired(point):
            if self.limits.remaining() <= 0:
                break
            self._offer(other)
        if parts is None:
            self._close(lower, box.proved)
            self.doubt = NARROW
        for region, left in parts or ():
            cuts = tuple(left if cut is failing else cut for cut in box.cuts)
            self._push(lower, replace(box, region=region, cuts=cuts))
        self.queue.report()

    def _is_found_in(self, region: Region, box: OpenBox) -> bool:
        """Return whether the nearest point of the box around a box is known, and is one of what is left of it."""
        found = box.found
        if found is None or found.point is None or found.reason or not has_point(region, found.point):
            return False
        values = point_values(self.problem.space, found.point)
        return all(each.holds(values) for each in box.neighbours)

    def _failing(self, point: Point, cuts: tuple[Cut, ...]) -> Cut | None:
        values = point_values(self.problem.space, point)
        return next((cut for cut in cuts if not cut.may_hold(point, values)), None)

    def _offer(self, point: Point) -> None:
        """Offer a point to the incumbent, unless a network's scores are far off."""
        if self.incumbent.is_nearer(point) and not _is_far_off(self.problem, point):
            self.incumbent.offer(point)

    # ---- evidence

    def _evidence(self, lower: Fraction | None) -> Evidence | None:
        """Return the closed boxes, each with its proof; ``None`` where one has none.

        A box whose proof does not reach ``lower`` was closed by its distance from data, which a checker finds itself.
        """
        if not self.limits.record:
            return None
        enough = [proved for proved in self.proofs.values() if proved is not None and proved.is_enough(lower)]
        boxes: list[dict[str, Any]] = []
        for proved in outermost(enough, _holds_all, MOST_COMPARED):
            if proved.evidence is None:
                return None
            about: dict[str, Any] = {} if proved.forest is None else {"forest": proved.forest}
            if proved.neighbours:
                about["neighbours"] = self._neighbours(proved)
            boxes.append({"ranges": ranges_dict(proved.region, self.whole), **about, "proof": proved.evidence})
        listed = next((box["proof"] for box in boxes if "excluded" in box["proof"]), None)
        if listed is not None:
            # Proofs that list excluded rows are checked by asking the whole question again.
            return {**listed, "excluded": [row for box in boxes for row in box["proof"].get("excluded", ())]}
        return {"lane": "boxes", "boxes": boxes}

    def _neighbours(self, proved: ProvedBox) -> list[list[int]]:
        """Return the rows that a proof takes for neighbours: the number of their ``near_data`` among all, and their own."""
        each = [condition for condition in self.problem.conditions if isinstance(condition, Neighbours)]
        return sorted(
            [next(n for n, data in enumerate(each) if data is near.data), near.row] for near in proved.neighbours
        )


def _is_beyond(lower: Fraction, region: Region, found: Bounds) -> bool:
    """Return whether all rows of a box, of which there are several, are farther than the nearest point around it that the lane found.

    Asking it again would hardly tell more.
    """
    is_single = all(left.is_single for left in region.values())
    return found.point is not None and found.lower < lower and not is_single


def _holds_all(outer: ProvedBox, inner: ProvedBox) -> bool:
    """Return whether all that one proof is about is in the box of another, and that is about it."""
    return _keys(outer) <= _keys(inner) and lies_in(inner.region, outer.region)


def _keys(proved: ProvedBox) -> set[tuple[int, int]]:
    return {(id(each.data), each.row) for each in proved.neighbours}


def _is_far_off(problem: Problem, point: Point) -> bool:
    """Return whether a network's scores, in floats, are so far from the goal that the model need not be asked."""
    form = problem.form
    if not isinstance(form, Network):
        return False
    scores = form.float_scores(column_values(form.columns, [point]))[0]
    if not np.isfinite(scores).all():
        return False
    return clearance([Fraction(float(score)) for score in scores], form.alternatives(problem.goal)) < -FAR_OFF
