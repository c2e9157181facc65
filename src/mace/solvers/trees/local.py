"""The problem inside one ball: its leaves, and its cells merged where no leaf tells them apart."""

from __future__ import annotations

import numpy as np

from mace.solvers.trees import kernels
from mace.solvers.trees.grid import Grid, Ints
from mace.solvers.trees.prepared import Values
from mace.solvers.trees.question import View


class Local:
    """The problem inside one ball."""

    def __init__(
        self,
        grid: Grid,
        view: View,
        radius: float,
        cells: kernels.Cells,
        lo: Ints,
        hi: Ints,
        mask: Ints,
        trees: kernels.Trees,
        values: Values,
    ) -> None:
        features = len(lo)
        self.trees = len(grid.roots)
        masks = max(1, int(grid.is_mask.sum()))
        tree_start = np.empty(self.trees + 1, dtype=np.int64)
        dropped = np.empty(1)
        capacity = 64 * self.trees + 256
        while True:
            leaf = np.empty(capacity, dtype=np.int64)
            box_lo, box_hi = np.empty((capacity, features), np.int32), np.empty((capacity, features), np.int32)
            box_mask = np.zeros((capacity, masks), dtype=np.int64)
            count = kernels.collect(
                radius,
                lo,
                hi,
                mask,
                cells,
                view.start,
                view.start_off,
                trees,
                grid.depth + 1,
                tree_start,
                leaf,
                box_lo,
                box_hi,
                box_mask,
                dropped,
            )
            if count >= 0:
                break
            capacity *= 8
        self.count = count
        self.next_radius = float(dropped[0])
        lo, hi, mask = lo.copy(), hi.copy(), mask.copy()
        near = np.empty(features, dtype=np.int64)
        distance = kernels.shrink_to_ball(
            radius, lo, hi, mask, cells.own, cells.is_mask, cells.off, cells.add, cells.top, near
        )
        if distance >= radius:
            self.count = 0
            self.next_radius = min(self.next_radius, float(distance))
            return
        blocks = int(view.off[-1])
        new_off, new_own = np.empty(features + 1, np.int64), np.empty(features, np.int64)
        new_add, new_top = np.empty(blocks), np.empty(blocks)
        new_rep, new_first = np.empty(blocks, np.int64), np.empty(blocks, np.int64)
        size = kernels.compress(
            count, lo, hi, cells, view.cut, box_lo, box_hi, new_off, new_add, new_top, new_rep, new_first, new_own
        )
        self.off, self.rep, self.first = new_off, new_rep[:size], new_first[:size]
        owner = np.repeat(np.arange(features), np.diff(new_off))
        at = view.off[owner] + self.rep
        self.cells = kernels.Cells(
            cells.is_mask, cells.is_missing, cells.mask_of, new_off, new_add[:size], new_top[:size], new_own, view.base[at],
            np.ascontiguousarray(cells.differs[:, at]), cells.at_least,
        )  # fmt: skip
        self.leaves = kernels.Leaves(box_lo[:count], box_hi[:count], box_mask[:count], values.most[leaf[:count]])
        self.tree_start = tree_start
        self.order = np.empty(count, dtype=np.int64)
        kernels.sort_leaves(tree_start, self.leaves.gain, self.order)
        self.start_lo = np.zeros(features, np.int64)
        self.start_hi = np.diff(new_off) - 1
        self.start_mask = mask

    def cells_of(self, blocks: Ints) -> Ints:
        """Return the cell that represents each block."""
        cells: Ints = self.rep[self.off[:-1] + blocks]
        return cells
