"""Checking a branching on whose way prices drop cells and leaves.

At some of its nodes prices are given anew. Whatever they are, they bound the score of every counterfactual that is nearer than the limit
by a sum of maxima over what is left of the box (:mod:`mace.certify.trees.prices`). Where the sum does not reach what the goal needs with

- one leaf in place of the best of its tree, no counterfactual uses that leaf;
- one cell in place of the best of its feature, and in each tree that has prices for the feature the best leaf that holds the cell, no
  counterfactual has that cell.

Both are dropped here, for the whole of the box and with it for its parts. The evidence names neither: it has numbers, which prove what
they prove. Between the steps what cannot be goes too: cells and leaves outside of the ball, cells in which some tree has no leaf, leaves
without a cell.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mace.certify.trees.cells import CellAxis, cells_within, costs_at
from mace.certify.trees.leaves import Leaves, cheapest_of_sets
from mace.certify.trees.prices import (
    LARGEST_SUM,
    NO_PRICE,
    PricedBranching,
    PriceTable,
    covered,
    range_most,
    rates_of,
    refuse_below_0,
    tightened,
)
from mace.certify.verdict import Refuted
from mace.exact import Flags, Ints


@dataclass(frozen=True, slots=True)
class Standing:
    """The prices last given on the way to a box, in units, and the cells that they left of each feature."""

    alive: list[Flags]
    price: Ints
    multiplier: float
    rates: list[float]


@dataclass(frozen=True, slots=True)
class Remainder:
    """What is left of a box.

    Attributes
    ----------
    chosen : int array
        The leaves, tree after tree.
    alive : list of bool arrays
        The cells of each feature; none of those that are missing.
    first, last : int arrays, leaves x features
        The first and the last of these cells that each leaf holds, of features with ranges.
    sets : dict of bool arrays
        Those that it holds, of features with sets.
    """

    chosen: Ints
    alive: list[Flags]
    first: Ints
    last: Ints
    sets: dict[int, Flags]


@dataclass(frozen=True, slots=True)
class Payment:
    """What the trees pay for one feature, over the cells that are left of it.

    Attributes
    ----------
    cells : int array
        The cells.
    unary : int array
        What each is worth: -λ cost and what it spends, less all prices.
    paid : int array, pairs x cells
        The prices.
    pays : bool array
        Which leaves are those of a tree with a price.
    row, first, last : int arrays
        For each of these leaves its pair, and the range of cells that it holds; of features with ranges.
    held : bool array, leaves x cells, optional
        The cells that it holds, of a feature with sets.
    most : int array
        The most that its tree pays for one of them.
    """

    cells: Ints
    unary: Ints
    paid: Ints
    pays: Flags
    row: Ints
    first: Ints
    last: Ints
    held: Flags | None
    most: Ints


class PriceSteps(PriceTable):
    """The prices of one branching, step by step.

    Parameters
    ----------
    evidence : dict
        As for :class:`PriceTable`; besides, for each step its ``node`` of the branching, a row of ``change``, by how many units each price
        changes from what it was on the way there, a ``multiplier`` and, where there are budgets, a row of ``rates``; and the ``unit``.
    about : PricedBranching
        The branching.
    missing : bool array
        The features that are missing.
    at_least : list of int
        How many features must differ from each earlier counterfactual.
    cost : tuple of int
        What the features that are missing cost: their sum and their maximum.
    """

    def __init__(
        self,
        evidence: dict[str, Any],
        about: PricedBranching,
        missing: Flags,
        at_least: list[int],
        cost: tuple[int, int],
    ) -> None:
        super().__init__(evidence, about)
        self.missing, self.at_least, (self.lost_add, self.lost_top) = missing, at_least, cost
        self.present = [j for j, lost in enumerate(missing) if not lost]
        # Where any distance will do, the greatest cost there is is the limit: distance may then have a price too.
        over = [axis for axis, lost in zip(self.axes, missing, strict=True) if not lost and axis.size]
        greatest = sum(int(axis.add.max()) for axis in over)
        greatest += max([self.lost_top, *(int(axis.top.max()) for axis in over)])
        self.limit = min(self.limit, greatest + 1)
        self.node, self.change = (np.asarray(evidence[name]) for name in ("node", "change"))
        self.multiplier = np.asarray(evidence["multiplier"], dtype=np.float64)
        self.rates = rates_of(evidence, len(self.multiplier), self.budgets)
        self.worth_of_unit = float(evidence["unit"]) * self.unit
        if (
            self.node.shape != self.multiplier.shape
            or self.node.ndim != 1
            or {self.node.dtype.kind, self.change.dtype.kind} - {"i", "u"}
            or self.change.shape != (len(self.multiplier), self.count)
            or (np.diff(self.node.astype(np.int64)) < 0).any()
            or not 0 < self.worth_of_unit < math.inf
        ):
            raise Refuted("evidence.prices: nodes, prices and their unit do not fit together")

    def standing(self) -> Standing:
        """Return where the whole stands: nothing is dropped, and all prices are 0."""
        alive = [np.full(axis.size, not lost) for axis, lost in zip(self.axes, self.missing, strict=True)]
        return Standing(alive, np.zeros(self.count, dtype=np.int64), 0.0, [0.0] * self.budgets.count)

    def follow(
        self,
        node: int,
        is_closed: bool,
        chosen: Ints,
        low: Ints,
        high: Ints,
        inside: dict[int, Flags],
        before: Standing,
    ) -> tuple[Ints, Standing] | None:
        """Take the steps of a node, given by its place in the branching; return the leaves that are left and where the box stands then,
        ``None`` where nothing of it is left. A box that is said to be closed by prices is refuted otherwise."""
        alive = [
            each & inside[j] if axis.is_set else each & _between(axis.size, low[j], high[j])
            for j, (axis, each) in enumerate(zip(self.axes, before.alive, strict=True))
        ]
        left, now = self._possible(chosen, alive), before
        begin, end = (int(each) for each in np.searchsorted(self.node, [node, node + 1]))
        for step in range(begin, end):
            if left is None:
                return None
            multiplier, rates = float(self.multiplier[step]), [float(rate) for rate in self.rates[step]]
            refuse_below_0(multiplier, rates)
            now = Standing([], now.price + self.change[step], multiplier, rates)
            left = self._reduced(left, now)
        if left is not None and is_closed and begin == end:
            left = self._reduced(left, now)
        if left is None:
            return None
        if is_closed:
            raise Refuted(f"evidence: the box of node {node} of its part is not closed by its prices")
        return left.chosen, replace(now, alive=left.alive)

    # ---- the bound

    def _reduced(self, left: Remainder, now: Standing) -> Remainder | None:
        """Return what prices leave of a box; ``None`` where they close it."""
        scaled = np.rint(now.price.astype(np.float64) * self.worth_of_unit)
        if np.abs(scaled).sum() * 4 > LARGEST_SUM / 2:
            raise Refuted("evidence.prices: a price is too large")
        price = scaled.astype(np.int64)
        tree = self.leaves.tree[left.chosen]
        begins = np.flatnonzero(np.diff(tree, prepend=-1))
        value = self.gain[left.chosen].copy()
        payments: dict[int, Payment] = {}
        peaks = sum(bool((axis.top[alive] > 0).any()) for axis, alive in zip(self.axes, left.alive, strict=True))
        for j in self.present:
            payments[j] = made = self._payment(j, left, tree, price, now, peaks)
            value[made.pays] += made.most
        best = np.maximum.reduceat(value, begins)
        total = self.start + self.may_be_spent(now.multiplier, now.rates) + int(best.sum())
        spare = total + sum(int(each.unary.max()) for each in payments.values()) - self.need
        if spare < 0:
            return None
        alive = list(left.alive)
        for j, payment in payments.items():
            alive[j] = self._cells_left(alive[j], payment, value, self.tree[j], best, spare)
        return self._possible(left.chosen[best[tree] - value <= spare], alive)

    def _payment(self, j: int, left: Remainder, tree: Ints, price: Ints, now: Standing, peaks: int) -> Payment:
        axis, alive = self.axes[j], left.alive[j]
        cells = np.flatnonzero(alive)
        paid = price[self.segment[j][:, cells]]
        worth = self.worth(axis, now.multiplier, peaks) + self.spent(j, now.rates)
        row = self.row[j][tree]
        pays = row >= 0
        row = row[pays]
        place = np.cumsum(alive) - 1
        first, last = place[left.first[pays, j]], place[left.last[pays, j]]
        held = None
        if axis.is_set:
            held = left.sets[j][pays][:, cells]
            most = np.where(held, paid[row], NO_PRICE).max(axis=1)
        else:
            most = range_most(paid, row, first, last) if len(row) else row
        return Payment(cells, -worth[cells] - paid.sum(axis=0), paid, pays, row, first, last, held, most)

    @staticmethod
    def _cells_left(alive: Flags, payment: Payment, value: Ints, trees: Ints, best: Ints, spare: int) -> Flags:
        """Return the cells with which the bound still reaches what the goal needs."""
        lost = payment.unary.max() - payment.unary
        if len(payment.row):
            rest = value[payment.pays] - payment.most
            if payment.held is None:
                through = range_spread(rest, payment.row, payment.first, payment.last, payment.paid.shape)
            else:
                through = np.full(payment.paid.shape, NO_PRICE, dtype=np.int64)
                np.maximum.at(through, payment.row, np.where(payment.held, rest[:, None], NO_PRICE))
            lost = lost + (best[trees][:, None] - (through + payment.paid)).clip(max=spare + 1).sum(axis=0)
        left = alive.copy()
        left[payment.cells[lost > spare]] = False
        return left

    # ---- what cannot be

    def _possible(self, chosen: Ints, alive: list[Flags]) -> Remainder | None:
        """Drop the cells and leaves of a box that no point within the ball can use, until nothing changes; ``None`` where none is left."""
        while True:
            near = self._near(alive)
            if near is None:
                return None
            cheapest, alive = near
            left = self._leaves_of(chosen, alive, cheapest)
            if left is None:
                return None
            if len(left.chosen) == len(chosen) and all(
                np.array_equal(a, b) for a, b in zip(alive, left.alive, strict=True)
            ):
                return left
            chosen, alive = left.chosen, left.alive

    def _near(self, alive: list[Flags]) -> tuple[Ints, list[Flags]] | None:
        """Return the cheapest cell of each feature, and the cells that some point within ball and budgets may have."""
        if not all(alive[j].any() for j in self.present):
            return None
        cheapest = np.zeros(len(self.axes), dtype=np.int64)
        for j in self.present:
            cheapest[j] = cheapest_of_sets(self.axes[j], alive[j][None])[0]
        costs = costs_at(self.axes, cheapest, self.missing)
        within = cells_within(self.axes, costs, self.limit + self.lost_add)
        near = [kept & each for kept, each in zip(alive, within, strict=True)]
        near = self.budgets.left_of(near, *_box_of(near), self._sets(near))
        for number, least in enumerate(self.at_least):
            differ = sum(
                bool(axis.missing_differs[number]) if lost else bool((axis.differs[number] & near[j]).any())
                for j, (axis, lost) in enumerate(zip(self.axes, self.missing, strict=True))
            )
            if differ < least:
                return None
        return (cheapest, near) if all(near[j].any() for j in self.present) else None

    def _sets(self, alive: list[Flags]) -> dict[int, Flags]:
        """Return what is left of each feature as a set: a range may have lost the factual's own cell from its middle."""
        return {j: alive[j] for j in self.present}

    def _leaves_of(self, chosen: Ints, alive: list[Flags], cheapest: Ints) -> Remainder | None:
        """Return the leaves that hold a point of some cells within ball and budgets, and of the cells those in which every tree has one."""
        leaves, tree = self.leaves, self.leaves.tree[chosen]
        first, last = leaves.low[chosen], leaves.high[chosen]
        sets: dict[int, Flags] = {}
        useful = self.budgets.kept_by(chosen, *_box_of(alive), self._sets(alive))
        add = np.full(len(chosen), self.lost_add)
        top = np.full(len(chosen), self.lost_top)
        for j in self.present:
            axis = self.axes[j]
            if axis.is_set:
                sets[j] = held = leaves.inside[j][chosen] & alive[j]
                useful &= held.any(axis=1)
                cell = cheapest_of_sets(axis, held)
            else:
                first[:, j], last[:, j] = a, b = tightened(alive[j], first[:, j], last[:, j])
                useful &= a <= b
                holds = (a <= cheapest[j]) & (cheapest[j] <= b)
                cell = np.where(holds, cheapest[j], np.clip(np.clip(axis.own, a, b), 0, axis.size - 1))
            # What a leaf forces on a feature costs at least as much as the cheapest cell of the box.
            add += np.maximum(axis.add[cell], axis.add[cheapest[j]])
            top = np.maximum(top, axis.top[cell])
        useful &= add + top < self.limit + self.lost_add
        chosen, first, last, tree = chosen[useful], first[useful], last[useful], tree[useful]
        sets = {j: held[useful] for j, held in sets.items()}
        begins = np.flatnonzero(np.diff(tree, prepend=-1))
        if len(begins) < self.trees:
            return None
        left = list(alive)
        for j in self.present:
            axis = self.axes[j]
            if axis.is_set:
                left[j] = alive[j] & np.logical_or.reduceat(sets[j], begins, axis=0).all(axis=0)
            else:
                left[j] = alive[j] & covered(tree, first[:, j], last[:, j], self.trees, axis.size)
        return Remainder(chosen, left, first, last, sets)


