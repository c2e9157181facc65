"""Trees that are split on the signs of units as well as cut along features, with the rounds of each node.

Every point of a node has either z <= 0 or z >= 0 for the sum z of a unit, in exact numbers, so the two sides of a split leave nothing out.
A split needs no memory of its own: it ends the range of the unit at 0. A node hands the ranges of its units down to its children, since a
counterfactual of a child is one of the node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from mace.certify.network.bounds import BoundedBoxes, Units
from mace.certify.network.coordinates import Alike
from mace.certify.network.relaxation import BoxRelaxation, GoalRows
from mace.certify.network.rounds import GoalRounds, Round
from mace.certify.verdict import Refuted, Unchecked
from mace.exact import Flags, Floats, Ints

LEAF_NODE = -1
"""The code of a leaf in a list of nodes; lower numbers are units that are split."""

MOST_SPLIT_NODES = 1_000_000

PRODUCTS_OF_A_STEP = 4_000_000
"""How many products take as long as a step of the walk with few nodes."""

GREATEST_MULTIPLIER, LEAST_MULTIPLIER = 1e30, 1e-30
"""The range of multipliers: far from where products leave that of floats."""


@dataclass(frozen=True, slots=True)
class SplitTree:
    """A tree in preorder, and the multipliers of all rounds, one after the other.

    Attributes
    ----------
    code : int array
        A feature that is cut, :data:`LEAF_NODE`, or -2 less the number of the unit that is split.
    second : int array
        The place of each node's second child; the first follows the node.
    at : float array
        Where a node that is cut is cut.
    begin, rounds : int arrays
        The first round of each node, and how many it has.
    mix, alpha, beta, price : float arrays
        As in :class:`~mace.certify.network.rounds.Round`, one row a round.
    """

    code: Ints
    second: Ints
    at: Floats
    begin: Ints
    rounds: Ints
    mix: Floats
    alpha: Floats
    beta: Floats
    price: Floats

    def round(self, nodes: Ints, number: int) -> Round:
        """Return one round of some nodes."""
        rounds = self.begin[nodes] + number
        return Round(self.mix[rounds], self.alpha[rounds] / 255, self.beta[rounds], self.price[rounds])


def read_splits(
    part: dict[str, Any], code: Ints, at: Floats, rows: int, relaxation: BoxRelaxation, where: str
) -> SplitTree:
    """Return the tree of a part, or raise where its arrays make none; ``code`` and ``at`` have the right types already."""
    units = sum(len(bend) for bend in relaxation.form.slopes)
    if len(code) > MOST_SPLIT_NODES:
        raise Unchecked(f"{where}: a tree of {len(code):,} nodes, and at most {MOST_SPLIT_NODES:,} are walked")
    rounds = np.asarray(part["rounds"])
    if rounds.dtype.kind not in "iu" or rounds.shape != code.shape or not (rounds >= 0).all():
        raise Refuted(f"{where}.rounds: each node has a number of rounds")
    if rounds.max(initial=0) > MOST_SPLIT_NODES:
        raise Unchecked(f"{where}.rounds: {rounds.max():,} of one node, and at most {MOST_SPLIT_NODES:,} are walked")
    rounds = rounds.astype(np.int64)
    total = int(rounds.sum())
    alpha = np.asarray(part.get("alpha"))
    if alpha.dtype.kind not in "iu" or alpha.shape != (total, units) or not ((alpha >= 0) & (alpha <= 255)).all():
        raise Refuted(f"{where}.alpha: each round has a number from 0 to 255 for each of {units} units")
    places = np.zeros(len(code))
    places[code >= 0] = at
    return SplitTree(
        code,
        _second(code, where),
        places,
        np.cumsum(rounds) - rounds,
        rounds,
        _multipliers(part, "mix", (total, rows), where),
        alpha,
        _multipliers(part, "beta", (total, units), where, is_signed=True),
        _multipliers(part, "price", (total, 2, units), where),
    )


def _products(relaxation: BoxRelaxation) -> int:
    """Return how many products bounding every unit of one box takes, roughly."""
    widths = [len(bias) for bias in relaxation.form.biases]
    below = [before * after for before, after in pairwise([relaxation.slots, *widths])]
    return 1 + sum(2 * width * sum(below[: k + 1]) for k, width in enumerate(widths))


def _multipliers(
    part: dict[str, Any], name: str, shape: tuple[int, ...], where: str, is_signed: bool = False
) -> Floats:
    found = np.asarray(part.get(name))
    if found.dtype.kind not in "fiu" or found.shape != shape:
        raise Refuted(f"{where}.{name}: an array of numbers of the shape {shape}, one row a round")
    found = found.astype(np.float64)
    size = np.abs(found)
    if not ((size == 0) | ((size >= LEAST_MULTIPLIER) & (size <= GREATEST_MULTIPLIER))).all() or (
        not is_signed and (found < 0).any()
    ):
        kind = "0, or in size" if is_signed else "0, or"
        raise Refuted(f"{where}.{name}: a multiplier is {kind} from {LEAST_MULTIPLIER} to {GREATEST_MULTIPLIER}")
    return found


def _second(code: Ints, where: str) -> Ints:
    """Return the place of each node's second child, or raise where the list is no tree."""
    second = np.zeros(len(code), dtype=np.int64)
    waiting: list[int] = []
    is_over = False
    for node, kind in enumerate(code.tolist()):
        if is_over:
            raise Refuted(f"{where}: the tree of cuts is over before its list is")
        if kind != LEAF_NODE:
            waiting.append(node)
        elif waiting:
            second[waiting.pop()] = node + 1
        else:
            is_over = True
    if not is_over:
        raise Refuted(f"{where}: {len(waiting) + 1} sides of cuts have no leaf")
    return second


