"""Targets with margins, against brute force and the real model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neural_network import MLPClassifier
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

import mace
import mace.audits
from mace import FeatureSpace, InvalidTarget, integer, real
from mace.targets import of_label

SPACE = FeatureSpace({"x": real(0, 4, step=0.25), "n": integer(0, 9), "k": integer(-3, 3)})


def data(classes: int | None) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(classes or 0)
    X = np.column_stack([rng.integers(0, 17, 200) / 4, rng.integers(0, 10, 200), rng.integers(-3, 4, 200)]).astype(
        float
    )
    score = X[:, 0] - X[:, 1] / 3 + 0.3 * X[:, 2] + rng.normal(0, 0.7, 200)
    if classes is None:
        return X, score
    return X, np.array(["no", "yes", "zero"])[
        np.searchsorted(np.quantile(score, np.arange(1, classes) / classes), score)
    ]


BINARY: dict[str, Any] = {
    "tree": DecisionTreeClassifier(max_depth=4, random_state=0),
    "forest": RandomForestClassifier(6, max_depth=4, random_state=0),
    "boosting": GradientBoostingClassifier(n_estimators=6, random_state=0),
    "hist": HistGradientBoostingClassifier(max_iter=6, early_stopping=False),
    "logistic": LogisticRegression(),
    "mlp": MLPClassifier((3,), random_state=0, max_iter=300),
}
TARGETS: dict[str, Any] = {
    "becomes": lambda label: mace.becomes(label, margin=0.2),
    "at least": lambda label: mace.at_least(0.55, label=label, margin=0.1),
    "at most": lambda label: mace.at_most(0.45, label="no" if label == "yes" else "yes", margin=0.05),
    "between": lambda label: mace.between(0.5, 0.9, label=label, margin=0.03),
}


def same_answer(explainer: mace.Explainer, row: Any, target: Any) -> mace.Explanation:
    truth = explainer.explain(row, target=target, solver="enumerate")
    found = explainer.explain(row, target=target)
    assert found.status == truth.status, found.reason
    if truth:
        assert found[0].distance == truth[0].distance
        assert found[0].lower <= truth[0].distance
    return found


@pytest.mark.parametrize("kind", TARGETS)
@pytest.mark.parametrize("name", BINARY)
def test_margins_of_two_classes_agree_with_brute_force(name: str, kind: str) -> None:
    X, labels = data(2)
    model = BINARY[name].fit(X, labels)
    explainer = mace.Explainer(model, SPACE)
    for row in X[:2]:
        label = "yes" if model.predict([row])[0] == "no" else "no"
        found = same_answer(explainer, row, TARGETS[kind](label))
        if found:
            chance = model.predict_proba([list(found[0].values.values())])[0][list(model.classes_).index(label)]
            low, high = {"becomes": (0.6, 1), "at least": (0.65, 1), "at most": (0.6, 1), "between": (0.53, 0.87)}[kind]
            assert low - 1e-15 <= chance <= high + 1e-15


@pytest.mark.parametrize("labels", [["yes"], ["yes", "zero"], ["no"]])
@pytest.mark.parametrize("trees", [1, 4, 6, 7])
def test_margins_of_several_classes_of_a_forest_agree_with_brute_force(labels: list[str], trees: int) -> None:
    X, y = data(3)
    model = ExtraTreesClassifier(trees, max_depth=4, random_state=0).fit(X, y)
    explainer = mace.Explainer(model, SPACE)
    row = X[int(np.flatnonzero(~np.isin(model.predict(X), labels))[0])]
    for margin in (0.1, 0.25, 0.5):
        found = same_answer(explainer, row, mace.any_of(labels, margin=margin))
        if found:
            shares = dict(zip(model.classes_, model.predict_proba([list(found[0].values.values())])[0], strict=True))
            lead = max(shares[label] for label in labels) - max(v for k, v in shares.items() if k not in labels)
            assert lead >= margin
            assert found[0].prediction in labels


@pytest.mark.parametrize("solver", ["trees", "smt"])
def test_a_margin_holds_in_every_lane(solver: str) -> None:
    X, y = data(3)
    model = RandomForestClassifier(3, max_depth=3, random_state=0).fit(X, y)
    row = X[int(np.flatnonzero(model.predict(X) == "no")[0])]
    explainer = mace.Explainer(model, SPACE)
    found = explainer.explain(row, target=mace.becomes("yes", margin=0.2), solver=solver)
    truth = explainer.explain(row, target=mace.becomes("yes", margin=0.2), solver="enumerate")
    assert found.status == truth.status
    assert found[0].distance == pytest.approx(truth[0].distance, abs=1e-6)


@pytest.mark.parametrize("model", [Ridge(), GradientBoostingRegressor(n_estimators=5)], ids=repr)
def test_margins_of_regressors(model: Any) -> None:
    X, y = data(None)
    model.fit(X, y)
    explainer = mace.Explainer(model, SPACE)
    row = X[int(np.argmin(model.predict(X)))]
    low = float(np.quantile(model.predict(X), 0.6))
    for target in (mace.at_least(low, margin=0.25), mace.between(low, low + 1, margin=0.3)):
        found = same_answer(explainer, row, target)
        predicted = model.predict(pd.DataFrame([found[0].values]).to_numpy(dtype=float))[0]
        assert low + target.margin <= predicted


def test_a_margin_that_cannot_be_is_refused() -> None:
    X, y = data(2)
    explainer = mace.Explainer(LinearSVC().fit(X, y), SPACE)
    with pytest.raises(InvalidTarget, match="reports no probability that a margin can be put on"):
        explainer.explain(X[0], target=mace.becomes("yes", margin=0.1))
    three = mace.Explainer(LogisticRegression().fit(*data(3)), SPACE)
    with pytest.raises(InvalidTarget, match="reports no probability that a margin"):
        three.explain(X[0], target=mace.becomes("yes", margin=0.1))
    with pytest.raises(InvalidTarget, match="margin is -1"):
        mace.at_least(0.5, margin=-1)
    with pytest.raises(InvalidTarget, match="margin is 2"):
        mace.becomes("yes", margin=2)
    with pytest.raises(InvalidTarget, match="above the upper"):
        mace.between(0.4, 0.5, margin=0.1)
    explainer = mace.Explainer(LogisticRegression().fit(X, y), SPACE)
    with pytest.raises(InvalidTarget, match="every label"):
        explainer.explain(X[0], target=mace.any_of(["yes", "no"], margin=0.1))


def test_a_margin_that_the_row_has_already_is_said_with_its_number() -> None:
    X, y = data(2)
    model = LogisticRegression().fit(X, y)
    sure = X[int(np.argmax(model.predict_proba(X)[:, 1]))]
    made = mace.Explainer(model, SPACE).explain(sure, target=mace.becomes("yes", margin=0.1))
    assert made.status == "reached"
    assert "already predicted 'yes' with probability 0.9" in made.reason


def test_a_row_of_the_wanted_class_may_be_asked_for_a_margin() -> None:
    X, y = data(2)
    model = RandomForestClassifier(9, max_depth=4, random_state=0).fit(X, y)
    chance = model.predict_proba(X)[:, 1]
    row = X[int(np.flatnonzero((chance > 0.5) & (chance < 0.7))[0])]
    best = mace.Explainer(model, SPACE).explain(row, target=mace.becomes("yes", margin=0.5))[0]
    assert model.predict_proba([list(best.values.values())])[0][1] >= 0.75


@pytest.mark.parametrize("target", [mace.becomes("yes", margin=0.5), mace.at_least(0.6, label="yes", margin=0.1)])
@pytest.mark.parametrize("classes", [2, 3])
def test_a_certificate_states_the_margin(classes: int, target: Any) -> None:
    X, y = data(classes)
    model = RandomForestClassifier(4, max_depth=3, random_state=0).fit(X, y)
    row = X[int(np.flatnonzero(model.predict(X) == "no")[0])]
    explanation = mace.Explainer(model, SPACE).explain(row, target=target, certify=True)
    certificate = explanation[0].certificate if explanation else explanation.certificate
    assert certificate is not None
    again = type(certificate).from_json(certificate.to_json())
    assert again.to_dict()["statement"]["target"]["margin"] == target.margin
    assert mace.verify(again, model).outcome == "valid"
    weaker = certificate.to_dict()
    del weaker["statement"]["target"]["margin"]
    assert mace.verify(type(certificate).from_dict(weaker), model).outcome != "valid"


LABELS: dict[str, tuple[Any, Any]] = {"text": ("refuse", "approve"), "1 and 2": (1, 2), "texts 0 and 1": ("0", "1")}


def labelled(labels: tuple[Any, Any], model: Any = None) -> tuple[Any, np.ndarray]:
    X, y = data(2)
    return (model or LogisticRegression()).fit(X, np.array(labels)[(y == "yes").astype(int)]), X


@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize(
    ("target", "call"),
    [
        (mace.at_least(0.7), "mace.at_least(0.7, {!r})"),
        (mace.at_most(0.3, margin=0.05), "mace.at_most(0.3, {!r}, margin=0.05)"),
        (mace.between(0.4, 0.6), "mace.between(0.4, 0.6, {!r})"),
    ],
)
def test_a_probability_without_its_label_is_refused_with_the_calls_to_write(kind: str, target: Any, call: str) -> None:
    model, X = labelled(LABELS[kind])
    explainer = mace.Explainer(model, SPACE)
    asking: list[Any] = [
        lambda: explainer.explain(X[0], target=target),
        lambda: explainer.levers(X[0], target=target),
        lambda: explainer.reaches(X[0], target),
        lambda: explainer.explain_many(pd.DataFrame(X[:2], columns=list(SPACE)), target=target),
        lambda: mace.audits.audit(explainer, pd.DataFrame(X[:2], columns=list(SPACE)), target=target),
    ]
    for ask in asking:
        with pytest.raises(InvalidTarget) as refused:
            ask()
        first, second = (call.format(label) for label in explainer.classes or ())
        assert f"Write {first} or {second}." in str(refused.value)


@pytest.mark.parametrize("labels", [(0, 1), (False, True), (0.0, 1.0)], ids=repr)
def test_of_0_and_1_the_probability_of_1_is_meant_and_named(labels: tuple[Any, Any]) -> None:
    model, X = labelled(labels)
    explainer = mace.Explainer(model, SPACE)
    row = X[int(np.argmin(model.predict_proba(X)[:, 1]))]
    found = explainer.explain(row, target=mace.at_least(0.7), certify=True)
    assert found.target == f"P({labels[1]}) >= 0.7"
    assert model.predict_proba([list(found[0].values.values())])[0][1] >= 0.7
    named = explainer.explain(row, target=mace.at_least(0.7, labels[1]))
    assert (named.target, named[0].values) == (found.target, found[0].values)
    assert found[0].certificate is not None
    assert found[0].certificate.to_dict()["statement"]["target"]["label"] == labels[1]
    assert mace.verify(found[0].certificate, model).valid


def test_every_text_names_the_outcome() -> None:
    model, X = labelled(("refuse", "approve"))
    explainer = mace.Explainer(model, SPACE)
    row = X[int(np.argmin(model.predict_proba(X)[:, list(model.classes_).index("approve")]))]
    for target, text, holds in (
        (mace.at_least(0.7, "approve"), "P(approve) >= 0.7", lambda p: p >= 0.7),
        (mace.at_most(0.1, "refuse"), "P(refuse) <= 0.1", lambda p: p >= 0.9),
        (mace.between(0.4, 0.45, "approve"), "0.4 <= P(approve) <= 0.45", lambda p: 0.4 <= p <= 0.45),
    ):
        found = explainer.explain(row, target=target)
        assert holds(model.predict_proba([list(found[0].values.values())])[0][list(model.classes_).index("approve")])
        batch = explainer.explain_many(pd.DataFrame([row], columns=list(SPACE)), target=target, total_time_limit=1e-9)
        for shown in (str(found), found._repr_html_().replace("&gt;", ">").replace("&lt;", "<"), batch[0].headline()):
            assert text in shown
        assert (found.to_dict()["target"], batch[0].target) == (text, text)
    stays = explainer.explain(row, target=mace.between(0.4, 0.45, "approve"))
    assert stays[0].prediction == "refuse"
    assert "a probability from 40% to 45% for “approve”" in " ".join(stays.letter().split())
    made = mace.audits.audit(
        explainer, pd.DataFrame(X[:3], columns=list(SPACE)), target=mace.at_least(0.7, "approve"), resamples=2
    )
    assert made.target == "P(approve) >= 0.7"


def test_a_regressor_has_no_label() -> None:
    X, y = data(None)
    explainer = mace.Explainer(Ridge().fit(X, y), SPACE)
    with pytest.raises(InvalidTarget, match=r"predicts numbers, .* Write mace.at_least\(3\)"):
        explainer.explain(X[0], target=mace.at_least(3, "approve"))
    assert str(mace.between(1, 2.5)) == "at least 1 and at most 2.5"


def test_numbers_of_numpy_are_numbers() -> None:
    assert mace.at_least(np.int64(3)) == mace.at_least(3)
    assert mace.between(np.float32(0.5), np.float64(1.5)) == mace.between(0.5, 1.5)


def test_a_label_before_the_number_is_pointed_out() -> None:
    with pytest.raises(InvalidTarget, match="The number comes first, then the label"):
        mace.at_least("approve", 0.7)  # type: ignore[arg-type]


def test_labels_in_another_order_than_0_and_1_are_asked_for() -> None:
    with pytest.raises(InvalidTarget, match=r"mace.at_least\(0.7, 1\) or mace.at_least\(0.7, 0\)"):
        of_label(mace.at_least(0.7), (1, 0))
    with pytest.raises(InvalidTarget, match="or of another of its 9 labels"):
        of_label(mace.at_least(0.7), tuple("abcdefghi"))


def test_a_certificate_of_0_1_without_the_label_is_still_about_the_second_class() -> None:
    model, X = labelled(("approve", "refuse"))
    row = X[int(np.argmin(model.predict_proba(X)[:, 1]))]
    made = mace.Explainer(model, SPACE).explain(row, target=mace.at_least(0.7, "refuse"), certify=True)[0].certificate
    assert made is not None
    written = made.to_dict()
    written["statement"]["target"]["label"] = None
    assert mace.verify(mace.Certificate.from_dict(written), model).valid
    written["statement"]["target"]["label"] = "approve"
    assert not mace.verify(mace.Certificate.from_dict(written), model).valid
