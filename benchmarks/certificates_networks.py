"""Proofs of the network lane on the paper's models: what recording costs, how large they are, and how long it takes to check them.

    python benchmarks/certificates_networks.py [--rows 60] [--data adult,compas,credit] [--models lr,mlp10x10] [--distances l0,l1,linf]

Times are CPU milliseconds of one thread, kernels warm, calls of the real model's ``predict`` not counted in solving times.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from fractions import Fraction
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from networks import prepared_rows, problem_of

import mace
from mace.certify.arrays import pack
from mace.certify.network import checker
from mace.certify.verdict import Refuted
from mace.exact import float_down
from mace.problem import Limits, Problem
from mace.solvers import network

RESULTS = Path(__file__).parent / "results" / "certificates_networks.jsonl"


def solve(problem: Problem, spent: list[float], record: bool) -> tuple[float, Any]:
    """Return the milliseconds inside the solver, and its answer."""
    before, started = spent[0], time.process_time()
    bounds = network.solve(problem, Limits(record=record))
    return 1e3 * (time.process_time() - started - (spent[0] - before)), bounds


def check(problem: Problem, bounds: Any) -> tuple[float, str]:
    """Return the milliseconds of a check, and its verdict."""
    started = time.process_time()
    lower = None if bounds.is_infeasible else Fraction(float_down(bounds.lower))
    try:
        checker.check(problem, lower, bounds.evidence, lambda share: None)
        verdict = "valid"
    except Refuted as refused:
        verdict = f"refuted: {refused}"
    return 1e3 * (time.process_time() - started), verdict


def measure(explainer: mace.Explainer, rows: Any, distance: str) -> dict[str, Any]:
    """Return medians and greatest values over some rows."""
    plain, recorded, checks, sizes, entries, valid = [], [], [], [], [], 0
    for _, row in rows.iterrows():
        problem, spent = problem_of(explainer, row, distance)
        plain.append(solve(problem, spent, record=False)[0])
        taken, bounds = solve(problem, spent, record=True)
        recorded.append(taken)
        if bounds.evidence is None or "missing" in bounds.evidence:
            continue
        taken, verdict = check(problem, bounds)
        valid += verdict == "valid"
        checks.append(taken)
        arrays = [array for part in bounds.evidence["parts"] for array in part.values()]
        sizes.append(sum(len(json.dumps(pack(array))) for array in arrays))
        entries.append(sum(len(part["feature"]) for part in bounds.evidence["parts"]))
    return {
        "rows": len(rows),
        "valid": valid,
        "solve ms": f"{np.median(plain):.2f} / {max(plain):.1f}",
        "record": round(sum(recorded) / sum(plain), 2),
        "check ms": f"{np.median(checks):.1f} / {max(checks):.0f}",
        "bytes": f"{np.median(sizes):.0f} / {max(sizes)}",
        "entries": f"{np.median(entries):.0f} / {max(entries)}",
    }


def main() -> None:
    """Measure, print a table, and write JSON lines."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=60)
    parser.add_argument("--data", default="adult,compas,credit")
    parser.add_argument("--models", default="lr,mlp10x10")
    parser.add_argument("--distances", default="l0,l1,linf")
    options = parser.parse_args()
    mace.warm_up()
    warnings.filterwarnings("ignore")
    lines = []
    for data in options.data.split(","):
        loaded = mace.datasets.load(data)
        for model in options.models.split(","):
            explainer, rows = prepared_rows(loaded, model, options.rows)
            for distance in options.distances.split(","):
                line = {"data": data, "model": model, "distance": distance, **measure(explainer, rows, distance)}
                lines.append(line)
                print(" | ".join(map(str, line.values())), flush=True)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text("".join(json.dumps(line) + "\n" for line in lines))


if __name__ == "__main__":
    main()
