"""QuantileTransformer of real numbers before linear models and networks: read as the line that it is, with its rounding."""

from __future__ import annotations

import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
import referee
from random_problems import Case
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, QuantileTransformer, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import mace
from mace import FeatureSpace, UnsupportedModel, categorical, real
from mace.forms import Network
from mace.forms.form import box_at
from mace.models import read
from mace.testing import check_model

SPACE = FeatureSpace({"x": real(-3, 3), "z": real(0.5, 4000), "c": categorical(["u", "v"])})
GAPS = SPACE.replace(x=real(-3, 3, missing=True))


def data(space: FeatureSpace = SPACE, rows: int = 200, seed: int = 0) -> tuple[pd.DataFrame, Any, Any]:
    """Return a frame of skewed numbers, labels and a target of regression."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "x": np.clip(rng.normal(0, 0.8, rows), -2.9, 2.9),
            "z": np.clip(rng.lognormal(4, 1.5, rows), 0.6, 3999),
            "c": rng.choice(["u", "v"], rows),
        }
    )
    score = frame["x"] + np.log(frame["z"]) / 2 - 2 + (frame["c"] == "u") + rng.normal(0, 0.3, rows)
    if space["x"].missing:
        frame.loc[rng.random(rows) < 0.2, "x"] = np.nan
    return frame, np.where(score > 0, "yes", "no"), score


def quantiles(count: int = 15, **settings: Any) -> Any:
    return QuantileTransformer(n_quantiles=count, **settings)


def behind(numbers: Any, *more: Any) -> Any:
    return make_pipeline(
        ColumnTransformer([("numbers", numbers, ["x", "z"]), ("levels", OneHotEncoder(), ["c"])]), *more
    )


BEFORE: dict[str, Any] = {
    "alone": behind(quantiles()),
    "two": behind(quantiles(2)),
    "of a sample": behind(quantiles(40, subsample=100, random_state=1)),
    "scaled before": behind(make_pipeline(StandardScaler(), quantiles())),
    "scaled and clipped after": behind(make_pipeline(quantiles(), MinMaxScaler((0.1, 0.7), clip=True))),
    "twice": behind(make_pipeline(quantiles(), quantiles(5))),
    "projected": behind(quantiles(), PCA(2)),
}
IMPUTED: dict[str, Any] = {
    "filled after": behind(make_pipeline(quantiles(), SimpleImputer(add_indicator=True))),
    "filled after and scaled": behind(make_pipeline(quantiles(), SimpleImputer(strategy="median"), StandardScaler())),
    "filled outside after": behind(make_pipeline(quantiles(), SimpleImputer(strategy="constant", fill_value=3))),
    "filled outside before": behind(make_pipeline(StandardScaler(), SimpleImputer(), StandardScaler(), quantiles(2))),
}


def fitted(before: Any, model: Any, space: FeatureSpace = SPACE) -> tuple[Any, pd.DataFrame]:
    frame, labels, score = data(space)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make_pipeline(before, model).fit(frame, score if isinstance(model, Ridge) else labels), frame


def points_about(model: Any, space: FeatureSpace) -> list[Any]:
    """Return random points, many of them on or beside a quantile of the data that the model was fitted to."""
    rng = np.random.default_rng(7)
    transformers = [step for step in _steps(model) if isinstance(step, QuantileTransformer)]
    found = []
    for _ in range(150):
        point: list[Any] = []
        for j, (name, feature) in enumerate(space.items()):
            if name == "c":
                point.append(int(rng.integers(2)))
                continue
            assert isinstance(feature, mace.space.Real)
            value = float(rng.uniform(feature.low, feature.high))
            if rng.random() < 0.6:
                knots = transformers[0].quantiles_
                value = float(np.nextafter(rng.choice(knots[:, j]), rng.choice([-np.inf, 0.0, np.inf])))
            value = min(max(value, feature.low), feature.high)
            point.append(None if feature.missing and rng.random() < 0.2 else value)
        found.append(tuple(point))
    return found


def _steps(model: Any) -> list[Any]:
    if hasattr(model, "steps"):
        return [each for _, step in model.steps for each in _steps(step)]
    if hasattr(model, "transformers_"):
        return [each for _, step, _ in model.transformers_ for each in _steps(step)]
    return [model]


@pytest.mark.parametrize("name", [*BEFORE, *IMPUTED])
def test_scores_are_within_the_stated_rounding(name: str) -> None:
    space = GAPS if name in IMPUTED else SPACE
    model, _ = fitted((BEFORE | IMPUTED)[name], Ridge(), space)
    form = read(model, space).form
    assert isinstance(form, Network)
    points = points_about(model, space)
    for point, predicted in zip(points, model.predict(space.frame_of(points)), strict=True):
        assert abs(form.exact_scores(point)[0] - Fraction(float(predicted))) <= form.rounding(box_at(point)), point
    assert form.rounding(box_at(points[0])) < 1e-9


@pytest.mark.parametrize(
    ("name", "model"),
    [("alone", MLPClassifier((3,), random_state=0, max_iter=60)), ("filled after", LogisticRegression())],
)
def test_what_is_read_is_what_the_pipeline_computes(name: str, model: Any) -> None:
    space = GAPS if name in IMPUTED else SPACE
    pipeline, frame = fitted((BEFORE | IMPUTED)[name], model, space)
    found = check_model(pipeline, space, frame.head(20), count=60)
    # Rows beside a boundary are for the model itself to decide.
    assert found.decided > 60


@pytest.mark.parametrize("seed", range(6))
def test_answers_on_grids_agree_with_enumeration_and_are_proved(seed: int) -> None:
    space = GAPS if seed % 2 else SPACE
    grid = space.replace(x=real(-3, 3, step=0.5, missing=space["x"].missing), z=real(0.5, 4000.5, step=250))
    before = IMPUTED["filled after"] if seed % 2 else BEFORE["alone"]
    model, _ = fitted(
        before, LogisticRegression() if seed % 4 < 2 else MLPClassifier((3,), max_iter=80, random_state=seed), space
    )
    row = {"x": None if seed % 4 == 3 else -1.0, "z": 250.5 + 500 * (seed % 3), "c": "u"}
    question = {"distance": ["l1", "l0", "linf", "l2"][seed % 4]}
    assert referee.disagreement(Case("quantiles", model, grid, row, question), "network") is None
    explanation = mace.Explainer(model, grid).explain(row, certify=True, **question)
    certificate = explanation[0].certificate if explanation else explanation.certificate
    assert mace.verify(certificate, model).valid


def test_the_lanes_agree_where_numbers_are_real_and_the_answer_is_proved() -> None:
    model, frame = fitted(behind(quantiles(4)), LogisticRegression())
    explainer = mace.Explainer(model, SPACE)
    for position in (0, 1):
        fast, slow = (explainer.explain(frame.iloc[[position]], solver=solver) for solver in ("network", "smt"))
        assert fast.status == slow.status == "optimal"
        assert fast[0].distance == pytest.approx(slow[0].distance, abs=2e-6)
        proved = explainer.explain(frame.iloc[[position]], target=mace.between(0.3, 0.31, label="yes"), certify=True)
        assert mace.verify(proved[0].certificate, model).valid


# ---- what is refused


def refusal(before: Any, frame: pd.DataFrame, space: FeatureSpace = SPACE, model: Any = None) -> str:
    _, labels, _ = data()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pipeline = make_pipeline(before, model or LogisticRegression()).fit(frame, labels)
    with pytest.raises(UnsupportedModel) as refused:
        read(pipeline, space)
    return str(refused.value)


def test_what_jumps_bends_too_often_or_is_no_line_is_refused_by_name() -> None:
    frame, _, _ = data()
    assert "QuantileTransformer of 'x', which is real" in refusal(
        behind(quantiles(output_distribution="normal")), frame
    )
    tied = frame.assign(x=frame["x"].clip(lower=0.0))
    assert "it jumps where its quantiles repeat, as at 0.0" in refusal(behind(quantiles()), tied)
    assert "it jumps where its quantiles repeat" in refusal(behind(quantiles()), frame.assign(z=5.0))
    nearly = frame.assign(x=np.where(frame["x"] < 0, -1e-15 * np.arange(len(frame)), frame["x"]))
    assert "it jumps" in refusal(behind(quantiles()), nearly)


def test_more_bends_than_a_network_should_have_are_refused() -> None:
    frame, labels, _ = data(rows=300)
    pipeline = make_pipeline(behind(quantiles(257)), LogisticRegression()).fit(frame, labels)
    with pytest.raises(UnsupportedModel, match="it bends 257 times, above 256"):
        read(pipeline, SPACE)


def test_the_jump_of_values_filled_before_is_refused() -> None:
    frame, labels, _ = data(GAPS)
    pipeline = make_pipeline(behind(make_pipeline(SimpleImputer(), quantiles())), LogisticRegression())
    with pytest.raises(UnsupportedModel, match="it jumps where its quantiles repeat"):
        read(pipeline.fit(frame, labels), GAPS)


def test_trees_behind_quantiles_are_read_as_before() -> None:
    frame, labels, _ = data()
    tied = frame.assign(x=frame["x"].clip(lower=0.0))
    model = make_pipeline(behind(quantiles()), DecisionTreeClassifier(max_depth=4)).fit(tied, labels)
    assert check_model(model, SPACE, tied.head(20), count=60).decided > 0
