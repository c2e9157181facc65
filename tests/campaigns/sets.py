"""Sets of models of every family on finite spaces against asking every model about every row, with certificates and forged ones."""

from __future__ import annotations

import sys

from runner import Group, run


def finite(seed: int) -> tuple[str, str | None]:
    from random_sets import random_set, set_fault

    case = random_set(seed)
    return case.kind, set_fault(case)


if __name__ == "__main__":
    about = "nearest rows that all, or so many, models accept: every model asked about every row; certificates checked and forged"
    sys.exit(run("sets", about, {"finite": Group(1000, 80_000, finite)}))
