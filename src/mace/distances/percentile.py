"""Percentiles: a change costs the share of people whose values it passes, as in Actionable Recourse (Ustun et al. 2019).

The share of people at or below a value is known at some values, the knots, and is taken to rise in a straight line between two of them.
"""

from __future__ import annotations

import bisect
import itertools
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from mace.distances.metric import PartsMetric
from mace.exact import Floats
from mace.language import syntax
from mace.space import Feature, Value

WIDEST = 1e300
"""Between knots beyond this, shares are not calculated in floats."""


@dataclass(frozen=True)
class Percentiles:
    """The share of people at or below each value of a feature; knots and shares both rise strictly."""

    knots: tuple[Fraction, ...]
    shares: tuple[Fraction, ...]

    def at(self, value: Fraction) -> Fraction:
        """Return the share of people at or below a value; below all knots that of the first, above all that of the last."""
        k = bisect.bisect_right(self.knots, value)
        if k in (0, len(self.knots)):
            return self.shares[max(k - 1, 0)]
        return _between(value, self.knots[k - 1 : k + 1], self.shares[k - 1 : k + 1])

    def passed(self, new: Fraction, old: Fraction) -> Fraction:
        """Return the share of people between two values."""
        return abs(self.at(new) - self.at(old))

    def within(self, own: Fraction, share: Fraction) -> tuple[Fraction | None, Fraction | None]:
        """Return how far down and up one can go without passing more than a share of people; ``None`` where there is no limit."""
        low, high = self.at(own) - share, self.at(own) + share
        return (
            None if low <= self.shares[0] else self._value(low),
            None if high >= self.shares[-1] else self._value(high),
        )

    def _value(self, share: Fraction) -> Fraction:
        k = min(bisect.bisect_right(self.shares, share), len(self.shares) - 1)
        return _between(share, self.shares[k - 1 : k + 1], self.knots[k - 1 : k + 1])

    def floats(self, own: float, values: Floats) -> Floats:
        """Return the share of people between ``own`` and each of some values; to within six roundings of it."""
        if not self._are_floats:
            # Moments in days, say, whose rounding is no small part of what lies next to them.
            return np.array([float(self.passed(Fraction(value), Fraction(own))) for value in values.tolist()])
        above, below = self._side(own, values, 1), self._side(own, values, -1)
        made: Floats = np.where(values > own, above, below)
        return made

    @cached_property
    def _are_floats(self) -> bool:
        """Whether every knot is a float, and so is what lies between any two."""
        return all(abs(knot) < WIDEST and Fraction(float(knot)) == knot for knot in self.knots)

    def _side(self, own: float, values: Floats, sign: int) -> Floats:
        """Return the shares on one side of ``own``: each is a sum of two that are not negative, so that no digits cancel."""
        here = Fraction(own)
        knots = sorted(sign * knot for knot in self.knots if sign * (knot - here) > 0)
        ends = [sign * here, *knots]
        passed = [self.passed(sign * end, here) for end in ends]
        # Parts of a height, not ways times a slope: between neighbouring floats a slope may be too great for a float.
        heights = np.array([*(float(b - a) for a, b in itertools.pairwise(passed)), 0.0])
        widths = np.array([*(float(b - a) for a, b in itertools.pairwise(ends)), np.inf])
        at, begin = sign * values, np.array([float(end) for end in ends])
        k = np.clip(np.searchsorted(begin, at, side="right") - 1, 0, len(ends) - 1)
        made: Floats = np.array([float(each) for each in passed])[k] + heights[k] * ((at - begin[k]) / widths[k])
        return made

    def command(self, name: str, own: Fraction, result: str) -> syntax.Command:
        """Return the command ``result := share of people passed``, in one piece between each two of the knots and one's own value."""
        ends = sorted({*self.knots, own})
        made: syntax.Command = syntax.Assign(result, syntax.Constant(self.passed(ends[-1], own)))
        variable = syntax.Variable(name)
        for begin, end in reversed(list(itertools.pairwise(ends))):
            first, last = self.passed(begin, own), self.passed(end, own)
            slope = (last - first) / (end - begin)
            line = syntax.Binary(
                "+", syntax.Constant(first - slope * begin), syntax.Binary("*", syntax.Constant(slope), variable)
            )
            made = syntax.If(syntax.Compare("<=", variable, syntax.Constant(end)), syntax.Assign(result, line), made)
        lowest = syntax.Assign(result, syntax.Constant(self.passed(ends[0], own)))
        return syntax.If(syntax.Compare("<=", variable, syntax.Constant(ends[0])), lowest, made)


def _between(at: Fraction, ends: tuple[Fraction, ...], heights: tuple[Fraction, ...]) -> Fraction:
    return heights[0] + (heights[1] - heights[0]) * (at - ends[0]) / (ends[1] - ends[0])


@dataclass(frozen=True)
class PercentileMetric(PartsMetric):
    """A convex combination of norms from one factual; a change δ of a number or of a level in an order is the share of people passed.

    ``scales`` has ``None`` for features whose change is as ever: categories, and those with one value.
    """

    scales: tuple[Percentiles | None, ...] = ()

    def delta(self, index: int, feature: Feature, new: Value, *, written: bool = False) -> Fraction:
        """Return the change of one feature to a value, exactly."""
        scale, old = self.scales[index], self.factual[index]
        if scale is None or new is None or old is None:
            return super().delta(index, feature, new, written=written)
        return scale.passed(Fraction(new), Fraction(old))

    def command(self, index: int, name: str, result: str, *, written: bool = False) -> syntax.Command:
        """Return the command ``result := δ`` of one feature."""
        scale, old = self.scales[index], self.factual[index]
        if scale is None or old is None:
            return super().command(index, name, result, written=written)
        made = scale.command(name, Fraction(old), result)
        return (
            syntax.If(syntax.Missing(name), syntax.Assign(result, syntax.ONE), made)
            if self.space[name].missing
            else made
        )

    def reach(self, index: int, bound: Fraction) -> Fraction:
        """Return the greatest share of its range that one feature can move in a point within distance ``bound``."""
        share, scale, old = super().reach(index, bound), self.scales[index], self.factual[index]
        if scale is None or old is None or share >= 1:
            return share
        ends = scale.within(Fraction(old), share)
        if None in ends:
            return Fraction(1)
        width = list(self.space.values())[index].range
        return min(Fraction(1), max(abs(end - Fraction(old)) for end in ends if end is not None) / width)
