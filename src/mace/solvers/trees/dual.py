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
from functools import partial

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
    PROOF_FULL,
    RECORDED,
    RUNNING,
    STATUS,
    can_differ,
    cut_to_differ,
    failed_condition,
    is_sure,
    scores_at,
    settle_point,
)

fast_kernel = partial(kernel, any_order=True)

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

PricedProof = namedtuple("PricedProof", "code at price multiplier")
"""The branching, where it is recorded, as in the plain search; -2 for a box that is closed by prices, with those prices and λ."""

Work = namedtuple("Work", "value best unary highest through rest begin end choice is_single eliminated up down")
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


@fast_kernel
def pay(q0, q1, arena, at, from_segment, to_segment, levels, level_sets, is_mask, price, begin, end, up, down, paid):
    """Write down the highest price on the segments of each leaf of a pair within the box.

    ``at`` is where the ranges of the pair's leaves stand; for a mask feature ``levels`` are those of the box. ``up`` and ``down`` are
    scratch: the highest price up to each segment, and from it on.
    """
    highest = DEAD
    for s in range(begin, end + 1):
        highest = max(highest, price[s])
        up[s] = highest
    everything = highest
    if is_mask:
        for q in range(q0, q1):
            inside = levels & level_sets[arena[q]]
            most = DEAD
            if inside == levels:
                most = everything
            else:
                s = begin
                while inside != 0:
                    if inside & 1:
                        most = max(most, price[s])
                    inside >>= 1
                    s += 1
            paid[arena[q]] = most
        return
    highest = DEAD
    for s in range(end, begin - 1, -1):
        highest = max(highest, price[s])
        down[s] = highest
    for q in range(q0, q1):
        i = arena[q]
        first, last = max(from_segment[at[i]], begin), min(to_segment[at[i]], end)
        if first > last:
            paid[i] = DEAD
        elif first == begin:
            paid[i] = up[last]
        elif last == end:
            paid[i] = down[first]
        else:
            most = DEAD
            for s in range(first, last + 1):
                most = max(most, price[s])
            paid[i] = most


@fast_kernel
def offer(q0, q1, arena, at, from_segment, to_segment, level_sets, is_mask, rest, begin, end, up, down, through):
    """Write down the most that any leaf of a pair offers at each segment."""
    for s in range(begin, end + 1):
        through[s] = up[s] = down[s] = DEAD
    if is_mask:
        for q in range(q0, q1):
            inside = level_sets[arena[q]]
            for s in range(begin, end + 1):
                if inside & 1:
                    through[s] = max(through[s], rest[arena[q]])
                inside >>= 1
        return
    for q in range(q0, q1):
        i = arena[q]
        first, last = max(from_segment[at[i]], begin), min(to_segment[at[i]], end)
        if first > last:
            continue
        if first == begin:
            up[last] = max(up[last], rest[i])
        elif last == end:
            down[first] = max(down[first], rest[i])
        else:
            for s in range(first, last + 1):
                through[s] = max(through[s], rest[i])
    most = DEAD
    for s in range(end, begin - 1, -1):
        most = max(most, up[s])
        through[s] = max(through[s], most)
    most = DEAD
    for s in range(begin, end + 1):
        most = max(most, down[s])
        through[s] = max(through[s], most)


@fast_kernel
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


