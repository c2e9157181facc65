"""What a number in a constraint means: the decimal that is written.

A constant, a percentage, an amount, a radius, a budget and a value of a row, new or old, count as the shortest decimal that prints them
in their column's dtype: 0.3 is three tenths, 3 % of 100 is 3, and from 0.3 a change of 0.1 reaches 0.4. Inequalities are decided exactly on
these decimals. An ``==`` or ``!=`` with a real feature without a step in it compares both sides as floats, after they were
evaluated on decimals: floats are too coarse to hit an equation otherwise.

Search works on floats. So that it need not know of decimals, a comparison of one feature with a number becomes one of floats, on
the very float where it turns; any other one is over ``Unary("decimal", x)`` of the features (:mod:`mace.language.roundings`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from decimal import Decimal
from fractions import Fraction
from typing import cast

import numpy as np

from mace.errors import InvalidConstraint, did_you_mean
from mace.exact import decimal_fraction, greatest_float, least_float
from mace.language import evaluate, syntax
from mace.language.linear import solved
from mace.language.partial import folded
from mace.language.roundings import DECIMALS
from mace.language.run import compare
from mace.language.substitute import Kind
from mace.language.walk import rewrite
from mace.space import Categorical, Date, Feature, FeatureSpace, Level, Ordinal, Point, Real
from mace.space.dates import as_text
from mace.space.decimals import decimal_of, dtype_of, float_of, is_exact
from mace.space.features import Number as PlainNumber
from mace.space.features import is_missing, plain_scalar, position_of

Number = int | float | Decimal
"""A number of a constraint; a ``Decimal`` is one of more digits than a float prints."""

Given = Level | Decimal
"""A level or a number of a constraint."""

DECIMAL_UP_TO = Fraction(10**300)
"""Numbers beyond this are compared as they are."""

_IN_BINARY: ContextVar[bool] = ContextVar("in_binary", default=False)


@contextmanager
def in_binary() -> Iterator[None]:
    """Have constraints bound as in version 0.1: a float means the binary fraction that it is. For old certificates only."""
    token = _IN_BINARY.set(True)
    try:
        yield
    finally:
        _IN_BINARY.reset(token)


def is_binary() -> bool:
    """Return whether constraints are being bound as in version 0.1."""
    return _IN_BINARY.get()


def decimal_number(number: Number) -> Fraction:
    """Return the decimal that a number is written as.

    Examples
    --------
    >>> decimal_number(0.3)
    Fraction(3, 10)
    """
    return decimal_fraction(number) if isinstance(number, float) else Fraction(number)


def plain_number(value: object) -> object:
    """Return a numpy scalar as the Python scalar that it means: a float32 or float16 as the decimal that prints it.

    Examples
    --------
    >>> plain_number(np.float32(0.1)), plain_number(np.int8(3))
    (0.1, 3)
    """
    return float(str(value)) if isinstance(value, np.float32 | np.float16) else plain_scalar(value)


def as_written(number: Number) -> Fraction:
    """Return the number that a constant means."""
    if not is_binary():
        return decimal_number(number)
    return Fraction(float(number) if isinstance(number, Decimal) else number)


def read_number(text: str) -> Number:
    """Return the number that a text writes: whole, a float, or a ``Decimal`` where a float does not print all its digits.

    Raises
    ------
    ValueError
        It is no finite number, or too large or too small for a float.
    """
    try:
        number = Decimal(text)
    except ArithmeticError:
        raise ValueError(text) from None
    near = float(number)
    if not math.isfinite(near) or (near == 0 and number != 0):
        raise ValueError(text)
    return as_number(Fraction(number))


def as_number(value: Fraction) -> Number:
    """Return a finite decimal as a number that means it: whole, a float where its shortest decimal is this, or a ``Decimal``."""
    if value.denominator == 1:
        return int(value)
    near = float(value)
    if decimal_fraction(near) == value:
        return near
    places = max(_power(value.denominator, 2), _power(value.denominator, 5))
    top = value * 10**places
    assert top.denominator == 1, "a finite decimal"
    return Decimal((int(top < 0), tuple(map(int, str(abs(int(top))))), -places))


def _power(number: int, prime: int) -> int:
    count = 0
    while number % prime == 0:
        number, count = number // prime, count + 1
    return count


def old_value(feature: Feature, value: PlainNumber) -> Fraction:
    """Return the number that a value of a row means."""
    return Fraction(value) if is_binary() else decimal_of(feature, value)


def given_level(level: object) -> Given:
    """Return a level of a constraint as it is kept: a date as its text, and ``None`` for missing values."""
    return None if is_missing(level) else cast(Given, as_text(level))


def number_of(space: FeatureSpace, name: str, value: object, constraint: str) -> Fraction:
    """Return the number of a value of a feature given by the user: the level's position, or the number as written."""
    feature = space[name]
    has_levels = isinstance(feature, Ordinal | Categorical)
    value = plain_scalar(as_text(value)) if has_levels else plain_number(as_text(value))
    if isinstance(feature, Date) and isinstance(value, str):
        return Fraction(date_number(feature, value, constraint))
    if isinstance(feature, Ordinal | Categorical):
        position = position_of(feature.levels, value)
        if position is not None:
            return Fraction(position)
        listed = ", ".join(map(repr, feature.levels))
        raise InvalidConstraint(
            f"{constraint}: {value!r} is not a level of {name!r}: {listed}.{did_you_mean(value, feature.levels)}"
        )
    if isinstance(value, bool) or not isinstance(value, Number) or not -math.inf < value < math.inf:
        raise InvalidConstraint(f"{constraint}: {value!r} is not a finite number, and {name!r} is numeric.")
    return as_written(value) if is_binary() else _as_in_column(feature, value)


