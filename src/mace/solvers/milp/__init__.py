"""The general lane: branch and bound over linear programs, for whatever is piecewise linear.

It works from the same formulas as the SMT lane. HiGHS solves the linear program of each node; what is proved of a node comes
from multipliers whose bound is evaluated with outward rounding, so that no tolerance enters ``lower``.
"""

from __future__ import annotations

from mace.constraints.views import View
from mace.problem import Bounds, Limits, Problem, timed
from mace.solvers.milp.linearity import obstacle

TAKES = (View.PIECEWISE,)
CUTS_BOXES = IS_AUTOMATIC = True


def supports(problem: Problem) -> str:
    """Return what of the problem is not piecewise linear; empty where all is."""
    return obstacle(problem)


@timed
def solve(problem: Problem, limits: Limits) -> Bounds:
    """Find the nearest counterfactual."""
    from mace.solvers.milp.search import search

    return search(problem, limits)
