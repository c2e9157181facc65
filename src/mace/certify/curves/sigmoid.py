"""Showing that a polyline lies above or below the sigmoid over a range, in fractions.

Below 0 the sigmoid is convex, and lies below the chord between two of its points; from 0 on it is concave, and lies below each of its
tangents. So a line lies above it from a to b <= 0 where it does at a and b; and from a >= 0 to b where some tangent lies below the line at
a, at b and where it touches. The sigmoid itself is computed with 60 digits by :mod:`decimal`, whose exponential is correctly rounded, and
enclosed.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from itertools import pairwise

SIXTY_DIGITS = Context(prec=60, Emin=-(10**6), Emax=10**6)
OFF = Fraction(1, 10**50)
"""More than an exponential of 60 digits is off, relative to itself."""

FLAT_FROM = 2000.0
BELOW_FLAT = Fraction(1, 10**800)
"""More than the sigmoid of -FLAT_FROM."""


def sigmoid_between(z: float) -> tuple[Fraction, Fraction]:
    """Return two numbers between which the sigmoid of a number lies."""
    if abs(z) > FLAT_FROM:
        return (1 - BELOW_FLAT, Fraction(1)) if z > 0 else (Fraction(0), BELOW_FLAT)
    small = Fraction(SIXTY_DIGITS.exp(Decimal(-abs(z))))
    low, high = 1 / (1 + small * (1 + OFF)), 1 / (1 + small * (1 - OFF))
    return (low, high) if z >= 0 else (1 - high, 1 - low)


@dataclass(frozen=True, slots=True)
class ExactLine:
    """The line through points, constant before the first and after the last; knots ascend."""

    knots: tuple[float, ...]
    heights: tuple[Fraction, ...]

    def value(self, z: float) -> Fraction:
        """Return its value."""
        k = bisect_right(self.knots, z)
        if k == 0 or k == len(self.knots):
            return self.heights[min(k, len(self.knots) - 1)]
        low, high = Fraction(self.knots[k - 1]), Fraction(self.knots[k])
        first, last = self.heights[k - 1], self.heights[k]
        return first + (last - first) * (Fraction(z) - low) / (high - low)

    def mirrored(self) -> ExactLine:
        """Return 1 less its value at the opposite number: above the sigmoid where this is below it."""
        return ExactLine(
            tuple(-z for z in reversed(self.knots)), tuple(1 - height for height in reversed(self.heights))
        )


def knots_between(line: ExactLine, low: float, high: float) -> list[float]:
    """Return the ends of a range and the knots between, in order."""
    return sorted({low, high, *(knot for knot in line.knots if low < knot < high)})


def is_above(line: ExactLine, low: float, high: float) -> bool:
    """Return whether a line is shown to be at least the sigmoid from ``low`` to ``high``."""
    ends = knots_between(line, low, high)
    if low < 0 < high:
        ends = sorted({*ends, 0.0})
    if any(line.value(z) < sigmoid_between(z)[1] for z in ends):
        return False
    return all(b <= 0 or _is_above_a_tangent(line, a, b) for a, b in pairwise(ends))


def is_below(line: ExactLine, low: float, high: float) -> bool:
    """Return whether a line is shown to be at most the sigmoid from ``low`` to ``high``."""
    return is_above(line.mirrored(), -high, -low)


def _is_above_a_tangent(line: ExactLine, a: float, b: float) -> bool:
    """Return whether some tangent at 0 <= a <= c <= b lies below a line that has no knot between."""
    first, last = line.value(a), line.value(b)
    slope = (last - first) / (Fraction(b) - Fraction(a))
    return any(_touches_below(first, slope, a, b, c) for c in _touching(float(slope), a, b))


def _touching(slope: float, a: float, b: float) -> Iterator[float]:
    """Yield where a tangent may have a slope; suggestions only."""
    if 0 < slope < 0.25:
        chance = (1 + math.sqrt(1 - 4 * slope)) / 2
        if chance < 1:
            yield min(max(math.log(chance / (1 - chance)), a), b)
    yield from (a, b, min(max(a / 2 + b / 2, a), b))


def _touches_below(first: Fraction, slope: Fraction, a: float, b: float, c: float) -> bool:
    """Return whether the tangent at c lies below first + slope·(z - a) from a to b."""
    least, most = sigmoid_between(c)
    # The slope p(1 - p) falls with p from one half on.
    flat, steep = most * (1 - most), least * (1 - least)
    before, after = Fraction(c) - Fraction(a), Fraction(b) - Fraction(c)
    return (
        most - flat * before <= first
        and most <= first + slope * before
        and most + steep * after <= first + slope * (before + after)
    )
