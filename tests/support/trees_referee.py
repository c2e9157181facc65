"""The tree lane compared with brute force."""

from __future__ import annotations

from random_problems import Case

import mace
from mace import Explainer


def compare(case: Case, referee: str, tolerance: float) -> str | None:
    """Return how the tree lane and a referee differ; ``None`` where they agree or there is no question."""
    explainer = Explainer(case.model, case.space)
    try:
        truth = explainer.explain(case.row, solver=referee, time_limit=60, **case.question)
    except mace.InvalidTarget:
        return None
    if truth.status == "reached":
        return None
    answer = explainer.explain(case.row, solver="trees", **case.question)
    if truth.reason and truth.status != "infeasible":
        # The referee itself left a gap: the answer must lie in it.
        inside = (
            bool(answer)
            and truth.lower - tolerance <= answer[0].distance
            and (not truth or answer[0].distance <= truth[0].distance + tolerance)
        )
        return None if inside else f"outside of the gap that {referee} left: {truth.reason}"
    if (answer.status, len(answer), answer.exhausted) != (truth.status, len(truth), truth.exhausted):
        return (
            f"{answer.status}, {len(answer)} answers, {referee}: {truth.status}, {len(truth)} answers ({truth.reason})"
        )
    if truth and abs(answer[0].distance - truth[0].distance) > tolerance:
        return f"distance {answer[0].distance!r}, {referee} {truth[0].distance!r}"
    if truth and not answer[0].lower <= answer[0].distance <= answer[0].lower + 1e-12:
        return f"lower {answer[0].lower!r}, distance {answer[0].distance!r}"
    return None
