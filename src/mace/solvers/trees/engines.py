"""The two engines that search one ball: with the plain bound, quick on most questions, and with the dual bound for hard ones."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from mace.solvers.trees import dual, kernels
from mace.solvers.trees.grid import Floats, Ints
from mace.solvers.trees.local import Local
from mace.solvers.trees.parts import Tables, TreePart
from mace.solvers.trees.pockets import Pocket
from mace.solvers.trees.prepared import Values, kernel_goal

MOST_LOGGED = 4096
MOST_POCKETS = 256
"""Of so many points or boxes a kernel keeps a list for its caller."""

DEEPEST_TREE = 4096
MOST_PRICES = 2**27
"""How many prices may be kept in all: a gigabyte."""


class Engine(ABC):
    """A search of one ball that can be paused and resumed."""

    def __init__(self, local: Local, values: Values, radius: float) -> None:
        features = len(local.cells.own)
        self.local = local
        self.radius = radius
        self.goal = kernel_goal(values)
        self.registers = np.zeros(12, np.int64)
        self.registers[kernels.FRESH] = 1
        self.reals = np.zeros(8)
        self.reals[kernels.LIMIT] = radius
        self.best = np.zeros(features, np.int64)
        self.log_point = np.empty((MOST_LOGGED, features), np.int64)
        self.log_cost = np.empty(MOST_LOGGED)
        size, ints = MOST_POCKETS if len(local.cells.rows.least) else 1, np.int64
        self.log_pockets = kernels.Pockets(
            np.empty((size, features), ints), np.empty((size, features), ints), np.empty((size, features), ints), np.empty(size),
            np.empty(size, ints), np.empty(size, ints),
        )  # fmt: skip
        self.state = kernels.SearchState(
            self.registers, self.reals, self.best, self.log_point, self.log_cost, self.log_pockets
        )
        self.pockets: list[Pocket] = []

    @property
    def nodes(self) -> int:
        """How many boxes were looked at."""
        return int(self.registers[kernels.NODES])

    @property
    def status(self) -> int:
        """Whether it is running, has run out of room, or waits for its caller (:mod:`mace.solvers.trees.kernels` has the values)."""
        return int(self.registers[kernels.STATUS])

    @property
    def found(self) -> bool:
        """Whether a counterfactual was found in the ball."""
        return bool(self.registers[kernels.FOUND])

    def new_pockets(self, tables: Tables, part: TreePart) -> list[Pocket]:
        """Return the boxes that were logged since the last time, and empty the log of them."""
        log = self.log_pockets
        boxes = zip(log.lo, log.hi, log.mask, log.cost, log.is_sure, log.step, strict=True)
        made = [
            Pocket(
                self.local.ranges_of(tables, part, kernels.CellBox(lo, hi, mask)), float(cost), bool(is_sure), int(step)
            )
            for lo, hi, mask, cost, is_sure, step in itertools.islice(boxes, int(self.registers[kernels.POCKETS]))
        ]
        self.registers[kernels.POCKETS] = 0
        if self.branching is not None:
            self.pockets += made
        return made

    @property
    def floor(self) -> float:
        """A lower bound on the cost of the ball's counterfactuals, whether or not the search has ended."""
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
    """Branch and bound with the plain bound: each tree's greatest leaf within the box and the ball."""

    def __init__(
        self, local: Local, trees: kernels.Trees, values: Values, radius: float, arena: int, *, record: bool = False
    ) -> None:
        super().__init__(local, values, radius)
        features, margins, forest, size = len(self.best), len(values.base), local.trees, len(local.cheapest)
        depth = min(size + features + 4, DEEPEST_TREE)
        ints = np.int64
        self.trees = trees
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
            lists=row_lists(local, depth),
        )
        stack.arena[: local.count] = local.order
        stack.lo[0], stack.hi[0], stack.mask[0] = local.box
        stack.first[0], stack.last[0] = local.tree_start[:-1], local.tree_start[1:]
        stack.active[0], stack.top[0], stack.const[0] = forest, local.count, values.base
        widest = int(np.diff(local.off).max())
        self.work = kernels.SearchWork(
            tree_max=np.empty((forest, margins)),
            drop=np.empty((2, size + 1)),
            eliminated=np.empty((2, size + 1)),
            scratch=np.empty((2, widest + 1)),
            empty=np.empty((2, size + 1), ints),
            first_fit=np.empty(forest, ints),
            free=np.empty(features, ints),
            fixed=np.empty(2 + len(local.cells.most)),
            reach=np.empty((features, 3), ints),
            fall=np.empty((features, 2)),
        )
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
        local = self.local
        kernels.advance(
            budget, self.state, local.cells, local.leaves, self.trees, self.goal, self.stack, self.work, self.proof
        )


