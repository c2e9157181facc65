"""The baselines do what their papers say, never return what is not a counterfactual, and never beat MACE."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

import mace
from mace.baselines import BASELINES, Baseline
from mace.baselines.columns import changes, decoded, projected
from mace.distances import as_distance
from mace.space.columns import encoded_columns

EPSILON = 1e-5


def setting(name: str, model: Any, *, codes: bool) -> tuple[Any, mace.datasets.Dataset, pd.DataFrame]:
    """Return a fitted pipeline, its data, and rows that it refuses."""
    data = mace.datasets.load(name)
    encoder = mace.Encoder(data.space, **({"categorical": "codes", "ordinal": "codes"} if codes else {}))
    fitted = make_pipeline(encoder, model).fit(data.frame, data.labels)
    refused = data.frame[fitted.predict(data.frame) == fitted.classes_[0]]
    return fitted, data, refused.head(6)


TREES = [DecisionTreeClassifier(max_depth=8, random_state=0), RandomForestClassifier(8, max_depth=8, random_state=0)]
CASES = [
    *((data, model, True, name) for data in ("german", "compas") for model in TREES for name in ("mo", "ft", "pft")),
    *(
        (data, LogisticRegression(solver="liblinear"), False, name)
        for data in ("german", "compas")
        for name in ("mo", "ar")
    ),
    ("german", MLPClassifier((5,), max_iter=30, random_state=0), False, "mo"),
]


@pytest.mark.parametrize(("data_name", "model", "codes", "name"), CASES)
def test_an_answer_is_a_counterfactual_and_never_nearer_than_the_proved_one(
    data_name: str, model: Any, codes: bool, name: str
) -> None:
    fitted, data, rows = setting(data_name, model, codes=codes)
    baseline = Baseline(name, fitted, data.space, data.frame)
    explainer = mace.Explainer(fitted, data.space)
    answered = 0
    for _, row in rows.iterrows():
        for norm in ("l1", "linf") if name == "ar" else ("l0", "l1", "linf"):
            answer = baseline.explain(row, distance=norm)
            assert answer.status == ("feasible" if answer else "unknown")
            assert answer.lower == 0
            assert "without proof" in answer.solver
            if not answer:
                assert answer.reason
                continue
            answered += 1
            best = answer[0]
            point = data.space.point(best.values)
            assert fitted.predict(data.space.frame_of([point]))[0] == best.prediction != answer.prediction
            metric = as_distance(norm).from_factual(data.space, data.space.point(row))
            assert best.distance == pytest.approx(float(metric.measure(point)))
            proved = explainer.explain(row, distance=norm, accuracy=EPSILON)
            assert proved.status == "optimal"
            assert proved[0].distance <= best.distance + EPSILON
    assert answered > 0 or name == "ft"


# ---- MO


@pytest.mark.slow
@pytest.mark.parametrize("norm", ["l0", "l1", "l2", "linf"])
def test_mo_finds_the_nearest_row_under_the_same_distance_and_constraints(norm: str) -> None:
    fitted, data, rows = setting("german", TREES[0], codes=True)
    baseline = Baseline("mo", fitted, data.space, data.frame)
    points = [data.space.point(row) for _, row in data.frame.iterrows()]
    granted = fitted.predict(data.frame) == "good"
    constraints = [mace.fixed("housing"), mace.increases("age")]
    for _, row in rows.iterrows():
        factual = data.space.point(row)
        conditions = [constraint.bind(data.space, factual) for constraint in constraints]
        metric = as_distance(norm).from_factual(data.space, factual)
        numbers = [dict(zip(data.space, map(Fraction, point), strict=True)) for point in points]  # type: ignore[arg-type]
        allowed = [all(condition.holds(values) for condition in conditions) for values in numbers]
        nearest = min(
            metric.measure(point) for point, good, ok in zip(points, granted, allowed, strict=True) if good and ok
        )
        answer = baseline.explain(row, distance=norm, constraints=constraints)
        assert answer[0].distance == pytest.approx(float(nearest) ** (1 / metric.power))


def test_mo_takes_functions_bounds_and_says_when_no_row_will_do() -> None:
    data = pd.DataFrame({"age": [20, 30, 40, 50], "debt": [9.0, 8.0, 2.0, 1.0]})
    space = mace.FeatureSpace.from_frame(data)
    model = DecisionTreeClassifier(random_state=0).fit(data, [0, 0, 1, 1])
    baseline = Baseline("mo", model, space, data)

    assert baseline.explain(data.iloc[0], distance="lambda new, old: abs(new.age - old.age)")[0].values["age"] == 40
    assert baseline.explain(data.iloc[0], target=mace.at_least(0.9))[0].values["age"] == 40
    assert baseline.explain(data.iloc[3])[0].values == {"age": 30, "debt": 8.0}
    assert baseline.explain(data.iloc[0], constraints="age >= 50")[0].values["age"] == 50
    none = baseline.explain(data.iloc[0], constraints=[mace.fixed("age")])
    assert (len(none), str(none.status)) == (0, "unknown")
    assert "none of the 4 rows" in none.reason


# ---- FT and PFT


def stump() -> tuple[Any, mace.FeatureSpace, pd.DataFrame]:
    data = pd.DataFrame({"age": [20, 30, 40, 50], "debt": [9.0, 8.0, 2.0, 1.0]})
    return (
        DecisionTreeClassifier(max_depth=1, random_state=0).fit(data[["age", "debt"]], [0, 0, 1, 1]),
        mace.FeatureSpace.from_frame(data),
        data,
    )


def test_ft_steps_half_a_standard_deviation_across_the_threshold() -> None:
    model, space, data = stump()
    column, threshold = model.tree_.feature[0], model.tree_.threshold[0]
    name = list(space)[column]
    sign = 1 if name == "age" else -1
    wanted = threshold + sign * 0.5 * np.std(data[name])

    raw = Baseline("ft", model, space, data).explain(data.iloc[0], raw=True)
    if name == "age":
        assert not raw
        assert f"'age' would be {wanted!r}"[:20] in raw.reason
    else:
        assert raw[0].values[name] == pytest.approx(wanted)
    rounded = Baseline("ft", model, space, data).explain(data.iloc[0])
    assert rounded[0].values[name] == (round(wanted) if name == "age" else pytest.approx(wanted))
    assert [change.feature for change in rounded[0].changes] == [name]


def test_pft_pulls_an_instance_back_into_the_range_where_ft_leaves_it() -> None:
    data = pd.DataFrame({"debt": [0.0, 1.0, 50.0, 100.0]})
    space = mace.FeatureSpace.from_frame(data)
    model = DecisionTreeClassifier(random_state=0).fit(data, [1, 0, 0, 0])  # granted at most 0.5, and 0.5 σ is about 20

    tweaked = Baseline("ft", model, space, data).explain({"debt": 50.0})
    assert not tweaked
    assert "'debt' would be -" in tweaked.reason
    assert Baseline("pft", model, space, data).explain({"debt": 50.0})[0].values == {"debt": 0.0}


@pytest.mark.slow
def test_pft_keeps_to_the_constraints_and_ft_does_not_know_them() -> None:
    fitted, data, rows = setting("german", TREES[1], codes=True)
    constraints = [mace.fixed("duration_months", "credit_amount")]
    kept = 0
    for _, row in rows.iterrows():
        for name in ("ft", "pft"):
            for found in Baseline(name, fitted, data.space, data.frame).explain(row, constraints=constraints):
                kept += name == "pft"
                assert not {change.feature for change in found.changes} & {"duration_months", "credit_amount"}
    assert kept


def test_tweaking_takes_one_hot_and_thermometer_columns_too() -> None:
    fitted, data, rows = setting("german", TREES[1], codes=False)
    baseline = Baseline("pft", fitted, data.space, data.frame)
    found = [answer for _, row in rows.iterrows() for answer in baseline.explain(row)]
    assert found
    assert all(fitted.predict(data.space.frame_of([data.space.point(one.values)]))[0] == "good" for one in found)


# ---- AR


def line() -> tuple[Any, mace.FeatureSpace, pd.DataFrame]:
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"income": rng.uniform(0, 100, 200), "debt": rng.uniform(0, 100, 200)})
    labels = (data["income"] > data["debt"]).astype(int)
    space = mace.FeatureSpace({"income": mace.real(0, 100), "debt": mace.real(0, 100)})
    return LogisticRegression().fit(data, labels), space, data


def test_ar_moves_to_the_cheapest_point_of_its_grid() -> None:
    model, space, data = line()
    baseline = Baseline("ar", model, space, data)
    row = {"income": 30.0, "debt": 45.0}

    def share(name: str, value: float) -> float:
        column = data[name].to_numpy()
        return float(np.mean(column < value) / 2 + np.mean(column <= value) / 2)

    grids = [np.append(np.linspace(data[name].min(), data[name].max(), 101), row[name]) for name in space]
    corners = pd.DataFrame(list(itertools.product(*grids)), columns=list(space))
    reached = corners[model.decision_function(corners) > 0]
    for norm in ("l1", "linf"):

        def cost(name: str, value: float, norm: str = norm) -> float:
            old, new = share(name, row[name]), min(share(name, value), 1 - 1 / (2 * len(data)))
            return abs(np.log((1 - new) / (1 - old))) if norm == "l1" else abs(new - old)

        costs = {name: {value: cost(name, value) for value in grid} for name, grid in zip(space, grids, strict=True)}
        each = reached["income"].map(costs["income"]), reached["debt"].map(costs["debt"])
        best = (each[0] + each[1] if norm == "l1" else np.maximum(*each)).min()
        values = baseline.explain(row, distance=norm)[0].values
        found = [cost(name, float(values[name])) for name in space]
        assert (sum(found) if norm == "l1" else max(found)) == pytest.approx(best, abs=1e-3)


def test_ar_keeps_fixed_features_and_directions() -> None:
    model, space, data = line()
    baseline = Baseline("ar", model, space, data)
    row = {"income": 30.0, "debt": 45.0}
    fixed = baseline.explain(row, constraints=[mace.fixed("income")])[0]
    assert [change.feature for change in fixed.changes] == ["debt"]
    never = baseline.explain(row, constraints=[mace.decreases("income"), mace.increases("debt")])
    assert not never
    assert never.reason == "no action on the grid reaches the target"


def test_ar_may_break_a_category_and_says_so_when_raw() -> None:
    space = mace.FeatureSpace({"job": mace.categorical(["a", "b", "c"]), "income": mace.real(0, 1)})
    columns = encoded_columns(space)
    two_at_once = np.array([1.0, 0.0, 1.0, 0.5])
    broken = decoded(space, columns, two_at_once, (0, 0.5), raw=True)
    assert isinstance(broken, str)
    assert "'job'" in broken
    assert decoded(space, columns, np.array([0.2, 0.0, 0.9, 0.5]), (0, 0.5), raw=False) == (2, 0.5)


def test_a_thermometer_with_a_gap_stays_implausible() -> None:
    space = mace.FeatureSpace({"level": mace.ordinal(["low", "mid", "high"]), "age": mace.integer(0, 9)})
    columns = encoded_columns(space)
    assert isinstance(decoded(space, columns, np.array([1.0, 0.0, 1.0, 3.4]), (0, 3), raw=False), str)
    assert decoded(space, columns, np.array([1.0, 0.9, 0.2, 3.4]), (0, 3), raw=False) == (1, 3)


# ---- columns


def test_projection_gives_points_of_the_space() -> None:
    space = mace.FeatureSpace(
        {
            "age": mace.integer(18, 90, step=4),
            "income": mace.real(0, 10, step=0.1),
            "level": mace.ordinal(["low", "mid", "high"]),
            "job": mace.categorical(["a", "b", "c"]),
        }
    )
    columns = encoded_columns(space)
    matrix = np.random.default_rng(0).normal(0, 30, (50, len(columns)))
    numbers = projected(space, columns, matrix, (18, 0.0, 0, 0))
    for row in numbers:
        for feature, value in zip(space.values(), row, strict=True):
            assert feature.has(float(value)) if hasattr(feature, "has") else value in (0, 1, 2)


def test_changes_of_many_rows_are_those_of_the_distance() -> None:
    data = mace.datasets.load("german")
    points = [data.space.point(row) for _, row in data.frame.head(30).iterrows()]
    metric = as_distance("l1").from_factual(data.space, points[0])
    found = metric.floats(changes(data.space, np.array(points, dtype=float), points[0]))
    assert found == pytest.approx([float(metric.measure(point)) for point in points])


# ---- misuse


def test_a_method_refuses_models_distances_and_targets_that_it_does_not_know() -> None:
    model, space, data = line()
    tree, tree_space, tree_data = stump()
    with pytest.raises(mace.UnsupportedModel, match="decision trees and forests"):
        Baseline("pft", model, space, data)
    with pytest.raises(mace.UnsupportedModel, match="linear models"):
        Baseline("ar", tree, tree_space, tree_data)
    with pytest.raises(mace.InvalidDistance, match="'l1' and 'linf'"):
        Baseline("ar", model, space, data).explain({"income": 30.0, "debt": 45.0}, distance="l0")
    with pytest.raises(mace.InvalidDistance, match="not functions"):
        Baseline("ft", tree, tree_space, tree_data).explain(
            tree_data.iloc[0], distance="lambda new, old: abs(new.age - old.age)"
        )
    with pytest.raises(mace.InvalidTarget, match="takes labels"):
        Baseline("ft", tree, tree_space, tree_data).explain(tree_data.iloc[0], target=mace.at_least(0.9))
    with pytest.raises(mace.InvalidTarget, match="takes labels"):
        Baseline("ar", model, space, data).explain({"income": 30.0, "debt": 45.0}, target=mace.at_least(0.9))
    with pytest.raises(mace.InvalidOption, match="no rows"):
        Baseline("mo", model, space, data.head(0))
    with pytest.raises(mace.InvalidOption, match="Did you mean 'pft'"):
        Baseline("pftt", model, space, data)
    with pytest.raises(mace.InvalidConstraint, match="not a constraint"):
        Baseline("mo", model, space, data).explain({"income": 30.0, "debt": 45.0}, constraints=[3])  # type: ignore[list-item]


def test_every_baseline_declares_what_it_is() -> None:
    for name in BASELINES:
        traits = BASELINES.load(name).traits
        assert not traits.is_optimal
        assert f"({name.upper()})" in traits.title
