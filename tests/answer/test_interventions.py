"""Interventions through trees and networks: against brute force, several answers, conflicts, levers and certificates."""

from __future__ import annotations

import copy
import itertools
import json
import math
import operator
import pickle
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import skops.io
from random_problems import from_source
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

import mace
from mace.cli.main import run
from mace.constraints.causal import effects_of
from mace.constraints.condition import GuardCondition
from mace.constraints.files import load_constraints
from mace.distances import as_distance, point_values
from mace.language import syntax
from mace.language.monotone import direction
from mace.language.parse import parse
from mace.language.run import holds as is_true
from mace.problem import Problem
from mace.reductions.effects import TracedEffects

SPACE = mace.FeatureSpace(
    {
        "age": mace.integer(0, 5),
        "job": mace.categorical(["clerk", "smith", "boss"]),
        "savings": mace.real(-10, 30),
        "debt": mace.real(-20, 20),
    }
)
CAUSES = [
    {"savings": "lambda x: 2.7 * x.age"},
    {"savings": "lambda x: 7 - 1.3 * x.age"},
    {"savings": "lambda x: 3.1 * (x.job == 'boss') - 0.7 * (x.job == 'clerk')"},
    {"savings": "lambda x: 0.9 * x.age + (4 if x.job == 'boss' else 0)"},
    {"savings": "lambda x: max(0, 2 * x.age - 3)"},
    {"savings": "lambda x: 1.1 * x.age", "debt": "lambda x: 3 - 0.5 * x.savings"},
    {"savings": "lambda x: 1.1 * x.age", "debt": "lambda x: 0.5 * x.age - 1.5 * x.savings"},
    {"savings": "lambda x: 5 if x.age >= 3 else 0", "debt": "lambda x: -0.3 * x.age"},
    {"savings": "lambda x: abs(3 * x.age - 7)"},
    {"savings": "lambda x: 6 if 1 < x.age < 4 else 0", "debt": "lambda x: x.savings + max(x.age, 2)"},
]

DIAMOND = 6
"""The one whose debt rises and falls with age, in two ways: no edge of it is an edge of age, whose numbers are gone through."""


def frame_of(rng: np.random.Generator, rows: int) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "age": rng.integers(0, 6, rows),
            "job": rng.choice(["clerk", "smith", "boss"], rows),
            "savings": rng.uniform(-8, 25, rows),
            "debt": rng.uniform(-15, 15, rows),
        }
    )


WHOLE = SPACE.replace(savings=mace.integer(-10, 30, step=2), debt=mace.real(-20, 20, step=2.5))
"""The same with effects that are rounded to the values of a grid."""


def fitted(estimator: Any, seed: int, space: mace.FeatureSpace = SPACE) -> Any:
    rng = np.random.default_rng(seed)
    frame = frame_of(rng, 150)
    score = frame.age * rng.normal() + frame.savings * 0.5 - frame.debt * 0.3 + 4 * (frame.job == "boss")
    return make_pipeline(mace.Encoder(space), estimator).fit(frame, (score > score.median()).astype(int))


def edges_of(model: Any) -> dict[str, set[float]]:
    """Return the numbers at which the trees tell values of the real features apart."""
    found: dict[str, set[float]] = {"savings": set(), "debt": set()}
    names = list(model[0].get_feature_names_out())
    for tree in np.ravel(getattr(model[-1], "estimators_", [model[-1]])):
        for column, edge in zip(tree.tree_.feature, tree.tree_.threshold, strict=True):
            if column >= 0 and names[column] in found:
                found[names[column]].add(float(edge))
    return found


