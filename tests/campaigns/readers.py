"""Models that are read since 0.2 (products, stacks, boosters' other modes, calibrations) against brute force, certificates checked."""

from __future__ import annotations

import sys

from runner import SKIPPED, Group, run


def finite(seed: int) -> tuple[str, str | None]:
    from random_readers import fault_of, random_reader

    case = random_reader(seed)
    return ("none", SKIPPED) if case is None else (case.family, fault_of(case))


if __name__ == "__main__":
    about = "readers since 0.2 on finite spaces: the nearest by every row's own predict, and the certificate checked"
    sys.exit(run("readers", about, {"finite": Group(450, 0, finite)}))
