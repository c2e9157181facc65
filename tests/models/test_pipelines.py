"""Pipelines: what MACE reads of the steps before a model is what they compute, to the float; the rest is refused by name."""

from __future__ import annotations

import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pipeline_cases import SPACE, on_and_beside, random_points, training
from random_pipelines import random_pipeline
from referee import disagreement
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.feature_selection import SelectFromModel, SelectKBest, VarianceThreshold, f_classif
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import StratifiedKFold
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline, make_union
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
    TargetEncoder,
)
from sklearn.tree import DecisionTreeClassifier

import mace
from mace import FeatureSpace, UnsupportedModel, categorical, integer, real
from mace.forms import Network, ObliqueTrees, TreeEnsemble, winner
from mace.models import read

NUMBERS, TEXTS = ["x", "z", "n", "wide"], ["ord", "cat"]
LEVELS = [["low", "mid", "high", "top"], ["a", "b", "c"]]


def encoded(numeric: Any, **settings: Any) -> ColumnTransformer:
    """Return a column transformer: a step for the numbers, one-hot levels, the rest passed through."""
    return ColumnTransformer(
        [("numbers", numeric, NUMBERS), ("levels", OneHotEncoder(), TEXTS)], remainder="passthrough", **settings
    )


def only(step: Any, columns: Any = ("x", "z", "n")) -> ColumnTransformer:
    return ColumnTransformer(
        [("step", step, list(columns)), ("levels", OrdinalEncoder(categories=LEVELS), TEXTS)], remainder="drop"
    )


