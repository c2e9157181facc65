"""That boxes leave nothing out: the domain is cut along them until each piece lies in one, is too far, or fails a condition.

Under ``near_data`` the pieces are also branched on whether a row of the data is a neighbour, until too few rows are left that can be.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from mace.certify.boxes.guards import may_hold
from mace.certify.boxes.neighbours import DataRows, NeighbourSet
from mace.certify.boxes.ranges import Piece, Span
from mace.certify.trees.cells import CellAxis, cell_costs, make_axes, on_grid, scales_of, threshold
from mace.certify.verdict import Refuted, Unchecked
from mace.constraints.condition import GuardCondition
from mace.constraints.near_data import Neighbours
from mace.constraints.views import View
from mace.distances import PartsMetric
from mace.exact import Flags, Floats, Ints
from mace.language import syntax
from mace.problem import Problem
from mace.space import Feature, Integer, Point, Real

MOST_REGIONS = 200_000

MOST_DISTANCES = 100_000_000
"""How many changes of single features are measured from rows of data at most."""

Box = tuple[Span | None, ...]
"""A span for each feature; ``None`` where all of the feature's domain is meant."""


Neighbourhood = frozenset[tuple[int, int]]
"""Rows of data that all points of a box are near: the number of each ``near_data``, and the row's."""


def check_cover(problem: Problem, lower: Fraction | None, boxes: list[Box], near: Sequence[Neighbourhood] = ()) -> None:
    """Raise unless it is shown that every row nearer than ``lower`` that fulfils the conditions lies in a box, and is ``near`` its rows."""
    axes = make_axes(problem, [np.empty(0)] * len(problem.space))
    whole = tuple(map(_whole, problem.space.values(), axes))
    if all(not span.is_empty for span in whole):
        full = [tuple(span or every for span, every in zip(box, whole, strict=True)) for box in boxes]
        _Cover(problem, axes, lower, _Boxes(list(problem.space.values()), full, near)).run(whole)


def span_of_levels(levels: Iterable[Any], missing: bool) -> Span:
    """Return a set of levels."""
    return Span(1.0, 0.0, frozenset(map(int, levels)), False, missing)


def _whole(feature: Feature, axis: CellAxis) -> Span:
    """Return the values of a feature that the domain and the conditions on this feature alone leave."""
    if axis.is_set:
        return span_of_levels(axis.low, axis.may_be_missing)
    low, high = (float(axis.low[0]), float(axis.high[-1])) if axis.size else (1.0, 0.0)
    return Span(low, high, None, isinstance(feature, Integer), axis.may_be_missing)


class _Boxes:
    """Boxes as arrays, so that a piece is compared with all of them at once."""

    def __init__(self, features: list[Feature], boxes: list[Piece], near: Sequence[Neighbourhood]) -> None:
        shape = (len(boxes), len(features))
        self.near = near or [frozenset()] * len(boxes)
        self.each = boxes
        self.low: Floats = np.array([[span.low for span in box] for box in boxes]).reshape(shape)
        self.high: Floats = np.array([[span.high for span in box] for box in boxes]).reshape(shape)
        self.missing: Flags = np.array([[span.missing for span in box] for box in boxes], dtype=bool).reshape(shape)
        self.levels: dict[int, Flags] = {}
        for j, feature in enumerate(features):
            if hasattr(feature, "levels"):
                sets = [[k in (box[j].levels or ()) for k in range(len(feature.levels))] for box in boxes]
                self.levels[j] = np.array(sets, dtype=bool).reshape(len(boxes), len(feature.levels))

    def meeting(self, piece: Piece, some: Ints) -> Ints:
        """Return those of some boxes that share something with a piece."""
        for j, span in enumerate(piece):
            if span.levels is not None:
                shares = self.levels[j][some][:, sorted(span.levels)].any(axis=1)
            else:
                shares = np.maximum(self.low[some, j], span.low) <= np.minimum(self.high[some, j], span.high)
            some = some[shares | (self.missing[some, j] & span.missing)]
        return some

    def open_to(self, some: Ints, sets: tuple[NeighbourSet, ...]) -> tuple[Ints, Ints]:
        """Return those of some boxes that hold every point of a piece that has its neighbours, and those that may once these are chosen."""
        if not any(self.near[k] for k in some):
            return some, some
        needed = {(number, int(row)) for number, left in enumerate(sets) for row in left.needed}
        alive = {(number, int(row)) for number, left in enumerate(sets) for row in left.alive}
        may = np.array([self.near[k] <= alive for k in some], dtype=bool)
        now = np.array([self.near[k] <= needed for k in some], dtype=bool)
        return some[now], some[may]

    def left_out(self, piece: Piece, some: Ints) -> Flags:
        """Return the features, boxes x features, of which some boxes do not hold all that a piece does."""
        found = np.zeros((len(some), len(piece)), dtype=bool)
        for j, span in enumerate(piece):
            if span.levels is not None:
                found[:, j] = ~self.levels[j][some][:, sorted(span.levels)].all(axis=1)
            elif span.has_values:
                found[:, j] = (self.low[some, j] > span.low) | (self.high[some, j] < span.high)
            if span.missing:
                found[:, j] |= ~self.missing[some, j]
        return found


