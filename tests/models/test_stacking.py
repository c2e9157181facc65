"""Stacking: what is read decides as the real model does, answers are those of brute force, and the rest is refused by name."""

from __future__ import annotations

import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from random_composites import _row, _space, against_brute_force
from random_problems import Case
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
)
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, RidgeClassifier, SGDClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import mace
from mace import UnsupportedModel
from mace.forms.form import box_at
from mace.models import read

LOGISTIC = ("logistic", LogisticRegression())
SCALED = ("scaled", make_pipeline(StandardScaler(), LogisticRegression(C=5)))
FOREST = ("forest", RandomForestClassifier(3, max_depth=3, random_state=0))
BOOSTING = ("boosting", GradientBoostingClassifier(n_estimators=3, max_depth=2, random_state=0))
HIST = ("hist", HistGradientBoostingClassifier(max_iter=3, min_samples_leaf=5))
SCORES = ("svc", LinearSVC())
NETWORK = ("mlp", MLPClassifier((3,), max_iter=80, random_state=0))
TREE = DecisionTreeClassifier(max_depth=3, random_state=0)


def classifier(*models: Any, head: Any = None, **settings: Any) -> StackingClassifier:
    return StackingClassifier(list(models), LogisticRegression() if head is None else head, cv=2, **settings)


BINARY: dict[str, Any] = {
    "sigmoids": classifier(LOGISTIC, ("other", LogisticRegression(C=0.1))),
    "shares and sigmoids": classifier(FOREST, LOGISTIC),
    "shares": classifier(FOREST, ("tree", TREE)),
    "boosting and scores": classifier(BOOSTING, SCORES, stack_method="auto"),
    "scores": classifier(LOGISTIC, BOOSTING, HIST, stack_method="decision_function"),
    "votes": classifier(LOGISTIC, FOREST, SCORES, stack_method="predict"),
    "passthrough": classifier(FOREST, SCORES, passthrough=True),
    "network": classifier(NETWORK, ("tree", TREE), passthrough=True),
    "another head": classifier(FOREST, SCORES, head=RidgeClassifier()),
    "tree on sigmoids": classifier(LOGISTIC, SCORES, head=TREE),
    "forest on scores": classifier(LOGISTIC, SCORES, head=FOREST[1], stack_method="decision_function", passthrough=True),
    "boosting on a network": classifier(NETWORK, LOGISTIC, head=BOOSTING[1]),
    "tree on shares and sigmoids": classifier(FOREST, LOGISTIC, head=TREE),
    "tree on boosting": classifier(BOOSTING, HIST, head=TREE),
    "forest on trees": classifier(FOREST, BOOSTING, head=FOREST[1], passthrough=True),
    "tree on votes": classifier(LOGISTIC, FOREST, head=TREE, stack_method="predict"),
    "boosting on shares": classifier(FOREST, SCORES, head=BOOSTING[1]),
    "dropped": classifier(LOGISTIC, ("forest", "drop"), SCORES),
}  # fmt: skip
SEVERAL: dict[str, Any] = {
    "shares": classifier(FOREST, ("tree", TREE)),
    "scores": classifier(LOGISTIC, SCORES, stack_method="decision_function", passthrough=True),
    "votes": classifier(LOGISTIC, FOREST, stack_method="predict"),
    "tree on scores": classifier(SCORES, ("other", LinearSVC(C=0.1)), head=TREE),
    "tree on shares": classifier(FOREST, SCORES, head=TREE),
    "tree on sums": classifier(HIST, ("other", HIST[1]), head=TREE, stack_method="decision_function"),
}
NUMBERS: dict[str, Any] = {
    "default": StackingRegressor([("line", LinearRegression()), ("tree", DecisionTreeRegressor(max_depth=3, random_state=0))], cv=2),
    "forest": StackingRegressor([("forest", RandomForestRegressor(3, max_depth=3, random_state=0))], Ridge(), cv=2, passthrough=True),
    "tree": StackingRegressor([("line", LinearRegression())], DecisionTreeRegressor(max_depth=3, random_state=0), cv=2, passthrough=True),
    "tree on a forest": StackingRegressor([("forest", RandomForestRegressor(3, max_depth=3, random_state=0)), ("line", LinearRegression())],
                                          DecisionTreeRegressor(max_depth=3, random_state=0), cv=2),
}  # fmt: skip
ALL = {
    **{f"binary, {name}": (model, 2) for name, model in BINARY.items()},
    **{f"three classes, {name}": (model, 3) for name, model in SEVERAL.items()},
    **{f"numbers, {name}": (model, 0) for name, model in NUMBERS.items()},
}


