"""Conditions across features, for the lanes of our own: boxes cut until the conditions hold or fail on them.

The lane answers a box without the conditions that it cannot take; its answer bounds the box. Where the point that it finds fulfils
the conditions, the box is done. Otherwise the box is cut so that the point lies in no part: what a condition leaves of each part is
found by intervals, exactly.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from mace.clock import OutOfTime
from mace.constraints import Condition
from mace.constraints.condition import GuardCondition
from mace.constraints.typical import Usual
from mace.constraints.views import View
from mace.distances import point_values
from mace.exact import float_down, float_up, greatest_float, least_float
from mace.forms import Network
from mace.forms.decision import clearance
from mace.forms.scoring import column_values
from mace.language import holds, syntax
from mace.language.linear import nearly_linear
from mace.problem import INTERRUPTED, LATE, Bounds, Evidence, Limits, Problem, timed
from mace.reductions.regions import Range, Region, guard_of, lies_in, narrow, whole_region, within_reach
from mace.solvers.abilities import Solver, why_not_taken
from mace.solvers.boxes.branching import (
    active_piece,
    by_missing,
    by_value,
    choices,
    cut_at,
    cut_range,
    is_false,
    needed_atoms,
)
from mace.solvers.boxes.cuts import Cut, cut_of
from mace.solvers.domains import is_narrow, values_in
from mace.solvers.incumbent import BAND
from mace.space import Integer, Point, Real, Value
from mace.space.decimals import decimal_of, dtype_of, float_of

SHARE = Fraction(9, 10)
"""How much of the accuracy a box may lie below the point in hand and still be closed."""

MORE = 1 + Fraction(1, 2**40)

MOST_OPEN = 100_000

FAR_OFF = Fraction(1, 1000)
"""A score that lies so far outside of the goal is no matter of rounding."""

MOST_COMPARED = 500
"""So many boxes of a proof are compared with each other."""

FINEST = Fraction(1, 10**13)
"""A number whose range is down to this share of the whole is not cut further: floats may have no value there at all."""

NARROW = "the conditions leave only values that floats hardly tell apart"


Node = tuple[Region, tuple[Cut, ...]]
"""A box, and what is left to hold on it that is no guard."""


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
            cuts.append(cut_of(condition, problem, limits))
        else:
            return None
    asked = replace(problem, conditions=tuple(simple))
    return None if lane.supports(asked) else (asked, tuple(guards), tuple(cuts))


@timed
def solve(problem: Problem, limits: Limits, lane: Solver) -> Bounds:
    """Find the nearest counterfactual, the lane asked about box after box."""
    made = divided(problem, lane, limits)
    assert made is not None
    return _Search(problem, limits, lane, *made).run()


@dataclass(frozen=True, slots=True, eq=False)
class _Proved:
    """A box, the lower bound that was proved of it (``None``: it holds nothing at all), and the proof.

    The proof is about the model, or, where ``forest`` is a number, about that one of the isolation forests.
    """

    region: Region
    lower: Fraction | None
    evidence: Evidence | None
    forest: int | None = None

    def is_enough(self, lower: Fraction | None) -> bool:
        """Return whether it proves a lower bound; ``None`` is that there is nothing at all."""
        return self.lower is None or (lower is not None and self.lower >= lower)


def _better(first: _Proved | None, second: _Proved | None) -> _Proved | None:
    """Return which of two proofs proves more; the first where they are alike."""
    if first is None or second is None:
        return first or second
    return first if first.is_enough(second.lower) else second


class _Search:
    def __init__(
        self,
        problem: Problem,
        limits: Limits,
        lane: Solver,
        asked: Problem,
        guards: tuple[syntax.Guard, ...],
        cuts: tuple[Cut, ...],
    ) -> None:
        self.problem, self.limits, self.lane, self.asked, self.guards = problem, limits, lane, asked, guards
        self.cuts = cuts
        self.whole = whole_region(problem.space, problem.factual)
        self.is_finite = all(feature.size is not None for feature in problem.space.values())
        self.stepped = [
            (name, feature, own)
            for (name, feature), own in zip(problem.space.items(), problem.factual, strict=True)
            if (isinstance(feature, Real | Integer) and feature.step is not None and feature.size != 1)
            or (isinstance(feature, Real) and is_narrow(feature))
        ]
        self.upper: Fraction | None = None
        self.point: Point | None = None
        self.closed: Fraction | None = None
        self.calls = self.boxes = 0
        self.reason = ""
        self.narrow = False
        self.waiting: list[tuple[Fraction, int, Region, tuple[Cut, ...], _Proved | None]] = []
        self.proofs: dict[int, _Proved | None] = {}
        self.tried: set[Point] = set()
        plain = tuple(condition for condition in problem.conditions if not isinstance(condition, Usual))
        self.without_forests = replace(problem, conditions=plain)
        self.seen: set[tuple[Range, ...]] = set()
        self.serial = itertools.count()

    def run(self) -> Bounds:
        self._push(Fraction(0), self.whole, self.cuts, None)
        while self.waiting:
            lower, _, region, cuts, proved = heapq.heappop(self.waiting)
            if self.limits.remaining() <= 0:
                self.reason = LATE
            elif len(self.waiting) > MOST_OPEN:
                self.reason = "memory limit reached"
            elif not self._is_beaten(lower):
                try:
                    self._box(lower, region, cuts, proved)
                except KeyboardInterrupt:
                    self.reason = INTERRUPTED
                except OutOfTime:
                    self.reason = LATE
                if not self.reason:
                    continue
            self._close(lower, proved)
            break
        for _, _, _, _, proved in self.waiting:
            self._keep(proved)
        return self._bounds()

    def _push(self, lower: Fraction, region: Region, cuts: tuple[Cut, ...], proved: _Proved | None) -> None:
        """Put what the conditions leave of a box in the queue, with the lower bound of the box that it is a part of."""
        left = self._narrowed(region)
        kept: list[Cut] = []
        for cut in cuts:
            if left is None:
                return
            made = cut.narrow(left)
            if made.proof is not None:
                floor = None if made.region is None else made.floor
                proved = _better(proved, _Proved(left, floor, made.proof, self._number_of(cut)))
            if made.region is None:
                if proved is not None and proved.lower is None:
                    self._keep(proved)
                return
            left, lower = made.region, max(lower, made.floor)
            kept.append(made.cut)
        if left is None:
            return
        # What is left of a cut may differ where the ranges do not.
        if not kept and tuple(left.values()) in self.seen:
            return
        self.seen.add(tuple(left.values()))
        heapq.heappush(self.waiting, (lower, next(self.serial), left, tuple(kept), proved))

    def _number_of(self, cut: Cut) -> int:
        """Return which of the isolation forests of the problem a cut is about."""
        forests = [condition for condition in self.problem.conditions if isinstance(condition, Usual)]
        return next(number for number, condition in enumerate(forests) if condition is cut.condition)

    def _narrowed(self, region: Region) -> Region | None:
        """Return what grids and guards leave of a box; ``None`` where that is nothing."""
        left: Region | None = region
        for name, feature, own in self.stepped:
            if left is not None:
                left = _on_grid(left, name, feature, own)
        for guard in self.guards:
            left = None if left is None else narrow(guard, left)
        return left

    def _is_beaten(self, lower: Fraction) -> bool:
        if self.upper is None:
            return False
        return lower >= (self.upper if self.is_finite else self.upper - SHARE * self.problem.accuracy)

    def _close(self, lower: Fraction, proved: _Proved | None) -> None:
        self.closed = lower if self.closed is None else min(self.closed, lower)
        self._keep(proved)

    def _keep(self, proved: _Proved | None) -> None:
        self.proofs[id(proved)] = proved

    # ---- one box

    def _box(self, lower: Fraction, region: Region, cuts: tuple[Cut, ...], proved: _Proved | None) -> None:
        """Ask the lane about a box; close it, or cut it. ``lower`` is what was ``proved`` of a box around it."""
        within = within_reach(self.problem, region, self.upper)
        within = None if within is None else self._narrowed(within)
        if within is None:
            # What is left out fails a condition, or is no nearer than the point in hand.
            if self.upper is not None:
                self.closed = self.upper if self.closed is None else min(self.closed, self.upper)
            return
        region = within
        guards = [guard_of(name, left, self.whole[name]) for name, left in region.items() if left != self.whole[name]]
        asked = replace(self.asked, conditions=(*self.asked.conditions, *map(GuardCondition, guards)))
        found = self.lane.solve(asked, Limits(self.limits.deadline, record=self.limits.record))
        if found.reason == INTERRUPTED:
            raise KeyboardInterrupt
        self.boxes += 1
        self.calls += found.calls
        if found.evidence is not None and "missing" in found.evidence and self.limits.remaining() <= 0:
            # There was no time for its proof: what was proved before is claimed.
            if found.point is not None and self._failing(found.point, cuts) is None:
                self._accept(found.point)
            self._close(lower, proved)
            self.reason = found.reason or LATE
            return
        mine = _Proved(region, None if found.is_infeasible else found.lower, found.evidence)
        lower, proved = max(lower, found.lower), _better(mine, proved)
        if found.is_infeasible:
            self._keep(proved)
            return
        if found.point is None or self._is_beaten(lower):
            self._close(lower, proved)
            if found.point is None:
                self.reason = found.reason
            return
        failing = self._failing(found.point, cuts)
        if failing is None:
            self._accept(found.point)
            self._close(lower, proved)
            return
        if isinstance(failing, syntax.Guard):
            repaired = self._repaired(found.point, failing)
            parts = _beside(cuts, self._parts(region, found.point, failing))
        else:
            repaired = failing.repaired(found.point, partial(_in_domain, self.problem))
            parts = self._sides(region, cuts, found.point, failing)
        for other in repaired:
            if self.limits.remaining() <= 0:
                break
            self._accept(other)
        if parts is None:
            self._close(lower, proved)
            self.narrow = True
        for part, its_cuts in parts or ():
            self._push(lower, part, its_cuts, proved)
        self._report(lower)

    def _failing(self, point: Point, cuts: tuple[Cut, ...]) -> syntax.Guard | Cut | None:
        values = point_values(self.problem.space, point)
        for guard in self.guards:
            if not holds(guard, values):
                return guard
        return next((cut for cut in cuts if not cut.may_hold(point, values)), None)

    def _accept(self, point: Point) -> None:
        if point in self.tried:
            return
        self.tried.add(point)
        distance = self.problem.distance(point)
        if self.upper is not None and distance >= self.upper:
            return
        if _is_refused(self.problem, point) or not self.without_forests.is_plausible(point):
            return
        # A forest of outliers takes longer than most models.
        if self.problem.is_reached(point) and self.problem.is_plausible(point):
            self.upper, self.point = distance, point

    # ---- cuts

    def _parts(self, region: Region, point: Point, failing: syntax.Guard) -> list[Region] | None:
        """Return the parts of a box, cut where the point fails a guard; ``None`` where it is too narrow to be cut."""
        at = dict(zip(self.problem.space, point, strict=True))
        values = point_values(self.problem.space, point)
        for atom in needed_atoms(failing):
            parts = choices(atom, region, values) if is_false(atom, values) else None
            if parts is not None:
                return parts
        for atom in self._failing_atoms(failing, point):
            for name, shift in self._shifts(atom, at):
                value = at[name]
                assert value is not None
                bound = Fraction(value) + shift
                if len(syntax.variables(atom)) == 1:
                    cut = (
                        cut_at(region[name], bound)
                        if atom.name == "=="
                        else cut_range(region[name], bound, above=shift > 0)
                    )
                elif abs(shift) < FINEST * self._range(name):
                    continue
                else:
                    cut = cut_range(region[name], (Fraction(value) + bound) / 2, above=shift > 0)
                if len(cut) > 1:
                    return [region | {name: part} for part in cut]
        return self._split_somewhere(region, at, sorted(syntax.variables(failing)))

    def _sides(self, region: Region, cuts: tuple[Cut, ...], point: Point, failing: Cut) -> list[Node] | None:
        """Return the parts of a box where a condition that is no guard fails; ``None`` where it is too narrow to be cut."""
        if all(left.is_single for left in region.values()):
            return []
        sides = failing.sides(point)
        if sides is not None:
            return [(region, tuple(side if cut is failing else cut for cut in cuts)) for side in sides]
        for name, at, above in failing.places(point):
            left = region[name]
            cut = cut_at(left, at) if left.levels is not None else cut_range(left, at, above=above)
            if len(cut) > 1:
                return _beside(cuts, [region | {name: part} for part in cut])
        at_point = dict(zip(self.problem.space, point, strict=True))
        return _beside(cuts, self._split_somewhere(region, at_point, list(self.problem.space)))

    def _split_somewhere(self, region: Region, at: dict[str, Value], names: list[str]) -> list[Region] | None:
        """Cut a box at some feature: being missing, the factual's own value, the level of the point, or in the middle."""
        own = dict(zip(self.problem.space, self.problem.factual, strict=True))
        for cut in (by_missing, by_value):
            for value, name in itertools.chain(
                ((own[name], name) for name in names), ((at[name], name) for name in names)
            ):
                parts = cut(region[name], value, is_own=value == own[name])
                if len(parts) > 1:
                    return [region | {name: part} for part in parts]
        width = {name: (region[name].high - region[name].low) / self._range(name) for name in names}
        for name in sorted(names, key=lambda name: -width[name]):
            parts = cut_range(region[name], (region[name].low + region[name].high) / 2, above=False)
            if len(parts) > 1 and (region[name].is_whole or width[name] > FINEST):
                return [region | {name: part} for part in parts]
        return None

    def _failing_atoms(self, guard: syntax.Guard, point: Point) -> Iterator[syntax.Compare]:
        """Yield the comparisons that fail at a point and that the guard fails by."""
        values = point_values(self.problem.space, point)
        pending = [guard]
        while pending:
            match pending.pop():
                case syntax.Not(part):
                    if not isinstance(part, syntax.Compare | syntax.And | syntax.Or | syntax.Not):
                        continue
                    pending.append(syntax.negation(part))
                case syntax.And(parts) | syntax.Or(parts):
                    pending.extend(part for part in parts if is_false(part, values))
                case syntax.Compare() as atom:
                    yield atom
                case _:
                    pass

    def _shifts(self, atom: syntax.Compare, at: dict[str, Value]) -> list[tuple[str, Fraction]]:
        """Return by how much each number, moved alone, would have to change for a linear comparison to hold; the least first."""
        if atom.name == "!=" or any(at[name] is None for name in syntax.variables(atom)):
            return []
        values = {name: None if value is None else Fraction(value) for name, value in at.items()}
        form = nearly_linear(
            syntax.Compare(atom.name, active_piece(atom.left, values), active_piece(atom.right, values))
        )
        if form is None:
            return []
        coefficients, rest = form
        known = {name: decimal_of(self.problem.space[name], at[name] or 0) for name in coefficients}
        residual = rest + sum((a * known[name] for name, a in coefficients.items()), Fraction(0))
        shifts = [(name, -residual / a) for name, a in coefficients.items() if a and self.whole[name].levels is None]
        if atom.name in ("<", ">"):
            inside = self.problem.accuracy / (8 * len(self.problem.space))
            signs = {name: 1 if (a > 0) == (atom.name == ">") else -1 for name, a in coefficients.items()}
            shifts = [(name, shift + signs[name] * inside * self._range(name)) for name, shift in shifts]
        return sorted(shifts, key=lambda pair: abs(pair[1]) / self._range(pair[0]))

    def _range(self, name: str) -> Fraction:
        return self.problem.space[name].range or Fraction(1)

    def _repaired(self, point: Point, failing: syntax.Guard) -> Iterator[Point]:
        """Yield the point with one number moved so that a failing comparison holds."""
        names = list(self.problem.space)
        at = dict(zip(names, point, strict=True))
        for atom in self._failing_atoms(failing, point):
            for name, shift in self._shifts(atom, at):
                j, value = names.index(name), at[name]
                assert value is not None
                number = decimal_of(self.problem.space[name], value) + shift
                feature = self.problem.space[name]
                if atom.name == "==" and feature.size is None:
                    yield (*point[:j], min(max(float_of(feature, number), feature.low), feature.high), *point[j + 1 :])
                moved = _in_domain(self.problem, j, number, shift > 0)
                yield (*point[:j], moved, *point[j + 1 :])

    # ---- the end

    def _report(self, lower: Fraction) -> None:
        if self.limits.on_progress is not None:
            upper = math.inf if self.upper is None else float_up(self.upper)
            self.limits.on_progress(float_down(lower), upper, self.calls)

    def _bounds(self) -> Bounds:
        notes = {"boxes": self.boxes}
        if self.upper is None and self.closed is None:
            evidence = self._evidence(None)
            return Bounds(Fraction(0), is_infeasible=True, calls=self.calls, notes=notes, evidence=evidence)
        lowers = [self.closed] if self.closed is not None else []
        lowers += [self.upper] if self.upper is not None else []
        lower = min(lowers)
        gap = self.upper is None or self.upper - lower > self.problem.accuracy
        reason = (self.reason or (NARROW if self.narrow else BAND)) if gap else ""
        return Bounds(
            lower, self.upper, self.point, reason=reason, calls=self.calls, notes=notes, evidence=self._evidence(lower)
        )

    def _evidence(self, lower: Fraction | None) -> Evidence | None:
        """Return the boxes that no part of was asked about again, each with its proof; ``None`` where one has none.

        A box whose proof does not reach ``lower`` was closed by its distance from data, which a checker finds itself.
        """
        if not self.limits.record:
            return None
        enough = [proved for proved in self.proofs.values() if proved is not None and proved.is_enough(lower)]
        boxes: list[dict[str, Any]] = []
        for proved in _largest(enough):
            if proved.evidence is None:
                return None
            ranges = {name: range_dict(left) for name, left in proved.region.items() if left != self.whole[name]}
            about = {} if proved.forest is None else {"forest": proved.forest}
            boxes.append({"ranges": ranges, **about, "proof": proved.evidence})
        if any(box["proof"]["lane"] == "milp" for box in boxes):
            # Such proofs are checked by asking the whole question again.
            excluded = [row for box in boxes for row in box["proof"].get("excluded", ())]
            return {"lane": "milp", "excluded": excluded}
        return {"lane": "boxes", "boxes": boxes}


