"""Bins and other steps of real numbers before linear models: read as sums of step functions, to the float."""

from __future__ import annotations

import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
import raw_referee
import referee
from pipeline_cases import on_and_beside, random_points, training
from problems import problem_of
from random_problems import Case
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.linear_model import LogisticRegression, Perceptron, Ridge, RidgeClassifier, SGDClassifier
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
    TargetEncoder,
)
from sklearn.svm import LinearSVC

import mace
from mace import FeatureSpace, UnsupportedModel, categorical, integer, ordinal, real
from mace.forms import Network, TreeEnsemble, winner
from mace.models import read

SPACE = FeatureSpace(
    {
        "x": real(-3, 3),
        "z": real(0.5, 4000),
        "n": integer(-5, 60),
        "wide": integer(0, 30_000_000),
        "ord": ordinal(["low", "mid", "high", "top"]),
        "cat": categorical(["a", "b", "c"]),
    }
)
LEVELS = ("levels", OneHotEncoder(), ["ord", "cat"])


def bins(count: int = 5, encode: str = "onehot") -> Any:
    return KBinsDiscretizer(count, encode=encode, quantile_method="averaged_inverted_cdf")


STEPS: dict[str, Any] = {
    "one-hot bins": ColumnTransformer([("bins", bins(), ["x", "z", "wide"]), LEVELS]),
    "dense bins": ColumnTransformer([("bins", bins(4, "onehot-dense"), ["x", "z"]), LEVELS]),
    "ordinal bins, scaled": ColumnTransformer(
        [("bins", make_pipeline(bins(7, "ordinal"), StandardScaler()), ["x", "z"]), LEVELS]
    ),
    "thresholds": ColumnTransformer([("above", Binarizer(threshold=0.5), ["x"]), ("n", StandardScaler(), ["n"]), LEVELS]),
    "bins of a logarithm": ColumnTransformer([("bins", make_pipeline(FunctionTransformer(np.log), bins(6)), ["z"])]),
    "bins of bins, and a sign": ColumnTransformer(
        [("bins", make_pipeline(bins(9, "ordinal"), bins(3)), ["z"]), ("sign", FunctionTransformer(np.sign), ["x"])]
    ),
    "two binnings of one feature": make_union(
        ColumnTransformer([("coarse", bins(3), ["x"])]), ColumnTransformer([("fine", bins(8), ["x", "wide"])])
    ),
    "a curve of many whole numbers": ColumnTransformer(
        [("bins", bins(3), ["x"]), ("curve", make_pipeline(bins(60, "ordinal"), FunctionTransformer(np.sqrt)), ["wide"])]
    ),
    "targets of a number": ColumnTransformer(
        [("codes", make_pipeline(bins(4, "ordinal"), TargetEncoder(random_state=0, cv=3)), ["x"]), LEVELS]
    ),
}  # fmt: skip

MODELS: dict[str, Any] = {
    "logistic": LogisticRegression(max_iter=300),
    "svc": LinearSVC(random_state=0),
    "ridge classifier": RidgeClassifier(),
}


