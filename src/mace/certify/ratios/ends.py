"""Intervals of floats, each operation rounded outward; and what encloses exponentials and sigmoids."""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from mace.certify.curves.sigmoid import OFF, SIXTY_DIGITS, sigmoid_between
from mace.exact import float_down, float_up

LARGEST_EXPONENT = 700.0


class Bracket(NamedTuple):
    """Two floats between which a number lies."""

    low: float
    high: float

    def plus(self, other: Bracket) -> Bracket:
        """Return what a sum lies between."""
        return _wider(self.low + other.low, self.high + other.high)

    def minus(self, other: Bracket) -> Bracket:
        """Return what a difference lies between."""
        return _wider(self.low - other.high, self.high - other.low)

    def times(self, other: Bracket) -> Bracket:
        """Return what a product lies between."""
        each = [a * b for a in self for b in other]
        return _wider(min(each), max(each))

    def over(self, other: Bracket) -> Bracket:
        """Return what a quotient by a positive number lies between."""
        assert other.low > 0
        each = [a / b for a in self for b in other]
        return _wider(min(each), max(each))

    @property
    def largest(self) -> float:
        """The greatest absolute value."""
        return max(abs(self.low), abs(self.high))


ZERO = Bracket(0.0, 0.0)


def _wider(low: float, high: float) -> Bracket:
    return Bracket(math.nextafter(low, -math.inf), math.nextafter(high, math.inf))


def exactly(number: Fraction) -> Bracket:
    """Return the floats next to a number."""
    return Bracket(float_down(number), float_up(number))


def total(each: Iterable[Bracket]) -> Bracket:
    """Return what a sum lies between."""
    found = ZERO
    for ends in each:
        found = found.plus(ends)
    return found


def power(at: Bracket) -> Bracket:
    """Return what the exponential of a number lies between."""
    low = 0.0 if at.low < -LARGEST_EXPONENT else float_down(_power(min(at.low, LARGEST_EXPONENT)) * (1 - OFF))
    high = math.inf if at.high > LARGEST_EXPONENT else float_up(_power(max(at.high, -LARGEST_EXPONENT)) * (1 + OFF))
    return Bracket(low, high)


def _power(at: float) -> Fraction:
    return Fraction(SIXTY_DIGITS.exp(Decimal(at)))


def sigmoid(at: Bracket) -> Bracket:
    """Return what the sigmoid of a number lies between."""
    return Bracket(max(float_down(sigmoid_between(at.low)[0]), 0.0), float_up(sigmoid_between(at.high)[1]))
