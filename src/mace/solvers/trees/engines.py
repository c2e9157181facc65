"""The two engines that search one ball: with the plain bound, quick on most questions, and with the dual bound for hard ones."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from mace.solvers.trees import dual, kernels, recording
from mace.solvers.trees.arrays import DEEPEST_TREE, make_state
from mace.solvers.trees.grid import Floats, Ints
from mace.solvers.trees.local import Local
from mace.solvers.trees.prepared import Values, kernel_goal

MOST_PRICES = 2**27
"""How many prices may be kept in all: a gigabyte."""

MOST_RECORDED = 2**24
"""How many prices may be recorded: a proof of more is larger than anyone wants to check, and is not made."""

FINEST = 2.0**-15
"""To what share of the score that is lacking prices are rounded where they are recorded, at most."""


class Engine(ABC):
    """A search of one ball that can be paused and resumed."""

    def __init__(self, local: Local, values: Values, radius: float, state: kernels.SearchState) -> None:
        self.local = local
        self.radius = radius
        self.goal = kernel_goal(values)
        self.state = state
        self.registers, self.reals, self.best, self.log_point, self.log_cost = state
        self.registers[:] = 0
        self.registers[kernels.FRESH] = 1
        self.reals[:] = 0.0
        self.reals[kernels.LIMIT] = radius
        self.best[:] = 0

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
        arrays = local.arrays
        super().__init__(local, values, radius, arrays.state)
        self.trees = trees
        arrays.make_arena(arena)
        self.stack = stack = arrays.stack
        self.work = arrays.work
        stack.arena[: local.count] = local.order
        stack.lo[0], stack.hi[0], stack.mask[0] = local.box
        stack.first[0], stack.last[0] = local.tree_start[:-1], local.tree_start[1:]
        stack.active[0], stack.top[0], stack.const[0] = local.trees, local.count, values.base
        steps = 16 * (len(local.cheapest) + 64)
        self.proof = kernels.Proof(np.empty(steps, np.int32), np.zeros(steps, np.int64)) if record else arrays.proof

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
        lacking: float = 0.0,
    ) -> None:
        """Begin with some multipliers; ``lacking``, what the factual's score lacks, where the branching is to be recorded."""
        super().__init__(local, values, radius, make_state(len(local.cells.own)))
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
        self.proof = _first_room(lacking, segments, len(multipliers))

    @property
    def branching(self) -> tuple[Ints, Ints] | None:
        """The branching so far, as recorded; ``None`` where it is not."""
        steps = self.registers[kernels.RECORDED]
        return (self.proof.code[:steps], self.proof.at[:steps]) if len(self.proof.code) else None

    @property
    def recorded(self) -> dual.PricedProof:
        """The branching and the prices so far, as recorded."""
        steps, rows, proof = self.registers[kernels.RECORDED], self.registers[dual.PRICED], self.proof
        return dual.PricedProof(
            proof.code[:steps],
            proof.at[:steps],
            proof.node[:rows],
            proof.price[:rows],
            proof.multiplier[:rows],
            proof.unit,
        )

    def make_room(self) -> None:
        """Make room for twice as much of the branching; where that is too much, nothing is recorded any more."""
        old, width, unit = self.recorded, self.proof.multiplier.shape[1], self.proof.unit[0]
        steps, rows = 2 * len(self.proof.code), 2 * len(self.proof.node)
        if rows * self.segments > MOST_RECORDED:
            self.proof = _room(0, 0, self.segments, width, unit)
            return
        self.proof = _room(steps, rows, self.segments, width, unit)
        for wide, kept in zip(self.proof[:-1], old[:-1], strict=True):
            wide[: len(kept)] = kept

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
        recording.advance_priced(budget, self.state, self.ball, self.boxes, self.work, self.proof)


def _first_room(lacking: float, segments: int, multipliers: int) -> dual.PricedProof:
    """Return room for a branching, none where no score is lacking; a price is a multiple of a power of two."""
    unit = 2.0 ** np.floor(np.log2(lacking or 1.0)) * FINEST
    return _room(1024, 64, segments, multipliers, unit) if lacking > 0.0 else _room(0, 0, segments, multipliers, unit)


def _room(steps: int, rows: int, segments: int, multipliers: int, unit: float) -> dual.PricedProof:
    return dual.PricedProof(
        code=np.empty(steps, np.int32),
        at=np.zeros(steps, np.int64),
        node=np.empty(rows, np.int64),
        price=np.empty((rows, segments), np.int32),
        multiplier=np.empty((rows, multipliers)),
        unit=np.array([unit]),
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