@fast_kernel
def value_leaves(d, trees, cost, leaves, cells, pairs, boxes, work):
    """Work out the values of leaves and cells from the prices alone; return the largest number met."""
    lo, hi, mask, alive, arena = boxes.lo[d], boxes.hi[d], boxes.mask[d], boxes.alive[d], boxes.arena
    price, multiplier, tree_first, tree_last = boxes.price[d], boxes.multiplier[d], boxes.first[d], boxes.last[d]
    gain, level_sets, off, is_mask, mask_of = leaves.gain, leaves.box_mask, cells.off, cells.is_mask, cells.mask_of
    of_tree, feature, at_leaf, of_feature, by_feature = (
        pairs.of_tree, pairs.feature, pairs.at_leaf, pairs.of_feature, pairs.by_feature,
    )  # fmt: skip
    from_segment, to_segment, first, last = pairs.from_segment, pairs.to_segment, pairs.first, pairs.last
    value, paid, unary, begin, end, up, down = (
        work.value, work.rest, work.unary, work.begin, work.end, work.up, work.down,
    )  # fmt: skip
    largest = 0.0
    for t in range(trees):
        q0, q1 = tree_first[t], tree_last[t]
        for q in range(q0, q1):
            value[arena[q]] = gain[arena[q], 0]
        for p in range(of_tree[t], of_tree[t + 1]):
            j = feature[p]
            k = p - of_tree[t]
            pay(
                q0, q1, arena, at_leaf, from_segment[k:], to_segment[k:], mask[j], level_sets[:, mask_of[j]], is_mask[j],
                price, begin[p], end[p], up, down, paid,
            )  # fmt: skip
            for q in range(q0, q1):
                i = arena[q]
                if paid[i] < DYING or value[i] < DYING:
                    value[i] = DEAD
                else:
                    value[i] += paid[i]
                    largest = max(largest, max(abs(paid[i]), abs(value[i])))
    for j in range(lo.shape[0]):
        f = off[j]
        for c in range(f + lo[j], f + hi[j] + 1):
            unary[c] = -multiplier * cost[c] if alive[c] else DEAD
            if alive[c]:
                largest = max(largest, multiplier * cost[c])
        for place in range(of_feature[j], of_feature[j + 1]):
            p = by_feature[place]
            for s in range(begin[p], end[p] + 1):
                a, b = f + max(first[s], lo[j]), f + min(last[s], hi[j])
                if price[s] < DYING:
                    for c in range(a, b + 1):
                        alive[c] = 0
                        unary[c] = DEAD
                else:
                    # A sum of so many prices is at most so many times the largest of them.
                    largest = max(largest, abs(price[s]) * (of_feature[j + 1] - of_feature[j]))
                    for c in range(a, b + 1):
                        unary[c] -= price[s]
    return largest


@fast_kernel
def add_up(d, trees, cells, boxes, work):
    """Write down each tree's best leaf and each feature's highest cell; return their sum."""
    arena, first, last, value, best_of = boxes.arena, boxes.first[d], boxes.last[d], work.value, work.best
    off, lo, hi, alive, unary = cells.off, boxes.lo[d], boxes.hi[d], boxes.alive[d], work.unary
    total = 0.0
    for t in range(trees):
        best = DEAD
        for q in range(first[t], last[t]):
            best = max(best, value[arena[q]])
        best_of[t] = best
        total += best
    for j in range(lo.shape[0]):
        highest = DEAD
        for c in range(off[j] + lo[j], off[j] + hi[j] + 1):
            if alive[c]:
                highest = max(highest, unary[c])
        work.highest[j] = highest
        total += highest
    return total


