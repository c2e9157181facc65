"""Checking a proof by boxes: conditions across features, which the proofs of a lane leave out.

The evidence is a list of boxes, each with a proof of the lane that nothing in it nearer than ``lower`` is in the goal. What is left to
show is that the boxes hold every row nearer than ``lower`` that fulfils the conditions. To that end the domain is cut along the boxes until
each piece lies in one of them, is too far from the factual, or fails a condition in all its rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from mace.certify import network, trees
from mace.certify.axes import Axis, cell_costs, make_axes, on_grid, threshold
from mace.certify.verdict import Progress, Refuted, Unchecked
from mace.constraints.condition import GuardCondition
from mace.distances import NormMetric
from mace.language.syntax import (
    And,
    Binary,
    Compare,
    Constant,
    Expression,
    Guard,
    Indicator,
    Missing,
    Not,
    Or,
    Truth,
    Unary,
    Variable,
    conjunction,
    constant,
    disjunction,
    variables,
)
from mace.problem import Problem
from mace.space import Feature, Integer, Ordinal, Real

INNER: dict[str, Callable[[Problem, Fraction | None, dict[str, Any], Progress], None]] = {
    "trees": trees.check,
    "network": network.check,
}
"""The lanes that may prove a box."""

MOST_PIECES = 200_000


def check(problem: Problem, lower: Fraction | None, evidence: dict[str, Any], progress: Progress) -> None:
    """Be convinced that no plausible point nearer than ``lower`` is in the goal, or raise."""
    if not isinstance(problem.metric, NormMetric):
        raise Refuted("evidence: a proof by boxes is about norms")
    boxes = [_read_box(problem, entry["ranges"]) for entry in evidence["boxes"]]
    _check_cover(problem, lower, boxes)
    names = list(problem.space)
    for number, (box, entry) in enumerate(zip(boxes, evidence["boxes"], strict=True)):
        proof = entry["proof"]
        if proof["lane"] not in INNER:
            raise Unchecked(f"no checker for boxes of the lane {proof['lane']!r:.60}; known: {', '.join(INNER)}")
        limits = [_guard(name, span) for name, span in zip(names, box, strict=True) if span is not None]
        asked = replace(problem, conditions=(*problem.conditions, *map(GuardCondition, limits)))
        INNER[proof["lane"]](asked, lower, proof, _silent)
        progress((number + 1) / len(boxes))


def _silent(share: float) -> None:
    """Tell nobody: the share of one box is not that of the whole."""


# ---- boxes


@dataclass(frozen=True, slots=True)
class Span:
    """What one feature may be in a box: the floats or whole numbers of a range, or the levels of a set, and perhaps missing."""

    low: float
    high: float
    levels: frozenset[int] | None
    is_whole: bool
    missing: bool

    @property
    def has_values(self) -> bool:
        """Whether it may be anything but missing."""
        return bool(self.levels) if self.levels is not None else self.low <= self.high

    @property
    def is_empty(self) -> bool:
        """Whether it holds nothing."""
        return not self.missing and not self.has_values

    def inside(self, other: Span) -> Span:
        """Return what lies in both."""
        levels = None if self.levels is None else self.levels & (other.levels or frozenset())
        low, high = max(self.low, other.low), min(self.high, other.high)
        return Span(low, high, levels, self.is_whole, self.missing and other.missing)

    def outside(self, other: Span) -> list[Span]:
        """Return the rest."""
        if self.levels is not None:
            rest = [replace(self, levels=self.levels - (other.levels or frozenset()), missing=False)]
        elif not other.has_values:
            rest = [replace(self, missing=False)]
        else:
            rest = [
                replace(self, high=min(self.high, self.before(other.low)), missing=False),
                replace(self, low=max(self.low, self.after(other.high)), missing=False),
            ]
        if self.missing and not other.missing:
            rest.append(self.only_missing())
        return [span for span in rest if not span.is_empty]

    def only_missing(self) -> Span:
        """Return it without values."""
        return Span(1.0, 0.0, None if self.levels is None else frozenset(), self.is_whole, True)

    def before(self, value: float) -> float:
        """Return the greatest number below a value."""
        return math.ceil(value) - 1.0 if self.is_whole else math.nextafter(value, -math.inf)

    def after(self, value: float) -> float:
        """Return the least number above a value."""
        return math.floor(value) + 1.0 if self.is_whole else math.nextafter(value, math.inf)

    def halves(self) -> list[Span]:
        """Return it in two parts; in one where it cannot be cut."""
        if self.missing and self.has_values:
            return [self.only_missing(), replace(self, missing=False)]
        if not self.has_values:
            return [self]
        if self.levels is not None:
            one = frozenset([min(self.levels)])
            parts = [replace(self, levels=one), replace(self, levels=self.levels - one)]
        else:
            middle = self.low + (self.high - self.low) / 2
            # The sum may be rounded up to the end itself.
            middle = float(math.floor(middle)) if self.is_whole else middle if middle < self.high else self.low
            parts = [replace(self, high=middle), replace(self, low=self.after(middle))]
        return [part for part in parts if not part.is_empty]


Piece = tuple[Span, ...]
Box = tuple[Span | None, ...]
"""A span for each feature; ``None`` where all of the feature's domain is meant."""


