"""The general lane: branch and bound over linear programs, for whatever is piecewise linear.

It works from the same formulas as the SMT lane. HiGHS solves the linear program of each node; what is proved of a node comes
from multipliers whose bound is evaluated with outward rounding, so that no tolerance enters ``lower``.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

from mace.constraints.views import View
from mace.distances import NormMetric
from mace.forms import Composite, EffectsForm, Form, FunctionForm, Network, ObliqueTrees, TreeEnsemble
from mace.language.linearity import why_not_linear
from mace.problem import Bounds, Limits, Problem, timed

TAKES = (View.PIECEWISE,)
CUTS_BOXES = IS_AUTOMATIC = True

_FORMS: WeakKeyDictionary[Form, str] = WeakKeyDictionary()


def supports(problem: Problem) -> str:
    """Return what of the distance or the model is not piecewise linear, empty where all is; conditions say so themselves."""
    if problem.metric.power != 1:
        return "l2 is not piecewise linear"
    curved = "" if isinstance(problem.metric, NormMetric) else why_not_linear(problem.metric.program(), "the distance")
    return curved or _of_form(problem.form)


def _of_form(form: Form) -> str:
    if isinstance(form, TreeEnsemble | Network | ObliqueTrees):
        return ""
    if isinstance(form, EffectsForm):
        equations = (why_not_linear(equation.program, "an equation") for equation in form.effects.equations)
        return next(filter(None, equations), "") or _of_form(form.inner)
    if isinstance(form, Composite):
        return "a mean of sigmoids is not piecewise linear" if form.is_curved else ""
    if form not in _FORMS:
        what = "the function" if isinstance(form, FunctionForm) else "the model"
        _FORMS[form] = why_not_linear(form.program(), what)
    return _FORMS[form]


@timed
def solve(problem: Problem, limits: Limits) -> Bounds:
    """Find the nearest counterfactual."""
    from mace.solvers.milp.search import search

    return search(problem, limits)
