"""Hints: what to look at in a question before its answer is shown to anybody."""

from __future__ import annotations

from collections.abc import Sequence

from mace.constraints import Condition, Constraint
from mace.constraints.mentions import mentioned
from mace.space import FeatureSpace
from mace.space.sensitive import is_sensitive


def hints_of(
    space: FeatureSpace, constraints: Sequence[Constraint], conditions: Sequence[Condition]
) -> tuple[str, ...]:
    """Return a sentence on the features that are protected, or sensitive by their names, and that no constraint speaks of."""
    spoken_of = {name for each in zip(constraints, conditions, strict=True) for name in mentioned(*each)}
    free = [
        name
        for name, feature in space.items()
        if (name in space.protected or is_sensitive(name)) and feature.size != 1 and name not in spoken_of
    ]
    if not free:
        return ()
    listed = ", ".join(map(repr, free))
    they, them, are = ("they", "them", "are") if len(free) > 1 else ("it", "it", "is")
    return (
        f"Nothing keeps {listed} as {they} {are}. Where nobody should be asked to change {them}, fix {them}: "
        f"mace.fixed({listed}), or --fix {','.join(free)}.",
    )