BEFORE_TREES: dict[str, Any] = {
    "standard": encoded(StandardScaler()),
    "standard without mean": encoded(StandardScaler(with_mean=False), sparse_threshold=1.0),
    "minmax": encoded(MinMaxScaler((-1, 2))),
    "minmax clipped": encoded(MinMaxScaler(clip=True)),
    "maxabs": encoded(MaxAbsScaler()),
    "robust": encoded(RobustScaler()),
    "robust uncentred": encoded(RobustScaler(with_centering=False, quantile_range=(10, 90))),
    "quantile": encoded(QuantileTransformer(n_quantiles=40)),
    "quantile normal": encoded(QuantileTransformer(n_quantiles=40, output_distribution="normal")),
    "power": encoded(PowerTransformer()),
    "power plain": encoded(PowerTransformer(standardize=False)),
    "box-cox": only(PowerTransformer("box-cox"), ["z"]),
    "log1p": only(FunctionTransformer(np.log1p), ["z", "wide"]),
    "log then scale": only(make_pipeline(FunctionTransformer(np.log), StandardScaler()), ["z"]),
    "sqrt": only(FunctionTransformer(np.sqrt), ["z", "wide"]),
    "cbrt": only(FunctionTransformer(np.cbrt)),
    "tanh": only(FunctionTransformer(np.tanh), ["x"]),
    "negative": only(make_pipeline(FunctionTransformer(np.negative), StandardScaler())),
    "falling log": only(make_pipeline(FunctionTransformer(np.log1p), FunctionTransformer(np.negative)), ["z"]),
    "absolute": only(FunctionTransformer(np.abs)),
    "square": only(make_pipeline(StandardScaler(), FunctionTransformer(np.square))),
    "identity": only(FunctionTransformer()),
    "bins": only(KBinsDiscretizer(5, encode="ordinal", quantile_method="averaged_inverted_cdf")),
    "bins one-hot": only(KBinsDiscretizer(4, encode="onehot-dense", strategy="uniform")),
    "bins one-hot sparse": only(KBinsDiscretizer(4, encode="onehot", strategy="uniform")),
    "log then bins": only(
        make_pipeline(FunctionTransformer(np.log1p), KBinsDiscretizer(4, encode="onehot-dense", strategy="uniform")), ["z"]
    ),
    "power then bins": only(make_pipeline(PowerTransformer(), Binarizer(threshold=0.2))),
    "binarizer": only(Binarizer(threshold=0.7)),
    "imputer": encoded(make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())),
    "imputer of a number": only(SimpleImputer(missing_values=7, strategy="constant", fill_value=55), ["n"]),
    "polynomial": encoded(PolynomialFeatures(1)),
    "variance": make_pipeline(encoded(StandardScaler()), VarianceThreshold(0.05)),
    "k best": make_pipeline(encoded("passthrough"), SelectKBest(f_classif, k=6)),
    "from model": make_pipeline(
        encoded(MinMaxScaler()), SelectFromModel(ExtraTreesClassifier(5, random_state=0), threshold="median")
    ),
    "one-hot of everything": ColumnTransformer(
        [("hot", OneHotEncoder(handle_unknown="ignore", min_frequency=0.1), ["ord", "cat", "flag", "code", "n"])]
    ),
    "one-hot dropped": ColumnTransformer(
        [("hot", OneHotEncoder(drop="first", sparse_output=False), ["ord", "cat", "code"])], remainder="passthrough"
    ),
    "one-hot binary": ColumnTransformer([("hot", OneHotEncoder(drop="if_binary"), [*TEXTS, "flag"])], remainder=RobustScaler()),
    "one-hot few": ColumnTransformer(
        [("hot", OneHotEncoder(max_categories=2, handle_unknown="infrequent_if_exist"), TEXTS)], remainder="passthrough"
    ),
    "ordinal": ColumnTransformer(
        [("codes", OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), [*TEXTS, "n"])],
        remainder="passthrough",
    ),
    "ordinal shuffled": ColumnTransformer(
        [("codes", OrdinalEncoder(categories=[["top", "low", "high", "mid"]]), ["ord"])], remainder="drop"
    ),
    "target": ColumnTransformer([("target", TargetEncoder(cv=StratifiedKFold(3)), [*TEXTS, "n"])], remainder=StandardScaler()),
    "by dtype": ColumnTransformer(
        [
            ("numbers", StandardScaler(), make_column_selector(dtype_include=np.number)),
            ("others", OneHotEncoder(), make_column_selector(dtype_exclude=np.number)),
        ]
    ),
    "by position": ColumnTransformer([("a", StandardScaler(), slice(0, 3)), ("b", OrdinalEncoder(), [4, 5])]),
    "by mask": ColumnTransformer(
        [("a", MinMaxScaler(), [True, False, True, False, False, False, False, False]), ("b", "drop", ["z"])]
    ),
    "nested": ColumnTransformer(
        [
            (
                "numbers",
                Pipeline(
                    [
                        ("fill", SimpleImputer()),
                        ("both", FeatureUnion([("plain", "passthrough"), ("scaled", RobustScaler())])),
                    ]
                ),
                NUMBERS,
            ),
            ("texts", make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder()), TEXTS),
        ]
    ),
    "twice": make_pipeline(encoded(make_pipeline(StandardScaler(), MinMaxScaler())), MaxAbsScaler()),
    "union": make_pipeline(
        encoded("passthrough"), make_union(SelectKBest(k=4), make_pipeline(VarianceThreshold(), StandardScaler()))
    ),
    "frames": ColumnTransformer(
        [("numbers", StandardScaler(), NUMBERS), ("levels", OneHotEncoder(sparse_output=False), TEXTS)],
        verbose_feature_names_out=False,
    ).set_output(transform="pandas"),
}  # fmt: skip

TREES = {
    "tree": DecisionTreeClassifier(random_state=0),
    "forest": RandomForestClassifier(5, max_depth=6, random_state=0),
    "hist": HistGradientBoostingClassifier(max_iter=4, random_state=0, early_stopping=False),
}


@pytest.mark.parametrize("family", TREES)
@pytest.mark.parametrize("name", BEFORE_TREES)
def test_trees_behind_steps_are_read_to_the_float(name: str, family: str) -> None:
    frame, labels = training()
    before = clone(BEFORE_TREES[name])
    if family == "hist":
        for part in (before, *dict(getattr(before, "steps", [])).values()):
            if isinstance(part, ColumnTransformer):
                part.set_params(sparse_threshold=0)
    model = make_pipeline(before, clone(TREES[family])).fit(frame, labels)
    reading = read(model, SPACE)
    form = reading.form
    assert isinstance(form, TreeEnsemble)
    near = on_and_beside(form)
    chosen = np.random.default_rng(0).permutation(len(near))[:300]
    points = random_points(80, 5) + [near[k] for k in chosen]
    asked = reading.ask(points)
    checked = 0
    for point, code in zip(points, asked, strict=True):
        scores = sorted(form.exact_scores(point), reverse=True)
        if scores[0] - scores[1] > form.rounding:
            checked += 1
            assert winner(form.exact_scores(point)) == code, (point, code)
    assert checked > len(points) / 2


