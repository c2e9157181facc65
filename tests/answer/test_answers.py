"""What an answer says of itself: scores before and after, in two sentences, in a line, and which constraints are to blame."""

from __future__ import annotations

import itertools
import json
import pickle
from dataclasses import replace
from fractions import Fraction
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost
from sklearn.calibration import CalibratedClassifierCV
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
    VotingClassifier,
)
from sklearn.linear_model import LogisticRegression, RidgeClassifier, SGDClassifier
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

import mace
from mace.batch import Batch
from mace.models import read

GERMAN = mace.datasets.load("german")
FRAME, LABELS, SPACE = GERMAN.frame, GERMAN.labels, GERMAN.space
REFUSED = 4


def counting(explainer: mace.Explainer) -> dict[str, list[int]]:
    """Return, by what is asked of an explainer's model from now on, of how many rows each call was."""
    seen: dict[str, list[int]] = {"predict": [], "predict_proba": []}
    live = explainer._live
    ask, rate = live._asked.ask, live._asked.rate

    def counted_ask(points: Any) -> Any:
        seen["predict"].append(len(points))
        return ask(points)

    def counted_rate(points: Any, code: int) -> Any:
        seen["predict_proba"].append(len(points))
        assert rate is not None
        return rate(points, code)

    live._asked = replace(live._asked, ask=counted_ask, rate=counted_rate)
    return seen


def fitted(estimator: Any, labels: Any = LABELS) -> Any:
    return make_pipeline(mace.Encoder(SPACE, ordinal="codes"), estimator).fit(FRAME, labels)


MODEL = fitted(RandomForestClassifier(10, max_depth=5, random_state=0))
EXPLAINER = mace.Explainer(MODEL, SPACE)
PEOPLE = FRAME[MODEL.predict(FRAME) == "bad"]


def chance(model: Any, rows: Any, column: int = 1) -> list[float]:
    return [float(value) for value in model.predict_proba(pd.DataFrame(rows)[list(SPACE)])[:, column]]


# ---- scores


def test_a_probability_before_and_after_is_that_of_the_model() -> None:
    made = EXPLAINER.explain(PEOPLE.iloc[0], target="good", count=2)
    rows = [made.factual, *(each.values for each in made)]
    assert [made.score, *(each.score for each in made)] == pytest.approx(chance(MODEL, rows), abs=1e-9)
    assert made.score_of == made[0].score_of == "P(good)"
    assert made.threshold == made[1].threshold == 0.5
    assert made.score is not None
    assert made.score == made[1].score_before < 0.5 < (made[1].score or 0)
    assert f"Predicted bad, P(good) {made.score:.4g}." in str(made)
    assert f"predicted good: P(good) {made.score:.4g} -> {made[0].score:.4g}, threshold 0.5\n" in str(made[0])
    assert f"P(good) {made.score:.4g} -&gt; {made[0].score:.4g}, threshold 0.5<br>" in made._repr_html_()
    assert made.to_frame()["score"].tolist() == [made.score, *(each.score for each in made)]


def test_scores_go_through_json_and_pickles() -> None:
    made = EXPLAINER.explain(PEOPLE.iloc[0], target=mace.between(0.6, 0.7, "good"))
    data = json.loads(made.to_json())
    assert data["version"] == 2
    assert (data["score_of"], data["threshold"]) == ("P(good)", [0.6, 0.7])
    for again in (mace.Explanation.from_dict(data), pickle.loads(pickle.dumps(made))):
        assert (again.score, again.threshold, again[0].score) == (made.score, (0.6, 0.7), made[0].score)
        assert str(again) == str(made)
    assert "threshold 0.6 to 0.7" in str(made)
    for wrong in ({"score_of": 3}, {"threshold": [0.1]}, {"threshold": "x"}, {"score": "x"}, {"conflict": 3}):
        with pytest.raises(mace.InvalidOption, match="from_dict"):
            mace.Explanation.from_dict(data | wrong)
    with pytest.raises(mace.InvalidOption, match="this MACE reads 1 to 2"):
        mace.Explanation.from_dict(data | {"version": 3})
    old = {
        key: value
        for key, value in data.items()
        if key not in ("score", "score_of", "threshold", "diversity", "conflict")
    }
    assert mace.Explanation.from_dict(old | {"version": 1}).score is None


