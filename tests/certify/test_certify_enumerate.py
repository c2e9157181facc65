"""Certificates of the enumerating lane: the checker looks at every row again."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from random_networks import random_network
from random_problems import random_case
from sklearn.linear_model import LogisticRegression
from tampering import REFUTED, outcome_of, parts_of

import mace
from mace.certify import enumerate as checker
from mace.certify.verdict import Refuted
from mace.problem import Limits
from mace.solvers import enumerate as brute


def silent(share: float) -> None:
    """Tell nobody."""


def certificate_of(seed: int) -> tuple[Any, mace.Certificate] | None:
    """Return a model and a certificate of a random question about it."""
    case = random_case(seed)
    explainer = mace.Explainer(case.model, case.space)
    try:
        explanation = explainer.explain(case.row, solver="enumerate", certify=True, **case.question)
    except mace.InvalidTarget:
        return None
    if explanation.status == "reached":
        return None
    certificate = explanation[0].certificate if explanation else explanation.certificate
    assert certificate is not None
    return case.model, certificate


@pytest.mark.parametrize("seed", range(63))
def test_certificates_of_random_problems_are_valid(seed: int) -> None:
    made = certificate_of(seed)
    if made is not None:
        model, certificate = made
        assert certificate.evidence == {"lane": "enumerate"}
        assert mace.verify(mace.Certificate.from_json(certificate.to_json()), model) == mace.Verdict("valid")


@pytest.mark.parametrize("seed", range(0, 63, 2))
def test_a_bound_beyond_the_optimum_is_refused(seed: int) -> None:
    made = certificate_of(seed)
    if made is None or made[1].claim["upper"] is None:
        return
    data = parts_of(made[1])
    lower = data["claim"]["upper"] + 1e-6
    data["claim"] = {"status": "unknown", "lower": lower, "upper": None, "counterfactual": None}
    assert outcome_of(data, made[0])[0] == REFUTED
    data["claim"] = {"status": "infeasible", "lower": None, "upper": None, "counterfactual": None}
    outcome, reason = outcome_of(data, made[0])
    assert outcome == REFUTED
    assert "the model puts it in the target" in reason


@pytest.mark.parametrize("seed", range(0, 54, 4))
def test_it_accepts_what_the_lane_proves_of_networks(seed: int) -> None:
    problem = random_network(seed).problem
    bounds = brute.solve(problem, Limits(record=True))
    assert bounds.evidence == {"lane": "enumerate"}
    checker.check(problem, None if bounds.is_infeasible else bounds.lower, bounds.evidence, silent)


def test_infinite_and_huge_spaces_are_not_enumerated() -> None:
    infinite = random_network(10_000, finite=False).problem
    with pytest.raises(Refuted, match="infinitely many values"):
        checker.check(infinite, Fraction(1, 2), {"lane": "enumerate"}, silent)
    space = mace.FeatureSpace({f"x{k}": mace.integer(0, 999) for k in range(5)})
    frame = space.frame_of([tuple(int(v) for v in row) for row in np.random.default_rng(0).integers(0, 1000, (50, 5))])
    model = LogisticRegression().fit(frame, (frame["x0"] > 500).astype(int))
    certificate = mace.Explainer(model, space).explain(frame.iloc[0], certify=True)[0].certificate
    assert certificate is not None
    data = parts_of(certificate)
    data["evidence"] = {"lane": "enumerate"}
    verdict = mace.verify(mace.Certificate(**data), model)
    assert verdict.outcome == "unchecked"
    assert "rows" in verdict.reason


def test_a_tampered_kind_of_proof_is_unchecked_or_refused_but_never_a_crash() -> None:
    made = certificate_of(4)
    assert made is not None
    for lane in ("network", "trees", "smt", "milp", "none such"):
        data = parts_of(made[1])
        data["evidence"] = {"lane": lane}
        assert outcome_of(data, made[0])[0] in (REFUTED, "unchecked", "valid")


def test_a_large_space_is_enumerated_where_conditions_leave_few_rows() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 100, (200, 4))
    model = LogisticRegression(max_iter=5000).fit(X, X @ [1, -2, 1.5, 0.3] > 40)
    space = mace.FeatureSpace({name: mace.real(0, 100, step=0.01) for name in "abc"} | {"d": mace.integer(0, 100)})
    explainer = mace.Explainer(model, space)
    row = {"a": 20.01, "b": 50.0, "c": 30.0, "d": 3}
    with pytest.raises(mace.InvalidOption, match="points"):
        explainer.explain(row, solver="enumerate")
    rules = [
        "a between 20 and 99.99",
        "b between 10.1 and 10.15",
        mace.one_of("c", [30, 80.07, 80.08]),
        "d between 3 and 4",
        "a >= 99.9",
    ]
    asked: dict[str, Any] = {"constraints": rules, "certify": True}
    answer = explainer.explain(row, solver="enumerate", **asked)
    other = explainer.explain(row, solver="milp", **asked)
    assert answer.status == other.status == "optimal"
    assert answer[0].distance == pytest.approx(other[0].distance, abs=1e-6)
    certificate = answer[0].certificate
    assert certificate is not None
    assert mace.verify(certificate, model).valid
    data = parts_of(certificate)
    data["claim"] = {"status": "unknown", "lower": answer[0].distance + 1e-6, "upper": None, "counterfactual": None}
    assert outcome_of(data, model)[0] == REFUTED
    none = explainer.explain(row, solver="enumerate", constraints=[*rules, "a <= 99.8"], certify=True)
    assert none.status == "infeasible"
    assert none.certificate is not None
    assert mace.verify(none.certificate, model).valid
