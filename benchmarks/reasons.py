"""One minimal reason of a row of Adult: what it takes for a forest of 100 trees, a booster of 100 x 6, a network of 10 x 10.

    python benchmarks/reasons.py [--rows 50] [--data adult] [--models forest100,boosting,mlp10x10]

Times are milliseconds of CPU of the whole call, one thread, kernels warm: `one` is a reason none of whose features can be left out,
`smallest` one of the fewest features, `ranges` what widening it to ranges takes on top.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from networks import prepared_rows
from trees import RESULTS, paper_setting, versions

import mace

ASKED: dict[str, dict[str, Any]] = {
    "one": {"ranges": False},
    "smallest": {"ranges": False, "smallest": True},
    "ranges": {"ranges": True},
}


def prepared(data: str, model: str, rows: int) -> tuple[mace.Explainer, Any]:
    """Return an explainer of a model on a data set, and held-out rows that it refuses."""
    if model.startswith(("lr", "mlp", "std")):
        return prepared_rows(mace.datasets.load(data), model, rows)
    setting = paper_setting(data, model, rows)
    return mace.Explainer(setting.model, setting.space), setting.rows


def measured(explainer: mace.Explainer, rows: Any, limit: float, **asked: Any) -> dict[str, Any]:
    """Return CPU milliseconds of one reason of each row, and how they ended."""
    spent, sizes, done = [], [], 0
    for _, row in rows.iterrows():
        started = time.process_time()
        made = explainer.reasons(row, count=1, time_limit=limit, **asked)
        spent.append(1000 * (time.process_time() - started))
        done += len(made) == 1
        sizes += [len(each.features) for each in made]
    middle, high = np.percentile(spent, [50, 90])
    return {
        "median ms": round(middle, 1),
        "p90 ms": round(high, 1),
        "max ms": round(max(spent), 1),
        "found": done / len(spent),
        "features": round(float(np.mean(sizes)), 2) if sizes else None,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=50)
    parser.add_argument("--data", default="adult")
    parser.add_argument("--models", default="forest100,boosting,mlp10x10")
    parser.add_argument("--asked", default=",".join(ASKED))
    parser.add_argument("--limit", type=float, default=30.0, help="seconds for a row")
    arguments = parser.parse_args()
    mace.warm_up()
    warnings.simplefilter("ignore")
    RESULTS.mkdir(exist_ok=True)
    heads = ("median ms", "p90 ms", "max ms", "found", "features")
    print(f"{'data':8}{'model':11}{'asked':10}" + "".join(f"{head:>11}" for head in heads))
    with (RESULTS / "reasons.jsonl").open("w") as out:
        for data in arguments.data.split(","):
            for model in arguments.models.split(","):
                explainer, rows = prepared(data, model, arguments.rows)
                for asked in arguments.asked.split(","):
                    got = measured(explainer, rows, arguments.limit, **ASKED[asked])
                    print(f"{data:8}{model:11}{asked:10}" + "".join(f"{got[head]!s:>11}" for head in heads), flush=True)
                    line = {"data": data, "model": model, "asked": asked, "rows": len(rows), **got, **versions()}
                    out.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
