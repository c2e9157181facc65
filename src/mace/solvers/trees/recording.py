"""The search with prices, box after box, and its proof: the branching, and the prices that cells and leaves are dropped by.

A proof is checked by prices alone. While it is recorded, sweeps drop no cells and no leaves. Instead, when a box is done with, its prices
are rounded to multiples of a unit and recorded, and what they show to be no part of a counterfactual is dropped from it and its parts:

- a leaf, where the bound less what it falls short of the best leaf of its tree is below ``need``;
- a cell, where the bound is, with each tree that has a price for the feature held to its best leaf there, and the feature to this cell.

The checker does the same with the same prices, in whole numbers. What is left to it is never more than what is left here: every bound is a
sum of maxima over what is left, and its cells are finer, its ball not larger.
"""

from __future__ import annotations

import numpy as np

from mace.solvers.compiled import kernel
from mace.solvers.trees.dual import (
    BEFORE,
    BRANCH,
    CLOSED,
    CLOSED_BY_PRICES,
    DEAD,
    DEAD_BELOW,
    GO_ON,
    LARGEST,
    MOST_ROOT_SWEEPS,
    MOST_SWEEPS,
    MOVED,
    OUT_OF_ROOM,
    PAD,
    PRICED,
    ROUNDS,
    SWEEPS,
    TOTAL,
    Pair,
    Ranges,
    branch,
    enter_child,
    fast_kernel,
    filter_leaves,
    find_segments,
    price_leaves,
    rounding_factor,
    segment_marginals,
    shrink,
    sum_total,
    tighten,
    try_choice,
    value_leaves,
)
from mace.solvers.trees.kernels import (
    DEPTH,
    FAR,
    FOUND,
    FRESH,
    FULL,
    LIMIT,
    NODES,
    OPEN,
    PROOF_FULL,
    RECORDED,
    RESTART,
    RESTART_BELOW,
    RUNNING,
    STATUS,
    CellBox,
    Scores,
    record_branching,
)

ROOT_SWEEPS_BETWEEN = 8
"""The prices of the root are recorded after so many sweeps each: what they drop makes the next ones quicker."""

MOST_ROUNDS, WORTH_A_ROUND = 3, 0.9
"""A box is swept so often again before it is branched on, where recording its prices has left at most this share of its leaves."""

AS_BEFORE = -(2**31)
"""The recorded price of a segment that nothing alive reaches: what it was in the box around."""

LARGEST_RECORDED = 2.0**29
"""A price of more units than these is recorded as so many."""


@kernel
def round_prices(d, ball, boxes, work, proof, reals):
    """Round the prices of a box to what can be recorded; return whether they prune it nevertheless."""
    box = CellBox(boxes.lo[d], boxes.hi[d], boxes.mask[d])
    find_segments(ball.pair_count, box, ball.cells, ball.pairs, work.begin, work.end)
    price, unit = boxes.price[d], proof.unit[0]
    for p in range(ball.pair_count):
        for s in range(work.begin[p], work.end[p] + 1):
            if price[s] > DEAD_BELOW:
                price[s] = unit * min(max(np.rint(price[s] / unit), -LARGEST_RECORDED), LARGEST_RECORDED)
    met = value_leaves(d, ball.cost, ball.leaves, ball.cells, ball.pairs, boxes, work)
    reals[LARGEST] = max(reals[LARGEST], met)
    sum_total(d, rounding_factor(0, True, ball.cells.most.shape[0], ball.pairs), ball, boxes, work, reals)
    return reals[TOTAL] + reals[PAD] < ball.goal.need[0]


@kernel
def record_prices(d, ball, boxes, work, proof, registers):
    """Record the rounded prices of a box."""
    number = registers[PRICED]
    row, price = proof.price[number], boxes.price[d]
    row[:] = AS_BEFORE
    for p in range(ball.pair_count):
        for s in range(work.begin[p], work.end[p] + 1):
            if price[s] > DEAD_BELOW:
                row[s] = np.int32(np.rint(price[s] / proof.unit[0]))
    proof.multiplier[number] = boxes.multiplier[d]
    proof.node[number] = registers[RECORDED]
    registers[PRICED] += 1


