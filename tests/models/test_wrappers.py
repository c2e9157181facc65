"""Models around models: searches, thresholds, votes, calibrations; inside pipelines and around them."""

from __future__ import annotations

import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, SGDClassifier
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    RandomizedSearchCV,
    TunedThresholdClassifierCV,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, OneHotEncoder, RobustScaler, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import mace
from mace import FeatureSpace, UnsupportedModel, categorical, integer, ordinal, real
from mace.forms import Network, TreeEnsemble
from mace.models import read

SPACE = FeatureSpace(
    {
        "x": real(0, 4, step=0.25),
        "n": integer(0, 9),
        "ord": ordinal(["low", "mid", "high"]),
        "cat": categorical(["a", "b", "c"]),
    }
)


def data(classes: int, rows: int = 160) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(classes)
    frame = pd.DataFrame(
        {
            "x": rng.integers(0, 17, rows) / 4,
            "n": rng.integers(0, 10, rows),
            "ord": rng.choice(["low", "mid", "high"], rows),
            "cat": rng.choice(["a", "b", "c"], rows),
        }
    )
    score = (
        frame["x"] - frame["n"] / 3 + (frame["cat"] == "b") * 1.5 - (frame["ord"] == "low") + rng.normal(0, 0.4, rows)
    )
    return frame, np.array(["no", "yes", "zero"])[
        np.searchsorted(np.quantile(score, np.arange(1, classes) / classes), score)
    ]


def before(numbers: Any = None) -> ColumnTransformer:
    return ColumnTransformer(
        [("numbers", numbers or StandardScaler(), ["x", "n"]), ("levels", OneHotEncoder(), ["ord", "cat"])],
        sparse_threshold=0,
    )


def piped(model: Any, numbers: Any = None) -> Any:
    return make_pipeline(before(numbers), model)


FOREST = RandomForestClassifier(6, max_depth=4, random_state=0)
TREE = DecisionTreeClassifier(max_depth=4, random_state=0)
BOOSTING = GradientBoostingClassifier(n_estimators=4, max_depth=2, random_state=0)
HIST = HistGradientBoostingClassifier(max_iter=4, min_samples_leaf=5, early_stopping=False)
LOGISTIC = LogisticRegression()
STIFF = LogisticRegression(C=0.01)
MLP = MLPClassifier((3,), random_state=0, max_iter=80)

