"""Random small pipelines with a question each, for the seeded samples in the tests and the campaign."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from random_problems import Case, _constraints, _distance, _row
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SelectKBest, VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
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
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
    TargetEncoder,
)
from sklearn.tree import DecisionTreeClassifier

import mace

MODELS = ("tree", "forest", "extra", "boosting", "hist", "logistic", "mlp", "pca logistic")
DISTANCES = ("l1", "l0", "linf", "mixed", "weighted", "l2")


def random_pipeline(seed: int, *, finite: bool = True) -> Case:
    """Return a random pipeline with a question; the same seed gives the same one."""
    rng = np.random.default_rng([seed, 99])
    family = MODELS[seed % len(MODELS)]
    space = _space(rng, finite=finite)
    rows = [_missing(rng, space, _row(rng, space)) for _ in range(150)]
    frame = space.frame_of([space.point(row) for row in rows])
    labels = _labels(rng, space, frame)
    model = _pipeline(rng, family, space)
    with warnings.catch_warnings():
        for kind in (ConvergenceWarning, UserWarning, RuntimeWarning):
            warnings.simplefilter("ignore", kind)
        model.fit(frame, labels)
    question: dict[str, Any] = {
        "distance": _distance(rng, DISTANCES[(seed // len(MODELS)) % len(DISTANCES)], space),
        "constraints": _constraints(rng, space),
    }
    if rng.random() < 0.3:
        question["target"] = rng.choice(model.classes_).item()
    return Case(family, model, space, rows[0], question)


def _space(rng: np.random.Generator, *, finite: bool) -> mace.FeatureSpace:
    features: dict[str, Any] = {}
    for index in range(int(rng.integers(2, 5))):
        kind = rng.choice(["integer", "ordinal", "categorical", "step", "binary", "number levels"])
        low = int(rng.integers(0, 5))
        name = f"{kind}_{index}"
        may_miss = bool(rng.random() < 0.4)
        if kind == "integer":
            features[name] = mace.integer(low, low + int(rng.integers(1, 7)), missing=may_miss)
        elif kind == "ordinal":
            features[name] = mace.ordinal([f"level {k}" for k in range(int(rng.integers(2, 5)))])
        elif kind == "categorical":
            features[name] = mace.categorical([f"kind {k}" for k in range(int(rng.integers(2, 5)))])
        elif kind == "binary":
            features[name] = mace.categorical([False, True])
        elif kind == "number levels":
            features[name] = mace.categorical([1, 4, 9])
        else:
            step = float(rng.choice([0.5, 0.1, 0.3])) if finite else None
            features[name] = mace.real(low, low + float(rng.choice([0.5, 1.5, 3])), step=step, missing=may_miss)
    return mace.FeatureSpace(features)


def _missing(rng: np.random.Generator, space: mace.FeatureSpace, row: dict[str, Any]) -> dict[str, Any]:
    return {name: float("nan") if space[name].missing and rng.random() < 0.25 else row[name] for name in row}


def _labels(rng: np.random.Generator, space: mace.FeatureSpace, frame: Any) -> Any:
    score = np.zeros(len(frame))
    for name, feature in space.items():
        numbers = (
            [feature.levels.index(v) for v in frame[name]] if hasattr(feature, "levels") else frame[name].fillna(9)
        )
        score += rng.normal() * np.asarray(numbers, dtype=float) / (np.std(np.asarray(numbers, dtype=float)) + 0.1)
    cuts = np.quantile(score, [0.5] if rng.random() < 0.6 else [0.3, 0.7])
    return np.array(["no", "yes", "perhaps"])[np.searchsorted(cuts, score)]


def _pipeline(rng: np.random.Generator, family: str, space: mace.FeatureSpace) -> Any:
    is_network = family in ("logistic", "mlp", "pca logistic")
    parts = []
    for name, feature in space.items():
        step = _levels(rng) if hasattr(feature, "levels") else _numbers(rng, feature, is_network=is_network)
        if (feature.missing and family not in ("tree", "hist")) or (feature.missing and rng.random() < 0.5):
            filler = SimpleImputer(
                strategy=str(rng.choice(["mean", "median", "most_frequent"])), add_indicator=bool(rng.random() < 0.5)
            )
            step = make_pipeline(filler, step)
        elif feature.missing:
            step = "passthrough"
        parts.append((name, step, [name]))
    before: list[Any] = [ColumnTransformer(parts, sparse_threshold=0 if family == "hist" else 0.3)]
    if rng.random() < 0.3 and not any(feature.missing for feature in space.values()):
        before.append(
            rng.choice([VarianceThreshold(), MaxAbsScaler(), SelectKBest(k="all"), StandardScaler(with_mean=False)])
        )
    if family == "pca logistic":
        before[0].set_params(sparse_threshold=0)
        before.append(
            PCA(1, whiten=bool(rng.random() < 0.5)) if rng.random() < 0.5 else TruncatedSVD(1, random_state=0)
        )
    return make_pipeline(*before, _model(rng, family))


def _levels(rng: np.random.Generator) -> Any:
    return [
        OneHotEncoder(handle_unknown="ignore"),
        OneHotEncoder(drop="first", sparse_output=False),
        OneHotEncoder(min_frequency=0.2, handle_unknown="infrequent_if_exist"),
        OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
        TargetEncoder(),
    ][int(rng.integers(5))]


def _numbers(rng: np.random.Generator, feature: Any, *, is_network: bool) -> Any:
    scalers = [StandardScaler(), MinMaxScaler(clip=True), RobustScaler(), MaxAbsScaler()]
    curves = [
        FunctionTransformer(np.log1p),
        make_pipeline(FunctionTransformer(np.sqrt), FunctionTransformer(np.negative)),
        PowerTransformer(),
        QuantileTransformer(n_quantiles=9, output_distribution=str(rng.choice(["normal", "uniform"]))),
        KBinsDiscretizer(3, encode=str(rng.choice(["onehot-dense", "ordinal"])), strategy="uniform"),
        Binarizer(threshold=1.2),
        make_pipeline(StandardScaler(), FunctionTransformer(np.square)),
    ]
    if isinstance(feature, mace.space.Integer):
        curves += [OneHotEncoder(handle_unknown="ignore")]
    choices = scalers if is_network and not isinstance(feature, mace.space.Integer) else scalers + curves
    return choices[int(rng.integers(len(choices)))]


def _model(rng: np.random.Generator, family: str) -> Any:
    seed = int(rng.integers(1000))
    match family:
        case "tree":
            return DecisionTreeClassifier(max_depth=int(rng.integers(2, 6)), random_state=seed)
        case "forest":
            return RandomForestClassifier(int(rng.integers(2, 7)), max_depth=4, random_state=seed)
        case "extra":
            return ExtraTreesClassifier(4, max_depth=4, random_state=seed)
        case "boosting":
            return GradientBoostingClassifier(n_estimators=3, max_depth=2, random_state=seed)
        case "hist":
            return HistGradientBoostingClassifier(
                max_iter=3, min_samples_leaf=5, random_state=seed, early_stopping=False
            )
        case "mlp":
            return MLPClassifier((3,), random_state=seed, max_iter=100)
        case _:
            return LogisticRegression()
