"""Asking the model about many people at once: the same answers, in few calls, and alone where it could make a difference."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from batches import all_of, timeless
from catboost import CatBoostClassifier
from lightgbm import LGBMClassifier, LGBMRegressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
    VotingClassifier,
)
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from xgboost import XGBClassifier

import mace
from mace.batch import worker
from mace.batch.workers import Workers
from mace.models.foresight import foreseen, is_row_by_row

RNG = np.random.default_rng(3)
ROWS = 400
PEOPLE = pd.DataFrame(
    {
        "age": RNG.integers(18, 80, ROWS),
        "income": RNG.normal(3000, 900, ROWS).clip(500, 8000).round(2).astype(np.float32),
        "debt": RNG.uniform(0, 1, ROWS),
        "housing": pd.Categorical(RNG.choice(["own", "rent", "free"], ROWS)),
    }
)
SCORE = PEOPLE.income / 3000 - PEOPLE.debt + (PEOPLE.housing == "own") / 2 + PEOPLE.age / 200
LABELS = np.where(SCORE.median() < SCORE, "yes", "no")
THREE = np.array(["low", "middle", "high"])[np.digitize(SCORE, np.quantile(SCORE, [0.3, 0.7]))]
HOLES = PEOPLE.assign(
    debt=PEOPLE.debt.where(RNG.random(ROWS) > 0.15), income=PEOPLE.income.where(RNG.random(ROWS) > 0.1)
)
NUMBERS = PEOPLE.drop(columns="housing")
SPACE, OF_HOLES, OF_NUMBERS = (mace.FeatureSpace.from_frame(each) for each in (PEOPLE, HOLES, NUMBERS))


def decide(age, income, debt, housing):  # type: ignore[no-untyped-def]
    points = income / 100 - 30 * debt + (10 if housing == "own" else 0)
    return "yes" if points > 20 and age >= 21 else "no"


def columns() -> Any:
    levels = (OneHotEncoder(), make_column_selector(dtype_include="category"))
    return make_column_transformer(levels, (StandardScaler(), make_column_selector(dtype_include="number")))


def encoded(model: Any, frame: pd.DataFrame = PEOPLE, labels: Any = LABELS, **kinds: str) -> mace.Explainer:
    space = mace.FeatureSpace.from_frame(frame)
    return mace.Explainer(make_pipeline(mace.Encoder(space, **kinds), model).fit(frame, labels), space)


def fitted(model: Any, frame: pd.DataFrame, labels: Any = LABELS) -> mace.Explainer:
    return mace.Explainer(model.fit(frame, labels), mace.FeatureSpace.from_frame(frame))


CASES: dict[str, tuple[Callable[[], mace.Explainer], pd.DataFrame, dict[str, Any]]] = {
    "logistic regression": (lambda: fitted(make_pipeline(columns(), LogisticRegression()), PEOPLE), PEOPLE, {}),
    "network": (
        lambda: fitted(
            make_pipeline(columns(), MLPClassifier((6, 5), max_iter=200, learning_rate_init=0.02, random_state=0)),
            PEOPLE,
        ),
        PEOPLE,
        {},
    ),
    "forest": (lambda: encoded(RandomForestClassifier(12, random_state=0), ordinal="codes"), PEOPLE, {}),
    "forest, three classes, two answers": (
        lambda: encoded(RandomForestClassifier(6, max_depth=5, random_state=0), labels=THREE),
        PEOPLE,
        {"count": 2},
    ),
    "forest in threads": (lambda: encoded(RandomForestClassifier(7, n_jobs=2, random_state=0)), PEOPLE, {}),
    "tree, a probability": (
        lambda: encoded(DecisionTreeClassifier(max_depth=5, random_state=0)),
        PEOPLE,
        {"target": mace.at_least(0.8, "yes")},
    ),
    "logistic regression, a probability": (
        lambda: encoded(LogisticRegression(max_iter=500)),
        PEOPLE,
        {"target": mace.at_least(0.7, "yes")},
    ),
    "boosting, a label and constraints": (
        lambda: encoded(GradientBoostingClassifier(n_estimators=15, random_state=0)),
        PEOPLE,
        {"target": "yes", "constraints": ["age stays", "income >= old.income"]},
    ),
    "histogram boosting, missing values": (
        lambda: encoded(HistGradientBoostingClassifier(max_iter=12, random_state=0), HOLES, categorical="codes"),
        HOLES,
        {},
    ),
    "lightgbm on categories and holes": (
        lambda: fitted(LGBMClassifier(n_estimators=12, verbose=-1, n_jobs=1), HOLES),
        HOLES,
        {},
    ),
    "xgboost": (lambda: fitted(XGBClassifier(n_estimators=12, n_jobs=1), NUMBERS, LABELS == "yes"), NUMBERS, {}),
    "catboost": (
        lambda: fitted(
            CatBoostClassifier(iterations=12, verbose=0, allow_writing_files=False, thread_count=1), NUMBERS
        ),
        NUMBERS,
        {},
    ),
    "calibrated": (
        lambda: fitted(CalibratedClassifierCV(make_pipeline(StandardScaler(), LogisticRegression()), cv=2), NUMBERS),
        NUMBERS.head(8),
        {},
    ),
    "vote": (
        lambda: fitted(
            VotingClassifier([("a", LogisticRegression(max_iter=900)), ("b", DecisionTreeClassifier(max_depth=3))]),
            NUMBERS,
        ),
        NUMBERS.head(8),
        {},
    ),
    "trees behind a projection": (
        lambda: fitted(make_pipeline(StandardScaler(), PCA(2), DecisionTreeClassifier(max_depth=3)), NUMBERS),
        NUMBERS.head(8),
        {},
    ),
    "function": (lambda: mace.Explainer(decide, SPACE), PEOPLE.head(8), {}),
    "forest that predicts numbers": (
        lambda: fitted(RandomForestRegressor(6, max_depth=5, random_state=0), NUMBERS, SCORE),
        NUMBERS,
        {"target": mace.at_least(1.2)},
    ),
    "lightgbm that predicts numbers": (
        lambda: fitted(LGBMRegressor(n_estimators=9, verbose=-1, n_jobs=1), NUMBERS, SCORE),
        NUMBERS,
        {"target": mace.at_most(0.8)},
    ),
    "linear regression": (
        lambda: fitted(LinearRegression(), NUMBERS, SCORE),
        NUMBERS,
        {"target": mace.between(0.9, 1.1)},
    ),
    "an actionable network": (
        lambda: encoded(MLPClassifier((5,), max_iter=200, learning_rate_init=0.02, random_state=0)),
        PEOPLE,
        {"distance": "linf", "constraints": [mace.changes_at_most(2)]},
    ),
    "a model that is only asked": (
        lambda: mace.Explainer(
            make_pipeline(StandardScaler(), SVC()).fit(NUMBERS, LABELS), OF_NUMBERS, unread="search"
        ),
        NUMBERS,
        {},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_batch_gives_what_each_row_gives_alone(name: str) -> None:
    make, frame, options = CASES[name]
    explainer, frame = make(), frame.head(20)
    alone = [timeless(explainer.explain(row, time_limit=20, **options)) for row in frame.to_dict("records")]
    assert all_of(explainer.explain_many(frame, time_limit=20, **options)) == alone


@contextmanager
def counted(explainer: mace.Explainer) -> Iterator[list[list[Any]]]:
    """Note the points of every call of the model's ``predict``."""
    asked: list[list[Any]] = []
    live = explainer._live
    before = live._asked

    def ask(points: Any) -> Any:
        asked.append(list(points))
        return before.ask(points)

    def ask_rated(points: Any) -> Any:
        asked.append(list(points))
        return before.ask_rated(points)

    live._asked = replace(before, ask=ask, ask_rated=before.ask_rated and ask_rated)
    yield asked
    live._asked = before