def cheapest(
    model: Any,
    row: dict[str, Any],
    causes: dict[str, str],
    allowed: Any = lambda row: True,
    more: tuple[float, ...] = (),
    space: mace.FeatureSpace = SPACE,
) -> float:
    """Return the least cost of actions that lead to class 1, by going through all that matter: l1 is least at an edge or beside it."""
    equations = {name: eval(text, {"max": max, "abs": abs}) for name, text in causes.items()}
    near = {}
    edges_by_name = edges_of(model)
    if "savings" in causes.get("debt", ""):
        # Savings that are acted upon are also near where debt, which follows, crosses an edge.
        for age, edge in itertools.product(range(6), list(edges_by_name["debt"])):
            own = row["debt"] - equations["debt"](Bunch(row))
            at = [equations["debt"](Bunch({"age": age, "savings": value})) + own for value in (0.0, 1.0)]
            edges_by_name["savings"].add((edge - at[0]) / (at[1] - at[0]))
    for name, edges in edges_by_name.items():
        values = {row[name], *(more if name == "savings" else ())}
        for edge in edges:
            # The trees compare in float32: beside an edge, a few of its units are enough to be on either side.
            for step in (-1e-5, 1e-5):
                values.add(edge + step)
        if space is WHOLE:
            values = {WHOLE[name].value_at(place) for place in range(WHOLE[name].size)}
        near[name] = sorted(value for value in values if SPACE[name].low <= value <= SPACE[name].high)
    rows, costs = [], []
    for acted in itertools.chain.from_iterable(itertools.combinations(near, k) for k in range(3)):
        if any(name not in causes and name not in acted for name in near) and not all(
            name in acted for name in near if name not in causes
        ):
            continue
        choices = [near[name] if name in acted else [None] for name in near]
        for age, job, *values in itertools.product(range(6), ["clerk", "smith", "boss"], *choices):
            made = {"age": age, "job": job}
            cost = abs(age - row["age"]) / 5 + (job != row["job"])
            for name, value in zip(near, values, strict=True):
                if value is not None:
                    made[name] = value
                    cost += abs(value - row[name]) / float(SPACE[name].range)
            for name in causes:
                if name not in acted:
                    own = row[name] - equations[name](Bunch(row))
                    made[name] = equations[name](Bunch(made)) + own
                    if space is WHOLE:
                        grain = float(WHOLE[name].step)
                        made[name] = grain * math.floor(made[name] / grain + 0.5)
            inside = all(SPACE[name].low <= made[name] <= SPACE[name].high for name in near)
            if inside and allowed(made):
                rows.append(made)
                costs.append(cost / 4)
    reached = model.predict(pd.DataFrame(rows, columns=list(SPACE))) == 1
    return float(np.array(costs)[reached].min(initial=math.inf))


class Bunch(dict):  # type: ignore[type-arg]
    """A row whose values are attributes."""

    __getattr__ = dict.__getitem__


@pytest.mark.parametrize("number", range(len(CAUSES)))
def test_no_actions_are_cheaper_than_the_answer(number: int) -> None:
    causes = CAUSES[number]
    for seed in range(3):
        rng = np.random.default_rng(100 * number + seed)
        estimator = [
            DecisionTreeClassifier(max_depth=4, random_state=seed),
            RandomForestClassifier(4, max_depth=3, random_state=seed),
            GradientBoostingClassifier(n_estimators=4, max_depth=2, random_state=seed),
        ][seed]
        model = fitted(estimator, seed + number)
        explainer = mace.Explainer(model, SPACE, mace.Causal(causes))
        for _, row in frame_of(rng, 3).iterrows():
            row = dict(row)
            if explainer.predict(row) == 1:
                continue
            answer = explainer.explain(row, target=1)
            best = cheapest(model, row, causes)
            assert "milp" not in answer.solver or "not milp" in answer.solver
            if not len(answer):
                assert answer.status == "infeasible"
                assert best == math.inf
                continue
            assert answer.status == "optimal"
            assert answer[0].lower <= best + 1e-12
            assert best - answer[0].distance <= 4e-6
            assert explainer.predict(answer[0].values) == 1


@pytest.mark.parametrize("number", [0, 3, 5, DIAMOND])
def test_no_actions_are_cheaper_where_effects_are_rounded(number: int) -> None:
    causes = CAUSES[number]
    model = fitted(RandomForestClassifier(3, max_depth=3, random_state=number), number, WHOLE)
    explainer = mace.Explainer(model, WHOLE, mace.Causal(causes))
    seen = 0
    for _, row in frame_of(np.random.default_rng(number), 8).iterrows():
        row = dict(row) | {"savings": 2 * round(row.savings / 2), "debt": 2.5 * round(row.debt / 2.5)}
        if seen == 2 or explainer.predict(row) == 1:
            continue
        answer = explainer.explain(row, target=1, certify=True)
        best = cheapest(model, row, causes, space=WHOLE)
        seen += 1
        assert answer.status == "optimal"
        assert answer[0].lower <= best + 1e-12
        assert best - answer[0].distance <= 1e-9
        assert explainer.predict(answer[0].values) == 1
        assert mace.verify(answer[0].certificate, model).valid
    with pytest.raises(mace.InvalidRow, match="off the grid"):
        explainer.explain(row | {"savings": 3}, target=None)


