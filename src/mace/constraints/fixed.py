"""fixed: features that keep their value."""

from __future__ import annotations

from mace.constraints.combine import OnFeatures
from mace.constraints.condition import Condition, GuardCondition, compare
from mace.constraints.words import named, names_text
from mace.language import syntax
from mace.space import FeatureSpace, Point


class Fixed(OnFeatures):
    """The features keep the factual's value."""

    __slots__ = ()

    def _bound(self, space: FeatureSpace, factual: Point) -> Condition:
        return GuardCondition(
            syntax.conjunction(compare(space, name, "==", factual[space.index(name)]) for name in self.features)
        )

    @property
    def text(self) -> str:
        """``sex, age stay``."""
        return f"{names_text(self.features)} {'stays' if len(self.features) == 1 else 'stay'}"

    def __str__(self) -> str:
        return f"fixed({', '.join(map(repr, self.features))})"


def fixed(*features: str) -> Fixed:
    """Keep the features as they are.

    Examples
    --------
    >>> print(fixed("sex", "age"))
    fixed('sex', 'age')
    """
    return Fixed(named("fixed", features))
