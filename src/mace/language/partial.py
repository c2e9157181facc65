"""A program some of whose inputs are known: what is left of it."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from mace.language import syntax
from mace.language.run import apply, calculate, compare
from mace.language.substitute import substitute
from mace.language.unroll import unroll
from mace.language.walk import rewrite


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
    body = _command(substitute(unroll(program).body, known))
    return syntax.Program(program.inputs, _as_one(body))


def _as_one(body: syntax.Command) -> syntax.Command:
    """Return assignments and a return as a return alone."""
    if not isinstance(body, syntax.Sequence):
        return body
    values: dict[str, syntax.Expression] = {}
    for part in body.parts:
        match part:
            case syntax.Assign(name, value):
                values[name] = rewrite(substitute(value, values), _decided)
            case syntax.Return(value):
                return syntax.Return(rewrite(substitute(value, values), _decided))
            case _:
                return body
    return body


def _command(command: syntax.Command) -> syntax.Command:
    match command:
        case syntax.Return(value):
            return syntax.Return(rewrite(value, _decided))
        case syntax.Assign(name, value):
            return syntax.Assign(name, rewrite(value, _decided))
        case syntax.Sequence(parts):
            return syntax.sequence(map(_command, parts))
        case syntax.If(guard, then, otherwise):
            left = rewrite(guard, _decided)
            if isinstance(left, syntax.Truth):
                return _command(then if left.value else otherwise)
            return syntax.If(left, _command(then), _command(otherwise))
        case _:
            return command


def folded(node: syntax.Node) -> syntax.Node:
    """Return a calculation with numbers as its result, and any other node as it is; a division by 0 stays."""
    match node:
        case syntax.Unary(name, syntax.Constant(value)):
            return syntax.Constant(apply(name, value))
        case syntax.Binary(name, syntax.Constant(left), syntax.Constant(right)) if name != "/" or right:
            return syntax.Constant(calculate(name, left, right))
        case _:
            return node


def _decided(node: syntax.Node) -> syntax.Node:
    match node:
        case syntax.Indicator(syntax.Truth(value)):
            return syntax.Constant(Fraction(value))
        case syntax.Compare(name, syntax.Constant(left), syntax.Constant(right)):
            return syntax.Truth(compare(name, left, right))
        case syntax.And(parts):
            return syntax.conjunction(parts)
        case syntax.Or(parts):
            return syntax.disjunction(parts)
        case syntax.Not(part):
            return syntax.negation(part)
        case _:
            return folded(node)