@pytest.mark.parametrize(
    ("target", "scored", "threshold"),
    [
        (None, "P(good)", 0.5),
        ("good", "P(good)", 0.5),
        (mace.becomes("good", margin=0.2), "P(good)", 0.6),
        (mace.at_least(0.7, "good"), "P(good)", 0.7),
        (mace.at_most(0.3, "bad"), "P(bad)", 0.3),
    ],
    ids=str,
)
def test_what_is_scored_is_what_is_asked_for(target: Any, scored: str, threshold: float) -> None:
    made = EXPLAINER.explain(PEOPLE.iloc[1], target=target)
    assert (made.score_of, made.threshold) == (scored, threshold)
    column = ["bad", "good"].index(scored[2:-1])
    assert made[0].score == pytest.approx(chance(MODEL, [made[0].values], column)[0], abs=1e-9)
    crosses = (made[0].score or 0) >= threshold - 1e-9
    assert crosses == (scored == "P(good)")


def test_of_several_labels_the_own_one_is_scored_which_must_be_left() -> None:
    labels = pd.cut(FRAME["age"], [0, 30, 45, 99], labels=["young", "middle", "old"]).astype(str)
    model = fitted(RandomForestClassifier(10, max_depth=5, random_state=0), labels)
    explainer = mace.Explainer(model, SPACE)
    made = explainer.explain(FRAME.iloc[0], count=2)
    own = list(explainer.classes or ()).index(made.prediction)
    assert (made.score_of, made.threshold) == (f"P({made.prediction})", None)
    assert [made.score, made[0].score] == pytest.approx(chance(model, [made.factual, made[0].values], own), abs=1e-9)
    assert "threshold" not in str(made)
    others = [label for label in explainer.classes or () if label != made.prediction]
    assert explainer.explain(FRAME.iloc[0], target=others[0]).score_of == f"P({others[0]})"
    assert explainer.explain(FRAME.iloc[0], target=mace.any_of(others)).score_of == f"P({made.prediction})"


def test_a_model_without_probabilities_is_scored_by_its_decision() -> None:
    model = make_pipeline(mace.Encoder(SPACE), LinearSVC(random_state=0, C=0.01)).fit(FRAME, LABELS)
    row = FRAME[model.predict(FRAME) == "bad"].iloc[0]
    made = mace.Explainer(model, SPACE).explain(row, target="good")
    assert (made.score_of, made.threshold) == ("score of good", 0.0)
    scores = model.decision_function(pd.DataFrame([made.factual, made[0].values]))
    assert [made.score, made[0].score] == pytest.approx(scores.tolist(), rel=1e-6)
    back = mace.Explainer(model, SPACE).explain(FRAME[model.predict(FRAME) == "good"].iloc[0], target="bad")
    assert back.score is not None
    assert back.score < 0 <= (back[0].score or -1)


@pytest.mark.parametrize("positive", ["good", "bad"])
def test_the_threshold_that_the_user_chose_is_shown(positive: str) -> None:
    inner = make_pipeline(mace.Encoder(SPACE), LogisticRegression(max_iter=3000))
    model = FixedThresholdClassifier(inner, threshold=0.3, pos_label=positive).fit(FRAME, LABELS)
    row = FRAME[model.predict(FRAME) == "bad"].iloc[0]
    made = mace.Explainer(model, SPACE).explain(row, target="good")
    assert made.threshold == pytest.approx(0.3 if positive == "good" else 0.7)
    assert made.score is not None
    assert made.score < (made.threshold or 0) <= (made[0].score or 0)  # type: ignore[operator]


def test_a_regressor_is_scored_by_its_prediction_without_a_further_call() -> None:
    frame = FRAME.drop(columns="credit_amount")
    space = mace.FeatureSpace({name: feature for name, feature in SPACE.items() if name != "credit_amount"})
    model = make_pipeline(mace.Encoder(space, ordinal="codes"), RandomForestRegressor(5, max_depth=4, random_state=0))
    model.fit(frame, FRAME["credit_amount"])
    row = frame.iloc[int(np.argmin(model.predict(frame)))]
    made = mace.Explainer(model, space).explain(row, target=mace.at_least(4000))
    assert (made.score_of, made.score, made.threshold) == ("prediction", made.prediction, 4000.0)
    assert made[0].score == made[0].prediction
    assert "-> " in made[0].summary()


