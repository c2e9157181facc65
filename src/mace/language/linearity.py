"""Whether programs and guards are piecewise linear, and what keeps them from it."""

from __future__ import annotations

from enum import IntEnum

from mace.language import syntax
from mace.language.naming import commands
from mace.language.single import single_assignment
from mace.language.walk import fold


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
            _kind(part, {}, what)
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
            case syntax.Return(node) | syntax.If(node, _, _):
                _kind(node, kinds, what)
            case _:
                pass


def _kind(node: syntax.Expression | syntax.Guard, kinds: dict[str, Kind], what: str) -> Kind:
    """Return how much an expression varies, or raise where it, or a guard, multiplies or divides by something that varies."""

    def combine(node: syntax.Node, below: list[Kind]) -> Kind:
        match node:
            case syntax.Variable(name):
                return kinds.get(name, Kind.FREE)
            case syntax.Indicator():
                return Kind.FEW
            case syntax.Unary():
                return below[0]
            case syntax.Binary("*", _, _) if min(below) == Kind.FREE:
                raise _NotLinear(f"{what} multiplies two quantities that both vary")
            case syntax.Binary("/", _, _) if below[1] != Kind.FIXED:
                raise _NotLinear(f"{what} divides by a quantity that varies")
            case syntax.Binary():
                return Kind.FIXED if max(below) == Kind.FIXED else Kind.FREE
            case _:
                return Kind.FIXED

    return fold(node, combine)