def _between(cells: int, low: int, high: int) -> Flags:
    return (np.arange(cells) >= low) & (np.arange(cells) <= high)


def _box_of(alive: list[Flags]) -> tuple[Ints, Ints]:
    """Return the first and the last cell of each feature that is left."""
    ends = [(each.argmax(), len(each) - 1 - each[::-1].argmax()) if each.any() else (0, -1) for each in alive]
    low, high = np.array(ends, dtype=np.int64).T
    return low, high


def range_spread(rest: Ints, row: Ints, first: Ints, last: Ints, shape: tuple[int, ...]) -> Ints:
    """Return for each row and cell the most that a range of the row with this cell brings; ``NO_PRICE`` where there is none.

    The reverse of :func:`range_most`: each range is noted as two whose length is a power of two, and these are halved.
    """
    level = np.frexp(last - first + 1)[1] - 1
    noted = np.full((int(level.max()) + 1, *shape), NO_PRICE, dtype=np.int64)
    np.maximum.at(noted, (level, row, first), rest)
    np.maximum.at(noted, (level, row, last - (1 << level) + 1), rest)
    for k in range(len(noted) - 1, 0, -1):
        half, wide, narrow = 1 << (k - 1), noted[k], noted[k - 1]
        np.maximum(narrow, wide, out=narrow)
        np.maximum(narrow[:, half:], wide[:, : shape[1] - half], out=narrow[:, half:])
    found: Ints = noted[0]
    return found


