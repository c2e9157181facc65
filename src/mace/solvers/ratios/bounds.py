"""Linear functions of the scores that lie above what the parts of a composite add, in a box.

A margin of the goal is a weighted sum g of a part's probabilities. Over the ranges of its scores in the box, g is at most its greatest
value there; and at most g(c) + G·(z - c) + r·|z - c|, where c is the middle of the ranges, and the partial derivatives lie in G ± r. The
second fits the better the smaller the box, by the square of its width.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from mace.exact import Floats
from mace.forms import Box, Composite, Curved, Part, Polyline, Voting, Weighted
from mace.forms.normalised import EXPONENTS, Normalised, Sigmoid, height_of, softmax_ends
from mace.forms.reach import scores_in

PADDING = 1e-12
"""More than the rounding of the floats here, as a share of the sizes that are added."""

TINIEST = 1e-300
"""More than what underflows."""

LowHigh = tuple[Floats, Floats]


@dataclass(frozen=True, slots=True)
class Linear:
    """For each margin slope·z + shift, which is at least what a part adds to it; ``looseness`` is by how much more, about."""

    slope: Floats
    shift: Floats
    looseness: float


def above(part: Weighted | Curved | Normalised, weights: Floats, box: Box) -> Linear:
    """Return linear functions of a part's scores above the weighted sums, margins x outputs, of what it adds."""
    factors = np.asarray(part.factors)
    factors = factors[:, None] if factors.ndim == 1 else factors
    rows: Floats = weights @ factors
    low, high = scores_in(part.form, box)
    if isinstance(part, Weighted):
        sizes = np.abs(weights) @ np.abs(factors) @ np.maximum(np.abs(low), np.abs(high))
        return Linear(rows, PADDING * sizes + TINIEST, 0.0)
    middle = low / 2 + high / 2
    greatest, at, slopes = (
        _of_shares(part, rows, low, high, middle)
        if isinstance(part, Normalised)
        else _of_curve(part.curve, rows, low, high, middle)
    )
    return _least(greatest, at, slopes, (low, high, middle), float(np.abs(rows).max(initial=0.0)))


def _least(greatest: Floats, at: Floats, slopes: LowHigh, ranges: tuple[Floats, Floats, Floats], size: float) -> Linear:
    """Return for each margin the lower one of a constant and of the function with the middle slope."""
    low, high, middle = ranges
    reach = np.maximum(high - middle, middle - low) * (1 + PADDING)
    with np.errstate(invalid="ignore"):
        slope = slopes[0] / 2 + slopes[1] / 2
        spread = (slopes[1] - slopes[0]) / 2 + PADDING * (np.abs(slope) + size)
        tilted = at + spread @ reach
    is_flat = ~(tilted < greatest) | ~np.isfinite(slope).all(axis=1)
    slope[is_flat] = 0.0
    most = np.where(is_flat, greatest, tilted)
    room = PADDING * (size + np.abs(most) + np.abs(slope) @ np.abs(middle)) + TINIEST
    return Linear(slope, most - slope @ middle + room, float((most - at).sum()))


# ---- one score


def _of_curve(
    curve: Polyline | None, rows: Floats, low: Floats, high: Floats, middle: Floats
) -> tuple[Floats, Floats, LowHigh]:
    """Return the greatest value, that in the middle, and the ends of the slope of each row's multiple of a curve of one score."""
    shape: Sigmoid | Polyline = Sigmoid(1.0, 0.0) if curve is None else curve
    numbers = [float(low[0]), float(high[0])]
    inner = () if curve is None else (knot for knot in curve.knots if numbers[0] < knot < numbers[1])
    heights = height_of(shape, np.array([*numbers, *inner]))
    factor, steps = rows[:, 0], np.array([_slopes(shape, *numbers)])
    tops = np.maximum(factor * heights.max(), factor * heights.min())
    both = factor[:, None] * steps
    slopes = both.min(axis=1, keepdims=True), both.max(axis=1, keepdims=True)
    return tops, factor * height_of(shape, middle)[0], slopes


def _slopes(curve: Sigmoid | Polyline, low: float, high: float) -> tuple[float, float]:
    """Return the least and the greatest slope of a calibration between two numbers."""
    if isinstance(curve, Polyline):
        knots, heights = (-np.inf, *curve.knots, np.inf), curve.heights
        rises = [0.0, *((b - a) / (v - u) for (u, a), (v, b) in pairwise(zip(curve.knots, heights, strict=True))), 0.0]
        met = [rise for rise, (a, b) in zip(rises, pairwise(knots), strict=True) if a <= high and b >= low]
        return min(met), max(met)
    ends = sorted([curve.slope * low + curve.shift, curve.slope * high + curve.shift])
    steepest = min(max(0.0, ends[0]), ends[1])
    heights_at = height_of(Sigmoid(1.0, 0.0), np.array([steepest, *ends]))
    rise = curve.slope * heights_at * (1 - heights_at)
    return float(rise.min()), float(rise.max())


# ---- shares