@pytest.mark.slow
def test_constraints_on_effects_bind_the_row() -> None:
    causes = {"savings": "lambda x: 2.7 * x.age", "debt": "lambda x: 3 - 0.5 * x.savings"}
    model = fitted(RandomForestClassifier(4, max_depth=3, random_state=1), 1)
    explainer = mace.Explainer(model, SPACE, mace.Causal(causes))
    seen = 0
    for _, row in frame_of(np.random.default_rng(5), 8).iterrows():
        row = dict(row)
        if explainer.predict(row) == 1:
            continue
        for text, holds in (
            ("savings <= 12.5", lambda made: made["savings"] <= 12.5),
            ("debt stays", lambda made, own=row["debt"]: made["debt"] == own),
            ("savings >= old.savings", lambda made, own=row["savings"]: made["savings"] >= own),
        ):
            answer = explainer.explain(row, target=1, constraints=[text])
            best = cheapest(model, row, causes, holds, (12.5,))
            if len(answer):
                seen += 1
                assert holds(answer[0].values), text
                assert answer[0].lower <= best + 1e-12
                assert best - answer[0].distance <= 4e-6
            else:
                assert (answer.status, best) == ("infeasible", math.inf)
    assert seen > 6


@pytest.mark.parametrize(
    "estimator",
    [DecisionTreeClassifier(max_depth=3, random_state=2), LogisticRegression()],
    ids=["tree", "linear"],
)
def test_real_causes_agree_with_smt(estimator: Any) -> None:
    space = mace.FeatureSpace(
        {
            "income": mace.real(0, 40),
            "savings": mace.real(0, 30),
            "debt": mace.real(0, 30),
            "kind": mace.categorical(["p", "q"]),
        }
    )
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "income": rng.uniform(0, 40, 200),
            "savings": rng.uniform(0, 30, 200),
            "debt": rng.uniform(0, 30, 200),
            "kind": rng.choice(["p", "q"], 200),
        }
    )
    labels = (frame.income / 2 + frame.savings - frame.debt > 12).astype(int)
    model = make_pipeline(mace.Encoder(space), estimator).fit(frame, labels)
    causes = {
        "savings": "lambda x: 0.4 * x.income + (3 if x.kind == 'q' else 0)",
        "debt": "lambda x: 10 - 0.5 * x.savings",
    }
    explainer = mace.Explainer(model, space, mace.Causal(causes))
    row = {"income": 10.0, "savings": 5.0, "debt": 12.0, "kind": "p"}
    assert explainer.predict(row) == 0
    own = explainer.explain(row, target=1, constraints=["savings <= 20"])
    general = explainer.explain(row, target=1, constraints=["savings <= 20"], solver="smt")
    assert own.status == general.status == "optimal"
    assert "smt" not in own.solver
    assert own[0].distance == pytest.approx(general[0].distance, abs=3e-6)
    exact = Fraction(own[0].values["income"])
    if own[0].actions == ("income",):
        saved = float(Fraction(0.4) * exact + Fraction(5.0) - Fraction(0.4) * 10)
        assert own[0].values["savings"] == saved
        assert own[0].values["debt"] == float(Fraction(12.0) - Fraction(0.5) * (Fraction(saved) - 5))


# ---- edges


def traced(equations: dict[str, str], space: mace.FeatureSpace, row: dict[str, Any]) -> TracedEffects:
    factual = space.point(row)
    problem = Problem(space, None, None, None, factual, as_distance("l1").from_factual(space, factual))  # type: ignore[arg-type]
    effects = next(effects_of(mace.Causal(equations).programs(space), space, factual))
    return TracedEffects(effects, problem)