def within_ball(axes: list[CellAxis], leaves: Leaves, missing: Flags, limit: int) -> tuple[list[CellAxis], Leaves]:
    """Return axes with those cells alone that some point nearer than the limit may have, and the leaves over these."""
    within = cells_within(axes, costs_at(axes, (axis.own for axis in axes), missing), limit)
    made = list(axes)
    low, high, inside = leaves.low.copy(), leaves.high.copy(), dict(leaves.inside)
    useful = np.ones(len(leaves.node), dtype=bool)
    for j in [j for j, lost in enumerate(missing) if not lost]:
        axis, kept = axes[j], np.flatnonzero(within[j])
        made[j] = _axis_of(axis, kept)
        if axis.is_set:
            inside[j] = inside[j][:, kept]
            useful &= inside[j].any(axis=1)
        else:
            low[:, j] = np.searchsorted(kept, low[:, j], side="left")
            high[:, j] = np.searchsorted(kept, high[:, j], side="right") - 1
            useful &= low[:, j] <= high[:, j]
    return made, replace(leaves, low=low, high=high, inside=inside).taken(useful)


def _axis_of(axis: CellAxis, kept: Ints) -> CellAxis:
    """Return an axis with some of its cells, of which the cheapest is one."""
    return replace(
        axis,
        low=axis.low[kept],
        high=axis.high[kept],
        add=axis.add[kept],
        top=axis.top[kept],
        own=int(np.searchsorted(kept, axis.own)),
        home=int(np.searchsorted(kept, axis.home)) if axis.home in kept else -1,
        differs=axis.differs[:, kept],
    )
