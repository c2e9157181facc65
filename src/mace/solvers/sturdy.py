"""Answers that noise does not undo: the lane is asked for the nearest point, then for a row beside it that is not in the target.

Where there is such a row, the lane finds a box of rows around it none of which is in the target; no answer lies within the noise of that
box, which is cut out. For networks the model shifted by the noise is asked for as well, which a robust answer must reach too. Tree
ensembles have a search of their own (:mod:`mace.solvers.places`).
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mace.copies import NoCopies
from mace.distances import as_distance
from mace.exact import float_down, float_up
from mace.forms import Network, TreeEnsemble
from mace.noise import Sturdy
from mace.problem import Bounds, Limits, Problem
from mace.solvers import places
from mace.solvers.beside import beside, inside
from mace.solvers.regions import Range, Region, whole_region
from mace.solvers.shifted import Move, Moves, Offset, kept_inside, shifted, span, steepest
from mace.space import Integer, Point, Real, Value

Choose = Callable[[Problem], Callable[[Problem, Limits], Bounds]]
"""Gives the lane of a problem."""

HALVINGS = 6
"""How often the end of a box of refused rows is looked for between two."""

MOST_OFFSETS = 6
"""So many shifted copies of a network are asked for together."""

FIRMER = 1 + Fraction(1, 2**24)
"""By how much the noise of a point is raised that shall stand it in any rounding."""

SHARE = Fraction(9, 10)
"""How much of the accuracy a box may lie below the point in hand and still be closed."""

MOST_OPEN = 100_000
INTERRUPTED = "interrupted"
OPEN = "the box around points between lower and upper is neither proved nor refuted"


def unsupported(problem: Problem) -> str:
    """Return why the noise of a problem cannot be seen to; empty where it can."""
    if sum(isinstance(each, Sturdy) for each in problem.conditions) > 1:
        return "robust() stands twice; put all noise into one"
    return ""


def solve(problem: Problem, limits: Limits, choose: Choose) -> Bounds:
    """Find the nearest counterfactual that noise does not undo."""
    if isinstance(problem.form, TreeEnsemble):
        sturdy = next(each for each in problem.conditions if isinstance(each, Sturdy))
        rest = replace(problem, conditions=tuple(each for each in problem.conditions if each is not sturdy))
        with suppress(NoCopies):
            return places.Search(rest, sturdy, limits, choose).run()
    return _Search(problem, limits, choose).run()


class _Search:
    def __init__(self, problem: Problem, limits: Limits, choose: Choose) -> None:
        self.problem, self.limits, self.choose = problem, limits, choose
        self.sturdy = next(each for each in problem.conditions if isinstance(each, Sturdy))
        others = tuple(each for each in problem.conditions if not isinstance(each, Sturdy))
        self.rest = replace(problem, conditions=others)
        self.whole = whole_region(problem.space, problem.factual)
        self.is_finite = all(feature.size is not None for feature in problem.space.values())
        self.offsets: list[Offset] = []
        self.upper: Fraction | None = None
        self.point: Point | None = None
        self.closed: Fraction | None = None
        self.calls = 0
        self.reason = ""
        self.waiting: list[tuple[Fraction, int, Region]] = []
        self.serial = itertools.count()

    def run(self) -> Bounds:
        self._push(Fraction(0), self.whole)
        while self.waiting:
            lower, _, region = heapq.heappop(self.waiting)
            if self.limits.remaining() <= 0 or len(self.waiting) > MOST_OPEN:
                self.reason = "time limit reached" if self.limits.remaining() <= 0 else "memory limit reached"
            elif not self._is_beaten(lower):
                try:
                    self._box(lower, region)
                except KeyboardInterrupt:
                    self.reason = INTERRUPTED
                if not self.reason:
                    continue
            self._close(lower)
            break
        if self.upper is None and self.closed is None:
            return Bounds(Fraction(0), is_infeasible=True, calls=self.calls)
        lower = min(each for each in (self.upper, self.closed) if each is not None)
        gap = self.upper is None or self.upper - lower > self.problem.accuracy
        return Bounds(lower, self.upper, self.point, reason=(self.reason or OPEN) if gap else "", calls=self.calls)

    def _push(self, lower: Fraction, region: Region) -> None:
        heapq.heappush(self.waiting, (lower, next(self.serial), region))

    def _is_beaten(self, lower: Fraction) -> bool:
        if self.upper is None:
            return False
        return lower >= (self.upper if self.is_finite else self.upper - SHARE * self.problem.accuracy)

    def _close(self, lower: Fraction) -> None:
        self.closed = lower if self.closed is None else min(self.closed, lower)

    def _ask(self, problem: Problem) -> Bounds:
        self.calls += 1
        return self.choose(problem)(problem, Limits(self.limits.deadline))

    # ---- one box

    def _box(self, lower: Fraction, region: Region) -> None:
        """Ask about a box; close it, or cut out of it what noise undoes."""
        pieces = self._at_turns(region)
        if len(pieces) > 1:
            for piece in pieces:
                self._push(lower, piece)
            return
        asked = inside(self.rest, region)
        if self.offsets:
            asked = shifted(asked, [self._fitting(offset, region) for offset in self.offsets])
        found = self._ask(asked)
        if found.is_infeasible:
            return
        if found.reason == INTERRUPTED:
            raise KeyboardInterrupt
        lower = max(lower, found.lower)
        if found.point is None or self._is_beaten(lower):
            self._close(lower)
            self.reason = found.reason if found.point is None else ""
            return
        refusing = self._ask(beside(self.rest, self.sturdy, found.point))
        if refusing.is_infeasible:
            self._accept(found.point)
            self._close(lower)
            return
        if refusing.point is None:
            self._close(lower)
            self.reason = refusing.reason
            return
        if self._shift(found.point, refusing.point):
            self._push(lower, region)
            return
        if self.offsets and self._try_firmer(region) and self._is_beaten(lower):
            self._close(lower)
            return
        refused = self._refused(refusing.point, region)
        cut = [self._outside(name, region[name], left) for name, left in refused.items()]
        inner = dict(region)
        for name, (parts, kept) in zip(region, cut, strict=True):
            for part in parts:
                self._push(lower, inner | {name: part})
            inner[name] = kept
        if self.limits.on_progress is not None:
            upper = math.inf if self.upper is None else float_up(self.upper)
            self.limits.on_progress(float_down(lower), upper, self.calls)

    def _accept(self, point: Point) -> None:
        distance = self.problem.distance(point)
        self.sturdy.remember(point)
        if (
            (self.upper is None or distance < self.upper)
            and self.problem.is_plausible(point)
            and self.problem.is_reached(point)
        ):
            self.upper, self.point = distance, point

    # ---- boxes of refused rows

    def _refused(self, point: Point, region: Region) -> Region:
        """Return a box around a refused row that holds no row in the target, as wide as the lane can easily prove."""
        at = {name: _only(self.whole[name], value) for name, value in zip(self.whole, point, strict=True)}
        metric = as_distance("linf").from_factual(self.problem.space, point)
        free = replace(self.rest, factual=point, metric=metric, conditions=())

        def is_refused(tried: Region) -> bool:
            if self.limits.remaining() <= 0:
                return False
            return self._ask(inside(free, tried)).is_infeasible

        wide = {name: self._widest(name, region[name], left) for name, left in at.items()}
        if is_refused(wide):
            return wide
        for name in region:
            at = self._grown(name, at, wide[name], is_refused)
        return at

    def _widest(self, name: str, left: Range, own: Range) -> Range:
        """Return all of a feature that matters to a box: its own range, and what noise makes of it."""
        if not own.has_values or not left.has_values:
            return own
        if left.levels is not None and own.levels is not None:
            return replace(own, levels=left.levels | own.levels)
        radius = self.sturdy.radii.get(name, Fraction(0))
        whole = self.whole[name]
        low, high = max(whole.low, left.low - radius), min(whole.high, left.high + radius)
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
                middle = _value_between(self.problem.space[name], inside, outside)
                if middle is None:
                    break
                tried = at | {name: replace(at[name], high=middle) if up else replace(at[name], low=middle)}
                if is_refused(tried):
                    at, inside = tried, middle
                else:
                    outside = middle
        return at

    def _outside(self, name: str, left: Range, refused: Range) -> tuple[list[Range], Range]:
        """Return the parts of a feature's range that noise does not bring into a refused range, and the rest."""
        parts: list[Range] = []
        if left.missing and not refused.missing:
            parts.append(left.nothing_but_missing())
        if left.has_values and not refused.has_values:
            return [*parts, replace(left, missing=False)], left.nothing_but_missing()
        kept = replace(left, missing=left.missing and refused.missing)
        if left.levels is not None and refused.levels is not None:
            beside = replace(left.only(left.levels - refused.levels), missing=False)
            return [*parts, *([beside] if beside.has_values else [])], kept.only(refused.levels)
        radius = self.sturdy.radii.get(name, Fraction(0))
        low, high = refused.low - radius, refused.high + radius
        values = replace(left, missing=False)
        below, above = values.between(left.low, _before(low, left)), values.between(_after(high, left), left.high)
        parts += [part for part in (below, above) if part.has_values]
        return parts, kept.between(low, high)

    # ---- shifted copies

    def _shift(self, point: Point, refused: Point) -> bool:
        """Ask for one more shifted copy of the model; return whether that is something new."""
        form, goal = self.problem.form, self.problem.goal
        if not isinstance(form, Network) or len(self.offsets) >= MOST_OFFSETS or not self._can_shift():
            return False
        alternatives = goal.alternatives(len(form.biases[-1]), ties_last=form.ties_last)
        if len(alternatives) != 1:
            return False
        offset = self._corner(-steepest(form, alternatives[0], refused))
        moved = kept_inside(point, offset, list(self.problem.space.values()))
        if not any(offset) or offset in self.offsets or goal.accepts(self.problem.ask([moved])[0]):
            return False
        self.offsets.append(offset)
        return True

    def _corner(self, signs: NDArray[np.int64]) -> Offset:
        """Return the offset to a corner of the noise."""
        return tuple(int(sign) * step for sign, step in zip(signs, self._steps(), strict=True))

    def _try_firmer(self, region: Region) -> bool:
        """Ask for the nearest point that stands a little more noise than wanted, which rounding does not disturb; accept it if proved."""
        moves = [self._fitting(offset, region, firmer=True) for offset in self.offsets]
        found = self._ask(shifted(inside(self.rest, region), moves))
        if found.point is None or self._is_beaten(found.lower):
            return False
        if not self._ask(beside(self.rest, self.sturdy, found.point)).is_infeasible:
            return False
        self._accept(found.point)
        return True

    def _can_shift(self) -> bool:
        """Return whether a value moved by a whole number of steps is a value again."""
        pairs = zip(self.problem.space.items(), self.problem.factual, strict=True)
        return all(
            name not in self.sturdy.radii
            or (
                isinstance(feature, Real | Integer)
                and not feature.missing
                and (feature.size is None or _on_grid(feature, own))
            )
            for (name, feature), own in pairs
        )

    def _steps(self) -> tuple[Fraction, ...]:
        """Return how far each feature may be moved at most: whole steps, or a little less than the radius of a real one."""
        found = []
        for name, feature in self.problem.space.items():
            radius = self.sturdy.radii.get(name, Fraction(0))
            step = getattr(feature, "step", None)
            if isinstance(feature, Real) and step is None:
                rounding = Fraction(max(abs(feature.low), abs(feature.high))) / 2**50
                found.append(max(radius * (1 - Fraction(1, 2**40)) - rounding, Fraction(0)))
            elif isinstance(feature, Integer):
                found.append(Fraction(math.floor(radius / (step or 1)) * (step or 1)))
            else:
                found.append(Fraction(0))
        return tuple(found)

    def _fitting(self, offset: Offset, region: Region, *, firmer: bool = False) -> Moves:
        """Return how the rows of a box are moved by an offset: by as much, or to the end of the domain where that is nearer."""
        moves: list[Move] = []
        for (name, feature), each in zip(self.problem.space.items(), offset, strict=True):
            if not each:
                moves.append(Move(Fraction(0)))
                continue
            assert isinstance(feature, Real | Integer)
            turn, left = _turn(feature, each), region[name]
            if (left.high <= turn) if each < 0 else (left.low >= turn):
                moves.append(Move(span(feature)[each > 0], is_place=True))
            else:
                moves.append(Move(each * FIRMER if firmer and isinstance(feature, Real) else each))
        return tuple(moves)

    def _at_turns(self, region: Region) -> list[Region]:
        """Return a box cut where an offset would leave the domain."""
        parts = [region]
        for offset in self.offsets:
            for (name, feature), each in zip(self.problem.space.items(), offset, strict=True):
                if each:
                    turn = _turn(feature, each)
                    parts = [part | {name: side} for part in parts for side in _sides(part[name], turn, below=each > 0)]
        return parts


