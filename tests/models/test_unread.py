"""Models that cannot be read: refused with the way out, or only asked."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, OneHotEncoder
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import mace
from mace.cli.main import run

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "age": RNG.integers(18, 90, 300),
        "income": RNG.uniform(0, 100, 300).round(2),
        "housing": RNG.choice(["rent", "own"], 300),
    }
)
LABELS = np.where(FRAME.income + 20 * (FRAME.housing == "own") > 60, "yes", "no")
SPACE = mace.FeatureSpace.from_frame(FRAME)
ROW = {"age": 40, "income": 20.0, "housing": "rent"}
NUMBERS = FRAME[["age", "income"]]
WAY_OUT = r'mace\.Explainer\(model, space, unread="search"\)'


def behind_levels(model: Any) -> Any:
    levels = ColumnTransformer([("levels", OneHotEncoder(), ["housing"])], remainder="passthrough")
    return make_pipeline(levels, model).fit(FRAME, LABELS)


def labels_of(frame: pd.DataFrame) -> list[str]:
    """Return the labels of a frame, as a service elsewhere would."""
    return ["yes" if each else "no" for each in frame.income + 20 * (frame.housing == "own") > 60]


def chances_of(frame: pd.DataFrame) -> Any:
    chance = 1 / (1 + np.exp(-(frame.income + 20 * (frame.housing == "own") - 60) / 10))
    return np.column_stack([1 - chance, chance])


class Thing:
    """A model of nobody's library: it has ``predict`` and nothing else."""

    def __init__(self, rule: Any) -> None:
        self.rule = rule

    def predict(self, frame: pd.DataFrame) -> Any:
        return self.rule(frame)


ASKED = {
    "svc": lambda: behind_levels(SVC()),
    "knn": lambda: behind_levels(KNeighborsClassifier()),
    "naive bayes": lambda: behind_levels(GaussianNB()),
    "a step of its own": lambda: behind_levels(make_pipeline(Normalizer(), DecisionTreeClassifier(random_state=0))),
    "a function": lambda: mace.wrap(predict=labels_of, classes=["no", "yes"]),
    "a wrapped model": lambda: mace.wrap(
        KNeighborsClassifier().fit(mace.Encoder(SPACE).fit_transform(FRAME), LABELS),
        encoder=mace.Encoder(SPACE).fit(FRAME),
    ),
}


@pytest.mark.parametrize("name", ASKED)
def test_a_refusal_names_the_search_and_the_search_answers(name: str) -> None:
    model = ASKED[name]()
    with pytest.raises(mace.UnsupportedModel, match=WAY_OUT):
        mace.Explainer(model, SPACE)
    explainer = mace.Explainer(model, SPACE, unread="search")
    assert "(not read, only asked)" in repr(explainer)
    explanation = explainer.explain(ROW, "yes", constraints=[mace.fixed("age")])
    best = explanation[0]
    assert (best.solver, best.status, best.lower, best.prediction) == ("search", "feasible", 0.0, "yes")
    assert explanation.reason == "not proved: the model could not be read"
    assert explanation.solver == "search: the model could not be read"
    assert model.predict(explanation.to_frame()[list(SPACE)].iloc[[1]])[0] == "yes"
    assert best.values["age"] == 40


def test_a_model_that_can_be_read_is_read() -> None:
    model = behind_levels(RandomForestClassifier(5, random_state=0))
    explanation = mace.Explainer(model, SPACE, unread="search").explain(ROW, "yes", certify=True)
    assert (explanation.status, explanation[0].solver) == ("optimal", "trees")
    assert mace.verify(explanation[0].certificate, model).valid


def test_a_function_that_cannot_be_read_is_told_how_to_be_asked() -> None:
    def model(row: Any) -> Any:
        return labels_of(pd.DataFrame([vars(row)]))[0]

    with pytest.raises(mace.UnsupportedModel, match=r"mace\.wrap\(predict=f, classes=\[\.\.\.\]\)"):
        mace.Explainer(model, SPACE)
    with pytest.raises(mace.UnsupportedModel, match="has no predict to ask"):
        mace.Explainer(model, SPACE, unread="search")


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: SVC, "is a class"),
        (lambda: KNeighborsClassifier(), "not been fitted|not fitted"),
        (lambda: behind_levels(SVC()).set_params(svc__C=2.0).named_steps["svc"], "fitted on 4 columns"),
        (lambda: KNeighborsClassifier().fit(NUMBERS.assign(debt=NUMBERS.income), LABELS), "was fitted on 'debt' too"),
        (lambda: 7, "has no predict"),
    ],
)
def test_what_cannot_be_asked_either_is_refused_without_that_way_out(make: Any, says: str) -> None:
    with pytest.raises(mace.UnsupportedModel) as refused:
        mace.Explainer(make(), SPACE)
    assert "unread=" not in str(refused.value)
    with pytest.raises(mace.UnsupportedModel, match=says if says != "is a class" else "has no predict"):
        mace.Explainer(make(), SPACE, unread="search")


