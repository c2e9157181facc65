"""Distances above 1, for lanes whose arithmetic is made for those up to 1: the question in larger units, its answer in the usual ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Concatenate

from mace.distances import NormMetric
from mace.problem import Bounds, Limits, Options, Problem


def up_to_one(problem: Problem) -> tuple[Problem, int]:
    """Return a problem in units in which no distance is above 1, and how much such a unit is."""
    if not isinstance(problem.metric, NormMetric):
        return problem, 1
    metric, unit = problem.metric.up_to_one()
    return (problem if unit == 1 else replace(problem, metric=metric, accuracy=problem.accuracy / unit)), unit


def in_units(
    solve: Callable[Concatenate[Problem, Limits, Options], Bounds],
) -> Callable[Concatenate[Problem, Limits, Options], Bounds]:
    """Ask a lane in units in which no distance is above 1."""

    @wraps(solve)
    def solved(problem: Problem, limits: Limits, /, *args: Options.args, **options: Options.kwargs) -> Bounds:
        asked, unit = up_to_one(problem)
        if unit == 1:
            return solve(problem, limits, *args, **options)
        report = limits.on_progress
        if report is not None:
            limits = replace(limits, on_progress=lambda low, high, calls: report(low * unit, high * unit, calls))
        if limits.within is not None:
            limits = replace(limits, within=limits.within / unit)
        found = solve(asked, limits, *args, **options)
        upper = None if found.point is None else problem.distance(found.point)
        return replace(found, lower=found.lower * unit, upper=upper)

    return solved
