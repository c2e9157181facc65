"""The numba kernels of a local search for incumbents: exact one-move profiles, and ascents along them.

The *profile* of a point is by how much its score changes when one feature moves to another cell: all features and cells in one pass over
the trees. A tree is walked along the point's path; at each node the side that the point does not take is followed with that one feature
moved, and what the leaf there adds is noted for the range of cells that leads to it. No bound comes of any of this; it gives the search a
radius.

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

MOST_UNDONE = 6
"""The most changes that are taken back at once."""

SMALLER_BALL, CLOSE_BALLS = 0.9, 0.01
"""The next ball of a maximum after one with a point, and how near to each other one with and one without it may be."""


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
def takes_left(level, at, subset, is_mask):
    """Return whether a cell goes left: its bit is in the subset, or it lies below the boundary."""
    return (subset >> level) & 1 == 1 if is_mask else level < at


@kernel
def profile(point, land):
    """Write the profile of a point; return its score."""
    # All arrays are taken out of their tuples before the loops: doing so inside costs many times the work.
    box_lo, box_hi, box_mask, gain, ranges, stack = (
        land.box.lo, land.box.hi, land.box.mask, land.gain, land.ranges, land.stack,
    )  # fmt: skip
    off, is_mask, is_missing = land.cells.off, land.cells.is_mask, land.cells.is_missing
    roots, feature, bound, subset = land.trees.roots, land.trees.feature, land.trees.bound, land.trees.subset
    left, right, missing_left, least = land.trees.left, land.trees.right, land.trees.missing_left, land.trees.least
    start, start_off = land.boundaries.start, land.boundaries.off
    gain[:] = 0.0
    score = land.goal.base[0]
    for t in range(roots.shape[0]):
        node = roots[t]
        while feature[node] >= 0:
            j = feature[node]
            ranges[0, j], ranges[1, j], ranges[2, j] = box_lo[j], box_hi[j], box_mask[j]
            at = start[start_off[j] + bound[node]]
            is_left = missing_left[node] if is_missing[j] else takes_left(point[j], at, subset[node], is_mask[j])
            node = left[node] if is_left else right[node]
        value = least[node, 0]
        score += value
        on_path = roots[t]
        while feature[on_path] >= 0:
            moved = feature[on_path]
            masked = is_mask[moved]
            at = start[start_off[moved] + bound[on_path]]
            levels = subset[on_path]
            is_left = missing_left[on_path] if is_missing[moved] else takes_left(point[moved], at, levels, masked)
            beside = right[on_path] if is_left else left[on_path]
            on_path = left[on_path] if is_left else right[on_path]
            if is_missing[moved]:
                continue
            # The cells, or levels, of this feature that lead to the side which the point does not take.
            if masked:
                side = levels if is_left else ~levels
                a, b = ranges[2, moved] & ~side, np.int64(0)
                ranges[2, moved] &= side
                size = 1 if a != 0 else 0
            elif is_left:
                a, b = max(ranges[0, moved], at), ranges[1, moved]
                ranges[1, moved] = min(ranges[1, moved], at - 1)
                size = 1 if a <= b else 0
            else:
                a, b = ranges[0, moved], min(ranges[1, moved], at - 1)
                ranges[0, moved] = max(ranges[0, moved], at)
                size = 1 if a <= b else 0
            stack[0, 0], stack[1, 0], stack[2, 0] = beside, a, b
            f = off[moved] + moved
            while size > 0:
                size -= 1
                node, a, b = stack[0, size], stack[1, size], stack[2, size]
                while feature[node] >= 0:
                    j = feature[node]
                    at = start[start_off[j] + bound[node]]
                    if j != moved:
                        goes = (
                            missing_left[node] if is_missing[j] else takes_left(point[j], at, subset[node], is_mask[j])
                        )
                        node = left[node] if goes else right[node]
                        continue
                    if masked:
                        first, others = a & subset[node], a & ~subset[node]
                        is_split = first != 0 and others != 0
                        goes = first != 0
                        a = first if goes else others
                        if is_split:
                            stack[0, size], stack[1, size], stack[2, size] = right[node], others, b
                    else:
                        goes = a < at
                        is_split = goes and b >= at
                        if is_split:
                            stack[0, size], stack[1, size], stack[2, size] = right[node], at, b
                            b = at - 1
                    size += 1 if is_split else 0
                    node = left[node] if goes else right[node]
                change = least[node, 0] - value
                if masked:
                    k = 0
                    while a != 0:
                        if a & 1 == 1:
                            gain[f + k] += change
                        a >>= 1
                        k += 1
                else:
                    gain[f + a] += change
                    gain[f + b + 1] -= change
    for j in range(point.shape[0]):
        if not is_mask[j]:
            f = off[j] + j
            for k in range(box_lo[j] + 1, box_hi[j] + 1):
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
def sum_of(point, land):
    """Return the cost of a point as a plain sum over features."""
    total = 0.0
    for j in range(point.shape[0]):
        total += land.cost[land.cells.off[j] + point[j]]
    return total


@kernel
def repair(score, most, point, land):
    """Raise the score to ``sure`` by moves, each time the one that costs least for what it gains of what is lacking; return the score.

    The sum of the costs stays below ``most``. The profile of the point is at hand, before and after.
    """
    box, cells, cost, gain, sure = land.box, land.cells, land.cost, land.gain, land.goal.sure[0]
    total = sum_of(point, land)
    for _ in range(MOST_ASCENTS):
        if score >= sure:
            break
        best, feature, cell = FAR, -1, -1
        for j in range(point.shape[0]):
            f = cells.off[j]
            here = cost[f + point[j]]
            for k in range(box.lo[j], box.hi[j] + 1):
                gained, more = gain[f + j + k], cost[f + k] - here
                if gained <= LEAST_RISE or total + more >= most or (cells.is_mask[j] and not (box.mask[j] >> k) & 1):
                    continue
                rate = more / min(gained, sure - score) if more > 0.0 else more - gained
                if rate < best and may_move(j, k, point, cells):
                    best, feature, cell = rate, j, k
        if feature < 0:
            break
        total += cost[cells.off[feature] + cell] - cost[cells.off[feature] + point[feature]]
        point[feature] = cell
        score = profile(point, land)
    return score


@kernel
def draw(state, most):
    """Return a number from 0 up to, not including, ``most``, by Marsaglia's xorshift: the same numbers in every run."""
    word = state[0]
    word ^= word << np.uint64(13)
    word ^= word >> np.uint64(7)
    word ^= word << np.uint64(17)
    state[0] = word
    return np.int64(word >> np.uint64(33)) % most