def _largest(proofs: list[_Proved]) -> list[_Proved]:
    """Return proofs without those of boxes that lie in another's; all of them where they are many."""
    if len(proofs) > MOST_COMPARED:
        return proofs
    kept: list[_Proved] = []
    for proved in proofs:
        if not any(lies_in(proved.region, other.region) for other in kept):
            kept = [other for other in kept if not lies_in(other.region, proved.region)]
            kept.append(proved)
    return kept


def range_dict(left: Range) -> dict[str, Any]:
    """Return a range for a certificate; of a range of numbers its least and greatest float."""
    if left.levels is not None:
        return {"levels": sorted(left.levels), "missing": left.missing}
    return {"low": float_up(left.low), "high": float_down(left.high), "missing": left.missing}


def _is_refused(problem: Problem, point: Point) -> bool:
    """Return whether a network's scores, in floats, are so far from the goal that there is no need to ask."""
    form = problem.form
    if not isinstance(form, Network):
        return False
    scores = form.float_scores(column_values(form.columns, [point]))[0]
    if not np.isfinite(scores).all():
        return False
    alternatives = problem.goal.alternatives(len(scores), ties_last=form.ties_last)
    return clearance([Fraction(float(score)) for score in scores], alternatives) < -FAR_OFF


def _beside(cuts: tuple[Cut, ...], parts: list[Region] | None) -> list[Node] | None:
    return None if parts is None else [(part, cuts) for part in parts]


