"""Constraints of all kinds, nested: random models of five families against brute force, each answer's certificate checked."""

from __future__ import annotations

import sys

from runner import SKIPPED, Group, run


def finite(seed: int) -> tuple[str, str | None]:
    return examine(seed, "enumerate", 60)


def mixed(seed: int) -> tuple[str, str | None]:
    return examine(seed, "smt", 20)


def examine(seed: int, referee: str, seconds: float) -> tuple[str, str | None]:
    from random_constraints import disagreement, random_constrained

    from mace.errors import InvalidConstraint

    case = random_constrained(seed, finite=referee == "enumerate")
    if case is None:
        return "not learnt", SKIPPED
    if case.family == "vote" and referee == "smt":  # a mean of sigmoids has no formula
        return case.family, SKIPPED
    try:
        return case.family, disagreement(case, referee=referee, seconds=seconds)
    except InvalidConstraint:  # a text that this space gives no sense
        return case.family, SKIPPED


if __name__ == "__main__":
    groups = {"finite": Group(2000, 0, finite), "mixed": Group(200, 100_000, mixed)}
    sys.exit(run("constraints", "constraints of all kinds against brute force (finite) and SMT (mixed)", groups))
