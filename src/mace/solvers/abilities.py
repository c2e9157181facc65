"""What a lane is, what it is able to do, and which conditions it takes: those with one of the views that it names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from mace.constraints import Condition
from mace.constraints.views import View
from mace.forms import is_unread
from mace.problem import Bounds, Limits, Problem
from mace.space import FeatureSpace


class Solver(Protocol):
    """A solver module.

    It may have, beside these:

    - ``prepare()``, which loads the solver's kernels, or compiles them, once in a process; no limit counts its time;
    - ``RIVAL``, the search that takes turns with it where ``auto`` chose it;
    - ``prove(problem, lower, upper, limits)``, which returns the proof of a known lower bound (``None`` where only a search makes it);
    - ``refutes(problem, lower, limits)``, which tells whether it sees, without a search for points, that nothing nearer is in the goal;
    - ``GOES_BY_FORM``, true where it looks at a model's form only, and at no part of it that conditions on single features rule out;
    - ``ASKS_EVERY_ROW``, true where its proof is that each nearer row is looked at;
    - ``likely_rows(problem)``, which returns rows that seem to be in the goal and that it sees without a search;
    - ``MOST_ON_GRIDS``, of how many features with values on a grid it finds the nearest point soon.
    """

    @property
    def TAKES(self) -> tuple[View, ...]:  # noqa: N802
        """The views in which it takes conditions."""

    @property
    def CUTS_BOXES(self) -> bool:  # noqa: N802
        """Whether it is asked about box after box where a condition has none of these views."""

    @property
    def IS_AUTOMATIC(self) -> bool:  # noqa: N802
        """Whether ``solver="auto"`` may choose it."""

    def supports(self, problem: Problem) -> str:
        """Return why it cannot take the model, the distance or the features of a problem; empty where it can."""

    def solve(self, problem: Problem, limits: Limits) -> Bounds:
        """Find the nearest counterfactual."""


@dataclass(frozen=True, slots=True)
class Lane:
    """A chosen solver: its name, its module, how to run it, why it was chosen, and how many seconds it took to be prepared."""

    name: str
    solver: Solver
    solve: Callable[[Problem, Limits], Bounds]
    why: str
    preparing: float = 0.0

    @property
    def takes_formulas(self) -> bool:
        """Whether it takes equations before a model as formulas, or row by row; of others the model is asked with the equations in it."""
        return not {View.PIECEWISE, View.FORMULA, View.ROWS}.isdisjoint(self.solver.TAKES)


Choose = Callable[[Problem], Lane]
"""Gives the lane of a problem."""


def why_not_taken(condition: Condition, views: Sequence[View], space: FeatureSpace) -> str:
    """Return why a condition has none of these views; empty where it has one."""
    reasons = [condition.why_not(view, space) for view in views]
    return "" if "" in reasons else reasons[0]


def obstacle(solver: Solver, problem: Problem) -> str:
    """Return why a solver cannot take a problem; empty where it can. A model that was not read can only be asked about rows."""
    if is_unread(problem.form) and View.ROWS not in solver.TAKES:
        return "the model could not be read"
    conditions = (why_not_taken(condition, solver.TAKES, problem.space) for condition in problem.conditions)
    return solver.supports(problem) or next(filter(None, conditions), "")
