"""The lane of curves: means of sigmoids, each replaced by polylines above and below it that come nearer round by round.

What is left is a piecewise linear question of another lane (the network lane where all models are linear or networks, else the general
one), whose proved bound is a bound here, because the polylines lie above the sigmoids.
"""

from __future__ import annotations

from mace.constraints.views import View
from mace.forms import Composite
from mace.problem import Bounds, Limits, Problem, timed

TAKES = tuple(View)
"""The lanes that it asks take them."""

CUTS_BOXES, IS_AUTOMATIC = False, True


def supports(problem: Problem) -> str:
    """Return why the lane cannot take a problem; empty where it can."""
    form = problem.form
    is_curved = isinstance(form, Composite) and form.is_curved and form.outputs == 1 and not form.has_ratios
    return "" if is_curved else "the model is no mean of sigmoids of two classes"


@timed
def solve(problem: Problem, limits: Limits) -> Bounds:
    """Find the nearest counterfactual."""
    from mace.solvers.curves.search import CurveSearch

    return CurveSearch(problem, limits).run()


def prepare() -> None:
    """Prepare the lane that answers where all models are networks."""
    from mace.solvers import network

    network.prepare()
