"""What a solver is, and which conditions it takes: those with one of the views that it names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from mace.constraints import Condition
from mace.constraints.views import View
from mace.forms import is_unread
from mace.problem import Bounds, Limits, Problem
from mace.space import FeatureSpace


class Solver(Protocol):
    """A solver module.

    It may have, beside these, ``prepare()``, which is on no clock: it loads the solver's kernels, or compiles them, once in a process.
    """

    @property
    def TAKES(self) -> tuple[View, ...]:  # noqa: N802
        """The views in which it takes conditions."""
        ...

    @property
    def CUTS_BOXES(self) -> bool:  # noqa: N802
        """Whether it is asked about box after box where a condition has none of these views."""
        ...

    @property
    def IS_AUTOMATIC(self) -> bool:  # noqa: N802
        """Whether ``solver="auto"`` may choose it."""
        ...

    def supports(self, problem: Problem) -> str:
        """Return why it cannot take the model, the distance or the features of a problem; empty where it can."""
        ...

    def solve(self, problem: Problem, limits: Limits) -> Bounds:
        """Find the nearest counterfactual."""
        ...


def why_not_taken(condition: Condition, views: Sequence[View], space: FeatureSpace) -> str:
    """Return why a condition has none of these views; empty where it has one."""
    reasons = [condition.why_not(view, space) for view in views]
    return "" if "" in reasons else reasons[0]


def obstacle(solver: Solver, problem: Problem) -> str:
    """Return what keeps a solver from a problem; empty where nothing does. Of a model that was not read, rows can be asked, no more."""
    if is_unread(problem.form) and View.ROWS not in solver.TAKES:
        return "the model could not be read"
    conditions = (why_not_taken(condition, solver.TAKES, problem.space) for condition in problem.conditions)
    return solver.supports(problem) or next(filter(None, conditions), "")
