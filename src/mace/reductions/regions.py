"""Regions of rows, and what a guard leaves of one: exact intervals, pushed down to the features.

A region holds, for each feature, the numbers (or positions of levels) that it may take, and whether it may be missing. Narrowing never
loses a row that fulfils the guard.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, floor
from typing import TypeAlias

from mace.distances import PartsMetric
from mace.exact import float_down, float_up
from mace.language import syntax
from mace.language.roundings import ROUNDINGS, operands, rounded_ends
from mace.problem import Problem
from mace.space import Categorical, Feature, FeatureSpace, Integer, Ordinal, Point, Real, Value

MOST_ROUNDS = 4
"""How often the parts of a conjunction are gone through again, as long as that narrows something."""

Interval = tuple[Fraction, Fraction]


@dataclass(frozen=True, slots=True)
class Range:
    """What one feature may be.

    Attributes
    ----------
    low, high : Fraction
        The ends of what an ordered feature may be; empty where ``low > high``.
    levels : frozenset of int, optional
        The levels of a feature without order; ``None`` for one with order.
    is_whole : bool
        Whether only whole numbers count.
    missing : bool
        Whether it may be missing.
    """

    low: Fraction
    high: Fraction
    levels: frozenset[int] | None = None
    is_whole: bool = False
    missing: bool = False

    @property
    def has_values(self) -> bool:
        """Whether it may be anything but missing."""
        return bool(self.levels) if self.levels is not None else self.low <= self.high

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left."""
        return not self.missing and not self.has_values

    @property
    def is_single(self) -> bool:
        """Whether at most one value, or only being missing, is left."""
        if not self.has_values:
            return True
        return not self.missing and (len(self.levels) == 1 if self.levels is not None else self.low == self.high)

    def has(self, value: Value) -> bool:
        """Return whether a value is left."""
        if value is None:
            return self.missing
        return value in self.levels if self.levels is not None else self.low <= value <= self.high

    def between(self, low: Fraction, high: Fraction) -> Range:
        """Return what is left between two numbers."""
        if low <= self.low and high >= self.high:
            return self
        low, high = max(self.low, low), min(self.high, high)
        if self.levels is not None:
            return replace(self, levels=frozenset(k for k in self.levels if low <= k <= high))
        return (
            replace(self, low=Fraction(ceil(low)), high=Fraction(floor(high)))
            if self.is_whole
            else replace(self, low=low, high=high)
        )

    def only(self, levels: Iterable[int]) -> Range:
        """Return what is left of a feature without order."""
        assert self.levels is not None
        return replace(self, levels=self.levels & frozenset(levels))

    def nothing_but_missing(self) -> Range:
        """Return the feature missing, if it may be."""
        return replace(self, low=Fraction(1), high=Fraction(0), levels=None if self.levels is None else frozenset())

    def joined(self, other: Range) -> Range:
        """Return what either may be, or a little more."""
        missing = self.missing or other.missing
        if not self.has_values or not other.has_values:
            return replace(self if self.has_values else other, missing=missing)
        if self.levels is not None and other.levels is not None:
            return replace(self, levels=self.levels | other.levels, missing=missing)
        return replace(self, low=min(self.low, other.low), high=max(self.high, other.high), missing=missing)

    def interval(self) -> Interval:
        """Return the least and the greatest number."""
        if self.levels is not None:
            return Fraction(min(self.levels)), Fraction(max(self.levels))
        return self.low, self.high

    def floats(self) -> tuple[float, float]:
        """Return the least and the greatest number as floats that none of them lies outside of."""
        low, high = self.interval()
        return float_down(low), float_up(high)


Region: TypeAlias = dict[str, Range]


def whole_region(space: FeatureSpace, factual: Iterable[int | float | None]) -> Region:
    """Return everything that a row may be: the domain, and the factual's own values."""
    return {name: _whole(feature, own) for (name, feature), own in zip(space.items(), factual, strict=True)}


def _whole(feature: Feature, own: int | float | None) -> Range:
    missing = feature.missing or own is None
    match feature:
        case Categorical(levels):
            return Range(Fraction(0), Fraction(len(levels) - 1), frozenset(range(len(levels))), missing=missing)
        case Ordinal(levels):
            return Range(Fraction(0), Fraction(len(levels) - 1), is_whole=True, missing=missing)
        case Real() | Integer():
            return Range(Fraction(feature.low), Fraction(feature.high), None, isinstance(feature, Integer), missing)


def lies_in(region: Region, other: Region) -> bool:
    """Return whether all rows of a region are rows of another."""
    pairs = zip(region.values(), other.values(), strict=True)
    return all(left is around or left.joined(around) == around for left, around in pairs)


