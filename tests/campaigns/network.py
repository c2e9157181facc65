"""The network lane: random small networks and linear models against brute force, and against SMT on mixed spaces."""

from __future__ import annotations

import sys

from runner import SKIPPED, Group, run


def finite(seed: int) -> tuple[str, str | None]:
    return examine(seed, finite=True)


def mixed(seed: int) -> tuple[str, str | None]:
    return examine(seed, finite=False)


def examine(seed: int, *, finite: bool) -> tuple[str, str | None]:
    from random_networks import disagreement, random_network

    from mace.solvers import network
    from mace.solvers.abilities import obstacle

    case = random_network(seed, finite=finite)
    if obstacle(network, case.problem):
        return case.family, SKIPPED
    return case.family, disagreement(case, "enumerate" if finite else "smt", seconds=60 if finite else 15)


if __name__ == "__main__":
    groups = {"finite": Group(2000, 0, finite), "mixed": Group(300, 100_000, mixed)}
    sys.exit(run("network", "network against brute force (finite) and SMT (mixed)", groups))
