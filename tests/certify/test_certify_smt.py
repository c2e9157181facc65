"""Certificates of the SMT lane and the general lane: another solver decides a formula that the checker writes itself."""

from __future__ import annotations

import copy
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from random_functions import random_function
from random_networks import random_network
from random_problems import random_case
from sklearn.tree import DecisionTreeClassifier
from tampering import REFUTED, outcome_of, parts_of

import mace
from mace.certify.smt import checker
from mace.certify.verdict import Refuted, Unchecked
from mace.problem import Limits
from mace.solvers import milp
from mace.solvers.abilities import obstacle
from mace.solvers.smt import search as smt

pytest.importorskip(
    "cvc5", reason="NOT TESTED: cvc5, the second solver of these tests, is not installed (pip install mace-xai[cvc5])"
)

LANES = ("smt", "milp")


def silent(share: float) -> None:
    """Tell nobody."""


def certificate_of(seed: int, solver: str, **options: Any) -> tuple[Any, mace.Certificate] | None:
    """Return a model and a certificate of a random question about it."""
    case = random_case(seed, **options)
    explainer = mace.Explainer(case.model, case.space)
    try:
        explanation = explainer.explain(case.row, solver=solver, certify=True, time_limit=10, **case.question)
    except (mace.InvalidTarget, mace.InvalidOption):
        return None
    if explanation.status == "reached":
        return None
    certificate = explanation[0].certificate if explanation else explanation.certificate
    assert certificate is not None
    return case.model, certificate


@pytest.mark.parametrize(
    ("solver", "seed"), [*((lane, k) for lane in LANES for k in range(0, 63, 2)), *(("cvc5", k) for k in range(8))]
)
def test_certificates_of_random_problems_are_valid(seed: int, solver: str) -> None:
    made = certificate_of(seed, solver)
    if made is not None:
        model, certificate = made
        assert mace.verify(mace.Certificate.from_json(certificate.to_json()), model) == mace.Verdict("valid")


@pytest.mark.parametrize("solver", LANES)
@pytest.mark.parametrize("seed", range(1, 63, 3))
def test_a_bound_beyond_the_optimum_is_refused(seed: int, solver: str) -> None:
    made = certificate_of(seed, solver)
    if made is None or made[1].claim["upper"] is None:
        return
    data = parts_of(made[1])
    lower = data["claim"]["upper"] + 1e-6
    data["claim"] = {"status": "unknown", "lower": lower, "upper": None, "counterfactual": None}
    assert outcome_of(copy.deepcopy(data), made[0])[0] == REFUTED
    data["claim"] = {"status": "infeasible", "lower": None, "upper": None, "counterfactual": None}
    assert outcome_of(data, made[0])[0] == REFUTED


@pytest.mark.parametrize("seed", range(10_000, 10_006))
def test_networks_over_real_features_are_certified(seed: int) -> None:
    problem = random_network(seed, finite=False).problem
    bounds = smt.solve(problem, Limits.of(10, record=True))
    if bounds.lower > 0 or bounds.is_infeasible:
        assert bounds.evidence is not None
        checker.check(problem, None if bounds.is_infeasible else bounds.lower, bounds.evidence, silent)
        if bounds.upper is not None:
            with pytest.raises(Refuted, match="in the target"):
                checker.check(problem, bounds.upper + Fraction(1, 10**6), bounds.evidence, silent)


# ---- tampering


def ruled_out() -> tuple[Any, mace.Certificate]:
    """Return a certificate whose proof rules rows out, or any."""
    found = None
    for seed in range(200):
        made = certificate_of(seed, "smt")
        if made is None or made[1].claim["upper"] is None or not made[1].claim["lower"]:
            continue
        found = made
        if made[1].evidence["excluded"]:
            return made
    assert found is not None
    return found