def _as_in_column(feature: Feature, value: Number) -> Fraction:
    """Return the number that a constant means; a Python float that is exactly a number of a float32 column, as in the values of an
    answer, means what the column prints."""
    if not isinstance(feature, Real) or not feature.is_single or not isinstance(value, float):
        return decimal_number(value)
    return decimal_of(feature, value) if feature.nearest(value) == value else decimal_number(value)


def date_number(feature: Date, text: str, constraint: str) -> int:
    """Return the number of a date that a constraint names."""
    try:
        return feature.number(text)
    except ValueError as error:
        raise InvalidConstraint(f"{constraint}: {text!r:.60} is compared with a date, {error}.") from error


def compared(
    space: FeatureSpace, factual: Point, name: str, sign: syntax.CompareName, number: Fraction
) -> syntax.Guard:
    """Return the comparison of one feature with a number, as one of floats."""
    return _Meant(space, factual, only=name).single(name, sign, number)


def meant(guard: syntax.Guard, space: FeatureSpace, factual: Point) -> syntax.Guard:
    """Return a guard in which features stand for decimals as one in which they stand for the floats of a row."""
    return _Meant(space, factual).of(guard)


def meant_program(program: syntax.Program, space: FeatureSpace, factual: Point) -> syntax.Program:
    """Return a program in which features stand for decimals as one in which they stand for the floats of a row."""
    return syntax.Program(program.inputs, _Meant(space, factual).of(program.body))


class _Meant:
    """Takes decimals to floats, over one space, or one feature of it."""

    def __init__(self, space: FeatureSpace, factual: Point, only: str | None = None) -> None:
        self.space = space
        inexact = () if is_binary() else zip(space.items(), factual, strict=True)
        self.inexact = {
            name: feature
            for (name, feature), own in inexact
            if only in (None, name)
            and isinstance(feature, Real)
            and not (is_exact(feature) and (own is None or decimal_of(feature, own) == Fraction(own)))
        }

    def of(self, node: Kind) -> Kind:
        """Return a guard or a command in which the features stand for decimals as one over their floats."""
        return rewrite(node, self._changed, instead=self._solved)

    def _changed(self, node: syntax.Node) -> syntax.Node:
        match node:
            case syntax.Variable(name) if name in self.inexact:
                return syntax.Unary(DECIMALS[dtype_of(self.inexact[name])], node)
            case syntax.And(parts):
                return syntax.conjunction(parts)
            case syntax.Or(parts):
                return syntax.disjunction(parts)
            case syntax.Not(syntax.Truth(value)):
                return syntax.Truth(not value)
            case syntax.Compare(("==" | "!=") as sign, left, right) if any(map(self._is_free, syntax.variables(node))):
                return syntax.Compare(sign, syntax.Unary("float", left), syntax.Unary("float", right))
            case _:
                return folded(node)

    def _solved(self, atom: syntax.Node) -> syntax.Guard | None:
        """Return a comparison of numbers as its truth and one of a feature with a number as one of floats; any other node is not solved."""
        if not isinstance(atom, syntax.Compare):
            return None
        names = syntax.variables(atom)
        if not names:
            return syntax.Truth(compare(atom.name, evaluate(atom.left, {}), evaluate(atom.right, {})))
        known = len(names) == 1 and next(iter(names)) in self.space
        solved = self._as_single(atom) if known else None
        return None if solved is None else self.single(*solved)

    def _is_free(self, name: str) -> bool:
        """Return whether a name is a real feature without a step, or a program's variable in a space that has such a feature."""
        if name in self.space:
            return name in self.inexact and self.inexact[name].size is None
        return any(feature.size is None for feature in self.inexact.values())

    def _as_single(self, atom: syntax.Compare) -> tuple[str, syntax.CompareName, Fraction] | None:
        """Return a comparison of one feature as ``feature sign number``; ``None`` where it is not linear, or is an equation of floats."""
        match atom:
            case syntax.Compare(sign, syntax.Variable(name), other) if not syntax.variables(other):
                return name, sign, evaluate(other, {})
            case syntax.Compare(sign, other, syntax.Variable(name)) if not syntax.variables(other):
                return name, syntax.MIRRORED[sign], evaluate(other, {})
        found = solved(atom)
        is_equation = found is not None and atom.name in ("==", "!=") and self._is_free(found[0])
        return None if is_equation else found

    def single(self, name: str, sign: syntax.CompareName, number: Fraction) -> syntax.Guard:
        """Return ``feature sign number``, where the feature stands for a decimal, as a comparison of floats."""
        if name not in self.inexact or abs(number) > DECIMAL_UP_TO:
            return syntax.Compare(sign, syntax.Variable(name), syntax.Constant(number))
        feature = self.inexact[name]
        dtype = dtype_of(feature)
        if sign in ("==", "!="):
            value = float_of(feature, number)
            decimal = decimal_of(feature, value)
            is_value = float(decimal) == float(number) if self._is_free(name) else decimal == number
            if not is_value:
                return syntax.FALSE if sign == "==" else syntax.TRUE
            return syntax.Compare(sign, syntax.Variable(name), syntax.Constant(Fraction(value)))
        edge = greatest_float(number, dtype) if sign in ("<=", ">") else least_float(number, dtype)
        if math.isinf(edge):
            return syntax.Truth(edge > 0 if sign in ("<", "<=") else edge < 0)
        return syntax.Compare(sign, syntax.Variable(name), syntax.Constant(Fraction(edge)))
