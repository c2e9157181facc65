"""The question whether a point is robust: is there a row within its noise that is not in the target?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from mace.constraints.condition import GuardCondition
from mace.constraints.robust import RobustCondition
from mace.distances import as_distance
from mace.forms import negated
from mace.problem import Problem
from mace.reductions.regions import Range, Region, guard_of, whole_region
from mace.space import Point, Value


def inside(problem: Problem, region: Region) -> Problem:
    """Return a problem about the rows of a region."""
    whole = whole_region(problem.space, problem.factual)
    guards = [guard_of(name, left, whole[name]) for name, left in region.items() if left != whole[name]]
    return replace(problem, conditions=(*problem.conditions, *map(GuardCondition, guards)))


def around(problem: Problem, noise: RobustCondition, point: Point, names: Iterable[str] | None = None) -> Region:
    """Return the box of rows to which noise can lead from a point; with ``names``, only what it leaves of these features."""
    whole = whole_region(problem.space, problem.factual)
    at = dict(zip(whole, point, strict=True))
    return {name: _around(whole[name], at[name], noise, name) for name in (whole if names is None else names)}


def _around(whole: Range, value: Value, noise: RobustCondition, name: str) -> Range:
    if value is None:
        return whole.nothing_but_missing()
    left = replace(whole, missing=False)
    if left.levels is not None:
        return left.only([int(value)])
    low, high = noise.reach(name, value, value)
    return left.between(low, high) if noise.radii.get(name) else replace(left, low=low, high=high)


def counterexample_question(
    problem: Problem, noise: RobustCondition, point: Point, varies: Iterable[str] | None = None
) -> Problem:
    """Return the question for the nearest row within the noise of a point that is not in the target.

    Where ``varies`` names the features that vary there, only these are kept to the noise.
    """
    asked = replace(
        problem,
        goal=negated(problem.goal),
        factual=point,
        metric=as_distance("linf").from_factual(problem.space, point),
        conditions=(),
    )
    return inside(asked, around(problem, noise, point, varies))
