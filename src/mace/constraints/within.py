"""within: a feature between two bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from mace.constraints.combine import Combinable
from mace.constraints.condition import Condition, GuardCondition, ordered_feature, present
from mace.constraints.numbers import Given, compared, number_of
from mace.constraints.words import name_text, value_text
from mace.errors import InvalidConstraint
from mace.language import syntax
from mace.space import FeatureSpace, Point
from mace.space.dates import as_text


@dataclass(frozen=True, slots=True, repr=False)
class Within(Combinable):
    """The feature lies in ``[low, high]``; levels count in order."""

    feature: str
    low: Given
    high: Given

    def bind(self, space: FeatureSpace, factual: Point) -> Condition:
        """Return the two comparisons."""
        ordered_feature(space, self.feature, str(self))
        low = number_of(space, self.feature, self.low, str(self))
        high = number_of(space, self.feature, self.high, str(self))
        if low > high:
            raise InvalidConstraint(f"{self}: the lower bound is above the upper. Swap them.")
        bounds = [compared(space, factual, self.feature, ">=", low), compared(space, factual, self.feature, "<=", high)]
        return GuardCondition(syntax.conjunction([*present(space, [self.feature]), *bounds]))

    @property
    def text(self) -> str:
        """``age within [18, 65]``."""
        return f"{name_text(self.feature)} within [{value_text(self.low)}, {value_text(self.high)}]"

    def __str__(self) -> str:
        return f"within({self.feature!r}, {self.low!r}, {self.high!r})"


def within(feature: str, low: Given, high: Given | None = None) -> Within:
    """Keep a feature between two bounds, both included; those of a date are dates or their texts.

    Examples
    --------
    >>> print(within("age", 18, 65))
    within('age', 18, 65)
    """
    if high is None:
        ends = [*low, "...", "..."][:2] if isinstance(low, Sequence) and not isinstance(low, str) else [low, "..."]
        raise InvalidConstraint(
            f"within({feature!r}, {low!r:.80}): give both ends: mace.within({feature!r}, {ends[0]}, {ends[1]})."
        )
    return Within(feature, *(cast(Given, as_text(end)) for end in (low, high)))