def _read_box(problem: Problem, ranges: dict[str, Any]) -> Box:
    unknown = [name for name in ranges if name not in problem.space]
    if unknown:
        raise Refuted(f"evidence.boxes: there is no feature {unknown[0]!r:.60}")
    return tuple(
        _read_span(feature, ranges[name]) if name in ranges else None for name, feature in problem.space.items()
    )


def _read_span(feature: Feature, entry: dict[str, Any]) -> Span:
    missing = bool(entry["missing"])
    if "levels" in entry:
        return _set(entry["levels"], missing)
    low, high = float(entry["low"]), float(entry["high"])
    if not (math.isfinite(low) and math.isfinite(high)):
        raise Refuted("evidence.boxes: the end of a range is no number")
    if isinstance(feature, Ordinal):
        return _set((k for k in range(len(feature.levels)) if low <= k <= high), missing)
    if isinstance(feature, Integer):
        return Span(math.ceil(low), math.floor(high), None, True, missing)
    return Span(low, high, None, False, missing)


def _set(levels: Iterable[Any], missing: bool) -> Span:
    return Span(1.0, 0.0, frozenset(map(int, levels)), False, missing)


def _guard(name: str, span: Span) -> Guard:
    """Return the guard that a feature lies in a span."""
    variable = Variable(name)
    if not span.has_values:
        within: Guard = Truth(False)
    elif span.levels is not None:
        within = disjunction(Compare("==", variable, constant(k)) for k in sorted(span.levels))
    else:
        within = conjunction(
            [Compare(">=", variable, constant(span.low)), Compare("<=", variable, constant(span.high))]
        )
    return disjunction([Missing(name), within]) if span.missing else conjunction([Not(Missing(name)), within])


# ---- the cover


def _check_cover(problem: Problem, lower: Fraction | None, boxes: list[Box]) -> None:
    """Be convinced that every row nearer than ``lower`` that fulfils the conditions lies in a box."""
    axes = make_axes(problem, [np.empty(0)] * len(problem.space))
    limit = threshold(problem, lower)
    guards = [condition.guard for condition in problem.conditions if isinstance(condition, GuardCondition)]
    cover = _Cover(problem, axes, guards, limit)
    whole = tuple(map(_whole, problem.space.values(), axes))
    if all(not span.is_empty for span in whole):
        cover.run(whole, [tuple(span or every for span, every in zip(box, whole, strict=True)) for box in boxes])


def _whole(feature: Feature, axis: Axis) -> Span:
    """Return all that the domain and the conditions on the feature alone leave."""
    if axis.is_set:
        return _set(axis.low, axis.may_be_missing)
    low, high = (float(axis.low[0]), float(axis.high[-1])) if axis.size else (1.0, 0.0)
    return Span(low, high, None, isinstance(feature, Integer), axis.may_be_missing)