BINARY: dict[str, Any] = {
    "grid search around": GridSearchCV(piped(TREE), {"decisiontreeclassifier__max_depth": [2, 4]}, cv=2),
    "grid search inside": piped(GridSearchCV(LOGISTIC, {"C": [0.1, 1]}, cv=2)),
    "random search": RandomizedSearchCV(piped(FOREST), {"randomforestclassifier__n_estimators": [3, 4]}, n_iter=2, cv=2, random_state=0),
    "fixed threshold of a forest": FixedThresholdClassifier(piped(FOREST), threshold=0.3),
    "fixed threshold of a tied forest": FixedThresholdClassifier(piped(RandomForestClassifier(4, random_state=1)), threshold=0.5),
    "fixed threshold of a tree, first class": FixedThresholdClassifier(piped(TREE), threshold=0.7, pos_label="no"),
    "fixed threshold of boosting": FixedThresholdClassifier(piped(BOOSTING), threshold=0.35),
    "fixed score of boosting": FixedThresholdClassifier(piped(BOOSTING), threshold=-0.2, response_method="decision_function"),
    "fixed threshold of hist, first class": FixedThresholdClassifier(piped(HIST), threshold=0.6, pos_label="no"),
    "fixed threshold of logistic": FixedThresholdClassifier(piped(LOGISTIC), threshold=0.25),
    "fixed threshold of logistic, first class": FixedThresholdClassifier(piped(LOGISTIC), threshold=0.25, pos_label="no"),
    "fixed score of svc": FixedThresholdClassifier(piped(LinearSVC()), threshold=0.4),
    "fixed score of svc, first class": FixedThresholdClassifier(piped(LinearSVC()), threshold=0.4, pos_label="no"),
    "fixed threshold of mlp": FixedThresholdClassifier(piped(MLP), threshold=0.65),
    "fixed threshold of huber": FixedThresholdClassifier(piped(SGDClassifier(loss="modified_huber", random_state=0)), threshold=0.7),
    "automatic threshold": FixedThresholdClassifier(piped(LOGISTIC)),
    "tuned threshold": piped(TunedThresholdClassifierCV(LOGISTIC, scoring="balanced_accuracy", cv=3)),
    "tuned threshold around": TunedThresholdClassifierCV(piped(FOREST), scoring="balanced_accuracy", cv=3),
    "soft votes of trees": VotingClassifier([("a", piped(TREE)), ("b", piped(FOREST, MinMaxScaler()))], voting="soft", weights=[2, 1]),
    "hard votes of trees": piped(
        VotingClassifier([(str(k), DecisionTreeClassifier(max_depth=3, max_features=2, random_state=k)) for k in range(4)])
    ),
    "hard votes with weights": VotingClassifier(
        [(str(k), piped(DecisionTreeClassifier(max_depth=3, max_features=2, random_state=k))) for k in range(3)], weights=[2, 1, 1]
    ),
    "bagged trees": piped(BaggingClassifier(DecisionTreeClassifier(max_depth=3), 5, max_features=0.7, random_state=0)),
    "one against the rest of two": OneVsRestClassifier(piped(LOGISTIC)),
    "one against the rest of two, forest": OneVsRestClassifier(piped(FOREST)),
    "calibrated forest": CalibratedClassifierCV(piped(FOREST), ensemble=False, cv=3),
    "calibrated boosting": piped(CalibratedClassifierCV(BOOSTING, ensemble=False, cv=3)),
    "isotonic forest": CalibratedClassifierCV(piped(FOREST), ensemble=False, method="isotonic", cv=3),
    "isotonic hist": CalibratedClassifierCV(piped(HIST), ensemble=False, method="isotonic", cv=3),
    "isotonic logistic": CalibratedClassifierCV(piped(LOGISTIC), ensemble=False, method="isotonic", cv=3),
    "isotonic mlp": piped(CalibratedClassifierCV(MLP, ensemble=False, method="isotonic", cv=3)),
    "calibrated svc": CalibratedClassifierCV(piped(LinearSVC()), ensemble=False, cv=3),
    "calibrated mlp": CalibratedClassifierCV(piped(MLP), ensemble=False, cv=3),
    "threshold of a calibration": FixedThresholdClassifier(
        CalibratedClassifierCV(piped(LinearSVC()), ensemble=False, cv=3), threshold=0.4
    ),
    "search of thresholds": GridSearchCV(FixedThresholdClassifier(piped(TREE)), {"threshold": [0.3, 0.6]}, cv=2),
    "calibrated svcs": CalibratedClassifierCV(piped(LinearSVC()), cv=3),
    "calibrated logistics, inside": piped(CalibratedClassifierCV(LOGISTIC, cv=3)),
    "temperatures of svcs": CalibratedClassifierCV(piped(LinearSVC()), method="temperature", cv=2),
    "isotonic svcs": CalibratedClassifierCV(piped(LinearSVC()), method="isotonic", cv=2),
    "calibrated trees": CalibratedClassifierCV(piped(TREE), cv=2),
    "calibrated boostings": CalibratedClassifierCV(piped(BOOSTING), cv=2),
    "isotonic trees": CalibratedClassifierCV(piped(TREE), method="isotonic", cv=2),
    "soft votes of logistics": VotingClassifier(
        [("a", piped(LOGISTIC)), ("b", piped(STIFF, MinMaxScaler())), ("c", piped(LOGISTIC, RobustScaler()))],
        voting="soft", weights=[1, 2, 0.5],
    ),
    "soft votes of linear models, one clipped": VotingClassifier(
        [("a", piped(LOGISTIC)), ("b", piped(SGDClassifier(loss="modified_huber", random_state=0)))], voting="soft"
    ),
    "soft votes of a logistic and an mlp": VotingClassifier([("a", piped(LOGISTIC)), ("b", piped(MLP))], voting="soft"),
    "soft votes of a logistic and a forest": VotingClassifier([("a", piped(LOGISTIC)), ("b", piped(FOREST))], voting="soft"),
    "soft votes of boosting and a tree": piped(VotingClassifier([("a", BOOSTING), ("b", TREE)], voting="soft", weights=[3, 1])),
    "threshold of soft votes": FixedThresholdClassifier(
        VotingClassifier([("a", piped(LOGISTIC)), ("b", piped(STIFF))], voting="soft"), threshold=0.3
    ),
    "threshold of soft votes, first class": FixedThresholdClassifier(
        VotingClassifier([("a", piped(LOGISTIC)), ("b", piped(STIFF))], voting="soft"), threshold=0.3, pos_label="no"
    ),
    "bagged logistics": piped(BaggingClassifier(LOGISTIC, 4, max_features=0.7, random_state=0)),
    "bagged svcs": piped(BaggingClassifier(LinearSVC(), 4, random_state=0)),
    "hard votes of linear models": VotingClassifier([("a", piped(LOGISTIC)), ("b", piped(STIFF)), ("c", piped(LinearSVC()))]),
    "hard votes of a forest and linear models": VotingClassifier(
        [("a", piped(LOGISTIC)), ("b", piped(FOREST)), ("c", piped(TREE))], weights=[1.5, 2, 1]
    ),
    "hard votes of two forests, tied": VotingClassifier(
        [("a", piped(RandomForestClassifier(4, random_state=1))), ("b", piped(BOOSTING))]
    ),
}  # fmt: skip

