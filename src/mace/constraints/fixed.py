"""fixed: features that keep their value; only: the features that may change, and no others."""

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


class Only(OnFeatures):
    """Every feature but these keeps the factual's value."""

    __slots__ = ()

    def _bound(self, space: FeatureSpace, factual: Point) -> Condition:
        return Fixed(tuple(name for name in space if name not in self.features)).bind(space, factual)

    @property
    def text(self) -> str:
        """``only income, savings change``."""
        return f"only {names_text(self.features)} {'changes' if len(self.features) == 1 else 'change'}"

    def __str__(self) -> str:
        return f"only({', '.join(map(repr, self.features))})"


def only(*features: str) -> Only:
    """Let these features change, and keep all others as they are.

    With causes this holds of the row that the actions lead to: name the effects that may follow, too.

    Examples
    --------
    >>> print(only("income", "savings"))
    only('income', 'savings')
    """
    return Only(named("only", features))
