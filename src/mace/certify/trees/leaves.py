"""The leaves of an ensemble that reach into a ball, and what they add: whole numbers throughout.

A leaf's values are scaled by a power of two and rounded in favour of the target, so that sums over trees are exact, and at least what the
true sum would be. The real model, in floating point, strays from the true sum by at most the form's ``band``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from mace.certify.trees.cells import CellAxis, costs_at
from mace.exact import UNIT, Flags, Floats, Ints
from mace.forms import Goal, Interval, Margin, TreeEnsemble, innermost
from mace.space import Column

COARSE_BITS = 24
COARSE_MOST = 2.0**10
COARSE_TREES = 2**16
"""Multiples of 2^-24 below 2^10: any sum of at most 2^16 of them is exact in float64, in any order, and different sums stay different
after a division by their number."""


@dataclass(frozen=True, slots=True)
class Nodes:
    """The nodes of one or more ensembles in one list, with the meaning that :class:`~mace.forms.TreeEnsemble` gives them."""

    columns: tuple[Column, ...]
    roots: Ints
    column: Ints
    edge: Floats
    left: Ints
    right: Ints
    missing_left: Flags
    subset: Ints
    subsets: tuple[Flags, ...]


@dataclass(frozen=True, slots=True)
class NodeSplits:
    """What nodes do to the cells of the axes.

    Attributes
    ----------
    feature : int array
        The feature of each node, -1 at a leaf.
    bound : int array
        For a feature with ranges: how many cells go left.
    levels : tuple of bool arrays, by feature
        For a feature with sets: which cells go left, one row a node of that feature; ``row`` says which.
    """

    feature: Ints
    bound: Ints
    row: Ints
    levels: dict[int, Flags]


@dataclass(frozen=True, slots=True)
class Leaves:
    """Leaves that reach into a ball, tree after tree.

    Attributes
    ----------
    node, tree : int arrays
        The node of each, and its tree.
    low, high : int arrays, leaves x features
        The range of cells of each; of features with ranges.
    inside : dict of bool arrays, leaves x cells
        The set of cells of each; of features with sets.
    add, top : int arrays
        The least cost of a point in it: the sum, and the maximum.
    """

    node: Ints
    tree: Ints
    low: Ints
    high: Ints
    inside: dict[int, Flags]
    add: Ints
    top: Ints

    def taken(self, chosen: Ints | Flags) -> Leaves:
        """Return some of the leaves."""
        return Leaves(
            self.node[chosen], self.tree[chosen], self.low[chosen], self.high[chosen],
            {j: each[chosen] for j, each in self.inside.items()}, self.add[chosen], self.top[chosen],
        )  # fmt: skip


def split_nodes(nodes: Nodes, axes: list[CellAxis]) -> NodeSplits:
    """Return the nodes in cells: a node sends every value of a cell the same way."""
    inner = nodes.left >= 0
    reads = np.array([column.feature for column in nodes.columns], dtype=np.int64)
    feature = np.where(inner, reads[nodes.column], -1)
    bound, row = np.zeros(len(feature), dtype=np.int64), np.zeros(len(feature), dtype=np.int64)
    levels: dict[int, Flags] = {}
    for j, axis in enumerate(axes):
        those = np.flatnonzero(feature == j)
        if axis.is_set:
            keys = np.column_stack([nodes.column[those], nodes.edge[those], nodes.subset[those]]).astype(np.float64)
            distinct, which = np.unique(keys, axis=0, return_inverse=True)
            row[those] = which.reshape(-1)
            sets = [_levels_left(nodes, nodes.columns[int(c)], edge, int(s), axis) for c, edge, s in distinct]
            levels[j] = np.array(sets, dtype=bool).reshape(len(sets), axis.size)
        else:
            bound[those] = np.searchsorted(axis.high, nodes.edge[those], side="right")
    return NodeSplits(feature, bound, row, levels)


def _levels_left(nodes: Nodes, column: Column, edge: float, subset: int, axis: CellAxis) -> Flags:
    positions = axis.low.astype(np.intp)
    if subset >= 0:
        return np.asarray(nodes.subsets[subset], dtype=bool)[positions]
    table = axis.low if column.table is None else np.array(column.table)[positions]
    return np.asarray(table <= edge)


def reachable_leaves(nodes: Nodes, split: NodeSplits, axes: list[CellAxis], missing: Flags, limit: int) -> Leaves:
    """Walk down all trees at once, and keep the leaves that hold a point of the domain with a cost below ``limit``."""
    trees = len(nodes.roots)
    start_add, start_top = start_costs(axes, missing)
    at = Leaves(
        node=np.array(nodes.roots, dtype=np.int64),
        tree=np.arange(trees),
        low=np.zeros((trees, len(axes)), dtype=np.int64),
        high=np.tile(np.array([axis.size - 1 for axis in axes]), (trees, 1)),
        inside={j: np.ones((trees, axis.size), dtype=bool) for j, axis in enumerate(axes) if axis.is_set},
        add=np.full(trees, start_add),
        top=np.full(trees, start_top),
    )
    done: list[Leaves] = []
    while len(at.node):
        is_leaf = nodes.left[at.node] < 0
        done.append(at.taken(is_leaf))
        at = at.taken(~is_leaf)
        sides = [_side(at, nodes, split, axes, missing, is_left) for is_left in (True, False)]
        joined = joined_leaves(sides)
        at = joined.taken(joined.add + joined.top < limit)
    found = joined_leaves(done)
    return found.taken(np.argsort(found.tree, kind="stable"))


def start_costs(axes: list[CellAxis], missing: Flags) -> tuple[int, int]:
    """Return the least cost of any point: its sum and its maximum."""
    costs = costs_at(axes, (axis.own for axis in axes), missing)
    return sum(add for add, _ in costs), max((top for _, top in costs), default=0)


def joined_leaves(each: list[Leaves]) -> Leaves:
    """Return several lists of leaves as one."""
    return Leaves(
        node=np.concatenate([part.node for part in each]),
        tree=np.concatenate([part.tree for part in each]),
        low=np.concatenate([part.low for part in each]),
        high=np.concatenate([part.high for part in each]),
        inside={j: np.concatenate([part.inside[j] for part in each]) for j in each[0].inside},
        add=np.concatenate([part.add for part in each]),
        top=np.concatenate([part.top for part in each]),
    )


def _side(at: Leaves, nodes: Nodes, split: NodeSplits, axes: list[CellAxis], missing: Flags, is_left: bool) -> Leaves:
    """Return the children on one side that hold a point, with their boxes and costs."""
    node = at.node
    made = Leaves(
        (nodes.left if is_left else nodes.right)[node], at.tree, at.low.copy(), at.high.copy(),
        {j: inside.copy() for j, inside in at.inside.items()}, at.add.copy(), at.top.copy(),
    )  # fmt: skip
    alive = np.ones(len(node), dtype=bool)
    features = split.feature[node]
    for j in np.unique(features):
        rows, axis = np.flatnonzero(features == j), axes[j]
        if missing[j]:
            alive[rows] = nodes.missing_left[node[rows]] == is_left
            continue
        if axis.is_set:
            before = made.inside[j][rows]
            left = split.levels[int(j)][split.row[node[rows]]]
            after = before & (left if is_left else ~left)
            made.inside[j][rows] = after
            alive[rows] = after.any(axis=1)
            old, new = cheapest_of_sets(axis, before), cheapest_of_sets(axis, after)
        else:
            low, high, bound = made.low[rows, j], made.high[rows, j], split.bound[node[rows]]
            old = np.clip(axis.own, low, high)
            low, high = (low, np.minimum(high, bound - 1)) if is_left else (np.maximum(low, bound), high)
            made.low[rows, j], made.high[rows, j] = low, high
            alive[rows] = low <= high
            new = np.clip(axis.own, low, np.maximum(low, high)).clip(0, axis.size - 1)
        made.add[rows] += axis.add[new] - axis.add[old]
        made.top[rows] = np.maximum(made.top[rows], axis.top[new])
    return made.taken(alive)


def cheapest_of_sets(axis: CellAxis, inside: Flags) -> Ints:
    """Return the cheapest cell of each set; any cell where a set is empty."""
    cost = np.where(inside, axis.add + axis.top, np.iinfo(np.int64).max)
    found: Ints = cost.argmin(axis=1) if axis.size else np.zeros(len(inside), dtype=np.int64)
    return found


@dataclass(frozen=True, slots=True)
class NodeGains:
    """What each node adds to the margins of one alternative of a goal, in whole numbers, and what their sums must reach.

    A point that the real model puts in this alternative of the goal has, for every margin, ``start`` plus the gains of its leaves at
    least ``need``. A unit of score is worth ``2**bits``.
    """

    gain: Ints
    start: Ints
    need: Ints
    bits: Ints


def margin_gains(form: TreeEnsemble, goal: Goal, margin: Margin) -> tuple[Ints, int, int, int]:
    """Return what each node of an ensemble adds to one margin, where the sum starts, what it must reach, and its bits."""
    leaf, trees, band = form.left < 0, len(form.roots), form.band(goal) + margin.slack
    ahead, behind = _column(form.value, margin.plus), _column(form.value, margin.minus)
    base_ahead, base_behind = _column(form.base[None, :], margin.plus), _column(form.base[None, :], margin.minus)
    no_start = base_ahead[0] == base_behind[0] and margin.shift == 0
    if trees == 1 and band == 0 and no_start:
        # One leaf's own comparison decides; its sign is exact.
        signs: Ints = np.where(leaf, np.sign(ahead - behind), 0).astype(np.int64)
        return signs, 0, 1 if margin.strict else 0, 0
    largest = np.maximum.reduceat(np.where(leaf, np.abs(ahead) + np.abs(behind), 0.0), form.roots)
    size = (
        float(largest.sum()) + abs(base_ahead[0]) + abs(base_behind[0]) + abs(float(margin.shift)) + float(band) * trees
    )
    bits = 60 - math.frexp(size + trees * 2.0**-40)[1]
    unit = Fraction(2) ** bits
    gain: Ints = np.where(leaf & (ahead != behind), _scaled(ahead, bits, up=True) - _scaled(behind, bits, up=False), 0)
    start = math.ceil((Fraction(float(base_ahead[0])) - Fraction(float(base_behind[0])) + margin.shift) * unit)
    slack = math.ceil(band * unit)
    coarse = _is_coarse(ahead) & _is_coarse(behind)
    if band == 0:
        need = 1 if margin.strict else 0
        is_exact = bits >= COARSE_BITS and bool(coarse[leaf].all()) and _starts_coarsely(form, margin)
        if is_exact and margin.shift.denominator == 1:
            need = _least_sum(gain, leaf, form.roots, start, need)
        return gain, start, need, bits
    if not margin.slack and _has_real_ties(form, goal, margin) and bits >= COARSE_BITS:
        # A sum of coarse leaves alone is exact, and so is the decision; every other leaf may bring rounding in.
        return gain + np.where(leaf & ~coarse, slack + 1, 0), start, 1 if margin.strict else 0, bits
    return gain, start, -slack, bits


def _least_sum(gain: Ints, leaf: Flags, roots: Ints, start: int, need: int) -> int:
    """Return the least sum from ``need`` on that leaves, one of each tree, can have at all.

    All sums are alike modulo the greatest common divisor of the differences between leaves of one tree: votes of -1 and 1 have sums of one
    parity.
    """
    tree = np.searchsorted(roots, np.flatnonzero(leaf), side="right") - 1
    first = gain[leaf][np.searchsorted(tree, np.arange(len(roots)))]
    step = int(np.gcd.reduce(gain[leaf] - first[tree]))
    offset = start + int(first.sum())
    return need + (offset - need) % step if step else max(need, offset)


def _column(values: Floats, output: int | None) -> Floats:
    found: Floats = np.zeros(len(values)) if output is None else values[:, output]
    return found


def _scaled(values: Floats, bits: int, *, up: bool) -> Ints:
    """Return values times a power of two, rounded to whole numbers in one direction."""
    moved = np.ldexp(values, bits)
    return (np.ceil(moved) if up else np.floor(moved)).astype(np.int64)


def _is_coarse(values: Floats) -> Flags:
    moved = np.ldexp(values, COARSE_BITS)
    return np.asarray((moved == np.floor(moved)) & (np.abs(values) < COARSE_MOST))


def _starts_coarsely(form: TreeEnsemble, margin: Margin) -> bool:
    return all(bool(_is_coarse(form.base[[side]]).all()) for side in (margin.plus, margin.minus) if side is not None)


def _has_real_ties(form: TreeEnsemble, goal: Goal, margin: Margin) -> bool:
    """Return whether a sum of coarse leaves alone decides exactly: float64 sums from a coarse start, then at most a division."""
    plain_link = form.link in ("mean", "identity") if isinstance(innermost(goal), Interval) else form.squash == 0
    return (
        plain_link
        and form.squash == 0
        and form.unit == UNIT
        and len(form.roots) <= COARSE_TREES
        and _starts_coarsely(form, margin)
        and margin.shift.denominator == 1
        and abs(margin.shift) < COARSE_MOST * len(form.roots)
    )
