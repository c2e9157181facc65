"""Linear models and networks of scikit-learn, and the wrappers around them that stay piecewise linear."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from conformance import PLAIN, SCALED, check_network, training
from sklearn import linear_model as lm
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    BaggingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.frozen import FrozenEstimator
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer
from sklearn.svm import LinearSVC, LinearSVR

import mace
from mace import Encoder, Explainer, FeatureSpace, InvalidTarget, UnsupportedModel, integer, real
from mace.forms import Network
from mace.models import REFUSED_MODELS, read
from mace.models.table import LINEAR_CLASSIFIERS, LINEAR_REGRESSORS

SETTINGS: dict[str, dict[str, Any]] = {
    "LogisticRegressionCV": {"Cs": 2, "cv": 2},
    "SGDClassifier": {"random_state": 0},
    "Perceptron": {"random_state": 0},
    "PassiveAggressiveClassifier": {"random_state": 0},
}


def made(keys: tuple[str, ...]) -> dict[str, Any]:
    """Return one estimator a key of the table; some are deprecated, and say so."""
    homes = {"LinearSVC": LinearSVC, "LinearSVR": LinearSVR, "LinearDiscriminantAnalysis": LinearDiscriminantAnalysis}
    names = [key.removeprefix("sklearn:") for key in keys]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return {name: (homes.get(name) or getattr(lm, name))(**SETTINGS.get(name, {})) for name in names}


CLASSIFIERS = made(LINEAR_CLASSIFIERS)
REGRESSORS = made(LINEAR_REGRESSORS)
FURTHER: dict[str, Any] = {
    "crammer": LinearSVC(multi_class="crammer_singer", random_state=0),
    "log loss": lm.SGDClassifier(loss="log_loss", random_state=0),
    "modified huber": lm.SGDClassifier(loss="modified_huber", alpha=0.05, random_state=0),
    "no intercept": lm.LogisticRegression(fit_intercept=False),
    "lsqr": LinearDiscriminantAnalysis(solver="lsqr"),
    "relu": MLPClassifier((6, 5), random_state=0, max_iter=200),
    "identity": MLPClassifier((4,), activation="identity", random_state=0, max_iter=200),
    "no hidden layer": MLPClassifier((), random_state=0, max_iter=200),
}
FURTHER_REGRESSORS: dict[str, Any] = {
    "relu": MLPRegressor(hidden_layer_sizes=(6, 5), random_state=0, max_iter=200),
    "small": MLPRegressor(hidden_layer_sizes=(3,), random_state=0, max_iter=200),
    "identity": MLPRegressor(hidden_layer_sizes=(4,), activation="identity", random_state=0, max_iter=200),
    "voting": VotingRegressor(
        [("a", lm.LinearRegression()), ("b", lm.Lasso(0.01)), ("c", lm.HuberRegressor())], weights=[1, 2, 0.5]
    ),
    "voting with a network": VotingRegressor(
        [
            ("a", lm.Ridge()),
            ("dropped", "drop"),
            ("b", MLPRegressor(hidden_layer_sizes=(4,), random_state=0, max_iter=100)),
        ]
    ),
    "bagging": BaggingRegressor(lm.Ridge(), n_estimators=5, max_features=0.6, random_state=0),
    "bagging of networks": BaggingRegressor(
        MLPRegressor(hidden_layer_sizes=(3, 3), max_iter=60, random_state=0), n_estimators=3, random_state=0
    ),
}


def fitted(estimator: Any, classes: int | None, space: FeatureSpace = SCALED) -> Any:
    """Return a pipeline of an encoder and a copy of the estimator; columns of the space are scaled by it."""
    frame, labels = training(space, classes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = make_pipeline(Encoder(space), clone(estimator))
        return model.fit(frame, labels if classes is None else np.array(["no", "yes", "perhaps"])[labels])


def raw_scores(model: Any, space: FeatureSpace) -> Any:
    return lambda points: model.decision_function(space.frame_of(points)[list(model.feature_names_in_)])


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", [*CLASSIFIERS, *FURTHER])
def test_a_classifier_decides_as_its_form_says(name: str, classes: int) -> None:
    model = fitted((CLASSIFIERS | FURTHER)[name], classes)
    raw = raw_scores(model, SCALED) if hasattr(model, "decision_function") else None
    reading = check_network(model, SCALED, raw, rows=150)
    assert reading.classes == tuple(sorted(("no", "yes", "perhaps")[:classes]))


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("name", [*REGRESSORS, *FURTHER_REGRESSORS])
def test_a_regressor_predicts_as_its_form_says(name: str) -> None:
    reading = check_network(fitted((REGRESSORS | FURTHER_REGRESSORS)[name], None), SCALED, rows=150)
    assert reading.is_regressor


def test_the_form_of_a_linear_model_has_no_hidden_layer() -> None:
    form = read(fitted(lm.Ridge(), None), SCALED).form
    assert isinstance(form, Network)
    assert len(form.weights) == 1


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("family", [lm.LogisticRegression(), lm.RidgeClassifier(), lm.SGDClassifier(), LinearSVC()])
def test_a_score_of_exactly_0_is_the_first_class(family: Any) -> None:
    space = FeatureSpace({"a": real(-1, 1), "b": real(-1, 1)})
    X = np.array([[-1.0, -1], [1, 1], [-0.5, -0.6], [0.5, 0.4]])
    model = clone(family).fit(X, ["a", "b", "a", "b"])
    model.coef_ = np.array([[1.0, 1.0]])
    model.intercept_ = np.array([0.0])
    reading = read(model, space)
    assert reading.ask([(0.5, -0.5)]) == [0]
    assert reading.form.program() is not None
    assert not reading.form.ties_last  # type: ignore[attr-defined]


# ---- questions


@pytest.mark.parametrize(
    "estimator",
    [
        lm.LogisticRegression(),
        lm.SGDClassifier(loss="log_loss", random_state=0),
        MLPClassifier((4,), random_state=0, max_iter=100),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_a_probability_can_be_asked_for(estimator: Any) -> None:
    model = fitted(estimator, 2, PLAIN)
    explainer = Explainer(model, PLAIN)
    frame, _ = training(PLAIN, 2)
    chances = model.predict_proba(frame)[:, 1]
    row = frame.iloc[int(np.abs(chances - 0.4).argmin())]
    own = model.predict_proba(frame.iloc[[int(np.abs(chances - 0.4).argmin())]])[0, 1]
    best = explainer.explain(row, target=mace.at_least(own + 0.05, model.classes_[1]), accuracy=1e-5)[0]
    assert best.status == "optimal"
    assert model.predict_proba(PLAIN.frame_of([PLAIN.point(best.values)]))[0, 1] >= own + 0.05


def test_the_probability_after_the_modified_huber_loss_is_clipped_and_can_be_asked_for() -> None:
    model = fitted(lm.SGDClassifier(loss="modified_huber", alpha=0.05, random_state=0), 2, PLAIN)
    frame, _ = training(PLAIN, 2)
    chances = model.predict_proba(frame)[:, 1]
    assert (chances == 0).any()
    row = frame.iloc[int(chances.argmin())]
    explainer = Explainer(model, PLAIN)
    for target, accept in (
        (mace.at_least(1.0, model.classes_[1]), lambda p: p[1] >= 1),
        (mace.at_least(0.25, model.classes_[1]), lambda p: p[1] >= 0.25),
        (mace.between(0.4, 0.6, model.classes_[1]), lambda p: 0.4 <= p[1] <= 0.6),
        (mace.at_most(0.9, label=explainer.classes[0]), lambda p: p[0] <= 0.9),  # type: ignore[index]
    ):
        best = explainer.explain(row, target=target)[0]
        assert best.status == "optimal"
        assert accept(model.predict_proba(PLAIN.frame_of([PLAIN.point(best.values)]))[0]), target


def test_a_probability_that_rounding_does_not_tell_from_0_is_refused() -> None:
    model = fitted(lm.LogisticRegression(), 2, PLAIN)
    frame, _ = training(PLAIN, 2)
    with pytest.raises(InvalidTarget, match="not told from 0 or 1"):
        Explainer(model, PLAIN).explain(frame.iloc[0], target=mace.at_least(1e-15, model.classes_[0]))
    with pytest.raises(InvalidTarget, match="reports no number"):
        Explainer(fitted(LinearSVC(), 2, PLAIN), PLAIN).explain(
            frame.iloc[0], target=mace.at_least(0.5, model.classes_[0])
        )


@pytest.mark.parametrize("name", ["Ridge", "small", "voting", "bagging"])
def test_a_regressor_answers_ranges(name: str) -> None:
    space = FeatureSpace({"x": real(-3, 3), "n": integer(-5, 60), "k": integer(0, 4), "z": real(-1, 1)})
    model = fitted((REGRESSORS | FURTHER_REGRESSORS)[name], None, space)
    frame, _ = training(space, None)
    own = float(model.predict(frame.iloc[[3]])[0])
    explainer = Explainer(model, space)
    for target, accept in (
        (mace.at_least(own + 0.3), lambda y: y >= own + 0.3),
        (mace.at_most(own - 0.3), lambda y: y <= own - 0.3),
        (mace.between(own + 0.2, own + 0.21), lambda y: own + 0.2 <= y <= own + 0.21),
    ):
        best = explainer.explain(frame.iloc[3], target=target, accuracy=1e-4, time_limit=30)[0]
        assert best.status == "optimal"
        assert accept(float(model.predict(space.frame_of([space.point(best.values)]))[0]))


@pytest.mark.slow
def test_a_finite_space_is_answered_as_brute_force_does() -> None:
    space = FeatureSpace({"x": real(-3, 3, step=0.5), "n": integer(-2, 6), "k": integer(0, 2), "z": integer(0, 1)})
    for name in ("RidgeClassifier", "Perceptron", "LinearDiscriminantAnalysis", "relu"):
        model = fitted((CLASSIFIERS | FURTHER)[name], 3, space)
        frame, _ = training(space, 3)
        explainer = Explainer(model, space)
        first = explainer.explain(frame.iloc[5], solver="smt")
        truth = explainer.explain(frame.iloc[5], solver="enumerate")
        assert first[0].distance == truth[0].distance
        assert model.predict(space.frame_of([space.point(first[0].values)]))[0] != truth.prediction


# ---- calibration


CALIBRATED: dict[str, Any] = {
    "one for all folds": CalibratedClassifierCV(LinearSVC(), ensemble=False, cv=3),
    "of a network": CalibratedClassifierCV(MLPClassifier((8,), random_state=0, max_iter=300), ensemble=False, cv=2),
    "temperature": CalibratedClassifierCV(lm.LogisticRegression(), method="temperature", ensemble=False, cv=3),
}


@pytest.mark.parametrize("name", CALIBRATED)
def test_a_calibrated_model_is_read_where_it_is_one_sigmoid(name: str) -> None:
    model = fitted(CALIBRATED[name], 2, PLAIN)
    reading = check_network(model, PLAIN)
    assert reading.form.link == ("none" if "network" in name else "sigmoid")  # type: ignore[attr-defined]


def test_a_frozen_model_is_calibrated_and_its_slope_may_have_either_sign() -> None:
    frame, labels = training(PLAIN, 2)
    X = Encoder(PLAIN).fit_transform(frame)
    for wrong in (False, True):
        for base in (LinearSVC(), MLPClassifier((3,), random_state=0, max_iter=60)):
            frozen = FrozenEstimator(clone(base).fit(X, labels))
            model = CalibratedClassifierCV(frozen, ensemble=False).fit(X, 1 - labels if wrong else labels)
            flat = FeatureSpace({**{f"x{k}": real(-100, 100) for k in range(X.shape[1])}})
            check_network(model, flat)


@pytest.mark.parametrize(
    ("model", "classes", "message"),
    [
        (CalibratedClassifierCV(AdaBoostClassifier(n_estimators=2)), 3, "of AdaBoostClassifier with 3 classes"),
        (
            VotingClassifier([("a", lm.LogisticRegression()), ("b", lm.SGDClassifier(loss="log_loss"))], voting="soft"),
            3,
            "of SGDClassifier: its probabilities are neither shares of trees nor one softmax",
        ),
        (BaggingClassifier(lm.SGDClassifier(loss="log_loss"), n_estimators=2), 3, "BaggingClassifier of SGDClassifier"),
        (MLPClassifier((3,), activation="tanh", max_iter=20), 2, "tanh is not piecewise linear.*activation='relu'"),
        (
            MLPRegressor(hidden_layer_sizes=(3,), activation="logistic", max_iter=20),
            None,
            "logistic is not piecewise linear",
        ),
        (
            CalibratedClassifierCV(make_pipeline(Normalizer(), LinearSVC()), ensemble=False),
            2,
            "step 'normalizer', Normalizer: it divides",
        ),
        (lm.PoissonRegressor(), None, "PoissonRegressor: its prediction is the exponential"),
    ],
    ids=lambda value: "" if not isinstance(value, str) else value[:25],
)
def test_a_wrapper_or_unit_that_is_not_piecewise_linear_is_refused_with_the_reason(
    model: Any, classes: int | None, message: str
) -> None:
    frame, labels = training(PLAIN, classes)
    labels = np.abs(labels) + 1 if classes is None else labels
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = make_pipeline(Encoder(PLAIN), clone(model)).fit(frame, labels)
    with pytest.raises(UnsupportedModel, match=message):
        Explainer(model, PLAIN)


def test_what_is_refused_by_name_exists_and_has_no_reader() -> None:
    from sklearn.utils import all_estimators

    from mace.models import MODELS

    names = {name for name, _ in all_estimators()}
    for package, _, name in (key.partition(":") for key in REFUSED_MODELS):
        assert name in names or package in ("torch", "mace")
        assert f"{package}:{name}" not in MODELS


def test_several_outputs_and_several_labels_are_refused() -> None:
    space = FeatureSpace({"a": real(0, 1), "b": real(0, 1)})
    X = np.random.default_rng(0).random((30, 2))
    two = np.column_stack([X.sum(axis=1), X[:, 0]])
    for model in (lm.LinearRegression(), lm.Ridge(), MLPRegressor(hidden_layer_sizes=(2,), max_iter=20)):
        with pytest.raises(UnsupportedModel, match="several outputs"):
            Explainer(model.fit(X, two), space)
    with pytest.raises(UnsupportedModel, match="several labels"):
        Explainer(lm.RidgeClassifier().fit(X, (two > 0.5).astype(int)), space)


def test_coefficients_that_are_sparse_or_float32_are_read() -> None:
    frame, labels = training(PLAIN, 2)
    X = frame.to_numpy(dtype=float)
    sparse = lm.SGDClassifier(penalty="l1", random_state=0).fit(X, labels).sparsify()
    check_network(sparse, PLAIN)
    check_network(lm.LogisticRegression().fit(X.astype(np.float32), labels), PLAIN)
    check_network(MLPClassifier((3,), random_state=0, max_iter=50).fit(X.astype(np.float32), labels), PLAIN)


def test_a_parameter_that_is_not_a_number_is_refused() -> None:
    space = FeatureSpace({"a": real(0, 1), "b": real(0, 1)})
    X = np.random.default_rng(0).random((30, 2))
    model = lm.Ridge().fit(X, X.sum(axis=1))
    model.coef_ = np.array([np.nan, 1.0])
    with pytest.raises(UnsupportedModel, match="not a number"):
        Explainer(model, space)