@kernel
def mend(tries, state, best, land):
    """Take some changes of a counterfactual back, and a few others along, and repair it; keep what is cheaper. Return how often it was."""
    box, cells, cost, goal = land.box, land.cells, land.cost, land.goal
    features = cells.own.shape[0]
    scores = Scores(np.empty(features, np.int64), np.empty(1), np.empty(1))
    changed = np.empty(features, np.int64)
    known, kept = sum_of(best, land), 0
    for _ in range(tries):
        point = best.copy()
        many = 0
        for j in range(features):
            if point[j] != cells.own[j]:
                changed[many] = j
                many += 1
        if many == 0:
            break
        for _i in range(1 + draw(state, min(MOST_UNDONE, many))):
            j = changed[draw(state, many)]
            own, now = cells.own[j], point[j]
            to = own
            if draw(state, 10) >= 7 and not cells.is_mask[j] and now != own:
                # Part of the way back.
                to = own + draw(state, now - own) if now > own else own - draw(state, own - now)
            if to != now and may_move(j, to, point, cells):
                point[j] = to
        for _i in range(draw(state, 3)):
            j = draw(state, features)
            k = box.lo[j] + draw(state, box.hi[j] - box.lo[j] + 1)
            is_near = cost[cells.off[j] + k] < known and (not cells.is_mask[j] or (box.mask[j] >> k) & 1 == 1)
            if is_near and may_move(j, k, point, cells):
                point[j] = k
        score = repair(profile(point, land), 1.5 * known, point, land)
        if score < goal.sure[0]:
            continue
        polish(score, point, land)
        total = sum_of(point, land)
        if total < known * (1 - 1e-12) and is_counterfactual(point, cells, land.trees, goal, scores):
            best[:], known = point, total
            kept += 1
    return kept


