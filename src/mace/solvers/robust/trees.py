"""Robust answers of tree ensembles: the nearest point, a refused row within its noise, and the nearest point again.

Each refused row gives a place (see :mod:`mace.reductions.tree_copies`): all further points from which noise leads there must reach the goal
there too. This relaxes robustness, so that each point is at most as far as the nearest robust one; the first that is robust is the nearest.
To keep ensembles small, points near the factual are asked for first.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mace.clock import OutOfTime
from mace.constraints.robust import RobustCondition
from mace.distances import NormMetric
from mace.exact import float_above, float_below, float_down, float_up
from mace.forms import TreeEnsemble
from mace.forms.scoring import column_values
from mace.problem import INTERRUPTED, LATE, Bounds, Evidence, Limits, Problem
from mace.reductions.noise_box import around, counterexample_question
from mace.reductions.shifted_network import float_clearance
from mace.reductions.tree_copies import Copies, Ends, Place, cell
from mace.solvers.abilities import Choose
from mace.solvers.domains import rounded_to_dtype, values_in
from mace.solvers.robust.incumbent import RobustIncumbent
from mace.space import Integer, Point, Real, Value

FIRST_REACH, LEAST_REACH, REACH_GROWTH = 4, Fraction(1, 512), 8
"""How far points are asked for: at first so many times the distance of the nearest point without noise, and at least so far; then each time
so many times farther."""

WHOLE_RANGE = 1
"""From this distance on all points are asked for."""

REPAIRS = (6, 12, 24, 48, 96, math.inf)
"""After so many places points just outside of the last gate are tried, so that there is a robust point as an incumbent."""

MOST_TRIED = 4096
"""The most rows within the noise of a point that are scored before a lane is asked."""

ROUNDING = "rounding keeps a row beside a point from being refused or not"


@dataclass(frozen=True, slots=True)
class ProvedBound:
    """A lower bound, the places whose copies it takes into account, and the lane's proof of it."""

    lower: Fraction
    places: tuple[Place, ...] = ()
    evidence: Evidence | None = None


class RobustTreeSearch:
    """One question: ``rest`` is the question without noise.

    ``narrows`` says that the lane goes by the ensemble alone, so that what is not asked about may be left out of it.
    """

    def __init__(self, rest: Problem, noise: RobustCondition, limits: Limits, choose: Choose, *, narrows: bool) -> None:
        assert isinstance(rest.form, TreeEnsemble)
        self.rest, self.noise, self.narrows = rest, noise, narrows
        self.form = rest.form
        reads = {column.feature for column in self.form.columns}
        self.noisy = tuple(j for name in noise.radii if (j := rest.space.index(name)) in reads)
        self.places: list[Place] = []
        self.proved = ProvedBound(Fraction(0))
        self.incumbent = RobustIncumbent(rest, limits, choose)
        self.around: Evidence | None = None
        self.copies = Copies(rest, noise)
        self.near: dict[int, Ends] = {}
        self.repairs = 0

    def run(self) -> Bounds:
        """Search; raise :class:`~mace.reductions.tree_copies.NoCopies` where copies cannot be made."""
        limits, bound, is_going_on = self.incumbent.limits, None, True
        try:
            while is_going_on and limits.remaining() > 0:
                asked, places = self._question(bound)
                found = self.incumbent.ask(asked, record=True)
                if found.is_infeasible and bound is None:
                    return self.incumbent.infeasible(
                        evidence=self._evidence(ProvedBound(Fraction(0), places, found.evidence))
                    )
                is_going_on, bound = self._take(found, bound, places)
            if is_going_on:
                self.incumbent.reason = LATE
        except KeyboardInterrupt:
            self.incumbent.reason = INTERRUPTED
        except OutOfTime:
            self.incumbent.reason = LATE
        if self.incumbent.upper is not None:
            self.incumbent.lower = min(self.incumbent.lower, self.incumbent.upper)
        return self.incumbent.bounds(doubt="", evidence=self._evidence(self.proved))

    def _take(self, found: Bounds, bound: Fraction | None, places: tuple[Place, ...]) -> tuple[bool, Fraction | None]:
        """Take a lane's answer about points within ``bound``; return whether to go on, and the next bound."""
        incumbent = self.incumbent
        reached = bound if found.is_infeasible else found.lower if bound is None else min(found.lower, bound)
        assert reached is not None
        if reached >= self.proved.lower:
            self.proved = ProvedBound(reached, places, found.evidence)
        incumbent.lower = self.proved.lower
        incumbent.report()
        if incumbent.is_closed():
            return False, bound
        if found.point is None and not found.is_infeasible:
            incumbent.reason = found.reason
            return False, bound
        if found.point is None or (bound is not None and self.rest.distance(found.point) > bound):
            assert bound is not None
            return True, self._set_bound(REACH_GROWTH * bound)
        refused = self._refused(found.point)
        if refused is None or isinstance(refused, str):
            incumbent.reason = found.reason if refused is None else refused
            return False, bound
        fresh = [place for place in map(self._place, refused) if place not in self.places]
        if not fresh:
            incumbent.reason = ROUNDING
            return False, bound
        self.places += fresh
        if len(self.places) > REPAIRS[self.repairs]:
            self.repairs += 1
            self._repair(found.point)
        if bound is None and not self.near:
            bound = self._set_bound(max(FIRST_REACH * self.rest.distance(found.point), LEAST_REACH))
        return True, bound

    def _question(self, bound: Fraction | None) -> tuple[Problem, tuple[Place, ...]]:
        """Return the question for points within ``bound`` that reach the goal at the places, and the places that matter there."""
        if bound is None:
            places = tuple(self.places)
        else:
            places = tuple(place for place in self.places if place.may_be_near(self.near, place.gate(self.noise)))
        return self.copies.at(places), places

    def _set_bound(self, bound: Fraction) -> Fraction | None:
        """Narrow the ensemble to points within a distance; return it, or ``None`` where all points may as well be asked for."""
        if bound >= WHOLE_RANGE or not self.narrows or not isinstance(self.rest.metric, NormMetric):
            self.copies = Copies(self.rest, self.noise)
            return None
        self.near = self._ranges([(float_down(low), float_up(high)) for low, high in self.rest.box(bound)])
        self.copies = Copies(self.rest, self.noise, self.near)
        return bound

    def _ranges(self, box: list[Ends]) -> dict[int, Ends]:
        """Return the ranges of the features that cannot be missing."""
        pairs = enumerate(zip(self.rest.space.values(), self.rest.factual, strict=True))
        return {j: box[j] for j, (feature, own) in pairs if not feature.missing and own is not None}

    # ---- one point

    def _refused(self, point: Point) -> list[Point] | str | None:
        """Return counterexamples to a point, or why none is known; ``None`` where it is proved robust, which makes it the incumbent."""
        region = around(self.rest, self.noise, point)
        ends = {j: left.floats() if left.has_values else None for j, left in enumerate(region.values())}
        varies = [name for name, left in region.items() if not left.is_single]
        # Features that noise leaves alone are decided in the narrowed ensemble, without a condition.
        said = {*varies, *(name for name, feature in self.rest.space.items() if feature.missing or not self.narrows)}
        asked = Copies(
            counterexample_question(self.rest, self.noise, point, said), None, ends if self.narrows else None
        ).at(())
        assert isinstance(asked.form, TreeEnsemble)
        inner = {
            self.rest.space.index(each): (float_up(region[each].low), float_down(region[each].high)) for each in varies
        }
        likely = likely_refused(asked, point, inner) if self.narrows else []
        if likely:
            return likely
        found = self.incumbent.ask(asked, record=True)
        if not found.is_infeasible:
            return found.reason if found.point is None else [found.point]
        self.noise.remember(point)
        if self.incumbent.is_nearer(point):
            self.incumbent.take(point)
            self.around = found.evidence
        return None

    def _place(self, refused: Point) -> Place:
        """Return the place of a refused row."""
        ends = [None if (value := refused[j]) is None else cell(self.form, j, float(value)) for j in self.noisy]
        return Place(self.noisy, tuple(ends))

    def _repair(self, point: Point) -> None:
        """Try the points just outside of the gate of the last place, which this one lies in."""
        place = self.places[-1]
        gate = place.gate(self.noise)
        features = list(self.rest.space.values())
        for j, ends in zip(place.features, gate, strict=True):
            for up in (False, True):
                value = None if ends is None else _past(features[j], ends[up], up=up)
                if value is None or self.incumbent.limits.remaining() <= 0:
                    continue
                moved = (*point[:j], value, *point[j + 1 :])
                if self.incumbent.is_nearer(moved) and self.incumbent.is_valid(moved):
                    self._refused(moved)

    # ---- evidence

    def _evidence(self, proved: ProvedBound) -> Evidence | None:
        if not self.incumbent.limits.record:
            return None
        names = self.rest.space.names
        places = [
            {
                names[j]: None if ends is None else list(ends)
                for j, ends in zip(place.features, place.ranges, strict=True)
            }
            for place in proved.places
        ]
        return {"lane": "robust", "places": places, "proof": proved.evidence, "around": self.around}


