"""Reasons of every family on finite spaces against going through every row, with ranges, levers and certificates."""

from __future__ import annotations

import sys

from runner import Group, run


def finite(seed: int) -> tuple[str, str | None]:
    from random_problems import random_case
    from random_reasons import fault_of

    case = random_case(seed)
    return case.family, fault_of(case, smallest=seed % 2 == 1)


if __name__ == "__main__":
    about = "all reasons on finite spaces: those of every row's own predict, ranges, levers, notes, JSON, certificates forged"
    sys.exit(run("reasons", about, {"finite": Group(2300, 70_000, finite)}))
