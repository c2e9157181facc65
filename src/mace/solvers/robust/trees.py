"""Robust answers of tree ensembles: the nearest point, a row that noise makes of it and that is refused, and the nearest point again.

Each refused row gives a place (see :mod:`mace.reductions.tree_copies`) that all further points must stand. Each of these is at most as
far as the nearest robust point; the first that no noise undoes is it. To keep ensembles small, points near the factual are asked for first.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mace.clock import OutOfTime
from mace.constraints.robust import Sturdy
from mace.distances import NormMetric
from mace.exact import float_down, float_up, rounded_in
from mace.forms import TreeEnsemble
from mace.forms.scoring import column_values
from mace.problem import INTERRUPTED, LATE, Bounds, Evidence, Limits, Problem
from mace.reductions.noise_box import Choose, around, beside
from mace.reductions.tree_copies import Copies, Ends, Place, cell
from mace.solvers.domains import rounded_to_dtype
from mace.space import Integer, Point, Real, Value

FIRST, LEAST, GROWTH = 4, Fraction(1, 512), 8
"""Points are asked for within so many times the distance of the nearest without noise, at least so far; then so many times as far."""

WHOLE = 1
"""From this distance on all points are asked for."""

REPAIRS = (6, 12, 24, 48, 96, math.inf)
"""With so many places, points beside the last gate are tried to have some robust one in hand."""

MOST_TRIED = 4096
"""So many rows beside a point are looked at before a lane is asked."""

ROUNDING = "rounding keeps a row beside a point from being refused or not"


@dataclass(frozen=True, slots=True)
class Proved:
    """A lower bound, and the lane's proof of it given that answers stand some places."""

    lower: Fraction
    places: tuple[Place, ...] = ()
    evidence: Evidence | None = None


