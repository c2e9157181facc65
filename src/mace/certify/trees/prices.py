"""Checking a box that is closed by prices.

Let tree t pay φ[t, j](c) for cell c of feature j, any whole numbers, and let λ >= 0 be a price of distance. A point x of the box that is
nearer than the limit, and uses the leaves l_t, has

    Σ gain(l_t)  <=  λ limit + Σ_t (gain(l_t) + Σ_j φ[t, j](x_j)) + Σ_j (-λ cost_j(x_j) - Σ_t φ[t, j](x_j))

because the prices cancel and λ (limit - cost(x)) >= 0. Each bracket is at most its own maximum over the leaves, or cells, that are still
possible. Where the sum of these maxima does not reach what the goal needs, no such point is in the goal. Wrong prices prove nothing.

A budget with a price μ >= 0 is a second cost: it adds μ times what may be spent to the first term, and -μ spend_j(x_j) to the last.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from mace.certify.trees.budgets import Budgets
from mace.certify.trees.cells import CellAxis
from mace.certify.trees.leaves import Leaves
from mace.certify.verdict import Refuted
from mace.exact import Flags, Floats, Ints

COARSER = 12
"""How many bits of a gain are rounded away, in favour of the target, to leave room for sums with prices."""

LARGEST_SUM = 2**61
NO_PRICE = -(2**61)


@dataclass(frozen=True, slots=True)
class PricedBranching:
    """What prices are about: one branching, over one margin.

    Attributes
    ----------
    axes, leaves
        Of the branching.
    gain, start, need : int arrays
        Of its only margin.
    bits : int
        What one unit of score is worth: ``2**bits``.
    limit : int
        The cost below which a point is nearer, less that of the features that are missing.
    trees : int
        How many trees there are; a price of any other tree is refused.
    budgets : Budgets
        Of the question.
    """

    axes: list[CellAxis]
    leaves: Leaves
    gain: Ints
    start: Ints
    need: Ints
    bits: int
    limit: int
    trees: int
    budgets: Budgets


class PriceTable:
    """The pairs of one branching: which trees pay for which feature, and over which segments of its cells.

    The evidence has ``tree``, ``feature`` and ``segments`` of each pair, and the ``upper`` end of each segment.
    """

    def __init__(self, evidence: dict[str, Any], about: PricedBranching) -> None:
        if about.gain.shape[1] != 1:
            raise Refuted("evidence.prices: they are about one margin, and the alternative has several")
        self.axes, self.leaves, self.limit = about.axes, about.leaves, about.limit
        self.trees, self.budgets = about.trees, about.budgets
        self.gain = -((-about.gain[:, 0]) >> COARSER)
        self.start, self.need = -((-int(about.start[0])) >> COARSER), int(about.need[0]) >> COARSER
        self.unit = math.ldexp(1.0, about.bits - COARSER)
        axes, trees = self.axes, self.trees
        tree, feature, segments = (
            np.asarray(evidence[name], dtype=np.int64) for name in ("tree", "feature", "segments")
        )
        upper = np.asarray(evidence["upper"], dtype=np.float64)
        begins = np.concatenate([[0], np.cumsum(segments)])
        keys = tree * len(axes) + feature
        if (
            (segments < 1).any()
            or begins[-1] != len(upper)
            or len(np.unique(keys)) != len(keys)
            or (feature < 0).any()
            or (feature >= len(axes)).any()
            or (tree < 0).any()
            or (tree >= trees).any()
        ):
            raise Refuted("evidence.prices: pairs and segments do not fit together")
        self.count = len(upper)
        self.tree: list[Ints] = []
        self.row: list[Ints] = []
        self.segment: list[Ints] = []
        for j, axis in enumerate(axes):
            chosen = np.flatnonzero(feature == j)
            row = np.full(trees, -1, dtype=np.int64)
            row[tree[chosen]] = np.arange(len(chosen))
            self.tree.append(tree[chosen])
            self.row.append(row)
            positions = [
                begins[p] + np.minimum(np.searchsorted(upper[begins[p] : begins[p + 1]], axis.high), segments[p] - 1)
                for p in chosen
            ]
            self.segment.append(np.array(positions, dtype=np.int64).reshape(len(chosen), axis.size))

    def worth(self, axis: CellAxis, multiplier: float, peaks: int) -> Ints:
        """Return λ times the cost of each cell, rounded down; of a maximum over ``peaks`` features at least the mean counts."""
        cost = (axis.add + axis.top // max(peaks, 1)).astype(np.float64)
        worth = np.floor(cost * (multiplier * self.unit / 2.0**58) * (1 - 2.0**-48))
        if worth.max(initial=0.0) * len(self.axes) > LARGEST_SUM / 2:
            raise Refuted("evidence.prices: the price of distance is too large")
        return worth.astype(np.int64)

    def spent(self, j: int, rates: list[float]) -> Ints:
        """Return what each cell of a feature spends, times the rates, rounded down: nothing at home, the weight elsewhere."""
        weights = (Fraction(rate) * int(weight) for rate, weight in zip(rates, self.budgets.weights[:, j], strict=True))
        worth = math.floor(sum(weights) * Fraction(self.unit))
        if worth * len(self.axes) > LARGEST_SUM / 2:
            raise Refuted("evidence.prices: the price of a budget is too large")
        return np.where(np.arange(self.axes[j].size) == self.axes[j].home, 0, worth).astype(np.int64)

    def may_be_spent(self, multiplier: float, rates: list[float]) -> int:
        """Return λ times the limit and each rate times what its budget allows, rounded up."""
        distance = math.ceil(Fraction(multiplier) * Fraction(self.unit) * Fraction(self.limit, 2**58))
        rooms = zip(rates, self.budgets.rooms, strict=True)
        return distance + sum(math.ceil(Fraction(rate) * Fraction(self.unit) * room) for rate, room in rooms)


class Prices(PriceTable):
    """The prices of a branching without steps: ``price`` has a row for each box that they close, ``multiplier`` a number, and where there
    are budgets ``rates`` a row. Such proofs were written by version 0.1."""

    def __init__(self, evidence: dict[str, Any], about: PricedBranching) -> None:
        super().__init__(evidence, about)
        self.price = np.asarray(evidence["price"])
        self.multiplier = np.asarray(evidence["multiplier"], dtype=np.float64)
        self.rates = rates_of(evidence, len(self.multiplier), self.budgets)
        if self.price.shape != (len(self.multiplier), self.count):
            raise Refuted("evidence.prices: pairs, segments and prices do not fit together")

    def closes(
        self, number: int, chosen: Ints, low: Ints, high: Ints, inside: dict[int, Flags], near: list[Flags]
    ) -> bool:
        """Return whether the prices of box ``number`` show that it holds no counterfactual.

        Parameters
        ----------
        number : int
            Which row of prices.
        chosen : int array
            The leaves that meet the box.
        low, high, inside
            The box.
        near : list of bool arrays
            The cells of the box that some point within the ball may have; all where a feature is missing.
        """
        if not 0 <= number < len(self.multiplier):
            raise Refuted("evidence.prices: a box has no prices")
        kept, alive, first, last, sets = self._possible(chosen, low, high, inside, near)
        if kept is None:
            return True
        price, multiplier = self._whole(self.price[number]), float(self.multiplier[number])
        rates = [float(rate) for rate in self.rates[number]]
        refuse_below_0(multiplier, rates)
        value = self.gain[kept]
        tree = self.leaves.tree[kept]
        peaks = sum(bool((axis.top[alive[j]] > 0).any()) for j, axis in enumerate(self.axes) if alive[j].any())
        cells_total = 0
        for j, axis in enumerate(self.axes):
            if not alive[j].any():
                continue
            paid = price[self.segment[j]]
            unary = -self.worth(axis, multiplier, peaks) - self.spent(j, rates) - paid.sum(axis=0)
            cells_total += int(unary[alive[j]].max())
            row = self.row[j][tree]
            pays = row >= 0
            if not pays.any():
                continue
            if axis.is_set:
                most = np.where(sets[j][pays], paid[row[pays]], NO_PRICE).max(axis=1)
            else:
                most = range_most(np.where(alive[j], paid, NO_PRICE), row[pays], first[pays, j], last[pays, j])
            value = value.copy()
            value[pays] += most
        begins = np.flatnonzero(np.diff(tree, prepend=-1))
        trees_total = int(np.maximum.reduceat(value, begins).sum())
        return self.start + self.may_be_spent(multiplier, rates) + trees_total + cells_total < self.need

    def _whole(self, price: Floats) -> Ints:
        """Return prices as whole numbers; any rounding is as good as another."""
        scaled = np.rint(price.astype(np.float64) * self.unit)
        if np.abs(scaled).sum() * 4 > LARGEST_SUM / 2:
            raise Refuted("evidence.prices: a price is too large")
        return scaled.astype(np.int64)

    def _possible(
        self, chosen: Ints, low: Ints, high: Ints, inside: dict[int, Flags], near: list[Flags]
    ) -> tuple[Any, ...]:
        """Drop cells in which some tree has no leaf, and leaves without a cell, until nothing changes.

        Returns ``None`` first where nothing is left: no point of the box is possible.
        """
        leaves, alive = self.leaves, [each.copy() for each in near]
        while True:
            tree = leaves.tree[chosen]
            first, last = np.maximum(leaves.low[chosen], low), np.minimum(leaves.high[chosen], high)
            sets: dict[int, Flags] = {}
            useful = np.ones(len(chosen), dtype=bool)
            before = sum(int(each.sum()) for each in alive)
            begins = np.flatnonzero(np.diff(tree, prepend=-1))
            if len(begins) < self.trees:
                return None, alive, first, last, sets
            for j, axis in enumerate(self.axes):
                if not near[j].any():
                    continue
                if axis.is_set:
                    sets[j] = leaves.inside[j][chosen] & inside[j] & alive[j]
                    useful &= sets[j].any(axis=1)
                    alive[j] &= np.logical_or.reduceat(sets[j], begins, axis=0).all(axis=0)
                else:
                    first[:, j], last[:, j] = tightened(alive[j], first[:, j], last[:, j])
                    meets = first[:, j] <= last[:, j]
                    useful &= meets
                    alive[j] &= covered(tree[meets], first[meets, j], last[meets, j], self.trees, axis.size)
                if not alive[j].any():
                    return None, alive, first, last, sets
            if useful.all() and sum(int(each.sum()) for each in alive) == before:
                return chosen, alive, first, last, sets
            chosen = chosen[useful]


def rates_of(evidence: dict[str, Any], count: int, budgets: Budgets) -> Floats:
    """Return the rates of the budgets, a row for each time that there is a price of distance."""
    rates = np.asarray(evidence.get("rates", np.zeros((count, budgets.count))), dtype=np.float64)
    if rates.shape != (count, budgets.count):
        raise Refuted("evidence.prices: there are not as many rates as budgets")
    return rates


def refuse_below_0(multiplier: float, rates: list[float]) -> None:
    """Raise where the price of distance, or of a budget, proves nothing."""
    if not all(0 <= each < math.inf for each in (multiplier, *rates)):
        raise Refuted("evidence.prices: the price of distance, or of a budget, is below 0")


def tightened(alive: Flags, first: Ints, last: Ints) -> tuple[Ints, Ints]:
    """Return ranges shrunk to the cells alive, in the wrong order where there is none."""
    positions = np.arange(len(alive))
    following = np.minimum.accumulate(np.where(alive, positions, len(alive))[::-1])[::-1]
    before = np.maximum.accumulate(np.where(alive, positions, -1))
    inside = np.clip(first, 0, len(alive) - 1), np.clip(last, 0, len(alive) - 1)
    return np.maximum(first, following[inside[0]]), np.minimum(last, before[inside[1]])


def covered(tree: Ints, first: Ints, last: Ints, trees: int, cells: int) -> Flags:
    """Return the cells in which every tree has a leaf."""
    steps = np.zeros((trees, cells + 1), dtype=np.int64)
    np.add.at(steps, (tree, first), 1)
    np.add.at(steps, (tree, last + 1), -1)
    return np.asarray((np.cumsum(steps, axis=1)[:, :cells] > 0).all(axis=0))


def range_most(paid: Ints, row: Ints, first: Ints, last: Ints) -> Ints:
    """Return the most in each range of cells of a row, by a table of ranges whose lengths are powers of two."""
    tables = [paid]
    while 2 ** len(tables) <= paid.shape[1]:
        half, width = tables[-1], 2 ** (len(tables) - 1)
        wider = half.copy()
        wider[:, : half.shape[1] - width] = np.maximum(half[:, : half.shape[1] - width], half[:, width:])
        tables.append(wider)
    level = np.frexp(last - first + 1)[1] - 1
    stacked = np.stack(tables)
    found: Ints = np.maximum(stacked[level, row, first], stacked[level, row, last - (1 << level) + 1])
    return found
