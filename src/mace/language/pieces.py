"""A piecewise linear program as its pieces: where each holds, and the linear form that it is there."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from mace.language import syntax
from mace.language.linear import Linear, add, calculated, times
from mace.language.run import compare
from mace.language.unroll import unroll

MOST_PIECES = 64

Piece = tuple[syntax.Guard, Linear]
"""Where it holds, and what the program is there."""

Values = dict[str, Linear]


class _NotPiecewiseLinear(Exception):
    """The program multiplies variables, or is very long."""


def pieces(program: syntax.Program) -> list[Piece] | None:
    """Return the pieces of a program: exactly one guard holds of any inputs; ``None`` where it is not piecewise linear, or has very many.

    Examples
    --------
    >>> from mace.language.parse import parse
    >>> [(str(guard.name), share) for guard, (share, _) in pieces(parse("def f(a): return max(a, 3)").program)]
    [('>=', {'a': Fraction(1, 1)}), ('<', {})]
    """
    try:
        made = []
        for guards, result in _run(unroll(program).body, {}):
            if not isinstance(result, tuple):
                return None
            made.append((syntax.conjunction(guards), result))
            if len(made) > MOST_PIECES:
                return None
        return made
    except (_NotPiecewiseLinear, RecursionError):
        return None


Guards = tuple[syntax.Guard, ...]


def _run(command: syntax.Command, values: Values) -> Iterator[tuple[Guards, Linear | Values]]:
    """Yield, for each way through a command, what must hold, and what it returns, or the values after it."""
    match command:
        case syntax.Return(value):
            yield from _form(value, values)
        case syntax.Assign(name, value):
            for guards, form in _form(value, values):
                yield guards, {**values, name: form}
        case syntax.Sequence(parts):
            yield from _run_all(parts, values)
        case syntax.If(guard, then, otherwise):
            for guards, holds in _truth(guard, values):
                for more, result in _run(then if holds else otherwise, values):
                    yield (*guards, *more), result
        case syntax.Skip():
            yield (), values
        case _:
            raise _NotPiecewiseLinear


def _run_all(parts: tuple[syntax.Command, ...], values: Values) -> Iterator[tuple[Guards, Linear | Values]]:
    if not parts:
        yield (), values
        return
    for guards, result in _run(parts[0], values):
        if isinstance(result, tuple):
            yield guards, result
            continue
        for more, last in _run_all(parts[1:], result):
            yield (*guards, *more), last


def _form(expression: syntax.Expression, values: Values) -> Iterator[tuple[Guards, Linear]]:
    match expression:
        case syntax.Constant(value):
            yield (), ({}, value)
        case syntax.Variable(name):
            yield (), values.get(name, ({name: Fraction(1)}, Fraction(0)))
        case syntax.Indicator(guard):
            for guards, holds in _truth(guard, values):
                yield guards, ({}, Fraction(holds))
        case syntax.Unary(("neg" | "abs") as name, operand):
            for guards, form in _form(operand, values):
                if name == "neg":
                    yield guards, times(form, Fraction(-1))
                    continue
                for more, is_kept in _sign(">=", form):
                    yield (*guards, *more), form if is_kept else times(form, Fraction(-1))
        case syntax.Binary(name, left, right):
            for guards, a in _form(left, values):
                for more, b in _form(right, values):
                    for last, form in _joined(name, a, b):
                        yield (*guards, *more, *last), form
        case syntax.Unary():
            raise _NotPiecewiseLinear


def _joined(name: str, a: Linear, b: Linear) -> Iterator[tuple[Guards, Linear]]:
    if name in ("max", "min"):
        for guards, first_is_more in _sign(">=", add(a, b, Fraction(-1))):
            yield guards, a if first_is_more == (name == "max") else b
        return
    form = calculated(name, a, b)
    if form is None:
        raise _NotPiecewiseLinear
    yield (), form


def _truth(guard: syntax.Guard, values: Values) -> Iterator[tuple[Guards, bool]]:
    match guard:
        case syntax.Truth(value):
            yield (), value
        case syntax.Not(part):
            for guards, holds in _truth(part, values):
                yield guards, not holds
        case syntax.And(parts) | syntax.Or(parts):
            yield from _all(parts, values, isinstance(guard, syntax.Or))
        case syntax.Compare(sign, left, right):
            for guards, a in _form(left, values):
                for more, b in _form(right, values):
                    for last, holds in _sign(sign, add(a, b, Fraction(-1))):
                        yield (*guards, *more, *last), holds
        case syntax.Missing():
            raise _NotPiecewiseLinear


def _all(parts: tuple[syntax.Guard, ...], values: Values, decisive: bool) -> Iterator[tuple[Guards, bool]]:
    """Yield the ways through parts of which the first that is ``decisive`` decides."""
    if not parts:
        yield (), not decisive
        return
    for guards, holds in _truth(parts[0], values):
        if holds is decisive:
            yield guards, decisive
            continue
        for more, last in _all(parts[1:], values, decisive):
            yield (*guards, *more), last


def _sign(sign: syntax.CompareName, form: Linear) -> Iterator[tuple[Guards, bool]]:
    """Yield whether a form compares so with 0: one answer where that is known, else both with what they need."""
    shares = {name: share for name, share in form[0].items() if share}
    if not shares:
        yield (), compare(sign, form[1], Fraction(0))
        return
    first = next(iter(shares.values()))
    if first < 0:
        sign = syntax.MIRRORED[sign]
    terms: list[syntax.Expression] = [
        syntax.Variable(name)
        if share == first
        else syntax.Binary("*", syntax.Constant(share / first), syntax.Variable(name))
        for name, share in shares.items()
    ]
    guard = syntax.Compare(sign, syntax.total(terms), syntax.Constant(-form[1] / first))
    yield (guard,), True
    yield (syntax.negation(guard),), False
