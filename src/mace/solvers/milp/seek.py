"""A first incumbent: single changes, then random ones, asked of the real model and pulled back towards the factual."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mace.problem import Limits, Problem, in_domain
from mace.space import Feature, Integer, Point, Real, Value

SINGLES = 9
"""Values tried of each numeric feature alone."""

STARTS_DRAWN = 128
PARTS_OF_A_LINE = 15
ROUNDS = 2


def seek(problem: Problem, limits: Limits) -> Point | None:
    """Return a valid point near the factual, as far as a few hundred questions to the real model find one."""
    found = hopeful(problem, list(_single_changes(problem)))
    if not found and limits.remaining() > 0:
        found = hopeful(problem, list(_random_changes(problem)))
    nearest = next(filter(problem.is_reached, found), None)
    return None if nearest is None else pull(problem, nearest, limits)


def hopeful(problem: Problem, points: list[Point]) -> list[Point]:
    """Return the points that are plausible and that the real model, asked about all at once, puts in the goal; nearest first."""
    return sorted(problem.reaching(list(filter(problem.is_plausible, points))), key=problem.distance)


def pull(problem: Problem, point: Point, limits: Limits) -> Point:
    """Return a valid point that is nearer: all changes shortened together, then each reverted or shortened by itself."""
    for _ in range(ROUNDS):
        if limits.remaining() > 0:
            point = _nearest(problem, [point, *_shortened(problem, point)])
    for index, own in enumerate(problem.factual):
        if point[index] == own or limits.remaining() <= 0:
            continue
        point = _nearest(problem, [point, _with(point, index, own)])
        for _ in range(ROUNDS):
            if point[index] == own or limits.remaining() <= 0:
                break
            shorter = [_with(point, index, value) for value in _between(problem, index, point[index])]
            point = _nearest(problem, [point, *shorter])
    return point


def _nearest(problem: Problem, points: list[Point]) -> Point:
    """Return the first, which is valid, or the nearest of the others that is nearer and valid."""
    limit = problem.distance(points[0])
    nearer = (point for point in hopeful(problem, points[1:]) if problem.distance(point) < limit)
    return next(filter(problem.is_reached, nearer), points[0])


def _shortened(problem: Problem, point: Point) -> Iterator[Point]:
    """Yield points on the way from the factual, levels as they are in the point."""
    steps = [list(_between(problem, index, value)) for index, value in enumerate(point)]
    for k in range(PARTS_OF_A_LINE):
        yield tuple(step[k] if step else value for step, value in zip(steps, point, strict=True))


def _between(problem: Problem, index: int, value: Value) -> Iterator[Value]:
    """Yield values of a numeric feature between the factual's and another one."""
    feature, own = list(problem.space.values())[index], problem.factual[index]
    if own is None or value is None or not isinstance(feature, Real | Integer):
        return
    for share in range(1, PARTS_OF_A_LINE + 1):
        yield _snap(feature, own + (value - own) * share / (PARTS_OF_A_LINE + 1))


def _snap(feature: Real | Integer, value: float) -> Value:
    value = min(max(value, feature.low), feature.high)
    if isinstance(feature, Real) and feature.size is None:
        return feature.nearest(float(value))
    if feature.size == 1:
        return feature.low
    assert feature.size is not None
    step = feature.step or 1
    return feature.value_at(min(max(round((value - feature.low) / step), 0), feature.size - 1))


def _with(point: Point, index: int, value: Value) -> Point:
    return (*point[:index], value, *point[index + 1 :])


def _values(feature: Feature, own: Value) -> list[Value]:
    if isinstance(feature, Real | Integer):
        width = feature.high - feature.low
        spread = [_snap(feature, feature.low + width * k / (SINGLES - 1)) for k in range(SINGLES)]
        values: list[Value] = [*dict.fromkeys(spread), *([None] if feature.missing else [])]
    else:
        values = list(range(feature.size))
    return [value for value in values if value != own and in_domain(feature, value, own)]


def _single_changes(problem: Problem) -> Iterator[Point]:
    for index, (feature, own) in enumerate(zip(problem.space.values(), problem.factual, strict=True)):
        for value in _values(feature, own):
            yield _with(problem.factual, index, value)


def _random_changes(problem: Problem) -> Iterator[Point]:
    rng = np.random.default_rng(0)
    features = list(problem.space.values())
    choices = [_values(feature, own) or [own] for feature, own in zip(features, problem.factual, strict=True)]
    for _ in range(STARTS_DRAWN):
        share = rng.choice([0.4, 0.7, 1.0])
        yield tuple(
            values[int(rng.integers(len(values)))] if rng.random() < share else own
            for values, own in zip(choices, problem.factual, strict=True)
        )
