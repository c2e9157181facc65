"""The numba kernels of the network lane: bound propagation inside a box and a ball, and the branch and bound over boxes.

**Points and boxes.** A point holds a number for each numeric feature and, for each *table* feature, an entry: the position of a level in
the list of its allowed levels (in order; a categorical feature's own level comes first, so that every ball is a range of entries). A *box*
holds a range ``lo..hi`` a feature. Numbers are in the feature's own unit; changes δ are shares of its range.

**Slots.** What a feature adds to the first layer is in rows (*slots*) of ``first``: one slot for a number, to be multiplied by it, one for
each level of a table. The entries of all tables lie behind each other, those of feature j from ``off[j]`` up to ``off[j + 1]``. So every
pre-activation of the first layer is

    offset + Σ_j first[slot_j](v_j)

and a linear functional of the first layer is separable over features.

**Columns.** Inside a box such a functional is written over columns: one for the number of each feature that is free there (the change of
the number), one for each entry of a free table (0 or 1), both relative to the *nearest* point of the box, whose cost is least. Column c of
``matrix`` is what it adds to the units of the first layer, ``gains[c]`` what it adds to the functional at hand, and ``x[c]`` its value in a
point of a relaxation. The columns of the f-th free feature begin at ``columns_from[f]``.

**Cost.** The cost of a point is Σ_j (jump[changed] + slope·δ + square·δ²) + max_j peak·δ, without unit, in [0, 1].

**Rows.** A counterfactual makes every row at least 0: the margins of the goal (differences of scores), then linear conditions across
features. Over a box each row is bounded from above by a linear functional (CROWN: :func:`backward`), and the least cost at which that
functional reaches 0 is a fractional knapsack (:func:`least_cost`): a lower bound on the cost of every counterfactual in the box. A box is
pruned where that exceeds the cost that is still worth finding.

**Rounding.** Three errors are kept apart. ``net.own``·size bounds what the float64 sums made here lose; it is added outward to all bounds
on units and rows. ``error`` (of a unit) and ``band`` (of a row) bound how far the deployed model's arithmetic is from exact numbers: a
row counts as possible while its upper bound plus band is at least 0. Costs are rounded to nearest; limits are widened by more than that
(1e-12, 1e-15), and the caller subtracts the rest from the bound that it reports.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mace.solvers.compiled import KernelRecord, kernel

Array = NDArray[Any]

FAR = 1e300
WHOLE = 2.0
"""A radius beyond every distance: distances lie in [0, 1]."""

TINY = 1e-300
"""A change so small that its cost underflows is a change all the same."""

SUM, PEAK, SQUARE, MIXED = 0, 1, 2, 3
"""How a distance adds up: jumps and slopes; the greatest change; squares; a sum and the greatest change."""

ATTEMPTS = 4
"""How often the lower lines of the units are chosen anew, by the point that the last relaxation gave."""

RUNNING, FULL, LOG_FULL = 0, 1, 2
"""Values of ``STATUS``."""

STATUS, NODES, HEAP, USED, SPARE, FOUND, LOGGED, CERTAIN, PROBES = range(9)
"""Integer registers: the status, counts (boxes searched, open, made, free places; points logged), whether there is a new incumbent, and
whether some box was given up, after which only points that are certain count."""

BEST, OPEN, GAP, TOLERANCE, SMALL = range(5)
"""Real registers: the cost of the incumbent, the least cost that rounding leaves open, how much nearer a point must be to be searched for,
how finely a radius is bisected, and the width in cost below which a box is not branched on."""

NO, MAYBE, SURE = 0, 1, 2
"""What the float arithmetic here says of a point: not in the goal, too near to the boundary to say, in the goal."""

ADAPTIVE, LOCAL, AT_POINT = 0, 1, 2
"""The lower line of a unit: the one that loses less over the range, or the one that is exact at a point; or no bound at all but the
piece in use at a point."""

NET = [
    "first", "first_size", "twin", "offset", "size", "weight", "begin", "end", "bend", "width", "relative", "tiny", "single", "grid_error",
    "squash", "own",
]  # fmt: skip
"""A model: what each slot adds to the first layer (slots x units) and its absolute size, and the first unit there with the same slots
(``twin``); per layer offsets, what counts as their size, weights, where those of each unit that are not 0 ``begin`` and ``end``, slopes
below 0 (0 for ReLU, 1 for a linear unit) and widths; γ of each layer, what underflow costs, the rounding of inputs, what each unit of the
first layer is off because values of grids are rounded here, the squash, and the relative error of sums made here."""

TASK = [
    "own", "slot", "inverse", "is_table", "is_grid", "base", "step", "digits", "off", "entry_slot", "entry_delta", "by_delta", "nearest",
    "span_off", "span_lo", "span_hi", "jump", "slope", "square", "peak", "form", "plus", "minus", "shift", "slack", "row",
    "row_base", "row_error", "alike_lo", "alike_hi", "at_least", "factual", "factual_size",
]  # fmt: skip
"""A question.

- the factual: ``own`` number or entry (-1 where its level is not allowed) and its ``slot``; ``inverse`` is 1 / range;
- grids: ``base`` + k·``step``, where ``is_grid``; ``digits`` of narrower floats than float64, else 0;
- tables: each entry's slot and δ, the entries by δ (``by_delta``), and the ``nearest`` entry;
- the allowed spans of numbers, those of feature j from ``span_off[j]`` up to ``span_off[j + 1]``;
- the cost, and how it adds up: ``form[0]``; ``form[1]`` is 1 where the space is finite;
- rows: margins score[plus] - score[minus] + shift, known up to ``slack`` (-1 where there is no such score); linear conditions
  ``row_base`` + Σ row[slot]·change, known up to ``row_error``;
- earlier counterfactuals: the ranges that count as alike, and in how many features a point must differ;
- the first layer at the factual, and Σ|w||x| there."""

WORK = [
    "low", "high", "size", "error", "z", "lam", "mu", "first_at_near", "column_entry", "columns_from", "feature", "near", "delta",
    "near_cost", "gains", "matrix", "unit_gain", "rows", "constants", "piece_feature", "ratio", "cost", "gain", "piece_from", "piece_to",
    "order", "x", "best_x", "mix", "extra", "point", "other", "score", "point_size", "point_error", "tightest_x", "kept_x", "first_gain",
]  # fmt: skip
"""Scratch space.

- per unit: bounds ``low`` and ``high`` on its pre-activation over the box, ``size`` (Σ|w||h| over the box) and ``error``; ``z``,
  ``point_size`` and ``point_error`` the same at one point;
- ``lam`` and ``mu``: coefficients of a functional on a layer's activations and on its pre-activations;
- the box: columns (above), the ``near`` point, its changes ``delta`` and its cost ``near_cost`` (sum, peak), the first layer there;
- functionals over the columns: ``unit_gain`` of each unit, ``rows`` with their ``constants``, ``mix`` of two; ``first_gain`` is the most
  that each unit of the first layer gains over box and ball, and the most that it loses;
- the knapsack: its pieces (cost, gain, their ratio, feature, the columns they lead from and to), in the ``order`` of their ratio;
  ``extra`` is added to the slopes;
