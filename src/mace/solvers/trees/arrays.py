"""The arrays of the balls of one search, kept from ball to ball and from question to question: making them takes longer than most balls."""

from __future__ import annotations

import numpy as np

from mace.solvers.trees import kernels

MOST_BYTES_KEPT = 2**23
"""So many bytes are kept for the next question; what a hard question needed on top is given back."""

MOST_LOGGED = 4096
DEEPEST_TREE = 4096
LEAST_ARENA = 1 << 16


class BallArrays:
    """Room for one ball: its leaves, its blocks of cells, and the plain search in it. The next ball overwrites it.

    Attributes
    ----------
    shape : tuple of int
        The numbers of features, of trees, of margins, of features that are sets of levels, and of budgets.
    cells : int
        How many cells of all features there may be.
    found : kernels.FoundPoint
        Room for the leaves of a ball.
    blocks : kernels.Blocks
        Room for the blocks of cells of a ball.
    state, stack, work
        Those of the plain search.
    """

    def __init__(self, shape: tuple[int, int, int, int, int], cells: int) -> None:
        self.shape, self.cells = shape, cells
        (features, trees, margins, _, budgets), ints = shape, np.int64
        self.blocks = kernels.Blocks(
            np.empty(features + 1, ints), np.empty(cells), np.empty(cells), np.empty(cells, ints), np.empty(cells, ints),
            np.empty(features, ints),
        )  # fmt: skip
        self.make_found(64 * trees + 256)
        self.state = make_state(features)
        depth = min(cells + features + 4, DEEPEST_TREE)
        self.stack = kernels.Stack(
            arena=np.empty(LEAST_ARENA, np.int32),
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
            limit=np.empty(depth),
        )
        self.work = kernels.SearchWork(
            tree_max=np.empty((trees, margins)),
            drop=np.empty((2, cells + 1)),
            eliminated=np.empty((2, cells + 1)),
            scratch=np.empty((2, cells + 1)),
            empty=np.empty((2, cells + 1), ints),
            first_fit=np.empty(trees, ints),
            free=np.empty(features, ints),
            fixed=np.empty(2 + budgets),
            filtered=np.empty((4, features), ints),
            moved=np.empty(features, ints),
            reach=np.empty((features, 3), ints),
            fall=np.empty((features, 2)),
        )
        self.proof = kernels.Proof(np.empty(0, np.int32), np.zeros(0, ints))

    def fits(self, shape: tuple[int, int, int, int, int], cells: int) -> bool:
        """Return whether there is room for so many of each."""
        return self.shape == shape and self.cells >= cells

    def make_found(self, leaves: int) -> None:
        """Make room for so many leaves."""
        features, trees, _, masks, _ = self.shape
        ints = np.int64
        low, high = np.empty((leaves, features), np.int32), np.empty((leaves, features), np.int32)
        levels = np.zeros((leaves, max(1, masks)), ints)
        self.found = kernels.FoundPoint(
            np.empty(trees + 1, ints), np.empty(leaves, ints), np.empty(leaves), low, high, levels, np.empty(1)
        )

    def make_arena(self, size: int) -> None:
        """Make room for so many numbers of leaves."""
        if len(self.stack.arena) < size:
            self.stack = self.stack._replace(arena=np.empty(size, np.int32))

    @property
    def bytes(self) -> int:
        """How much memory it takes."""
        return sum(
            each.nbytes for record in (self.found, self.blocks, self.state, self.stack, self.work) for each in record
        )


def make_state(features: int) -> kernels.SearchState:
    """Return room for the state of a search."""
    return kernels.SearchState(
        registers=np.zeros(12, np.int64),
        reals=np.zeros(8),
        best=np.zeros(features, np.int64),
        log_point=np.empty((MOST_LOGGED, features), np.int64),
        log_cost=np.empty(MOST_LOGGED),
    )