@kernel
def rise(point, land):
    """Move many features at once to where each by itself raises the score most, as many as raise it together; return the score."""
    box, cells, gain = land.box, land.cells, land.gain
    features = point.shape[0]
    before, cell, worth = point.copy(), np.empty(features, np.int64), np.empty(features)
    score, many = profile(point, land), features
    for _ in range(MOST_ASCENTS):
        most = LEAST_RISE
        for j in range(features):
            f, worth[j] = cells.off[j] + j, 0.0
            for k in range(box.lo[j], box.hi[j] + 1):
                if (
                    gain[f + k] > worth[j]
                    and (not cells.is_mask[j] or (box.mask[j] >> k) & 1)
                    and may_move(j, k, point, cells)
                ):
                    worth[j], cell[j] = gain[f + k], k
            most = max(most, worth[j])
        if most == LEAST_RISE:
            break
        before[:] = point
        while True:
            moved = 0
            for _i in range(many):
                j = -1
                for i in range(features):
                    is_next = point[i] == before[i] and worth[i] > LEAST_RISE
                    if is_next and (j < 0 or worth[i] > worth[j]) and may_move(i, cell[i], point, cells):
                        j = i
                if j < 0:
                    break
                point[j] = cell[j]
                moved += 1
            after = profile(point, land)
            if moved <= 1 or after >= score + most:
                break
            point[:] = before
            many = max(1, moved // 2)
        if after <= score:
            point[:] = before
            return profile(point, land)
        score = after
        many = min(features, 2 * many)
    return score


@kernel
def shrink_to_peak(radius, point, inner, land):
    """Make ``inner`` the part of the box in which no feature costs ``radius`` or more, and move a point into it."""
    cells, whole = land.cells, land.box
    inner.lo[:], inner.hi[:], inner.mask[:] = whole.lo, whole.hi, whole.mask
    for j in range(point.shape[0]):
        f, own = cells.off[j], cells.own[j]
        if cells.is_mask[j]:
            for k in range(cells.off[j + 1] - f):
                if k != own and cells.top[f + k] >= radius:
                    inner.mask[j] &= ~(np.int64(1) << k)
            if not (inner.mask[j] >> point[j]) & 1:
                point[j] = own
            continue
        while inner.lo[j] < own and cells.top[f + inner.lo[j]] >= radius:
            inner.lo[j] += 1
        while inner.hi[j] > own and cells.top[f + inner.hi[j]] >= radius:
            inner.hi[j] -= 1
        point[j] = min(max(point[j], inner.lo[j]), inner.hi[j])


@kernel
def slide(radius, known, best, land):
    """Rise from the factual within the ball of a maximum; where that reaches the goal, go on in smaller balls, the first inside ``known``.

    Return the cost of the point, which ``best`` becomes, where it is less than ``known``; else FAR.
    """
    cells, goal, whole = land.cells, land.goal, land.box
    features = cells.own.shape[0]
    scores = Scores(np.empty(features, np.int64), np.empty(1), np.empty(1))
    inner = CellBox(whole.lo.copy(), whole.hi.copy(), whole.mask.copy())
    ball = Landscape(inner, cells, land.boundaries, land.trees, goal, land.cost, land.gain, land.ranges, land.stack)
    point = cells.own.copy()
    good = point.copy()
    without, found = 0.0, FAR
    while True:
        shrink_to_peak(radius, point, inner, land)
        score = rise(point, ball)
        if score >= goal.sure[0] and is_counterfactual(point, cells, land.trees, goal, scores):
            reached = 0.0
            for j in range(features):
                reached = max(reached, cells.top[cells.off[j] + point[j]])
            if reached >= radius:
                break
            if reached < known:
                known = found = reached
                best[:] = point
            if reached <= 0.0:
                break
            good[:] = point
            radius = known
        elif found == FAR:
            break
        else:
            without = radius
            point[:] = good
        if without >= known:
            break
        # Down to a hundredth the balls are halved towards the last without a point; then cell by cell.
        if known - without > CLOSE_BALLS * known:
            radius = max(SMALLER_BALL * known, (without + known) / 2) if found < FAR else known
        else:
            radius = known
    return found
