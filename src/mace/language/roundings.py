"""The two roundings of the language: the shortest decimal of a float, and the float nearest to a number.

Constraints speak of the decimals that are written (see :mod:`mace.constraints.numbers`), while a variable stands for the float that a row
holds. ``Unary("decimal", x)`` is the shortest decimal that prints the float x; ``"decimal32"`` and ``"decimal16"`` print it as a float32
or float16. ``Unary("float", e)`` is the float64 nearest to e. Each never falls as its operand rises and moves it by half an ulp at most.
"""

from __future__ import annotations

import math
from fractions import Fraction

from mace.exact import TINY, UNIT, decimal_fraction, greatest_float, least_float, nearest_float, next_float
from mace.language import syntax

DECIMALS: dict[str, syntax.UnaryName] = {"float64": "decimal", "float32": "decimal32", "float16": "decimal16"}
"""The function that gives the shortest decimal, by dtype."""

_DTYPES: dict[str, str] = {name: dtype for dtype, name in DECIMALS.items()}

ROUNDINGS = frozenset((*_DTYPES, "float"))

BEYOND_FLOATS = Fraction(10**400)
"""Beyond every float."""


def rounded(name: str, value: Fraction) -> Fraction:
    """Return a rounding of a number.

    Examples
    --------
    >>> rounded("decimal", Fraction(0.1))
    Fraction(1, 10)
    """
    if name == "float":
        return Fraction(nearest_float(value))
    return decimal_fraction(float(value), _DTYPES[name])


def rounded_ends(name: str, low: Fraction, high: Fraction) -> tuple[Fraction, Fraction] | None:
    """Return the least and the greatest rounding between two numbers: of the floats there, for decimals; ``None`` where there is none."""
    if name == "float":
        return rounded(name, low), rounded(name, high)
    floats = _floats_between(low, high, _DTYPES[name])
    return None if floats is None else (rounded(name, Fraction(floats[0])), rounded(name, Fraction(floats[1])))


def operands(name: str, low: Fraction, high: Fraction) -> tuple[Fraction, Fraction] | None:
    """Return between what numbers all those lie whose rounding lies between two; ``None`` where there is none."""
    if name != "float":
        least, most = least_float(low, _DTYPES[name]), greatest_float(high, _DTYPES[name])
        is_any = math.isfinite(least) and math.isfinite(most) and least <= most
        return (Fraction(least), Fraction(most)) if is_any else None
    floats = _floats_between(low, high, "float64")
    if floats is None:
        return None
    before, after = next_float(floats[0], -math.inf), next_float(floats[1], math.inf)
    return (
        (Fraction(floats[0]) + Fraction(before)) / 2 if math.isfinite(before) else -BEYOND_FLOATS,
        (Fraction(floats[1]) + Fraction(after)) / 2 if math.isfinite(after) else BEYOND_FLOATS,
    )


def unit(name: str) -> tuple[Fraction, Fraction]:
    """Return u and t so that a rounding moves a number v by at most u·|v| + t."""
    match name:
        case "decimal32":
            return Fraction(1, 2**24), Fraction(1, 2**149)
        case "decimal16":
            return Fraction(1, 2**11), Fraction(1, 2**24)
        case _:
            return UNIT, TINY


def _floats_between(low: Fraction, high: Fraction, dtype: str) -> tuple[float, float] | None:
    """Return the least and the greatest float of a dtype between two numbers; ``None`` where there is none."""
    first, last = nearest_float(low, dtype), nearest_float(high, dtype)
    first = first if first >= low else next_float(first, math.inf, dtype)
    last = last if last <= high else next_float(last, -math.inf, dtype)
    return (first, last) if first <= last and math.isfinite(first) and math.isfinite(last) else None
