"""The first answer of an installation: nothing is compiled yet. Beside it, what a user waits where kernels are compiled first.

    python benchmarks/cold.py [--cases "forest of 10,logistic regression"] [--rows 5]

Each case is a process of its own with an empty cache. "import" is that of ``mace`` and its explainer; "first" the first ``explain``, from
its first line on, wall time; "next" the median of the rows after it, while another process compiles; "compiled first" the first
``explain`` with ``MACE_COMPILE=now``, once a lane; the ratio divides it by "first". German credit data, held-out rows that the model
refuses.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

CASES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "forest of 10": ("sklearn.ensemble", "RandomForestClassifier", {"n_estimators": 10}),
    "forest of 100": ("sklearn.ensemble", "RandomForestClassifier", {"n_estimators": 100}),
    "booster of 100": ("sklearn.ensemble", "GradientBoostingClassifier", {"n_estimators": 100}),
    "logistic regression": ("sklearn.linear_model", "LogisticRegression", {"max_iter": 1000}),
    "MLP 10x10": ("sklearn.neural_network", "MLPClassifier", {"hidden_layer_sizes": (10, 10), "max_iter": 300}),
}
COMPILED = {"trees": "forest of 10", "network": "logistic regression"}
"""The case with which each lane is compiled first."""

RESULTS = Path(__file__).parent / "results"


def measure(case: str, rows: int) -> dict[str, Any]:
    """Answer the questions of a case in this process."""
    import importlib

    from sklearn.pipeline import make_pipeline

    warnings.simplefilter("ignore")
    begun = time.perf_counter()
    import mace
    from mace.explainer import Explainer

    imported = time.perf_counter() - begun
    home, name, options = CASES[case]
    data = mace.datasets.load("german")
    model = make_pipeline(
        mace.Encoder(data.space), getattr(importlib.import_module(home), name)(random_state=0, **options)
    )
    half = len(data.frame) // 2
    model.fit(data.frame.iloc[:half], data.labels.iloc[:half])
    held = data.frame.iloc[half:]
    refused = held[model.predict(held) == "bad"].iloc[:rows]
    explainer = Explainer(model, data.space)
    seconds, proved = [], 0
    for _, row in refused.iterrows():
        begun = time.perf_counter()
        proved += explainer.explain(row, target="good").status == "optimal"
        seconds.append(time.perf_counter() - begun)
    from mace.solvers import compiling

    (lane,) = compiling._LANES.values()
    if lane.child is not None and lane.child.poll() is None:
        os.kill(lane.child.pid, signal.SIGKILL)
    tier = "compiled" if lane.is_compiled else "interpreted"
    return {
        "lane": lane.package.rpartition(".")[2], "import": imported, "first": seconds[0], "next": statistics.median(seconds[1:]),
        "slowest": max(seconds), "rows": len(seconds), "proved": proved, "tier": tier,
    }  # fmt: skip


def measured(case: str, rows: int, mode: str) -> dict[str, Any]:
    """Measure a case in a process with an empty cache and a lock of its own."""
    with tempfile.TemporaryDirectory() as folder:
        own = {"NUMBA_CACHE_DIR": str(Path(folder) / "cache"), "TMPDIR": folder, "MACE_COMPILE": mode}
        command = [sys.executable, __file__, "--measure", case, "--rows", str(rows)]
        done = subprocess.run(command, env={**os.environ, **own}, stdout=subprocess.PIPE, check=True)
        time.sleep(0.5)  # until what compiled has ended
    found: dict[str, Any] = json.loads(done.stdout)
    return {"case": case, "mode": mode, **found}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--rows", type=int, default=5)
    parser.add_argument("--measure", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.measure, options.rows)))
        return
    records = [measured(case, options.rows, "background") for case in options.cases.split(",")]
    lanes = {record["lane"] for record in records}
    records += [measured(COMPILED[lane], 2, "now") for lane in sorted(lanes)]
    RESULTS.mkdir(exist_ok=True)
    with (RESULTS / "cold.jsonl").open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(record) + "\n" for record in records)
    waits = {record["lane"]: record["first"] for record in records if record["mode"] == "now"}
    print(
        f"{'seconds':<22}{'import':>8}{'first':>8}{'next':>8}{'slowest':>8}  {'tier':<12}{'proved':<8}{'compiled first':>15}{'ratio':>8}"
    )
    for record in records:
        if record["mode"] == "background":
            numbers = "".join(f"{record[name]:>8.2f}" for name in ("import", "first", "next", "slowest"))
            wait = waits[record["lane"]]
            proved = f"{record['proved']}/{record['rows']}"
            print(
                f"{record['case']:<22}{numbers}  {record['tier']:<12}{proved:<8}{wait:>15.1f}{wait / record['first']:>8.0f}"
            )


if __name__ == "__main__":
    main()
