"""The numba kernels of the tree lane: cost tables, the leaves inside a ball, and the branch and bound over them.

**Cells.** Each feature's domain is cut into cells on which no tree changes. An *ordered* feature has cells in order; a box holds a range
``lo..hi`` of them, and the cost does not decrease away from the cell ``own``, the cheapest. A *mask* feature has at most 62 levels without
order; a box holds a set of them as the bits of the integer ``mask``. All cells lie behind each other in flat arrays: those of feature j at
``off[j]`` up to ``off[j + 1]``, and cell k of feature j at ``off[j] + k``. Everywhere else cells are numbered from 0 within their feature.

**Cost.** The cost of a point is Σ_j add[cell of j] + max_j top[cell of j], without unit, at least 0. Both are the least of the cell, so
that the cost of a box is that of its cheapest cells: a lower bound that some point of the box attains. Costs are plain float sums, rounded
to nearest; the caller subtracts their error from the bound that it reports.

**Score.** For each margin k of the goal the score of a point is base[k] + Σ_t (what its leaf in tree t adds). A leaf adds at most ``most``
and at least ``least``, rounded outward (the two are equal where sums are exact). A point can be a counterfactual only where the sums of
``most`` reach ``need`` for every k, and surely is one where those of ``least`` reach ``sure``; ``need`` and ``sure`` leave room for the
rounding of these sums. In between only the real model decides, and the point is logged.

**Search.** A ball is all points that cost less than a limit. Inside it only few leaves remain (:func:`collect`), and cells that these
leaves do not distinguish are merged into blocks (:func:`compress`), which the search then calls cells. It goes depth first; ``stack``
has one row per depth, and ``arena`` holds the lists of useful leaves of all depths behind each other. A box is pruned where its cost is
not below the limit, or where the bound

    base[k] + Σ_t max {most of l : l a leaf of tree t that meets the box inside the ball}  <  need[k]

for some k. All state is in arrays, so that a search can be paused and resumed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mace.solvers.compiled import kernel

Array = NDArray[Any]

FAR = 1e300
"""Above every cost and every score."""

NO_LEAF = 1e100
"""The drop of the bound on a side on which some tree has no leaf: more than any slack."""


class Trees(NamedTuple):
    """The ensemble over the model's own cells, one entry per node."""

    roots: Array
    feature: Array  # -1 at a leaf
    bound: Array  # ordered feature: the first cell that goes right
    subset: Array  # mask feature: the levels that go left, as bits
    left: Array
    right: Array
    missing_left: Array  # whether a missing value goes left
    most: Array  # nodes x margins: the most that a leaf adds, rounded up
    least: Array  # nodes x margins: the least, rounded down


class CellTable(NamedTuple):
    """The features and cells of one search, its conditions "at least n features differ from an earlier counterfactual", and its budgets.

    A budget is a second cost with a limit: what the cells of a point spend adds up to at most so much. The numbers are whole multiples of
    one, so that sums are exact. What an ordered feature spends does not fall on the way from its ``thrifty`` cell.
    """

    is_mask: Array
    is_missing: (
        Array  # features whose value is missing in this search: trees follow ``missing_left``, boxes ignore them
    )
    mask_of: Array  # the column of a mask feature in ``LeafTable.box_mask``
    off: Array
    add: Array
    top: Array
    own: Array
    base_cell: Array  # the model's own cell that a cell lies in
    differs: Array  # conditions x cells: whether the cell counts as different
    at_least: Array  # per condition, how many features must differ
    spend: Array  # budgets x cells: the least that a value of the cell spends
    thrifty: Array  # budgets x features: the cell that spends least
    most: Array  # per budget, how much may be spent


class LeafTable(NamedTuple):
    """The leaves inside the ball: their boxes, and the most that they add to each margin."""

    box_lo: Array  # leaves x features
    box_hi: Array
    box_mask: Array  # leaves x mask features
    gain: Array  # leaves x margins


class KernelGoal(NamedTuple):
    """What scores start from, the thresholds ``need`` and ``sure`` (see above), and the rounding of sums that are updated in place."""

    base: Array
    need: Array
    sure: Array
    pad: float


class CellBox(NamedTuple):
    """A box of cells: a range of an ordered feature, a set of levels of a mask feature."""

    lo: Array
    hi: Array
    mask: Array


class CellRow(NamedTuple):
    """The factual: its numbers, which were missing, and which features are missing in this search."""

    factual: Array
    was_missing: Array
    is_missing: Array


class Kinds(NamedTuple):
    """The features' kinds, and the least and the greatest value in each cell."""

    is_mask: Array
    is_category: Array
    off: Array
    low: Array
    high: Array


class AllowedEnds(NamedTuple):
    """The least and the greatest allowed number of each feature, or its allowed levels as bits."""

    low: Array
    high: Array
    levels: Array


class Weights(NamedTuple):
    """The distance: a change by δ (as a share of the range) adds jump + slope δ + square δ² to the sum, and peak δ to the maximum."""

    inverse_range: Array
    jump: Array
    slope: Array
    square: Array
    peak: Array


class CostTables(NamedTuple):
    """What :func:`cost_tables` fills in: each cell's costs and representative value, each feature's cheapest cell."""

    add: Array
    top: Array
    value: Array
    own: Array


class Boundaries(NamedTuple):
    """Where a cell of the model begins among those of the question: ``start[off[j] + b]`` for its cell b of feature j."""

    start: Array
    off: Array


class FoundPoint(NamedTuple):
    """What :func:`collect` fills in: each tree's range of leaves, their nodes, costs and boxes, the least cost that was left out."""

    tree_start: Array
    leaf: Array
    cost: Array
    box_lo: Array
    box_hi: Array
    box_mask: Array
    dropped: Array


class Blocks(NamedTuple):
    """What :func:`compress` fills in: blocks of cells, the cheapest cell and the first cell of each, and the cheapest block per feature."""

    off: Array
    add: Array
    top: Array
    cheapest: Array
    first: Array
    own: Array


class Stack(NamedTuple):
    """The open boxes, one row per depth."""

    arena: Array  # numbers of leaves; depth d owns the part up to top[d]
    lo: Array
    hi: Array
    mask: Array
    first: Array  # depth x active trees: the range of its leaves in the arena
    last: Array
    active: Array  # how many trees have more than a constant left
    top: Array
    const: Array  # depth x margins: the base, and the trees that are constant on the box
    state: Array  # 1 where one child was entered, 2 where both were
    feature: Array  # the branching: feature, where (last cell or levels of side 0), and the side that holds the nearest point
    at: Array
    near_side: Array
    point: Array  # depth x features: the cheapest point of the box
    limit: Array  # the limit that the list of leaves was last filtered with


class SearchWork(NamedTuple):
    """Scratch space of one node."""

    tree_max: Array  # active trees x margins: the greatest gain of a useful leaf
    drop: Array  # 2 sides x cells: by how much the score's bound falls on a side of a branching
    eliminated: Array  # 2 sides x cells: the share of the leaves, by weight, that a side loses
    scratch: Array
    empty: Array  # 2 sides x cells: how many trees have no leaf on the side
    first_fit: Array  # per active tree, the place of its first useful leaf
    free: Array  # features that have more than one cell left, and the one just branched on
    fixed: Array  # what the other features cost: sum, maximum; then what they spend of each budget
    filtered: Array  # lo, hi, mask and nearest point of the box that a list was filtered with
    moved: Array  # the features of which the box has changed since
    reach: Array  # per free ordered feature: its number, and how far down and up the leaves seen so far reach
    fall: Array  # per free ordered feature: the fall of the last leaf that extended the reach, downward and upward


class SearchState(NamedTuple):
    """What a paused search keeps: registers, the incumbent, and the points that only the real model can decide."""

    registers: Array
    reals: Array
    best: Array
    log_point: Array
    log_cost: Array


class Scores(NamedTuple):
    """Scratch space for evaluating a point: its base cells, and the most and the least that its scores may be."""

    base_point: Array
    most: Array
    least: Array


class Proof(NamedTuple):
    """The branching in preorder, where it is recorded (empty arrays otherwise): ``code`` is -1 for a pruned box, else twice the feature
    plus the side that comes next; ``at`` says where."""

    code: Array
    at: Array


class LeafTest(NamedTuple):
    """What a leaf is tested against in one node: arrays taken out of their records once, because doing so per leaf costs time."""

    limit: float
    fixed_cost: float
    fixed_peak: float
    fixed_spend: Array
    free: Array
    lo: Array
    hi: Array
    mask: Array
    own: Array
    is_mask: Array
    mask_of: Array
    off: Array
    add: Array
    top: Array
    spend: Array
    thrifty: Array
    most: Array
    box_lo: Array
    box_hi: Array
    box_mask: Array


DEPTH, FRESH, NODES, LOGGED, STATUS, FOUND, RECORDED = 0, 1, 2, 3, 4, 5, 8
"""Integer registers: the depth, whether the box there is still to be searched, counts, and whether there is an incumbent."""

LIMIT, RESTART_BELOW = 0, 2
"""Real registers: the radius of the ball, then the cost of the incumbent; a cost below which an incumbent is worth a restart."""

RUNNING, FULL, LOG_FULL, RESTART, PROOF_FULL = 0, 1, 2, 3, 4
"""Values of ``STATUS``; ``RESTART`` is that of a search with an incumbent so near that a smaller ball is worth a fresh start."""

