"""The general lane: random functions and models of every family against brute force, and against SMT on mixed spaces."""

from __future__ import annotations

import sys

from runner import SKIPPED, Group, run


def functions(seed: int) -> tuple[str, str | None]:
    from milp_referee import compare
    from random_functions import random_function

    return "function", compare(random_function(seed), "enumerate", 1e-12)


def models(seed: int) -> tuple[str, str | None]:
    from milp_referee import compare, is_l2
    from random_problems import random_case

    case = random_case(seed)
    return case.family, SKIPPED if is_l2(seed) else compare(case, "enumerate", 1e-12)


def mixed(seed: int) -> tuple[str, str | None]:
    from milp_referee import compare
    from random_functions import random_function

    return "function", compare(random_function(seed, finite=False), "smt", 1.1e-6)


if __name__ == "__main__":
    groups = {
        "functions": Group(500, 0, functions),
        "models": Group(500, 5_000, models),
        "mixed": Group(150, 100_000, mixed),
    }
    sys.exit(run("general", "milp against brute force (functions, models) and SMT (mixed)", groups))
