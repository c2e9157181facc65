"""What watching a model costs: looking whether parts of it were replaced, and comparing three answers with its form, by question.

python benchmarks/watch.py --rows 20
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from lightgbm import LGBMClassifier
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import mace
from mace.models.agreement import agrees

MODELS: dict[str, Any] = {
    "LogisticRegression": LogisticRegression(),
    "StandardScaler + MLP (10, 10)": make_pipeline(
        StandardScaler(), MLPClassifier((10, 10), max_iter=100, random_state=0)
    ),
    "tree": DecisionTreeClassifier(random_state=0),
    "forest of 10": RandomForestClassifier(10, random_state=0),
    "forest of 100": RandomForestClassifier(100, random_state=0),
    "GradientBoosting": GradientBoostingClassifier(random_state=0),
    "HistGradientBoosting": HistGradientBoostingClassifier(random_state=0),
    "LightGBM": LGBMClassifier(verbose=-1, n_jobs=1),
}


def micros(action: Callable[[], object], times: int = 200) -> float:
    action()
    begun = time.perf_counter()
    for _ in range(times):
        action()
    return (time.perf_counter() - begun) / times * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20)
    rows = parser.parse_args().rows
    mace.warm_up()
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(900, 6)).round(3), columns=list("abcdef"))
    y = (X.a + X.b * X.c + 0.3 * rng.normal(size=900) > 0).astype(int)
    space = mace.FeatureSpace.from_frame(X)
    print("| model | question, ms | watching, µs | share | reading it again (certify, once a batch), ms |")
    print("| --- | --- | --- | --- | --- |")
    for name, model in MODELS.items():
        live = (explainer := mace.Explainer(model.fit(X, y), space))._live
        spent = []
        for row in range(rows + 1):
            begun = time.perf_counter()
            explainer.explain(X.iloc[row], time_limit=10)
            spent.append(time.perf_counter() - begun)
        question = statistics.median(spent[1:])
        point = [space.point(X.iloc[0])]
        outcome = live._asked.ask(point)
        looked = micros(live._watch.is_same) + 3 * micros(partial(agrees, live._asked.form, point, outcome))
        again = micros(live.check, 3) / 1e3
        print(f"| {name} | {1e3 * question:.2f} | {looked:.0f} | {looked / question / 1e4:.1f} % | {again:.1f} |")


if __name__ == "__main__":
    main()
