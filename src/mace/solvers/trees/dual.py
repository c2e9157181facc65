"""The numba kernels of the bound by prices: a branch and bound that shares the distance between the trees.

The plain bound lets every tree spend the whole radius. Here each tree pays for what it wants. For any λ >= 0 and any
*prices* φ[t, j](c) that tree t pays for cell c of feature j, every point x of a box B with score above ``need`` and cost below ``limit``
has

    need <= score(x) <= base + λ limit + Σ_t max over leaves l of (gain(l) + Σ_j max over cells c of l in B of φ[t, j](c))
                                       + Σ_j max over cells c of B of (-λ cost_j(c) - Σ_t φ[t, j](c))

since the prices cancel and cost(x) < limit. The right side, ``total``, closes the box where it is below ``need``. Its minimum over
prices and λ is the linear programming bound; message passing, feature by feature, comes near it, and prices carry over to the parts of a
box. Any prices give a valid bound, so nothing of their rounding matters but that of the sums made with them, for which ``pad`` is added.

A *pair* is a tree and a feature that tells its leaves apart; its *segments* are the runs of cells (ordered feature) or the single levels
(mask feature) between which its leaves can tell. Prices live on segments. ``alive`` flags the cells that may still hold a counterfactual.

The part of the cost that is a maximum over features is bounded from below by its mean, so ``cost`` is a plain sum here.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from mace.solvers.compiled import kernel
from mace.solvers.trees.kernels import (
    DEPTH,
    FAR,
    FOUND,
    FRESH,
    FULL,
    LIMIT,
    NODES,
    RUNNING,
    STATUS,
    can_differ,
    cut_to_differ,
    failed_condition,
    is_sure,
    scores_at,
    settle_point,
)

DEAD = -1e30
"""The value of what cannot be chosen."""

DYING = -1e29
"""Below this a value counts as dead, whatever was added to it."""

ROUNDOFF = 2.0**-52

Pairs = namedtuple(
    "Pairs", "of_tree tree feature segment first last at_leaf from_segment to_segment of_feature by_feature"
)
"""Pairs: the range of each tree's pairs; the tree, the feature and the range of segments of each; the first and last cell of each segment;
where the ranges of segments of each leaf begin, one a pair of its tree (for a mask feature: nothing); and the pairs of each feature."""

Boxes = namedtuple(
    "Boxes",
    "arena lo hi mask alive price multiplier first last top is_flat state feature at near_side point",
)
"""The open boxes, one a depth: their cells, the prices, λ, and the leaves that each tree has left."""

Work = namedtuple("Work", "value best unary highest through rest begin end choice is_single eliminated")
"""What one box is worked out in: the value of each leaf and each tree's best, the sum at each cell and each feature's highest."""


@kernel
def make_pairs(tree_start, leaves, cells, lo, hi, mask, pairs, counts):
    """Write down the pairs and their segments; False where the arrays are too small."""
    features = lo.shape[0]
    trees = tree_start.shape[0] - 1
    marks = np.zeros(cells.off[features] + 2, np.uint8)
    count = segments = ranges = 0
    for t in range(trees):
        pairs.of_tree[t] = count
        for j in range(features):
            if not tells_apart(j, tree_start[t], tree_start[t + 1], leaves, cells, lo, hi, mask):
                continue
            width = cells.off[j + 1] - cells.off[j]
            if count + 1 >= pairs.segment.shape[0] or segments + width > pairs.first.shape[0]:
                return False
            pairs.tree[count] = t
            pairs.feature[count] = j
            pairs.segment[count] = segments
            if cells.is_mask[j]:
                for k in range(width):
                    pairs.first[segments] = pairs.last[segments] = k
                    segments += 1
            else:
                for i in range(tree_start[t], tree_start[t + 1]):
                    marks[leaves.box_lo[i, j]] = 1
                    marks[leaves.box_hi[i, j] + 1] = 1
                for k in range(lo[j], hi[j] + 1):
                    if k == lo[j] or marks[k] == 1:
                        pairs.first[segments] = k
                        segments += 1
                    pairs.last[segments - 1] = k
                for k in range(lo[j], hi[j] + 2):
                    marks[k] = 0
            count += 1
            pairs.segment[count] = segments
        for i in range(tree_start[t], tree_start[t + 1]):
            pairs.at_leaf[i] = ranges
            if ranges + count - pairs.of_tree[t] > pairs.from_segment.shape[0]:
                return False
            for p in range(pairs.of_tree[t], count):
                j = pairs.feature[p]
                if not cells.is_mask[j]:
                    s = pairs.segment[p]
                    while pairs.last[s] < leaves.box_lo[i, j]:
                        s += 1
                    pairs.from_segment[ranges] = s
                    while pairs.last[s] < leaves.box_hi[i, j]:
                        s += 1
                    pairs.to_segment[ranges] = s
                ranges += 1
    pairs.of_tree[trees] = count
    at = 0
    for j in range(features):
        pairs.of_feature[j] = at
        for p in range(count):
            if pairs.feature[p] == j:
                pairs.by_feature[at] = p
                at += 1
    pairs.of_feature[features] = at
    counts[0] = count
    counts[1] = segments
    return True


@kernel
def tells_apart(j, begin, end, leaves, cells, lo, hi, mask):
    """Return whether some leaf does not hold the whole box in feature j."""
    for i in range(begin, end):
        if cells.is_mask[j]:
            if mask[j] & ~leaves.box_mask[i, cells.mask_of[j]] != 0:
                return True
        elif leaves.box_lo[i, j] > lo[j] or leaves.box_hi[i, j] < hi[j]:
            return True
    return False


@kernel
def highest_price(i, p, j, t, mask, price, leaves, cells, pairs, begin, end):
    """Return the highest price that tree t pays on the segments of its leaf i within the box."""
    most = DEAD
    if cells.is_mask[j]:
        levels = mask[j] & leaves.box_mask[i, cells.mask_of[j]]
        s = pairs.segment[p]
        while levels != 0 and s < pairs.segment[p + 1]:
            if levels & 1 and price[s] > most:
                most = price[s]
            levels >>= 1
            s += 1
        return most
    at = pairs.at_leaf[i] + p - pairs.of_tree[t]
    for s in range(max(pairs.from_segment[at], begin), min(pairs.to_segment[at], end) + 1):
        if price[s] > most:
            most = price[s]
    return most


@kernel
def shrink(limit, lo, hi, mask, alive, near, cells):
    """Kill the cells outside the ball and draw the box around those alive; return its distance, infinite where nothing is left."""
    features = lo.shape[0]
    total = first = second = 0.0
    where = -1
    for j in range(features):
        f = cells.off[j]
        best = FAR
        near[j] = -1
        for k in range(lo[j], hi[j] + 1):
            if alive[f + k] and cells.add[f + k] + cells.top[f + k] < best:
                best = cells.add[f + k] + cells.top[f + k]
                near[j] = k
        if near[j] < 0:
            return np.inf
        total += cells.add[f + near[j]]
        top = cells.top[f + near[j]]
        if top > first:
            second = first
            first = top
            where = j
        elif top > second:
            second = top
    distance = total + first
    if distance >= limit:
        return distance
    for j in range(features):
        f = cells.off[j]
        rest = total - cells.add[f + near[j]]
        other = second if j == where else first
        kept = np.int64(0)
        begin = end = -1
        for k in range(lo[j], hi[j] + 1):
            if alive[f + k] and k != near[j] and rest + cells.add[f + k] + max(other, cells.top[f + k]) >= limit:
                alive[f + k] = 0
            if alive[f + k]:
                if begin < 0:
                    begin = k
                end = k
                if cells.is_mask[j]:
                    kept |= np.int64(1) << k
        lo[j] = begin
        hi[j] = end
        mask[j] = kept
    return distance


@kernel
def reach_segments(count, lo, hi, cells, pairs, begin, end):
    """Write down for each pair the first and the last segment that meet the box."""
    for p in range(count):
        j = pairs.feature[p]
        a, b = pairs.segment[p], pairs.segment[p + 1] - 1
        if not cells.is_mask[j]:
            while pairs.last[a] < lo[j]:
                a += 1
            while pairs.first[b] > hi[j]:
                b -= 1
        begin[p] = a
        end[p] = b


@kernel
def leaf_fits(i, t, limit, distance, peak, lo, hi, mask, near, leaves, cells, pairs):
    """Return whether a leaf meets the box within the ball."""
    total = distance - peak
    for p in range(pairs.of_tree[t], pairs.of_tree[t + 1]):
        j = pairs.feature[p]
        f = cells.off[j]
        if cells.is_mask[j]:
            both = mask[j] & leaves.box_mask[i, cells.mask_of[j]]
            if both == 0:
                return False
            if both >> near[j] & 1:
                continue
            c = -1
            for k in range(cells.off[j + 1] - f):
                if both >> k & 1 and (
                    c < 0 or cells.add[f + k] + cells.top[f + k] < cells.add[f + c] + cells.top[f + c]
                ):
                    c = k
        else:
            a = max(leaves.box_lo[i, j], lo[j])
            b = min(leaves.box_hi[i, j], hi[j])
            if a > b:
                return False
            if a <= near[j] <= b:
                continue
            c = min(max(cells.own[j], a), b)
        total += max(0.0, cells.add[f + c] - cells.add[f + near[j]])
        if cells.top[f + c] > peak:
            peak = cells.top[f + c]
    return total + peak < limit


@kernel
def value_leaves(d, trees, cost, leaves, cells, pairs, boxes, work):
    """Work out the values of leaves and cells from the prices alone; return the sum of the best, and the largest number met."""
    lo, hi, mask, alive, arena = boxes.lo[d], boxes.hi[d], boxes.mask[d], boxes.alive[d], boxes.arena
    price, multiplier = boxes.price[d], boxes.multiplier[d]
    total = largest = 0.0
    for t in range(trees):
        best = DEAD
        for q in range(boxes.first[d, t], boxes.last[d, t]):
            i = arena[q]
            v = leaves.gain[i, 0]
            for p in range(pairs.of_tree[t], pairs.of_tree[t + 1]):
                r = highest_price(
                    i, p, pairs.feature[p], t, mask, price, leaves, cells, pairs, work.begin[p], work.end[p]
                )
                v += r
                if r > DYING:
                    largest = max(largest, abs(r), abs(v))
            work.value[i] = v if v > DYING else DEAD
            best = max(best, work.value[i])
        work.best[t] = best
        total += best
    for j in range(lo.shape[0]):
        f = cells.off[j]
        for c in range(f + lo[j], f + hi[j] + 1):
            work.unary[c] = -multiplier * cost[c] if alive[c] else DEAD
            largest = max(largest, multiplier * cost[c] if alive[c] else 0.0)
        for at in range(pairs.of_feature[j], pairs.of_feature[j + 1]):
            p = pairs.by_feature[at]
            for s in range(work.begin[p], work.end[p] + 1):
                for c in range(f + max(pairs.first[s], lo[j]), f + min(pairs.last[s], hi[j]) + 1):
                    if alive[c]:
                        if price[s] < DYING:
                            alive[c] = 0
                            work.unary[c] = DEAD
                        else:
                            work.unary[c] -= price[s]
                            largest = max(largest, abs(work.unary[c]))
        best = DEAD
        for c in range(f + lo[j], f + hi[j] + 1):
            best = max(best, work.unary[c])
        work.highest[j] = best
        total += best
    return total, largest


@kernel
def sweep(forward, total, need, pad, factor, largest, d, leaves, cells, pairs, boxes, work):
    """Pass messages once over all features: take the prices of a feature back, kill cells, and share its values out anew.

    Returns the new total and the largest number met, ``factor`` times which (and ``pad``) the total may be off by. Neither step raises
    the total.
    """
    lo, hi, mask, alive, arena = boxes.lo[d], boxes.hi[d], boxes.mask[d], boxes.alive[d], boxes.arena
    price, first, last, is_flat = boxes.price[d], boxes.first[d], boxes.last[d], boxes.is_flat[d]
    begin, end, value, rest, through, unary = work.begin, work.end, work.value, work.rest, work.through, work.unary
    features = lo.shape[0]
    for step in range(features):
        j = step if forward else features - 1 - step
        pairs_begin, pairs_end = pairs.of_feature[j], pairs.of_feature[j + 1]
        if pairs_begin == pairs_end or (lo[j] == hi[j] and work.is_single[j]):
            continue
        f = cells.off[j]
        sharing = 0
        total -= work.highest[j]
        for at in range(pairs_begin, pairs_end):
            p = pairs.by_feature[at]
            if is_flat[p]:
                continue
            t = pairs.tree[p]
            if last[t] - first[t] == 1:
                is_flat[p] = 1
            else:
                sharing += 1
            for s in range(begin[p], end[p] + 1):
                through[s] = DEAD
            for q in range(first[t], last[t]):
                i = arena[q]
                paid = highest_price(i, p, j, t, mask, price, leaves, cells, pairs, begin[p], end[p])
                if paid < DYING or value[i] < DYING:
                    rest[i] = DEAD
                    continue
                v = value[i] - paid
                rest[i] = v
                if cells.is_mask[j]:
                    levels = leaves.box_mask[i, cells.mask_of[j]]
                    for s in range(begin[p], end[p] + 1):
                        if levels & 1 and v > through[s]:
                            through[s] = v
                        levels >>= 1
                else:
                    where = pairs.at_leaf[i] + p - pairs.of_tree[t]
                    for s in range(max(pairs.from_segment[where], begin[p]), min(pairs.to_segment[where], end[p]) + 1):
                        if v > through[s]:
                            through[s] = v
            total -= work.best[t]
            work.best[t] = 0.0
            for s in range(begin[p], end[p] + 1):
                a, b = f + max(pairs.first[s], lo[j]), f + min(pairs.last[s], hi[j])
                if through[s] < DYING or price[s] < DYING:
                    for c in range(a, b + 1):
                        alive[c] = 0
                        unary[c] = DEAD
                else:
                    gained = through[s] + price[s]
                    price[s] = -through[s]
                    largest = max(largest, abs(through[s]), abs(gained))
                    if gained != 0.0:
                        for c in range(a, b + 1):
                            unary[c] += gained
        highest = DEAD
        choice = lo[j]
        for k in range(lo[j], hi[j] + 1):
            if alive[f + k] and unary[f + k] > highest:
                highest = unary[f + k]
                choice = k
            if alive[f + k]:
                largest = max(largest, abs(unary[f + k]))
        work.choice[j] = choice
        if highest < DYING:
            return DEAD, largest
        total += highest
        reach = total + pad + factor * largest
        if reach < need:
            return total, largest
        # Every tree of the pairs is at 0 now: the total less what a cell lacks bounds what is possible with that cell.
        lowest = highest - (reach - need)
        a = b = -1
        for k in range(lo[j], hi[j] + 1):
            if alive[f + k]:
                if unary[f + k] < lowest:
                    alive[f + k] = 0
                    unary[f + k] = DEAD
                else:
                    if a < 0:
                        a = k
                    b = k
        if a != lo[j] or b != hi[j]:
            lo[j], hi[j] = a, b
            if not cells.is_mask[j]:
                for at in range(pairs_begin, pairs_end):
                    p = pairs.by_feature[at]
                    while pairs.last[begin[p]] < a:
                        begin[p] += 1
                    while pairs.first[end[p]] > b:
                        end[p] -= 1
        work.is_single[j] = a == b
        total -= highest
        shared = 0
        for at in range(pairs_begin, pairs_end):
            p = pairs.by_feature[at]
            t = pairs.tree[p]
            if is_flat[p] == 2:
                continue
            if is_flat[p] == 1:
                is_flat[p] = 2
            else:
                share = 1.0 / (sharing - shared)
                shared += 1
                for s in range(begin[p], end[p] + 1):
                    top = DEAD
                    x, y = f + max(pairs.first[s], a), f + min(pairs.last[s], b)
                    for c in range(x, y + 1):
                        top = max(top, unary[c])
                    if top < DYING:
                        price[s] = DEAD
                    else:
                        top *= share
                        price[s] += top
                        for c in range(x, y + 1):
                            unary[c] -= top
            best = DEAD
            for q in range(first[t], last[t]):
                i = arena[q]
                value[i] = DEAD
                if rest[i] > DYING:
                    paid = highest_price(i, p, j, t, mask, price, leaves, cells, pairs, begin[p], end[p])
                    if paid > DYING:
                        value[i] = rest[i] + paid
                        best = max(best, value[i])
            if best < DYING:
                return DEAD, largest
            work.best[t] = best
            total += best
        highest = DEAD
        for c in range(f + a, f + b + 1):
            highest = max(highest, unary[c])
        work.highest[j] = highest
        total += highest
    return total, largest


@kernel
def score_and_cost(point, base_point, cost, cells, trees, goal, most, least):
    """Return the most that a point may score and its cost by cells."""
    total = 0.0
    for j in range(point.shape[0]):
        base_point[j] = cells.base_cell[cells.off[j] + point[j]]
        total += cost[cells.off[j] + point[j]]
    scores_at(base_point, cells, trees, goal, most, least)
    return most[0], total


@kernel
def adapted(multiplier, need, limit, near_score, near_cost, chosen_score, chosen_cost):
    """Return λ, moved so that two points that keep the total up no longer do.

    The total stays at or above score(x) + λ (limit - cost(x)) of every point x of the box.
    """
    moved = multiplier
    if chosen_cost < limit:
        if chosen_score < need and chosen_score + multiplier * (limit - chosen_cost) >= need:
            moved = max(0.9 * (need - chosen_score) / (limit - chosen_cost), 0.6 * multiplier)
    elif chosen_cost > limit and chosen_score - multiplier * (chosen_cost - limit) >= need:
        moved = min(1.1 * (chosen_score - need) / (chosen_cost - limit), 1.5 * multiplier)
    if near_cost < limit and near_score < need:
        moved = min(moved, 0.95 * (need - near_score) / (limit - near_cost))
    return moved


@kernel
def choose_boundary(d, slack, trees, leaves, cells, pairs, boxes, work):
    """Choose the cut whose two sides lose the greatest product of leaf weights; False where there is nothing to cut.

    A leaf weighs the more, the nearer it is to the best of its tree.
    """
    lo, hi, mask, arena, near = boxes.lo[d], boxes.hi[d], boxes.mask[d], boxes.arena, boxes.point[d]
    features = lo.shape[0]
    lost = work.eliminated
    lost[:] = 0.0
    for t in range(trees):
        begin, end = boxes.first[d, t], boxes.last[d, t]
        if end - begin <= 1:
            continue
        total = 0.0
        for q in range(begin, end):
            total += max(0.0, (work.value[arena[q]] - work.best[t] + slack) / slack) ** 4
        for q in range(begin, end):
            i = arena[q]
            weight = max(0.0, (work.value[i] - work.best[t] + slack) / slack) ** 4 / total
            for p in range(pairs.of_tree[t], pairs.of_tree[t + 1]):
                j = pairs.feature[p]
                if lo[j] == hi[j]:
                    continue
                f = cells.off[j]
                if cells.is_mask[j]:
                    both = mask[j] & leaves.box_mask[i, cells.mask_of[j]]
                    for k in range(lo[j], hi[j] + 1):
                        if both >> k & 1 == 0:
                            lost[0, f + k] += weight
                    if both & (both - 1) == 0:
                        for k in range(lo[j], hi[j] + 1):
                            if both >> k & 1:
                                lost[1, f + k] += weight
                else:
                    if leaves.box_lo[i, j] > lo[j]:
                        lost[0, f + leaves.box_lo[i, j] - 1] += weight
                    if leaves.box_hi[i, j] < hi[j]:
                        lost[1, f + leaves.box_hi[i, j] + 1] += weight
    best = -1.0
    share = 1.0 / trees
    for j in range(features):
        f = cells.off[j]
        if lo[j] == hi[j]:
            continue
        if cells.is_mask[j]:
            for k in range(lo[j], hi[j] + 1):
                score = (lost[0, f + k] * share + 1e-5) * (lost[1, f + k] * share + 1e-5)
                if mask[j] >> k & 1 and score > best:
                    best = score
                    boxes.feature[d] = j
                    boxes.at[d] = np.int64(1) << k
                    boxes.near_side[d] = 0 if k == near[j] else 1
            continue
        # A leaf that begins at b is lost to every side that ends before b; likewise on the right.
        for k in range(hi[j] - 2, lo[j] - 1, -1):
            lost[0, f + k] += lost[0, f + k + 1]
        right = 0.0
        for k in range(lo[j], hi[j]):
            right += lost[1, f + k + 1]
            score = (lost[0, f + k] * share + 1e-5) * (right * share + 1e-5)
            if score > best:
                best = score
                boxes.feature[d] = j
                boxes.at[d] = k
                boxes.near_side[d] = 0 if near[j] <= k else 1
    return best >= 0.0


@kernel
def descend(d, side, cells, boxes):
    """Make depth d + 1 the part of the box on one side of the cut, with all that is known of the whole."""
    e = d + 1
    boxes.lo[e] = boxes.lo[d]
    boxes.hi[e] = boxes.hi[d]
    boxes.mask[e] = boxes.mask[d]
    boxes.alive[e] = boxes.alive[d]
    boxes.price[e] = boxes.price[d]
    boxes.is_flat[e] = boxes.is_flat[d]
    boxes.multiplier[e] = boxes.multiplier[d]
    boxes.first[e] = boxes.first[d]
    boxes.last[e] = boxes.last[d]
    j = boxes.feature[d]
    f = cells.off[j]
    for k in range(boxes.lo[d, j], boxes.hi[d, j] + 1):
        is_left = boxes.at[d] >> k & 1 == 1 if cells.is_mask[j] else k <= boxes.at[d]
        if is_left != (side == 0):
            boxes.alive[e, f + k] = 0


@kernel
def filter_leaves(d, limit, distance, slack, is_first, trees, leaves, cells, pairs, boxes, work):
    """Keep the leaves that meet the box within the ball and whose value is not too far below the best of its tree.

    Returns 0, 1 where some tree has none left, 2 where the arena is full.
    """
    lo, hi, mask, near, arena = boxes.lo[d], boxes.hi[d], boxes.mask[d], boxes.point[d], boxes.arena
    peak = 0.0
    for j in range(lo.shape[0]):
        peak = max(peak, cells.top[cells.off[j] + near[j]])
    write = boxes.top[d - 1] if is_first and d > 0 else boxes.first[d, 0]
    for t in range(trees):
        begin, end = boxes.first[d, t], boxes.last[d, t]
        if is_first and d > 0 and write + end - begin > arena.shape[0]:
            return 2
        kept = write
        for q in range(begin, end):
            i = arena[q]
            if not is_first and (work.value[i] < DYING or work.best[t] - work.value[i] > slack):
                continue
            if leaf_fits(i, t, limit, distance, peak, lo, hi, mask, near, leaves, cells, pairs):
                arena[write] = i
                write += 1
        if write == kept:
            return 1
        boxes.first[d, t] = kept
        boxes.last[d, t] = write
    boxes.top[d] = write
    return 0


@kernel
def clip_to_leaves(d, trees, leaves, cells, pairs, boxes):
    """Kill the cells outside of the only leaf of a tree; return whether every tree has a single leaf left."""
    is_constant = True
    lo, hi, alive = boxes.lo[d], boxes.hi[d], boxes.alive[d]
    for t in range(trees):
        if boxes.last[d, t] - boxes.first[d, t] > 1:
            is_constant = False
            continue
        i = boxes.arena[boxes.first[d, t]]
        for p in range(pairs.of_tree[t], pairs.of_tree[t + 1]):
            j = pairs.feature[p]
            for k in range(lo[j], hi[j] + 1):
                if cells.is_mask[j]:
                    inside = leaves.box_mask[i, cells.mask_of[j]] >> k & 1 == 1
                else:
                    inside = leaves.box_lo[i, j] <= k <= leaves.box_hi[i, j]
                if not inside:
                    alive[cells.off[j] + k] = 0
    return is_constant


# Registers and reals beside those of the plain search.
SWEEPS, MOVED = 6, 7
ROOT_BOUND, RESTART_BELOW, TOTAL, BEFORE, PAD = 1, 2, 3, 4, 5
RESTART = 3
"""The status of a search that has found a point so near that a smaller ball is worth a fresh start."""

GO_ON, CLOSED, CUT, NO_ROOM = 0, 1, 2, 3

ROOT_SWEEPS, MOST_SWEEPS, LEAST_GAIN = 20, 8, 0.2
"""A box is swept until it closes, at most so often, and as long as a sweep gains this share of what is missing."""


@kernel
def refine(d, count, registers, reals, cost, cells, leaves, trees, goal, pairs, boxes, work, most, least, base_point):
    """Tighten the box, its leaves and its prices once; say whether to go on, it is closed, or it must be cut."""
    lo, hi, mask, near = boxes.lo[d], boxes.hi[d], boxes.mask[d], boxes.point[d]
    features, forest = lo.shape[0], trees.roots.shape[0]
    need, limit = goal.need[0], reals[LIMIT]
    sweeps = registers[SWEEPS]
    distance = shrink(limit, lo, hi, mask, boxes.alive[d], near, cells)
    if distance >= limit or not can_differ(lo, hi, mask, cells):
        return CLOSED
    reach_segments(count, lo, hi, cells, pairs, work.begin, work.end)
    slack = reals[TOTAL] + reals[PAD] - need
    outcome = filter_leaves(d, limit, distance, slack, sweeps == 0, forest, leaves, cells, pairs, boxes, work)
    if outcome != 0:
        return CLOSED if outcome == 1 else NO_ROOM
    multiplier = boxes.multiplier[d]
    constant = goal.base[0] + multiplier * limit
    total, largest = value_leaves(d, forest, cost, leaves, cells, pairs, boxes, work)
    total += constant
    # A value passes through at most 4 `longest` operations before it is worked out anew, and so many values are added up.
    longest = np.int64(2)
    for j in range(features):
        longest = max(longest, pairs.of_feature[j + 1] - pairs.of_feature[j] + 2)
    for t in range(forest):
        longest = max(longest, pairs.of_tree[t + 1] - pairs.of_tree[t] + 2)
    factor = ROUNDOFF * (forest + features) * (4.0 * longest + forest + features)
    largest = max(largest, abs(constant))
    reals[PAD] = goal.pad + factor * largest
    reals[TOTAL] = total
    if d == 0:
        reals[ROOT_BOUND] = max(reals[ROOT_BOUND], limit - (total + reals[PAD] - need) / multiplier)
    if total + reals[PAD] < need:
        return CLOSED
    gained = reals[BEFORE] - total
    is_slow = d > 0 and sweeps > 0 and registers[MOVED] == 0 and gained < LEAST_GAIN * (total - need)
    is_stuck = d == 0 and sweeps > 1 and gained < 1e-4 * multiplier * limit
    if is_slow or is_stuck or sweeps >= (ROOT_SWEEPS if d == 0 else MOST_SWEEPS):
        return CUT
    reals[BEFORE] = total
    total, largest = sweep(
        sweeps % 2 == 0, total, need, goal.pad, factor, largest, d, leaves, cells, pairs, boxes, work
    )
    reals[TOTAL] = total
    reals[PAD] = goal.pad + factor * largest
    registers[SWEEPS] += 1
    if total + reals[PAD] < need:
        if d == 0:
            reals[ROOT_BOUND] = limit
        return CLOSED
    registers[MOVED] = 0
    if d > 0 or registers[SWEEPS] % 3 == 0:
        near_score, near_cost = score_and_cost(near, base_point, cost, cells, trees, goal, most, least)
        score, chosen = score_and_cost(work.choice, base_point, cost, cells, trees, goal, most, least)
        moved = adapted(multiplier, need, limit, near_score, near_cost, score, chosen)
        if abs(moved - multiplier) > 0.02 * multiplier:
            boxes.multiplier[d] = moved
            registers[MOVED] = 1
    return GO_ON


@kernel
def try_choice(cells, trees, goal, work, registers, reals, best, most, least, base_point):
    """Take the point that the prices point to as the incumbent, where it is in the goal and nearer."""
    cost = peak = 0.0
    for j in range(base_point.shape[0]):
        cost += cells.add[cells.off[j] + work.choice[j]]
        peak = max(peak, cells.top[cells.off[j] + work.choice[j]])
    if cost + peak < reals[LIMIT] and is_sure(work.choice, base_point, cells, trees, goal, most, least):
        reals[LIMIT] = cost + peak
        best[:] = work.choice
        registers[FOUND] = 1


@kernel
def cut(
    d,
    cells,
    leaves,
    trees,
    goal,
    pairs,
    boxes,
    work,
    registers,
    reals,
    best,
    log_point,
    log_cost,
    most,
    least,
    base_point,
):
    """Look at the nearest point of a box and choose where to cut it; True where it is closed instead."""
    near = boxes.point[d]
    forest = trees.roots.shape[0]
    is_constant = clip_to_leaves(d, forest, leaves, cells, pairs, boxes)
    limit = reals[LIMIT]
    if shrink(limit, boxes.lo[d], boxes.hi[d], boxes.mask[d], boxes.alive[d], near, cells) >= limit:
        return True
    outcome = settle_point(
        d, cells, trees, goal, boxes, registers, reals, best, log_point, log_cost, most, least, base_point
    )
    if outcome == 1:
        return True
    failed = failed_condition(near, cells)
    if is_constant:
        # The score is one constant on the box: only a condition can still tell its points apart.
        return failed < 0 or outcome == 0 or not cut_to_differ(d, failed, cells, boxes)
    if outcome == 2 and cut_to_differ(d, failed, cells, boxes):
        return False
    slack = max(reals[TOTAL] + reals[PAD] - goal.need[0], 1e-300)
    return not choose_boundary(d, slack, forest, leaves, cells, pairs, boxes, work)


@kernel
def advance_priced(
    budget, count, registers, reals, best, log_point, log_cost, cost, cells, leaves, trees, goal, pairs, boxes, work
):  # fmt: skip
    """Run the branch and bound for at most ``budget`` sweeps; all state lives in the arrays, so that it can be resumed.

    As in the plain search, ``reals[LIMIT]`` is the radius: that of the pass, then the cost of the best point found.
    ``reals[ROOT_BOUND]`` becomes a cost below which the ball holds nothing.
    """
    most, least = np.empty(1), np.empty(1)
    base_point = np.empty(cells.own.shape[0], np.int64)
    for _ in range(budget):
        if registers[DEPTH] < 0 or registers[STATUS] != RUNNING:
            return
        d = registers[DEPTH]
        if registers[FRESH] == 0:
            if boxes.state[d] == 2:
                registers[DEPTH] -= 1
            else:
                boxes.state[d] = 2
                descend(d, 1 - boxes.near_side[d], cells, boxes)
                registers[DEPTH] = d + 1
                registers[FRESH] = 1
            continue
        if registers[FRESH] == 1:
            registers[FRESH] = 2
            registers[NODES] += 1
            registers[SWEEPS] = registers[MOVED] = 0
            reals[TOTAL] = reals[BEFORE] = FAR
            reals[PAD] = 0.0
            work.is_single[:] = 0
            for j in range(base_point.shape[0]):
                work.choice[j] = cells.own[j]
        outcome = refine(
            d, count, registers, reals, cost, cells, leaves, trees, goal, pairs, boxes, work, most, least, base_point
        )
        if outcome == GO_ON:
            continue
        if outcome == NO_ROOM:
            registers[STATUS] = FULL
            return
        if outcome == CUT:
            try_choice(cells, trees, goal, work, registers, reals, best, most, least, base_point)
            if cut(
                d, cells, leaves, trees, goal, pairs, boxes, work, registers, reals, best, log_point, log_cost,
                most, least, base_point,
            ):  # fmt: skip
                outcome = CLOSED
            if registers[FOUND] and reals[LIMIT] < reals[RESTART_BELOW]:
                registers[STATUS] = RESTART
                return
        registers[FRESH] = 1
        if outcome == CLOSED:
            registers[DEPTH] -= 1
            registers[FRESH] = 0
            continue
        if d + 2 >= boxes.lo.shape[0]:
            registers[STATUS] = FULL
            return
        boxes.state[d] = 1
        descend(d, boxes.near_side[d], cells, boxes)
        registers[DEPTH] = d + 1
