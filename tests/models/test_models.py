"""Readers: what MACE read is what the model computes, and what it cannot read it refuses."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from mixed_space import RNG, SPACE, random_points, training
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import Normalizer
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import mace
from mace import Encoder, Explainer, FeatureSpace, UnsupportedModel, categorical, integer, real
from mace.forms import winner
from mace.models import read
from mace.space import Point


def test_a_bare_estimator_on_numeric_columns_is_read_by_position_or_by_name() -> None:
    space = FeatureSpace({"a": real(0, 1), "b": integer(0, 9), "sex": categorical([0, 1])})
    frame = pd.DataFrame({"a": RNG.random(80), "b": RNG.integers(0, 10, 80), "sex": RNG.integers(0, 2, 80)})
    labels = (frame["a"] * 9 + frame["b"] + frame["sex"] > 9).astype(int)
    row = {"a": 0.1, "b": 1, "sex": 0}
    answers = [
        Explainer(DecisionTreeClassifier(max_depth=4, random_state=0).fit(X, labels), space).explain(row)
        for X in (frame, frame.to_numpy())
    ]
    assert answers[0][0].values == answers[1][0].values
    assert answers[0].status == "optimal"


def test_a_tree_with_missing_values_is_read_with_its_directions() -> None:
    space = FeatureSpace({"a": real(0, 1, missing=True), "b": integer(0, 9)})
    a = np.where(RNG.random(300) < 0.3, np.nan, RNG.random(300))
    b = RNG.integers(0, 10, 300)
    labels = (np.where(np.isnan(a), 0.9, a) * 10 + b > 9).astype(int)
    model = RandomForestClassifier(5, max_depth=4, random_state=0).fit(np.column_stack([a, b]), labels)
    reading = read(model, space)
    points: list[Point] = [(None if np.isnan(x) else float(x), int(y)) for x, y in zip(a, b, strict=True)]
    codes = [winner(reading.form.exact_scores(point)) for point in points]  # type: ignore[attr-defined]
    assert codes == reading.ask(points)
    refused = next(point for point, code in zip(points, codes, strict=True) if point[0] is None and code == 0)
    explanation = Explainer(model, space).explain(space.values_of(refused))
    assert explanation.status == "optimal"


# ---- refusals


class Harsh(LogisticRegression):
    def predict(self, X: Any) -> Any:
        return np.zeros(len(X), dtype=int)


class Renamed(LogisticRegression):
    """Overrides nothing."""


X = RNG.random((60, 2))
Y = (X.sum(axis=1) > 1).astype(int)
SMALL = FeatureSpace({"a": real(0, 1), "b": real(0, 1)})


def patched() -> Any:
    model = LogisticRegression().fit(X, Y)
    model.predict = lambda X: np.zeros(len(X), dtype=int)
    return model


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Harsh().fit(X, Y), "Harsh: it overrides LogisticRegression.predict"),
        (patched(), "overrides LogisticRegression.predict"),
        (SVC().fit(X, Y), "sklearn.SVC: a kernel is not piecewise linear.*LinearSVC"),
        (GaussianNB().fit(X, Y), "sklearn.GaussianNB: there is no exact reader.*Supported: DecisionTreeClassifier"),
        (LogisticRegression(), "not fitted"),
        (LogisticRegression, "is a class"),
        (
            make_pipeline(Normalizer(), LogisticRegression()).fit(X, Y),
            "step 'normalizer', Normalizer: it divides each row by its norm",
        ),
        (Pipeline([("none", "passthrough")]), "no model"),
        (
            MLPClassifier((3,), activation="tanh", max_iter=30).fit(X, Y),
            "tanh is not piecewise linear.*activation='relu'",
        ),
        (DecisionTreeClassifier().fit(X, np.column_stack([Y, Y])), "several outputs"),
        (DecisionTreeClassifier().fit(X[:, :1], Y), "fitted on 1 columns; the space gives 2"),
        (LogisticRegression().fit(pd.DataFrame(X, columns=["b", "c"]), Y), "fitted on 'c' too"),
        (3, "cannot read 3"),
        (len, "cannot read"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_what_cannot_be_read_is_refused_with_the_reason(model: Any, message: str) -> None:
    with pytest.raises(UnsupportedModel, match=message):
        Explainer(model, SMALL)


def test_a_subclass_that_overrides_nothing_is_read_as_its_base() -> None:
    assert Explainer(Renamed().fit(X, Y), SMALL).explain({"a": 0.1, "b": 0.1}).status == "optimal"


def test_text_levels_need_an_encoder() -> None:
    space = FeatureSpace({"a": real(0, 1), "b": categorical(["x", "y"])})
    with pytest.raises(UnsupportedModel, match=r"make_pipeline\(mace.Encoder\(space\), model\)"):
        Explainer(LogisticRegression().fit(X, Y), space)


def test_a_model_that_takes_no_nan_is_refused_for_a_space_with_missing_values() -> None:
    with pytest.raises(UnsupportedModel, match="'a' may be missing"):
        Explainer(LogisticRegression().fit(X, Y), SMALL.replace(a=real(0, 1, missing=True)))


def test_a_range_beyond_float32_is_refused_for_trees() -> None:
    with pytest.raises(UnsupportedModel, match="beyond float32"):
        Explainer(DecisionTreeClassifier().fit(X, Y), SMALL.replace(a=real(0, 1e39)))


def test_the_spaces_levels_may_be_fewer_and_reordered_but_not_unknown() -> None:
    frame, labels = training(2)
    model = make_pipeline(Encoder(SPACE), DecisionTreeClassifier(max_depth=4, random_state=0)).fit(frame, labels)
    fewer = FeatureSpace({name: SPACE[name] for name in reversed(list(SPACE))}).replace(cat=categorical(["c", "a"]))
    points = [(p[4], int(RNG.integers(2)), p[2], p[1], p[0]) for p in random_points(100)]
    reading = read(model, fewer)
    assert [winner(reading.form.exact_scores(p)) for p in points] == reading.ask(points)  # type: ignore[attr-defined]
    with pytest.raises(UnsupportedModel, match="level 'z' of the space is unknown"):
        read(model, SPACE.replace(cat=categorical(["a", "z"])))
    with pytest.raises(UnsupportedModel, match=r"encoder was fitted on .* which the space does not have"):
        read(model, FeatureSpace({"x": real(0, 1)}))


# ---- functions


def paper_tree(x1: int, x2: int, x3: float) -> int:
    if x1 == 1:  # noqa: SIM108 - the paper's own program
        y = 0 if x3 > 0 else 1
    else:
        y = 0 if x2 == 1 else 1
    return y


def test_a_python_function_is_a_model() -> None:
    space = FeatureSpace({"x1": categorical([0, 1]), "x2": categorical([0, 1]), "x3": real(-1, 1)})
    explanation = Explainer(paper_tree, space).explain({"x1": 1, "x2": 1, "x3": 0.5}, accuracy=1e-9)
    assert explanation.status == "optimal"
    assert explanation[0].values == {"x1": 1, "x2": 1, "x3": 0.0}
    assert explanation[0].distance == pytest.approx(0.25 / 3)


def decide(row: Any) -> str:
    if row.housing in ("own", "free") and row["credit amount"] < 3000:
        return "grant"
    return "refuse"


def test_a_function_of_a_record_with_text_labels_is_a_model() -> None:
    space = FeatureSpace({"housing": categorical(["rent", "own", "free"]), "credit amount": integer(0, 10_000)})
    explainer = Explainer(decide, space)
    explanation = explainer.explain({"housing": "rent", "credit amount": 3500}, target="grant")
    assert explainer.predict(explanation[0].values) == explanation[0].prediction == "grant"
    assert explanation[0].values["credit amount"] == 2999
    assert explanation.status == "optimal"


def test_a_function_outside_the_language_is_refused_with_its_line() -> None:
    def loops(a: float, b: float) -> int:
        while a < b:
            a = a + 1
        return 1

    with pytest.raises(UnsupportedModel, match="line"):
        Explainer(loops, SMALL)
    with pytest.raises(UnsupportedModel, match="takes 'c', which is not a feature"):
        Explainer(lambda a, c: 1 if a > 0 else 0, SMALL)


def test_a_function_with_rounded_arithmetic_answers_for_floats() -> None:
    """0.1 + 0.2 <= 0.3 is false in floats and true in fractions of decimals; the answer holds for the floats."""
    space = FeatureSpace({"a": real(0, 1), "b": real(0, 1)})
    explainer = Explainer(lambda a, b: 1 if 0.1 * a + 0.7 * b >= 0.3 else 0, space)
    explanation = explainer.explain({"a": 0.5, "b": 0.1}, accuracy=1e-9)
    assert explanation.status == "optimal"
    assert explainer.predict(explanation[0].values) == 1
    assert explanation[0].distance == pytest.approx((0.25 / 0.7 - 0.1) / 2, abs=1e-8)


# ---- files


def test_skops_is_loaded_and_a_pickle_only_when_trusted(tmp_path: Any) -> None:
    import joblib
    import skops.io

    frame, labels = training(2)
    model = make_pipeline(Encoder(SPACE), LogisticRegression()).fit(frame, labels)
    skops.io.dump(model, tmp_path / "m.skops")
    joblib.dump(model, tmp_path / "m.joblib")
    assert (mace.load_model(tmp_path / "m.skops").predict(frame) == model.predict(frame)).all()
    with pytest.raises(UnsupportedModel, match=r"is a pickle.*--trust"):
        mace.load_model(tmp_path / "m.joblib")
    assert (mace.load_model(tmp_path / "m.joblib", trust=True).predict(frame) == model.predict(frame)).all()


@pytest.mark.parametrize(
    ("name", "message"), [("m.skops", "cannot be read"), ("m.txt", "unknown kind"), ("m.pkl", "pickle")]
)
def test_a_damaged_or_unknown_file_is_refused(tmp_path: Any, name: str, message: str) -> None:
    (tmp_path / name).write_bytes(b"not a model")
    with pytest.raises(UnsupportedModel, match=message):
        mace.load_model(tmp_path / name)
    with pytest.raises(UnsupportedModel):
        mace.load_model(tmp_path / name, trust=True)


def test_a_missing_file_is_refused(tmp_path: Any) -> None:
    with pytest.raises(UnsupportedModel, match="there is no model file"):
        mace.load_model(tmp_path / "none.skops")


def test_a_split_that_only_separates_missing_values_is_read() -> None:
    space = FeatureSpace({"a": real(0, 1, missing=True), "b": integer(0, 9)})
    a = np.where(np.arange(40) % 2 == 0, np.nan, 0.5)
    b = np.arange(40) % 10
    model = DecisionTreeClassifier(random_state=0).fit(np.column_stack([a, b]), np.isnan(a).astype(int))
    assert np.isinf(model.tree_.threshold).any()
    explanation = Explainer(model, space).explain({"a": math.nan, "b": 3})
    assert explanation.status == "optimal"
    assert explanation[0].distance == 0.5
