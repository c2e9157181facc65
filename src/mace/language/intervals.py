"""Bounds on what float64 arithmetic can give, and which of its operations are exact.

A :class:`Fact` bounds a value that Python calculates in float64 (or in integers). Its ends are fractions, or
infinities where an overflow cannot be excluded; a value that may be no number at all is :data:`ANYTHING`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import TypeAlias

from mace.exact import TINY, UNIT, WHOLE, is_float
from mace.language import syntax
from mace.language.naming import commands
from mace.language.roundings import ROUNDINGS, unit
from mace.language.walk import fold

End: TypeAlias = Fraction | float
Ranges: TypeAlias = Mapping[str, tuple[Fraction, Fraction]]

EPSILON = 2 * UNIT
"""Twice the relative error of one float64 operation."""
OVERFLOW = Fraction(2**1023)
"""Beyond this an overflow is not excluded."""


@dataclass(frozen=True, slots=True)
class Fact:
    """What is known of a calculated value.

    Parameters
    ----------
    low, high
        Its ends.
    is_integer
        Whether it is always a whole number.
    is_exact
        Whether float64 gives exactly the value of exact arithmetic.
    is_number
        False where it may be NaN.
    """

    low: End
    high: End
    is_integer: bool = False
    is_exact: bool = True
    is_number: bool = True

    @property
    def is_finite(self) -> bool:
        """Whether no overflow is possible."""
        return isinstance(self.low, Fraction) and isinstance(self.high, Fraction)

    @property
    def size(self) -> End:
        """The largest magnitude."""
        return max(_size(self.low), _size(self.high))

    @property
    def is_small_integer(self) -> bool:
        """Whether it is a whole number that float64 holds exactly."""
        return self.is_integer and self.size < WHOLE

    def contains_zero(self) -> bool:
        """Whether 0 lies between the ends."""
        return self.low <= 0 <= self.high


def _size(end: End) -> End:
    return -end if end < 0 else end


ANYTHING = Fact(-math.inf, math.inf, is_exact=False, is_number=False)


def facts_of(program: syntax.Program, *, ranges: Ranges, integers: frozenset[str]) -> dict[str, Fact]:
    """Return a fact for each name of a single-assignment program; an input without a range is any float64."""
    facts = {name: _input(name, ranges, integers) for name in program.inputs}
    for command in commands(program.body):
        if isinstance(command, syntax.Assign):
            new = fact_of(command.value, facts)
            facts[command.name] = hull(facts[command.name], new) if command.name in facts else new
    return facts


def _input(name: str, ranges: Ranges, integers: frozenset[str]) -> Fact:
    low, high = ranges.get(name, (-2 * OVERFLOW, 2 * OVERFLOW))
    return Fact(Fraction(low), Fraction(high), is_integer=name in integers)


def hull(first: Fact, second: Fact) -> Fact:
    """Return what holds of either value."""
    return Fact(
        min(first.low, second.low),
        max(first.high, second.high),
        first.is_integer and second.is_integer,
        first.is_exact and second.is_exact,
        first.is_number and second.is_number,
    )


def fact_of(expression: syntax.Expression, facts: Mapping[str, Fact]) -> Fact:
    """Return what is known of the float64 value of ``expression``."""
    found: Fact = fold(expression, partial(_fact, facts), into=syntax.operands)
    return found


def _fact(facts: Mapping[str, Fact], expression: syntax.Expression, below: list[Fact]) -> Fact:
    match expression:
        case syntax.Variable(name):
            return facts[name]
        case syntax.Constant(value):
            return _constant(value)
        case syntax.Unary(name, _):
            (inner,) = below
            if name in ROUNDINGS:
                low, high = _widened(inner.low, inner.high, 2 * unit(name)[0] * inner.size)
                return replace(inner, low=low, high=high, is_exact=False)
            return _negative(inner) if name == "neg" else _absolute(inner)
        case syntax.Binary(name, _, _):
            return operation(name, *below)
        case syntax.Indicator():
            return Fact(Fraction(0), Fraction(1), is_integer=True)


def _constant(value: Fraction) -> Fact:
    whole = value.denominator == 1
    if whole or is_float(value):
        return Fact(value, value, is_integer=whole)
    low, high = _widened(value, value, Fraction(0))
    return Fact(low, high, is_exact=False)


def _negative(fact: Fact) -> Fact:
    return replace(fact, low=-fact.high, high=-fact.low)


def _absolute(fact: Fact) -> Fact:
    low = Fraction(0) if fact.contains_zero() else min(_size(fact.low), _size(fact.high))
    return replace(fact, low=low, high=fact.size)


def operation(name: syntax.BinaryName, left: Fact, right: Fact) -> Fact:
    """Return what is known of one float64 operation."""
    bounds = bounds_of(name, left, right) if left.is_number and right.is_number else None
    if bounds is None:
        return ANYTHING
    exact = is_exact(name, left, right, bounds)
    low, high = bounds if exact else _widened(*bounds, _conversions(name, left, right))
    low = low if low >= -OVERFLOW else -math.inf
    high = high if high <= OVERFLOW else math.inf
    return Fact(
        low,
        high,
        is_integer=name != "/" and left.is_integer and right.is_integer,
        is_exact=exact and left.is_exact and right.is_exact,
    )


def slack(name: syntax.BinaryName, left: Fact, right: Fact) -> End:
    """Return the absolute error of an operation beyond its relative one: underflow, and large integers made floats."""
    return TINY + _conversions(name, left, right)


def _conversions(name: syntax.BinaryName, left: Fact, right: Fact) -> End:
    if name not in ("+", "-"):
        return Fraction(0)
    return sum((EPSILON * fact.size for fact in (left, right) if fact.is_integer and fact.size >= WHOLE), Fraction(0))


def _widened(low: End, high: End, extra: End) -> tuple[End, End]:
    return _widen(low, -1, extra), _widen(high, 1, extra)


def _widen(end: End, sign: int, extra: End) -> End:
    if isinstance(end, float) or isinstance(extra, float):
        return sign * math.inf
    return _outward(end + sign * (abs(end) * 4 * EPSILON + TINY + extra), sign)


def _outward(end: Fraction, sign: int) -> End:
    """Return a float64 beyond ``end``: the ends of a long calculation must not grow digits at each step."""
    if abs(end) >= OVERFLOW:
        return sign * math.inf if (end > 0) == (sign > 0) else end
    return Fraction(math.nextafter(float(end), sign * math.inf))


def is_exact(name: syntax.BinaryName, left: Fact, right: Fact, bounds: tuple[End, End]) -> bool:
    """Whether float64 rounds nothing in this operation, whatever the operands within their ends."""
    result = max(_size(bounds[0]), _size(bounds[1]))
    whole = left.is_small_integer and right.is_small_integer
    match name:
        case "min" | "max":
            return True
        case _ if result > OVERFLOW:
            return False
        case "+" | "-":
            return (whole and result < WHOLE) or _is(right, 0) or _is(left, 0)
        case "*":
            return (whole and result < WHOLE) or _scales(left, right) or _scales(right, left)
        case "/":
            return _is_power_of_two(right) and (right.size <= 1 or (left.is_small_integer and right.size < 2**900))


def _scales(factor: Fact, other: Fact) -> bool:
    """Whether multiplying ``other`` by ``factor`` moves only the exponent, or keeps it, or gives 0."""
    if factor.is_integer and factor.low >= 0 and factor.high <= 1:
        return True
    return _is_power_of_two(factor) and (
        factor.size >= 1 or (other.is_small_integer and factor.size > Fraction(1, 2**900))
    )


def _is(fact: Fact, value: int) -> bool:
    return fact.low == fact.high == value


def _is_power_of_two(fact: Fact) -> bool:
    size = fact.low
    if isinstance(size, float) or size != fact.high or size == 0:
        return False
    top, bottom = abs(size.numerator), size.denominator
    return top & (top - 1) == 0 and bottom & (bottom - 1) == 0


def bounds_of(name: syntax.BinaryName, left: Fact, right: Fact) -> tuple[End, End] | None:
    """Return the ends of the exact result of one operation; None where infinities may cancel."""
    match name:
        case "+":
            return _added(left, right)
        case "-":
            return _added(left, _negative(right))
        case "*":
            return _multiplied((left.low, left.high), (right.low, right.high))
        case "/":
            return _divided(left, right)
        case "min":
            return min(left.low, right.low), min(left.high, right.high)
        case "max":
            return max(left.low, right.low), max(left.high, right.high)


def _added(left: Fact, right: Fact) -> tuple[End, End] | None:
    if not left.is_finite and not right.is_finite:
        return None
    return _plus(left.low, right.low), _plus(left.high, right.high)


def _plus(first: End, second: End) -> End:
    if isinstance(first, float):
        return first
    return second if isinstance(second, float) else first + second


def _multiplied(left: tuple[End, End], right: tuple[End, End]) -> tuple[End, End] | None:
    products = [_times(first, second) for first in left for second in right]
    known = [product for product in products if product is not None]
    if len(known) < len(products) or _is_wild(left, right) or _is_wild(right, left):
        return None
    return min(known), max(known)


def _is_wild(factor: tuple[End, End], other: tuple[End, End]) -> bool:
    return any(isinstance(end, float) for end in factor) and other[0] <= 0 <= other[1]


def _times(first: End, second: End) -> End | None:
    if isinstance(first, Fraction) and isinstance(second, Fraction):
        return first * second
    if first == 0 or second == 0:
        return None
    return math.inf if (first > 0) == (second > 0) else -math.inf


def _divided(left: Fact, right: Fact) -> tuple[End, End] | None:
    if not left.is_finite and not right.is_finite:
        return None
    if not right.contains_zero():
        return _multiplied((left.low, left.high), (_inverse(right.high), _inverse(right.low)))
    if right.is_integer:
        return -left.size, left.size
    return -math.inf, math.inf


def _inverse(end: End) -> End:
    return Fraction(0) if isinstance(end, float) else 1 / end
