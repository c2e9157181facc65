"""The two engines that search one ball: the plain bound, quick on most questions, and the bound by prices for hard ones."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from mace.solvers.trees import dual, kernels
from mace.solvers.trees.grid import Floats, Ints
from mace.solvers.trees.local import Local
from mace.solvers.trees.prepared import Values

MOST_LOGGED = 4096
MOST_DEPTH = 4096
MOST_PRICES = 2**27
"""How many prices may be kept in all: a gigabyte."""


class Engine(ABC):
    """A search of one ball that can be paused and resumed."""

    def __init__(self, local: Local, trees: kernels.Trees, values: Values, radius: float) -> None:
        features = len(local.start_lo)
        self.local = local
        self.trees = trees
        self.radius = radius
        self.goal = kernels.Goal(values.base, values.need, values.sure, values.pad)
        self.registers = np.zeros(12, np.int64)
        self.registers[kernels.FRESH] = 1
        self.reals = np.zeros(8)
        self.reals[kernels.LIMIT] = radius
        self.best = np.zeros(features, np.int64)
        self.log_point = np.empty((MOST_LOGGED, features), np.int64)
        self.log_cost = np.empty(MOST_LOGGED)

    @property
    def nodes(self) -> int:
        """How many boxes were looked at."""
        return int(self.registers[kernels.NODES])

    @property
    def status(self) -> int:
        """Whether it runs, has run out of room, or wants something of its caller."""
        return int(self.registers[kernels.STATUS])

    @property
    def found(self) -> bool:
        """Whether a counterfactual was found in the ball."""
        return bool(self.registers[kernels.FOUND])

    @property
    def floor(self) -> float:
        """A cost below which the ball holds nothing, whether or not the search has ended."""
        return 0.0

    @property
    def branching(self) -> tuple[Ints, Ints] | None:
        """The branching so far, as recorded; ``None`` where it is not."""
        return None

    @abstractmethod
    def advance(self, budget: int) -> None:
        """Go on for about so many steps."""

    @abstractmethod
    def make_room(self) -> None:
        """Make room for more of the branching."""


class Plain(Engine):
    """Each tree's greatest leaf within the box and the ball."""

    def __init__(
        self, local: Local, trees: kernels.Trees, values: Values, radius: float, arena: int, *, record: bool = False
    ) -> None:
        super().__init__(local, trees, values, radius)
        features, margins, forest, size = len(local.start_lo), len(values.base), local.trees, len(local.rep)
        depth = min(size + features + 4, MOST_DEPTH)
        ints = np.int64
        self.stack = stack = kernels.Stack(
            arena=np.empty(arena, np.int32),
            lo=np.empty((depth, features), ints),
            hi=np.empty((depth, features), ints),
            mask=np.empty((depth, features), ints),
            first=np.empty((depth, forest), ints),
            last=np.empty((depth, forest), ints),
            active=np.empty(depth, ints),
            top=np.empty(depth, ints),
            const=np.empty((depth, margins)),
            state=np.zeros(depth, ints),
            feature=np.empty(depth, ints),
            at=np.empty(depth, ints),
            near_side=np.empty(depth, ints),
            point=np.empty((depth, features), ints),
            at_first=np.empty(forest, ints),
            loose=np.empty(features, ints),
            closed=np.empty(2),
            reach=np.empty((features, 3), ints),
            level=np.empty((features, 2)),
        )
        stack.arena[: local.count] = local.order
        stack.lo[0], stack.hi[0], stack.mask[0] = local.start_lo, local.start_hi, local.start_mask
        stack.first[0], stack.last[0] = local.tree_start[:-1], local.tree_start[1:]
        stack.active[0], stack.top[0], stack.const[0] = forest, local.count, values.base
        widest = int(np.diff(local.off).max())
        self.peaks = np.empty((forest, margins))
        self.drop, self.soft = np.empty((2, size + 1)), np.empty((2, size + 1))
        self.scratch = np.empty((2, widest + 1))
        self.empty = np.empty((2, size + 1), ints)
        steps = 16 * (size + 64) if record else 0
        self.proof = kernels.Proof(code=np.empty(steps, np.int32), at=np.zeros(steps, ints))

    @property
    def branching(self) -> tuple[Ints, Ints] | None:
        """The branching so far, as recorded; ``None`` where it is not."""
        steps = self.registers[kernels.RECORDED]
        return (self.proof.code[:steps], self.proof.at[:steps]) if len(self.proof.code) else None

    def make_room(self) -> None:
        """Make room for four times as much of the branching."""
        steps = self.registers[kernels.RECORDED]
        wider = kernels.Proof(
            code=np.empty(4 * len(self.proof.code), np.int32), at=np.zeros(4 * len(self.proof.at), np.int64)
        )
        wider.code[:steps], wider.at[:steps] = self.proof.code[:steps], self.proof.at[:steps]
        self.proof = wider

    def advance(self, budget: int) -> None:
        """Go on for so many boxes."""
        kernels.advance(
            budget, self.registers, self.reals, self.best, self.log_point, self.log_cost, self.local.cells, self.local.leaves,
            self.trees, self.goal, self.stack, self.peaks, self.drop, self.soft, self.scratch, self.empty,
            self.proof,
        )  # fmt: skip


