"""at_most_change, steps and transitions: how far, in which steps, and to where one feature may move."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from mace.constraints.combine import Combinable
from mace.constraints.condition import (
    Condition,
    GuardCondition,
    compare,
    feature_of,
    number_of,
    ordered_feature,
    present,
)
from mace.constraints.words import name_text, number_text, value_text
from mace.errors import InvalidConstraint
from mace.exact import decimal_fraction
from mace.language.syntax import Compare, Constant, Guard, Variable, conjunction, disjunction
from mace.space import FeatureSpace, Integer, Level, Ordinal, Point, Real

MOST_STEPS = 5000


@dataclass(frozen=True, slots=True)
class AtMostChange(Combinable):
    """The feature moves by at most ``amount``, or by at most that share of the factual's own value."""

    feature: str
    amount: int | float
    relative: bool

    def bind(self, space: FeatureSpace, factual: Point) -> Condition:
        """Return the two bounds."""
        ordered_feature(space, self.feature, str(self))
        own = factual[space.index(self.feature)]
        if own is None:
            return GuardCondition(compare(space, self.feature, "==", None))
        reach = Fraction(self.amount) * (abs(Fraction(own)) if self.relative else 1)
        variable = Variable(self.feature)
        bounds: list[Guard] = [
            Compare(">=", variable, Constant(Fraction(own) - reach)),
            Compare("<=", variable, Constant(Fraction(own) + reach)),
        ]
        return GuardCondition(conjunction([*present(space, [self.feature]), *bounds]))

    @property
    def text(self) -> str:
        """``income changes by at most 500``, ``income changes by at most 10%``."""
        share = 100 * self.amount
        if self.relative:
            amount = f"{number_text(share)}%" if share / 100 == self.amount else f"{number_text(self.amount)} of itself"
        else:
            amount = number_text(self.amount)
        return f"{name_text(self.feature)} changes by at most {amount}"


def at_most_change(feature: str, amount: int | float | str, *, relative: bool = False) -> AtMostChange:
    """Let a feature move by at most an amount, or by a share of its own value.

    Parameters
    ----------
    feature : str
        An ordered feature; levels count in order.
    amount : number or str
        The amount; ``"10%"``, or 0.1 with ``relative=True``, is a share of the factual's own value.

    Examples
    --------
    >>> print(at_most_change("income", 500))
    rule('income changes by at most 500')
    >>> print(at_most_change("income", "10%"))
    rule('income changes by at most 10%')
    """
    if isinstance(amount, str):
        try:
            amount, relative = float(amount.removesuffix("%")) / 100, True
        except ValueError:
            raise InvalidConstraint(
                f"at_most_change({feature!r}, {amount!r}): write a number, or a share as in '10%'."
            ) from None
    if isinstance(amount, bool) or not isinstance(amount, int | float) or not 0 <= amount < math.inf:
        raise InvalidConstraint(f"at_most_change({feature!r}, {amount!r}): the amount is a number of at least 0.")
    return AtMostChange(feature, amount, bool(relative))


@dataclass(frozen=True, slots=True)
class Steps(Combinable):
    """The feature changes by whole multiples of ``size``."""

    feature: str
    size: int | float

    def bind(self, space: FeatureSpace, factual: Point) -> Condition:
        """Return the disjunction of the values."""
        feature = ordered_feature(space, self.feature, str(self))
        own = factual[space.index(self.feature)]
        if isinstance(feature, Ordinal) or own is None:
            raise InvalidConstraint(f"{self}: steps are for numbers that are not missing in the row.")
        assert isinstance(feature, Real | Integer)
        if isinstance(feature, Integer) and float(self.size) != int(self.size):
            raise InvalidConstraint(f"{self}: {self.feature!r} is whole; give a whole step.")
        start, size = decimal_fraction(float(own)), decimal_fraction(float(self.size))
        first = math.ceil((Fraction(feature.low) - start) / size)
        last = math.floor((Fraction(feature.high) - start) / size)
        if last - first > MOST_STEPS:
            raise InvalidConstraint(
                f"{self}: {last - first:,} values; at most {MOST_STEPS:,} are taken. Give the feature itself a step."
            )
        values = [own if k == 0 else float(start + k * size) for k in range(first, last + 1)]
        return GuardCondition(disjunction(compare(space, self.feature, "==", value) for value in values))

    @property
    def text(self) -> str:
        """``income changes in steps of 100``."""
        return f"{name_text(self.feature)} changes in steps of {number_text(self.size)}"


def steps(feature: str, size: int | float) -> Steps:
    """Let a number change by whole multiples of a step, counted from the factual.

    Examples
    --------
    >>> print(steps("income", 100))
    rule('income changes in steps of 100')
    """
    if isinstance(size, bool) or not isinstance(size, int | float) or not 0 < size < math.inf:
        raise InvalidConstraint(f"steps({feature!r}, {size!r}): the step is a positive number.")
    return Steps(feature, size)


@dataclass(frozen=True, slots=True)
class Transitions(Combinable):
    """From each level the feature may stay, or move to the levels listed for it; a level that is not listed stays."""

    feature: str
    moves: tuple[tuple[Level, tuple[Level, ...]], ...]

    def bind(self, space: FeatureSpace, factual: Point) -> Condition:
        """Return the disjunction of what the factual's own level may become."""
        feature_of(space, self.feature, str(self))
        own = factual[space.index(self.feature)]
        allowed: list[Guard] = [compare(space, self.feature, "==", own)]
        for source, goals in self.moves:
            numbers = [number_of(space, self.feature, goal, str(self)) for goal in goals]
            if number_of(space, self.feature, source, str(self)) == own:
                allowed += [compare(space, self.feature, "==", number) for number in numbers]
        return GuardCondition(disjunction(allowed))

    @property
    def text(self) -> str:
        """``housing moves 'rent' to 'own', 'free'; 'free' to 'own'``."""
        listed = "; ".join(
            f"{value_text(source)} to {', '.join(map(value_text, goals))}" for source, goals in self.moves
        )
        return f"{name_text(self.feature)} moves {listed}"


def transitions(feature: str, moves: Mapping[Level, Sequence[Level]]) -> Transitions:
    """Say to which levels each level may move; staying is always allowed, and a level that is not listed stays.

    Examples
    --------
    >>> print(transitions("housing", {"rent": ["own"], "free": ["own", "rent"]}))
    rule("housing moves 'rent' to 'own'; 'free' to 'own', 'rent'")
    """
    if not isinstance(moves, Mapping) or not moves:
        raise InvalidConstraint(
            f"transitions({feature!r}, {moves!r}): give a dict from levels to lists of levels, e.g. {{'rent': ['own']}}."
        )
    listed = []
    for source, goals in moves.items():
        if isinstance(goals, str) or not isinstance(goals, Sequence) or not goals:
            raise InvalidConstraint(f"transitions({feature!r}): {source!r} goes to {goals!r}; give a list of levels.")
        listed.append((source, tuple(goals)))
    return Transitions(feature, tuple(listed))
