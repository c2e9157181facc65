"""Piecewise linear curves of one number, and those that lie above and below the sigmoid."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

HEIGHT_ERROR = 2.0**-46
"""More than the error of the heights of a curve around the sigmoid: they are computed in floats, from numbers of at most 1."""

FARTHEST = 700.0
"""Beyond this a sigmoid is taken as 0 or 1."""


@dataclass(frozen=True, slots=True)
class Piece:
    """slope·z + shift for z from ``low`` to ``high``; ``None`` is no end."""

    low: Fraction | None
    high: Fraction | None
    slope: Fraction
    shift: Fraction


@dataclass(frozen=True, slots=True)
class Polyline:
    """The line through points, constant before the first and after the last.

    Attributes
    ----------
    knots : tuple of float
        Where it bends, ascending.
    heights : tuple of float
        Its value there.
    """

    knots: tuple[float, ...]
    heights: tuple[float, ...]

    def value(self, z: Fraction) -> Fraction:
        """Return its value, exactly.

        Examples
        --------
        >>> Polyline((0.0, 2.0), (0.0, 1.0)).value(Fraction(1, 2))
        Fraction(1, 4)
        """
        if z <= self.knots[0]:
            return Fraction(self.heights[0])
        if z >= self.knots[-1]:
            return Fraction(self.heights[-1])
        k = bisect_right(self.knots, z) - 1
        low, high = Fraction(self.knots[k]), Fraction(self.knots[k + 1])
        first, last = Fraction(self.heights[k]), Fraction(self.heights[k + 1])
        return first + (last - first) * (z - low) / (high - low)

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """Its linear pieces, in order."""
        zero = Fraction(0)
        made = [Piece(None, Fraction(self.knots[0]), zero, Fraction(self.heights[0]))]
        for (low, first), (high, last) in pairwise(zip(self.knots, self.heights, strict=True)):
            slope = (Fraction(last) - Fraction(first)) / (Fraction(high) - Fraction(low))
            made.append(Piece(Fraction(low), Fraction(high), slope, Fraction(first) - slope * Fraction(low)))
        return (*made, Piece(Fraction(self.knots[-1]), None, zero, Fraction(self.heights[-1])))

    @property
    def steepest(self) -> Fraction:
        """Its greatest slope, as an absolute value."""
        return max(abs(piece.slope) for piece in self.pieces)

    @property
    def greatest(self) -> float:
        """Its greatest absolute value."""
        return max(map(abs, self.heights))


def sigmoid(z: float) -> float:
    """Return 1 / (1 + exp(-z)), good to a few units of roundoff of itself."""
    if z >= 0:
        return 1 / (1 + math.exp(-z))
    small = math.exp(z)
    return small / (1 + small)


def logit(chance: float | Fraction) -> float:
    """Return the number whose sigmoid is a probability."""
    return math.log(chance / (1 - chance))


def above_sigmoid(touching: Iterable[float], low: float, high: float) -> Polyline:
    """Return a curve that is at least the sigmoid from ``low`` to ``high``, and near it at the given numbers.

    Below 0 the sigmoid is convex, and lies below the chord between two of its points; above 0 it is concave, and lies below its tangents.
    Each height is raised by :data:`HEIGHT_ERROR`, more than its rounding.
    """
    low = min(max(low, -FARTHEST), FARTHEST - 1)
    high = max(min(high, FARTHEST), low + 2**-10)
    inside = sorted({z for z in touching if low < z < high})
    points: list[tuple[float, float]] = []
    if low < 0:
        chords = [low, *(z for z in inside if z < 0), min(high, 0.0)]
        points = [(z, sigmoid(z)) for z in chords]
    if high > 0:
        touched = [max(low, 0.0), *(z for z in inside if z > 0), high]
        points += [(touched[0], sigmoid(touched[0]))] if low >= 0 else []
        points += [_meeting(a, b) for a, b in pairwise(touched)]
        points.append((high, sigmoid(high)))
    kept = [points[0]]
    for knot, height in points[1:]:
        if knot > kept[-1][0]:
            kept.append((knot, max(height, kept[-1][1])))
    return Polyline(tuple(z for z, _ in kept), tuple(height + HEIGHT_ERROR for _, height in kept))


def below_sigmoid(touching: Iterable[float], low: float, high: float) -> Polyline:
    """Return a curve that is at most the sigmoid from ``low`` to ``high``, and near it at the given numbers."""
    mirrored = above_sigmoid((-z for z in touching), -high, -low)
    return Polyline(tuple(-z for z in reversed(mirrored.knots)), tuple(1 - h for h in reversed(mirrored.heights)))


def _meeting(a: float, b: float) -> tuple[float, float]:
    """Return where the tangents of the sigmoid at 0 <= a < b meet, or a point of the first that lies above both."""
    first, last = sigmoid(a), sigmoid(b)
    rise, late = first * (1 - first), last * (1 - last)
    if b - a < 1e-6 or rise - late < 1e-12:
        # Too near for floats to tell where: half way the tangent at a is above the sigmoid, and so are the chords on to b.
        middle = (a + b) / 2
        return middle, first + rise * (middle - a)
    at = min(max((last - late * b - first + rise * a) / (rise - late), a), b)
    return at, first + rise * (at - a)


def nearest_knot(knots: tuple[float, ...], z: float) -> float:
    """Return how far a number is from the nearest of some numbers in order."""
    k = bisect_left(knots, z)
    return min((abs(z - knots[i]) for i in (k - 1, k) if 0 <= i < len(knots)), default=math.inf)
