"""Networks behind steps that fill missing values, and rows with gaps."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
from pipeline_cases import random_points, training
from random_problems import Case
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import (
    MinMaxScaler,
    OneHotEncoder,
    RobustScaler,
    StandardScaler,
)

import mace
from mace import FeatureSpace, categorical, integer, real

SPACE = FeatureSpace(
    {
        "a": real(0, 10, missing=True),
        "b": integer(2, 20, missing=True),
        "z": real(-3, 5),
        "c": categorical(["u", "v"]),
    }
)


NUMBERS = ["a", "b", "z"]


FILLERS: dict[str, Any] = {
    "mean, standard": make_pipeline(SimpleImputer(), StandardScaler()),
    "median and flags, robust": make_pipeline(SimpleImputer(strategy="median", add_indicator=True), RobustScaler()),
    "a constant outside, minmax": make_pipeline(SimpleImputer(strategy="constant", fill_value=-7), MinMaxScaler()),
    "clipped": make_pipeline(SimpleImputer(strategy="constant", fill_value=99), MinMaxScaler(clip=True)),
    "scaled first": make_pipeline(StandardScaler(), SimpleImputer(add_indicator=True)),
    "filled twice": make_union(SimpleImputer(), make_pipeline(SimpleImputer(strategy="median"), StandardScaler())),
    "flags beside": make_union(SimpleImputer(), MissingIndicator(features="all")),
    "projected": make_pipeline(SimpleImputer(add_indicator=True), StandardScaler(), PCA(3)),
}


def fitted(before: Any, model: Any, space: FeatureSpace = SPACE) -> tuple[Any, pd.DataFrame]:
    frame, labels = training(space)
    target = pd.factorize(labels)[0] if isinstance(model, Ridge) else labels
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make_pipeline(clone(before), clone(model)).fit(frame, target), frame


def split(numbers: Any) -> ColumnTransformer:
    return ColumnTransformer([("numbers", numbers, NUMBERS), ("levels", OneHotEncoder(), ["c"])])


def random_gaps(seed: int, *, finite: bool) -> Case:
    """Return a linear model or network behind an imputer, a row that may have gaps, and a question."""
    rng = np.random.default_rng([seed, 17])
    features: dict[str, Any] = {
        "a": real(0, 2, step=0.5 if finite else None, missing=bool(rng.random() < 0.8)),
        "b": integer(0, int(rng.integers(2, 6)), missing=bool(rng.random() < 0.7)),
        "d": real(-1, 1, step=0.25 if finite else None, missing=bool(rng.random() < 0.5)),
        "c": categorical(["u", "v", "w"]),
    }
    names = ["a", "b", "d", "c"][: int(rng.integers(2, 5))]
    space = FeatureSpace({name: features[name] for name in names})
    numbers = [name for name in names if name != "c"]
    frame = space.frame_of(random_points(150, seed, space))
    filler = SimpleImputer(strategy=str(rng.choice(["mean", "median"])), add_indicator=bool(rng.random() < 0.6))
    steps: list[Any] = [filler, StandardScaler()]
    before = ColumnTransformer(
        [("numbers", make_pipeline(*(steps[::-1] if rng.random() < 0.3 else steps)), numbers)]
        + ([("levels", OneHotEncoder(), ["c"])] if "c" in names else [])
    )
    score = rng.normal(size=len(frame)) * 0.3
    for name in numbers:
        score += rng.normal() * frame[name].rank(pct=True).fillna(rng.random()).to_numpy() * 2
    ends = np.quantile(score, [0.5] if rng.random() < 0.6 else [0.3, 0.7])
    labels = np.array(["no", "yes", "perhaps"])[np.searchsorted(ends, score)]
    model: Any = LogisticRegression() if seed % 3 else MLPClassifier((3,), random_state=0, max_iter=150)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = make_pipeline(before, model).fit(frame, labels)
    mixed = mace.Distance(l0=0.25, l1=0.5, linf=0.25, weights={names[0]: 2.5})
    question: dict[str, Any] = {"distance": ["l1", "l0", "linf", "l2", mixed][seed % 5]}
    constraints: list[Any] = []
    if "c" in names and rng.random() < 0.4:
        constraints.append(mace.fixed("c"))
    if rng.random() < 0.3:
        constraints.append(mace.fixed(names[0]))
    if rng.random() < 0.3:
        constraints.append(mace.within("b", 1, 2))
    question["constraints"] = constraints
    if rng.random() < 0.3:
        question["count"] = 3
    row = {name: None if pd.isna(value) else value for name, value in frame.iloc[int(rng.integers(40))].items()}
    return Case("gaps", fit, space, row, question)


def gap_filler() -> Any:
    """Return a model to which being missing is what counts."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.uniform(0, 10, 400), "z": rng.uniform(-3, 5, 400)})
    frame.loc[rng.random(400) < 0.4, "a"] = np.nan
    labels = np.where(frame["a"].isna(), "gap", "known")
    return make_pipeline(SimpleImputer(add_indicator=True), StandardScaler(), LogisticRegression()).fit(frame, labels)
