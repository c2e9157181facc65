"""Random questions over features, models and options at the ends of what floats and spaces can be, against brute force over all rows.

Neighbouring floats, the smallest and the largest ones, columns of float32, rows off the grid, levels with odd names; trees whose thresholds
are values that rows have, trees of one leaf, units that are dead, models of one class; targets at probabilities that rows reach.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import random_degenerate
from random_degenerate import Degenerate
from sklearn.ensemble import (
    AdaBoostClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import mace
from mace.space import Categorical, Integer, Point

MOST_ROWS = 1500

KINDS = (
    "one", "dot", "integers", "large integers", "int8", "floats", "float32", "smallest", "smallest of float32", "around 0", "tiny", "huge",
    "1e15", "grid", "cut grid", "one step", "decimals", "numbers as levels", "booleans", "odd levels", "ordered numbers", "tiny grid",
)  # fmt: skip
FAMILIES = (
    "tree", "forest", "equal trees", "boosting", "histogram", "linear", "network", "dead units", "line of numbers", "tree of numbers",
    "function", "one class", "set", "single leaves", "ada",
)  # fmt: skip
MAY_MISS = ("tree", "histogram", "linear", "network", "dead units", "forest")


def strange(seed: int) -> Degenerate | None:
    """Return the question of a seed; ``None`` where no model can be fitted."""
    rng = np.random.default_rng([seed, 4242])
    family = FAMILIES[seed % len(FAMILIES)]
    may_miss = family in MAY_MISS and rng.random() < 0.4
    while True:
        made = {name: _feature(rng, may_miss=may_miss) for name in "abcd"[: int(rng.choice([1, 2, 3, 4]))]}
        values = [each for _, each in made.values()]
        if math.prod(map(len, values)) <= MOST_ROWS:
            break
    space = mace.FeatureSpace({name: feature for name, (feature, _) in made.items()})
    factual = tuple(each[int(rng.integers(len(each)))] for each in values)
    limits: list[Any] = []
    for j, (name, feature) in enumerate(space.items()):
        if (
            getattr(feature, "step", None)
            and rng.random() < 0.3
            and factual[j] is not None
            and feature.high > feature.low
        ):
            whole = isinstance(feature, Integer)
            off = feature.low + 1 if whole else feature.nearest(feature.low + feature.step * 0.37)
            if off <= feature.high:
                factual = (*factual[:j], off, *factual[j + 1 :])
                values[j] = [off, *(v for v in values[j] if v != off)]
        if not random_degenerate._is_all(feature, values[j]):
            limits.append(mace.one_of(name, [_given(feature, v) for v in values[j] if v is not None]))
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            model = _model(rng, family, space, values)
    except (ValueError, OverflowError):  # numbers that are too large for the library
        return None
    question: dict[str, Any] = {
        "distance": _distance(rng, space, values),
        "constraints": [
            *limits,
            *random_degenerate._constraints(rng, space, factual, values),
            *_rules(rng, space, factual, values),
        ],
    }
    if rng.random() < 0.2:
        question["accuracy"] = float(rng.choice([1e-15, 1e-12, 0.01, 1]))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            question["target"] = _target(rng, family, model, space, values)
    except mace.InvalidTarget:  # the library predicts nan
        return None
    return Degenerate(family, model, space, space.values_of(factual), values, question)


def _given(feature: Any, value: Any) -> Any:
    """Return a value as constraints take it: of float32 as numpy has it, so that it means its decimal."""
    return np.float32(value) if getattr(feature, "dtype", None) == "float32" else value


def _ladder(at: float, count: int, least: Any = np.float64) -> list[float]:
    found = [least(at)]
    for _ in range(count):
        found.append(np.nextafter(found[-1], least(np.inf)))
    return [float(each) for each in found]


def _feature(rng: np.random.Generator, *, may_miss: bool) -> tuple[Any, list[Any]]:
    """Return a feature, and the values that the question leaves it."""
    kind, low, count = str(rng.choice(KINDS)), int(rng.integers(-3, 4)), int(rng.integers(1, 5))
    missing = bool(may_miss and rng.random() < 0.5)
    levels: dict[str, Any] = {
        "numbers as levels": lambda: mace.categorical([3, 1, 2]),
        "booleans": lambda: mace.categorical([True, False]),
        "odd levels": lambda: mace.categorical(["", "nan", "None", "a == 'b'", "ä\n"][:count]),
        "ordered numbers": lambda: mace.ordinal([-1, 0, 2, 10][:count]),
    }
    if kind in levels:
        made = levels[kind]()
        return made, list(range(made.size))
    grids: dict[str, Any] = {
        "one": lambda: mace.integer(low, low, missing=missing),
        "integers": lambda: mace.integer(low, low + count, step=int(rng.integers(1, 4)), missing=missing),
        "large integers": lambda: mace.integer(2**53 - 1 - count, 2**53 - 1, missing=missing),
        "int8": lambda: mace.integer(-128, 127, step=85, missing=missing, dtype=None if missing else "int8"),
        "grid": lambda: mace.real(
            low, low + 0.3 * count, step=0.3, missing=missing, dtype=rng.choice([None, "float32"])
        ),
        "cut grid": lambda: mace.real(0.05, 1.1, step=0.3, missing=missing),
        "one step": lambda: mace.real(low, low + 1, step=5.0, missing=missing),
        "tiny grid": lambda: mace.real(0, 5e-300, step=1e-300, missing=missing),
    }
    if kind in grids:
        made = grids[kind]()
        values = [made.value_at(k) for k in range(made.size)]
        return made, [*values, *([None] if missing else [])]
    single = "float32" if kind in ("float32", "smallest of float32") else None
    values = {
        "dot": lambda: [float(rng.choice([0.1, 1e300, 5e-324, 1e15 + 0.5]))],
        "floats": lambda: _ladder(rng.choice([1.0, 0.1, -1.0, 1 / 3]), count),
        "float32": lambda: _ladder(rng.choice([1.0, 0.1, -1.0, 16777216.0]), count, np.float32),
        "smallest": lambda: [(k - count // 2) * 5e-324 for k in range(count + 1)],
        "smallest of float32": lambda: _ladder(rng.choice([0, -3e-45, 1e-45]), count, np.float32),
        "around 0": lambda: [-1.0, -5e-324, 0.0, 5e-324, 1.0],
        "tiny": lambda: [-1e-300, 0.0, 1e-300, 2e-300, 3e-300],
        "huge": lambda: [-1e300, -1.0, 0.0, 1e299, 1e300],
        "1e15": lambda: _ladder(1e15, count),
        "decimals": lambda: [0.1, 0.2, 0.3, 0.30000000000000004, 0.7],
    }[kind]()
    return mace.real(values[0], values[-1], missing=missing, dtype=single), [*values, *([None] if missing else [])]


# ---- models


def _model(rng: np.random.Generator, family: str, space: mace.FeatureSpace, values: list[list[Any]]) -> Any:
    if family == "function":
        return random_degenerate._function(rng, space, values)
    if family == "set":
        models = [
            _model(rng, str(rng.choice(["tree", "linear", "forest", "single leaves"])), space, values)
            for _ in range(int(rng.integers(1, 4)))
        ]
        known = [model for model in models if model.classes_.tolist() == models[0].classes_.tolist()]
        return mace.agree(known, at_least=int(rng.integers(1, len(known) + 1)))
    frame = space.frame_of(random_degenerate._rows(rng, values, 50))
    encoder = mace.Encoder(
        space, categorical=str(rng.choice(["onehot", "codes"])), ordinal=str(rng.choice(["thermometer", "codes"]))
    )
    columns = encoder.fit_transform(frame).astype(float)
    whole = np.nan_to_num(columns, nan=-1.0)
    unit = np.nan_to_num((whole - whole.mean(0)) / np.where(whole.std(0) > 0, whole.std(0), 1), posinf=0, neginf=0)
    score = unit @ rng.normal(size=unit.shape[1]) + np.sin(3 * unit).sum(1) + rng.normal(0, 0.2, len(unit))
    classes = int(rng.choice([2, 2, 3]))
    labels: Any = np.digitize(score, np.quantile(score, np.arange(1, classes) / classes))
    labels[:classes] = np.arange(classes)
    labels = (
        np.full(50, "same")
        if family == "one class"
        else labels.astype(bool)
        if classes == 2 and rng.random() < 0.2
        else labels
    )
    seed, hidden = int(rng.integers(1000)), (3,) if rng.random() < 0.6 else (2, 2)
    estimator = {
        "tree": lambda: DecisionTreeClassifier(max_depth=4, random_state=seed),
        "forest": lambda: RandomForestClassifier(3, max_depth=3, random_state=seed),
        "equal trees": lambda: RandomForestClassifier(2, max_depth=2, random_state=seed),
        "single leaves": lambda: RandomForestClassifier(
            3, min_samples_leaf=int(rng.choice([20, 50])), random_state=seed
        ),
        "boosting": lambda: GradientBoostingClassifier(
            n_estimators=2, max_depth=2, learning_rate=float(rng.choice([1e-9, 0.1]))
        ),
        "histogram": lambda: HistGradientBoostingClassifier(max_iter=2, min_samples_leaf=2),
        "ada": lambda: AdaBoostClassifier(n_estimators=2, random_state=seed),
        "linear": lambda: LogisticRegression(C=float(rng.choice([1e-12, 1.0, 1e6]))),
        "network": lambda: MLPClassifier(hidden, solver="lbfgs", max_iter=40, random_state=seed),
        "dead units": lambda: MLPClassifier(hidden, solver="lbfgs", max_iter=40, random_state=seed),
        "line of numbers": LinearRegression,
        "tree of numbers": lambda: DecisionTreeRegressor(max_depth=3, random_state=seed),
        "one class": DecisionTreeClassifier,
    }[family]()
    steps: list[Any] = [encoder]
    if np.isnan(columns).any() and family != "histogram" and not isinstance(estimator, DecisionTreeClassifier):
        steps.append(SimpleImputer(strategy="constant", fill_value=0.5))
    if family in ("linear", "network", "dead units", "line of numbers") and rng.random() < 0.6:
        steps.append(StandardScaler() if rng.random() < 0.6 else MinMaxScaler())
    model = make_pipeline(*steps, estimator).fit(frame, score if "numbers" in family else labels)
    _bend(rng, family, model, model[:-1].transform(frame))
    return model


def _bend(rng: np.random.Generator, family: str, model: Any, columns: Any) -> None:
    """Put thresholds of trees onto values that rows have, or next to them, and make weights 0, whole, or of another size."""
    last = model[-1]
    trees = getattr(last, "estimators_", [last] if hasattr(last, "tree_") else [])
    if family in ("tree", "forest", "equal trees", "tree of numbers"):
        for tree in (each.tree_ for each in trees):
            for node in np.flatnonzero(tree.children_left != -1):
                known = columns[:, tree.feature[node]][~np.isnan(columns[:, tree.feature[node]])]
                if len(known) and rng.random() < 0.4:
                    value = float(np.float32(rng.choice(known)))
                    tree.threshold[node] = rng.choice(
                        [value, np.nextafter(value, -np.inf), np.nextafter(value, np.inf)]
                    )
    if family == "equal trees":
        last.estimators_ = [last.estimators_[0]] * int(rng.integers(1, 4))
        last.n_estimators = len(last.estimators_)
    if family == "linear":
        kind = int(rng.integers(6))
        last.coef_ = [
            last.coef_,
            last.coef_ * 0,
            np.round(last.coef_),
            last.coef_ * 1e-300,
            last.coef_ * 1e12,
            last.coef_,
        ][kind]
        last.intercept_ = last.intercept_ if kind != 2 else np.round(last.intercept_)
    if family == "dead units":
        last.coefs_[0][:, 0], last.intercepts_[0][0] = 0, -1
        last.coefs_[-1][:] = last.coefs_[-1] * int(rng.integers(2))


# ---- questions


def _distance(rng: np.random.Generator, space: mace.FeatureSpace, values: list[list[Any]]) -> Any:
    kind, norm = rng.random(), str(rng.choice(["l0", "l1", "l2", "linf"]))
    if kind < 0.4:
        return norm
    if kind < 0.55:
        shares = [
            {"l0": 0.25, "l1": 0.25, "linf": 0.5},
            {"l0": 1e-9, "l1": 1 - 1e-9},
            {"l0": 0.5, "linf": 0.5},
            {"l1": 0.1, "linf": 0.9},
        ]
        return mace.Distance(**shares[int(rng.integers(4))])
    if kind < 0.75:
        weights = {name: float(rng.choice([1e-12, 1e-3, 1.0, 1e9, 1.7e308])) for name in space if rng.random() < 0.8}
        return mace.Distance(**{norm: 1.0}, weights=weights)
    data = space.frame_of(random_degenerate._rows(rng, values, int(rng.choice([2, 15]))))
    return mace.Distance(l1=1.0, weights=str(rng.choice(["mad", "percentile"])), data=data)


def _rules(rng: np.random.Generator, space: mace.FeatureSpace, factual: Point, values: list[list[Any]]) -> list[Any]:
    """Return constraints that are met exactly at the boundary, that allow nothing, or that leave everything open."""
    made: list[Any] = []
    names, numbers = list(space), [name for name, feature in space.items() if not hasattr(feature, "levels")]
    for name, feature, own, each in zip(names, space.values(), factual, values, strict=True):
        known, draw = [v for v in each if v is not None], rng.random()
        if name in numbers and draw < 0.08:
            sign, value = str(rng.choice(["<=", ">=", "<", ">", "==", "!="])), known[int(rng.integers(len(known)))]
            made.append(mace.rule(f"{name} {sign} {value!r}"))
        elif not isinstance(feature, Categorical) and draw < 0.12:
            made.append(mace.at_most_change(name, float(rng.choice([0, 0.1, 0.3, 1e-12]))))
        elif name in numbers and own is not None and draw < 0.15:
            made.append(mace.at_most_change(name, str(rng.choice(["0%", "10%", "100%"]))))
    if len(numbers) > 1 and rng.random() < 0.2:
        x, y = rng.permutation(numbers)[:2]
        texts = [
            f"{x} <= {y}",
            f"{x} + {y} <= old.{x} + old.{y}",
            f"{x} <= 0.3 * {y}",
            f"{x} == {y}",
            f"{x} <= old.{x} + 0.1",
        ]
        made.append(mace.rule(texts[int(rng.integers(5))]))
    return [*made, mace.together(*names[:2])] if len(names) > 1 and rng.random() < 0.08 else made


def _target(
    rng: np.random.Generator, family: str, model: Any, space: mace.FeatureSpace, values: list[list[Any]]
) -> Any:
    if family in ("set", "function"):
        return None
    kind, rows = rng.random(), space.frame_of(random_degenerate._rows(rng, values, 10))
    numbers = "numbers" in family
    labels = [None] if numbers else model.classes_.tolist()
    label = labels[int(rng.integers(len(labels)))]
    if not numbers and kind < 0.65:
        margin = float(rng.choice([0, 1e-15, 0.1, 1.0]))
        return [None, label, mace.becomes(label, margin), mace.any_of(labels[: int(rng.integers(1, len(labels) + 1))])][
            int(rng.integers(4))
        ]
    said = model.predict(rows) if numbers else model.predict_proba(rows)[:, labels.index(label)]
    ends = [float(rng.choice([each, np.nextafter(each, -9), np.nextafter(each, 9)])) for each in rng.choice(said, 2)]
    low, high = sorted(ends if numbers else np.clip(ends, 0, 1).tolist())
    return [mace.at_least(high, label), mace.at_most(low, label), mace.between(low, high, label)][int(rng.integers(3))]
