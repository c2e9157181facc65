"""Real pipelines on real data: fitted, saved with skops, loaded, explained; every answer flips the pipeline on the original frame."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.feature_selection import SelectFromModel, SelectKBest, VarianceThreshold, f_classif
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, RidgeClassifier, SGDClassifier
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV, StratifiedKFold, TunedThresholdClassifierCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
    TargetEncoder,
)
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

import mace
from mace.testing import check_model

pytestmark = pytest.mark.filterwarnings("ignore:Found unknown categories:UserWarning")

PAPER, TOYS = ("german", "adult", "compas"), ("breast cancer", "iris", "wine")


@cache
def data(name: str) -> tuple[pd.DataFrame, Any, mace.FeatureSpace]:
    """Return some hundred rows of a data set, its labels and its space."""
    if name.endswith(" with gaps"):
        return with_gaps(*data(name.removesuffix(" with gaps")))
    if name in PAPER:
        found = mace.datasets.load(name)
        chosen = np.random.default_rng(0).permutation(len(found.frame))[:600]
        return found.frame.iloc[chosen].reset_index(drop=True), np.asarray(found.labels)[chosen], found.space
    bunch = {"breast cancer": load_breast_cancer, "iris": load_iris, "wine": load_wine}[name](as_frame=True)
    frame = bunch.data.iloc[:, :8]
    return frame, np.asarray(bunch.target_names)[bunch.target], mace.FeatureSpace.from_frame(frame)


def with_gaps(
    frame: pd.DataFrame, labels: Any, space: mace.FeatureSpace
) -> tuple[pd.DataFrame, Any, mace.FeatureSpace]:
    """Return the same data with a tenth of the numbers missing."""
    numbers = [name for name, feature in space.items() if not hasattr(feature, "levels")]
    gaps = np.random.default_rng(1).random((len(frame), len(numbers))) < 0.1
    frame = frame.astype(dict.fromkeys(numbers, float))
    frame[numbers] = frame[numbers].mask(gaps)
    return frame, labels, space.replace(**{name: replace(space[name], missing=True) for name in numbers})


def hot(**settings: Any) -> Any:
    return OneHotEncoder(handle_unknown="ignore", **settings)


def split(numbers: Any, levels: Any, **settings: Any) -> ColumnTransformer:
    """Return one step for the numbers and one for the levels."""
    return ColumnTransformer(
        [
            ("numbers", numbers, make_column_selector(dtype_include=np.number)),
            ("levels", levels, make_column_selector(dtype_exclude=np.number)),
        ],
        **settings,
    )


def codes() -> Any:
    return OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)


FOREST = RandomForestClassifier(8, max_depth=6, random_state=0)
TREE = DecisionTreeClassifier(max_depth=6, random_state=0)
BOOST = GradientBoostingClassifier(n_estimators=8, random_state=0)
HIST = HistGradientBoostingClassifier(max_iter=8, early_stopping=False)
LOGISTIC = LogisticRegression(max_iter=300)
MLP = MLPClassifier((6,), random_state=0, max_iter=80)

PIPELINES: dict[str, Any] = {
    "standard, one-hot, forest": make_pipeline(split(StandardScaler(), hot()), FOREST),
    "minmax, one-hot, tree": make_pipeline(split(MinMaxScaler(clip=True), hot(drop="if_binary")), TREE),
    "robust, ordinal, boosting": make_pipeline(split(RobustScaler(), codes()), BOOST),
    "quantile, one-hot, extra trees": make_pipeline(
        split(QuantileTransformer(n_quantiles=50), hot(min_frequency=0.05)), ExtraTreesClassifier(8, max_depth=6, random_state=0)
    ),
    "log, target, hist": make_pipeline(
        split(FunctionTransformer(np.log1p), TargetEncoder(cv=StratifiedKFold(3))), HIST
    ),
    "bins, one-hot, ada": make_pipeline(
        split(KBinsDiscretizer(6, strategy="uniform", encode="onehot-dense"), hot(sparse_output=False)),
        AdaBoostClassifier(n_estimators=6, random_state=0),
    ),
    "imputed, one-hot, bagging": make_pipeline(
        split(make_pipeline(SimpleImputer(), StandardScaler()), hot()),
        BaggingClassifier(DecisionTreeClassifier(max_depth=5), 5, random_state=0),
    ),
    "selected, forest, threshold": FixedThresholdClassifier(
        make_pipeline(split(StandardScaler(), hot()), SelectFromModel(ExtraTreesClassifier(10, random_state=0)), FOREST), threshold=0.4
    ),
    "standard, one-hot, logistic": make_pipeline(split(StandardScaler(), hot()), LOGISTIC),
    "robust, one-hot, svc, calibrated": CalibratedClassifierCV(
        make_pipeline(split(RobustScaler(), hot()), LinearSVC()), ensemble=False, cv=3
    ),
    "minmax, one-hot, mlp": make_pipeline(split(MinMaxScaler(), hot()), MLP),
    "standard, svd, logistic": make_pipeline(split(StandardScaler(), hot()), TruncatedSVD(6, random_state=0), LOGISTIC),
    "standard, svd, tree": make_pipeline(
        split(StandardScaler(), hot()), TruncatedSVD(4, random_state=0), DecisionTreeClassifier(max_depth=4, random_state=0)
    ),
    "search of depths": GridSearchCV(
        make_pipeline(split(MaxAbsScaler(), codes()), TREE), {"decisiontreeclassifier__max_depth": [3, 6]}, cv=2
    ),
    "tuned threshold": TunedThresholdClassifierCV(
        make_pipeline(split(StandardScaler(), hot()), LOGISTIC), scoring="balanced_accuracy", cv=3
    ),
    "votes of trees": VotingClassifier(
        [("tree", make_pipeline(split(StandardScaler(), hot()), TREE)), ("forest", make_pipeline(split("passthrough", codes()), FOREST))],
        voting="soft",
    ),
    "isotonic forest": CalibratedClassifierCV(
        make_pipeline(split(StandardScaler(), hot()), FOREST), method="isotonic", ensemble=False, cv=3
    ),
    "calibrated svcs": CalibratedClassifierCV(make_pipeline(split(StandardScaler(), hot()), LinearSVC()), cv=3),
    "hard votes of a tree and linear models": VotingClassifier(
        [("svc", make_pipeline(split(RobustScaler(), hot()), LinearSVC())), ("tree", make_pipeline(split("passthrough", codes()), TREE)),
         ("logistic", make_pipeline(split(StandardScaler(), hot()), LOGISTIC))],
    ),
}  # fmt: skip

NUMBERS: dict[str, Any] = {
    "standard, forest": make_pipeline(StandardScaler(), FOREST),
    "quantile normal, tree": make_pipeline(QuantileTransformer(n_quantiles=40, output_distribution="normal"), TREE),
    "pca, logistic": make_pipeline(StandardScaler(), PCA(3), LOGISTIC),
    "quantile, logistic": make_pipeline(QuantileTransformer(n_quantiles=6), LOGISTIC),
    "quantile, mlp": make_pipeline(QuantileTransformer(n_quantiles=4), MLP),
    "pca, forest": make_pipeline(StandardScaler(), PCA(3), RandomForestClassifier(6, max_depth=3, random_state=0)),
    "variance, hist": make_pipeline(VarianceThreshold(0.01), MinMaxScaler(), HIST),
    "k best, ridge": make_pipeline(StandardScaler(), SelectKBest(f_classif, k=3), RidgeClassifier()),
    "log, boosting": make_pipeline(FunctionTransformer(np.log1p), BOOST),
    "scorecard": make_pipeline(KBinsDiscretizer(5, strategy="uniform"), LOGISTIC),
    "codes of bins, ridge": make_pipeline(
        StandardScaler(),
        KBinsDiscretizer(6, encode="ordinal", strategy="kmeans", random_state=0),
        MinMaxScaler(),
        RidgeClassifier(),
    ),
    "thresholds, svc": make_pipeline(StandardScaler(), Binarizer(), LinearSVC()),
    "one against the rest": OneVsRestClassifier(make_pipeline(StandardScaler(), SGDClassifier(random_state=0))),
}

WITH_GAPS: dict[str, Any] = {
    "imputed, one-hot, logistic": make_pipeline(
        split(make_pipeline(SimpleImputer(), StandardScaler()), hot()), LOGISTIC
    ),
    "imputed with flags, mlp": make_pipeline(
        split(make_pipeline(SimpleImputer(strategy="median", add_indicator=True), MinMaxScaler()), hot()), MLP
    ),
    "imputed scorecard": make_pipeline(
        split(make_pipeline(SimpleImputer(), KBinsDiscretizer(5, strategy="uniform")), hot()), LOGISTIC
    ),
    "imputed, svc, threshold": FixedThresholdClassifier(
        make_pipeline(split(make_pipeline(SimpleImputer(), RobustScaler()), hot()), LinearSVC()), threshold=0.2
    ),
}
GAPS = ("german with gaps", "adult with gaps", "wine with gaps")

MATRIX = [(d, p) for d in PAPER for p in PIPELINES] + [(d, p) for d in TOYS for p in NUMBERS]
MATRIX += [(d, p) for d in GAPS for p in WITH_GAPS if not (d == "wine with gaps" and "threshold" in p)]


def fitted(name: str, which: str) -> tuple[Any, pd.DataFrame, mace.FeatureSpace]:
    from sklearn.base import clone

    frame, labels, space = data(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = clone((PIPELINES | NUMBERS | WITH_GAPS)[which]).fit(frame, labels)
    return model, frame, space


def test_the_matrix_is_as_large_as_it_claims() -> None:
    assert len(MATRIX) >= 60


@pytest.mark.parametrize(("name", "which"), MATRIX, ids=[f"{d}: {p}" for d, p in MATRIX])
def test_fit_save_load_explain(name: str, which: str, tmp_path: Path) -> None:
    fresh, frame, space = fitted(name, which)
    file = tmp_path / "model.skops"
    skops.io.dump(fresh, file)
    model = mace.load_model(file)
    explainer = mace.Explainer(model, space)
    constraints = [mace.fixed("sex")] if "sex" in space else []
    for position in (0, 7):
        row = frame.iloc[[position]]
        explanation = explainer.explain(row, constraints=constraints, time_limit=10, accuracy=1e-4)
        assert explanation.prediction == fresh.predict(row)[0]
        assert explanation.status in ("optimal", "feasible", "infeasible"), explanation.reason
        for best in explanation:
            answer = row.copy()
            for change in best.changes:
                answer[change.feature] = pd.Series([change.after], index=row.index)
            assert fresh.predict(answer)[0] == best.prediction != explanation.prediction
            assert space.point(answer) == space.point(best.values)
            assert not constraints or best.values["sex"] == row["sex"].iloc[0]
            assert 0 <= best.lower <= best.distance


@pytest.mark.parametrize(("name", "which"), MATRIX[::7], ids=[f"{d}: {p}" for d, p in MATRIX[::7]])
def test_what_is_read_is_what_the_pipeline_computes(name: str, which: str) -> None:
    model, frame, space = fitted(name, which)
    found = check_model(model, space, frame.iloc[:40], count=60)
    assert found.decided > 0.4 * found.rows
