"""Undoing changes that an answer does not need, and digits that nobody wants to read.

A solver's point is nearest, but under linf, or within the accuracy, it may move features for nothing. Each change that can be taken back
without leaving the goal, the conditions or the distance is taken back. Numbers that the distance leaves free become plain ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from fractions import Fraction

import numpy as np

from mace.distances import PartsMetric
from mace.exact import decimal_fraction
from mace.problem import Limits, Problem
from mace.space import Feature, FeatureSpace, Integer, Point, Real, Value
from mace.space.decimals import decimal_of


def simple(problem: Problem, point: Point, lower: Fraction, limits: Limits) -> Point:
    """Return a point at most as far without needless changes, and of equally near ones the plainest that is found."""
    return plainest(problem, tidy(problem, point, lower, limits), limits)


def tidy(problem: Problem, point: Point, lower: Fraction, limits: Limits) -> Point:
    """Return a point at most as far, of which no single change can be reverted; points nearer than ``lower`` are not tried.

    The result is plausible, reaches the goal when asked alone, and is robust against the order of summation if ``point`` is.
    """
    while limits.remaining() > 0:
        shorter = next(
            (
                candidate
                for candidate in _with_one_undone(problem, point, lower)
                if lower <= problem.distance(candidate) and _is_as_good(problem, candidate, point)
            ),
            None,
        )
        if shorter is None:
            break
        point = shorter
    return point


def _is_beyond_rounding(problem: Problem, point: Point) -> bool:
    return problem.form.is_beyond_rounding(point, problem.goal, problem.box(problem.distance(point)))


COSTS_OFF = 1e-9
"""Two measures in floats that are farther apart are not the same."""


def _with_one_undone(problem: Problem, point: Point, lower: Fraction) -> list[Point]:
    """Return the points with one change undone, but for those that are surely nearer than ``lower``."""
    metric = problem.metric
    undone = np.array([value != own for value, own in zip(point, problem.factual, strict=True)])
    if isinstance(metric, PartsMetric):
        terms, peaks = metric.terms(point)
        second, top = np.sort(np.append(peaks, 0.0))[-2:]
        others = np.where(peaks == top, second, top)
        undone &= terms.sum() - terms + others >= float(lower) ** metric.power - COSTS_OFF
    return [(*point[:j], problem.factual[j], *point[j + 1 :]) for j in np.flatnonzero(undone)]


FARTHER_FOR_PLAINNESS = Fraction(1, 10)
"""A plainer value may be farther from one's own by this share of the change."""

DIGITS = 15
"""The finest unit that is tried, as a power of ten below the range of a feature."""


def plainest(problem: Problem, point: Point, limits: Limits) -> Point:
    """Return an equally near point whose changed numbers have fewer digits, where the distance leaves them free, as l0 and linf do.

    Each number goes away from the factual's own to the next multiple of a power of ten, the coarsest that is accepted. The model is
    asked about all of these at once, and about the row that is made of them alone.
    """
    free = [j for j in range(len(point)) if _is_free(problem, point, j)]
    if not free or any(condition.is_slow for condition in problem.conditions) or limits.remaining() <= 0:
        return point
    most = problem.distance(point)
    single = [(j, value) for j in free for value in _plainer(problem, point, j)]
    rows = [((*point[:j], value, *point[j + 1 :]), j, value) for j, value in single]
    rows = [each for each in rows if problem.distance(each[0]) <= most and problem.is_plausible(each[0])]
    said = problem.ask([row for row, _, _ in rows]) if rows else []
    coarsest: dict[int, Value] = {}
    for (_, j, value), outcome in zip(rows, said, strict=True):
        if problem.goal.accepts(outcome):
            coarsest.setdefault(j, value)
    plain = tuple(coarsest.get(j, value) for j, value in enumerate(point))
    return plain if coarsest and _is_as_good(problem, plain, point) else point


