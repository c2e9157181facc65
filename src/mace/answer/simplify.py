"""Undoing changes that an answer does not need, and digits that nobody wants to read.

A solver's point is nearest, but under linf, or within the accuracy, it may move features for nothing. Each change that can be taken back
without leaving the goal, the conditions or the distance is taken back.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

from mace.problem import Limits, Problem
from mace.space import Point, Real


def tidy(problem: Problem, point: Point, lower: Fraction, limits: Limits) -> Point:
    """Return a point at most as far, of which no single change can be reverted; points nearer than ``lower`` are not tried.

    The result is plausible, reaches the goal when asked alone, and is robust against the order of summation if ``point`` is.
    """
    while limits.remaining() > 0:
        shorter = next(
            (
                candidate
                for candidate in _with_one_undone(problem, point)
                if lower <= problem.distance(candidate) <= problem.distance(point)
                and problem.is_plausible(candidate)
                and problem.is_reached(candidate)
                and (_is_beyond_rounding(problem, candidate) or not _is_beyond_rounding(problem, point))
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
