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
    ordered_feature,
    present,
)
from mace.constraints.numbers import (
    Given,
    Number,
    as_number,
    as_written,
    compared,
    decimal_number,
    given_level,
    is_binary,
    number_of,
    old_value,
    read_number,
)
from mace.constraints.words import name_text, number_text, value_text
from mace.errors import InvalidConstraint
from mace.language import syntax
from mace.space import Date, FeatureSpace, Integer, Ordinal, Point, Real
from mace.space.decimals import decimal_of, float_of

MOST_STEPS_LISTED = 5000


@dataclass(frozen=True, slots=True, repr=False)
class AtMostChange(Combinable):
    """The feature moves by at most ``amount``, or by at most that share of the factual's own value."""

    feature: str
    amount: Number
    relative: bool

    def bind(self, space: FeatureSpace, factual: Point) -> Condition:
        """Return the two bounds."""
        feature = ordered_feature(space, self.feature, str(self))
        value = factual[space.index(self.feature)]
        if value is None:
            return GuardCondition(compare(space, self.feature, "==", None))
        if self.relative and isinstance(feature, Date):
            raise InvalidConstraint(
                f"{self}: {self.feature!r} is a date, which has no share; give a number of {feature.unit}s."
            )
        own = old_value(feature, value)
        amount = as_written(self.amount)
        if self.relative and is_binary():
            amount = Fraction(float(decimal_number(self.amount) * 100) / 100)
        reach = amount * (abs(own) if self.relative else 1)
        bounds = [
            compared(space, factual, self.feature, ">=", own - reach),
            compared(space, factual, self.feature, "<=", own + reach),
        ]
        return GuardCondition(syntax.conjunction([*present(space, [self.feature]), *bounds]))

    @property
    def text(self) -> str:
        """``income changes by at most 500``, ``income changes by at most 10%``."""
        share = decimal_number(self.amount) * 100
        amount = f"{number_text(as_number(share))}%" if self.relative else number_text(self.amount)
        return f"{name_text(self.feature)} changes by at most {amount}"


def at_most_change(feature: str, amount: Number | str | None = None, *, relative: bool = False) -> AtMostChange:
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
    given = amount
    if amount is None:
        raise InvalidConstraint(
            f"at_most_change({feature!r}): name the feature and by how much it may move: at_most_change('income', 500). "
            "How many features may change is changes_at_most(2)."
        )
    if isinstance(amount, str):
        try:
            share, relative = read_number(amount.removesuffix("%")), True
        except ValueError:
            raise InvalidConstraint(
                f"at_most_change({feature!r}, {given!r}): write a number, or a share as in '10%'."
            ) from None
        amount = as_number(decimal_number(share) / 100)
    if isinstance(amount, bool) or not isinstance(amount, Number) or not 0 <= amount < math.inf:
        raise InvalidConstraint(f"at_most_change({feature!r}, {given!r}): the amount is a number of at least 0.")
    return AtMostChange(feature, amount, bool(relative))


@dataclass(frozen=True, slots=True, repr=False)
class Steps(Combinable):
    """The feature changes by whole multiples of ``size``."""

    feature: str
    size: Number

    def bind(self, space: FeatureSpace, factual: Point) -> Condition:
        """Return the disjunction of the values."""
        feature = ordered_feature(space, self.feature, str(self))
        own = factual[space.index(self.feature)]
        if isinstance(feature, Ordinal) or own is None:
            raise InvalidConstraint(f"{self}: steps are for numbers that are not missing in the row.")
        assert isinstance(feature, Real | Integer)
        if isinstance(feature, Integer) and float(self.size) != int(self.size):
            raise InvalidConstraint(f"{self}: {self.feature!r} is whole; give a whole step.")
        start, size = decimal_of(feature, own), decimal_number(self.size)
        first = math.ceil((old_value(feature, feature.low) - start) / size)
        last = math.floor((old_value(feature, feature.high) - start) / size)
        if last - first > MOST_STEPS_LISTED:
            raise InvalidConstraint(
                f"{self}: {last - first:,} values; at most {MOST_STEPS_LISTED:,} are taken. Give the feature itself a step."
            )
        values = [own if k == 0 else float_of(feature, start + k * size) for k in range(first, last + 1)]
        return GuardCondition(syntax.disjunction(compare(space, self.feature, "==", value) for value in values))

    @property
    def text(self) -> str:
        """``income changes in steps of 100``."""
        return f"{name_text(self.feature)} changes in steps of {number_text(self.size)}"


def steps(feature: str, size: Number) -> Steps:
    """Let a number change by whole multiples of a step, counted from the factual.

    Examples
    --------
    >>> print(steps("income", 100))
    rule('income changes in steps of 100')
    """
    if isinstance(size, bool) or not isinstance(size, Number) or not 0 < size < math.inf:
        raise InvalidConstraint(f"steps({feature!r}, {size!r}): the step is a positive number.")
    return Steps(feature, size)


@dataclass(frozen=True, slots=True, repr=False)
class Transitions(Combinable):
    """From each level the feature may stay, or move to the levels listed for it; a level that is not listed stays."""

    feature: str
    moves: tuple[tuple[Given, tuple[Given, ...]], ...]

    def bind(self, space: FeatureSpace, factual: Point) -> Condition:
        """Return the disjunction of what the factual's own level may become."""
        feature = feature_of(space, self.feature, str(self))
        own = factual[space.index(self.feature)]
        allowed: list[syntax.Guard] = [compare(space, self.feature, "==", own)]
        for source, goals in self.moves:
            numbers = [number_of(space, self.feature, goal, str(self)) for goal in goals]
            if own is not None and number_of(space, self.feature, source, str(self)) == old_value(feature, own):
                reached = syntax.disjunction(compared(space, factual, self.feature, "==", number) for number in numbers)
                allowed.append(syntax.conjunction([*present(space, [self.feature]), reached]))
        return GuardCondition(syntax.disjunction(allowed))

    @property
    def text(self) -> str:
        """``housing moves 'rent' to 'own', 'free'; 'free' to 'own'``."""
        listed = "; ".join(
            f"{value_text(source)} to {', '.join(map(value_text, goals))}" for source, goals in self.moves
        )
        return f"{name_text(self.feature)} moves {listed}"


def transitions(feature: str, moves: Mapping[Given, Sequence[Given]]) -> Transitions:
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
        listed.append((given_level(source), tuple(dict.fromkeys(map(given_level, goals)))))
    return Transitions(feature, tuple(listed))