def has_point(region: Region, point: Point) -> bool:
    """Return whether a point lies in a region."""
    return all(left.has(value) for left, value in zip(region.values(), point, strict=True))


def within_reach(problem: Problem, region: Region, upper: Fraction | None) -> Region | None:
    """Return what is left of a region within a distance of the factual; ``None`` where nothing is."""
    if upper is None or not isinstance(problem.metric, PartsMetric):
        return region
    kept: Region = {}
    for (name, left), (low, high) in zip(region.items(), problem.box(upper), strict=True):
        kept[name] = left if left.missing else left.between(low, high)
        if kept[name].is_empty:
            return None
    return kept


def guard_of(name: str, left: Range, whole: Range) -> syntax.Guard:
    """Return the guard on one feature that says what is left of it."""
    variable = syntax.Variable(name)
    if left.levels is not None:
        values = syntax.disjunction(syntax.Compare("==", variable, syntax.constant(k)) for k in sorted(left.levels))
    else:
        low, high = left.low if left.low > whole.low else None, left.high if left.high < whole.high else None
        values = syntax.between(variable, low, high)
    if not whole.missing:
        return values
    present = syntax.conjunction([syntax.Not(syntax.Missing(name)), values])
    if not left.has_values:
        return syntax.Missing(name)
    return syntax.disjunction([syntax.Missing(name), present]) if left.missing else present


# ---- narrowing


def narrow(guard: syntax.Guard, region: Region) -> Region | None:
    """Return what a guard leaves of a region; ``None`` where no row of it fulfils the guard."""
    match guard:
        case syntax.Truth(value):
            return region if value else None
        case syntax.Missing(name):
            return _with(region, name, region[name].nothing_but_missing())
        case syntax.Not(syntax.Missing(name)):
            return _with(region, name, replace(region[name], missing=False))
        case syntax.Not(part):
            return narrow(syntax.negation(part), region)
        case syntax.And(parts):
            return _all(parts, region)
        case syntax.Or(parts):
            return _some(parts, region)
        case syntax.Compare():
            return _compared(guard, region)


def _with(region: Region, name: str, left: Range) -> Region | None:
    return None if left.is_empty else region if left == region[name] else region | {name: left}


def _all(parts: tuple[syntax.Guard, ...], region: Region) -> Region | None:
    for _ in range(MOST_ROUNDS):
        before = region
        for part in parts:
            left = narrow(part, region)
            if left is None:
                return None
            region = left
        if region is before:
            break
    return region


def _some(parts: tuple[syntax.Guard, ...], region: Region) -> Region | None:
    kept = [left for part in parts if (left := narrow(part, region)) is not None]
    if not kept:
        return None
    joined = kept[0]
    for other in kept[1:]:
        changed = {name: joined[name].joined(other[name]) for name in region if joined[name] is not other[name]}
        joined = joined | changed
    return joined


def _compared(guard: syntax.Compare, region: Region) -> Region | None:
    level = _level_test(guard, region)
    if level is not None:
        name, chosen = level
        kept = region[name].levels
        assert kept is not None
        return _with(region, name, region[name].only(chosen if guard.name == "==" else kept - chosen))
    sign = guard.name
    left, right = interval(guard.left, region), interval(guard.right, region)
    if left is None or right is None:
        return region
    if sign == "!=":
        return None if left[0] == left[1] == right[0] == right[1] else region
    if (sign == "<" and left[0] >= right[1]) or (sign == ">" and left[1] <= right[0]):
        return None
    match guard:
        case syntax.Compare(_, syntax.Variable(name), syntax.Constant(value)):
            low = left[0] if sign in ("<", "<=") else value
            return _with(region, name, region[name].between(low, left[1] if sign in (">", ">=") else value))
    found: Region | None = region
    if sign in ("<", "<=", "=="):
        found = _project(guard.left, (left[0], min(left[1], right[1])), found)
        found = _project(guard.right, (max(right[0], left[0]), right[1]), found)
    if sign in (">", ">=", "=="):
        found = _project(guard.left, (max(left[0], right[0]), left[1]), found)
        found = _project(guard.right, (right[0], min(right[1], left[1])), found)
    return found


def _level_test(guard: syntax.Compare, region: Region) -> tuple[str, frozenset[int]] | None:
    """Return the feature without order and the level that a guard compares it with, if it does that."""
    match guard:
        case syntax.Compare("==" | "!=", syntax.Variable(name), syntax.Constant(value)) | syntax.Compare(
            "==" | "!=", syntax.Constant(value), syntax.Variable(name)
        ):
            if region[name].levels is not None and not region[name].missing:
                return name, frozenset({int(value)} if value.denominator == 1 else ())
    return None