def test_functions_that_give_labels_have_no_score() -> None:
    explainer = mace.Explainer(lambda a: "yes" if a > 3 else "no", mace.FeatureSpace({"a": mace.integer(0, 9)}))
    made = explainer.explain({"a": 1})
    assert (made.score, made.score_of, made.threshold, made[0].score_before) == (None, "", None, None)
    assert "predicted yes; distance" in str(made)
    assert "score" not in made.to_frame().columns


def test_a_score_close_to_the_threshold_is_told_from_it() -> None:
    from mace.answer.score import AnswerScores

    scores = AnswerScores("P(good)", 0.5, [0.49999999, 0.5, 0.50000001])
    assert scores.text(1) == "P(good) 0.49999999 -> 0.5, threshold 0.5"
    assert AnswerScores("P(good)", 0.5, [3e-5, 0.99999]).text(1) == "P(good) under 0.0001 -> over 0.9999, threshold 0.5"
    assert AnswerScores("score of good", 0.0, [-3e-5, 0.0]).text(1) == "score of good -3e-05 -> 0, threshold 0"
    assert scores.text(2) == "P(good) 0.49999999 -> 0.50000001, threshold 0.5"


def test_the_scores_of_a_single_answer_cost_no_call_where_the_prediction_follows_from_them() -> None:
    explainer = mace.Explainer(fitted(LogisticRegression(max_iter=5000)), SPACE)
    seen = counting(explainer)
    made = explainer.explain(PEOPLE.iloc[0], target="good")
    assert (made.score, made[0].score, str(made)) is not None
    assert seen["predict_proba"] == []


def test_a_question_costs_no_further_call_and_its_scores_one() -> None:
    model = FixedThresholdClassifier(LogisticRegression(max_iter=5000), threshold=0.5, pos_label="good")
    explainer = mace.Explainer(fitted(model), SPACE)
    seen = counting(explainer)
    made = explainer.explain(PEOPLE.iloc[0], target="good", count=3)
    own = len(seen["predict"])
    assert seen["predict_proba"] == []
    assert (made.score, made[2].score, str(made), made.to_dict()) is not None
    assert len(seen["predict"]) == own
    assert seen["predict_proba"] == [4]


def test_the_scores_of_a_batch_take_one_call_a_block() -> None:
    explainer = mace.Explainer(MODEL, SPACE)
    seen = counting(explainer)
    batch = explainer.explain_many(FRAME.head(30), target="good")
    table = batch.to_frame()
    assert sum(seen["predict_proba"]) == 30 + batch.counts["optimal"]
    assert len(seen["predict_proba"]) == 2
    assert set(table["score_of"]) == {"P(good)"}
    assert table["score_before"].tolist() == pytest.approx(chance(MODEL, FRAME.head(30)), abs=1e-9)
    assert table["score_after"].notna().tolist() == table["rank"].notna().tolist()
    assert (table["score_after"].dropna() >= 0.5).all()
    alone = explainer.explain(FRAME.iloc[REFUSED], target="good")
    assert (batch[REFUSED].score, batch[REFUSED][0].score) == (alone.score, alone[0].score)


def test_scores_do_not_depend_on_the_processes_nor_on_a_checkpoint(tmp_path: Any) -> None:
    def scores(batch: Batch) -> list[Any]:
        return [(each.score, [one.score for one in each]) for each in batch]

    alone = EXPLAINER.explain_many(FRAME.head(8), target="good", checkpoint=tmp_path / "a.jsonl")
    assert None not in [score for score, _ in scores(alone)]
    assert scores(EXPLAINER.explain_many(FRAME.head(8), target="good", n_jobs=2)) == scores(alone)
    assert scores(EXPLAINER.explain_many(FRAME.head(8), target="good", checkpoint=tmp_path / "a.jsonl")) == scores(
        alone
    )