OPEN, PRUNED, NO_ROOM = 0, 1, 2
"""What filtering the leaves says of a box."""

IMPOSSIBLE, COUNTERFACTUAL, REFUSED, UNDECIDED = 0, 1, 2, 3
"""What is known of a point: not in the goal, the new incumbent, in the goal but against a condition or a budget, too near the boundary."""

UNCHANGED, SHAVED, EMPTY = 0, 1, 2
"""What shaving does to a box."""


# ---- costs


@kernel
def cost_tables(row, kinds, allowed, weights, tables, box):
    """Fill in the cost and the representative of every cell, the cheapest cell and the allowed range of every feature.

    A cell costs what its value nearest to the factual costs, in floats rounded to nearest; forbidden cells cost FAR. A missing feature
    has one cost whatever its cell. Returns False where some feature has no allowed cell.
    """
    factual, was_missing, is_missing, off = row.factual, row.was_missing, row.is_missing, kinds.off
    is_mask, is_category, low, high = kinds.is_mask, kinds.is_category, kinds.low, kinds.high
    least, greatest, levels, inverse_range = allowed.low, allowed.high, allowed.levels, weights.inverse_range
    jump, slope, square, peak = weights.jump, weights.slope, weights.square, weights.peak
    add, top, cell_value, own = tables.add, tables.top, tables.value, tables.own
    lo, hi, mask = box.lo, box.hi, box.mask
    for j in range(factual.shape[0]):
        best = FAR
        lo[j] = -1
        mask[j] = 0
        if is_missing[j]:
            changed = 0.0 if was_missing[j] else 1.0
            for c in range(off[j], off[j + 1]):
                add[c] = changed * (jump[j] + slope[j] + square[j])
                top[c] = changed * peak[j]
            lo[j] = hi[j] = own[j] = 0
            continue
        for c in range(off[j], off[j + 1]):
            k = c - off[j]
            if is_mask[j]:
                value = np.float64(k)
                is_allowed = (levels[j] >> k) & 1 == 1
            else:
                # The value of the cell, within what is allowed, that is nearest to the factual.
                a = max(low[c], least[j])
                b = min(high[c], greatest[j])
                is_allowed = a <= b
                value = min(max(factual[j], a), b)
            if not is_allowed:
                add[c] = FAR
                top[c] = FAR
                continue
            cell_value[c] = value
            delta = abs(value - factual[j]) * inverse_range[j]
            if is_category[j] and value != factual[j]:
                delta = 1.0 if inverse_range[j] > 0.0 else 0.0
            if was_missing[j]:
                delta = 1.0
            add[c] = slope[j] * delta + square[j] * delta * delta
            if delta > 0.0:
                add[c] += jump[j]
            top[c] = peak[j] * delta
            if add[c] + top[c] < best or (value == factual[j] and not was_missing[j]):
                best = add[c] + top[c]
                own[j] = k
            if lo[j] < 0:
                lo[j] = k
            hi[j] = k
            if is_mask[j]:
                mask[j] |= np.int64(1) << k
        if lo[j] < 0:
            return False
    return True


@kernel
def extent(box, cells):
    """Return the cost of the nearest allowed point, the least cost of any change (0 where there is none), and a cost above every one."""
    off, add, top, own = cells.off, cells.add, cells.top, cells.own
    total = peak = all_total = all_peak = 0.0
    step = FAR
    for j in range(own.shape[0]):
        total += add[off[j] + own[j]]
        peak = max(peak, top[off[j] + own[j]])
        most = 0.0
        for c in range(off[j], off[j + 1]):
            if add[c] >= FAR:
                continue
            cost = add[c] + top[c]
            if 0.0 < cost < step:
                step = cost
            if cells.is_mask[j] or box.lo[j] <= c - off[j] <= box.hi[j]:
                most = max(most, add[c])
                all_peak = max(all_peak, top[c])
        all_total += most
    return total + peak, 0.0 if step == FAR else step, 2.0 * (all_total + all_peak) + 1.0


@kernel
def cheapest_level(levels, j, off, add, top):
    """Return the cheapest of a set of levels of feature j, given as bits; -1 for the empty set."""
    f = off[j]
    best = -1
    for k in range(off[j + 1] - f):
        if (levels >> k) & 1 and (best < 0 or add[f + k] + top[f + k] < add[f + best] + top[f + best]):
            best = k
    return best


@kernel
def cheapest(j, box, cells):
    """Return the cheapest cell of feature j within a box."""
    own = cells.own[j]
    if not cells.is_mask[j]:
        # Costs do not decrease away from the own cell.
        return min(max(own, box.lo[j]), box.hi[j])
    if (box.mask[j] >> own) & 1:
        return own
    return cheapest_level(box.mask[j], j, cells.off, cells.add, cells.top)


@kernel
def cost_of(point, cells):
    """Return the cost of a point given by its cells, rounded to nearest in the order of features."""
    off, add, top = cells.off, cells.add, cells.top
    total = peak = 0.0
    for j in range(point.shape[0]):
        c = off[j] + point[j]
        total += add[c]
        peak = max(peak, top[c])
    return total + peak


@kernel
def cost_parts(point, cells):
    """Return the sum of ``add`` over a point's cells, the greatest and second greatest ``top``, and the feature of the greatest (or -1).

    With these the cost of a point that differs in one feature is known at once.
    """
    off, add, top = cells.off, cells.add, cells.top
    total = first = second = 0.0
    where = -1
    for j in range(point.shape[0]):
        c = off[j] + point[j]
        total += add[c]
        if top[c] > first:
            second = first
            first = top[c]
            where = j
        elif top[c] > second:
            second = top[c]
    return total, first, second, where


@kernel
def least_level_spent(levels, b, j, off, spend):
    """Return the least that a set of levels spends of a budget."""
    least = FAR
    for k in range(off[j + 1] - off[j]):
        if (levels >> k) & 1:
            least = min(least, spend[b, off[j] + k])
    return least


@kernel
def least_spent(b, j, box, cells):
    """Return the least that a feature spends of a budget in a box."""
    if cells.is_mask[j]:
        return least_level_spent(box.mask[j], b, j, cells.off, cells.spend)
    return cells.spend[b, cells.off[j] + min(max(cells.thrifty[b, j], box.lo[j]), box.hi[j])]


@kernel
def keep_to_budgets(box, cells):
    """Take the cells off a box that exceed a budget with the least that the other features spend; False where all of the box does."""
    lo, hi, mask, off, spend = box.lo, box.hi, box.mask, cells.off, cells.spend
    for b in range(cells.most.shape[0]):
        room = cells.most[b]
        for j in range(lo.shape[0]):
            room -= least_spent(b, j, box, cells)
        if room < 0.0:
            return False
        for j in range(lo.shape[0]):
            f = off[j]
            mine = room + least_spent(b, j, box, cells)
            if cells.is_mask[j]:
                for k in range(off[j + 1] - f):
                    if (mask[j] >> k) & 1 and spend[b, f + k] > mine:
                        mask[j] &= ~(np.int64(1) << k)
                continue
            c = min(max(cells.thrifty[b, j], lo[j]), hi[j])
            while lo[j] < c and spend[b, f + lo[j]] > mine:
                lo[j] += 1
            while hi[j] > c and spend[b, f + hi[j]] > mine:
                hi[j] -= 1
    return True


@kernel
def shrink_to_ball(limit, box, cells, near):
    """Shrink a box to the budgets and to the ball of radius ``limit``; return its cost and write its cheapest cells into ``near``.

    A cell goes where the cheapest point of the box that has it costs ``limit`` or more. The ball takes none where all of the box does. The
    cost is ``FAR`` where no point of the box keeps to the budgets.
    """
    lo, hi, mask = box.lo, box.hi, box.mask
    is_mask, off, add, top = cells.is_mask, cells.off, cells.add, cells.top
    features = lo.shape[0]
    if not keep_to_budgets(box, cells):
        return FAR
    for j in range(features):
        near[j] = cheapest(j, box, cells)
    total, first, second, where = cost_parts(near, cells)
    distance = total + first
    if distance >= limit:
        return distance
    for j in range(features):
        f = off[j]
        c = near[j]
        # What the other features cost at least: a sum, and a maximum.
        rest = total - add[f + c]
        other = second if j == where else first
        if is_mask[j]:
            kept = np.int64(0)
            for k in range(off[j + 1] - f):
                if (mask[j] >> k) & 1 and (k == c or rest + add[f + k] + max(other, top[f + k]) < limit):
                    kept |= np.int64(1) << k
            mask[j] = kept
        elif lo[j] < hi[j]:
            # Costs rise away from the cheapest cell, so that only the ends need to be looked at.
            a = lo[j]
            while a < c and rest + add[f + a] + max(other, top[f + a]) >= limit:
                a += 1
            lo[j] = a
            b = hi[j]
            while b > c and rest + add[f + b] + max(other, top[f + b]) >= limit:
                b -= 1
            hi[j] = b
    return distance


# ---- the leaves inside a ball


@kernel
def undo_split(depth, path, lo, hi, mask, is_mask):
    """Give a box back the range that the split at a depth of the path took from it."""
    j = path[0, depth]
    if j >= 0:
        if is_mask[j]:
            mask[j] = path[1, depth]
        else:
            lo[j] = path[1, depth]
            hi[j] = path[2, depth]


