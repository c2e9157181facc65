"""The question inside one ball: its leaves, and its cells merged where no leaf distinguishes them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mace.solvers.trees import kernels
from mace.solvers.trees.arrays import BallArrays
from mace.solvers.trees.budgets import thrifty_cells, within_radius
from mace.solvers.trees.grid import Floats, Ints
from mace.solvers.trees.parts import Tables, TreePart
from mace.solvers.trees.prepared import kernel_goal

BEYOND = 1.3
"""How far a ball reaches at first, as times the radius at which its leaves could first reach the goal together."""


class Local:
    """The question inside one ball.

    Attributes
    ----------
    count, trees : int
        How many leaves are inside, and of how many trees; without a leaf nothing else is set but ``next_radius``.
    radius, next_radius : float
        The size of the ball, and up to which size it would hold the same leaves.
    cells, leaves, box
        The blocks of cells, the leaves and the whole ball, as the kernels read them.
    off, cheapest, first : int arrays
        Where each feature's blocks begin, and the cheapest and the first cell of each block.
    tree_start, order : int arrays
        Where each tree's leaves begin, and the leaves of each tree with the greatest gain first.
    """

    def __init__(
        self,
        tables: Tables,
        part: TreePart,
        radius: float,
        at_least: float | None = None,
        arrays: BallArrays | None = None,
    ) -> None:
        """Collect the leaves inside a ball.

        With ``at_least`` the ball is made smaller, but not below it, where its leaves reach the goal together well before its end, and is
        empty where they cannot.
        """
        view, cells = tables.view, within_radius(part, radius)
        self.arrays = arrays = arrays_for(tables, part) if arrays is None else arrays
        self.trees = len(tables.grid.roots)
        found = leaves_within(tables, part, radius, arrays)
        self.radius = radius
        if at_least is not None:
            opening = kernels.opening(part.values.most, kernel_goal(part.values), found)
            if opening >= kernels.FAR:
                self.count, self.next_radius = 0, float(found.dropped[0])
                return
            self.radius = min(radius, max(BEYOND * opening, at_least))
            if self.radius < radius:
                kernels.drop_farther(self.radius, found)
                cells = within_radius(part, self.radius)
        self.next_radius = float(found.dropped[0])
        box = kernels.CellBox(part.box.lo.copy(), part.box.hi.copy(), part.box.mask.copy())
        blocks = arrays.blocks
        self.count, size, distance = kernels.compress(self.radius, box, cells, view.cut, found, blocks)
        if self.count == 0:
            if distance >= self.radius:
                self.next_radius = min(self.next_radius, float(distance))
            return
        self.off, self.cheapest, self.first = blocks.off, blocks.cheapest[:size], blocks.first[:size]
        sizes = self.off[1:] - self.off[:-1]
        at = view.off[:-1].repeat(sizes) + self.cheapest
        self.cells = kernels.CellTable(
            cells.is_mask, cells.is_missing, cells.mask_of, self.off, blocks.add[:size], blocks.top[:size], blocks.own, view.base[at],
            _of(cells.differs, at), cells.at_least, *self._spent(cells, view.off, box), cells.most,
        )  # fmt: skip
        count = self.count
        self.leaves = kernels.LeafTable(
            found.box_lo[:count], found.box_hi[:count], found.box_mask[:count], part.values.most[found.leaf[:count]]
        )
        self.tree_start = found.tree_start
        self.order = np.empty(count, dtype=np.int64)
        kernels.sort_leaves(self.tree_start, self.leaves.gain, self.order)
        self.box = kernels.CellBox(np.zeros(len(sizes), np.int64), sizes - 1, box.mask)

    def _spent(self, cells: kernels.CellTable, off: Ints, box: kernels.CellBox) -> tuple[Floats, Ints]:
        """Return the least that a cell of each block spends of each budget, and the block of each feature that spends least."""
        count, sizes = len(cells.most), np.diff(self.off)
        if not count:
            return np.empty((0, len(self.first))), np.empty((0, len(sizes)), dtype=np.int64)
        first = off[:-1].repeat(sizes) + self.first
        last = np.append(first[1:], 0)
        last[self.off[1:] - 1] = np.where(cells.is_mask, first[self.off[1:] - 1], off[:-1] + box.hi) + 1
        padded = np.column_stack([cells.spend, np.zeros(count)])
        spend = np.minimum.reduceat(padded, np.column_stack([first, last]).ravel(), axis=1)[:, ::2]
        return np.ascontiguousarray(spend), thrifty_cells(spend, self.off)

    def cells_of(self, blocks: Ints) -> Ints:
        """Return the cell that represents each block."""
        cells: Ints = self.cheapest[self.off[:-1] + blocks]
        return cells


def arrays_for(tables: Tables, part: TreePart, kept: BallArrays | None = None) -> BallArrays:
    """Return the arrays for the balls of a part: that which was kept, where it fits."""
    cells, size = part.cells, len(part.cells.add)
    masks = int(cells.mask_of[-1]) + 1
    shape = len(cells.own), len(tables.grid.roots), len(part.values.base), masks, len(cells.most)
    return kept if kept is not None and kept.fits(shape, size) else BallArrays(shape, size)


def _of(table: NDArray[Any], at: Ints) -> NDArray[Any]:
    """Return a table, a row for each condition, at some cells."""
    return np.ascontiguousarray(table[:, at]) if len(table) else table


def leaves_within(tables: Tables, part: TreePart, radius: float, arrays: BallArrays) -> kernels.FoundPoint:
    """Return the leaves inside a ball; room for them grows until they fit."""
    depth, box = tables.grid.depth + 1, part.box
    if len(part.cells.most):
        box = kernels.CellBox(box.lo.copy(), box.hi.copy(), box.mask.copy())
        kernels.keep_to_budgets(box, within_radius(part, radius))
    while kernels.collect(radius, box, part.cells, tables.boundaries, part.trees, depth, arrays.found) < 0:
        arrays.make_found(8 * len(arrays.found.leaf))
    return arrays.found
