"""The families of models that tests fit: one small estimator of each, by the name that tests call it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.tree import DecisionTreeClassifier

FAMILIES: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "tree": (DecisionTreeClassifier, {}),
    "forest": (RandomForestClassifier, {"n_estimators": 5, "max_depth": 4}),
    "boosting": (GradientBoostingClassifier, {"n_estimators": 6, "max_depth": 2}),
    "histogram": (HistGradientBoostingClassifier, {"max_iter": 6}),
    "linear": (LogisticRegression, {}),
    "network": (MLPClassifier, {"hidden_layer_sizes": (4,), "solver": "lbfgs", "max_iter": 1000}),
}
"""The estimators that have a seed, and how they are made small."""


def small(family: str, seed: int = 0, **settings: Any) -> Any:
    """Return an estimator of a family, not fitted; ``settings`` are those that differ from the usual ones."""
    if family == "calibrated":
        return CalibratedClassifierCV(LogisticRegression(), cv=2, **settings)
    if family == "vote":
        parts = [("f", small("forest", seed, n_estimators=3, max_depth=2)), ("l", LogisticRegression())]
        return VotingClassifier(parts, **{"voting": "soft", **settings})
    make, usual = FAMILIES[family]
    return make(**{**usual, **settings, "random_state": seed})
