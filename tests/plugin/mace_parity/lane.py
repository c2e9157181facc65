"""A lane for small spaces of whole numbers: every row, in no order at all."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction

from mace.constraints.views import View
from mace.problem import Bounds, Limits, Problem, timed
from mace.space import Integer, Point

TAKES = (View.ROWS,)
CUTS_BOXES = IS_AUTOMATIC = False


def supports(problem: Problem) -> str:
    return (
        ""
        if all(isinstance(feature, Integer) for feature in problem.space.values())
        else "a feature is no whole number"
    )


def rows(problem: Problem) -> Iterator[Point]:
    return itertools.product(*(range(feature.low, feature.high + 1) for feature in problem.space.values()))


@timed
def solve(problem: Problem, limits: Limits) -> Bounds:
    found = [
        (problem.distance(row), row) for row in rows(problem) if problem.is_plausible(row) and problem.is_reached(row)
    ]
    evidence = {"lane": "parity"} if limits.record else None
    if not found:
        return Bounds(Fraction(0), is_infeasible=True, evidence=evidence)
    upper, point = min(found)
    return Bounds(upper, upper, point, evidence=evidence)
