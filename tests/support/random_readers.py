"""Random small models that are read since 0.2, with a question each: products, stacks, other modes of boosters, calibrations."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import catboost
import lightgbm
import numpy as np
import pandas as pd
import xgboost
from random_problems import Case
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import (
    BaggingClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

import mace
from mace.space import Integer, Real

Rng = np.random.Generator
TEXTS = ["cat", "kind"]
SMALL = {"n_estimators": 5, "num_leaves": 6, "min_child_samples": 5, "n_jobs": 1, "verbose": -1}


def _levels(**settings: Any) -> ColumnTransformer:
    return ColumnTransformer(
        [("levels", OneHotEncoder(), TEXTS)], remainder="passthrough", sparse_threshold=0, **settings
    )


def _trees(rng: Rng) -> Any:
    seed, depth = int(rng.integers(1000)), int(rng.integers(2, 5))
    return [
        DecisionTreeClassifier(max_depth=depth, random_state=seed),
        RandomForestClassifier(4, max_depth=depth, random_state=seed),
        HistGradientBoostingClassifier(max_iter=3, max_depth=depth, min_samples_leaf=5, early_stopping=False),
        GradientBoostingClassifier(n_estimators=3, max_depth=2, random_state=seed),
    ][int(rng.integers(4))]


def _products(rng: Rng) -> PolynomialFeatures:
    return PolynomialFeatures(int(rng.integers(2, 4)), interaction_only=bool(rng.random() < 0.6))


def products_before_trees(rng: Rng, classes: int) -> Any:
    steps = [_levels(), *([StandardScaler()] if rng.random() < 0.3 else []), _products(rng)]
    return make_pipeline(*steps, *([StandardScaler()] if rng.random() < 0.3 else []), _trees(rng))


def products_before_linear(rng: Rng, classes: int) -> Any:
    return make_pipeline(_levels(), PolynomialFeatures(2, interaction_only=True), LogisticRegression(max_iter=3000))


def stacked(rng: Rng, classes: int) -> Any:
    bases = [("forest", _trees(rng)), ("svc", LinearSVC()), ("logistic", LogisticRegression(max_iter=500))]
    chosen = [bases[k] for k in sorted(rng.choice(3, int(rng.integers(1, 4)), replace=False))]
    method = "predict" if classes > 2 else str(rng.choice(["auto", "predict"]))
    head = [LogisticRegression(max_iter=500), RidgeClassifier()][int(rng.integers(2))]
    return make_pipeline(
        _levels(), StackingClassifier(chosen, head, cv=2, stack_method=method, passthrough=bool(rng.random() < 0.4))
    )


def stacked_below_trees(rng: Rng, classes: int) -> Any:
    bases = [("svc", LinearSVC()), ("trees", _trees(rng)), ("other", LinearSVC(C=0.1))]
    chosen = [bases[k] for k in sorted(rng.choice(3, int(rng.integers(1, 4)), replace=False))]
    heads = [
        DecisionTreeClassifier(max_depth=3, random_state=0),
        RandomForestClassifier(3, max_depth=2, random_state=0),
    ]
    # Of three classes a boosted tree's probabilities are softmaxes, which no tree splits exactly.
    method = "predict" if classes > 2 and rng.random() < 0.5 else "auto"
    if (
        classes > 2
        and method == "auto"
        and isinstance(bases[1][1], HistGradientBoostingClassifier | GradientBoostingClassifier)
    ):
        chosen = bases[:1]
    passthrough = bool(rng.random() < 0.4)
    return make_pipeline(
        _levels(),
        StackingClassifier(chosen, heads[int(rng.integers(2))], cv=2, stack_method=method, passthrough=passthrough),
    )


def products_with_a_number(rng: Rng, classes: int) -> Any:
    settings: dict[str, Any] = {"max_iter": 300, "solver": "lbfgs", "random_state": int(rng.integers(99))}
    models = [LogisticRegression(max_iter=3000), MLPClassifier((3,), **settings), LinearSVC()]
    scaled = [StandardScaler()] if rng.random() < 0.5 else []
    products = PolynomialFeatures(2 if rng.random() < 0.8 else 3, interaction_only=True)
    after = [StandardScaler()] if rng.random() < 0.5 else []
    return make_pipeline(_levels(), *scaled, products, *after, models[int(rng.integers(3))])


def calibrated(rng: Rng, classes: int) -> Any:
    base = [LogisticRegression(max_iter=500), RandomForestClassifier(4, max_depth=3, random_state=0), LinearSVC()]
    method = str(rng.choice(["sigmoid", "isotonic"]))
    return make_pipeline(
        _levels(), CalibratedClassifierCV(base[int(rng.integers(3))], method=method, ensemble=classes == 2, cv=2)
    )


def divided_by_sums(rng: Rng, classes: int) -> Any:
    """Return a mean, or a linear sum, of softmaxes and of calibrations of three classes."""
    seed = int(rng.integers(99))
    logistic, network = LogisticRegression(max_iter=500), MLPClassifier((3,), max_iter=200, random_state=seed)
    others = [xgboost.XGBClassifier(n_estimators=2, max_depth=2, n_jobs=1), LinearSVC(), _trees(rng), network, logistic]
    kind = rng.choice(["calibrated", "stack", "soft votes", "bagging"])
    if kind == "calibrated":
        method = str(rng.choice(["sigmoid", "isotonic"]))
        model: Any = CalibratedClassifierCV(others[int(rng.integers(5))], method=method, cv=int(rng.integers(2, 4)))
    elif kind == "bagging":
        model = BaggingClassifier(logistic, int(rng.integers(2, 5)), random_state=seed)
    else:
        chosen = [("first", logistic), ("second", [network, _trees(rng)][int(rng.integers(2))])]
        stack = StackingClassifier(chosen, LogisticRegression(max_iter=500), cv=2, passthrough=bool(rng.random() < 0.4))
        model = (
            stack if kind == "stack" else VotingClassifier(chosen, voting="soft", weights=[1, int(rng.integers(1, 4))])
        )
    return make_pipeline(_levels(), model)


def random_forest_of_lightgbm(rng: Rng, classes: int) -> Any:
    bagging = {"boosting_type": "rf", "bagging_freq": 1, "bagging_fraction": 0.6, "random_state": int(rng.integers(99))}
    return lightgbm.LGBMClassifier(**SMALL, **bagging)


def one_against_all_of_lightgbm(rng: Rng, classes: int) -> Any:
    return lightgbm.LGBMClassifier(**SMALL, objective="multiclassova")


def dart(rng: Rng, classes: int) -> Any:
    return xgboost.XGBClassifier(
        n_estimators=5,
        max_depth=3,
        booster="dart",
        rate_drop=0.3,
        enable_categorical=True,
        n_jobs=1,
        seed=int(rng.integers(99)),
    )


def catboost_statistics(rng: Rng, classes: int) -> Any:
    settings = {
        "iterations": 6,
        "depth": int(rng.integers(2, 5)),
        "verbose": 0,
        "allow_writing_files": False,
        "thread_count": 1,
    }
    further = {"model_size_reg": 0, "one_hot_max_size": 1} if rng.random() < 0.6 else {}
    return catboost.CatBoostClassifier(**settings, **further, cat_features=TEXTS, random_seed=int(rng.integers(99)))


FAMILIES: dict[str, tuple[Callable[[Rng, int], Any], bool]] = {
    "products before trees": (products_before_trees, False),
    "products before a linear model": (products_before_linear, False),
    "stack, linear": (stacked, False),
    "stack, trees over other models": (stacked_below_trees, False),
    "products of a number and levels": (products_with_a_number, False),
    "calibration": (calibrated, False),
    "divided by sums": (divided_by_sums, False),
    "LightGBM rf": (random_forest_of_lightgbm, True),
    "LightGBM multiclassova": (one_against_all_of_lightgbm, True),
    "XGBoost dart": (dart, True),
    "CatBoost statistics": (catboost_statistics, False),
}
"""Each with whether its frames have categories as a dtype."""

THREE_CLASSES = ("LightGBM multiclassova", "divided by sums")


def random_reader(seed: int) -> Case | None:
    """Return a random problem on a finite space, the same for the same seed; ``None`` where the labels came out as one."""
    rng = np.random.default_rng([seed, 18])
    family = list(FAMILIES)[seed % len(FAMILIES)]
    make, is_category = FAMILIES[family]
    rows = 160
    frame = pd.DataFrame(
        {
            "n": rng.integers(-int(rng.integers(1, 4)), 4, rows),
            "m": rng.integers(0, int(rng.integers(3, 6)), rows),
            "cat": rng.choice(["a", "b", "c"], rows),
            "kind": rng.choice(list("uvwxy")[: int(rng.integers(2, 6))], rows),
        }
    )
    classes = 3 if family in THREE_CLASSES or rng.random() < 0.4 else 2
    codes = frame.assign(**{name: frame[name].map(ord) % 7 for name in TEXTS}).to_numpy(dtype=float)
    score = codes @ rng.normal(size=4) + 0.5 * codes[:, 0] * codes[:, 1] * rng.normal() + rng.normal(0, 0.5, rows)
    labels = np.searchsorted(np.quantile(score, np.arange(1, classes) / classes), score)
    if "of a number" in family:
        frame = frame.drop(columns="m").assign(x=rng.integers(-8, 9, rows) / 4)
    if is_category:
        frame = frame.astype(dict.fromkeys(TEXTS, "category"))
    if len(np.unique(labels)) < classes:
        return None
    model = make(rng, classes).fit(frame, labels)
    question = {"distance": str(rng.choice(["l0", "l1", "linf"]))}
    space = mace.FeatureSpace.from_frame(frame)
    if "x" in frame:
        space = space.replace(x=mace.real(-2, 2, step=0.25))
    return Case(family, model, space, frame.iloc[int(rng.integers(rows))].to_dict(), question)


def fault_of(case: Case) -> str | None:
    """Return what is wrong with the answer or its certificate, by the model's own ``predict`` of every row; ``None`` where nothing is."""
    explainer = mace.Explainer(case.model, case.space)
    found = explainer.explain(case.row, **case.question, certify=True, time_limit=60)
    best = _nearest(case)
    if best is None:
        return None if found.status == "infeasible" else f"{found.status}, and no row has another outcome"
    if found.status != "optimal":
        return f"{found.status}: {found.reason}"
    if abs(found[0].distance - best) > 1.0000001e-6:
        return f"{found[0].distance!r}, brute force says {best!r}"
    verdict = mace.verify(mace.Certificate.from_json(found[0].certificate.to_json()), case.model)
    return None if verdict.valid else f"certificate {verdict.outcome}: {verdict.reason}"


def _nearest(case: Case) -> float | None:
    """Return the least distance of a row with another outcome, as the distance is defined; ``None`` where there is none."""
    values = [
        list(np.arange(feature.low, feature.high + 0.1, getattr(feature, "step", None) or 1))
        if isinstance(feature, Real | Integer)
        else list(feature.levels)
        for feature in case.space.values()
    ]
    points = [case.space.point(dict(zip(case.space, row, strict=True))) for row in itertools.product(*values)]
    frame = case.space.frame_of([case.space.point(case.row), *points])
    said = np.asarray(case.model.predict(frame)).reshape(-1)
    own = case.space.point(case.row)
    changes = np.array(
        [[_change(*each) for each in zip(case.space.values(), point, own, strict=True)] for point in points]
    )
    measures = {"l0": (changes > 0).mean(axis=1), "l1": changes.mean(axis=1), "linf": changes.max(axis=1)}
    other = measures[case.question["distance"]][said[1:] != said[0]]
    return float(other.min()) if len(other) else None


def _change(feature: Any, new: Any, old: Any) -> float:
    return abs(new - old) / (feature.high - feature.low) if isinstance(feature, Real | Integer) else float(new != old)
