"""Refused rows: the worst one within the noise of a point, and boxes of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from mace.constraints.robust import RobustCondition
from mace.distances import as_distance
from mace.exact import float_down, float_up
from mace.forms import Network
from mace.problem import Problem
from mace.reductions.noise_box import around, inside
from mace.reductions.regions import Range, Region, whole_region
from mace.reductions.shifted_network import coordinate_attack
from mace.solvers.robust.incumbent import RobustIncumbent
from mace.solvers.robust.ranges import as_values, only, value_between
from mace.space import Integer, Point, Real

BOX_HALVINGS = 6
"""How often the interval is halved in which the end of a box of refused rows is sought."""


def grain(form: Network) -> float:
    """Return a margin that hardly matters in the unit of the scores."""
    return 1e-9 * (1 + float(np.abs(form.biases[-1]).max()))


class WorstRows:
    """The rows within the noise of a point that a network refuses most clearly, as far as a local search finds them.

    For networks whose noisy features are never missing and off any grid; for others it finds nothing.
    """

    def __init__(self, problem: Problem, noise: RobustCondition) -> None:
        self.problem, self.noise = problem, noise
        features = [problem.space[name] for name in noise.radii]
        has_numbers = all(isinstance(f, Real | Integer) and f.step is None and not f.missing for f in features)
        self.form = problem.form if isinstance(problem.form, Network) and has_numbers else None

    def near(self, point: Point) -> Point | None:
        """Return the worst row within the noise of a point that is clearly refused; ``None`` where none is found."""
        if self.form is None:
            return None
        worst, margin = coordinate_attack(self.problem, self.form, point, self._reach(point))
        return worst if margin < -grain(self.form) else None

    def from_refused(self, refused: Point, point: Point) -> Point:
        """Return the worst row that is found from a refused one within the noise of a point."""
        if self.form is None:
            return refused
        return coordinate_attack(self.problem, self.form, refused, self._reach(point))[0]

    def _reach(self, point: Point) -> dict[int, tuple[float, float]]:
        """Return the ranges of noisy numbers around a point."""
        region = around(self.problem, self.noise, point)
        return {
            self.problem.space.index(name): (float_up(region[name].low), float_down(region[name].high))
            for name in self.noise.radii
            if region[name].has_values and not region[name].is_single
        }


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
