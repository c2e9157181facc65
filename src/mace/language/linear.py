"""Expressions and comparisons as linear forms of their variables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import partial
from typing import Any

from mace.language import syntax
from mace.language.roundings import ROUNDINGS, unit
from mace.language.walk import fold, rewrite

Linear = tuple[dict[str, Fraction], Fraction]
"""Coefficients by feature, and a constant."""


def linear(part: syntax.Compare) -> Linear | None:
    """Return left - right as a linear expression; ``None`` where it is none."""
    return _difference(part, _linear)


def nearly_linear(part: syntax.Compare) -> Linear | None:
    """Return left - right as a linear expression without its roundings, which move it by at most :func:`room`."""
    return _difference(part, _nearly)


def solved(part: syntax.Compare) -> tuple[str, syntax.CompareName, Fraction] | None:
    """Return a linear comparison solved for its only variable, ``variable sign number``; ``None`` where it has several, or is not linear.

    Examples
    --------
    >>> from mace.language.syntax import ONE, ZERO, Binary, Compare, Variable
    >>> solved(Compare("<", Binary("-", ONE, Variable("x")), ZERO))
    ('x', '>', Fraction(1, 1))
    """
    form = linear(part)
    shares = {} if form is None else {name: share for name, share in form[0].items() if share}
    if form is None or len(shares) != 1:
        return None
    ((name, share),) = shares.items()
    return name, part.name if share > 0 else syntax.MIRRORED[part.name], -form[1] / share


def _difference(part: syntax.Compare, combine: Callable[[Any, list[Linear | None]], Linear | None]) -> Linear | None:
    left, right = (fold(side, combine, into=syntax.operands) for side in (part.left, part.right))
    return None if left is None or right is None else add(left, right, Fraction(-1))


def unrounded(expression: syntax.Expression) -> syntax.Expression:
    """Return an expression without its roundings, those inside of guards left."""

    def change(node: syntax.Node) -> syntax.Node:
        return node.operand if isinstance(node, syntax.Unary) and node.name in ROUNDINGS else node

    return rewrite(expression, change, instead=lambda node: node if isinstance(node, syntax.Indicator) else None)


def room(part: syntax.Compare, sizes: Mapping[str, Fraction]) -> Fraction:
    """Return by how much roundings may move left - right, where no variable is larger than its size; for linear expressions."""
    moved = partial(_moved, sizes)
    return sum((fold(side, moved, into=syntax.operands)[1] for side in (part.left, part.right)), Fraction(0))


def _moved(
    sizes: Mapping[str, Fraction], expression: syntax.Expression, below: list[tuple[Fraction, Fraction]]
) -> tuple[Fraction, Fraction]:
    """Return the most that an expression may be, and by how much roundings may move it, from the same of its operands."""
    match expression:
        case syntax.Variable(name):
            return sizes[name], Fraction(0)
        case syntax.Constant(value):
            return abs(value), Fraction(0)
        case syntax.Unary(name, _):
            size, off = below[0]
            if name in ROUNDINGS:
                share, least = unit(name)
                moved = share * size + least
                return size + moved, off + moved
            return size, off
        case syntax.Binary(name, _, right):
            (a, off_a), (b, off_b) = below
            match name:
                case "*":
                    return a * b, a * off_b + b * off_a
                case "/":
                    divisor = linear_expression(right)
                    assert divisor is not None, "a linear expression divides by numbers"
                    return a / abs(divisor[1]), off_a / abs(divisor[1])
            return a + b, off_a + off_b
        case syntax.Indicator():
            return Fraction(1), Fraction(1)


def linear_expression(expression: syntax.Expression) -> Linear | None:
    """Return an expression as a sum of multiples of its variables; ``None`` where it is none."""
    return fold(expression, _linear, into=syntax.operands)


def _linear(expression: syntax.Expression, below: list[Linear | None]) -> Linear | None:
    forms = [form for form in below if form is not None]
    if len(forms) < len(below):
        return None
    match expression:
        case syntax.Variable(name):
            return {name: Fraction(1)}, Fraction(0)
        case syntax.Constant(value):
            return {}, value
        case syntax.Unary("neg"):
            return times(forms[0], Fraction(-1))
        case syntax.Binary(name):
            return calculated(name, *forms)
        case _:
            return None


def _nearly(expression: syntax.Expression, below: list[Linear | None]) -> Linear | None:
    is_rounding = isinstance(expression, syntax.Unary) and expression.name in ROUNDINGS
    return below[0] if is_rounding else _linear(expression, below)


def calculated(name: str, a: Linear, b: Linear) -> Linear | None:
    """Return the sum, difference, product or quotient of two linear expressions; ``None`` where it is not linear, or a min or max."""
    match name:
        case "+":
            return add(a, b, Fraction(1))
        case "-":
            return add(a, b, Fraction(-1))
        case "*" if not a[0]:
            return times(b, a[1])
        case "*" if not b[0]:
            return times(a, b[1])
        case "/" if not b[0] and b[1]:
            return times(a, 1 / b[1])
        case _:
            return None


def add(a: Linear, b: Linear, times: Fraction) -> Linear:
    """Return ``a + times * b``."""
    coefficients = dict(a[0])
    for name, value in b[0].items():
        coefficients[name] = coefficients.get(name, Fraction(0)) + times * value
    return coefficients, a[1] + times * b[1]


def times(form: Linear, factor: Fraction) -> Linear:
    """Return ``factor * form``."""
    return {name: factor * value for name, value in form[0].items()}, factor * form[1]


def linear_sum(form: Linear) -> syntax.Expression:
    """Return a linear form as an expression."""
    terms: list[syntax.Expression] = [
        syntax.Binary("*", syntax.Constant(share), syntax.Variable(name)) for name, share in form[0].items() if share
    ]
    return syntax.total([*terms, syntax.Constant(form[1])] if form[1] else terms)
