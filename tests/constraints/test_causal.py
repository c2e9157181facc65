"""Causal recourse: nearest interventions by hand, and by brute force over actions."""

from __future__ import annotations

import itertools
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from random_problems import from_source
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline

import mace

SPACE = mace.FeatureSpace({"income": mace.real(0, 100), "savings": mace.real(0, 100)})
LENDER = """
def model(income, savings):
    return "yes" if income + 2 * savings >= 120 else "no"
"""
PERSON = {"income": 40, "savings": 20}


def lender(*equations: Any, space: Any = SPACE) -> mace.Explainer:
    causes = mace.Causal(equations[0]) if equations else None
    return mace.Explainer(from_source(LENDER, "model"), space, causes)


def test_income_and_savings_by_hand() -> None:
    """Savings grow by 0.3 of income. The person has 40 + 2 * 20 = 80 and needs 120.

    Without causes: 20 more of savings, 20 / 100 / 2 = 0.1. With: raising income by t gives t + 2 * 0.3 t = 1.6 t, so t = 25 costs 0.125;
    raising savings by 20 costs 0.1 still. If savings cannot be acted upon but only follow, t = 25 is the answer.
    """
    free = lender().explain(PERSON, target="yes")[0]
    assert free.distance == pytest.approx(0.1)
    assert free.actions is None
    explainer = lender({"savings": "lambda x: 0.3 * x.income"})
    acting = explainer.explain(PERSON, target="yes")[0]
    assert acting.status == "optimal"
    assert acting.distance == pytest.approx(0.1)
    assert acting.actions == ("savings",)
    earning = explainer.explain(PERSON, target="yes", distance=mace.Distance(l1=1.0, weights={"savings": 9.0}))[0]
    assert earning.status == "optimal"
    assert earning.actions == ("income",)
    assert earning.distance == pytest.approx(0.025)
    assert earning.values["income"] == pytest.approx(65, abs=1e-3)
    assert earning.values["savings"] == pytest.approx(27.5, abs=1e-3)
    assert [change.feature for change in earning.changes] == ["income", "savings"]
    assert "savings (effect)" in str(earning)
    assert "income (effect)" not in str(earning)
    assert earning.to_dict()["actions"] == ["income"]
    assert mace.Counterfactual.from_dict(earning.to_dict()).actions == ("income",)


def test_steeper_savings_make_income_the_cheaper_action() -> None:
    """Savings follow income one to one: t + 2 t = 40 at t = 40 / 3, cost 2 / 30 of all, against 0.1 for savings alone."""
    explainer = lender({"savings": "lambda x: x.income"})
    best = explainer.explain(PERSON, target="yes")[0]
    assert best.actions == ("income",)
    assert best.distance == pytest.approx(40 / 3 / 100 / 2, abs=2e-6)
    assert best.prediction == "yes"
    short = explainer.explain(PERSON, target="yes", digits=1)[0]
    assert (short.values["income"], short.values["savings"]) == (53.4, pytest.approx(33.4))
    assert short.status == "feasible"


def test_an_effect_outside_of_its_range_is_not_plausible() -> None:
    """Savings double with income, and may be 30 at most: income may rise by 5 only, which gives 5 + 2 * 10 = 25 of 40."""
    space = mace.FeatureSpace({"income": mace.real(0, 100), "savings": mace.real(0, 30)})
    explainer = lender({"savings": "lambda x: 2 * x.income"}, space=space)
    answer = explainer.explain(PERSON, target="yes")
    assert answer.status == "optimal"
    # Earning 40 more, savings held where they are, which is an action too, but changes nothing and costs nothing.
    assert set(answer[0].actions or ()) == {"income", "savings"}
    assert answer[0].distance == pytest.approx(40 / 100 / 2, abs=2e-6)
    assert answer[0].values["savings"] == 20
    # Where income may rise by 30 only, 5 more must be saved.
    bound = explainer.explain(PERSON, target="yes", constraints=["income <= 70"])[0]
    assert bound.distance == pytest.approx((30 / 100 + 5 / 30) / 2, abs=2e-6)
    few = explainer.explain(PERSON, target="yes", constraints=["income <= 70", "savings <= 24"])
    assert few.status == "infeasible"


