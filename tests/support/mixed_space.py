"""A space with a feature of each kind, rows of it, and labels that depend on all of them."""

from __future__ import annotations

import numpy as np
import pandas as pd

from mace import FeatureSpace, categorical, integer, ordinal, real
from mace.space import Point

SPACE = FeatureSpace(
    {
        "x": real(-3, 3),
        "n": integer(-5, 40_000_000),
        "ord": ordinal(["low", "mid", "high", "top"]),
        "cat": categorical(["a", "b", "c"]),
        "flag": categorical([False, True]),
    }
)
RNG = np.random.default_rng(7)


def random_points(count: int) -> list[Point]:
    return [
        (
            float(RNG.uniform(-3, 3)),
            int(RNG.integers(-5, 60)) if RNG.random() < 0.5 else int(RNG.integers(2**24, 40_000_000)),
            int(RNG.integers(4)),
            int(RNG.integers(3)),
            int(RNG.integers(2)),
        )
        for _ in range(count)
    ]


def training(classes: int) -> tuple[pd.DataFrame, np.ndarray]:
    points = random_points(400)
    frame = SPACE.frame_of(points)
    score = frame["x"] * 2 + np.log1p(frame["n"] + 6) / 3 + (frame["cat"] == "b") - (frame["ord"] == "top") * 2
    labels = np.searchsorted(np.quantile(score, np.arange(1, classes) / classes), score)
    return frame, np.array(["no", "yes", "perhaps", "never"])[labels]
