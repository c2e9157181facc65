"""Put expressions in the place of variables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from mace.language import syntax
from mace.language.trampoline import Steps, each, finish

Values: TypeAlias = Mapping[str, syntax.Expression]


def substitute(expression: syntax.Expression, values: Values) -> syntax.Expression:
    """Return ``expression`` with the variables named in ``values`` replaced."""
    return finish(_expression(expression, values))


def substitute_guard(guard: syntax.Guard, values: Values) -> syntax.Guard:
    """Return ``guard`` with the variables named in ``values`` replaced.

    Only an input can be missing: once something else stands for ``x``, ``Missing(x)`` is false.
    """
    return finish(_guard(guard, values))


def substitute_command(command: syntax.Command, values: Values) -> syntax.Command:
    """Return ``command`` with variables replaced where they are read; a loop hides its own variable."""
    return finish(_command(command, values))


def rename(command: syntax.Command, new: Mapping[str, str]) -> syntax.Command:
    """Return the loop-free ``command`` with variables renamed, where they are read and where they are assigned."""
    return finish(_rename(command, new, {name: syntax.Variable(other) for name, other in new.items()}))


def _expression(expression: syntax.Expression, values: Values) -> Steps[syntax.Expression]:
    match expression:
        case syntax.Variable(name):
            return values.get(name, expression)
        case syntax.Constant():
            return expression
        case syntax.Unary(name, operand):
            return syntax.Unary(name, (yield _expression(operand, values)))
        case syntax.Binary(name, left, right):
            return syntax.Binary(name, (yield _expression(left, values)), (yield _expression(right, values)))
        case syntax.Indicator(guard):
            return syntax.Indicator((yield _guard(guard, values)))


def _guard(guard: syntax.Guard, values: Values) -> Steps[syntax.Guard]:
    match guard:
        case syntax.Truth():
            return guard
        case syntax.Missing(name):
            return guard if values.get(name, syntax.Variable(name)) == syntax.Variable(name) else syntax.FALSE
        case syntax.Compare(name, left, right):
            return syntax.Compare(name, (yield _expression(left, values)), (yield _expression(right, values)))
        case syntax.Not(part):
            return syntax.Not((yield _guard(part, values)))
        case syntax.And(parts) | syntax.Or(parts):
            replaced: list[syntax.Guard] = yield each(_guard(part, values) for part in parts)
            return type(guard)(tuple(replaced))


def _command(command: syntax.Command, values: Values) -> Steps[syntax.Command]:
    match command:
        case syntax.Skip():
            return command
        case syntax.Assign(name, value):
            return syntax.Assign(name, substitute(value, values))
        case syntax.Return(value):
            return syntax.Return(substitute(value, values))
        case syntax.Sequence(parts):
            replaced: list[syntax.Command] = yield each(_command(part, values) for part in parts)
            return syntax.Sequence(tuple(replaced))
        case syntax.If(guard, then, otherwise):
            test = substitute_guard(guard, values)
            return syntax.If(test, (yield _command(then, values)), (yield _command(otherwise, values)))
        case syntax.For(name, start, stop, body):
            outer = {other: value for other, value in values.items() if other != name}
            return syntax.For(name, start, stop, (yield _command(body, outer)))


def _rename(command: syntax.Command, new: Mapping[str, str], values: Values) -> Steps[syntax.Command]:
    match command:
        case syntax.Assign(name, value):
            return syntax.Assign(new.get(name, name), substitute(value, values))
        case syntax.Sequence(parts):
            replaced: list[syntax.Command] = yield each(_rename(part, new, values) for part in parts)
            return syntax.Sequence(tuple(replaced))
        case syntax.If(guard, then, otherwise):
            test = substitute_guard(guard, values)
            return syntax.If(test, (yield _rename(then, new, values)), (yield _rename(otherwise, new, values)))
        case syntax.Skip() | syntax.Return() | syntax.For():
            return substitute_command(command, values)
