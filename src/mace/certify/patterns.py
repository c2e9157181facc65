"""Which features are missing: every pattern that leaves a point near enough."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import TypeVar

Cost = TypeVar("Cost", int, Fraction)


def patterns(choices: Sequence[Sequence[tuple[Cost, Cost, bool]]], limit: Cost | None) -> Iterator[tuple[bool, ...]]:
    """Yield every pattern, whether each feature is missing, whose least cost is below ``limit`` (``None``: every pattern).

    Parameters
    ----------
    choices : list of lists
        For each feature what being known and being missing cost, as far as they are allowed: the least that is added to the sum of a
        distance, the share in the maximum, and whether the feature is missing.
    limit : int or Fraction, optional
        The least cost of a point that is too far.
    """
    if not all(choices):
        return
    # What is left costs its cheaper choice, both in the sum and in the maximum.
    rest: list[tuple[int | Fraction, int | Fraction]] = [(0, 0)]
    for each in reversed(choices):
        rest.append((rest[-1][0] + min(add for add, _, _ in each), max(rest[-1][1], min(top for _, top, _ in each))))
    rest.reverse()
    pending: list[tuple[int | Fraction, int | Fraction, tuple[bool, ...]]] = [(0, 0, ())]
    made: tuple[bool, ...]
    while pending:
        add, top, made = pending.pop()
        if limit is not None and add + rest[len(made)][0] + max(top, rest[len(made)][1]) >= limit:
            continue
        if len(made) == len(choices):
            yield made
            continue
        for more, peak, is_missing in choices[len(made)]:
            pending.append((add + more, max(top, peak), (*made, is_missing)))
