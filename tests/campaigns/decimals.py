"""Numbers as they are written: rules whose boundary rows hit exactly in decimals, against an evaluator written with ``decimal``."""

from __future__ import annotations

import sys
from functools import partial

from runner import Group, run

FAMILIES = ("function", "tree", "forest", "linear", "network", "vote")


def examine(family: int, seed: int) -> tuple[str, str | None]:
    from random_decimals import fault, random_case

    case = random_case(len(FAMILIES) * seed + family)
    assert case.family == FAMILIES[family]
    return f"{case.solver}, {'finite' if case.is_finite else 'reals'}", fault(case)


if __name__ == "__main__":
    groups = {name: Group(170, 0, partial(examine, number)) for number, name in enumerate(FAMILIES)}
    sys.exit(run("decimals", "numbers in constraints against an evaluator written with decimal", groups))
