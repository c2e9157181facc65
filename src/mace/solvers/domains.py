"""The values that a feature may take: under the conditions of a problem, on its grid, and as floats of its dtype."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from mace.constraints.differ import CountDifferent
from mace.distances.change import written_range
from mace.exact import (
    WHOLE,
    Floats,
    Ints,
    float_above,
    float_below,
    greatest_float,
    least_float,
    next_float,
    rounded_in,
)
from mace.language import holds, syntax
from mace.problem import Problem
from mace.space import Categorical, Feature, Integer, Ordinal, Point, Real, Value
from mace.space.decimals import decimal_of, dtype_of
from mace.space.features import MOST_COUNTED

Span = tuple[float, float]
"""A closed range of floats."""

FARTHER = (0, 1, 4, 16, 64)
"""How many floats beyond the next one are tried: rounding may leave the nearest ones undecided."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """What one feature may be.

    Attributes
    ----------
    spans : tuple of spans
        Closed ranges of numbers, ascending; positions of levels for a feature with levels.
    missing : bool
        Whether it may be missing.
    """

    spans: tuple[Span, ...]
    missing: bool


def allowed_values(problem: Problem) -> list[Allowed]:
    """Return what each feature may be: its domain, and every guard on it alone."""
    parts: dict[str, list[syntax.Guard]] = {name: [] for name in problem.space}
    never = False
    for part in problem.guards:
        bound = syntax.bound(part)
        names = syntax.variables(part) if bound is None else ()
        if bound is not None:
            parts[bound[0]].append(part)
        elif not names:
            never = never or not holds(part, {})
        elif len(names) == 1 and syntax.compared_with(part) is not None:
            parts[next(iter(names))].append(part)
    return [
        Allowed((), False) if never else _allowed(name, feature, own, parts[name])
        for (name, feature), own in zip(problem.space.items(), problem.factual, strict=True)
    ]


def whole_domain(feature: Feature) -> Allowed:
    """Return what a feature may be without any condition."""
    return Allowed((ends(feature),), feature.missing)


def _allowed(name: str, feature: Feature, own: Value, guards: list[syntax.Guard]) -> Allowed:
    if not guards:
        return whole_domain(feature)
    low, high = ends(feature)
    spans = _bounded(guards, low, high)
    if spans is None:
        spans = _spans_of(name, guards, low, high)
    if isinstance(feature, Integer):
        spans = [(math.ceil(a), math.floor(b)) for a, b in spans if math.ceil(a) <= math.floor(b)]
    missing = feature.missing and all(holds(guard, {name: None}) for guard in guards)
    return Allowed(tuple(spans), missing)


def _spans_of(name: str, guards: list[syntax.Guard], low: float, high: float) -> list[Span]:
    """Return the values of a range of which all guards hold."""
    constants = sorted({float(c) for guard in guards for c in (syntax.compared_with(guard) or []) if low <= c <= high})
    listed = [values for guard in guards if (values := _listed(guard)) is not None]
    others = [guard for guard in guards if _listed(guard) is None]
    spans: list[Span] = []
    for span in _segments(low, high, constants):
        inside = Fraction(span[0]) if span[0] == span[1] else (Fraction(span[0]) + Fraction(span[1])) / 2
        if all(inside in values for values in listed) and all(holds(guard, {name: inside}) for guard in others):
            if spans and math.nextafter(spans[-1][1], math.inf) == span[0]:
                spans[-1] = (spans[-1][0], span[1])
            else:
                spans.append(span)
    return spans


def _bounded(guards: list[syntax.Guard], low: float, high: float) -> list[Span] | None:
    """Return what comparisons with floats leave of a range; ``None`` where there is any other guard."""
    for guard in guards:
        bound = syntax.bound(guard)
        if bound is None or bound[1] not in ("==", "<=", ">="):
            return None
        _, sign, value = bound
        number = float(value)
        if number.as_integer_ratio() != value.as_integer_ratio():
            return None
        low = low if sign == "<=" else max(low, number)
        high = high if sign == ">=" else min(high, number)
    return [(low, high)] if low <= high else []


def _listed(guard: syntax.Guard) -> frozenset[Fraction] | None:
    """Return the values that a guard lists, where it is a list of values and nothing else."""
    if not isinstance(guard, syntax.Or):
        return None
    values = []
    for part in guard.parts:
        match part:
            case syntax.Compare("==", syntax.Variable(), syntax.Constant(value)):
                values.append(value)
            case _:
                return None
    return frozenset(values)


def ends(feature: Feature) -> Span:
    """Return the least and the greatest number of a feature."""
    match feature:
        case Ordinal(levels) | Categorical(levels):
            return 0.0, float(len(levels) - 1)
        case Real() | Integer():
            return float(feature.low), float(feature.high)


def _segments(low: float, high: float, constants: list[float]) -> list[Span]:
    """Return the range cut into the constants themselves and what lies between them."""
    spans: list[Span] = []
    begin = low
    for constant in constants:
        before = math.nextafter(constant, -math.inf)
        if begin <= before:
            spans.append((begin, before))
        spans.append((constant, constant))
        begin = math.nextafter(constant, math.inf)
    if begin <= high:
        spans.append((begin, high))
    return spans


def alike(feature: Feature, j: int, condition: CountDifferent) -> Span | None:
    """Return the values of feature number ``j`` that do not count as different; ``None`` where only being missing does not."""
    earlier = condition.earlier[j]
    if not condition.counts(j):
        return -math.inf, math.inf
    if earlier is None:
        return None
    if not isinstance(feature, Real) or condition.by == 0:
        return float(earlier), float(earlier)
    if feature.range == 0:
        return float(feature.low), float(feature.high)
    if condition.written:
        dtype, radius = dtype_of(feature), condition.by * written_range(feature)
        low, high = decimal_of(feature, earlier) - radius, decimal_of(feature, earlier) + radius
        return next_float(greatest_float(low, dtype), math.inf, dtype), next_float(
            least_float(high, dtype), -math.inf, dtype
        )
    radius = condition.by * feature.range
    low, high = Fraction(earlier) - radius, Fraction(earlier) + radius
    return float_above(low), float_below(high)


def values_in(kind: Real | Integer, lows: Floats, highs: Floats) -> tuple[Floats, Floats]:
    """Return the first value of a feature from each low on, and the last one up to each high."""
    if kind.step is not None:
        return on_grid(kind, lows, highs)
    if isinstance(kind, Integer):
        return np.ceil(lows), np.floor(highs)
    return rounded_in(lows, highs, kind.floats)


def values_between(feature: Real | Integer, low: float, high: float, own: Value = None) -> Span | None:
    """Return the first and the last value of a feature between two numbers, the factual's ``own`` among them; ``None`` without any."""
    first, last = _first_and_last(feature, low, high)
    if own is not None and low <= own <= high:
        first, last = min(first, own), max(last, own)
    return (first, last) if first <= last else None