class Search:
    """One question."""

    def __init__(self, rest: Problem, sturdy: Sturdy, limits: Limits, choose: Choose, *, narrows: bool) -> None:
        """Begin; ``narrows`` says that the lane goes by the ensemble alone, so that what is not asked about may be left out of it."""
        assert isinstance(rest.form, TreeEnsemble)
        self.narrows = narrows
        self.rest, self.sturdy, self.limits, self.choose = rest, sturdy, limits, choose
        self.form = rest.form
        reads = {column.feature for column in self.form.columns}
        self.noisy = tuple(j for name in sturdy.radii if (j := rest.space.index(name)) in reads)
        self.places: list[Place] = []
        self.proved = Proved(Fraction(0))
        self.upper: Fraction | None = None
        self.point: Point | None = None
        self.around: Evidence | None = None
        self.calls = 0
        self.copies = Copies(rest, sturdy)
        self.near: dict[int, Ends] = {}
        self.repairs = 0

    def run(self) -> Bounds:
        """Search; raise :class:`~mace.reductions.tree_copies.NoCopies` where copies cannot be made."""
        bound: Fraction | None = None
        try:
            while self.limits.remaining() > 0:
                asked, places = self._question(bound)
                found = self._ask(asked, self.limits.record)
                if found.is_infeasible and bound is None:
                    return Bounds(
                        Fraction(0),
                        is_infeasible=True,
                        calls=self.calls,
                        evidence=self._evidence(places, found.evidence),
                    )
                reached = bound if found.is_infeasible else found.lower if bound is None else min(found.lower, bound)
                assert reached is not None
                if reached >= self.proved.lower:
                    self.proved = Proved(reached, places, found.evidence)
                self._report()
                if self._is_done():
                    return self._bounds("")
                if not found.is_infeasible and found.point is None:
                    return self._bounds(found.reason)
                if found.point is None or (bound is not None and self.rest.distance(found.point) > bound):
                    assert bound is not None
                    bound = self._set_bound(GROWTH * bound)
                    continue
                refused = self._refused(found.point)
                if refused is None:
                    return self._bounds("" if self._is_done() else found.reason)
                if isinstance(refused, str):
                    return self._bounds(refused)
                fresh = [place for place in map(self._place, refused) if place not in self.places]
                if not fresh:
                    return self._bounds(ROUNDING)
                self.places += fresh
                if len(self.places) > REPAIRS[self.repairs]:
                    self.repairs += 1
                    self._repair(found.point)
                if bound is None and not self.near:
                    bound = self._set_bound(max(FIRST * self.rest.distance(found.point), LEAST))
        except KeyboardInterrupt:
            return self._bounds(INTERRUPTED)
        except OutOfTime:
            pass
        return self._bounds(LATE)

    def _is_done(self) -> bool:
        return self.upper is not None and self.upper - self.proved.lower <= self.rest.accuracy

    def _ask(self, problem: Problem, record: bool = False) -> Bounds:
        self.calls += 1
        found = self.choose(problem)(problem, Limits(self.limits.deadline, record=record))
        if found.reason == INTERRUPTED:
            raise KeyboardInterrupt
        return found

    def _question(self, bound: Fraction | None) -> tuple[Problem, tuple[Place, ...]]:
        """Return the question for points within ``bound`` that stand the places, and those that matter there."""
        if bound is None:
            places = tuple(self.places)
        else:
            places = tuple(place for place in self.places if place.may_be_near(self.near, place.gate(self.sturdy)))
        return self.copies.at(places), places

    def _set_bound(self, bound: Fraction) -> Fraction | None:
        """Make ready for points within a distance; return it, or ``None`` where it is all the same to ask for all points."""
        if bound >= WHOLE or not self.narrows or not isinstance(self.rest.metric, NormMetric):
            self.copies = Copies(self.rest, self.sturdy)
            return None
        self.near = self._ranges([(float_down(low), float_up(high)) for low, high in self.rest.box(bound)])
        self.copies = Copies(self.rest, self.sturdy, self.near)
        return bound

    def _ranges(self, box: list[Ends]) -> dict[int, Ends]:
        """Return the ranges of the features that cannot be missing."""
        pairs = enumerate(zip(self.rest.space.values(), self.rest.factual, strict=True))
        return {j: box[j] for j, (feature, own) in pairs if not feature.missing and own is not None}

    # ---- one point

    def _refused(self, point: Point) -> list[Point] | str | None:
        """Return rows beside a point that are refused; ``None`` where there are none and the point is taken; or why that is not known."""
        region = around(self.rest, self.sturdy, point)
        ends = {j: left.floats() if left.has_values else None for j, left in enumerate(region.values())}
        varies = [name for name, left in region.items() if not left.is_single]
        # What does not vary is decided in the narrowed ensemble, and no condition need say it.
        said = {*varies, *(name for name, feature in self.rest.space.items() if feature.missing or not self.narrows)}
        asked = Copies(beside(self.rest, self.sturdy, point, said), None, ends if self.narrows else None).at(())
        assert isinstance(asked.form, TreeEnsemble)
        inner = {
            self.rest.space.index(each): (float_up(region[each].low), float_down(region[each].high)) for each in varies
        }
        likely = likely_refused(asked, point, inner) if self.narrows else []
        if likely:
            return likely
        found = self._ask(asked, self.limits.record)
        if not found.is_infeasible:
            return found.reason if found.point is None else [found.point]
        self.sturdy.remember(point)
        distance = self.rest.distance(point)
        if self.upper is None or distance < self.upper:
            self.upper, self.point, self.around = distance, point, found.evidence
        return None

    def _place(self, refused: Point) -> Place:
        """Return the place of a refused row."""
        ends = [None if (value := refused[j]) is None else cell(self.form, j, float(value)) for j in self.noisy]
        return Place(self.noisy, tuple(ends))

    def _repair(self, point: Point) -> None:
        """Try the points just beside the gate of the last place, which undid this one."""
        place = self.places[-1]
        gate = place.gate(self.sturdy)
        features = list(self.rest.space.values())
        for j, ends in zip(place.features, gate, strict=True):
            for up in (False, True):
                value = None if ends is None else _past(features[j], ends[up], up=up)
                if value is None or self.limits.remaining() <= 0:
                    continue
                moved = (*point[:j], value, *point[j + 1 :])
                if (
                    (self.upper is None or self.rest.distance(moved) < self.upper)
                    and self.rest.is_plausible(moved)
                    and self.rest.is_reached(moved)
                ):
                    self._refused(moved)

    # ---- the end

    def _report(self) -> None:
        if self.limits.on_progress is not None:
            upper = math.inf if self.upper is None else float_up(self.upper)
            self.limits.on_progress(float_down(self.proved.lower), upper, self.calls)

    def _bounds(self, reason: str) -> Bounds:
        lower = self.proved.lower if self.upper is None else min(self.proved.lower, self.upper)
        evidence = self._evidence(self.proved.places, self.proved.evidence)
        why = "" if self._is_done() else reason
        return Bounds(lower, self.upper, self.point, reason=why, calls=self.calls, evidence=evidence)

    def _evidence(self, places: tuple[Place, ...], proof: Evidence | None) -> Evidence | None:
        if not self.limits.record:
            return None
        names = self.rest.space.names
        return {
            "lane": "robust",
            "places": [
                {
                    names[j]: None if ends is None else list(ends)
                    for j, ends in zip(place.features, place.ranges, strict=True)
                }
                for place in places
            ],
            "proof": proof,
            "around": self.around,
        }


