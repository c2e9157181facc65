"""The large campaign of the network lane: random small networks and linear models against brute force, and against SMT on mixed spaces."""

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


def examine(seed: int, finite: bool) -> tuple[str, int, str | None]:
    warnings.simplefilter("ignore")
    from random_networks import disagreement, random_network

    case = random_network(seed, finite=finite)
    try:
        return case.family, seed, disagreement(case, "enumerate" if finite else "smt", seconds=60 if finite else 15)
    except Exception as error:
        return case.family, seed, f"{type(error).__name__}: {error}"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--finite", type=int, default=2000)
    parser.add_argument("--mixed", type=int, default=300)
    parser.add_argument("--jobs", type=int, default=-1)
    arguments = parser.parse_args()
    started = time.time()
    summary: dict[str, object] = {"campaign": "network against brute force (finite) and SMT (mixed)"}
    faults = 0
    for name, count, finite, first in (
        ("finite", arguments.finite, True, 0),
        ("mixed", arguments.mixed, False, 100_000),
    ):
        results = Parallel(n_jobs=arguments.jobs)(delayed(examine)(first + seed, finite) for seed in range(count))
        bad = [
            {"seed": seed, "family": family, "fault": fault}
            for family, seed, fault in results
            if fault and fault != "skipped"
        ]
        faults += len(bad)
        summary[name] = {
            "problems": count,
            "referee left a gap": sum(fault == "skipped" for _, _, fault in results),
            "families": dict(sorted(collections.Counter(family for family, _, _ in results).items())),
            "disagreements": bad,
        }
    (HERE / "network.json").write_text(json.dumps(summary, indent=2) + "\n")
    sys.stdout.write(f"{json.dumps(summary, indent=2)}\n{time.time() - started:.0f} s\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
