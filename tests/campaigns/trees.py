"""The large campaign of the tree lane: random small ensembles of every library against brute force, and against SMT on mixed spaces."""

from __future__ import annotations

import argparse
import collections
import json
import sys
import time
import warnings
from pathlib import Path

from joblib import Parallel, delayed

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))


def examine(seed: int, finite: bool, patience: int) -> tuple[str, int, str | None]:
    warnings.simplefilter("ignore")
    from mace.solvers.trees import search
    from random_ensembles import random_ensemble
    from test_trees_lane import compare

    search.PATIENCE = patience

    case = random_ensemble(seed, finite=finite)
    try:
        return case.family, seed, compare(case, "enumerate" if finite else "smt", 1e-12 if finite else 1.1e-6)
    except Exception as error:
        return case.family, seed, f"{type(error).__name__}: {error}"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--finite", type=int, default=2000)
    parser.add_argument("--prices", type=int, default=500)
    parser.add_argument("--mixed", type=int, default=300)
    arguments = parser.parse_args()
    started = time.time()
    summary: dict[str, object] = {"campaign": "trees against brute force (finite) and SMT (mixed)"}
    faults = 0
    from mace.solvers.trees.search import PATIENCE

    for name, count, finite, first, patience in (
        ("finite", arguments.finite, True, 0, PATIENCE),
        ("finite, prices only", arguments.prices, True, 200_000, 0),
        ("mixed", arguments.mixed, False, 100_000, PATIENCE),
    ):
        results = Parallel(n_jobs=-1)(delayed(examine)(first + seed, finite, patience) for seed in range(count))
        bad = [{"seed": seed, "family": family, "fault": fault} for family, seed, fault in results if fault]
        faults += len(bad)
        families = dict(sorted(collections.Counter(family for family, _, _ in results).items()))
        summary[name] = {"problems": count, "families": families, "disagreements": bad}
    (HERE / "trees.json").write_text(json.dumps(summary, indent=2) + "\n")
    sys.stdout.write(f"{json.dumps(summary, indent=2)}\n{time.time() - started:.0f} s\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
