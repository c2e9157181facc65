"""The tree lane: random small ensembles of every library against brute force, and against SMT on mixed spaces."""

from __future__ import annotations

import sys

from runner import SKIPPED, Group, run


def finite(seed: int) -> tuple[str, str | None]:
    return examine(seed, finite=True)


def prices(seed: int) -> tuple[str, str | None]:
    """Examine a finite problem with the engine of prices alone."""
    from mace.solvers.trees import search

    patience, search.NODES_BEFORE_PRICES = search.NODES_BEFORE_PRICES, 0
    try:
        return examine(seed, finite=True)
    finally:
        search.NODES_BEFORE_PRICES = patience


def mixed(seed: int) -> tuple[str, str | None]:
    return examine(seed, finite=False)


def raw(seed: int) -> tuple[str, str | None]:
    """Examine a problem with real features against brute force over raw values."""
    from random_ensembles import random_ensemble
    from raw_referee import disagreement

    try:
        case = random_ensemble(seed, finite=False)
    except Exception:
        return "not learnt", SKIPPED
    return case.family, disagreement(case, seed)


def examine(seed: int, *, finite: bool) -> tuple[str, str | None]:
    from random_ensembles import random_ensemble
    from trees_referee import compare

    try:
        case = random_ensemble(seed, finite=finite)
    except Exception:  # a library may refuse to learn from random data
        return "not learnt", SKIPPED
    return case.family, compare(case, "enumerate" if finite else "smt", 1e-12 if finite else 1.1e-6)


if __name__ == "__main__":
    groups = {
        "finite": Group(2000, 0, finite),
        "prices": Group(500, 200_000, prices),
        "raw": Group(1000, 300_000, raw),
        "mixed": Group(300, 100_000, mixed),
    }
    sys.exit(
        run(
            "trees",
            "trees against brute force (finite; prices: that engine alone; raw: real values, found by bisecting the model) and SMT (mixed)",
            groups,
        )
    )
