"""Numbers that a column can hold: from a point of floats to rows of float32 or float16, where a feature's dtype is one of these."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mace.exact import rounded_in
from mace.problem import Problem
from mace.space import Point, Real, Value

FARTHER = (0, 1, 4, 16, 64)
"""How many numbers beyond the next one are tried: rounding may leave the nearest ones undecided."""


def held(problem: Problem, point: Point) -> Iterator[Point]:
    """Yield rows beside a point whose every number its column holds; the point itself where it is one.

    Numbers are rounded away from the factual first, where a goal that the point is on the edge of lies, then farther, then to the nearest.
    """
    features = list(problem.space.values())
    narrow = [
        j
        for j, (feature, value) in enumerate(zip(features, point, strict=True))
        if isinstance(feature, Real) and value is not None and value != problem.factual[j] and is_narrow(feature)
    ]
    if all(features[j].nearest(float(point[j] or 0.0)) == point[j] for j in narrow):  # type: ignore[union-attr]
        yield point
        return
    for farther in FARTHER:
        yield _with(point, {j: _away(features[j], point[j], problem.factual[j], farther) for j in narrow})
    yield _with(point, {j: features[j].nearest(float(point[j] or 0.0)) for j in narrow})  # type: ignore[union-attr]


def is_narrow(feature: Real) -> bool:
    """Return whether a feature may be any number of narrower floats than float64."""
    return feature.step is None and feature.is_single


def number_beside(feature: Real, value: float, *, up: bool) -> float:
    """Return the nearest number that a feature's column holds at ``value``, above or below it; within the range."""
    ends = np.array([value])
    first, last = rounded_in(ends, ends, feature.floats)
    return min(max(float((first if up else last)[0]), feature.low), feature.high)


def _away(feature: object, value: Value, own: Value, farther: int) -> float:
    assert isinstance(feature, Real)
    assert value is not None
    up = own is None or value > own
    start = feature.floats(number_beside(feature, float(value), up=up))
    for _ in range(farther):
        start = np.nextafter(start, feature.floats(np.inf if up else -np.inf))
    return min(max(float(start), feature.low), feature.high)


def _with(point: Point, changed: dict[int, float]) -> Point:
    return tuple(changed.get(j, value) for j, value in enumerate(point))