- relaxed points ``x``, ``best_x``, ``tightest_x``, ``kept_x``; rounded ones ``point``, ``other``."""

TREE = ["lo", "hi", "bound", "heap", "spare"]
"""The open boxes: their ranges and bounds by place, a binary heap of places by bound, and the places that are free again."""


class InputBox(NamedTuple):
    """A box whose columns are written: its ranges, and the numbers of free features and of columns."""

    lo: Array
    hi: Array
    free: int
    columns: int


class NetworkState(NamedTuple):
    """What a paused search keeps: registers, the incumbent, and the points that only the real model can decide."""

    registers: Array
    reals: Array
    best: Array
    log: Array
    log_cost: Array


class ProofArrays(NamedTuple):
    """A proof in the making: how many boxes wait, how many entries are written, and how many of these are leaves of a single point, of
    which the model decides; the entries; the waiting boxes, a stack.

    A waiting box may have its branching laid down in ``forced`` (feature, value; -1 for none).
    """

    counts: Array
    feature: Array
    at: Array
    lo: Array
    hi: Array
    forced: Array


class Net(KernelRecord):
    """A model."""

    FIELDS = NET


class Task(KernelRecord):
    """A question."""

    FIELDS = TASK


class Work(KernelRecord):
    """Scratch space."""

    FIELDS = WORK


class BranchTree(KernelRecord):
    """The open boxes."""

    FIELDS = TREE


# ---- points


@kernel
def change(j, v, task):
    """Return δ of feature j at v."""
    if task.is_table[j]:
        return task.entry_delta[task.off[j] + int(v)]
    if v == task.own[j] or task.inverse[j] == 0.0:
        return 0.0
    return max(abs(v - task.own[j]) * task.inverse[j], TINY)


@kernel
def part_cost(j, delta, task):
    """Return what a change adds to the sum."""
    if delta <= 0.0:
        return 0.0
    return task.jump[j] + (task.slope[j] + task.square[j] * delta) * delta


@kernel
def cost_of(v, task):
    """Return the cost of a point."""
    total = 0.0
    top = 0.0
    for j in range(v.shape[0]):
        delta = change(j, v[j], task)
        total += part_cost(j, delta, task)
        top = max(top, task.peak[j] * delta)
    return total + top


@kernel
def slot_of(j, v, task):
    """Return the slot that feature j reads at v."""
    return task.entry_slot[task.off[j] + int(v)] if task.is_table[j] else task.slot[j]


@kernel
def row_count(task):
    """Return how many rows a question has: margins, then linear conditions."""
    return task.plus.shape[0] + task.row_base.shape[0]


@kernel
def deployed_error(k, size, through, net):
    """Return how far a unit of layer k may be from exact numbers in the deployed arithmetic, rounded up.

    ``through`` is the error of its inputs, weighted; γ·(size + error) bounds that of its own sum (Higham), the rest is for underflow.
    """
    return through + net.relative[k] * (size + 2.0 * through) + net.tiny


@kernel
def judge(v, net, task, work):
    """Evaluate a point; return what is sure of it and the least of its rows' values, and write its pre-activations into ``z``.

    ``size`` bounds Σ|w||h| and ``error`` the error of the deployed arithmetic, by the recursion of ``Network.rounding`` at this
    one point. The arithmetic here is float64, so its own error is at most as large: a value beyond twice the error is sure.
    """
    depth = net.width.shape[0] - 1
    z, size, error = work.z, work.point_size, work.point_error
    for i in range(net.width[0]):
        z[0, i] = net.offset[0, i]
        size[0, i] = 0.0
    for j in range(v.shape[0]):
        slot = slot_of(j, v[j], task)
        factor = 1.0 if task.is_table[j] else v[j]
        for i in range(net.width[0]):
            z[0, i] += net.first[slot, i] * factor
            size[0, i] += net.first_size[slot, i] * abs(factor)
    for i in range(net.width[0]):
        through = net.single * size[0, i] + net.grid_error[i]
        size[0, i] += net.size[0, i]
        error[0, i] = through + net.relative[0] * (size[0, i] + through) + net.tiny
    for k in range(1, depth + 1):
        for i in range(net.width[k]):
            value = net.offset[k, i]
            big = net.size[k, i]
            through = 0.0
            for p in range(net.begin[k, i], net.end[k, i]):
                below = z[k - 1, p]
                w = net.weight[k, i, p]
                active = below if below >= 0.0 else net.bend[k - 1, p] * below
                value += w * active
                big += abs(w * active)
                through += abs(w) * error[k - 1, p]
            z[k, i] = value
            error[k, i] = deployed_error(k, big, through, net)
    verdict = SURE
    least = FAR
    for r in range(row_count(task)):
        value, band = row_value(r, v, z[depth], error[depth], net, task)
        least = min(least, value)
        if value < -2.0 * band:
            verdict = NO
        elif value <= 2.0 * band:
            verdict = min(verdict, MAYBE)
    if not differs_enough(v, task):
        verdict = NO
    return verdict, least


@kernel
def row_value(r, v, scores, error, net, task):
    """Return the value of a row at a point, and how far off it may be."""
    margins = task.plus.shape[0]
    if r < margins:
        value = task.shift[r]
        band = task.slack[r] + net.squash
        if task.plus[r] >= 0:
            value += scores[task.plus[r]]
            band += error[task.plus[r]]
        if task.minus[r] >= 0:
            value -= scores[task.minus[r]]
            band += error[task.minus[r]]
        return value, band
    return linear_row(r - margins, v, task), task.row_error[r - margins]


@kernel
def linear_row(q, v, task):
    """Return the value of a linear condition at a point."""
    value = task.row_base[q]
    for j in range(v.shape[0]):
        if task.is_table[j]:
            value += task.row[q, slot_of(j, v[j], task)] - task.row[q, task.slot[j]]
        else:
            value += task.row[q, task.slot[j]] * (v[j] - task.own[j])
    return value


@kernel
def differs_enough(v, task):
    """Return whether a point differs enough from every earlier counterfactual."""
    for c in range(task.at_least.shape[0]):
        count = 0
        for j in range(v.shape[0]):
            if v[j] < task.alike_lo[c, j] or v[j] > task.alike_hi[c, j]:
                count += 1
        if count < task.at_least[c]:
            return False
    return True


# ---- what is allowed


@kernel
def grain(x, digits):
    """Return how far floats of so many binary digits are apart at x: float32's 24, float16's 11.

    A task has them negative where these floats are too close to tell costs apart: they are no reason to cut a box then.
    """
    exponent = math.frexp(x)[1] - digits
    return math.ldexp(1.0, int(max(exponent, -149 if digits == 24 else -24)))


@kernel
def snap_up(j, x, task):
    """Return the least allowed number of feature j from x on, FAR where there is none.

    The values of a grid are computed here with a rounding, so that comparisons with them have a tolerance far below the step; the
    ends of spans are values themselves, and so is the factual's own number, which need not lie on the grid.
    """
    slack = 1e-6 * task.step[j] if task.is_grid[j] else 0.0
    for s in range(task.span_off[j], task.span_off[j + 1]):
        first, last, own = task.span_lo[s], task.span_hi[s], task.own[j]
        if last + slack < x:
            continue
        y = max(x, first)
        if task.digits[j] != 0:
            g = grain(y, abs(task.digits[j]))
            return np.ceil(y / g) * g
        if not task.is_grid[j]:
            return y
        g = task.base[j] + np.ceil((y - task.base[j]) / task.step[j] - 1e-6) * task.step[j]
        g = FAR if g > last + slack else min(max(g, first), last)
        if first <= own <= last and y - slack <= own < g + slack:
            g = own
        if g < FAR:
            return g
    return FAR


@kernel
def snap_down(j, x, task):
    """Return the greatest allowed number of feature j up to x, -FAR where there is none."""
    slack = 1e-6 * task.step[j] if task.is_grid[j] else 0.0
    for s in range(task.span_off[j + 1] - 1, task.span_off[j] - 1, -1):
        first, last, own = task.span_lo[s], task.span_hi[s], task.own[j]
        if first - slack > x:
            continue
        y = min(x, last)
        if task.digits[j] != 0:
            g = grain(y, abs(task.digits[j]))
            return np.floor(y / g) * g
        if not task.is_grid[j]:
            return y
        g = task.base[j] + np.floor((y - task.base[j]) / task.step[j] + 1e-6) * task.step[j]
        g = -FAR if g < first - slack else min(max(g, first), last)
        if first <= own <= last and g - slack < own <= y + slack:
            g = own
        if g > -FAR:
            return g
    return -FAR


@kernel
def snap(j, x, task):
    """Return the allowed number of feature j that is nearest to x."""
    up, down = snap_up(j, x, task), snap_down(j, x, task)
    return up if up - x <= x - down else down


@kernel
def above(j, x, task):
    """Return the least allowed value of feature j above x."""
    if task.is_table[j]:
        return x + 1.0
    if not task.is_grid[j]:
        return snap_up(j, np.nextafter(x, np.inf), task)
    beyond = task.base[j] + (np.floor((x - task.base[j]) / task.step[j] + 1e-5) + 1.0) * task.step[j]
    if x < task.own[j] < beyond:
        return snap_up(j, task.own[j], task)
    return snap_up(j, beyond, task)


@kernel
def below(j, x, task):
    """Return the greatest allowed value of feature j below x."""
    if task.is_table[j]:
        return x - 1.0
    if not task.is_grid[j]:
        return snap_down(j, np.nextafter(x, -np.inf), task)
    beyond = task.base[j] + (np.ceil((x - task.base[j]) / task.step[j] - 1e-5) - 1.0) * task.step[j]
    if beyond < task.own[j] < x:
        return snap_down(j, task.own[j], task)
    return snap_down(j, beyond, task)


@kernel
def farthest_change(j, budget, peak_budget, task):
    """Return the greatest δ of feature j with cost(δ) <= budget and cost(δ) + peak·δ <= peak_budget, rounded up.

    cost(δ) = jump + slope·δ + square·δ² is solved for δ; budgets and result are widened by more than the rounding of all this.
    """
    reach = FAR
    for with_peak in range(2):
        left = (peak_budget if with_peak else budget) - task.jump[j]
        left += 1e-15 + 1e-12 * abs(left)
        if left < 0.0:
            return 0.0
        s = task.slope[j] + (task.peak[j] if with_peak else 0.0)
        q = task.square[j]
        if q > 0.0:
            reach = min(reach, (np.sqrt(s * s + 4.0 * q * left) - s) / (2.0 * q))
        elif s > 0.0:
            reach = min(reach, left / s)
    return reach * (1.0 + 1e-12)


@kernel
def clip(lo, hi, limit, task, work):
    """Shrink a box to the ball of radius ``limit``; return False where nothing is left.

    Writes the nearest value of each feature, its δ, and (sum, peak) of the nearest point's cost. A value goes only where the cheapest
    point of the box that has it costs more than ``limit``, by more than the rounding of costs.
    """
    features = lo.shape[0]
    total = 0.0
    first = 0.0
    second = 0.0
    where = -1
    for j in range(features):
        if lo[j] > hi[j]:
            return False
        v = task.nearest[j] if task.is_table[j] else task.own[j]
        v = min(max(v, lo[j]), hi[j])
        work.near[j] = v
        delta = change(j, v, task)
        work.delta[j] = delta
        total += part_cost(j, delta, task)
        top = task.peak[j] * delta
        if top > first:
            second = first
            first = top
            where = j
        elif top > second:
            second = top
    work.near_cost[0] = total
    work.near_cost[1] = first
    # Prune: even the nearest point is too far.
    if total + first > limit * (1.0 + 1e-12) + 1e-15:
        return False
    for j in range(features):
        if lo[j] == hi[j]:
            continue
        # What all others cost at least; their greatest peak counts where it is not this feature's own.
        others = total - part_cost(j, work.delta[j], task)
        reach = farthest_change(j, limit - others - (second if where == j else first), limit - others, task)
        if task.is_table[j]:
            a, b = int(lo[j]), int(hi[j])
            while a < b and task.entry_delta[task.off[j] + a] > reach:
                a += 1
            while b > a and task.entry_delta[task.off[j] + b] > reach:
                b -= 1
            lo[j], hi[j] = a, b
        elif reach < FAR and task.inverse[j] > 0.0:
            width = reach / task.inverse[j]
            # Outward, by more than the rounding of own ± width.
            width += 4e-16 * (abs(task.own[j]) + width)
            if task.own[j] - width > lo[j]:
                lo[j] = snap_up(j, task.own[j] - width, task)
            if task.own[j] + width < hi[j]:
                hi[j] = snap_down(j, task.own[j] + width, task)
            if lo[j] > hi[j]:
                return False
            work.near[j] = min(max(work.near[j], lo[j]), hi[j])
    return True


@kernel
def open_box(lo, hi, net, task, work):
    """Write the columns of a box, the first layer at its nearest point, and Σ|w||x| over the box; return the box."""
    units = net.width[0]
    begin, size = work.first_at_near, work.size[0]
    # From the factual on, so that what did not change costs nothing.
    for i in range(units):
        begin[i] = task.factual[i]
        size[i] = task.factual_size[i]
    free = 0
    columns = 0
    for j in range(lo.shape[0]):
        near = work.near[j]
        if not task.is_table[j]:
            slot = task.slot[j]
            moved = near - task.own[j]
            if moved == 0.0 and lo[j] == hi[j]:
                continue
            reach = max(abs(lo[j]), abs(hi[j]))
            for i in range(units):
                begin[i] += net.first[slot, i] * moved
                size[i] += net.first_size[slot, i] * reach
            if lo[j] == hi[j]:
                continue
            for i in range(units):
                work.matrix[i, columns] = net.first[slot, i]
            work.columns_from[free] = columns
            work.feature[free] = j
            columns += 1
            free += 1
            continue
        here = task.entry_slot[task.off[j] + int(near)]
        if here != task.slot[j]:
            for i in range(units):
                begin[i] += net.first[here, i] - net.first[task.slot[j], i]
                size[i] += net.first_size[here, i]
        if lo[j] == hi[j]:
            continue
        work.columns_from[free] = columns
        work.feature[free] = j
        for q in range(task.off[j], task.off[j + 1]):
            entry = task.by_delta[q]
            if entry < lo[j] or entry > hi[j] or entry == near:
                continue
            slot = task.entry_slot[task.off[j] + entry]
            for i in range(units):
                work.matrix[i, columns] = net.first[slot, i] - net.first[here, i]
            work.column_entry[columns] = entry
            columns += 1
        for i in range(units):
            largest = 0.0
            for e in range(int(lo[j]), int(hi[j]) + 1):
                largest = max(largest, net.first_size[task.entry_slot[task.off[j] + e], i])
            size[i] += largest
        free += 1
    work.columns_from[free] = columns
    return InputBox(lo, hi, free, columns)


# ---- separable functionals over a box and a ball: fractional knapsacks


@kernel
def build_pieces(gains, box, task, work):
    """Write the pieces of the concave hulls of gain over cost, one feature after another, and their order by gain / cost, greatest first.

    Returns their number and the free gain: that of pieces without cost, which are taken at once. The hull of a feature starts at the
    nearest point of the box. Replacing its points by their hull is the relaxation: no point of the feature lies above it. For a number the
    hull is one line (with a jump, the line from the near value to the far end: below the cost of every value but these two). Squares and
    peaks are left out, which only lowers costs, but for ``work.extra``, which is added to the slopes.
    """
    lo, hi, extra = box.lo, box.hi, work.extra
    count = 0
    free = 0.0
    for f in range(box.free):
        j = work.feature[f]
        column = work.columns_from[f]
        rate = task.slope[j] + extra[j]
        if not task.is_table[j]:
            g = gains[column]
            near = work.near[j]
            far = hi[j] if g > 0.0 else lo[j]
            work.x[column] = 0.0
            if g == 0.0 or far == near:
                continue
            c = rate * abs(far - near) * task.inverse[j]
            if near == task.own[j]:
                c += task.jump[j]
            if c <= 0.0:
                free += g * (far - near)
                work.x[column] = far - near
                continue
            work.cost[count] = c
            work.gain[count] = g * (far - near)
            work.piece_from[count] = -1
            work.piece_to[count] = column
            work.piece_feature[count] = f
            count += 1
            continue
        first = count
        delta = work.delta[j]
        last_cost = rate * delta + (task.jump[j] if delta > 0.0 else 0.0)
        last_gain = 0.0
        last = -1
        # The columns of a table come in the order of their cost: what gains less than a cheaper entry is never used.
        for column in range(work.columns_from[f], work.columns_from[f + 1]):
            work.x[column] = 0.0
            if gains[column] <= last_gain:
                continue
            delta = task.entry_delta[task.off[j] + work.column_entry[column]]
            c = rate * delta + (task.jump[j] if delta > 0.0 else 0.0)
            dc = c - last_cost
            dg = gains[column] - last_gain
            begin = last
            # A piece that is not steeper than the new one lies below the hull: both become one.
            while count > first and dg * work.cost[count - 1] >= work.gain[count - 1] * dc:
                count -= 1
                dc += work.cost[count]
                dg += work.gain[count]
                begin = work.piece_from[count]
            last_cost = c
            last_gain = gains[column]
            last = column
            if dc <= 0.0:
                free += dg
                if begin >= 0:
                    work.x[begin] = 0.0
                work.x[column] = 1.0
                continue
            work.cost[count] = dc
            work.gain[count] = dg
            work.piece_from[count] = begin
            work.piece_to[count] = column
            work.piece_feature[count] = f
            count += 1
    # Insertion sort: the pieces are few.
    for a in range(count):
        ratio = work.gain[a] / work.cost[a]
        b = a - 1
        while b >= 0 and work.ratio[work.order[b]] < ratio:
            work.order[b + 1] = work.order[b]
            b -= 1
        work.order[b + 1] = a
        work.ratio[a] = ratio
    return count, free


@kernel
def take_piece(piece, share, box, task, work):
    """Note in ``x`` that a share of a piece is used."""
    lo, hi = box.lo, box.hi
    column = work.piece_to[piece]
    j = work.feature[work.piece_feature[piece]]
    if not task.is_table[j]:
        far = hi[j] if work.gains[column] > 0.0 else lo[j]
        work.x[column] = share * (far - work.near[j])
        return
    if work.piece_from[piece] >= 0:
        work.x[work.piece_from[piece]] = 1.0 - share
    work.x[column] = share


@kernel
def gain_within(gains, radius, box, task, work):
    """Return the greatest gain of points of the box whose every peak·δ is within ``radius``, and write one into ``x``.

    The radius is widened by more than its rounding: an upper bound.
    """
    lo, hi = box.lo, box.hi
    total = 0.0
    for f in range(box.free):
        j = work.feature[f]
        column = work.columns_from[f]
        reach = radius / task.peak[j] * (1.0 + 1e-12) if radius < WHOLE else FAR
        if not task.is_table[j]:
            g = gains[column]
            far = hi[j] if g > 0.0 else lo[j]
            if reach < FAR:
                width = reach / task.inverse[j]
                if g > 0.0 and task.own[j] + width < far:
                    far = max(task.own[j] + width, work.near[j])
                    if task.is_grid[j]:
                        far = max(snap_down(j, far, task), work.near[j])
                elif g <= 0.0 and task.own[j] - width > far:
                    far = min(task.own[j] - width, work.near[j])
                    if task.is_grid[j]:
                        far = min(snap_up(j, far, task), work.near[j])
            work.x[column] = far - work.near[j] if g != 0.0 else 0.0
            total += g * work.x[column]
            continue
        best = 0.0
        where = -1
        for column in range(work.columns_from[f], work.columns_from[f + 1]):
            work.x[column] = 0.0
            if gains[column] > best and task.entry_delta[task.off[j] + work.column_entry[column]] <= reach:
                best = gains[column]
                where = column
        if where >= 0:
            work.x[where] = 1.0
            total += best
    return total


@kernel
def trade(gains, price, box, task, work):
    """Maximise price·gain - cost over the box, for costs that are squares; return (cost, gain) beyond the nearest point, and write ``x``.

    Each feature by itself: of q δ² - price·g·δ the minimum is at δ = price·g / 2q, clipped to the box. At the price FAR costs do not count:
    the greatest gain.
    """
    lo, hi = box.lo, box.hi
    total_cost = 0.0
    total_gain = 0.0
    for f in range(box.free):
        j = work.feature[f]
        column = work.columns_from[f]
        q = task.square[j]
        if not task.is_table[j]:
            g = gains[column]
            near = work.near[j]
            far = hi[j] if g > 0.0 else lo[j]
            start = work.delta[j]
            end = abs(far - task.own[j]) * task.inverse[j]
            work.x[column] = 0.0
            if g == 0.0 or far == near:
                continue
            if price < FAR and task.inverse[j] > 0.0 and q > 0.0:
                best = price * abs(g) / task.inverse[j] / (2.0 * q)
                delta = min(max(best, start), end)
                share = 1.0 if delta >= end else (delta - start) / (end - start)
            else:
                delta = end
                share = 1.0
            work.x[column] = share * (far - near)
            total_cost += q * (delta * delta - start * start)
            total_gain += g * work.x[column]
            continue
        start = q * work.delta[j] * work.delta[j]
        best = 0.0
        where = -1
        for column in range(work.columns_from[f], work.columns_from[f + 1]):
            work.x[column] = 0.0
            delta = task.entry_delta[task.off[j] + work.column_entry[column]]
            value = price * gains[column] - (q * delta * delta - start) if price < FAR else gains[column]
            if value > best:
                best = value
                where = column
        if where >= 0:
            delta = task.entry_delta[task.off[j] + work.column_entry[where]]
            work.x[where] = 1.0
            total_cost += q * delta * delta - start
            total_gain += gains[where]
    return total_cost, total_gain


@kernel
def most_gain(gains, limit, box, task, work):
    """Return an upper bound on the gain of a functional over the box and the ball of radius ``limit``, beyond its nearest point.

    By weak duality every price θ > 0 gives one: gain(v) <= Σ_j max_v (g_j - c_j / θ) + (limit - cost of the nearest point) / θ. For sums
    the best price comes with filling the knapsack up to the limit; for squares it is bisected, keeping the least bound; for peaks the box
    is already clipped to the ball. What is left up to the limit is rounded up; the sums of gains are covered by ``net.own`` of the caller.
    """
    if task.form[0] == PEAK:
        return gain_within(gains, WHOLE, box, task, work)
    left = limit - work.near_cost[0] - (work.near_cost[1] if task.form[0] == MIXED else 0.0)
    left = max(left, 0.0) + 1e-15 + 1e-13 * limit
    if task.form[0] == SQUARE:
        full_cost, full_gain = trade(gains, FAR, box, task, work)
        bound = full_gain
        if full_cost <= left or full_gain <= 0.0:
            return bound
        price = full_cost / full_gain
        low, high = 0.0, FAR
        for _ in range(24):
            cost, gain = trade(gains, price, box, task, work)
            bound = min(bound, gain + (left - cost) / price)
            if cost > left:
                high = price
            else:
                low = price
            if high < FAR and high - low < 1e-3 * high:
                break
            price = 0.5 * (low + high) if high < FAR else 2.0 * price
            if low == 0.0:
                price = 0.25 * high
        return bound
    for j in range(box.lo.shape[0]):
        work.extra[j] = 0.0
    count, total = build_pieces(gains, box, task, work)
    for a in range(count):
        piece = work.order[a]
        # The last piece that is begun is counted at its full steepness.
        if work.cost[piece] >= left:
            return total + work.ratio[piece] * left
        total += work.gain[piece]
        left -= work.cost[piece]
    return total


@kernel
def least_cost(gains, need, limit, tolerance, box, task, work):
    """Return a lower bound on the cost of points of the box whose gain is at least ``need``; FAR where there is none.

    Writes into ``x`` a point of the relaxation (table columns: weights) that attains the bound, or nearly. The bound is rounded to nearest,
    radii and prices towards smaller costs.
    """
    features = box.lo.shape[0]
    for c in range(box.columns):
        work.gains[c] = gains[c]
        work.x[c] = 0.0
    form = task.form[0]
    base = work.near_cost[0] + work.near_cost[1]
    if need <= 0.0:
        return base
    if form == PEAK:
        return least_radius(gains, need, limit, tolerance, box, task, work)
    if form == SQUARE:
        return least_square(gains, need, box, task, work)
    if form == SUM:
        for j in range(features):
            work.extra[j] = 0.0
        return work.near_cost[0] + fill(gains, need, box, task, work)
    # max_j peak·δ >= Σ_j w_j peak·δ for weights w >= 0 with sum 1 makes the cost a sum. Two choices of weights, each a valid bound: in
    # proportion to the gains, and all on the feature that is greatest at the nearest point.
    best = base
    whole = 0.0
    top = -1
    for f in range(box.free):
        j = work.feature[f]
        work.score[j] = 0.0
        for column in range(work.columns_from[f], work.columns_from[f + 1]):
            g = gains[column]
            if not task.is_table[j]:
                g = abs(g) / task.inverse[j] if task.inverse[j] > 0.0 else 0.0
            work.score[j] = max(work.score[j], g)
        whole += work.score[j]
    for j in range(features):
        if work.delta[j] > 0.0 and (top < 0 or task.peak[j] * work.delta[j] > task.peak[top] * work.delta[top]):
            top = j
    for choice in range(2):
        if (choice == 0 and whole <= 0.0) or (choice == 1 and top < 0):
            continue
        start = work.near_cost[0]
        for j in range(features):
            work.extra[j] = 0.0
        if choice == 0:
            for f in range(box.free):
                j = work.feature[f]
                work.extra[j] = task.peak[j] * work.score[j] / whole * (1.0 - 1e-12)
        else:
            work.extra[top] = task.peak[top]
        for j in range(features):
            start += work.extra[j] * work.delta[j]
        found = fill(gains, need, box, task, work)
        if found >= FAR:
            return FAR
        best = max(best, start + found)
    return best


@kernel
def fill(gains, need, box, task, work):
    """Take the pieces with the most gain for their cost until ``need`` is reached, the last in part; return the cost, FAR where it is not.

    That is the optimum of the fractional knapsack, a lower bound on the cost of every point.
    """
    count, total = build_pieces(gains, box, task, work)
    spent = 0.0
    for a in range(count):
        if total >= need:
            break
        piece = work.order[a]
        if total + work.gain[piece] > need:
            share = (need - total) / work.gain[piece]
            take_piece(piece, share, box, task, work)
            return spent + share * work.cost[piece]
        take_piece(piece, 1.0, box, task, work)
        total += work.gain[piece]
        spent += work.cost[piece]
    return spent if total >= need else FAR


@kernel
def least_radius(gains, need, limit, tolerance, box, task, work):
    """Return a radius within which the gain is not reached, at most ``tolerance`` below the least that does, by bisection; FAR for none."""
    lo, hi = box.lo, box.hi
    low = work.near_cost[1]
    if gain_within(gains, low, box, task, work) >= need:
        return low
    high = low
    for f in range(box.free):
        j = work.feature[f]
        if task.is_table[j]:
            for e in range(int(lo[j]), int(hi[j]) + 1):
                high = max(high, task.peak[j] * task.entry_delta[task.off[j] + e])
        else:
            far = max(abs(lo[j] - task.own[j]), abs(hi[j] - task.own[j]))
            high = max(high, task.peak[j] * far * task.inverse[j])
    high = min(high, limit) * (1.0 + 1e-12)
    reached = gain_within(gains, high, box, task, work)
    if reached < need:
        return FAR
    for _ in range(60):
        if high - low <= tolerance:
            break
        middle = 0.5 * (low + high)
        if gain_within(gains, middle, box, task, work) >= need:
            high = middle
        else:
            low = middle
    gain_within(gains, high, box, task, work)
    return low


@kernel
def least_square(gains, need, box, task, work):
    """Return the greatest of the lower bounds Σ_j min_v (c_j - θ g_j) + θ need that a bisection over prices θ finds.

    By weak duality each of them is one, whatever the price; FAR where not even the greatest gain suffices.
    """
    cost, gain = trade(gains, FAR, box, task, work)
    if gain < need:
        return FAR
    best = 0.0
    price = max(cost, 1e-300) / gain
    low, high = 0.0, FAR
    for _ in range(60):
        cost, gain = trade(gains, price, box, task, work)
        best = max(best, cost + price * (need - gain))
        if gain >= need:
            high = price
        else:
            low = price
        if high < FAR and high - low < 1e-10 * high:
            break
        if high >= FAR:
            price *= 4.0
        elif low == 0.0:
            price *= 0.25
        else:
            price = 0.5 * (low + high)
    if high < FAR:
        trade(gains, high, box, task, work)
    return work.near_cost[0] + best


# ---- bound propagation


@kernel
def backward(top, mode, net, work):
    """Turn coefficients ``lam`` on the activations of layer ``top`` into an upper bound that is linear in the first layer's sums (CROWN).

    With activation a(z) = z for z >= 0, bend·z below, and low <= z <= high: a positive coefficient takes the chord through both ends, which
    lies above a; a negative one takes a line through 0 with slope 1 or bend, which lies below a. Either choice of slope is valid.

    Returns (constant, error); the coefficients are in ``mu``. The coefficients are floats, and so exact in what follows from
    them; what the bound lacks for the roundings on the way is at most the sum over the layers of own·Σ|mu|·size, where ``size`` bounds
    Σ|w||h| of each unit over the box.
    """
    constant = 0.0
    error = 0.0
    lam, mu = work.lam, work.mu
    for k in range(top, -1, -1):
        for i in range(net.width[k]):
            c = lam[i]
            bend = net.bend[k, i]
            if c == 0.0:
                mu[i] = 0.0
                continue
            low, high = work.low[k, i], work.high[k, i]
            if mode == AT_POINT:
                mu[i] = c if work.z[k, i] >= 0.0 else c * bend
            elif low >= 0.0 or bend == 1.0:
                mu[i] = c
            elif high <= 0.0:
                mu[i] = c * bend
            elif c > 0.0:
                # The chord s·z + shift, moved up by more than its rounding.
                s = (high - bend * low) / (high - low)
                shift = max(high - s * high, bend * low - s * low) + 1e-15 * (high - low)
                mu[i] = c * s
                constant += c * shift
            elif mode == ADAPTIVE:
                # The lower line with the smaller area between it and a.
                mu[i] = c if high > -low else c * bend
            else:
                # The lower line that is exact at the point last evaluated.
                mu[i] = c if work.z[k, i] >= 0.0 else c * bend
            error += abs(mu[i]) * work.size[k, i]
        if k == 0:
            break
        for p in range(net.width[k - 1]):
            lam[p] = 0.0
        for i in range(net.width[k]):
            m = mu[i]
            if m != 0.0:
                constant += m * net.offset[k, i]
                for p in range(net.begin[k, i], net.end[k, i]):
                    lam[p] += m * net.weight[k, i, p]
    return constant, net.own * error


@kernel
def gather(units, columns, gains, work):
    """Write the gains of the columns of the functional ``mu`` on the first layer; return its value at the nearest point."""
    for c in range(columns):
        gains[c] = 0.0
    value = 0.0
    for i in range(units):
        m = work.mu[i]
        if m != 0.0:
            value += m * work.first_at_near[i]
            for c in range(columns):
                gains[c] += m * work.matrix[i, c]
    return value


@kernel
def propagate(limit, box, net, task, work):
    """Bound every pre-activation over the box and the ball, layer by layer, and the rounding of the deployed arithmetic.

    Intervals first, then where the sign is still open CROWN, made concrete over the box and the ball by :func:`most_gain`; the better of
    both counts. All bounds are rounded outward by ``net.own`` times the size of what is added up.
    """
    columns = box.columns
    depth = net.width.shape[0] - 1
    units = net.width[0]
    for i in range(units):
        through = net.single * work.size[0, i] + net.grid_error[i]
        work.error[0, i] = through + net.relative[0] * (work.size[0, i] + through) + net.tiny
    for k in range(depth):
        for i in range(net.width[k]):
            if k == 0:
                # Copies of a network whose input is shifted differ in their offsets alone.
                if net.twin[i] < i:
                    for side in range(2):
                        work.first_gain[side, i] = work.first_gain[side, net.twin[i]]
                else:
                    for side in range(2):
                        for c in range(columns):
                            work.gains[c] = work.matrix[i, c] if side == 0 else -work.matrix[i, c]
                        work.first_gain[side, i] = most_gain(work.gains, limit, box, task, work)
                for c in range(columns):
                    work.unit_gain[0, i, c] = work.matrix[i, c]
                pad = net.own * work.size[0, i]
                work.high[0, i] = work.first_at_near[i] + work.first_gain[0, i] + pad
                work.low[0, i] = work.first_at_near[i] - work.first_gain[1, i] - pad
                continue
            low = net.offset[k, i]
            high = net.offset[k, i]
            size = net.size[k, i]
            through = 0.0
            for p in range(net.begin[k, i], net.end[k, i]):
                w = net.weight[k, i, p]
                bend = net.bend[k - 1, p]
                a = work.low[k - 1, p]
                b = work.high[k - 1, p]
                a = a if a >= 0.0 else bend * a
                b = b if b >= 0.0 else bend * b
                if w >= 0.0:
                    low += w * a
                    high += w * b
                else:
                    low += w * b
                    high += w * a
                size += abs(w) * max(abs(a), abs(b))
                through += abs(w) * work.error[k - 1, p]
            work.size[k, i] = size
            work.error[k, i] = deployed_error(k, size, through, net)
            pad = net.own * size
            work.low[k, i] = low - pad
            work.high[k, i] = high + pad
            if low - pad >= 0.0 or high + pad <= 0.0 or net.bend[k, i] == 1.0:
                continue
            for side in range(2):
                sign = 1.0 if side == 0 else -1.0
                for p in range(net.width[k - 1]):
                    work.lam[p] = sign * net.weight[k, i, p]
                constant, error = backward(k - 1, ADAPTIVE, net, work)
                value = gather(units, columns, work.gains, work)
                if side == 0:
                    for c in range(columns):
                        work.unit_gain[k, i, c] = work.gains[c]
                gain = most_gain(work.gains, limit, box, task, work)
                bound = sign * net.offset[k, i] + constant + value + gain + error + pad
                if side == 0:
                    work.high[k, i] = min(work.high[k, i], bound)
                else:
                    work.low[k, i] = max(work.low[k, i], -bound)
    if depth > 0:
        k = depth
        for i in range(net.width[k]):
            size = net.size[k, i]
            through = 0.0
            for p in range(net.begin[k, i], net.end[k, i]):
                size += abs(net.weight[k, i, p]) * max(abs(work.low[k - 1, p]), abs(work.high[k - 1, p]))
                through += abs(net.weight[k, i, p]) * work.error[k - 1, p]
            work.size[k, i] = size
            work.error[k, i] = deployed_error(k, size, through, net)


@kernel
def margin_weights(r, net, task, work):
    """Write a margin's coefficients on the last hidden layer into ``lam``."""
    depth = net.width.shape[0] - 1
    plus, minus = task.plus[r], task.minus[r]
    for p in range(net.width[depth - 1]):
        work.lam[p] = 0.0
        if plus >= 0:
            work.lam[p] += net.weight[depth, plus, p]
        if minus >= 0:
            work.lam[p] -= net.weight[depth, minus, p]