def test_a_piecewise_equation_and_a_chain() -> None:
    """Above 50 of income savings grow by half of it, and debt falls by savings: a chain of two equations."""
    space = mace.FeatureSpace({"income": mace.real(0, 100), "savings": mace.real(0, 100), "debt": mace.real(0, 100)})
    model = "def model(income, savings, debt):\n    return 1 if savings - debt >= 0 else 0\n"
    causes = mace.Causal(
        {"debt": "lambda x: 50 - x.savings", "savings": "lambda x: 0.5 * (x.income - 50) if x.income > 50 else 0"}
    )
    explainer = mace.Explainer(from_source(model, "model"), space, causes)
    row = {"income": 40, "savings": 10, "debt": 40}
    # Income t above 50: savings 10 + t / 2, debt 40 - t / 2; equal at t = 30, income 80.
    weights = {"savings": 50.0, "debt": 50.0}
    best = explainer.explain(row, target=1, distance=mace.Distance(l1=1.0, weights=weights))[0]
    assert best.status == "optimal"
    assert best.actions == ("income",)
    assert best.values["income"] == pytest.approx(80, abs=0.02)
    assert best.values["savings"] == pytest.approx(25, abs=0.02)
    # Where all weigh the same, saving 15 more lets debt fall by 15: 0.15 / 3.
    saving = explainer.explain(row, target=1)[0]
    assert saving.actions == ("savings",)
    assert saving.distance == pytest.approx(0.05, abs=2e-6)


# ---- brute force over a grid of actions

GRID = mace.FeatureSpace(
    {
        "age": mace.integer(20, 28),
        "kind": mace.categorical(["p", "q"]),
        "income": mace.real(0, 40),
        "savings": mace.real(0, 30),
    }
)
CAUSES = {"savings": "lambda x: 0.5 * x.income + (2 if x.kind == 'q' else 0)"}


def read(estimator: Any, causes: Any = None) -> mace.Explainer:
    rng = np.random.default_rng(4)
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 29, 250),
            "kind": rng.choice(["p", "q"], 250),
            "income": rng.uniform(0, 40, 250),
            "savings": rng.uniform(0, 30, 250),
        }
    )
    labels = (frame.income + 2 * frame.savings + frame.age + 3 * (frame.kind == "q") > 75).astype(int)
    return mace.Explainer(make_pipeline(mace.Encoder(GRID), estimator).fit(frame, labels), GRID, causes)


def cheapest(explainer: mace.Explainer, row: dict[str, Any]) -> float:
    """Return the least cost of actions on a grid whose row is put in class 1."""
    own = row["savings"] - 0.5 * row["income"] - (2 if row["kind"] == "q" else 0)
    incomes = np.unique(np.append(np.linspace(0, 40, 81), row["income"]))
    savings = [None, *np.unique(np.append(np.linspace(0, 30, 61), row["savings"]))]
    found = []
    for age, kind, income, acted in itertools.product(range(20, 29), ["p", "q"], incomes, savings):
        led = 0.5 * income + (2 if kind == "q" else 0) + own if acted is None else acted
        cost = abs(age - row["age"]) / 8 + (kind != row["kind"]) + abs(income - row["income"]) / 40
        cost += 0 if acted is None else abs(acted - row["savings"]) / 30
        if 0 <= led <= 30:
            found.append((cost / 4, age, kind, income, led))
    found.sort()
    for begin in range(0, len(found), 200):
        rows = pd.DataFrame([each[1:] for each in found[begin : begin + 200]], columns=list(GRID))
        reached = np.flatnonzero(explainer.model.predict(rows) == 1)
        if len(reached):
            return float(found[begin + reached[0]][0])
    return float("inf")


@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(),
        MLPClassifier((2,), solver="lbfgs", max_iter=2000, random_state=3),
        RandomForestClassifier(3, max_depth=3, random_state=0),
    ],
    ids=["linear", "network", "forest"],
)
def test_no_action_of_a_grid_is_cheaper(estimator: Any) -> None:
    explainer = read(estimator, mace.Causal(CAUSES))
    rows = [
        {"age": 22, "kind": "p", "income": 12.0, "savings": 8.0},
        {"age": 24, "kind": "q", "income": 6.0, "savings": 20.0},
    ]
    for row in rows:
        if explainer.predict(row) == 1:
            continue
        answer = explainer.explain(row, target=1)
        assert answer.status == "optimal", answer.reason
        best = answer[0]
        assert explainer.predict(best.values) == 1
        grid = cheapest(explainer, row)
        assert best.lower <= grid
        assert best.distance <= grid + 1e-9
        assert grid - best.distance <= 0.011, "a step of the grid costs that much at most"