@dataclass(slots=True)
class _Nodes:
    """Some nodes of the tree, and their boxes with the ranges of the units there."""

    numbers: Ints
    boxes: BoundedBoxes

    def take(self, chosen: Flags | Ints | slice) -> _Nodes:
        return _Nodes(self.numbers[chosen], self.boxes.take(chosen))


class SplitWalk:
    """A walk through a tree, many nodes at a time."""

    def __init__(
        self,
        relaxation: BoxRelaxation,
        alikes: Sequence[Alike],
        rows: GoalRows,
        tree: SplitTree,
        batch: int,
        spend: Callable[[int], None],
    ) -> None:
        self.relaxation, self.alikes, self.rows, self.tree = relaxation, alikes, rows, tree
        self.batch, self.spend = batch, spend
        self.rounds = GoalRounds(relaxation, rows)
        self.products = _products(relaxation)

    def open_leaves(self, low: Floats, high: Floats) -> Iterator[tuple[Ints, BoundedBoxes]]:
        """Yield the leaves in a box that neither ranges nor rounds close, by their places in the list of nodes."""
        pending = [self._fresh(np.zeros(1, dtype=np.int64), low[None], high[None], None)]
        while pending:
            nodes = pending.pop()
            if len(nodes.numbers) > self.batch:
                pending += [nodes.take(slice(self.batch, None)), nodes.take(slice(self.batch))]
                continue
            nodes = self._after_rounds(nodes)
            code = self.tree.code[nodes.numbers]
            if (code == LEAF_NODE).any():
                left = nodes.take(code == LEAF_NODE)
                yield left.numbers, left.boxes
            if (code >= 0).any():
                pending.append(self._cut(nodes.take(code >= 0)))
            if (code < LEAF_NODE).any():
                pending.append(self._split(nodes.take(code < LEAF_NODE)))

    def _fresh(self, numbers: Ints, low: Floats, high: Floats, known: Units | None) -> _Nodes:
        """Return nodes with their own boxes. Units are bounded there anew and kept within the ranges that are known; empty nodes are left
        out."""
        self.spend(PRODUCTS_OF_A_STEP + len(numbers) * self.products)
        view = self.relaxation.field.view(low, high)
        for alike in self.alikes:
            view.is_open &= alike.allows(view.low, view.high)
        boxes = self.relaxation.boxes(self.rows, view.take(view.is_open))
        if known is not None:
            boxes.units.keep_within(known.take(view.is_open))
        return _Nodes(numbers[view.is_open], boxes).take(~boxes.units.is_empty)

    def _after_rounds(self, nodes: _Nodes) -> _Nodes:
        """Do the rounds of nodes; return those that they do not close."""
        number = 0
        while True:
            active = np.flatnonzero(self.tree.rounds[nodes.numbers] > number)
            if not len(active):
                return nodes
            self.spend(PRODUCTS_OF_A_STEP + len(active) * self.products)
            some = nodes.take(active)
            is_open = np.ones(len(nodes.numbers), dtype=np.bool_)
            is_open[active] = ~self.rounds.run(some.boxes, self.tree.round(some.numbers, number))
            nodes.boxes.units.put(active, some.boxes.units)
            nodes = nodes.take(is_open)
            number += 1

    def _cut(self, nodes: _Nodes) -> _Nodes:
        """Return the two sides of cuts along features."""
        view, axes = nodes.boxes.view, self.relaxation.field.axes
        lows, highs = np.repeat(view.low[None], 2, axis=0), np.repeat(view.high[None], 2, axis=0)
        for n, number in enumerate(nodes.numbers):
            j = self.tree.code[number]
            coordinate = axes[j].cut(float(self.tree.at[number]))
            highs[0, n, j] = min(highs[0, n, j], coordinate)
            lows[1, n, j] = max(lows[1, n, j], axes[j].after(coordinate))
        twice = np.tile(np.arange(len(nodes.numbers)), 2)
        shape = -1, len(axes)
        return self._fresh(
            self._children(nodes), lows.reshape(shape), highs.reshape(shape), nodes.boxes.units.take(twice)
        )

    def _split(self, nodes: _Nodes) -> _Nodes:
        """Return the two sides of splits on units."""
        self.spend(PRODUCTS_OF_A_STEP)
        count = len(nodes.numbers)
        unit = LEAF_NODE - 1 - self.tree.code[nodes.numbers]
        made = _Nodes(self._children(nodes), nodes.boxes.take(np.tile(np.arange(count), 2)))
        units, start = made.boxes.units, 0
        for low, high in zip(units.low, units.high, strict=True):
            mine = np.flatnonzero((unit >= start) & (unit < start + low.shape[1]))
            i = unit[mine] - start
            high[mine, i] = np.minimum(high[mine, i], 0.0)
            low[count + mine, i] = np.maximum(low[count + mine, i], 0.0)
            start += low.shape[1]
        return made.take(~units.is_empty)

    def _children(self, nodes: _Nodes) -> Ints:
        return np.concatenate([nodes.numbers + 1, self.tree.second[nodes.numbers]])