class Priced(Engine):
    """Branch and bound with the dual bound: trees pay for the cells they want (:mod:`mace.solvers.trees.dual`)."""

    def __init__(
        self,
        local: Local,
        trees: kernels.Trees,
        values: Values,
        radius: float,
        arena: int,
        multipliers: Floats,
        *,
        record: bool = False,
    ) -> None:
        super().__init__(local, values, radius)
        features, forest, size, ints = len(self.best), local.trees, len(local.cheapest), np.int64
        self.pairs, self.count, segments = make_pairs(local)
        cost = mean_cost(local.cells)
        self.ball = dual.PricedBall(local.cells, local.leaves, trees, self.goal, self.pairs, self.count, cost)
        depth = int(max(8, min(size + features + 4, DEEPEST_TREE, MOST_PRICES // max(segments, 1))))
        self.boxes = boxes = dual.PricedBoxes(
            arena=np.empty(arena, np.int32),
            lo=np.empty((depth, features), ints),
            hi=np.empty((depth, features), ints),
            mask=np.empty((depth, features), ints),
            alive=np.empty((depth, size), np.uint8),
            price=np.empty((depth, segments)),
            multiplier=np.empty((depth, len(multipliers))),
            first=np.empty((depth, forest), ints),
            last=np.empty((depth, forest), ints),
            top=np.empty(depth, ints),
            is_flat=np.empty((depth, self.count), np.uint8),
            state=np.zeros(depth, ints),
            feature=np.empty(depth, ints),
            at=np.empty(depth, ints),
            near_side=np.empty(depth, ints),
            point=np.empty((depth, features), ints),
            lists=row_lists(local, depth),
        )
        boxes.arena[: local.count] = local.order
        boxes.lo[0], boxes.hi[0], boxes.mask[0] = local.box
        boxes.alive[0] = is_allowed(local)
        boxes.price[0], boxes.multiplier[0], boxes.is_flat[0] = 0.0, multipliers, 0
        boxes.first[0], boxes.last[0], boxes.top[0] = local.tree_start[:-1], local.tree_start[1:], local.count
        self.work = dual.DualWork(
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
            slack=np.empty((2, len(multipliers))),
            moved=np.empty(len(multipliers)),
        )
        self.reals[kernels.RESTART_BELOW] = RESTART_SHARE * radius
        self.segments = segments
        self.proof = _room(1024 if record else 0, 64 if record else 0, segments, len(multipliers))

    @property
    def branching(self) -> tuple[Ints, Ints] | None:
        """The branching so far, as recorded; ``None`` where it is not."""
        steps = self.registers[kernels.RECORDED]
        return (self.proof.code[:steps], self.proof.at[:steps]) if len(self.proof.code) else None

    @property
    def closing_prices(self) -> tuple[NDArray[np.float32], Floats]:
        """The prices and the multipliers of each box that is pruned by them."""
        boxes = self.registers[dual.PRICED]
        return self.proof.price[:boxes], self.proof.multiplier[:boxes]

    def make_room(self) -> None:
        """Make room for twice as much of the branching."""
        old, steps, boxes = self.proof, self.registers[kernels.RECORDED], self.registers[dual.PRICED]
        self.proof = _room(2 * len(old.code), 2 * len(old.multiplier), self.segments, old.multiplier.shape[1])
        self.proof.code[:steps], self.proof.at[:steps] = old.code[:steps], old.at[:steps]
        self.proof.price[:boxes], self.proof.multiplier[:boxes] = old.price[:boxes], old.multiplier[:boxes]

    @property
    def floor(self) -> float:
        """A lower bound on the cost of the ball's counterfactuals, whether or not the search has ended."""
        return min(self.radius, float(self.reals[dual.ROOT_BOUND]))

    @property
    def multipliers(self) -> Floats:
        """λ at the root and μ of each budget, to begin the next ball with."""
        found: Floats = self.boxes.multiplier[0].copy()
        return found

    def advance(self, budget: int) -> None:
        """Go on for so many sweeps."""
        dual.advance_priced(budget, self.state, self.ball, self.boxes, self.work, self.proof)


def row_lists(local: Local, depth: int) -> kernels.RowLists:
    """Return the lists of rows that may count, with all of them for the whole ball."""
    rows = local.cells.rows
    groups, count = len(rows.least), rows.home.shape[1]
    lists = kernels.RowLists(
        np.empty((depth if groups else 1, count), np.int64), np.empty((depth if groups else 1, groups), np.int64)
    )
    lists.rows[0], lists.end[0] = np.arange(count), rows.begin[1:]
    return lists


def _room(steps: int, boxes: int, segments: int, multipliers: int) -> dual.PricedProof:
    return dual.PricedProof(
        code=np.empty(steps, np.int32),
        at=np.zeros(steps, np.int64),
        price=np.empty((boxes, segments), np.float32),
        multiplier=np.empty((boxes, multipliers)),
    )


RESTART_SHARE = 0.8
"""A point nearer than this share of the radius is worth a fresh start with a smaller ball."""


def mean_cost(cells: kernels.CellTable) -> Floats:
    """Return each cell's cost with the maximum over features replaced by a mean, which is never more."""
    counted = [j for j in range(len(cells.own)) if (cells.top[cells.off[j] : cells.off[j + 1]] > 0).any()]
    cost: Floats = cells.add + cells.top / max(len(counted), 1) * (1 - 2.0**-40)
    return cost


def is_allowed(local: Local) -> NDArray[np.uint8]:
    """Return which cells of the ball a point may lie in."""
    allowed: NDArray[np.uint8] = (local.cells.add < kernels.FAR).astype(np.uint8)
    for j in np.flatnonzero(local.cells.is_mask):
        levels = np.arange(local.off[j + 1] - local.off[j])
        allowed[local.off[j] : local.off[j + 1]] &= ((local.box.mask[j] >> levels) & 1).astype(np.uint8)
    return allowed


def make_pairs(local: Local) -> tuple[dual.Pairs, int, int]:
    """Return the pairs of trees and features, their number and that of their segments."""
    features, forest = len(local.cells.own), local.trees
    ints = np.int64
    counts = np.zeros(2, ints)
    room = 8
    while True:
        pairs = dual.Pairs(
            of_tree=np.empty(forest + 1, ints),
            tree=np.empty(room * forest, ints),
            feature=np.empty(room * forest, ints),
            segment=np.empty(room * forest + 1, ints),
            first=np.empty(4 * room * forest + len(local.cheapest), ints),
            last=np.empty(4 * room * forest + len(local.cheapest), ints),
            at_leaf=np.empty(local.count, ints),
            from_segment=np.empty(room * local.count, np.int32),
            to_segment=np.empty(room * local.count, np.int32),
            of_feature=np.empty(features + 1, ints),
            by_feature=np.empty(room * forest, ints),
        )
        made = dual.make_pairs(local.tree_start, local.order, local.leaves, local.cells, local.box, pairs, counts)
        if made:
            return pairs, int(counts[0]), int(counts[1])
        room *= 2
