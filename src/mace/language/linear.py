"""Expressions and comparisons as linear forms of their variables."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from mace.language import syntax
from mace.language.roundings import ROUNDINGS, unit

Linear = tuple[dict[str, Fraction], Fraction]
"""Coefficients by feature, and a constant."""


def linear(part: syntax.Compare) -> Linear | None:
    """Return left - right as a linear expression; ``None`` where it is none."""
    left, right = linear_expression(part.left), linear_expression(part.right)
    return None if left is None or right is None else add(left, right, Fraction(-1))


def nearly_linear(part: syntax.Compare) -> Linear | None:
    """Return left - right as a linear expression without its roundings, which move it by at most :func:`room`."""
    return linear(syntax.Compare(part.name, unrounded(part.left), unrounded(part.right)))


def unrounded(expression: syntax.Expression) -> syntax.Expression:
    """Return an expression without its roundings, those inside of guards left."""
    match expression:
        case syntax.Unary(name, operand):
            inner = unrounded(operand)
            return inner if name in ROUNDINGS else syntax.Unary(name, inner)
        case syntax.Binary(name, left, right):
            return syntax.Binary(name, unrounded(left), unrounded(right))
        case _:
            return expression


def room(part: syntax.Compare, sizes: Mapping[str, Fraction]) -> Fraction:
    """Return by how much roundings may move left - right, where no variable is larger than its size; for linear expressions."""
    return _room(part.left, sizes)[1] + _room(part.right, sizes)[1]


def _room(expression: syntax.Expression, sizes: Mapping[str, Fraction]) -> tuple[Fraction, Fraction]:
    """Return the most that an expression may be, and by how much roundings may move it."""
    match expression:
        case syntax.Variable(name):
            return sizes[name], Fraction(0)
        case syntax.Constant(value):
            return abs(value), Fraction(0)
        case syntax.Unary(name, operand):
            size, off = _room(operand, sizes)
            if name in ROUNDINGS:
                share, least = unit(name)
                moved = share * size + least
                return size + moved, off + moved
            return size, off
        case syntax.Binary(name, left, right):
            (a, off_a), (b, off_b) = _room(left, sizes), _room(right, sizes)
            match name:
                case "*":
                    return a * b, a * off_b + b * off_a
                case "/":
                    divisor = linear_expression(right)
                    assert divisor is not None, "a linear expression divides by numbers"
                    return a / abs(divisor[1]), off_a / abs(divisor[1])
            return a + b, off_a + off_b
        case _:
            return Fraction(1), Fraction(1)


def linear_expression(expression: syntax.Expression) -> Linear | None:
    """Return an expression as a sum of multiples of its variables; ``None`` where it is none."""
    match expression:
        case syntax.Variable(name):
            return {name: Fraction(1)}, Fraction(0)
        case syntax.Constant(value):
            return {}, value
        case syntax.Unary("neg", operand):
            inner = linear_expression(operand)
            return None if inner is None else add(({}, Fraction(0)), inner, Fraction(-1))
        case syntax.Binary(name, left, right):
            a, b = linear_expression(left), linear_expression(right)
            return None if a is None or b is None else _joined(name, a, b)
        case _:
            return None


def _joined(name: str, a: Linear, b: Linear) -> Linear | None:
    zero: Linear = ({}, Fraction(0))
    match name:
        case "+":
            return add(a, b, Fraction(1))
        case "-":
            return add(a, b, Fraction(-1))
        case "*" if not a[0]:
            return add(zero, b, a[1])
        case "*" if not b[0]:
            return add(zero, a, b[1])
        case "/" if not b[0] and b[1]:
            return add(zero, a, 1 / b[1])
        case _:
            return None


def add(a: Linear, b: Linear, times: Fraction) -> Linear:
    """Return ``a + times * b``."""
    coefficients = dict(a[0])
    for name, value in b[0].items():
        coefficients[name] = coefficients.get(name, Fraction(0)) + times * value
    return coefficients, a[1] + times * b[1]