@fast_kernel
def sweep(forward, total, need, pad, factor, largest, kills, d, leaves, cells, pairs, boxes, work):
    """Pass messages once over all features: take the prices of a feature back, kill cells, and share its values out anew.

    Returns the new total and the largest number met, ``factor`` times which (and ``pad``) the total may be off by. Neither step raises
    the total.
    """
    # All arrays are taken out of their tuples before the loops: doing so inside costs more than the work.
    lo, hi, mask, alive, arena = boxes.lo[d], boxes.hi[d], boxes.mask[d], boxes.alive[d], boxes.arena
    price, tree_first, tree_last, is_flat = boxes.price[d], boxes.first[d], boxes.last[d], boxes.is_flat[d]
    begin, end, value, rest, through, unary = work.begin, work.end, work.value, work.rest, work.through, work.unary
    up, down, best_of, highest_of, is_single = work.up, work.down, work.best, work.highest, work.is_single
    level_sets, off, is_mask, mask_of = leaves.box_mask, cells.off, cells.is_mask, cells.mask_of
    of_tree, tree_of, at_leaf, of_feature, by_feature = (
        pairs.of_tree, pairs.tree, pairs.at_leaf, pairs.of_feature, pairs.by_feature,
    )  # fmt: skip
    from_segment, to_segment, first, last = pairs.from_segment, pairs.to_segment, pairs.first, pairs.last
    features = lo.shape[0]
    for step in range(features):
        j = step if forward else features - 1 - step
        pairs_begin, pairs_end = of_feature[j], of_feature[j + 1]
        if pairs_begin == pairs_end or (lo[j] == hi[j] and is_single[j]):
            continue
        f = off[j]
        sets = level_sets[:, mask_of[j]]
        sharing = 0
        total -= highest_of[j]
        for place in range(pairs_begin, pairs_end):
            p = by_feature[place]
            if is_flat[p]:
                continue
            t = tree_of[p]
            q0, q1, k = tree_first[t], tree_last[t], p - of_tree[t]
            if q1 - q0 == 1:
                is_flat[p] = 1
            else:
                sharing += 1
            pay(
                q0, q1, arena, at_leaf, from_segment[k:], to_segment[k:], mask[j], sets, is_mask[j], price, begin[p], end[p],
                up, down, rest,
            )  # fmt: skip
            for q in range(q0, q1):
                i = arena[q]
                rest[i] = DEAD if rest[i] < DYING or value[i] < DYING else value[i] - rest[i]
            offer(
                q0, q1, arena, at_leaf, from_segment[k:], to_segment[k:], sets, is_mask[j], rest, begin[p], end[p], up, down, through
            )  # fmt: skip
            total -= best_of[t]
            best_of[t] = 0.0
            for s in range(begin[p], end[p] + 1):
                a, b = f + max(first[s], lo[j]), f + min(last[s], hi[j])
                if through[s] < DYING or price[s] < DYING:
                    for c in range(a, b + 1):
                        alive[c] = 0
                        unary[c] = DEAD
                else:
                    gained = through[s] + price[s]
                    price[s] = -through[s]
                    largest = max(largest, max(abs(through[s]), abs(gained)))
                    for c in range(a, b + 1):
                        unary[c] += gained
            # The values of the leaves are kept in ``value`` without this feature's price until they are paid anew.
            for q in range(q0, q1):
                value[arena[q]] = rest[arena[q]]
        highest = DEAD
        choice = lo[j]
        for k in range(lo[j], hi[j] + 1):
            if alive[f + k]:
                largest = max(largest, abs(unary[f + k]))
                if unary[f + k] > highest:
                    highest = unary[f + k]
                    choice = k
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
                if kills and unary[f + k] < lowest:
                    alive[f + k] = 0
                    unary[f + k] = DEAD
                else:
                    if a < 0:
                        a = k
                    b = k
        if a != lo[j] or b != hi[j]:
            lo[j], hi[j] = a, b
            if not is_mask[j]:
                for place in range(pairs_begin, pairs_end):
                    p = by_feature[place]
                    while last[begin[p]] < a:
                        begin[p] += 1
                    while first[end[p]] > b:
                        end[p] -= 1
        is_single[j] = a == b
        total -= highest
        shared = 0
        for place in range(pairs_begin, pairs_end):
            p = by_feature[place]
            if is_flat[p] == 2:
                continue
            if is_flat[p] == 1:
                is_flat[p] = 2
            else:
                share = 1.0 / (sharing - shared)
                shared += 1
                for s in range(begin[p], end[p] + 1):
                    top = DEAD
                    x, y = f + max(first[s], a), f + min(last[s], b)
                    for c in range(x, y + 1):
                        top = max(top, unary[c])
                    if top < DYING:
                        price[s] = DEAD
                    else:
                        top *= share
                        price[s] += top
                        for c in range(x, y + 1):
                            unary[c] -= top
            t = tree_of[p]
            q0, q1, k = tree_first[t], tree_last[t], p - of_tree[t]
            pay(
                q0, q1, arena, at_leaf, from_segment[k:], to_segment[k:], mask[j], sets, is_mask[j], price, begin[p], end[p],
                up, down, rest,
            )  # fmt: skip
            best = DEAD
            for q in range(q0, q1):
                i = arena[q]
                value[i] = DEAD if rest[i] < DYING or value[i] < DYING else value[i] + rest[i]
                best = max(best, value[i])
            if best < DYING:
                return DEAD, largest
            best_of[t] = best
            total += best
        highest = DEAD
        for c in range(f + a, f + b + 1):
            highest = max(highest, unary[c])
        highest_of[j] = highest
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
def filter_leaves(d, limit, distance, slack, is_first, kills, trees, leaves, cells, pairs, boxes, work):
    """Keep the leaves that meet the box within the ball and whose value is not too far below the best of its tree.

    Returns 0, 1 where some tree has none left, 2 where the arena is full.
    """
    lo, hi, mask, near, arena = boxes.lo[d], boxes.hi[d], boxes.mask[d], boxes.point[d], boxes.arena
    tree_first, tree_last, value, best_of = boxes.first[d], boxes.last[d], work.value, work.best
    of_tree, feature, box_lo, box_hi, box_mask = (
        pairs.of_tree, pairs.feature, leaves.box_lo, leaves.box_hi, leaves.box_mask,
    )  # fmt: skip
    off, add, top, own, is_mask, mask_of = cells.off, cells.add, cells.top, cells.own, cells.is_mask, cells.mask_of
    near_peak = 0.0
    for j in range(lo.shape[0]):
        near_peak = max(near_peak, top[off[j] + near[j]])
    write = boxes.top[d - 1] if is_first and d > 0 else tree_first[0]
    for t in range(trees):
        q0, q1 = tree_first[t], tree_last[t]
        if is_first and d > 0 and write + q1 - q0 > arena.shape[0]:
            return 2
        kept = write
        for q in range(q0, q1):
            i = arena[q]
            if not is_first and (value[i] < DYING or (kills and best_of[t] - value[i] > slack)):
                continue
            total, peak = distance - near_peak, near_peak
            for p in range(of_tree[t], of_tree[t + 1]):
                j = feature[p]
                f = off[j]
                if is_mask[j]:
                    both = mask[j] & box_mask[i, mask_of[j]]
                    if both == 0:
                        total = FAR
                        break
                    if both >> near[j] & 1:
                        continue
                    c = -1
                    for k in range(off[j + 1] - f):
                        if both >> k & 1 and (c < 0 or add[f + k] + top[f + k] < add[f + c] + top[f + c]):
                            c = k
                else:
                    a = max(box_lo[i, j], lo[j])
                    b = min(box_hi[i, j], hi[j])
                    if a > b:
                        total = FAR
                        break
                    if a <= near[j] <= b:
                        continue
                    c = min(max(own[j], a), b)
                total += max(0.0, add[f + c] - add[f + near[j]])
                peak = max(peak, top[f + c])
            if total + peak < limit:
                arena[write] = i
                write += 1
        if write == kept:
            return 1
        tree_first[t] = kept
        tree_last[t] = write
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
ROOT_BOUND, RESTART_BELOW, TOTAL, BEFORE, PAD, LARGEST = 1, 2, 3, 4, 5, 6
RESTART = 3
"""The status of a search that has found a point so near that a smaller ball is worth a fresh start."""

