"""At most k features change: what a limit on the number of changes costs beside finding the least number.

    python benchmarks/sparsity.py [--rows 6] [--limit 20]

scikit-learn's breast cancer data (30 reals), a forest of 100, the first rows that the forest calls malignant. For each row the least number
k of changes is proved under l0; then the nearest answer under l1 with at most k changes, and that there is none with k - 1. Process CPU
time of ``explain`` in one process, kernels warm.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from typing import Any

import numpy as np
from hard_trees import breast_cancer
from sklearn.ensemble import RandomForestClassifier
from trees import RESULTS, versions

import mace


def timed(explainer: mace.Explainer, row: Any, limit: float, **asked: Any) -> tuple[float, mace.Explanation]:
    """Return the process time of one question in milliseconds, and its answer."""
    begun = time.process_time()
    answer = explainer.explain(row, time_limit=limit, **asked)
    return 1e3 * (time.process_time() - begun), answer


def main() -> None:
    """Print a line for each row, and the medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=6)
    parser.add_argument("--limit", type=float, default=20.0)
    arguments = parser.parse_args()
    mace.warm_up()
    warnings.simplefilter("ignore")
    frame, labels = breast_cancer()
    model = RandomForestClassifier(100, random_state=0).fit(frame, labels)
    explainer = mace.Explainer(model, mace.FeatureSpace.from_frame(frame))
    rows = frame[model.predict(frame) == 0].iloc[: arguments.rows]
    explainer.explain(rows.iloc[0], distance="l0", time_limit=arguments.limit)
    print(
        f"{'row':>5}{'k':>4}{'l0 ms':>9}{'at most k':>11}{'ratio':>8}{'proved':>12}{'k - 1':>9}{'proved':>12}{'nodes':>9}"
    )
    records = []
    for number, row in rows.iterrows():
        spent, fewest = timed(explainer, row, arguments.limit, distance="l0")
        k = round(fewest[0].distance * len(frame.columns))
        within, answer = timed(explainer, row, arguments.limit, constraints=[mace.changes_at_most(k)])
        below, none = timed(explainer, row, arguments.limit, constraints=[mace.changes_at_most(k - 1)])
        record = {
            "row": int(number),
            "k": k,
            "l0_ms": spent,
            "l0": fewest.status,
            "ms": within,
            "status": answer.status,
        }
        record |= {"distance": answer[0].distance if answer else None, "lower": answer.lower}
        record |= {"fewer_ms": below, "fewer": none.status} | versions()
        records.append(record)
        print(
            f"{number:5}{k:4}{spent:9.1f}{within:11.1f}{within / spent:8.2f}{answer.status:>12}{below:9.1f}{none.status:>12}"
            f"{answer[0].calls if answer else 0:9}   {record['lower']:.5f} {record['distance']}",
            flush=True,
        )
    ratio = [record["ms"] / record["l0_ms"] for record in records]
    proved = sum(record["status"] == "optimal" for record in records)
    refused = sum(record["fewer"] == "infeasible" for record in records)
    print(
        f"median ratio {np.median(ratio):.2f}, {proved} of {len(records)} proved, k - 1 proved infeasible {refused} times"
    )
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "sparsity.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))


if __name__ == "__main__":
    main()