def _is_as_good(problem: Problem, other: Point, point: Point) -> bool:
    """Return whether another point is valid, as near, and as far beyond rounding."""
    return (
        problem.distance(other) <= problem.distance(point)
        and problem.is_plausible(other)
        and problem.is_reached(other)
        and (_is_beyond_rounding(problem, other) or not _is_beyond_rounding(problem, point))
    )


def _plainer(problem: Problem, point: Point, j: int) -> Iterator[Value]:
    """Yield the next multiples of powers of ten away from one's own value, the coarsest first, that are not much farther."""
    feature, value, own = _feature(problem, j), point[j], problem.factual[j]
    assert isinstance(feature, Real | Integer)
    assert value is not None
    assert own is not None
    at = decimal_of(feature, value)
    top = math.floor(math.log10(feature.range))
    for digits in range(DIGITS):
        unit = Fraction(10) ** (top - digits)
        multiple = (math.ceil(at / unit) if value > own else math.floor(at / unit)) * unit
        if multiple == at:
            return
        number = feature.nearest(float(multiple)) if isinstance(feature, Real) else int(multiple)
        if abs(multiple - at) <= FARTHER_FOR_PLAINNESS * abs(at - Fraction(own)) and feature.has(number):
            yield number


def _is_free(problem: Problem, point: Point, j: int) -> bool:
    """Return whether a changed number may perhaps move without costing more."""
    value, own = point[j], problem.factual[j]
    if value is None or own is None or value == own or not isinstance(_feature(problem, j), Real | Integer):
        return False
    metric = problem.metric
    return not isinstance(metric, PartsMetric) or not (metric.parts[j].slope or metric.parts[j].square)


def _feature(problem: Problem, j: int) -> Feature:
    return problem.space[problem.space.names[j]]


BALANCES = (0.0, *(0.05 * 1.35**k for k in range(24)))
"""How much farther than the nearest row a round one may be, in units of the least difference between two neighbouring multiples."""


def is_round(space: FeatureSpace, steps: Mapping[str, float], factual: Point, point: Point) -> bool:
    """Return whether every changed number of a point is a multiple of its step."""
    each = zip(space.items(), point, factual, strict=True)
    return not any(
        name in steps and value not in (None, own) and decimal_of(feature, value) % decimal_fraction(steps[name])
        for (name, feature), value, own in each
    )


def made_round(problem: Problem, point: Point, steps: Mapping[str, float], limits: Limits) -> Point:
    """Return a point whose changed numbers are multiples of steps, as near as is found; as it is where that leaves no valid one.

    The model is asked at once about rows of which some numbers go to the nearest multiple and the others away from the factual's own; of
    those in the goal, the nearest that is valid when it is asked about alone is taken. Where there is none, each number is moved by itself.
    """
    units = _units(problem, point, steps)
    if not units:
        return point
    near = {j: _multiples(problem, point, j, unit) for j, unit in units.items()}
    tried = dict.fromkeys([*_some_outward(problem, point, near), *_balanced(problem, point, near)])
    tried.pop(problem.factual, None)
    quick = problem.quick
    # Each value is one of its feature's.
    rows = [row for row in tried if quick.is_plausible(row)] if quick.conditions else list(tried)
    found = next(filter(problem.is_valid, _nearest_first(problem, problem.reaching(rows))), None)
    return shortened(problem, point, steps, limits) if found is None else found


def _nearest_first(problem: Problem, rows: list[Point]) -> list[Point]:
    """Return rows by their measure in floats."""
    metric = problem.metric
    if not isinstance(metric, PartsMetric):
        return sorted(rows, key=lambda row: float(metric.measure(row)))
    terms, peaks = metric.terms_of(rows)
    lengths = terms.sum(axis=1) + peaks.max(axis=1, initial=0.0)
    return [rows[k] for k in np.argsort(lengths, kind="stable")]


