"""Reasons of every family on finite spaces against going through every row, with ranges, levers and certificates."""

from __future__ import annotations

import sys
from functools import partial

from runner import SKIPPED, Group, run


def finite(seed: int) -> tuple[str, str | None]:
    from random_problems import random_case
    from random_reasons import fault_of

    case = random_case(seed)
    return case.family, fault_of(case, smallest=seed % 2 == 1)


def ensembles(seed: int) -> tuple[str, str | None]:
    """Examine trees and boosters of every library, many with missing values."""
    from random_ensembles import random_ensemble
    from random_reasons import fault_of

    case = random_ensemble(seed)
    return case.family, fault_of(case, smallest=seed % 2 == 1)


def composites(seed: int) -> tuple[str, str | None]:
    """Examine votes, means, calibrated models and projections."""
    from random_composites import random_composite
    from random_reasons import fault_of

    case = random_composite(seed)
    return ("none", SKIPPED) if case is None else (case.family, fault_of(case, smallest=seed % 2 == 1))


def pipelines(seed: int) -> tuple[str, str | None]:
    """Examine models behind random preprocessing."""
    from random_pipelines import random_pipeline
    from random_reasons import fault_of

    import mace

    case = random_pipeline(seed)
    try:
        return f"pipeline, {case.family}", fault_of(case, smallest=seed % 2 == 1)
    except mace.UnsupportedModel:
        return case.family, SKIPPED


def readers(seed: int) -> tuple[str, str | None]:
    """Examine products, stacks, calibrations and the other modes of boosters."""
    from random_readers import random_reader
    from random_reasons import fault_of

    case = random_reader(seed)
    return ("none", SKIPPED) if case is None else (case.family, fault_of(case, smallest=seed % 2 == 1))


def sets(seed: int) -> tuple[str, str | None]:
    """Examine sets of models: what keeps a row from being accepted by so many."""
    from random_reasons import fault_of
    from random_sets import accepted, as_case, random_set

    case = random_set(seed)
    return f"set, {case.kind}", fault_of(as_case(case), smallest=seed % 2 == 1, is_reached=partial(accepted, case))


if __name__ == "__main__":
    about = "all reasons on finite spaces: those of every row's own predict, ranges, levers, notes, JSON, certificates forged"
    groups = {
        "finite": Group(1700, 70_000, finite),
        "ensembles": Group(500, 0, ensembles),
        "composites": Group(150, 0, composites),
        "pipelines": Group(120, 0, pipelines),
        "readers": Group(90, 0, readers),
        "sets": Group(120, 80_000, sets),
    }
    sys.exit(run("reasons", about, groups))
