"""Isolation forests and data for questions of realism."""

from __future__ import annotations

from typing import Any

from realistic import SPACE, frame_of
from sklearn.ensemble import IsolationForest
from sklearn.pipeline import make_pipeline

import mace

NEAR = [
    (1, 0.0, "l1"),
    (1, 0.05, "l1"),
    (2, 0.08, "l1"),
    (4, 0.1, "l1"),
    (2, 0.1, "linf"),
    (1, 0.25, "l0"),
    (3, 0.12, "l2"),
]


def outlier_forest(seed: int, **options: Any) -> Any:
    options = {"n_estimators": 12, "max_samples": 40, "contamination": 0.5, "random_state": seed} | options
    return make_pipeline(mace.Encoder(SPACE), IsolationForest(**options)).fit(frame_of(seed))