GO_ON, CLOSED, CUT, NO_ROOM, CLOSED_BY_PRICES = 0, 1, 2, 3, 4
PRICED = 9
"""The register that counts the boxes whose prices are recorded."""

SINGLE = 2.0**-22
"""Prices are recorded in single precision; so much of the largest, for each pair, the total may change by that."""

ROOT_SWEEPS, MOST_SWEEPS, LEAST_GAIN = 20, 8, 0.2
"""A box is swept until it closes, at most so often, and as long as a sweep gains this share of what is missing."""


@kernel
def refine(
    d, count, records, registers, reals, cost, cells, leaves, trees, goal, pairs, boxes, work, most, least, base_point
):  # fmt: skip
    """Tighten the box, its leaves and its prices once; say whether to go on, it is closed, or it must be cut.

    Where the branching is recorded, only what meets neither the box nor the ball is dropped, so that the prices at the end prove all.
    """
    lo, hi, mask, near = boxes.lo[d], boxes.hi[d], boxes.mask[d], boxes.point[d]
    features, forest = lo.shape[0], trees.roots.shape[0]
    need, limit = goal.need[0], reals[LIMIT]
    sweeps = registers[SWEEPS]
    distance = shrink(limit, lo, hi, mask, boxes.alive[d], near, cells)
    if distance >= limit or not can_differ(lo, hi, mask, cells):
        return CLOSED
    reach_segments(count, lo, hi, cells, pairs, work.begin, work.end)
    slack = reals[TOTAL] + reals[PAD] - need
    kills = not records
    outcome = filter_leaves(d, limit, distance, slack, sweeps == 0, kills, forest, leaves, cells, pairs, boxes, work)
    if outcome != 0:
        return CLOSED if outcome == 1 else NO_ROOM
    # A value passes through 4 `longest` operations at most in a sweep, and so many values are added up.
    longest = np.int64(2)
    for j in range(features):
        longest = max(longest, pairs.of_feature[j + 1] - pairs.of_feature[j] + 2)
    for t in range(forest):
        longest = max(longest, pairs.of_tree[t + 1] - pairs.of_tree[t] + 2)
    factor = ROUNDOFF * (forest + features) * (4.0 * longest * (sweeps + 2) + forest + features)
    if records:
        factor += SINGLE * count
    multiplier = boxes.multiplier[d]
    constant = goal.base[0] + multiplier * limit
    if sweeps == 0:
        reals[LARGEST] = max(abs(constant), value_leaves(d, forest, cost, leaves, cells, pairs, boxes, work))
    total = constant + add_up(d, forest, cells, boxes, work)
    reals[PAD] = goal.pad + factor * reals[LARGEST]
    reals[TOTAL] = total
    if d == 0:
        reals[ROOT_BOUND] = max(reals[ROOT_BOUND], limit - (total + reals[PAD] - need) / multiplier)
    if total + reals[PAD] < need:
        return CLOSED_BY_PRICES
    gained = reals[BEFORE] - total
    is_slow = d > 0 and sweeps > 0 and registers[MOVED] == 0 and gained < LEAST_GAIN * (total - need)
    is_stuck = d == 0 and sweeps > 1 and gained < 1e-4 * multiplier * limit
    if is_slow or is_stuck or sweeps >= (ROOT_SWEEPS if d == 0 else MOST_SWEEPS):
        return CUT
    reals[BEFORE] = total
    total, reals[LARGEST] = sweep(
        sweeps % 2 == 0, total, need, goal.pad, factor, reals[LARGEST], kills, d, leaves, cells, pairs, boxes, work
    )
    reals[TOTAL] = total
    reals[PAD] = goal.pad + factor * reals[LARGEST]
    registers[SWEEPS] += 1
    if total + reals[PAD] < need:
        if d == 0:
            reals[ROOT_BOUND] = limit
        return CLOSED_BY_PRICES
    registers[MOVED] = 0
    for j in range(features):
        if not boxes.alive[d, cells.off[j] + work.choice[j]]:
            work.choice[j] = near[j]
    if d > 0 or registers[SWEEPS] % 3 == 0:
        near_score, near_cost = score_and_cost(near, base_point, cost, cells, trees, goal, most, least)
        score, chosen = score_and_cost(work.choice, base_point, cost, cells, trees, goal, most, least)
        moved = adapted(multiplier, need, limit, near_score, near_cost, score, chosen)
        if abs(moved - multiplier) > 0.02 * multiplier:
            for j in range(features):
                for c in range(cells.off[j] + lo[j], cells.off[j] + hi[j] + 1):
                    work.unary[c] -= (moved - multiplier) * cost[c]
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
def note_prices(d, count, registers, pairs, boxes, work, proof):
    """Record the prices that close a box; those of segments that nothing alive reaches are 0."""
    row = proof.price[registers[PRICED]]
    row[:] = 0.0
    for p in range(count):
        for s in range(work.begin[p], work.end[p] + 1):
            if boxes.price[d, s] > DYING:
                row[s] = boxes.price[d, s]
    proof.multiplier[registers[PRICED]] = boxes.multiplier[d]
    registers[PRICED] += 1


