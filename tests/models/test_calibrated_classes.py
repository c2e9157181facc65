"""Calibrations of three classes: the form decides as the model, answers are those of brute force, the rest is refused by name."""

from __future__ import annotations

import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from random_composites import _row, _space, against_brute_force
from random_problems import Case
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    AdaBoostClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

import mace
from mace import UnsupportedModel
from mace.forms import Composite, Outcomes, TreeEnsemble, clearance
from mace.forms.form import box_at
from mace.models import read

BASES: dict[str, Any] = {
    "logistic": LogisticRegression(),
    "scaled svc": make_pipeline(StandardScaler(), LinearSVC()),
    "forest": RandomForestClassifier(4, max_depth=3, random_state=0),
    "boosting": GradientBoostingClassifier(n_estimators=3, max_depth=2, random_state=0),
    "hist": HistGradientBoostingClassifier(max_iter=3, min_samples_leaf=5),
}
TREES: dict[str, Any] = {
    "tree": DecisionTreeClassifier(max_depth=4, random_state=0),
    "tree behind a scaler": make_pipeline(StandardScaler(), ExtraTreeClassifier(max_depth=3, random_state=0)),
}
BASES |= TREES
CASES = [(base, method) for base in BASES if base not in TREES for method in ("sigmoid", "isotonic")] + [
    ("logistic", "temperature")
]