@fast_kernel
def exclude_cells(d, slack, ball, boxes, work):
    """Delete the cells that fall short of the bound by more than ``slack``, with what each tree of their feature could gain there."""
    cells, pairs, leaves = ball.cells, ball.pairs, ball.leaves
    lo, hi, mask, alive, arena = boxes.lo[d], boxes.hi[d], boxes.mask[d], boxes.alive[d], boxes.arena
    price, tree_first, tree_last = boxes.price[d], boxes.first[d], boxes.last[d]
    begin, end, value, rest, through, unary = work.begin, work.end, work.value, work.rest, work.through, work.unary
    up, down, best_of, highest_of, lost = work.up, work.down, work.best, work.highest, work.eliminated[0]
    off, is_mask, mask_of, first, last = cells.off, cells.is_mask, cells.mask_of, pairs.first, pairs.last
    of_tree, tree_of, of_feature, by_feature = pairs.of_tree, pairs.tree, pairs.of_feature, pairs.by_feature
    ranges = Ranges(arena, pairs.at_leaf, pairs.from_segment, pairs.to_segment, leaves.box_mask)
    for j in range(lo.shape[0]):
        f = off[j]
        for c in range(f + lo[j], f + hi[j] + 1):
            lost[c] = highest_of[j] - unary[c]
        for place in range(of_feature[j], of_feature[j + 1]):
            p = by_feature[place]
            t = tree_of[p]
            q0, q1 = tree_first[t], tree_last[t]
            # A tree with one leaf loses nothing in it, and what is outside of it goes when the box is branched on.
            if q1 - q0 == 1:
                continue
            pair = Pair(q0, q1, p - of_tree[t], is_mask[j], mask_of[j], mask[j], begin[p], end[p])
            price_leaves(pair, ranges, price, up, down, rest)
            for q in range(q0, q1):
                i = arena[q]
                rest[i] = DEAD if rest[i] < DEAD_BELOW or value[i] < DEAD_BELOW else value[i] - rest[i]
            segment_marginals(pair, ranges, rest, up, down, through)
            for s in range(begin[p], end[p] + 1):
                is_dead = through[s] < DEAD_BELOW or price[s] < DEAD_BELOW
                loss = -DEAD if is_dead else best_of[t] - (through[s] + price[s])
                for c in range(f + max(first[s], lo[j]), f + min(last[s], hi[j]) + 1):
                    lost[c] += loss
        for c in range(f + lo[j], f + hi[j] + 1):
            if lost[c] > slack:
                alive[c] = 0


@kernel
def exclude(d, ball, boxes, work, reals):
    """Drop the cells and the leaves of a box that its prices exclude; return the share of leaves that is left, 0 where it is pruned."""
    cells, pairs, limit = ball.cells, ball.pairs, reals[LIMIT]
    slack = reals[TOTAL] + reals[PAD] - ball.goal.need[0]
    exclude_cells(d, slack, ball, boxes, work)
    box = CellBox(boxes.lo[d], boxes.hi[d], boxes.mask[d])
    distance = shrink(limit, box, boxes.alive[d], boxes.point[d], cells)
    if distance >= limit:
        return 0.0
    before = boxes.top[d] - boxes.first[d, 0]
    if filter_leaves(d, limit, distance, slack, False, ball.leaves, cells, pairs, boxes, work) != OPEN:
        return 0.0
    return (boxes.top[d] - boxes.first[d, 0]) / before


@kernel
def settle(d, outcome, state, ball, boxes, work, proof):
    """Round and record the prices of a box that is done with, and drop what they exclude; return what to do with it, as tightening does."""
    registers, reals = state.registers, state.reals
    if outcome == CLOSED_BY_PRICES and d > 0 and registers[SWEEPS] == 0:
        # The prices of the box around do.
        return outcome
    if round_prices(d, ball, boxes, work, proof, reals):
        record_prices(d, ball, boxes, work, proof, registers)
        return CLOSED_BY_PRICES
    # The bound may have risen: that is not for want of gain.
    registers[MOVED] = 1
    if outcome == CLOSED_BY_PRICES:
        if registers[SWEEPS] < (MOST_ROOT_SWEEPS if d == 0 else MOST_SWEEPS):
            return GO_ON
        outcome = BRANCH
    record_prices(d, ball, boxes, work, proof, registers)
    left = exclude(d, ball, boxes, work, reals)
    if left == 0.0:
        return CLOSED
    if outcome == BRANCH:
        registers[ROUNDS] += 1
        if registers[ROUNDS] >= MOST_ROUNDS or left > WORTH_A_ROUND:
            return BRANCH
        registers[SWEEPS] = 1
    box = CellBox(boxes.lo[d], boxes.hi[d], boxes.mask[d])
    find_segments(ball.pair_count, box, ball.cells, ball.pairs, work.begin, work.end)
    value_leaves(d, ball.cost, ball.leaves, ball.cells, ball.pairs, boxes, work)
    sum_total(d, rounding_factor(0, True, ball.cells.most.shape[0], ball.pairs), ball, boxes, work, reals)
    return GO_ON


