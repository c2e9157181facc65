"""Soft votes of a forest and a logistic regression, as one deploys them: what is proved, and how long it takes.

    python benchmarks/votes.py [--data german,adult] [--trees 30] [--depth 5] [--rows 3] [--distance l1] [--limit 20]

Numbers are scaled, levels one-hot, fitted on at most 4,000 rows; the rows asked about are others. ``--depth 0`` has trees grow to the end.
Times are CPU seconds of whole calls, the limit is by the clock.
"""

from __future__ import annotations

import argparse
import os
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from real_networks import loaded
from sklearn.ensemble import RandomForestClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import mace


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="german,adult")
    parser.add_argument("--trees", type=int, default=30)
    parser.add_argument("--depth", type=int, default=5)
    parser.add_argument("--rows", type=int, default=3)
    parser.add_argument("--distance", default="l1")
    parser.add_argument("--limit", type=float, default=20.0)
    asked = parser.parse_args()
    print("| data | row | status | distance | lower | CPU s |\n| --- | --- | --- | --- | --- | --- |")
    for name in asked.data.split(","):
        frame, labels, space, scaler = loaded(name)
        order = np.random.default_rng(7).permutation(len(frame))
        fitted, others = np.split(order, [len(order) * 7 // 10])
        forest = RandomForestClassifier(asked.trees, max_depth=asked.depth or None, random_state=0)
        voters = [("forest", forest), ("linear", LogisticRegression(max_iter=1000))]
        model = make_pipeline(scaler, VotingClassifier(voters, voting="soft"))
        explainer = mace.Explainer(model.fit(frame.iloc[fitted], labels.iloc[fitted]), space)
        for row in others[: asked.rows]:
            begun = time.process_time()
            found = explainer.explain(frame.iloc[row], distance=asked.distance, time_limit=asked.limit)
            distance = f"{found[0].distance:.4f}" if found else ""
            seconds = time.process_time() - begun
            print(f"| {name} | {row} | {found.status} | {distance} | {found.lower:.4f} | {seconds:.1f} |", flush=True)


if __name__ == "__main__":
    main()
