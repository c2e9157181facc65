"""The grid: every feature's domain cut into cells at each value where some tree changes its mind.

Made once for a model. Ordered cells keep the least and the greatest value of the domain inside them; cells without
any value (between two integers, say) are left out, so every cell can be reached.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mace.forms import TreeEnsemble
from mace.solvers.domains import values_in
from mace.solvers.trees.kernels import Trees
from mace.space import Categorical, Integer, Ordinal, Real

BITS_OF_A_SET = 62
TINY_RANGE = 1e-290

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Grid:
    """A tree ensemble over cells.

    Attributes
    ----------
    off : int array
        Where each feature's cells begin in the joined arrays.
    low, high : float arrays
        The least and the greatest value in each cell; for a mask feature the level's position.
    is_mask : bool array
        Which features are sets of levels rather than ranges of cells.
    feature, bound, subset, left, right, missing_left : arrays, one entry a node
        The ensemble, its splits in cells.
    depth : int
        The depth of the deepest tree.
    """

    off: Ints
    low: Floats
    high: Floats
    is_mask: NDArray[np.bool_]
    feature: Ints
    bound: Ints
    subset: Ints
    left: Ints
    right: Ints
    missing_left: NDArray[np.bool_]
    roots: Ints
    depth: int

    def trees(self, most: Floats, least: Floats) -> Trees:
        """Return the ensemble with the most and the least that its leaves add to some margins."""
        return Trees(
            self.roots, self.feature, self.bound, self.subset, self.left, self.right, self.missing_left, most, least
        )


_UNSUPPORTED: weakref.WeakKeyDictionary[TreeEnsemble, str] = weakref.WeakKeyDictionary()


def unsupported(form: TreeEnsemble) -> str:
    """Return why the grid of an ensemble cannot be made; empty where it can."""
    found = _UNSUPPORTED.get(form)
    if found is None:
        found = _UNSUPPORTED[form] = _why_unsupported(form)
    return found


def _why_unsupported(form: TreeEnsemble) -> str:
    for j, (name, feature) in enumerate(form.space.items()):
        if isinstance(feature, Ordinal | Categorical) and feature.size > BITS_OF_A_SET:
            if isinstance(feature, Categorical) or not _keeps_order(form, j):
                return f"{name!r} has {feature.size} levels, above {BITS_OF_A_SET}"
        elif 0 < feature.range < TINY_RANGE:
            return f"the range of {name!r} is too small to divide by in floats"
    return ""


def _keeps_order(form: TreeEnsemble, j: int) -> bool:
    """Return whether every column that reads an ordinal feature rises or falls with its levels."""
    tables = [np.diff(column.table) for column in form.columns if column.feature == j and column.table is not None]
    reads = [column.feature == j for column in form.columns]
    no_subset = not (np.array(reads)[form.column] & (form.subset >= 0)).any()
    return no_subset and all((steps >= 0).all() or (steps <= 0).all() for steps in tables)


def make_grid(form: TreeEnsemble, own: dict[int, float] | None = None) -> Grid:
    """Return the grid of an ensemble; ``own`` gives values off a feature's grid that count as well, by position of the feature."""
    features = list(form.space.values())
    inner = form.left >= 0
    reads = np.array([column.feature for column in form.columns], dtype=np.int64)
    feature = np.where(inner, reads[form.column], -1)
    bound = np.zeros(len(feature), dtype=np.int64)
    subset = np.zeros(len(feature), dtype=np.int64)
    swap = np.zeros(len(feature), dtype=bool)
    is_mask = np.zeros(len(features), dtype=bool)
    lows, highs = [], []
    for j, kind in enumerate(features):
        nodes = np.flatnonzero(feature == j)
        if isinstance(kind, Ordinal | Categorical):
            lows.append(np.arange(kind.size, dtype=np.float64))
            highs.append(lows[-1])
            which, sets = _level_sets(form, nodes)
            is_mask[j] = isinstance(kind, Categorical) or not all(_is_prefix(s) or _is_prefix(~s) for s in sets)
            if is_mask[j]:
                subset[nodes] = np.array([_bits(s) for s in sets], dtype=np.int64)[which]
            else:
                swap[nodes] = np.array([not _is_prefix(s) for s in sets], dtype=bool)[which]
                bound[nodes] = np.array([(s if _is_prefix(s) else ~s).sum() for s in sets], dtype=np.int64)[which]
        else:
            low, high, bound[nodes] = _numeric_cells(kind, form.edge[nodes], (own or {}).get(j))
            lows.append(low)
            highs.append(high)
    return Grid(
        off=np.concatenate([[0], np.cumsum([len(low) for low in lows])]).astype(np.int64),
        low=np.concatenate(lows),
        high=np.concatenate(highs),
        is_mask=is_mask,
        feature=feature,
        bound=bound,
        subset=subset,
        left=np.where(swap, form.right, form.left).astype(np.int64),
        right=np.where(swap, form.left, form.right).astype(np.int64),
        missing_left=form.missing_left ^ swap,
        roots=np.array(form.roots, dtype=np.int64),
        depth=_depth(form),
    )


def _level_sets(form: TreeEnsemble, nodes: Ints) -> tuple[Ints, list[NDArray[np.bool_]]]:
    """Return the distinct sets of levels that go left at the nodes of one feature, and for each node which set is its own."""
    keys = np.column_stack(
        [form.column[nodes].astype(np.float64), form.edge[nodes], form.subset[nodes].astype(np.float64)]
    )
    distinct, which = np.unique(keys, axis=0, return_inverse=True)
    sets = []
    for column, edge, subset in distinct:
        if subset >= 0:
            sets.append(np.asarray(form.subsets[int(subset)]))
        else:
            sets.append(np.array(form.columns[int(column)].table) <= edge)
    return which.reshape(-1).astype(np.int64), sets


def _bits(chosen: NDArray[np.bool_]) -> int:
    return int(sum(1 << int(k) for k in np.flatnonzero(chosen)))


def _is_prefix(chosen: NDArray[np.bool_]) -> bool:
    return bool((np.diff(chosen.astype(np.int8)) <= 0).all())


def _numeric_cells(kind: Real | Integer, edges: Floats, own: float | None) -> tuple[Floats, Floats, Ints]:
    """Return the least and greatest value of each reachable cell, and for each edge the number of cells at most at it."""
    distinct = np.unique(edges[(edges >= kind.low) & (edges < kind.high)])
    lows = np.concatenate([[float(kind.low)], np.nextafter(distinct, np.inf)])
    highs = np.concatenate([distinct, [float(kind.high)]])
    home = int(np.searchsorted(distinct, own)) if own is not None else -1
    lows, highs = values_in(kind, lows, highs)
    if own is not None:
        lows[home] = min(lows[home], own)
        highs[home] = max(highs[home], own)
    reachable = lows <= highs
    lows, highs = lows[reachable], highs[reachable]
    return lows, highs, np.searchsorted(highs, edges, side="right").astype(np.int64)


def _depth(form: TreeEnsemble) -> int:
    """Return the number of levels of the deepest tree; a node may have several parents, and counts once a level."""
    level = form.roots
    deepest = 0
    while len(level):
        inner = level[form.left[level] >= 0]
        deepest += 1
        level = np.unique(np.concatenate([form.left[inner], form.right[inner]]))
    return deepest