@kernel
def bound_row(r, mode, box, net, task, work):
    """Write a row's functional over the columns; return (value at the nearest point, error of the bound, band of the model).

    Over the box the row's exact value is at most value + gains·x + error, or equal to it without the error AT_POINT; the deployed model's
    value is within ``band`` of the exact one.
    """
    columns = box.columns
    depth = net.width.shape[0] - 1
    margins = task.plus.shape[0]
    gains = work.rows[r]
    if r >= margins:
        q = r - margins
        value = linear_row(q, work.near, task)
        f = 0
        for c in range(columns):
            while work.columns_from[f + 1] <= c:
                f += 1
            j = work.feature[f]
            if task.is_table[j]:
                here = slot_of(j, work.near[j], task)
                there = task.entry_slot[task.off[j] + work.column_entry[c]]
                gains[c] = task.row[q, there] - task.row[q, here]
            else:
                gains[c] = task.row[q, task.slot[j]]
        return value, task.row_error[q], task.row_error[q]
    plus, minus = task.plus[r], task.minus[r]
    constant = task.shift[r]
    band = task.slack[r] + net.squash
    error = 0.0
    if plus >= 0:
        band += work.error[depth, plus]
        error += work.size[depth, plus]
    if minus >= 0:
        band += work.error[depth, minus]
        error += work.size[depth, minus]
    error = net.own * (error + abs(constant))
    if depth == 0:
        for i in range(net.width[0]):
            work.mu[i] = 0.0
        if plus >= 0:
            work.mu[plus] += 1.0
        if minus >= 0:
            work.mu[minus] -= 1.0
        return constant + gather(net.width[0], columns, gains, work), error, band
    margin_weights(r, net, task, work)
    if plus >= 0:
        constant += net.offset[depth, plus]
    if minus >= 0:
        constant -= net.offset[depth, minus]
    added, own = backward(depth - 1, mode, net, work)
    return constant + added + gather(net.width[0], columns, gains, work), error + own, band


