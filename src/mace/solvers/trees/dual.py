"""The numba kernels of the dual bound: a branch and bound that shares the distance between the trees.

The plain bound lets every tree spend the whole radius. Here each tree pays for what it wants. For any λ >= 0 and any *prices* φ[t, j](c)
(the dual variables, or messages) that tree t pays for cell c of feature j, every point x of a box B with a score of at least ``need`` and a
cost below ``limit`` has

    need <= score(x) <= base + λ limit + Σ_t max over leaves l of (gain(l) + Σ_j max over cells c of l in B of φ[t, j](c))
                                       + Σ_j max over cells c of B of (-λ cost_j(c) - Σ_t φ[t, j](c))

since the prices cancel and cost(x) < limit. The right side, ``total``, prunes the box where it is below ``need``. Its minimum over prices
and λ is the linear programming bound; message passing, feature by feature (block coordinate descent on the dual), comes near it, and prices
carry over to the parts of a box. Any prices give a valid bound, so nothing of their rounding matters but that of the sums made with them:
``pad`` and ``factor`` times the largest number met bound it, and are added before ``total`` is compared with ``need``.

Prices are piecewise constant. A *pair* is a tree and a feature that distinguishes its leaves; its *segments* are the runs of cells (ordered
feature) or the single levels (mask feature) between which its leaves distinguish. The segments of all pairs lie behind each other, those of
pair p from ``segment[p]`` up to ``segment[p + 1]``, and ``price`` has one number for each. ``alive`` flags the cells that may still hold a
counterfactual; a box is the smallest around them.

The part of the cost that is a maximum over features is bounded from below by its mean, so ``cost`` is a plain sum here. Where the cost is
nothing but a maximum, λ stays 0: the limit is in the box, and what is left for prices is that the trees agree.

A budget, a second cost of at most ``most``, has a multiplier μ >= 0 of its own: it adds μ ``most`` to the total and -μ spend_j(c) to the
cells. ``multiplier`` holds λ and then one μ for each budget.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from mace.solvers.compiled import kernel
from mace.solvers.trees.kernels import (
    COUNTERFACTUAL,
    FAR,
    FOUND,
    IMPOSSIBLE,
    LIMIT,
    NO_ROOM,
    OPEN,
    PRUNED,
    REFUSED,
    Array,
    CellBox,
    CellTable,
    KernelGoal,
    LeafTable,
    Trees,
    branch_to_fulfil,
    can_differ,
    cheapest_level,
    cost_of,
    cost_parts,
    distinguishes,
    evaluate_nearest,
    is_counterfactual,
    least_level_spent,
    least_spent,
    score_point,
)

fast_kernel = partial(kernel, no_nan=True)

DEAD = -1e30
"""The value of what cannot be chosen."""

DEAD_BELOW = -1e29
"""Below this a value counts as dead, whatever was added to it."""

ROUNDOFF = 2.0**-52

SWEEPS, MOVED, PRICED, ROUNDS = 6, 7, 9, 10
"""Integer registers beside those of the plain search: the sweeps of this node, whether λ has just moved, how often prices were recorded,
in all and at the end of this node."""

ROOT_BOUND, TOTAL, BEFORE, PAD, LARGEST = 1, 3, 4, 5, 6
"""Real registers beside those of the plain search: a cost below which the ball holds nothing, the bound on the score now and one sweep ago,
the bound on its rounding, and the largest number met in its sums."""

GO_ON, CLOSED, BRANCH, OUT_OF_ROOM, CLOSED_BY_PRICES = 0, 1, 2, 3, 4
"""What tightening a box once says of it."""

RECORDED_SHARE = 2.0**-40
"""A bound that is recorded has this share of the largest number to spare: the checker rounds gains and costs to whole numbers."""

MOST_SWEEPS, LEAST_GAIN = 8, 0.2
"""A box is swept until it is pruned, at most so often, and as long as a sweep gains this share of what is missing."""

ROOT_SWEEPS, MOST_ROOT_SWEEPS, LEAST_ROOT_GAIN = 20, 300, 0.01
"""As to the root: it is swept so often in any case, at most so often, and from then on as long as a sweep gains this share."""


class Pairs(NamedTuple):
    """The pairs of trees and features, and their segments."""

    of_tree: Array  # the pairs of tree t: from of_tree[t] up to of_tree[t + 1]
    tree: Array
    feature: Array
    segment: Array
    first: Array  # the first and the last cell of each segment
    last: Array
    at_leaf: Array  # where the ranges of a leaf begin in the next two, one for each pair of its tree (unused for a mask feature)
    from_segment: Array
    to_segment: Array
    of_feature: Array  # the pairs of feature j: by_feature[of_feature[j] : of_feature[j + 1]]
    by_feature: Array


class PricedBall(NamedTuple):
    """The question inside one ball, with its pairs, their number, and the cost of each cell as a plain sum over features."""

    cells: CellTable
    leaves: LeafTable
    trees: Trees
    goal: KernelGoal
    pairs: Pairs
    pair_count: int
    cost: Array


class PricedBoxes(NamedTuple):
    """The open boxes, one row per depth: fields as in the plain search, and the dual variables."""

    arena: Array
    lo: Array
    hi: Array
    mask: Array
    alive: Array
    price: Array
    multiplier: Array  # depth x (1 + budgets): λ, and μ of each budget
    first: Array
    last: Array
    top: Array
    is_flat: (
        Array  # per pair: 1 where its tree has one leaf left, 2 once that tree's price was taken back for good, else 0
    )
    state: Array
    feature: Array
    at: Array
    near_side: Array
    point: Array


class PricedProof(NamedTuple):
    """The branching, where it is recorded, as in the plain search, -2 for a box that is pruned by prices; and the prices on the way.

    Each row of ``price`` holds the prices of one box, as multiples of ``unit``, and ``node`` says which of the branching it is.
    """

    code: Array
    at: Array
    node: Array
    price: Array
    multiplier: Array
    unit: Array


class DualWork(NamedTuple):
    """Scratch space of one node."""

    value: Array  # per leaf: its gain and the highest prices on its segments
    best: Array  # per tree: the greatest value of its leaves
    unary: Array  # per cell: -λ cost less all prices
    highest: Array  # per feature: its greatest unary
    through: Array  # per segment: the max-marginal of the tree without this feature's prices
    rest: Array  # per leaf: its value without one feature's price, or that price
    begin: Array  # per pair: the first and the last segment that meet the box
    end: Array
    choice: Array  # per feature: the cell of the greatest unary; together a point to try
    is_single: Array
    eliminated: Array
    up: Array
    down: Array
    slack: Array  # 2 points (the nearest, the choice) x (1 + budgets): what they leave of the limit and of each budget
    moved: Array  # the multipliers to go on with


class Ranges(NamedTuple):
    """Which segments, or levels, each leaf covers."""

    arena: Array
    at_leaf: Array
    from_segment: Array
    to_segment: Array
    level_sets: Array  # leaves x mask features


class Pair(NamedTuple):
    """One pair in one box, numbers only: passing it costs nothing."""

    begin: int  # the range of the tree's leaves in the arena
    end: int
    number: int  # among the pairs of its tree
    is_mask: bool
    column: int  # of ``level_sets``, for a mask feature
    levels: int  # of the box, for a mask feature
    first: int  # the segments that meet the box
    last: int


class DualThreshold(NamedTuple):
    """What a total is compared with: it proves something where total + pad + factor times the largest number is below ``need``.

    ``deletes`` says whether cells and leaves may be deleted by it.
    """

    need: float
    pad: float
    factor: float
    deletes: bool


@kernel
def make_pairs(tree_start, order, leaves, cells, box, pairs, counts):
    """Write down the pairs, their segments, and which segments each leaf covers; False where the arrays are too small.

    ``order`` lists the leaves of each tree; ``counts`` becomes the numbers of pairs and segments.
    """
    lo, hi = box.lo, box.hi
    features = lo.shape[0]
    trees = tree_start.shape[0] - 1
    marks = np.zeros(cells.off[features] + 2, np.uint8)
    count = segments = ranges = 0
    for t in range(trees):
        pairs.of_tree[t] = count
        for j in range(features):
            if not distinguishes(j, tree_start[t], tree_start[t + 1], box, cells, leaves, order):
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
                # A segment begins where some leaf begins, or after one ends.
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


@fast_kernel
def price_leaves(pair, ranges, price, up, down, paid):
    """Write down the highest price on the segments of each leaf within the box: max over its cells c of φ(c); DEAD where there is none.

    Most leaves begin or end with the box, so that a running maximum answers for them: ``up`` is the highest price up to each segment,
    ``down`` that from it on.
    """
    begin, end, levels, column, number = pair.first, pair.last, pair.levels, pair.column, pair.number
    arena, at_leaf, level_sets = ranges.arena, ranges.at_leaf, ranges.level_sets
    from_segment, to_segment = ranges.from_segment, ranges.to_segment
    highest = DEAD
    for s in range(begin, end + 1):
        highest = max(highest, price[s])
        up[s] = highest
    everything = highest
    if pair.is_mask:
        for q in range(pair.begin, pair.end):
            inside = levels & level_sets[arena[q], column]
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
    for q in range(pair.begin, pair.end):
        i = arena[q]
        at = at_leaf[i] + number
        first, last = max(from_segment[at], begin), min(to_segment[at], end)
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
def segment_marginals(pair, ranges, rest, up, down, through):
    """Write down for each segment the greatest ``rest`` of the leaves that cover it: the tree's max-marginal there; DEAD where none does.

    As in :func:`price_leaves`, leaves that begin or end with the box are noted at their other end and spread by a running maximum.
    """
    begin, end, column, number = pair.first, pair.last, pair.column, pair.number
    arena, at_leaf, level_sets = ranges.arena, ranges.at_leaf, ranges.level_sets
    from_segment, to_segment = ranges.from_segment, ranges.to_segment
    for s in range(begin, end + 1):
        through[s] = up[s] = down[s] = DEAD
    if pair.is_mask:
        for q in range(pair.begin, pair.end):
            inside = level_sets[arena[q], column]
            for s in range(begin, end + 1):
                if inside & 1:
                    through[s] = max(through[s], rest[arena[q]])
                inside >>= 1
        return
    for q in range(pair.begin, pair.end):
        i = arena[q]
        at = at_leaf[i] + number
        first, last = max(from_segment[at], begin), min(to_segment[at], end)
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
def shrink(limit, box, alive, near, cells):
    """Delete the cells outside the ball and draw the box around those alive; return its cost, infinite where nothing is left.

    A cell goes where the cheapest point of the box that has it costs ``limit`` or more, or exceeds a budget.
    """
    lo, hi, mask, off, add, cell_top, spend = box.lo, box.hi, box.mask, cells.off, cells.add, cells.top, cells.spend
    features = lo.shape[0]
    least = np.empty(features)
    for b in range(cells.most.shape[0]):
        room = cells.most[b]
        for j in range(features):
            least[j] = FAR
            for c in range(off[j] + lo[j], off[j] + hi[j] + 1):
                if alive[c]:
                    least[j] = min(least[j], spend[b, c])
            room -= least[j]
        if room < 0.0:
            return np.inf
        for j in range(features):
            for c in range(off[j] + lo[j], off[j] + hi[j] + 1):
                if spend[b, c] > room + least[j]:
                    alive[c] = 0
    for j in range(features):
        f = off[j]
        best = FAR
        near[j] = -1
        for k in range(lo[j], hi[j] + 1):
            if alive[f + k] and (k == cells.own[j] or add[f + k] + cell_top[f + k] < best):
                best = add[f + k] + cell_top[f + k]
                near[j] = k
        if near[j] < 0:
            return np.inf
    total, first, second, where = cost_parts(near, cells)
    distance = total + first
    if distance >= limit:
        return distance
    for j in range(features):
        f = off[j]
        # What the other features cost at least: a sum, and a maximum.
        rest = total - add[f + near[j]]
        other = second if j == where else first
        kept = np.int64(0)
        begin = end = -1
        for k in range(lo[j], hi[j] + 1):
            if alive[f + k] and k != near[j] and rest + add[f + k] + max(other, cell_top[f + k]) >= limit:
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
def find_segments(count, box, cells, pairs, begin, end):
    """Write down for each pair the first and the last segment that meet the box."""
    for p in range(count):
        j = pairs.feature[p]
        a, b = pairs.segment[p], pairs.segment[p + 1] - 1
        if not cells.is_mask[j]:
            while pairs.last[a] < box.lo[j]:
                a += 1
            while pairs.first[b] > box.hi[j]:
                b -= 1
        begin[p] = a
        end[p] = b


@fast_kernel
def value_leaves(d, cost, leaves, cells, pairs, boxes, work):
    """Work out the values of leaves and the unaries of cells from the prices alone; return the largest number met.

    ``work.value`` of leaf l becomes gain(l) + Σ_j max over its cells of φ[t, j], ``work.unary`` of a cell -λ cost - μ spend - Σ_t φ[t, j].
    """
    lo, hi, mask, alive, arena = boxes.lo[d], boxes.hi[d], boxes.mask[d], boxes.alive[d], boxes.arena
    price, multiplier, tree_first, tree_last = boxes.price[d], boxes.multiplier[d], boxes.first[d], boxes.last[d]
    gain, off, is_mask, mask_of = leaves.gain, cells.off, cells.is_mask, cells.mask_of
    of_tree, feature, of_feature, by_feature = pairs.of_tree, pairs.feature, pairs.of_feature, pairs.by_feature
    first, last = pairs.first, pairs.last
    ranges = Ranges(arena, pairs.at_leaf, pairs.from_segment, pairs.to_segment, leaves.box_mask)
    value, paid, unary, begin, end, up, down = (
        work.value, work.rest, work.unary, work.begin, work.end, work.up, work.down,
    )  # fmt: skip
    largest = 0.0
    for t in range(tree_first.shape[0]):
        q0, q1 = tree_first[t], tree_last[t]
        for q in range(q0, q1):
            value[arena[q]] = gain[arena[q], 0]
        for p in range(of_tree[t], of_tree[t + 1]):
            j = feature[p]
            pair = Pair(q0, q1, p - of_tree[t], is_mask[j], mask_of[j], mask[j], begin[p], end[p])
            price_leaves(pair, ranges, price, up, down, paid)
            for q in range(q0, q1):
                i = arena[q]
                if paid[i] < DEAD_BELOW or value[i] < DEAD_BELOW:
                    value[i] = DEAD
                else:
                    value[i] += paid[i]
                    largest = max(largest, max(abs(paid[i]), abs(value[i])))
    for j in range(lo.shape[0]):
        f = off[j]
        for c in range(f + lo[j], f + hi[j] + 1):
            unary[c] = DEAD
            if alive[c]:
                worth = multiplier[0] * cost[c]
                for b in range(cells.most.shape[0]):
                    worth += multiplier[1 + b] * cells.spend[b, c]
                unary[c] = -worth
                largest = max(largest, worth)
        for place in range(of_feature[j], of_feature[j + 1]):
            p = by_feature[place]
            for s in range(begin[p], end[p] + 1):
                a, b = f + max(first[s], lo[j]), f + min(last[s], hi[j])
                if price[s] < DEAD_BELOW:
                    for c in range(a, b + 1):
                        alive[c] = 0
                        unary[c] = DEAD
                else:
                    # The unary adds up one price for each pair of the feature: at most their number times the largest.
                    largest = max(largest, abs(price[s]) * (of_feature[j + 1] - of_feature[j]))
                    for c in range(a, b + 1):
                        unary[c] -= price[s]
    return largest


@fast_kernel
def sum_bound(d, cells, boxes, work):
    """Write down each tree's best leaf and each feature's highest cell; return their sum, the bound less its constant."""
    arena, first, last, value, best_of = boxes.arena, boxes.first[d], boxes.last[d], work.value, work.best
    off, lo, hi, alive, unary = cells.off, boxes.lo[d], boxes.hi[d], boxes.alive[d], work.unary
    total = 0.0
    for t in range(first.shape[0]):
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
def sweep(forward, total, largest, threshold, d, leaves, cells, pairs, boxes, work):
    """Pass messages once over all features: take the prices of a feature back, delete cells, and share its values out anew.

    For each feature j in turn:

    - pull: each tree's price on a segment becomes minus its max-marginal there, so that the greatest value of the tree is 0, and the cells
      get what the tree gave up. Now unary(c) is the max-marginal of cell c over all trees of j, and the total less (greatest unary -
      unary(c)) bounds the score of every point with cell c: cells for which that is below ``need`` are deleted.
    - push: each of the n trees in turn takes an equal share 1 / n, 1 / (n - 1), ... of what the cells have, as its new price.

    Neither step raises the total. Returns the new total (DEAD where some tree or feature has nothing left) and the largest number met, with
    which the rounding of the total is bounded.
    """
    need, pad, factor, deletes = threshold.need, threshold.pad, threshold.factor, threshold.deletes
    # All arrays are taken out of their tuples before the loops: doing so inside costs more than the work.
    lo, hi, mask, alive, arena = boxes.lo[d], boxes.hi[d], boxes.mask[d], boxes.alive[d], boxes.arena
    price, tree_first, tree_last, is_flat = boxes.price[d], boxes.first[d], boxes.last[d], boxes.is_flat[d]
    begin, end, value, rest, through, unary = work.begin, work.end, work.value, work.rest, work.through, work.unary
    up, down, best_of, highest_of, is_single = work.up, work.down, work.best, work.highest, work.is_single
    off, is_mask, mask_of, first, last = cells.off, cells.is_mask, cells.mask_of, pairs.first, pairs.last
    of_tree, tree_of, of_feature, by_feature = pairs.of_tree, pairs.tree, pairs.of_feature, pairs.by_feature
    ranges = Ranges(arena, pairs.at_leaf, pairs.from_segment, pairs.to_segment, leaves.box_mask)
    features = lo.shape[0]
    for step in range(features):
        j = step if forward else features - 1 - step
        pairs_begin, pairs_end = of_feature[j], of_feature[j + 1]
        if pairs_begin == pairs_end or (lo[j] == hi[j] and is_single[j]):
            continue
        f = off[j]
        # Pull. The total is kept without the terms of this feature and of its trees until they are made anew.
        sharing = 0
        total -= highest_of[j]
        for place in range(pairs_begin, pairs_end):
            p = by_feature[place]
            if is_flat[p]:
                continue
            t = tree_of[p]
            q0, q1 = tree_first[t], tree_last[t]
            # A tree with one leaf is a constant: it gives its price back once and gets no share any more.
            if q1 - q0 == 1:
                is_flat[p] = 1
            else:
                sharing += 1
            pair = Pair(q0, q1, p - of_tree[t], is_mask[j], mask_of[j], mask[j], begin[p], end[p])
            price_leaves(pair, ranges, price, up, down, rest)
            for q in range(q0, q1):
                i = arena[q]
                rest[i] = DEAD if rest[i] < DEAD_BELOW or value[i] < DEAD_BELOW else value[i] - rest[i]
            segment_marginals(pair, ranges, rest, up, down, through)
            total -= best_of[t]
            best_of[t] = 0.0
            for s in range(begin[p], end[p] + 1):
                a, b = f + max(first[s], lo[j]), f + min(last[s], hi[j])
                # No leaf of this tree covers the segment: its cells cannot be chosen.
                if through[s] < DEAD_BELOW or price[s] < DEAD_BELOW:
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
        if highest < DEAD_BELOW:
            return DEAD, largest
        total += highest
        # The bound, rounded up; below ``need`` the box is pruned.
        reach = total + pad + factor * largest
        if reach < need:
            return total, largest
        # Delete cells by their max-marginals: reach - (highest - unary) < need.
        lowest = highest - (reach - need)
        a = b = -1
        for k in range(lo[j], hi[j] + 1):
            if alive[f + k]:
                if deletes and unary[f + k] < lowest:
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
        # Push.
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
                    if top < DEAD_BELOW:
                        price[s] = DEAD
                    else:
                        top *= share
                        price[s] += top
                        for c in range(x, y + 1):
                            unary[c] -= top
            t = tree_of[p]
            q0, q1 = tree_first[t], tree_last[t]
            pair = Pair(q0, q1, p - of_tree[t], is_mask[j], mask_of[j], mask[j], begin[p], end[p])
            price_leaves(pair, ranges, price, up, down, rest)
            best = DEAD
            for q in range(q0, q1):
                i = arena[q]
                value[i] = DEAD if rest[i] < DEAD_BELOW or value[i] < DEAD_BELOW else value[i] + rest[i]
                best = max(best, value[i])
            if best < DEAD_BELOW:
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
def score_and_slack(point, limit, cost, cells, trees, goal, scores, slack):
    """Return the most that a point may score; write what it leaves of the limit, its cost being a plain sum, and of each budget."""
    slack[0] = limit
    slack[1:] = cells.most
    for j in range(point.shape[0]):
        c = cells.off[j] + point[j]
        slack[0] -= cost[c]
        for b in range(cells.most.shape[0]):
            slack[1 + b] -= cells.spend[b, c]
    score_point(point, cells, trees, goal, scores)
    return scores.most[0]


@kernel
def adapt(multiplier, need, near_score, chosen_score, slack, moved):
    """Write multipliers, moved so that two points that keep the total up no longer do; return whether some moved by more than 2 %.

    Whatever the prices, the total is at least score(x) + λ (limit - cost(x)) + Σ μ (most - spend(x)) for every point x of the box. Where
    that
    is ``need`` or more at a point that is no counterfactual within ball and budgets, no sweep can prune the box, only other multipliers: a
    larger one of what the point exceeds; smaller ones for a point that exceeds nothing. The factors keep steps short and end just beyond
    the
    point. All multipliers >= 0 are valid.
    """
    held = chosen_score
    exceeds = slack[1, 0] == 0.0
    for i in range(multiplier.shape[0]):
        held += multiplier[i] * slack[1, i]
        exceeds = exceeds or slack[1, i] < 0.0
    moved[:] = multiplier
    if not exceeds:
        if chosen_score < need <= held:
            moved *= max(0.9 * (need - chosen_score) / (held - chosen_score), 0.6)
    elif held >= need:
        for i in range(multiplier.shape[0]):
            if slack[1, i] < 0.0:
                enough = 1.1 * (held - multiplier[i] * slack[1, i] - need) / -slack[1, i]
                moved[i] = min(enough, 1.5 * multiplier[i])
    paid = 0.0
    for i in range(multiplier.shape[0]):
        paid += moved[i] * slack[0, i]
    if near_score < need and paid > 0.95 * (need - near_score):
        moved *= 0.95 * (need - near_score) / paid
    has_moved = False
    for i in range(multiplier.shape[0]):
        has_moved = has_moved or abs(moved[i] - multiplier[i]) > 0.02 * multiplier[i]
    return has_moved


@kernel
def leaf_weight(value, best, slack):
    """Return what a leaf weighs: 1 for the best of its tree, 0 where it loses all of the slack."""
    share = max(0.0, (value - best + slack) / slack)
    return share * share * share * share


@kernel
def choose_branching(d, slack, leaves, cells, pairs, boxes, work):
    """Choose the branching whose two sides lose the greatest product of leaf weights; False where there is none.

    A leaf weighs the more, the nearer it is to the best of its tree; the weights of a tree add up to 1.
    """
    trees = boxes.first.shape[1]
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
            total += leaf_weight(work.value[arena[q]], work.best[t], slack)
        for q in range(begin, end):
            i = arena[q]
            weight = leaf_weight(work.value[i], work.best[t], slack) / total
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
def enter_child(d, side, cells, boxes):
    """Make depth d + 1 one side of the branching of depth d, with the prices, leaves and λ of the whole, which are valid for its parts."""
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
def affords(i, t, box, leaves, cells, pairs):
    """Return whether some point of a box in a leaf of tree t that meets it keeps each budget, taken alone."""
    off, spend = cells.off, cells.spend
    for b in range(cells.most.shape[0]):
        room = cells.most[b]
        for j in range(box.lo.shape[0]):
            room -= least_spent(b, j, box, cells)
        for p in range(pairs.of_tree[t], pairs.of_tree[t + 1]):
            j = pairs.feature[p]
            if cells.is_mask[j]:
                both = box.mask[j] & leaves.box_mask[i, cells.mask_of[j]]
                forced = least_level_spent(both, b, j, off, spend)
            else:
                low, high = max(leaves.box_lo[i, j], box.lo[j]), min(leaves.box_hi[i, j], box.hi[j])
                forced = spend[b, off[j] + min(max(cells.thrifty[b, j], low), high)]
            room -= forced - least_spent(b, j, box, cells)
        if room < 0.0:
            return False
    return True


@kernel
def filter_leaves(d, limit, distance, slack, is_first, leaves, cells, pairs, boxes, work):
    """Keep the leaves that meet the box within the ball and whose value is not too far below the best of its tree.

    With leaf l the total falls by best - value(l): where that exceeds ``slack``, the total less ``need`` and rounded up, no counterfactual
    uses l (a reduced cost); a slack of FAR keeps all. Before the first sweep of a box (``is_first``) there are no values yet, and the lists
    are those of the parent, to be copied. Returns OPEN, PRUNED where some tree has no leaf left, or NO_ROOM in the arena.
    """
    lo, hi, mask, near, arena = boxes.lo[d], boxes.hi[d], boxes.mask[d], boxes.point[d], boxes.arena
    tree_first, tree_last, value, best_of = boxes.first[d], boxes.last[d], work.value, work.best
    of_tree, feature, box_lo, box_hi, box_mask = (
        pairs.of_tree, pairs.feature, leaves.box_lo, leaves.box_hi, leaves.box_mask,
    )  # fmt: skip
    off, add, top, own, is_mask, mask_of = cells.off, cells.add, cells.top, cells.own, cells.is_mask, cells.mask_of
    budgets = cells.most.shape[0]
    near_peak = 0.0
    for j in range(lo.shape[0]):
        near_peak = max(near_peak, top[off[j] + near[j]])
    write = boxes.top[d - 1] if is_first and d > 0 else tree_first[0]
    for t in range(tree_first.shape[0]):
        q0, q1 = tree_first[t], tree_last[t]
        if is_first and d > 0 and write + q1 - q0 > arena.shape[0]:
            return NO_ROOM
        kept = write
        for q in range(q0, q1):
            i = arena[q]
            if not is_first and (value[i] < DEAD_BELOW or best_of[t] - value[i] > slack):
                continue
            # The cost of the nearest point, corrected where the leaf forces a feature away from it.
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
                    c = cheapest_level(both, j, off, add, top)
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
            if total + peak < limit and (budgets == 0 or affords(i, t, CellBox(lo, hi, mask), leaves, cells, pairs)):
                arena[write] = i
                write += 1
        if write == kept:
            return PRUNED
        tree_first[t] = kept
        tree_last[t] = write
    boxes.top[d] = write
    return OPEN


@kernel
def clip_to_leaves(d, leaves, cells, pairs, boxes):
    """Delete the cells outside of the only leaf of a tree; return whether every tree has a single leaf left."""
    is_constant = True
    lo, hi, alive = boxes.lo[d], boxes.hi[d], boxes.alive[d]
    for t in range(boxes.first.shape[1]):
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


@kernel
def rounding_factor(sweeps, records, budgets, pairs):
    """Return f such that the total is off by at most ``pad`` + f times the largest number met in its sums.

    A value passes through at most 4 ``longest`` operations in a sweep, where ``longest`` is the most pairs of one feature or one tree, and
    one for each budget more; the total adds up one value per tree and feature. Where the branching is recorded, the checker's rounding is
    added.
    """
    features, trees = pairs.of_feature.shape[0] - 1, pairs.of_tree.shape[0] - 1
    longest = np.int64(2)
    for j in range(features):
        longest = max(longest, pairs.of_feature[j + 1] - pairs.of_feature[j] + 2)
    for t in range(trees):
        longest = max(longest, pairs.of_tree[t + 1] - pairs.of_tree[t] + 2)
    longest += budgets
    factor = ROUNDOFF * (trees + features) * (4.0 * longest * (sweeps + 2) + trees + features)
    return factor + RECORDED_SHARE if records else factor


@kernel
def sum_total(d, factor, ball, boxes, work, reals):
    """Add up the bound of a box from the values of its leaves and cells, with the bound on its rounding."""
    goal, multiplier, cells = ball.goal, boxes.multiplier[d], ball.cells
    constant = goal.base[0] + multiplier[0] * reals[LIMIT]
    largest = max(abs(goal.base[0]), abs(constant))
    for b in range(cells.most.shape[0]):
        constant += multiplier[1 + b] * cells.most[b]
        largest = max(largest, abs(constant))
    reals[LARGEST] = max(largest, reals[LARGEST])
    reals[TOTAL] = constant + sum_bound(d, cells, boxes, work)
    reals[PAD] = goal.pad + factor * reals[LARGEST]


@kernel
def tighten(d, records, state, ball, boxes, work, scores):
    """Tighten the box, its leaves and its prices once; say whether to go on, or it is pruned, or it must be branched on.

    Where the branching is recorded, only what meets neither the box nor the ball is dropped: the rest when prices are recorded.
    """
    cells, leaves, pairs, trees = ball.cells, ball.leaves, ball.pairs, ball.trees
    goal, cost, registers, reals = ball.goal, ball.cost, state.registers, state.reals
    box, near = CellBox(boxes.lo[d], boxes.hi[d], boxes.mask[d]), boxes.point[d]
    features = near.shape[0]
    need, limit = goal.need[0], reals[LIMIT]
    sweeps = registers[SWEEPS]
    distance = shrink(limit, box, boxes.alive[d], near, cells)
    if distance >= limit or not can_differ(box, cells):
        return CLOSED
    find_segments(ball.pair_count, box, cells, pairs, work.begin, work.end)
    slack = FAR if records else reals[TOTAL] + reals[PAD] - need
    outcome = filter_leaves(d, limit, distance, slack, sweeps == 0, leaves, cells, pairs, boxes, work)
    if outcome != OPEN:
        return CLOSED if outcome == PRUNED else OUT_OF_ROOM
    factor = rounding_factor(sweeps, records, cells.most.shape[0], pairs)
    if sweeps == 0:
        reals[LARGEST] = max(reals[LARGEST], value_leaves(d, cost, leaves, cells, pairs, boxes, work))
    sum_total(d, factor, ball, boxes, work, reals)
    total, multiplier = reals[TOTAL], boxes.multiplier[d]
    if d == 0 and multiplier[0] > 0.0:
        # With a radius r the total is less by λ (limit - r): the ball of the r at which it meets ``need`` holds nothing.
        reals[ROOT_BOUND] = max(reals[ROOT_BOUND], limit - (total + reals[PAD] - need) / multiplier[0])
    if total + reals[PAD] < need:
        return CLOSED_BY_PRICES
    gained = reals[BEFORE] - total
    is_slow = d > 0 and sweeps > 0 and registers[MOVED] == 0 and gained < LEAST_GAIN * (total - need)
    is_stuck = False
    if d == 0 and sweeps > 1 and registers[MOVED] == 0:
        enough = LEAST_ROOT_GAIN * (total - need) if sweeps >= ROOT_SWEEPS else 0.0
        is_stuck = gained < max(enough, 1e-4 * multiplier[0] * limit)
    if is_slow or is_stuck or sweeps >= (MOST_ROOT_SWEEPS if d == 0 else MOST_SWEEPS):
        return BRANCH
    reals[BEFORE] = total
    threshold = DualThreshold(need, goal.pad, factor, not records)
    total, reals[LARGEST] = sweep(
        sweeps % 2 == 0, total, reals[LARGEST], threshold, d, leaves, cells, pairs, boxes, work
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
        near_score = score_and_slack(near, limit, cost, cells, trees, goal, scores, work.slack[0])
        score = score_and_slack(work.choice, limit, cost, cells, trees, goal, scores, work.slack[1])
        if adapt(multiplier, need, near_score, score, work.slack, work.moved):
            for j in range(features):
                for c in range(cells.off[j] + box.lo[j], cells.off[j] + box.hi[j] + 1):
                    work.unary[c] -= (work.moved[0] - multiplier[0]) * cost[c]
                    for b in range(cells.most.shape[0]):
                        work.unary[c] -= (work.moved[1 + b] - multiplier[1 + b]) * cells.spend[b, c]
            multiplier[:] = work.moved
            registers[MOVED] = 1
    return GO_ON


@kernel
def try_choice(choice, state, cells, trees, goal, scores):
    """Take the point that the prices point to as the incumbent, where it is a counterfactual and nearer."""
    cost = cost_of(choice, cells)
    if cost < state.reals[LIMIT] and is_counterfactual(choice, cells, trees, goal, scores):
        state.reals[LIMIT] = cost
        state.best[:] = choice
        state.registers[FOUND] = 1


@kernel
def branch(d, state, ball, boxes, work, scores):
    """Evaluate the nearest point of a box and choose how to branch on it; False where the box is pruned instead."""
    cells, leaves, pairs, goal = ball.cells, ball.leaves, ball.pairs, ball.goal
    reals, near = state.reals, boxes.point[d]
    is_constant = clip_to_leaves(d, leaves, cells, pairs, boxes)
    limit = reals[LIMIT]
    box = CellBox(boxes.lo[d], boxes.hi[d], boxes.mask[d])
    if shrink(limit, box, boxes.alive[d], near, cells) >= limit:
        return False
    outcome = evaluate_nearest(d, cells, ball.trees, goal, boxes, state, scores)
    if outcome == COUNTERFACTUAL:
        # No point of the box is nearer.
        return False
    if is_constant:
        # The score is one constant on the box: only a condition can still tell its points apart.
        return outcome != IMPOSSIBLE and branch_to_fulfil(d, cells, boxes)
    if outcome == REFUSED and branch_to_fulfil(d, cells, boxes):
        return True
    slack = max(reals[TOTAL] + reals[PAD] - goal.need[0], 1e-300)
    return choose_branching(d, slack, leaves, cells, pairs, boxes, work)
