"""What ``near_data`` costs on trees: each person with it, and without.

    python benchmarks/near_data.py [--rows 8] [--limit 15] [--certify]

German credit data, a forest of 100 full-depth trees fitted on the first 700 people; of the other 300 the first that it calls bad. The data
are the first 300 of the 700 that it calls good. Process CPU time of ``explain`` in one process, kernels warm, l1, in milliseconds; with
``--certify`` also that of checking the certificate.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline

import mace

ASKED = ((1, 0.05), (1, 0.12), (1, 0.2), (3, 0.12), (3, 0.2))


def timed(question: Callable[[], Any]) -> tuple[float, Any]:
    """Return the process time of a question in milliseconds, and its answer."""
    begun = time.process_time()
    answer = question()
    return 1e3 * (time.process_time() - begun), answer


def main() -> None:
    """Print a line for each person, k and radius, and the medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=8)
    parser.add_argument("--limit", type=float, default=15.0)
    parser.add_argument("--certify", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    mace.warm_up()
    data = mace.datasets.load("german")
    train, test = data.frame.iloc[:700], data.frame.iloc[700:]
    model = make_pipeline(mace.Encoder(data.space), RandomForestClassifier(100, random_state=0))
    model.fit(train, data.labels.iloc[:700])
    explainer = mace.Explainer(model, data.space)
    rows = test[model.predict(test) == "bad"].iloc[: options.rows]
    good = train[model.predict(train) == "good"].iloc[:300]
    explainer.explain(rows.iloc[0])
    spent: dict[tuple[int, float], list[float]] = {each: [] for each in ASKED}
    proved = 0
    for number, row in rows.iterrows():
        plain, _ = timed(partial(explainer.explain, row, time_limit=options.limit))
        for k, radius in ASKED:
            near = mace.near_data(good, k=k, radius=radius)
            asked: dict[str, Any] = {"constraints": [near], "time_limit": options.limit, "certify": options.certify}
            taken, answer = timed(partial(explainer.explain, row, **asked))
            spent[k, radius].append(taken)
            proved += answer.status in ("optimal", "infeasible")
            line = f"{number:5} k={k} radius={radius:<5} plain {plain:7.1f} with {taken:8.1f}  {answer.status:<10} {answer.lower:.6f}"
            certificate = answer[0].certificate if answer else answer.certificate
            if certificate is not None:
                checked, verdict = timed(partial(mace.verify, certificate, model))
                line += f"  check {checked:8.1f} {verdict.outcome} {len(certificate.to_json()) / 1e3:.0f} kB"
            print(line, flush=True)
    for (k, radius), times in spent.items():
        print(f"k={k} radius={radius}: median {np.median(times):.0f} ms, slowest {max(times):.0f} ms")
    print(f"proved: {proved} of {len(rows) * len(ASKED)}")


if __name__ == "__main__":
    main()
