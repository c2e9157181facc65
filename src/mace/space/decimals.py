"""The decimals that the values of features are written as."""

from __future__ import annotations

from fractions import Fraction

from mace.exact import nearest_float
from mace.space.features import Feature, Number, Real

DIGITS_OF_DTYPE = {"float64": 15, "float32": 6, "float16": 3}
"""How many digits a decimal may have so that no two of them are the same float of a dtype."""


def dtype_of(feature: Feature) -> str:
    """Return the dtype of floats that a feature's values are."""
    return feature.floats.__name__ if isinstance(feature, Real) else "float64"


def decimal_of(feature: Feature, value: Number) -> Fraction:
    """Return the decimal that a value of a feature is written as: the shortest that prints it in the feature's dtype.

    Examples
    --------
    >>> decimal_of(Real(0, 1), 0.1)
    Fraction(1, 10)
    """
    return feature.decimal(value) if isinstance(feature, Real) else Fraction(value)


def float_of(feature: Feature, decimal: Fraction) -> float:
    """Return the float of a feature's dtype that is nearest to a decimal."""
    return nearest_float(decimal, dtype_of(feature))


def is_short(feature: Real) -> bool:
    """Return whether the decimals ``low + k * step`` of a grid have so few digits that they are those its floats are written as."""
    if feature.step is None:
        return False
    (low, step), high = feature.decimals, feature.decimal(feature.high)
    most, quantum = 10 ** DIGITS_OF_DTYPE[dtype_of(feature)], 1
    while (low * quantum).denominator > 1 or (step * quantum).denominator > 1:
        quantum *= 10
        if quantum > most:
            return False
    return bool(max(abs(low), abs(high)) * quantum < most)


def is_exact(feature: Feature) -> bool:
    """Return whether every value of a feature is exactly the decimal that it is written as."""
    if not isinstance(feature, Real):
        return True
    if feature.size == 1:
        return decimal_of(feature, feature.low) == feature.low
    return feature.is_exact_grid and is_short(feature)