def test_a_row_that_reaches_the_target_cannot_be_ruled_out() -> None:
    """The counterfactual itself is ruled out, and a bound beyond it claimed."""
    model, certificate = ruled_out()
    data = parts_of(certificate)
    space = mace.Explainer(model, _space(certificate)).space
    point = list(space.point(data["claim"]["counterfactual"]))
    data["evidence"]["excluded"].append(point)
    lower = data["claim"]["upper"] + 1e-6
    data["claim"] = {"status": "unknown", "lower": lower, "upper": None, "counterfactual": None}
    outcome, reason = outcome_of(data, model)
    assert outcome == REFUTED
    assert "evidence.excluded" in reason


def _space(certificate: mace.Certificate) -> mace.FeatureSpace:
    from mace.certify.statement import Statement

    return Statement.from_dict(certificate.statement).space


@pytest.mark.parametrize(
    "excluded",
    [None, 3, "rows", [3], [[]], [[None] * 9], [["a"] * 4], [[True] * 4], [[1e300] * 4], [[{}]], [[0]] * 200_000],
)
def test_damaged_evidence_is_refused(excluded: Any) -> None:
    problem = random_network(4).problem
    with pytest.raises((Refuted, TypeError, ValueError, OverflowError, AttributeError)):
        checker.check(problem, Fraction(1, 10**3), {"lane": "smt", "solver": "z3", "excluded": excluded}, silent)


def test_the_solver_that_was_used_must_be_named() -> None:
    with pytest.raises(Refuted, match=r"evidence\.solver"):
        checker.check(random_network(4).problem, Fraction(1, 10**3), {"lane": "smt"}, silent)


def test_without_a_second_solver_it_is_unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checker.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(Unchecked, match="pip install mace-xai"):
        checker.check(random_network(4).problem, Fraction(1, 10**3), {"lane": "smt", "solver": "z3"}, silent)


def test_a_solver_that_does_not_finish_leaves_it_unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checker, "SOLVER_SECONDS", 0.001)
    with pytest.raises(Unchecked, match="not enough"):
        checker.check(random_network(4).problem, Fraction(1, 10**3), {"lane": "smt", "solver": "z3"}, silent)


def test_a_broken_script_is_unchecked_and_not_a_proof() -> None:
    for solver in checker.RUNNERS:
        assert checker.run(solver, "(assert (= x 1))(check-sat)", 20)[0] not in ("sat", "unsat")


# ---- the formula


@pytest.mark.parametrize("seed", range(12))
def test_functions_are_certified(seed: int) -> None:
    """Programs with branches, minima and products, under distances and conditions of all kinds."""
    case = random_function(seed)
    explainer = mace.Explainer(case.model, case.space)
    try:
        explanation = explainer.explain(case.row, certify=True, time_limit=20, **case.question)
    except mace.InvalidTarget:
        return
    if explanation.status == "reached":
        return
    certificate = explanation[0].certificate if explanation else explanation.certificate
    assert certificate is not None
    verdict = mace.verify(certificate, case.model)
    assert verdict.outcome != "refuted", verdict
    assert verdict.valid or "decided" in verdict.reason


def test_missing_values_are_certified() -> None:
    space = mace.FeatureSpace({"x": mace.real(0, 10, missing=True), "y": mace.integer(0, 9, step=2)})
    rng = np.random.default_rng(0)
    points = [(None if rng.random() < 0.2 else float(rng.uniform(0, 10)), 2 * int(rng.integers(5))) for _ in range(200)]
    frame = space.frame_of(points)
    labels = [int(x is None or x + y > 9) for x, y in points]
    model = DecisionTreeClassifier(max_depth=4, random_state=0).fit(frame, labels)
    for number in range(6):
        certificate = (
            mace.Explainer(model, space).explain(frame.iloc[number], solver="smt", certify=True)[0].certificate
        )
        assert certificate is not None
        assert mace.verify(certificate, model) == mace.Verdict("valid")


@pytest.mark.parametrize("seed", range(0, 54, 3))
def test_the_general_lane_on_networks_is_certified(seed: int) -> None:
    problem = random_network(seed).problem
    if obstacle(milp, problem):
        return
    bounds = milp.solve(problem, Limits.of(10, record=True))
    if bounds.lower > 0 or bounds.is_infeasible:
        assert bounds.evidence is not None
        checker.check_linear(problem, None if bounds.is_infeasible else bounds.lower, bounds.evidence, silent)