def test_a_model_that_was_fitted_again_gives_no_score_of_the_old_answer() -> None:
    others = np.where(np.asarray(LABELS) == "good", "bad", "good")
    threshold = FixedThresholdClassifier(LogisticRegression(max_iter=5000), threshold=0.5, pos_label="good")
    model = fitted(threshold)
    made = mace.Explainer(model, SPACE).explain(PEOPLE.iloc[0], target="good")
    model.fit(FRAME, others)
    assert made.score is None
    assert str(made).startswith("Predicted bad. 1 way to good, proved nearest")
    forest = fitted(RandomForestClassifier(10, max_depth=5, random_state=0))
    made = mace.Explainer(forest, SPACE).explain(PEOPLE.iloc[0], target="good")
    said = chance(forest, [PEOPLE.iloc[0]])
    forest.fit(FRAME, others)
    assert [made.score] == pytest.approx(said)


# ---- in words


def test_why_says_in_two_sentences_what_decided_and_what_is_proved() -> None:
    row = PEOPLE.iloc[0]
    everything = mace.fixed(*SPACE)
    answers = {
        "optimal": EXPLAINER.explain(row, target="good"),
        "reached": EXPLAINER.explain(row, target="bad"),
        "infeasible": EXPLAINER.explain(row, target="good", constraints=[everything]),
        "unknown": EXPLAINER.explain(row, target="good", time_limit=1e-9),
        "feasible": EXPLAINER.explain(row, target="good", count=500, diversity=mace.differ(by=0), time_limit=0.2),
        "error": EXPLAINER.explain_many([{"age": 3}])[0],
    }
    said = {
        "optimal": ["It is proved that no smaller change does", "P(good)", str(answers["optimal"][0].changes[0])],
        "reached": ["Nothing has to change"],
        "infeasible": ["no plausible row reaches good under fixed(", "That is proved"],
        "unknown": ["time limit reached", "Proved is nothing"],
        "feasible": ["of the further answers not all is proved: time limit reached"],
        "error": ["The row was not explained: InvalidRow", "Nothing is proved."],
    }
    for status, made in answers.items():
        assert made.status == status
        for part in said[status]:
            assert part in made.why(), made.why()
        assert made.why().endswith(".")


def test_why_says_nothing_of_a_bound_of_zero() -> None:
    model = mace.wrap(predict=lambda frame: np.where(frame["age"] > 40, "good", "bad"), classes=["bad", "good"])
    space = mace.FeatureSpace({"age": mace.integer(18, 90)})
    made = mace.Explainer(model, space, unread="search").explain({"age": 20}, "good")
    assert made.status == "feasible"
    assert "not proved" in made.why()
    assert "0%" not in made.why()


def test_infeasible_names_the_constraints_to_blame() -> None:
    guilty, innocent = mace.fixed(*SPACE), mace.increases("age")
    made = EXPLAINER.explain(PEOPLE.iloc[0], target="good", constraints=[innocent, guilty])
    assert made.status == "infeasible"
    assert made.conflict == (guilty,)
    assert str(guilty) in made.reason
    again = mace.Explanation.from_json(made.to_json())
    assert again.conflict == (str(guilty),)
    assert EXPLAINER.explain(PEOPLE.iloc[0], target="good").conflict == ()


def test_everything_public_is_shown_in_a_short_line() -> None:
    from mace.audits import audit

    row = PEOPLE.iloc[0]
    made = EXPLAINER.explain(row, target="good", count=3, certify=True)
    found = audit(EXPLAINER, FRAME.head(30), ["housing"], target="good", resamples=5)
    everything = mace.fixed(*SPACE)
    shown = [
        EXPLAINER,
        SPACE,
        made,
        *made,
        EXPLAINER.explain(row, target="bad"),
        EXPLAINER.explain(row, target="good", constraints=[everything]),
        EXPLAINER.explain_many(FRAME.head(3), target="good"),
        EXPLAINER.explain_many(FRAME.head(3), target="good").table,
        EXPLAINER.explain_many(FRAME.head(3), target="good").labels,
        EXPLAINER.levers(row, target="good", most=3),
        made[0].certificate,
        mace.verify(made[0].certificate, MODEL),  # type: ignore[arg-type]
        made[0].region(time_limit=5),
        everything,
        mace.near_data(FRAME),
        mace.rule("age >= old.age"),
        mace.Distance(l1=1.0, weights=dict.fromkeys(SPACE, 2.0)),
        mace.differ(sets="incomparable"),
        found,
        found.everyone,
    ]
    for each in shown:
        assert len(repr(each)) < 200, repr(each)
        assert "\n" not in repr(each)
        assert " object at 0x" not in repr(each)
    assert repr(EXPLAINER) == "<Explainer: RandomForestClassifier, 20 features, predicts bad or good>"
    assert repr(mace.Distance(l1=1.0, weights={"age": 2.0})) == "Distance(l1=1, weights={'age': 2.0})"
    assert repr(mace.fixed("age")) == "fixed('age')"
    assert repr(mace.FeatureSpace({"a": mace.integer(0, 9)})) == "FeatureSpace({'a': integer(0, 9)})"
    for feature in (*SPACE.values(), mace.real(0, 1, step=0.5, missing=True), mace.date("2020-01-01", "2024-12-31")):
        assert eval(repr(feature), {name: getattr(mace, name) for name in mace.__all__}) == feature
    assert len(repr(mace.categorical(list(map(str, range(1_000)))))) < 200
    assert eval(str(SPACE), vars(mace) | {name: getattr(mace, name) for name in mace.__all__}) == SPACE


