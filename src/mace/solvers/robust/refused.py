"""Boxes of refused rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from mace.constraints.robust import RobustCondition
from mace.distances import as_distance
from mace.problem import Problem
from mace.reductions.noise_box import inside
from mace.reductions.regions import Range, Region, whole_region
from mace.solvers.robust.incumbent import RobustIncumbent
from mace.solvers.robust.ranges import as_values, only, value_between
from mace.space import Point

BOX_HALVINGS = 6
"""How often the interval is halved in which the end of a box of refused rows is sought."""


def refused_box(
    problem: Problem, noise: RobustCondition, incumbent: RobustIncumbent, point: Point, region: Region
) -> Region:
    """Return a box around a refused row, no row of which is in the target, as wide as the lane can easily prove.

    ``region`` is the box from whose rows noise led to the refused one: what noise does not lead to from there does not matter.
    """
    whole = whole_region(problem.space, problem.factual)
    metric = as_distance("linf").from_factual(problem.space, point)
    free = replace(problem, factual=point, metric=metric, conditions=())

    def is_refused(tried: Region) -> bool:
        return incumbent.limits.remaining() > 0 and incumbent.ask(inside(free, tried)).is_infeasible

    at = {name: only(whole[name], value) for name, value in zip(whole, point, strict=True)}
    wide = {name: _widest(noise, name, whole[name], region[name], left) for name, left in at.items()}
    if is_refused(wide):
        at = wide
    else:
        for name in region:
            at = _grown(problem, name, at, wide[name], is_refused)
    return {name: as_values(problem.space[name], at[name], value) for name, value in zip(at, point, strict=True)}


def _widest(noise: RobustCondition, name: str, whole: Range, left: Range, own: Range) -> Range:
    """Return all values of a feature that matter to a box: its own range, and where noise leads from there."""
    if not own.has_values or not left.has_values:
        return own
    if left.levels is not None and own.levels is not None:
        return replace(own, levels=left.levels | own.levels)
    low, high = noise.reach(name, left.low, left.high)
    low, high = max(whole.low, low), min(whole.high, high)
    return replace(own, low=min(own.low, low), high=max(own.high, high))


def _grown(problem: Problem, name: str, at: Region, wide: Range, is_refused: Callable[[Region], bool]) -> Region:
    """Widen one feature of a box of refused rows: all at once, or each end by halving."""
    if wide == at[name]:
        return at
    if is_refused(at | {name: wide}):
        return at | {name: wide}
    if wide.levels is not None:
        return at
    for up in (False, True):
        inner, outer = (at[name].high, wide.high) if up else (at[name].low, wide.low)
        for _ in range(BOX_HALVINGS):
            middle = value_between(problem.space[name], inner, outer)
            if middle is None:
                break
            tried = at | {name: replace(at[name], high=middle) if up else replace(at[name], low=middle)}
            if is_refused(tried):
                at, inner = tried, middle
            else:
                outer = middle
    return at