@kernel
def combine(limit, tolerance, box, task, work):
    """Return a lower bound on the cost of points that fulfil all rows: constants + rows·x >= 0; writes the relaxation into ``best_x``.

    Every row alone gives a bound, and so does every convex combination of rows (a surrogate constraint): the row that the relaxed point
    violates most is mixed in, with a weight found by bisection, until the bound is beyond ``limit``. Returns (bound, the row that gave the
    best bound alone).
    """
    rows, columns = row_count(task), box.columns
    best = -1.0
    chosen = 0
    for r in range(rows):
        found = least_cost(work.rows[r], -work.constants[r], limit, tolerance, box, task, work)
        if found >= FAR:
            return FAR, r
        if found > best:
            best = found
            chosen = r
            for c in range(columns):
                work.best_x[c] = work.x[c]
    if rows == 1 or columns == 0 or best > limit:
        return best, chosen
    mixed, fresh = work.mix[0], work.mix[1]
    for c in range(columns):
        mixed[c] = work.rows[chosen, c]
    constant = work.constants[chosen]
    for _ in range(2 * rows):
        worst = -1
        most = 1e-9
        for r in range(rows):
            value = work.constants[r]
            scale = abs(value)
            for c in range(columns):
                value += work.rows[r, c] * work.best_x[c]
                scale += abs(work.rows[r, c] * work.best_x[c])
            if -value > most * scale:
                most = -value / max(scale, 1e-300)
                worst = r
        if worst < 0:
            break
        low, high = 0.0, 1.0
        improved = False
        kept = 0.0
        for _ in range(16):
            share = 0.5 * (low + high)
            for c in range(columns):
                fresh[c] = (1.0 - share) * mixed[c] + share * work.rows[worst, c]
            need = -((1.0 - share) * constant + share * work.constants[worst])
            found = least_cost(fresh, need, limit, tolerance, box, task, work)
            if found >= FAR:
                return FAR, chosen
            if found > limit:
                return found, chosen
            if found > best:
                best = found
                improved = True
                kept = share
                for c in range(columns):
                    work.best_x[c] = work.x[c]
            value = work.constants[worst]
            for c in range(columns):
                value += work.rows[worst, c] * work.x[c]
            if value < 0.0:
                low = share
            else:
                high = share
        if not improved:
            break
        for c in range(columns):
            mixed[c] = (1.0 - kept) * mixed[c] + kept * work.rows[worst, c]
        constant = (1.0 - kept) * constant + kept * work.constants[worst]
    return best, chosen


