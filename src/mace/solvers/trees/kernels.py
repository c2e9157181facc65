"""The numba kernels of the tree lane: cost tables, the leaves inside a ball, and the branch and bound over them.

Features are of two sorts. An *ordered* feature has cells in order; a box holds a range of them, and the cost does not
decrease away from the cell ``own``. A *mask* feature has at most 62 levels without order; a box holds a set of them
as the bits of an integer.

The cost of a point is the sum of ``add`` over its cells plus the greatest ``top`` among them. The score of a point,
for each margin k, is ``base[k]`` plus the values of its leaves; it can only be in the goal where every score is at
least ``need[k]``.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from mace.solvers.compiled import kernel

FAR = 1e300

Trees = namedtuple("Trees", "roots feature bound subset left right missing_left most least")
"""The ensemble over base cells: the feature of a node (-1 at a leaf), its first cell on the right (ordered) or its
levels on the left (mask), and the most and the least that a leaf may add to each margin, rounding included."""

Cells = namedtuple("Cells", "is_mask is_missing mask_of off add top own base_cell differs at_least")
"""The features of one search: costs of their cells, the base cell of each, and where a condition counts it as different."""

Leaves = namedtuple("Leaves", "box_lo box_hi box_mask gain")
"""The leaves inside the ball: their boxes and what they add to each margin."""

Stack = namedtuple(
    "Stack",
    "arena lo hi mask first last active top const state feature at near_side point at_first loose closed reach level",
)
"""The open boxes, one a depth: their ranges, the useful leaves of each tree, and how they are cut in two."""

Proof = namedtuple("Proof", "code at")
"""The branching in the order of its nodes, where it is recorded: -1 for a box that is closed, or twice the feature of a cut, plus which
side comes next; and the cut itself."""

Goal = namedtuple("Goal", "base need sure pad")
"""What the scores start from, what the most must reach to be possible and the least to be sure, and how far rounding
may be off in the sums made here."""


@kernel
def cost_tables(
    factual, was_missing, is_missing, is_mask, is_category, off, clo, chi, allowed_lo, allowed_hi, allowed_mask, inverse_range,
    jump, slope, square, peak, add, top, rep, own, lo, hi, mask,
):  # fmt: skip
    """Fill in the cost and the representative of every cell, the cheapest cell and the allowed range of every feature.

    Returns False where some feature has no allowed cell.
    """
    features = factual.shape[0]
    for j in range(features):
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
                alive = (allowed_mask[j] >> k) & 1 == 1
            else:
                a = max(clo[c], allowed_lo[j])
                b = min(chi[c], allowed_hi[j])
                alive = a <= b
                value = min(max(factual[j], a), b)
            if not alive:
                add[c] = FAR
                top[c] = FAR
                continue
            rep[c] = value
            delta = abs(value - factual[j]) * inverse_range[j]
            if is_category[j] and value != factual[j]:
                delta = 1.0 if inverse_range[j] > 0.0 else 0.0
            if was_missing[j]:
                delta = 1.0
            add[c] = slope[j] * delta + square[j] * delta * delta
            if delta > 0.0:
                add[c] += jump[j]
            top[c] = peak[j] * delta
            if add[c] + top[c] < best:
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
def extent(lo, hi, own, is_mask, off, add, top):
    """Return the cost of the nearest allowed point, the least cost of any change (0 where there is none), and a cost above every one."""
    total = peak = all_total = all_peak = 0.0
    step = FAR
    for j in range(lo.shape[0]):
        total += add[off[j] + own[j]]
        peak = max(peak, top[off[j] + own[j]])
        most = 0.0
        for c in range(off[j], off[j + 1]):
            if add[c] >= FAR:
                continue
            cost = add[c] + top[c]
            if 0.0 < cost < step:
                step = cost
            if is_mask[j] or lo[j] <= c - off[j] <= hi[j]:
                most = max(most, add[c])
                all_peak = max(all_peak, top[c])
        all_total += most
    return total + peak, 0.0 if step == FAR else step, 2.0 * (all_total + all_peak) + 1.0


@kernel
def cheapest(j, lo, hi, mask, own, is_mask, off, add, top):
    """Return the cheapest cell of feature j within a box."""
    if not is_mask[j]:
        return min(max(own[j], lo[j]), hi[j])
    if (mask[j] >> own[j]) & 1:
        return own[j]
    best = -1
    for k in range(off[j + 1] - off[j]):
        if (mask[j] >> k) & 1 and (
            best < 0 or add[off[j] + k] + top[off[j] + k] < add[off[j] + best] + top[off[j] + best]
        ):
            best = k
    return best


@kernel
def shrink_to_ball(limit, lo, hi, mask, own, is_mask, off, add, top, near):
    """Shrink a box to the ball of radius ``limit``; return its distance and write its nearest cells into ``near``."""
    features = lo.shape[0]
    total = 0.0
    first = 0.0
    second = 0.0
    where = -1
    for j in range(features):
        c = cheapest(j, lo, hi, mask, own, is_mask, off, add, top)
        near[j] = c
        total += add[off[j] + c]
        t = top[off[j] + c]
        if t > first:
            second = first
            first = t
            where = j
        elif t > second:
            second = t
    distance = total + first
    if distance >= limit:
        return distance
    for j in range(features):
        f = off[j]
        c = near[j]
        rest = total - add[f + c]
        other = second if j == where else first
        if is_mask[j]:
            kept = np.int64(0)
            for k in range(off[j + 1] - f):
                if (mask[j] >> k) & 1 and (k == c or rest + add[f + k] + max(other, top[f + k]) < limit):
                    kept |= np.int64(1) << k
            mask[j] = kept
        elif lo[j] < hi[j]:
            a = lo[j]
            while a < c and rest + add[f + a] + max(other, top[f + a]) >= limit:
                a += 1
            lo[j] = a
            b = hi[j]
            while b > c and rest + add[f + b] + max(other, top[f + b]) >= limit:
                b -= 1
            hi[j] = b
    return distance


@kernel
def collect(
    limit, lo, hi, mask, cells, start, base_off, trees, depth_limit, tree_start, leaf, box_lo, box_hi, box_mask, dropped
):
    """Write down the leaves whose box comes nearer than ``limit``, with that box; return their number, or -1 where they do not fit.

    ``dropped[0]`` becomes the least cost of what was left out: up to that radius, the same leaves would be found.
    """
    dropped[0] = FAR
    is_mask, is_missing, off, add, top = cells.is_mask, cells.is_missing, cells.off, cells.add, cells.top
    own, mask_of, roots, missing_left = cells.own, cells.mask_of, trees.roots, trees.missing_left
    feature, bound, subset, left, right = trees.feature, trees.bound, trees.subset, trees.left, trees.right
    features = lo.shape[0]
    capacity = leaf.shape[0]
    count = 0
    slack = limit * (1.0 + 1e-12) + 1e-15
    node_stack = np.empty(2 * depth_limit + 4, np.int64)
    depth_stack = np.empty(2 * depth_limit + 4, np.int64)
    side_stack = np.empty(2 * depth_limit + 4, np.int64)
    cost_stack = np.empty(2 * depth_limit + 4, np.float64)
    peak_stack = np.empty(2 * depth_limit + 4, np.float64)
    done_feature = np.empty(depth_limit + 2, np.int64)
    done_lo = np.empty(depth_limit + 2, np.int64)
    done_hi = np.empty(depth_limit + 2, np.int64)
    cur_lo = lo.copy()
    cur_hi = hi.copy()
    cur_mask = mask.copy()
    start_cost = 0.0
    start_peak = 0.0
    for j in range(features):
        c = off[j] + cheapest(j, lo, hi, mask, own, is_mask, off, add, top)
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
                j = done_feature[depth]
                if j >= 0:
                    if is_mask[j]:
                        cur_mask[j] = done_lo[depth]
                    else:
                        cur_lo[j] = done_lo[depth]
                        cur_hi[j] = done_hi[depth]
            side = side_stack[size]
            if side >= 0:
                # Apply the split of the parent, whose number stands in the side's upper bits.
                parent = side >> 1
                j = feature[parent]
                done_feature[depth] = -1
                if not is_missing[j]:
                    done_feature[depth] = j
                    if is_mask[j]:
                        done_lo[depth] = cur_mask[j]
                        cur_mask[j] &= subset[parent] if side & 1 == 0 else ~subset[parent]
                    else:
                        done_lo[depth] = cur_lo[j]
                        done_hi[depth] = cur_hi[j]
                        at = start[base_off[j] + bound[parent]]
                        if side & 1 == 0:
                            cur_hi[j] = min(cur_hi[j], at - 1)
                        else:
                            cur_lo[j] = max(cur_lo[j], at)
                depth += 1
            j = feature[node]
            if j < 0:
                if count >= capacity:
                    return -1
                leaf[count] = node
                for i in range(features):
                    box_lo[count, i] = cur_lo[i]
                    box_hi[count, i] = cur_hi[i]
                    if is_mask[i]:
                        box_mask[count, mask_of[i]] = cur_mask[i]
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
            here = cheapest(j, cur_lo, cur_hi, cur_mask, own, is_mask, off, add, top)
            for goes in range(2):
                if is_mask[j]:
                    kept = cur_mask[j] & (subset[node] if goes == 0 else ~subset[node])
                    if kept == 0:
                        continue
                    saved = cur_mask[j]
                    cur_mask[j] = kept
                    c = cheapest(j, cur_lo, cur_hi, cur_mask, own, is_mask, off, add, top)
                    cur_mask[j] = saved
                else:
                    at = start[base_off[j] + bound[node]]
                    a = cur_lo[j] if goes == 0 else max(cur_lo[j], at)
                    b = min(cur_hi[j], at - 1) if goes == 0 else cur_hi[j]
                    if a > b:
                        continue
                    c = min(max(own[j], a), b)
                new_cost = cost - add[f + here] + add[f + c]
                new_peak = max(peak, top[f + c])
                if new_cost + new_peak < slack:
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
            j = done_feature[depth]
            if j >= 0:
                if is_mask[j]:
                    cur_mask[j] = done_lo[depth]
                else:
                    cur_lo[j] = done_lo[depth]
                    cur_hi[j] = done_hi[depth]
    tree_start[roots.shape[0]] = count
    return count


@kernel
def compress(count, lo, hi, cells, cut, box_lo, box_hi, new_off, new_add, new_top, new_rep, new_first, new_own):
    """Merge neighbouring cells that no collected leaf tells apart; a block costs what its cheapest cell costs.

    ``cut`` marks cells before which a block must begin (where a condition tells the cells apart). Boxes are rewritten in blocks.
    """
    own, is_mask, off, add, top = cells.own, cells.is_mask, cells.off, cells.add, cells.top
    features = lo.shape[0]
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
                new_rep[size] = k
                new_first[size] = k
                size += 1
            new_own[j] = own[j]
            continue
        for k in range(lo[j], hi[j] + 1):
            if k == lo[j] or marks[f + k] == 1 or cut[f + k] == 1:
                new_add[size] = add[f + k]
                new_top[size] = top[f + k]
                new_rep[size] = k
                new_first[size] = k
                size += 1
            elif add[f + k] + top[f + k] < new_add[size - 1] + new_top[size - 1]:
                new_add[size - 1] = add[f + k]
                new_top[size - 1] = top[f + k]
                new_rep[size - 1] = k
            block[f + k] = size - 1 - new_off[j]
        new_own[j] = block[f + min(max(own[j], lo[j]), hi[j])]
    new_off[features] = size
    for i in range(count):
        for j in range(features):
            if not is_mask[j]:
                box_lo[i, j] = block[off[j] + box_lo[i, j]]
                box_hi[i, j] = block[off[j] + box_hi[i, j]]
    return size


@kernel
def sort_leaves(tree_start, gain, order):
    """Write the leaves of each tree in the order of what they add to the first margin, greatest first."""
    for t in range(tree_start.shape[0] - 1):
        a, b = tree_start[t], tree_start[t + 1]
        order[a:b] = a + np.argsort(-gain[a:b, 0], kind="mergesort")


@kernel
def scores_at(point, cells, trees, goal, most, least):
    """Write the most and the least that the scores of a point, given by its base cells, may be."""
    base, roots, feature, is_missing, missing_left = (
        goal.base,
        trees.roots,
        trees.feature,
        cells.is_missing,
        trees.missing_left,
    )
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
def is_sure(point, base_point, cells, trees, goal, most, least):
    """Return whether a point, given by its cells, is surely in the goal and fulfils every condition."""
    for j in range(point.shape[0]):
        base_point[j] = cells.base_cell[cells.off[j] + point[j]]
    scores_at(base_point, cells, trees, goal, most, least)
    for k in range(least.shape[0]):
        if least[k] < goal.sure[k]:
            return False
    return failed_condition(point, cells) < 0


@kernel
def pull_back(point, cells, trees, goal, lo, hi, mask, base_point, most, least):
    """Move a point of the goal towards the factual, feature by feature, as long as it stays in the goal."""
    for _ in range(3):
        moved = False
        for j in range(point.shape[0]):
            f = cells.off[j]
            now = point[j]
            if now == cells.own[j]:
                continue
            point[j] = cells.own[j]
            if is_sure(point, base_point, cells, trees, goal, most, least):
                moved = True
                continue
            point[j] = now
            if cells.is_mask[j]:
                for k in range(cells.off[j + 1] - f):
                    if (mask[j] >> k) & 1 and cells.add[f + k] + cells.top[f + k] < cells.add[f + now] + cells.top[
                        f + now
                    ]:
                        point[j] = k
                        if is_sure(point, base_point, cells, trees, goal, most, least):
                            now = k
                            moved = True
                        else:
                            point[j] = now
                continue
            outside, inside = cells.own[j], now
            while abs(inside - outside) > 1:
                middle = (inside + outside) // 2
                point[j] = middle
                if is_sure(point, base_point, cells, trees, goal, most, least):
                    inside = middle
                    moved = True
                else:
                    outside = middle
            point[j] = inside
        if not moved:
            break


@kernel
def seek(tries, most_found, lo, hi, mask, cells, trees, goal, best):
    """Look for some point of the goal: random points, each pulled back towards the factual; return the least cost found.

    No bound comes of this; it gives the search a radius, and the user an answer where the search runs out of time.
    """
    features = lo.shape[0]
    margins = goal.need.shape[0]
    most, least = np.empty(margins), np.empty(margins)
    point, base_point = np.empty(features, np.int64), np.empty(features, np.int64)
    cheapest_cost = FAR
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
                while not (mask[j] >> k) & 1:
                    k = (k + 1) % size
                point[j] = k
            else:
                point[j] = lo[j] + draw % (hi[j] - lo[j] + 1)
        if not is_sure(point, base_point, cells, trees, goal, most, least):
            continue
        pull_back(point, cells, trees, goal, lo, hi, mask, base_point, most, least)
        cost = 0.0
        peak = 0.0
        for j in range(features):
            cost += cells.add[cells.off[j] + point[j]]
            peak = max(peak, cells.top[cells.off[j] + point[j]])
        if cost + peak < cheapest_cost:
            cheapest_cost = cost + peak
            best[:] = point
        good += 1
        if good == most_found:
            break
    return cheapest_cost


@kernel
def find_open(d, cells, stack):
    """Write down the features of the box that are not down to one cell, with the one just cut, and what the others cost."""
    stack_lo, stack_hi, stack_mask, feature, is_mask = stack.lo, stack.hi, stack.mask, stack.feature, cells.is_mask
    loose, off, own, add, top = stack.loose, cells.off, cells.own, cells.add, cells.top
    closed = stack.closed
    lo, hi, mask = stack_lo[d], stack_hi[d], stack_mask[d]
    count = 0
    total = peak = 0.0
    just_cut = -1 if d == 0 else feature[d - 1]
    for j in range(lo.shape[0]):
        several = mask[j] & (mask[j] - 1) != 0 if is_mask[j] else lo[j] < hi[j]
        if several or j == just_cut or d == 0:
            loose[count] = j
            count += 1
        else:
            c = off[j] + cheapest(j, lo, hi, mask, own, is_mask, off, add, top)
            total += add[c]
            peak = max(peak, top[c])
    closed[0] = total
    closed[1] = peak
    return count


@kernel
def is_compatible(
    i, limit, lo, hi, mask, own, is_mask, mask_of, off, add, top, box_lo, box_hi, box_mask, opened, total, peak
):
    """Return whether a leaf, known to hold the features that are not loose (which cost ``total`` and ``peak``), meets the box
    within the ball."""
    for o in range(opened.shape[0]):
        j = opened[o]
        f = off[j]
        if is_mask[j]:
            both = mask[j] & box_mask[i, mask_of[j]]
            if both == 0:
                return False
            c = own[j]
            if not (both >> c) & 1:
                c = -1
                for k in range(off[j + 1] - f):
                    if (both >> k) & 1 and (c < 0 or add[f + k] + top[f + k] < add[f + c] + top[f + c]):
                        c = k
        else:
            a = max(box_lo[i, j], lo[j])
            b = min(box_hi[i, j], hi[j])
            if a > b:
                return False
            c = min(max(own[j], a), b)
        total += add[f + c]
        if top[f + c] > peak:
            peak = top[f + c]
    return total + peak < limit


@kernel
def covers(i, lo, hi, mask, is_mask, mask_of, box_lo, box_hi, box_mask, opened):
    """Return whether a leaf, known to hold the features that are not loose, holds the whole box."""
    for o in range(opened.shape[0]):
        j = opened[o]
        if is_mask[j]:
            if mask[j] & ~box_mask[i, mask_of[j]] != 0:
                return False
        elif box_lo[i, j] > lo[j] or box_hi[i, j] < hi[j]:
            return False
    return True


@kernel
def can_differ(lo, hi, mask, cells):
    """Return whether some point of the box can fulfil every condition, each taken alone."""
    at_least, off, is_mask, differs = cells.at_least, cells.off, cells.is_mask, cells.differs
    for i in range(at_least.shape[0]):
        most = 0
        for j in range(lo.shape[0]):
            f = off[j]
            for k in range(off[j + 1] - f):
                inside = (mask[j] >> k) & 1 == 1 if is_mask[j] else lo[j] <= k <= hi[j]
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
            count += differs[i, off[j] + point[j]]
        if count < at_least[i]:
            return i
    return -1


@kernel
def keep_useful_leaves(d, source, limit, cells, leaves, goal, stack, totals, peaks, opened):
    """Filter the leaves of depth ``source`` into depth ``d``: those that meet the box and can still be part of the goal.

    Returns 0, 1 where the box holds no point of the goal, 2 where the arena is full.
    """
    loose, closed, need, stack_lo, stack_hi = stack.loose, stack.closed, goal.need, stack.lo, stack.hi
    stack_mask, stack_top, const, stack_active, last = stack.mask, stack.top, stack.const, stack.active, stack.last
    first, gain = stack.first, leaves.gain
    own, is_mask, mask_of = cells.own, cells.is_mask, cells.mask_of
    off, add, top = cells.off, cells.add, cells.top
    box_lo, box_hi, box_mask = leaves.box_lo, leaves.box_hi, leaves.box_mask
    open_now = loose[:opened]
    closed_cost, closed_peak = closed[0], closed[1]
    margins = need.shape[0]
    lo, hi, mask, arena = stack_lo[d], stack_hi[d], stack_mask[d], stack.arena
    begin_all = 0 if d == 0 else stack_top[d - 1]
    write = begin_all
    for k in range(margins):
        totals[k] = const[source, k]
    for a in range(stack_active[source]):
        begin = write
        if source != d and write + last[source, a] - first[source, a] > arena.shape[0]:
            return 2
        for k in range(margins):
            peaks[a, k] = -FAR
        for q in range(first[source, a], last[source, a]):
            i = arena[q]
            if is_compatible(
                i,
                limit,
                lo,
                hi,
                mask,
                own,
                is_mask,
                mask_of,
                off,
                add,
                top,
                box_lo,
                box_hi,
                box_mask,
                open_now,
                closed_cost,
                closed_peak,
            ):
                arena[write] = i
                write += 1
                for k in range(margins):
                    peaks[a, k] = max(peaks[a, k], gain[i, k])
        if write == begin:
            return 1
        first[d, a] = begin
        last[d, a] = write
        for k in range(margins):
            totals[k] += peaks[a, k]
    for k in range(margins):
        if totals[k] < need[k]:
            return 1
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
                if totals[k] - peaks[a, k] + gain[i, k] < need[k]:
                    useful = False
            if useful:
                arena[write] = i
                write += 1
        if write == begin:
            return 1
        only = arena[begin]
        if write - begin == 1 and covers(only, lo, hi, mask, is_mask, mask_of, box_lo, box_hi, box_mask, open_now):
            for k in range(margins):
                const[d, k] += gain[only, k]
            write = begin
        else:
            first[d, active] = begin
            last[d, active] = write
            for k in range(margins):
                peaks[active, k] = peaks[a, k]
            active += 1
    stack_active[d] = active
    stack_top[d] = write
    return 0


@kernel
def keep_useful_sorted(d, source, limit, cells, leaves, goal, stack, totals, peaks, opened):
    """Do what :func:`keep_useful_leaves` does for a single margin, with lists sorted by gain: the first that fits is the greatest."""
    loose, closed, stack_lo, stack_hi, stack_mask = stack.loose, stack.closed, stack.lo, stack.hi, stack.mask
    const, stack_active, first, stack_last, at_first = (
        stack.const,
        stack.active,
        stack.first,
        stack.last,
        stack.at_first,
    )
    gain, need, stack_top = leaves.gain, goal.need, stack.top
    own, is_mask, mask_of = cells.own, cells.is_mask, cells.mask_of
    off, add, top = cells.off, cells.add, cells.top
    box_lo, box_hi, box_mask = leaves.box_lo, leaves.box_hi, leaves.box_mask
    open_now = loose[:opened]
    closed_cost, closed_peak = closed[0], closed[1]
    lo, hi, mask, arena = stack_lo[d], stack_hi[d], stack_mask[d], stack.arena
    total = const[source, 0]
    count = stack_active[source]
    for a in range(count):
        q, last = first[source, a], stack_last[source, a]
        while q < last and not is_compatible(
            arena[q],
            limit,
            lo,
            hi,
            mask,
            own,
            is_mask,
            mask_of,
            off,
            add,
            top,
            box_lo,
            box_hi,
            box_mask,
            open_now,
            closed_cost,
            closed_peak,
        ):
            q += 1
        if q == last:
            return 1
        at_first[a] = q
        peaks[a, 0] = gain[arena[q], 0]
        total += peaks[a, 0]
    totals[0] = total
    if total < need[0]:
        return 1
    slack = total - need[0]
    constant = const[source, 0]
    write = 0 if d == 0 else stack_top[d - 1]
    active = 0
    for a in range(count):
        begin = write
        q, last = at_first[a], stack_last[source, a]
        if source != d and write + last - q > arena.shape[0]:
            return 2
        peak = peaks[a, 0]
        while q < last:
            i = arena[q]
            if peak - gain[i, 0] > slack:
                break
            if q == at_first[a] or is_compatible(
                i,
                limit,
                lo,
                hi,
                mask,
                own,
                is_mask,
                mask_of,
                off,
                add,
                top,
                box_lo,
                box_hi,
                box_mask,
                open_now,
                closed_cost,
                closed_peak,
            ):
                arena[write] = i
                write += 1
            q += 1
        only = arena[begin]
        if write - begin == 1 and covers(only, lo, hi, mask, is_mask, mask_of, box_lo, box_hi, box_mask, open_now):
            constant += peak
            write = begin
        else:
            first[d, active] = begin
            stack_last[d, active] = write
            peaks[active, 0] = peak
            active += 1
    const[d, 0] = constant
    stack_active[d] = active
    stack_top[d] = write
    return 0


@kernel
def bound_cuts_sorted(d, slack, cells, leaves, stack, peaks, drop, soft, empty, opened):
    """Do what :func:`bound_cuts` does for a single margin, with lists sorted by gain: only where the bound changes is something written.

    ``empty`` counts the trees that have no leaf on a side.
    """
    stack_lo, stack_hi, stack_mask, off, loose = stack.lo, stack.hi, stack.mask, cells.off, stack.loose
    is_mask, reach, active, stack_first, stack_last = cells.is_mask, stack.reach, stack.active, stack.first, stack.last
    gain, mask_of, box_mask, level, box_lo = leaves.gain, cells.mask_of, leaves.box_mask, stack.level, leaves.box_lo
    box_hi = leaves.box_hi
    lo, hi, mask, arena = stack_lo[d], stack_hi[d], stack_mask[d], stack.arena
    features = lo.shape[0]
    for j in range(features):
        first, last = (0, off[j + 1] - off[j] - 1) if is_mask[j] else (lo[j], hi[j])
        for c in range(off[j] + first, off[j] + last + 1):
            drop[0, c] = drop[1, c] = soft[0, c] = soft[1, c] = 0.0
            empty[0, c] = empty[1, c] = 0
    ranges = 0
    for o in range(opened):
        j = loose[o]
        if not is_mask[j] and lo[j] < hi[j]:
            reach[ranges, 0] = j
            ranges += 1
    for a in range(active[d]):
        first, last = stack_first[d, a], stack_last[d, a]
        peak = peaks[a, 0]
        weight = 0.0
        for q in range(first, last):
            weight += gain[arena[q], 0] - peak + slack
        weight = 1.0 / max(weight, 1e-300)
        for o in range(opened):
            j = loose[o]
            if not is_mask[j] or mask[j] & (mask[j] - 1) == 0:
                continue
            f = off[j]
            m = mask_of[j]
            touched = False
            for q in range(first, last):
                if mask[j] & ~box_mask[arena[q], m] != 0:
                    touched = True
                    break
            if not touched:
                continue
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
                        soft[0, f + k] += (v - peak + slack) * weight
                    elif not alone:
                        alone = True
                        drop[0, f + k] += peak - v
                    if both & ~bit == 0:
                        soft[1, f + k] += (v - peak + slack) * weight
                    elif not others:
                        others = True
                        drop[1, f + k] += peak - v
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
            fall = peak - gain[i, 0]
            w = (slack - fall) * weight
            for r in range(ranges):
                j = reach[r, 0]
                f = off[j]
                begin = box_lo[i, j]
                end = box_hi[i, j]
                if begin > lo[j]:
                    soft[0, f + begin - 1] += w
                else:
                    begin = lo[j]
                if end < hi[j]:
                    soft[1, f + end + 1] += w
                else:
                    end = hi[j]
                if begin < reach[r, 1]:
                    # Sides that end at begin or later, up to the leaf found before, lose ``fall``.
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
                        drop[side, f + k] = 1e100
            continue
        for c in range(hi[j] - 2, lo[j] - 1, -1):
            soft[0, f + c] += soft[0, f + c + 1]
        for c in range(lo[j] + 2, hi[j] + 1):
            soft[1, f + c] += soft[1, f + c - 1]
        running = 0.0
        without = 0
        for c in range(lo[j], hi[j] + 1):
            running += drop[0, f + c]
            without += empty[0, f + c]
            drop[0, f + c] = running if without == 0 else 1e100
        running = 0.0
        without = 0
        for c in range(hi[j], lo[j] - 1, -1):
            running += drop[1, f + c]
            without += empty[1, f + c]
            drop[1, f + c] = running if without == 0 else 1e100


@kernel
def bound_cuts(d, tight, slack, cells, leaves, stack, peaks, drop, soft, scratch):
    """For every cut of every feature: by how much the score's bound drops on either side, and which share of the leaves goes.

    An ordered feature cut after cell c: row 0 is the side up to c, row 1 (at c) the side from c on. A mask feature at
    level c: row 0 is the level alone, row 1 all others.
    """
    stack_lo, stack_hi, stack_mask, off, active = stack.lo, stack.hi, stack.mask, cells.off, stack.active
    stack_first, stack_last, gain, is_mask, mask_of = stack.first, stack.last, leaves.gain, cells.is_mask, cells.mask_of
    box_mask, box_lo, box_hi = leaves.box_mask, leaves.box_lo, leaves.box_hi
    lo, hi, mask, arena = stack_lo[d], stack_hi[d], stack_mask[d], stack.arena
    features = lo.shape[0]
    for c in range(off[features]):
        drop[0, c] = drop[1, c] = soft[0, c] = soft[1, c] = 0.0
    for a in range(active[d]):
        first, last = stack_first[d, a], stack_last[d, a]
        peak = peaks[a, tight]
        weight = 0.0
        for q in range(first, last):
            weight += gain[arena[q], tight] - peak + slack
        weight = 1.0 / max(weight, 1e-300)
        for j in range(features):
            f = off[j]
            if is_mask[j]:
                m = mask_of[j]
                touched = False
                for q in range(first, last):
                    if mask[j] & ~box_mask[arena[q], m] != 0:
                        touched = True
                        break
                if not touched:
                    continue
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
                            soft[0, f + k] += (v - peak + slack) * weight
                        if both & ~bit != 0:
                            others = max(others, v)
                        else:
                            soft[1, f + k] += (v - peak + slack) * weight
                    drop[0, f + k] += peak - alone if alone > -FAR else 1e100
                    drop[1, f + k] += peak - others if others > -FAR else 1e100
                continue
            if lo[j] == hi[j]:
                continue
            touched = False
            for q in range(first, last):
                i = arena[q]
                if box_lo[i, j] > lo[j] or box_hi[i, j] < hi[j]:
                    touched = True
                    break
            if not touched:
                continue
            for c in range(lo[j], hi[j] + 1):
                scratch[0, c] = scratch[1, c] = -FAR
            for q in range(first, last):
                i = arena[q]
                v = gain[i, tight]
                w = (v - peak + slack) * weight
                begin = max(box_lo[i, j], lo[j])
                end = min(box_hi[i, j], hi[j])
                scratch[0, begin] = max(scratch[0, begin], v)
                scratch[1, end] = max(scratch[1, end], v)
                if begin > lo[j]:
                    soft[0, f + begin - 1] += w
                if end < hi[j]:
                    soft[1, f + end + 1] += w
            running = -FAR
            for c in range(lo[j], hi[j]):
                running = max(running, scratch[0, c])
                drop[0, f + c] += peak - running if running > -FAR else 1e100
            running = -FAR
            for c in range(hi[j], lo[j], -1):
                running = max(running, scratch[1, c])
                drop[1, f + c] += peak - running if running > -FAR else 1e100
    for j in range(features):
        if is_mask[j]:
            continue
        f = off[j]
        # A leaf that begins at b is lost to every side that ends before b; likewise on the right.
        for c in range(hi[j] - 2, lo[j] - 1, -1):
            soft[0, f + c] += soft[0, f + c + 1]
        for c in range(lo[j] + 2, hi[j] + 1):
            soft[1, f + c] += soft[1, f + c - 1]


@kernel
def note_shaved(j, at, side, registers, proof):
    """Record a cut of which one side is closed at once, where the branching is recorded."""
    n = registers[RECORDED]
    if proof.code.shape[0] > 0:
        proof.code[n] = 2 * j + side
        proof.at[n] = at
        proof.code[n + 1] = -1
        registers[RECORDED] = n + 2


@kernel
def shave(d, slack, cells, stack, drop, registers, proof):
    """Take off the ends (ordered) or levels (mask) of the box that cannot be in the goal.

    Returns 0 where nothing changed, 1 where something did, 2 where nothing is left.
    """
    stack_lo, stack_hi, stack_mask, off, is_mask = stack.lo, stack.hi, stack.mask, cells.off, cells.is_mask
    lo, hi, mask = stack_lo[d], stack_hi[d], stack_mask[d]
    changed = 0
    for j in range(lo.shape[0]):
        f = off[j]
        if is_mask[j]:
            for k in range(off[j + 1] - f):
                if (mask[j] >> k) & 1 and drop[0, f + k] > slack:
                    mask[j] &= ~(np.int64(1) << k)
                    note_shaved(j, np.int64(1) << k, 0, registers, proof)
                    changed = 1
            if mask[j] == 0:
                return 2
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
            note_shaved(j, a - 1, 0, registers, proof)
        if a > b:
            return 2
        if b < hi[j]:
            note_shaved(j, b, 1, registers, proof)
        if a > lo[j] or b < hi[j]:
            lo[j], hi[j] = a, b
            changed = 1
    return changed


@kernel
def choose_cut(d, total, distance, limit, cells, stack, drop, soft):
    """Choose the cut with the best product of what it gains on both sides; False where the box is a single point."""
    stack_lo, stack_hi, stack_mask, point, off = stack.lo, stack.hi, stack.mask, stack.point, cells.off
    add, top, active, is_mask, feature = cells.add, cells.top, stack.active, cells.is_mask, stack.feature
    at, near_side = stack.at, stack.near_side
    lo, hi, mask, near = stack_lo[d], stack_hi[d], stack_mask[d], point[d]
    features = lo.shape[0]
    cost = 0.0
    first = second = 0.0
    where = -1
    for j in range(features):
        c = off[j] + near[j]
        cost += add[c]
        if top[c] > first:
            second = first
            first = top[c]
            where = j
        elif top[c] > second:
            second = top[c]
    room = 1.0 / max(limit - distance, 1e-300)
    scale = 1.0 / max(total, 1e-300)
    share = 1.0 / max(active[d], 1)
    best = -1.0
    for j in range(features):
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
                alone = min(drop[0, f + k], 1e50) * scale + soft[0, f + k] * share
                others = min(drop[1, f + k], 1e50) * scale + soft[1, f + k] * share
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
            left = min(drop[0, f + c], 1e50) * scale + soft[0, f + c] * share
            right = min(drop[1, f + c + 1], 1e50) * scale + soft[1, f + c + 1] * share
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
def cut_to_differ(d, condition, cells, stack):
    """Cut so that the nearest point of one side comes closer to fulfilling a condition; False where no cell can."""
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
def enter(d, side, cells, stack):
    """Make depth d + 1 the box on one side (0 up to the cut, or the level alone; 1 the other) of the cut of depth d."""
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


# Registers of a search that is paused and resumed.
DEPTH, FRESH, NODES, LOGGED, STATUS, FOUND, RECORDED = 0, 1, 2, 3, 4, 5, 8
RUNNING, FULL, LOG_FULL, PROOF_FULL = 0, 1, 2, 4
LIMIT = 0


@kernel
def settle_point(d, cells, trees, goal, stack, registers, reals, best, log_point, log_cost, most, least, base_point):
    """Evaluate the nearest point of the box.

    Returns 1 where it is in the goal and fulfils every condition (the new incumbent), 2 where it is in the goal and
    fails a condition, 3 where it is too near the boundary to be decided here (logged where it fulfils every
    condition), 0 where it is not in the goal.
    """
    near = stack.point[d]
    for j in range(near.shape[0]):
        base_point[j] = cells.base_cell[cells.off[j] + near[j]]
    scores_at(base_point, cells, trees, goal, most, least)
    possible = sure = True
    for k in range(most.shape[0]):
        possible = possible and most[k] >= goal.need[k]
        sure = sure and least[k] >= goal.sure[k]
    if not possible:
        return 0
    fails = failed_condition(near, cells) >= 0
    cost = 0.0
    peak = 0.0
    for j in range(near.shape[0]):
        cost += cells.add[cells.off[j] + near[j]]
        peak = max(peak, cells.top[cells.off[j] + near[j]])
    cost += peak
    if not sure:
        if not fails:
            log_point[registers[LOGGED]] = near
            log_cost[registers[LOGGED]] = cost
            registers[LOGGED] += 1
            if registers[LOGGED] == log_cost.shape[0]:
                # The caller empties the log before it resumes the search.
                registers[STATUS] = LOG_FULL
        return 3
    if fails:
        return 2
    if cost < reals[LIMIT]:
        reals[LIMIT] = cost
        best[:] = near
        registers[FOUND] = 1
    return 1


@kernel
def advance(
    budget,
    registers,
    reals,
    best,
    log_point,
    log_cost,
    cells,
    leaves,
    trees,
    goal,
    stack,
    peaks,
    drop,
    soft,
    scratch,
    empty,
    proof,
):
    """Run the branch and bound for at most ``budget`` nodes; all state lives in the arrays, so that it can be resumed.

    ``reals[LIMIT]`` is the radius: that of the pass, then the cost of the best point found. Where ``proof`` has room at all, the
    branching is written into it.
    """
    margins = goal.need.shape[0]
    features = cells.own.shape[0]
    records = proof.code.shape[0] > 0
    room = 4 * cells.off[features] + 8
    totals = np.empty(margins)
    most, least = np.empty(margins), np.empty(margins)
    base_point = np.empty(features, np.int64)
    spent = 0
    while registers[DEPTH] >= 0 and registers[STATUS] == RUNNING:
        d = registers[DEPTH]
        if registers[FRESH] == 0:
            if stack.state[d] == 2:
                registers[DEPTH] -= 1
            else:
                stack.state[d] = 2
                enter(d, 1 - stack.near_side[d], cells, stack)
                registers[DEPTH] = d + 1
                registers[FRESH] = 1
            continue
        if spent == budget:
            return
        spent += 1
        registers[NODES] += 1
        source = 0 if d == 0 else d - 1
        opened = find_open(d, cells, stack)
        tight = 0
        slack = 0.0
        closed = False
        distance = 0.0
        while True:
            if records and registers[RECORDED] + room > proof.code.shape[0]:
                # What was shaved off is recorded and gone from the box, so that the node may begin anew.
                registers[STATUS] = PROOF_FULL
                return
            limit = reals[LIMIT]
            lo, hi, mask = stack.lo[d], stack.hi[d], stack.mask[d]
            distance = shrink_to_ball(
                limit, lo, hi, mask, cells.own, cells.is_mask, cells.off, cells.add, cells.top, stack.point[d]
            )
            if distance >= limit:
                closed = True
                break
            if not can_differ(lo, hi, mask, cells):
                closed = True
                break
            if margins == 1:
                outcome = keep_useful_sorted(d, source, limit, cells, leaves, goal, stack, totals, peaks, opened)
            else:
                outcome = keep_useful_leaves(d, source, limit, cells, leaves, goal, stack, totals, peaks, opened)
            if outcome == 2:
                registers[STATUS] = FULL
                return
            if outcome == 1:
                closed = True
                break
            source = d
            tight = 0
            for k in range(1, margins):
                if totals[k] - goal.need[k] < totals[tight] - goal.need[tight]:
                    tight = k
            slack = totals[tight] - goal.need[tight]
            if margins == 1:
                bound_cuts_sorted(d, slack, cells, leaves, stack, peaks, drop, soft, empty, opened)
            else:
                bound_cuts(d, tight, slack, cells, leaves, stack, peaks, drop, soft, scratch)
            changed = shave(d, slack + goal.pad, cells, stack, drop, registers, proof)
            if changed == 2:
                closed = True
                break
            if changed == 0:
                break
        if not closed:
            same = d > 0
            if same:
                for j in range(features):
                    if stack.point[d, j] != stack.point[d - 1, j]:
                        same = False
                        break
            outcome = -1
            if not same or stack.active[d] == 0:
                outcome = settle_point(
                    d, cells, trees, goal, stack, registers, reals, best, log_point, log_cost, most, least, base_point
                )
            failed = failed_condition(stack.point[d], cells)
            if outcome == 1:
                closed = True
            elif stack.active[d] == 0:
                # The score is one constant on the box: only a condition can still tell its points apart.
                closed = failed < 0 or outcome == 0 or not cut_to_differ(d, failed, cells, stack)
            elif outcome == 2 and cut_to_differ(d, failed, cells, stack):
                closed = False
            else:
                closed = not choose_cut(d, slack, distance, reals[LIMIT], cells, stack, drop, soft)
        if closed:
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
            proof.code[registers[RECORDED]] = 2 * stack.feature[d] + stack.near_side[d]
            proof.at[registers[RECORDED]] = stack.at[d]
            registers[RECORDED] += 1
        stack.state[d] = 1
        enter(d, stack.near_side[d], cells, stack)
        registers[DEPTH] = d + 1