class _Cover:
    """Cuts pieces until each is in a box, too far, or fails a condition."""

    def __init__(self, problem: Problem, axes: list[Axis], guards: list[Guard], limit: int) -> None:
        assert isinstance(problem.metric, NormMetric)
        self.names, self.features = list(problem.space), list(problem.space.values())
        self.factual, self.parts = problem.factual, problem.metric.parts
        self.axes, self.guards, self.limit = axes, guards, limit
        self.asked = sorted({self.names.index(name) for guard in guards for name in variables(guard)})

    def run(self, whole: Piece, boxes: list[Piece]) -> None:
        pending = [(whole, boxes)]
        pieces = 0
        while pending:
            cut_piece, near = pending.pop()
            piece = tuple(map(self._on_grid, range(len(cut_piece)), cut_piece))
            pieces += 1
            if pieces > MOST_PIECES:
                raise Unchecked(f"whether the boxes cover the domain is not clear after {MOST_PIECES:,} pieces")
            if self._cost(piece) >= self.limit or self._fails(piece):
                continue
            near = [box for box in near if all(not s.inside(b).is_empty for s, b in zip(piece, box, strict=True))]
            cut = self._along_a_box(piece, near) if near else self._somewhere(piece)
            pending += [(part, near) for part in cut]

    def _on_grid(self, j: int, span: Span) -> Span:
        """Return a span of a feature with a step as narrow as the values in it: those of the grid, and the factual's own."""
        feature, own = self.features[j], self.factual[j]
        if (
            span.levels is not None
            or not span.has_values
            or not isinstance(feature, Real | Integer)
            or not feature.step
        ):
            return span
        low, high = (float(ends[0]) for ends in on_grid(feature, np.array([span.low]), np.array([span.high])))
        if own is not None and span.low <= own <= span.high:
            low, high = min(low, own), max(high, own)
        return replace(span, low=low, high=high) if low <= high else replace(span, low=1.0, high=0.0)

    def _along_a_box(self, piece: Piece, near: list[Piece]) -> list[Piece]:
        """Return the piece cut along the box that most of it lies in; nothing where all of it does."""
        best: tuple[int, int, list[Span]] | None = None
        for box in near:
            rests = [span.outside(other) for span, other in zip(piece, box, strict=True)]
            open_ = [j for j, rest in enumerate(rests) if rest]
            if not open_:
                return []
            if best is None or len(open_) < best[0]:
                # A feature of the conditions first: what is cut off may fail one.
                j = next((j for j in open_ if j in self.asked), open_[0])
                best = len(open_), j, [piece[j].inside(box[j]), *rests[j]]
        assert best is not None
        _, j, spans = best
        return [(*piece[:j], span, *piece[j + 1 :]) for span in spans]

    def _somewhere(self, piece: Piece) -> list[Piece]:
        """Return a piece that no box meets in two; raise where it is a single row as far as the conditions can tell."""
        for j in self.asked:
            parts = self._own_apart(j, piece[j])
            if len(parts) > 1:
                return [(*piece[:j], span, *piece[j + 1 :]) for span in parts]
        sizes = {j: self._size(j, piece[j]) for j in self.asked}
        for j in sorted(sizes, key=lambda j: -sizes[j]):
            parts = piece[j].halves()
            if len(parts) > 1:
                return [(*piece[:j], span, *piece[j + 1 :]) for span in parts]
        shown = ", ".join(
            f"{name} {self._shown(span)}" for name, span in zip(self.names, piece, strict=True) if not span.missing
        )
        raise Refuted(f"evidence.boxes: rows that fulfil the conditions lie in no box: {shown:.300}")

    def _own_apart(self, j: int, span: Span) -> list[Span]:
        """Return a span with the factual's own value cut out: conditions ask whether a feature changes."""
        own = self.factual[j]
        if own is None or span.levels is not None or not span.low <= own <= span.high:
            return [span]
        alone = replace(span, low=float(own), high=float(own), missing=False)
        return [alone, *span.outside(alone)]

    def _size(self, j: int, span: Span) -> float:
        """Return how much of a feature a span holds."""
        if not span.has_values:
            return 0.0
        if span.levels is not None:
            return len(span.levels) / max(self.axes[j].size, 1)
        reach = float(self.axes[j].high[-1] - self.axes[j].low[0])
        return (span.high - span.low) / reach if reach > 0 else 0.0

    @staticmethod
    def _shown(span: Span) -> str:
        return f"level {min(span.levels)}" if span.levels else f"{span.low!r}"

    def _cost(self, piece: Piece) -> int:
        """Return the least cost of a row of a piece; the limit where it holds none."""
        total = highest = 0
        for j, (axis, span) in enumerate(zip(self.axes, piece, strict=True)):
            options = [(axis.missing_add, axis.missing_top)] if span.missing else []
            options += self._costs_of_values(j, span) if span.has_values else []
            if not options:
                return self.limit
            total += min(add for add, _ in options)
            highest = max(highest, min(top for _, top in options))
        return total + highest

    def _costs_of_values(self, j: int, span: Span) -> list[tuple[int, int]]:
        """Return the least that the values of a span cost in the sum and in the maximum; nothing where the domain has none there."""
        axis = self.axes[j]
        if span.levels is not None:
            held = np.isin(axis.low, list(span.levels))
            add, top = axis.add[held], axis.top[held]
        else:
            held = (axis.high >= span.low) & (axis.low <= span.high)
            low, high = np.maximum(axis.low[held], span.low), np.minimum(axis.high[held], span.high)
            add, top = cell_costs(self.features[j], self.factual[j], self.parts[j], low, high)
        return [(int(add.min()), int(top.min()))] if held.any() else []

    def _fails(self, piece: Piece) -> bool:
        at = dict(zip(self.names, piece, strict=True))
        return any(not may_hold(guard, at)[0] for guard in self.guards)