@kernel
def advance_priced(
    budget, count, registers, reals, best, log_point, log_cost, cost, cells, leaves, trees, goal, pairs, boxes, work, proof
):  # fmt: skip
    """Run the branch and bound for at most ``budget`` sweeps; all state lives in the arrays, so that it can be resumed.

    As in the plain search, ``reals[LIMIT]`` is the radius: that of the pass, then the cost of the best point found.
    ``reals[ROOT_BOUND]`` becomes a cost below which the ball holds nothing.
    """
    most, least = np.empty(1), np.empty(1)
    base_point = np.empty(cells.own.shape[0], np.int64)
    records = proof.code.shape[0] > 0
    for _ in range(budget):
        if registers[DEPTH] < 0 or registers[STATUS] != RUNNING:
            return
        if records and (registers[RECORDED] >= proof.code.shape[0] or registers[PRICED] >= proof.multiplier.shape[0]):
            registers[STATUS] = PROOF_FULL
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
            d, count, records, registers, reals, cost, cells, leaves, trees, goal, pairs, boxes, work, most, least, base_point,
        )  # fmt: skip
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
        if outcome in (CLOSED, CLOSED_BY_PRICES):
            if records:
                proof.code[registers[RECORDED]] = -1 if outcome == CLOSED else -2
                registers[RECORDED] += 1
                if outcome == CLOSED_BY_PRICES:
                    note_prices(d, count, registers, pairs, boxes, work, proof)
            registers[DEPTH] -= 1
            registers[FRESH] = 0
            continue
        if d + 2 >= boxes.lo.shape[0]:
            registers[STATUS] = FULL
            return
        if records:
            proof.code[registers[RECORDED]] = 2 * boxes.feature[d] + boxes.near_side[d]
            proof.at[registers[RECORDED]] = boxes.at[d]
            registers[RECORDED] += 1
        boxes.state[d] = 1
        descend(d, boxes.near_side[d], cells, boxes)
        registers[DEPTH] = d + 1
