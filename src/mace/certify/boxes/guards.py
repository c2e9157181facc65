"""Whether a guard may hold in a piece of the domain: intervals in fractions."""

from __future__ import annotations

from fractions import Fraction

from mace.certify.trees.ranges import Span
from mace.language import syntax
from mace.language.roundings import ROUNDINGS, rounded

Interval = tuple[Fraction, Fraction]


def may_hold(guard: syntax.Guard, at: dict[str, Span]) -> tuple[bool, bool]:
    """Return whether a guard may hold in a piece, and whether it may fail; where that is not clear, both."""
    match guard:
        case syntax.Truth(value):
            return value, not value
        case syntax.Missing(name):
            return at[name].missing, at[name].has_values
        case syntax.Not(part):
            holds, fails = may_hold(part, at)
            return fails, holds
        case syntax.And(parts):
            each = [may_hold(part, at) for part in parts]
            return all(holds for holds, _ in each), any(fails for _, fails in each)
        case syntax.Or(parts):
            each = [may_hold(part, at) for part in parts]
            return any(holds for holds, _ in each), all(fails for _, fails in each)
        case syntax.Compare(sign, syntax.Variable(name), syntax.Constant(value)) if (
            sign in ("==", "!=") and at[name].levels is not None
        ):
            return _level_test(sign == "==", at[name], value)
        case syntax.Compare(sign, left, right):
            first, second = _interval(left, at), _interval(right, at)
            return (True, True) if first is None or second is None else _compared(sign, first, second)


def _level_test(is_equal: bool, span: Span, value: Fraction) -> tuple[bool, bool]:
    if span.missing:
        return True, True
    assert span.levels is not None
    equal, other = value in span.levels, bool(span.levels - {int(value)} if value.denominator == 1 else span.levels)
    return (equal, other) if is_equal else (other, equal)


def _compared(sign: str, a: Interval, b: Interval) -> tuple[bool, bool]:
    less, more = a[0] < b[1], a[1] > b[0]  # some pair of values makes it true
    at_most, at_least = a[0] <= b[1], a[1] >= b[0]
    match sign:
        case "<":
            return less, at_least
        case "<=":
            return at_most, more
        case ">":
            return more, at_most
        case ">=":
            return at_least, less
    meet, apart = at_most and at_least, less or more
    return (meet, apart) if sign == "==" else (apart, meet)


def _interval(expression: syntax.Expression, at: dict[str, Span]) -> Interval | None:
    """Return between what the values of an expression lie in a piece; ``None`` where it may not have one."""
    match expression:
        case syntax.Constant(value):
            return value, value
        case syntax.Variable(name):
            return _values(at[name])
        case syntax.Indicator(guard):
            holds, fails = may_hold(guard, at)
            return Fraction(not fails), Fraction(holds)
        case syntax.Unary(name, operand):
            inner = _interval(operand, at)
            if inner is None:
                return None
            if name in ROUNDINGS:
                # Both roundings rise with what they round, and the ends of a span are floats.
                return rounded(name, inner[0]), rounded(name, inner[1])
            if name == "neg":
                return -inner[1], -inner[0]
            ends = sorted(map(abs, inner))
            return (Fraction(0) if inner[0] <= 0 <= inner[1] else ends[0]), ends[1]
        case syntax.Binary(name, left, right):
            first, second = _interval(left, at), _interval(right, at)
            return None if first is None or second is None else _joined(name, first, second)


def _values(span: Span) -> Interval | None:
    if span.missing or not span.has_values:
        return None
    if span.levels is not None:
        return Fraction(min(span.levels)), Fraction(max(span.levels))
    return Fraction(span.low), Fraction(span.high)


def _joined(name: str, a: Interval, b: Interval) -> Interval | None:
    match name:
        case "+":
            return a[0] + b[0], a[1] + b[1]
        case "-":
            return a[0] - b[1], a[1] - b[0]
        case "min":
            return min(a[0], b[0]), min(a[1], b[1])
        case "max":
            return max(a[0], b[0]), max(a[1], b[1])
        case "/" if b[0] <= 0 <= b[1]:
            return None
    corners = [x * y if name == "*" else x / y for x in a for y in b]
    return min(corners), max(corners)
