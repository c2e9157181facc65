"""Brute force on finite spaces: every point in order of distance, asked of the real model. The referee of every test."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from math import prod

import numpy as np

from mace.clock import check
from mace.constraints.views import View
from mace.distances import distance_down
from mace.distances.change import change
from mace.exact import Floats, Ints, float_up
from mace.problem import LATE, Bounds, Limits, Problem, timed
from mace.solvers.domains import Allowed, allowed_values, values_in, whole_domain
from mace.solvers.incumbent import BAND
from mace.space import Feature, Integer, Point, Real, Value, grid_values

TAKES = (View.ROWS,)
CUTS_BOXES = IS_AUTOMATIC = False
ASKS_EVERY_ROW = True

MOST_POINTS = 2_000_000
CHUNK = 256

POINTS_A_BLOCK = 2**16
"""Points whose distances are calculated, or sorted, between two looks at the clock."""

SAME_IN_FLOATS = 1e-9
"""How far floats may put a point out of the order of distance."""

Numbers = Ints


def supports(problem: Problem) -> str:
    """Return why the space cannot be enumerated; empty where it can."""
    for name, feature in problem.space.items():
        if feature.size is None:
            return f"{name!r} is real without a step, so its values cannot be enumerated"
    size = prod(len(values) for values in _domains(problem))
    return "" if size <= MOST_POINTS else f"the space has {size:,} points, above {MOST_POINTS:,}"


@timed
def solve(problem: Problem, limits: Limits) -> Bounds:
    """Walk through the points from the nearest outwards until the real model accepts one."""
    bounds = _solve(problem, limits)
    # The space is all the evidence there is: a checker enumerates it again.
    return replace(bounds, evidence={"lane": "enumerate"}) if limits.record else bounds


def _solve(problem: Problem, limits: Limits) -> Bounds:
    domains = _domains(problem)
    if not all(domains):
        return Bounds(Fraction(0), is_infeasible=True)
    measures = _measures(problem, domains)
    best: tuple[Fraction, Point] | None = None
    undecided: Fraction | None = None
    seen = 0
    for numbers in _nearest_first(measures):
        if best is not None and measures[numbers[0]] > float(best[0]) + SAME_IN_FLOATS:
            break
        if limits.remaining() <= 0:
            reached = Fraction(float(measures[numbers[0]])) * (1 - Fraction(1, 10**12))
            return _bounds(problem, best, _least(undecided, reached), LATE, seen)
        seen += len(numbers)
        chunk = [point for point in _points(domains, numbers) if problem.is_plausible(point)]
        for point, is_in_goal in _reached(problem, chunk):
            measure = problem.metric.measure(point)
            if best is not None and float(measure) > float(best[0]) + SAME_IN_FLOATS:
                break
            if is_in_goal is None:
                undecided = _least(undecided, measure)
            elif is_in_goal and (best is None or measure < best[0]):
                best = (measure, point)
    return _bounds(problem, best, undecided, "", len(measures))


def _bounds(
    problem: Problem, best: tuple[Fraction, Point] | None, floor: Fraction | None, reason: str, calls: int
) -> Bounds:
    """Return the bounds; ``floor`` is the least measure that was not decided."""
    if best is None and floor is None:
        return Bounds(Fraction(0), is_infeasible=True, calls=calls)
    lowest = min(measure for measure in (floor, best[0] if best else None) if measure is not None)
    lower = distance_down(problem.metric, lowest)
    if best is None:
        return Bounds(lower, reason=reason or BAND, calls=calls)
    gap = floor is not None and floor < best[0]
    upper = problem.distance(best[1])
    return Bounds(lower, upper, best[1], reason=(reason or BAND) if gap else "", calls=calls)


def _least(first: Fraction | None, second: Fraction) -> Fraction:
    return second if first is None else min(first, second)


def _reached(problem: Problem, points: list[Point]) -> Iterator[tuple[Point, bool | None]]:
    """Ask the real model about all points, and yield each with whether it is in the goal.

    A point whose outcome may depend on rounding is asked about alone, ``None`` where that settles nothing.
    """
    if not points:
        return
    box = problem.box()
    for point, outcome in zip(points, problem.ask(points), strict=True):
        is_sure = problem.form.is_beyond_rounding(point, problem.goal, box)
        yield point, problem.goal.accepts(outcome) if is_sure else _alone(problem, point)


def _alone(problem: Problem, point: Point) -> bool | None:
    if not problem.form.is_settled(point, problem.goal):
        return None
    return problem.accepts(point)


def _domains(problem: Problem) -> list[list[Value]]:
    """Return the values of each feature that conditions on it alone allow, its own among them."""
    each = zip(problem.space.values(), problem.factual, allowed_values(problem), strict=True)
    return [_domain(feature, own, allowed) for feature, own, allowed in each]


def _domain(feature: Feature, own: Value, allowed: Allowed) -> list[Value]:
    if own is not None and not allowed.missing and allowed.spans == ((own, own),):
        return [own]
    if allowed == whole_domain(feature):
        values: list[Value] = [*grid_values(feature)]
        is_own = True
    else:
        values = [value for span in allowed.spans for value in _between(feature, *span)]
        is_own = own is not None and any(low <= own <= high for low, high in allowed.spans)
    if own is not None and is_own and own not in values:
        values.append(own)
    return [*values, None] if feature.missing and (allowed.missing or own is None) else values


def _between(feature: Feature, low: float, high: float) -> Iterator[Value]:
    """Yield the values of a feature in a span."""
    if not isinstance(feature, Real | Integer):
        yield from range(math.ceil(low), math.floor(high) + 1)
        return
    (first,), (last,) = values_in(feature, np.array([low]), np.array([high]))
    if not (first <= last and math.isfinite(first) and math.isfinite(last)):
        return
    if isinstance(feature, Integer):
        yield from range(int(first), int(last) + 1, feature.step or 1)
        return
    if feature.step is None:
        yield float(first)
        return
    begin, step = feature.decimals
    k = round((feature.decimal(float(first)) - begin) / step)
    while k < (feature.size or 0) and (value := feature.value_at(k)) <= last:
        yield value
        k += 1


def _measures(problem: Problem, domains: list[list[Value]]) -> Floats:
    """Return the distance measure of every point in floats, the points in the order of the values.

    Changes are rounded up: one that is too small for a float is still a change.
    """
    tables = [
        np.array([float_up(change(feature, value, own)) for value in domain])
        for feature, own, domain in zip(problem.space.values(), problem.factual, domains, strict=True)
    ]
    sizes = tuple(map(len, domains))
    made = []
    for start in range(0, prod(sizes), POINTS_A_BLOCK):
        check()
        places = np.unravel_index(np.arange(start, min(start + POINTS_A_BLOCK, prod(sizes))), sizes)
        changes = np.column_stack([table[place] for table, place in zip(tables, places, strict=True)])
        measures = problem.metric.floats(changes)
        made.append(
            _one_by_one(problem, _points(domains, start + np.arange(len(changes)))) if measures is None else measures
        )
    return np.concatenate(made)


def _one_by_one(problem: Problem, points: Iterator[Point]) -> Floats:
    measures = []
    for point in points:
        check()
        measures.append(float(problem.metric.measure(point)))
    return np.array(measures)


def _nearest_first(measures: Floats) -> Iterator[Numbers]:
    """Yield the numbers of points in chunks, nearest first, equal ones in order; no more are sorted at once than may be needed."""
    left = np.arange(len(measures))
    while len(left):
        check()
        own = measures[left]
        is_near = own <= (np.partition(own, POINTS_A_BLOCK)[POINTS_A_BLOCK] if len(own) > POINTS_A_BLOCK else np.inf)
        near, left = left[is_near], left[~is_near]
        near = near[np.argsort(measures[near], kind="stable")]
        yield from (near[start : start + CHUNK] for start in range(0, len(near), CHUNK))


def _points(domains: list[list[Value]], numbers: Numbers) -> Iterator[Point]:
    """Yield points by their numbers in the order of the values."""
    places = np.unravel_index(numbers, tuple(map(len, domains)))
    for place in zip(*places, strict=True):
        yield tuple(domain[k] for domain, k in zip(domains, place, strict=True))