@pytest.mark.parametrize("name", ["logistic regression", "network", "forest", "xgboost"])
def test_one_question_asks_the_model_about_the_row_and_the_answer(name: str) -> None:
    make, frame, options = CASES[name]
    explainer = make()
    for row in frame.head(3).to_dict("records"):
        with counted(explainer) as asked:
            answer = explainer.explain(row, round_to=None, **options)
        assert [len(points) for points in asked] == [1, 1]
        assert asked[0] == [explainer.space.point(row)]
        assert asked[1] == [explainer.space.point(answer[0].values)]


@pytest.mark.parametrize(
    "name", ["logistic regression", "network", "forest", "xgboost", "lightgbm on categories and holes"]
)
def test_a_batch_asks_in_blocks_and_about_no_row_twice(name: str) -> None:
    make, frame, options = CASES[name]
    explainer = make()
    with counted(explainer) as asked:
        batch = explainer.explain_many(frame, round_to=None, **options)
    assert batch.counts == {"optimal": ROWS}
    points = [point for block in asked[1:] for point in block]  # the first call checks the question
    shared = ROWS - len({tuple(each[0].values.values()) for each in batch})  # several people may have one answer
    assert len(set(points)) >= len(points) - shared
    alone = sum(len(block) == 1 for block in asked)
    assert len(asked) - alone <= 2 * 4 + batch.seconds / worker.SECONDS_A_BLOCK + 1
    assert alone <= 12, "few points lie in the rounding band"


