"""The tree lane on the paper's data sets: solver time, nodes and proved share, beside the SMT lane on the same rows.

    python benchmarks/trees.py [--rows 100] [--data adult,compas,credit] [--models tree,forest10,forest100,boosting] [--smt 2]

Times are milliseconds of CPU inside the solver, one thread, kernels warm. The ratio to the SMT lane is measured in the same run,
with a cap; where the cap ends it, the ratio is a lower bound. A second table shows what surrounds the solver: reading the
model, the memory that is kept beside the model's own arrays, and a whole ``explain`` beside one ``predict`` of one row.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
import tracemalloc
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd
import sklearn
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

import mace
import mace.solvers.network
import mace.solvers.trees
from mace.problem import Bounds, Limits, Problem

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
RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Setting:
    """A fitted model, its space, what it was fitted on, and the rows to explain."""

    name: str
    model: Any
    space: mace.FeatureSpace
    train: pd.DataFrame
    labels: pd.Series
    rows: pd.DataFrame


def split(labels: Any, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the paper's balanced split: both classes down to a multiple of 250, then 70 % and 30 %."""
    rng = np.random.default_rng(seed)
    size = min((labels == 0).sum(), (labels == 1).sum()) // 250 * 250
    chosen = np.concatenate([rng.choice(np.flatnonzero(labels == k), size, replace=False) for k in (0, 1)])
    rng.shuffle(chosen)
    cut = int(0.7 * len(chosen))
    return chosen[:cut], chosen[cut:]


def paper_setting(
    data_name: str, model_name: str, rows: int, make: Callable[[], Any] | None = None, *, codes: bool = True
) -> Setting:
    """Return a model on one of the paper's data sets, one column a feature or the paper's, and held-out rows that it refuses."""
    data = mace.datasets.load(data_name)
    train, test = split(data.labels, seed=0)
    encoder = mace.Encoder(data.space, categorical="codes", ordinal="codes") if codes else mace.Encoder(data.space)
    model = make_pipeline(encoder, (make or MODELS[model_name])())
    model.fit(data.frame.iloc[train], data.labels.iloc[train])
    refused = test[model.predict(data.frame.iloc[test]) == 0][:rows]
    return Setting(
        f"{data_name} {model_name}",
        model,
        data.space,
        data.frame.iloc[train],
        data.labels.iloc[train],
        data.frame.iloc[refused],
    )


def versions() -> dict[str, str]:
    return {"sklearn": sklearn.__version__, "python": platform.python_version(), "machine": platform.machine()}


def cpu_seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    started = time.process_time()
    result = call()
    return time.process_time() - started, result


class SolverClock:
    """CPU seconds inside our two fast lanes; ``Counterfactual.seconds`` goes by the wall, which others' work on the machine moves."""

    def __init__(self) -> None:
        self.seconds = 0.0
        for lane in (mace.solvers.trees, mace.solvers.network):
            lane.solve = partial(self._timed, lane.solve)

    def _timed(self, solve: Callable[..., Bounds], problem: Problem, limits: Limits, **options: Any) -> Bounds:
        started = time.process_time()
        try:
            return solve(problem, limits, **options)
        finally:
            self.seconds += time.process_time() - started

    def read(self) -> float:
        """Return the seconds since the last look."""
        seconds, self.seconds = self.seconds, 0.0
        return seconds


CLOCK = SolverClock()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100)
    parser.add_argument("--data", default="adult,compas,credit")
    parser.add_argument("--models", default="tree,forest10,forest100,boosting", help=f"of {', '.join(MODELS)}")
    parser.add_argument("--smt", type=int, default=1, help="rows for the SMT lane, trees and forests of 10 only")
    parser.add_argument("--limit", type=float, default=30.0)
    arguments = parser.parse_args()
    mace.warm_up()
    warnings.simplefilter("ignore")
    RESULTS.mkdir(exist_ok=True)
    heads = ("median ms", "p99 ms", "max ms", "nodes", "proved", "no flip", "smt ratio")
    print(f"{'data':8}{'model':11}{'distance':9}" + "".join(f"{head:>10}" for head in heads))
    surroundings = []
    with (RESULTS / "trees.jsonl").open("w") as out:
        for name in arguments.data.split(","):
            for model_name in arguments.models.split(","):
                try:
                    setting = paper_setting(name, model_name, arguments.rows)
                except mace.DatasetUnavailable as error:
                    print(f"{name}: LEFT OUT, {error}")
                    break
                explainer = mace.Explainer(setting.model, setting.space)
                explainer.explain(setting.rows.iloc[0], time_limit=arguments.limit)
                head = {"data": name, "model": model_name, "rows": len(setting.rows), **versions()}
                for distance_name, distance in DISTANCES.items():
                    record = head | {"distance": distance_name} | measure(explainer, setting, distance, arguments.limit)
                    if model_name in ("tree", "forest10") and distance_name == "l1" and arguments.smt:
                        record |= against_smt(explainer, setting.rows[: arguments.smt], distance, arguments.limit)
                    out.write(json.dumps(record) + "\n")
                    ratio = f"{record['smt_ratio']:.0f}x" if "smt_ratio" in record else ""
                    times = f"{record['median_ms']:10.2f}{record['p99_ms']:10.2f}{record['max_ms']:10.2f}"
                    counts = (
                        f"{record['median_nodes']:10.0f}{record['proved']:10.1%}{record['not_flipped']:10d}{ratio:>10}"
                    )
                    print(f"{name:8}{model_name:11}{distance_name:9}{times}{counts}", flush=True)
                surroundings.append(head | around(setting))
                out.write(json.dumps(surroundings[-1]) + "\n")
    heads = ("read ms", "first ms", "kept MB", "model MB", "ratio", "predict ms", "explain ms", "3x + 5 ms")
    print(f"\n{'data':8}{'model':11}" + "".join(f"{head:>11}" for head in heads))
    for record in surroundings:
        sizes = f"{record['kept_mb']:11.1f}{record['model_mb']:11.1f}{record['kept_mb'] / record['model_mb']:11.1f}"
        times = f"{record['predict_ms']:11.2f}{record['explain_ms']:11.2f}{3 * record['predict_ms'] + 5:11.2f}"
        reading = f"{record['read_ms']:11.1f}{record['first_ms']:11.1f}"
        print(f"{record['data']:8}{record['model']:11}{reading}{sizes}{times}")


