"""increases and decreases: features that move one way only, staying included."""

from __future__ import annotations

from dataclasses import dataclass

from mace.constraints.combine import Combinable
from mace.constraints.condition import Condition, GuardCondition, compare, ordered_feature
from mace.constraints.words import named, names_text
from mace.language import syntax
from mace.space import FeatureSpace, Point


@dataclass(frozen=True, slots=True, repr=False)
class Monotone(Combinable):
    """The features do not move against ``sign``; equality is included, levels count in order."""

    name: str
    sign: str
    features: tuple[str, ...]

    def bind(self, space: FeatureSpace, factual: Point) -> Condition:
        """Return the comparisons with the factual."""
        for name in self.features:
            ordered_feature(space, name, str(self))
        return GuardCondition(
            syntax.conjunction(compare(space, name, self.sign, factual[space.index(name)]) for name in self.features)
        )

    @property
    def text(self) -> str:
        """``education increases``."""
        return f"{names_text(self.features)} {self.name if len(self.features) == 1 else self.name[:-1]}"

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(repr, self.features))})"


def increases(*features: str) -> Monotone:
    """Let the features stay or increase.

    Examples
    --------
    >>> print(increases("education"))
    increases('education')
    """
    return _monotone("increases", ">=", features)


def decreases(*features: str) -> Monotone:
    """Let the features stay or decrease."""
    return _monotone("decreases", "<=", features)


def _monotone(name: str, sign: str, features: tuple[str, ...]) -> Monotone:
    return Monotone(name, sign, named(name, features))
