"""Votes, means of sigmoids, calibrations and projections before trees: against brute force, and against samples on mixed spaces."""

from __future__ import annotations

import sys

from runner import SKIPPED, Group, run


def finite(seed: int) -> tuple[str, str | None]:
    from random_composites import against_brute_force, random_composite

    case = random_composite(seed)
    return ("none", SKIPPED) if case is None else (case.family, against_brute_force(case))


def mixed(seed: int) -> tuple[str, str | None]:
    import numpy as np
    from random_composites import GAP, against_samples, random_composite

    case = random_composite(seed, finite=False)
    if case is None:
        return "none", SKIPPED
    fault = against_samples(case, np.random.default_rng(seed))
    # A gap that rounding leaves is said, so it is no fault; it is counted.
    return (f"{case.family}, a gap left", None) if fault is not None and fault.startswith(GAP) else (case.family, fault)


if __name__ == "__main__":
    groups = {"finite": Group(400, 0, finite), "mixed": Group(150, 10_000, mixed)}
    about = "curves and milp on composites against brute force (finite) and rows drawn nearer than lower (mixed)"
    sys.exit(run("composites", about, groups))
