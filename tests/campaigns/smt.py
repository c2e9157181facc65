"""The SMT lane against brute force on random problems of every model family."""

from __future__ import annotations

import sys

from runner import Group, run


def examine(seed: int) -> tuple[str, str | None]:
    from random_problems import random_case
    from referee import disagreement

    case = random_case(seed)
    return case.family, disagreement(case)


if __name__ == "__main__":
    sys.exit(run("smt", "smt against brute force", {"finite": Group(700, 0, examine)}))
