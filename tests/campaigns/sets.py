"""Sets of models of every family on finite spaces against asking every model about every row, with certificates and forged ones."""

from __future__ import annotations

import sys
from functools import partial

from runner import SKIPPED, Group, run


def finite(seed: int) -> tuple[str, str | None]:
    from random_sets import random_set, set_fault

    case = random_set(seed)
    return case.kind, set_fault(case)


def prepared(seed: int) -> tuple[str, str | None]:
    """Examine members that stand behind preprocessing of their own."""
    from random_sets import random_set, set_fault

    import mace

    case = random_set(seed, prepared=True)
    try:
        return case.kind, set_fault(case)
    except mace.UnsupportedModel:
        return case.kind, SKIPPED


def margins(seed: int) -> tuple[str, str | None]:
    """Examine how much noise the nearest answer stands."""
    from margin_referee import margin_fault
    from random_sets import accepted, as_case, random_set

    case = random_set(seed)
    return case.kind, margin_fault(as_case(case), partial(accepted, case))


def batches(seed: int) -> tuple[str, str | None]:
    """Examine batches and audits: what they say of a row is what is said of it alone."""
    from random_sets import batch_fault, random_set

    case = random_set(seed)
    return case.kind, batch_fault(case)


if __name__ == "__main__":
    about = (
        "nearest rows that all, or so many, models accept, and how much noise they stand: every model asked about every row; "
        "certificates checked and forged; batches and audits beside single answers"
    )
    groups = {
        "finite": Group(1000, 80_000, finite),
        "prepared": Group(200, 90_000, prepared),
        "margins": Group(200, 80_000, margins),
        "batches": Group(60, 80_000, batches),
    }
    sys.exit(run("sets", about, groups))