def quietly_fitted(model: Any, frame: pd.DataFrame, labels: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clone(model).fit(frame, labels)


@pytest.mark.parametrize("is_binary", [True, False], ids=["two classes", "three classes"])
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", STEPS)
def test_linear_models_behind_steps_are_read_to_the_float(name: str, model: str, is_binary: bool) -> None:
    frame, labels = training(SPACE)
    labels = np.where(labels == "no", "no", "yes") if is_binary else labels
    reading = read(quietly_fitted(make_pipeline(STEPS[name], MODELS[model]), frame, labels), SPACE)
    form = reading.form
    assert isinstance(form, TreeEnsemble)
    points = random_points(60, 5, SPACE) + on_and_beside(form)
    decided = 0
    for point, code in zip(points, reading.ask(points), strict=True):
        scores = form.exact_scores(point)
        ahead = abs(scores[0]) if is_binary else sorted(scores)[-1] - sorted(scores)[-2]
        if ahead > form.rounding:
            decided += 1
            assert (int(scores[0] > 0) if is_binary else winner(scores)) == code, point
    assert decided > 0.9 * len(points)


@pytest.mark.parametrize("name", STEPS)
def test_the_band_holds_what_rounding_does_to_a_score(name: str) -> None:
    frame, labels = training(SPACE)
    numbers = pd.factorize(labels)[0] * 1e3 + 0.1
    model = quietly_fitted(make_pipeline(STEPS[name], Ridge(alpha=1e-6)), frame, numbers)
    form = read(model, SPACE).form
    assert isinstance(form, TreeEnsemble)
    points = random_points(200, 8, SPACE) + on_and_beside(form)
    for point, predicted in zip(points, model.predict(SPACE.frame_of(points)), strict=True):
        assert abs(form.exact_scores(point)[0] - Fraction(float(predicted))) <= form.squash
    assert form.squash < 1e-6


def small_space(rng: np.random.Generator, *, finite: bool, missing: bool) -> FeatureSpace:
    def may_miss() -> bool:
        return bool(missing and rng.random() < 0.5)

    features: dict[str, Any] = {
        "a": real(0, 1.5, step=0.1 if finite else None, missing=may_miss()),
        "b": real(-1, 4, step=0.5 if finite else None, missing=may_miss()),
        "n": integer(0, int(rng.integers(2, 7)), missing=may_miss()),
        "c": categorical(["u", "v", "w"]),
    }
    names = list(features)[: int(rng.integers(2, 5))]
    return FeatureSpace({name: features[name] for name in names})


def random_scorecard(seed: int, *, finite: bool) -> Case:
    """Return a linear model behind steps of every feature, with a question."""
    rng = np.random.default_rng([seed, 41])
    space = small_space(rng, finite=finite, missing=seed % 2 == 1)
    frame = space.frame_of(random_points(150, seed, space))
    parts = []
    for name, feature in space.items():
        if hasattr(feature, "levels"):
            parts.append((name, OneHotEncoder(), [name]))
            continue
        step: Any = [
            KBinsDiscretizer(int(rng.integers(2, 6)), encode="onehot", strategy="uniform"),
            make_pipeline(KBinsDiscretizer(4, encode="ordinal", strategy="uniform"), StandardScaler()),
            Binarizer(threshold=1.0),
        ][int(rng.integers(3))]
        filler = SimpleImputer(strategy="median", add_indicator=bool(rng.random() < 0.5))
        parts.append((name, make_pipeline(filler, step) if feature.missing else step, [name]))
    scores = rng.normal(size=len(frame)) * 0.5
    for name in frame:
        scores += rng.normal() * pd.Series(pd.factorize(frame[name], sort=True)[0]).rank(pct=True).to_numpy()
    ends = np.quantile(scores, [0.5] if rng.random() < 0.6 else [0.3, 0.7])
    labels = np.array(["no", "yes", "perhaps"])[np.searchsorted(ends, scores)]
    model = quietly_fitted(
        make_pipeline(ColumnTransformer(parts), [LogisticRegression(), LinearSVC(), RidgeClassifier()][seed % 3]), frame, labels
    )  # fmt: skip
    question: dict[str, Any] = {"distance": ["l1", "l0", "linf", "l2"][seed % 4]}
    if "c" in space and rng.random() < 0.5:
        question["constraints"] = [mace.fixed("c")]
    row = {name: None if pd.isna(value) else value for name, value in frame.iloc[0].items()}
    return Case("scorecard", model, space, row, question)


@pytest.mark.parametrize("seed", range(24))
def test_scorecards_of_finite_spaces_agree_with_enumeration(seed: int) -> None:
    assert referee.disagreement(random_scorecard(seed, finite=True), "auto") in (None, "skipped")


@pytest.mark.parametrize("seed", range(24))
def test_scorecards_of_real_numbers_agree_with_brute_force_over_raw_values(seed: int) -> None:
    case = random_scorecard(seed, finite=False)
    if isinstance(read(case.model, case.space).form, Network):
        pytest.fail("the sample should hold real numbers in bins")
    assert raw_referee.disagreement(case, seed) in (None, "skipped")


@pytest.mark.slow
def test_most_scorecards_of_the_sample_are_compared() -> None:
    compared = [
        raw_referee.disagreement(random_scorecard(seed, finite=False), seed) is None for seed in range(0, 24, 4)
    ]
    assert sum(compared) >= 4


def scorecard(model: Any = None) -> tuple[Any, pd.DataFrame]:
    frame, labels = training(SPACE)
    before = ColumnTransformer([("bins", bins(), ["x", "z", "wide"]), ("n", StandardScaler(), ["n"]), LEVELS])
    fitted = quietly_fitted(
        make_pipeline(before, model or LogisticRegression(max_iter=300)), frame, np.where(labels == "no", "no", "yes")
    )
    return fitted, frame


@pytest.mark.parametrize("distance", ["l0", "l1", "l2", "linf"])
def test_a_scorecard_is_certified_and_the_smt_lane_agrees(distance: str) -> None:
    model, frame = scorecard()
    explainer = mace.Explainer(model, SPACE)
    row = frame.iloc[[0]]
    best = explainer.explain(row, distance=distance, certify=True)[0]
    assert best.solver == "trees"
    assert best.status == "optimal"
    assert mace.verify(best.certificate, model).outcome == "valid"
    if distance == "l1":
        assert explainer.explain(row, distance=distance, solver="smt")[0].distance == pytest.approx(
            best.distance, abs=2e-6
        )


def test_probabilities_of_a_scorecard_are_reached_and_barely() -> None:
    model, frame = scorecard()
    explainer = mace.Explainer(model, SPACE)
    chances = model.predict_proba(frame)[:, 1]
    row = frame.iloc[[int(np.argmin(chances))]]
    best = explainer.explain(row, target=mace.at_least(0.75, "yes"), certify=True)[0]
    assert model.predict_proba(pd.DataFrame([best.values]))[0, 1] >= 0.75
    assert mace.verify(best.certificate, model).outcome == "valid"
    problem = problem_of(explainer, dict(row.iloc[0]), {"target": mace.at_least(0.75, "yes")})
    others = random_points(3000, 7, SPACE)
    reached = model.predict_proba(SPACE.frame_of(others))[:, 1] >= 0.75
    assert reached.any()
    assert all(problem.distance(point) >= best.lower for point, is_in in zip(others, reached, strict=True) if is_in)


def test_a_threshold_around_a_scorecard_and_a_clipped_probability() -> None:
    model, frame = scorecard(SGDClassifier(loss="modified_huber", random_state=0))
    row = frame.iloc[[int(np.argmin(model.decision_function(frame)))]]
    best = mace.Explainer(model, SPACE).explain(row, target=mace.at_least(0.6, "yes"))[0]
    assert model.predict_proba(pd.DataFrame([best.values]))[0, 1] >= 0.6
    strict = FixedThresholdClassifier(scorecard()[0], threshold=0.8, pos_label="yes")
    strict.fit(frame, np.where(training(SPACE)[1] == "no", "no", "yes"))
    refused = frame[strict.predict(frame) == "no"].iloc[[0]]
    found = mace.Explainer(strict, SPACE).explain(refused)[0]
    assert strict.predict(pd.DataFrame([found.values]))[0] == "yes"


def test_ties_of_whole_weights_are_decided_without_rounding() -> None:
    frame, labels = training(SPACE)
    before = ColumnTransformer([("bins", bins(), ["x", "z"]), LEVELS], sparse_threshold=0)
    model = quietly_fitted(
        make_pipeline(before, Perceptron(random_state=0)), frame, np.where(labels == "no", "no", "yes")
    )
    reading = read(model, SPACE)
    form = reading.form
    assert isinstance(form, TreeEnsemble)
    assert form.rounding == 0
    points = random_points(800, 2, SPACE)
    scores = [form.exact_scores(point)[0] for point in points]
    assert 0 in scores
    assert [int(score > 0) for score in scores] == reading.ask(points)


def test_missing_values_of_binned_numbers_are_a_cell_of_their_own() -> None:
    space = FeatureSpace(
        {"a": real(0, 10, missing=True), "b": integer(0, 9, missing=True), "c": categorical(["u", "v"])}
    )
    frame, labels = training(space)
    before = ColumnTransformer(
        [
            (
                "bins",
                make_pipeline(SimpleImputer(add_indicator=True), KBinsDiscretizer(3, strategy="uniform")),
                ["a", "b"],
            ),
            ("gaps", MissingIndicator(), ["a", "b"]),
            ("levels", OrdinalEncoder(), ["c"]),
        ]
    )
    model = quietly_fitted(make_pipeline(before, LogisticRegression()), frame, labels)
    reading = read(model, space)
    form = reading.form
    assert isinstance(form, TreeEnsemble)
    points = random_points(300, 4, space) + on_and_beside(form)
    assert any(None in point for point in points)
    for point, code in zip(points, reading.ask(points), strict=True):
        scores = form.exact_scores(point)
        if sorted(scores)[-1] - sorted(scores)[-2] > form.rounding:
            assert winner(scores) == code
    row = frame[frame["a"].isna()].iloc[[0]]
    explanation = mace.Explainer(model, space).explain(row, certify=True)
    assert explanation.status == "optimal"
    assert mace.verify(explanation[0].certificate, model).outcome == "valid"


@pytest.mark.parametrize(
    "model",
    [
        make_pipeline(
            ColumnTransformer([("bins", bins(), ["x"]), ("scaled", StandardScaler(), ["z"])]), LogisticRegression()
        ),
        make_pipeline(ColumnTransformer([("bins", bins(), ["x", "z"])]), MLPClassifier((3,), max_iter=20)),
    ],
    ids=["beside a scaled real number", "before a network"],
)
def test_bins_that_are_not_all_of_a_linear_model_are_refused_by_name(model: Any) -> None:
    frame, labels = training(SPACE)
    with pytest.raises(UnsupportedModel, match=r"KBinsDiscretizer of 'x', which is real.*bins of every real feature"):
        read(quietly_fitted(model, frame, labels), SPACE)


def test_too_many_cells_are_refused() -> None:
    frame, labels = training(SPACE)
    before = ColumnTransformer([("bins", bins(3), ["x"]), ("scaled", StandardScaler(), ["wide"])])
    model = quietly_fitted(make_pipeline(before, LogisticRegression()), frame, labels)
    with pytest.raises(UnsupportedModel, match="KBinsDiscretizer of 'x', which is real"):
        read(model, SPACE)
