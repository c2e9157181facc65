"""PolynomialFeatures before a model: powers and products are what the fitted step computes, to the float; the rest is refused by name."""

from __future__ import annotations

import itertools
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost
from pipeline_cases import on_and_beside, random_points, training
from random_problems import Case
from referee import disagreement
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, PolynomialFeatures, PowerTransformer, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import mace
from mace import FeatureSpace, UnsupportedModel, categorical, integer, real
from mace.forms import Network, TreeEnsemble, winner
from mace.forms.form import box_at
from mace.models import read

SPACE = FeatureSpace(
    {
        "x": real(-3, 3),
        "n": integer(-3, 5),
        "m": integer(0, 4),
        "cat": categorical(["a", "b", "c"]),
        "flag": categorical([0, 1]),
    }
)
WHOLE = FeatureSpace({name: SPACE[name] for name in ("n", "m", "cat", "flag")})


def levels(remainder: Any = "passthrough", *, sparse: bool = False) -> ColumnTransformer:
    return ColumnTransformer(
        [("levels", OneHotEncoder(sparse_output=sparse), ["cat"])],
        remainder=remainder,
        sparse_threshold=1.0 if sparse else 0,
    )


def data(space: FeatureSpace) -> tuple[pd.DataFrame, np.ndarray]:
    """Return rows whose labels depend on a product too."""
    frame, labels = training(space)
    return frame, np.where((frame["n"] * frame["m"]).fillna(0) > 6, "perhaps", labels)


BEFORE: dict[str, list[Any]] = {
    "interactions": [levels(), PolynomialFeatures(2, interaction_only=True)],
    "squares": [levels(), PolynomialFeatures(2, include_bias=False)],
    "scaled before and after": [levels(), StandardScaler(), PolynomialFeatures(2), MinMaxScaler()],
    "of three": [levels(), PolynomialFeatures(3, interaction_only=True)],
    "of products": [levels(), PolynomialFeatures(2, interaction_only=True), PolynomialFeatures((2, 2), interaction_only=True)],
    "frames": [levels().set_output(transform="pandas"), PolynomialFeatures(2).set_output(transform="pandas")],
}  # fmt: skip
TREES = {
    "tree": DecisionTreeClassifier(max_depth=6, random_state=0),
    "forest": RandomForestClassifier(4, max_depth=4, random_state=0),
    "hist": HistGradientBoostingClassifier(max_iter=3, max_depth=4, random_state=0, early_stopping=False),
}


def assert_read_to_the_float(model: Any, space: FeatureSpace) -> None:
    reading = read(model, space)
    form = reading.form
    assert isinstance(form, TreeEnsemble)
    near = on_and_beside(form)
    chosen = np.random.default_rng(0).permutation(len(near))[:300]
    points = random_points(200, 5, space) + [near[k] for k in chosen]
    checked = 0
    for point, code in zip(points, reading.ask(points), strict=True):
        scores = form.exact_scores(point)
        first, second = sorted(scores, reverse=True)[:2] if len(scores) > 1 else (abs(scores[0]), 0)
        if first - second > form.rounding:
            checked += 1
            assert (winner(scores) if len(scores) > 1 else int(scores[0] > 0)) == code, point
    assert checked > len(points) / 2


@pytest.mark.parametrize("family", TREES)
@pytest.mark.parametrize("name", BEFORE)
def test_products_before_trees_are_read_to_the_float(name: str, family: str) -> None:
    space = WHOLE if name == "of products" else SPACE
    frame, labels = data(space)
    assert_read_to_the_float(make_pipeline(*map(clone, BEFORE[name]), clone(TREES[family])).fit(frame, labels), space)


def test_products_in_sparse_matrices_are_missing_to_xgboost_where_they_are_zero() -> None:
    frame, labels = data(WHOLE)
    model = make_pipeline(
        levels(sparse=True), PolynomialFeatures(2, interaction_only=True), xgboost.XGBClassifier(n_estimators=5, max_depth=4)
    )  # fmt: skip
    assert_read_to_the_float(model.fit(frame, labels == "perhaps"), WHOLE)


def test_products_of_numbers_that_may_be_missing_are_read_behind_an_imputer() -> None:
    space = SPACE.replace(n=integer(-3, 5, missing=True), m=integer(0, 4, missing=True))
    frame, labels = data(space)
    model = make_pipeline(
        levels(SimpleImputer(add_indicator=True)), PolynomialFeatures(2, interaction_only=True), TREES["tree"]
    )
    assert_read_to_the_float(model.fit(frame, labels), space)


