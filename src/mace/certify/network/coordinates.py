"""The features of a question as axes of *coordinates*, so that a box is a range of coordinates on each axis.

The coordinate of a number is the number itself; on a grid it is the index of its value (a factual's own number between two values of the
grid lies half way between their coordinates); of a level it is its position, or for a category its rank, the factual's own level first.
A cut "at most t" and "above t" of coordinates leaves nothing out, whatever t is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from mace.constraints.differ import CountDifferent
from mace.distances.change import written_range
from mace.exact import Flags, Floats, float_down, float_up, next_float, rounded_in
from mace.language import holds, syntax
from mace.problem import Problem
from mace.space import Categorical, Feature, Integer, Ordinal, Real, Value
from mace.space.decimals import decimal_of, dtype_of, float_of
from mace.space.dtypes import FloatType

Span = tuple[float, float]
"""A closed range of coordinates."""

NEAR_A_VALUE = 1e-6
"""In steps of a grid: how far a number may be from a value, and count as that value, where a box is rounded outward."""


@dataclass(frozen=True, slots=True)
class CoordinateAxis:
    """One feature.

    Attributes
    ----------
    feature : Feature
        The feature.
    own : float
        The factual's own number (position of the level).
    home : float
        Its coordinate.
    is_grid, is_whole, has_levels : bool
        What the coordinates are: indices, whole numbers, or ranks of levels; otherwise floats.
    levels : float array
        The position of the level at each rank.
    spans : float array, n x 2
        The ranges of coordinates that the domain and the conditions on this feature alone leave.
    """

    feature: Feature
    own: float
    home: float
    is_grid: bool
    is_whole: bool
    has_levels: bool
    levels: Floats
    spans: Floats

    def value(self, coordinate: float) -> float:
        """Return the number at a coordinate (the position of the level)."""
        if self.has_levels:
            return float(self.levels[int(coordinate)])
        if not self.is_grid:
            return coordinate
        return self.own if coordinate == self.home else _at(self.feature, int(coordinate))

    def values(self, coordinates: Floats) -> Floats:
        """Return the numbers at many coordinates."""
        if not self.is_grid:
            return self.levels[coordinates.astype(np.int64)] if self.has_levels else coordinates
        each, inverse = np.unique(coordinates, return_inverse=True)
        return np.array([self.value(float(coordinate)) for coordinate in each])[inverse].reshape(coordinates.shape)

    def up_to(self, number: Floats) -> Floats:
        """Return a coordinate that is not below that of any value up to ``number``."""
        if not self.is_grid:
            return np.floor(number) if self.is_whole else rounded_in(number, number, self.floats)[1]
        coordinates = np.floor(self._index(number) + self._room(number))
        return np.where((self.own <= number) & (self.home > coordinates), self.home, coordinates)

    def from_on(self, number: Floats) -> Floats:
        """Return a coordinate that is not above that of any value from ``number`` on."""
        if not self.is_grid:
            return np.ceil(number) if self.is_whole else rounded_in(number, number, self.floats)[0]
        coordinates = np.ceil(self._index(number) - self._room(number))
        return np.where((self.own >= number) & (self.home < coordinates), self.home, coordinates)

    def after(self, coordinate: float) -> float:
        """Return the next coordinate."""
        if self.has_levels or self.is_whole:
            return coordinate + 1.0
        if not self.is_grid:
            return float(np.nextafter(self.floats(coordinate), self.floats(np.inf)))
        return self.home if coordinate < self.home < coordinate + 1 else math.floor(coordinate) + 1.0

    def before(self, coordinate: float) -> float:
        """Return the coordinate before one of a grid."""
        return self.home if coordinate - 1 < self.home < coordinate else math.ceil(coordinate) - 1.0

    def cut(self, at: float) -> float:
        """Return the last coordinate of the lower side of a cut at a number, or at a rank of levels."""
        return math.floor(at) if self.has_levels else float(self.up_to(np.array(at)))

    @property
    def floats(self) -> FloatType:
        """The floats that its numbers are."""
        return self.feature.floats if isinstance(self.feature, Real) else np.float64

    def _index(self, number: Floats) -> Floats:
        assert isinstance(self.feature, Real | Integer)
        return (number - self.feature.low) / float(self.feature.step or 1)

    def _room(self, number: Floats) -> Floats:
        """Return how far a computed index may be off, and more."""
        assert isinstance(self.feature, Real | Integer)
        rough = 2.0 ** (4 - np.finfo(self.floats).nmant)
        return NEAR_A_VALUE + rough * (np.abs(number) + abs(self.feature.low)) / float(self.feature.step or 1)


def _at(feature: Feature, index: int) -> float:
    assert isinstance(feature, Real | Integer)
    return float(feature.value_at(index))


PRESENCE = Categorical(("known", "missing"))


def make_axes(problem: Problem, missing: frozenset[int] = frozenset()) -> list[CoordinateAxis]:
    """Return an axis a feature; the spans of some are empty where the conditions contradict each other.

    A feature that is ``missing`` is a category of two levels, of which only the second is allowed. For each feature that the factual lacks
    and that is known here, one more such category follows: it pays for the change, and the value itself costs nothing wherever it lies.
    """
    parts = problem.guards
    never = any(not syntax.variables(part) and not holds(part, {}) for part in parts)
    axes, changes = [], []
    for j, ((name, feature), own) in enumerate(zip(problem.space.items(), problem.factual, strict=True)):
        if j in missing:
            axes.append(_gap(int(own is None)))
            continue
        if own is None:
            assert isinstance(feature, Real | Integer)
            own = feature.low
            changes.append(_gap(0))
        guards = [part for part in parts if syntax.variables(part) == {name}]
        axes.append(_axis(name, feature, own, guards, never))
    return axes + changes


def _gap(own: int) -> CoordinateAxis:
    return _axis(
        "gap", PRESENCE, own, [syntax.Compare("==", syntax.Variable("gap"), syntax.Constant(Fraction(1)))], never=False
    )


def _axis(name: str, feature: Feature, own: Value, guards: list[syntax.Guard], never: bool) -> CoordinateAxis:
    assert own is not None
    levels = np.zeros(0)
    if isinstance(feature, Ordinal | Categorical):
        order = list(range(len(feature.levels)))
        if isinstance(feature, Categorical):
            order = [int(own), *(k for k in order if k != own)]
        levels = np.array(order, dtype=np.float64)
        may = [not never and all(holds(guard, {name: Fraction(k)}) for guard in guards) for k in order]
        spans = [(float(rank), float(rank)) for rank, is_allowed in enumerate(may) if is_allowed]
        return CoordinateAxis(
            feature, float(own), float(order.index(int(own))), False, False, True, levels, _array(spans)
        )
    is_whole = isinstance(feature, Integer) and feature.step is None
    is_grid = not is_whole and feature.step is not None and feature.low < feature.high
    home = float(own)
    if is_grid:
        index = round((Fraction(own) - Fraction(feature.low)) / Fraction(feature.step or 1))
        home = next((float(k) for k in (index - 1, index, index + 1) if _at(feature, k) == own), math.nan)
        if math.isnan(home):
            home = next(k + 0.5 for k in (index + 1, index, index - 1, index - 2) if _at(feature, k) < own)
    axis = CoordinateAxis(feature, float(own), home, is_grid, is_whole, False, levels, np.zeros((0, 2)))
    low, high = min(float(feature.low), float(own)), max(float(feature.high), float(own))
    spans = [] if never else [(low, high)]
    for guard in guards:
        cuts = syntax.compared_with(guard)
        if cuts is not None:
            spans = [piece for span in spans for piece in _held(name, guard, span, cuts)]
    coordinates = _array([(float(axis.from_on(np.array(a))), float(axis.up_to(np.array(b)))) for a, b in spans])
    if is_grid:
        assert feature.size is not None
        ends = min(0.0, home), max(feature.size - 1.0, home)
        coordinates = np.clip(coordinates, *ends)
        coordinates = _array([_shrunk(axis, name, guards, *span) for span in coordinates.tolist()])
    coordinates = coordinates[coordinates[:, 0] <= coordinates[:, 1]]
    return CoordinateAxis(feature, float(own), home, is_grid, is_whole, False, levels, coordinates)


def _shrunk(axis: CoordinateAxis, name: str, guards: list[syntax.Guard], first: float, last: float) -> Span:
    """Return a range of coordinates of a grid without those at its ends whose values fail a guard, which rounding may have put there."""

    def fails(coordinate: float) -> bool:
        value = Fraction(axis.value(coordinate))
        return any(syntax.compared_with(guard) is not None and not holds(guard, {name: value}) for guard in guards)

    while first <= last and fails(first):
        first = axis.after(first)
    while first <= last and fails(last):
        last = axis.before(last)
    return first, last


def _array(spans: list[Span]) -> Floats:
    return np.array(spans, dtype=np.float64).reshape(-1, 2)


def _held(name: str, guard: syntax.Guard, span: Span, cuts: list[Fraction]) -> list[Span]:
    """Return the parts of a range of floats on which a guard holds."""
    found: list[Span] = []
    begin = span[0]
    for cut in sorted(set(cuts)):
        below, above = float_down(cut), float_up(cut)
        before = math.nextafter(below, -math.inf) if below == cut else below
        found.append((begin, min(before, span[1])))
        if below == cut and span[0] <= below <= span[1]:
            found.append((below, below))
        begin = max(begin, math.nextafter(above, math.inf) if above == cut else above)
    found.append((begin, span[1]))
    kept: list[Span] = []
    for low, high in found:
        if low > high or not holds(guard, {name: (Fraction(low) + Fraction(high)) / 2}):
            continue
        if kept and math.nextafter(kept[-1][1], math.inf) >= low:
            kept[-1] = kept[-1][0], high
        else:
            kept.append((low, high))
    return kept


@dataclass(frozen=True, slots=True)
class Alike:
    """An earlier counterfactual: the range of coordinates that counts as equal on each axis, and how many axes must differ."""

    low: Floats
    high: Floats
    features: int

    def allows(self, low: Floats, high: Floats) -> Flags:
        """Return which boxes may hold a point that differs enough."""
        may_differ = (low < self.low) | (high > self.high)
        return np.asarray(may_differ.sum(axis=1) >= self.features)


EVERYWHERE, NO_INTERVAL = (-math.inf, math.inf), (math.inf, -math.inf)


def make_alikes(problem: Problem, axes: list[CoordinateAxis], missing: frozenset[int] = frozenset()) -> list[Alike]:
    """Return the earlier counterfactuals that a further one must differ from."""
    found = []
    for condition in problem.conditions:
        if not isinstance(condition, CountDifferent):
            continue
        ends = [EVERYWHERE] * len(axes)
        for j, old in enumerate(condition.earlier):
            if j in missing or old is None:
                ends[j] = EVERYWHERE if j in missing and old is None else NO_INTERVAL
            else:
                ends[j] = _alike(axes[j], old, condition)
        found.append(Alike(np.array([a for a, _ in ends]), np.array([b for _, b in ends]), condition.features))
    return found


def _alike(axis: CoordinateAxis, earlier: int | float, condition: CountDifferent) -> Span:
    """Return the coordinates that do not differ from an earlier value: a real number differs by at least a share of its range."""
    if axis.has_levels:
        rank = float(np.flatnonzero(axis.levels == earlier)[0])
        return rank, rank
    old = Fraction(earlier)
    if not isinstance(axis.feature, Real) or condition.by == 0:
        first = last = float(old)
    elif axis.feature.range == 0:
        return -math.inf, math.inf
    elif condition.written:
        first, last = _alike_decimals(axis.feature, float(earlier), condition.by)
    else:
        radius = condition.by * axis.feature.range
        first, last = float_up(old - radius), float_down(old + radius)
        first = math.nextafter(first, math.inf) if first == old - radius else first
        last = math.nextafter(last, -math.inf) if last == old + radius else last
    if not axis.is_grid:
        return first, last
    inside = [
        coordinate for coordinate in _coordinates_about(axis, first, last) if first <= axis.value(coordinate) <= last
    ]
    return (min(inside), max(inside)) if inside else (math.inf, -math.inf)


def _alike_decimals(feature: Real, earlier: float, by: Fraction) -> Span:
    """Return the least and the greatest float whose decimal lies nearer to an earlier value's than a share of the range."""
    radius, old = by * written_range(feature), decimal_of(feature, earlier)
    found = []
    for way in (-1, 1):
        last = float_of(feature, old + way * radius)
        while abs(decimal_of(feature, last) - old) < radius:
            last = next_float(last, way * math.inf, dtype_of(feature))
        while abs(decimal_of(feature, last) - old) >= radius:
            last = next_float(last, -way * math.inf, dtype_of(feature))
        found.append(last)
    return found[0], found[1]


def _coordinates_about(axis: CoordinateAxis, first: float, last: float) -> list[float]:
    """Return the coordinates of a grid next to the ends of a range, and the factual's own."""
    ends = [float(axis.from_on(np.array(first))), float(axis.up_to(np.array(last)))]
    about = {math.floor(end) + step for end in ends for step in (-1.0, 0.0, 1.0, 2.0)}
    return [
        coordinate
        for coordinate in {*about, axis.home}
        if coordinate == axis.home or 0 <= coordinate < (axis.feature.size or 1)
    ]
