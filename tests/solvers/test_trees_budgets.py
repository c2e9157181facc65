"""Limits on the number of changes inside the tree lane: equal to brute force with either engine, with certificates that are valid."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from random_ensembles import random_ensemble
from random_problems import Case
from sklearn.ensemble import RandomForestClassifier
from tiers import interpreted
from trees_referee import compare

import mace
from mace import Explainer, FeatureSpace, changes_at_most
from mace.solvers.trees import search

PRICES_ONLY = 0


def budgets(case: Case, seed: int) -> list[Any]:
    """Return one or two limits on changes: of all features or some, counted or weighed, in whole numbers or decimals."""
    rng = np.random.default_rng(seed)
    names = list(case.space)
    some = [str(name) for name in rng.choice(names, max(1, len(names) // 2), replace=False)]
    weights = {name: round(float(rng.choice([0.1, 0.2, 0.7, 1.0, 3.0])), 1) for name in some}
    made = [
        changes_at_most(int(rng.integers(0, 4))),
        changes_at_most(int(rng.integers(0, 2)), of=some),
        changes_at_most(round(float(rng.choice([0.3, 0.8, 1.1, 3.7])), 1), weights=weights),
    ]
    return [made[k] for k in sorted(rng.choice(3, int(rng.integers(1, 3)), replace=False))]


def with_budgets(seed: int, *, finite: bool = True) -> Case:
    case = random_ensemble(seed, finite=finite)
    given = list(case.question.get("constraints") or ())
    return replace(case, question={**case.question, "constraints": [*given, *budgets(case, seed)]})


@pytest.mark.parametrize("seed", range(60_000, 60_030))
def test_budgets_equal_brute_force(seed: int) -> None:
    assert compare(with_budgets(seed), "enumerate", 1e-12) is None


@pytest.mark.parametrize("seed", range(61_000, 61_024))
def test_budgets_with_prices_alone_equal_brute_force(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "NODES_BEFORE_PRICES", PRICES_ONLY)
    monkeypatch.setattr(search, "INCUMBENT_AFTER", 1)
    monkeypatch.setattr(search, "NODES_TO_REACH", 4)
    assert compare(with_budgets(seed), "enumerate", 1e-12) is None


@pytest.mark.parametrize("seed", range(62_000, 62_006))
def test_budgets_interpreted_equal_brute_force(seed: int) -> None:
    with interpreted():
        assert compare(with_budgets(seed), "enumerate", 1e-12) is None


@pytest.mark.parametrize("prices", [False, True], ids=["plain", "prices"])
@pytest.mark.parametrize("seed", range(63_000, 63_012))
def test_certificates_of_budgets_are_valid(seed: int, prices: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if prices:
        monkeypatch.setattr(search, "NODES_BEFORE_PRICES", PRICES_ONLY)
        monkeypatch.setattr(search, "PLAIN_SHARE", -1.0)
        monkeypatch.setattr(search, "LEAST_PROOF", 5.0)
    case = with_budgets(seed, finite=seed % 2 == 0)
    try:
        found = Explainer(case.model, case.space).explain(case.row, **case.question, solver="trees", certify=True)
    except mace.InvalidTarget:
        return
    for certificate in [each.certificate for each in found] + [found.certificate]:
        if certificate is not None:
            read = mace.Certificate.from_json(certificate.to_json())
            assert mace.verify(read, case.model) == mace.Verdict("valid")


def forest() -> tuple[Any, FeatureSpace, pd.DataFrame]:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(rng.normal(size=(400, 10)), columns=[f"x{k}" for k in range(10)])
    labels = (frame.sum(axis=1) + frame["x0"] * frame["x1"] > 0).astype(int)
    model = RandomForestClassifier(25, random_state=0).fit(frame, labels)
    farthest = np.argsort(model.predict_proba(frame)[:, 1], kind="stable")
    return model, FeatureSpace.from_frame(frame), frame.iloc[farthest[:3]]


@pytest.fixture(scope="module", params=[None, 0], ids=["race", "prices"])
def sparse_answers(request: pytest.FixtureRequest) -> list[tuple[Any, int, mace.Explanation, mace.Explanation]]:
    """Answers with the least number of changes, and that there is none with one fewer."""
    model, space, rows = forest()
    explainer, found = Explainer(model, space), []
    with pytest.MonkeyPatch.context() as patch:
        if request.param is not None:
            patch.setattr(search, "NODES_BEFORE_PRICES", request.param)
            patch.setattr(search, "PLAIN_SHARE", -1.0)
            patch.setattr(search, "LEAST_PROOF", 5.0)
        for k in (0, 1, 2):
            fewest = round(explainer.explain(rows.iloc[k], distance="l0")[0].distance * len(space))
            both = [
                explainer.explain(rows.iloc[k], constraints=[changes_at_most(most)], certify=True, round_to=None)
                for most in (fewest, fewest - 1)
            ]
            found.append((model, fewest, *both))
    return found


def test_the_least_number_of_changes_is_the_first_that_has_an_answer(sparse_answers: Any) -> None:
    for _, fewest, answer, none in sparse_answers:
        assert (answer.status, none.status) == ("optimal", "infeasible")
        assert len(answer[0].changes) == fewest
        assert answer.solver == none.solver == "trees: the first lane that can"
    assert max(fewest for _, fewest, _, _ in sparse_answers) > 1


def rates_of(certificate: mace.Certificate) -> list[float]:
    """Return the prices of a budget in a proof."""
    parts = [part["prices"] for part in certificate.evidence["parts"] if "prices" in part]
    return [float(rate) for prices in parts for rate in prices["rates"].flat]


def test_proofs_are_those_of_the_tree_lane_and_valid(sparse_answers: Any, request: pytest.FixtureRequest) -> None:
    rates = []
    for model, _, answer, none in sparse_answers:
        for certificate in (answer[0].certificate, none.certificate):
            assert certificate.evidence["lane"] == "trees"
            assert mace.verify(mace.Certificate.from_json(certificate.to_json()), model) == mace.Verdict("valid")
            rates += rates_of(certificate)
    if "prices" in request.node.name:
        assert any(rate > 0 for rate in rates), "no proof needed the price of a budget"


def test_a_proof_with_wrong_rates_is_refuted(sparse_answers: Any, request: pytest.FixtureRequest) -> None:
    reasons = []
    for model, _, answer, none in sparse_answers:
        for certificate in (answer[0].certificate, none.certificate):
            for factor in (0.0, 20.0) if rates_of(certificate) else ():
                evidence = certificate.evidence
                parts = [
                    {**part, "prices": {**part["prices"], "rates": factor * part["prices"]["rates"]}}
                    for part in evidence["parts"]
                ]
                verdict = mace.verify(replace(certificate, evidence={**evidence, "parts": parts}), model)
                reasons += [verdict.reason] if verdict.outcome == "refuted" else []
    # A box may also be left open because fewer leaves are dropped.
    assert all("is not closed" in reason for reason in reasons)
    assert any("not closed by its prices" in reason for reason in reasons) or not reasons
    assert reasons or "prices" not in request.node.name


def test_a_proof_under_a_budget_does_not_prove_a_wider_one(sparse_answers: Any) -> None:
    for model, fewest, _, none in sparse_answers:
        text = none.certificate.to_json()
        wider = text.replace(f"at most {fewest - 1} features change", f"at most {fewest} features change")
        assert wider != text
        assert mace.verify(mace.Certificate.from_json(wider), model).outcome == "refuted"
