"""Missing values before linear models and networks: filled by the pipeline, and free to stay, come and go where the space says so."""

from __future__ import annotations

import time
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
import referee
from gaps import FILLERS, SPACE, fitted, gap_filler, random_gaps, split
from pipeline_cases import random_points, training
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import VotingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    KBinsDiscretizer,
    MinMaxScaler,
    OneHotEncoder,
    PowerTransformer,
    StandardScaler,
)

import mace
from mace import FeatureSpace, UnsupportedModel, categorical, integer, real
from mace.forms import Network
from mace.forms.form import box_at
from mace.models import read
from mace.solvers import missing
from mace.testing import check_model

CURVE = ColumnTransformer(
    [
        ("curve", make_pipeline(SimpleImputer(add_indicator=True), PowerTransformer()), ["b"]),
        ("bins", make_pipeline(SimpleImputer(strategy="constant", fill_value=0), KBinsDiscretizer(4, strategy="uniform")), ["b"]),
        ("plain", SimpleImputer(), ["a"]),
    ]
)  # fmt: skip


@pytest.mark.parametrize("name", [*FILLERS, "curves of whole numbers"])
def test_scores_are_within_the_stated_rounding_with_gaps_and_without(name: str) -> None:
    model, _ = fitted(CURVE if name not in FILLERS else split(FILLERS[name]), Ridge())
    form = read(model, SPACE).form
    assert isinstance(form, Network)
    points = random_points(300, 8, SPACE)
    assert sum(None in point for point in points) > 50
    for point, predicted in zip(points, model.predict(SPACE.frame_of(points)), strict=True):
        off = abs(form.exact_scores(point)[0] - Fraction(float(predicted)))
        assert off <= form.rounding(box_at(point)), point
    assert form.rounding(box_at(points[0])) < 1e-9


def test_an_imputer_that_comes_first_adds_no_layer() -> None:
    for name in ("mean, standard", "median and flags, robust", "a constant outside, minmax"):
        form = read(fitted(split(FILLERS[name]), Ridge())[0], SPACE).form
        assert isinstance(form, Network)
        assert len(form.weights) == 1, name


@pytest.mark.parametrize("model", [LogisticRegression(max_iter=500), MLPClassifier((4,), random_state=0, max_iter=60)])
@pytest.mark.parametrize("name", FILLERS)
def test_what_is_read_is_what_the_pipeline_computes(name: str, model: Any) -> None:
    pipeline, frame = fitted(split(FILLERS[name]), model)
    found = check_model(pipeline, SPACE, frame.head(30), count=100)
    # Rows beside a boundary are for the model itself to decide.
    assert found.decided > 150


@pytest.mark.parametrize("solver", ["network", "milp", "smt"])
@pytest.mark.parametrize("seed", range(40))
def test_every_lane_agrees_with_enumeration(seed: int, solver: str) -> None:
    if solver != "network" and (seed % 3 == 0 or seed >= 20):
        return
    case = random_gaps(seed, finite=True)
    if solver != "network" and case.question["distance"] == "l2":
        return
    assert referee.disagreement(case, solver) in (None, "skipped")


@pytest.mark.parametrize("seed", range(1, 14, 2))
def test_the_lanes_agree_where_numbers_are_real(seed: int) -> None:
    case = random_gaps(seed, finite=False)
    question = {**case.question, "distance": "l1", "count": 1}
    explainer = mace.Explainer(case.model, case.space)
    fast, slow = (explainer.explain(case.row, solver=solver, **question) for solver in ("network", "smt"))
    assert fast.status == slow.status
    if fast:
        assert fast[0].distance == pytest.approx(slow[0].distance, abs=2e-6)
        assert fast[0].lower <= slow[0].distance


def test_values_are_filled_and_taken_away_at_the_cost_of_a_whole_change() -> None:
    model = gap_filler()
    space = FeatureSpace({"a": real(0, 10, missing=True), "z": real(-3, 5)})
    explainer = mace.Explainer(model, space)
    filled = explainer.explain({"a": None, "z": 0.0})
    assert filled[0].solver == "network"
    assert not pd.isna(filled[0].values["a"])
    assert filled[0].distance == pytest.approx(0.5, abs=1e-6)
    emptied = explainer.explain({"a": 4.0, "z": 0.0})
    assert pd.isna(emptied[0].values["a"])
    assert emptied[0].distance == pytest.approx(0.5, abs=1e-6)
    whole = mace.Explainer(model, FeatureSpace({"a": real(0, 10), "z": real(-3, 5)}))
    assert whole.explain({"a": 4.0, "z": 0.0}).status == "infeasible"


def test_a_gap_stays_where_another_feature_is_cheaper() -> None:
    model, frame = fitted(split(FILLERS["mean, standard"]), LogisticRegression(max_iter=500))
    explainer = mace.Explainer(model, SPACE)
    kept = 0
    for position in np.flatnonzero(frame["a"].isna())[:8]:
        best = explainer.explain(frame.iloc[[position]])[0]
        assert model.predict(SPACE.frame_of([SPACE.point(best.values)]))[0] == best.prediction
        kept += bool(pd.isna(best.values["a"]))
    assert kept >= 4


