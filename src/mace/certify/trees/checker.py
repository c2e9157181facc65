"""Checking a proof of the tree lane: a branching over the domain, each of whose boxes is shown to hold no counterfactual.

The evidence is, for each pattern of missing values and each alternative of the goal, a binary tree of cuts. Cuts are values, so a wrong one
proves less and never something false: the two sides of a cut always cover the box. A box is closed where, among the leaves that meet
it at a cost below ``lower``,

- some tree has none: every point of the box is too far, or outside of the domain; or
- the greatest gains of the trees add up to less than the goal needs; or
- too few features may differ from an earlier counterfactual; or
- the features that every point of it changes exceed a budget; or
- no point of it is near the rows of data that it must be near (:mod:`mace.certify.trees.near_rows`); or
- prices show it (:mod:`mace.certify.trees.prices`); or
- each tree has a single one left: the model's output is one constant on what remains of the box, and the real model, asked there, refuses.

On the way down, a leaf is dropped where the greatest gains of the other trees do not bring it to the goal, or where the features that it
forces to change in the box exceed a budget, or where prices drop it, and cells with it (:mod:`mace.certify.trees.steps`). All sums are of
whole numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from mace.certify.patterns import patterns
from mace.certify.trees.budgets import Budgets
from mace.certify.trees.cells import CellAxis, cells_within, costs_at, make_axes, threshold
from mace.certify.trees.ensembles import CHUNK, Decisions
from mace.certify.trees.leaves import Leaves, NodeGains, Nodes, cheapest_of_sets, reachable_leaves, split_nodes
from mace.certify.trees.near_rows import NearRows
from mace.certify.trees.prices import PricedBranching, Prices
from mace.certify.trees.proof import ProofPart, ProofTree, read
from mace.certify.trees.steps import PriceSteps, Standing, within_ball
from mace.certify.verdict import Progress, Refuted
from mace.constraints.differ import counts
from mace.distances import PartsMetric
from mace.exact import Flags, Floats, Ints
from mace.forms import TreeEnsemble
from mace.problem import Problem
from mace.space import Point, Real


def check(problem: Problem, lower: Fraction | None, evidence: dict[str, Any], progress: Progress) -> None:
    """Raise unless it is shown that no plausible point nearer than ``lower`` is in the goal."""
    if not isinstance(problem.form, TreeEnsemble) or not isinstance(problem.metric, PartsMetric):
        raise Refuted("evidence: a proof of the tree lane is about tree ensembles and norms")
    proof = read(evidence, len(problem.space))
    decisions = Decisions(problem)
    nodes, alternatives = decisions.nodes, decisions.alternatives()
    axes = make_axes(problem, _cuts(nodes, proof, len(problem.space)))
    split, limit = split_nodes(nodes, axes), threshold(problem, lower)
    asked: dict[Point, int] = {}

    for pattern in patterns([list(_choices(axis)) for axis in axes], limit):
        missing = np.array(pattern, dtype=bool)
        for number, gains in enumerate(alternatives):
            part = proof.parts.get((number, tuple(np.flatnonzero(missing).tolist())))
            if part is None:
                lost = [name for name, is_lost in zip(problem.space, missing, strict=True) if is_lost]
                raise Refuted(
                    f"evidence: no branching for alternative {number} of the target"
                    + (f" with {', '.join(lost)} missing" if lost else "")
                )
            leaves = reachable_leaves(nodes, split, axes, missing, limit)
            over = within_ball(axes, leaves, missing, limit) if part.has_steps else (axes, leaves)
            walk = Walk(problem, over[0], missing, over[1], gains, limit, decisions.trees)
            asked |= walk.run(proof, part, progress)

    for point, is_order in decisions.refuted(list(asked)):
        shown, node = problem.space.values_of(point), asked[point]
        raise Refuted(
            f"claim.lower: the order of summation decides whether {shown} is in the target (node {node})"
            if is_order
            else f"claim.lower: the model puts {shown} in the target, which is nearer (node {node})"
        )
    progress(1.0)


def _cuts(nodes: Nodes, proof: ProofTree, features: int) -> list[Floats]:
    """Return every value at which a tree, or a cut of the proof, tells values of a feature apart."""
    inner = nodes.left >= 0
    reads = np.array([column.feature for column in nodes.columns], dtype=np.int64)[nodes.column]
    at_value = (proof.feature >= 0) & (proof.levels < 0)
    return [
        np.unique(
            np.concatenate(
                [nodes.edge[inner & (reads == j) & (nodes.subset < 0)], proof.value[at_value & (proof.feature == j)]]
            )
        )
        for j in range(features)
    ]


# ---- patterns of missing values


def _choices(axis: CellAxis) -> Iterator[tuple[int, int, bool]]:
    if axis.may_be_missing:
        yield axis.missing_add, axis.missing_top, True
    if axis.size:
        yield int(axis.add[axis.own]), int(axis.top[axis.own]), False


# ---- walking down


@dataclass(frozen=True, slots=True)
class LeafBox:
    """A box of cells with the leaves that meet it within the ball.

    Attributes
    ----------
    low, high : int arrays
        The range of each feature.
    inside : dict of bool arrays
        The set of each feature with sets.
    leaves : int array
        Positions in the list of leaves, tree after tree.
    add, top : int arrays
        The least cost of a point of the box in each of them.
    standing : Standing, optional
        Where the box stands, where prices drop cells and leaves.
    """

    low: Ints
    high: Ints
    inside: dict[int, Flags]
    leaves: Ints
    add: Ints
    top: Ints
    standing: Standing | None = None


class Walk:
    """One alternative of the goal under one pattern of missing values: down its branching, box by box."""

    def __init__(
        self,
        problem: Problem,
        axes: list[CellAxis],
        missing: Flags,
        leaves: Leaves,
        gains: NodeGains,
        limit: int,
        trees: int,
    ) -> None:
        self.problem = problem
        self.axes = axes
        self.missing = missing
        self.all = leaves
        self.gain = gains.gain[leaves.node]
        self.start, self.need, self.bits = gains.start, gains.need, gains.bits
        self.limit = limit
        self.trees = trees
        self.at_least = [count.features for count in counts(problem.conditions)]
        self.budgets = Budgets(problem, axes, missing, leaves)
        self.rows = NearRows(problem, axes, missing, limit, self._lost())

    def run(self, proof: ProofTree, part: ProofPart, progress: Progress) -> dict[Point, int]:
        """Walk down a branching; return the points, each with its node, that only the real model can refuse."""
        asked: dict[Point, int] = {}
        steps = self._steps(part)
        whole = replace(self._whole(), standing=None if steps is None else steps.standing())
        pending: list[tuple[int, LeafBox | None]] = [(part.begin, self._narrow(whole))]
        prices = None if part.prices is None or steps is not None else Prices(part.prices, self._priced())
        while pending:
            node, box = pending.pop()
            if node % CHUNK == 0:
                progress(node / len(proof.end))
            if box is None:
                continue
            j = int(proof.feature[node])
            if steps is not None:
                box = self._followed(steps, box, node - part.begin, is_closed=proof.by_prices[node] >= 0)
                if box is None:
                    continue
            elif proof.by_prices[node] >= 0:
                self._check_prices(prices, int(proof.by_prices[node]), box, node)
                continue
            if j < 0:
                point = self._last(box, node)
                asked |= {} if point is None else {point: node}
                continue
            if self.missing[j]:
                raise Refuted(f"evidence: node {node} cuts {self.problem.space.names[j]!r}, which is missing there")
            left, right = (self._cut(box, j, proof, node, is_left=is_left) for is_left in (True, False))
            first, second = (right, left) if proof.right_first[node] else (left, right)
            pending.append((int(proof.end[node + 1]), second))
            pending.append((node + 1, first))
        return asked

    def _priced(self) -> PricedBranching:
        """Return what prices are about."""
        bits, rest = int(self.bits[0]), self.limit - self._lost()[0]
        return PricedBranching(
            self.axes, self.all, self.gain, self.start, self.need, bits, rest, self.trees, self.budgets
        )

    def _lost(self) -> tuple[int, int]:
        """Return what the features that are missing cost: the sum and the maximum."""
        lost = [axis for axis, is_lost in zip(self.axes, self.missing, strict=True) if is_lost]
        return sum(axis.missing_add for axis in lost), max((axis.missing_top for axis in lost), default=0)

    def _steps(self, part: ProofPart) -> PriceSteps | None:
        if part.prices is None or not part.has_steps:
            return None
        return PriceSteps(part.prices, self._priced(), self.missing, self.at_least, self._lost())

    def _followed(self, steps: PriceSteps, box: LeafBox, node: int, *, is_closed: bool) -> LeafBox | None:
        """Return what the prices of a node leave of its box."""
        assert box.standing is not None
        left = steps.follow(node, is_closed, box.leaves, box.low, box.high, box.inside, box.standing)
        if left is None:
            return None
        kept = np.isin(box.leaves, left[0], assume_unique=True)
        return replace(box, leaves=box.leaves[kept], add=box.add[kept], top=box.top[kept], standing=left[1])

    def _check_prices(self, prices: Prices | None, number: int, box: LeafBox, node: int) -> None:
        near = self._near(box)
        if prices is None or not prices.closes(number, box.leaves, box.low, box.high, box.inside, near):
            raise Refuted(f"evidence: the box of node {node} is not closed by its prices")

    def _whole(self) -> LeafBox:
        leaves = self.all
        return LeafBox(
            low=np.zeros(len(self.axes), dtype=np.int64),
            high=np.array([axis.size - 1 for axis in self.axes]),
            inside={j: np.ones(axis.size, dtype=bool) for j, axis in enumerate(self.axes) if axis.is_set},
            leaves=np.arange(len(leaves.node)),
            add=leaves.add,
            top=leaves.top,
        )

    def _cut(self, box: LeafBox, j: int, proof: ProofTree, node: int, *, is_left: bool) -> LeafBox | None:
        """Return one side of a cut with what remains of its leaves; ``None`` where it is closed."""
        axis = self.axes[j]
        if not axis.is_set:
            if proof.levels[node] >= 0:
                raise Refuted(f"evidence: node {node} cuts numbers as if they were levels")
            return self._cut_range(box, j, axis.cells_up_to(float(proof.value[node])), is_left)
        chosen = axis.low <= proof.value[node]
        if proof.levels[node] >= 0:
            chosen = (int(proof.levels[node]) >> axis.low.astype(np.int64)) & 1 == 1
        return self._cut_set(box, j, chosen if is_left else ~chosen)

    def _cut_range(self, box: LeafBox, j: int, bound: int, is_left: bool) -> LeafBox | None:
        low, high = int(box.low[j]), int(box.high[j])
        new_low, new_high = (low, min(high, bound - 1)) if is_left else (max(low, bound), high)
        if new_low > new_high:
            return None
        axis, first, last = self.axes[j], self.all.low[box.leaves, j], self.all.high[box.leaves, j]
        a, b = np.maximum(first, new_low), np.minimum(last, new_high)
        old = np.clip(axis.own, np.maximum(first, low), np.minimum(last, high))
        new = np.clip(axis.own, a, np.maximum(a, b))
        lows, highs = box.low.copy(), box.high.copy()
        lows[j], highs[j] = new_low, new_high
        return self._narrow(self._moved(replace(box, low=lows, high=highs), axis, old, new, a <= b))

    def _cut_set(self, box: LeafBox, j: int, chosen: Flags) -> LeafBox | None:
        kept = box.inside[j] & chosen
        if not kept.any():
            return None
        axis, own = self.axes[j], self.all.inside[j][box.leaves]
        before, after = own & box.inside[j], own & kept
        old, new = cheapest_of_sets(axis, before), cheapest_of_sets(axis, after)
        return self._narrow(
            self._moved(replace(box, inside={**box.inside, j: kept}), axis, old, new, np.asarray(after.any(axis=1)))
        )

    def _moved(self, box: LeafBox, axis: CellAxis, old: Ints, new: Ints, meets: Flags) -> LeafBox:
        """Return a box that was cut along a feature, with the costs that its leaves have now; leaves that it no longer meets, or that are
        too far, are left out."""
        add = box.add + axis.add[new] - axis.add[old]
        top = np.maximum(box.top, axis.top[new])
        kept = meets & (add + top < self.limit)
        return replace(box, leaves=box.leaves[kept], add=add[kept], top=top[kept])

    def _narrow(self, box: LeafBox) -> LeafBox | None:
        """Return a box without the leaves that cannot be part of the goal; ``None`` where it holds no counterfactual at all."""
        near = self._near_rows(box) if self.rows.count else box
        if near is None or not self._may_differ(near):
            return None
        box = near
        affords = self.budgets.kept_by(box.leaves, box.low, box.high, box.inside)
        if not affords.all():
            box = replace(box, leaves=box.leaves[affords], add=box.add[affords], top=box.top[affords])
        tree = self.all.tree[box.leaves]
        begins = np.flatnonzero(np.diff(tree, prepend=-1))
        if len(begins) < self.trees:
            return None
        gain = self.gain[box.leaves]
        most = np.maximum.reduceat(gain, begins, axis=0)
        spare = self.start + most.sum(axis=0) - self.need
        if (spare < 0).any():
            return None
        useful = (gain - most[tree] + spare >= 0).all(axis=1)
        if useful.all():
            return box
        if len(np.unique(tree[useful])) < self.trees:
            return None
        return replace(box, leaves=box.leaves[useful], add=box.add[useful], top=box.top[useful])

    def _near_rows(self, box: LeafBox) -> LeafBox | None:
        """Return the part of a box whose points may be near the rows that they must be near; ``None`` where there is none."""
        left = self.rows.shrunk(box.low, box.high, box.inside)
        if left is None:
            return None
        kept, add, top = self.rows.kept_by(self.all, box.leaves, left)
        return replace(
            box, low=left.low, high=left.high, inside=left.inside, leaves=box.leaves[kept], add=add[kept], top=top[kept]
        )

    def _may_differ(self, box: LeafBox) -> bool:
        """Return whether the box leaves room within the ball to differ from every earlier counterfactual, each taken alone."""
        if not self.at_least:
            return True
        counts = np.zeros(len(self.at_least), dtype=np.int64)
        for j, (axis, near) in enumerate(zip(self.axes, self._near(box), strict=True)):
            counts += axis.missing_differs if self.missing[j] else (axis.differs & near).any(axis=1)
        return bool((counts >= self.at_least).all())

    def _near(self, box: LeafBox) -> list[Flags]:
        """Return the cells of a box that a point within the ball may have; none where a feature is missing."""
        inside = [
            box.inside[j]
            if axis.is_set
            else (np.arange(axis.size) >= box.low[j]) & (np.arange(axis.size) <= box.high[j])
            for j, axis in enumerate(self.axes)
        ]
        cells = [int(cheapest_of_sets(axis, inside[j][None])[0]) for j, axis in enumerate(self.axes)]
        within = cells_within(self.axes, costs_at(self.axes, cells, self.missing), self.limit)
        near = [kept & each & (not lost) for kept, each, lost in zip(inside, within, self.missing, strict=True)]
        return self.budgets.left_of(near, box.low, box.high, box.inside)

    def _last(self, box: LeafBox, node: int) -> Point | None:
        """Return the point to ask the real model about where a box ends with one leaf of each tree; ``None`` where none is left."""
        if len(box.leaves) > self.trees:
            raise Refuted(f"evidence: the box of node {node} is not closed: its leaves may still add up to the target")
        leaves = self.all
        low = np.maximum(box.low, leaves.low[box.leaves].max(axis=0))
        high = np.minimum(box.high, leaves.high[box.leaves].min(axis=0))
        inside = {j: kept & leaves.inside[j][box.leaves].all(axis=0) for j, kept in box.inside.items()}
        ranges = [j for j, axis in enumerate(self.axes) if not axis.is_set and not self.missing[j]]
        if (low[ranges] > high[ranges]).any() or not all(kept.any() for kept in inside.values()):
            return None
        if self.rows.count:
            left = self.rows.shrunk(low, high, inside)
            if left is None:
                return None
            low, high, inside = left.low, left.high, left.inside
        shared = replace(box, low=low, high=high, inside=inside)
        cells = [
            int(cheapest_of_sets(axis, inside[j][None])[0]) if axis.is_set else int(np.clip(axis.own, low[j], high[j]))
            for j, axis in enumerate(self.axes)
        ]
        costs = costs_at(self.axes, cells, self.missing)
        cost = sum(add for add, _ in costs) + max(top for _, top in costs)
        if cost >= self.limit or not self._may_differ(shared):
            return None
        if not self.budgets.may_keep(low, high, inside):
            return None
        return self._point(cells)

    def _point(self, cells: list[int]) -> Point:
        point: list[int | float | None] = []
        for j, (axis, cell) in enumerate(zip(self.axes, cells, strict=True)):
            own, feature = self.problem.factual[j], list(self.problem.space.values())[j]
            if self.missing[j]:
                point.append(None)
                continue
            nearest = (
                float(axis.low[cell])
                if own is None
                else min(max(float(own), float(axis.low[cell])), float(axis.high[cell]))
            )
            point.append(nearest if isinstance(feature, Real) else int(nearest))
        return tuple(point)
