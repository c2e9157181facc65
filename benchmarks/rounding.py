"""What round answers cost: the same questions with ``round_to=None`` and as they are asked by default, interleaved, in CPU time.

python benchmarks/rounding.py --rows 20
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from typing import Any

from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mace

MODELS: dict[str, Any] = {
    "logistic regression": make_pipeline(StandardScaler(), LogisticRegression(max_iter=5000)),
    "MLP (10,)": make_pipeline(StandardScaler(), MLPClassifier((10,), max_iter=1000, random_state=0)),
    "forest of 20": RandomForestClassifier(20, random_state=0),
    "calibrated logistic regression (curves)": make_pipeline(
        StandardScaler(), CalibratedClassifierCV(LogisticRegression(max_iter=5000), cv=2)
    ),
    "forest and logistic regression, voting": VotingClassifier(
        [
            ("forest", RandomForestClassifier(3, max_depth=3, random_state=0)),
            ("linear", make_pipeline(StandardScaler(), LogisticRegression(max_iter=5000))),
        ],
        voting="soft",
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20)
    parser.add_argument("--limit", type=float, default=10.0)
    parser.add_argument("--distances", default="l1,l2,linf")
    parser.add_argument("--models", type=int, default=len(MODELS))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    mace.warm_up()
    data = load_breast_cancer(as_frame=True)
    space = mace.FeatureSpace.from_frame(data.data)
    frame = data.data[data.target == 0].head(options.rows + 1)
    print(
        f"Breast cancer, {len(space)} features of which {len(space.round_to)} have decimals to keep; CPU ms, medians."
    )
    print("| model | distance | any number | round | ratio | proved, of which next to | changed |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name, model in list(MODELS.items())[: options.models]:
        explainer = mace.Explainer(model.fit(data.data, data.target), space)
        for distance in options.distances.split(","):
            spent: dict[str, list[float]] = {"raw": [], "round": []}
            proved = next_to = 0
            changed: list[int] = []
            for row in range(len(frame)):
                for kind, round_to in (("raw", None), ("round", "auto")):
                    begun = time.process_time()
                    try:
                        made = explainer.explain(
                            frame.iloc[row], distance=distance, round_to=round_to, time_limit=options.limit
                        )
                    except mace.InvalidOption:
                        break
                    spent[kind].append(time.process_time() - begun)
                else:
                    proved += made.status == "optimal"
                    next_to += made.rounds_next
                    changed += [len(made[0].changes)] if made else []
            if not spent["round"]:
                continue
            raw, rounded = (1e3 * statistics.median(each[1:]) for each in spent.values())
            total = sum(spent["round"][1:]) / sum(spent["raw"][1:])
            print(
                f"| {name} | {distance} | {raw:.1f} | {rounded:.1f} | {rounded / raw:.2f} (sums {total:.2f}) "
                f"| {proved} of {len(frame)}, {next_to} | {statistics.median(changed) if changed else '-'} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