BEFORE_NETWORKS: dict[str, Any] = {
    "standard": encoded(StandardScaler()),
    "sparse": encoded(StandardScaler(with_mean=False), sparse_threshold=1.0),
    "minmax clipped": encoded(MinMaxScaler(clip=True)),
    "robust then maxabs": make_pipeline(encoded(RobustScaler()), MaxAbsScaler()),
    "pca": make_pipeline(encoded(StandardScaler(), sparse_threshold=0), PCA(3)),
    "pca whitened": make_pipeline(encoded(MinMaxScaler(), sparse_threshold=0), PCA(2, whiten=True)),
    "pca scaled": make_pipeline(encoded(StandardScaler(), sparse_threshold=0), PCA(3), StandardScaler()),
    "svd": make_pipeline(encoded(StandardScaler()), TruncatedSVD(3, random_state=0)),
    "imputer": encoded(make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())),
    "k best": make_pipeline(encoded(StandardScaler()), SelectKBest(f_classif, k=5)),
    "bins of whole numbers": ColumnTransformer(
        [("bins", KBinsDiscretizer(4, encode="onehot-dense", strategy="uniform"), ["n"]), ("x", StandardScaler(), ["x", "z"])]
    ),
    "codes": ColumnTransformer(
        [
            ("codes", OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), [*TEXTS, "flag", "n"]),
            ("x", RobustScaler(), ["x"]),
        ]
    ),
    "target": ColumnTransformer(
        [("target", TargetEncoder(cv=StratifiedKFold(3)), TEXTS), ("log", FunctionTransformer(np.log1p), ["code"])],
        remainder="drop",
    ),
    "curve of whole numbers": ColumnTransformer([("power", PowerTransformer(), ["n"]), ("x", StandardScaler(), ["x"])]),
    "negative": only(make_pipeline(FunctionTransformer(np.negative), StandardScaler()), ["x", "z"]),
    "polynomial": make_pipeline(encoded(StandardScaler()), PolynomialFeatures(1)),
    "absolute": only(make_pipeline(StandardScaler(), FunctionTransformer(np.abs), MinMaxScaler()), ["x", "z", "n"]),
}  # fmt: skip


@pytest.mark.parametrize("name", BEFORE_NETWORKS)
def test_linear_scores_behind_steps_are_within_the_stated_rounding(name: str) -> None:
    frame, labels = training()
    model = make_pipeline(clone(BEFORE_NETWORKS[name]), Ridge()).fit(frame, pd.factorize(labels)[0])
    form = read(model, SPACE).form
    assert isinstance(form, Network)
    points = random_points(200, 8)
    for point, predicted in zip(points, model.predict(SPACE.frame_of(points)), strict=True):
        box = tuple((Fraction(value), Fraction(value)) for value in point)  # type: ignore[arg-type]
        assert abs(form.exact_scores(point)[0] - Fraction(float(predicted))) <= form.rounding(box)


@pytest.mark.parametrize("name", BEFORE_NETWORKS)
def test_a_network_behind_steps_is_explained(name: str) -> None:
    frame, labels = training()
    model = make_pipeline(clone(BEFORE_NETWORKS[name]), MLPClassifier((4,), random_state=0, max_iter=60))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(frame, labels)
    explainer = mace.Explainer(model, SPACE)
    row = frame.iloc[[0]]
    explanation = explainer.explain(row, constraints=[mace.fixed("cat")], accuracy=1e-4, time_limit=20)
    if explanation.status == "infeasible":
        others = SPACE.frame_of(random_points(4000, 11)).assign(cat=row["cat"].iloc[0])
        assert set(model.predict(others)) == {model.predict(row)[0]}
        return
    best = explanation[0]
    assert best.values["cat"] == row["cat"].iloc[0]
    assert model.predict(pd.DataFrame([best.values]))[0] != model.predict(row)[0]


@pytest.mark.parametrize("seed", range(64))
def test_random_pipelines_agree_with_brute_force(seed: int) -> None:
    assert disagreement(random_pipeline(seed), "auto") in (None, "skipped")


