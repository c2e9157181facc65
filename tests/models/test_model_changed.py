"""A model that changes after it was read: noticed, never answered about as if it were the old one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost
from catboost import CatBoostClassifier
from lightgbm import LGBMClassifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from xgboost import XGBClassifier

import mace
from mace.models.contents import contents
from mace.models.watch import Watch

RNG = np.random.default_rng(5)
X = pd.DataFrame(RNG.normal(size=(300, 4)).round(2), columns=list("abcd"))
Y = (X.a + X.b * X.c > 0).to_numpy().astype(int)
OTHER = (X.b - X.d > 0).to_numpy().astype(int)
SPACE = mace.FeatureSpace.from_frame(X)

FAMILIES: dict[str, Callable[[], Any]] = {
    "tree": lambda: DecisionTreeClassifier(max_depth=5, random_state=0),
    "forest": lambda: RandomForestClassifier(12, random_state=0),
    "boosting": lambda: GradientBoostingClassifier(n_estimators=12, random_state=0),
    "histogram": lambda: HistGradientBoostingClassifier(max_iter=12, random_state=0),
    "xgboost": lambda: XGBClassifier(n_estimators=12, n_jobs=1),
    "lightgbm": lambda: LGBMClassifier(n_estimators=12, verbose=-1, n_jobs=1),
    "catboost": lambda: CatBoostClassifier(iterations=12, verbose=0, allow_writing_files=False, thread_count=1),
    "linear": lambda: LogisticRegression(),
    "network": lambda: MLPClassifier((6,), max_iter=60, random_state=0),
    "pipeline": lambda: make_pipeline(StandardScaler(), LogisticRegression()),
    "encoder": lambda: make_pipeline(mace.Encoder(SPACE), DecisionTreeClassifier(max_depth=4, random_state=0)),
    "vote": lambda: VotingClassifier([("a", LogisticRegression()), ("b", DecisionTreeClassifier(max_depth=3))]),
    "calibrated": lambda: CalibratedClassifierCV(LogisticRegression(), cv=2),
}


def read(name: str) -> tuple[Any, mace.Explainer]:
    model = FAMILIES[name]().fit(X, Y)
    return model, mace.Explainer(model, SPACE)


@pytest.mark.parametrize("name", FAMILIES)
def test_a_model_that_was_fitted_again_is_noticed_by_the_next_question(name: str) -> None:
    model, explainer = read(name)
    answer = explainer.explain(X.iloc[0])
    model.fit(X, OTHER)
    questions: list[Callable[[], object]] = [
        lambda: explainer.explain(X.iloc[0]),
        lambda: explainer.explain(X.iloc[1], target=mace.at_least(0.5, 1)),
        lambda: explainer.levers(X.iloc[0]),
        lambda: explainer.predict(X.iloc[0]),
        lambda: explainer.predict_many([X.iloc[0]]),
        lambda: explainer.reaches(X.iloc[0], 1),
        lambda: explainer.explain_many(X.iloc[:3]),
        lambda: answer[0].region(),
    ]
    for question in questions:
        with pytest.raises(mace.ModelChanged, match=r"Read it as it is now: mace\.Explainer\(model, space\)"):
            question()


@pytest.mark.parametrize("name", FAMILIES)
def test_a_model_that_was_fitted_again_on_the_same_data_is_the_same_model(name: str) -> None:
    model, explainer = read(name)
    before = explainer.explain(X.iloc[0])
    model.fit(X, Y)
    assert explainer.explain(X.iloc[0])[0].values == before[0].values


def _replace_coefficients(model: Any) -> None:
    model.coef_ = -model.coef_


def _replace_tree(model: Any) -> None:
    model.estimators_[0] = DecisionTreeClassifier(random_state=1).fit(X.to_numpy(), OTHER)


def _replace_inner_tree(model: Any) -> None:
    for each in model.estimators_:
        each.tree_ = DecisionTreeClassifier(random_state=1).fit(X.to_numpy(), OTHER).tree_


def _replace_stage(model: Any) -> None:
    model.estimators_[3, 0] = model.estimators_[0, 0]


def _replace_layer(model: Any) -> None:
    model.coefs_[0] = -model.coefs_[0]


def _replace_step(model: Any) -> None:
    model.steps[0] = ("standardscaler", StandardScaler().fit(10 * X))


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("linear", _replace_coefficients),
        ("forest", _replace_tree),
        ("forest", _replace_inner_tree),
        ("boosting", _replace_stage),
        ("network", _replace_layer),
        ("pipeline", _replace_step),
    ],
    ids=lambda part: part if isinstance(part, str) else part.__name__.strip("_"),
)
def test_a_replaced_part_is_noticed_by_the_next_question(name: str, change: Callable[[Any], None]) -> None:
    model, explainer = read(name)
    explainer.explain(X.iloc[0])
    change(model)
    with pytest.raises(mace.ModelChanged, match="parts of it were replaced"):
        explainer.explain(X.iloc[0])


def test_settings_that_decide_nothing_may_be_changed() -> None:
    model, explainer = read("forest")
    before = explainer.explain(X.iloc[0])
    model.set_params(verbose=0, class_weight="balanced")
    model.note = "my forest"
    after = explainer.explain(X.iloc[0])
    assert after[0].values == before[0].values
    assert explainer._live._watch.is_same(), "the model is not read again and again for one change"


def _edit_coefficients(model: Any) -> None:
    model.coef_ *= -1


def _edit_leaves(model: Any) -> None:
    for each in model.estimators_:
        each.tree_.value[:] = each.tree_.value[:, :, ::-1].copy()


def _edit_thresholds(model: Any) -> None:
    model.tree_.threshold[:] += 0.5


def _edit_nodes(model: Any) -> None:
    for (each,) in model._predictors:
        each.nodes["value"] *= -1


def _edit_layer(model: Any) -> None:
    model.coefs_[0][:] *= -2


def _edit_scaler(model: Any) -> None:
    model.steps[0][1].mean_ += 1


def _edit_classes(model: Any) -> None:
    model.classes_[:] = [7, 8]


EDITS = {
    "linear": _edit_coefficients,
    "forest": _edit_leaves,
    "tree": _edit_thresholds,
    "histogram": _edit_nodes,
    "network": _edit_layer,
    "pipeline": _edit_scaler,
}


def _nudge_coefficients(model: Any) -> None:
    model.coef_ *= 1 + 1e-12


def _nudge_leaf(model: Any) -> None:
    model.estimators_[3].tree_.value[-1] += 1e-12


def _nudge_layer(model: Any) -> None:
    model.coefs_[1][0, 0] *= 1 + 1e-12


def _nudge_scaler(model: Any) -> None:
    model.steps[0][1].scale_[2] *= 1 + 1e-12


def _nudge_nested_threshold(model: Any) -> None:
    model.estimators_[1].tree_.threshold[0] += 1e-4


def _nudge_calibrated(model: Any) -> None:
    model.calibrated_classifiers_[1].estimator.coef_[0, 0] *= 1 + 1e-12


def _nudge_stage(model: Any) -> None:
    model.estimators_[3, 0].tree_.value[-1] += 1e-12


def _nudge_node(model: Any) -> None:
    model._predictors[4][0].nodes["value"][-1] += 1e-12


def _nudge_leaf_of_lightgbm(model: Any) -> None:
    booster = model.booster_
    booster.set_leaf_output(7, 2, booster.get_leaf_output(7, 2) + 1e-9)


def _nudge_bias_of_catboost(model: Any) -> None:
    scale, bias = model.get_scale_and_bias()
    model.set_scale_and_bias(scale, bias + 1e-9)


NUDGES = {
    "linear": _nudge_coefficients,
    "forest": _nudge_leaf,
    "network": _nudge_layer,
    "pipeline": _nudge_scaler,
    "vote": _nudge_nested_threshold,
    "calibrated": _nudge_calibrated,
    "boosting": _nudge_stage,
    "histogram": _nudge_node,
    "lightgbm": _nudge_leaf_of_lightgbm,
    "catboost": _nudge_bias_of_catboost,
}


@pytest.mark.parametrize("name", NUDGES)
def test_the_least_edit_in_place_is_noticed_under_certify_and_by_a_batch(name: str) -> None:
    model, explainer = read(name)
    NUDGES[name](model)
    with pytest.raises(mace.ModelChanged, match="its numbers are others"):
        explainer.explain(X.iloc[0], certify=True)
    with pytest.raises(mace.ModelChanged, match="its numbers are others"):
        explainer.explain_many(X.iloc[:2])


def test_the_least_edit_is_noticed_of_a_model_that_holds_what_cannot_be_pickled() -> None:
    model, _ = read("linear")
    model.note = lambda: "mine"
    explainer = mace.Explainer(model, SPACE)
    explainer.explain(X.iloc[0], certify=True)
    _nudge_coefficients(model)
    with pytest.raises(mace.ModelChanged, match="its numbers are others"):
        explainer.explain(X.iloc[0], certify=True)


@pytest.mark.parametrize("name", FAMILIES)
def test_a_model_that_is_the_same_is_not_read_again_to_certify(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading takes far longer than hashing what a model holds, and would come out of the time limit."""
    _, explainer = read(name)
    explainer.explain(X.iloc[0], time_limit=1)
    monkeypatch.setattr("mace.models.live.read_or_ask", lambda *_: pytest.fail("it is read again"))
    for row in range(2):
        explainer.explain(X.iloc[row], certify=True, time_limit=1)