# ---- points from relaxations


@kernel
def round_relaxation(x, box, task, work, v):
    """Write the point of a relaxation: grids rounded away from the nearest point, tables to the entry with most weight."""
    lo, hi = box.lo, box.hi
    for j in range(v.shape[0]):
        v[j] = work.near[j]
    for f in range(box.free):
        j = work.feature[f]
        if task.is_table[j]:
            most = 1e-9
            for column in range(work.columns_from[f], work.columns_from[f + 1]):
                if x[column] > most:
                    most = x[column] if x[column] < 0.5 else 2.0
                    v[j] = work.column_entry[column]
            continue
        moved = x[work.columns_from[f]]
        value = min(max(work.near[j] + moved, lo[j]), hi[j])
        if moved > 0.0:
            tolerance = 1e-9 * task.step[j] if task.is_grid[j] else 0.0
            value = snap_up(j, value - tolerance, task)
        elif moved < 0.0:
            tolerance = 1e-9 * task.step[j] if task.is_grid[j] else 0.0
            value = snap_down(j, value + tolerance, task)
        else:
            value = snap(j, value, task)
        v[j] = min(max(value, lo[j]), hi[j])


@kernel
def linearise(box, net, task, work):
    """Write the rows as they are around the point last judged: the linear pieces in use there, narrowed by the rounding.

    No bound comes of this: a point of the goal is looked for.
    """
    for r in range(row_count(task)):
        value, error, band = bound_row(r, AT_POINT, box, net, task, work)
        work.constants[r] = value - error - 2.5 * band


