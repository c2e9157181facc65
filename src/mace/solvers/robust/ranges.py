"""Ranges of one feature under noise: from which values noise leads into a refused range, and from which it does not."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

from mace.constraints.robust import RobustCondition
from mace.exact import float_above, float_below, float_down, float_up
from mace.problem import Problem
from mace.reductions.regions import Range
from mace.reductions.shifted_network import span
from mace.solvers.domains import values_between
from mace.space import Feature, Integer, Real, Value


def outside(
    problem: Problem, noise: RobustCondition, name: str, left: Range, refused: Range
) -> tuple[list[Range], Range]:
    """Split a range into the values whose perturbations miss a refused range, and the others."""
    parts: list[Range] = []
    if left.missing and not refused.missing:
        parts.append(left.nothing_but_missing())
    if left.has_values and not refused.has_values:
        return [*parts, replace(left, missing=False)], left.nothing_but_missing()
    kept = replace(left, missing=left.missing and refused.missing)
    if left.levels is not None and refused.levels is not None:
        others = replace(left.only(left.levels - refused.levels), missing=False)
        return [*parts, *([others] if others.has_values else [])], kept.only(refused.levels)
    own = _off_grid(problem, name)
    is_alone = refused.low == refused.high == own
    low, high = (refused.low, refused.high) if is_alone else noise.reach(name, refused.low, refused.high)
    values = replace(left, missing=False)
    below, above = values.between(left.low, _before(low, left)), values.between(_after(high, left), left.high)
    parts += [part for part in (below, above) if part.has_values]
    if own is not None and max(low, left.low) <= own <= min(high, left.high):
        feature = problem.space[name]
        assert isinstance(feature, Real | Integer)
        # It lies between values of the grid, and noise may lead from it to none of those that are refused.
        near = noise.reach(name, own, own)
        reaches = (
            is_alone or _values_between(feature, max(refused.low, near[0]), min(refused.high, near[1])) is not None
        )
        parts += [] if reaches else [replace(values, low=own, high=own)]
    return parts, kept.between(low, high)


def _off_grid(problem: Problem, name: str) -> Fraction | None:
    """Return the factual's own value where it is none of the feature's."""
    feature, own = problem.space[name], problem.factual[problem.space.index(name)]
    is_apart = own is not None and isinstance(feature, Real | Integer) and not feature.has(own)
    return Fraction(own) if own is not None and is_apart else None


def as_values(feature: Feature, left: Range, value: Value) -> Range:
    """Return a refused range as narrow as the values in it; a value off the grid alone, since noise leads there from no other."""
    if value is None or left.levels is not None or not left.has_values:
        return left
    if not isinstance(feature, Real | Integer):
        return replace(left, low=Fraction(math.ceil(left.low)), high=Fraction(math.floor(left.high)))
    if not feature.has(value):
        return replace(left, low=Fraction(value), high=Fraction(value))
    ends = _values_between(feature, left.low, left.high)
    assert ends is not None
    return replace(left, low=ends[0], high=ends[1])


def turn_of(feature: object, offset: Fraction) -> Fraction:
    """Return the value beyond which an offset leads out of a feature's range."""
    assert isinstance(feature, Real | Integer)
    return span(feature)[offset > 0] - offset


def cut_at_turn(left: Range, turn: Fraction, *, below: bool) -> list[Range]:
    """Return a range cut at a value, which belongs to the upper part where ``below``, else to the lower."""
    if below:
        sides = left.between(left.low, _before(turn, left)), left.between(turn, left.high)
    else:
        sides = left.between(left.low, turn), left.between(_after(turn, left), left.high)
    return [side for side in sides if side.has_values]


def only(whole: Range, value: Value) -> Range:
    """Return a single value as a range."""
    if value is None:
        return whole.nothing_but_missing()
    if whole.levels is not None:
        return replace(whole.only([int(value)]), missing=False)
    return replace(whole, low=Fraction(value), high=Fraction(value), missing=False)


def value_between(feature: object, first: Fraction, last: Fraction) -> Fraction | None:
    """Return a value of a feature about half way between two; ``None`` where there is none, or the two are nearly equal."""
    middle = (first + last) / 2
    if isinstance(feature, Real) and feature.step is None:
        found = Fraction(feature.nearest(float(middle)))
        return (
            None if found in (first, last) or abs(last - first) < Fraction(1, 10**12) * (feature.range or 1) else found
        )
    if isinstance(feature, Real | Integer) and feature.step is not None:
        k = round((middle - Fraction(feature.low)) / Fraction(feature.step))
        found = Fraction(feature.value_at(min(max(k, 0), (feature.size or 1) - 1)))
    else:
        found = Fraction(math.floor(middle) if first < last else math.ceil(middle))
    return found if min(first, last) < found < max(first, last) else None


def _values_between(feature: Real | Integer, low: Fraction, high: Fraction) -> tuple[Fraction, Fraction] | None:
    """Return the first and the last value of a feature from one number to another; ``None`` where there is none."""
    ends = values_between(feature, float_up(low), float_down(high))
    return None if ends is None else (Fraction(ends[0]), Fraction(ends[1]))


def _before(low: Fraction, left: Range) -> Fraction:
    """Return the greatest float below a number; of whole numbers the greatest one."""
    return Fraction(math.ceil(low) - 1 if left.is_whole else float_below(low))


def _after(high: Fraction, left: Range) -> Fraction:
    """Return the least float above a number; of whole numbers the least one."""
    return Fraction(math.floor(high) + 1 if left.is_whole else float_above(high))