def test_features_that_the_model_does_not_know_are_left_out_and_the_order_is_its_own() -> None:
    model = KNeighborsClassifier().fit(NUMBERS, LABELS)
    with pytest.raises(mace.UnsupportedModel, match=WAY_OUT):
        mace.Explainer(model, SPACE)
    space = mace.FeatureSpace({name: SPACE[name] for name in ("housing", "income", "age")})
    with pytest.warns(UserWarning, match="not fitted on 'housing'"):
        explainer = mace.Explainer(model, space, unread="search")
    best = explainer.explain(ROW, "yes")[0]
    assert model.predict(pd.DataFrame([best.values])[["age", "income"]])[0] == "yes"


def test_a_damaged_tree_is_not_asked() -> None:
    model = DecisionTreeClassifier(random_state=0).fit(NUMBERS, LABELS)
    state = model.tree_.__getstate__()
    state["nodes"]["left_child"][0] = 10_000
    model.tree_.__setstate__(state)
    space = mace.FeatureSpace({name: SPACE[name] for name in NUMBERS})
    with pytest.raises(mace.UnsupportedModel, match="damaged"):
        mace.Explainer(model, space, unread="search")


# ---- targets


def test_probabilities_are_targets_where_the_model_has_them() -> None:
    model = mace.wrap(predict=labels_of, predict_proba=chances_of, classes=["no", "yes"])
    explainer = mace.Explainer(model, SPACE, unread="search")
    for target, holds in (
        (mace.at_least(0.9, "yes"), lambda p: p >= 0.9),
        (mace.between(0.4, 0.45, "yes"), lambda p: 0.4 <= p <= 0.45),
        (mace.becomes("yes", margin=0.5), lambda p: p >= 0.75),
    ):
        found = explainer.explain(ROW, target)
        assert holds(chances_of(found.to_frame()[list(SPACE)].iloc[[1]])[0, 1])
    plain = mace.Explainer(mace.wrap(predict=labels_of, classes=["no", "yes"]), SPACE, unread="search")
    with pytest.raises(mace.InvalidTarget, match="reports no probability"):
        plain.explain(ROW, mace.at_least(0.9, "yes"))


def test_a_lead_among_three_classes_is_a_target() -> None:
    model = KNeighborsClassifier(9).fit(NUMBERS, np.digitize(FRAME.income, [30, 60]))
    space = mace.FeatureSpace.from_frame(NUMBERS)
    found = mace.Explainer(model, space, unread="search").explain(
        {"age": 40, "income": 20.0}, mace.becomes(2, margin=0.5)
    )
    chances = model.predict_proba(found.to_frame()[list(space)].iloc[[1]])[0]
    assert chances[2] >= max(chances[:2]) + 0.5


def test_numbers_are_targets_of_regressors() -> None:
    model = KNeighborsRegressor().fit(NUMBERS, FRAME.income**2)
    space = mace.FeatureSpace.from_frame(NUMBERS)
    explainer = mace.Explainer(model, space, unread="search")
    found = explainer.explain({"age": 40, "income": 20.0}, mace.at_least(3000))
    assert model.predict(found.to_frame()[list(space)].iloc[[1]])[0] >= 3000
    with pytest.raises(mace.InvalidTarget, match="predicts numbers"):
        explainer.explain({"age": 40, "income": 20.0})


# ---- models that do not answer as they should


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        (lambda frame: ["yes"], "returned 1 answers to 24 rows"),
        (lambda frame: ["maybe"] * len(frame), "returned 'maybe', which is none of its classes: 'no', 'yes'"),
        (lambda frame: 1 / 0, "predict fails on a row of the space: ZeroDivisionError"),
        (lambda frame: None, "returned 1 answers to 24 rows"),
    ],
)
def test_a_function_that_answers_wrongly_is_refused_with_the_reason(rule: Any, says: str) -> None:
    with pytest.raises(mace.UnsupportedModel, match=says):
        mace.Explainer(mace.wrap(predict=rule, classes=["no", "yes"]), SPACE, unread="search")


def test_text_without_classes_is_told_to_name_them() -> None:
    with pytest.raises(mace.UnsupportedModel, match=r"mace\.wrap\(predict=model\.predict, classes=\[\.\.\.\]\)"):
        mace.Explainer(Thing(labels_of), SPACE, unread="search")
    numbers = mace.Explainer(Thing(lambda frame: frame.income), SPACE, unread="search")
    assert numbers.explain(ROW, mace.at_least(30))[0].values["income"] == pytest.approx(30, abs=1e-3)


def test_an_endpoint_that_fails_later_is_reported_as_that() -> None:
    is_down = False

    def predict(frame: pd.DataFrame) -> Any:
        if is_down:
            raise ConnectionError("no route to host")
        return labels_of(frame)

    explainer = mace.Explainer(mace.wrap(predict=predict, classes=["no", "yes"]), SPACE, unread="search")
    assert explainer.explain(ROW)
    is_down = True
    with pytest.raises(mace.UnsupportedModel, match="ConnectionError: no route to host"):
        explainer.explain(ROW)