# ---- conditions on a piece

Interval = tuple[Fraction, Fraction]


def may_hold(guard: Guard, at: dict[str, Span]) -> tuple[bool, bool]:
    """Return whether a guard may hold in a piece, and whether it may fail; where that is not clear, both."""
    match guard:
        case Truth(value):
            return value, not value
        case Missing(name):
            return at[name].missing, at[name].has_values
        case Not(part):
            holds, fails = may_hold(part, at)
            return fails, holds
        case And(parts):
            each = [may_hold(part, at) for part in parts]
            return all(holds for holds, _ in each), any(fails for _, fails in each)
        case Or(parts):
            each = [may_hold(part, at) for part in parts]
            return any(holds for holds, _ in each), all(fails for _, fails in each)
        case Compare(sign, Variable(name), Constant(value)) if sign in ("==", "!=") and at[name].levels is not None:
            return _level_test(sign == "==", at[name], value)
        case Compare(sign, left, right):
            first, second = _interval(left, at), _interval(right, at)
            return (True, True) if first is None or second is None else _compared(sign, first, second)


def _level_test(is_equal: bool, span: Span, value: Fraction) -> tuple[bool, bool]:
    if span.missing:
        return True, True
    assert span.levels is not None
    equal, other = value in span.levels, bool(span.levels - {int(value)} if value.denominator == 1 else span.levels)
    return (equal, other) if is_equal else (other, equal)


def _compared(sign: str, a: Interval, b: Interval) -> tuple[bool, bool]:
    less, more = a[0] < b[1], a[1] > b[0]  # some pair of values is so
    at_most, at_least = a[0] <= b[1], a[1] >= b[0]
    match sign:
        case "<":
            return less, at_least
        case "<=":
            return at_most, more
        case ">":
            return more, at_most
        case ">=":
            return at_least, less
    meet, apart = at_most and at_least, less or more
    return (meet, apart) if sign == "==" else (apart, meet)


def _interval(expression: Expression, at: dict[str, Span]) -> Interval | None:
    """Return between what the values of an expression lie in a piece; ``None`` where it may not have one."""
    match expression:
        case Constant(value):
            return value, value
        case Variable(name):
            return _values(at[name])
        case Indicator(guard):
            holds, fails = may_hold(guard, at)
            return Fraction(not fails), Fraction(holds)
        case Unary(name, operand):
            inner = _interval(operand, at)
            if inner is None:
                return None
            if name == "neg":
                return -inner[1], -inner[0]
            ends = sorted(map(abs, inner))
            return (Fraction(0) if inner[0] <= 0 <= inner[1] else ends[0]), ends[1]
        case Binary(name, left, right):
            first, second = _interval(left, at), _interval(right, at)
            return None if first is None or second is None else _joined(name, first, second)


def _values(span: Span) -> Interval | None:
    if span.missing or not span.has_values:
        return None
    if span.levels is not None:
        return Fraction(min(span.levels)), Fraction(max(span.levels))
    return Fraction(span.low), Fraction(span.high)


def _joined(name: str, a: Interval, b: Interval) -> Interval | None:
    match name:
        case "+":
            return a[0] + b[0], a[1] + b[1]
        case "-":
            return a[0] - b[1], a[1] - b[0]
        case "min":
            return min(a[0], b[0]), min(a[1], b[1])
        case "max":
            return max(a[0], b[0]), max(a[1], b[1])
        case "/" if b[0] <= 0 <= b[1]:
            return None
    corners = [x * y if name == "*" else x / y for x in a for y in b]
    return min(corners), max(corners)