@kernel
def collect(limit, box, cells, boundaries, trees, depth_limit, found):
    """Write down the leaves whose box comes nearer than ``limit``, with that box; return their number, or -1 where they do not fit.

    Each tree is walked depth first. A child differs from its parent in one feature, so that its cost follows from the parent's by one
    subtraction and one addition; the limit is widened by more than their rounding, so that no leaf inside the ball is lost.
    ``found.dropped[0]`` becomes the least cost of what was left out: up to that radius, the same leaves would be found.
    """
    is_mask, is_missing, off, add, top = cells.is_mask, cells.is_missing, cells.off, cells.add, cells.top
    own, mask_of, roots, missing_left = cells.own, cells.mask_of, trees.roots, trees.missing_left
    feature, bound, subset, left, right = trees.feature, trees.bound, trees.subset, trees.left, trees.right
    start, start_off = boundaries.start, boundaries.off
    tree_start, leaf, dropped = found.tree_start, found.leaf, found.dropped
    box_lo, box_hi, box_mask = found.box_lo, found.box_hi, found.box_mask
    features = own.shape[0]
    count = 0
    dropped[0] = FAR
    outside = limit * (1.0 + 1e-12) + 1e-15
    # The nodes still to visit: depth, and twice the parent plus the side taken there (-1 at the root); cost so far: sum, maximum.
    size_limit = 2 * depth_limit + 4
    node_stack = np.empty(size_limit, np.int64)
    depth_stack = np.empty(size_limit, np.int64)
    side_stack = np.empty(size_limit, np.int64)
    cost_stack = np.empty(size_limit, np.float64)
    peak_stack = np.empty(size_limit, np.float64)
    # The splits above the node at hand: feature (-1 where nothing changed), and the range or levels before the split.
    path = np.empty((3, depth_limit + 2), np.int64)
    lo, hi, mask = box.lo.copy(), box.hi.copy(), box.mask.copy()
    start_cost = 0.0
    start_peak = 0.0
    for j in range(features):
        c = off[j] + cheapest(j, box, cells)
        start_cost += add[c]
        start_peak = max(start_peak, top[c])
    for t in range(roots.shape[0]):
        tree_start[t] = count
        depth = 0
        size = 1
        node_stack[0] = roots[t]
        depth_stack[0] = 0
        side_stack[0] = -1
        cost_stack[0] = start_cost
        peak_stack[0] = start_peak
        while size > 0:
            size -= 1
            node = node_stack[size]
            cost = cost_stack[size]
            peak = peak_stack[size]
            while depth >= depth_stack[size] and depth > 0:
                depth -= 1
                undo_split(depth, path, lo, hi, mask, is_mask)
            side = side_stack[size]
            if side >= 0:
                # Apply the split of the parent, whose number stands in the side's upper bits.
                parent = side >> 1
                j = feature[parent]
                path[0, depth] = -1
                if not is_missing[j]:
                    path[0, depth] = j
                    if is_mask[j]:
                        path[1, depth] = mask[j]
                        mask[j] &= subset[parent] if side & 1 == 0 else ~subset[parent]
                    else:
                        path[1, depth] = lo[j]
                        path[2, depth] = hi[j]
                        at = start[start_off[j] + bound[parent]]
                        if side & 1 == 0:
                            hi[j] = min(hi[j], at - 1)
                        else:
                            lo[j] = max(lo[j], at)
                depth += 1
            j = feature[node]
            if j < 0:
                if count >= leaf.shape[0]:
                    return -1
                leaf[count] = node
                found.cost[count] = cost + peak
                for i in range(features):
                    box_lo[count, i] = lo[i]
                    box_hi[count, i] = hi[i]
                    if is_mask[i]:
                        box_mask[count, mask_of[i]] = mask[i]
                count += 1
                continue
            if is_missing[j]:
                goes = 0 if missing_left[node] else 1
                node_stack[size] = left[node] if goes == 0 else right[node]
                depth_stack[size] = depth + 1
                side_stack[size] = node * 2 + goes
                cost_stack[size] = cost
                peak_stack[size] = peak
                size += 1
                continue
            f = off[j]
            if not is_mask[j]:
                here = min(max(own[j], lo[j]), hi[j])
            else:
                here = own[j] if (mask[j] >> own[j]) & 1 else cheapest_level(mask[j], j, off, add, top)
            for goes in range(2):
                if is_mask[j]:
                    kept = mask[j] & (subset[node] if goes == 0 else ~subset[node])
                    if kept == 0:
                        continue
                    c = own[j] if (kept >> own[j]) & 1 else cheapest_level(kept, j, off, add, top)
                else:
                    at = start[start_off[j] + bound[node]]
                    a = lo[j] if goes == 0 else max(lo[j], at)
                    b = min(hi[j], at - 1) if goes == 0 else hi[j]
                    if a > b:
                        continue
                    c = min(max(own[j], a), b)
                new_cost = cost - add[f + here] + add[f + c]
                new_peak = max(peak, top[f + c])
                if new_cost + new_peak < outside:
                    node_stack[size] = left[node] if goes == 0 else right[node]
                    depth_stack[size] = depth + 1
                    side_stack[size] = node * 2 + goes
                    cost_stack[size] = new_cost
                    peak_stack[size] = new_peak
                    size += 1
                else:
                    dropped[0] = min(dropped[0], new_cost + new_peak)
        while depth > 0:
            depth -= 1
            undo_split(depth, path, lo, hi, mask, is_mask)
    tree_start[roots.shape[0]] = count
    return count


@kernel
def opening(values, goal, found):
    """Return the least cost up to which the collected leaves, the best of each tree together, reach every margin; FAR where all fail.

    The last sums are made anew, in the order of the trees: where FAR is returned, no point inside the ball is a counterfactual.
    """
    tree_start, leaf, cost = found.tree_start, found.leaf, found.cost
    trees, margins = tree_start.shape[0] - 1, goal.need.shape[0]
    count = tree_start[trees]
    owner = np.empty(count, np.int64)
    for t in range(trees):
        owner[tree_start[t] : tree_start[t + 1]] = t
    best = np.full((trees, margins), -FAR)
    totals = goal.base.copy()
    met = 0
    for i in np.argsort(cost[:count], kind="mergesort"):
        t = owner[i]
        is_first = best[t, 0] == -FAR
        met += is_first
        for k in range(margins):
            gain = values[leaf[i], k]
            if gain > best[t, k]:
                totals[k] += gain if is_first else gain - best[t, k]
                best[t, k] = gain
        if met == trees and reaches(totals, goal.need):
            return cost[i]
    if met < trees:
        return FAR
    totals[:] = goal.base
    for t in range(trees):
        totals += best[t]
    return cost[:count].max() if reaches(totals, goal.need) else FAR


@kernel
def reaches(totals, need):
    """Return whether every score reaches its threshold."""
    for k in range(need.shape[0]):
        if totals[k] < need[k]:
            return False
    return True


@kernel
def drop_farther(limit, found):
    """Drop the collected leaves that cost ``limit`` or more; it is widened as in :func:`collect`."""
    tree_start, cost = found.tree_start, found.cost
    outside = limit * (1.0 + 1e-12) + 1e-15
    count = begin = 0
    for t in range(tree_start.shape[0] - 1):
        end = tree_start[t + 1]
        tree_start[t] = count
        for i in range(begin, end):
            if cost[i] >= outside:
                found.dropped[0] = min(found.dropped[0], cost[i])
                continue
            if count < i:
                found.leaf[count] = found.leaf[i]
                cost[count] = cost[i]
                found.box_lo[count] = found.box_lo[i]
                found.box_hi[count] = found.box_hi[i]
                found.box_mask[count] = found.box_mask[i]
            count += 1
        begin = end
    tree_start[tree_start.shape[0] - 1] = count


@kernel
def leaf_keeps_budgets(i, box, cells, found):
    """Return whether some point of a collected leaf in a box that it meets keeps each budget, taken alone."""
    off, spend = cells.off, cells.spend
    for b in range(cells.most.shape[0]):
        room = cells.most[b]
        for j in range(box.lo.shape[0]):
            if cells.is_missing[j]:
                room -= spend[b, off[j]]
            elif cells.is_mask[j]:
                both = box.mask[j] & found.box_mask[i, cells.mask_of[j]]
                room -= least_level_spent(both, b, j, off, spend)
            else:
                low, high = max(found.box_lo[i, j], box.lo[j]), min(found.box_hi[i, j], box.hi[j])
                room -= spend[b, off[j] + min(max(cells.thrifty[b, j], low), high)]
        if room < 0.0:
            return False
    return True


@kernel
def keep_leaves_inside(box, cells, found):
    """Drop the collected leaves that miss a box or exceed a budget in all of it.

    Returns how many are left, 0 where some tree has none: no point of the box is possible.
    """
    is_mask, is_missing, mask_of, lo, hi, mask = (
        cells.is_mask,
        cells.is_missing,
        cells.mask_of,
        box.lo,
        box.hi,
        box.mask,
    )
    tree_start, box_lo, box_hi, box_mask = found.tree_start, found.box_lo, found.box_hi, found.box_mask
    count = begin = 0
    for t in range(tree_start.shape[0] - 1):
        end = tree_start[t + 1]
        tree_start[t] = count
        for i in range(begin, end):
            meets = True
            for j in range(lo.shape[0]):
                if is_missing[j]:
                    continue
                meets = max(box_lo[i, j], lo[j]) <= min(box_hi[i, j], hi[j])
                if is_mask[j]:
                    meets = mask[j] & box_mask[i, mask_of[j]] != 0
                if not meets:
                    break
            if meets and leaf_keeps_budgets(i, box, cells, found):
                if count < i:
                    found.leaf[count] = found.leaf[i]
                    box_lo[count] = box_lo[i]
                    box_hi[count] = box_hi[i]
                    box_mask[count] = box_mask[i]
                count += 1
        if count == tree_start[t]:
            return 0
        begin = end
    tree_start[tree_start.shape[0] - 1] = count
    return count