def _turn(feature: object, offset: Fraction) -> Fraction:
    """Return the value from which on an offset leads out of the range of a feature."""
    assert isinstance(feature, Real | Integer)
    return span(feature)[offset > 0] - offset


def _sides(left: Range, turn: Fraction, *, below: bool) -> list[Range]:
    """Return a range cut at a value, which belongs to the upper part where ``below``, else to the lower."""
    if below:
        sides = left.between(left.low, _before(turn, left)), left.between(turn, left.high)
    else:
        sides = left.between(left.low, turn), left.between(_after(turn, left), left.high)
    return [side for side in sides if side.has_values]


def _only(whole: Range, value: Value) -> Range:
    if value is None:
        return whole.nothing_but_missing()
    if whole.levels is not None:
        return replace(whole.only([int(value)]), missing=False)
    return replace(whole, low=Fraction(value), high=Fraction(value), missing=False)


def _value_between(feature: object, first: Fraction, last: Fraction) -> Fraction | None:
    """Return a value of a feature about half way between two; ``None`` where there is none, or hardly."""
    middle = (first + last) / 2
    if isinstance(feature, Real) and feature.step is None:
        found = Fraction(float(middle))
        return (
            None if found in (first, last) or abs(last - first) < Fraction(1, 10**12) * (feature.range or 1) else found
        )
    if isinstance(feature, Real | Integer) and feature.step is not None:
        k = round((middle - Fraction(feature.low)) / Fraction(feature.step))
        found = Fraction(feature.value_at(min(max(k, 0), (feature.size or 1) - 1)))
    else:
        found = Fraction(math.floor(middle) if first < last else math.ceil(middle))
    return found if min(first, last) < found < max(first, last) else None


def _before(low: Fraction, left: Range) -> Fraction:
    """Return the last number below another that a float, or a whole number, can be."""
    if left.is_whole:
        return Fraction(math.ceil(low) - 1)
    below = float_down(low)
    return Fraction(math.nextafter(below, -math.inf) if below == low else below)


def _after(high: Fraction, left: Range) -> Fraction:
    if left.is_whole:
        return Fraction(math.floor(high) + 1)
    above = float_up(high)
    return Fraction(math.nextafter(above, math.inf) if above == high else above)


def _on_grid(feature: Real | Integer, own: Value) -> bool:
    return isinstance(feature, Integer) and own is not None and feature.has(own)
