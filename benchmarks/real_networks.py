"""Networks over real and mixed features: the network lane beside the milp lane on the first rows of a data set, in one run.

    python benchmarks/real_networks.py [--data breast_cancer] [--rows 50] [--first 0] [--seed 0] [--nets 10,10x10,50,30x30]
        [--norms l0,l1,linf] [--limit 5] [--milp 3]

Breast cancer: StandardScaler and MLPClassifier(max_iter=500, random_state=0) on 30 real features. ``adult``, ``credit`` and ``german`` are
mixed: numbers scaled by StandardScaler, levels one-hot, fitted on 4,000 rows. ``--first`` and ``--seed`` are for rows and networks on which
nothing was tuned. Times are CPU seconds of whole calls, kernels warm.
``--milp`` says on how many of the rows the milp lane is asked too, with the same limit; the ratio is that of the sums over these rows, a
lower bound (">") where the milp lane left one of them open.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import mace
from mace.space import Integer, Real

MOST_ROWS = 4000


def loaded(name: str) -> tuple[Any, Any, mace.FeatureSpace, Any]:
    """Return a data set's frame, labels and space, and what scales its columns."""
    if name == "breast_cancer":
        cancer = load_breast_cancer(as_frame=True)
        return cancer.data, cancer.target, mace.FeatureSpace.from_frame(cancer.data), StandardScaler()
    data = mace.datasets.load(name)
    numbers = [each for each, feature in data.space.items() if isinstance(feature, Real | Integer)]
    levels = [each for each in data.space if each not in numbers]
    scaler = make_column_transformer((StandardScaler(), numbers), (OneHotEncoder(sparse_output=False), levels))
    return data.frame[:MOST_ROWS], data.labels[:MOST_ROWS], data.space, scaler


def timed(explainer: mace.Explainer, row: Any, **question: Any) -> tuple[float, mace.Explanation]:
    """Return the CPU seconds of a question, and its answer."""
    begun = time.process_time()
    answer = explainer.explain(row, **question)
    return time.process_time() - begun, answer


def measured(explainer: mace.Explainer, rows: Any, norm: str, limit: float, milp: int) -> str:
    """Return a line of the table: proved rows, times, the greatest gap, and the ratio to the milp lane."""
    seconds, gaps, proved, other, is_open = [], [], 0, 0.0, False
    for number, (_, row) in enumerate(rows.iterrows()):
        took, answer = timed(explainer, row, distance=norm, time_limit=limit)
        seconds.append(took)
        proved += answer.status == "optimal"
        gaps.append((answer[0].distance - answer.lower) / max(answer[0].distance, 1e-12) if len(answer) else 1.0)
        if number < milp:
            took, answer = timed(explainer, row, distance=norm, time_limit=limit, solver="milp")
            other += took
            is_open |= answer.status != "optimal"
    ratio = f"{'>' * is_open}{other / sum(seconds[:milp]):.0f}x" if milp else ""
    open_gap = max(gaps) if proved < len(gaps) else 0.0
    return f"| {norm} | {proved} of {len(seconds)} | {np.median(seconds):.3f} | {max(seconds):.2f} | {open_gap:.0%} | {ratio} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="breast_cancer")
    parser.add_argument("--rows", type=int, default=50)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--nets", default="10,10x10,50,30x30")
    parser.add_argument("--norms", default="l0,l1,linf")
    parser.add_argument("--limit", type=float, default=5.0)
    parser.add_argument("--milp", type=int, default=3)
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    print("| data | network | distance | proved | median s | max s | widest gap | ratio to milp |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for name in options.data.split(","):
        frame, labels, space, scaler = loaded(name)
        for net in options.nets.split(","):
            classifier = MLPClassifier(tuple(map(int, net.split("x"))), max_iter=500, random_state=options.seed)
            explainer = mace.Explainer(make_pipeline(clone(scaler), classifier).fit(frame, labels), space)
            explainer.explain(frame.iloc[0], time_limit=0.1)
            for norm in options.norms.split(","):
                rows = frame.iloc[options.first : options.first + options.rows]
                line = measured(explainer, rows, norm, options.limit, options.milp)
                print(f"| {name} | {net} {line}", flush=True)


if __name__ == "__main__":
    main()
