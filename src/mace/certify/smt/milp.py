"""The checker of the general lane: an SMT solver must find that the formula has no model.

The lane's own tree of linear programs is not recorded: its rows are made by a long translation that a checker would have to share. What
is checked instead is the claim itself, as for the SMT lane: the formula is written anew from the model's form, and a solver that has
nothing in common with the lane decides it. Where none does in time, the certificate stays unchecked.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from mace.certify.smt.checker import RUNNERS, refute
from mace.certify.verdict import Progress
from mace.problem import Problem


def check(problem: Problem, lower: Fraction | None, evidence: dict[str, Any], progress: Progress) -> None:
    """Raise unless an SMT solver finds that no point nearer than ``lower`` (at any distance, where ``None``) may reach the goal."""
    refute(problem, lower, evidence.get("excluded", []), list(RUNNERS), progress)
