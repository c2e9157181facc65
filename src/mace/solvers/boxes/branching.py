"""Where boxes are cut: at a value, at being missing, or by which of some tests hold; and what fails in a guard at a row."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from mace.errors import InvalidProgram
from mace.exact import float_down, float_up
from mace.language import evaluate, holds, syntax
from mace.language.roundings import ROUNDINGS
from mace.reductions.regions import Range, Region, narrow
from mace.space import Value


def needed_atoms(guard: syntax.Guard) -> Iterator[syntax.Compare]:
    """Yield the comparisons without which a guard does not hold."""
    match guard:
        case syntax.Compare():
            yield guard
        case syntax.And(parts):
            for part in parts:
                yield from needed_atoms(part)
        case syntax.Not(syntax.Compare() | syntax.Or() | syntax.Not() as part):
            yield from needed_atoms(syntax.negation(part))


def choices(atom: syntax.Compare, region: Region, values: dict[str, Fraction | None]) -> list[Region] | None:
    """Where an atom says that at most so many of some tests hold, return parts with every such row of a region, but not the point.

    Of the tests that hold at the point, as many as may hold are looked at: one of them fails, or every other test does. Where only one may
    hold there is a part for each test instead. ``None`` where the atom says something else.
    """
    tests = _tests(atom.left)
    if atom.name not in ("<=", "<") or tests is None or not isinstance(atom.right, syntax.Constant):
        return None
    most = math.floor(atom.right.value) if atom.name == "<=" else math.ceil(atom.right.value) - 1
    free = []
    for test in tests:
        if narrow(syntax.negation(test), region) is None:
            most -= 1
        elif narrow(test, region) is not None:
            free.append(test)
    if most < 0:
        return None
    if most == 1:
        failing = [[test for test in free if test != chosen] for chosen in free]
    else:
        first = [test for test in free if not is_false(test, values)][:most]
        failing = [*([test] for test in first), [test for test in free if test not in first]]
    parts = [narrow(syntax.conjunction(map(syntax.negation, each)), region) for each in failing]
    # A part that is no smaller than the region would be cut for ever.
    return None if region in parts else [part for part in parts if part is not None]


def _tests(expression: syntax.Expression) -> list[syntax.Guard] | None:
    """Return the guards whose number an expression counts; ``None`` where it does more."""
    match expression:
        case syntax.Indicator(guard):
            return [guard]
        case syntax.Binary("+", left, right):
            first, second = _tests(left), _tests(right)
            return None if first is None or second is None else first + second
        case _:
            return None


def cut_range(left: Range, at: Fraction, *, above: bool) -> list[Range]:
    """Cut a range of numbers in two at a value; the value itself belongs to the side ``above`` says, both where it is no whole number's."""
    if left.missing or left.levels is not None:
        return [left]
    if left.is_whole:
        below = Fraction(math.ceil(at) - 1 if above else math.floor(at))
        parts = [left.between(left.low, below), left.between(below + 1, left.high)]
    else:
        parts = [left.between(left.low, at), left.between(at, left.high)]
    return [left] if left in parts else [part for part in parts if not part.is_empty]


def cut_at(left: Range, at: Fraction) -> list[Range]:
    """Cut a range into a value and what lies on either side of it; floats only count."""
    if left.missing:
        return [left]
    if left.levels is not None:
        parts = [left.only(k for k in left.levels if k == at), left.only(k for k in left.levels if k != at)]
    elif left.is_whole:
        parts = [left.between(at, at), left.between(left.low, at - 1), left.between(at + 1, left.high)]
    else:
        below, above = math.nextafter(float_down(at), -math.inf), math.nextafter(float_up(at), math.inf)
        if float_down(at) != at:
            below, above = float_down(at), float_up(at)
        parts = [
            left.between(at, at),
            left.between(left.low, Fraction(below)),
            left.between(Fraction(above), left.high),
        ]
    return [part for part in parts if not part.is_empty]


def by_missing(left: Range, _: Value, *, is_own: bool) -> list[Range]:
    """Cut a range into being missing and all values."""
    return [left.nothing_but_missing(), replace(left, missing=False)] if left.missing and left.has_values else [left]


def by_value(left: Range, value: Value, *, is_own: bool) -> list[Range]:
    """Cut off a value: the factual's own, or a level."""
    return cut_at(left, Fraction(value)) if value is not None and (is_own or left.levels is not None) else [left]


def is_false(guard: syntax.Guard, values: dict[str, Fraction | None]) -> bool:
    """Return whether a part of a guard, taken alone, can be asked of a row and fails: not where it compares what is missing."""
    try:
        return not holds(guard, values)
    except InvalidProgram:
        return False


def active_piece(expression: syntax.Expression, values: dict[str, Fraction | None]) -> syntax.Expression:
    """Return the piece of an expression that is in use at a row."""
    match expression:
        case syntax.Unary(name, operand):
            inner = active_piece(operand, values)
            if name in ROUNDINGS:
                return syntax.Unary(name, inner)
            return inner if name == "abs" and evaluate(operand, values) >= 0 else syntax.Unary("neg", inner)
        case syntax.Binary(("min" | "max") as name, left, right):
            first_is_less = evaluate(left, values) <= evaluate(right, values)
            return active_piece(left if first_is_less == (name == "min") else right, values)
        case syntax.Binary(name, left, right):
            return syntax.Binary(name, active_piece(left, values), active_piece(right, values))
        case syntax.Indicator():
            return syntax.Constant(evaluate(expression, values))
        case _:
            return expression
