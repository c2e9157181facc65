"""Put expressions in the place of variables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from mace.language.syntax import (
    FALSE,
    And,
    Assign,
    Binary,
    Command,
    Compare,
    Constant,
    Expression,
    For,
    Guard,
    If,
    Indicator,
    Missing,
    Not,
    Or,
    Return,
    Sequence,
    Skip,
    Truth,
    Unary,
    Variable,
)
from mace.language.trampoline import Steps, each, finish

Values: TypeAlias = Mapping[str, Expression]


def substitute(expression: Expression, values: Values) -> Expression:
    """Return ``expression`` with the variables named in ``values`` replaced."""
    return finish(_expression(expression, values))


def substitute_guard(guard: Guard, values: Values) -> Guard:
    """Return ``guard`` with the variables named in ``values`` replaced.

    Only an input can be missing: once something else stands for ``x``, ``Missing(x)`` is false.
    """
    return finish(_guard(guard, values))


def substitute_command(command: Command, values: Values) -> Command:
    """Return ``command`` with variables replaced where they are read; a loop hides its own variable."""
    return finish(_command(command, values))


def rename(command: Command, new: Mapping[str, str]) -> Command:
    """Return the loop-free ``command`` with variables renamed, where they are read and where they are assigned."""
    return finish(_rename(command, new, {name: Variable(other) for name, other in new.items()}))


def _expression(expression: Expression, values: Values) -> Steps[Expression]:
    match expression:
        case Variable(name):
            return values.get(name, expression)
        case Constant():
            return expression
        case Unary(name, operand):
            return Unary(name, (yield _expression(operand, values)))
        case Binary(name, left, right):
            return Binary(name, (yield _expression(left, values)), (yield _expression(right, values)))
        case Indicator(guard):
            return Indicator((yield _guard(guard, values)))


def _guard(guard: Guard, values: Values) -> Steps[Guard]:
    match guard:
        case Truth():
            return guard
        case Missing(name):
            return guard if values.get(name, Variable(name)) == Variable(name) else FALSE
        case Compare(name, left, right):
            return Compare(name, (yield _expression(left, values)), (yield _expression(right, values)))
        case Not(part):
            return Not((yield _guard(part, values)))
        case And(parts) | Or(parts):
            replaced: list[Guard] = yield each(_guard(part, values) for part in parts)
            return type(guard)(tuple(replaced))


def _command(command: Command, values: Values) -> Steps[Command]:
    match command:
        case Skip():
            return command
        case Assign(name, value):
            return Assign(name, substitute(value, values))
        case Return(value):
            return Return(substitute(value, values))
        case Sequence(parts):
            replaced: list[Command] = yield each(_command(part, values) for part in parts)
            return Sequence(tuple(replaced))
        case If(guard, then, otherwise):
            test = substitute_guard(guard, values)
            return If(test, (yield _command(then, values)), (yield _command(otherwise, values)))
        case For(name, start, stop, body):
            outer = {other: value for other, value in values.items() if other != name}
            return For(name, start, stop, (yield _command(body, outer)))


def _rename(command: Command, new: Mapping[str, str], values: Values) -> Steps[Command]:
    match command:
        case Assign(name, value):
            return Assign(new.get(name, name), substitute(value, values))
        case Sequence(parts):
            replaced: list[Command] = yield each(_rename(part, new, values) for part in parts)
            return Sequence(tuple(replaced))
        case If(guard, then, otherwise):
            test = substitute_guard(guard, values)
            return If(test, (yield _rename(then, new, values)), (yield _rename(otherwise, new, values)))
        case Skip() | Return() | For():
            return substitute_command(command, values)