@kernel
def try_point(v, state, net, task, work):
    """Make a point the incumbent where it is in the goal for sure and nearer; return what is sure of it."""
    cost = cost_of(v, task)
    verdict, _ = judge(v, net, task, work)
    if verdict == SURE and cost < state.reals[BEST]:
        state.reals[BEST] = cost
        state.registers[FOUND] = 1
        for j in range(v.shape[0]):
            state.best[j] = v[j]
    return verdict


@kernel
def descend(v, steps, box, state, net, task, work):
    """Go from point to point, each the nearest of the linear pieces in use at the one before, inside the box (successive linearisation)."""
    for _ in range(steps):
        linearise(box, net, task, work)
        found, _ = combine(WHOLE, state.reals[TOLERANCE], box, task, work)
        if found >= state.reals[BEST]:
            return
        round_relaxation(work.best_x, box, task, work, work.other)
        same = True
        for j in range(v.shape[0]):
            if v[j] != work.other[j]:
                same = False
            v[j] = work.other[j]
        if same:
            return
        try_point(v, state, net, task, work)


@kernel
def bisect_number(j, bad, upward, v, box, net, task, work):
    """Move the number of feature j of a point of the goal towards ``bad``, which is not in it, by bisection, as far as the goal allows."""
    good = v[j]
    for _ in range(30):
        middle = 0.5 * (bad + good)
        v[j] = snap_up(j, middle, task) if upward else snap_down(j, middle, task)
        if v[j] < box.lo[j] or v[j] > box.hi[j] or v[j] == good or v[j] == bad:
            break
        if judge(v, net, task, work)[0] == SURE:
            good = v[j]
        else:
            bad = middle
    v[j] = good


@kernel
def polish(v, box, state, net, task, work):
    """Take changes of a point in the goal back, one by one, as far as the goal allows; the incumbent is updated."""
    lo, hi = box.lo, box.hi
    features = v.shape[0]
    for j in range(features):
        home = task.nearest[j] if task.is_table[j] else task.own[j]
        if v[j] == home or home < lo[j] or home > hi[j]:
            continue
        if not task.is_table[j] and snap_up(j, home, task) != home:
            continue
        kept = v[j]
        v[j] = home
        if judge(v, net, task, work)[0] != SURE:
            v[j] = kept
    if task.form[0] == PEAK:
        shrink_changes(v, box, net, task, work)
    else:
        for j in range(features):
            if v[j] == task.own[j] or task.slope[j] + task.square[j] + task.peak[j] <= 0.0:
                continue
            if task.is_table[j]:
                while v[j] != task.nearest[j]:
                    kept = v[j]
                    v[j] += 1.0 if v[j] < task.nearest[j] else -1.0
                    delta = task.entry_delta[task.off[j] + int(v[j])]
                    worse = delta >= task.entry_delta[task.off[j] + int(kept)]
                    if worse or v[j] < lo[j] or v[j] > hi[j] or judge(v, net, task, work)[0] != SURE:
                        v[j] = kept
                        break
                continue
            towards = min(max(task.own[j], lo[j]), hi[j])
            bisect_number(j, towards, v[j] > towards, v, box, net, task, work)
    try_point(v, state, net, task, work)


@kernel
def shrink_changes(v, box, net, task, work):
    """Limit all changes of numbers to an ever smaller radius, by bisection, as far as the goal allows."""
    high = 0.0
    for j in range(v.shape[0]):
        if not task.is_table[j]:
            high = max(high, task.peak[j] * change(j, v[j], task))
    low = 0.0
    for _ in range(30):
        if high - low < 1e-9 * high:
            return
        radius = 0.5 * (low + high)
        for j in range(v.shape[0]):
            work.other[j] = v[j]
            if not task.is_table[j] and task.peak[j] * change(j, v[j], task) > radius:
                width = radius / task.peak[j] / task.inverse[j]
                if v[j] > task.own[j]:
                    work.other[j] = max(snap_down(j, task.own[j] + width, task), box.lo[j])
                else:
                    work.other[j] = min(snap_up(j, task.own[j] - width, task), box.hi[j])
        if judge(work.other, net, task, work)[0] == SURE:
            for j in range(v.shape[0]):
                v[j] = work.other[j]
            high = radius
        else:
            low = radius


@kernel
def try_single_changes(box, state, net, task, work):
    """Try changes of single features from the nearest point on: numbers by doubling and bisection, tables entry by entry."""
    lo, hi = box.lo, box.hi
    v = work.point
    for j in range(lo.shape[0]):
        for i in range(lo.shape[0]):
            near = work.near[i]
            v[i] = near if task.is_table[i] else min(max(snap(i, near, task), lo[i]), hi[i])
        if lo[j] == hi[j]:
            continue
        if task.is_table[j]:
            for e in range(int(lo[j]), int(hi[j]) + 1):
                v[j] = e
                if cost_of(v, task) < state.reals[BEST]:
                    try_point(v, state, net, task, work)
            continue
        for side in range(2):
            end = hi[j] if side == 0 else lo[j]
            start = work.near[j]
            bad = start
            for s in range(12):
                target = start + (end - start) * 2.0 ** (s - 11)
                v[j] = snap_up(j, target, task) if side == 0 else snap_down(j, target, task)
                if v[j] < lo[j] or v[j] > hi[j] or v[j] == start:
                    continue
                if judge(v, net, task, work)[0] != SURE:
                    bad = v[j]
                    continue
                bisect_number(j, bad, side == 0, v, box, net, task, work)
                try_point(v, state, net, task, work)
                break


# ---- branching


@kernel
def spread(f, gains, box, task, work):
    """Return how far apart a functional's values are over one free feature of the box."""
    j = work.feature[f]
    column = work.columns_from[f]
    if not task.is_table[j]:
        return abs(gains[column]) * (box.hi[j] - box.lo[j])
    least = 0.0
    most = 0.0
    for c in range(column, work.columns_from[f + 1]):
        least = min(least, gains[c])
        most = max(most, gains[c])
    return most - least


@kernel
def add_losses(row, box, net, task, work):
    """Add to the scores of free features what branching on them promises for a row.

    An open unit loses at most |coefficient|·(1 - bend)·high·(-low) / (high - low), the gap between the two lines that bound it. The loss is
    shared out among the features by how far each moves the unit.
    """
    depth = net.width.shape[0] - 1
    if depth > 0 and row < task.plus.shape[0]:
        margin_weights(row, net, task, work)
        for k in range(depth - 1, -1, -1):
            for i in range(net.width[k]):
                low, high, bend = work.low[k, i], work.high[k, i], net.bend[k, i]
                if low >= 0.0 or bend == 1.0:
                    work.mu[i] = work.lam[i]
                    continue
                if high <= 0.0:
                    work.mu[i] = work.lam[i] * bend
                    continue
                s = (high - bend * low) / (high - low)
                work.mu[i] = work.lam[i] * s
                loss = abs(work.lam[i]) * (1.0 - bend) * high * -low / (high - low)
                whole = 0.0
                for f in range(box.free):
                    whole += spread(f, work.unit_gain[k, i], box, task, work)
                if whole <= 0.0 or loss <= 0.0:
                    continue
                for f in range(box.free):
                    work.score[f] += loss * spread(f, work.unit_gain[k, i], box, task, work) / whole
            if k > 0:
                for p in range(net.width[k - 1]):
                    work.lam[p] = 0.0
                for i in range(net.width[k]):
                    if work.mu[i] != 0.0:
                        for p in range(net.begin[k, i], net.end[k, i]):
                            work.lam[p] += work.mu[i] * net.weight[k, i, p]


@kernel
def fractional_feature(box, task, work):
    """Return a free feature whose relaxed value is none of its own, or cheaper than it would be (a jump paid in part); -1 for none."""
    for f in range(box.free):
        j = work.feature[f]
        if task.is_table[j]:
            for column in range(work.columns_from[f], work.columns_from[f + 1]):
                if 1e-9 < work.best_x[column] < 1.0 - 1e-9:
                    return f
            continue
        moved = work.best_x[work.columns_from[f]]
        if moved == 0.0:
            continue
        value = work.near[j] + moved
        if task.jump[j] > 0.0 and work.near[j] == task.own[j]:
            return f
        if task.is_grid[j] and abs(snap_up(j, value, task) - value) > 1e-9 * task.step[j]:
            return f
        if task.digits[j] > 0 and snap_up(j, value, task) != value:
            return f
        if task.span_off[j + 1] - task.span_off[j] > 1 and snap_up(j, value, task) != value:
            return f
    return -1


@kernel
def loosest_feature(tightest, box, net, task, work):
    """Return the free feature whose branching promises most; -1 where no unit is open.

    That is summed up over the tightest row and all margins that the relaxed point, rounded, misses though the relaxation does not see it.
    """
    margins, depth = task.plus.shape[0], net.width.shape[0] - 1
    for f in range(box.free):
        work.score[f] = 0.0
    add_losses(tightest, box, net, task, work)
    if margins > 1:
        round_relaxation(work.best_x, box, task, work, work.other)
        judge(work.other, net, task, work)
        for r in range(margins):
            value, band = row_value(r, work.other, work.z[depth], work.point_error[depth], net, task)
            if r != tightest and value < -2.0 * band:
                add_losses(r, box, net, task, work)
    chosen = -1
    most = 0.0
    for f in range(box.free):
        if work.score[f] > most:
            most = work.score[f]
            chosen = f
    return chosen