def test_an_edge_is_the_last_float_before_the_computed_effect_crosses() -> None:
    space = mace.FeatureSpace(
        {"income": mace.real(-5, 1e3), "savings": mace.real(-1e6, 1e6), "debt": mace.real(-1e6, 1e6)}
    )
    row = {"income": 12.3, "savings": 45.6, "debt": 7.0}
    rng = np.random.default_rng(0)
    for savings, debt in (
        ("0.3 * x.income", "0.1 * x.savings"),
        ("-1e3 * x.income", "7 - x.savings / 3"),
        ("max(0, x.income - 50) + 0.01 * min(x.income, 50)", "x.savings + x.income"),
        ("3 if x.income > 7 else 1", "-x.savings"),
        ("1e-7 * x.income", "1e9 * x.savings"),
    ):
        made = traced({"savings": f"lambda x: {savings}", "debt": f"lambda x: {debt}"}, space, row)
        for name in ("savings", "debt"):
            low, high = sorted(made.columns[name].values(np.array([-5.0, 1000.0])))
            for number in [low, high, *rng.uniform(low, high, 12)]:
                for below in (False, True):
                    guard = made.up_to(name, Fraction(float(number)), below=below)
                    compares = operator.lt if below else operator.le
                    edge = float(guard.right.value) if isinstance(guard, syntax.Compare) else 1000.0
                    at = np.array([-5.0, edge, min(math.nextafter(edge, math.inf), 1000.0), 1000.0])
                    expected = compares(made.columns[name].values(at), number)
                    found = [is_true(guard, {"income": Fraction(value)}) for value in at.tolist()]
                    assert found == expected.tolist()


def noted(ask: Any, asked: list[float]) -> Any:
    def local(x: Any) -> Any:
        asked.extend(x)
        return ask(x)

    return local


def test_an_edge_of_an_equation_that_bends_takes_few_questions() -> None:
    """Halving alone would take some sixty for each."""
    space = mace.FeatureSpace({"income": mace.real(0, 100), "savings": mace.real(-1e3, 1e3)})
    for text in ("0.3 * income", "0.3 * max(income, 30) + 0.01 * income", "min(7 * income, 90) + income / 3"):
        made = traced({"savings": text}, space, {"income": 12.5, "savings": 20.0})
        low, high = made.columns["savings"].values(np.array([0.0, 100.0]))
        column, asked = made.columns["savings"], []
        made.columns["savings"] = replace(column, local=noted(column.local, asked))
        for number in np.linspace(low, high, 52)[1:-1]:
            made.up_to("savings", Fraction(float(number)))
        assert len(asked) < 20 * 50


@pytest.mark.parametrize(
    ("text", "way"),
    [
        ("2 * a", 1),
        ("-a", -1),
        ("3", 0),
        ("abs(a - 5)", None),
        ("abs(a - 20)", -1),
        ("max(a, 4)", 1),
        ("a if a < 5 else 5 - a", None),
        ("a if a < 5 else a - 1", None),
        ("a if a < 5 else 2 * a", 1),
        ("1 if a == 5 else 0", None),
        ("min(1, max(0, a - 3)) - (a > 7)", None),
        ("a * a", None),
    ],
)
def test_direction_of_a_program(text: str, way: int | None) -> None:
    program = parse(f"def f(a): return {text}").program
    assert direction(program, "a", Fraction(0), Fraction(10)) == way


# ---- several answers, conflicts, levers

LENDER = """
def model(income, savings):
    return "yes" if income + 2 * savings >= 120 else "no"
"""
PAIR = mace.FeatureSpace({"income": mace.real(0, 100), "savings": mace.real(0, 100)})
PERSON = {"income": 40, "savings": 20}


def lender(equations: dict[str, Any]) -> mace.Explainer:
    return mace.Explainer(from_source(LENDER, "model"), PAIR, mace.Causal(equations))


def test_further_answers_differ_in_what_is_acted_upon() -> None:
    """Savings follow income one to one: income up by 40/3 costs 0.0667; savings up by 20 costs 0.1. In sets there is no third."""
    explainer = lender({"savings": "lambda x: x.income"})
    answer = explainer.explain(PERSON, target="yes", count=3, diversity=mace.differ(in_sets=True))
    assert [each.actions for each in answer] == [("income",), ("savings",)]
    assert [each.distance for each in answer] == [pytest.approx(40 / 600, abs=2e-6), pytest.approx(0.1, abs=2e-6)]
    assert answer.exhausted
    assert answer.status == "optimal"


def test_a_further_answer_is_as_far_as_asked_from_earlier_actions() -> None:
    explainer = lender({"savings": "lambda x: x.income"})
    answer = explainer.explain(PERSON, target="yes", count=2, diversity=mace.differ(distance=0.2))
    assert len(answer) == 2
    # Cheapest beside income up by 13.34: 0.2 is 40 of income or savings together away from (53.34, none).
    first, second = (
        np.array([each.values[name] if name in each.actions else PERSON[name] for name in PAIR]) for each in answer
    )
    assert np.abs(first - second).sum() / 200 >= 0.2 - 1e-12
    by_features = explainer.explain(PERSON, target="yes", count=2, diversity=mace.differ(features=2, by=0.05))
    first, second = (
        np.array([each.values[name] if name in each.actions else PERSON[name] for name in PAIR]) for each in by_features
    )
    assert (np.abs(first - second) >= 5).all()


