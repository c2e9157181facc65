"""How the network lane's cost grows with width, depth and free features; draws docs/growth-networks.svg.

python benchmarks/growth_networks.py [--data credit] [--rows 6] [--limit 20]
"""

from __future__ import annotations

import argparse
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from networks import prepared_rows, problem_of, timed_solve
from sklearn.datasets import make_classification
from sklearn.neural_network import MLPClassifier

import mace
from mace.solvers import network

mpl.use("svg")
from matplotlib import pyplot

PICTURE = Path(__file__).parent.parent / "docs" / "growth-networks.svg"
DISTANCES = ("l1", "linf")


def times(
    explainer: mace.Explainer, frame: Any, distance: str, limit: float, free: int | None = None
) -> tuple[list[float], int]:
    """Return CPU milliseconds a row, and how many rows were not proved; only the first ``free`` numeric features may change."""
    taken, open_rows = [], 0
    numeric = [name for name, feature in explainer.space.items() if not hasattr(feature, "levels")]
    kept = numeric[free:] if free is not None else []
    for _, row in frame.iterrows():
        problem, spent = problem_of(explainer, row, distance)
        if kept:
            problem = replace(problem, conditions=(mace.fixed(*kept).bind(problem.space, problem.factual),))
        seconds, bounds = timed_solve(network, problem, spent, limit)
        taken.append(1000 * seconds)
        open_rows += bounds.status(problem.accuracy) not in ("optimal", "infeasible")
    return taken, open_rows


def synthetic(size: int, rows: int) -> tuple[mace.Explainer, Any]:
    """Return a network on synthetic data with so many real features, all informative, and rows that it refuses."""
    X, y = make_classification(2000, size, n_informative=size, n_redundant=0, random_state=0)
    frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(size)])
    model = MLPClassifier((30, 30), max_iter=40, random_state=0).fit(frame, y)
    explainer = mace.Explainer(model, mace.FeatureSpace.from_frame(frame))
    return explainer, frame[model.predict(frame) == 0].iloc[:rows]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="credit")
    parser.add_argument("--rows", type=int, default=6)
    parser.add_argument("--limit", type=float, default=20.0)
    arguments = parser.parse_args()
    mace.warm_up()
    warnings.simplefilter("ignore")
    data = mace.datasets.load(arguments.data)
    numeric = sum(not hasattr(feature, "levels") for feature in data.space.values())
    sweeps = {
        "units in each of two layers": [(width, f"std{width}x{width}", None) for width in (10, 20, 40, 80, 160)],
        "layers of 30 units": [(depth, "std" + "x".join(["30"] * depth), None) for depth in (1, 2, 3, 4)],
        "free numeric features, 40 x 40": [(free, "std40x40", free) for free in range(1, numeric + 1, 2)],
        "real features, synthetic, 30 x 30": [(size, f"synthetic{size}", None) for size in (4, 6, 8, 10, 12, 16, 24)],
    }
    models: dict[str, Any] = {}
    figure, axes = pyplot.subplots(1, len(sweeps), figsize=(15, 3.4), sharey=True)
    for axis, (title, points) in zip(axes, sweeps.items(), strict=True):
        for distance in DISTANCES:
            middle, worst = [], []
            for place, name, free in points:
                if name not in models:
                    rows = arguments.rows
                    models[name] = synthetic(place, rows) if "synthetic" in name else prepared_rows(data, name, rows)
                taken, open_rows = times(*models[name], distance, arguments.limit, free)
                middle.append(np.median(taken))
                worst.append(max(taken))
                print(
                    f"{title:36}{distance:6}{place:5}{middle[-1]:12.2f}{worst[-1]:12.1f} ms{open_rows:4d} open",
                    flush=True,
                )
            places = [place for place, _, _ in points]
            (line,) = axis.plot(places, middle, marker="o", label=f"{distance}, median")
            axis.plot(places, worst, marker=".", linestyle=":", color=line.get_color(), label=f"{distance}, worst")
        axis.set_xlabel(title)
        axis.set_yscale("log")
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("CPU milliseconds")
    axes[0].legend(fontsize=8)
    figure.suptitle(f"{arguments.data}, standardised inputs, {arguments.rows} rows", fontsize=10)
    figure.tight_layout()
    figure.savefig(PICTURE, metadata={"Date": None})


if __name__ == "__main__":
    main()
