"""The tree lane: exact nearest counterfactuals of tree ensembles by branch and bound over cells.

The search deepens: is there a counterfactual within a small ball? Only the leaves that reach into the ball take part,
which are few; where there is none, the ball grows. A box of cells is closed when its distance, or the sum of its trees'
greatest leaves, rules it out. Where that takes long, trees are made to pay for the distance they need (``dual``).
"""

from __future__ import annotations

import math

from mace.constraints.views import View
from mace.distances import PartsMetric
from mace.forms import TreeEnsemble
from mace.problem import Bounds, Limits, Problem, timed
from mace.reductions.joint_forest import joined
from mace.solvers import compiling
from mace.solvers.scale import in_units
from mace.solvers.tiny import two_stumps
from mace.solvers.trees import kernels
from mace.solvers.trees.grid import unsupported
from mace.solvers.trees.leaf_rows import leaf_rows
from mace.solvers.trees.search import TreeSearch
from mace.space import Point

TAKES = (View.DOMAINS, View.DIFFERENT, View.SOME_CHANGE, View.BUDGET, View.NEIGHBOUR, View.FOREST)
CUTS_BOXES = IS_AUTOMATIC = GOES_BY_FORM = True
MOST_ON_GRIDS = math.inf


def supports(problem: Problem) -> str:
    """Return why the lane cannot take a problem; empty where it can."""
    problem = joined(problem)
    if not isinstance(problem.form, TreeEnsemble):
        return "the model is not a tree ensemble"
    if not isinstance(problem.metric, PartsMetric):
        return "the distance is a function"
    return unsupported(problem.form)


@in_units
@timed
def solve(problem: Problem, limits: Limits) -> Bounds:
    """Find the nearest counterfactual."""
    return TreeSearch(joined(problem), limits).run()


def likely_rows(problem: Problem) -> list[Point]:
    """Return rows that seem to be in the goal, where they are seen without a search."""
    return leaf_rows(joined(problem))


def prepare() -> None:
    """Load the compiled kernels, or see to it that they are compiled; nothing once they are loaded."""
    compiling.prepare("tree", kernels.advance, _exercise)


def _exercise() -> None:
    TreeSearch(two_stumps(), Limits()).exercise()
    TreeSearch(two_stumps(), Limits(), patience=0).exercise()
