"""Interventions before random forests: the tree lane with the equations in it, beside the general lane.

    python benchmarks/causes.py [--rows 3] [--trees 10,100] [--limit 60] [--milp 10]

Invented applicants (seed 0): savings follow income, debt follows savings, rent follows income, each with noise. Rows that the forest
refuses are asked for the other class, l1, with the first one, two or three equations. Seconds are CPU time of one process, kernels warm;
the general lane is asked where the forest has at most as many trees as ``--milp`` says.
"""

from __future__ import annotations

import argparse
import os
import time
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline

import mace

SPACE = mace.FeatureSpace(
    {
        "age": mace.integer(18, 75),
        "job": mace.categorical(["clerk", "smith", "boss"]),
        "income": mace.real(0, 100),
        "hours": mace.real(10, 60),
        "savings": mace.real(0, 100),
        "debt": mace.real(0, 100),
        "rent": mace.real(0, 60),
    }
)
EQUATIONS = {"savings": "0.3 * income", "debt": "60 - 0.5 * savings", "rent": "5 + 0.2 * income"}


def applicants(rows: int = 1500) -> tuple[pd.DataFrame, np.ndarray[Any, Any]]:
    """Return people and whether they are granted."""
    rng = np.random.default_rng(0)
    income, hours = rng.uniform(0, 100, rows), rng.uniform(10, 60, rows)
    age, job = rng.integers(18, 75, rows), rng.choice(["clerk", "smith", "boss"], rows)
    savings = np.clip(0.3 * income + rng.normal(0, 8, rows) + 10, 0, 100)
    debt = np.clip(60 - 0.5 * savings + rng.normal(0, 8, rows), 0, 100)
    rent = np.clip(5 + 0.2 * income + rng.normal(0, 4, rows), 0, 60)
    columns = (age, job, income, hours, savings, debt, rent)
    frame = pd.DataFrame(dict(zip(SPACE, columns, strict=True)))
    score = income + 2 * savings - debt - rent + 0.2 * hours + 5 * (job == "boss") + rng.normal(0, 8, rows)
    return frame, (score > 55).astype(int)


def timed(explainer: mace.Explainer, rows: pd.DataFrame, solver: str, limit: float) -> tuple[float, int, list[float]]:
    """Return the mean seconds, how many answers are proved nearest, and their distances."""
    seconds, proved, distances = 0.0, 0, []
    for _, row in rows.iterrows():
        begun = time.process_time()
        answer = explainer.explain(row, target=1, solver=solver, time_limit=limit)
        seconds += time.process_time() - begun
        proved += answer.status == "optimal"
        distances.append(answer[0].distance if len(answer) else float("inf"))
    return seconds / len(rows), proved, distances


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=3)
    parser.add_argument("--trees", default="10,100")
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--milp", type=int, default=10)
    options = parser.parse_args()
    mace.warm_up()
    frame, labels = applicants()
    print("trees  effects  lane   seconds  proved")
    for trees in map(int, options.trees.split(",")):
        forest = RandomForestClassifier(trees, max_depth=6, random_state=0)
        model = make_pipeline(mace.Encoder(SPACE), forest).fit(frame, labels)
        rows = frame[model.predict(frame) == 0].head(options.rows)
        for count in (1, 2, 3):
            explainer = mace.Explainer(model, SPACE, mace.Causal(dict(list(EQUATIONS.items())[:count])))
            explainer.explain(rows.iloc[0], target=1)
            found = {}
            for solver in ("auto", "milp") if trees <= options.milp else ("auto",):
                seconds, proved, found[solver] = timed(explainer, rows, solver, options.limit)
                lane = "trees" if solver == "auto" else solver
                print(f"{trees:5}  {count:7}  {lane:5}  {seconds:7.3f}  {proved} of {len(rows)}", flush=True)
            if len(found) == 2 and not np.allclose(found["auto"], found["milp"], atol=2e-6):
                print("       the lanes disagree:", found)


if __name__ == "__main__":
    main()
