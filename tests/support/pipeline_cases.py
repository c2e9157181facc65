"""Training data and points on and beside edges, for tests of pipelines."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

import mace
from mace import FeatureSpace, categorical, integer, ordinal, real
from mace.forms import TreeEnsemble
from mace.space import Point

SPACE = FeatureSpace(
    {
        "x": real(-3, 3),
        "z": real(0.5, 4000),
        "n": integer(-5, 60),
        "wide": integer(0, 30_000_000),
        "ord": ordinal(["low", "mid", "high", "top"]),
        "cat": categorical(["a", "b", "c"]),
        "flag": categorical([False, True]),
        "code": categorical([1, 3, 7]),
    }
)


def random_points(count: int, seed: int = 0, space: FeatureSpace = SPACE) -> list[Point]:
    rng = np.random.default_rng(seed)
    return [tuple(_draw(feature, rng) for feature in space.values()) for _ in range(count)]


def _draw(feature: Any, rng: np.random.Generator) -> Any:
    if feature.missing and rng.random() < 0.25:
        return None
    if isinstance(feature, mace.space.Real):
        spread = feature.high - feature.low
        return float(feature.low + spread * rng.random() ** (1 if spread < 100 else 4))
    if isinstance(feature, mace.space.Integer):
        return int(rng.integers(feature.low, feature.high + 1))
    return int(rng.integers(len(feature.levels)))


def training(space: FeatureSpace = SPACE, rows: int = 300) -> tuple[pd.DataFrame, np.ndarray]:
    frame = space.frame_of(random_points(rows, 1, space))
    score = sum(
        (
            pd.Series(pd.factorize(frame[name])[0] if name in ("ord", "cat") else frame[name])
            .rank(pct=True)
            .fillna(0.4)
            * weight
            for name, weight in zip(frame.columns, (3, -2, 2, 1, 1.5, -1, 0.5, 1), strict=False)
        ),
        pd.Series(0.0, frame.index),
    )
    labels = np.searchsorted(np.quantile(score, [0.4, 0.75]), score)
    return frame, np.array(["no", "yes", "perhaps"])[labels]


def on_and_beside(form: TreeEnsemble, seed: int = 3) -> list[Point]:
    """Return random points moved onto, and one float beside, every edge of every numeric feature."""
    inner = form.left >= 0
    edges = {
        (form.columns[c].feature, float(e))
        for c, e in zip(form.column[inner], form.edge[inner], strict=True)
        if form.columns[c].table is None and math.isfinite(e)
    }
    features, points = list(form.space.values()), []
    bases = random_points(len(edges), seed, form.space)
    for base, (feature, edge) in zip(bases, sorted(edges), strict=True):
        kind = features[feature]
        if isinstance(kind, mace.space.Real):
            values: list[Any] = [edge, math.nextafter(edge, math.inf), math.nextafter(edge, -math.inf)]
        else:
            values = [math.floor(edge), math.floor(edge) + 1]
        points += [(*base[:feature], value, *base[feature + 1 :]) for value in values if kind.low <= value <= kind.high]
    return points
