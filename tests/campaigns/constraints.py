"""Constraints of all kinds, nested: random models of five families against brute force, each answer's certificate checked."""

from __future__ import annotations

import sys

from runner import SKIPPED, Group, run


def finite(seed: int) -> tuple[str, str | None]:
    from mace.errors import InvalidConstraint
    from random_constraints import disagreement, random_constrained

    case = random_constrained(seed)
    if case is None:
        return "not learnt", SKIPPED
    try:
        return case.family, disagreement(case)
    except InvalidConstraint:  # a text that this space gives no sense
        return case.family, SKIPPED


if __name__ == "__main__":
    groups = {"finite": Group(1000, 0, finite)}
    sys.exit(run("constraints", "constraints of all kinds against brute force", groups))