class _Cover:
    """Cuts pieces until each is in a box, too far, or fails a condition."""

    def __init__(self, problem: Problem, axes: list[CellAxis], lower: Fraction | None, boxes: _Boxes) -> None:
        assert isinstance(problem.metric, PartsMetric)
        self.problem, self.lower, self.boxes = problem, lower, boxes
        self.names, self.features = list(problem.space), list(problem.space.values())
        self.factual, self.parts = problem.factual, problem.metric.up_to_one()[0].parts
        self.scales = scales_of(problem)
        self.axes, self.limit = axes, threshold(problem, lower)
        self.guards = [condition.guard for condition in problem.conditions if isinstance(condition, GuardCondition)]
        self.rows = [DataRows(problem, each, lower) for each in problem.conditions if isinstance(each, Neighbours)]
        # A condition without a formula is known row by row.
        has_no_formula = any(each.why_not(View.FORMULA, problem.space) for each in problem.conditions)
        self.is_by_row = bool(self.rows) or has_no_formula
        self.asked = sorted({self.names.index(name) for guard in self.guards for name in syntax.variables(guard)})
        self.known: dict[tuple[int, Span], list[tuple[int, int]]] = {}
        self.narrowed: dict[tuple[int, Span], Span] = {}

    def run(self, whole: Piece) -> None:
        every = np.arange(len(self.boxes.each))
        pending = [(whole, every, tuple(rows.start() for rows in self.rows))]
        pieces = distances = 0
        while pending:
            piece, near, sets = pending.pop()
            pieces += 1
            distances += len(piece) * sum(len(rows_left.alive) for rows_left in sets)
            if pieces > MOST_REGIONS or distances > MOST_DISTANCES:
                raise Unchecked(f"whether the boxes cover the domain is not clear after {pieces:,} pieces")
            piece = tuple(map(self._on_grid, range(len(piece)), piece))
            if self._cost(piece) >= self.limit or self._fails(piece):
                continue
            left = self._with_neighbours(piece, sets)
            if left is None:
                continue
            piece, sets = left
            now, near = self.boxes.open_to(self.boxes.meeting(piece, near), sets)
            outside = self.boxes.left_out(piece, now)
            if not outside.any(axis=1).all():
                continue
            choices = self._choices(sets)
            if choices:
                pending += [(piece, near, choice) for choice in choices]
                continue
            cut = self._along_a_box(piece, now, outside) if len(now) else self._somewhere(piece)
            pending += [(part, near, sets) for part in cut]

    # ---- neighbours

    def _with_neighbours(
        self, piece: Piece, sets: tuple[NeighbourSet, ...]
    ) -> tuple[Piece, tuple[NeighbourSet, ...]] | None:
        """Return the part of a piece whose rows may have enough neighbours; ``None`` where no row may."""
        kept = []
        for rows, rows_left in zip(self.rows, sets, strict=True):
            settled = rows.settled(piece, rows_left)
            if settled is None:
                return None
            piece, left = settled
            kept.append(left)
        return tuple(map(self._on_grid, range(len(piece)), piece)), tuple(kept)

    def _choices(self, sets: tuple[NeighbourSet, ...]) -> list[tuple[NeighbourSet, ...]]:
        """Branch on whether a row of the data is a neighbour: return what is known either way; nothing once all neighbours are chosen."""
        for number, (rows, rows_left) in enumerate(zip(self.rows, sets, strict=True)):
            choices = rows.branch(rows_left)
            if choices is not None:
                return [(*sets[:number], choice, *sets[number + 1 :]) for choice in choices]
        return []

    # ---- cuts

    def _on_grid(self, j: int, span: Span) -> Span:
        """Return a span of numbers as narrow as the values in it: whole ones, those of a grid, and the factual's own."""
        feature, own = self.features[j], self.factual[j]
        if span.levels is not None or not span.has_values or not isinstance(feature, Real | Integer):
            return span
        if not feature.step and not span.is_whole and not (isinstance(feature, Real) and feature.is_single):
            return span
        if (j, span) not in self.narrowed:
            low, high = (float(ends[0]) for ends in on_grid(feature, np.array([span.low]), np.array([span.high])))
            if own is not None and span.low <= own <= span.high:
                low, high = min(low, own), max(high, own)
            low, high = (low, high) if low <= high else (1.0, 0.0)
            self.narrowed[j, span] = replace(span, low=low, high=high)
        return self.narrowed[j, span]

    def _along_a_box(self, piece: Piece, near: Ints, outside: Flags) -> list[Piece]:
        """Return the piece cut along the box that most of it lies in."""
        which = int(np.argmin(outside.sum(axis=1)))
        box, open_ = self.boxes.each[near[which]], np.flatnonzero(outside[which]).tolist()
        # A feature of the conditions first: what is cut off may fail one.
        j = next((j for j in open_ if j in self.asked), open_[0])
        spans = [piece[j].inside(box[j]), *piece[j].outside(box[j])]
        return [(*piece[:j], span, *piece[j + 1 :]) for span in spans if not span.is_empty]

    def _somewhere(self, piece: Piece) -> list[Piece]:
        """Return the two halves of a piece that no box meets; nothing where it is a single row that is refused. Raise where it cannot be
        halved and holds a row that the boxes leave out."""
        for j in self.asked:
            parts = self._own_apart(j, piece[j])
            if len(parts) > 1:
                return [(*piece[:j], span, *piece[j + 1 :]) for span in parts]
        asked = range(len(piece)) if self.is_by_row else self.asked
        sizes = {j: self._size(j, piece[j]) for j in asked}
        for j in sorted(sizes, key=lambda j: -sizes[j]):
            parts = piece[j].halves()
            if len(parts) > 1:
                return [(*piece[:j], span, *piece[j + 1 :]) for span in parts]
        if self._is_refused(piece):
            return []
        shown = ", ".join(
            f"{name} {self._shown(span)}" for name, span in zip(self.names, piece, strict=True) if not span.missing
        )
        raise Refuted(f"evidence.boxes: rows that fulfil the conditions lie in no box: {shown:.300}")

    def _is_refused(self, piece: Piece) -> bool:
        """Return whether a piece is a single row, which is not plausible or not nearer than ``lower``, in fractions."""
        values = [_only(span, feature) for span, feature in zip(piece, self.features, strict=True)]
        if any(value is False for value in values):
            return False
        point: Point = tuple(None if value is False else value for value in values)
        if not self.problem.is_plausible(point):
            return True
        metric = self.problem.metric
        return self.lower is not None and metric.measure(point) >= self.lower**metric.power

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

    # ---- what closes a piece

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
        if (j, span) in self.known:
            return self.known[j, span]
        axis = self.axes[j]
        if span.levels is not None:
            meets = np.isin(axis.low, list(span.levels))
            add, top = axis.add[meets], axis.top[meets]
        else:
            meets = (axis.high >= span.low) & (axis.low <= span.high)
            low, high = np.maximum(axis.low[meets], span.low), np.minimum(axis.high[meets], span.high)
            add, top = cell_costs(self.features[j], self.factual[j], self.parts[j], low, high, self.scales[j])
        self.known[j, span] = [(int(add.min()), int(top.min()))] if meets.any() else []
        return self.known[j, span]

    def _fails(self, piece: Piece) -> bool:
        """Return whether no row of a piece fulfils all conditions."""
        at = dict(zip(self.names, piece, strict=True))
        return any(not may_hold(guard, at)[0] for guard in self.guards)


def _only(span: Span, feature: Feature) -> float | int | bool | None:
    """Return the only value of a span, ``None`` where it is missing; ``False`` where there are several."""
    if not span.has_values:
        return None
    values = sorted(span.levels) if span.levels is not None else [span.low, span.high]
    if span.missing or values[0] != values[-1]:
        return False
    return float(values[0]) if isinstance(feature, Real) else int(values[0])
