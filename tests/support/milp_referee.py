"""The general lane compared with brute force."""

from __future__ import annotations

from random_problems import DISTANCES, FAMILIES, Case

import mace
from mace import Explainer


def is_l2(seed: int) -> bool:
    """Return whether the question of a seed is about l2, which the lane does not take."""
    return DISTANCES[(seed // len(FAMILIES)) % len(DISTANCES)] == "l2"


def compare(case: Case, referee: str, tolerance: float) -> str | None:
    """Return how the lane and a referee differ; ``None`` where they agree, or the answer closes a gap that the referee left."""
    explainer = Explainer(case.model, case.space)
    try:
        truth = explainer.explain(case.row, solver=referee, time_limit=20, **case.question)
    except mace.InvalidTarget:
        return None
    if truth.status == "reached":
        return None
    answer = explainer.explain(case.row, solver="milp", time_limit=60, **case.question)
    for one, other in ((answer, truth), (truth, answer)):
        if other and one.lower > other[0].distance:
            return f"lower {one.lower!r} above a point at {other[0].distance!r}"
    if truth.reason and truth.status != "infeasible":
        return None
    if (answer.status, len(answer), answer.exhausted) != (truth.status, len(truth), truth.exhausted):
        return f"{answer.status}, {len(answer)} answers ({answer.reason}); {referee}: {truth.status}, {len(truth)}"
    if truth and abs(answer[0].distance - truth[0].distance) > tolerance * max(1, truth[0].distance):
        return f"distance {answer[0].distance!r}, {referee} {truth[0].distance!r}"
    return None