def random_products(seed: int) -> Case:
    """Return a random pipeline with products over a finite space, and a question."""
    rng = np.random.default_rng([seed, 7])
    features: dict[str, Any] = {
        "n": integer(int(rng.integers(-4, 1)), int(rng.integers(2, 6)), missing=bool(rng.random() < 0.3)),
        "m": integer(0, int(rng.integers(1, 5))),
        "cat": categorical(["a", "b", "c"]),
        "flag": categorical([0, 1]),
    }
    is_linear = seed % 4 == 3
    if not is_linear:
        features["x"] = real(-1, 1, step=0.25)
    space = FeatureSpace(features)
    frame, labels = data(space)
    model = [
        DecisionTreeClassifier(max_depth=5, random_state=seed),
        RandomForestClassifier(3, max_depth=3, random_state=seed),
        GradientBoostingClassifier(n_estimators=3, max_depth=2, random_state=seed),
        LogisticRegression(max_iter=2000),
    ][seed % 4]
    degree = 2 if rng.random() < 0.7 else 3
    products = PolynomialFeatures(degree, interaction_only=bool(rng.random() < 0.5))
    after = [StandardScaler()] if is_linear or rng.random() < 0.3 else []
    fitted = make_pipeline(levels(SimpleImputer()), products, *after, model).fit(frame, labels)
    row = space.values_of(random_points(1, seed, space)[0])
    question = {"distance": ["l1", "l0", "linf", "l2"][seed // 4 % 4]}
    return Case("products", fitted, space, row, question)


@pytest.mark.parametrize("seed", range(32))
def test_random_products_agree_with_brute_force(seed: int) -> None:
    assert disagreement(random_products(seed), "auto") is None


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_their_certificates_are_valid(seed: int) -> None:
    case = random_products(seed)
    best = mace.Explainer(case.model, case.space).explain(case.row, certify=True, time_limit=60)[0]
    assert mace.verify(best.certificate, case.model).outcome == "valid"


def test_a_linear_score_of_products_is_within_the_stated_rounding() -> None:
    frame, labels = data(WHOLE)
    model = make_pipeline(levels(), PolynomialFeatures(3), Ridge()).fit(frame, pd.factorize(labels)[0])
    form = read(model, WHOLE).form
    assert isinstance(form, TreeEnsemble)
    points = random_points(200, 8, WHOLE)
    for point, predicted in zip(points, model.predict(WHOLE.frame_of(points)), strict=True):
        assert abs(form.exact_scores(point)[0] - type(form.rounding)(float(predicted))) <= form.rounding


def test_powers_of_whole_numbers_are_read_before_a_network() -> None:
    space = FeatureSpace({"n": integer(-5, 12), "x": real(-3, 3)})
    frame, labels = training(space)
    before = ColumnTransformer([("powers", PolynomialFeatures(3), ["n"])], remainder="passthrough")
    model = make_pipeline(before, StandardScaler(), MLPClassifier((3,), solver="lbfgs", max_iter=200, random_state=0))
    explanation = mace.Explainer(model.fit(frame, labels), space).explain(frame.iloc[0], certify=True, time_limit=60)
    assert explanation.status == "optimal"
    assert mace.verify(explanation[0].certificate, model).outcome == "valid"


GATED: dict[str, tuple[list[Any], Any]] = {
    "linear": ([levels(), PolynomialFeatures(2, interaction_only=True)], LogisticRegression(max_iter=3000)),
    "scaled before and after": (
        [levels(), StandardScaler(), PolynomialFeatures(2, interaction_only=True), StandardScaler()],
        LogisticRegression(max_iter=3000),
    ),
    "of three": ([levels(), PolynomialFeatures(3, interaction_only=True)], LogisticRegression(max_iter=3000)),
    "squares of whole numbers": (
        [ColumnTransformer([("l", OneHotEncoder(drop="first"), ["cat"]),
                            ("p", PolynomialFeatures((2, 2), interaction_only=True), ["x", "n"]),
                            ("q", PolynomialFeatures(2), ["n", "m"])]), MinMaxScaler()],
        LogisticRegression(max_iter=3000),
    ),
    "network": (
        [levels(), StandardScaler(), PolynomialFeatures(2, interaction_only=True)],
        MLPClassifier((4,), solver="lbfgs", max_iter=300, random_state=0),
    ),
}  # fmt: skip


def nearest_by_bisection(model: Any, row: dict[str, Any]) -> float:
    """Return the least l1 distance of a row with another outcome, by the model's own predict: on a grid of x for each combination of the
    others, then halving the grid's cell nearest to the row in which the outcome changes."""
    axes = [range(-3, 6), range(5), ["a", "b", "c"], [0, 1]]
    others = pd.DataFrame(list(itertools.product(*axes)), columns=["n", "m", "cat", "flag"])
    grid = np.unique([*np.linspace(-3, 3, 121), row["x"]])
    rows = others.loc[others.index.repeat(len(grid))].reset_index(drop=True)
    rows.insert(0, "x", np.tile(grid, len(others)))
    own = model.predict(pd.DataFrame([row]))[0]
    other = (model.predict(rows) != own).reshape(len(others), len(grid))
    fixed = (
        abs(others["n"] - row["n"]) / 8
        + abs(others["m"] - row["m"]) / 4
        + (others["cat"] != row["cat"])
        + (others["flag"] != row["flag"])
    )
    away = np.where(other, np.abs(grid - row["x"])[None, :], np.inf)
    best = (fixed.to_numpy() + away.min(axis=1) / 6).min()
    for k in np.flatnonzero(fixed.to_numpy() + (away.min(axis=1) - 0.05) / 6 < best):
        at = int(away[k].argmin())
        if not np.isfinite(away[k, at]) or grid[at] == row["x"]:
            continue
        far, near = grid[at], grid[at + (1 if grid[at] < row["x"] else -1)]
        for _ in range(40):
            middle = (far + near) / 2
            asked = others.iloc[[k]].assign(x=middle)[["x", "n", "m", "cat", "flag"]]
            far, near = (middle, near) if model.predict(asked)[0] != own else (far, middle)
        best = min(best, fixed.iloc[k] + abs(far - row["x"]) / 6)
    return float(best / 5)


@pytest.mark.parametrize("name", GATED)
def test_a_number_times_levels_is_read_before_linear_models_and_networks(name: str) -> None:
    before, model = GATED[name]
    frame, labels = data(SPACE)
    labels = np.where((frame["x"] * np.where(frame["cat"] == "a", 2, -1) > 0.5) | (frame["n"] > 4), "yes", "no")
    fitted = make_pipeline(*map(clone, before), clone(model)).fit(frame, labels)
    explainer = mace.Explainer(fitted, SPACE)
    for k in range(5):
        row = frame.iloc[k].to_dict()
        answer = explainer.explain(row, certify=True, time_limit=60)
        assert answer.status == "optimal"
        assert answer[0].distance == pytest.approx(nearest_by_bisection(fitted, row), abs=2e-6)
        assert mace.verify(answer[0].certificate, fitted).outcome == "valid"  # type: ignore[arg-type]


@pytest.mark.parametrize("floats", ["float64", "float32"])
def test_their_linear_score_is_within_the_stated_rounding(floats: str) -> None:
    space = SPACE.replace(x=real(-3, 3, dtype=floats))
    frame, labels = data(space)
    model = make_pipeline(levels(), PolynomialFeatures(2, interaction_only=True), StandardScaler(), Ridge())
    model.fit(frame, pd.factorize(labels)[0])
    form = read(model, space).form
    assert isinstance(form, Network)
    points = [(float(np.dtype(floats).type(x)), *others) for x, *others in random_points(40, 8, space)]
    for point, predicted in zip(points, model.predict(space.frame_of(points)), strict=True):
        score, rounding = form.exact_scores(point)[0], form.rounding(box_at(point))
        assert abs(score - type(rounding)(float(predicted))) <= rounding


TWO_REAL = FeatureSpace({"x": real(-3, 3), "z": real(0, 2), "n": integer(0, 5), "m": integer(0, 5)})
REFUSED = {
    "two real numbers": (TWO_REAL, [PolynomialFeatures(2, interaction_only=True)], TREES["tree"], "multiplies 'x' and 'z'"),
    "a linear model": (TWO_REAL, [PolynomialFeatures(2)], LogisticRegression(), "not piecewise linear"),
    "before a network": (
        TWO_REAL,
        [PolynomialFeatures(2, interaction_only=True), StandardScaler()],
        MLPClassifier((2,), max_iter=5),
        "step 'polynomialfeatures'.*multiplies 'x', 'z', and more than one of them is real",
    ),
    "many terms": (
        FeatureSpace({"x": real(0, 1), "n": integer(0, 40), "m": integer(0, 40)}), [PolynomialFeatures(3, interaction_only=True)],
        LogisticRegression(), "makes more than 256 terms",
    ),
    "may be missing": (
        FeatureSpace({"x": real(0, 1, missing=True), "n": integer(0, 5), "m": integer(0, 4)}),
        [SimpleImputer(), PolynomialFeatures(2, interaction_only=True)], LogisticRegression(), "'x' may be missing",
    ),
    "zero for missing": (
        FeatureSpace({"n": integer(1, 9), "m": integer(1, 9)}), [PolynomialFeatures(2, interaction_only=True)],
        lightgbm.LGBMClassifier(n_estimators=3, zero_as_missing=True, verbose=-1), "take 0 for missing",
    ),
    "a curve behind a projection": (
        FeatureSpace({"n": integer(0, 9), "m": integer(0, 9)}), [PCA(2), PowerTransformer()], LogisticRegression(),
        "PowerTransformer behind a projection",
    ),
    "a projection": (TWO_REAL, [PCA(2), PolynomialFeatures(2)], TREES["tree"], "a mixture of all features"),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", REFUSED)
def test_products_that_are_not_read_are_refused_by_name(name: str) -> None:
    space, before, model, message = REFUSED[name]
    frame, labels = data(space)
    labels = np.where(frame["x"] * frame["z"] > 1, "yes", "no") if "z" in frame else labels
    with pytest.raises(UnsupportedModel, match=message):
        read(make_pipeline(*map(clone, before), clone(model)).fit(frame, labels), space)
