"""The general lane on Python functions: CPU time and proved share, beside the SMT lane on the same questions.

    python benchmarks/general.py [--problems 20] [--features 2,4,6,8] [--limit 20]

The functions are random scorecards of real, integer, ordinal and categorical features (tests/support/random_functions.py): sums of
ramps, steps, tables, products of a choice and a number, and terms of two features. Times are CPU milliseconds of one thread
over the whole solver.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np
from trees import versions

import mace

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests" / "support"))
from random_functions import random_function  # noqa: E402

RESULTS = HERE / "results" / "general.jsonl"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--problems", type=int, default=20)
    parser.add_argument("--features", default="2,4,6,8")
    parser.add_argument("--limit", type=float, default=20.0)
    arguments = parser.parse_args()
    mace.warm_up()
    RESULTS.parent.mkdir(exist_ok=True)
    print(
        f"{'features':>8}  {'lane':<6} {'problems':>8} {'median ms':>10} {'worst ms':>10} {'proved':>7}  median ratio to milp"
    )
    with RESULTS.open("a") as file:
        for features in map(int, arguments.features.split(",")):
            records = [
                record
                for seed in range(arguments.problems)
                if (record := measured(seed, features, arguments.limit)) is not None
            ]
            for record in records:
                file.write(json.dumps(record | versions()) + "\n")
            show(features, records)


def measured(seed: int, features: int, limit: float) -> dict[str, object] | None:
    """Return what both lanes made of one function; ``None`` where it has one outcome only."""
    case = random_function(seed, features=features, finite=False)
    explainer = mace.Explainer(case.model, case.space)
    record: dict[str, object] = {"seed": seed, "features": features}
    for lane in ("milp", "smt"):
        started = time.process_time()
        try:
            answer = explainer.explain(case.row, solver=lane, time_limit=limit, **case.question)
        except mace.InvalidTarget:
            return None
        if answer.status == "reached":
            return None
        record[lane] = {
            "ms": 1e3 * (time.process_time() - started),
            "proved": answer.status in ("optimal", "infeasible"),
            "upper": answer[0].distance if answer else None,
            "lower": answer.lower,
        }
    check(record)
    return record


def check(record: dict[str, object]) -> None:
    """Stop where the lower bound of one lane lies above the point of the other."""
    one, other = record["milp"], record["smt"]
    for low, high in ((one, other), (other, one)):
        if high["upper"] is not None and low["lower"] > high["upper"]:
            raise SystemExit(f"the lanes contradict each other: {record}")


def show(features: int, records: list[dict[str, object]]) -> None:
    for lane in ("milp", "smt"):
        times = np.array([record[lane]["ms"] for record in records])
        ratio = np.median([record[lane]["ms"] / record["milp"]["ms"] for record in records])
        proved = np.mean([record[lane]["proved"] for record in records])
        print(
            f"{features:>8}  {lane:<6} {len(records):>8} {np.median(times):>10.1f} {times.max():>10.1f} {proved:>7.0%}  {ratio:.1f}"
        )


if __name__ == "__main__":
    main()