def test_a_conflict_is_named_in_the_words_of_the_user() -> None:
    explainer = lender({"savings": "lambda x: 0.3 * x.income"})
    answer = explainer.explain(PERSON, target="yes", constraints=["income <= 45", "savings <= 30", "income >= 1"])
    assert answer.status == "infeasible"
    assert "income <= 45" in answer.reason
    assert "savings <= 30" in answer.reason
    assert "income >= 1" not in answer.reason
    assert answer.exhausted


def test_levers_are_sets_of_what_is_acted_upon() -> None:
    explainer = lender({"savings": "lambda x: x.income"})
    menu = explainer.levers(PERSON, target="yes")
    assert [lever.features for lever in menu] == [("income",), ("savings",)]
    assert menu.complete
    assert menu[0].counterfactual.actions == ("income",)
    assert {change.feature for change in menu[0].counterfactual.changes} == {"income", "savings"}


def test_a_region_is_of_rows() -> None:
    explainer = mace.Explainer(
        fitted(DecisionTreeClassifier(max_depth=3, random_state=0), 0), SPACE, mace.Causal(CAUSES[0])
    )
    row = next(
        dict(each)
        for _, each in frame_of(np.random.default_rng(0), 20).iterrows()
        if explainer.predict(dict(each)) == 0
    )
    best = explainer.explain(row, target=1)[0]
    region = best.region()
    assert region.complete


@pytest.mark.slow
def test_typical_and_near_data_bind_the_row() -> None:
    causes = {"savings": "2.7 * age"}
    frame = frame_of(np.random.default_rng(3), 40)
    usual = mace.typical(frame, 0.3)
    for estimator in (DecisionTreeClassifier(max_depth=3, random_state=0), LogisticRegression()):
        model = fitted(estimator, 1)
        explainer = mace.Explainer(model, SPACE, mace.Causal(causes))
        row = refused(explainer)
        free = explainer.explain(row, target=1)
        inside = explainer.explain(row, target=1, constraints=[usual], certify=True)
        assert inside.status == "optimal"
        assert mace.verify(inside[0].certificate, model, forests=[usual]).valid
        assert "smt" not in inside.solver
        condition = usual.bind(SPACE, SPACE.point(row))
        assert condition.holds(point_values(SPACE, SPACE.point(inside[0].values)))
        assert inside[0].distance >= free[0].lower
    near = mace.near_data(frame.head(6), k=1, radius=0.1)
    explainer = mace.Explainer(
        fitted(DecisionTreeClassifier(max_depth=2, random_state=0), 1), SPACE, mace.Causal(causes)
    )
    row = refused(explainer)
    close = explainer.explain(row, target=1, constraints=[near])
    assert close.status == "optimal"
    assert near.bind(SPACE, SPACE.point(row)).holds(point_values(SPACE, SPACE.point(close[0].values)))


# ---- certificates

FOREST = RandomForestClassifier(4, max_depth=3, random_state=1)


def refused(explainer: mace.Explainer, seed: int = 5) -> dict[str, Any]:
    return next(
        dict(row)
        for _, row in frame_of(np.random.default_rng(seed), 30).iterrows()
        if explainer.predict(dict(row)) == 0
    )


@pytest.mark.parametrize(
    ("estimator", "causes", "options"),
    [
        (FOREST, CAUSES[5], {}),
        (FOREST, CAUSES[3], {}),
        (FOREST, CAUSES[7], {"count": 2}),
        (LogisticRegression(), CAUSES[5], {"constraints": ["savings <= 20"]}),
        (LogisticRegression(), CAUSES[2], {}),
        (FOREST, CAUSES[8], {}),
        (FOREST, {"savings": "max(2 * age, 0.5 * debt)"}, {}),
        (MLPClassifier((3,), solver="lbfgs", max_iter=500, random_state=0), CAUSES[4], {}),
        (MLPClassifier((3,), solver="lbfgs", max_iter=500, random_state=0), CAUSES[9], {"distance": "linf"}),
        (MLPClassifier((3,), solver="lbfgs", max_iter=500, random_state=0), CAUSES[3], {}),
        (FOREST, CAUSES[DIAMOND], {}),
        (DecisionTreeClassifier(max_depth=3, random_state=0), CAUSES[5], {"solver": "milp"}),
        (LogisticRegression(), CAUSES[5], {"solver": "smt", "distance": "linf"}),
    ],
    ids=[
        "chain",
        "cases",
        "steps",
        "linear",
        "table",
        "abs",
        "two",
        "relu",
        "bumps",
        "network",
        "diamond",
        "general",
        "smt",
    ],
)
def test_certificates_are_valid(estimator: Any, causes: dict[str, str], options: dict[str, Any]) -> None:
    model = fitted(estimator, 1)
    explainer = mace.Explainer(model, SPACE, mace.Causal(causes))
    answer = explainer.explain(refused(explainer), target=1, certify=True, **options)
    assert len(answer) == options.get("count", 1)
    for each in answer:
        text = each.certificate.to_json()
        assert '"causes"' in text
        verdict = mace.verify(mace.Certificate.from_json(text), model)
        assert verdict.valid, verdict


