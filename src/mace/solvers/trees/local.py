"""The problem inside one ball: its leaves, its cells merged where no leaf tells them apart, the kernel's working arrays."""

from __future__ import annotations

import numpy as np

from mace.solvers.trees import kernels
from mace.solvers.trees.grid import Grid, Ints
from mace.solvers.trees.prepared import Values
from mace.solvers.trees.question import View

MOST_LOGGED = 4096


class Local:
    """The problem inside one ball: its leaves, its cells merged where no leaf tells them apart, and the kernel's working arrays."""

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
        new_add, new_top, new_rep = np.empty(blocks), np.empty(blocks), np.empty(blocks, np.int64)
        size = kernels.compress(
            count, lo, hi, cells, view.cut, box_lo, box_hi, new_off, new_add, new_top, new_rep, new_own
        )
        self.off, self.rep = new_off, new_rep[:size]
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
        self.base = values.base
        self.margins = len(values.base)

    def reset(self, radius: float, arena: int) -> None:
        """Make the working arrays of a fresh run."""
        features, margins, trees = len(self.start_lo), self.margins, self.trees
        size = len(self.rep)
        depth = min(size + features + 4, 4096)
        ints = np.int64
        self.stack = kernels.Stack(
            arena=np.empty(arena, np.int32),
            lo=np.empty((depth, features), ints),
            hi=np.empty((depth, features), ints),
            mask=np.empty((depth, features), ints),
            first=np.empty((depth, trees), ints),
            last=np.empty((depth, trees), ints),
            active=np.empty(depth, ints),
            top=np.empty(depth, ints),
            const=np.empty((depth, margins)),
            state=np.zeros(depth, ints),
            feature=np.empty(depth, ints),
            at=np.empty(depth, ints),
            near_side=np.empty(depth, ints),
            point=np.empty((depth, features), ints),
            at_first=np.empty(trees, ints),
            open=np.empty(features, ints),
            closed=np.empty(2),
            reach=np.empty((features, 3), ints),
            level=np.empty((features, 2)),
        )
        stack = self.stack
        stack.arena[: self.count] = self.order
        stack.lo[0], stack.hi[0], stack.mask[0] = self.start_lo, self.start_hi, self.start_mask
        stack.first[0], stack.last[0] = self.tree_start[:-1], self.tree_start[1:]
        stack.active[0], stack.top[0], stack.const[0] = trees, self.count, self.base
        registers = np.zeros(8, ints)
        registers[kernels.FRESH] = 1
        reals = np.array([radius])
        self.state = (
            registers, reals, np.zeros(features, ints), np.empty((MOST_LOGGED, features), ints), np.empty(MOST_LOGGED),
        )  # fmt: skip
        widest = int(np.diff(self.off).max())
        self.peaks = np.empty((trees, margins))
        self.drop, self.soft = np.empty((2, size + 1)), np.empty((2, size + 1))
        self.scratch = np.empty((2, widest + 1))
        self.empty = np.empty((2, size + 1), ints)

    def cells_of(self, blocks: Ints) -> Ints:
        """Return the cells that stand for blocks."""
        cells: Ints = self.rep[self.off[:-1] + blocks]
        return cells