@kernel
def choose_feature(tightest, box, net, task, work):
    """Return the free feature to branch on: of the loosest units; or one whose relaxed value is none; or the one that moves the row most.

    A jump that is paid in part comes first: no other branching can raise that part.
    """
    f = loosest_feature(tightest, box, net, task, work)
    fractional = fractional_feature(box, task, work)
    if f < 0 or (fractional >= 0 and task.jump[work.feature[fractional]] > 0.0):
        f = fractional if fractional >= 0 else f
    if f < 0:
        widest = -1.0
        for g in range(box.free):
            width = spread(g, work.rows[tightest], box, task, work)
            if width > widest:
                widest = width
                f = g
    return f


@kernel
def push(tree, registers, bound):
    """Make room for a box with a bound and put it into the heap; return its place. The caller sees to it that there is room."""
    if registers[SPARE] > 0:
        registers[SPARE] -= 1
        node = tree.spare[registers[SPARE]]
    else:
        node = registers[USED]
        registers[USED] += 1
    tree.bound[node] = bound
    place = registers[HEAP]
    registers[HEAP] += 1
    tree.heap[place] = node
    while place > 0:
        parent = (place - 1) // 2
        if tree.bound[tree.heap[parent]] <= tree.bound[tree.heap[place]]:
            break
        tree.heap[parent], tree.heap[place] = tree.heap[place], tree.heap[parent]
        place = parent
    return node


@kernel
def pop(tree, registers):
    """Take the box with the least bound off the heap."""
    node = tree.heap[0]
    registers[HEAP] -= 1
    size = registers[HEAP]
    tree.heap[0] = tree.heap[size]
    place = 0
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        if child + 1 < size and tree.bound[tree.heap[child + 1]] < tree.bound[tree.heap[child]]:
            child += 1
        if tree.bound[tree.heap[place]] <= tree.bound[tree.heap[child]]:
            break
        tree.heap[place], tree.heap[child] = tree.heap[child], tree.heap[place]
        place = child
    tree.spare[registers[SPARE]] = node
    registers[SPARE] += 1
    return node


@kernel
def add_child(j, first, last, bound, box, tree, registers):
    """Push the part of a box in which feature j lies from ``first`` to ``last``, unless it is empty."""
    if first > last or first >= FAR or last <= -FAR:
        return
    node = push(tree, registers, bound)
    for i in range(box.lo.shape[0]):
        tree.lo[node, i] = box.lo[i]
        tree.hi[node, i] = box.hi[i]
    tree.lo[node, j] = first
    tree.hi[node, j] = last


@kernel
def where_to_branch(f, box, task, work):
    """Return the value at which to branch on a free feature, and whether it becomes a box of its own.

    The nearest level, or the factual's own number where a jump is at stake, is separated from all others; then the box is cut at the own
    number; then between its middle and the relaxed value.
    """
    lo, hi = box.lo, box.hi
    j = work.feature[f]
    near = work.near[j]
    if task.is_table[j]:
        if near == task.nearest[j]:
            return near, True
        return np.floor(0.5 * (lo[j] + hi[j])), False
    own = task.own[j]
    if lo[j] <= own <= hi[j] and snap_up(j, own, task) == own:
        if task.jump[j] > 0.0:
            return own, True
        if lo[j] < own < hi[j]:
            return own, False
    middle = 0.5 * (lo[j] + hi[j])
    value = near + work.best_x[work.columns_from[f]]
    width = hi[j] - lo[j]
    if lo[j] + 0.1 * width < value < hi[j] - 0.1 * width:
        middle = 0.5 * (middle + value)
    at = max(snap_down(j, middle, task), lo[j])
    return (below(j, hi[j], task) if at >= hi[j] else at), False


@kernel
def branch(f, bound, box, tree, registers, task, work):
    """Branch on a free feature: two children, or three where the value becomes a box of its own."""
    at, apart = where_to_branch(f, box, task, work)
    j = work.feature[f]
    lo, hi = box.lo[j], box.hi[j]
    if apart:
        add_child(j, at, at, bound, box, tree, registers)
        add_child(j, lo, below(j, at, task), bound, box, tree, registers)
        add_child(j, above(j, at, task), hi, bound, box, tree, registers)
        return
    add_child(j, lo, at, bound, box, tree, registers)
    # Of a plain interval of reals both children keep the value; elsewhere the next allowed value begins the second.
    whole = not (task.is_table[j] or task.is_grid[j] or task.digits[j] != 0)
    whole = whole and task.span_off[j + 1] - task.span_off[j] == 1
    if not whole or at == lo:
        add_child(j, above(j, at, task), hi, bound, box, tree, registers)
    else:
        add_child(j, at, hi, bound, box, tree, registers)


@kernel
def can_differ(lo, hi, task):
    """Return -2 where the box holds no point that differs enough from all earlier counterfactuals (prune), -1 where all points do or there
    is nothing to branch on, else a feature to branch on."""
    found = -1
    for c in range(task.at_least.shape[0]):
        possible = 0
        certain = 0
        open_feature = -1
        for j in range(lo.shape[0]):
            a, b = task.alike_lo[c, j], task.alike_hi[c, j]
            if lo[j] < a or hi[j] > b:
                possible += 1
                if hi[j] < a or lo[j] > b:
                    certain += 1
                elif open_feature < 0:
                    open_feature = j
        if possible < task.at_least[c]:
            return -2
        if certain < task.at_least[c] and found < 0:
            found = open_feature
    return found


@kernel
def branch_to_differ(j, bound, box, tree, registers, task):
    """Branch at the ends of what counts as alike for some earlier counterfactual: below it, inside of it, above it."""
    lo, hi = box.lo[j], box.hi[j]
    for c in range(task.at_least.shape[0]):
        a, b = task.alike_lo[c, j], task.alike_hi[c, j]
        if (lo < a or hi > b) and not (hi < a or lo > b):
            first, last = max(lo, a), min(hi, b)
            if not task.is_table[j]:
                first, last = snap_up(j, first, task), snap_down(j, last, task)
            if lo < a:
                add_child(j, lo, min(below(j, a, task), hi), bound, box, tree, registers)
            add_child(j, first, last, bound, box, tree, registers)
            if hi > b:
                add_child(j, max(above(j, b, task), lo), hi, bound, box, tree, registers)
            return


# ---- the search


@kernel
def search_radius(reals, task):
    """Return the cost up to which points are still searched for: that of the incumbent, less the gap that is asked for.

    The gap is one of distances, which are roots of costs that are squares; on a finite space it is a tolerance of costs.
    """
    best = reals[BEST]
    if best >= WHOLE:
        return WHOLE
    if task.form[0] == SQUARE and task.form[1] == 0:
        root = max(np.sqrt(best) - reals[GAP], 0.0)
        return root * root
    return best - reals[GAP]


@kernel
def is_small(box, reals, task, work):
    """Return whether a box is so small that branching on it would not tell costs apart."""
    for f in range(box.free):
        j = work.feature[f]
        if task.is_table[j] or task.is_grid[j]:
            return False
        weight = max(task.slope[j] + task.square[j] + task.peak[j], 1e-3 * task.jump[j])
        is_apart = task.digits[j] > 0 or above(j, box.lo[j], task) < box.hi[j]
        if (box.hi[j] - box.lo[j]) * task.inverse[j] * weight > reals[SMALL] and is_apart:
            return False
    return True


@kernel
def log_point(v, state, task):
    """Note a point that only the real model can decide."""
    n = state.registers[LOGGED]
    for j in range(v.shape[0]):
        state.log[n, j] = v[j]
    state.log_cost[n] = cost_of(v, task)
    state.registers[LOGGED] = n + 1


@kernel
def copy_columns(box, source, target):
    """Copy a relaxed point."""
    for c in range(box.columns):
        target[c] = source[c]


@kernel
def relax(attempt, certain, limit, tolerance, box, net, task, work):
    """Bound all rows over the box and return (a lower bound on the cost of a counterfactual in it, the row that gives it).

    A row's upper bound is its functional plus the rounding of the bound and the band of the model: what may be at least 0 in the deployed
    arithmetic stays possible. Where ``certain``, both are subtracted instead: only points that neither can disturb are searched for, and
    the bound holds for them alone. The first attempt takes the lower lines that lose least over the box, later ones those that are exact at
    the point last judged.
    """
    for r in range(row_count(task)):
        value, error, band = bound_row(r, ADAPTIVE if attempt == 0 else LOCAL, box, net, task, work)
        work.constants[r] = value - error - 2.0 * band if certain else value + error + band
    return combine(limit, tolerance, box, task, work)


@kernel
def improve_incumbent(bound, before, box, state, net, task, work):
    """Look for points in a box: from its tightest relaxation on by linearisation, by single changes, and by polishing what is found.

    ``before`` is the cost of the incumbent before the box was opened. No bound comes of this; ``best_x`` is afterwards as it was.
    """
    reals, v = state.reals, work.point
    round_relaxation(work.best_x, box, task, work, v)
    try_point(v, state, net, task, work)
    copy_columns(box, work.best_x, work.kept_x)
    descend(v, 4, box, state, net, task, work)
    nodes = state.registers[NODES]
    # Without any incumbent: in the boxes numbered 1, 2, 4, 8, ...
    if reals[BEST] == before and before >= WHOLE and (nodes & (nodes - 1)) == 0:
        try_single_changes(box, state, net, task, work)
    if reals[BEST] < before and bound <= search_radius(reals, task):
        for j in range(v.shape[0]):
            v[j] = state.best[j]
        polish(v, box, state, net, task, work)
        for j in range(v.shape[0]):
            v[j] = state.best[j]
        judge(v, net, task, work)
        descend(v, 3, box, state, net, task, work)
    copy_columns(box, work.kept_x, work.best_x)