def test_a_counterfactual_with_a_gap_differs_from_one_without() -> None:
    model = gap_filler()
    space = FeatureSpace({"a": real(0, 10, missing=True), "z": real(-3, 5)})
    answers = mace.Explainer(model, space).explain(
        {"a": None, "z": 0.0}, count=3, diversity=mace.differ(features=1, by=0.2)
    )
    assert len(answers) == 3
    assert [each.distance for each in answers] == sorted(each.distance for each in answers)


def test_a_condition_across_features_that_may_be_missing_is_answered_by_another_way() -> None:
    model, frame = fitted(split(FILLERS["mean, standard"]), LogisticRegression(max_iter=500))
    known = frame.dropna().iloc[[0]]
    rule = mace.linear({"a": 1, "z": 1}, "<=", 14)
    explanation = mace.Explainer(model, SPACE).explain(known, constraints=[rule], accuracy=1e-4, time_limit=20)
    assert explanation.status == "optimal"
    best = explanation[0].values
    assert pd.isna(best["a"]) or best["a"] + best["z"] <= 14 + 1e-9


def test_a_time_limit_is_kept_between_many_quick_ways() -> None:
    rng = np.random.default_rng(0)
    names = [f"x{k}" for k in range(14)]
    frame = pd.DataFrame(rng.random((300, 14)), columns=names).mask(rng.random((300, 14)) < 0.1)
    labels = np.where(frame.fillna(0.5).sum(axis=1) > 7, "yes", "no")
    model = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler(), LogisticRegression()).fit(frame, labels)
    explainer = mace.Explainer(model, FeatureSpace({name: real(0, 1, missing=True) for name in names}))
    row, far = frame.iloc[[0]], mace.at_least(1 - 1e-12, "yes")
    explainer.explain(row)
    begun = time.process_time()
    explanation = explainer.explain(row, target=far, time_limit=0.1)
    assert time.process_time() - begun < 1
    assert explanation.status in ("feasible", "unknown")
    assert explanation.reason == "time limit reached"
    assert 0 < explanation.lower <= 1


def test_more_ways_than_can_be_tried_are_an_honest_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    space = FeatureSpace({"a": real(0, 10, missing=True), "z": real(-3, 5)})
    explainer = mace.Explainer(gap_filler(), space)
    monkeypatch.setattr(missing, "MOST_PATTERNS", 1)
    explanation = explainer.explain({"a": 4.0, "z": 0.0}, solver="network")
    assert explanation.status == "unknown"
    assert explanation.reason == missing.TOO_MANY
    assert explanation.lower == pytest.approx(0.5, abs=1e-6)
    monkeypatch.setattr(missing, "MOST_PATTERNS", 0)
    assert explainer.explain({"a": 4.0, "z": 0.0}, solver="network").lower == 0


@pytest.mark.parametrize("kind", ["calibrated", "soft", "hard"])
def test_votes_and_means_of_models_that_fill_gaps_agree_with_enumeration(kind: str) -> None:
    space = FeatureSpace(
        {"a": real(0, 2, step=0.5, missing=True), "b": integer(0, 4, missing=True), "c": categorical(["u", "v"])}
    )
    frame, labels = training(space)

    def model(*steps: Any) -> Any:
        before = ColumnTransformer([("numbers", make_pipeline(*steps), ["a", "b"]), ("levels", OneHotEncoder(), ["c"])])
        return make_pipeline(before, LogisticRegression())

    flags = model(SimpleImputer(add_indicator=True), StandardScaler())
    members = [
        ("flags", flags),
        ("median", model(SimpleImputer(strategy="median"), MinMaxScaler())),
        ("bins", model(SimpleImputer(), KBinsDiscretizer(3, strategy="uniform"))),
    ]
    whole = CalibratedClassifierCV(flags, cv=3) if kind == "calibrated" else VotingClassifier(members, voting=kind)
    whole.fit(frame, np.where(labels == "no", "no", "yes"))
    explainer = mace.Explainer(whole, space)
    for position in (0, 3, 8):
        row = frame.iloc[[position]]
        ours, truth = (explainer.explain(row, solver=solver) for solver in ("auto", "enumerate"))
        assert ours.status == truth.status == "optimal"
        assert ours[0].distance == pytest.approx(truth[0].distance, abs=2e-6)


def test_a_missing_value_that_reaches_the_model_is_refused() -> None:
    frame, labels = training(SPACE)
    model = make_pipeline(split("passthrough"), LogisticRegression(max_iter=2000)).fit(frame.fillna(1.0), labels)
    with pytest.raises(UnsupportedModel, match="missing"):
        read(model, SPACE)


def test_a_value_filled_after_a_clip_is_read() -> None:
    before = split(make_pipeline(MinMaxScaler((0.2, 0.6), clip=True), SimpleImputer(add_indicator=True)))
    model, _ = fitted(before, Ridge())
    form = read(model, SPACE).form
    assert isinstance(form, Network)
    points = random_points(200, 5, SPACE)
    for point, predicted in zip(points, model.predict(SPACE.frame_of(points)), strict=True):
        assert abs(form.exact_scores(point)[0] - Fraction(float(predicted))) <= form.rounding(box_at(point)), point
