"""The values that a search tries: for each feature those that it may take, and rows of them as arrays of floats, NaN where missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mace.constraints.views import View
from mace.problem import Problem
from mace.solvers.domains import Allowed, allowed_values, values_between
from mace.space import Categorical, Feature, Integer, Point, Real, Value, grid_values

Floats = NDArray[np.float64]

MOST_LISTED = 4096
"""A feature with more values, or a space with more rows, than this is not listed one by one."""

STEP_HALVINGS = 12
"""How often the greatest step away from the row is halved."""


class Axis:
    """The values of one feature.

    Attributes
    ----------
    home : float
        The row's own value, or where that is not allowed the nearest one that is.
    is_ordered : bool
        Whether a value between two others is nearer than the farther one.
    """

    def __init__(self, feature: Feature, own: Value, allowed: Allowed) -> None:
        self.feature, self.missing = feature, allowed.missing
        self.is_ordered = not isinstance(feature, Categorical)
        self.listed: Floats | None = None
        spans = allowed.spans
        if isinstance(feature, Real | Integer):
            spans = tuple(span for ends in spans if (span := values_between(feature, *ends, own)) is not None)
        if feature.size is not None and feature.size <= MOST_LISTED:
            values = {float(value) for value in grid_values(feature)} | ({float(own)} if own is not None else set())
            self.listed = np.array(sorted(v for v in values if any(low <= v <= high for low, high in spans)))
            spans = ((self.listed[0], self.listed[-1]),) if len(self.listed) else ()
        self.lows, self.highs = np.array(spans, dtype=np.float64).reshape(-1, 2).T
        self.is_empty = not len(self.lows) and not self.missing
        self.own = np.nan if own is None else float(own)
        self.home = self._home()

    def _home(self) -> float:
        if not len(self.lows) or (np.isnan(self.own) and self.missing):
            return np.nan
        return float(self.lows[0]) if np.isnan(self.own) else float(self.snapped(np.array([self.own]))[0])

    def snapped(self, numbers: Floats) -> Floats:
        """Return the value nearest to each number; NaN stays."""
        found = np.array(numbers, dtype=np.float64)
        numbered = ~np.isnan(found)
        if not len(self.lows) or not numbered.any():
            return found
        asked = found[numbered]
        if self.listed is not None:
            after = np.clip(np.searchsorted(self.listed, asked), 1, max(1, len(self.listed) - 1))
            below, above = self.listed[after - 1], self.listed[np.minimum(after, len(self.listed) - 1)]
            found[numbered] = np.where(asked - below <= above - asked, below, above)
            return found
        inside = np.clip(asked[:, None], self.lows, self.highs)
        nearest = np.abs(inside - asked[:, None]).argmin(axis=1)
        chosen = inside[np.arange(len(inside)), nearest]
        found[numbered] = np.clip(self._on_grid(chosen), self.lows[nearest], self.highs[nearest])
        return found

    def _on_grid(self, numbers: Floats) -> Floats:
        """Return the nearest numbers of the feature's grid or dtype; the row's own is on it."""
        feature = self.feature
        assert isinstance(feature, Real | Integer)
        if isinstance(feature, Real) and feature.step is None:
            with np.errstate(over="ignore", under="ignore"):
                return numbers.astype(feature.floats).astype(np.float64)
        step = float(feature.step or 1)
        places = np.round((numbers - float(feature.low)) / step)
        return np.array(
            [n if n == self.own else float(feature.value_at(int(k))) for n, k in zip(numbers, places, strict=True)]
        )

    def spread(self, most: int, rng: np.random.Generator) -> Floats:
        """Return at most so many values other than home: levels as they come, numbers in ever smaller steps from home."""
        if self.listed is not None and len(self.listed) <= most:
            found = self.listed
        elif not self.is_ordered and self.listed is not None:
            found = rng.choice(self.listed, most, replace=False)
        elif not len(self.lows):
            found = np.empty(0)
        else:
            low, high = float(self.lows.min()), float(self.highs.max())
            middle = (low + high) / 2 if np.isnan(self.home) else self.home
            sides = [side for side in (high - middle, low - middle) if side]
            shares = 2.0 ** -np.linspace(0, STEP_HALVINGS, max(1, most // max(1, len(sides))))
            found = self.snapped(np.concatenate([[middle], *(middle + shares * side for side in sides)]))
        found = np.unique(found[found != self.home])
        return np.append(found, np.nan) if self.missing and not np.isnan(self.home) else found

    def anywhere(self, count: int, rng: np.random.Generator) -> Floats:
        """Return random values."""
        if not len(self.lows):
            return np.full(count, np.nan)
        found = self.snapped(rng.uniform(self.lows.min(), self.highs.max(), count))
        if self.listed is not None:
            found = rng.choice(self.listed, count)
        if self.missing:
            found[rng.random(count) < 1 / 8] = np.nan
        return found


class Axes:
    """The features of a problem; rows are arrays of their values."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        alone = tuple(each for each in problem.conditions if not each.why_not(View.DOMAINS, problem.space))
        allowed = allowed_values(replace(problem, conditions=alone))
        triples = zip(problem.space.values(), problem.factual, allowed, strict=True)
        self.each = [Axis(*triple) for triple in triples]
        self.home = np.array([axis.home for axis in self.each])
        self.own = np.array([axis.own for axis in self.each])
        self._widths = np.array([float(feature.range) or np.inf for feature in problem.space.values()])
        self._ordered = np.array([axis.is_ordered for axis in self.each])
        self._whole = [not isinstance(feature, Real) for feature in problem.space.values()]

    @property
    def is_empty(self) -> bool:
        """Whether some feature has no value that is allowed."""
        return any(axis.is_empty for axis in self.each)

    def away(self, rows: Floats) -> NDArray[np.bool_]:
        """Return which values of rows are not home."""
        found: NDArray[np.bool_] = (rows != self.home) & ~(np.isnan(rows) & np.isnan(self.home))
        return found

    def measures(self, rows: Floats) -> Floats:
        """Return the distance of each row from the factual, for l2 its square, in floats."""
        gone, was = np.isnan(rows), np.isnan(self.own)
        with np.errstate(invalid="ignore"):
            moved = np.where(self._ordered, np.abs(rows - self.own) / self._widths, rows != self.own)
        changes = np.where(gone | was, gone != was, moved).astype(np.float64)
        found = self.problem.metric.floats(changes)
        if found is None:
            found = np.array([float(self.problem.metric.measure(point)) for point in self.points(rows)])
        return found

    def points(self, rows: Floats) -> list[Point]:
        """Return rows as points."""
        return [self.point(row) for row in rows.tolist()]

    def point(self, row: Sequence[float]) -> Point:
        """Return a row as a point."""
        return tuple(
            None if value != value else int(value) if is_whole else value
            for value, is_whole in zip(row, self._whole, strict=True)
        )