@pytest.mark.parametrize("kept", [7, 12, 17])
def test_a_pickle_of_an_earlier_version_has_the_defaults_of_what_it_did_not_know(kept: int) -> None:
    made = EXPLAINER.explain(PEOPLE.iloc[REFUSED], "good", round_to=None)
    old = object.__new__(mace.Explanation)
    old.__setstate__(made.__getstate__()[:kept])  # type: ignore[attr-defined]
    assert (old.round_to, old.among, old.fixed, old.status) == ({}, "", (), made.status)
    other = object.__new__(mace.Explanation)
    other.__setstate__(made.__getstate__()[:kept])  # type: ignore[attr-defined]
    assert old.round_to is not other.round_to


@pytest.mark.parametrize("family", [RandomForestClassifier, ExtraTreesClassifier])
@pytest.mark.parametrize("classes", [2, 3])
def test_a_forest_that_is_asked_once_says_what_predict_says_ties_included(family: Any, classes: int) -> None:
    rng = np.random.default_rng(classes)
    X = rng.integers(0, 4, (60, 3))
    space = mace.FeatureSpace({name: mace.integer(0, 3) for name in "abc"})
    labels = np.array(["u", "v", "w"])[rng.integers(0, classes, 60)]
    ties = 0
    for trees in (2, 4):
        for model in (
            family(trees, bootstrap=True, random_state=trees).fit(X, labels),
            make_pipeline(mace.Encoder(space), family(trees, max_depth=2, random_state=1)).fit(
                pd.DataFrame(X, columns=list("abc")), labels
            ),
        ):
            reading = read(model, space)
            assert reading.ask_rated is not None
            points = [tuple(map(int, row)) for row in itertools.product(range(4), repeat=3)]
            for point in points:
                ((code, rates),) = reading.ask_rated([point])
                assert [code] == reading.ask([point])
                assert [float(rate) for rate in rates] == [float(reading.rate([point], k)[0]) for k in range(classes)]  # type: ignore[misc]
                ties += sorted(rates)[-1] == sorted(rates)[-2]
    assert ties


