"""Answers near data, typical, robust, far from each other, or by causes: random models against brute force, certificates checked."""

from __future__ import annotations

import sys
from functools import partial

from runner import SKIPPED, Group, run


def constrained(seed: int, kind: str) -> tuple[str, str | None]:
    from realism_by_definition import fault, random_realistic

    case = random_realistic(seed, kind)
    return ("not learnt", SKIPPED) if case is None else (case.family, fault(case))


def limited(seed: int) -> tuple[str, str | None]:
    from random_distances import fault, random_limited

    case = random_limited(seed)
    return ("not learnt", SKIPPED) if case is None else (case.family, fault(case))


def causal(seed: int) -> tuple[str, str | None]:
    from realism_by_definition import fault_of_intervention, random_intervention

    case = random_intervention(seed)
    return ("not learnt", SKIPPED) if case is None else (case.family, fault_of_intervention(case))


if __name__ == "__main__":
    groups = {kind: Group(500, 0, partial(constrained, kind=kind)) for kind in ("near_data", "typical", "robust")}
    groups["distances"] = Group(500, 0, limited)
    groups["causal"] = Group(400, 0, causal)
    sys.exit(run("realism", "answers kept realistic, over finite spaces, against brute force by definition", groups))
