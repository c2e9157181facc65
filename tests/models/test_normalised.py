"""Probabilities of three classes divided by their sums: what is read is what the model says, answers are those of brute force or hold
against samples, and certificates are checked."""

from __future__ import annotations

import warnings
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost
from random_composites import _row, _space, against_brute_force, against_samples
from random_problems import Case
from sklearn.calibration import CalibratedClassifierCV
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    BaggingClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import mace
from mace.forms import Composite
from mace.forms.form import box_at
from mace.models import read
from mace.testing import check_model

LOGISTIC = LogisticRegression()
SCALED = make_pipeline(StandardScaler(), LogisticRegression(C=5))
NETWORK = MLPClassifier((3,), max_iter=200, random_state=0)
FOREST = RandomForestClassifier(3, max_depth=3, random_state=0)
BOOSTING = GradientBoostingClassifier(n_estimators=2, max_depth=2, random_state=0)
HIST = HistGradientBoostingClassifier(max_iter=2, min_samples_leaf=5)
XGBOOST = xgboost.XGBClassifier(n_estimators=2, max_depth=2, n_jobs=1)
LIGHT = lightgbm.LGBMClassifier(n_estimators=2, max_depth=2, min_child_samples=5, n_jobs=1, verbose=-1)


def calibrated(base: Any, method: str = "sigmoid", **settings: Any) -> CalibratedClassifierCV:
    return CalibratedClassifierCV(base, method=method, **{"cv": 2, **settings})


def stack(*models: Any, head: Any = LOGISTIC, **settings: Any) -> StackingClassifier:
    return StackingClassifier([(str(k), model) for k, model in enumerate(models)], head, cv=2, **settings)


def soft(*models: Any, **settings: Any) -> VotingClassifier:
    return VotingClassifier([(str(k), model) for k, model in enumerate(models)], voting="soft", **settings)


MODELS: dict[str, Any] = {
    "calibrated logistic": calibrated(SCALED, cv=3),
    "calibrated logistic, isotonic": calibrated(LOGISTIC, "isotonic"),
    "calibrated logistic, temperature": calibrated(LOGISTIC, "temperature"),
    "calibrated svc": calibrated(LinearSVC()),
    "calibrated network": calibrated(NETWORK),
    "calibrated network, isotonic": calibrated(NETWORK, "isotonic"),
    "calibrated network, one": calibrated(NETWORK, ensemble=False),
    "calibrated forest": calibrated(FOREST),
    "calibrated forest, isotonic": calibrated(FOREST, "isotonic"),
    "calibrated boosting": calibrated(BOOSTING),
    "calibrated boosting, isotonic": calibrated(HIST, "isotonic"),
    "calibrated xgboost": calibrated(XGBOOST),
    "calibrated xgboost, isotonic": calibrated(XGBOOST, "isotonic"),
    "calibrated lightgbm": calibrated(LIGHT),
    "soft votes": soft(LOGISTIC, LinearDiscriminantAnalysis(), NETWORK, weights=[1, 2, 1]),
    "soft votes of trees": soft(BOOSTING, HIST, FOREST, XGBOOST, LIGHT),
    "soft votes, mixed": soft(LOGISTIC, FOREST),
    "bagging": BaggingClassifier(LOGISTIC, 4, random_state=0),
    "stack": stack(SCALED, NETWORK),
    "stack, another head": stack(LOGISTIC, NETWORK, head=RidgeClassifier()),
    "stack of boosting": stack(BOOSTING, HIST),
    "stack, passthrough": stack(LOGISTIC, LinearSVC(), passthrough=True),
}
SMOOTH = ("calibrated logistic", "calibrated svc", "calibrated logistic, temperature", "bagging", "stack")
OF_TREES = ("calibrated forest", "calibrated boosting, isotonic", "soft votes of trees", "stack of boosting")


def case_of(name: str, seed: int, *, finite: bool = True) -> Case:
    rng = np.random.default_rng([seed, 5])
    space = _space(rng, finite)
    frame = pd.DataFrame([_row(space, rng) for _ in range(150)])
    columns = np.asarray(mace.Encoder(space).fit_transform(frame))
    score = columns @ rng.normal(size=columns.shape[1]) + rng.normal(0, 0.5, 150)
    labels = np.searchsorted(np.quantile(score, [0.33, 0.66]), score)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = make_pipeline(mace.Encoder(space), MODELS[name]).fit(frame, labels)
    return Case(name, fitted, space, _row(space, rng), {"distance": str(rng.choice(["l0", "l1", "linf"]))})