@pytest.mark.parametrize("seed", [0, 1, 2, 4, 8, 9])
def test_the_lanes_agree_on_pipelines_of_real_numbers(seed: int) -> None:
    case = random_pipeline(seed, finite=False)
    explainer = mace.Explainer(case.model, case.space)
    question = {**case.question, "distance": "l1"}
    try:
        fast, slow = (explainer.explain(case.row, solver=solver, **question) for solver in ("auto", "smt"))
    except mace.InvalidTarget:
        return
    if fast.status == "reached":
        return
    assert fast.status == slow.status
    if fast:
        assert fast[0].distance == pytest.approx(slow[0].distance, abs=2e-6)
        assert slow[0].lower <= fast[0].distance
        assert fast[0].lower <= slow[0].distance


MISSING = FeatureSpace(
    {"a": real(0, 10, missing=True), "b": integer(0, 20, missing=True), "c": categorical(["u", "v"])}
)


@pytest.mark.parametrize(
    "filler",
    [SimpleImputer(add_indicator=True), SimpleImputer(strategy="constant", fill_value=-1), "passthrough"],
    ids=repr,
)
def test_missing_values_go_through_the_steps(filler: Any) -> None:
    frame, labels = training(MISSING)
    numbers = filler if isinstance(filler, str) else make_pipeline(filler, MinMaxScaler())
    before = ColumnTransformer([("numbers", numbers, ["a", "b"]), ("levels", OneHotEncoder(), ["c"])])
    model = make_pipeline(before, RandomForestClassifier(6, random_state=0)).fit(frame, labels)
    reading = read(model, MISSING)
    form = reading.form
    assert isinstance(form, TreeEnsemble)
    points = random_points(300, 4, MISSING) + on_and_beside(form)
    for point, code in zip(points, reading.ask(points), strict=True):
        scores = sorted(form.exact_scores(point), reverse=True)
        if scores[0] - scores[1] > form.rounding:
            assert winner(form.exact_scores(point)) == code
    row = dict(zip(frame.columns, frame.iloc[int(np.flatnonzero(frame["a"].isna())[0])], strict=True))
    assert mace.Explainer(model, MISSING).explain(row).status == "optimal"


def test_a_pipeline_fitted_on_an_array_is_asked_with_an_array() -> None:
    space = FeatureSpace({"a": real(0, 10), "b": integer(0, 20)})
    frame, labels = training(space)
    before = ColumnTransformer([("log", FunctionTransformer(np.log1p), [0]), ("rest", StandardScaler(), [False, True])])
    model = make_pipeline(before, DecisionTreeClassifier(random_state=0)).fit(frame.to_numpy(), labels)
    explanation = mace.Explainer(model, space).explain(frame.iloc[0])
    assert explanation.status == "optimal"
    row = np.array([list(explanation[0].values.values())], dtype=float)
    assert model.predict(row)[0] == explanation[0].prediction != explanation.prediction


def test_xgboost_takes_zeros_of_a_sparse_matrix_for_missing() -> None:
    import xgboost

    frame, labels = training()
    before = ColumnTransformer(
        [
            ("hot", OneHotEncoder(handle_unknown="ignore"), [*TEXTS, "n"]),
            ("flags", Binarizer(), ["x"]),
            ("max", MaxAbsScaler(), ["wide", "z"]),
        ],
        sparse_threshold=1.0,
    )
    model = make_pipeline(before, xgboost.XGBClassifier(n_estimators=5, max_depth=4)).fit(frame, labels == "yes")
    reading = read(model, SPACE)
    form = reading.form
    assert isinstance(form, TreeEnsemble)
    points = random_points(300, 4) + on_and_beside(form)
    points += [(*point[:3], 0, *point[4:]) for point in points[:50]]
    for point, code in zip(points, reading.ask(points), strict=True):
        (score,) = form.exact_scores(point)
        if abs(score) > form.rounding:
            assert (score > 0) == (code == 1), point