def interval(expression: syntax.Expression, region: Region) -> Interval | None:
    """Return the least and the greatest value of an expression on a region, or less and more; ``None`` where it may be undefined."""
    match expression:
        case syntax.Constant(value):
            return value, value
        case syntax.Variable(name):
            left = region[name]
            return None if left.missing or not left.has_values else left.interval()
        case syntax.Unary(name, operand):
            inner = interval(operand, region)
            if inner is None:
                return None
            if name in ROUNDINGS:
                return rounded_ends(name, *inner)
            if name == "neg":
                return -inner[1], -inner[0]
            sizes = abs(inner[0]), abs(inner[1])
            return (Fraction(0) if inner[0] <= 0 <= inner[1] else min(sizes)), max(sizes)
        case syntax.Binary(name, left_side, right_side):
            first, second = interval(left_side, region), interval(right_side, region)
            return None if first is None or second is None else _combined(name, first, second)
        case syntax.Indicator(guard):
            if narrow(guard, region) is None:
                return syntax.ZERO.value, syntax.ZERO.value
            return (
                syntax.ONE if narrow(syntax.negation(guard), region) is None else syntax.ZERO
            ).value, syntax.ONE.value


def _combined(name: str, a: Interval, b: Interval) -> Interval | None:
    match name:
        case "+":
            return a[0] + b[0], a[1] + b[1]
        case "-":
            return a[0] - b[1], a[1] - b[0]
        case "*":
            products = [x * y for x in a for y in b]
            return min(products), max(products)
        case "/" if b[0] > 0 or b[1] < 0:
            quotients = [x / y for x in a for y in b]
            return min(quotients), max(quotients)
        case "min":
            return min(a[0], b[0]), min(a[1], b[1])
        case "max":
            return max(a[0], b[0]), max(a[1], b[1])
        case _:
            return None


def _project(expression: syntax.Expression, goal: Interval, region: Region | None) -> Region | None:
    """Return what is left of a region where an expression lies between two numbers."""
    if region is None or goal[0] > goal[1]:
        return None
    match expression:
        case syntax.Constant(value):
            return region if goal[0] <= value <= goal[1] else None
        case syntax.Variable(name):
            left = region[name]
            return region if left.missing else _with(region, name, left.between(*goal))
        case syntax.Unary("neg", operand):
            return _project(operand, (-goal[1], -goal[0]), region)
        case syntax.Unary(name, operand) if name in ROUNDINGS:
            inside = operands(name, *goal)
            return None if inside is None else _project(operand, inside, region)
        case syntax.Unary(_, operand):
            return None if goal[1] < 0 else _project(operand, (-goal[1], goal[1]), region)
        case syntax.Indicator(guard):
            if goal[0] > 0:
                return None if goal[0] > 1 or goal[1] < 1 else narrow(guard, region)
            return narrow(syntax.negation(guard), region) if goal[1] < 1 else region
        case syntax.Binary("+"):
            return _project_sum(syntax.summands(expression), goal, region)
        case syntax.Binary(name, left_side, right_side):
            first, second = interval(left_side, region), interval(right_side, region)
            if first is None or second is None:
                return region
            for side, own, other, is_left in ((left_side, first, second, True), (right_side, second, first, False)):
                wanted = _wanted(name, goal, own, other, is_left)
                region = _project(side, wanted, region)
                if region is None:
                    return None
            return region


def _project_sum(terms: list[syntax.Expression], goal: Interval, region: Region) -> Region | None:
    """Return what is left of a region where a sum lies between two numbers: each term is at least the goal less the most of the others."""
    each = [interval(term, region) for term in terms]
    known = [ends for ends in each if ends is not None]
    if len(known) < len(each):
        return region
    least, most = sum(low for low, _ in known), sum(high for _, high in known)
    left: Region | None = region
    for term, (low, high) in zip(terms, known, strict=True):
        left = _project(term, (max(low, goal[0] - (most - high)), min(high, goal[1] - (least - low))), left)
    return left


def _wanted(name: str, goal: Interval, own: Interval, other: Interval, is_left: bool) -> Interval:
    """Return where one operand must lie for the result to lie in ``goal``."""
    low, high = own
    match name:
        case "-" if is_left:
            low, high = goal[0] + other[0], goal[1] + other[1]
        case "-":
            low, high = other[0] - goal[1], other[1] - goal[0]
        case "*" if other[0] == other[1] != 0:
            low, high = sorted((goal[0] / other[0], goal[1] / other[0]))
        case "/" if is_left and other[0] == other[1] != 0:
            low, high = sorted((goal[0] * other[0], goal[1] * other[0]))
        case "max":
            low, high = (goal[0] if other[1] < goal[0] else own[0]), goal[1]
        case "min":
            low, high = goal[0], (goal[1] if other[0] > goal[1] else own[1])
    return max(low, own[0]), min(high, own[1])