@pytest.mark.parametrize(
    ("estimator", "causes"),
    [
        (FOREST, {"savings": "max(2 * age, 0.5 * debt)"}),
        (MLPClassifier((3,), solver="lbfgs", max_iter=500, random_state=0), {"savings": "max(0, debt + 2 * age)"}),
        (LogisticRegression(), {"savings": "5 if debt <= 0 else -abs(debt - 4)"}),
    ],
    ids=["forest", "network", "linear"],
)
def test_pieces_agree_with_the_general_lane(estimator: Any, causes: dict[str, str]) -> None:
    model = fitted(estimator, 1)
    explainer = mace.Explainer(model, SPACE, mace.Causal(causes))
    for seed in (5, 6):
        row = refused(explainer, seed)
        distance = mace.Distance(l1=1.0, weights={"savings": 20.0})
        own = explainer.explain(row, target=1, distance=distance)
        general = explainer.explain(row, target=1, distance=distance, solver="milp")
        assert own.status == general.status == "optimal"
        assert "milp" not in own.solver
        assert own[0].distance == pytest.approx(general[0].distance, abs=2e-6)


def test_several_causes_before_trees_agree_with_smt() -> None:
    """The general lane looks no farther than what one cause alone reaches; that point, or a nearer one, is the answer."""
    space = SPACE.replace(age=mace.integer(0, 50))
    model = fitted(DecisionTreeClassifier(max_depth=3, random_state=1), 2, space)
    explainer = mace.Explainer(model, space, mace.Causal({"savings": "0.4 * debt + 1.5 * age"}))
    seen = 0
    for seed in (5, 6, 7):
        row = refused(explainer, seed)
        distance = mace.Distance(l1=1.0, weights={"savings": 20.0, "job": 20.0})
        own = explainer.explain(row, target=1, distance=distance, certify=True)
        smt = explainer.explain(row, target=1, distance=distance, solver="smt")
        assert own.status == smt.status == "optimal"
        assert "milp" in own.solver
        assert own[0].distance == pytest.approx(smt[0].distance, abs=2e-6)
        assert mace.verify(own[0].certificate, model).valid
        seen += "savings" not in (own[0].actions or ())
    assert seen


def test_a_certificate_of_none_is_valid() -> None:
    model = fitted(FOREST, 1)
    explainer = mace.Explainer(model, SPACE, mace.Causal(CAUSES[5]))
    row = refused(explainer)
    stay = ["age stays", "job stays", "savings stays", "debt stays"]
    answer = explainer.explain(row, target=1, constraints=stay, certify=True)
    assert answer.status == "infeasible"
    assert mace.verify(answer.certificate, model).valid


