"""Numbers as they are written: rules whose boundary rows hit exactly in decimals, against an evaluator written with ``decimal``."""

from __future__ import annotations

import sys

from runner import Group, run


def examine(seed: int) -> tuple[str, str | None]:
    from random_decimals import fault, random_case

    case = random_case(seed)
    kind = "finite" if case.is_finite else "reals"
    return f"{case.family}, {case.solver}, {kind}", fault(case)


if __name__ == "__main__":
    groups = {"rules": Group(1200, 0, examine)}
    sys.exit(run("decimals", "numbers in constraints against an evaluator written with decimal", groups))
