"""A small model of each kind over one finite space, fitted once."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mace

SPACE = mace.FeatureSpace({name: mace.integer(0, 9) for name in "abcd"})


@cache
def people() -> tuple[pd.DataFrame, Any]:
    """Return rows of the space and their labels."""
    frame = pd.DataFrame(np.random.default_rng(0).integers(0, 10, (300, 4)), columns=list(SPACE))
    return frame, (frame["a"] + frame["b"] * frame["c"] > 30).astype(int)


def scorecard(a, b, c, d):  # type: ignore[no-untyped-def]
    """Return a decision that is neither trees nor a network."""
    score = 2 * a + (3 * b if c > 4 else b) - abs(d - 5)
    return "yes" if score > 14 else "no"


THREE_CLASSES = "vote of three classes"

MODELS: dict[str, Callable[[], Any]] = {
    "forest": lambda: RandomForestClassifier(5, max_depth=4, random_state=0),
    "mlp": lambda: make_pipeline(StandardScaler(), MLPClassifier((6,), max_iter=200, random_state=0)),
    "vote": lambda: VotingClassifier(
        [("a", LogisticRegression()), ("b", LogisticRegression(C=0.01))], voting="soft", weights=(1, 2)
    ),
    THREE_CLASSES: lambda: VotingClassifier(
        [("a", LogisticRegression(max_iter=500)), ("b", LogisticRegression(C=0.01))], voting="soft"
    ),
}


@cache
def model_of(name: str) -> Any:
    """Return a fitted model."""
    frame, labels = people()
    labels = labels + (frame["a"] + frame["d"] > 12) if name == THREE_CLASSES else labels
    return scorecard if name == "function" else MODELS[name]().fit(frame, labels)
