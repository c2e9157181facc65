"""Whether programs and guards are piecewise linear, and what keeps them from it."""

from __future__ import annotations

from enum import IntEnum

from mace.language import syntax
from mace.language.naming import commands
from mace.language.single import single_assignment


class Kind(IntEnum):
    """How much an expression varies: not at all, between a few exact numbers, or freely."""

    FIXED = 0
    FEW = 1
    FREE = 2


class _NotLinear(Exception):
    """Says what is not linear."""


def why_not_linear(part: syntax.Program | syntax.Guard, what: str) -> str:
    """Return what keeps a program or a guard from being piecewise linear, a sentence about ``what`` it is; empty where nothing does."""
    try:
        if isinstance(part, syntax.Program):
            _check_program(part, what)
        else:
            _check_guard(part, what, {})
    except _NotLinear as reason:
        return str(reason)
    return ""


def _check_program(program: syntax.Program, what: str) -> None:
    kinds: dict[str, Kind] = {}
    for command in commands(single_assignment(program).body):
        match command:
            case syntax.Assign(name, value):
                kind = _kind(value, kinds, what)
                several = Kind.FEW if name in kinds else kind
                kinds[name] = max(kind, several, kinds.get(name, kind))
            case syntax.Return(value):
                _kind(value, kinds, what)
            case syntax.If(guard, _, _):
                _check_guard(guard, what, kinds)
            case _:
                pass


def _check_guard(guard: syntax.Guard, what: str, kinds: dict[str, Kind]) -> None:
    pending: list[syntax.Guard] = [guard]
    while pending:
        match pending.pop():
            case syntax.Compare(_, left, right):
                _kind(left, kinds, what)
                _kind(right, kinds, what)
            case syntax.Not(part):
                pending.append(part)
            case syntax.And(parts) | syntax.Or(parts):
                pending.extend(parts)
            case syntax.Missing() | syntax.Truth():
                pass


def _kind(expression: syntax.Expression, kinds: dict[str, Kind], what: str) -> Kind:
    """Return how much an expression varies, or raise where it is no sum of multiples."""
    if isinstance(expression, syntax.Binary) and expression.name == "+":
        return _sum_kind(expression, kinds, what)
    match expression:
        case syntax.Constant():
            return Kind.FIXED
        case syntax.Variable(name):
            return kinds.get(name, Kind.FREE)
        case syntax.Indicator(guard):
            _check_guard(guard, what, kinds)
            return Kind.FEW
        case syntax.Unary(_, operand):
            return _kind(operand, kinds, what)
        case syntax.Binary(name, left, right):
            first, second = _kind(left, kinds, what), _kind(right, kinds, what)
            if name == "*" and min(first, second) == Kind.FREE:
                raise _NotLinear(f"{what} multiplies two quantities that both vary")
            if name == "/" and second != Kind.FIXED:
                raise _NotLinear(f"{what} divides by a quantity that varies")
            return Kind.FIXED if first == second == Kind.FIXED else Kind.FREE


def _sum_kind(expression: syntax.Expression, kinds: dict[str, Kind], what: str) -> Kind:
    """Return the kind of a sum that leans left, without recursion along it."""
    found = Kind.FIXED
    while isinstance(expression, syntax.Binary) and expression.name == "+":
        found = max(found, _kind(expression.right, kinds, what))
        expression = expression.left
    found = max(found, _kind(expression, kinds, what))
    return Kind.FIXED if found == Kind.FIXED else Kind.FREE
