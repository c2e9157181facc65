"""A program some of whose inputs are known: what is left of it."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from mace.language import syntax
from mace.language.run import apply, calculate, compare
from mace.language.substitute import substitute, substitute_command
from mace.language.unroll import unroll


def given(program: syntax.Program, values: Mapping[str, Fraction]) -> syntax.Program:
    """Return a program that gives the same wherever the named inputs have these values, and does not read them.

    Conditionals that are decided are gone; where none is left the program is one expression.

    Examples
    --------
    >>> from mace.language.parse import parse
    >>> made = parse("def f(a, b): return a if b > 0 else 2 * a").program
    >>> given(made, {"b": Fraction(1)}).body
    Return(value=Variable(name='a'))
    """
    known = {name: syntax.Constant(value) for name, value in values.items()}
    body = _command(substitute_command(unroll(program).body, known))
    return syntax.Program(program.inputs, _as_one(body))


def _as_one(body: syntax.Command) -> syntax.Command:
    """Return assignments and a return as a return alone."""
    if not isinstance(body, syntax.Sequence):
        return body
    values: dict[str, syntax.Expression] = {}
    for part in body.parts:
        match part:
            case syntax.Assign(name, value):
                values[name] = _expression(substitute(value, values))
            case syntax.Return(value):
                return syntax.Return(_expression(substitute(value, values)))
            case _:
                return body
    return body


def _command(command: syntax.Command) -> syntax.Command:
    match command:
        case syntax.Return(value):
            return syntax.Return(_expression(value))
        case syntax.Assign(name, value):
            return syntax.Assign(name, _expression(value))
        case syntax.Sequence(parts):
            return syntax.sequence(map(_command, parts))
        case syntax.If(guard, then, otherwise):
            left = _guard(guard)
            if isinstance(left, syntax.Truth):
                return _command(then if left.value else otherwise)
            return syntax.If(left, _command(then), _command(otherwise))
        case _:
            return command


def _expression(expression: syntax.Expression) -> syntax.Expression:
    match expression:
        case syntax.Indicator(guard):
            left = _guard(guard)
            return syntax.Constant(Fraction(left.value)) if isinstance(left, syntax.Truth) else syntax.Indicator(left)
        case syntax.Unary(name, operand):
            inner = _expression(operand)
            if isinstance(inner, syntax.Constant):
                return syntax.Constant(apply(name, inner.value))
            return syntax.Unary(name, inner)
        case syntax.Binary(name, left, right):
            a, b = _expression(left), _expression(right)
            if isinstance(a, syntax.Constant) and isinstance(b, syntax.Constant) and (name != "/" or b.value):
                return syntax.Constant(calculate(name, a.value, b.value))
            return syntax.Binary(name, a, b)
        case _:
            return expression


def _guard(guard: syntax.Guard) -> syntax.Guard:
    match guard:
        case syntax.Compare(name, left, right):
            a, b = _expression(left), _expression(right)
            if isinstance(a, syntax.Constant) and isinstance(b, syntax.Constant):
                return syntax.Truth(compare(name, a.value, b.value))
            return syntax.Compare(name, a, b)
        case syntax.And(parts):
            return syntax.conjunction(map(_guard, parts))
        case syntax.Or(parts):
            return syntax.disjunction(map(_guard, parts))
        case syntax.Not(part):
            return syntax.negation(_guard(part))
        case _:
            return guard
