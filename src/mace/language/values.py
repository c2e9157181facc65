"""What a piece of the Python source stands for while it is translated."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from numbers import Real

from mace.language import syntax
from mace.space import Feature, Ordinal


@dataclass(frozen=True, slots=True)
class Symbol:
    """What a name of the source means.

    Parameters
    ----------
    expression
        Its value; where ``levels`` are given, the position of its level.
    levels
        The levels of an ordinal or categorical feature; None for a number.
    ordered
        Whether ``<`` between levels means their order.
    """

    expression: syntax.Expression
    levels: tuple[object, ...] | None = None
    ordered: bool = False

    @classmethod
    def of(cls, feature: Feature, expression: syntax.Expression) -> Symbol:
        """Return what the name of a feature means whose value, or level's position, is ``expression``."""
        return cls(expression, levels=getattr(feature, "levels", None), ordered=isinstance(feature, Ordinal))


@dataclass(frozen=True, slots=True)
class Number:
    """A number."""

    expression: syntax.Expression


@dataclass(frozen=True, slots=True)
class Test:
    """A truth value; 1 or 0 where a number is wanted."""

    guard: syntax.Guard


@dataclass(frozen=True, slots=True)
class Level:
    """A level of a feature, held as its position."""

    expression: syntax.Expression
    levels: tuple[object, ...]
    ordered: bool


@dataclass(frozen=True, slots=True)
class Text:
    """A string that is written in the source."""

    text: str


@dataclass(frozen=True, slots=True)
class Label:
    """One of the strings that the program assigns or returns, held as its position among them."""

    expression: syntax.Expression


@dataclass(frozen=True, slots=True)
class Items:
    """A list or tuple whose length is known."""

    items: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Fields:
    """A row: its fields are looked up by name."""

    fields: Mapping[str, Symbol]


Value = Number | Test | Level | Text | Label | Items | Fields


def from_symbol(symbol: Symbol) -> Value:
    """Return the value that a symbol stands for."""
    if symbol.levels is None:
        return Number(symbol.expression)
    return Level(symbol.expression, symbol.levels, symbol.ordered)


Reads = Callable[[float], Fraction]
"""What number a float of the source stands for."""


def from_object(item: object, reads: Reads = Fraction) -> Value | None:
    """Return the value of a Python object; None where it is no constant of the language."""
    if hasattr(item, "tolist"):
        # Arithmetic in any other type of numpy rounds or wraps in its own way.
        if str(getattr(item, "dtype", "")) not in ("float64", "bool"):
            return None
        item = item.tolist()
    match item:
        case bool():
            return Test(syntax.Truth(item))
        case int() | Fraction():
            return Number(syntax.Constant(Fraction(item)))
        case float() if math.isfinite(item):
            return Number(syntax.Constant(reads(item)))
        case str():
            return Text(item)
        case list() | tuple():
            values = [from_object(part, reads) for part in item]
            known = tuple(value for value in values if value is not None)
            return Items(known) if len(known) == len(values) else None
        case _:
            return None


def as_float(expression: syntax.Expression, reads: Reads = Fraction) -> syntax.Expression:
    """Return ``float(...)`` of an expression: a constant is rounded to the nearest float."""
    if isinstance(expression, syntax.Constant):
        return syntax.Constant(reads(float(expression.value)))
    return expression


def is_numeric(levels: tuple[object, ...]) -> bool:
    """Whether every level is a number."""
    return all(_as_number(level) is not None for level in levels)


def position(levels: tuple[object, ...], value: Value) -> int | None:
    """Return the position of the level that ``value`` names; None where it is none of them."""
    wanted: object
    match value:
        case Text(text):
            wanted = text
        case Number(syntax.Constant(number)):
            wanted = number
        case Test(syntax.Truth(truth)):
            wanted = Fraction(truth)
        case _:
            return None
    plain = [level if isinstance(level, str) else _as_number(level) for level in levels]
    return plain.index(wanted) if wanted in plain else None


def numeric_value(level: Level) -> syntax.Expression | None:
    """Return the number that a level stands for, as a sum over the levels; None where some level is no number."""
    numbers = [_as_number(item) for item in level.levels]
    if any(number is None for number in numbers):
        return None
    return syntax.total(
        syntax.Binary(
            "*",
            syntax.Constant(number),
            syntax.Indicator(syntax.Compare("==", level.expression, syntax.Constant(Fraction(place)))),
        )
        for place, number in enumerate(numbers)
        if number is not None
    )


def as_number(guard: syntax.Guard) -> syntax.Expression:
    """Return 1 or 0 for a truth value."""
    match guard:
        case syntax.Truth(value):
            return syntax.ONE if value else syntax.ZERO
        case _:
            return syntax.Indicator(guard)


def _as_number(item: object) -> Fraction | None:
    if hasattr(item, "item"):
        item = item.item()
    if isinstance(item, int | float | Fraction) and math.isfinite(item):
        return Fraction(item)
    return Fraction(float(item)) if isinstance(item, Real) and math.isfinite(item) else None
