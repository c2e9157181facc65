"""Splits of products, as splits of their features one after the other.

No split of a single feature is a split of a product. But where all features of it but one have finitely many values, the product is a
column of that one for each combination of the others' values; there its split is one split of that feature, on the float where the fitted
steps change sides. Combinations with the same split share it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from mace.errors import UnsupportedModel
from mace.exact import Flags, Floats, Ints
from mace.forms import TreeEnsemble
from mace.models.preprocessing.crossings import LARGEST_SINGLE, sides
from mace.models.preprocessing.traced import Given, Traced, all_values, is_leveled, values_at
from mace.space import Categorical, Column, Feature, FeatureSpace, Integer, Ordinal

MOST_COMBINATIONS = 65_536
"""The most rows of a product that are asked one by one."""

MOST_ALONG = 256
"""The most combinations that may each have a split of a real feature."""

LEFT, RIGHT = -1, -2
"""The children of the node that a block stands for."""


@dataclass(frozen=True, slots=True)
class LastSplit:
    """A split of the last feature: the levels that go left; or the first side, the values after which it changes, and the side of
    missing values."""

    levels: tuple[bool, ...] | None
    is_left: bool = False
    edges: tuple[float, ...] = ()
    missing: bool | None = None


@dataclass(frozen=True, slots=True)
class ProductSplit:
    """One node of a block: a feature, an edge or a set of levels, and the places of its children in the block."""

    feature: int
    edge: float
    levels: tuple[bool, ...] | None
    low: int
    high: int
    missing_low: bool = True


def split_products(form: TreeEnsemble, space: FeatureSpace) -> TreeEnsemble:
    """Return an ensemble in which splits of products are splits of the features themselves."""
    columns = cast(tuple[Traced, ...], form.columns)
    inner = form.left >= 0
    is_joint = np.array([column.joint is not None for column in columns])
    if (inner & is_joint[form.column] & (form.subset >= 0)).any():
        where = next(column.where for column in columns if column.joint is not None)
        raise UnsupportedModel(
            f"cannot read {where} before trees that take 0 for missing. Fit them with zero_as_missing=False."
        )
    blocks: dict[int, list[ProductSplit]] = {}
    target = np.arange(len(form.left))
    for k in np.unique(form.column[inner & is_joint[form.column]]):
        own = np.flatnonzero(inner & (form.column == k))
        keys = np.column_stack([form.edge[own], form.missing_left[own]])
        distinct, which = np.unique(keys, axis=0, return_inverse=True)
        made = _routes(columns[k], space, distinct)
        for node, number in zip(own.tolist(), which.reshape(-1).tolist(), strict=True):
            blocks[node] = made[number][1]
            if not blocks[node]:
                target[node] = form.left[node] if made[number][0] == LEFT else form.right[node]
    return expanded(form, columns, space, blocks, target)


def expanded(
    form: TreeEnsemble,
    columns: tuple[Column, ...],
    space: FeatureSpace,
    blocks: dict[int, list[ProductSplit]],
    target: Ints,
) -> TreeEnsemble:
    """Return the ensemble with a block in place of each split of several features.

    ``target`` says of each node which one stands for it: itself, or one of its children where its block is empty.
    """
    while (target[target] != target).any():
        target = target[target]
    size = np.array([len(blocks[node]) if node in blocks else 1 for node in range(len(form.left))])
    start = np.concatenate([[0], np.cumsum(size)])
    owner = np.repeat(np.arange(len(size)), size)
    is_inner = form.left[owner] >= 0
    left = np.where(is_inner, start[target[form.left[owner]]], -1)
    right = np.where(is_inner, start[target[form.right[owner]]], -1)
    column, edge, subset = form.column[owner], form.edge[owner], form.subset[owner]
    missing_left, subsets = form.missing_left[owner], list(form.subsets)
    features = sorted({question.feature for block in blocks.values() for question in block})
    raw = {j: len(columns) + position for position, j in enumerate(features)}
    for node, block in blocks.items():
        ends = {LEFT: start[target[form.left[node]]], RIGHT: start[target[form.right[node]]]}
        for at, question in enumerate(block, int(start[node])):
            column[at], edge[at], missing_left[at] = raw[question.feature], question.edge, question.missing_low
            left[at], right[at] = (
                ends[child] if child < 0 else start[node] + child for child in (question.low, question.high)
            )
            if question.levels is not None:
                subset[at] = len(subsets)
                subsets.append(np.array(question.levels))
    return replace(
        form,
        columns=(*columns, *(_feature(space, j) for j in features)),
        roots=start[target[form.roots]],
        column=column,
        edge=edge,
        left=left,
        right=right,
        missing_left=missing_left,
        value=form.value[owner],
        subset=subset,
        subsets=tuple(subsets),
    )


def _feature(space: FeatureSpace, j: int) -> Traced:
    feature = list(space.values())[j]
    table = tuple(map(float, range(len(feature.levels)))) if is_leveled(feature) else None  # type: ignore[union-attr]
    return Traced(space.names[j], j, table)


# ---- one product


def states(feature: Feature) -> NDArray[Any]:
    """Return all values of a feature with finitely many: levels, whole numbers, and NaN last where it may be missing."""
    values = all_values(feature)
    return values if is_leveled(feature) or not feature.missing else np.append(values, np.nan)


def grid(space: FeatureSpace, reads: Sequence[int]) -> dict[int, NDArray[Any]]:
    """Return all combinations of values of features with finitely many."""
    axes = [states(list(space.values())[j]) for j in reads]
    places = np.indices([len(axis) for axis in axes]).reshape(len(axes), -1)
    return {j: axis[place] for j, axis, place in zip(reads, axes, places, strict=True)}


def products(column: Traced, given: Given) -> Floats:
    """Return a column's values, which must be finite."""
    values = np.asarray(values_at(column, given), dtype=np.float64)
    if not (np.abs(values) < LARGEST_SINGLE).all():
        raise UnsupportedModel(f"{column.where} makes {column.name!r} too large. Narrow the ranges of its features.")
    return values