def _of_shares(
    part: Normalised, rows: Floats, low: Floats, high: Floats, middle: Floats
) -> tuple[Floats, Floats, LowHigh]:
    """Return the greatest value, that in the middle, and the ends of the partial derivatives of each row's sum of probabilities."""
    at = rows @ part.chances(middle[None, :])[0]
    if not part.is_softmax:
        greatest, slopes = _of_calibrated(part, rows, low, high)
        return greatest, at, slopes
    first, last = softmax_ends(low, high, -PADDING), softmax_ends(high, low, PADDING)
    if part.curves:
        greatest, outer = _of_calibrated(part, rows, first, last)
        return greatest, at, _through_softmax(outer, first, last)
    powers = [np.exp(np.clip(each - high.max(), -EXPONENTS, EXPONENTS)) for each in (low, high)]
    greatest, least = _quotients(rows, *powers), -_quotients(-rows, *powers)
    return greatest, at, _product((rows - greatest[:, None], rows - least[:, None]), (first, last))


def _of_calibrated(part: Normalised, rows: Floats, low: Floats, high: Floats) -> tuple[Floats, LowHigh]:
    """Return the greatest value of sums of calibrations divided by their sum, and the ends of the derivatives by what is calibrated."""
    ends = [np.array([float(height_of(c, x[[k]])[0]) for k, c in enumerate(part.curves)]) for x in (low, high)]
    bottom, top = np.minimum(*ends) * (1 - PADDING), np.maximum(*ends) * (1 + PADDING)
    if isinstance(part.curves[0], Polyline):
        bottom, top = np.maximum(bottom - PADDING, 0.0) * (bottom > 0), np.where(top > 0, top + PADDING, 0.0)
    greatest, least = _quotients(rows, bottom, top), -_quotients(-rows, bottom, top)
    rises = np.array([_slopes(c, float(a), float(b)) for c, a, b in zip(part.curves, low, high, strict=True)])
    if bottom.sum() <= 0:
        unknown = np.full_like(rows, np.inf)
        return greatest, (-unknown, unknown)
    shares: LowHigh = (rises[:, 0], rises[:, 1])
    by_sum = _product(shares, (np.full(len(low), 1 / top.sum()), np.full(len(low), 1 / bottom.sum())))
    return greatest, _product((rows - greatest[:, None], rows - least[:, None]), by_sum)


def _through_softmax(outer: LowHigh, low: Floats, high: Floats) -> LowHigh:
    """Return the ends of the derivatives by the scores, of those by the probabilities p: p_j (D_j - Σ_k D_k p_k)."""
    with np.errstate(invalid="ignore"):
        each = _product(outer, (low, high))
        mean = each[0].sum(axis=1, keepdims=True), each[1].sum(axis=1, keepdims=True)
        return _product((outer[0] - mean[1], outer[1] - mean[0]), (low, high))


def _quotients(rows: Floats, low: Floats, high: Floats) -> Floats:
    """Return the greatest Σ w·c / Σ c of each row of weights w, for c between two ends: those of the greatest weights are large.

    Where all may be 0 the classes share equally.
    """
    found = np.full(len(rows), -np.inf)
    for number, row in enumerate(rows):
        order = np.argsort(-row, kind="stable")
        for chosen in range(len(row) + 1):
            heights = low.copy()
            heights[order[:chosen]] = high[order[:chosen]]
            total = heights.sum()
            if total > 0:
                found[number] = max(found[number], float(row @ heights) / total)
        if low.sum() <= 0:
            found[number] = max(found[number], float(row.mean()))
        if low.sum() <= 0 and high.sum() > 0:
            found[number] = max(found[number], float(row[high > 0].max()))
    return found


def _product(first: LowHigh, second: LowHigh) -> LowHigh:
    """Return the ends of products."""
    with np.errstate(invalid="ignore"):
        each = np.stack([a * b for a in first for b in second])
    each = np.where(np.isnan(each), 0.0, each)
    return each.min(axis=0), each.max(axis=0)


# ---- a composite


def linear_parts(form: Composite, weights: Floats, box: Box) -> tuple[Composite, list[Linear | None]]:
    """Return a composite with an output for each row of weights that is at least that weighted sum of a form's outputs, in a box.

    Votes stay as they are; of all other parts linear functions of their scores are left, which are returned too.
    """
    base, parts, found = weights @ form.base, list[Part](), list[Linear | None]()
    for part in form.parts:
        if isinstance(part, Voting):
            parts.append(Voting(part.form, part.added @ weights.T))
            base = base + PADDING * float(np.abs(part.added).max()) * np.abs(weights).sum(axis=1)
            found.append(None)
            continue
        made = above(part, weights, box)
        parts.append(Weighted(part.form, made.slope))
        base = base + made.shift
        found.append(made)
    return Composite(form.space, tuple(parts), base + PADDING * np.abs(base)), found


def looseness(form: Composite, weights: Floats, box: Box) -> float:
    """Return by how much the linear functions are above the parts in the middle of a box."""
    return sum(above(part, weights, box).looseness for part in form.parts if not isinstance(part, Voting))


def weights_of(pairs: Sequence[tuple[int | None, int | None]], outputs: int) -> Floats:
    """Return for each pair of outputs, either of which may be none, the weights of their difference."""
    made = np.zeros((len(pairs), outputs))
    for row, (plus, minus) in zip(made, pairs, strict=True):
        if plus is not None:
            row[plus] += 1.0
        if minus is not None:
            row[minus] -= 1.0
    return made
