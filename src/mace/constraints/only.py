"""only: the features that may change, and no others."""

from __future__ import annotations

from mace.constraints.combine import OnFeatures
from mace.constraints.condition import Condition
from mace.constraints.fixed import Fixed
from mace.constraints.words import named, names_text
from mace.space import FeatureSpace, Point


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
