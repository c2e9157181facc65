"""The tree lane where it is hard: many numeric features under l1, hundreds of boosted trees, rows far from the boundary.

    python benchmarks/hard_trees.py [--rows 6] [--limit 10]

Prints solver time, nodes, proved share and, for what is not proved, the gap that is left.
"""

from __future__ import annotations

import argparse
import os
import warnings
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier

import mace


def classification(rows: int, features: int, informative: int) -> tuple[pd.DataFrame, np.ndarray]:
    X, y = make_classification(rows, features, n_informative=informative, random_state=0)
    return pd.DataFrame(X, columns=[f"x{k}" for k in range(features)]), y


def settings() -> dict[str, tuple[Any, pd.DataFrame, np.ndarray]]:
    breast = load_breast_cancer(as_frame=True)
    made: dict[str, tuple[Any, pd.DataFrame, np.ndarray]] = {
        "forest of 100, breast cancer": (
            RandomForestClassifier(100, random_state=0),
            breast.data,
            breast.target.to_numpy(),
        ),
        "hist boosting 100, 20 features": (
            HistGradientBoostingClassifier(max_iter=100, random_state=0),
            *classification(5000, 20, 10),
        ),
        "hist boosting 300 x depth 6, 30 features": (
            HistGradientBoostingClassifier(max_iter=300, max_depth=6, random_state=0),
            *classification(5000, 30, 15),
        ),
    }
    try:
        import xgboost
    except ImportError:
        print("xgboost is NOT INSTALLED: its settings are left out")
    else:
        data = classification(10_000, 20, 10)
        for trees, depth in ((100, 5), (200, 6)):
            made[f"xgboost {trees} x depth {depth}, 20 features"] = (
                xgboost.XGBClassifier(n_estimators=trees, max_depth=depth, n_jobs=1),
                *data,
            )
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=6)
    parser.add_argument("--limit", type=float, default=10.0)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"{'setting':44}{'distance':9}{'median ms':>10}{'max ms':>9}{'nodes':>8}{'proved':>8}   gaps (lower / upper)")
    for name, (model, frame, labels) in settings().items():
        model.fit(frame, labels)
        explainer = mace.Explainer(model, mace.FeatureSpace.from_frame(frame))
        scores = model.predict_proba(frame)[:, 1]
        refused = np.flatnonzero(model.predict(frame) == 0)
        ranked = refused[np.argsort(scores[refused])]
        rows = ranked[np.linspace(0, len(ranked) - 1, arguments.rows).astype(int)]
        for distance in ("l1", "linf", "l0"):
            answers = [
                explainer.explain(frame.iloc[row], distance=distance, time_limit=arguments.limit) for row in rows
            ]
            times = [1000 * best.seconds for answer in answers for best in answer]
            nodes = [best.calls for answer in answers for best in answer]
            proved = np.mean([answer.status == "optimal" for answer in answers])
            gaps = [
                f"{a.lower:.4f}/{a[0].distance:.4f}" if a else f"{a.lower:.4f}/none"
                for a in answers
                if a.status != "optimal"
            ]
            timing = f"{np.median(times or [np.nan]):10.1f}{max(times or [np.nan]):9.1f}{np.median(nodes or [0]):8.0f}"
            print(f"{name:44}{distance:9}{timing}{proved:8.0%}   {' '.join(gaps)}", flush=True)


if __name__ == "__main__":
    main()