def test_a_row_in_the_rounding_band_is_asked_about_alone() -> None:
    frame = pd.DataFrame({"a": np.linspace(0, 1, 50), "b": np.linspace(1, 0, 50)})
    model = LogisticRegression().fit(frame, frame.a > frame.b)
    model.coef_, model.intercept_ = np.array([[1.0, -1.0]]), np.zeros(1)
    explainer = mace.Explainer(model, mace.FeatureSpace({"a": mace.real(0, 1), "b": mace.real(0, 1)}))
    rows = pd.DataFrame({"a": [0.1, 0.5, 0.3], "b": [0.9, 0.5, 0.3]})
    points = [explainer.space.point(row) for row in rows.to_dict("records")]
    assert [code is None for code in foreseen(explainer._reading.form, points)] == [False, True, True]
    with counted(explainer) as asked:
        explainer.explain_many(rows)
    assert [points[1]] in asked
    assert [points[2]] in asked
    assert [points[0]] not in asked[1:]


def test_trees_are_foreseen_in_the_rounding_band_too() -> None:
    """A forest adds the votes of its trees in one order, row by row: where they come out even, a block says what a single row does."""
    rng = np.random.default_rng(0)
    seen = pd.DataFrame(rng.integers(0, 40, (150, 2)), columns=["a", "b"]).drop_duplicates()
    frame = pd.concat([seen, seen.head(60), seen.head(60)])  # these with both labels: leaves of a third
    labels = [*rng.integers(0, 2, len(seen)), *[0] * 60, *[1] * 60]
    model = RandomForestClassifier(10, random_state=0).fit(frame, labels)
    explainer = mace.Explainer(model, mace.FeatureSpace.from_frame(seen))
    form = explainer._reading.form
    assert is_row_by_row(form)
    assert form.rounding > 0
    with counted(explainer) as asked:
        batch = explainer.explain_many(seen)
    assert batch.counts == {"optimal": len(seen)}
    assert sum(len(block) == 1 for block in asked) <= 1, "the first call checks the question"


@pytest.mark.parametrize("name", ["logistic regression", "forest"])
def test_what_a_model_says_instead_of_what_was_foreseen_is_found_out_row_by_row(name: str) -> None:
    """The model changes its mind between the factuals and the answers: every row is asked about anew, and none is answered wrongly."""
    make, frame, _ = CASES[name]
    explainer = make()
    live, calls = explainer._live, 0
    before = live._asked

    def has_changed() -> bool:
        nonlocal calls
        calls += 1
        return calls > 2

    def ask(points: Any) -> Any:
        found = before.ask(points)
        return [1 - code for code in found] if has_changed() else found

    def ask_rated(points: Any) -> Any:
        found = before.ask_rated(points)
        return [(1 - code, rates[::-1]) for code, rates in found] if has_changed() else found

    live._asked = replace(before, ask=ask, ask_rated=before.ask_rated and ask_rated)
    batch = explainer.explain_many(frame.head(10), round_to=None)
    live._asked = before
    assert calls > 10, "in the end each row is asked about alone"
    for each in batch:
        assert each.status != "optimal" or explainer.predict(each[0].values) != each[0].prediction


