"""Whether the real model puts the counterfactual of a claim in the target."""

from __future__ import annotations

from mace.certify.verdict import Refuted
from mace.problem import Problem
from mace.space import Point


def check_reached(problem: Problem, point: Point) -> None:
    """Raise unless the real model puts the point of a claim in the goal, whatever the order of summation."""
    if not problem.accepts(point):
        raise Refuted("claim.counterfactual: the model does not put it in the target")
    if not problem.form.is_settled(point, problem.goal):
        raise Refuted("claim.counterfactual: the model does not give it the same outcome in every order of summation")
