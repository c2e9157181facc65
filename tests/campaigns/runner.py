"""What all campaigns share: random problems examined in parallel, and a committed summary of what was found."""

from __future__ import annotations

import argparse
import collections
import json
import os
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from joblib import Parallel, delayed

import mace

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "support"))
os.environ.setdefault("MACE_COMPILE", "now")

SKIPPED = "skipped"
"""What an examination returns where there was no question, or the referee gave up."""

Examine = Callable[[int], tuple[str, str | None]]
"""Returns the family of a seed's problem, and what is wrong: ``None`` where nothing is."""


@dataclass(frozen=True)
class Group:
    """Problems of one kind: how many by default, the first seed, and how one is examined."""

    count: int
    first: int
    examine: Examine


def _guarded(examine: Examine, seed: int) -> tuple[int, str, str | None]:
    warnings.simplefilter("ignore")
    try:
        return seed, *examine(seed)
    except Exception as error:
        return seed, "crashed", f"{type(error).__name__}: {error}"


def run(name: str, about: str, groups: dict[str, Group]) -> int:
    """Examine all problems, write ``<name>.json`` beside this file, and return the exit code."""
    parser = argparse.ArgumentParser(description=about)
    for group, made in groups.items():
        parser.add_argument(f"--{group}", type=int, default=made.count, help=f"problems (default {made.count})")
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("--shift", type=int, default=0, help="how many seeds to skip: other problems than before")
    counts = vars(parser.parse_args())
    started = time.time()
    made_with = {"mace": mace.__version__, "day": datetime.now(UTC).date().isoformat()}
    summary: dict[str, object] = {"campaign": about} | made_with
    faults = 0
    for group, made in groups.items():
        first = made.first + counts["shift"]
        seeds = range(first, first + counts[group])
        results = Parallel(n_jobs=counts["jobs"])(delayed(partial(_guarded, made.examine))(seed) for seed in seeds)
        answered = [result for result in results if result[2] != SKIPPED]
        bad = [{"seed": seed, "family": family, "fault": fault} for seed, family, fault in answered if fault]
        faults += len(bad)
        summary[group] = {
            "problems": len(answered),
            "skipped": len(results) - len(answered),
            "first seed": first,
            "families": dict(sorted(collections.Counter(family for _, family, _ in answered).items())),
            "disagreements": bad,
        }
        sys.stdout.write(
            f"{name}, {group}: {len(answered)} problems, {len(bad)} disagreements, {time.time() - started:.0f} s\n"
        )
        sys.stdout.flush()
        (HERE / f"{name}.json").write_text(json.dumps(summary, indent=2) + "\n")
    for group in summary.values():
        if isinstance(group, dict) and group["disagreements"]:
            sys.stdout.write(json.dumps(group["disagreements"], indent=2) + "\n")
    return 1 if faults else 0
