"""only: the features that may change, and no others."""

from __future__ import annotations

from dataclasses import dataclass

from mace.constraints.combine import Combinable
from mace.constraints.condition import Condition, feature_of
from mace.constraints.fixed import Fixed
from mace.constraints.words import named, names_text
from mace.space import FeatureSpace, Point


@dataclass(frozen=True, slots=True)
class Only(Combinable):
    """Every feature but these keeps the factual's value."""

    features: tuple[str, ...]

    def bind(self, space: FeatureSpace, factual: Point) -> Condition:
        """Return the equalities of all others."""
        for name in self.features:
            feature_of(space, name, str(self))
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