def case_of(name: str, seed: int, *, finite: bool = True) -> Case:
    model, classes = ALL[name]
    rng = np.random.default_rng([seed, len(name)])
    space = _space(rng, finite)
    frame = pd.DataFrame([_row(space, rng) for _ in range(120)])
    columns = np.asarray(mace.Encoder(space).fit_transform(frame))
    score = columns @ rng.normal(size=columns.shape[1]) + rng.normal(0, 0.5, 120) + 0.5 * np.abs(columns[:, 0])
    labels = (
        np.array(["no", "yes", "maybe"])[np.searchsorted(np.quantile(score, np.arange(1, classes) / classes), score)]
        if classes
        else score
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = make_pipeline(mace.Encoder(space), model).fit(frame, labels)
    question: dict[str, Any] = {"distance": str(rng.choice(["l0", "l1", "linf"]))}
    row = _row(space, rng)
    if not classes:
        question["target"] = mace.at_least(float(fitted.predict(pd.DataFrame([row]))[0]) + 0.5)
    return Case(name, fitted, space, row, question)


@pytest.mark.parametrize("name", ALL)
def test_beyond_its_band_the_form_decides_as_the_model(name: str) -> None:
    case = case_of(name, 3, finite=False)
    reading = read(case.model, case.space)
    form: Any = reading.form
    rng = np.random.default_rng(0)
    points = [case.space.point(_row(case.space, rng)) for _ in range(300)]
    sure = 0
    for point, code in zip(points, reading.ask(points), strict=True):
        if form.is_regressor:
            if hasattr(form, "rounding"):
                assert abs(form.exact_scores(point)[0] - code) <= form.rounding(box_at(point))
            sure += 1
        elif form.is_beyond_rounding(point, mace.forms.Outcomes(frozenset([Fraction(code)])), box_at(point)):
            assert form.predicted(point) == code
            sure += 1
    assert sure > 250


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", ALL)
def test_the_answer_is_that_of_brute_force(name: str, seed: int) -> None:
    assert against_brute_force(case_of(name, seed)) is None


CERTIFIED = (
    "binary, shares and sigmoids", "binary, votes", "binary, passthrough", "binary, tree on sigmoids", "three classes, scores",
    "numbers, default", "binary, tree on shares and sigmoids", "binary, forest on trees", "binary, tree on votes",
    "three classes, tree on shares",
)  # fmt: skip


@pytest.mark.parametrize("name", CERTIFIED)
def test_its_certificate_is_valid(name: str) -> None:
    case = case_of(name, 4)
    found = mace.Explainer(case.model, case.space).explain(case.row, **case.question, certify=True, time_limit=60)
    assert found.status == "optimal"
    assert mace.verify(found[0].certificate, case.model).outcome == "valid"


def test_models_that_are_pipelines_are_stacked_over_the_frame() -> None:
    rng = np.random.default_rng(5)
    space = mace.FeatureSpace({"a": mace.real(-2, 2), "b": mace.integer(0, 9), "c": mace.real(0, 1)})
    frame = pd.DataFrame([_row(space, rng) for _ in range(120)])
    labels = np.where(frame.a + frame.b / 5 + frame.c > 1.2, "yes", "no")
    for head in (LogisticRegression(), TREE):
        model = classifier(SCALED, SCORES, head=head, passthrough=True).fit(frame, labels)
        found = mace.Explainer(model, space).explain(frame.iloc[0], certify=True, time_limit=60)
        assert found.status == "optimal"
        assert model.predict(pd.DataFrame([found[0].values]))[0] != model.predict(frame.iloc[[0]])[0]
        assert mace.verify(found[0].certificate, model).outcome == "valid"


REFUSED = {
    "a kernel below": (classifier(("svc", SVC()), LOGISTIC), "SVC: a kernel"),
    "a network on top": (classifier(LOGISTIC, SCORES, head=NETWORK[1]), r"final_estimator=MLPClassifier.*Supported: linear models, trees"),
    "a kernel on top": (classifier(LOGISTIC, head=SVC()), "the final_estimator of StackingClassifier.*a kernel"),
    "votes below a tree": (
        classifier(("vote", VotingClassifier([LOGISTIC, SCORES])), head=TREE, stack_method="predict"), "VotingClassifier below a tree"
    ),
    "votes inside": (classifier(("vote", VotingClassifier([LOGISTIC, SCORES])), FOREST), "itself made of several models"),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_read_is_refused_by_name(name: str) -> None:
    model, message = REFUSED[name]
    rng = np.random.default_rng(0)
    X = rng.random((60, 2))
    space = mace.FeatureSpace({"a": mace.real(0, 1), "b": mace.real(0, 1)})
    with pytest.raises(UnsupportedModel, match=message):
        read(model.fit(X, (X.sum(axis=1) > 1).astype(int)), space)


def test_missing_values_reach_models_that_take_them_and_no_linear_final_model() -> None:
    rng = np.random.default_rng(6)
    space = mace.FeatureSpace({"a": mace.real(0, 1, missing=True), "b": mace.real(0, 1)})
    X = np.where(rng.random((90, 2)) < [0.2, 0], np.nan, rng.random((90, 2)))
    labels = (np.nan_to_num(X[:, 0], nan=0.9) + X[:, 1] > 1).astype(int)
    with pytest.raises(UnsupportedModel, match="with passthrough, does not accept NaN"):
        read(classifier(FOREST, HIST).set_params(passthrough=True, cv=2).fit(np.nan_to_num(X), labels), space)
    model = classifier(FOREST, HIST).fit(X, labels)
    row = {"a": float("nan"), "b": 0.2}
    found = mace.Explainer(model, space).explain(row, certify=True, time_limit=60)
    assert found.status == "optimal"
    assert mace.verify(found[0].certificate, model).outcome == "valid"


def test_a_final_model_that_is_fitted_again_is_noticed() -> None:
    X = np.random.default_rng(0).random((90, 2))
    model = classifier(LOGISTIC, FOREST).fit(X, (X.sum(axis=1) > 1).astype(int))
    explainer = mace.Explainer(model, mace.FeatureSpace({"a": mace.real(0, 1), "b": mace.real(0, 1)}))
    model.final_estimator_ = LogisticRegression().fit(model.transform(X), (X[:, 0] > 0.7).astype(int))
    with pytest.raises(mace.ModelChanged):
        explainer.explain(X[0])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_probabilities_of_one_class_against_the_rest_are_refused_below_a_linear_model() -> None:
    X = np.random.default_rng(0).random((90, 2))
    model = classifier(("sgd", SGDClassifier(loss="log_loss")), FOREST).fit(X, np.arange(90) % 3)
    with pytest.raises(UnsupportedModel, match="predict_proba of SGDClassifier"):
        read(model, mace.FeatureSpace({"a": mace.real(0, 1), "b": mace.real(0, 1)}))
