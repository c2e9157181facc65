"""The tree lane on the paper's data sets: solver time, nodes and proved share, beside the SMT lane on the same rows.

    python benchmarks/trees.py [--rows 100] [--data adult,compas,credit] [--models tree,forest10,forest100,boosting] [--smt 2]

Times are milliseconds inside the solver, one thread, kernels warm. The ratio to the SMT lane is measured in the same run,
with a cap; where the cap ends it, the ratio is a lower bound.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
import warnings
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import sklearn
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

import mace

MODELS: dict[str, Any] = {
    "tree": lambda: DecisionTreeClassifier(random_state=0),
    "forest10": lambda: RandomForestClassifier(10, random_state=0),
    "forest100": lambda: RandomForestClassifier(100, random_state=0),
    "forest300": lambda: RandomForestClassifier(300, random_state=0),
    "boosting": lambda: GradientBoostingClassifier(n_estimators=100, max_depth=6, random_state=0),
}
DISTANCES: dict[str, Any] = {
    "l0": "l0",
    "l1": "l1",
    "linf": "linf",
    "mixture": mace.Distance(l0=1 / 3, l1=1 / 3, linf=1 / 3),
}
RESULTS = Path(__file__).parent / "results" / "trees.jsonl"


def split(labels: Any, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the paper's balanced split: both classes down to a multiple of 250, then 70 % and 30 %."""
    rng = np.random.default_rng(seed)
    size = min((labels == 0).sum(), (labels == 1).sum()) // 250 * 250
    chosen = np.concatenate([rng.choice(np.flatnonzero(labels == k), size, replace=False) for k in (0, 1)])
    rng.shuffle(chosen)
    cut = int(0.7 * len(chosen))
    return chosen[:cut], chosen[cut:]


def cpu_seconds(explainer: mace.Explainer, row: Any, **question: Any) -> tuple[float, Any]:
    started = time.process_time()
    explanation = explainer.explain(row, **question)
    return time.process_time() - started, explanation


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100)
    parser.add_argument("--data", default="adult,compas,credit")
    parser.add_argument("--models", default="tree,forest10,forest100,boosting")
    parser.add_argument("--smt", type=int, default=1, help="rows for the SMT lane, trees and forests of 10 only")
    parser.add_argument("--limit", type=float, default=30.0)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    RESULTS.parent.mkdir(exist_ok=True)
    heads = ("median ms", "p99 ms", "max ms", "nodes", "proved", "no flip", "smt ratio")
    print(f"{'data':8}{'model':11}{'distance':9}" + "".join(f"{head:>10}" for head in heads))
    with RESULTS.open("w") as out:
        for name in arguments.data.split(","):
            try:
                data = mace.datasets.load(name)
            except mace.DatasetUnavailable as error:
                print(f"{name}: LEFT OUT, {error}")
                continue
            train, test = split(data.labels, seed=0)
            for model_name in arguments.models.split(","):
                encoder = mace.Encoder(data.space, categorical="codes", ordinal="codes")
                model = make_pipeline(encoder, MODELS[model_name]()).fit(
                    data.frame.iloc[train], data.labels.iloc[train]
                )
                explainer = mace.Explainer(model, data.space)
                rows = test[model.predict(data.frame.iloc[test]) == 0][: arguments.rows]
                explainer.explain(data.frame.iloc[rows[0]], time_limit=arguments.limit)
                for distance_name, distance in DISTANCES.items():
                    record = measure(explainer, model, data.frame.iloc[rows], distance, arguments)
                    record |= {"data": name, "model": model_name, "distance": distance_name, "rows": len(rows)}
                    record |= {
                        "sklearn": sklearn.__version__,
                        "python": platform.python_version(),
                        "machine": platform.machine(),
                    }
                    if model_name in ("tree", "forest10") and distance_name == "l1" and arguments.smt:
                        record |= against_smt(
                            explainer, data.frame.iloc[rows[: arguments.smt]], distance, arguments.limit
                        )
                    out.write(json.dumps(record) + "\n")
                    ratio = f"{record['smt_ratio']:.0f}x" if "smt_ratio" in record else ""
                    times = f"{record['median_ms']:10.2f}{record['p99_ms']:10.2f}{record['max_ms']:10.2f}"
                    counts = (
                        f"{record['median_nodes']:10.0f}{record['proved']:10.1%}{record['not_flipped']:10d}{ratio:>10}"
                    )
                    print(f"{name:8}{model_name:11}{distance_name:9}{times}{counts}", flush=True)


def measure(
    explainer: mace.Explainer, model: Any, frame: Any, distance: Any, arguments: argparse.Namespace
) -> dict[str, Any]:
    seconds, nodes, proved, not_flipped = [], [], 0, 0
    for _, row in frame.iterrows():
        explanation = explainer.explain(row, distance=distance, time_limit=arguments.limit)
        proved += explanation.status in ("optimal", "infeasible")
        for best in explanation:
            seconds.append(best.seconds)
            nodes.append(best.calls)
            not_flipped += int(model.predict(explainer.space.frame_of([explainer.space.point(best.values)]))[0] != 1)
    times = 1000 * np.array(seconds)
    return {
        "median_ms": float(np.median(times)),
        "p99_ms": float(np.percentile(times, 99)),
        "max_ms": float(times.max()),
        "median_nodes": float(np.median(nodes)),
        "max_nodes": int(max(nodes)),
        "proved": proved / len(frame),
        "not_flipped": not_flipped,
    }


def against_smt(explainer: mace.Explainer, frame: Any, distance: Any, limit: float) -> dict[str, Any]:
    """Return the ratio of CPU times on the same rows, whole calls on both sides."""
    ours = theirs = 0.0
    capped = 0
    for _, row in frame.iterrows():
        seconds, answer = cpu_seconds(explainer, row, distance=distance)
        ours += answer[0].seconds if answer else seconds
        seconds, slow = cpu_seconds(explainer, row, distance=distance, solver="smt", time_limit=limit)
        theirs += seconds
        capped += slow.status not in ("optimal", "infeasible")
        if slow.status == "optimal" and abs(slow[0].distance - answer[0].distance) > 1.1e-6:
            raise AssertionError("the lanes disagree")
    return {"smt_ratio": theirs / ours, "smt_capped": capped}


if __name__ == "__main__":
    main()