def _past(feature: object, end: Fraction, *, up: bool) -> Value:
    """Return the first value of a feature past a number; ``None`` where there is none, or it is not easily found."""
    if not isinstance(feature, Real | Integer) or feature.step is not None:
        return None
    if isinstance(feature, Integer):
        found: int | float = math.floor(end) + 1 if up else math.ceil(end) - 1
    else:
        found = float_above(end) if up else float_below(end)
        found = rounded_to_dtype(feature, found, up=up) if feature.low <= found <= feature.high else found
    return found if feature.has(found) else None


def likely_refused(asked: Problem, point: Point, varies: dict[int, Ends]) -> list[Point]:
    """Return the nearest and the farthest row within the noise of a point that an ensemble seems to refuse; of each cell one row is tried.

    Sums are in floats, which proves nothing; but nothing need be proved: the ensemble must reach the goal at these rows in any case.
    """
    form = asked.form
    assert isinstance(form, TreeEnsemble)
    features = list(form.space.values())
    if len(form.subsets) or any(getattr(features[j], "step", 1) is not None for j in varies):
        return []
    tried = [_one_a_cell(form, j, ends, point[j]) for j, ends in varies.items()]
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
    lead = float_clearance(sums, form.alternatives(asked.goal))
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


def _one_a_cell(form: TreeEnsemble, j: int, ends: Ends, own: Value) -> NDArray[np.float64]:
    """Return a value in each cell of a feature within a range: the nearest to its own."""
    reads = np.array([column.feature == j for column in form.columns])
    edges = np.unique(form.edge[(form.left >= 0) & reads[form.column]])
    edges = edges[(edges >= ends[0]) & (edges < ends[1])]
    low, high = np.concatenate([[ends[0]], np.nextafter(edges, np.inf)]), np.concatenate([edges, [ends[1]]])
    feature = list(form.space.values())[j]
    assert isinstance(feature, Real | Integer)
    low, high = values_in(feature, low, high)
    kept = low <= high
    found: NDArray[np.float64] = np.clip(0.0 if own is None else float(own), low[kept], high[kept])
    return found
