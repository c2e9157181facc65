"""one_of: a feature takes one of some values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mace.constraints.combine import Combinable
from mace.constraints.condition import Condition, GuardCondition, feature_of, present
from mace.constraints.numbers import Given, compared, given_level, number_of
from mace.constraints.words import name_text, value_text
from mace.errors import InvalidConstraint
from mace.language import syntax
from mace.space import FeatureSpace, Point


@dataclass(frozen=True, slots=True, repr=False)
class OneOf(Combinable):
    """The feature takes one of ``values``."""

    feature: str
    values: tuple[Given, ...]

    def bind(self, space: FeatureSpace, factual: Point) -> Condition:
        """Return the disjunction of the equalities."""
        feature_of(space, self.feature, str(self))
        numbers = [number_of(space, self.feature, value, str(self)) for value in self.values]
        each = syntax.disjunction(compared(space, factual, self.feature, "==", number) for number in numbers)
        return GuardCondition(syntax.conjunction([*present(space, [self.feature]), each]))

    @property
    def text(self) -> str:
        """``housing in ['own', 'free']``."""
        return f"{name_text(self.feature)} in [{', '.join(map(value_text, self.values))}]"

    def __str__(self) -> str:
        return f"one_of({self.feature!r}, {list(self.values)!r})"


def one_of(feature: str, levels: Sequence[Given], *more: Given) -> OneOf:
    """Let a feature take only these levels (or numbers).

    Examples
    --------
    >>> print(one_of("housing", ["own", "free"]))
    one_of('housing', ['own', 'free'])
    """
    if more or (isinstance(levels, str) and levels):
        listed = [levels, *more]
        raise InvalidConstraint(
            f"one_of({feature!r}, {levels!r:.40}...): the levels are a list: mace.one_of({feature!r}, {listed!r:.80})."
        )
    try:
        values = () if isinstance(levels, str) else tuple(dict.fromkeys(map(given_level, levels)))
    except TypeError:
        values = ()
    if not values:
        raise InvalidConstraint(f"one_of({feature!r}, {levels!r}): give a list of levels, at least one.")
    return OneOf(feature, values)
