"""Scikit-learn's boosting and regressors: what MACE read is what they compute."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conformance import CATEGORIES, GAPS, NUMBERS, SPACE, as_categories, check, random_points, training
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    AdaBoostClassifier,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import mace
from mace import Encoder, Explainer, FeatureSpace, UnsupportedModel, categorical, integer, real
from mace.models import read

HIST = {"max_iter": 6, "max_leaf_nodes": 8, "min_samples_leaf": 8, "random_state": 0}
CLASSIFIERS = {
    "tree": DecisionTreeClassifier(max_depth=4, random_state=0),
    "forest": RandomForestClassifier(7, max_depth=4, random_state=0),
    "extra trees": ExtraTreesClassifier(7, max_depth=4, random_state=0),
    "boosting": GradientBoostingClassifier(n_estimators=6, max_depth=3, random_state=0),
    "boosting from zero": GradientBoostingClassifier(n_estimators=4, init="zero", learning_rate=0.5, random_state=0),
    "stopped boosting": GradientBoostingClassifier(n_estimators=60, n_iter_no_change=2, tol=0.05, random_state=0),
    "histogram": HistGradientBoostingClassifier(**HIST),
    "adaboost": AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=6, random_state=0),
}
REGRESSORS = {
    "tree": DecisionTreeRegressor(max_depth=4, random_state=0),
    "forest": RandomForestRegressor(7, max_depth=4, random_state=0),
    "extra trees": ExtraTreesRegressor(7, max_depth=4, random_state=0),
    "boosting": GradientBoostingRegressor(n_estimators=6, random_state=0),
    "boosting of quantiles": GradientBoostingRegressor(n_estimators=4, loss="quantile", alpha=0.3, random_state=0),
    "boosting by huber": GradientBoostingRegressor(n_estimators=4, loss="huber", init="zero", random_state=0),
    "histogram": HistGradientBoostingRegressor(**HIST),
    "histogram of quantiles": HistGradientBoostingRegressor(loss="quantile", quantile=0.4, **HIST),
}
ENCODINGS = [("onehot", "thermometer"), ("codes", "codes")]
TAKES_GAPS = (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)


def fitted(estimator: Any, encoding: tuple[str, str], classes: int | None) -> tuple[Any, FeatureSpace]:
    space = GAPS if isinstance(estimator, TAKES_GAPS) else SPACE
    frame, labels = training(space, classes)
    named = labels if classes is None else np.array(["no", "yes", "perhaps", "never"])[labels]
    encoder = Encoder(space, categorical=encoding[0], ordinal=encoding[1])
    return make_pipeline(encoder, clone(estimator)).fit(frame, named), space


def sums(model: Any, space: FeatureSpace, scale: float = 1.0) -> Any:
    """Return the library's own sums, where the estimator shows them."""
    if not hasattr(model, "decision_function"):
        return None
    return lambda points: scale * model.decision_function(space.frame_of(points))


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("encoding", ENCODINGS, ids="-".join)
@pytest.mark.parametrize("family", CLASSIFIERS)
def test_a_classifier_is_read_as_it_decides(family: str, encoding: tuple[str, str], classes: int) -> None:
    model, space = fitted(CLASSIFIERS[family], encoding, classes)
    reading = check(model, space, sums(model, space))
    assert reading.classes is not None
    assert len(reading.classes) == classes


@pytest.mark.parametrize("encoding", ENCODINGS, ids="-".join)
@pytest.mark.parametrize("family", REGRESSORS)
def test_a_regressor_is_read_as_it_predicts(family: str, encoding: tuple[str, str]) -> None:
    model, space = fitted(REGRESSORS[family], encoding, None)
    reading = check(model, space)
    assert reading.is_regressor
    assert reading.classes is None


def test_the_exponential_loss_reports_the_logistic_function_of_twice_the_sum() -> None:
    model, space = fitted(GradientBoostingClassifier(loss="exponential", n_estimators=5), ENCODINGS[0], 2)
    check(model, space, sums(model, space, 2.0))


