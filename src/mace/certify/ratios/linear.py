"""That a linear function of a model's scores lies above a weighted sum of what is made of them, in a box.

Of a sum g of probabilities that are divided by their sum this is shown in one of two ways: g is at most its greatest value in the box,
which is taken at an end of each height; or g(z) <= g(c) + Σ D_j (z_j - c_j) with c the middle of the ranges and D_j the partial
derivatives, of which intervals are computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

from mace.certify.ratios.ends import ZERO, Bracket, exactly, power, sigmoid, total
from mace.certify.verdict import Unchecked
from mace.exact import float_up
from mace.forms import Curved, Normalised, Polyline, Sigmoid

Row = Sequence[Fraction]


class Heights:
    """What scores between ends become: heights, one a score, and how steep each is."""

    def __init__(self, part: Normalised | Curved, scores: Sequence[Bracket]) -> None:
        self.is_divided = isinstance(part, Normalised)
        self.softmax: list[Bracket] | None = None
        curves: Sequence[Sigmoid | Polyline] = ()
        if isinstance(part, Normalised):
            curves = part.curves
            self.softmax = _softmax(scores) if part.is_softmax else None
        else:
            curves = (Sigmoid(1.0, 0.0) if part.curve is None else part.curve,)
        numbers = scores if self.softmax is None else self.softmax
        self.has_curves = bool(curves)
        if self.has_curves:
            made = [_height(curve, x) for curve, x in zip(curves, numbers, strict=True)]
            self.heights, self.steep = [height for height, _ in made], [rise for _, rise in made]
        else:
            largest = Bracket(max(x.high for x in scores), max(x.high for x in scores))
            self.heights = self.steep = [power(x.minus(largest)) for x in scores]

    def greatest(self, row: Row) -> Fraction:
        """Return more than the greatest weighted sum."""
        low, high = ([Fraction(each[end]) for each in self.heights] for end in (0, 1))
        if not self.is_divided:
            return sum((max(w * a, w * b) for w, a, b in zip(row, low, high, strict=True)), Fraction(0))
        order = sorted(range(len(row)), key=lambda k: -row[k])
        found = [sum(row, Fraction(0)) / len(row)] if sum(low) <= 0 else []
        for chosen in range(len(row) + 1):
            at = [high[k] if k in order[:chosen] else low[k] for k in range(len(row))]
            if sum(at) > 0:
                found.append(sum((w * c for w, c in zip(row, at, strict=True)), Fraction(0)) / sum(at))
        return Fraction(float_up(max(found)))

    def derivatives(self, row: Row) -> list[Bracket] | None:
        """Return what the partial derivatives of the weighted sum by each score lie between; ``None`` where they have no bound."""
        weights = list(map(exactly, row))
        if not self.is_divided:
            return [weight.times(rise) for weight, rise in zip(weights, self.steep, strict=True)]
        most, least = self.greatest(row), -self.greatest([-w for w in row])
        ahead = [weight.minus(Bracket(exactly(least).low, exactly(most).high)) for weight in weights]
        if not self.has_curves:
            assert self.softmax is not None
            return [p.times(each) for p, each in zip(self.softmax, ahead, strict=True)]
        whole = total(self.heights)
        if whole.low <= 0:
            return None
        by_heights = [rise.over(whole).times(each) for rise, each in zip(self.steep, ahead, strict=True)]
        if self.softmax is None:
            return by_heights
        mean = total(p.times(each) for p, each in zip(self.softmax, by_heights, strict=True))
        return [p.times(each.minus(mean)) for p, each in zip(self.softmax, by_heights, strict=True)]


def is_above(
    part: Normalised | Curved, scores: Sequence[Bracket], row: Row, slope: Sequence[float], shift: float
) -> bool:
    """Return whether slope·z + shift is shown to be at least the weighted sum, for scores z between ends."""
    over = Heights(part, scores)
    least = total(Bracket(a, a).times(z) for a, z in zip(slope, scores, strict=True))
    if over.greatest(row) - Fraction(least.low) <= Fraction(shift):
        return True
    steep = over.derivatives(row)
    if steep is None:
        return False
    middle = [x.low / 2 + x.high / 2 for x in scores]
    at = Heights(part, [Bracket(c, c) for c in middle]).greatest(row)
    spread = ZERO
    for x, c, a, d in zip(scores, middle, slope, steep, strict=True):
        reach = Bracket(0.0, x.minus(Bracket(c, c)).largest)
        spread = spread.plus(Bracket(0.0, d.minus(Bracket(a, a)).largest).times(reach))
    there = total(Bracket(a, a).times(Bracket(c, c)) for a, c in zip(slope, middle, strict=True))
    return at + Fraction(spread.high) <= Fraction(shift) + Fraction(there.low)


def _softmax(scores: Sequence[Bracket]) -> list[Bracket]:
    """Return what each probability lies between: it rises with its own score, and falls with the others."""
    found = []
    for k, own in enumerate(scores):
        others = [score for j, score in enumerate(scores) if j != k]
        most = total([Bracket(1.0, 1.0), *(_power_of_difference(score.low, own.high) for score in others)])
        least = total([Bracket(1.0, 1.0), *(_power_of_difference(score.high, own.low) for score in others)])
        one = Bracket(1.0, 1.0)
        found.append(Bracket(max(one.over(least).low, 0.0), one.over(most).high))
    return found


def _power_of_difference(first: float, second: float) -> Bracket:
    return power(Bracket(first, first).minus(Bracket(second, second)))


def _height(curve: Sigmoid | Polyline, at: Bracket) -> tuple[Bracket, Bracket]:
    """Return what the height of a calibration lies between, and its slope."""
    if isinstance(curve, Polyline):
        low, high = sorted(curve.value(Fraction(end)) for end in at)
        inner = [Fraction(h) for knot, h in zip(curve.knots, curve.heights, strict=True) if at.low < knot < at.high]
        low, high = min([low, *inner]), max([high, *inner])
        return Bracket(exactly(low).low, exactly(high).high), _rise(curve, at)
    factor = Bracket(curve.slope, curve.slope)
    inside = factor.times(at).plus(Bracket(curve.shift, curve.shift))
    steepest = min(max(0.0, inside.low), inside.high)
    most, each = _bend(steepest).high, [_bend(end).low for end in inside]
    return sigmoid(inside), factor.times(Bracket(min(each), most))


def _bend(at: float) -> Bracket:
    """Return what the slope of the sigmoid lies between: it is the product of the sigmoids of a number and of its opposite."""
    return sigmoid(Bracket(at, at)).times(sigmoid(Bracket(-at, -at)))


def _rise(curve: Polyline, at: Bracket) -> Bracket:
    knots = list(map(Fraction, curve.knots))
    rises = [Fraction(0)] if at.low <= curve.knots[0] or at.high >= curve.knots[-1] else []
    for (a, first), (b, last) in pairwise(zip(knots, curve.heights, strict=True)):
        if a <= at.high and b >= at.low:
            rises.append((Fraction(last) - Fraction(first)) / (b - a))
    if not rises:
        raise Unchecked("a calibration has no slope")
    return Bracket(exactly(min(rises)).low, exactly(max(rises)).high)
