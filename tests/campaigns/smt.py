"""The large campaign: the SMT lane against brute force on random problems; leaves its result beside this file."""

from __future__ import annotations

import argparse
import collections
import json
import sys
import time
from pathlib import Path

from joblib import Parallel, delayed

sys.path.insert(0, str(Path(__file__).parent.parent))


def examine(seed: int) -> tuple[str, int, str | None]:
    from random_problems import random_case
    from referee import disagreement

    case = random_case(seed)
    try:
        return case.family, seed, disagreement(case)
    except Exception as error:
        return case.family, seed, f"{type(error).__name__}: {error}"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--problems", type=int, default=500)
    parser.add_argument("--first", type=int, default=0)
    arguments = parser.parse_args()
    started = time.time()
    results, seed = [], arguments.first
    while sum(fault != "skipped" for _, _, fault in results) < arguments.problems:
        results += Parallel(n_jobs=-1)(delayed(examine)(s) for s in range(seed, seed + 100))
        seed += 100
    answered = [result for result in results if result[2] != "skipped"]
    faults = [result for result in answered if result[2] is not None]
    summary = {
        "campaign": "smt against enumerate",
        "problems": len(answered),
        "first_seed": arguments.first,
        "families": dict(collections.Counter(family for family, _, _ in answered)),
        "disagreements": [{"seed": s, "family": family, "fault": fault} for family, s, fault in faults],
    }
    (Path(__file__).parent / "smt.json").write_text(json.dumps(summary, indent=2) + "\n")
    sys.stdout.write(f"{json.dumps(summary, indent=2)}\n{time.time() - started:.0f} s\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