def test_adaboost_votes_of_equal_weight_tie_to_the_first_class() -> None:
    model = AdaBoostClassifier(DecisionTreeClassifier(max_depth=1), n_estimators=2, random_state=0)
    X = np.column_stack([np.arange(40) % 4, np.arange(40) % 5]).astype(float)
    model.fit(X, (X[:, 0] > 1) ^ (np.arange(40) % 7 == 0))
    model.estimator_weights_[:2] = 0.7
    reading = read(model, FeatureSpace({"a": integer(0, 3), "b": integer(0, 4)}))
    points = [(a, b) for a in range(4) for b in range(5)]
    tied = [point for point in points if reading.form.exact_scores(point) == (0,)]  # type: ignore[attr-defined]
    assert tied
    assert set(reading.ask(tied)) == {0}


# ---- histogram boosting: categories and missing values


@pytest.mark.parametrize("classes", [2, 3, None])
def test_native_categories_by_position_are_read_through_an_encoder(classes: int | None) -> None:
    frame, labels = training(GAPS, classes)
    kind = HistGradientBoostingRegressor if classes is None else HistGradientBoostingClassifier
    final = kind(categorical_features=[2, 3], **HIST)
    model = make_pipeline(Encoder(GAPS, categorical="codes", ordinal="codes"), final).fit(frame, labels)
    reading = check(model, GAPS, sums(model, GAPS))
    assert reading.form.subsets  # type: ignore[attr-defined]


@pytest.mark.parametrize("as_array", [False, True])
def test_native_categories_of_numeric_levels_are_read_bare(as_array: bool) -> None:
    frame, labels = training(NUMBERS, 2)
    X = frame.to_numpy(dtype=float) if as_array else frame
    model = HistGradientBoostingClassifier(categorical_features=[2], **HIST).fit(X, labels)
    assert check(model, NUMBERS).form.subsets  # type: ignore[attr-defined]


@pytest.mark.parametrize("classes", [2, None])
def test_pandas_categories_are_read_bare_and_asked_as_categories(classes: int | None) -> None:
    frame, labels = training(CATEGORIES, classes)
    kind = HistGradientBoostingRegressor if classes is None else HistGradientBoostingClassifier
    model = kind(**HIST).fit(as_categories(frame, CATEGORIES), labels)
    reading = check(model, CATEGORIES)
    assert reading.form.subsets  # type: ignore[attr-defined]


def test_a_category_that_the_model_never_saw_goes_the_way_of_missing_values() -> None:
    frame, labels = training(CATEGORIES, 2)
    seen = frame["k"] != "q"
    model = HistGradientBoostingClassifier(**HIST).fit(as_categories(frame[seen], CATEGORIES), labels[seen])
    check(model, CATEGORIES)
    numbers, labels = training(NUMBERS, 2)
    seen = numbers["k"] != 1
    model = HistGradientBoostingClassifier(categorical_features=[2], **HIST).fit(numbers[seen], labels[seen])
    check(model, NUMBERS)


def test_a_histogram_model_that_scored_itself_while_fitting_is_read() -> None:
    frame, labels = training(NUMBERS, 2)
    model = HistGradientBoostingClassifier(early_stopping=True, scoring="accuracy", **HIST).fit(frame, labels)
    check(model, NUMBERS)


# ---- explanations


SMALL = FeatureSpace({"x": real(-3, 3), "n": integer(-5, 60), "k": categorical(["p", "q", "r"])})


@pytest.fixture(scope="module")
def small() -> tuple[Any, np.ndarray, np.ndarray]:
    frame = SMALL.frame_of(random_points(SMALL, 200, 2))
    score = frame["x"] + frame["n"] / 30 + (frame["k"] == "q")
    return frame, (score > score.median()).to_numpy().astype(int), score.to_numpy()


