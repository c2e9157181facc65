"""Random small tree ensembles from every library, for the tree lane's seeded samples and campaign."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
from random_problems import Case, _constraints, _row
from sklearn.ensemble import (
    AdaBoostClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import mace

SKLEARN = (
    "tree", "forest", "ties", "extra", "boosting", "hist", "ada", "tree regressor", "forest regressor", "boosting regressor",
    "hist regressor",
)  # fmt: skip
BOOSTERS = tuple(name for name in ("xgboost", "lightgbm", "catboost") if importlib.util.find_spec(name))
FAMILIES = (*SKLEARN, *BOOSTERS, *(f"{name} regressor" for name in BOOSTERS))
DISTANCES = ("l0", "l1", "linf", "l2", "mixed", "weighted")
TAKES_MISSING = {
    "tree",
    "forest",
    "extra",
    "hist",
    "hist regressor",
    "tree regressor",
    "forest regressor",
    "xgboost",
    "lightgbm",
}


def random_ensemble(seed: int, *, finite: bool = True) -> Case:
    """Return a random tree ensemble with a question; the same seed gives the same one."""
    rng = np.random.default_rng([seed, 77])
    family = FAMILIES[seed % len(FAMILIES)]
    space = _space(rng, finite=finite, missing=family in TAKES_MISSING)
    rows = [_with_missing(rng, space, _row(rng, space)) for _ in range(150)]
    frame = space.frame_of([space.point(row) for row in rows])
    model = _fitted(rng, family, space, frame)
    kind = DISTANCES[(seed // len(FAMILIES)) % len(DISTANCES)]
    question: dict[str, Any] = {"distance": _distance(rng, kind, space), "constraints": _constraints(rng, space)}
    if "regressor" in family:
        predictions = np.sort(model.predict(frame))
        low, high = predictions[int(rng.integers(40, 90))], predictions[int(rng.integers(100, 150))]
        question["target"] = mace.between(float(low), float(high)) if rng.random() < 0.5 else mace.at_least(float(high))
    elif rng.random() < 0.3:
        question["target"] = rng.choice(model.classes_).item()
    elif rng.random() < 0.3 and len(model.classes_) == 2:
        question["target"] = mace.at_least(round(float(rng.uniform(0.55, 0.8)), 2))
    if rng.random() < 0.3:
        question["count"] = 3
        question["diversity"] = mace.differ(features=int(rng.integers(1, 3)), by=float(rng.choice([0, 0.01, 0.2])))
    return Case(family, model, space, rows[0], question)


def _space(rng: np.random.Generator, *, finite: bool, missing: bool) -> mace.FeatureSpace:
    features: dict[str, Any] = {}
    for index in range(int(rng.integers(2, 5))):
        kind = str(rng.choice(["integer", "ordinal", "categorical", "step", "real", "binary", "wide"]))
        low = int(rng.integers(-5, 5))
        name = f"{kind}_{index}"
        may_miss = bool(missing and rng.random() < 0.3)
        if kind == "integer":
            features[name] = mace.integer(low, low + int(rng.integers(0, 7)), missing=may_miss)
        elif kind == "wide":
            features[name] = mace.integer(2**24 - 2, 2**24 + int(rng.integers(2, 9)))
        elif kind == "ordinal":
            features[name] = mace.ordinal([f"level {k}" for k in range(int(rng.integers(1, 5)))])
        elif kind == "categorical":
            features[name] = mace.categorical([f"kind {k}" for k in range(int(rng.integers(1, 6)))])
        elif kind == "binary":
            features[name] = mace.categorical([False, True])
        elif kind == "step" or finite:
            step = float(rng.choice([0.5, 0.1, 0.3]))
            features[name] = mace.real(low, low + step * int(rng.integers(1, 7)), step=step, missing=may_miss)
        else:
            features[name] = mace.real(low, low + float(rng.uniform(0.5, 9)), missing=may_miss)
    return mace.FeatureSpace(features)


def _with_missing(rng: np.random.Generator, space: mace.FeatureSpace, row: dict[str, Any]) -> dict[str, Any]:
    return {name: float("nan") if space[name].missing and rng.random() < 0.2 else value for name, value in row.items()}


def _distance(rng: np.random.Generator, kind: str, space: mace.FeatureSpace) -> Any:
    if kind == "mixed":
        return mace.Distance(l0=0.25, l1=0.25, linf=0.5)
    if kind == "weighted":
        weights = {name: float(rng.choice([0.5, 1.0, 3.0])) for name in space}
        return mace.Distance(**{str(rng.choice(["l0", "l1", "linf", "l2"])): 1.0}, weights=weights)
    return kind


def _fitted(rng: np.random.Generator, family: str, space: mace.FeatureSpace, frame: Any) -> Any:
    seed = int(rng.integers(2**31))
    trees, depth = int(rng.integers(1, 12)), int(rng.integers(1, 6))
    encoder = mace.Encoder(
        space, categorical=str(rng.choice(["onehot", "codes"])), ordinal=str(rng.choice(["thermometer", "codes"]))
    )
    columns = np.nan_to_num(encoder.fit_transform(frame), nan=1.5)
    scaled = columns / np.abs(columns).max(axis=0).clip(1)
    score = (
        scaled @ rng.normal(size=columns.shape[1])
        + 0.3 * np.sin(7 * scaled).sum(axis=1)
        + rng.normal(0, 0.1, len(columns))
    )
    estimator = _estimator(family, trees, depth, seed)
    if "regressor" in family:
        return make_pipeline(encoder, estimator).fit(frame, score)
    classes = int(rng.choice([2, 2, 3]))
    labels = np.searchsorted(np.quantile(score, np.arange(1, classes) / classes), score)
    labels[:classes] = np.arange(classes)
    return make_pipeline(encoder, estimator).fit(frame, labels)


def _estimator(family: str, trees: int, depth: int, seed: int) -> Any:
    options = {"n_estimators": trees, "max_depth": depth, "random_state": seed}
    match family:
        case "tree":
            return DecisionTreeClassifier(max_depth=depth, random_state=seed)
        case "tree regressor":
            return DecisionTreeRegressor(max_depth=depth, random_state=seed)
        case "forest":
            return RandomForestClassifier(**options)
        case "ties":
            return RandomForestClassifier(2 * trees, min_samples_leaf=3, max_depth=2, random_state=seed)
        case "extra":
            return ExtraTreesClassifier(**options)
        case "boosting":
            return GradientBoostingClassifier(**options)
        case "boosting regressor":
            return GradientBoostingRegressor(**options)
        case "forest regressor":
            return RandomForestRegressor(**options)
        case "hist":
            return HistGradientBoostingClassifier(
                max_iter=trees, max_depth=depth, min_samples_leaf=3, random_state=seed
            )
        case "hist regressor":
            return HistGradientBoostingRegressor(max_iter=trees, max_depth=depth, min_samples_leaf=3, random_state=seed)
        case "ada":
            return AdaBoostClassifier(
                DecisionTreeClassifier(max_depth=min(depth, 3), random_state=seed),
                n_estimators=trees,
                random_state=seed,
            )
    return _booster(family, options)


def _booster(family: str, options: dict[str, Any]) -> Any:
    regression = "regressor" in family
    if family.startswith("xgboost"):
        import xgboost

        return (xgboost.XGBRegressor if regression else xgboost.XGBClassifier)(**options, n_jobs=1)
    if family.startswith("lightgbm"):
        import lightgbm

        kind = lightgbm.LGBMRegressor if regression else lightgbm.LGBMClassifier
        return kind(**options, min_child_samples=3, verbose=-1, n_jobs=1)
    import catboost

    kind = catboost.CatBoostRegressor if regression else catboost.CatBoostClassifier
    renamed = {
        "iterations": options["n_estimators"],
        "depth": options["max_depth"],
        "random_seed": options["random_state"],
    }
    return kind(**renamed, verbose=False, allow_writing_files=False, thread_count=1)
