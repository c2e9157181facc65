"""From a point on an edge to one inside: the nearest edge is where a relaxation ends, and where rounding decides.

A small box around the point, the goal that holds whatever the rounding, and as much room at every inequality as the distance allows:
HiGHS's own search may be asked, since what it finds is put to the real model.
"""

from __future__ import annotations

from fractions import Fraction

from mace.problem import Limits, Problem
from mace.solvers.milp.model import Near, build
from mace.solvers.milp.relaxation import maximise
from mace.space import Point

SPREAD = Fraction(1, 1000)
"""The half-width of the box, as a share of each feature's range."""


def polish(problem: Problem, point: Point, radius: Fraction, limits: Limits) -> Point | None:
    """Return a point near ``point``, within a distance of the factual, with as much room as there is; ``None`` where none is found."""
    spread = [
        max(SPREAD, 2 * problem.metric.reach(index, problem.accuracy)) for index in range(len(problem.factual))
    ]
    model = build(problem, limits, lower=Fraction(0), radius=radius, near=Near(point, tuple(spread)))
    if model is None or model.room is None:
        return None
    solution = maximise(model.program, model.room, limits)
    if solution is None:
        return None
    return model.point(solution, model.program.low, model.program.high, at_ends=False)