def _isotonic_function(model: Any) -> None:
    model.calibrated_classifiers_[0].calibrators[0].f_.y[:] *= 0.5


def _attribute_of_catboost(model: Any) -> None:
    model.predict = model.predict_proba


@pytest.mark.parametrize(
    ("make", "change"),
    [
        (lambda: CalibratedClassifierCV(LogisticRegression(), method="isotonic", cv=2), _isotonic_function),
        (FAMILIES["catboost"], _attribute_of_catboost),
        (FAMILIES["lightgbm"], _nudge_leaf_of_lightgbm),
        (FAMILIES["linear"], _edit_classes),
    ],
    ids=["isotonic", "catboost", "lightgbm", "linear"],
)
def test_contents_lack_nothing_that_a_pickle_may_leave_out(
    make: Callable[[], Any], change: Callable[[Any], None]
) -> None:
    model = make().fit(X, Y)
    before = contents(model)
    assert before is not None
    assert contents(model) == before
    change(model)
    assert contents(model) != before


class Own(LogisticRegression):
    """A class of one's own, which may pickle as it likes."""


def test_what_holds_foreign_code_has_no_contents() -> None:
    model = LogisticRegression().fit(X, Y)
    assert contents(model) is not None
    assert contents(Own().fit(X, Y)) is None
    assert contents(by_a_global) is None
    model.note = {"inside": [by_a_global]}
    assert contents(model) is None


