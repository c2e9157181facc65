"""Checking that a counterfactual is robust to noise, and that no nearer row is.

The first is a proof of a lane that the box of noise around the counterfactual holds no row outside of the target. The second is a proof
that no nearer row brings the model *and* copies of it to the target, which every robust row does: for tree ensembles, copies at cells of
the noisy features (:mod:`mace.certify.robust.copies`), for networks, copies with moved inputs (:mod:`mace.certify.robust.network`).
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

from mace.certify.enumerate import MOST_POINTS, rows_below
from mace.certify.proofs import check_lane
from mace.certify.robust import network as moved
from mace.certify.robust.copies import read_cell, with_copies
from mace.certify.robust.noise import around, noisy_rows
from mace.certify.verdict import Progress, Refuted, Unchecked, silent
from mace.constraints.condition import GuardCondition
from mace.constraints.robust import RobustCondition
from mace.distances import as_distance
from mace.exact import float_down, float_up
from mace.forms import TreeEnsemble, negated
from mace.language import syntax
from mace.problem import Problem
from mace.space import Categorical, Point, Real, Value

# ---- the box around an answer


def check_answer(noise: RobustCondition, problem: Problem, point: Point, evidence: dict[str, Any]) -> None:
    """Raise unless it is shown that every row within the noise of a point is in the target."""
    proof = evidence.get("around")
    if not isinstance(proof, dict):
        said = evidence.get("missing", "the evidence has no proof of it")
        raise Unchecked(f"whether noise undoes the counterfactual is not proved: {said!s:.300}")
    guards = [
        _within(name, value, noise, problem.space[name]) for name, value in zip(problem.space, point, strict=True)
    ]
    asked = replace(
        problem,
        goal=negated(problem.goal),
        factual=point,
        metric=as_distance("linf").from_factual(problem.space, point),
        conditions=tuple(map(GuardCondition, guards)),
    )
    try:
        check_lane(asked, None, proof, silent)
    except Refuted as error:
        raise Refuted(f"evidence.around: {error}") from error


def _within(name: str, value: Value, noise: RobustCondition, feature: object) -> syntax.Guard:
    """Return the guard that a feature is within the noise of a value."""
    if value is None:
        return syntax.Missing(name)
    low, high = Fraction(value), Fraction(value)
    if not isinstance(feature, Categorical) and noise.radii.get(name):
        low, high = around(noise, name, value, value)
        if isinstance(feature, Real):
            low, high = Fraction(float_up(low)), Fraction(float_down(high))
    return syntax.conjunction([syntax.Not(syntax.Missing(name)), syntax.between(syntax.Variable(name), low, high)])


# ---- the lower bound


def check(
    noise: RobustCondition,
    problem: Problem,
    lower: Fraction | None,
    evidence: dict[str, Any],
    progress: Progress,
) -> None:
    """Raise unless it is shown that no plausible point nearer than ``lower`` is in the target with all rows within its noise."""
    proof = evidence.get("proof")
    if not isinstance(proof, dict):
        raise Unchecked(f"there is no proof of lower: {evidence.get('missing', 'the evidence has none')!s:.300}")
    if proof.get("lane") == "enumerate":
        _check_rows(problem, noise, lower, progress)
        return
    if proof.get("lane") == "moved":
        moved.check(problem, noise, lower, proof, progress)
        return
    cells = evidence["places"]
    asked = problem
    if cells:
        if not isinstance(problem.form, TreeEnsemble):
            raise Refuted("evidence.places: the model is no tree ensemble")
        asked = with_copies(problem, [read_cell(problem, noise, cell) for cell in cells])
    check_lane(asked, lower, proof, progress)


def _check_rows(problem: Problem, noise: RobustCondition, lower: Fraction | None, progress: Progress) -> None:
    """Raise unless every row nearer than ``lower`` has a row within its noise that is not in the target."""
    refused: dict[Point, bool] = {}
    for rows, share in rows_below(problem, lower):
        each = [list(noisy_rows(problem, noise, row)) for row in rows]
        _look(problem, list(dict.fromkeys(row for own in each for row in own if row not in refused)), refused)
        for row, own in zip(rows, each, strict=True):
            if not any(refused[other] for other in own):
                raise Refuted(f"{problem.space.values_of(row)} is nearer than lower, and noise does not undo it")
        progress(share)


def _look(problem: Problem, rows: list[Point], refused: dict[Point, bool]) -> None:
    """Note which rows the model surely refuses; it is asked about rows together where rounding cannot matter, else one by one."""
    if len(refused) + len(rows) > MOST_POINTS:
        raise Unchecked(f"noise makes more than {MOST_POINTS:,} rows of those nearer than lower")
    box, form, goal = problem.box(), problem.form, problem.goal
    for row, outcome in zip(rows, problem.ask(rows) if rows else [], strict=True):
        is_beyond_rounding = form.is_beyond_rounding(row, goal, box)
        accepted = goal.accepts(outcome if is_beyond_rounding else problem.ask([row])[0])
        refused[row] = not accepted and (is_beyond_rounding or form.is_settled(row, goal))
