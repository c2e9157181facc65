"""Floats and fractions: exact conversions, float32 edges, bounds on rounding errors.

Every bound that MACE reports is carried as a :class:`~fractions.Fraction` and rounded once, outward, when it is shown.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

UNIT = Fraction(1, 2**53)
"""Unit roundoff of float64: a correctly rounded operation has a relative error of at most this."""

TINY = Fraction(1, 2**1074)
"""The smallest positive float64: the absolute error where a result underflows."""

WHOLE = 2**53
"""Below this every integer is a float64."""


def float_up(value: Fraction) -> float:
    """Return the least float64 that is not below ``value``."""
    try:
        nearest = float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.nextafter(math.inf, 0)
    return nearest if nearest >= value else math.nextafter(nearest, math.inf)


def float_down(value: Fraction) -> float:
    """Return the greatest float64 that is not above ``value``."""
    try:
        nearest = float(value)
    except OverflowError:
        return -math.inf if value < 0 else math.nextafter(math.inf, 0)
    return nearest if nearest <= value else math.nextafter(nearest, -math.inf)


def is_float(value: Fraction) -> bool:
    """Whether a fraction is exactly a float64."""
    try:
        return Fraction(float(value)) == value
    except OverflowError:
        return False


def float_above(value: Fraction) -> float:
    """Return the least float64 that is above ``value``."""
    found = float_up(value)
    return math.nextafter(found, math.inf) if found == value else found


def float_below(value: Fraction) -> float:
    """Return the greatest float64 that is below ``value``."""
    found = float_down(value)
    return math.nextafter(found, -math.inf) if found == value else found


@lru_cache(maxsize=1 << 14)
def exactly(value: float | Fraction) -> Fraction:
    """Return the fraction that a number is: one made before, where it is one of late."""
    return Fraction(value)


def decimal_fraction(value: float, dtype: str = "float64") -> Fraction:
    """Return the fraction that a person means by a float: the shortest decimal that prints it in its dtype.

    It grows with the value, and lies within half an ulp of it.

    Examples
    --------
    >>> decimal_fraction(0.1)
    Fraction(1, 10)
    >>> decimal_fraction(0.10000000149011612, "float32")
    Fraction(1, 10)
    """
    return Fraction(repr(float(value)) if dtype == "float64" else str(np.dtype(dtype).type(value)))


def nearest_float(value: Fraction, dtype: str = "float64") -> float:
    """Return the float of a dtype that is nearest to ``value``; the largest one where it lies beyond."""
    most = float(np.finfo(dtype).max)
    inside = min(max(value, Fraction(-most)), Fraction(most))
    if dtype == "float64":
        return float(inside)
    near = np.dtype(dtype).type(float(inside))
    beside = (float(np.nextafter(near, way)) for way in (near.dtype.type(-np.inf), near, near.dtype.type(np.inf)))
    return min((each for each in beside if math.isfinite(each)), key=lambda each: abs(Fraction(each) - inside))


def least_float(decimal: Fraction, dtype: str = "float64") -> float:
    """Return the least float of a dtype whose decimal is not below ``decimal``; infinite where there is none.

    Examples
    --------
    >>> least_float(Fraction(1, 10))
    0.1
    """
    near = nearest_float(decimal, dtype)
    for found in (next_float(near, -math.inf, dtype), near):
        if math.isfinite(found) and decimal_fraction(found, dtype) >= decimal:
            return found
    return next_float(near, math.inf, dtype)


def greatest_float(decimal: Fraction, dtype: str = "float64") -> float:
    """Return the greatest float of a dtype whose decimal is not above ``decimal``; infinite where there is none."""
    return 0.0 - least_float(-decimal, dtype)


def next_float(value: float, way: float, dtype: str = "float64") -> float:
    """Return the float of a dtype next to ``value``, upward or downward as ``way``, an infinity, says."""
    if dtype == "float64":
        return math.nextafter(value, way)
    kind = np.dtype(dtype).type
    with np.errstate(over="ignore"):
        return float(np.nextafter(kind(value), kind(way)))


def added(numbers: Iterable[float]) -> float:
    """Return floats added up from left to right; since Python 3.12 the built-in ``sum`` rounds otherwise, and fingerprints would differ."""
    return reduce(operator.add, numbers, 0.0)


def product(first: NDArray[Any], second: NDArray[Any]) -> Floats:
    """Return the product of a matrix or vector with another, every sum added up from left to right.

    Libraries for matrices add in an order, and fuse operations, as the processor at hand likes best: a model would be read with
    other last digits on another machine, and its fingerprint would differ.
    """
    made = np.zeros(first.shape[:-1] + second.shape[1:])
    for k in range(len(second)):
        made += np.multiply.outer(first[..., k], second[k])
    return made


def gamma(operations: int, unit: Fraction = UNIT) -> Fraction:
    """Return γ_n = n·u / (1 - n·u), the relative error of a sum of products in any order, fused or not.

    For an inner product of length n, |computed - exact| <= γ_n Σ|w||x| (Higham, *Accuracy and Stability of Numerical
    Algorithms*, section 3.1), whatever the order of summation.
    """
    return operations * unit / (1 - operations * unit)


def float32_edge(thresholds: Floats) -> Floats:
    """Return for each threshold t the greatest float64 x with ``float32(x) <= t``.

    scikit-learn's trees round the input to float32 and compare it with a float64 threshold. Rounding to nearest is
    monotone, so the test is the same as ``x <= edge`` on the float64 input.

    Examples
    --------
    >>> float(float32_edge(np.array([0.5]))[0])
    0.5000000298023224
    """
    below = thresholds.astype(np.float32)
    below = np.where(below > thresholds, np.nextafter(below, np.float32(-np.inf)), below)
    above = np.nextafter(below, np.float32(np.inf))
    middle = (below.astype(np.float64) + above.astype(np.float64)) / 2
    rounds_down = middle.astype(np.float32) == below
    edges: Floats = np.where(rounds_down, middle, np.nextafter(middle, -np.inf))
    return edges


def root_up(square: Fraction) -> Fraction:
    """Return a fraction that is not below the square root of ``square`` and at most 2^-60 above it."""
    scaled = math.isqrt(math.ceil(square * 4**60))
    return Fraction(scaled + 1, 2**60) if scaled * scaled < square * 4**60 else Fraction(scaled, 2**60)


def root_down(square: Fraction) -> Fraction:
    """Return a fraction that is not above the square root of ``square`` and at most 2^-60 below it."""
    return Fraction(math.isqrt(math.floor(square * 4**60)), 2**60)


def rounded_in(lows: Floats, highs: Floats, kind: type[np.floating[Any]]) -> tuple[Floats, Floats]:
    """Return the least number of a float type from each low on, and the greatest one up to each high.

    Examples
    --------
    >>> first, last = rounded_in(np.array([0.1]), np.array([0.1]), np.float32)
    >>> float(first[0]), float(last[0])
    (0.10000000149011612, 0.09999999403953552)
    """
    if kind is np.float64:
        return lows, highs
    with np.errstate(over="ignore", under="ignore"):
        first, last = lows.astype(kind), highs.astype(kind)
        first = np.where(first < lows, np.nextafter(first, kind(np.inf)), first)
        last = np.where(last > highs, np.nextafter(last, kind(-np.inf)), last)
    return first.astype(np.float64), last.astype(np.float64)
