"""Rows worth trying: first ones all over the space, then ones nearer than a row that is known to be valid."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from mace.constraints.near_data import Neighbours
from mace.distances import NormMetric
from mace.problem import Problem
from mace.solvers.search.axes import MOST_LISTED, Axes, Floats

VALUES_ALONE, VALUES_IN_EXCHANGE = 24, 6
"""Values of one feature that is changed alone, and of one that is changed in exchange for another."""

ROWS_DRAWN = 400
"""Rows that are drawn at random from the whole space."""

SHRINKS = np.concatenate([[0.0], 1 - 2.0 ** -np.arange(1, 9)])
"""To what share of itself a change is taken back."""

MOST_EXCHANGED = 1000
"""Rows with one change exchanged for another that are tried around one row."""

WALKS = 4
"""In how many orders the changes of a row are undone one after the other."""


class Moves:
    """What to try, drawn with one generator of random numbers."""

    def __init__(self, problem: Problem, axes: Axes, seed: int = 0) -> None:
        self.problem, self.axes, self.rng = problem, axes, np.random.default_rng(seed)
        self._fine = [axis.spread(VALUES_ALONE, self.rng) for axis in axes.each]
        self._coarse = [axis.spread(VALUES_IN_EXCHANGE, self.rng) for axis in axes.each]
        self._places = np.repeat(np.arange(len(axes.each)), [len(values) for values in self._fine])
        self._values = np.concatenate(self._fine)
        self._prices = axes.measures(self.singles())

    # ---- first rows

    def home(self) -> Floats:
        """Return the row itself, as near as constraints on single features allow."""
        return self.axes.home[None, :].copy()

    def singles(self) -> Floats:
        """Return rows with one change."""
        return _together([self._with(self.home(), j, values) for j, values in enumerate(self._fine)], self.home())

    def several(self, count: int, limit: float) -> Floats:
        """Return random rows with several small changes, nearer than a limit: two or more, or of all features."""
        rows = np.repeat(self.home(), count, axis=0)
        cheap = np.flatnonzero(self._prices < limit)
        if not len(cheap):
            return rows[:0]
        sizes = self.rng.choice([2, 2, 3, 4, max(2, rows.shape[1] // 2), rows.shape[1]], count)
        for size in range(int(sizes.max())):
            chosen = np.flatnonzero(sizes > size)
            drawn = self.rng.choice(cheap, len(chosen))
            rows[chosen, self._places[drawn]] = self._values[drawn]
        return rows[self.axes.measures(rows) < limit]

    def every(self) -> Floats:
        """Return every row of a small space; none of a large one."""
        lists = [axis.listed for axis in self.axes.each if axis.listed is not None and not axis.missing]
        if len(lists) < len(self.axes.each) or math.prod(map(len, lists)) > MOST_LISTED:
            return self.home()[:0]
        return np.stack(np.meshgrid(*lists, indexing="ij"), axis=-1).reshape(-1, len(lists))

    def anywhere(self) -> Floats:
        """Return random rows, with few changes or many, and the rows that a condition knows."""
        drawn = np.column_stack([axis.anywhere(ROWS_DRAWN, self.rng) for axis in self.axes.each])
        share = self.rng.uniform(0, 1.2, (ROWS_DRAWN, 1))
        rows = np.where(self.rng.random(drawn.shape) < share, drawn, self.axes.home)
        return _together([rows, *self._known_rows()], self.home())

    def _known_rows(self) -> list[Floats]:
        found = []
        for condition in self.problem.conditions:
            if isinstance(condition, Neighbours):
                rows = condition.numbers[self.rng.permutation(len(condition.numbers))[:ROWS_DRAWN]]
                found.append(np.column_stack([axis.snapped(rows[:, j]) for j, axis in enumerate(self.axes.each)]))
        return found

    def changed(self, row: Floats) -> Floats:
        """Return rows that differ from a row in one value."""
        return _together([self._with(row[None, :], j, values) for j, values in enumerate(self._fine)], row[None, :])

    # ---- rows that are nearer

    def nearer(self, row: Floats) -> Floats:
        """Return rows nearer than a row: with changes undone, taken back in part, or exchanged for others."""
        away = np.flatnonzero(self.axes.away(row))
        shrunk = [self._shrunk(row, int(i)) for i in away]
        exchanged = [
            self._with(less[:2], j, values)
            for i, less in zip(away, shrunk, strict=True)
            for j, values in enumerate(self._fine if len(away) <= 2 else self._coarse)
            if j != i
        ]
        others = self._only_nearer(_together(exchanged, row[None, :]), row)
        if len(others) > MOST_EXCHANGED:
            others = others[self.rng.choice(len(others), MOST_EXCHANGED, replace=False)]
        less = _together([self._walks(row, away), *shrunk, self._scaled(row, SHRINKS)], row[None, :])
        return np.concatenate([self._only_nearer(less, row), others])

    def mutated(self, row: Floats, count: int) -> Floats:
        """Return random rows nearer than a row: some changes undone, one or two others made, or ordered ones moved a little."""
        J = len(self.axes.each)
        rows = np.repeat(row[None, :], count, axis=0)
        undone = self.axes.away(rows) & (self.rng.random(rows.shape) < self.rng.uniform(0.1, 0.9, (count, 1)))
        rows = np.where(undone, self.axes.home, rows)
        for _ in range(2):
            places = self.rng.integers(0, J, count)
            for j, axis in enumerate(self.axes.each):
                chosen = np.flatnonzero(places == j)
                if len(self._fine[j]):
                    rows[chosen, j] = self.rng.choice(self._fine[j], len(chosen))
                if axis.is_ordered:
                    towards = self.axes.home[j] + (rows[chosen, j] - self.axes.home[j]) * self.rng.random(len(chosen))
                    rows[chosen, j] = axis.snapped(towards)
        return self._only_nearer(rows, row)

    def jittered(self, row: Floats, count: int) -> Floats:
        """Return random rows nearer than a row where many small changes cost little: its changes shrunk, and others made beside them."""
        metric = self.problem.metric
        if not isinstance(metric, NormMetric) or not (metric.costs.peak.any() or metric.costs.square.any()):
            return row[None, :][:0]
        rows = self._scaled(row, 1 - 0.5 * self.rng.random(count) ** 2)
        bound = Fraction(float(self.axes.measures(row[None, :])[0]) ** (1 / metric.power))
        chosen = self.rng.random(rows.shape) < self.rng.uniform(0, 1, (count, 1))
        for j, axis in enumerate(self.axes.each):
            if axis.is_ordered and not np.isnan(axis.home):
                reach = float(metric.reach(j, bound)) * float(axis.feature.range)
                moved = axis.snapped(axis.home + self.rng.choice([-1, 1], count) * self.rng.random(count) * reach)
                rows[:, j] = np.where(chosen[:, j], moved, rows[:, j])
        return self._only_nearer(rows, row)

    def _only_nearer(self, rows: Floats, row: Floats) -> Floats:
        found: Floats = rows[self.axes.measures(rows) < self.axes.measures(row[None, :])[0]]
        return found

    def _walks(self, row: Floats, away: np.ndarray) -> Floats:
        """Return what is left of a row while its changes are undone one after the other, in several orders."""
        rows = []
        for _ in range(WALKS if len(away) > 2 else 0):
            here = row.copy()
            for j in self.rng.permutation(away):
                here[j] = self.axes.home[j]
                rows.append(here.copy())
        return np.array(rows).reshape(-1, len(row))

    def _scaled(self, row: Floats, shares: Floats) -> Floats:
        """Return rows with every ordered change taken back to the same share of itself."""
        rows = np.repeat(row[None, :], len(shares), axis=0)
        for j, axis in enumerate(self.axes.each):
            if axis.is_ordered and not np.isnan(row[j] + axis.home):
                rows[:, j] = axis.snapped(axis.home + (row[j] - axis.home) * shares)
        return rows

    def _shrunk(self, row: Floats, j: int) -> Floats:
        """Return rows with one change undone, or taken back in part; the first is without it."""
        axis = self.axes.each[j]
        if not axis.is_ordered or np.isnan(row[j] + axis.home):
            return self._with(row[None, :], j, np.array([axis.home, *(v for v in self._coarse[j] if v != row[j])]))
        return self._with(row[None, :], j, axis.snapped(axis.home + (row[j] - axis.home) * SHRINKS))

    def _with(self, rows: Floats, j: int, values: Floats) -> Floats:
        """Return each row with each value of a feature."""
        found = np.repeat(rows, len(values), axis=0)
        found[:, j] = np.tile(values, len(rows))
        return found


def _together(rows: list[Floats], like: Floats) -> Floats:
    return np.concatenate([like[:0], *rows])