@kernel
def compress(limit, box, cells, cut, found, blocks):
    """Shrink a box to the ball and merge neighbouring cells that no collected leaf distinguishes into blocks.

    Returns the number of leaves, the number of blocks, and the cost of the box. There is no leaf, and nothing is done, where that cost is
    not below ``limit`` or no point of the box has a leaf in every tree.

    A block costs what its cheapest cell costs, which is exact: inside the ball all its cells score the same. ``cut`` marks cells before
    which a block must begin (where a condition distinguishes cells). The boxes of the leaves are rewritten in blocks.

    A leaf whose cost ties with the limit may have been collected although its cells are outside the shrunk box: it is dropped.
    """
    own, is_mask, off, add, top = cells.own, cells.is_mask, cells.off, cells.add, cells.top
    lo, hi, box_lo, box_hi = box.lo, box.hi, found.box_lo, found.box_hi
    new_off, new_add, new_top, new_own = blocks.off, blocks.add, blocks.top, blocks.own
    cheapest_cell, first_cell = blocks.cheapest, blocks.first
    features = lo.shape[0]
    distance = shrink_to_ball(limit, box, cells, np.empty(features, np.int64))
    count = 0 if distance >= limit else keep_leaves_inside(box, cells, found)
    if count == 0:
        return 0, 0, distance
    # Whether some leaf begins at a cell, or ends before it.
    marks = np.zeros(off[features] + 1, np.uint8)
    for i in range(count):
        for j in range(features):
            if not is_mask[j]:
                box_lo[i, j] = max(box_lo[i, j], lo[j])
                box_hi[i, j] = min(box_hi[i, j], hi[j])
                marks[off[j] + box_lo[i, j]] = 1
                marks[off[j] + box_hi[i, j] + 1] = 1
    block = np.zeros(off[features] + 1, np.int64)
    size = 0
    for j in range(features):
        new_off[j] = size
        f = off[j]
        if is_mask[j]:
            for k in range(off[j + 1] - f):
                new_add[size] = add[f + k]
                new_top[size] = top[f + k]
                cheapest_cell[size] = k
                first_cell[size] = k
                size += 1
            new_own[j] = own[j]
            continue
        for k in range(lo[j], hi[j] + 1):
            if k == lo[j] or marks[f + k] == 1 or cut[f + k] == 1:
                new_add[size] = add[f + k]
                new_top[size] = top[f + k]
                cheapest_cell[size] = k
                first_cell[size] = k
                size += 1
            elif k == own[j] or add[f + k] + top[f + k] < new_add[size - 1] + new_top[size - 1]:
                new_add[size - 1] = add[f + k]
                new_top[size - 1] = top[f + k]
                cheapest_cell[size - 1] = k
            block[f + k] = size - 1 - new_off[j]
        new_own[j] = block[f + min(max(own[j], lo[j]), hi[j])]
    new_off[features] = size
    for i in range(count):
        for j in range(features):
            if not is_mask[j]:
                box_lo[i, j] = block[off[j] + box_lo[i, j]]
                box_hi[i, j] = block[off[j] + box_hi[i, j]]
    return count, size, distance


@kernel
def sort_leaves(tree_start, gain, order):
    """Write the leaves of each tree in the order of what they add to the first margin, greatest first."""
    for t in range(tree_start.shape[0] - 1):
        a, b = tree_start[t], tree_start[t + 1]
        order[a:b] = a + np.argsort(-gain[a:b, 0], kind="mergesort")


# ---- points


@kernel
def scores_at(point, cells, trees, goal, most, least):
    """Write the most and the least that the scores of a point, given by its base cells, may be.

    Leaves bring their own outward rounding; that of the sums is allowed for in ``need`` and ``sure``.
    """
    base, roots, feature, is_missing, missing_left = (
        goal.base, trees.roots, trees.feature, cells.is_missing, trees.missing_left,
    )  # fmt: skip
    is_mask, subset, bound, left, right = cells.is_mask, trees.subset, trees.bound, trees.left, trees.right
    trees_most, trees_least = trees.most, trees.least
    margins = base.shape[0]
    for k in range(margins):
        most[k] = least[k] = base[k]
    for t in range(roots.shape[0]):
        node = roots[t]
        while feature[node] >= 0:
            j = feature[node]
            if is_missing[j]:
                goes_left = missing_left[node]
            elif is_mask[j]:
                goes_left = (subset[node] >> point[j]) & 1 == 1
            else:
                goes_left = point[j] < bound[node]
            node = left[node] if goes_left else right[node]
        for k in range(margins):
            most[k] += trees_most[node, k]
            least[k] += trees_least[node, k]


@kernel
def score_point(point, cells, trees, goal, scores):
    """Write the most and the least that the scores of a point, given by its cells, may be."""
    for j in range(point.shape[0]):
        scores.base_point[j] = cells.base_cell[cells.off[j] + point[j]]
    scores_at(scores.base_point, cells, trees, goal, scores.most, scores.least)


@kernel
def is_counterfactual(point, cells, trees, goal, scores):
    """Return whether a point, given by its cells, is surely in the goal and fulfils every condition."""
    score_point(point, cells, trees, goal, scores)
    for k in range(scores.least.shape[0]):
        if scores.least[k] < goal.sure[k]:
            return False
    return failed_condition(point, cells) < 0 and exceeded_budget(point, cells) < 0


@kernel
def pull_back(point, box, cells, trees, goal, scores):
    """Move a counterfactual towards the factual, one feature after another, as long as it stays one: fully, or in part (by bisection)."""
    for _ in range(3):
        moved = False
        for j in range(point.shape[0]):
            f = cells.off[j]
            now = point[j]
            if now == cells.own[j]:
                continue
            point[j] = cells.own[j]
            if is_counterfactual(point, cells, trees, goal, scores):
                moved = True
                continue
            point[j] = now
            if cells.is_mask[j]:
                for k in range(cells.off[j + 1] - f):
                    is_cheaper = cells.add[f + k] + cells.top[f + k] < cells.add[f + now] + cells.top[f + now]
                    if (box.mask[j] >> k) & 1 and is_cheaper:
                        point[j] = k
                        if is_counterfactual(point, cells, trees, goal, scores):
                            now = k
                            moved = True
                        else:
                            point[j] = now
                continue
            outside, inside = cells.own[j], now
            while abs(inside - outside) > 1:
                middle = (inside + outside) // 2
                point[j] = middle
                if is_counterfactual(point, cells, trees, goal, scores):
                    inside = middle
                    moved = True
                else:
                    outside = middle
            point[j] = inside
        if not moved:
            break


@kernel
def find_incumbent(tries, most_found, box, cells, trees, goal, best):
    """Try random points, pull those of the goal back towards the factual, and write the cheapest; return its cost, FAR where there is none.

    No bound comes of this; it gives the search a radius, and the user an answer where the search runs out of time.
    """
    features = box.lo.shape[0]
    margins = goal.need.shape[0]
    scores = Scores(np.empty(features, np.int64), np.empty(margins), np.empty(margins))
    point = np.empty(features, np.int64)
    cheapest_cost = FAR
    # Marsaglia's xorshift with a fixed seed: the same points in every run.
    state = np.uint64(88172645463325252)
    good = 0
    for attempt in range(tries):
        for j in range(features):
            state ^= state << np.uint64(13)
            state ^= state >> np.uint64(7)
            state ^= state << np.uint64(17)
            draw = np.int64(state >> np.uint64(33))
            if draw % 4 == 0 and attempt % 2 == 1:
                point[j] = cells.own[j]
            elif cells.is_mask[j]:
                size = cells.off[j + 1] - cells.off[j]
                k = draw % size
                while not (box.mask[j] >> k) & 1:
                    k = (k + 1) % size
                point[j] = k
            else:
                point[j] = box.lo[j] + draw % (box.hi[j] - box.lo[j] + 1)
        fit_to_budgets(point, attempt % features, cells)
        if not is_counterfactual(point, cells, trees, goal, scores):
            continue
        pull_back(point, box, cells, trees, goal, scores)
        cost = cost_of(point, cells)
        if cost < cheapest_cost:
            cheapest_cost = cost
            best[:] = point
        good += 1
        if good == most_found:
            break
    return cheapest_cost


# ---- conditions


@kernel
def can_differ(box, cells):
    """Return whether every condition can be fulfilled by some point of the box, each taken alone: if not, the box can be pruned."""
    at_least, off, is_mask, differs = cells.at_least, cells.off, cells.is_mask, cells.differs
    for i in range(at_least.shape[0]):
        most = 0
        for j in range(box.lo.shape[0]):
            f = off[j]
            for k in range(off[j + 1] - f):
                inside = (box.mask[j] >> k) & 1 == 1 if is_mask[j] else box.lo[j] <= k <= box.hi[j]
                if inside and differs[i, f + k] == 1:
                    most += 1
                    break
        if most < at_least[i]:
            return False
    return True


