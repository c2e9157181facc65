"""One question over a grid: what each feature may be, where conditions tell cells apart, and the arrays that the kernels read."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mace.constraints.differ import CountDifferent
from mace.problem import Problem
from mace.solvers.domains import Allowed, Span, alike, ends, values_in
from mace.solvers.trees.grid import Floats, Grid, Ints
from mace.space import Categorical, Feature, Integer, Real, Value


@dataclass(frozen=True, slots=True)
class CellRefinement:
    """The cells of one question, a refinement of the grid's.

    Attributes
    ----------
    off, low, high
        As in the grid.
    base : int array
        The grid's cell that each cell is part of.
    start : int array
        For each boundary of the grid's cells, the first cell at or after it.
    start_off : int array
        Where each feature's boundaries begin in ``start``.
    differs : int8 array, conditions x cells
        Where a cell counts as different from an earlier counterfactual.
    cut : uint8 array
        1 where a cell must not be merged with the one before it.
    """

    off: Ints
    low: Floats
    high: Floats
    base: Ints
    start: Ints
    start_off: Ints
    differs: NDArray[np.int8]
    cut: NDArray[np.uint8]


def plain_view(grid: Grid) -> CellRefinement:
    """Return the view of a question whose conditions cut no cell."""
    cells = np.diff(grid.off)
    base = np.concatenate([np.arange(n) for n in cells]).astype(np.int64)
    start = np.concatenate([np.arange(n + 1) for n in cells]).astype(np.int64)
    start_off = np.concatenate([[0], np.cumsum(cells + 1)]).astype(np.int64)
    none = np.zeros((0, len(base)), dtype=np.int8)
    return CellRefinement(
        grid.off, grid.low, grid.high, base, start, start_off, none, np.zeros(len(base), dtype=np.uint8)
    )


def refined_view(
    grid: Grid, problem: Problem, allowed: list[Allowed], conditions: list[CountDifferent]
) -> CellRefinement:
    """Return the view whose cells are cut at the ends of what is allowed and of what counts as alike."""
    lows, highs, bases, differs, cuts, starts = [], [], [], [], [], []
    for j, feature in enumerate(problem.space.values()):
        low, high = grid.low[grid.off[j] : grid.off[j + 1]], grid.high[grid.off[j] : grid.off[j + 1]]
        same = [alike(feature, j, condition) for condition in conditions]
        base = np.arange(len(low))
        if not grid.is_mask[j]:
            low, high, base = _cut(feature, problem.factual[j], low, high, allowed[j].spans, same)
        lows.append(low)
        highs.append(high)
        bases.append(base)
        flags = [
            np.ones(len(low), dtype=np.int8) if span is None else ((low < span[0]) | (high > span[1])).astype(np.int8)
            for span in same
        ]
        differs.append(np.array(flags, dtype=np.int8).reshape(len(conditions), len(low)))
        changes = [np.concatenate([[0], np.diff(flag) != 0]) for flag in flags]
        cuts.append(
            np.max(changes, axis=0).astype(np.uint8) if changes and len(low) else np.zeros(len(low), dtype=np.uint8)
        )
        starts.append(np.searchsorted(base, np.arange(grid.off[j + 1] - grid.off[j] + 1)))
    return CellRefinement(
        off=np.concatenate([[0], np.cumsum([len(low) for low in lows])]).astype(np.int64),
        low=np.concatenate(lows),
        high=np.concatenate(highs),
        base=np.concatenate(bases).astype(np.int64),
        start=np.concatenate(starts).astype(np.int64),
        start_off=np.concatenate([[0], np.cumsum([len(start) for start in starts])]).astype(np.int64),
        differs=np.concatenate(differs, axis=1),
        cut=np.concatenate(cuts),
    )


def _cut(
    feature: Feature, own: Value, low: Floats, high: Floats, spans: tuple[Span, ...], same: list[Span | None]
) -> tuple[Floats, Floats, Ints]:
    """Return the parts of the cells inside the spans, cut at the ends of what counts as alike."""
    ends = sorted({end for span in same if span is not None for end in (span[0], math.nextafter(span[1], math.inf))})
    lows, highs, bases = [], [], []
    for first, last in spans:
        begins = [first, *(end for end in ends if first < end <= last)]
        stops = [*(math.nextafter(end, -math.inf) for end in begins[1:]), last]
        for begin, stop in zip(begins, stops, strict=True):
            inside = np.flatnonzero((high >= begin) & (low <= stop))
            a, b = np.maximum(low[inside], begin), np.minimum(high[inside], stop)
            a, b = _reachable(feature, own, a, b)
            kept = a <= b
            lows.append(a[kept])
            highs.append(b[kept])
            bases.append(inside[kept])
    if not sum(map(len, lows)):
        # A feature without an allowed value keeps one empty cell, which is used where the feature is missing.
        return np.array([np.inf]), np.array([-np.inf]), np.zeros(1, dtype=np.int64)
    return np.concatenate(lows), np.concatenate(highs), np.concatenate(bases).astype(np.int64)


def _reachable(feature: Feature, own: Value, a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Return ranges shrunk to the feature's values, its own among them."""
    if isinstance(feature, Real) and feature.step is None and not feature.is_single:
        return a, b
    low, high = values_in(feature, a, b) if isinstance(feature, Real | Integer) else (np.ceil(a), np.floor(b))
    if own is not None:
        home = (a <= own) & (own <= b)
        low, high = np.where(home, np.minimum(low, own), low), np.where(home, np.maximum(high, own), high)
    return low, high


def _has_gaps(feature: Feature) -> bool:
    """Return whether some floats in the range of a number are no values of it."""
    return isinstance(feature, Real | Integer) and (
        feature.step is not None or (isinstance(feature, Real) and feature.is_single)
    )


def needs_refining(allowed: list[Allowed], problem: Problem, conditions: list[CountDifferent]) -> bool:
    """Return whether the grid's own cells do not suffice: several spans for one feature, diversity, or a bound inside a stepped cell."""
    if conditions:
        return True
    for feature, each in zip(problem.space.values(), allowed, strict=True):
        if isinstance(feature, Categorical) or len(each.spans) == 0:
            continue
        if len(each.spans) > 1:
            return True
        if _has_gaps(feature) and each.spans[0] != ends(feature):
            return True
    return False