@kernel
def search_box(bound, lo, hi, state, tree, net, task, work):
    """Prune a box, or branch on it; ``bound`` is the bound that it inherits from its parent."""
    registers, reals = state.registers, state.reals
    limit = search_radius(reals, task)
    if not clip(lo, hi, limit, task, work):
        return
    to_differ = can_differ(lo, hi, task)
    if to_differ == -2:
        return
    box = open_box(lo, hi, net, task, work)
    v = work.point
    if box.columns == 0:
        for j in range(lo.shape[0]):
            v[j] = work.near[j]
        verdict = try_point(v, state, net, task, work)
        if verdict == MAYBE and registers[CERTAIN] == 0:
            log_point(v, state, task)
        return
    propagate(limit, box, net, task, work)
    before = reals[BEST]
    found = -1.0
    chosen = 0
    for attempt in range(ATTEMPTS if net.width.shape[0] > 1 else 1):
        # Once a box is given up nothing more is proved: what is left to find is points that neither rounding can disturb.
        relaxed, row = relax(attempt, registers[CERTAIN] != 0, limit, reals[TOLERANCE], box, net, task, work)
        # Prune: every counterfactual of the box costs more.
        if relaxed > limit:
            return
        round_relaxation(work.best_x, box, task, work, work.other)
        try_point(work.other, state, net, task, work)
        if relaxed <= found * (1.0 + 1e-9):
            break
        found = relaxed
        chosen = row
        copy_columns(box, work.best_x, work.tightest_x)
    copy_columns(box, work.tightest_x, work.best_x)
    inherited = bound
    bound = max(bound, found)
    improve_incumbent(bound, before, box, state, net, task, work)
    if bound > search_radius(reals, task):
        return
    if to_differ >= 0:
        branch_to_differ(to_differ, bound, box, tree, registers, task)
    elif not is_small(box, reals, task, work):
        branch(choose_feature(chosen, box, net, task, work), bound, box, tree, registers, task, work)
    elif bound > inherited:
        # Every other open box must be at least as far when this one is given up: back into the heap with its better bound.
        add_child(0, lo[0], hi[0], bound, box, tree, registers)
    else:
        # Given up: rounding does not let the box be decided. Its bound stays open, and the real model is asked about two of its points.
        if registers[CERTAIN] == 0:
            round_relaxation(work.best_x, box, task, work, v)
            log_point(v, state, task)
            log_point(work.near, state, task)
        reals[OPEN] = min(reals[OPEN], bound)
        registers[CERTAIN] = 1


@kernel
def advance(budget, state, tree, lo, hi, net, task, work):
    """Search ``budget`` boxes, the one with the least bound first, or until none is left, or room for boxes or undecided points runs out.

    ``lo`` and ``hi`` are scratch space for the box at hand.
    """
    registers, reals = state.registers, state.reals
    registers[STATUS] = RUNNING
    for _ in range(budget):
        if registers[HEAP] == 0:
            return
        if registers[HEAP] + 4 > tree.bound.shape[0]:
            registers[STATUS] = FULL
            return
        if registers[LOGGED] + 2 > state.log_cost.shape[0]:
            registers[STATUS] = LOG_FULL
            return
        node = pop(tree, registers)
        bound = tree.bound[node]
        # The least bound of all open boxes is beyond what is still worth finding: done.
        if bound > search_radius(reals, task):
            registers[HEAP] = 0
            return
        registers[NODES] += 1
        for j in range(lo.shape[0]):
            lo[j] = tree.lo[node, j]
            hi[j] = tree.hi[node, j]
        search_box(bound, lo, hi, state, tree, net, task, work)


# ---- proofs


@kernel
def prune_or_choose(limit, tolerance, lo, hi, net, task, work):
    """Return (-1, 0, False) where a box is seen to hold no counterfactual within ``limit``, (-2, 0, False) where it is a single point; else
    a feature, where to branch on it, and whether the value there becomes a box of its own."""
    if not clip(lo, hi, limit, task, work):
        return -1, 0.0, False
    to_differ = can_differ(lo, hi, task)
    if to_differ == -2:
        return -1, 0.0, False
    box = open_box(lo, hi, net, task, work)
    if box.columns == 0:
        return -2, 0.0, False
    propagate(limit, box, net, task, work)
    found = -1.0
    chosen = 0
    for attempt in range(ATTEMPTS if net.width.shape[0] > 1 else 1):
        relaxed, row = relax(attempt, False, limit, tolerance, box, net, task, work)
        if relaxed > limit:
            return -1, 0.0, False
        if relaxed <= found * (1.0 + 1e-9):
            break
        found = relaxed
        chosen = row
        copy_columns(box, work.best_x, work.tightest_x)
        round_relaxation(work.best_x, box, task, work, work.other)
        judge(work.other, net, task, work)
    copy_columns(box, work.tightest_x, work.best_x)
    if to_differ >= 0:
        return to_differ, end_before_alike(to_differ, lo, hi, task), False
    f = choose_feature(chosen, box, net, task, work)
    at, apart = where_to_branch(f, box, task, work)
    return work.feature[f], at, apart


@kernel
def end_before_alike(j, lo, hi, task):
    """Return the last value before what counts as alike for some earlier counterfactual, or the last of it."""
    for c in range(task.at_least.shape[0]):
        a, b = task.alike_lo[c, j], task.alike_hi[c, j]
        if (lo[j] < a or hi[j] > b) and not (hi[j] < a or lo[j] > b):
            if lo[j] >= a:
                return b if task.is_table[j] else snap_down(j, b, task)
            return below(j, a, task)
    return lo[j]


@kernel
def prove(budget, limit, tolerance, proof, lo, hi, net, task, work):
    """Write a tree of branchings in preorder, the lower side first, whose leaves hold no counterfactual within ``limit``, or are single
    points: -1 for a leaf, else the feature and where (the last value of the lower side).

    Returns when nothing waits, or the budget or the room is used up. ``lo`` and ``hi`` are scratch space for the box at hand.
    """
    counts, feature, at = proof.counts, proof.feature, proof.at
    stack_lo, stack_hi, forced = proof.lo, proof.hi, proof.forced
    for _ in range(budget):
        waiting, count = counts[0], counts[1]
        if waiting == 0 or waiting + 2 > stack_lo.shape[0] or count >= feature.shape[0]:
            return
        waiting -= 1
        for i in range(lo.shape[0]):
            lo[i] = stack_lo[waiting, i]
            hi[i] = stack_hi[waiting, i]
        j, value, apart = int(forced[waiting, 0]), forced[waiting, 1], False
        if j < 0:
            j, value, apart = prune_or_choose(limit, tolerance, lo, hi, net, task, work)
        if j == -2:
            counts[2] += 1
            j = -1
        feature[count] = j
        at[count] = value
        counts[1] = count + 1
        counts[0] = waiting
        if j < 0:
            continue
        # A value becomes a box of its own by two branchings: at it, and of the lower side just below it, which is laid down.
        before = -FAR
        if apart:
            before = below(j, value, task)
            if value >= hi[j]:
                value = before
                at[count] = value
                before = -FAR
        after = above(j, value, task)
        for side in range(2):
            for i in range(lo.shape[0]):
                stack_lo[waiting, i] = lo[i]
                stack_hi[waiting, i] = hi[i]
            forced[waiting, 0] = -1.0
            if side == 0:
                stack_lo[waiting, j] = after
            else:
                stack_hi[waiting, j] = value
                if before >= lo[j]:
                    forced[waiting, 0] = j
                    forced[waiting, 1] = before
            waiting += 1
        counts[0] = waiting


# ---- the arrays of a question


@kernel
def lay_out(factual, slot_from, levels, is_category, is_allowed, net, task, lo, hi):
    """Write the tables of a question, its box, and the first layer at the factual with Σ|w||x| there.

    ``slot_from`` is each feature's first slot, ``levels`` its number of levels (0 for a number), ``is_allowed`` says of each slot
    whether the level is allowed. Returns False where some feature has no allowed value.
    """
    place = 0
    for j in range(factual.shape[0]):
        task.off[j] = place
        if not task.is_table[j]:
            task.own[j] = factual[j]
            task.slot[j] = slot_from[j]
            first, last = task.span_off[j], task.span_off[j + 1]
            lo[j] = snap_up(j, -FAR, task)
            hi[j] = snap_down(j, FAR, task)
            if first == last or lo[j] > hi[j]:
                return False
            continue
        home = int(factual[j])
        task.slot[j] = slot_from[j] + home
        task.own[j] = -1.0
        count = 0
        for step in range(levels[j] + 1):
            # A categorical feature's own level comes first, so that every ball is a range of entries.
            level = home if step == 0 else step - 1
            if (step == 0 and not is_category[j]) or (step > 0 and is_category[j] and level == home):
                continue
            if not is_allowed[slot_from[j] + level]:
                continue
            if level == home:
                task.own[j] = count
            task.entry_slot[place + count] = slot_from[j] + level
            delta = abs(level - home) * task.inverse[j]
            if is_category[j] and level != home:
                delta = 1.0
            task.entry_delta[place + count] = delta
            b = count - 1
            while b >= 0 and task.entry_delta[place + task.by_delta[place + b]] > delta:
                task.by_delta[place + b + 1] = task.by_delta[place + b]
                b -= 1
            task.by_delta[place + b + 1] = count
            count += 1
        if count == 0:
            return False
        task.nearest[j] = task.by_delta[place]
        lo[j] = 0.0
        hi[j] = count - 1.0
        place += count
    task.off[factual.shape[0]] = place
    at_factual(net, task)
    return True


@kernel
def at_factual(net, task):
    """Write the first layer at the factual, and Σ|w||x| there."""
    for i in range(net.width[0]):
        task.factual[i] = net.offset[0, i]
        task.factual_size[i] = net.size[0, i]
    for j in range(task.own.shape[0]):
        slot = task.slot[j]
        factor = 1.0 if task.is_table[j] else task.own[j]
        for i in range(net.width[0]):
            task.factual[i] += net.first[slot, i] * factor
            task.factual_size[i] += net.first_size[slot, i] * abs(factor)
