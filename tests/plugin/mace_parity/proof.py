"""The checker of that lane's proofs: it looks at every row again."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from mace.certify import Refuted
from mace.problem import Problem


def check(
    problem: Problem, lower: Fraction | None, evidence: dict[str, Any], progress: Callable[[float], None]
) -> None:
    for row in itertools.product(*(range(feature.low, feature.high + 1) for feature in problem.space.values())):
        near = lower is None or problem.distance(row) < lower
        if near and problem.is_plausible(row) and problem.goal.accepts(problem.ask([row])[0]):
            raise Refuted(f"evidence: {row} is nearer")
