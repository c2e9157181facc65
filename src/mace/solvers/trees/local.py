"""The question inside one ball: its leaves, and its cells merged where no leaf distinguishes them."""

from __future__ import annotations

import numpy as np

from mace.solvers.trees import kernels
from mace.solvers.trees.grid import Ints
from mace.solvers.trees.parts import Tables, TreePart
from mace.solvers.trees.pockets import Ranges, Spans
from mace.solvers.trees.prepared import kernel_goal
from mace.solvers.trees.rows import block_rows

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

    def __init__(self, tables: Tables, part: TreePart, radius: float, at_least: float | None = None) -> None:
        """Collect the leaves inside a ball.

        With ``at_least`` the ball is made smaller, but not below it, where its leaves reach the goal together well before its end, and is
        empty where they cannot.
        """
        view, cells = tables.view, part.cells
        features = len(cells.own)
        self.trees = len(tables.grid.roots)
        found = _collect(tables, part, radius)
        self.radius = radius
        if at_least is not None:
            opening = kernels.opening(part.values.most, kernel_goal(part.values), found)
            if opening >= kernels.FAR:
                self.count, self.next_radius = 0, float(found.dropped[0])
                return
            self.radius = min(radius, max(BEYOND * opening, at_least))
            if self.radius < radius:
                kernels.drop_farther(self.radius, found)
        self.next_radius = float(found.dropped[0])
        box = kernels.CellBox(part.box.lo.copy(), part.box.hi.copy(), part.box.mask.copy())
        most, ints = int(view.off[-1]), np.int64
        add, top, cheapest, first = np.empty(most), np.empty(most), np.empty(most, ints), np.empty(most, ints)
        blocks = kernels.Blocks(np.empty(features + 1, ints), add, top, cheapest, first, np.empty(features, ints))
        self.count, size, distance = kernels.compress(self.radius, box, cells, view.cut, found, blocks)
        if self.count == 0:
            if distance >= self.radius:
                self.next_radius = min(self.next_radius, float(distance))
            return
        self.off, self.cheapest, self.first = blocks.off, blocks.cheapest[:size], blocks.first[:size]
        # Of a set each level is a block of its own; of an ordered feature the last block ends where the box does.
        self.last_cells = np.where(cells.is_mask, np.diff(view.off) - 1, box.hi)
        owner = np.repeat(np.arange(features), np.diff(self.off))
        at = view.off[owner] + self.cheapest
        self.cells = kernels.CellTable(
            cells.is_mask, cells.is_missing, cells.mask_of, self.off, blocks.add[:size], blocks.top[:size], blocks.own, view.base[at],
            np.ascontiguousarray(cells.differs[:, at]), cells.at_least, np.ascontiguousarray(cells.spend[:, at]), cells.most,
            self._rows(tables, part, self.radius),
        )  # fmt: skip
        count = self.count
        self.leaves = kernels.LeafTable(
            found.box_lo[:count], found.box_hi[:count], found.box_mask[:count], part.values.most[found.leaf[:count]]
        )
        self.tree_start = found.tree_start
        self.order = np.empty(count, dtype=np.int64)
        kernels.sort_leaves(self.tree_start, self.leaves.gain, self.order)
        self.box = kernels.CellBox(np.zeros(features, np.int64), np.diff(self.off) - 1, box.mask)

    def _rows(self, tables: Tables, part: TreePart, radius: float) -> kernels.Rows:
        """Return the rows of the question that may count within the ball, and their distances from its blocks."""
        if not tables.groups:
            return part.cells.rows
        first, last = self.ends_of_blocks(tables)
        low, high = tables.view.low[first], tables.view.high[last]
        owner = np.repeat(np.arange(len(part.pattern)), np.diff(self.off))
        value = part.value[tables.view.off[owner] + self.cheapest]
        return block_rows(tables.groups, part.pattern, self.off, low, high, value, radius)

    def ends_of_blocks(self, tables: Tables) -> tuple[Ints, Ints]:
        """Return the first and the last cell of each block, among the cells of all features."""
        owner = np.repeat(np.arange(len(self.off) - 1), np.diff(self.off))
        first = tables.view.off[owner] + self.first
        last = np.append(first[1:] - 1, tables.view.off[-1] - 1)
        is_last = np.append(np.diff(owner) > 0, True)
        last[is_last] = tables.view.off[owner[is_last]] + self.last_cells[owner[is_last]]
        return first, last

    def ranges_of(self, tables: Tables, part: TreePart, box: kernels.CellBox) -> Ranges:
        """Return what a box of blocks lets each feature be."""
        view, (first, last) = tables.view, self.ends_of_blocks(tables)
        ranges: list[Spans | None] = []
        for j, is_missing in enumerate(part.pattern):
            if is_missing:
                ranges.append(None)
            elif tables.grid.is_mask[j]:
                levels = np.flatnonzero(box.mask[j] >> np.arange(view.off[j + 1] - view.off[j]) & 1).astype(np.float64)
                ranges.append((levels, levels))
            else:
                cells = slice(first[self.off[j] + box.lo[j]], last[self.off[j] + box.hi[j]] + 1)
                low, high = (
                    np.maximum(view.low[cells], tables.ends[0][j]),
                    np.minimum(view.high[cells], tables.ends[1][j]),
                )
                ranges.append((low[low <= high], high[low <= high]))
        return tuple(ranges)

    def cells_of(self, blocks: Ints) -> Ints:
        """Return the cell that represents each block."""
        cells: Ints = self.cheapest[self.off[:-1] + blocks]
        return cells


def _collect(tables: Tables, part: TreePart, radius: float) -> kernels.FoundPoint:
    """Return the leaves inside a ball; room for them grows until they fit."""
    grid, features, ints = tables.grid, len(part.cells.own), np.int64
    trees, masks = len(grid.roots), tables.masks
    tree_start, dropped = np.empty(trees + 1, ints), np.empty(1)
    capacity = 64 * trees + 256
    while True:
        low, high = np.empty((capacity, features), np.int32), np.empty((capacity, features), np.int32)
        levels = np.zeros((capacity, masks), ints)
        found = kernels.FoundPoint(tree_start, np.empty(capacity, ints), np.empty(capacity), low, high, levels, dropped)
        if kernels.collect(radius, part.box, part.cells, tables.boundaries, part.trees, grid.depth + 1, found) >= 0:
            return found
        capacity *= 8
