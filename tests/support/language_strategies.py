"""Random programs: nested conditionals, loops, reassignment, early returns, indicators."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

from hypothesis import strategies as st

from mace.language.syntax import (
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
    Not,
    Or,
    Program,
    Return,
    Skip,
    Truth,
    Unary,
    Variable,
    sequence,
)

INPUTS = ("a", "b", "x 1")
LOCALS = ("u", "v", "y", "u_2")

numbers = st.one_of(
    st.integers(-4, 4).map(Fraction),
    st.sampled_from([0.5, -0.25, 0.1, 1.3]).map(Fraction),
)
rationals = st.one_of(numbers, st.just(Fraction(1, 3)))
inputs = st.fixed_dictionaries({name: st.integers(-4, 4).map(lambda n: Fraction(n, 2)) for name in INPUTS})
comparisons = st.sampled_from(["<", "<=", "==", "!=", ">", ">="])


@cache
def expressions(names: tuple[str, ...], *, constants: st.SearchStrategy[Fraction], divide: bool):
    atoms = st.one_of(st.sampled_from(names).map(Variable), constants.map(Constant))
    operators = ["+", "-", "*", "min", "max", *(["/"] if divide else [])]

    def extend(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
        compare = st.builds(Compare, comparisons, inner, inner)
        return st.one_of(
            st.builds(Binary, st.sampled_from(operators), inner, inner),
            st.builds(Unary, st.sampled_from(["neg", "abs"]), inner),
            st.builds(Indicator, compare),
        )

    return st.recursive(atoms, extend, max_leaves=4)


@cache
def guards(names: tuple[str, ...], *, constants: st.SearchStrategy[Fraction], divide: bool):
    inner = expressions(names, constants=constants, divide=divide)
    atoms = st.one_of(st.builds(Compare, comparisons, inner, inner), st.booleans().map(Truth))

    def extend(parts: st.SearchStrategy[Guard]) -> st.SearchStrategy[Guard]:
        several = st.lists(parts, min_size=2, max_size=3).map(tuple)
        return st.one_of(several.map(And), several.map(Or), parts.map(Not))

    return st.recursive(atoms, extend, max_leaves=3)


@st.composite
def blocks(draw, known: tuple[str, ...], loops: tuple[str, ...], depth: int, constants, divide: bool, local):
    """Draw a block and the names that have a value after it; None after a sure return."""
    parts: list[Command] = []
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(["assign", "assign", "if", "if", "for", "return", "skip"] if depth else ["assign"]))
        part, after = draw(commands(kind, known, loops, depth, constants, divide, local))
        parts.append(part)
        if after is None:
            return sequence(parts), None
        known = after
    return sequence(parts), known


@st.composite
def commands(draw, kind: str, known, loops, depth: int, constants, divide: bool, local):
    values = expressions(known + loops, constants=constants, divide=divide)
    if kind == "assign":
        name = draw(st.sampled_from(local))
        return Assign(name, draw(values)), tuple(dict.fromkeys((*known, name)))
    if kind == "skip":
        return Skip(), known
    if kind == "return":
        return Return(draw(values)), None
    if kind == "if":
        guard = draw(guards(known + loops, constants=constants, divide=divide))
        then, first = draw(blocks(known, loops, depth - 1, constants, divide, local))
        other, second = draw(
            st.one_of(st.just((Skip(), known)), blocks(known, loops, depth - 1, constants, divide, local))
        )
        return If(guard, then, other), _joined(first, second)
    name = draw(st.sampled_from(["i", "j", "b"]))
    start = draw(st.integers(-1, 1))
    visible = tuple(other for other in known if other != name)
    inner = tuple(other for other in local if other != name)
    body, _ = draw(blocks(visible, (*loops, name), depth - 1, constants, divide, inner))
    return For(name, start, start + draw(st.integers(0, 3)), body), known


def _joined(first, second):
    if first is None or second is None:
        return second if first is None else first
    return tuple(name for name in first if name in second)


@st.composite
def programs(draw, *, constants=rationals, divide: bool = True, assign_inputs: bool = True, depth: int = 3) -> Program:
    local = (*LOCALS, "a") if assign_inputs else LOCALS
    body, known = draw(blocks(INPUTS, (), depth, constants, divide, local))
    if known is not None:
        values = expressions(known, constants=constants, divide=divide)
        body = sequence([body, Return(draw(st.one_of(values, st.sampled_from(known).map(Variable))))])
    return Program(INPUTS, body)
