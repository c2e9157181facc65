"""The checker of the network lane's proofs: a tree of cuts, each of whose leaves it closes anew.

The evidence holds nothing but the cuts: for each alternative of the goal a binary tree in preorder, ``feature`` (which one is cut, -1 for a
leaf) and ``at`` (where; one number a cut). The two sides of a cut are "at most" and "above", so the leaves cover the whole domain
whatever the numbers are. A leaf is closed where

- nothing is left of it inside the ball, the ranges and the conditions on single features,
- all of it is too much like an earlier counterfactual,
- the ranges of its units hold nothing, or its rounds close it (below),
- an upper bound on some margin of the goal, widened by the rounding of the deployed arithmetic there, is below 0
  (:mod:`mace.certify.network.relaxation`), or
- it is a single row, and that is too far, not plausible, or refused by the real model.

Where a leaf is not closed at once it is cut further, a bounded number of times.

A part with ``rounds`` is split on the signs of units too, and its nodes have recorded multipliers (:mod:`mace.certify.network.splits`,
:mod:`mace.certify.network.rounds`), which can only serve or fail to serve: no number makes a false bound.

Where values may be missing there are such trees for every pattern of missing values that is near enough
(:mod:`mace.certify.network.missing`); the checker goes through the patterns itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from mace.certify.network.ball import BallView, Field, make_ball
from mace.certify.network.bounds import Units
from mace.certify.network.coordinates import CoordinateAxis
from mace.certify.network.inequalities import linear_conditions
from mace.certify.network.missing import MissingPart, Way, may_miss, part_of, ways
from mace.certify.network.relaxation import BoxRelaxation, GoalRows
from mace.certify.network.splits import LEAF_NODE, SplitWalk, read_splits
from mace.certify.verdict import Progress, Refuted, Unchecked
from mace.distances import NormMetric
from mace.exact import Floats, Ints, float_up
from mace.forms import Network
from mace.problem import Problem
from mace.space import Real

NUMBERS_A_BATCH = 1_500_000
"""How many numbers an array of one batch of boxes holds at most."""

MOST_CUTS = 256
"""How many boxes the checker cuts itself, where a leaf is not closed at once."""

MORE_CUTS, MOST_MORE = 32, 50_000
"""How many cuts are added for each leaf of a tree, and how many at most; and one more for every fourth leaf."""

MOST_ROWS_ASKED = 100_000
"""How many rows the real model is asked about at most."""

MOST_PRODUCTS = 10**11
"""How many products the walk through trees with splits takes at most, roughly."""

LARGEST_EXACT = Fraction(10) ** 150
"""Numbers and ranges whose products floats can hold."""


def check(
    problem: Problem,
    lower: Fraction | None,
    evidence: dict[str, Any],
    progress: Progress,
    *,
    most_cuts: int = MOST_CUTS,
) -> None:
    """Raise unless it is shown that no plausible point nearer than ``lower`` (at any distance, where ``None``) reaches the goal."""
    form, metric = problem.form, problem.metric
    if not isinstance(form, Network):
        raise Refuted("evidence.lane: the model is not a network")
    if not isinstance(metric, NormMetric):
        raise Refuted("evidence.lane: the distance is not a norm, and this kind of proof is about norms")
    for name, feature in problem.space.items():
        if isinstance(feature, Real) and not _is_moderate(feature):
            raise Refuted(
                f"evidence.lane: the range of {name!r} is too large or too narrow for the floats of this checker"
            )
    for column in form.columns:
        if column.table is not None and not hasattr(list(problem.space.values())[column.feature], "levels"):
            raise Refuted(f"evidence.lane: the column {column.name!r} reads a number through a table")
    alternatives = form.alternatives(problem.goal)
    trees = _ways(evidence, len(problem.space)) if may_miss(problem) else {frozenset(): evidence.get("parts")}
    work = _Work(most_cuts)
    with np.errstate(all="ignore"):
        for number, missing in enumerate(ways(problem, lower)):
            where = "evidence" if not may_miss(problem) else f"evidence.ways{sorted(missing)}"
            if missing not in trees:
                raise Refuted(f"evidence.ways: none in which {_listed(problem, missing)}")
            parts = trees[missing]
            if not isinstance(parts, list) or len(parts) != len(alternatives):
                raise Refuted(
                    f"{where}.parts: the goal has {len(alternatives)} alternatives, and each needs a tree of cuts"
                )
            proof = _Proof(problem, part_of(problem, missing), metric, lower, work)
            for alternative, (margins, part) in enumerate(zip(alternatives, parts, strict=True)):
                rows = proof.relaxation.rows(margins, proof.conditions)
                name = f"{where}.parts[{alternative}]"
                proof.check(rows, part, name)
                progress(min(1.0, (number + (alternative + 1) / len(parts)) / len(trees)))


def _ways(evidence: dict[str, Any], features: int) -> dict[Way, object]:
    """Return the trees of each pattern of missing values, or raise where the evidence holds none."""
    found: dict[Way, object] = {}
    entries = evidence.get("ways")
    if not isinstance(entries, list):
        raise Refuted("evidence.ways: values may be missing, and each way of that needs trees of cuts")
    for number, entry in enumerate(entries):
        missing = entry.get("missing") if isinstance(entry, dict) else None
        if not isinstance(missing, list) or not all(isinstance(j, int) and 0 <= j < features for j in missing):
            raise Refuted(f"evidence.ways[{number}]: 'missing' is a list of positions of features")
        if frozenset(missing) in found:
            raise Refuted(f"evidence.ways[{number}]: it stands twice")
        found[frozenset(missing)] = entry.get("parts")
    return found


def _listed(problem: Problem, missing: Way) -> str:
    names = [name for j, name in enumerate(problem.space) if j in missing]
    return f"{', '.join(names)} and nothing else is missing" if names else "nothing is missing"


def _is_moderate(feature: Real) -> bool:
    return max(abs(feature.low), abs(feature.high)) <= LARGEST_EXACT and (
        feature.range == 0 or feature.range >= 1 / LARGEST_EXACT
    )


def _tree(part: dict[str, Any], where: str, features: int, units: int) -> tuple[Ints, Floats]:
    """Return the arrays of a tree, or raise where they make none; where there are ``units``, these may be split."""
    feature, at = np.asarray(part.get("feature")), np.asarray(part.get("at"))
    if feature.ndim != 1 or feature.dtype.kind not in "iu" or at.ndim != 1 or at.dtype.kind not in "fiu":
        raise Refuted(f"{where}: 'feature' is a list of whole numbers, 'at' a list of numbers")
    feature, at = feature.astype(np.int64), at.astype(np.float64)
    if not ((feature >= LEAF_NODE - units) & (feature < features)).all():
        raise Refuted(f"{where}.feature: it names a feature that there is not{', or a unit' if units else ''}")
    if not np.isfinite(at).all() or len(at) != int((feature >= 0).sum()):
        raise Refuted(f"{where}.at: each cut has one finite number")
    return feature, at


@dataclass(slots=True)
class _Work:
    """What the checker has done itself, under all patterns of missing values together."""

    most_cuts: int
    cuts: int = 0
    asked: int = 0
    products: int = 0

    def spend(self, products: int) -> None:
        """Count products; raise :class:`Unchecked` where they are too many."""
        self.products += products
        if self.products > MOST_PRODUCTS:
            raise Unchecked(
                "evidence.parts: the trees have more nodes and rounds than are walked for a network of this size"
            )


class _Proof:
    """One question under one pattern of missing values, and what is needed to close boxes of it."""

    def __init__(
        self, problem: Problem, part: MissingPart, metric: NormMetric, lower: Fraction | None, work: _Work
    ) -> None:
        form = part.form
        self.problem, self.part, self.work = problem, part, work
        self.measure = None if lower is None else lower**metric.power
        self.axes, self.alikes = part.axes, part.alikes
        self.conditions = linear_conditions(problem, part.missing)
        self.field = Field(self.axes, make_ball(metric, self.axes, lower, part.costs))
        self.relaxation = BoxRelaxation(form, self.field, problem.goal.slack)
        sums = max(2 * max(len(bias) for bias in form.biases), len(self.conditions) + len(form.biases[-1]))
        self.batch = max(1, min(2048, NUMBERS_A_BATCH // (sums * max(self.relaxation.slots, sums))))

    def check(self, rows: GoalRows, part: object, where: str) -> None:
        """Close every leaf of a tree."""
        if not isinstance(part, dict):
            raise Refuted(f"{where}: a tree of cuts is a dict with 'feature' and 'at'")
        units = sum(len(bend) for bend in self.part.form.slopes) if "rounds" in part else 0
        feature, at = _tree(part, where, len(self.problem.space), units)
        if any(not len(axis.spans) for axis in self.axes):
            return
        leaves = int((feature == LEAF_NODE).sum())
        self.work.most_cuts += min(MORE_CUTS * leaves, MOST_MORE) + leaves // 4
        low = np.array([axis.spans[0, 0] for axis in self.axes])
        high = np.array([axis.spans[-1, 1] for axis in self.axes])
        if "rounds" in part:
            tree = read_splits(part, feature, at, len(rows), self.relaxation, where)
            walk = SplitWalk(self.relaxation, self.alikes, rows, tree, self.batch, self.work.spend)
            for nodes, boxes in walk.open_leaves(low, high):
                self._close(rows, nodes, boxes.view.low, boxes.view.high, where, boxes.units)
            return
        for number, lows, highs in _batches(_leaves(self.axes, low, high, feature, at, where), self.batch):
            self._close(rows, np.array(number), np.array(lows), np.array(highs), where)

    def _close(
        self, rows: GoalRows, number: Ints, low: Floats, high: Floats, where: str, known: Units | None = None
    ) -> None:
        """Close boxes, cutting those that a bound does not close.

        ``number`` is the leaf that each is a part of, ``known`` has ranges of the units of its counterfactuals.
        """
        while len(number):
            view = self.field.view(low, high)
            for alike in self.alikes:
                view.is_open &= alike.allows(view.low, view.high)
            known = None if known is None else known.take(view.is_open)
            number, view = number[view.is_open], view.take(view.is_open)
            if not len(number):
                return
            if not len(rows):
                raise Refuted(f"{where}: every point is in the goal, and leaf {number[0]} is not empty")
            boxes = self.relaxation.boxes(rows, view)
            if known is not None:
                boxes.units.keep_within(known)
            is_closed, sums = self.relaxation.closed(rows, boxes)
            is_closed |= boxes.units.is_empty
            is_single = (view.low == view.high).all(axis=1)
            for n in np.flatnonzero(~is_closed & is_single):
                self._ask(view, int(n), f"{where}: leaf {number[n]}")
            left = ~is_closed & ~is_single
            if not left.any():
                return
            self.work.cuts += int(left.sum())
            number, view, sums = number[left], view.take(left), sums[left]
            if self.work.cuts > self.work.most_cuts:
                raise Refuted(
                    f"{where}: leaf {number[0]} may hold a point in the target {self._within} "
                    f"({_shown(self.problem, self.axes, view, 0)})"
                )
            low, high = self._halves(view, sums)
            number = np.concatenate([number, number])
            known = None if known is None else known.take(np.tile(np.flatnonzero(left), 2))

    @property
    def _within(self) -> str:
        return "somewhere" if self.measure is None else "nearer than lower"

    def _halves(self, view: BallView, sums: Floats) -> tuple[Floats, Floats]:
        """Return the two halves of boxes, each cut along the feature that moves its bound most."""
        scores = np.zeros_like(view.low)
        for j, axis in enumerate(self.axes):
            start = self.relaxation.slot_from[j]
            each = sums[:, start : start + max(1, len(axis.levels))]
            width = view.top[:, j] - view.bottom[:, j]
            scores[:, j] = np.ptp(each, axis=1) if axis.has_levels else np.abs(each[:, 0]) * width
        scores = np.where(view.low < view.high, np.maximum(scores, 1e-300), -1.0)
        lows, highs = np.repeat(view.low[None], 2, axis=0), np.repeat(view.high[None], 2, axis=0)
        for n, j in enumerate(scores.argmax(axis=1)):
            axis = self.axes[j]
            coordinate = _middle(axis, float(view.low[n, j]), float(view.high[n, j]))
            highs[0, n, j], lows[1, n, j] = coordinate, axis.after(coordinate)
        return lows.reshape(-1, len(self.axes)), highs.reshape(-1, len(self.axes))

    def _ask(self, view: BallView, n: int, where: str) -> None:
        """Decide a single row: by its distance, the conditions, and the real model."""
        problem = self.problem
        point = self.part.point(problem, view.low[n])
        if self.measure is not None and problem.metric.measure(point) >= self.measure:
            return
        if not problem.is_plausible(point):
            return
        self.work.asked += 1
        if self.work.asked > MOST_ROWS_ASKED:
            raise Refuted(f"{where}: more than {MOST_ROWS_ASKED} rows are left to the model itself")
        if problem.accepts(point):
            distance = float_up(problem.distance(point))
            raise Refuted(f"{where}: the model puts {problem.space.values_of(point)}, at {distance!r}, in the target")


def _middle(axis: CoordinateAxis, low: float, high: float) -> float:
    """Return the last coordinate of the lower half of a range, which has two coordinates at least."""
    if axis.has_levels or axis.is_grid or axis.is_whole:
        if low <= axis.home < high and not axis.has_levels:
            return axis.home
        coordinate = max(float(math.floor((low + high) / 2)), low)
        return coordinate if coordinate < high else low
    if low <= axis.home < high:
        return axis.home
    return float(axis.up_to(np.array(min(max(low / 2 + high / 2, low), math.nextafter(high, -math.inf)))))


def _leaves(
    axes: list[CoordinateAxis], low: Floats, high: Floats, feature: Ints, at: Floats, where: str
) -> Iterator[tuple[int, Floats, Floats]]:
    """Yield the leaves of a tree in preorder, the lower side first."""
    pending = [(low, high)]
    cuts = iter(at.tolist())
    number = 0
    for j in feature.tolist():
        if not pending:
            raise Refuted(f"{where}: the tree of cuts is over before its list is")
        low, high = pending.pop()
        if j < 0:
            yield number, low, high
            number += 1
            continue
        coordinate = axes[j].cut(next(cuts))
        lower_end, upper_start = high.copy(), low.copy()
        lower_end[j] = min(high[j], coordinate)
        upper_start[j] = max(low[j], axes[j].after(coordinate))
        pending += [(upper_start, high), (low, lower_end)]
    if pending:
        raise Refuted(f"{where}: {len(pending)} sides of cuts have no leaf")


def _batches(
    leaves: Iterator[tuple[int, Floats, Floats]], size: int
) -> Iterator[tuple[list[int], list[Floats], list[Floats]]]:
    number: list[int] = []
    lows: list[Floats] = []
    highs: list[Floats] = []
    for leaf, low, high in leaves:
        number.append(leaf)
        lows.append(low)
        highs.append(high)
        if len(number) == size:
            yield number, lows, highs
            number, lows, highs = [], [], []
    if number:
        yield number, lows, highs


def _shown(problem: Problem, axes: list[CoordinateAxis], view: BallView, n: int) -> str:
    """Return a box in words: the features that are not at their own value throughout."""
    parts = []
    for j, (name, axis) in enumerate(zip(problem.space, axes, strict=False)):
        low, high = float(view.low[n, j]), float(view.high[n, j])
        if low == high == axis.home:
            continue
        if axis.has_levels:
            shown = [repr(axis.feature.levels[int(k)]) for k in axis.levels[int(low) : int(high) + 1]]  # type: ignore[union-attr]
            parts.append(f"{name} one of {', '.join(shown)}")
        else:
            parts.append(f"{name} from {axis.value(low)!r} to {axis.value(high)!r}")
    return "; ".join(parts)
