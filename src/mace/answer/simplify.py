"""Undoing changes that an answer does not need, and digits that nobody wants to read.

A solver's point is nearest, but under linf, or within the accuracy, it may move features for nothing. Each change that can be taken back
without leaving the goal, the conditions or the distance is taken back. Numbers that the distance leaves free become plain ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from fractions import Fraction

from mace.distances import PartsMetric
from mace.problem import Limits, Problem
from mace.space import Integer, Point, Real, Value
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
                for candidate in _with_one_undone(problem, point)
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


def _with_one_undone(problem: Problem, point: Point) -> list[Point]:
    return [
        (*point[:index], own, *point[index + 1 :])
        for index, (value, own) in enumerate(zip(point, problem.factual, strict=True))
        if value != own
    ]


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
    feature, value, own = list(problem.space.values())[j], point[j], problem.factual[j]
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
    feature, value, own = list(problem.space.values())[j], point[j], problem.factual[j]
    if value is None or own is None or value == own or not isinstance(feature, Real | Integer):
        return False
    metric = problem.metric
    return not isinstance(metric, PartsMetric) or not (metric.parts[j].slope or metric.parts[j].square)


def shortened(problem: Problem, point: Point, digits: Mapping[int, int], limits: Limits) -> Point:
    """Return a point whose changed real values have few decimals, wherever that leaves it valid.

    Each value goes to the nearest number with that many decimals that every condition and the model, asked about the row alone, accept;
    the two next to it are tried, and one more on either side. A value on a grid of its own stays.
    """
    features = list(problem.space.values())
    for index, decimals in digits.items():
        value, feature = point[index], features[index]
        if value is None or value == problem.factual[index] or getattr(feature, "step", None) is not None:
            continue
        assert isinstance(feature, Real)
        for candidate in map(feature.nearest, _short_numbers(float(value), decimals)):
            moved = (*point[:index], candidate, *point[index + 1 :])
            if limits.remaining() > 0 and problem.is_plausible(moved) and problem.is_reached(moved):
                point = moved
                break
    return point


def _short_numbers(value: float, decimals: int) -> list[float]:
    unit = Fraction(10) ** -decimals
    middle = math.floor(Fraction(value) / unit)
    near = [(middle + k) * unit for k in (-1, 0, 1, 2)]
    return [float(number) for number in sorted(near, key=lambda number: abs(number - Fraction(value)))]