def test_probabilities_of_another_shape_are_refused() -> None:
    model = mace.wrap(predict=labels_of, predict_proba=lambda frame: chances_of(frame)[:, 1:], classes=["no", "yes"])
    with pytest.raises(mace.UnsupportedModel, match=r"shape \(1, 1\); it must have a column for each of its 2 classes"):
        mace.Explainer(model, SPACE, unread="search").explain(ROW, mace.at_least(0.5, "yes"))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"predict": 3},
        {"predict": labels_of, "classes": "yes"},
        {"predict": labels_of, "predict_proba": chances_of},
        {"predict": labels_of, "classes": ["no", "yes"], "encoder": mace.Encoder(SPACE).fit(FRAME)},
        {"model": SVC(), "predict": labels_of},
    ],
)
def test_options_of_wrap_that_do_not_fit_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(mace.InvalidOption):
        mace.wrap(**options)


@pytest.mark.parametrize("unread", ["surrogate", True, 1])
def test_an_unknown_way_is_refused(unread: Any) -> None:
    with pytest.raises(mace.InvalidOption, match="unread="):
        mace.Explainer(behind_levels(SVC()), SPACE, unread=unread)


# ---- batches, pickles, changes, texts


def test_a_batch_gives_the_same_answers_with_any_number_of_processes() -> None:
    explainer = mace.Explainer(mace.wrap(predict=labels_of, classes=["no", "yes"]), SPACE, unread="search")
    people = FRAME[LABELS == "no"].head(4)
    alone, shared = (explainer.explain_many(people, n_jobs=jobs) for jobs in (1, 2))
    assert [each.status for each in alone] == ["feasible"] * 4
    assert [each[0].values for each in alone] == [each[0].values for each in shared]
    assert alone.proved_share == 0


def test_an_explainer_is_pickled_with_what_it_may_do() -> None:
    explainer = mace.Explainer(behind_levels(KNeighborsClassifier()), SPACE, unread="search")
    again = pickle.loads(pickle.dumps(explainer))
    assert again.explain(ROW)[0].values == explainer.explain(ROW)[0].values


def test_a_model_that_is_fitted_again_is_noticed() -> None:
    model = KNeighborsClassifier().fit(NUMBERS, LABELS)
    space = mace.FeatureSpace.from_frame(NUMBERS)
    explainer = mace.Explainer(model, space, unread="search")
    explainer.explain({"age": 40, "income": 20.0})
    model.fit(NUMBERS, LABELS[::-1])
    with pytest.raises(mace.ModelChanged):
        explainer.explain({"age": 40, "income": 20.0})


def test_a_checkpoint_of_another_endpoint_is_refused(tmp_path: Path) -> None:
    people = FRAME[LABELS == "no"].head(2)
    for rule, is_other in ((labels_of, False), (labels_of, False), (lambda frame: ["yes"] * len(frame), True)):
        explainer = mace.Explainer(mace.wrap(predict=rule, classes=["no", "yes"]), SPACE, unread="search")
        if is_other:
            with pytest.raises(mace.InvalidOption, match="checkpoint"):
                explainer.explain_many(people, checkpoint=tmp_path / "answers")
        else:
            assert len(explainer.explain_many(people, checkpoint=tmp_path / "answers")) == 2


def test_texts_and_json_say_that_nothing_is_proved() -> None:
    explanation = mace.Explainer(behind_levels(SVC()), SPACE, unread="search").explain(ROW, "yes")
    text = str(explanation)
    assert "1 way to yes, not proved: the model could not be read (l1 distance)." in text
    assert "not proved nearest (feasible)" in text
    assert "proved at least" not in text
    assert "It is not proved: the model could not be read; a smaller change may do" in explanation.why()
    assert mace.Explanation.from_json(explanation.to_json()) == explanation
    assert "we have looked for one, but have proved nothing" in " ".join(explanation.letter().split())


def test_the_command_line_searches_where_it_is_told_to(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    joblib.dump(behind_levels(KNeighborsClassifier()), tmp_path / "model.joblib")
    (tmp_path / "space.json").write_text(SPACE.to_json())
    FRAME[LABELS == "no"].head(3).to_csv(tmp_path / "rows.csv", index=False)
    files = [f"--{name}={tmp_path / file}" for name, file in (("data", "rows.csv"), ("space", "space.json"))]
    files += [f"--model={tmp_path / 'model.joblib'}", "--trust"]
    assert run(["explain", *files]) == 2
    assert 'unread="search"' in " ".join(capsys.readouterr().err.split())
    assert run(["explain", *files, "--unread", "search", "--target", "yes"]) == 0
    assert "not proved: the model could not be read" in " ".join(capsys.readouterr().out.split())
    assert run(["explain", *files, "--unread", "search", "--certificate", str(tmp_path / "proof.json")]) == 2
    assert run(["batch", *files, "--unread", "search", "--out", str(tmp_path / "answers.csv")]) == 0
    answers = pd.read_csv(tmp_path / "answers.csv")
    assert list(answers.status) == ["feasible"] * 3
