"""The lane of ratios: probabilities of several classes that are divided by their sums, then weighted and added.

Over a box each of them lies below a linear function of its model's scores. With these in the place of the probabilities another lane (that
of trees where all models are trees, that of networks where all are linear or networks, else the general one) finds the nearest point of the
box that may reach the goal; boxes are cut until it does.
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
    if not isinstance(form, Composite) or not form.is_curved or (form.outputs == 1 and not form.has_ratios):
        return "the model is no sum of probabilities of several classes"
    if any(feature.missing for feature in problem.space.values()) or None in problem.factual:
        return "a feature may be missing"
    return ""


@timed
def solve(problem: Problem, limits: Limits) -> Bounds:
    """Find the nearest counterfactual."""
    from mace.solvers.ratios.search import RatioSearch

    return RatioSearch(problem, limits).run()