def combinations(space: FeatureSpace, reads: Sequence[int]) -> int | None:
    """Return how many combinations of values some features have; ``None`` where one is real."""
    count = 1
    for j in reads:
        feature = list(space.values())[j]
        if isinstance(feature, Integer):
            count *= feature.high - feature.low + 1 + feature.missing
        elif isinstance(feature, Ordinal | Categorical):
            count *= len(feature.levels)
        else:
            return None
    return count


def _routes(column: Traced, space: FeatureSpace, splits: Floats) -> list[tuple[int, list[ProductSplit]]]:
    """Return for each split (threshold, whether 0 goes left where it counts as missing) its root and its block."""
    count = combinations(space, column.reads)
    if count is not None and count <= MOST_COMBINATIONS:
        sizes = {j: len(states(list(space.values())[j])) for j in column.reads}
        *outer, last = sorted(column.reads, key=lambda j: sizes[j])
        found = _listed(column, space, [*outer, last], splits)
    else:
        outer, last = _one_wide(column, space)
        found = _along(column, space, outer, last, splits)
    shape = [len(states(list(space.values())[j])) for j in outer]
    made = []
    for each in found:
        lasts = list(dict.fromkeys(each))
        numbers = np.array([lasts.index(one) for one in each]).reshape(shape)
        block: list[ProductSplit] = []
        made.append((_Router(space, [*outer, last], lasts, block).put(numbers), block))
    return made


def _one_wide(column: Traced, space: FeatureSpace) -> tuple[list[int], int]:
    """Return the features with finitely many values, and the one other."""
    features = list(space.values())
    wide = max(column.reads, key=lambda j: combinations(space, [j]) or np.inf)
    outer = [j for j in column.reads if j != wide]
    count = combinations(space, outer)
    if count is None or count > MOST_ALONG:
        named = " and ".join(repr(space.names[j]) for j in column.reads)
        raise UnsupportedModel(
            f"cannot read {column.where}: it multiplies {named}, of which only one may be real or have many values before trees "
            f"(the others: {MOST_ALONG:,} combinations at most). Leave that product out, or declare it as integer in a narrow range."
        )
    if features[wide].missing or column.zero_is_missing:
        raise UnsupportedModel(
            f"cannot read {column.where}: it multiplies {space.names[wide]!r}, which may be missing or is handed on sparse. "
            "Fill it in the data, or hand dense arrays on."
        )
    return outer, wide


def _listed(column: Traced, space: FeatureSpace, reads: list[int], splits: Floats) -> list[list[LastSplit]]:
    """Return the splits of the last feature for each combination of the others, all values being asked."""
    values = products(column, grid(space, reads))
    feature = list(space.values())[reads[-1]]
    size = len(states(feature))
    found = []
    for threshold, missing_left in splits:
        below = values <= threshold
        if column.zero_is_missing:
            below = np.where(values == 0, bool(missing_left), below)
        found.append([_last(row, feature) for row in below.reshape(-1, size)])
    return found


def _last(below: Flags, feature: Feature) -> LastSplit:
    if is_leveled(feature):
        return LastSplit(tuple(below.tolist()))
    missing = bool(below[-1]) if feature.missing else None
    numbers = below[:-1] if feature.missing else below
    edges = feature.low + np.flatnonzero(numbers[1:] != numbers[:-1])  # type: ignore[union-attr]
    return LastSplit(None, bool(numbers[0]), tuple(edges.astype(np.float64).tolist()), missing)