BY_ORDER: dict[str, Any] = {
    "logistic regression": lambda: make_pipeline(StandardScaler(), LogisticRegression()),
    "SGD, log loss": lambda: SGDClassifier(loss="log_loss", random_state=0),
    "SGD, Huber loss": lambda: SGDClassifier(loss="modified_huber", random_state=0),
    "linear SVC": lambda: make_pipeline(StandardScaler(), LinearSVC()),
    "ridge": RidgeClassifier,
    "discriminant analysis": LinearDiscriminantAnalysis,
    "network": lambda: MLPClassifier((4,), max_iter=300, random_state=0),
    "tree": lambda: DecisionTreeClassifier(max_depth=2, random_state=0),
    "boosted trees": lambda: GradientBoostingClassifier(n_estimators=3, random_state=0),
    "histogram": lambda: HistGradientBoostingClassifier(max_iter=3, min_samples_leaf=5),
    "AdaBoost": lambda: AdaBoostClassifier(n_estimators=4, random_state=0),
    "calibrated": lambda: CalibratedClassifierCV(LogisticRegression(), ensemble=False),
    "bagging": lambda: BaggingClassifier(LogisticRegression(), n_estimators=3, random_state=0),
    "soft vote": lambda: VotingClassifier(
        [(str(k), DecisionTreeClassifier(max_depth=k, random_state=k)) for k in (1, 2)], voting="soft"
    ),
    "LightGBM": lambda: lightgbm.LGBMClassifier(n_estimators=3, min_child_samples=2, verbose=-1, num_threads=1),
    "XGBoost": lambda: xgboost.XGBClassifier(n_estimators=3, max_depth=2, n_jobs=1),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("family", BY_ORDER)
def test_a_model_whose_prediction_follows_from_its_probabilities_is_asked_once(family: str, classes: int) -> None:
    rng = np.random.default_rng(classes)
    X = pd.DataFrame(rng.integers(0, 4, (60, 3)).astype(float), columns=list("abc"))
    labels = rng.integers(0, classes, 60)
    model = BY_ORDER[family]().fit(X, labels)
    try:
        reading = read(model, mace.FeatureSpace({name: mace.real(0, 3) for name in "abc"}))
    except mace.UnsupportedModel:
        assert classes == 3
        return
    if family == "XGBoost" and classes == 3:
        assert reading.ask_rated is None
        return
    assert reading.ask_rated is not None
    points = [tuple(map(float, row)) for row in itertools.product(range(4), repeat=3)]
    number = reading.rate or reading.score
    assert number is not None
    for point in points:
        ((code, rates),) = reading.ask_rated([point])
        assert [code] == reading.ask([point])
        assert [float(rate) for rate in rates] == [float(number([point], k)[0]) for k in range(classes)]


@pytest.mark.parametrize("score", [0.0, 1e-20, -1e-20, 1e-15, -1e-15])
def test_where_probabilities_are_equal_to_rounding_predict_itself_is_asked(score: float) -> None:
    X = np.array([[0.0], [1.0]])
    model = LogisticRegression().fit(X, [0, 1])
    model.coef_, model.intercept_ = np.array([[1.0]]), np.zeros(1)
    reading = read(model, mace.FeatureSpace({"a": mace.real(-1, 1)}))
    assert reading.ask_rated is not None
    ((code, rates),) = reading.ask_rated([(score,)])
    assert code == (score > 0) == model.predict([[score]])[0]
    assert abs(rates[1] - Fraction(1, 2)) < Fraction(1, 10**14)


def test_a_threshold_of_the_users_own_is_asked_of_predict() -> None:
    X = np.random.default_rng(0).normal(size=(60, 2))
    space = mace.FeatureSpace({name: mace.real(-2, 2) for name in "ab"})
    model = FixedThresholdClassifier(LogisticRegression(), threshold=0.7)
    assert read(model.fit(X, X[:, 0] > 0), space).ask_rated is None


def test_scores_come_from_the_call_that_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    labels = (X.sum(axis=1) > 0).astype(int)
    space = mace.FeatureSpace({name: mace.real(-3, 3) for name in "abc"})
    asked: list[int] = []

    def counted(family: Any) -> None:
        plain = family.predict_proba
        monkeypatch.setattr(family, "predict_proba", lambda self, X: (asked.append(len(X)), plain(self, X))[1])

    for family, target in (
        (RandomForestClassifier, 1),
        (RandomForestClassifier, mace.at_least(0.7)),
        (LogisticRegression, mace.at_least(0.7)),
    ):
        model = family().set_params(random_state=0).fit(X, labels)
        if target == 1 or family is LogisticRegression:
            counted(family)
        explainer = mace.Explainer(model, space)
        answer = explainer.explain([-1.0, -0.5, 0.2], target, round_to=None)
        asked.clear()
        assert answer.score == pytest.approx(model.predict_proba([[-1.0, -0.5, 0.2]])[0, 1], rel=1e-8)
        assert answer[0].score == pytest.approx(model.predict_proba([list(answer[0].values.values())])[0, 1], rel=1e-8)
        assert len(asked) == 2, "only this test has asked"
        reached = explainer.explain(answer[0].values, target)
        asked.clear()
        assert reached.score == answer[0].score
        assert not asked
