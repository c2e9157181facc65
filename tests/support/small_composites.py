"""Votes, means and calibrated models on a small grid."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier, GradientBoostingClassifier, RandomForestClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

import mace
from mace import FeatureSpace, categorical, integer, real
from mace.space import Point

SPACE = FeatureSpace({"x": real(-3, 3), "n": integer(0, 6), "cat": categorical(["a", "b", "c"]), "y": real(-2, 2)})


GRID = SPACE.replace(x=real(-3, 3, step=0.5), y=real(-2, 2, step=0.5))


def data(rows: int = 200) -> tuple[pd.DataFrame, Any]:
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(
        {
            "x": rng.uniform(-3, 3, rows).round(3),
            "n": rng.integers(0, 7, rows),
            "cat": rng.choice(["a", "b", "c"], rows),
            "y": rng.uniform(-2, 2, rows).round(3),
        }
    )
    score = frame["x"] - frame["n"] / 3 + (frame["cat"] == "b") + np.abs(frame["y"]) + rng.normal(0, 0.8, rows)
    return frame, np.where(score > 0.4, "yes", "no")


def votes(*models: Any, **settings: Any) -> Any:
    members = [(str(k), model) for k, model in enumerate(models)]
    return make_pipeline(mace.Encoder(SPACE), VotingClassifier(members, **settings))


FOREST = RandomForestClassifier(5, max_depth=3, random_state=0)


TREE = DecisionTreeClassifier(max_depth=3, random_state=0)


MODELS: dict[str, Any] = {
    "calibrated svcs": make_pipeline(mace.Encoder(SPACE), CalibratedClassifierCV(LinearSVC(), cv=3)),
    "bagged logistics": make_pipeline(mace.Encoder(SPACE), BaggingClassifier(LogisticRegression(), 5, random_state=0)),
    "soft votes, one an mlp": votes(LogisticRegression(), MLPClassifier((4,), max_iter=60, random_state=0), voting="soft"),
    "soft votes, one a forest": votes(LogisticRegression(), FOREST, voting="soft", weights=[2, 1]),
    "soft votes of boosting and a tree": votes(GradientBoostingClassifier(n_estimators=4, max_depth=2), TREE, voting="soft"),
    "hard votes of linear models": votes(LogisticRegression(), LogisticRegression(C=0.003), LinearSVC()),
    "hard votes of a forest and linear models": votes(LogisticRegression(), FOREST, LinearSVC(), weights=[1, 2, 2]),
    "isotonic svcs": make_pipeline(mace.Encoder(SPACE), CalibratedClassifierCV(LinearSVC(), method="isotonic", cv=2)),
}  # fmt: skip


def fitted(name: str) -> tuple[Any, pd.DataFrame]:
    frame, labels = data()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clone(MODELS[name]).fit(frame, labels), frame


def draw(space: FeatureSpace, rng: np.random.Generator) -> Point:
    return (float(rng.uniform(-3, 3)), int(rng.integers(7)), int(rng.integers(3)), float(rng.uniform(-2, 2)))
