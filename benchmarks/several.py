"""Several answers: what three, each with other changes than the ones before, cost beside the nearest one.

    python benchmarks/several.py [--rows 5] [--limit 60] [--models forest30,forest100,logistic,network]

scikit-learn's breast cancer data (30 reals), the first rows that a model calls malignant, l1, ``count=3``: sets of changed features of
which none contains another, each nearest of its kind. Process CPU time of ``explain`` in one process, kernels warm.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np
from hard_trees import breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mace

MODELS: dict[str, Any] = {
    "forest30": RandomForestClassifier(30, random_state=0),
    "forest100": RandomForestClassifier(100, random_state=0),
    "logistic": make_pipeline(StandardScaler(), LogisticRegression(max_iter=5000)),
    "network": make_pipeline(StandardScaler(), MLPClassifier((10,), max_iter=1000, random_state=0)),
}


def timed(explainer: mace.Explainer, row: Any, limit: float, count: int) -> tuple[float, mace.Explanation]:
    """Return the process time of one question in milliseconds, and its answers."""
    begun = time.process_time()
    answer = explainer.explain(row, count=count, time_limit=limit)
    return 1e3 * (time.process_time() - begun), answer


def main() -> None:
    """Print a line for each row, and the medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5)
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--models", default=",".join(MODELS))
    arguments = parser.parse_args()
    mace.warm_up()
    warnings.simplefilter("ignore")
    frame, labels = breast_cancer()
    space = mace.FeatureSpace.from_frame(frame)
    for name in arguments.models.split(","):
        model = MODELS[name].fit(frame, labels)
        explainer = mace.Explainer(model, space)
        rows = frame[model.predict(frame) == 0].iloc[: arguments.rows]
        explainer.explain(rows.iloc[0], time_limit=arguments.limit)
        spent, proved, wanted = [], 0, 0
        for number, row in rows.iterrows():
            one, _ = timed(explainer, row, arguments.limit, 1)
            three, answer = timed(explainer, row, arguments.limit, 3)
            spent.append((one, three))
            optimal = sum(each.status == "optimal" for each in answer)
            proved, wanted = proved + optimal, wanted + 3
            far = ", ".join(f"{each.distance:.5f}" for each in answer)
            print(
                f"{name:10}{number:5}  one {one:8.1f}  three {three:9.1f}  proved {optimal} of 3  at {far}", flush=True
            )
        medians = np.median(spent, axis=0)
        print(f"{name}: median {medians[0]:.0f} and {medians[1]:.0f} ms, {proved} of {wanted} proved", flush=True)


if __name__ == "__main__":
    main()
