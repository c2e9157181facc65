"""increases and decreases: features that move one way only, staying included."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mace.constraints.condition import Condition, GuardCondition, compare, ordered_feature
from mace.errors import InvalidConstraint
from mace.language.syntax import conjunction
from mace.space import FeatureSpace, Point


@dataclass(frozen=True, slots=True)
class Monotone:
    """The features do not move against ``sign``; equality is included, levels count in order."""

    name: str
    sign: str
    features: tuple[str, ...]

    def bind(self, space: FeatureSpace, factual: Point) -> Condition:
        """Return the comparisons with the factual."""
        for name in self.features:
            ordered_feature(space, name, str(self))
        return GuardCondition(
            conjunction(compare(space, name, self.sign, factual[space.index(name)]) for name in self.features)
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the constraint as plain data."""
        return {"kind": self.name, "arguments": list(self.features)}

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
    if not features:
        raise InvalidConstraint(f"{name}() names no feature; write {name}('age').")
    return Monotone(name, sign, features)