def measure(explainer: mace.Explainer, setting: Setting, distance: Any, limit: float) -> dict[str, Any]:
    seconds, nodes, proved, not_flipped = [], [], 0, 0
    for _, row in setting.rows.iterrows():
        CLOCK.read()
        explanation = explainer.explain(row, distance=distance, time_limit=limit)
        seconds.append(CLOCK.read())
        proved += explanation.status in ("optimal", "infeasible")
        for best in explanation:
            nodes.append(best.calls)
            point = setting.space.point(best.values)
            not_flipped += int(setting.model.predict(setting.space.frame_of([point]))[0] != 1)
    times = 1000 * np.array(seconds)
    return {
        "median_ms": float(np.median(times)),
        "p99_ms": float(np.percentile(times, 99)),
        "max_ms": float(times.max()),
        "median_nodes": float(np.median(nodes)),
        "max_nodes": int(max(nodes)),
        "proved": proved / len(setting.rows),
        "not_flipped": not_flipped,
    }


def against_smt(explainer: mace.Explainer, frame: Any, distance: Any, limit: float) -> dict[str, Any]:
    """Return the ratio of the SMT lane's CPU time, whole calls, to the tree lane's in the solver on the same rows."""
    ours = theirs = 0.0
    capped = 0
    for _, row in frame.iterrows():
        CLOCK.read()
        answer = explainer.explain(row, distance=distance)
        ours += CLOCK.read()
        seconds, slow = cpu_seconds(
            lambda row=row: explainer.explain(row, distance=distance, solver="smt", time_limit=limit)
        )
        theirs += seconds
        capped += slow.status not in ("optimal", "infeasible")
        if slow.status == "optimal" and abs(slow[0].distance - answer[0].distance) > 1.1e-6:
            raise AssertionError("the lanes disagree")
    return {"smt_ratio": theirs / ours, "smt_capped": capped}


def around(setting: Setting, repeats: int = 15) -> dict[str, float]:
    """Return what surrounds the solver: reading, the first question, memory, and ``explain`` beside one ``predict``."""
    reading, explainer = cpu_seconds(lambda: mace.Explainer(setting.model, setting.space))
    first, _ = cpu_seconds(lambda: explainer.explain(setting.rows.iloc[0]))
    rows = [setting.rows.iloc[[k % len(setting.rows)]] for k in range(repeats)]
    predicting = [cpu_seconds(lambda row=row: setting.model.predict(row))[0] for row in rows]
    explaining = [cpu_seconds(lambda row=row: explainer.explain(row))[0] for row in rows]
    return {
        "read_ms": 1000 * reading,
        "first_ms": 1000 * first,
        "kept_mb": kept_bytes(setting) / 1e6,
        "model_mb": model_bytes(setting.model[-1]) / 1e6,
        "predict_ms": 1000 * float(np.median(predicting)),
        "explain_ms": 1000 * float(np.median(explaining)),
    }


def kept_bytes(setting: Setting) -> int:
    """Return how many bytes an explainer keeps after its first answer."""
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    explainer = mace.Explainer(setting.model, setting.space)
    explainer.explain(setting.rows.iloc[0])
    kept = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    return kept


def model_bytes(model: Any) -> int:
    """Return the bytes of the arrays of scikit-learn's trees."""
    states = [tree.tree_.__getstate__() for tree in np.ravel(getattr(model, "estimators_", [model]))]
    return sum(state["nodes"].nbytes + state["values"].nbytes for state in states)


if __name__ == "__main__":
    main()