@kernel
def failed_condition(point, cells):
    """Return the first condition that a point fails, or -1."""
    at_least, differs, off = cells.at_least, cells.differs, cells.off
    for i in range(at_least.shape[0]):
        count = 0
        for j in range(point.shape[0]):
            if differs[i, off[j] + point[j]] == 1:
                count += 1
        if count < at_least[i]:
            return i
    return -1


@kernel
def exceeded_budget(point, cells):
    """Return the first budget that a point exceeds, or -1."""
    for b in range(cells.most.shape[0]):
        room = cells.most[b]
        for j in range(point.shape[0]):
            room -= cells.spend[b, cells.off[j] + point[j]]
        if room < 0.0:
            return b
    return -1


@kernel
def fit_to_budgets(point, first, cells):
    """Let the features of a point that exceed a budget spend least, going through them from the first one on."""
    features = point.shape[0]
    for b in range(cells.most.shape[0]):
        room = cells.most[b]
        for step in range(features):
            j = (first + step) % features
            if cells.spend[b, cells.off[j] + point[j]] > room:
                point[j] = cells.thrifty[b, j]
            room -= cells.spend[b, cells.off[j] + point[j]]


# ---- the bound of a box


@kernel
def find_free(d, cells, stack, work):
    """Write down the features of a box that have more than one cell left, with the one just branched on, and what the others cost.

    A leaf in the list of the parent meets the box in all the others: only the free ones are tested. Returns their number.
    """
    feature, is_mask, free, off, add, top = stack.feature, cells.is_mask, work.free, cells.off, cells.add, cells.top
    box = CellBox(stack.lo[d], stack.hi[d], stack.mask[d])
    lo, hi, mask = box.lo, box.hi, box.mask
    count = 0
    total = peak = 0.0
    work.fixed[2:] = 0.0
    branched_on = -1 if d == 0 else feature[d - 1]
    for j in range(lo.shape[0]):
        # A set has more than one element where clearing its lowest bit leaves something.
        several = mask[j] & (mask[j] - 1) != 0 if is_mask[j] else lo[j] < hi[j]
        if several or j == branched_on or d == 0:
            free[count] = j
            count += 1
        else:
            c = off[j] + cheapest(j, box, cells)
            total += add[c]
            peak = max(peak, top[c])
            for b in range(cells.most.shape[0]):
                work.fixed[2 + b] += cells.spend[b, c]
    work.fixed[0] = total
    work.fixed[1] = peak
    return count


@kernel
def leaf_test(d, limit, free, cells, leaves, stack, work):
    """Return what the leaves are tested against at depth d, where the first ``free`` of the free features count."""
    return LeafTest(
        limit, work.fixed[0], work.fixed[1], work.fixed[2:], work.free[:free], stack.lo[d], stack.hi[d], stack.mask[d], cells.own,
        cells.is_mask, cells.mask_of, cells.off, cells.add, cells.top, cells.spend, cells.thrifty, cells.most, leaves.box_lo,
        leaves.box_hi, leaves.box_mask,
    )  # fmt: skip


@kernel
def meets_ball(i, test):
    """Return whether a leaf meets the box, and the cheapest point of both costs less than the limit and keeps every budget."""
    limit, total, peak, free, lo, hi = test.limit, test.fixed_cost, test.fixed_peak, test.free, test.lo, test.hi
    mask, own, is_mask, mask_of, off = test.mask, test.own, test.is_mask, test.mask_of, test.off
    add, top, box_lo, box_hi, box_mask = test.add, test.top, test.box_lo, test.box_hi, test.box_mask
    for o in range(free.shape[0]):
        j = free[o]
        f = off[j]
        if is_mask[j]:
            both = mask[j] & box_mask[i, mask_of[j]]
            if both == 0:
                return False
            c = own[j]
            if not (both >> c) & 1:
                c = cheapest_level(both, j, off, add, top)
        else:
            a = max(box_lo[i, j], lo[j])
            b = min(box_hi[i, j], hi[j])
            if a > b:
                return False
            c = min(max(own[j], a), b)
        total += add[f + c]
        if top[f + c] > peak:
            peak = top[f + c]
    return total + peak < limit and (test.most.shape[0] == 0 or affords(i, test))


@kernel
def affords(i, test):
    """Return whether some point of the box in a leaf that meets it keeps each budget, taken alone."""
    for b in range(test.most.shape[0]):
        room = test.most[b] - test.fixed_spend[b]
        for o in range(test.free.shape[0]):
            j = test.free[o]
            if test.is_mask[j]:
                both = test.mask[j] & test.box_mask[i, test.mask_of[j]]
                room -= least_level_spent(both, b, j, test.off, test.spend)
            else:
                low, high = max(test.box_lo[i, j], test.lo[j]), min(test.box_hi[i, j], test.hi[j])
                room -= test.spend[b, test.off[j] + min(max(test.thrifty[b, j], low), high)]
        if room < 0.0:
            return False
    return True


@kernel
def covers(i, test):
    """Return whether a leaf that meets the box holds all of it: then its tree is constant on the box."""
    free, lo, hi, mask, is_mask, mask_of = test.free, test.lo, test.hi, test.mask, test.is_mask, test.mask_of
    box_lo, box_hi, box_mask = test.box_lo, test.box_hi, test.box_mask
    for o in range(free.shape[0]):
        j = free[o]
        if is_mask[j]:
            if mask[j] & ~box_mask[i, mask_of[j]] != 0:
                return False
        elif box_lo[i, j] > lo[j] or box_hi[i, j] < hi[j]:
            return False
    return True


@kernel
def filter_leaves(d, source, test, leaves, goal, stack, work, totals):
    """Filter the lists of depth ``source`` into depth ``d`` and bound the scores: ``totals[k]`` becomes an upper bound over the box.

    A leaf stays where it meets the box inside the ball and, with the best of all other trees, every score can still reach ``need``. What
    stays is an upper bound for every point of the box that is a counterfactual. Returns OPEN, PRUNED or NO_ROOM in the arena.
    """
    need, const, stack_active, first, last = goal.need, stack.const, stack.active, stack.first, stack.last
    gain, arena, tree_max = leaves.gain, stack.arena, work.tree_max
    margins = need.shape[0]
    begin_all = 0 if d == 0 else stack.top[d - 1]
    write = begin_all
    for k in range(margins):
        totals[k] = const[source, k]
    for a in range(stack_active[source]):
        begin = write
        # Filtering depth d in place writes behind its reading; only a copy from the parent's list needs room.
        if source != d and write + last[source, a] - first[source, a] > arena.shape[0]:
            return NO_ROOM
        for k in range(margins):
            tree_max[a, k] = -FAR
        for q in range(first[source, a], last[source, a]):
            i = arena[q]
            if meets_ball(i, test):
                arena[write] = i
                write += 1
                for k in range(margins):
                    tree_max[a, k] = max(tree_max[a, k], gain[i, k])
        if write == begin:
            return PRUNED
        first[d, a] = begin
        last[d, a] = write
        for k in range(margins):
            totals[k] += tree_max[a, k]
    for k in range(margins):
        # Prune: not even the best leaf of every tree reaches the goal.
        if totals[k] < need[k]:
            return PRUNED
    count = stack_active[source]
    for k in range(margins):
        const[d, k] = const[source, k]
    write = begin_all
    active = 0
    for a in range(count):
        begin = write
        for q in range(first[d, a], last[d, a]):
            i = arena[q]
            useful = True
            for k in range(margins):
                # This leaf with the best of all others.
                if totals[k] - tree_max[a, k] + gain[i, k] < need[k]:
                    useful = False
            if useful:
                arena[write] = i
                write += 1
        if write == begin:
            return PRUNED
        only = arena[begin]
        if write - begin == 1 and covers(only, test):
            for k in range(margins):
                const[d, k] += gain[only, k]
            write = begin
        else:
            first[d, active] = begin
            last[d, active] = write
            for k in range(margins):
                tree_max[active, k] = tree_max[a, k]
            active += 1
    stack_active[d] = active
    stack.top[d] = write
    return OPEN


@kernel
def find_moved(d, source, limit, cells, stack, work):
    """Write down the features of which the box has changed since the lists of depth ``source`` were filtered; return their number.

    Returns -1 where leaves may cost more than they did then, or the limit is lower: all that they are tested against has to be looked at.
    Where the nearest point of the box is still the same, and no level is gone, a leaf that meets the box costs what it did.
    """
    lo, hi, mask, point = stack.lo[d], stack.hi[d], stack.mask[d], stack.point[d]
    count = 0
    for j in range(lo.shape[0]):
        if source == d:
            before, after, levels, near = (
                work.filtered[0, j],
                work.filtered[1, j],
                work.filtered[2, j],
                work.filtered[3, j],
            )
        else:
            before, after, levels, near = (
                stack.lo[source, j],
                stack.hi[source, j],
                stack.mask[source, j],
                stack.point[source, j],
            )
        if point[j] != near or (cells.is_mask[j] and mask[j] != levels):
            return -1
        if lo[j] != before or hi[j] != after:
            work.moved[count] = j
            count += 1
    return count if limit == stack.limit[source] else -1


