"""Rows outside the space's ranges: what is asked of them, and in which space."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from mace.constraints import Constraint, either, fixed
from mace.constraints.numbers import as_number
from mace.constraints.rule import IsMissing
from mace.constraints.within import within
from mace.errors import InvalidOption
from mace.space import Feature, FeatureSpace, Row
from mace.space.decimals import decimal_of
from mace.space.features import Number
from mace.space.outside import admit

Outside = Literal["error", "keep", "widen"]
"""What to do with a row outside the space: refuse it, let it keep its values beside the ranges, or widen the ranges for it."""


@dataclass(frozen=True, slots=True)
class Admitted:
    """The question's part that a row outside the space changes.

    Attributes
    ----------
    space : FeatureSpace
        That of the row.
    kept : tuple of constraints
        They keep answers in the ranges of the first space, or at the row's own values.
    said : str
        What was let in, in words.
    """

    space: FeatureSpace
    kept: tuple[Constraint, ...]
    said: str


def check_outside(outside: object) -> Outside:
    """Return what to do with rows outside the space, or raise."""
    if outside == "error" or outside == "keep" or outside == "widen":
        return outside
    accepted = ", ".join(map(repr, get_args(Outside)))
    raise InvalidOption(f"outside={outside!r:.40}; accepted: {accepted}.")


def admitted(space: FeatureSpace, row: Row, outside: Outside) -> Admitted | None:
    """Return the space of a row that lies outside the given one; ``None`` where it lies inside, or is to be refused.

    Raises
    ------
    InvalidRow
        There is no space in which it lies.
    """
    made = None if outside == "error" else admit(space, row, widen=outside == "widen")
    if made is None:
        return None
    kept = tuple(
        in_range(name, made.space[name], *ends, or_own=outside == "keep") for name, ends in made.ranges.items()
    )
    return Admitted(made.space, kept, "; ".join(made.words.values()))


def in_range(name: str, feature: Feature, low: Number, high: Number, *, or_own: bool = False) -> Constraint:
    """Return that a feature lies in a range that is narrower than its own, is missing as far as it may be, or keeps its value."""
    ends = (as_number(decimal_of(feature, end)) for end in (low, high))
    parts: list[Constraint] = [within(name, *ends)]
    parts += [IsMissing(name)] if feature.missing else []
    parts += [fixed(name)] if or_own else []
    return parts[0] if len(parts) == 1 else either(*parts)