REFUSED = {
    "Normalizer": (encoded(Normalizer()), "step 'columntransformer' > 'numbers', Normalizer: it divides each row"),
    "KNNImputer": (encoded(KNNImputer()), "KNNImputer: it fills a missing value from the nearest"),
    "lambda": (only(FunctionTransformer(lambda x: x + 1)), "FunctionTransformer: func=<function"),
    "not monotone": (only(FunctionTransformer(np.sin)), "np.sin is not known to be monotone"),
    "weights": (encoded("passthrough", transformer_weights={"numbers": 2.0}), "transformer_weights"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_read_is_refused_by_name(name: str) -> None:
    before, message = REFUSED[name]
    frame, labels = training()
    model = make_pipeline(clone(before), DecisionTreeClassifier()).fit(frame, labels)
    with pytest.raises(UnsupportedModel, match=message):
        read(model, SPACE)


@pytest.mark.parametrize(
    ("before", "message"),
    [
        (
            ColumnTransformer(
                [
                    ("bins", KBinsDiscretizer(3, encode="ordinal", strategy="uniform"), ["x"]),
                    ("z", StandardScaler(), ["z"]),
                ]
            ),
            "KBinsDiscretizer of 'x', which is real",
        ),
        (only(FunctionTransformer(np.log1p), ["z"]), "FunctionTransformer of 'z', which is real"),
        (
            only(QuantileTransformer(n_quantiles=9, output_distribution="normal"), ["x"]),
            "QuantileTransformer of 'x', which is real",
        ),
    ],
)
def test_curves_of_real_numbers_are_refused_before_a_linear_model(before: Any, message: str) -> None:
    frame, labels = training()
    with pytest.raises(UnsupportedModel, match=message):
        read(make_pipeline(before, LogisticRegression()).fit(frame, labels), SPACE)


@pytest.mark.parametrize(
    ("curve", "most"),
    [(FunctionTransformer(np.log1p), 400), (FunctionTransformer(np.log1p), 100_000), (PowerTransformer(), 5_000)],
)
def test_curves_of_whole_numbers_are_read_before_a_network(curve: Any, most: int) -> None:
    """Exact up to 4,096 bends; beyond, what the line with fewer bends misses is part of the rounding, and of the gap."""
    space = FeatureSpace({"income": integer(0, most), "x": real(0, 1)})
    rng = np.random.default_rng(most)
    frame = pd.DataFrame({"income": rng.integers(0, most, 300), "x": rng.random(300)})
    labels = (np.log1p(frame.income) + 3 * frame.x > np.log(most) + 0.8).astype(int)
    network = MLPClassifier((3,), solver="lbfgs", max_iter=300, random_state=0)
    before = ColumnTransformer([("curve", curve, ["income"])], remainder="passthrough")
    model = make_pipeline(before, StandardScaler(), network).fit(frame, labels)
    row = frame[model.predict(frame) == 0].iloc[0]
    best = mace.Explainer(model, space).explain(row)[0]
    assert best.distance - best.lower <= (1e-6 if most < 4096 else 1e-4)
    share = rng.uniform(-1, 1, 3000)
    income = row.income + np.trunc(share * 2 * best.lower * most)
    rest = 2 * best.lower * 0.999999 - np.abs(income - row.income) / most
    nearer = pd.DataFrame({"income": income, "x": row.x + rest * rng.choice([-1, 1], 3000)})
    inside = nearer[nearer.income.between(0, most) & nearer.x.between(0, 1) & (rest > 0)]
    assert len(inside) > 300
    assert not model.predict(inside.astype({"income": int})).any()


def test_whole_numbers_that_bend_too_wildly_or_are_too_many_are_refused() -> None:
    frame = pd.DataFrame({"n": np.arange(12_000) // 2, "x": np.linspace(0, 1, 12_000)})
    before = ColumnTransformer([("wild", TargetEncoder(), ["n"])], remainder="passthrough")
    labels = np.random.default_rng(0).integers(0, 2, len(frame))
    model = make_pipeline(before, MLPClassifier((2,), max_iter=5)).fit(frame, labels)
    space = FeatureSpace({"n": integer(0, 5_999), "x": real(0, 1)})
    with pytest.raises(UnsupportedModel, match=r"bends more than 4096 times.*misses it by.*Narrow the range"):
        read(model, space)
    with pytest.raises(UnsupportedModel, match=r"300,001 whole numbers, above 200,000"):
        read(model, space.replace(n=integer(0, 300_000)))


def test_a_projection_before_trees_is_read_as_splits_of_mixtures() -> None:
    frame, labels = training()
    model = make_pipeline(encoded(StandardScaler(), sparse_threshold=0), PCA(2), DecisionTreeClassifier(max_depth=3))
    assert isinstance(read(model.fit(frame, labels), SPACE).form, ObliqueTrees)


def test_an_unseen_level_is_refused_where_the_encoder_refuses_it() -> None:
    frame, labels = training()
    model = make_pipeline(encoded("passthrough"), DecisionTreeClassifier()).fit(frame, labels)
    space = SPACE.replace(cat=categorical(["a", "b", "c", "d"]))
    with pytest.raises(
        UnsupportedModel, match=r"OneHotEncoder does not take every value of the space.*unknown categories"
    ):
        read(model, space)


def test_a_range_beyond_a_logarithm_is_refused() -> None:
    frame, labels = training()
    model = make_pipeline(only(FunctionTransformer(np.log), ["z"]), DecisionTreeClassifier()).fit(frame, labels)
    with pytest.raises(UnsupportedModel, match=r"-inf of 0\.0 in 'z'|does not take every value"):
        read(model, SPACE.replace(z=real(0, 4000)))


def test_other_columns_than_the_pipelines_are_refused() -> None:
    frame, labels = training()
    model = make_pipeline(encoded("passthrough"), DecisionTreeClassifier()).fit(frame, labels)
    with pytest.raises(UnsupportedModel, match=r"fitted on 'code' too.* Did you mean 'kode'"):
        read(model, FeatureSpace({("kode" if name == "code" else name): feature for name, feature in SPACE.items()}))


def test_a_subclass_that_changes_a_step_is_refused() -> None:
    class Own(StandardScaler):  # type: ignore[misc]
        def transform(self, X: Any, copy: Any = None) -> Any:
            return super().transform(X, copy) + 1

    frame, labels = training()
    model = make_pipeline(encoded(Own()), DecisionTreeClassifier()).fit(frame, labels)
    with pytest.raises(UnsupportedModel, match=r"it overrides StandardScaler\.transform"):
        read(model, SPACE)


def test_regressors_behind_steps() -> None:
    frame, _ = training()
    model = make_pipeline(encoded(PowerTransformer()), GradientBoostingRegressor(n_estimators=8)).fit(
        frame, frame["x"] * 2
    )
    explainer = mace.Explainer(model, SPACE)
    row = frame.iloc[0]
    goal = float(model.predict(frame).max() * 0.9)
    best = explainer.explain(row, target=mace.at_least(goal))[0]
    assert model.predict(pd.DataFrame([best.values]))[0] >= goal


@pytest.mark.slow
def test_a_certificate_of_a_pipeline_is_verified_with_the_pipeline() -> None:
    frame, labels = training()
    model = make_pipeline(encoded(PowerTransformer()), RandomForestClassifier(4, max_depth=5, random_state=0)).fit(
        frame, labels
    )
    best = mace.Explainer(model, SPACE).explain(frame.iloc[0], certify=True)[0]
    assert mace.verify(best.certificate, model).outcome == "valid"
    other = make_pipeline(encoded(PowerTransformer()), RandomForestClassifier(4, max_depth=5, random_state=1))
    assert mace.verify(best.certificate, other.fit(frame, labels)).outcome == "refuted"


@pytest.mark.parametrize(
    "wrap",
    [
        lambda model: Pipeline([("model", model)]),
        lambda model: Pipeline([("nothing", "passthrough"), ("model", model)]),
        lambda model: Pipeline([("inner", Pipeline([("model", model)]))]),
        lambda model: VotingClassifier([("a", Pipeline([("model", model)]))]),
    ],
    ids=["alone", "passthrough", "twice", "voting"],
)
@pytest.mark.parametrize(
    "model",
    [LogisticRegression(), RandomForestClassifier(3, max_depth=3, random_state=0)],
    ids=lambda m: type(m).__name__,
)
def test_a_pipeline_without_steps_before_its_model_is_that_model(wrap: Any, model: Any) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=80), "b": rng.integers(0, 9, 80)})
    labels = (frame.a + frame.b / 3 + rng.normal(size=80) > 1).astype(int)
    space, row = FeatureSpace.from_frame(frame), frame.iloc[0]
    wrapped = wrap(clone(model)).fit(frame, labels)
    found = mace.Explainer(wrapped, space).explain(row, certify=True)
    alone = mace.Explainer(clone(model).fit(frame, labels), space).explain(row)
    assert found[0].distance == pytest.approx(alone[0].distance, abs=2e-6)
    assert mace.verify(found[0].certificate, wrapped).valid