def _on_grid(region: Region, name: str, feature: Real | Integer, own: Value) -> Region | None:
    """Return a box with the range of a feature as narrow as the values of its grid, and the factual's own, in it."""
    left = region[name]
    if not left.has_values:
        return region
    first, last = values_in(feature, np.array([float_up(left.low)]), np.array([float_down(left.high)]))
    low, high = float(first[0]), float(last[0])
    if own is not None and left.low <= own <= left.high:
        low, high = min(low, own), max(high, own)
    kept = left.between(Fraction(low), Fraction(high)) if low <= high else left.nothing_but_missing()
    return None if kept.is_empty else region if kept == left else region | {name: kept}


def _in_domain(problem: Problem, j: int, number: Fraction, above: bool) -> Value:
    """Return the value of a feature that is written as a number, or the next one on the side given."""
    feature = list(problem.space.values())[j]
    if isinstance(feature, Real | Integer) and feature.step is not None:
        low, step = feature.decimals if isinstance(feature, Real) else (Fraction(feature.low), Fraction(feature.step))
        k = math.ceil((number - low) / step) if above else math.floor((number - low) / step)
        return feature.value_at(min(max(k, 0), (feature.size or 1) - 1))
    if not isinstance(feature, Real):
        return math.ceil(number) if above else math.floor(number)
    found = least_float(number, dtype_of(feature)) if above else greatest_float(number, dtype_of(feature))
    return min(max(found, feature.low), feature.high)
