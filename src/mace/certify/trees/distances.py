"""Limits on distances from given rows: whether a box of cells leaves room for enough near rows, or to be far from an earlier answer."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from mace.certify.trees.cells import CellAxis
from mace.certify.trees.neighbours import DataRows, is_same
from mace.certify.trees.ranges import Piece, Span
from mace.constraints.differ import FarFrom
from mace.constraints.near_data import Neighbours
from mace.distances.change import change, written_room
from mace.distances.norm import Parts
from mace.exact import Flags
from mace.problem import Problem
from mace.space import Feature, Integer, Value


class DistanceLimits:
    """The limits on distances of a question, of the rows nearer than ``lower``."""

    def __init__(self, problem: Problem, lower: Fraction | None) -> None:
        self.features = list(problem.space.values())
        conditions = problem.conditions
        self.near = [DataRows(problem, each, lower) for each in conditions if isinstance(each, Neighbours)]
        self.far = [EarlierRow(problem, each, lower) for each in conditions if isinstance(each, FarFrom)]

    @property
    def is_given(self) -> bool:
        """Whether there are any."""
        return bool(self.near or self.far)

    def may_hold(self, axes: list[CellAxis], missing: Flags, cells: list[Flags]) -> bool:
        """Return whether some point of a box of cells may fulfil every limit, each taken alone."""
        if any(not lost and not kept.any() for lost, kept in zip(missing, cells, strict=True)):
            return False
        piece = tuple(
            _span(feature, axis, bool(lost), kept)
            for feature, axis, lost, kept in zip(self.features, axes, missing, cells, strict=True)
        )
        return all(row.may_count(piece) for row in self.far) and all(rows.may_count(piece) for rows in self.near)


def _span(feature: Feature, axis: CellAxis, is_missing: bool, kept: Flags) -> Span:
    if is_missing:
        return Span(1.0, 0.0, frozenset() if axis.is_set else None, isinstance(feature, Integer), True)
    if axis.is_set:
        return Span(1.0, 0.0, frozenset(map(int, axis.low[kept])), True, False)
    places = np.flatnonzero(kept)
    return Span(float(axis.low[places[0]]), float(axis.high[places[-1]]), None, isinstance(feature, Integer), False)


class EarlierRow:
    """An earlier answer, and how far from it every row must be; exactly."""

    def __init__(self, problem: Problem, condition: FarFrom, lower: Fraction | None) -> None:
        self.features = list(problem.space.values())
        self.earlier, self.factual = condition.earlier, problem.factual
        self.parts = condition.metric.parts
        off = max(map(written_room, self.features)) if condition.written else Fraction(0)
        self.limit = max(condition.radius - off, Fraction(0)) ** condition.metric.power
        self.is_max = any(part.peak for part in self.parts)
        is_sum = any(part.jump or part.slope or part.square for part in self.parts)
        comparable = is_same(problem.metric, condition.metric) and condition.metric.power == 1
        self.lower = lower if comparable and not (self.is_max and is_sum) else None

    def may_count(self, piece: Piece) -> bool:
        """Return whether some point of a piece that is nearer than ``lower`` may be far enough."""
        rows = zip(self.features, piece, self.earlier, self.factual, self.parts, strict=True)
        gains: list[Fraction] = []
        total = peak = Fraction(0)
        for feature, span, earlier, own, part in rows:
            ends = _ends(feature, span)
            most = max(change(feature, value, earlier) for value in ends)
            total += _of_sum(part, most)
            peak = max(peak, part.peak * most)
            if self.lower is not None:
                gains.append(self._gain(feature, span, ends, earlier, own, part))
        if total + peak < self.limit:
            return False
        if self.lower is None:
            return True
        return self.limit - (max(gains) if self.is_max else sum(gains, Fraction(0))) < self.lower

    def _gain(
        self, feature: Feature, span: Span, ends: Sequence[Value], earlier: Value, own: Value, part: Parts
    ) -> Fraction:
        """Return by how much, at most, a value of a span is farther from the earlier row than from the factual.

        Of an ordered feature without jumps that is a monotone function, greatest at the value nearest to the factual.
        """

        def adds(value: Value, other: Value) -> Fraction:
            delta = change(feature, value, other)
            return part.peak * delta if self.is_max else _of_sum(part, delta)

        if span.levels is not None or span.missing or own is None:
            return max(adds(value, earlier) - adds(value, own) for value in ends)
        near = min(max(own, ends[0]), ends[-1])  # type: ignore[type-var]
        if not part.jump:
            return adds(near, earlier) - adds(near, own)
        return min(max(adds(value, earlier) for value in ends) - adds(near, own), adds(own, earlier))


def _of_sum(part: Parts, delta: Fraction) -> Fraction:
    return (part.jump if delta else Fraction(0)) + (part.slope + part.square * delta) * delta


def _ends(feature: Feature, span: Span) -> Sequence[Value]:
    """Return the values of a span among which the one farthest from any other is."""
    if span.missing:
        return [None]
    if span.levels is not None:
        return sorted(span.levels)
    return [int(end) if isinstance(feature, Integer) else end for end in (span.low, span.high)]
