"""From a point on an edge to one inside: the nearest edge is where a relaxation ends, and where rounding decides.

A small box around the point, the goal that holds whatever the rounding, and as much room at every inequality as the distance allows:
HiGHS's own search may be asked, since what it finds is put to the real model.
"""

from __future__ import annotations

from fractions import Fraction

from mace.exact import float_down
from mace.problem import Limits, Problem
from mace.solvers.milp.model import Near, build
from mace.solvers.milp.relaxation import maximise
from mace.space import Point, Real, Value

SPREAD = Fraction(1, 1000)
"""The half-width of the box, as a share of each feature's range."""


def short(problem: Problem, point: Point) -> Point:
    """Return a point with few digits near ``point``: where an equality must hold, an exact value beats a near one."""
    return tuple(
        min(max(float(f"{value:.10g}"), feature.low), feature.high)
        if isinstance(feature, Real) and feature.size is None and value is not None and value != own
        else value
        for feature, value, own in zip(problem.space.values(), point, problem.factual, strict=True)
    )


def nudge(problem: Problem, point: Point, radius: Fraction) -> list[Point]:
    """Return points a little farther out than ``point``, within a distance of the factual: often all that is needed."""
    distance = problem.distance(point)
    if distance >= radius:
        return []
    moved = []
    for share in (Fraction(1, 2), Fraction(1, 16), Fraction(15, 16)):
        factor = 1 + share * ((radius - distance) / distance if distance else Fraction(1))
        moved.append(tuple(_farther(problem, index, value, factor) for index, value in enumerate(point)))
    return [other for other in dict.fromkeys(moved) if other != point and problem.distance(other) <= radius]


def _farther(problem: Problem, index: int, value: Value, factor: Fraction) -> Value:
    feature, own = list(problem.space.values())[index], problem.factual[index]
    if value is None or own is None or value == own or feature.size is not None:
        return value
    assert isinstance(feature, Real)
    moved = float_down(Fraction(own) + factor * (Fraction(value) - Fraction(own)))
    return min(max(moved, feature.low), feature.high)


def polish(problem: Problem, point: Point, radius: Fraction, limits: Limits) -> Point | None:
    """Return a point near ``point``, within a distance of the factual, with as much room as there is; ``None`` where none is found."""
    spread = [max(SPREAD, 2 * problem.metric.reach(index, problem.accuracy)) for index in range(len(problem.factual))]
    model = build(problem, lower=Fraction(0), radius=radius, certain=True, near=Near(point, tuple(spread)))
    if model is None or model.room is None:
        return None
    solution = maximise(model.program, model.room, limits)
    if solution is None:
        return None
    return model.point(solution, model.program.low, model.program.high, at_ends=False)