@kernel
def note_filtered(d, limit, stack, work):
    """Write down the box and the limit that the lists of a depth are filtered with."""
    work.filtered[0], work.filtered[1], work.filtered[2] = stack.lo[d], stack.hi[d], stack.mask[d]
    work.filtered[3] = stack.point[d]
    stack.limit[d] = limit


@kernel
def meets_moved(i, moved, test):
    """Return whether a leaf meets the box in the features of which the box has changed."""
    lo, hi, box_lo, box_hi = test.lo, test.hi, test.box_lo, test.box_hi
    for o in range(moved.shape[0]):
        j = moved[o]
        if box_lo[i, j] > hi[j] or box_hi[i, j] < lo[j]:
            return False
    return True


@kernel
def filter_leaves_sorted(d, source, test, moved, leaves, goal, stack, work, totals):
    """Do what :func:`filter_leaves` does for a single margin, with lists sorted by gain.

    The first leaf that meets the ball is the greatest of its tree, and a list ends at the first leaf that is too small. Where there are
    ``moved`` features, they are all that a leaf is tested in (:func:`find_moved`).
    """
    const, stack_active, first, stack_last, first_fit = (
        stack.const, stack.active, stack.first, stack.last, work.first_fit,
    )  # fmt: skip
    gain, need, arena, tree_max = leaves.gain, goal.need, stack.arena, work.tree_max
    total = const[source, 0]
    count = stack_active[source]
    few = moved.shape[0] > 0
    for a in range(count):
        q, last = first[source, a], stack_last[source, a]
        if few:
            while q < last and not meets_moved(arena[q], moved, test):
                q += 1
        else:
            while q < last and not meets_ball(arena[q], test):
                q += 1
        if q == last:
            return PRUNED
        first_fit[a] = q
        tree_max[a, 0] = gain[arena[q], 0]
        total += tree_max[a, 0]
    totals[0] = total
    # Prune: not even the best leaf of every tree reaches the goal.
    if total < need[0]:
        return PRUNED
    slack = total - need[0]
    constant = const[source, 0]
    write = 0 if d == 0 else stack.top[d - 1]
    active = 0
    for a in range(count):
        begin = write
        q, last = first_fit[a], stack_last[source, a]
        if source != d and write + last - q > arena.shape[0]:
            return NO_ROOM
        greatest = tree_max[a, 0]
        while q < last:
            i = arena[q]
            # This leaf and all after it lose more than the bound can spare.
            if greatest - gain[i, 0] > slack:
                break
            if q == first_fit[a] or (meets_moved(i, moved, test) if few else meets_ball(i, test)):
                arena[write] = i
                write += 1
            q += 1
        only = arena[begin]
        if write - begin == 1 and covers(only, test):
            constant += greatest
            write = begin
        else:
            first[d, active] = begin
            stack_last[d, active] = write
            tree_max[active, 0] = greatest
            active += 1
    const[d, 0] = constant
    stack_active[d] = active
    stack.top[d] = write
    return OPEN


# ---- branching


@kernel
def distinguishes(j, first, last, box, cells, leaves, arena):
    """Return whether some leaf of a list does not hold the whole box in feature j: if none, branching on j changes nothing for its tree."""
    box_lo, box_hi, box_mask = leaves.box_lo, leaves.box_hi, leaves.box_mask
    lo, hi, levels = box.lo[j], box.hi[j], box.mask[j]
    is_mask, m = cells.is_mask[j], cells.mask_of[j]
    for q in range(first, last):
        i = arena[q]
        if is_mask:
            if levels & ~box_mask[i, m] != 0:
                return True
        elif box_lo[i, j] > lo or box_hi[i, j] < hi:
            return True
    return False


@kernel
def suffix_weights(eliminated, f, lo, hi):
    """Sum up the weights noted at one side's ends: a leaf that begins at b is lost to every side that ends before b; likewise above."""
    for c in range(hi - 2, lo - 1, -1):
        eliminated[0, f + c] += eliminated[0, f + c + 1]
    for c in range(lo + 2, hi + 1):
        eliminated[1, f + c] += eliminated[1, f + c - 1]


@kernel
def bound_sides_sorted(d, slack, free_count, cells, leaves, stack, work):
    """Do what :func:`bound_sides` does for a single margin, with lists sorted by gain.

    A side's greatest leaf is the first of the list that reaches into it. So going down the list, ``drop`` of an ordered feature is
    written as differences, only where a leaf reaches farther than all before it; running sums at the end make it whole. ``empty`` counts
    the trees that have no leaf on a side, in the same manner. The sums are rounded to nearest: whoever prunes by them adds ``pad``.
    """
    stack_lo, stack_hi, stack_mask, off, free = stack.lo, stack.hi, stack.mask, cells.off, work.free
    is_mask, reach, active, stack_first, stack_last = cells.is_mask, work.reach, stack.active, stack.first, stack.last
    gain, mask_of, box_mask, level, box_lo = leaves.gain, cells.mask_of, leaves.box_mask, work.fall, leaves.box_lo
    box_hi, tree_max, drop, eliminated, empty = leaves.box_hi, work.tree_max, work.drop, work.eliminated, work.empty
    lo, hi, mask, arena = stack_lo[d], stack_hi[d], stack_mask[d], stack.arena
    box = CellBox(lo, hi, mask)
    features = lo.shape[0]
    for j in range(features):
        first, last = (0, off[j + 1] - off[j] - 1) if is_mask[j] else (lo[j], hi[j])
        for c in range(off[j] + first, off[j] + last + 1):
            drop[0, c] = drop[1, c] = eliminated[0, c] = eliminated[1, c] = 0.0
            empty[0, c] = empty[1, c] = 0
    ranges = 0
    for o in range(free_count):
        j = free[o]
        if not is_mask[j] and lo[j] < hi[j]:
            reach[ranges, 0] = j
            ranges += 1
    for a in range(active[d]):
        first, last = stack_first[d, a], stack_last[d, a]
        greatest = tree_max[a, 0]
        # A leaf weighs the more, the less the bound falls with it; the weights of a tree add up to 1.
        weight = 0.0
        for q in range(first, last):
            weight += gain[arena[q], 0] - greatest + slack
        weight = 1.0 / max(weight, 1e-300)
        for o in range(free_count):
            j = free[o]
            if not is_mask[j] or mask[j] & (mask[j] - 1) == 0:
                continue
            if not distinguishes(j, first, last, box, cells, leaves, arena):
                continue
            f = off[j]
            m = mask_of[j]
            for k in range(off[j + 1] - f):
                bit = np.int64(1) << k
                if mask[j] & bit == 0:
                    continue
                alone = others = False
                for q in range(first, last):
                    i = arena[q]
                    both = mask[j] & box_mask[i, m]
                    v = gain[i, 0]
                    if both & bit == 0:
                        eliminated[0, f + k] += (v - greatest + slack) * weight
                    elif not alone:
                        alone = True
                        drop[0, f + k] += greatest - v
                    if both & ~bit == 0:
                        eliminated[1, f + k] += (v - greatest + slack) * weight
                    elif not others:
                        others = True
                        drop[1, f + k] += greatest - v
                if not alone:
                    empty[0, f + k] += 1
                if not others:
                    empty[1, f + k] += 1
        for r in range(ranges):
            j = reach[r, 0]
            reach[r, 1] = hi[j] + 1
            reach[r, 2] = lo[j] - 1
            level[r, 0] = level[r, 1] = 0.0
        for q in range(first, last):
            i = arena[q]
            fall = greatest - gain[i, 0]
            w = (slack - fall) * weight
            for r in range(ranges):
                j = reach[r, 0]
                f = off[j]
                begin = box_lo[i, j]
                end = box_hi[i, j]
                if begin > lo[j]:
                    eliminated[0, f + begin - 1] += w
                else:
                    begin = lo[j]
                if end < hi[j]:
                    eliminated[1, f + end + 1] += w
                else:
                    end = hi[j]
                if begin < reach[r, 1]:
                    # Sides that end at ``begin`` or later, up to the reach before, have this leaf as their greatest and lose ``fall``.
                    if reach[r, 1] <= hi[j]:
                        drop[0, f + reach[r, 1]] += level[r, 0] - fall
                    reach[r, 1] = begin
                    level[r, 0] = fall
                if end > reach[r, 2]:
                    if reach[r, 2] >= lo[j]:
                        drop[1, f + reach[r, 2]] += level[r, 1] - fall
                    reach[r, 2] = end
                    level[r, 1] = fall
        for r in range(ranges):
            j = reach[r, 0]
            f = off[j]
            drop[0, f + reach[r, 1]] += level[r, 0]
            drop[1, f + reach[r, 2]] += level[r, 1]
            # Sides beyond the reach of all leaves hold none of this tree.
            if reach[r, 1] > lo[j]:
                empty[0, f + lo[j]] += 1
                empty[0, f + reach[r, 1]] -= 1
            if reach[r, 2] < hi[j]:
                empty[1, f + hi[j]] += 1
                empty[1, f + reach[r, 2]] -= 1
    for j in range(features):
        f = off[j]
        if is_mask[j]:
            for k in range(off[j + 1] - f):
                for side in range(2):
                    if empty[side, f + k] > 0:
                        drop[side, f + k] = NO_LEAF
            continue
        suffix_weights(eliminated, f, lo[j], hi[j])
        running = 0.0
        without = 0
        for c in range(lo[j], hi[j] + 1):
            running += drop[0, f + c]
            without += empty[0, f + c]
            drop[0, f + c] = running if without == 0 else NO_LEAF
        running = 0.0
        without = 0
        for c in range(hi[j], lo[j] - 1, -1):
            running += drop[1, f + c]
            without += empty[1, f + c]
            drop[1, f + c] = running if without == 0 else NO_LEAF


