"""Answers that noise does not undo: the lane is asked for the nearest point, then for a row beside it that is not in the target.

Where there is such a row, the lane finds a box of rows around it none of which is in the target; no answer lies within the noise of that
box, which is cut out. For networks the model shifted by the noise is asked for as well, which a robust answer must reach too. Tree
ensembles have a search of their own (:mod:`mace.solvers.robust.trees`).
"""

from __future__ import annotations

import heapq
import itertools
import math
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mace.clock import OutOfTime
from mace.constraints.robust import Sturdy
from mace.distances import NormMetric, as_distance, distance_down
from mace.exact import float_down, float_up
from mace.forms import Network, TreeEnsemble
from mace.problem import INTERRUPTED, LATE, Bounds, Evidence, Limits, Problem, timed
from mace.reductions.noise_box import Choose, around, beside, inside
from mace.reductions.regions import Range, Region, lies_in, whole_region, within_reach
from mace.reductions.shifted_network import (
    STAY,
    Move,
    Moves,
    Offset,
    kept_inside,
    margin_of,
    shifted,
    span,
    steepest,
    worst_beside,
)
from mace.reductions.tree_copies import NoCopies
from mace.solvers import network
from mace.solvers.boxes.search import range_dict
from mace.solvers.robust import trees as places
from mace.solvers.robust.ranges import as_values, cut_at_turn, only, outside, turn_of, value_between
from mace.space import Integer, Point, Real, Value
from mace.space.decimals import is_exact

HALVINGS = 6
"""How often the end of a box of refused rows is looked for between two."""

MOST_OFFSETS = 6
"""So many shifted copies of a network are asked for together."""

MOST_HELD = 12
"""So many places of a network are held at most in one box."""

ALMOST = 1e-2
"""A point that lacks no more than this at worst, in the unit of the scores, is likely to have a robust one beside it."""

PATIENCE, MOST_OF_THE_TIME = 0.1, 0.7
"""Seconds that a question may take at first, and the share of the time left that it may take at most."""


ROUNDED = 1e-9
"""More than a lower bound that is told of progress is rounded."""

SHARE = Fraction(9, 10)
"""How much of the accuracy a box may lie below the point in hand and still be closed."""

MOST_OPEN = 100_000
NO_PROOF = "the search rests on boxes of refused rows or on a target that is reached in several ways, of which there is no proof"

BARELY = 1 + Fraction(1, 2**40)
MOST_BOXES = 1000
"""So many boxes have proofs at most."""

Waiting = tuple[Fraction, int, Region, tuple[Moves, ...], float, "Closed | None"]
"""A box: a distance below which it has no robust row, its number, what it is, the places held, for how long it is asked about, and where
that distance comes from, if not from the box itself."""

Closed = tuple[Region, tuple[Moves, ...]]
"""A box, and the copies that no row of it nearer than some distance brings to the goal together."""

OPEN = "the box around points between lower and upper is neither proved nor refuted"


@timed
def solve(problem: Problem, limits: Limits, choose: Choose, lane: str) -> Bounds:
    """Find the nearest counterfactual that noise does not undo, with a lane that takes the problem without noise."""
    if isinstance(problem.form, TreeEnsemble):
        sturdy = next(each for each in problem.conditions if isinstance(each, Sturdy))
        rest = replace(problem, conditions=tuple(each for each in problem.conditions if each is not sturdy))
        with suppress(NoCopies):
            return places.Search(rest, sturdy, limits, choose, narrows=lane == "trees").run()
    return _Search(problem, limits, choose, lane).run()


class _Beaten(Exception):
    """Nothing that is still sought is nearer than the point in hand."""