def _along(column: Traced, space: FeatureSpace, outer: list[int], last: int, splits: Floats) -> list[list[LastSplit]]:
    """Return the splits of a feature with many values for each combination of the others."""
    assert column.along is not None
    given = grid(space, outer)
    found: list[list[LastSplit]] = [[] for _ in splits]
    for row in range(len(given[outer[0]])):
        single = column.along(last, {j: values[row : row + 1] for j, values in given.items()})
        made = sides(single, space, splits[:, 0])
        for each, first, edges in zip(found, made.first, made.edges, strict=True):
            each.append(LastSplit(None, bool(first), tuple(edges.tolist())))
    return found


class _Router:
    """Writes the questions that tell the combinations apart: of the first feature, then the next, the last feature's split at the end."""

    def __init__(
        self, space: FeatureSpace, reads: list[int], lasts: list[LastSplit], block: list[ProductSplit]
    ) -> None:
        self.features = list(space.values())
        self.reads, self.lasts, self.block = reads, lasts, block

    def put(self, numbers: Ints) -> int:
        """Write the questions for an array of splits' numbers over the outer features that are left; return where they begin."""
        if (numbers == numbers.flat[0]).all():
            return self._split(self.lasts[int(numbers.flat[0])])
        j = self.reads[len(self.reads) - 1 - numbers.ndim]
        feature = self.features[j]
        if is_leveled(feature):
            return self._levels(j, numbers, list(range(len(numbers))))
        if not feature.missing:
            return self._range(j, numbers, 0, len(numbers))
        present, absent = numbers[:-1], numbers[-1]
        return self._two(
            j,
            np.inf,
            None,
            lambda: self._range(j, present, 0, len(present)),
            lambda: self.put(absent),
            missing_low=False,
        )

    def _range(self, j: int, numbers: Ints, begin: int, end: int) -> int:
        """Split whole numbers from ``begin`` to before ``end`` until each part is all alike."""
        part = numbers[begin:end]
        changes = np.flatnonzero((part[1:] != part[:-1]).any(axis=tuple(range(1, part.ndim))))
        if not len(changes):
            return self.put(part[0])
        cut = begin + int(changes[len(changes) // 2])
        edge = float(self.features[j].low + cut)  # type: ignore[union-attr]
        return self._two(
            j,
            edge,
            None,
            lambda: self._range(j, numbers, begin, cut + 1),
            lambda: self._range(j, numbers, cut + 1, end),
        )

    def _levels(self, j: int, numbers: Ints, positions: list[int]) -> int:
        """Split some levels until each set is all alike."""
        groups: dict[bytes, list[int]] = {}
        for position in positions:
            groups.setdefault(np.ascontiguousarray(numbers[position]).tobytes(), []).append(position)
        if len(groups) == 1:
            return self.put(numbers[positions[0]])
        listed = list(groups.values())
        half = len(listed) // 2
        low, high = ([k for group in part for k in group] for part in (listed[:half], listed[half:]))
        levels = tuple(position in low for position in range(len(numbers)))
        return self._two(j, 0.0, levels, lambda: self._levels(j, numbers, low), lambda: self._levels(j, numbers, high))

    def _two(self, j: int, edge: float, levels: Any, low: Any, high: Any, *, missing_low: bool = True) -> int:
        place = len(self.block)
        self.block.append(ProductSplit(j, edge, levels, 0, 0))
        self.block[place] = ProductSplit(j, edge, levels, low(), high(), missing_low)
        return place

    def _split(self, last: LastSplit) -> int:
        """Write the split of the last feature."""
        j = self.reads[-1]
        if last.levels is not None:
            if all(last.levels) or not any(last.levels):
                return LEFT if last.levels[0] else RIGHT
            return self._two(j, 0.0, last.levels, lambda: LEFT, lambda: RIGHT)
        if last.missing is not None and (last.edges or last.missing != last.is_left):
            missing = LEFT if last.missing else RIGHT
            return self._two(
                j, np.inf, None, lambda: self._runs(last, 0, len(last.edges)), lambda: missing, missing_low=False
            )
        return self._runs(last, 0, len(last.edges))

    def _runs(self, last: LastSplit, begin: int, end: int) -> int:
        if begin == end:
            return LEFT if last.is_left == (begin % 2 == 0) else RIGHT
        middle = (begin + end) // 2
        return self._two(
            self.reads[-1],
            last.edges[middle],
            None,
            lambda: self._runs(last, begin, middle),
            lambda: self._runs(last, middle + 1, end),
        )
