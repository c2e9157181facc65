"""Branching: how ranges and boxes are cut in parts."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction

from mace.exact import float_above, float_below, greatest_float, least_float
from mace.problem import Problem
from mace.reductions.regions import Range, Region
from mace.space import Integer, Point, Real, Value
from mace.space.decimals import dtype_of

NARROWEST_CUT = Fraction(1, 10**13)
"""A number whose range is down to this share of the whole is not cut further: floats may have no value there at all."""


def cut_range(left: Range, at: Fraction, *, above: bool) -> list[Range]:
    """Cut a range of numbers in two at a value.

    Of whole numbers the value belongs to the upper part where ``above``, else to the lower one; of real numbers it belongs to both.
    """
    if left.missing or left.levels is not None:
        return [left]
    if left.is_whole:
        below = Fraction(math.ceil(at) - 1 if above else math.floor(at))
        parts = [left.between(left.low, below), left.between(below + 1, left.high)]
    else:
        parts = [left.between(left.low, at), left.between(at, left.high)]
    return [left] if left in parts else [part for part in parts if not part.is_empty]


def cut_at(left: Range, at: Fraction) -> list[Range]:
    """Cut a range into a value and what lies on either side of it; of real numbers only floats count."""
    if left.missing:
        return [left]
    if left.levels is not None:
        parts = [left.only(k for k in left.levels if k == at), left.only(k for k in left.levels if k != at)]
    elif left.is_whole:
        parts = [left.between(at, at), left.between(left.low, at - 1), left.between(at + 1, left.high)]
    else:
        below, above = Fraction(float_below(at)), Fraction(float_above(at))
        parts = [left.between(at, at), left.between(left.low, below), left.between(above, left.high)]
    return [part for part in parts if not part.is_empty]


# ---- boxes


def branch_at(
    problem: Problem, region: Region, point: Point, steps: Iterable[tuple[str, Fraction, bool]]
) -> list[Region] | None:
    """Cut a box at the first of some values that lies in it, anywhere where none does; ``None`` where it is too narrow.

    Each step is a feature, a number (or a level, which is cut off), and whether the number itself belongs to the upper part.
    """
    if all(left.is_single for left in region.values()):
        return []
    for name, at, above in steps:
        left = region[name]
        parts = cut_at(left, at) if left.levels is not None else cut_range(left, at, above=above)
        if len(parts) > 1:
            return [region | {name: part} for part in parts]
    return branch_somewhere(problem, region, point, list(problem.space))


def branch_somewhere(problem: Problem, region: Region, point: Point, names: list[str]) -> list[Region] | None:
    """Cut a box at some feature: apart from being missing, at the factual's own value, at the level of the point, or in the middle."""
    for name in names:
        left = region[name]
        if left.missing and left.has_values:
            return [region | {name: part} for part in (left.nothing_but_missing(), replace(left, missing=False))]
    for is_own, row in ((True, problem.factual), (False, point)):
        at = dict(zip(problem.space, row, strict=True))
        for name in names:
            left, value = region[name], at[name]
            parts = cut_at(left, Fraction(value)) if value is not None and (is_own or left.levels is not None) else []
            if len(parts) > 1:
                return [region | {name: part} for part in parts]
    width = {name: (region[name].high - region[name].low) / size_of(problem, name) for name in names}
    for name in sorted(names, key=lambda name: -width[name]):
        parts = cut_range(region[name], (region[name].low + region[name].high) / 2, above=False)
        if len(parts) > 1 and (region[name].is_whole or width[name] > NARROWEST_CUT):
            return [region | {name: part} for part in parts]
    return None


def size_of(problem: Problem, name: str) -> Fraction:
    """Return the range of a feature, or 1 where it has none."""
    return problem.space[name].range or Fraction(1)


def next_value(problem: Problem, j: int, number: Fraction, *, up: bool) -> Value:
    """Return the feature's value that is written as a number; where there is none, the next one upward or downward in its range."""
    feature = list(problem.space.values())[j]
    if isinstance(feature, Real | Integer) and feature.step is not None:
        low, step = feature.decimals if isinstance(feature, Real) else (Fraction(feature.low), Fraction(feature.step))
        k = math.ceil((number - low) / step) if up else math.floor((number - low) / step)
        return feature.value_at(min(max(k, 0), (feature.size or 1) - 1))
    if not isinstance(feature, Real):
        return math.ceil(number) if up else math.floor(number)
    found = least_float(number, dtype_of(feature)) if up else greatest_float(number, dtype_of(feature))
    return min(max(found, feature.low), feature.high)