def case_of(base: str, method: str, seed: int, *, finite: bool = True, classes: int = 3) -> Case:
    rng = np.random.default_rng([seed, 5])
    space = _space(rng, finite)
    frame = pd.DataFrame([_row(space, rng) for _ in range(150)])
    columns = np.asarray(mace.Encoder(space).fit_transform(frame))
    score = columns @ rng.normal(size=columns.shape[1]) + rng.normal(0, 0.5, 150)
    labels = np.array(["no", "yes", "maybe"])[np.searchsorted(np.quantile(score, [0.33, 0.66][-classes + 1 :]), score)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = CalibratedClassifierCV(BASES[base], method=method, ensemble=base in TREES, cv=3 if base in TREES else 2)
        fitted = make_pipeline(mace.Encoder(space), model).fit(frame, labels)
    return Case(base, fitted, space, _row(space, rng), {"distance": str(rng.choice(["l0", "l1", "linf"]))})


@pytest.mark.parametrize(("base", "method"), CASES)
def test_beyond_its_band_the_form_decides_as_the_model(base: str, method: str) -> None:
    case = case_of(base, method, 1, finite=False)
    reading = read(case.model, case.space)
    form: Any = reading.form
    rng = np.random.default_rng(0)
    points = [case.space.point(_row(case.space, rng)) for _ in range(300)]
    sure = 0
    for point, code in zip(points, reading.ask(points), strict=True):
        scores = form.exact_scores(point)
        ways = Outcomes(frozenset([code])).alternatives(3, ties_last=False)
        bound = form.rounding if isinstance(form.rounding, Fraction) else form.rounding(box_at(point))
        assert clearance(scores, ways) >= -bound
        sure += clearance(scores, ways) > bound
    assert sure > (100 if isinstance(form, Composite) else 280)


@pytest.mark.parametrize("seed", [0, 2])
@pytest.mark.parametrize(("base", "method"), CASES)
def test_the_answer_is_that_of_brute_force(base: str, method: str, seed: int) -> None:
    assert against_brute_force(case_of(base, method, seed)) is None


@pytest.mark.parametrize(
    ("base", "method"), [("logistic", "sigmoid"), ("forest", "sigmoid"), ("scaled svc", "isotonic")]
)
def test_its_certificate_is_valid(base: str, method: str) -> None:
    case = case_of(base, method, 0)
    found = mace.Explainer(case.model, case.space).explain(case.row, **case.question, certify=True, time_limit=60)
    assert found.status == "optimal"
    assert mace.verify(found[0].certificate, case.model).outcome == "valid"


TREE_CASES = [
    (base, method, classes) for base in TREES for method in ("sigmoid", "isotonic", "temperature") for classes in (2, 3)
]


@pytest.mark.parametrize(("base", "method", "classes"), TREE_CASES)
def test_the_mean_of_calibrated_trees_is_a_forest_of_what_the_library_says(
    base: str, method: str, classes: int
) -> None:
    case = case_of(base, method, 1, finite=False, classes=classes)
    reading = read(case.model, case.space)
    form: Any = reading.form
    assert isinstance(form, TreeEnsemble)
    assert len(form.roots) == 3
    assert reading.rate is not None
    rng = np.random.default_rng(0)
    points = [case.space.point(_row(case.space, rng)) for _ in range(200)]
    for code in range(classes):
        for point, rate in zip(points, reading.rate(points, code), strict=True):
            assert abs(form.exact_scores(point)[code] / 3 - rate) <= form.rounding
    ways = [Outcomes(frozenset([code])).alternatives(classes, ties_last=False) for code in range(classes)]
    for point, code in zip(points, reading.ask(points), strict=True):
        assert clearance(form.exact_scores(point), ways[int(code)]) >= -form.rounding


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(("base", "method", "classes"), TREE_CASES)
def test_answers_of_calibrated_trees_are_those_of_brute_force(base: str, method: str, classes: int, seed: int) -> None:
    case = case_of(base, method, seed, classes=classes)
    assert against_brute_force(case) is None
    found = mace.Explainer(case.model, case.space).explain(case.row, **case.question, certify=True, time_limit=60)
    assert found.status in ("optimal", "infeasible", "reached")
    for certificate in [each.certificate for each in found] or [found.certificate]:
        assert certificate is None or mace.verify(certificate, case.model).outcome == "valid"


@pytest.mark.parametrize("classes", [2, 3])
def test_a_probability_of_calibrated_trees_is_a_target(classes: int) -> None:
    case = case_of("tree", "isotonic", 0, classes=classes)
    best = 0.0
    for label in case.model.classes_:
        found = mace.Explainer(case.model, case.space).explain(case.row, target=mace.at_least(0.6, label))
        if found:
            frame = case.space.frame_of([case.space.point(found[0].values)])
            best = case.model.predict_proba(frame)[0, list(case.model.classes_).index(label)]
            assert best >= 0.6
            assert found[0].score == pytest.approx(best)
    assert best


def test_a_pipeline_inside_is_read_over_the_frame() -> None:
    rng = np.random.default_rng(3)
    space = mace.FeatureSpace({"a": mace.real(-2, 2), "b": mace.integer(0, 9)})
    frame = pd.DataFrame([_row(space, rng) for _ in range(150)])
    labels = np.searchsorted([0.3, 1.2], frame.a + frame.b / 5)
    model = CalibratedClassifierCV(BASES["scaled svc"], ensemble=False, cv=2).fit(frame, labels)
    found = mace.Explainer(model, space).explain(frame.iloc[0], certify=True, time_limit=60)
    assert found.status == "optimal"
    assert mace.verify(found[0].certificate, model).outcome == "valid"


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            CalibratedClassifierCV(AdaBoostClassifier(n_estimators=2), ensemble=False, cv=2),
            "of AdaBoostClassifier with 3 classes",
        ),
        (CalibratedClassifierCV(LinearSVC(C=100), ensemble=False, cv=2), "are not told from 1 or 0"),
    ],
)
def test_what_is_not_read_is_refused_by_name(model: Any, message: str) -> None:
    X = np.random.default_rng(0).random((120, 2))
    high = 1000 if "not told" in message else 1
    with pytest.raises(UnsupportedModel, match=message):
        read(
            model.fit(X, np.searchsorted([0.7, 1.2], X.sum(axis=1))),
            mace.FeatureSpace({"a": mace.real(0, high), "b": mace.real(0, 1)}),
        )