def test_a_tampered_certificate_is_refuted() -> None:
    model = fitted(FOREST, 1)
    explainer = mace.Explainer(model, SPACE, mace.Causal(CAUSES[5]))
    row = refused(explainer, 6)
    answer = explainer.explain(
        row, target=1, certify=True, distance=mace.Distance(l1=1.0, weights={"savings": 9.0, "debt": 9.0})
    )
    assert set(answer[0].actions) & {"savings", "debt"} == set()
    good = answer[0].certificate.to_dict()
    assert mace.verify(good, model).valid

    def tampered(change: Any) -> dict[str, Any]:
        made = copy.deepcopy(good)
        change(made)
        return made

    def other_equation(made: dict[str, Any]) -> None:
        made["statement"]["causes"]["savings"] = "lambda x: 1.2 * x.age"

    def no_equations(made: dict[str, Any]) -> None:
        del made["statement"]["causes"]

    def fewer_equations(made: dict[str, Any]) -> None:
        del made["statement"]["causes"]["debt"]

    def an_action_less(made: dict[str, Any]) -> None:
        made["claim"]["actions"] = made["claim"]["actions"][1:]

    def an_action_more(made: dict[str, Any]) -> None:
        made["claim"]["actions"] = [*made["claim"]["actions"], "debt"]

    def cheaper(made: dict[str, Any]) -> None:
        made["claim"]["upper"] /= 2
        made["claim"]["lower"] /= 2

    def nothing_nearer_than_a_lot(made: dict[str, Any]) -> None:
        made["claim"].update(status="infeasible", lower=None, upper=None, counterfactual=None, actions=None)

    def another_row(made: dict[str, Any]) -> None:
        made["claim"]["counterfactual"]["debt"] += 0.001

    def a_choice_less(made: dict[str, Any]) -> None:
        made["evidence"]["choices"].pop()

    def no_proof(made: dict[str, Any]) -> None:
        made["evidence"]["choices"][0] = {"lane": "trees"}

    def odd_cases(made: dict[str, Any]) -> None:
        made["evidence"]["choices"][0] = {"lane": "cases", "of": ["age"], "proofs": []}

    for change in (
        other_equation,
        no_equations,
        fewer_equations,
        an_action_less,
        an_action_more,
        cheaper,
        nothing_nearer_than_a_lot,
        another_row,
        a_choice_less,
        no_proof,
        odd_cases,
    ):
        assert mace.verify(tampered(change), model).outcome == "refuted", change.__name__
    for place, value in (("causes", {"savings": "lambda x: x.nobody"}), ("causes", {}), ("causes", ["savings"])):
        with pytest.raises(mace.InvalidCertificate):
            mace.verify(
                tampered(lambda made, place=place, value=value: made["statement"].update({place: value})), model
            )
    with pytest.raises(mace.InvalidCertificate):
        mace.verify(tampered(lambda made: made["claim"].update(actions="age")), model)


def test_a_second_answer_is_not_the_nearest() -> None:
    model = fitted(FOREST, 1)
    explainer = mace.Explainer(model, SPACE, mace.Causal(CAUSES[5]))
    answer = explainer.explain(refused(explainer, 6), target=1, certify=True, count=2)
    assert answer[1].lower > answer[0].distance
    second = answer[1].certificate.to_dict()
    assert mace.verify(second, model).valid
    second["statement"].update(earlier=[], diversity=None)
    assert mace.verify(second, model).outcome == "refuted"


def test_a_plain_certificate_has_neither_causes_nor_actions() -> None:
    model = fitted(FOREST, 1)
    explainer = mace.Explainer(model, SPACE)
    made = explainer.explain(refused(explainer), target=1, certify=True)[0].certificate.to_dict()
    assert "causes" not in made["statement"]
    assert "actions" not in made["claim"]
    made["claim"]["actions"] = ["age"]
    assert mace.verify(made, model).outcome == "refuted"


def test_no_time_is_no_answer_before_trees() -> None:
    explainer = mace.Explainer(fitted(FOREST, 1), SPACE, mace.Causal(CAUSES[5]))
    answer = explainer.explain(refused(explainer), target=1, time_limit=1e-9, certify=True)
    assert answer.status == "unknown"
    assert answer.reason == "time limit reached"
    assert mace.verify(answer.certificate, explainer.model).valid, "nothing is claimed"


# ---- batches


def test_a_batch_with_causes_is_the_same_in_processes() -> None:
    model = fitted(FOREST, 1)
    explainer = mace.Explainer(model, SPACE, mace.Causal({"savings": lambda x: 2.7 * x.age}))
    rows = frame_of(np.random.default_rng(8), 6)
    alone = [explainer.explain(dict(row)) for _, row in rows.iterrows()]
    batch = explainer.explain_many(rows)
    assert [each[0].values for each in batch] == [each[0].values for each in alone]
    assert [each[0].actions for each in batch] == [each[0].actions for each in alone]
    again = pickle.loads(pickle.dumps(explainer))
    assert again.explain(dict(rows.iloc[0]))[0].values == alone[0][0].values


# ---- texts, files and the command line


