"""within: a feature between two bounds."""

from __future__ import annotations

from dataclasses import dataclass

from mace.constraints.combine import Combinable
from mace.constraints.condition import Condition, GuardCondition, compare, number_of, ordered_feature
from mace.constraints.words import name_text, value_text
from mace.errors import InvalidConstraint
from mace.language.syntax import conjunction
from mace.space import FeatureSpace, Level, Point


@dataclass(frozen=True, slots=True)
class Within(Combinable):
    """The feature lies in ``[low, high]``; levels count in order."""

    feature: str
    low: Level
    high: Level

    def bind(self, space: FeatureSpace, factual: Point) -> Condition:
        """Return the two comparisons."""
        ordered_feature(space, self.feature, str(self))
        low = number_of(space, self.feature, self.low, str(self))
        high = number_of(space, self.feature, self.high, str(self))
        if low > high:
            raise InvalidConstraint(f"{self}: the lower bound is above the upper. Swap them.")
        return GuardCondition(
            conjunction([compare(space, self.feature, ">=", low), compare(space, self.feature, "<=", high)])
        )

    @property
    def text(self) -> str:
        """``age within [18, 65]``."""
        return f"{name_text(self.feature)} within [{value_text(self.low)}, {value_text(self.high)}]"

    def __str__(self) -> str:
        return f"within({self.feature!r}, {self.low!r}, {self.high!r})"


def within(feature: str, low: Level, high: Level) -> Within:
    """Keep a feature between two bounds, both included.

    Examples
    --------
    >>> print(within("age", 18, 65))
    within('age', 18, 65)
    """
    return Within(feature, low, high)
