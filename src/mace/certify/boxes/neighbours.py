"""The checker's view of ``near_data``: which rows of a data set may lie within the radius of a piece of the domain.

A row is ruled out where its least distance from the piece is above the radius. Where the distance from the data is the one that is
minimised, a row is also ruled out where every way from the factual over the piece to the row is at least ``lower`` plus the radius long:
over a point that is nearer than ``lower`` and has the row as a neighbour, the way is shorter. Once a row must be a neighbour, rows
farther from it than twice the radius are ruled out. Costs are whole numbers of 2^-58, rounded
down, so that no row is ruled out that may count.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from mace.certify.boxes.ranges import Piece, Span
from mace.certify.trees.cells import SCALE, change_costs, rounded_down
from mace.certify.verdict import Unchecked
from mace.constraints.near_data import Neighbours
from mace.distances import NormMetric
from mace.distances.change import written_room
from mace.distances.norm import Parts
from mace.exact import Flags, Floats, Ints
from mace.problem import Problem
from mace.space import Categorical, Feature, Point

LARGEST_WHOLE = 2.0**53
"""Whole numbers up to this are floats."""

BEYOND_EVERY_DISTANCE = 4 * SCALE
"""More than any distance costs, and more than any two distances cost together."""

COARSE = SCALE // 2**40
"""In these units rows that are equally far are, however their costs were rounded; the search takes them in the same order."""

MORE = 1 + 2.0**-40
LESS = 1 - 2.0**-40
"""A reach is made of a few roundings, each of at most 2^-53 of it."""


@dataclass(frozen=True, slots=True)
class NeighbourSet:
    """What is known of the rows of one ``near_data`` on a piece.

    Attributes
    ----------
    alive : int array
        The rows that may be neighbours of a point of the piece.
    needed : int array
        Those among them that must be.
    """

    alive: Ints
    needed: Ints


class DataRows:
    """The rows of one ``near_data``, and the costs from them to pieces."""

    def __init__(self, problem: Problem, condition: Neighbours, lower: Fraction | None) -> None:
        metric, unit = condition.metric.up_to_one()
        self.least = condition.least
        self.features: list[Feature] = list(problem.space.values())
        self.parts: tuple[Parts, ...] = metric.parts
        self.numbers = np.array([_floats(row) for row in condition.rows])
        off = max(map(written_room, self.features)) if condition.written else Fraction(0)
        self.limit = min(math.floor(((condition.radius + off) / unit) ** metric.power * SCALE), BEYOND_EVERY_DISTANCE)
        self.way: int | None = None
        if lower is not None and _is_same(problem.metric, condition.metric):
            self.way = min(
                math.ceil(((lower + condition.radius + off) / unit) ** metric.power * SCALE), BEYOND_EVERY_DISTANCE
            )
        self.is_linear = metric.power == 1
        own = np.array([_floats(problem.factual)])
        each = [self._between(j, own[0, j], np.arange(len(self.numbers))) for j in range(len(self.features))]
        self.home_add, self.home_top = (np.column_stack([pair[part] for pair in each]) for part in (0, 1))
        self.home = own[0]
        home = self.home_add.sum(axis=1) + self.home_top.max(axis=1)
        self.order = np.argsort((home + COARSE // 2) // COARSE, kind="stable")

    def start(self) -> NeighbourSet:
        """Return every row as one that may be a neighbour, and none as one that must be."""
        return NeighbourSet(self.order, np.empty(0, dtype=np.int64))

    def settled(self, piece: Piece, rows_left: NeighbourSet) -> tuple[Piece, NeighbourSet] | None:
        """Return the part of a piece, or a little more, that may have enough neighbours, and its rows; ``None`` where there is none."""
        add, top = self._from_rows(piece, rows_left.alive)
        total, peak = add.sum(axis=1), top.max(axis=1)
        near = total + peak <= self.limit
        if self.way is not None:
            near &= self._ways(piece, rows_left.alive, add, top) < self.way
        alive = rows_left.alive[near]
        if len(alive) < self.least or not np.isin(rows_left.needed, alive).all():
            return None
        needed = alive if len(alive) == self.least else rows_left.needed
        budget = self.limit - (total[near][:, None] - add[near])
        groups = [np.flatnonzero(alive == row) for row in needed]
        if len(needed) < self.least:
            groups.append(np.arange(len(alive)))
        spans = list(piece)
        for group in groups:
            for j in range(len(spans)):
                spans[j] = self._within(j, spans[j], self.numbers[alive[group], j], budget[group, j])
                if spans[j].is_empty:
                    return None
        return tuple(spans), NeighbourSet(alive, needed)

    def branch(self, rows_left: NeighbourSet) -> tuple[NeighbourSet, NeighbourSet] | None:
        """Branch on the row nearest to the factual: it is a neighbour, or it is not. ``None`` once there are enough neighbours."""
        if len(rows_left.needed) >= self.least:
            return None
        row = next(row for row in rows_left.alive if row not in rows_left.needed)
        with_row = NeighbourSet(rows_left.alive[self._meet(row, rows_left.alive)], np.append(rows_left.needed, row))
        return with_row, replace(rows_left, alive=rows_left.alive[rows_left.alive != row])

    def _meet(self, row: int, others: Ints) -> Flags:
        """Return which of some rows may have a neighbour in common with one of them: those within twice the radius."""
        if not self.is_linear:
            return np.ones(len(others), dtype=bool)
        each = [self._between(j, self.numbers[row, j], others) for j in range(len(self.features))]
        add, top = (np.column_stack([pair[part] for pair in each]) for part in (0, 1))
        # The limit is rounded down, by less than 1.
        return np.asarray(add.sum(axis=1) + top.max(axis=1) <= 2 * (self.limit + 1))

    # ---- costs

    def _from_rows(self, piece: Piece, rows: Ints) -> tuple[Ints, Ints]:
        """Return the least that each feature costs from each row to a piece, in the sum and in the maximum."""
        each = [self._costs(j, self.numbers[rows, j], span) for j, span in enumerate(piece)]
        return np.column_stack([add for add, _ in each]), np.column_stack([top for _, top in each])

    def _ways(self, piece: Piece, rows: Ints, add: Ints, top: Ints) -> Ints:
        """Return the least cost of the way from the factual over a piece to each row: the triangle inequality, feature by feature."""
        home_add, home_top = self.home_add[rows], self.home_top[rows]
        if self.is_linear:
            first = [self._costs(j, self.home[j : j + 1], span) for j, span in enumerate(piece)]
            home_add = np.maximum(home_add, add + np.array([int(part[0]) for part, _ in first]))
            home_top = np.maximum(home_top, top + np.array([int(part[0]) for _, part in first]))
        found: Ints = home_add.sum(axis=1) + home_top.max(axis=1)
        return found

    def _costs(self, j: int, own: Floats, span: Span) -> tuple[Ints, Ints]:
        """Return the least cost of one feature between numbers and a span."""
        deltas = _changes(self.features[j], own, span)
        return change_costs(self.parts[j], deltas, deltas > 0)

    def _between(self, j: int, own: float, rows: Ints) -> tuple[Ints, Ints]:
        """Return what one feature costs at least on any way between a number and some rows; over a missing value a way is 2 long."""
        feature = self.features[j]
        deltas = _changes(feature, np.asarray(own), self.numbers[rows, j])
        deltas = np.minimum(deltas, 2.0) if feature.missing else deltas
        return change_costs(self.parts[j], deltas, deltas > 0)

    # ---- narrowing

    def _within(self, j: int, span: Span, own: Floats, budget: Ints) -> Span:
        """Return what is left of a span within what some rows may spend on the feature; all of it where that allows a change of 1."""
        reach = _reach(self.parts[j], budget)
        if (reach >= 1).any():
            return span
        feature, known = self.features[j], ~np.isnan(own)
        if known.all():
            span = replace(span, missing=False)
        own, reach = own[known], reach[known]
        if not len(own):
            return replace(span.only_missing(), missing=span.missing)
        if feature.range == 0:
            return span
        width = reach * float(feature.range) * MORE
        if span.levels is None:
            low, high = np.nextafter(own - width, -np.inf).min(), np.nextafter(own + width, np.inf).max()
            return replace(span, low=max(span.low, float(low)), high=min(span.high, float(high)))
        if isinstance(feature, Categorical):
            width = np.zeros(len(own))
        kept = frozenset(k for k in span.levels if (np.abs(own - k) <= width).any())
        return replace(span, levels=kept)


def _is_same(metric: object, own: NormMetric) -> bool:
    """Return whether the distance that is minimised is the one of the data."""
    return isinstance(metric, NormMetric) and (metric.norms, metric.weights) == (own.norms, own.weights)


def _floats(row: Point) -> list[float]:
    if any(value is not None and abs(value) > LARGEST_WHOLE for value in row):
        raise Unchecked("a whole number of near_data is too large for floats")
    return [math.nan if value is None else float(value) for value in row]


def _changes(feature: Feature, own: Floats, other: Span | Floats) -> Floats:
    """Return the least change δ, to within three roundings, between numbers and a span, or between a number and numbers; NaN is missing."""
    lost = np.isnan(own)
    if not isinstance(other, Span):
        apart = (own != other).astype(np.float64) if isinstance(feature, Categorical) else np.abs(own - other)
        moved = _share(feature, apart)
        return np.where(lost | np.isnan(other), (lost != np.isnan(other)).astype(np.float64), moved)
    if not other.has_values:
        moved = np.ones(len(own))
    elif other.levels is not None:
        levels = np.array(sorted(other.levels), dtype=np.float64)
        apart = np.abs(own[:, None] - levels[None, :]).min(axis=1)
        moved = _share(feature, np.minimum(apart, 1.0) if isinstance(feature, Categorical) else apart)
    else:
        moved = _share(feature, np.maximum(np.maximum(other.low - own, own - other.high), 0.0))
    return np.where(lost, 0.0, np.minimum(moved, 1.0)) if other.missing else np.where(lost, 1.0, moved)


def _share(feature: Feature, apart: Floats) -> Floats:
    if feature.range == 0:
        return np.zeros_like(apart)
    return apart if isinstance(feature, Categorical) else apart / float(feature.range)


def _reach(parts: Parts, budget: Ints) -> Floats:
    """Return the greatest change of a feature that costs no more than a budget, or a little more than that."""
    jump, slope, square, peak = rounded_down(parts)
    # One unit more, for the budget itself as a float.
    left = np.maximum((budget + 1) / SCALE * MORE - jump, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        if slope + peak > 0:
            reach = left / ((slope + peak) * LESS)
        elif square > 0:
            reach = np.sqrt(left / square)
        else:
            reach = np.full(len(left), np.inf)
    can_change: Flags = math.floor(parts.jump * SCALE) <= budget
    return np.where(can_change, reach * MORE, 0.0)