SEVERAL: dict[str, Any] = {
    "one against the rest, svc": OneVsRestClassifier(piped(LinearSVC())),
    "one against the rest, numbers": OneVsRestClassifier(make_pipeline(StandardScaler(), SGDClassifier(random_state=0))),
    "one against the rest, inside": piped(OneVsRestClassifier(LOGISTIC)),
    "one against the rest, boosting": OneVsRestClassifier(piped(BOOSTING)),
    "one against the rest, forest": OneVsRestClassifier(piped(RandomForestClassifier(4, max_depth=3, random_state=0))),
    "one against the rest, tree": piped(OneVsRestClassifier(DecisionTreeClassifier(max_depth=3))),
    "soft votes": piped(VotingClassifier([("a", FOREST), ("b", ExtraTreesClassifier(5, random_state=0))], voting="soft")),
    "hard votes": VotingClassifier(
        [(str(k), piped(DecisionTreeClassifier(max_depth=2, random_state=k, max_features=2))) for k in range(4)]
    ),
    "bagging": BaggingClassifier(DecisionTreeClassifier(max_depth=4), 4, max_samples=8, random_state=0),
    "hard votes of linear models": VotingClassifier([("a", piped(LOGISTIC)), ("b", piped(STIFF)), ("c", piped(LinearSVC()))]),
    "hard votes of several kinds": piped(VotingClassifier([("a", LOGISTIC), ("b", FOREST), ("c", TREE)], weights=[1, 1, 2])),
}  # fmt: skip


def fitted(model: Any, classes: int, *, numbers_only: bool = False) -> tuple[Any, pd.DataFrame, FeatureSpace]:
    frame, labels = data(classes)
    space = SPACE
    if numbers_only:
        frame, space = frame[["x", "n"]], FeatureSpace({name: SPACE[name] for name in ("x", "n")})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clone(model).fit(frame, labels), frame, space


def check(model: Any, frame: pd.DataFrame, space: FeatureSpace) -> None:
    explainer = mace.Explainer(model, space)
    for row in range(2):
        truth = explainer.explain(frame.iloc[row], solver="enumerate")
        found = explainer.explain(frame.iloc[row])
        assert found.status == truth.status, (row, found.reason)
        if truth:
            assert found[0].distance == truth[0].distance
            assert found[0].lower <= truth[0].distance
            flipped = pd.DataFrame([found[0].values])
            assert model.predict(flipped)[0] == found[0].prediction != model.predict(frame.iloc[[row]])[0]


@pytest.mark.parametrize("name", BINARY)
def test_a_wrapped_binary_model_is_explained_as_brute_force_does(name: str) -> None:
    check(*fitted(BINARY[name], 2))


@pytest.mark.parametrize("name", SEVERAL)
def test_a_wrapped_model_of_several_classes_is_explained_as_brute_force_does(name: str) -> None:
    check(*fitted(SEVERAL[name], 3, numbers_only=name in ("bagging", "one against the rest, numbers")))


def test_a_search_of_a_plain_model_is_read_as_that_model() -> None:
    check(*fitted(GridSearchCV(HIST, {"max_iter": [3, 4]}, cv=2), 2, numbers_only=True))


