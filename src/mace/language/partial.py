"""A program some of whose inputs are known: what is left of it."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from mace.language.run import apply, calculate, compare
from mace.language.substitute import substitute, substitute_command
from mace.language.syntax import (
    And,
    Assign,
    Binary,
    Command,
    Compare,
    Constant,
    Expression,
    Guard,
    If,
    Indicator,
    Not,
    Or,
    Program,
    Return,
    Sequence,
    Truth,
    Unary,
    conjunction,
    disjunction,
    negation,
    sequence,
)
from mace.language.unroll import unroll


def given(program: Program, values: Mapping[str, Fraction]) -> Program:
    """Return a program that gives the same wherever the named inputs have these values, and does not read them.

    Conditionals that are decided are gone; where none is left the program is one expression.

    Examples
    --------
    >>> from mace.language.parse import parse
    >>> made = parse("def f(a, b): return a if b > 0 else 2 * a").program
    >>> given(made, {"b": Fraction(1)}).body
    Return(value=Variable(name='a'))
    """
    known = {name: Constant(value) for name, value in values.items()}
    body = _command(substitute_command(unroll(program).body, known))
    return Program(program.inputs, _as_one(body))


def _as_one(body: Command) -> Command:
    """Return assignments and a return as a return alone."""
    if not isinstance(body, Sequence):
        return body
    values: dict[str, Expression] = {}
    for part in body.parts:
        match part:
            case Assign(name, value):
                values[name] = _expression(substitute(value, values))
            case Return(value):
                return Return(_expression(substitute(value, values)))
            case _:
                return body
    return body


def _command(command: Command) -> Command:
    match command:
        case Return(value):
            return Return(_expression(value))
        case Assign(name, value):
            return Assign(name, _expression(value))
        case Sequence(parts):
            return sequence(map(_command, parts))
        case If(guard, then, otherwise):
            left = _guard(guard)
            if isinstance(left, Truth):
                return _command(then if left.value else otherwise)
            return If(left, _command(then), _command(otherwise))
        case _:
            return command


def _expression(expression: Expression) -> Expression:
    match expression:
        case Indicator(guard):
            left = _guard(guard)
            return Constant(Fraction(left.value)) if isinstance(left, Truth) else Indicator(left)
        case Unary(name, operand):
            inner = _expression(operand)
            if isinstance(inner, Constant):
                return Constant(apply(name, inner.value))
            return Unary(name, inner)
        case Binary(name, left, right):
            a, b = _expression(left), _expression(right)
            if isinstance(a, Constant) and isinstance(b, Constant) and (name != "/" or b.value):
                return Constant(calculate(name, a.value, b.value))
            return Binary(name, a, b)
        case _:
            return expression


def _guard(guard: Guard) -> Guard:
    match guard:
        case Compare(name, left, right):
            a, b = _expression(left), _expression(right)
            if isinstance(a, Constant) and isinstance(b, Constant):
                return Truth(compare(name, a.value, b.value))
            return Compare(name, a, b)
        case And(parts):
            return conjunction(map(_guard, parts))
        case Or(parts):
            return disjunction(map(_guard, parts))
        case Not(part):
            return negation(_guard(part))
        case _:
            return guard
