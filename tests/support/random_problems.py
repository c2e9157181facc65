"""Random small problems of every model family, for the seeded samples in the tests and the large campaigns."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

import mace

FAMILIES = ("tree", "forest", "ties", "extra", "logistic", "svc", "mlp", "identity", "function")
DISTANCES = ("l0", "l1", "linf", "mixed", "weighted", "custom", "l2")


@dataclass(frozen=True)
class Case:
    """A model, a row, and a question about it."""

    family: str
    model: Any
    space: mace.FeatureSpace
    row: dict[str, Any]
    question: dict[str, Any]


def random_case(seed: int, *, finite: bool = True) -> Case:
    """Return a random problem; the same seed gives the same problem."""
    rng = np.random.default_rng(seed)
    family = FAMILIES[seed % len(FAMILIES)]
    space = _space(rng, finite=finite, functional=family == "function")
    rows = [_row(rng, space) for _ in range(120)]
    frame = space.frame_of([space.point(row) for row in rows])
    model = _function(rng, space) if family == "function" else _fitted(rng, family, space, frame)
    question: dict[str, Any] = {
        "distance": _distance(rng, DISTANCES[(seed // len(FAMILIES)) % len(DISTANCES)], space),
        "constraints": _constraints(rng, space),
    }
    if family != "function" and rng.random() < 0.3:
        question["target"] = rng.choice(model.classes_).item()
    return Case(family, model, space, rows[0], question)


def _space(rng: np.random.Generator, *, finite: bool, functional: bool) -> mace.FeatureSpace:
    features: dict[str, Any] = {}
    for index in range(int(rng.integers(2, 5))):
        kind = rng.choice(["integer", "ordinal", "categorical", "step", "real", "binary"])
        low = int(rng.integers(-5, 5))
        name = f"{kind}_{index}" if functional or index else f"the {kind} {index}"
        if kind == "integer":
            features[name] = mace.integer(low, low + int(rng.integers(0, 7)), step=rng.choice([None, 2]))
        elif kind == "ordinal":
            features[name] = mace.ordinal([f"level {k}" for k in range(int(rng.integers(1, 5)))])
        elif kind == "categorical":
            features[name] = mace.categorical([f"kind {k}" for k in range(int(rng.integers(1, 5)))])
        elif kind == "binary":
            features[name] = mace.categorical([False, True])
        elif kind == "step" or finite:
            step = float(rng.choice([0.5, 0.1, 0.3]))
            features[name] = mace.real(low, low + step * int(rng.integers(1, 7)), step=step)
        else:
            features[name] = mace.real(low, low + float(rng.uniform(0.5, 9)))
    return mace.FeatureSpace(features)


def _row(rng: np.random.Generator, space: mace.FeatureSpace) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for name, feature in space.items():
        if hasattr(feature, "levels"):
            row[name] = feature.levels[int(rng.integers(len(feature.levels)))]
        elif feature.size is not None and rng.random() < 0.9:
            row[name] = feature.value_at(int(rng.integers(feature.size)))
        elif isinstance(feature.low, int):
            row[name] = int(rng.integers(feature.low, feature.high + 1))
        else:
            row[name] = float(rng.uniform(feature.low, feature.high))
    return row


def _fitted(rng: np.random.Generator, family: str, space: mace.FeatureSpace, frame: Any) -> Any:
    seed = int(rng.integers(2**31))
    estimator = {
        "tree": lambda: DecisionTreeClassifier(max_depth=int(rng.integers(1, 5)), random_state=seed),
        "forest": lambda: RandomForestClassifier(int(rng.integers(1, 8)), max_depth=3, random_state=seed),
        "ties": lambda: RandomForestClassifier(6, min_samples_leaf=3, max_depth=2, random_state=seed),
        "extra": lambda: ExtraTreesClassifier(5, max_depth=4, random_state=seed),
        "logistic": lambda: LogisticRegression(random_state=seed),
        "svc": lambda: LinearSVC(random_state=seed),
        "mlp": lambda: MLPClassifier(
            (int(rng.integers(1, 5)),), max_iter=150, learning_rate_init=0.05, random_state=seed
        ),
        "identity": lambda: MLPClassifier(
            (2,), activation="identity", max_iter=150, learning_rate_init=0.05, random_state=seed
        ),
    }[family]()
    encoder = mace.Encoder(
        space, categorical=str(rng.choice(["onehot", "codes"])), ordinal=str(rng.choice(["thermometer", "codes"]))
    )
    columns = encoder.fit_transform(frame)
    score = columns @ rng.normal(size=columns.shape[1]) + np.sin(columns).sum(axis=1)
    classes = int(rng.choice([2, 2, 3]))
    labels = np.searchsorted(
        np.quantile(score, np.arange(1, classes) / classes), score + rng.normal(0, 0.3, len(score))
    )
    labels[:classes] = np.arange(classes)
    named = np.array(["no", "maybe", "yes"])[labels] if rng.random() < 0.5 else labels
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return make_pipeline(encoder, estimator).fit(frame, named)


def _function(rng: np.random.Generator, space: mace.FeatureSpace) -> Any:
    """Return a Python function over the features, compiled from random source text that the reader can find."""
    terms, guards = [], []
    for name, feature in space.items():
        if hasattr(feature, "levels"):
            level = feature.levels[int(rng.integers(len(feature.levels)))]
            guards.append(f"{name} == {level!r}")
        else:
            terms.append(f"{round(float(rng.normal()), 2)} * {name}")
            guards.append(f"{name} > {round(float(rng.uniform(feature.low, feature.high)), 1)}")
    body = [
        f"def model({', '.join(space)}):",
        f"    score = {' + '.join(['0.1', *terms])}",
        f"    if {rng.choice(guards)}:",
        "        score = max(score, 0.3) - 0.7",
        f"    elif {rng.choice(guards)} or {rng.choice(guards)}:",
        "        return 2",
        f"    return 1 if abs(score) >= {round(float(rng.uniform(0, 2)), 1)} else 0",
    ]
    return from_source("\n".join(body) + "\n", "model")


def from_source(source: str, name: str) -> Any:
    """Return a function of some source text, as if the text stood in a file."""
    import linecache

    file = f"<generated {abs(hash(source))}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    namespace: dict[str, Any] = {}
    exec(compile(source, file, "exec"), namespace)
    return namespace[name]


def _distance(rng: np.random.Generator, kind: str, space: mace.FeatureSpace) -> Any:
    if kind == "mixed":
        return mace.Distance(l0=0.25, l1=0.25, linf=0.5)
    if kind == "weighted":
        weights = {name: float(rng.choice([0.5, 1.0, 3.0])) for name in space}
        return mace.Distance(**{str(rng.choice(["l0", "l1", "linf"])): 1.0}, weights=weights)
    if kind == "custom":
        parts = [
            f"abs(new[{name!r}] - old[{name!r}])"
            if not hasattr(feature, "levels")
            else f"(0.7 if new[{name!r}] != old[{name!r}] else 0)"
            for name, feature in space.items()
        ]
        return f"lambda new, old: {' + '.join(parts)}"
    return kind


def _constraints(rng: np.random.Generator, space: mace.FeatureSpace) -> list[Any]:
    made: list[Any] = []
    for name, feature in space.items():
        is_ordered = not isinstance(feature, type(mace.categorical(["x"])))
        draw = rng.random()
        if draw < 0.1:
            made.append(mace.fixed(name))
        elif draw < 0.2 and is_ordered:
            made.append(mace.increases(name))
        elif draw < 0.3 and is_ordered:
            made.append(mace.decreases(name))
        elif draw < 0.4 and hasattr(feature, "levels"):
            size = int(rng.integers(1, len(feature.levels) + 1))
            made.append(
                mace.one_of(name, [feature.levels[k] for k in rng.choice(len(feature.levels), size, replace=False)])
            )
        elif draw < 0.4:
            middle = (feature.low + feature.high) / 2
            made.append(mace.within(name, feature.low, middle))
    return made