@pytest.mark.parametrize(
    "estimator",
    [
        DecisionTreeClassifier(max_depth=3, random_state=0),
        RandomForestClassifier(3, max_depth=3, random_state=0),
        GradientBoostingClassifier(n_estimators=3, max_depth=2, random_state=0),
        HistGradientBoostingClassifier(max_iter=3, max_leaf_nodes=4, random_state=0),
        AdaBoostClassifier(n_estimators=3, random_state=0),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_classifier_is_explained_by_label_and_by_probability(estimator: Any, small: Any) -> None:
    frame, labels, _ = small
    model = make_pipeline(Encoder(SMALL), clone(estimator)).fit(frame, labels)
    explainer = Explainer(model, SMALL)
    rates = model.predict_proba(frame)[:, 1]
    row = frame.iloc[[int(np.argmin(rates))]]
    best = explainer.explain(row, solver="smt")[0]
    assert (best.status, best.prediction) == ("optimal", 1)
    wanted = float(np.quantile(rates, 0.9))
    sure = explainer.explain(row, target=mace.at_least(wanted), solver="smt")
    assert sure.status == "optimal"
    assert model.predict_proba(SMALL.frame_of([SMALL.point(sure[0].values)]))[0, 1] >= wanted
    assert sure[0].distance >= best.lower or wanted < 0.5


@pytest.mark.parametrize(
    "estimator",
    [
        DecisionTreeRegressor(max_depth=3, random_state=0),
        ExtraTreesRegressor(3, max_depth=3, random_state=0),
        GradientBoostingRegressor(n_estimators=3, max_depth=2, random_state=0),
        HistGradientBoostingRegressor(max_iter=3, max_leaf_nodes=4, random_state=0),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_regressor_is_explained_by_an_interval(estimator: Any, small: Any) -> None:
    frame, _, score = small
    model = make_pipeline(Encoder(SMALL), clone(estimator)).fit(frame, score)
    predicted = model.predict(frame)
    low, high = np.quantile(predicted, [0.6, 0.8])
    row = frame.iloc[[int(np.argmin(predicted))]]
    explanation = Explainer(model, SMALL).explain(row, target=mace.between(float(low), float(high)), solver="smt")
    assert explanation.status == "optimal"
    assert low <= model.predict(SMALL.frame_of([SMALL.point(explanation[0].values)]))[0] <= high


# ---- refusals


X = np.random.default_rng(0).random((60, 2))
Y = (X.sum(axis=1) > 1).astype(int)
PLAIN = FeatureSpace({"a": real(0, 1), "b": real(0, 1)})


class Shifted(GradientBoostingClassifier):
    def _raw_predict(self, X: Any) -> Any:
        return super()._raw_predict(X) + 1


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (GradientBoostingClassifier(init=LogisticRegression(), n_estimators=2), r"init=LogisticRegression\(\)"),
        (
            GradientBoostingClassifier(init=DummyClassifier(strategy="stratified"), n_estimators=2),
            "its start depends on the row.*init='zero'",
        ),
        (AdaBoostClassifier(LogisticRegression(), n_estimators=2), "estimator=LogisticRegression"),
        (HistGradientBoostingRegressor(loss="poisson", max_iter=2), "loss='poisson'.*exponential of a sum"),
        (Shifted(n_estimators=2), "overrides GradientBoostingClassifier._raw_predict"),
        (HistGradientBoostingClassifier(categorical_features=[1], max_iter=2), "'b' is categorical to the model"),
        (GradientBoostingClassifier(n_estimators=2), "not fitted"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_what_cannot_be_read_is_refused_with_the_reason(model: Any, message: str) -> None:
    if message != "not fitted":
        model.fit(np.round(X, 1), Y)
    with pytest.raises(UnsupportedModel, match=message):
        read(model, PLAIN)


def test_several_outputs_are_refused() -> None:
    with pytest.raises(UnsupportedModel, match="several outputs"):
        read(RandomForestRegressor(2).fit(X, X), PLAIN)


def test_boosting_takes_no_missing_values() -> None:
    with pytest.raises(UnsupportedModel, match="'a' may be missing"):
        read(GradientBoostingClassifier(n_estimators=2).fit(X, Y), PLAIN.replace(a=real(0, 1, missing=True)))
