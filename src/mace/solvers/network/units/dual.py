"""The numba kernels of the search over signs of units: bounds by multipliers, and bounds on units that use the goal.

A *node* is a box and a range ``low..high`` for the sum z of every hidden unit, which holds for every counterfactual of the node: a point of
the box within the radius, whose split units have the signs of the node, that fulfils all rows. Points outside of the goal may lie
outside of the ranges.

**The combination.** Rows mixed with weights >= 0 make one sum that is at least 0 at every counterfactual. It is carried back to the
features as :func:`mace.solvers.network.kernels.backward` does it, but for two freedoms: the line below a bent unit has any slope
bend + (1 - bend)·alpha, 0 <= alpha <= 1; and to the sum is added beta·(z - low) where beta > 0, beta·(z - high) where beta < 0, both at
least 0. What comes out is value + gains·x >= 0 for every counterfactual of the node, whatever the multipliers are (weak duality); the
least cost at which that holds is the node's bound. Good multipliers are found by ascent (:func:`ascend`), which needs no rigour.

**Units again.** With the combination as one more inequality, at a price, units are bounded anew (:func:`tighten`): their ranges shrink to
what the goal leaves, far below what the ball alone leaves.

Rounding is as in :mod:`mace.solvers.network.kernels`: the coefficients are floats, and what is lost on the way is at most ``net.own`` times
Σ(|mu| + |beta|)·size.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from mace.solvers.compiled import kernel
from mace.solvers.network.kernels import (
    ADAPTIVE,
    FAR,
    MIXED,
    PEAK,
    WHOLE,
    Array,
    backward,
    build_pieces,
    gain_within,
    gather,
    least_cost,
    linear_row,
    open_box,
    slot_of,
    take_piece,
)

FAST, SLOW = 0.9, 0.99
"""How much of the mean of past gradients, and of their squares, is kept at a step (Adam)."""

PRICES = 10
"""How often a price of the combination is tried for one bound of a unit."""


class Multipliers(NamedTuple):
    """The multipliers of a node: by unit ``alpha``, ``beta`` and the two prices; by row ``mix``."""

    alpha: Array
    beta: Array
    price: Array
    mix: Array


class Ascent(NamedTuple):
    """Scratch space: coefficients on activations and sums, the relaxed sums, moments of gradients, the best multipliers so far, the
    gains of the combination over the columns, each layer's weights by its inputs, the first layer's by column, and how far each free number
    moves for a peak of 1 (-1 for a feature with levels)."""

    lam: Array
    mu: Array
    z: Array
    moments: Array
    row_moments: Array
    row_values: Array
    kept: Multipliers
    gains: Array
    by_input: Array
    by_column: Array
    reach: Array


@kernel
def opened(lo, hi, net, task, work):
    """Open a box; return the numbers of its free features and columns."""
    box = open_box(lo, hi, net, task, work)
    return box.free, box.columns


@kernel
def mix_rows(columns, many, ascent, net, task, work):
    """Begin the combination: write the coefficients on the last hidden layer and the gains of linear conditions; return its constant.

    The constant is rounded up, and widened by the band of the deployed arithmetic.
    """
    depth = net.width.shape[0] - 1
    margins = task.plus.shape[0]
    lam, gains, weight = ascent.lam[depth - 1], ascent.gains, net.weight
    for p in range(net.width[depth - 1]):
        lam[p] = 0.0
    for c in range(columns):
        gains[c] = 0.0
    constant = 0.0
    error = 0.0
    for r in range(many.mix.shape[0]):
        share = many.mix[r]
        if share == 0.0:
            continue
        if r >= margins:
            q = r - margins
            constant += share * (linear_row(q, work.near, task) + 2.0 * task.row_error[q])
            f = 0
            for c in range(columns):
                while work.columns_from[f + 1] <= c:
                    f += 1
                j = work.feature[f]
                if task.is_table[j]:
                    there = task.entry_slot[task.off[j] + work.column_entry[c]]
                    gains[c] += share * (task.row[q, there] - task.row[q, slot_of(j, work.near[j], task)])
                else:
                    gains[c] += share * task.row[q, task.slot[j]]
            continue
        # share · (plus - minus + shift + slack) >= 0 at every counterfactual, each score widened by its band, ``work.error``.
        constant += share * (task.shift[r] + task.slack[r] + net.squash)
        error += share * abs(task.shift[r])
        for side in range(2):
            unit = task.plus[r] if side == 0 else task.minus[r]
            if unit < 0:
                continue
            factor = share if side == 0 else -share
            constant += factor * net.offset[depth, unit] + share * work.error[depth, unit]
            error += share * work.size[depth, unit]
            for p in range(net.width[depth - 1]):
                lam[p] += factor * weight[depth, unit, p]
    return constant + 2.0 * net.own * error


@kernel
def combine_rows(columns, many, ascent, net, task, work):
    """Write the gains of the combination over the columns; return its value at the nearest point of the box, rounded up."""
    depth = net.width.shape[0] - 1
    constant = mix_rows(columns, many, ascent, net, task, work)
    error = 0.0
    weight = net.weight
    for k in range(depth - 1, -1, -1):
        lam, mu, alpha, beta = ascent.lam[k], ascent.mu[k], many.alpha[k], many.beta[k]
        low, high, size, bends = work.low[k], work.high[k], work.size[k], net.bend[k]
        for i in range(net.width[k]):
            c, b, bend = lam[i], beta[i], bends[i]
            m = c
            if c != 0.0 and low[i] < 0.0 and bend != 1.0:
                if high[i] <= 0.0:
                    m = c * bend
                elif c > 0.0:
                    # c·h(z) <= c·(s·z + shift) from low to high: the chord, moved up by more than its rounding.
                    s = (high[i] - bend * low[i]) / (high[i] - low[i])
                    shift = max(high[i] - s * high[i], bend * low[i] - s * low[i]) + 1e-15 * (high[i] - low[i])
                    m = c * s
                    constant += c * shift
                else:
                    # c·h(z) <= c·line·z, since c < 0 and h lies above each line through 0 with a slope from bend to 1.
                    m = c * min(max(bend + (1.0 - bend) * alpha[i], bend), 1.0)
            if b != 0.0:
                # 0 <= b·(z - low) for b > 0, 0 <= b·(z - high) for b < 0.
                m += b
                constant -= b * (low[i] if b > 0.0 else high[i])
            mu[i] = m
            error += (abs(m) + abs(b)) * size[i]
        if k == 0:
            break
        below = ascent.lam[k - 1]
        for p in range(net.width[k - 1]):
            below[p] = 0.0
        for i in range(net.width[k]):
            m = mu[i]
            if m != 0.0:
                constant += m * net.offset[k, i]
                row = weight[k, i]
                for p in range(net.width[k - 1]):
                    below[p] += m * row[p]
    gains, mu = ascent.gains, ascent.mu[0]
    value = 0.0
    for i in range(net.width[0]):
        m = mu[i]
        if m != 0.0:
            value += m * work.first_at_near[i]
            row = work.matrix[i]
            for c in range(columns):
                gains[c] += m * row[c]
    return constant + value + 2.0 * net.own * error


@kernel
def relaxed_sums(columns, many, ascent, net, task, work):
    """Write the sums of the units at the relaxed point ``x`` with the lines that the combination uses, and the values of the rows there."""
    depth = net.width.shape[0] - 1
    x = work.x
    first = ascent.z[0]
    for i in range(net.width[0]):
        first[i] = work.first_at_near[i]
    for c in range(columns):
        moved = x[c]
        if moved != 0.0:
            row = ascent.by_column[c]
            for i in range(net.width[0]):
                first[i] += moved * row[i]
    for k in range(depth):
        z, lam, alpha = ascent.z[k], ascent.lam[k], many.alpha[k]
        low, high, bends = work.low[k], work.high[k], net.bend[k]
        above = ascent.z[k + 1]
        for i in range(net.width[k + 1]):
            above[i] = net.offset[k + 1, i]
        for p in range(net.width[k]):
            bend = bends[p]
            if low[p] >= 0.0 or bend == 1.0:
                h = z[p]
            elif high[p] <= 0.0:
                h = bend * z[p]
            elif lam[p] > 0.0:
                h = bend * low[p] + (high[p] - bend * low[p]) / (high[p] - low[p]) * (z[p] - low[p])
            else:
                h = (bend + (1.0 - bend) * alpha[p]) * z[p]
            if h != 0.0:
                row = ascent.by_input[k + 1, p]
                for i in range(net.width[k + 1]):
                    above[i] += h * row[i]
    scores = ascent.z[depth]
    margins = task.plus.shape[0]
    for r in range(many.mix.shape[0]):
        if r < margins:
            value = task.shift[r]
            if task.plus[r] >= 0:
                value += scores[task.plus[r]]
            if task.minus[r] >= 0:
                value -= scores[task.minus[r]]
            ascent.row_values[r] = value


@kernel
def condition_values(columns, ascent, task, work):
    """Write the values of linear conditions at the relaxed point."""
    margins = task.plus.shape[0]
    for q in range(task.row_base.shape[0]):
        value = linear_row(q, work.near, task)
        f = 0
        for c in range(columns):
            while work.columns_from[f + 1] <= c:
                f += 1
            j = work.feature[f]
            gain = task.row[q, task.slot[j]]
            if task.is_table[j]:
                there = task.entry_slot[task.off[j] + work.column_entry[c]]
                gain = task.row[q, there] - task.row[q, slot_of(j, work.near[j], task)]
            value += gain * work.x[c]
        ascent.row_values[margins + q] = value


@kernel
def step_units(fast, slow, rate, many, ascent, net, work):
    """Move alpha and beta of every unit along their gradients at the relaxed sums, by steps of about ``rate`` (Adam).

    ``fast`` and ``slow`` are what the two means lack of their first steps. Beta moves in mean coefficients of its layer.
    """
    moments = ascent.moments
    for k in range(net.width.shape[0] - 1):
        width = net.width[k]
        lam, z, alpha, beta = ascent.lam[k], ascent.z[k], many.alpha[k], many.beta[k]
        scale = 0.0
        for i in range(width):
            scale += abs(lam[i])
        scale *= rate / width
        for i in range(width):
            low, high = work.low[k, i], work.high[k, i]
            if lam[i] < 0.0 and low < 0.0 < high:
                slope = -lam[i] * z[i]
                mean = FAST * moments[0, k, i] + (1.0 - FAST) * slope
                size = SLOW * moments[1, k, i] + (1.0 - SLOW) * slope * slope
                moments[0, k, i], moments[1, k, i] = mean, size
                if size > 0.0:
                    moved = alpha[i] + rate * mean / fast / math.sqrt(size / slow)
                    alpha[i] = min(max(moved, 0.0), 1.0)
            b = beta[i]
            if b > 0.0 or (b == 0.0 and z[i] < low):
                slope = low - z[i]
            elif b < 0.0 or z[i] > high:
                slope = high - z[i]
            else:
                continue
            mean = FAST * moments[2, k, i] + (1.0 - FAST) * slope
            size = SLOW * moments[3, k, i] + (1.0 - SLOW) * slope * slope
            moments[2, k, i], moments[3, k, i] = mean, size
            if size <= 0.0:
                continue
            moved = b + scale * mean / fast / math.sqrt(size / slow)
            # A multiplier stays on its side; from 0 it goes where the broken end of the range wants it.
            beta[i] = 0.0 if (b * moved < 0.0 or (b == 0.0 and moved * slope < 0.0)) else moved


@kernel
def step_rows(fast, slow, rate, many, ascent):
    """Move the weights of the rows along their gradients; the greatest stays 1."""
    rows = many.mix.shape[0]
    if rows == 1:
        return
    moments = ascent.row_moments
    most = 0.0
    for r in range(rows):
        slope = -ascent.row_values[r]
        moments[0, r] = FAST * moments[0, r] + (1.0 - FAST) * slope
        moments[1, r] = SLOW * moments[1, r] + (1.0 - SLOW) * slope * slope
        if moments[1, r] > 0.0:
            step = moments[0, r] / fast / math.sqrt(moments[1, r] / slow)
            many.mix[r] = max(many.mix[r], 1e-9) * math.exp(3.0 * rate * step)
        most = max(most, many.mix[r])
    for r in range(rows):
        many.mix[r] /= most


@kernel
def lay_out(columns, ascent, box, net, task, work):
    """Write what an ascent in a box reads again and again; return whether all free features are numbers."""
    for c in range(columns):
        row = ascent.by_column[c]
        for i in range(net.width[0]):
            row[i] = work.matrix[i, c]
    plain = True
    for f in range(box.free):
        j = work.feature[f]
        per_unit = task.peak[j] * task.inverse[j]
        ascent.reach[f] = 1.0 / per_unit if per_unit > 0.0 else FAR
        plain = plain and not task.is_table[j]
    return plain


@kernel
def least_peak(gains, need, limit, ascent, box, task, work):
    """Return a lower bound on the greatest change of points of a box of numbers whose gain is at least ``need``.

    The gain within a radius is concave in the radius, beyond that of the nearest point: each tangent reaches ``need`` too early, so every
    step from the left ends before the least radius (Newton). FAR where there is none. Writes ``x``.
    """
    radius = work.near_cost[1]
    for _ in range(64):
        total = 0.0
        rate = 0.0
        for f in range(box.free):
            j = work.feature[f]
            c = work.columns_from[f]
            g, near, reach = gains[c], work.near[j], ascent.reach[f]
            end = box.hi[j] if g > 0.0 else box.lo[j]
            if reach < FAR:
                at = task.own[j] + (radius * reach if g > 0.0 else -radius * reach)
                if (g > 0.0 and at < end) or (g < 0.0 and at > end):
                    end = max(at, near) if g > 0.0 else min(at, near)
                    rate += abs(g) * reach
            work.x[c] = end - near if g != 0.0 else 0.0
            total += g * work.x[c]
        if total >= need or radius > limit:
            break
        if rate <= 0.0:
            return FAR
        step = (need - total) / rate
        if step <= 1e-15 * radius:
            break
        radius += step
    return radius * (1.0 - 1e-12)


@kernel
def keep(source, target):
    """Copy alpha, beta and mix."""
    for k in range(source.alpha.shape[0]):
        for i in range(source.alpha.shape[1]):
            target.alpha[k, i] = source.alpha[k, i]
            target.beta[k, i] = source.beta[k, i]
    for r in range(source.mix.shape[0]):
        target.mix[r] = source.mix[r]


@kernel
def ascend(steps, rate, limit, tolerance, many, ascent, box, net, task, work):
    """Look for multipliers with a high bound, at most so many steps, or until the bound is beyond ``limit``.

    Returns (the bound, the value of the combination at the nearest point); the best multipliers are in ``many``, their gains in
    ``ascent.gains`` and the point that attains the bound in ``work.best_x``.
    """
    best = -1.0
    ascent.moments[:] = 0.0
    ascent.row_moments[:] = 0.0
    columns = box.columns
    by_newton = lay_out(columns, ascent, box, net, task, work) and task.form[0] == PEAK
    fast, slow = 1.0, 1.0
    for number in range(steps):
        value = combine_rows(columns, many, ascent, net, task, work)
        if by_newton and value < 0.0:
            found = least_peak(ascent.gains, -value, limit, ascent, box, task, work)
        else:
            found = least_cost(ascent.gains, -value, limit, tolerance, box, task, work)
        if found > best:
            best = found
            keep(many, ascent.kept)
            for c in range(columns):
                work.best_x[c] = work.x[c]
            if found > limit:
                break
        if number == steps - 1:
            break
        relaxed_sums(columns, many, ascent, net, task, work)
        condition_values(columns, ascent, task, work)
        now = rate / (1.0 + 0.02 * number)
        fast *= FAST
        slow *= SLOW
        step_units(1.0 - fast, 1.0 - slow, now, many, ascent, net, work)
        step_rows(1.0 - fast, 1.0 - slow, now, many, ascent)
    keep(ascent.kept, many)
    return best, combine_rows(columns, many, ascent, net, task, work)


@kernel
def most_and_where(limit, box, task, work):
    """Return an upper bound on ``work.gains`` over the box and the ball of radius ``limit``, and write a point that nearly attains it."""
    if task.form[0] == PEAK:
        return gain_within(work.gains, WHOLE, box, task, work)
    left = limit - work.near_cost[0] - (work.near_cost[1] if task.form[0] == MIXED else 0.0)
    left = max(left, 0.0) + 1e-15 + 1e-13 * limit
    count, total = build_pieces(work.gains, box, task, work)
    for a in range(count):
        piece = work.order[a]
        if work.cost[piece] >= left:
            take_piece(piece, left / work.cost[piece], box, task, work)
            return total + work.ratio[piece] * left
        take_piece(piece, 1.0, box, task, work)
        total += work.gain[piece]
        left -= work.cost[piece]
    return total


@kernel
def bound_at_price(price, base, value, limit, gains, ascent, box, task, work):
    """Return (an upper bound on base + gains·x over the counterfactuals of a node, its slope in the price of the combination)."""
    other = ascent.gains
    for c in range(box.columns):
        work.gains[c] = gains[c] + price * other[c]
    bound = base + price * value + most_and_where(limit, box, task, work)
    slope = value
    for c in range(box.columns):
        slope += other[c] * work.x[c]
    return bound, slope


@kernel
def least_over_prices(price, base, value, limit, gains, ascent, box, task, work):
    """Return (the least bound found over prices of the combination, that price). The bound is convex in the price, every price is valid.

    Between a price with falling and one with rising bound, the next is where their tangents meet.
    """
    best, slope = bound_at_price(0.0, base, value, limit, gains, ascent, box, task, work)
    if slope >= 0.0 or best <= 0.0:
        return best, 0.0
    low, low_bound, low_slope = 0.0, best, slope
    high, high_bound, high_slope = FAR, 0.0, 0.0
    chosen = 0.0
    trial = price
    if trial <= 0.0:
        most, other = 0.0, 0.0
        for c in range(box.columns):
            most = max(most, abs(gains[c]))
            other = max(other, abs(ascent.gains[c]))
        if other <= 0.0:
            return best, 0.0
        trial = most / other
    for _ in range(PRICES):
        # As it is written into proofs.
        trial = float(np.float32(trial))
        bound, slope = bound_at_price(trial, base, value, limit, gains, ascent, box, task, work)
        if bound < best:
            best = bound
            chosen = trial
        if slope < 0.0:
            low, low_bound, low_slope = trial, bound, slope
        else:
            high, high_bound, high_slope = trial, bound, slope
        if best <= 0.0 or slope == 0.0:
            break
        if high >= FAR:
            trial = 4.0 * low
            continue
        meet = (high_bound - low_bound - high_slope * high + low_slope * low) / (low_slope - high_slope)
        least = low_bound + low_slope * (meet - low)
        # No price can do better than where the tangents meet.
        if least > best - 0.01 * abs(best) or meet <= low or meet >= high:
            break
        trial = meet
    return best, chosen


@kernel
def tighten(k, first, last, value, limit, many, gains, ascent, box, net, task, work):
    """Bound some units of layer k that are still bent over box, ball and combination; return False where a range becomes empty.

    ``value`` is the combination at the nearest point, its gains are in ``ascent``; ``gains`` is scratch space. Ranges of the layers
    below are used as they are.
    """
    columns = box.columns
    for i in range(first, last):
        if work.low[k, i] >= 0.0 or work.high[k, i] <= 0.0 or net.bend[k, i] == 1.0:
            continue
        pad = 2.0 * net.own * work.size[k, i]
        for side in range(2):
            # sign·z <= base + gains·x, and with any price >= 0 also <= that + price·(the combination), which is at least 0.
            sign = 1.0 if side == 0 else -1.0
            if k == 0:
                base = sign * work.first_at_near[i] + pad
                for c in range(columns):
                    gains[c] = sign * work.matrix[i, c]
            else:
                for p in range(net.width[k - 1]):
                    work.lam[p] = sign * net.weight[k, i, p]
                constant, error = backward(k - 1, ADAPTIVE, net, work)
                base = gather(net.width[0], columns, gains, work)
                base += sign * net.offset[k, i] + constant + 2.0 * error + pad
            before = work.high[k, i] if side == 0 else -work.low[k, i]
            bound, price = least_over_prices(many.price[side, k, i], base, value, limit, gains, ascent, box, task, work)
            many.price[side, k, i] = price
            if bound < before:
                if side == 0:
                    work.high[k, i] = bound
                else:
                    work.low[k, i] = -bound
        if work.low[k, i] > work.high[k, i]:
            return False
    return True


@kernel
def losses(scores, ascent, net, work):
    """Write for every unit what its chord loses to the combination at most, which splitting it takes back; return the greatest."""
    most = 0.0
    for k in range(net.width.shape[0] - 1):
        for i in range(net.width[k]):
            low, high, bend = work.low[k, i], work.high[k, i], net.bend[k, i]
            scores[k, i] = -1.0
            if low < 0.0 < high and bend != 1.0:
                scores[k, i] = max(ascent.lam[k, i], 0.0) * (1.0 - bend) * high * -low / (high - low)
                most = max(most, scores[k, i])
    return most
