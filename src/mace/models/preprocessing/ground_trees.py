"""Tree ensembles behind preprocessing, as ordinary ensembles over the original features.

A split of a traced column becomes a split of the feature that it reads, on the float where the fitted steps take the
column across the threshold; a column that falls, or that comes back, becomes a split with its sides exchanged, or
several. Splits that no value of the feature tells apart are left out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from mace.exact import Flags, Floats, Ints
from mace.forms import ObliqueTrees, TreeEnsemble
from mace.models.preprocessing.crossings import sides
from mace.models.preprocessing.ground_oblique import ground_oblique
from mace.models.preprocessing.ground_products import split_products
from mace.models.preprocessing.traced import Traced, is_leveled
from mace.space import Column, FeatureSpace


@dataclass(frozen=True, slots=True)
class Split:
    """What one split of a traced column is over its feature: the first side, and the values after which it changes."""

    first: bool
    edges: Floats
    missing: bool | None
    """Where a missing value goes; ``None`` where the model decides, as for NaN."""


def ground_trees(form: TreeEnsemble, space: FeatureSpace) -> TreeEnsemble | ObliqueTrees:
    """Return the ensemble over the features themselves, or over mixtures of them."""
    if any(column.joint is not None for column in cast(tuple[Traced, ...], form.columns)):
        form = split_products(form, space)
    columns = cast(tuple[Traced, ...], form.columns)
    features = list(space.values())
    inner = form.left >= 0
    used = np.unique(form.column[inner])
    if any(columns[k].is_mixed for k in used):
        return ground_oblique(form, space)
    leveled = np.array([is_leveled(features[column.feature]) for column in columns])
    form = _with_subsets(form, columns, leveled)
    kept = [int(k) for k in used if leveled[k]]
    numeric = sorted({columns[k].feature for k in used if not leveled[k]})
    new: list[Column] = [Column(columns[k].name, columns[k].feature, columns[k].table) for k in kept]
    new += [Column(space.names[j], j, None) for j in numeric]
    place = {k: position for position, k in enumerate(kept)}
    raw = {j: len(kept) + position for position, j in enumerate(numeric)}
    column = np.array(
        [
            place[k] if k in place else raw[columns[k].feature] if columns[k].feature in raw and not leveled[k] else 0
            for k in range(len(columns))
        ],
        dtype=np.int64,
    )[form.column]
    splits, which = _splits(form, columns, inner & ~leveled[form.column], space)
    grounded = _rebuilt(replace(form, column=column), splits, which)
    return replace(grounded, space=space, columns=tuple(new) or (Column(space.names[0], 0, None),))


def _with_subsets(form: TreeEnsemble, columns: tuple[Traced, ...], leveled: Flags) -> TreeEnsemble:
    """Return the ensemble with a set of levels for each split of a table that holds NaN, which goes the way of missing values."""
    has_nan = np.array(
        [bool(leveled[k] and np.isnan(np.array(column.table)).any()) for k, column in enumerate(columns)]
    )
    nodes = np.flatnonzero((form.left >= 0) & (form.subset < 0) & has_nan[form.column])
    if not len(nodes):
        return form
    subset, subsets = form.subset.copy(), list(form.subsets)
    for node in nodes:
        table = np.array(columns[form.column[node]].table)
        subset[node] = len(subsets)
        subsets.append(np.where(np.isnan(table), form.missing_left[node], table <= form.edge[node]))
    return replace(form, subset=subset, subsets=tuple(subsets))


def _splits(
    form: TreeEnsemble, columns: tuple[Traced, ...], nodes: Flags, space: FeatureSpace
) -> tuple[list[Split], Ints]:
    """Return the distinct splits of numeric features, and for each node which one is its own (-1: none)."""
    which = np.full(len(form.left), -1, dtype=np.int64)
    splits: list[Split] = []
    for k in np.unique(form.column[nodes]):
        own = np.flatnonzero(nodes & (form.column == k))
        column = columns[k]
        keys = np.column_stack([form.edge[own], form.missing_left[own] & column.zero_is_missing])
        distinct, inverse = np.unique(keys, axis=0, return_inverse=True)
        missing = _missing(column, space)
        which[own] = len(splits) + inverse.reshape(-1)
        for first, edges, threshold in _sides(column, space, distinct):
            goes = None if missing is None or np.isnan(missing) else bool(missing <= threshold)
            splits.append(Split(first, edges, goes))
    return splits, which


def _sides(column: Traced, space: FeatureSpace, distinct: Floats) -> list[tuple[bool, Floats, float]]:
    """Return the side and the edges of each threshold; where 0 is taken for missing, it goes the way of missing values."""
    thresholds = distinct[:, 0]
    if not column.zero_is_missing:
        found = sides(column, space, thresholds)
        return list(zip(map(bool, found.first), found.edges, thresholds, strict=True))
    found = sides(column, space, np.concatenate([thresholds, [-np.finfo(np.float64).smallest_subnormal, 0.0]]))
    made = []
    for k, (threshold, missing_left) in enumerate(distinct):
        first, edges = bool(found.first[k]), found.edges[k]
        if bool(missing_left) != (threshold >= 0):
            first ^= bool(found.first[-1] ^ found.first[-2])
            joined, times = np.unique(np.concatenate([edges, *found.edges[-2:]]), return_counts=True)
            edges = joined[times % 2 == 1]
        made.append((first, edges, float(threshold)))
    return made


def _missing(column: Traced, space: FeatureSpace) -> float | None:
    """Return what a column makes of a missing value; ``None`` where there is none."""
    if not list(space.values())[column.feature].missing:
        return None
    value = float(np.asarray(column.values(np.array([np.nan])), dtype=np.float64)[0])
    return np.nan if column.zero_is_missing and value == 0 else value


def fills_missing(columns: tuple[Traced, ...], space: FeatureSpace) -> set[str]:
    """Return the features whose missing values never reach the model as NaN."""
    filled = {name for name, feature in space.items() if feature.missing}
    for column in columns:
        name = space.names[column.feature]
        if name in filled and not column.is_mixed:
            value = _missing(column, space)
            if value is not None and not np.isfinite(value):
                filled.discard(name)
    return filled


def _rebuilt(form: TreeEnsemble, splits: list[Split], which: Ints) -> TreeEnsemble:
    """Return the ensemble with each node in place of its split: none, one or several nodes."""
    is_split = which >= 0
    first = is_split & _of_nodes(np.array([split.first for split in splits], dtype=bool), which, False)
    stated = np.array([-1 if split.missing is None else split.missing for split in splits], dtype=np.int64)
    said = _of_nodes(stated, which, -1)
    miss_left = np.where(said >= 0, said == 1, form.missing_left)
    blocks = _of_nodes(np.array([len(split.edges) for split in splits], dtype=np.int64), which, 1)
    can_miss = any(feature.missing for feature in form.space.values())
    # A split that no value crosses is left out, unless missing values part from the others there.
    blocks[is_split & (blocks == 0) & can_miss & (miss_left != first)] = 1
    form, kept = pruned(form, np.where(blocks == 0, first, -1))
    is_split, first, miss_left, which, blocks = is_split[kept], first[kept], miss_left[kept], which[kept], blocks[kept]
    left, right, size = form.left, form.right, len(kept)
    start = np.concatenate([[0], np.cumsum(blocks)])
    owner = np.repeat(np.arange(size), blocks)
    new_left = np.where(left[owner] >= 0, start[left[owner]], -1)
    new_right = np.where(left[owner] >= 0, start[right[owner]], -1)
    edge, missing_left = form.edge[owner], miss_left[owner]
    single = np.flatnonzero(is_split & (blocks == 1))
    ends = np.array([split.edges[0] if len(split.edges) else np.inf for split in splits])
    edge[start[single]] = ends[which[single]]
    falls = single[~first[single]]
    new_left[start[falls]], new_right[start[falls]] = start[right[falls]], start[left[falls]]
    missing_left[start[single]] = miss_left[single] == first[single]
    for node in np.flatnonzero(is_split & (blocks > 1)):
        at, split = int(start[node]), splits[which[node]]
        children = (int(start[left[node]]), int(start[right[node]]))
        for offset, value, low, high, to_low in _nest(split.edges, split.first, bool(miss_left[node]), at, children):
            edge[offset], new_left[offset], new_right[offset], missing_left[offset] = value, low, high, to_low
    return replace(
        form,
        roots=start[form.roots].astype(np.int64),
        column=form.column[owner],
        edge=edge,
        left=new_left.astype(np.int64),
        right=new_right.astype(np.int64),
        missing_left=missing_left,
        value=np.where((new_left < 0)[:, None], form.value[owner], 0.0),
        subset=form.subset[owner],
    )


def _nest(
    edges: Floats, first: bool, miss_left: bool, at: int, children: tuple[int, int]
) -> list[tuple[int, float, int, int, bool]]:
    """Return nodes (place, edge, low child, high child, whether missing goes low) that send each stretch between edges to its side.

    Stretches take sides in turn, the first to ``children[0]`` where ``first``. A stretch of several edges holds both sides, so
    a missing value goes there whichever it needs.
    """
    nodes: list[tuple[int, float, int, int, bool]] = []

    def child(stretch: int) -> int:
        return children[0] if first == (stretch % 2 == 0) else children[1]

    def place(low: int, high: int, offset: int) -> int:
        """Put the edges from ``low`` to ``high`` at ``offset``, and return what stands there."""
        if low == high:
            return child(low)
        middle = (low + high) // 2
        below = place(low, middle, offset + 1)
        above = place(middle + 1, high, offset + 1 + (middle - low))
        wanted = children[0] if miss_left else children[1]
        nodes.append((offset, float(edges[middle]), below, above, middle > low or below == wanted))
        return offset

    place(0, len(edges), at)
    return nodes


def _of_nodes(values: NDArray[Any], which: Ints, other: int) -> NDArray[Any]:
    """Return for each node the value of its split; ``other`` where it has none."""
    return np.append(values, values.dtype.type(other))[which]


def pruned(form: TreeEnsemble, ways: Ints) -> tuple[TreeEnsemble, Ints]:
    """Return an ensemble without the nodes at which every row goes one way: left (1) or right (0), not known (-1); and the nodes kept."""
    target = np.where(ways < 0, np.arange(len(ways)), np.where(ways == 1, form.left, form.right))
    while (target[target] != target).any():
        target = target[target]
    reached = np.zeros(len(ways), dtype=bool)
    level = target[form.roots]
    while len(level):
        reached[level] = True
        inner = level[form.left[level] >= 0]
        # A node may have several parents.
        level = np.unique(target[np.concatenate([form.left[inner], form.right[inner]])])
    kept = np.flatnonzero(reached)
    place = np.full(len(ways), -1, dtype=np.int64)
    place[kept] = np.arange(len(kept))
    left, right = (np.where(each[kept] < 0, -1, place[target[each[kept]]]) for each in (form.left, form.right))
    made = replace(
        form,
        roots=place[target[form.roots]],
        column=form.column[kept],
        edge=form.edge[kept],
        left=left,
        right=right,
        missing_left=form.missing_left[kept],
        value=form.value[kept],
        subset=form.subset[kept],
    )
    return made, kept
