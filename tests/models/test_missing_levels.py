"""Missing values among levels: a level of its own, given to the model just as it was in the data."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import polars
import pytest
import xgboost
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, TargetEncoder

import mace
from mace.cli.files import read_row
from mace.testing import check_model

MARKERS = pytest.mark.parametrize("marker", [math.nan, None], ids=["NaN", "None"])


def training(marker: float | None) -> tuple[pd.DataFrame, pd.Series]:
    rng = np.random.default_rng(0)
    is_missing = rng.random(300) < 0.3
    homes = [
        marker if lost else home
        for lost, home in zip(is_missing, rng.choice(["rent", "own", "free"], 300), strict=True)
    ]
    frame = pd.DataFrame({"a": rng.integers(0, 12, 300), "home": pd.Series(homes, dtype=object)})
    labels = (frame["a"] + 4 * (frame["home"] == "own") - 4 * is_missing + rng.normal(size=300) > 6).astype(int)
    return frame, labels


def encoded(encoder: Any, model: Any) -> Any:
    return make_pipeline(make_column_transformer((encoder, ["home"]), remainder="passthrough"), model)


PIPELINES: dict[str, Callable[[float | None], Any]] = {
    "one-hot, forest": lambda _: encoded(OneHotEncoder(), RandomForestClassifier(8, random_state=0)),
    "one-hot, linear": lambda _: encoded(OneHotEncoder(), LogisticRegression()),
    "one-hot, network": lambda _: encoded(OneHotEncoder(), MLPClassifier((4,), solver="lbfgs", random_state=0)),
    "ordinal, boosting": lambda _: encoded(OrdinalEncoder(), HistGradientBoostingClassifier(max_iter=8)),
    "target, forest": lambda _: encoded(TargetEncoder(), RandomForestClassifier(8, random_state=0)),
    "imputed, linear": lambda marker: encoded(
        make_pipeline(SimpleImputer(strategy="most_frequent", missing_values=marker), OneHotEncoder()),
        LogisticRegression(),
    ),
    "marked, forest": lambda marker: encoded(
        make_pipeline(SimpleImputer(strategy="constant", fill_value="?", missing_values=marker), OneHotEncoder()),
        RandomForestClassifier(8, random_state=0),
    ),
}


@MARKERS
@pytest.mark.parametrize("name", PIPELINES)
def test_a_pipeline_is_asked_with_the_missing_value_of_its_data(name: str, marker: float | None) -> None:
    frame, labels = training(marker)
    space = mace.FeatureSpace.from_frame(frame)
    model = PIPELINES[name](marker).fit(frame, labels)
    check_model(model, space, frame.head(40))
    explainer = mace.Explainer(model, space)
    for row in (
        frame[frame["home"].isna()].iloc[0],
        frame[frame["home"] == "own"].iloc[0],
        frame[frame["home"] == "free"].iloc[1],
    ):
        for constraints in ([], ["home is missing"], ["home is not missing"], ["home stays"]):
            answer = explainer.explain(row, constraints=constraints, certify=True)
            truth = explainer.explain(row, constraints=constraints, solver="enumerate")
            assert answer.status == truth.status
            if not len(truth):
                continue
            assert answer[0].distance == pytest.approx(truth[0].distance, abs=1e-9)
            proof = mace.Certificate.from_json(answer[0].certificate.to_json())  # type: ignore[union-attr]
            assert mace.verify(proof, model).valid
            given = {key: marker if value != value else value for key, value in answer[0].values.items()}
            assert (
                model.predict(
                    pd.DataFrame({key: pd.Series([value], dtype=frame[key].dtype) for key, value in given.items()})
                )[0]
                == answer[0].prediction
            )
            if "home is missing" in constraints:
                assert math.isnan(answer[0].values["home"])  # type: ignore[arg-type]


NATIVE: dict[str, Callable[[], Any]] = {
    "xgboost": lambda: xgboost.XGBClassifier(n_estimators=6, max_depth=3, enable_categorical=True, n_jobs=1),
    "lightgbm": lambda: lightgbm.LGBMClassifier(n_estimators=6, min_child_samples=5, verbose=-1, n_jobs=1),
    "histogram": lambda: HistGradientBoostingClassifier(max_iter=6, categorical_features="from_dtype"),
}


@pytest.mark.parametrize("name", NATIVE)
def test_boosters_take_a_category_that_is_missing(name: str) -> None:
    frame, labels = training(math.nan)
    frame["home"] = frame["home"].astype("category")
    model = NATIVE[name]().fit(frame, labels)
    space = mace.FeatureSpace.from_frame(frame)
    assert space["home"].levels[:3] == ("free", "own", "rent")
    assert space["home"].missing_level == 3
    check_model(model, space, frame.head(40))
    explainer = mace.Explainer(model, space)
    for row in (frame[frame["home"].isna()].iloc[0], frame[frame["home"] == "own"].iloc[0]):
        for constraints in ([], ["home is missing"], ["a stays"]):
            answer = explainer.explain(row, constraints=constraints)
            truth = explainer.explain(row, constraints=constraints, solver="enumerate")
            assert answer.status == truth.status
            if len(truth):
                assert answer[0].distance == pytest.approx(truth[0].distance, abs=1e-9)


@MARKERS
def test_a_space_with_a_missing_level_survives_json_and_pickle(marker: float | None) -> None:
    space = mace.FeatureSpace({"home": mace.categorical([marker, "rent", "own"]), "a": mace.integer(0, 3)})
    assert mace.FeatureSpace.from_json(space.to_json()) == space
    assert pickle.loads(pickle.dumps(space)) == space
    assert space["home"].missing_level == 2  # type: ignore[union-attr]
    assert space.point({"home": pd.NA, "a": 1}) == space.point({"home": math.nan, "a": 1}) == (2, 1)
    assert math.isnan(space.values_of((2, 1))["home"])  # type: ignore[arg-type]


def test_what_is_said_of_it() -> None:
    frame, _ = training(math.nan)
    assert "and missing as a level, since" in str(mace.FeatureSpace.from_frame(frame).report())
    plain = mace.FeatureSpace({"home": mace.categorical(["rent", "own"]), "grade": mace.ordinal(["low", "high"])})
    with pytest.raises(mace.InvalidRow, match=r"categorical\(\['rent', 'own'\], missing=True\)"):
        plain.point({"home": None, "grade": "low"})
    with pytest.raises(mace.InvalidRow, match="add a level for it"):
        plain.point({"home": "rent", "grade": None})
    with pytest.raises(mace.InvalidSpace, match="no place in an order"):
        mace.ordinal(["low", None])  # type: ignore[list-item]
    with pytest.raises(mace.InvalidSpace, match="not several"):
        mace.categorical(["a", None, math.nan])
    numbers = mace.FeatureSpace({"k": mace.categorical([1, 2], missing=True)})
    model = RandomForestClassifier(2).fit(np.array([[1.0], [2.0]]), [0, 1])
    with pytest.raises(mace.UnsupportedModel, match="missing level among numbers"):
        mace.Explainer(model, numbers)


def test_an_ordered_category_with_missing_values_is_refused_with_the_ways_out() -> None:
    column = pd.Series(pd.Categorical(["low", None, "high"], categories=["low", "high"], ordered=True))
    with pytest.raises(mace.InvalidSpace, match="Make it unordered, or name a level"):
        mace.FeatureSpace.from_frame(pd.DataFrame({"grade": column}))


def test_frames_of_polars_and_files_of_text(tmp_path: Path) -> None:
    frame = polars.DataFrame({"home": ["rent", None, "own"], "a": [1, 2, 3]})
    space = mace.FeatureSpace.from_frame(frame)
    assert space["home"].missing_level == 2  # type: ignore[union-attr]
    assert space.point(frame[1]) == (2, 2)
    path = tmp_path / "rows.csv"
    path.write_text("home,a\nrent,1\n,2\n")
    assert space.point(read_row(path, 1, space)) == (2, 2)
    with pytest.raises(mace.InvalidRow, match="not one of its levels"):
        space.point({"home": "palace", "a": 1})
