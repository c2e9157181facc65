"""Questions with conditions across features."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from estimators import small
from sklearn.pipeline import make_pipeline

import mace

SPACE = mace.FeatureSpace(
    {
        "a": mace.real(0, 10),
        "b": mace.real(-5, 5, missing=True),
        "c": mace.integer(0, 6),
        "d": mace.ordinal(["low", "mid", "high"]),
        "e": mace.categorical(["x", "y", "z"]),
        "f": mace.real(0, 4, step=0.5),
    }
)


TEXTS = [
    "a <= 2 * c + 1",
    "a + f < old.a + 1",
    "b >= old.a - 3 or e == 'x'",
    "if d increases then a >= old.a + 1",
    "if e changes then not a, c change together",
    "at most 2 features change",
    "at most 3.5 of a * 2, b, c * 1.5, e change",
    "abs(a - f) <= max(c, 1)",
    "min(a, f) >= 0.5 * c - 1",
    "e != old.e and d != 'mid'",
    "b is missing or b * 2 <= -c",
    "not (a > c or f > c)",
    "(a - 1) / 2 == f or c == 3",
    "-a >= -(f + c)",
    "e == 'x' or e == 'y' and c >= 2",
]


def rows(count: int, seed: int, *, missing: bool = True) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    return [
        {
            "a": float(rng.choice([round(rng.uniform(0, 10), 2), 3.0])),
            "b": float("nan") if missing and rng.random() < 0.3 else float(round(rng.uniform(-5, 5), 1)),
            "c": int(rng.integers(0, 7)),
            "d": str(rng.choice(["low", "mid", "high"])),
            "e": str(rng.choice(["x", "y", "z"])),
            "f": float(rng.integers(0, 9)) / 2,
        }
        for _ in range(count)
    ]


REALS = mace.FeatureSpace(
    {"a": mace.real(0, 10), "b": mace.real(0, 10), "c": mace.integer(0, 6), "e": mace.categorical(["x", "y"])}
)


QUESTIONS = [
    ["a <= b"],
    ["a + b <= old.a + old.b"],
    ["2 * a - b < 3", "c increases"],
    ["if a changes then b >= old.b + 1"],
    ["at most 1 features change"],
    ["a, c change together"],
    ["a >= 2 * c or e == 'y'"],
    ["abs(a - old.a) <= 0.5 * c", "b stays"],
    ["if e changes then at most 1 of a, b change"],
    ["c >= old.c + 1 and at most 2 features change"],
]


def fitted(estimator: Any) -> mace.Explainer:
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(
        {
            "a": rng.uniform(0, 10, 300),
            "b": rng.uniform(0, 10, 300),
            "c": rng.integers(0, 7, 300),
            "e": rng.choice(["x", "y"], 300),
        }
    )
    labels = (frame.a + 0.7 * frame.b + frame.c - 2 * (frame.e == "y") > 10).astype(int)
    return mace.Explainer(make_pipeline(mace.Encoder(REALS), estimator).fit(frame, labels), REALS)


MODELS = {
    "forest": lambda: fitted(small("forest", n_estimators=6)),
    "boosting": lambda: fitted(small("boosting", n_estimators=8)),
    "linear": lambda: fitted(small("linear")),
    "network": lambda: fitted(small("network", max_iter=3000)),
}


OLD = {"a": 3.25, "b": 4.5, "c": 1, "e": "x"}
