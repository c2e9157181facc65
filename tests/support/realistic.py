"""A small finite space, a model of every kind over it, and brute force over all its rows: the referee of what keeps answers realistic."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from estimators import small
from random_problems import from_source
from sklearn.pipeline import make_pipeline

import mace
from mace.distances import as_distance
from mace.space import Point, grid_values

SPACE = mace.FeatureSpace(
    {
        "a": mace.integer(0, 6),
        "b": mace.real(0, 2, step=0.25),
        "c": mace.ordinal(["low", "mid", "high"]),
        "d": mace.categorical(["x", "y", "z"]),
    }
)
FUNCTION = """
def model(a, b, c, d):
    score = a + 2 * b
    if d == "x":
        score = score + 1.5
    if c == "high":
        score = score + 1
    return 1 if score > 6 else 0
"""


def frame_of(seed: int = 3, count: int = 200) -> pd.DataFrame:
    """Return random rows of the space, those with much of both ``a`` and ``b`` rare."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 7, count)
    return pd.DataFrame(
        {
            "a": a,
            "b": np.round(rng.uniform(0, 2, count) * 4 * np.where(a > 4, 0.4, 1.0)) / 4,
            "c": rng.choice(["low", "mid", "high"], count, p=[0.5, 0.3, 0.2]),
            "d": rng.choice(["x", "y", "z"], count),
        }
    )


@cache
def explainer_of(kind: str, seed: int = 3) -> mace.Explainer:
    """Return a model of a kind, read."""
    if kind == "function":
        return mace.Explainer(from_source(FUNCTION, "model"), SPACE)
    estimator = small(kind, seed, **({"max_iter": 2000} if kind == "network" else {}))
    frame = frame_of(seed)
    score = frame.a + 2 * frame.b + 1.5 * (frame.d == "x") + (frame.c == "high")
    return mace.Explainer(make_pipeline(mace.Encoder(SPACE), estimator).fit(frame, (score > 5.5).astype(int)), SPACE)


KINDS = ("forest", "boosting", "linear", "network", "function")


@cache
def every_point() -> list[Point]:
    """Return all points of the space."""
    return list(itertools.product(*(grid_values(feature) for feature in SPACE.values())))


@cache
def outcomes(explainer: mace.Explainer) -> dict[Point, Any]:
    """Return what the model says of every point."""
    said = explainer.predict_many([SPACE.values_of(point) for point in every_point()])
    return dict(zip(every_point(), said, strict=True))


def brute(
    explainer: mace.Explainer,
    row: dict[str, Any],
    target: Any,
    is_allowed: Callable[[Point], bool] = lambda point: True,
    distance: object = "l1",
) -> Fraction | None:
    """Return the least distance of a row that the model puts in the target and that is allowed; ``None`` where there is none."""
    metric = as_distance(distance).from_factual(SPACE, SPACE.point(row))
    said = outcomes(explainer)
    near = sorted(
        (metric.measure(point), number) for number, point in enumerate(every_point()) if said[point] == target
    )
    return next((measure for measure, number in near if is_allowed(every_point()[number])), None)


def rows_of(explainer: mace.Explainer, prediction: Any, count: int) -> list[dict[str, Any]]:
    """Return some rows that the model puts in a class."""
    rows = frame_of(7).to_dict("records")
    found = [row for row, said in zip(rows, explainer.predict_many(rows), strict=True) if said == prediction]
    return found[:count]


def agrees(answer: mace.Explanation, best: Fraction | None) -> bool:
    """Return whether an answer is what brute force found, its bounds included."""
    if best is None:
        return answer.status == "infeasible"
    return (
        answer.status == "optimal"
        and abs(Fraction(answer[0].distance) - best) <= Fraction(2, 10**6)
        and Fraction(answer[0].lower) <= best
    )
