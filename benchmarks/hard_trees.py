"""The tree lane where it is hard: many numeric features under l1, hundreds of boosted trees, rows far from the boundary.

    python benchmarks/hard_trees.py [--rows 6] [--limit 10] [--settings xgboost] [--distances l1,linf,l0]

Rows go from the farthest of the boundary (by the model's own probability) to the nearest. Prints CPU time in the solver,
nodes, proved share and, for what is not proved, the gap that is left. ``--settings`` takes those whose name contains the
text.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from trees import CLOCK, RESULTS, Setting, versions

import mace


def classification(rows: int, features: int, informative: int) -> tuple[pd.DataFrame, pd.Series]:
    X, y = make_classification(rows, features, n_informative=informative, random_state=0)
    return pd.DataFrame(X, columns=[f"x{k}" for k in range(features)]), pd.Series(y)


def breast_cancer() -> tuple[pd.DataFrame, pd.Series]:
    breast = load_breast_cancer(as_frame=True)
    return breast.data, breast.target


def hist(trees: int, depth: int | None = None) -> HistGradientBoostingClassifier:
    return HistGradientBoostingClassifier(max_iter=trees, max_depth=depth, early_stopping=False, random_state=0)


def xgb(trees: int, depth: int) -> Any:
    import xgboost

    return xgboost.XGBClassifier(n_estimators=trees, max_depth=depth, n_jobs=1)


SETTINGS: dict[str, tuple[Callable[[], Any], Callable[[], tuple[pd.DataFrame, pd.Series]]]] = {
    "xgboost 100 x depth 5, 20 features": (partial(xgb, 100, 5), partial(classification, 10_000, 20, 10)),
    "xgboost 200 x depth 6, 20 features": (partial(xgb, 200, 6), partial(classification, 10_000, 20, 10)),
    "hist boosting 100, 20 features": (partial(hist, 100), partial(classification, 5000, 20, 10)),
    "hist boosting 300 x depth 6, 30 features": (partial(hist, 300, 6), partial(classification, 5000, 30, 15)),
    "hist boosting 500 x depth 8, 50 features": (partial(hist, 500, 8), partial(classification, 5000, 50, 25)),
    "forest of 100, breast cancer, 30 features": (partial(RandomForestClassifier, 100, random_state=0), breast_cancer),
}


def hard_setting(name: str, rows: int) -> Setting:
    """Return a model over numeric features, and refused rows from the farthest of the boundary to the nearest."""
    make, data = SETTINGS[name]
    frame, labels = data()
    model = make().fit(frame, labels)
    scores = model.predict_proba(frame)[:, 1]
    refused = np.flatnonzero(model.predict(frame) == 0)
    ranked = refused[np.argsort(scores[refused], kind="stable")]
    chosen = ranked[np.linspace(0, len(ranked) - 1, rows).astype(int)]
    return Setting(name, model, mace.FeatureSpace.from_frame(frame), frame, labels, frame.iloc[chosen])


def measure(explainer: mace.Explainer, setting: Setting, distance: str, limit: float) -> dict[str, Any]:
    seconds, answers, not_flipped = [], [], 0
    for _, row in setting.rows.iterrows():
        CLOCK.read()
        answers.append(explainer.explain(row, distance=distance, time_limit=limit))
        seconds.append(CLOCK.read())
        for best in answers[-1]:
            not_flipped += int(setting.model.predict(pd.DataFrame([best.values]))[0] != 1)
    times = 1000 * np.array(seconds)
    nodes = [best.calls for answer in answers for best in answer]
    return {
        "median_ms": float(np.median(times)),
        "p99_ms": float(np.percentile(times, 99)),
        "max_ms": float(times.max()),
        "median_nodes": float(np.median(nodes or [0])),
        "proved": float(np.mean([answer.status == "optimal" for answer in answers])),
        "not_flipped": not_flipped,
        "gaps": [
            (answer.lower, answer[0].distance if answer else None) for answer in answers if answer.status != "optimal"
        ],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=6)
    parser.add_argument("--limit", type=float, default=10.0)
    parser.add_argument("--settings", default="")
    parser.add_argument("--distances", default="l1,linf,l0")
    arguments = parser.parse_args()
    mace.warm_up()
    warnings.simplefilter("ignore")
    RESULTS.mkdir(exist_ok=True)
    heads = f"{'median ms':>10}{'p99 ms':>10}{'max ms':>10}{'nodes':>8}{'proved':>8}{'no flip':>8}"
    print(f"{'setting':44}{'distance':9}{heads}   gaps (lower / upper)")
    with (RESULTS / "hard_trees.jsonl").open("w") as out:
        for name in SETTINGS:
            if arguments.settings not in name:
                continue
            try:
                setting = hard_setting(name, arguments.rows)
            except ImportError as error:
                print(f"{name}: LEFT OUT, {error}")
                continue
            explainer = mace.Explainer(setting.model, setting.space)
            explainer.explain(setting.rows.iloc[-1], distance="l0", time_limit=arguments.limit)
            for distance in arguments.distances.split(","):
                record = {"setting": name, "distance": distance, "rows": arguments.rows, "limit": arguments.limit}
                record |= versions() | measure(explainer, setting, distance, arguments.limit)
                out.write(json.dumps(record) + "\n")
                times = f"{record['median_ms']:10.1f}{record['p99_ms']:10.1f}{record['max_ms']:10.1f}"
                counts = f"{record['median_nodes']:8.0f}{record['proved']:8.0%}{record['not_flipped']:8d}"
                gaps = " ".join(f"{low:.4f}/{'none' if up is None else f'{up:.4f}'}" for low, up in record["gaps"])
                print(f"{name:44}{distance:9}{times}{counts}   {gaps}", flush=True)


if __name__ == "__main__":
    main()
