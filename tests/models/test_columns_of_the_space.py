"""A space in another order than the model's columns, and with further ones."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import catboost
import lightgbm
import numpy as np
import pandas as pd
import pytest
import skops.io
import xgboost
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

import mace
from mace.cli.main import run
from mace.models import read

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "monthly income": RNG.integers(0, 60, 300) / 2,
        "age": RNG.integers(18, 60, 300),
        "housing": pd.Categorical(RNG.choice(["rent", "own", "free"], 300)),
        "debt": RNG.integers(0, 40, 300) / 4,
    }
)
NUMBERS = FRAME.drop(columns="housing")
SCORE = FRAME["monthly income"] + FRAME["age"] / 3 - 2 * FRAME["debt"] + 6 * (FRAME["housing"] == "own")
LABELS = np.where(SCORE.median() < SCORE, 1, 0)
FURTHER = FRAME.assign(zip_code=RNG.integers(0, 99, 300), name="x")

ENCODED = ColumnTransformer([("housing", OneHotEncoder(), ["housing"])], remainder="passthrough")
BARE: dict[str, Any] = {
    "tree": DecisionTreeClassifier(max_depth=4, random_state=0),
    "forest": RandomForestClassifier(5, max_depth=4, random_state=0),
    "linear": LogisticRegression(max_iter=5000),
    "network": MLPClassifier((3,), random_state=0, max_iter=300),
}
CATEGORIES: dict[str, Any] = {
    "hist": HistGradientBoostingClassifier(max_iter=8, categorical_features="from_dtype", early_stopping=False),
    "xgboost": xgboost.XGBClassifier(n_estimators=6, max_depth=3, enable_categorical=True),
    "lightgbm": lightgbm.LGBMClassifier(n_estimators=6, max_depth=3, verbose=-1),
    "catboost": catboost.CatBoostClassifier(
        iterations=6, depth=2, cat_features=["housing"], one_hot_max_size=9, verbose=False, allow_writing_files=False
    ),
    "encoder": make_pipeline(mace.Encoder(), RandomForestClassifier(5, max_depth=4, random_state=0)),
    "steps": make_pipeline(ENCODED, DecisionTreeClassifier(max_depth=4, random_state=0)),
    "search": GridSearchCV(make_pipeline(ENCODED, LogisticRegression(max_iter=5000)), {}, cv=2),
}


def fitted(name: str) -> tuple[Any, pd.DataFrame]:
    frame = NUMBERS if name in BARE else FRAME
    return {**BARE, **CATEGORIES}[name].fit(frame, LABELS), frame


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", [*BARE, *CATEGORIES])
def test_any_order_of_the_features_gives_the_same_answers(name: str) -> None:
    model, frame = fitted(name)
    space = mace.FeatureSpace.from_frame(frame)
    turned = mace.FeatureSpace({feature: space[feature] for feature in reversed(space.names)}, round_to=space.round_to)
    own, other = mace.Explainer(model, space), mace.Explainer(model, turned)
    assert list(other.space) == list(reversed(frame.columns))
    for number in range(4):
        row = frame.iloc[[number]]
        assert other.predict(row) == own.predict(row) == model.predict(row)[0]
        found, truth = other.explain(row, time_limit=30, certify=True), own.explain(row, time_limit=30)
        assert (found.status, truth.status) == ("optimal", "optimal")
        assert abs(found[0].distance - truth[0].distance) <= 1e-6
        answer = turned.frame_of([turned.point(found[0].values)])[list(frame)]
        assert model.predict(answer)[0] == found[0].prediction != found.prediction
        assert found[0].certificate is not None
        assert mace.verify(found[0].certificate, model).outcome == "valid"


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", [*BARE, *CATEGORIES])
def test_features_that_the_model_does_not_know_are_left_out_with_a_warning(name: str) -> None:
    model, frame = fitted(name)
    further = frame.assign(zip_code=7, name=["x", "y"] * 150)
    space = mace.FeatureSpace.from_frame(further[[*reversed(further.columns)]])
    with pytest.warns(UserWarning, match="not fitted on 'name', 'zip_code': left out") as caught:
        explainer = mace.Explainer(model, space)
    assert caught[0].filename == __file__
    assert list(explainer.space) == list(reversed(frame.columns))
    truth = mace.Explainer(model, mace.FeatureSpace.from_frame(frame)).explain(frame.iloc[[0]], time_limit=30)
    again = pickle.loads(pickle.dumps(explainer))
    for row in (further.iloc[[0]], dict(further.iloc[0]), frame.iloc[[0]]):
        assert abs(explainer.explain(row, time_limit=30)[0].distance - truth[0].distance) <= 1e-6
        assert explainer.predict(row) == again.predict(row) == model.predict(frame.iloc[[0]])[0]
    batch = explainer.explain_many(further.head(2).to_dict("records"), time_limit=30)
    assert [each.status for each in batch] == ["optimal", "optimal"]
    with pytest.raises(mace.InvalidConstraint, match="no feature 'zip_code'"):
        explainer.explain(frame.iloc[[0]], constraints=[mace.fixed("zip_code")])
    with pytest.raises(mace.InvalidRow, match="'nam' is not a feature"):
        explainer.explain({**dict(frame.iloc[0]), "nam": 1})


@pytest.mark.parametrize("name", ["forest", "lightgbm", "encoder", "steps"])
def test_a_feature_that_the_space_lacks_is_named(name: str) -> None:
    model, frame = fitted(name)
    space = mace.FeatureSpace.from_frame(frame.rename(columns={"debt": "debts"}))
    with pytest.raises(mace.UnsupportedModel, match=r"fitted on 'debt' too.* Did you mean 'debts'"):
        mace.Explainer(model, space)


def test_the_refusal_of_further_features_says_what_to_write_and_survives_pickling() -> None:
    model, frame = fitted("forest")
    with pytest.raises(
        mace.UnsupportedModel, match=r"not fitted on 'zip_code'.*space\.without\('zip_code'\)"
    ) as refused:
        read(model, mace.FeatureSpace.from_frame(frame.assign(zip_code=7)))
    again = pickle.loads(pickle.dumps(refused.value))
    assert (str(again), again.names) == (str(refused.value), ("zip_code",))


def test_a_function_may_be_asked_over_more_features_than_it_takes() -> None:
    space = mace.FeatureSpace({"age": mace.integer(18, 90), "income": mace.integer(0, 9)})
    explainer = mace.Explainer(lambda age: age >= 30, space)
    assert list(explainer.space) == ["age", "income"]


def test_a_space_without_features() -> None:
    space = mace.FeatureSpace.from_frame(FURTHER).protect("age", "name")
    fewer = space.without("zip_code", "name")
    assert list(fewer) == list(FRAME)
    assert (fewer.protected, set(fewer.guesses)) == (("age",), set(FRAME))
    assert fewer == mace.FeatureSpace.from_frame(FRAME).protect("age")
    kept = fewer.replace(age=mace.integer(0, 99))
    for each in (fewer, kept, pickle.loads(pickle.dumps(fewer))):
        assert each.validate(FURTHER.iloc[0]) == each.validate(FRAME.iloc[0])
    with pytest.raises(mace.InvalidSpace, match=r"without: there is no feature 'zipcode'\. Did you mean 'zip_code'"):
        space.without("zipcode")
    with pytest.raises(mace.InvalidSpace, match="at least one feature"):
        space.without(*space)


def test_the_command_line_notes_what_is_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, _ = fitted("forest")
    skops.io.dump(model, tmp_path / "model.skops")
    further = NUMBERS.assign(zip_code=7)[["zip_code", "debt", "age", "monthly income"]]
    further.head(3).to_csv(tmp_path / "rows.csv", index=False)
    (tmp_path / "space.json").write_text(mace.FeatureSpace.from_frame(further).to_json())
    files = [f"--{name}={tmp_path / file}" for name, file in (("data", "rows.csv"), ("model", "model.skops"))]
    assert run(["explain", *files, f"--space={tmp_path / 'space.json'}"]) == 0
    shown = capsys.readouterr()
    assert shown.err.count("Note: The model was not fitted on 'zip_code'") == 1
    assert "proved nearest" in shown.out