def test_an_equation_may_be_an_expression_over_the_features() -> None:
    row = {"age": 1, "job": "clerk", "savings": 0.0, "debt": 0.0}
    model = fitted(FOREST, 1)
    plain = {"savings": "max(0.9 * age, 1) + (4 if job == 'boss' else 0)", "debt": "2 - savings / 2"}
    other = {
        "savings": "lambda x: max(0.9 * x.age, 1) + (4 if x.job == 'boss' else 0)",
        "debt": "lambda x: 2 - x.savings / 2",
    }
    first, second = (mace.Explainer(model, SPACE, mace.Causal(each)).explain(row, target=1) for each in (plain, other))
    assert first[0].values == second[0].values
    for text in ("0.3 *", "ages * 2", "x.age", "1 / age"):
        with pytest.raises(mace.InvalidConstraint, match="savings"):
            mace.Explainer(model, SPACE, mace.Causal({"savings": text}))


def test_causes_of_a_file_and_of_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = fitted(FOREST, 1)
    row = {"age": 1, "job": "clerk", "savings": 0.0, "debt": 0.0}
    skops.io.dump(model, tmp_path / "model.skops")
    (tmp_path / "space.json").write_text(SPACE.to_json())
    pd.DataFrame([row]).to_csv(tmp_path / "rows.csv", index=False)
    (tmp_path / "rules.toml").write_text(
        'constraints = ["job stays"]\n[causes]\nsavings = "2.7 * age"\ndebt = "3 - 0.5 * savings"\n'
    )
    explainer = mace.Explainer(model, SPACE, mace.Causal.load(tmp_path / "rules.toml"))
    wanted = explainer.explain(row, target=1, constraints=load_constraints(tmp_path / "rules.toml", SPACE))
    files = ["--data", "rows.csv", "--model", "model.skops", "--space", "space.json"]
    paths = [each if each.startswith("--") else str(tmp_path / each) for each in files]
    common = [*paths, "--target", "1"]
    certificate = str(tmp_path / "answer.json")
    code = run(
        ["explain", *common, "--json", "--constraints", str(tmp_path / "rules.toml"), "--certificate", certificate]
    )
    assert code == 0
    found = json.loads(capsys.readouterr().out)["counterfactuals"][0]
    assert found["values"] == wanted[0].values
    assert found["actions"] == list(wanted[0].actions)
    assert run(["verify", certificate, "--model", str(tmp_path / "model.skops")]) == 0
    capsys.readouterr()
    options = ["--cause", "savings = 2.7 * age", "--cause", "debt = 3 - 0.5 * savings", "--fix", "job"]
    assert run(["explain", *common, "--json", *options]) == 0
    assert json.loads(capsys.readouterr().out)["counterfactuals"][0]["values"] == wanted[0].values
    assert run(["batch", *common, *options, "--out", str(tmp_path / "out.jsonl")]) == 0
    assert json.loads((tmp_path / "out.jsonl").read_text())["counterfactuals"][0]["values"] == wanted[0].values
    for wrong in ("savings", "savings == 2 * age", "debts = 2"):
        assert run(["explain", *common, "--cause", wrong]) == 2
    assert run(["audit", *common, "--constraints", str(tmp_path / "rules.toml")]) == 2
    assert "an audit is of rows" in capsys.readouterr().err
    (tmp_path / "odd.toml").write_text("[causes]\nsavings = 3\n")
    with pytest.raises(mace.InvalidConstraint, match="causes"):
        mace.Causal.load(tmp_path / "odd.toml")
    (tmp_path / "none.toml").write_text("constraints = []\n")
    assert mace.Causal.load(tmp_path / "none.toml") is None


def test_the_conditions_on_actions_are_guards() -> None:
    made = traced({"savings": "lambda x: 2 * x.income"}, PAIR, PERSON)
    guard = mace.rule("savings <= 30").bind(PAIR, PAIR.point(PERSON))
    assert isinstance(guard, GuardCondition)
    assert made._guard(guard.guard) == mace.rule("income <= 45").bind(PAIR, PAIR.point(PERSON)).guard


def test_an_effect_beyond_all_floats_is_outside_of_its_range() -> None:
    space = mace.FeatureSpace({"x": mace.integer(0, 5), "y": mace.real(0, 10)})
    model = from_source("def model(x, y):\n    return 1 if x + y > 9 else 0\n", "model")
    answer = mace.Explainer(model, space, causes=mace.Causal({"y": "1e308 * x"})).explain({"x": 1, "y": 2.0}, target=1)
    assert answer.status == "optimal"
    assert answer[0].values["y"] <= 10
