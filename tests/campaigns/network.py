"""The network lane: random networks and linear models against brute force, SMT on mixed spaces, and the milp lane over many reals."""

from __future__ import annotations

import sys

from runner import SKIPPED, Group, run


def finite(seed: int) -> tuple[str, str | None]:
    return examine(seed, finite=True)


def mixed(seed: int) -> tuple[str, str | None]:
    return examine(seed, finite=False)


def real(seed: int) -> tuple[str, str | None]:
    """Networks over 7 to 12 features, most of them real: units are split."""
    from random_networks import disagreement, real_network

    case = real_network(seed)
    return case.family, disagreement(case, "milp", seconds=20)


def raced(seed: int) -> tuple[str, str | None]:
    """Networks over as many features under mixtures: the milp lane takes turns with boxes, as ``auto`` has it, and has less time alone."""
    from random_networks import disagreement, mixture_network

    from mace.problem import Limits
    from mace.solvers import choose

    case = mixture_network(seed)
    solve = choose("auto", case.problem).solve
    return case.family, disagreement(case, "milp", seconds=20, solve=lambda asked, _: solve(asked, Limits.of(90)))


def examine(seed: int, *, finite: bool) -> tuple[str, str | None]:
    from random_networks import disagreement, random_network

    from mace.solvers import network
    from mace.solvers.abilities import obstacle

    case = random_network(seed, finite=finite)
    if obstacle(network, case.problem):
        return case.family, SKIPPED
    return case.family, disagreement(case, "enumerate" if finite else "smt", seconds=60 if finite else 15)


if __name__ == "__main__":
    groups = {
        "finite": Group(2000, 0, finite),
        "mixed": Group(300, 100_000, mixed),
        "real": Group(200, 200_000, real),
        "raced": Group(100, 300_000, raced),
    }
    sys.exit(run("network", "network against brute force (finite), SMT (mixed) and milp (real, raced)", groups))
