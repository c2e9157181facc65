"""The kinds of proof and their checkers, and how a proof, or one that is part of another, is handed to the checker of its kind."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from mace.certify.verdict import Progress, Unchecked, silent
from mace.problem import Problem
from mace.registry import Registry

CHECKERS = Registry(
    "proofs",
    {
        "trees": "mace.certify.trees.checker:check",
        "network": "mace.certify.network.checker:check",
        "boxes": "mace.certify.boxes.checker:check",
        "curves": "mace.certify.curves.checker:check",
        "ratios": "mace.certify.ratios.checker:check",
        "enumerate": "mace.certify.enumerate:check",
        "smt": "mace.certify.smt.checker:check",
        "milp": "mace.certify.smt.checker:check_linear",
    },
)
"""The kinds of proof and their checkers: functions ``(problem, lower, evidence, progress)``.

Each raises :class:`Refuted` or :class:`Unchecked` unless it is shown that the real model predicts no plausible point at a distance below
``lower`` (at any distance, where it is ``None``) as the target.
"""

SEARCH_CHECKERS = Registry("search_proofs", {"robust": "mace.certify.robust.checker"})
"""Modules that check the proofs of conditions with a search of their own, by the name that the condition gives it.

``check_answer(condition, problem, point, evidence)`` checks that the condition holds of a point. ``check(condition, problem, lower,
evidence, progress)`` checks that it holds of no plausible point nearer than ``lower`` that is predicted as the target. ``problem`` is the
question without the condition. Either raises :class:`Refuted` or :class:`Unchecked` where that is not shown.
"""

NOT_OF_BOXES = ("curves", "ratios", "enumerate", "smt", "milp")
"""Kinds of ours that prove no box of many: checking one of them may take as long as a whole certificate may."""


def check_lane(problem: Problem, lower: Fraction | None, evidence: dict[str, Any], progress: Progress) -> None:
    """Hand a proof to the checker of its kind."""
    lane = evidence["lane"]
    if "missing" in evidence:
        raise Unchecked(f"the {lane!s:.40} lane gave no proof of lower: {evidence['missing']!s:.300}")
    if lane not in CHECKERS:
        raise Unchecked(f"no checker for proofs of the lane {lane!r:.60}; known: {', '.join(CHECKERS)}")
    CHECKERS.load(lane)(problem, lower, evidence, progress)


def check_box(number: int, problem: Problem, lower: Fraction | None, proof: dict[str, Any]) -> None:
    """Check the proof of one of many boxes, by its number; ``problem`` is about the rows of that box."""
    if proof["lane"] in NOT_OF_BOXES:
        raise Unchecked(f"box {number} has a proof of the lane {proof['lane']!r}, which proves no boxes")
    try:
        check_lane(problem, lower, proof, silent)
    except Unchecked as error:
        raise Unchecked(f"box {number}: {error}") from error