@pytest.mark.parametrize(
    "name", ["fixed threshold of boosting", "fixed threshold of logistic", "isotonic hist", "isotonic forest"]
)
def test_beyond_the_stated_band_the_form_decides_as_the_model(name: str) -> None:
    model, _, _ = fitted(BINARY[name], 2)
    space = SPACE.replace(x=real(0, 4))
    reading = read(model, space)
    form = reading.form
    assert isinstance(form, TreeEnsemble | Network)
    rng = np.random.default_rng(0)
    points = [
        (float(rng.uniform(0, 4)), int(rng.integers(10)), int(rng.integers(3)), int(rng.integers(3)))
        for _ in range(300)
    ]
    for point, code in zip(points, reading.ask(points), strict=True):
        (score,) = form.exact_scores(point)
        band = (
            form.rounding
            if isinstance(form, TreeEnsemble)
            else form.rounding(tuple((Fraction(v), Fraction(v)) for v in point))
        )
        assert abs(score) <= band or (score > 0) == (code == 1)
        assert band < Fraction(1, 10**6)


@pytest.mark.slow
def test_means_of_regressors_behind_pipelines() -> None:
    frame, _ = data(2)
    target = frame["x"] * 2 - frame["n"]
    forest = RandomForestRegressor(4, max_depth=3, random_state=0)
    for model, lane in (
        (VotingRegressor([("a", piped(Ridge())), ("b", piped(LinearRegression(), RobustScaler()))]), "network"),
        (piped(BaggingRegressor(Ridge(), 3, max_features=0.6, random_state=0)), "network"),
        (VotingRegressor([("a", piped(Ridge())), ("b", piped(forest))], weights=[1, 3]), "milp"),
        (VotingRegressor([("a", piped(DecisionTreeRegressor(max_depth=3))), ("b", piped(forest))]), "trees"),
        (piped(BaggingRegressor(DecisionTreeRegressor(max_depth=3), 3, max_features=0.6, random_state=0)), "trees"),
        (
            piped(VotingRegressor([("a", GradientBoostingRegressor(n_estimators=4, max_depth=2)), ("b", forest)])),
            "trees",
        ),
    ):
        model.fit(frame, target)
        explainer = mace.Explainer(model, SPACE)
        goal = float(np.quantile(model.predict(frame), 0.9))
        row = frame.iloc[int(np.argmin(model.predict(frame)))]
        for wanted in (mace.at_least(goal), mace.between(goal - 0.5, goal)):
            found, truth = explainer.explain(row, wanted), explainer.explain(row, wanted, solver="enumerate")
            assert found.status == truth.status
            assert found.solver.startswith(lane)
            if truth:
                assert found[0].distance == truth[0].distance
                assert goal - 0.5 <= model.predict(pd.DataFrame([found[0].values]))[0]


@pytest.mark.parametrize(
    ("model", "classes", "message"),
    [
        (
            CalibratedClassifierCV(piped(MLP), ensemble=True, cv=2),
            2,
            r"'sigmoid', ensemble=True\) of Pipeline.*Fit it with ensemble=False",
        ),
        (
            VotingClassifier([("a", piped(SGDClassifier(loss="log_loss"))), ("b", piped(FOREST))], voting="soft"),
            3,
            r"VotingClassifier\(voting='soft'\) of Pipeline: its probabilities are neither shares of trees nor one softmax",
        ),
        (
            VotingClassifier([("a", piped(VotingClassifier([("x", LOGISTIC), ("y", FOREST)])))]),
            2,
            r"VotingClassifier\(voting='hard'\) of Pipeline: it is itself made of several models",
        ),
        (
            VotingClassifier(
                [("a", piped(FixedThresholdClassifier(LOGISTIC, threshold=0.4))), ("b", piped(FOREST))], voting="soft"
            ),
            2,
            "of Pipeline: its probability is neither a share of trees nor one sigmoid",
        ),
        (
            OneVsRestClassifier(piped(MLP)),
            3,
            "OneVsRestClassifier of Pipeline: its models are compared as probabilities",
        ),
        (GridSearchCV(TREE, {"max_depth": [2]}, refit=False, cv=2), 2, r"refit=False\) has no best estimator"),
        (FixedThresholdClassifier(piped(LOGISTIC), threshold=1.0), 2, "not told from 0 or 1 but by rounding"),
        (
            FixedThresholdClassifier(piped(LOGISTIC, FunctionTransformer(np.sin)), threshold=0.4),
            2,
            "np.sin is not known",
        ),
    ],
)
def test_a_wrapper_that_is_not_exact_is_refused_with_the_reason(model: Any, classes: int, message: str) -> None:
    model, _, space = fitted(model, classes, numbers_only=isinstance(model, GridSearchCV))
    with pytest.raises(UnsupportedModel, match=message):
        read(model, space)
