"""What checking a certificate gives; and one check that every claim needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from mace.problem import Problem
from mace.space import Point

Outcome = Literal["valid", "refuted", "unchecked"]

Progress = Callable[[float], None]
"""Receives the share of the evidence that is checked, from 0 to 1."""


def silent(share: float) -> None:
    """Report no progress: where the share of a part is not that of the whole."""


class Refuted(Exception):
    """Raised by a checker: a claim, or a step of its proof, does not hold. The message says which."""


class Unchecked(Exception):
    """Raised by a checker: the proof can be neither confirmed nor refuted here. The message says why."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is known of a certificate.

    Attributes
    ----------
    outcome : str
        ``"valid"``: every claim was checked. ``"refuted"``: a claim or a step of the proof does not hold. ``"unchecked"``: the
        counterfactual holds, but there is no proof that nothing is nearer (or, with ``robust``, that noise does not undo it), or none that
        can be checked here.
    reason : str
        What fails, or why it is unchecked; empty where it is valid.
    """

    outcome: Outcome
    reason: str = ""

    @property
    def valid(self) -> bool:
        """Whether every claim was checked."""
        return self.outcome == "valid"

    def __str__(self) -> str:
        return self.outcome if not self.reason else f"{self.outcome}: {self.reason}"


def check_reached(problem: Problem, point: Point) -> None:
    """Raise unless the real model puts the point of a claim in the goal, whatever the order of summation."""
    if not problem.accepts(point):
        raise Refuted("claim.counterfactual: the model does not put it in the target")
    if not problem.form.is_settled(point, problem.goal):
        raise Refuted("claim.counterfactual: the model does not give it the same outcome in every order of summation")