@kernel
def is_done(d, outcome, registers):
    """Return whether the prices of a box are to be recorded, after what tightening said of it."""
    if outcome == GO_ON:
        return d == 0 and registers[SWEEPS] % ROOT_SWEEPS_BETWEEN == 0
    return outcome in (BRANCH, CLOSED_BY_PRICES)


@kernel
def begin_box(state, cells, work):
    """Begin a box."""
    registers, reals = state.registers, state.reals
    registers[FRESH] = 2
    registers[NODES] += 1
    registers[SWEEPS] = registers[MOVED] = registers[ROUNDS] = 0
    reals[TOTAL] = reals[BEFORE] = FAR
    reals[PAD] = 0.0
    work.is_single[:] = 0
    work.choice[:] = cells.own


@kernel
def advance_priced(budget, state, ball, boxes, work, proof):
    """Run the branch and bound for at most ``budget`` sweeps, or until no box is left or room runs out.

    As in the plain search, ``state.reals[LIMIT]`` is the radius: that of the ball, then the cost of the incumbent.
    ``state.reals[ROOT_BOUND]`` becomes a cost below which the ball holds nothing. ``FRESH`` is 1 before the first sweep of a box, 2
    after it, 0 on the way back up.
    """
    cells, registers, reals = ball.cells, state.registers, state.reals
    scores = Scores(np.empty(cells.own.shape[0], np.int64), np.empty(1), np.empty(1))
    records = proof.code.shape[0] > 0
    for _ in range(budget):
        if registers[DEPTH] < 0 or registers[STATUS] != RUNNING:
            return
        if records and (registers[RECORDED] >= proof.code.shape[0] or registers[PRICED] >= proof.multiplier.shape[0]):
            registers[STATUS] = PROOF_FULL
            return
        d = registers[DEPTH]
        if registers[FRESH] == 0:
            # Back from a child: enter the other one, the one away from the nearest point, or go up.
            if boxes.state[d] == 2:
                registers[DEPTH] -= 1
            else:
                boxes.state[d] = 2
                enter_child(d, 1 - boxes.near_side[d], cells, boxes)
                registers[DEPTH] = d + 1
                registers[FRESH] = 1
            continue
        if registers[FRESH] == 1:
            begin_box(state, cells, work)
        outcome = tighten(d, records, state, ball, boxes, work, scores)
        if records and is_done(d, outcome, registers):
            outcome = settle(d, outcome, state, ball, boxes, work, proof)
        if outcome == GO_ON:
            continue
        if outcome == OUT_OF_ROOM:
            registers[STATUS] = FULL
            return
        if outcome == BRANCH:
            try_choice(work.choice, state, cells, ball.trees, ball.goal, scores)
            if not branch(d, state, ball, boxes, work, scores):
                outcome = CLOSED
            if registers[FOUND] and reals[LIMIT] < reals[RESTART_BELOW]:
                registers[STATUS] = RESTART
                return
        registers[FRESH] = 1
        if outcome in (CLOSED, CLOSED_BY_PRICES):
            if records:
                proof.code[registers[RECORDED]] = -1 if outcome == CLOSED else -2
                registers[RECORDED] += 1
            registers[DEPTH] -= 1
            registers[FRESH] = 0
            continue
        if d + 2 >= boxes.lo.shape[0]:
            registers[STATUS] = FULL
            return
        if records:
            record_branching(d, boxes, registers, proof)
        boxes.state[d] = 1
        enter_child(d, boxes.near_side[d], cells, boxes)
        registers[DEPTH] = d + 1