def test_a_model_that_is_fitted_again_in_the_middle_of_a_batch_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "MOST_PEOPLE", 16)
    model = make_pipeline(mace.Encoder(SPACE), LogisticRegression(max_iter=300)).fit(PEOPLE, LABELS)
    explainer = mace.Explainer(model, SPACE)

    def refit(progress: mace.batch.Progress) -> None:
        if progress.done == 16:
            model.fit(PEOPLE, LABELS[::-1])

    batch = explainer.explain_many(PEOPLE.head(40), on_progress=refit)
    assert [str(each.status) for each in batch] == ["optimal"] * 16 + ["error"] * 24
    assert "ModelChanged" in batch[20].error


def test_a_model_that_fails_on_a_block_is_asked_row_by_row() -> None:
    explainer = CASES["logistic regression"][0]()
    live = explainer._live
    before = live._asked

    def ask(points: Any) -> Any:
        if len(points) > 1:
            raise mace.UnsupportedModel("one row at a time")
        return before.ask(points)

    alone = [timeless(explainer.explain(row)) for row in PEOPLE.head(5).to_dict("records")]
    live._asked = replace(before, ask=ask)
    assert all_of(explainer.explain_many(PEOPLE.head(5))) == alone


def test_slow_rows_are_given_as_they_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "SECONDS_A_BLOCK", 0.0)
    monkeypatch.setattr(worker, "TIMES_AS_LONG", 0)
    explainer = CASES["forest"][0]()
    seen: list[int] = []
    with counted(explainer) as asked:
        explainer.explain_many(PEOPLE.head(6), round_to=None, on_progress=lambda _: seen.append(len(asked)))
    assert seen == sorted(set(seen)), "the model confirms each answer before the next row is answered"


def test_a_slow_model_is_asked_about_more_people_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "SECONDS_A_BLOCK", 0.0)
    explainer = CASES["forest"][0]()
    live = explainer._live
    before, calls = live._asked, []

    def ask(points: Any) -> Any:
        calls.append(len(points))
        time.sleep(0.1)
        return before.ask(points)

    live._asked = replace(before, ask=ask)
    explainer.explain_many(PEOPLE.head(16), round_to=None)
    assert max(calls[2:]) > 1, "the second block waits for as long as twenty calls of the model, not for each row"


def test_nothing_is_foreseen_where_a_number_is_predicted_or_nothing_is_known() -> None:
    for name in ("forest that predicts numbers", "function"):
        explainer = CASES[name][0]()
        points = [explainer.space.point(row) for row in CASES[name][1].head(3).to_dict("records")]
        assert foreseen(explainer._reading.form, points) == [None] * 3


@pytest.mark.parametrize("name", CASES)
def test_what_is_foreseen_is_what_the_model_says(name: str) -> None:
    make, frame, _ = CASES[name]
    explainer = make()
    points = [explainer.space.point(row) for row in frame.to_dict("records")]
    found = foreseen(explainer._reading.form, points)
    sure = [(point, code) for point, code in zip(points, found, strict=True) if code is not None]
    assert [explainer._reading.ask([point])[0] for point, _ in sure[:40]] == [code for _, code in sure[:40]]
    if explainer.classes is not None and name not in ("function", "a model that is only asked"):
        assert len(sure) > 0.9 * len(points)


def test_parts_for_workers_stay_large_where_the_model_takes_long_for_any_number_of_rows() -> None:
    """Half a second of the model a call: parts of few rows, as many as answer themselves in that time, would be asked for ever longer."""
    from mace.answer.question import Question

    explainer = fitted(DecisionTreeClassifier(max_depth=3), NUMBERS)
    workers = Workers(explainer, Question(explainer.space), 2)
    quick = replace(explainer.explain(NUMBERS.iloc[0]), seconds=0.01)
    for _ in range(6):
        made = [worker.Answered(number, quick, is_final=True) for number in range(workers._part)]
        workers._adapt(made, 0.5 + 0.01 * len(made))
    assert workers._part == 500
    workers._adapt([worker.Answered(0, replace(quick, seconds=1.0), is_final=True)], 1.0)
    assert workers._part == 1