@pytest.mark.parametrize("solver", ["auto", "smt", "milp"])
@pytest.mark.parametrize("name", EDITS)
def test_where_a_row_or_an_answer_disagrees_with_what_was_read_there_is_no_answer(name: str, solver: str) -> None:
    """An answer is given only where the edited model agrees on the row and on the answer; nothing else than ModelChanged is raised."""
    model, explainer = read(name)
    old = FAMILIES[name]().fit(X, Y)
    EDITS[name](model)
    noticed = 0
    for row in range(12):
        try:
            made = explainer.explain(X.iloc[row], solver=solver, time_limit=2)
        except mace.ModelChanged:
            noticed += 1
            continue
        except mace.InvalidOption:
            pytest.skip(f"{solver} does not take {name}")
        asked = pd.DataFrame([X.iloc[row].to_dict(), *(answer.values for answer in made)])
        assert (model.predict(asked) == old.predict(asked)).all()
    assert noticed


def test_edited_probabilities_are_noticed_where_they_are_the_target() -> None:
    model, explainer = read("linear")
    model.intercept_ += 3
    outcomes = []
    for row in range(20):
        try:
            outcomes.append(str(explainer.explain(X.iloc[row], target=mace.at_least(0.6, 1)).status))
        except mace.ModelChanged as error:
            outcomes.append(type(error).__name__)
    assert set(outcomes) <= {"ModelChanged", "reached"}
    assert "ModelChanged" in outcomes


@pytest.mark.parametrize("labels", [[7, 8], [1, 0]], ids=["others", "swapped"])
@pytest.mark.parametrize("family", ["linear", "forest"])
def test_labels_edited_in_place_are_noticed_and_no_key_error(family: str, labels: list[int]) -> None:
    model, explainer = read(family)
    model.classes_[:] = labels
    with pytest.raises(mace.ModelChanged, match="it fails where it was asked"):
        explainer.explain(X.iloc[0], round_to=None)


def test_regressions_are_noticed_too() -> None:
    model = LinearRegression().fit(X, X.a + 2 * X.b)
    explainer = mace.Explainer(model, SPACE)
    explainer.explain(X.iloc[0], target=mace.at_least(3))
    model.coef_ *= 1.5
    with pytest.raises(mace.ModelChanged, match="no longer answers as it did"):
        explainer.explain(X.iloc[0], target=mace.at_least(3))


CUT = 1.0


def by_a_global(a: float, b: float, c: float, d: float) -> int:
    return 1 if a + b >= CUT else 0


def test_a_function_whose_constants_changed_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    explainer = mace.Explainer(by_a_global, SPACE)
    explainer.explain(X.iloc[0])
    monkeypatch.setattr(f"{__name__}.CUT", -1.0)
    with pytest.raises(mace.ModelChanged):
        explainer.explain(X.iloc[0])


def test_a_bare_booster_that_is_trained_further_is_noticed() -> None:
    model, _ = read("xgboost")
    booster = model.get_booster()
    explainer = mace.Explainer(booster, SPACE)
    explainer.explain(X.iloc[0])
    booster.update(xgboost.DMatrix(X, OTHER), 12)
    with pytest.raises(mace.ModelChanged):
        explainer.explain(X.iloc[0])


def test_a_booster_of_lightgbm_that_is_trained_further_is_noticed() -> None:
    data = lightgbm.Dataset(X, Y, free_raw_data=False)
    booster = lightgbm.train({"objective": "binary", "verbose": -1}, data, 5, keep_training_booster=True)
    explainer = mace.Explainer(booster, SPACE)
    explainer.explain(X.iloc[0], target=mace.at_least(0.6))
    booster.update()
    with pytest.raises(mace.ModelChanged):
        explainer.explain(X.iloc[0], target=mace.at_least(0.6))


@pytest.mark.parametrize("name", FAMILIES)
def test_questions_themselves_replace_no_part(name: str) -> None:
    """Otherwise the model would be read again at every question."""
    model, explainer = read(name)
    explainer.explain(X.iloc[0])
    watch = Watch(model)
    explainer.explain(X.iloc[1], time_limit=5)
    assert watch.is_same()


def test_a_model_that_cannot_be_read_any_more_is_noticed() -> None:
    model, explainer = read("linear")
    del model.coef_
    with pytest.raises(mace.ModelChanged):
        explainer.explain(X.iloc[0])