@kernel
def bound_sides(d, tight, slack, cells, leaves, stack, work):
    """For every branching: by how much the bound on the score of margin ``tight`` drops on either side, and which share of the leaves goes.

    An ordered feature at cell c: row 0 is the side up to c, row 1 the side from c on. A mask feature at level c: row 0 is the level alone,
    row 1 all others. The sums are rounded to nearest: whoever prunes by them adds ``pad``.
    """
    stack_lo, stack_hi, stack_mask, off, active = stack.lo, stack.hi, stack.mask, cells.off, stack.active
    stack_first, stack_last, gain, is_mask, mask_of = stack.first, stack.last, leaves.gain, cells.is_mask, cells.mask_of
    box_mask, box_lo, box_hi = leaves.box_mask, leaves.box_lo, leaves.box_hi
    tree_max, drop, eliminated, scratch = work.tree_max, work.drop, work.eliminated, work.scratch
    lo, hi, mask, arena = stack_lo[d], stack_hi[d], stack_mask[d], stack.arena
    box = CellBox(lo, hi, mask)
    features = lo.shape[0]
    for c in range(off[features]):
        drop[0, c] = drop[1, c] = eliminated[0, c] = eliminated[1, c] = 0.0
    for a in range(active[d]):
        first, last = stack_first[d, a], stack_last[d, a]
        greatest = tree_max[a, tight]
        weight = 0.0
        for q in range(first, last):
            weight += gain[arena[q], tight] - greatest + slack
        weight = 1.0 / max(weight, 1e-300)
        for j in range(features):
            f = off[j]
            if not is_mask[j] and lo[j] == hi[j]:
                continue
            if not distinguishes(j, first, last, box, cells, leaves, arena):
                continue
            if is_mask[j]:
                m = mask_of[j]
                for k in range(off[j + 1] - f):
                    bit = np.int64(1) << k
                    if mask[j] & bit == 0:
                        continue
                    alone = others = -FAR
                    for q in range(first, last):
                        i = arena[q]
                        both = mask[j] & box_mask[i, m]
                        v = gain[i, tight]
                        if both & bit != 0:
                            alone = max(alone, v)
                        else:
                            eliminated[0, f + k] += (v - greatest + slack) * weight
                        if both & ~bit != 0:
                            others = max(others, v)
                        else:
                            eliminated[1, f + k] += (v - greatest + slack) * weight
                    drop[0, f + k] += greatest - alone if alone > -FAR else NO_LEAF
                    drop[1, f + k] += greatest - others if others > -FAR else NO_LEAF
                continue
            # The greatest leaf that begins at a cell, and that ends at it; the running maximum is the greatest on a side.
            for c in range(lo[j], hi[j] + 1):
                scratch[0, c] = scratch[1, c] = -FAR
            for q in range(first, last):
                i = arena[q]
                v = gain[i, tight]
                w = (v - greatest + slack) * weight
                begin = max(box_lo[i, j], lo[j])
                end = min(box_hi[i, j], hi[j])
                scratch[0, begin] = max(scratch[0, begin], v)
                scratch[1, end] = max(scratch[1, end], v)
                if begin > lo[j]:
                    eliminated[0, f + begin - 1] += w
                if end < hi[j]:
                    eliminated[1, f + end + 1] += w
            running = -FAR
            for c in range(lo[j], hi[j]):
                running = max(running, scratch[0, c])
                drop[0, f + c] += greatest - running if running > -FAR else NO_LEAF
            running = -FAR
            for c in range(hi[j], lo[j], -1):
                running = max(running, scratch[1, c])
                drop[1, f + c] += greatest - running if running > -FAR else NO_LEAF
    for j in range(features):
        if not is_mask[j]:
            suffix_weights(eliminated, off[j], lo[j], hi[j])


@kernel
def record_shaving(j, at, side, registers, proof):
    """Record a branching of which one side is pruned at once, where the branching is recorded."""
    n = registers[RECORDED]
    if proof.code.shape[0] > 0:
        proof.code[n] = 2 * j + side
        proof.at[n] = at
        proof.code[n + 1] = -1
        registers[RECORDED] = n + 2


@kernel
def shave(d, slack, cells, stack, drop, registers, proof):
    """Take off the ends (ordered) or levels (mask) of the box that cannot be in the goal: a side whose bound drops by more than ``slack``.

    ``slack`` is the bound less ``need``, plus the rounding of ``drop``. Returns UNCHANGED, SHAVED or EMPTY.
    """
    lo, hi, mask, off, is_mask = stack.lo[d], stack.hi[d], stack.mask[d], cells.off, cells.is_mask
    changed = UNCHANGED
    for j in range(lo.shape[0]):
        f = off[j]
        if is_mask[j]:
            for k in range(off[j + 1] - f):
                if (mask[j] >> k) & 1 and drop[0, f + k] > slack:
                    mask[j] &= ~(np.int64(1) << k)
                    record_shaving(j, np.int64(1) << k, 0, registers, proof)
                    changed = SHAVED
            if mask[j] == 0:
                return EMPTY
            continue
        a, b = lo[j], hi[j]
        if a == b:
            continue
        c = lo[j]
        while c < hi[j] and drop[0, f + c] > slack:
            a = c + 1
            c += 1
        c = hi[j]
        while c > lo[j] and drop[1, f + c] > slack:
            b = c - 1
            c -= 1
        if a > lo[j]:
            record_shaving(j, a - 1, 0, registers, proof)
        if a > b:
            return EMPTY
        if b < hi[j]:
            record_shaving(j, b, 1, registers, proof)
        if a > lo[j] or b < hi[j]:
            lo[j], hi[j] = a, b
            changed = SHAVED
    return changed


@kernel
def choose_branching(d, total, distance, limit, cells, stack, work):
    """Choose the branching with the best product of what both sides gain; False where the box is a single point.

    A side gains by the drop of its bound (as a share of what may be lost), by the share of leaves that go, and the side away from the
    nearest point by the rise of its cost (as a share of what is left up to the limit). Only a choice: nothing is pruned by it.
    """
    stack_lo, stack_hi, stack_mask, point, off = stack.lo, stack.hi, stack.mask, stack.point, cells.off
    add, top, active, is_mask, feature = cells.add, cells.top, stack.active, cells.is_mask, stack.feature
    at, near_side, drop, eliminated = stack.at, stack.near_side, work.drop, work.eliminated
    lo, hi, mask, near = stack_lo[d], stack_hi[d], stack_mask[d], point[d]
    cost, first, second, where = cost_parts(near, cells)
    room = 1.0 / max(limit - distance, 1e-300)
    scale = 1.0 / max(total, 1e-300)
    share = 1.0 / max(active[d], 1)
    best = -1.0
    for j in range(lo.shape[0]):
        f = off[j]
        rest = cost - add[f + near[j]]
        other = second if j == where else first
        if is_mask[j]:
            if mask[j] & (mask[j] - 1) == 0:
                continue
            away = FAR
            for k in range(off[j + 1] - f):
                if (mask[j] >> k) & 1 and k != near[j]:
                    away = min(away, add[f + k] + max(other, top[f + k]))
            for k in range(off[j + 1] - f):
                if (mask[j] >> k) & 1 == 0:
                    continue
                alone = min(drop[0, f + k], 1e50) * scale + eliminated[0, f + k] * share
                others = min(drop[1, f + k], 1e50) * scale + eliminated[1, f + k] * share
                if k == near[j]:
                    others += (rest + away - distance) * room
                else:
                    alone += (rest + add[f + k] + max(other, top[f + k]) - distance) * room
                score = (alone + 1e-3) * (others + 1e-3)
                if score > best:
                    best = score
                    feature[d] = j
                    at[d] = np.int64(1) << k
                    near_side[d] = 0 if k == near[j] else 1
            continue
        for c in range(lo[j], hi[j]):
            left = min(drop[0, f + c], 1e50) * scale + eliminated[0, f + c] * share
            right = min(drop[1, f + c + 1], 1e50) * scale + eliminated[1, f + c + 1] * share
            if near[j] <= c:
                right += (rest + add[f + c + 1] + max(other, top[f + c + 1]) - distance) * room
            else:
                left += (rest + add[f + c] + max(other, top[f + c]) - distance) * room
            score = (left + 1e-3) * (right + 1e-3)
            if score > best:
                best = score
                feature[d] = j
                at[d] = c
                near_side[d] = 0 if near[j] <= c else 1
    return best >= 0.0


