"""Expressions and comparisons as linear forms of their variables."""

from __future__ import annotations

from fractions import Fraction

from mace.language.syntax import Binary, Compare, Constant, Expression, Unary, Variable

Linear = tuple[dict[str, Fraction], Fraction]
"""Coefficients by feature, and a constant."""


def linear(part: Compare) -> Linear | None:
    """Return left - right as a linear expression; ``None`` where it is none."""
    left, right = linear_expression(part.left), linear_expression(part.right)
    return None if left is None or right is None else add(left, right, Fraction(-1))


def linear_expression(expression: Expression) -> Linear | None:
    """Return an expression as a sum of multiples of its variables; ``None`` where it is none."""
    match expression:
        case Variable(name):
            return {name: Fraction(1)}, Fraction(0)
        case Constant(value):
            return {}, value
        case Unary("neg", operand):
            inner = linear_expression(operand)
            return None if inner is None else add(({}, Fraction(0)), inner, Fraction(-1))
        case Binary(name, left, right):
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