def _some_outward(problem: Problem, point: Point, near: Mapping[int, list[Value]]) -> Iterator[Point]:
    """Yield rows of which more and more numbers go to the next multiple away from the factual's own, the others to the nearest."""
    row = list(point)
    for j, values in near.items():
        row[j] = values[0] if values else point[j]
    yield tuple(row)
    for j, values in near.items():
        row[j] = next((value for value in values if _is_beyond(problem, point, j, value)), row[j])
        yield tuple(row)


def _balanced(problem: Problem, point: Point, near: Mapping[int, list[Value]]) -> Iterator[Point]:
    """Yield rows of which some numbers cost a little more than those of a point and others a little less, so that the sums are alike.

    Around the nearest row of a smooth distance, such as l2, rows that are equally far reach about equally far into the goal. Numbers whose
    multiples cost the most come first; those after them make up for what is left.
    """
    metric = problem.metric
    if metric.power != 2 or not near or not isinstance(metric, PartsMetric):
        return
    rows = [tuple(near[j][k] if k < len(near.get(j, ())) else value for j, value in enumerate(point)) for k in (0, 1)]
    terms, _ = metric.terms_of([point, *rows])
    farther = (terms[1:] - terms[0]).tolist()
    # Of each number how much more its two multiples cost; twice the same where there is one only.
    more = {j: (farther[0][j], farther[1 if len(values) > 1 else 0][j]) for j, values in near.items() if values}
    widths = {j: max(map(abs, both)) for j, both in more.items()}
    order = sorted(more, key=lambda j: -widths[j])
    row = list(point)
    for extra in BALANCES:
        total = -extra * min(widths.values(), default=0.0)
        for j in order:
            first, second = more[j]
            k = int(abs(total + first) > abs(total + second))
            row[j] = rows[k][j]
            total += more[j][k]
        yield tuple(row)


def shortened(problem: Problem, point: Point, steps: Mapping[str, float], limits: Limits) -> Point:
    """Return a point whose changed numbers are multiples of steps, wherever that leaves it valid.

    Each number goes to the nearest multiple that every condition and the model, asked about the row alone, accept; the two next to it are
    tried, and one more on either side. A number on a grid of its own stays.
    """
    for j, unit in _units(problem, point, steps).items():
        for candidate in _multiples(problem, point, j, unit):
            moved = (*point[:j], candidate, *point[j + 1 :])
            if limits.remaining() > 0 and problem.is_plausible(moved) and problem.is_reached(moved):
                point = moved
                break
    return point


def _units(problem: Problem, point: Point, steps: Mapping[str, float]) -> dict[int, Fraction]:
    """Return the steps of the changed numbers that have no grid of their own, by position."""
    each = enumerate(zip(problem.space.items(), point, problem.factual, strict=True))
    return {
        j: decimal_fraction(steps[name])
        for j, ((name, feature), value, own) in each
        if name in steps and value is not None and value != own and getattr(feature, "step", None) is None
    }


def _multiples(problem: Problem, point: Point, j: int, unit: Fraction) -> list[Value]:
    """Return the four multiples of a unit about a number that the feature has, the nearest first."""
    feature, value = _feature(problem, j), point[j]
    assert isinstance(feature, Real | Integer)
    assert value is not None
    at = decimal_of(feature, value) / unit
    middle = math.floor(at)
    if at == middle:
        return [value]
    nearest_first = (0, 1, -1, 2) if 2 * (at - middle) <= 1 else (1, 0, 2, -1)
    near = [(middle + k) * unit.numerator for k in nearest_first]
    made = (
        feature.nearest(number / unit.denominator) if isinstance(feature, Real) else number // unit.denominator
        for number in near
    )
    return [number for number in made if feature.has(number)]


def _is_beyond(problem: Problem, point: Point, j: int, value: Value) -> bool:
    """Return whether a value of a feature is at least as far from the factual's own as that of a point, on the same side."""
    own, at = problem.factual[j], point[j]
    assert value is not None
    assert at is not None
    return own is None or (value >= at if at > own else value <= at)