def test_linear_equations_go_into_a_network() -> None:
    causes = {"savings": "lambda x: 0.5 * x.income"}
    explainer = read(LogisticRegression(), mace.Causal(causes))
    row = {"age": 22, "kind": "p", "income": 12.0, "savings": 8.0}
    answer = explainer.explain(row, target=1)
    assert answer.solver.startswith("network")
    general = explainer.explain(row, target=1, solver="milp")
    assert general.status == "optimal"
    assert answer[0].distance == pytest.approx(general[0].distance, abs=2e-6)
    bound = explainer.explain(row, target=1, constraints=["savings <= 14", "kind stays"])
    other = explainer.explain(row, target=1, constraints=["savings <= 14", "kind stays"], solver="smt")
    assert bound[0].distance == pytest.approx(other[0].distance, abs=2e-6)
    assert bound[0].values["savings"] <= 14


def test_what_cannot_be_done_with_causes_is_refused() -> None:
    explainer = lender({"savings": "lambda x: 0.3 * x.income"})
    with pytest.raises(mace.InvalidConstraint, match="with causes"):
        explainer.explain(PERSON, constraints=[mace.robust({"income": 1})])
    with pytest.raises(mace.InvalidOption, match=r"mace\.Causal"):
        mace.Explainer(from_source(LENDER, "model"), SPACE, {"savings": "lambda x: 1"})  # type: ignore[arg-type]
    for equations, said in (
        ({"savings": "lambda x: x.debt"}, "cannot read the equation"),
        ({"saving": "lambda x: 1"}, "no feature 'saving'"),
        ({"savings": "lambda x: x.income", "income": "lambda x: x.savings"}, "in a circle"),
        ({"savings": "lambda x: 1 / x.income"}, "divide by numbers"),
        ({}, "give a dict"),
    ):
        with pytest.raises(mace.InvalidConstraint, match=said):
            lender(equations)
    levels = mace.FeatureSpace({"income": mace.real(0, 100), "savings": mace.ordinal([0, 50, 100])})
    with pytest.raises(mace.InvalidConstraint, match="has levels"):
        lender({"savings": "lambda x: x.income"}, space=levels)
    many = mace.FeatureSpace({"income": mace.real(0, 100), "savings": mace.integer(0, 5000)})
    with pytest.raises(mace.InvalidOption, match="5,001 values"):
        lender({"savings": "lambda x: x.income"}, space=many).explain(PERSON, target="yes")


def test_an_effect_of_whole_numbers_takes_the_nearest() -> None:
    """Savings are whole and follow 0.3 of income: with t more of income they are 20 + 0.3 t, rounded.

    27 of them need an income of 66, 28 one of 64. They become 28 where 0.3 t is 7.5, at t = 25, so an income of 65 is the answer.
    """
    space = mace.FeatureSpace({"income": mace.real(0, 100), "savings": mace.integer(0, 100)})
    explainer = lender({"savings": "0.3 * income"}, space=space)
    weights = mace.Distance(l1=1.0, weights={"savings": 50.0})
    best = explainer.explain(PERSON, target="yes", distance=weights)[0]
    assert best.status == "optimal"
    assert best.actions == ("income",)
    assert best.values["income"] == pytest.approx(65, abs=1e-2)
    assert best.values["savings"] == 28
    by_smt = explainer.explain(PERSON, target="yes", distance=weights, solver="smt")[0]
    assert by_smt.distance == pytest.approx(best.distance, abs=2e-6)
    stepped = mace.FeatureSpace({"income": mace.integer(0, 100), "savings": mace.real(0, 100, step=2.5)})
    grown = lender({"savings": "0.3 * income"}, space=stepped).explain(PERSON, target="yes", distance=weights)[0]
    # 0.3 t rounded to the nearest of 2.5: 7.5 from t = 21 on, 62 + 55 = 117 at 22; 120 is reached at t = 25.
    assert (grown.values["income"], grown.values["savings"]) == (65, 27.5)


def test_an_explainer_with_causes_as_texts_pickles() -> None:
    model = read(LogisticRegression()).model
    explainer = mace.Explainer(model, GRID, mace.Causal({"savings": "lambda x: 0.5 * x.income"}))
    row = {"age": 22, "kind": "p", "income": 12.0, "savings": 8.0}
    again = pickle.loads(pickle.dumps(explainer)).explain(row, target=1)
    assert again[0].values == explainer.explain(row, target=1)[0].values


def test_no_time_is_no_answer() -> None:
    answer = lender({"savings": "lambda x: 0.3 * x.income"}).explain(PERSON, target="yes", time_limit=1e-9)
    assert answer.status == "unknown"
    assert "time" in answer.reason
