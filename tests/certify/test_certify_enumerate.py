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
