"""Questions at the edges of what can be asked, in every lane, against brute force over all rows."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from runner import SKIPPED, Group, run


def little(seed: int) -> tuple[str, str | None]:
    """Examine questions where little or nothing may vary."""
    from random_degenerate import degenerate, disagreement

    case = degenerate(seed)
    return case.family, disagreement(case)


def strange(seed: int, fault_of: Callable[[Any], str | None]) -> tuple[str, str | None]:
    """Examine a question at the ends of what floats and spaces can be; what the model or the question is refused for is no question."""
    from random_strange import strange

    import mace

    case = strange(seed)
    try:
        return ("none", SKIPPED) if case is None else (case.family, fault_of(case))
    except mace.MaceError:
        return "none" if case is None else case.family, SKIPPED


def lanes(seed: int) -> tuple[str, str | None]:
    """Examine the answer of each lane."""
    from strange_referee import fault_of_lanes

    return strange(seed, fault_of_lanes)


def several(seed: int) -> tuple[str, str | None]:
    """Examine several answers, up to the last."""
    from strange_referee import fault_of_several

    return strange(seed, lambda case: fault_of_several(case, seed))


def ranges(seed: int) -> tuple[str, str | None]:
    """Examine reasons, their ranges and regions."""
    from strange_referee import fault_of_ranges

    return strange(seed, fault_of_ranges)


if __name__ == "__main__":
    about = (
        "questions where little or nothing may vary, and at the ends of what floats and spaces can be: every lane with its certificate, "
        "several answers up to the last, reasons, ranges and regions, against every row"
    )
    groups = {
        "little": Group(200, 100_000, little),
        "lanes": Group(600, 200_000, lanes),
        "several": Group(400, 200_000, several),
        "ranges": Group(300, 200_000, ranges),
    }
    sys.exit(run("degenerate", about, groups))