def _past(feature: object, end: Fraction, *, up: bool) -> Value:
    """Return the first value of a feature past a number; ``None`` where there is none, or it is not easily found."""
    if not isinstance(feature, Real | Integer) or feature.step is not None:
        return None
    if isinstance(feature, Integer):
        found: int | float = math.floor(end) + 1 if up else math.ceil(end) - 1
    else:
        near = float_up(end) if up else float_down(end)
        found = math.nextafter(near, math.inf if up else -math.inf) if near == end else near
        found = rounded_to_dtype(feature, found, up=up) if feature.low <= found <= feature.high else found
    return found if feature.has(found) else None


def likely_refused(asked: Problem, point: Point, varies: dict[int, Ends]) -> list[Point]:
    """Return the nearest and the farthest row beside a point that an ensemble seems to refuse, as far as few rows can tell.

    Sums are in floats here: whatever comes out is a place where the ensemble must reach the goal.
    """
    form = asked.form
    assert isinstance(form, TreeEnsemble)
    features = list(form.space.values())
    if len(form.subsets) or any(getattr(features[j], "step", 1) is not None for j in varies):
        return []
    tried = [_one_a_cell(form, j, ends, point[j], isinstance(features[j], Integer)) for j, ends in varies.items()]
    if not tried or math.prod(map(len, tried)) > MOST_TRIED:
        return []
    numbers = np.array(list(itertools.product(*tried)))
    columns = np.tile(column_values(form.columns, [point]), (len(numbers), 1))
    away = np.zeros(len(numbers))
    for values, (j, ends) in zip(numbers.T, varies.items(), strict=True):
        for k, column in enumerate(form.columns):
            if column.feature == j:
                columns[:, k] = values
        away = np.maximum(away, np.abs(values - float(point[j] or 0)) / max(ends[1] - ends[0], 1e-300))
    sums = form.base + form.value[form.leaves_of_columns(columns)].sum(axis=1)
    lead = np.full(len(sums), -np.inf)
    for margins in asked.goal.alternatives(form.outputs, ties_last=form.ties_last):
        each = [_side(sums, m.plus) - _side(sums, m.minus) + float(m.shift) for m in margins]
        lead = np.maximum(lead, np.min(each, axis=0))
    refused = np.flatnonzero(lead > 2 * float(form.band(asked.goal)) + 1e-9 * (1 + np.abs(sums).max()))
    if not len(refused):
        return []
    first, last = refused[np.argmin(away[refused])], refused[np.argmax(away[refused])]
    found = []
    for row in dict.fromkeys([int(first), int(last)]):
        moved: list[Value] = list(point)
        for value, j in zip(numbers[row], varies, strict=True):
            moved[j] = int(value) if isinstance(features[j], Integer) else float(value)
        found.append(tuple(moved))
    return found


def _side(sums: NDArray[np.float64], output: int | None) -> NDArray[np.float64]:
    return np.zeros(len(sums)) if output is None else sums[:, output]


def _one_a_cell(form: TreeEnsemble, j: int, ends: Ends, own: Value, is_whole: bool) -> NDArray[np.float64]:
    """Return a value in each cell of a feature within a range: the nearest to its own."""
    reads = np.array([column.feature == j for column in form.columns])
    edges = np.unique(form.edge[(form.left >= 0) & reads[form.column]])
    edges = edges[(edges >= ends[0]) & (edges < ends[1])]
    low, high = np.concatenate([[ends[0]], np.nextafter(edges, np.inf)]), np.concatenate([edges, [ends[1]]])
    feature = list(form.space.values())[j]
    if isinstance(feature, Real):
        low, high = rounded_in(low, high, feature.floats)
    elif is_whole:
        low, high = np.ceil(low), np.floor(high)
    kept = low <= high
    found: NDArray[np.float64] = np.clip(0.0 if own is None else float(own), low[kept], high[kept])
    return found