class Priced(Engine):
    """Trees that pay for the cells they want (see :mod:`mace.solvers.trees.dual`)."""

    def __init__(
        self,
        local: Local,
        trees: kernels.Trees,
        values: Values,
        radius: float,
        arena: int,
        multiplier: float,
        *,
        record: bool = False,
    ) -> None:
        super().__init__(local, trees, values, radius)
        cells, features, forest, size = local.cells, len(local.start_lo), local.trees, len(local.rep)
        ints = np.int64
        self.cost = mean_cost(cells)
        self.pairs, self.count, segments = make_pairs(local)
        depth = int(max(8, min(size + features + 4, MOST_DEPTH, MOST_PRICES // max(segments, 1))))
        self.boxes = boxes = dual.Boxes(
            arena=np.empty(arena, np.int32),
            lo=np.empty((depth, features), ints),
            hi=np.empty((depth, features), ints),
            mask=np.empty((depth, features), ints),
            alive=np.empty((depth, size), np.uint8),
            price=np.empty((depth, segments)),
            multiplier=np.empty(depth),
            first=np.empty((depth, forest), ints),
            last=np.empty((depth, forest), ints),
            top=np.empty(depth, ints),
            is_flat=np.empty((depth, self.count), np.uint8),
            state=np.zeros(depth, ints),
            feature=np.empty(depth, ints),
            at=np.empty(depth, ints),
            near_side=np.empty(depth, ints),
            point=np.empty((depth, features), ints),
        )
        boxes.arena[: local.count] = local.order
        boxes.lo[0], boxes.hi[0], boxes.mask[0] = local.start_lo, local.start_hi, local.start_mask
        boxes.alive[0] = is_allowed(local)
        boxes.price[0], boxes.multiplier[0], boxes.is_flat[0] = 0.0, multiplier, 0
        boxes.first[0], boxes.last[0], boxes.top[0] = local.tree_start[:-1], local.tree_start[1:], local.count
        self.work = dual.Work(
            value=np.empty(local.count),
            best=np.empty(forest),
            unary=np.empty(size),
            highest=np.empty(features),
            through=np.empty(segments),
            rest=np.empty(local.count),
            begin=np.empty(self.count, ints),
            end=np.empty(self.count, ints),
            choice=np.empty(features, ints),
            is_single=np.empty(features, np.uint8),
            eliminated=np.empty((2, size + 1)),
            up=np.empty(segments),
            down=np.empty(segments),
        )
        self.reals[dual.RESTART_BELOW] = RESTART_SHARE * radius
        self.segments = segments
        self.proof = _room(1024 if record else 0, 64 if record else 0, segments)

    @property
    def branching(self) -> tuple[Ints, Ints] | None:
        """The branching so far, as recorded; ``None`` where it is not."""
        steps = self.registers[kernels.RECORDED]
        return (self.proof.code[:steps], self.proof.at[:steps]) if len(self.proof.code) else None

    @property
    def closing_prices(self) -> tuple[NDArray[np.float32], Floats]:
        """The prices of each box that they close, and the price of distance."""
        boxes = self.registers[dual.PRICED]
        return self.proof.price[:boxes], self.proof.multiplier[:boxes]

    def make_room(self) -> None:
        """Make room for twice as much of the branching."""
        old, steps, boxes = self.proof, self.registers[kernels.RECORDED], self.registers[dual.PRICED]
        self.proof = _room(2 * len(old.code), 2 * len(old.multiplier), self.segments)
        self.proof.code[:steps], self.proof.at[:steps] = old.code[:steps], old.at[:steps]
        self.proof.price[:boxes], self.proof.multiplier[:boxes] = old.price[:boxes], old.multiplier[:boxes]

    @property
    def floor(self) -> float:
        """A cost below which the ball holds nothing, whether or not the search has ended."""
        return min(self.radius, float(self.reals[dual.ROOT_BOUND]))

    @property
    def multiplier(self) -> float:
        """The price of distance at the root, to begin the next ball with."""
        return float(self.boxes.multiplier[0])

    def advance(self, budget: int) -> None:
        """Go on for so many sweeps."""
        dual.advance_priced(
            budget, self.count, self.registers, self.reals, self.best, self.log_point, self.log_cost, self.cost,
            self.local.cells, self.local.leaves, self.trees, self.goal, self.pairs, self.boxes, self.work,
            self.proof,
        )  # fmt: skip


def _room(steps: int, boxes: int, segments: int) -> dual.PricedProof:
    return dual.PricedProof(
        code=np.empty(steps, np.int32),
        at=np.zeros(steps, np.int64),
        price=np.empty((boxes, segments), np.float32),
        multiplier=np.empty(boxes),
    )


RESTART_SHARE = 0.8
"""A point nearer than this share of the radius is worth a fresh start with a smaller ball."""


def mean_cost(cells: kernels.Cells) -> Floats:
    """Return each cell's cost with the maximum over features replaced by a mean, which is never more."""
    counted = [j for j in range(len(cells.own)) if (cells.top[cells.off[j] : cells.off[j + 1]] > 0).any()]
    cost: Floats = cells.add + cells.top / max(len(counted), 1) * (1 - 2.0**-40)
    return cost


def is_allowed(local: Local) -> NDArray[np.uint8]:
    """Return which cells of the ball a point may lie in."""
    allowed: NDArray[np.uint8] = (local.cells.add < kernels.FAR).astype(np.uint8)
    for j in np.flatnonzero(local.cells.is_mask):
        levels = np.arange(local.off[j + 1] - local.off[j])
        allowed[local.off[j] : local.off[j + 1]] &= ((local.start_mask[j] >> levels) & 1).astype(np.uint8)
    return allowed


def make_pairs(local: Local) -> tuple[dual.Pairs, int, int]:
    """Return the pairs of trees and features, their number and that of their segments."""
    features, forest = len(local.start_lo), local.trees
    ints = np.int64
    counts = np.zeros(2, ints)
    room = 8
    while True:
        pairs = dual.Pairs(
            of_tree=np.empty(forest + 1, ints),
            tree=np.empty(room * forest, ints),
            feature=np.empty(room * forest, ints),
            segment=np.empty(room * forest + 1, ints),
            first=np.empty(4 * room * forest + len(local.rep), ints),
            last=np.empty(4 * room * forest + len(local.rep), ints),
            at_leaf=np.empty(local.count, ints),
            from_segment=np.empty(room * local.count, np.int32),
            to_segment=np.empty(room * local.count, np.int32),
            of_feature=np.empty(features + 1, ints),
            by_feature=np.empty(room * forest, ints),
        )
        made = dual.make_pairs(
            local.tree_start, local.leaves, local.cells, local.start_lo, local.start_hi, local.start_mask, pairs, counts
        )
        if made:
            return pairs, int(counts[0]), int(counts[1])
        room *= 2