@pytest.mark.parametrize("name", MODELS)
def test_what_is_read_is_what_the_model_says(name: str) -> None:
    case = case_of(name, 1, finite=False)
    assert check_model(case.model, case.space, count=40).decided > 30
    reading = read(case.model, case.space)
    form = reading.form
    assert isinstance(form, Composite)
    assert form.is_curved
    rng = np.random.default_rng(0)
    points = [case.space.point(_row(case.space, rng)) for _ in range(30)]
    for code in range(3) if form.link == "chance" else ():
        assert reading.rate is not None
        for point, rate in zip(points, reading.rate(points, code), strict=True):
            assert abs(form.exact_scores(point)[code] - rate) <= form.rounding(box_at(point))
            assert form.rounding(box_at(point)) < 1e-2 or "isotonic" in name


@pytest.mark.parametrize("name", MODELS)
def test_the_answer_is_that_of_brute_force(name: str) -> None:
    assert against_brute_force(case_of(name, 0)) is None


@pytest.mark.parametrize("name", [*SMOOTH, *OF_TREES])
def test_its_certificate_is_valid(name: str) -> None:
    case = case_of(name, 0)
    found = mace.Explainer(case.model, case.space).explain(case.row, **case.question, certify=True, time_limit=60)
    assert (found.status, found[0].solver) == ("optimal", "ratios")
    assert mace.verify(mace.Certificate.from_json(found[0].certificate.to_json()), case.model).outcome == "valid"


@pytest.mark.parametrize("name", [*SMOOTH, *OF_TREES])
@pytest.mark.parametrize("distance", ["l1", "l2"])
def test_on_real_features_no_row_that_is_drawn_is_nearer_than_the_bound(name: str, distance: str) -> None:
    case = case_of(name, 1, finite=False)
    case.question["distance"] = distance
    assert against_samples(case, np.random.default_rng(0), 1000) is None


def test_a_probability_and_a_lead_are_targets() -> None:
    case = case_of("calibrated logistic", 0)
    explainer = mace.Explainer(case.model, case.space)
    for target in (mace.at_least(0.5, 2), mace.between(0.3, 0.4, 0), mace.becomes(0, margin=0.1)):
        found = explainer.explain(case.row, target=target, distance="l1", time_limit=60)
        truth = explainer.explain(case.row, target=target, distance="l1", solver="enumerate")
        assert found.status == truth.status
        assert [each.distance for each in found] == [each.distance for each in truth]


def test_constraints_are_kept() -> None:
    case = case_of("calibrated logistic", 0)
    explainer, names = mace.Explainer(case.model, case.space), list(case.space)
    for constraint in (mace.fixed(names[0]), mace.changes_at_most(1), f"if {names[1]} changes then {names[0]} changes"):
        question: dict[str, Any] = {"constraints": [constraint], "distance": "l1", "time_limit": 60}
        found = explainer.explain(case.row, **question, certify=True)
        truth = explainer.explain(case.row, **question, solver="enumerate")
        assert (found.status, [each.distance for each in found]) == (truth.status, [each.distance for each in truth])
        for certificate in [each.certificate for each in found] or [found.certificate]:
            assert certificate is not None
            assert mace.verify(certificate, case.model).outcome == "valid"


def test_a_row_with_a_missing_value_is_refused_by_name() -> None:
    explainer = mace.Explainer(calibrated(FOREST).fit(*_with_gaps()), space=_GAPS)
    with pytest.raises(mace.InvalidOption, match="a feature may be missing"):
        explainer.explain({"a": 0.5, "b": 0.5})


_GAPS = mace.FeatureSpace({"a": mace.real(0, 1, missing=True), "b": mace.real(0, 1)})


def _with_gaps() -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(0).random((90, 2))
    labels = np.searchsorted([0.7, 1.2], X.sum(axis=1))
    X[::9, 0] = np.nan
    return X, labels


@pytest.mark.parametrize("labels", [2, 3])
def test_several_such_models_are_asked_together(labels: int) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.integers(0, 12, 150), "b": rng.integers(0, 12, 150)})
    classes = np.searchsorted([9, 14][: labels - 1], frame.a + 0.7 * frame.b + rng.normal(0, 1, 150))
    models = [
        soft(LogisticRegression(C=c), LogisticRegression(C=0.01)).fit(frame[order], classes)
        for c, order in ((1, ["a", "b"]), (0.02, ["a", "b"]))
    ]
    explainer = mace.Explainer(mace.agree(models), mace.FeatureSpace.from_frame(frame))
    for row in ({"a": 1, "b": 2}, {"a": 0, "b": 9}):
        found = explainer.explain(row, labels - 1, distance="l1", time_limit=60, certify=True)
        truth = explainer.explain(row, labels - 1, distance="l1", solver="enumerate")
        assert (found.status, found[0].distance) == (truth.status, truth[0].distance)
        assert found[0].solver == "ratios"
        assert mace.verify(found[0].certificate, mace.agree(models)).outcome == "valid"
