"""Comparing a lane with brute force on one random problem."""

from __future__ import annotations

from random_problems import Case

import mace


def disagreement(case: Case, solver: str = "smt") -> str | None:
    """Return how a lane and brute force differ on a problem; ``None`` where they agree, ``"skipped"`` where there is no question."""
    explainer = mace.Explainer(case.model, case.space)
    try:
        truth = explainer.explain(case.row, solver="enumerate", **case.question)
    except mace.InvalidTarget:
        return "skipped"
    if truth.status == "reached":
        return "skipped"
    answer = explainer.explain(case.row, solver=solver, **case.question)
    if answer.status != truth.status:
        return f"status {answer.status} ({answer.reason}), brute force {truth.status} ({truth.reason})"
    if not truth:
        return None
    best, exact = answer[0], truth[0]
    if best.distance != exact.distance:
        return f"distance {best.distance!r}, brute force {exact.distance!r}"
    if not best.lower <= exact.distance:
        return f"lower {best.lower!r} above the optimum {exact.distance!r}"
    if best.distance - best.lower > 1.0000001e-6:
        return f"gap {best.distance - best.lower!r} above the accuracy"
    predicted = explainer.predict(best.values)
    if predicted != best.prediction or predicted == answer.prediction:
        return f"the counterfactual is predicted {predicted!r}"
    return None