@kernel
def branch_to_differ(d, condition, cells, stack):
    """Branch so that the nearest point of one side comes closer to fulfilling a condition; False where no cell can.

    Of the cells that count as different, in features that do not differ yet, the cheapest is separated from the nearest point.
    """
    stack_lo, stack_hi, stack_mask, point, off = stack.lo, stack.hi, stack.mask, stack.point, cells.off
    differs, is_mask, add, top, feature = cells.differs, cells.is_mask, cells.add, cells.top, stack.feature
    at, near_side = stack.at, stack.near_side
    lo, hi, mask, near = stack_lo[d], stack_hi[d], stack_mask[d], point[d]
    best = FAR
    for j in range(lo.shape[0]):
        f = off[j]
        if differs[condition, f + near[j]] == 1:
            continue
        for k in range(off[j + 1] - f):
            inside = (mask[j] >> k) & 1 == 1 if is_mask[j] else lo[j] <= k <= hi[j]
            cost = add[f + k] + top[f + k]
            if inside and differs[condition, f + k] == 1 and cost < best:
                best = cost
                feature[d] = j
                if is_mask[j]:
                    at[d] = np.int64(1) << near[j]
                    near_side[d] = 0
                elif k > near[j]:
                    at[d] = k - 1
                    near_side[d] = 0
                else:
                    at[d] = k
                    near_side[d] = 1
    return best < FAR


@kernel
def branch_to_save(d, b, cells, stack):
    """Branch so that the nearest point of one side spends less of a budget; False where no cell of the box does.

    The feature whose nearest cell spends most more than it must is cut half way to the cell that spends least.
    """
    box, near = CellBox(stack.lo[d], stack.hi[d], stack.mask[d]), stack.point[d]
    most = 0.0
    for j in range(near.shape[0]):
        saved = cells.spend[b, cells.off[j] + near[j]] - least_spent(b, j, box, cells)
        if saved <= most:
            continue
        most = saved
        stack.feature[d] = j
        if cells.is_mask[j]:
            stack.at[d] = np.int64(1) << near[j]
            stack.near_side[d] = 0
        else:
            c = min(max(cells.thrifty[b, j], box.lo[j]), box.hi[j])
            stack.at[d] = (near[j] + c) // 2
            stack.near_side[d] = 0 if near[j] < c else 1
    return most > 0.0


@kernel
def branch_to_fulfil(d, cells, stack):
    """Branch so that the nearest point of one side comes closer to fulfilling what it fails; False where it fails nothing, or none can."""
    failed = failed_condition(stack.point[d], cells)
    if failed >= 0:
        return branch_to_differ(d, failed, cells, stack)
    exceeded = exceeded_budget(stack.point[d], cells)
    return exceeded >= 0 and branch_to_save(d, exceeded, cells, stack)


@kernel
def enter_child(d, side, cells, stack):
    """Make depth d + 1 one side of the branching of depth d: 0 up to the cell, or the level alone; 1 the rest."""
    e = d + 1
    stack.lo[e] = stack.lo[d]
    stack.hi[e] = stack.hi[d]
    stack.mask[e] = stack.mask[d]
    j = stack.feature[d]
    if cells.is_mask[j]:
        stack.mask[e, j] &= stack.at[d] if side == 0 else ~stack.at[d]
    elif side == 0:
        stack.hi[e, j] = stack.at[d]
    else:
        stack.lo[e, j] = stack.at[d] + 1


# ---- the search


@kernel
def evaluate_nearest(d, cells, trees, goal, stack, state, scores):
    """Evaluate the nearest point of a box: COUNTERFACTUAL (the incumbent, if it is nearer), REFUSED, UNDECIDED or IMPOSSIBLE.

    An undecided point that fulfils every condition is logged for the real model to decide.
    """
    registers, reals = state.registers, state.reals
    near = stack.point[d]
    score_point(near, cells, trees, goal, scores)
    possible = sure = True
    for k in range(scores.most.shape[0]):
        possible = possible and scores.most[k] >= goal.need[k]
        sure = sure and scores.least[k] >= goal.sure[k]
    if not possible:
        return IMPOSSIBLE
    fails = failed_condition(near, cells) >= 0 or exceeded_budget(near, cells) >= 0
    cost = cost_of(near, cells)
    if not sure:
        if not fails:
            state.log_point[registers[LOGGED]] = near
            state.log_cost[registers[LOGGED]] = cost
            registers[LOGGED] += 1
            if registers[LOGGED] == state.log_cost.shape[0]:
                # The caller empties the log before it resumes the search.
                registers[STATUS] = LOG_FULL
        return UNDECIDED
    if fails:
        return REFUSED
    if cost < reals[LIMIT]:
        reals[LIMIT] = cost
        state.best[:] = near
        registers[FOUND] = 1
    return COUNTERFACTUAL


@kernel
def record_branching(d, stack, registers, proof):
    """Write the branching of depth d behind what is recorded."""
    proof.code[registers[RECORDED]] = 2 * stack.feature[d] + stack.near_side[d]
    proof.at[registers[RECORDED]] = stack.at[d]
    registers[RECORDED] += 1


@kernel
def advance(budget, state, cells, leaves, trees, goal, stack, work, proof):
    """Run the branch and bound for at most ``budget`` nodes, or until none is left, room runs out or the log is full.

    ``state.reals[LIMIT]`` is the radius: that of the ball, then the cost of the incumbent. Where ``proof`` has room at all, the branching
    is written into it.
    """
    registers, reals = state.registers, state.reals
    margins = goal.need.shape[0]
    features = cells.own.shape[0]
    records = proof.code.shape[0] > 0
    # The most that one round of shaving and branching writes.
    room = 4 * cells.off[features] + 8
    totals = np.empty(margins)
    scores = Scores(np.empty(features, np.int64), np.empty(margins), np.empty(margins))
    spent = 0
    while registers[DEPTH] >= 0 and registers[STATUS] == RUNNING:
        d = registers[DEPTH]
        if registers[FRESH] == 0:
            # Back from a child: enter the other one, the one away from the nearest point, or go up.
            if stack.state[d] == 2:
                registers[DEPTH] -= 1
            else:
                stack.state[d] = 2
                enter_child(d, 1 - stack.near_side[d], cells, stack)
                registers[DEPTH] = d + 1
                registers[FRESH] = 1
            continue
        if spent == budget:
            return
        spent += 1
        registers[NODES] += 1
        source = 0 if d == 0 else d - 1
        free = find_free(d, cells, stack, work)
        tight = 0
        slack = 0.0
        pruned = False
        distance = 0.0
        while True:
            if records and registers[RECORDED] + room > proof.code.shape[0]:
                # What was shaved off is recorded and gone from the box, so that the node may begin anew.
                registers[STATUS] = PROOF_FULL
                return
            limit = reals[LIMIT]
            box = CellBox(stack.lo[d], stack.hi[d], stack.mask[d])
            distance = shrink_to_ball(limit, box, cells, stack.point[d])
            if distance >= limit:
                pruned = True
                break
            if not can_differ(box, cells):
                pruned = True
                break
            test = leaf_test(d, limit, free, cells, leaves, stack, work)
            if margins == 1:
                few = find_moved(d, source, limit, cells, stack, work) if d > 0 else 0
                note_filtered(d, limit, stack, work)
                moved = work.moved[: max(few, 0)]
                outcome = filter_leaves_sorted(d, source, test, moved, leaves, goal, stack, work, totals)
            else:
                outcome = filter_leaves(d, source, test, leaves, goal, stack, work, totals)
            if outcome == NO_ROOM:
                registers[STATUS] = FULL
                return
            if outcome == PRUNED:
                pruned = True
                break
            source = d
            # Branch by the margin whose bound is nearest to failing.
            tight = 0
            for k in range(1, margins):
                if totals[k] - goal.need[k] < totals[tight] - goal.need[tight]:
                    tight = k
            slack = totals[tight] - goal.need[tight]
            if margins == 1:
                bound_sides_sorted(d, slack, free, cells, leaves, stack, work)
            else:
                bound_sides(d, tight, slack, cells, leaves, stack, work)
            changed = shave(d, slack + goal.pad, cells, stack, work.drop, registers, proof)
            if changed == EMPTY:
                pruned = True
                break
            if changed == UNCHANGED:
                break
        if not pruned:
            # The nearest point of the parent was evaluated there.
            same = d > 0
            if same:
                for j in range(features):
                    if stack.point[d, j] != stack.point[d - 1, j]:
                        same = False
                        break
            outcome = -1
            if not same or stack.active[d] == 0:
                outcome = evaluate_nearest(d, cells, trees, goal, stack, state, scores)
            if outcome == COUNTERFACTUAL:
                # No point of the box is nearer.
                pruned = True
                if reals[LIMIT] < reals[RESTART_BELOW]:
                    registers[STATUS] = RESTART
            elif stack.active[d] == 0:
                # The score is one constant on the box: only a condition can still tell its points apart.
                pruned = outcome == IMPOSSIBLE or not branch_to_fulfil(d, cells, stack)
            elif outcome == REFUSED and branch_to_fulfil(d, cells, stack):
                pruned = False
            else:
                pruned = not choose_branching(d, slack, distance, reals[LIMIT], cells, stack, work)
        if pruned:
            if records:
                proof.code[registers[RECORDED]] = -1
                registers[RECORDED] += 1
            registers[DEPTH] -= 1
            registers[FRESH] = 0
            continue
        if d + 2 >= stack.lo.shape[0]:
            registers[STATUS] = FULL
            return
        if records:
            record_branching(d, stack, registers, proof)
        stack.state[d] = 1
        # Depth first, the side of the nearest point before the other: good incumbents come early.
        enter_child(d, stack.near_side[d], cells, stack)
        registers[DEPTH] = d + 1
