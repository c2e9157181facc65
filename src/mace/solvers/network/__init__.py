"""The network lane: exact nearest counterfactuals of linear models and piecewise linear networks by branch and bound over boxes.

Inside a box and the ball of the best point so far, every score is bounded by a linear function of the features. A linear function is
separable over features, so that the nearest point at which it may reach the goal is found at once; that is the bound of the box.
Without a hidden layer the bound is exact but for whole numbers and levels.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import numpy as np

from mace.constraints.views import View
from mace.distances import NormMetric
from mace.forms import Network
from mace.problem import Bounds, Evidence, Limits, Problem, timed
from mace.solvers import compiling
from mace.solvers.abilities import why_not_taken
from mace.solvers.network import kernels
from mace.solvers.network import missing as gaps
from mace.solvers.network.prepared import grid_error
from mace.solvers.network.search import MakeRival, NetworkSearch
from mace.solvers.scale import in_units, up_to_one
from mace.solvers.tiny import one_unit
from mace.space import Feature, Integer, Real

TAKES = (View.INEQUALITIES, View.DIFFERENT)
CUTS_BOXES = IS_AUTOMATIC = True
MOST_ON_GRIDS = 4

RIVAL = "mace.solvers.milp.rival:Rival"
"""What takes turns with the lane where it was chosen by itself, not by its name."""

NEAR_A_GRID = 1e-3
OFF_THE_GRID = 5e-7
"""In steps: the kernels look for the values of a grid with a tolerance of 1e-6."""

LARGEST_NUMBER, NARROWEST = 1e150, 1e-150
"""Numbers and ranges that the kernels' floats can hold with room for products."""

MOST_STEPS = 2**50
"""Whole numbers of steps are told apart by a division."""


def supports(problem: Problem) -> str:
    """Return why the lane cannot take a problem; empty where it can."""
    if not isinstance(problem.form, Network):
        return "the model is not a network"
    if not isinstance(problem.metric, NormMetric):
        return "the distance is a function, or counts people"
    if np.maximum.reduce(problem.metric.costs).min() < NARROWEST:
        return "the weights of the distance lie too far apart for floats"
    for (name, feature), own in zip(problem.space.items(), problem.factual, strict=True):
        if why := _obstacle(name, feature):
            return why
        if (
            isinstance(feature, Real | Integer)
            and feature.step is not None
            and own is not None
            and not feature.has(own)
        ):
            offset = (own - feature.low) / feature.step
            if abs(offset - round(offset)) < NEAR_A_GRID:
                return f"{name!r} lies just beside its grid"
    features = list(problem.space.values())
    for column in problem.form.columns:
        if column.table is not None and isinstance(features[column.feature], Real | Integer):
            return "a column reads a number through a table"
    return ""


@lru_cache(maxsize=1 << 12)
def _obstacle(name: str, feature: Feature) -> str:
    """Return what keeps the lane from a feature, whatever the row; empty where nothing does."""
    if isinstance(feature, Real) and (
        max(abs(feature.low), abs(feature.high)) > LARGEST_NUMBER or 0 < feature.range < NARROWEST
    ):
        return f"the range of {name!r} is too large or too narrow for products of floats"
    if isinstance(feature, Real) and feature.step is not None and grid_error(feature) > OFF_THE_GRID * feature.step:
        return f"the step of {name!r} is too fine for numbers of its size"
    if isinstance(feature, Real | Integer) and feature.step is not None and (feature.size or 1) > MOST_STEPS:
        return f"{name!r} has too many steps"
    return ""


@in_units
@timed
def solve(problem: Problem, limits: Limits, rival: MakeRival | None = None) -> Bounds:
    """Find the nearest counterfactual; a ``rival`` takes turns with a search of boxes that does not end."""
    if gaps.may_miss(problem):
        return gaps.solve(problem, limits)
    return NetworkSearch(problem, limits, rival=rival).run()


def prove(problem: Problem, lower: Fraction | None, upper: Fraction | None, limits: Limits) -> Evidence | None:
    """Return the proof that nothing nearer than ``lower`` (nothing at all, where ``None``) is in the goal, or why there is none.

    ``upper`` is the distance of the nearest point that may be there. ``None`` where only a search makes proofs.

    ``lower`` has to be known: the proof may end at single points, of which whoever checks it asks the model.
    """
    return _proof(problem, lower, upper, limits)


def refutes(problem: Problem, lower: Fraction, limits: Limits) -> bool:
    """Return whether branching alone shows that nothing nearer than ``lower`` is in the goal, which need not be known before."""
    found = _proof(problem, lower, None, limits, leaves_points=False)
    return found is not None and "missing" not in found


def _proof(
    problem: Problem, lower: Fraction | None, upper: Fraction | None, limits: Limits, *, leaves_points: bool = True
) -> Evidence | None:
    if any(why_not_taken(condition, TAKES, problem.space) for condition in problem.conditions):
        return None
    if supports(problem) or gaps.may_miss(problem):
        return None
    asked, unit = up_to_one(problem)
    ends = (None if end is None else end / unit for end in (lower, upper))
    return NetworkSearch(asked, limits).prove(*ends, leaves_points=leaves_points)


def prepare() -> None:
    """Load the compiled kernels, or see to it that they are compiled; nothing once they are loaded."""
    compiling.prepare("network", kernels.advance, _exercise)


def _exercise() -> None:
    for splits_first in (False, True):
        NetworkSearch(one_unit(), Limits(record=True), splits_first=splits_first).run()