class _Search:
    def __init__(self, problem: Problem, limits: Limits, choose: Choose, lane: str) -> None:
        self.problem, self.limits, self.choose, self.lane = problem, limits, choose, lane
        self.sturdy = next(each for each in problem.conditions if isinstance(each, Sturdy))
        others = tuple(each for each in problem.conditions if not isinstance(each, Sturdy))
        self.rest = replace(problem, conditions=others)
        self.whole = whole_region(problem.space, problem.factual)
        self.is_finite = all(feature.size is not None for feature in problem.space.values())
        self.offsets: list[Offset] = []
        self.upper: Fraction | None = None
        self.point: Point | None = None
        self.closed: Fraction | None = None
        self.first: Bounds | None = None
        self.around: Evidence | None = None
        self.calls = 0
        self.reason = self.doubt = ""
        self.patience = PATIENCE if isinstance(problem.form, Network) else math.inf
        self.waiting: list[Waiting] = []
        self.proofs: list[Closed] | None = []
        self.serial = itertools.count()

    def run(self) -> Bounds:
        """Search; then prove what was found where that is asked for."""
        if not self.limits.record:
            return self._run()
        limits = self.limits
        self.limits = limits.first_half()
        bounds = self._run()
        self.limits = limits
        lower = None if bounds.is_infeasible else bounds.lower
        try:
            return replace(bounds, evidence=self._evidence(lower))
        except (KeyboardInterrupt, OutOfTime):
            return bounds

    def _run(self) -> Bounds:
        self._push(Fraction(0), self.whole, ())
        while self.waiting:
            lower, _, region, held, self.patience, source = heapq.heappop(self.waiting)
            if self.limits.remaining() <= 0 or len(self.waiting) > MOST_OPEN:
                self.reason = LATE if self.limits.remaining() <= 0 else "memory limit reached"
            elif not self._is_beaten(lower):
                try:
                    self._box(lower, region, held, source)
                except KeyboardInterrupt:
                    self.reason = INTERRUPTED
                except OutOfTime:
                    self.reason = LATE
                if not self.reason:
                    continue
            heapq.heappush(self.waiting, (lower, next(self.serial), region, held, self.patience, source))
            self._close(lower)
            break
        if self.upper is None and self.closed is None:
            return Bounds(Fraction(0), is_infeasible=True, calls=self.calls)
        lower = min(each for each in (self.upper, self.closed) if each is not None)
        gap = self.upper is None or self.upper - lower > self.problem.accuracy
        reason = (self.reason or self.doubt or OPEN) if gap else ""
        return Bounds(lower, self.upper, self.point, reason=reason, calls=self.calls)

    def _evidence(self, lower: Fraction | None) -> Evidence:
        """Return the proofs: of the box around the answer, and of ``lower``.

        Where the nearest row of all is robust, the proof of the first question, without noise, is enough.
        """
        made: Evidence = {"lane": "robust", "places": [], "proof": None, "around": self.around, "missing": NO_PROOF}
        if self.lane == "enumerate":
            return {**made, "proof": {"lane": "enumerate"}, "around": {"lane": "enumerate"}}
        first = self.first
        if first is not None and (first.is_infeasible or (lower is not None and first.lower >= lower)):
            made["proof"] = first.evidence
        elif self._is_provable():
            made["proof"], made["missing"] = self._moved(lower)
        return made

    def _is_provable(self) -> bool:
        """Return whether every box was closed by copies of a network."""
        form = self.problem.form
        return (
            self.proofs is not None
            and isinstance(form, Network)
            and isinstance(self.problem.metric, NormMetric)
            and self._is_one_way(form)
        )

    def _moved(self, lower: Fraction | None) -> tuple[Evidence | None, str]:
        """Return the proof that no row nearer than ``lower`` reaches the goal with its copies in any box; or why there is none."""
        boxes = _largest(self._closed_boxes(lower))
        if len(boxes) > MOST_BOXES:
            return None, f"the search closed {len(boxes):,} boxes, and at most {MOST_BOXES:,} have proofs"
        made: list[Evidence] = []
        for region, copies in boxes:
            if self.limits.remaining() <= 0:
                return None, "the time limit left no time for the proof"
            proof = self._proof_of(shifted(inside(self.rest, region), copies), lower)
            if proof is None or "missing" in proof:
                return None, f"a box has no proof: {(proof or {}).get('missing', 'its lane makes none')}"
            ranges = {name: range_dict(left) for name, left in region.items() if left != self.whole[name]}
            moves = [self._written(each) for each in copies]
            made.append({"ranges": ranges, "moves": [each for each in moves if each], "proof": proof})
        return {"lane": "moved", "boxes": made}, ""

    def _proof_of(self, asked: Problem, lower: Fraction | None) -> Evidence | None:
        """Return the proof that nothing nearer than ``lower`` is in the goal of a question."""
        limits = Limits(self.limits.deadline, record=True)
        if self.lane == "network":
            proof = network.prove(asked, lower, self.upper, limits)
            if proof is not None:
                return proof
        found = self._ask(asked, record=True)
        return found.evidence if found.is_infeasible or (lower is not None and found.lower >= lower) else None

    def _closed_boxes(self, lower: Fraction | None) -> list[Closed]:
        """Return the boxes that were closed, and those that are left, without those that are too far."""
        found = list(self.proofs or ())
        for _, _, region, held, _, source in self.waiting:
            if source is not None:
                found.append(source)
            else:
                found += [(piece, tuple(self._copies(piece, held))) for piece in self._at_turns(region)]
        # A checker measures how far a box is in rounded numbers.
        return [each for each in found if lower is None or self._nearest(each[0]) < lower * BARELY]

    def _written(self, moves: Moves) -> dict[str, dict[str, float]]:
        """Return how rows are moved, as evidence: without the features that stay."""
        return {
            name: {"at" if move.is_place else "by": float(move.number)}
            for name, move in zip(self.problem.space, moves, strict=True)
            if move != STAY
        }

    def _push(self, lower: Fraction, region: Region, held: tuple[Moves, ...], source: Closed | None = None) -> None:
        nearest = self._nearest(region)
        if nearest >= lower:
            source = None
        heapq.heappush(self.waiting, (max(lower, nearest), next(self.serial), region, held, self.patience, source))

    def _nearest(self, region: Region) -> Fraction:
        """Return a distance below which a box has no row."""
        if not isinstance(self.problem.metric, NormMetric):
            return Fraction(0)
        pairs = zip(region.values(), self.problem.factual, strict=True)
        point = tuple(
            own if own is None or left.missing or left.levels is not None or left.low > left.high
            else own if left.low <= own <= left.high
            else left.low if own < left.low
            else left.high
            for left, own in pairs
        )  # fmt: skip
        # The ends of ranges may be no floats.
        return distance_down(self.problem.metric, self.problem.metric.measure(point))  # type: ignore[arg-type]

    def _is_beaten(self, lower: Fraction) -> bool:
        if self.upper is None:
            return False
        return lower >= (self.upper if self.is_finite else self.upper - SHARE * self.problem.accuracy)

    def _close(self, lower: Fraction) -> None:
        self.closed = lower if self.closed is None else min(self.closed, lower)

    def _until(self) -> float:
        """Return until when one question may take: its point may be undone long before it is proved nearest, and a proof takes time."""
        return time.monotonic() + min(self.patience, MOST_OF_THE_TIME * self.limits.remaining())

    def _ask(self, problem: Problem, until: float | None = None, *, record: bool = False) -> Bounds:
        self.calls += 1
        limits = Limits(self.limits.deadline if until is None else until, record=record and self.limits.record)
        found = self.choose(problem)(problem, limits)
        if found.reason == INTERRUPTED:
            raise KeyboardInterrupt
        return found

    def _ask_while_nearer(self, problem: Problem) -> Bounds | None:
        """Ask for the nearest point; ``None`` as soon as it is clear that none is nearer than the point in hand."""
        if self.first is None:
            # The only question whose proof is of use: it is about all rows, and nothing but what was asked.
            self.first = self._ask(problem, self._until(), record=True)
            return self.first
        if self.upper is None:
            return self._ask(problem, self._until())
        # What is told of progress is rounded.
        enough = float_up(self.upper - SHARE * self.problem.accuracy) + ROUNDED

        def look(lower: float, upper: float, calls: int) -> None:
            if lower >= enough:
                raise _Beaten

        self.calls += 1
        try:
            found = self.choose(problem)(problem, Limits(self._until(), look))
        except _Beaten:
            return None
        if found.reason == INTERRUPTED:
            raise KeyboardInterrupt
        return found

    # ---- one box

    def _box(self, lower: Fraction, region: Region, held: tuple[Moves, ...], source: Closed | None) -> None:
        """Ask about a box; close it, or cut out of it what noise undoes. Rows of the box must reach the goal at places ``held``."""
        pieces = self._at_turns(region)
        if len(pieces) > 1:
            for piece in pieces:
                self._push(lower, piece, held, source)
            return
        near = within_reach(self.problem, region, self.upper)
        if near is None:
            self._note((region, tuple(self._copies(region, held))))
            return
        copies = self._copies(near, held)
        asked = region, tuple(copies)
        found = self._ask_while_nearer(shifted(inside(self.rest, near), copies))
        if found is None:
            assert self.upper is not None
            self._close(self.upper - SHARE * self.problem.accuracy)
            self._note(asked)
            return
        if found.is_infeasible:
            self._note(asked)
            return
        if found.lower >= lower:
            lower, source = found.lower, asked
        is_cut_short = found.reason == LATE and self.limits.remaining() > 0
        if self._is_beaten(lower) or (found.point is None and not is_cut_short):
            self._close(lower)
            self._note(source or asked)
            self.doubt = found.reason or self.doubt
            return
        if found.point is None:
            self._ask_again(lower, region, held, source)
            return
        worst = self._worst(found.point)
        if worst is None:
            refusing = self._ask(beside(self.rest, self.sturdy, found.point), record=True)
            if refusing.is_infeasible:
                self._accept(found.point, refusing.evidence)
                if is_cut_short and not self._is_beaten(lower):
                    self._ask_again(lower, region, held, source)
                else:
                    self._close(lower)
                    self._note(source or asked)
                return
            if refusing.point is None:
                self._close(lower)
                self._note(source or asked)
                self.reason = refusing.reason
                return
            worst = self._deeper(refusing.point, found.point)
        if self._shift(found.point, worst):
            for piece in self._at_turns(region):
                self._push(lower, piece, held, source)
            return
        if len(copies) > 1:
            self._try_firmer(near, copies, found.point, worst)
            if self._is_beaten(lower):
                self._close(lower)
                self._note(source or asked)
                return
        self._cut(lower, region, held, worst, source)
        if self.limits.on_progress is not None:
            upper = math.inf if self.upper is None else float_up(self.upper)
            self.limits.on_progress(float_down(lower), upper, self.calls)

    def _note(self, closed: Closed) -> None:
        """Keep a closed box for the proof."""
        if self.proofs is not None:
            self.proofs.append(closed)

    def _ask_again(self, lower: Fraction, region: Region, held: tuple[Moves, ...], source: Closed | None) -> None:
        """Put a box back whose question took too long, for longer."""
        self.patience *= 2
        self._push(lower, region, held, source)

    def _cut(
        self, lower: Fraction, region: Region, held: tuple[Moves, ...], worst: Point, source: Closed | None
    ) -> None:
        """Cut a box along what noise brings to a refused row, which is held there; or cut out what a box of refused rows undoes."""
        place = self._place(worst)
        if place is None or place in held or len(held) >= MOST_HELD:
            refused, further = self._refused(worst, region), None
        else:
            refused, further = self._at(worst), (*held, place)
        inner, outer = dict(region), []
        for name, left in refused.items():
            parts, kept = outside(self.problem, self.sturdy, name, region[name], left)
            outer += [inner | {name: part} for part in parts]
            inner[name] = kept
        if further is not None:
            self._push(lower, inner, further, source)
        for part in outer:
            self._push(lower, part, held, source)

    def _copies(self, region: Region, held: tuple[Moves, ...]) -> list[Moves]:
        """Return how rows of a box are moved to where they must reach the goal, the latest last."""
        stay = (STAY,) * len(region)
        return list(dict.fromkeys([stay, *(self._fitting(offset, region) for offset in self.offsets), *held]))

    @staticmethod
    def _grain(form: Network) -> float:
        """Return what hardly matters in the unit of the scores."""
        return 1e-9 * (1 + float(np.abs(form.biases[-1]).max()))

    def _accept(self, point: Point, evidence: Evidence | None) -> None:
        distance = self.problem.distance(point)
        self.sturdy.remember(point)
        if (
            (self.upper is None or distance < self.upper)
            and self.problem.is_plausible(point)
            and self.problem.is_reached(point)
        ):
            self.upper, self.point, self.around = distance, point, evidence

    # ---- boxes of refused rows

    def _refused(self, point: Point, region: Region) -> Region:
        """Return a box around a refused row that holds no row in the target, as wide as the lane can easily prove."""
        # Such boxes are not recorded.
        self.proofs = None
        at = {name: only(self.whole[name], value) for name, value in zip(self.whole, point, strict=True)}
        metric = as_distance("linf").from_factual(self.problem.space, point)
        free = replace(self.rest, factual=point, metric=metric, conditions=())

        def is_refused(tried: Region) -> bool:
            if self.limits.remaining() <= 0:
                return False
            return self._ask(inside(free, tried)).is_infeasible

        wide = {name: self._widest(name, region[name], left) for name, left in at.items()}
        if is_refused(wide):
            at = wide
        else:
            for name in region:
                at = self._grown(name, at, wide[name], is_refused)
        return {
            name: as_values(self.problem.space[name], at[name], value) for name, value in zip(at, point, strict=True)
        }

    def _widest(self, name: str, left: Range, own: Range) -> Range:
        """Return all of a feature that matters to a box: its own range, and what noise makes of it."""
        if not own.has_values or not left.has_values:
            return own
        if left.levels is not None and own.levels is not None:
            return replace(own, levels=left.levels | own.levels)
        whole, (low, high) = self.whole[name], self.sturdy.reach(name, left.low, left.high)
        low, high = max(whole.low, low), min(whole.high, high)
        return replace(own, low=min(own.low, low), high=max(own.high, high))

    def _grown(self, name: str, at: Region, wide: Range, is_refused: Callable[[Region], bool]) -> Region:
        """Widen one feature of a box of refused rows: all at once, or each end by halving."""
        if wide == at[name]:
            return at
        if is_refused(at | {name: wide}):
            return at | {name: wide}
        if wide.levels is not None:
            return at
        for up in (False, True):
            inside, outside = (at[name].high, wide.high) if up else (at[name].low, wide.low)
            for _ in range(HALVINGS):
                middle = value_between(self.problem.space[name], inside, outside)
                if middle is None:
                    break
                tried = at | {name: replace(at[name], high=middle) if up else replace(at[name], low=middle)}
                if is_refused(tried):
                    at, inside = tried, middle
                else:
                    outside = middle
        return at

    # ---- shifted copies

    def _shift(self, point: Point, refused: Point) -> bool:
        """Ask for one more shifted copy of the model; return whether that is something new."""
        form, goal = self.problem.form, self.problem.goal
        if not isinstance(form, Network) or len(self.offsets) >= MOST_OFFSETS:
            return False
        if not self._is_one_way(form):
            return False
        (margins,) = goal.alternatives(len(form.biases[-1]), ties_last=form.ties_last)
        offset = self._corner(-steepest(form, margins, refused))
        moved = kept_inside(point, offset, list(self.problem.space.values()))
        if not any(offset) or offset in self.offsets or goal.accepts(self.problem.ask([moved])[0]):
            return False
        self.offsets.append(offset)
        return True

    def _is_one_way(self, form: Network) -> bool:
        """Return whether the goal has a single alternative."""
        return len(self.problem.goal.alternatives(len(form.biases[-1]), ties_last=form.ties_last)) == 1

    def _corner(self, signs: NDArray[np.int64]) -> Offset:
        """Return the offset to a corner of the noise."""
        return tuple(int(sign) * step for sign, step in zip(signs, self._steps(), strict=True))

    def _try_firmer(self, region: Region, copies: list[Moves], point: Point, worst: Point) -> None:
        """Ask for the nearest point that reaches the goal at all copies by what a point lacks at worst; take it if proved."""
        form, problem, stay = self.problem.form, self.problem, (STAY,) * len(point)
        assert isinstance(form, Network)
        lacking = -margin_of(problem, form, worst, stay)
        if lacking > ALMOST * (1 + float(np.abs(form.biases[-1]).max())):
            return
        # What the scores gain on the way from the factual says what a little more of them costs.
        gained = abs(margin_of(problem, form, problem.factual, stay)) / max(float(problem.distance(point)), 1e-12)
        firm = max(2 * lacking, float(problem.accuracy) * gained / 20) + self._grain(form)
        found = self._ask_while_nearer(shifted(inside(self.rest, region), copies, Fraction(firm)))
        if found is None or found.point is None or self._worst(found.point) is not None:
            return
        refusing = self._ask(beside(self.rest, self.sturdy, found.point), record=True)
        if refusing.is_infeasible:
            self._accept(found.point, refusing.evidence)

    def _reach(self, point: Point) -> dict[int, tuple[float, float]]:
        """Return the ranges of noisy numbers around a point."""
        region = around(self.rest, self.sturdy, point)
        return {
            j: (float_up(region[name].low), float_down(region[name].high))
            for name in self.sturdy.radii
            if region[name].has_values and not region[name].is_single
            for j in [self.problem.space.index(name)]
        }

    def _worst(self, point: Point) -> Point | None:
        """Return a row beside a point that a network clearly refuses, the worst that is easily found."""
        form = self.problem.form
        if not isinstance(form, Network) or not self._has_numbers():
            return None
        worst, margin = worst_beside(self.problem, form, point, self._reach(point))
        return worst if margin < -self._grain(form) else None

    def _deeper(self, refused: Point, point: Point) -> Point:
        """Return the worst row near a refused one that noise makes of a point."""
        form = self.problem.form
        if not isinstance(form, Network) or not self._has_numbers():
            return refused
        return worst_beside(self.problem, form, refused, self._reach(point))[0]

    def _has_numbers(self) -> bool:
        """Return whether all noisy features are numbers that are never missing, off any grid or whole."""
        features = [self.problem.space[name] for name in self.sturdy.radii]
        return all(isinstance(f, Real | Integer) and f.step is None and not f.missing for f in features)

    def _place(self, row: Point) -> Moves | None:
        """Return the noisy features set to a row's values; ``None`` where they cannot be."""
        form = self.problem.form
        if not isinstance(form, Network) or not self._is_one_way(form):
            return None
        noisy = {self.problem.space.index(name) for name in self.sturdy.radii}
        features = list(self.problem.space.values())
        if not all(_is_number(features[j], row[j]) for j in noisy):
            return None
        return tuple(
            Move(Fraction(value), is_place=True) if j in noisy and value is not None else STAY
            for j, value in enumerate(row)
        )

    def _at(self, row: Point) -> Region:
        """Return the noisy features of a row as a region."""
        names = list(self.sturdy.radii)
        return {name: only(self.whole[name], row[self.problem.space.index(name)]) for name in names}

    def _steps(self) -> tuple[Fraction, ...]:
        """Return how far each feature may be moved at most so that it is a value again: whole steps, or a little less than the radius.

        Nothing where it may be missing, where the factual is off its grid, or where floats cannot hold that grid.
        """
        found = []
        for (name, feature), own in zip(self.problem.space.items(), self.problem.factual, strict=True):
            radius, far = self.sturdy.radii.get(name, Fraction(0)), Fraction(0)
            if not isinstance(feature, Real | Integer) or feature.missing or own is None:
                found.append(far)
                continue
            largest = max(abs(feature.low), abs(feature.high))
            rounding = Fraction(largest) / 2**50
            if isinstance(feature, Real) and feature.is_single:
                rounding += 4 * Fraction(feature.spacing(largest))
            if isinstance(feature, Integer) or feature.is_exact_grid:
                step = Fraction(feature.step or 1)
                reach = radius if is_exact(feature) else radius - rounding
                far = max(math.floor(reach / step), 0) * step if feature.has(own) else far
            elif feature.step is None:
                far = Fraction(float_down(max(radius * (1 - Fraction(1, 2**40)) - rounding, Fraction(0))))
            found.append(far)
        return tuple(found)

    def _fitting(self, offset: Offset, region: Region) -> Moves:
        """Return how the rows of a box are moved by an offset: by as much, or to the end of the domain where that is nearer."""
        moves: list[Move] = []
        for (name, feature), each in zip(self.problem.space.items(), offset, strict=True):
            if not each:
                moves.append(Move(Fraction(0)))
                continue
            assert isinstance(feature, Real | Integer)
            turn, left = turn_of(feature, each), region[name]
            if (left.high <= turn) if each < 0 else (left.low >= turn):
                moves.append(Move(span(feature)[each > 0], is_place=True))
            else:
                moves.append(Move(each))
        return tuple(moves)

    def _at_turns(self, region: Region) -> list[Region]:
        """Return a box cut where an offset would leave the domain."""
        parts = [region]
        for offset in self.offsets:
            for (name, feature), each in zip(self.problem.space.items(), offset, strict=True):
                if each:
                    turn = turn_of(feature, each)
                    parts = [
                        part | {name: side} for part in parts for side in cut_at_turn(part[name], turn, below=each > 0)
                    ]
        return parts


def _largest(boxes: list[Closed]) -> list[Closed]:
    """Return boxes without those that lie in another; all of them where they are many."""
    if len(boxes) > MOST_BOXES:
        return boxes
    kept: list[Closed] = []
    for k, (region, copies) in enumerate(boxes):
        earlier = any(lies_in(region, other) for other, _ in boxes[:k])
        later = any(lies_in(region, other) and not lies_in(other, region) for other, _ in boxes[k + 1 :])
        if not earlier and not later:
            kept.append((region, copies))
    return kept


def _is_number(feature: object, value: Value) -> bool:
    """Return whether a value is one of a feature that is a number and never missing."""
    return isinstance(feature, Real | Integer) and not feature.missing and value is not None and feature.has(value)