def _first_and_last(kind: Real | Integer, low: float, high: float) -> Span:
    """Return the first value of a feature from one number on, and the last one up to another."""
    if not isinstance(kind, Real) or kind.step is None or (kind.size or 1) > MOST_COUNTED:
        firsts, lasts = values_in(kind, np.array([low]), np.array([high]))
        return float(firsts[0]), float(lasts[0])
    last = (kind.size or 1) - 1

    def first_from(number: float) -> int:
        """Return the place of the first value from a number on; one beyond the last where there is none."""
        k = round(min(max((number - kind.low) / (kind.step or 1.0), 0), last))
        while k <= last and kind.value_at(k) < number:
            k += 1
        while k > 0 and kind.value_at(k - 1) >= number:
            k -= 1
        return k

    first, beyond = first_from(low), first_from(math.nextafter(high, math.inf))
    return kind.value_at(first) if first <= last else math.inf, kind.value_at(beyond - 1) if beyond else -math.inf


def on_grid(kind: Real | Integer, lows: Floats, highs: Floats) -> tuple[Floats, Floats]:
    """Return the first grid value from each low on, and the last one up to each high."""
    assert kind.size is not None
    low, step = kind.decimals if isinstance(kind, Real) else (Fraction(kind.low), Fraction(kind.step or 1))
    # Whole numbers over one denominator: dividing them rounds once, as a float of their fraction does.
    whole = math.lcm(low.denominator, step.denominator)
    begin, width, last = int(low * whole), int(step * whole), kind.size - 1
    is_exact = max(abs(begin), abs(begin + last * width), width, whole) <= WHOLE
    dtype = kind.floats if isinstance(kind, Real) else np.float64

    def at(k: Ints) -> Floats:
        """Return the values at some places of the grid, infinite ones beyond its ends."""
        inside = np.clip(k, 0, last)
        numbers = inside if is_exact else inside.astype(object)
        values = ((begin + numbers * width) / whole).astype(dtype).astype(np.float64)
        return np.where(k < 0, -math.inf, np.where(k > last, math.inf, values))

    def about(values: Floats) -> Ints:
        """Return the places where values lie, by floats: off by one or two."""
        return np.clip(np.rint((values - float(low)) / float(step)), 0, last).astype(np.int64)

    k = about(lows)
    while (is_below := at(k) < lows).any():
        k += is_below
    while (is_beyond := at(k - 1) >= lows).any():
        k -= is_beyond
    firsts, k = at(k), about(highs)
    while (is_beyond := at(k) > highs).any():
        k -= is_beyond
    while (is_below := at(k + 1) <= highs).any():
        k += is_below
    return firsts, at(k)


# ---- floats of narrower dtypes


def is_narrow(feature: Real) -> bool:
    """Return whether a feature may be any number of narrower floats than float64."""
    return feature.step is None and feature.is_single


def rounded_to_dtype(feature: Real, value: float, *, up: bool) -> float:
    """Return the float of a feature's dtype that is nearest to ``value`` from above or below, kept to the feature's range."""
    ends = np.array([value])
    first, last = rounded_in(ends, ends, feature.floats)
    return min(max(float((first if up else last)[0]), feature.low), feature.high)


def representable(problem: Problem, point: Point) -> Iterator[Point]:
    """Yield rows near a point whose every number is one of its column's dtype; the point itself where it is one.

    Changed numbers are rounded away from the factual first, since the goal lies on that side of an edge, then farther, then to the nearest.
    """
    narrow = {
        j: feature
        for j, feature in enumerate(problem.space.values())
        if isinstance(feature, Real) and point[j] is not None and point[j] != problem.factual[j] and is_narrow(feature)
    }
    nearest = {j: feature.nearest(float(point[j] or 0.0)) for j, feature in narrow.items()}
    if all(point[j] == value for j, value in nearest.items()):
        yield point
        return
    for farther in FARTHER:
        yield _with(point, {j: _away(feature, point[j], problem.factual[j], farther) for j, feature in narrow.items()})
    yield _with(point, nearest)


def _away(feature: Real, value: Value, own: Value, farther: int) -> float:
    assert value is not None
    up = own is None or value > own
    found = rounded_to_dtype(feature, float(value), up=up)
    for _ in range(farther):
        found = next_float(found, math.inf if up else -math.inf, dtype_of(feature))
    return min(max(found, feature.low), feature.high)


def _with(point: Point, changed: dict[int, float]) -> Point:
    return tuple(changed.get(j, value) for j, value in enumerate(point))
