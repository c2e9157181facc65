"""The numba kernels of a local search for incumbents: exact one-move profiles, and ascents along them.

The *profile* of a point is by how much its score changes when one feature moves to another cell: all features and cells in one pass over
the
trees. A tree is walked along the point's path; at each node the side that the point does not take is followed with that one feature
moved, and
what the leaf there adds is noted for the range of cells that leads to it. No bound comes of any of this; it gives the search a radius.

Scores are of the first margin, and add up the least that leaves may add: a point that reaches ``sure`` is a counterfactual.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mace.solvers.compiled import kernel
from mace.solvers.trees.kernels import (
    FAR,
    Array,
    Boundaries,
    CellBox,
    CellTable,
    KernelGoal,
    Scores,
    Trees,
    is_counterfactual,
)

LEAST_RISE = 1e-9
"""What a move must gain at least, against going in circles by rounding."""

MOST_ASCENTS = 1000
"""The most moves of one ascent."""


class Landscape(NamedTuple):
    """A question, what moving a feature to a cell costs, and scratch space."""

    box: CellBox
    cells: CellTable
    boundaries: Boundaries
    trees: Trees
    goal: KernelGoal
    cost: Array  # per cell: its cost as a plain sum over features
    gain: Array  # the profile: that of cell k of feature j at off[j] + j + k
    ranges: Array  # 3 x features: the cells, or levels, of the path so far
    stack: Array  # 3 x depth: nodes still to visit, and the range or levels that lead there


@kernel
def goes_left(node, point, land):
    """Return whether a point goes left at a node."""
    cells, trees, boundaries = land.cells, land.trees, land.boundaries
    j = trees.feature[node]
    if cells.is_missing[j]:
        return trees.missing_left[node]
    if cells.is_mask[j]:
        return (trees.subset[node] >> point[j]) & 1 == 1
    return point[j] < boundaries.start[boundaries.off[j] + trees.bound[node]]


@kernel
def note_moves(j, other, first, last, levels, value, point, land):
    """Follow one feature, moved to a range of cells or to some levels, down from a node, and note what the leaves add beside ``value``."""
    cells, trees, boundaries, stack, gain = land.cells, land.trees, land.boundaries, land.stack, land.gain
    f = cells.off[j] + j
    is_mask = cells.is_mask[j]
    stack[0, 0], stack[1, 0], stack[2, 0] = other, levels if is_mask else first, last
    size = 1
    while size > 0:
        size -= 1
        node, a, b = stack[0, size], stack[1, size], stack[2, size]
        while trees.feature[node] >= 0:
            if trees.feature[node] != j:
                node = trees.left[node] if goes_left(node, point, land) else trees.right[node]
                continue
            if is_mask:
                left, right = a & trees.subset[node], a & ~trees.subset[node]
                if left != 0 and right != 0:
                    stack[0, size], stack[1, size] = trees.right[node], right
                    size += 1
                a = left if left != 0 else right
                node = trees.left[node] if left != 0 else trees.right[node]
                continue
            at = boundaries.start[boundaries.off[j] + trees.bound[node]]
            if b < at:
                node = trees.left[node]
            elif a >= at:
                node = trees.right[node]
            else:
                stack[0, size], stack[1, size], stack[2, size] = trees.right[node], at, b
                size += 1
                b = at - 1
                node = trees.left[node]
        change = trees.least[node, 0] - value
        if is_mask:
            k = 0
            while a != 0:
                if a & 1 == 1:
                    gain[f + k] += change
                a >>= 1
                k += 1
        else:
            gain[f + a] += change
            gain[f + b + 1] -= change


@kernel
def profile(point, land):
    """Write the profile of a point; return its score."""
    box, cells, trees, boundaries, gain, ranges = (
        land.box, land.cells, land.trees, land.boundaries, land.gain, land.ranges,
    )  # fmt: skip
    features = point.shape[0]
    gain[:] = 0.0
    score = land.goal.base[0]
    for t in range(trees.roots.shape[0]):
        node = trees.roots[t]
        while trees.feature[node] >= 0:
            j = trees.feature[node]
            ranges[0, j], ranges[1, j], ranges[2, j] = box.lo[j], box.hi[j], box.mask[j]
            node = trees.left[node] if goes_left(node, point, land) else trees.right[node]
        value = trees.least[node, 0]
        score += value
        node = trees.roots[t]
        while trees.feature[node] >= 0:
            j = trees.feature[node]
            is_left = goes_left(node, point, land)
            other = trees.right[node] if is_left else trees.left[node]
            if cells.is_mask[j]:
                side = trees.subset[node] if is_left else ~trees.subset[node]
                levels = ranges[2, j] & ~side
                ranges[2, j] &= side
                if levels != 0 and not cells.is_missing[j]:
                    note_moves(j, other, 0, 0, levels, value, point, land)
            elif not cells.is_missing[j]:
                at = boundaries.start[boundaries.off[j] + trees.bound[node]]
                first, last = (
                    (max(ranges[0, j], at), ranges[1, j]) if is_left else (ranges[0, j], min(ranges[1, j], at - 1))
                )
                if first <= last:
                    note_moves(j, other, first, last, 0, value, point, land)
                if is_left:
                    ranges[1, j] = min(ranges[1, j], at - 1)
                else:
                    ranges[0, j] = max(ranges[0, j], at)
            node = trees.left[node] if is_left else trees.right[node]
    for j in range(features):
        if not cells.is_mask[j]:
            f = cells.off[j] + j
            for k in range(box.lo[j] + 1, box.hi[j] + 1):
                gain[f + k] += gain[f + k - 1]
    return score


@kernel
def may_move(j, k, point, cells):
    """Return whether a feature may move to a cell: it is allowed, and every budget has room for it."""
    c = cells.off[j] + k
    if k == point[j] or cells.is_missing[j] or cells.add[c] >= FAR:
        return False
    for b in range(cells.most.shape[0]):
        room = cells.most[b] - cells.spend[b, c]
        for i in range(point.shape[0]):
            if i != j:
                room -= cells.spend[b, cells.off[i] + point[i]]
        if room < 0.0:
            return False
    return True


@kernel
def best_move(price, point, land):
    """Return the feature and the cell that raise score - price * cost most, by the profile, and by how much; -1 where none does."""
    box, cells, cost, gain = land.box, land.cells, land.cost, land.gain
    best, feature, cell = LEAST_RISE, -1, -1
    for j in range(point.shape[0]):
        f = cells.off[j]
        here = cost[f + point[j]]
        for k in range(box.lo[j], box.hi[j] + 1):
            if cells.is_mask[j] and not (box.mask[j] >> k) & 1:
                continue
            worth = gain[f + j + k] - price * (cost[f + k] - here)
            if worth > best and may_move(j, k, point, cells):
                best, feature, cell = worth, j, k
    return feature, cell, best


@kernel
def ascend(price, point, land):
    """Move one feature after another, each time the one that raises score - price * cost most; return the score."""
    score = profile(point, land)
    for _ in range(MOST_ASCENTS):
        j, k, gained = best_move(price, point, land)
        if j < 0 or gained <= 0.0:
            break
        point[j] = k
        score = profile(point, land)
    return score


@kernel
def exchange(point, land):
    """Take one change back for a better one, as long as that raises the score below ``sure``; for budgets without room.

    Return the score.
    """
    own = land.cells.own
    score = profile(point, land)
    while score < land.goal.sure[0]:
        best, taken, feature, cell = LEAST_RISE, -1, -1, -1
        for i in range(point.shape[0]):
            now = point[i]
            if now == own[i]:
                continue
            point[i] = own[i]
            less = profile(point, land)
            j, k, worth = best_move(0.0, point, land)
            point[i] = now
            if j >= 0 and j != i and less + worth - score > best:
                best, taken, feature, cell = less + worth - score, i, j, k
        if taken < 0:
            break
        point[taken] = own[taken]
        point[feature] = cell
        score = ascend(0.0, point, land)
    return profile(point, land)


@kernel
def polish(score, point, land):
    """Lower the cost of a counterfactual, whose profile is at hand, by moves that keep it one, those that save most first."""
    box, cells, cost, gain, sure = land.box, land.cells, land.cost, land.gain, land.goal.sure[0]
    for _ in range(MOST_ASCENTS):
        best, feature, cell = 0.0, -1, -1
        for j in range(point.shape[0]):
            f = cells.off[j]
            here = cost[f + point[j]]
            for k in range(box.lo[j], box.hi[j] + 1):
                if cells.is_mask[j] and not (box.mask[j] >> k) & 1:
                    continue
                saved = here - cost[f + k]
                if saved > best and score + gain[f + j + k] >= sure and may_move(j, k, point, cells):
                    best, feature, cell = saved, j, k
        if feature < 0:
            return
        point[feature] = cell
        score = profile(point, land)


@kernel
def fall(price, last, ratio, best, land):
    """Ascend from the factual as the price of cost falls, until the goal is reached; return the cost of that point, polished, or FAR.

    Below the price ``last`` there is none.
    ``best`` becomes the point where it costs less than what is there (-1 where nothing is).
    """
    cells, cost, goal = land.cells, land.cost, land.goal
    features = cells.own.shape[0]
    scores = Scores(np.empty(features, np.int64), np.empty(1), np.empty(1))
    point = cells.own.copy()
    for _ in range(MOST_ASCENTS):
        score = ascend(price, point, land)
        if score < goal.sure[0] and price == 0.0 and cells.most.shape[0] > 0:
            score = exchange(point, land)
        if score >= goal.sure[0]:
            polish(score, point, land)
            if not is_counterfactual(point, cells, land.trees, goal, scores):
                return FAR
            total = known = 0.0
            for j in range(features):
                total += cost[cells.off[j] + point[j]]
                known += cost[cells.off[j] + best[j]] if best[0] >= 0 else FAR
            if total < known:
                best[:] = point
            return total
        if price == 0.0:
            return FAR
        price = price * ratio if price > last else 0.0
    return FAR


@kernel
def slide(radius, best, land):
    """Ascend within the ball of a maximum; while the goal is reached, take the ball just inside.

    Return the last radius, FAR without any.
    """
    cells, goal, whole = land.cells, land.goal, land.box
    features = cells.own.shape[0]
    scores = Scores(np.empty(features, np.int64), np.empty(1), np.empty(1))
    point = cells.own.copy()
    found = FAR
    while True:
        inner = CellBox(whole.lo.copy(), whole.hi.copy(), whole.mask.copy())
        for j in range(features):
            f, own = cells.off[j], cells.own[j]
            if cells.is_mask[j]:
                for k in range(cells.off[j + 1] - f):
                    if k != own and cells.top[f + k] >= radius:
                        inner.mask[j] &= ~(np.int64(1) << k)
                if point[j] >= 0 and not (inner.mask[j] >> point[j]) & 1:
                    point[j] = own
                continue
            while inner.lo[j] < own and cells.top[f + inner.lo[j]] >= radius:
                inner.lo[j] += 1
            while inner.hi[j] > own and cells.top[f + inner.hi[j]] >= radius:
                inner.hi[j] -= 1
            point[j] = min(max(point[j], inner.lo[j]), inner.hi[j])
        ball = Landscape(inner, cells, land.boundaries, land.trees, goal, land.cost, land.gain, land.ranges, land.stack)
        score = ascend(0.0, point, ball)
        if score < goal.sure[0] or not is_counterfactual(point, cells, land.trees, goal, scores):
            return found
        reached = 0.0
        for j in range(features):
            reached = max(reached, cells.top[cells.off[j] + point[j]])
        best[:] = point
        if reached >= radius or reached <= 0.0:
            return reached
        found = radius = reached
