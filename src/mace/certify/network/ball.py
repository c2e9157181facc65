"""What a ball around the factual leaves of boxes, and the most that a sum over the features can be in box and ball.

The cost of a point is Σ_j jump[changed] + slope·δ + square·δ², plus the greatest peak·δ; here its coefficients are rounded down, so that
the ball is at most made larger. All arrays have one row a box.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mace.certify.network.coordinates import Axis, Flags, Floats
from mace.distances import NormMetric
from mace.distances.norm import Parts
from mace.exact import float_down, float_up
from mace.space import Categorical

Places = NDArray[np.int64]

HALVINGS = 28
"""How often a price is halved where no sort of the items gives the best one at once."""


@dataclass(frozen=True, slots=True)
class Ball:
    """The points whose cost is at most ``radius``; infinite where the distance does not matter.

    ``near`` is a relative error beyond that of every chain of operations on costs here: a sum over the features and a few roundings more.
    """

    radius: float
    near: float
    jump: Floats
    slope: Floats
    square: Floats
    peak: Floats
    inverse: Floats


def make_ball(
    metric: NormMetric, axes: list[Axis], lower: Fraction | None, parts: Sequence[Parts] | None = None
) -> Ball:
    """Return the ball that holds all points nearer than ``lower``; ``parts`` is what changes cost, where axes are not the features.

    Where only the number of changes counts, costs are multiples of a grain, and the radius is the last multiple below.
    """
    parts = metric.parts if parts is None else parts
    radius = math.inf
    if lower is not None:
        measure = lower**metric.power
        if not any(part.slope or part.square or part.peak for part in parts):
            shared = math.lcm(*(part.jump.denominator for part in parts))
            grain = Fraction(math.gcd(*(int(part.jump * shared) for part in parts)), shared)
            measure = (math.ceil(measure / grain) - 1) * grain
        radius = float_up(measure)
    jump, slope, square, peak = (
        np.array([float_down(getattr(part, name)) for part in parts]) for name in ("jump", "slope", "square", "peak")
    )
    inverse = np.array([float_down(1 / axis.feature.range) if axis.feature.range else 0.0 for axis in axes])
    return Ball(radius, 4 * (len(axes) + 16) * 2.0**-53, jump, slope, square, peak, inverse)


@dataclass(slots=True)
class View:
    """Boxes inside a ball.

    Attributes
    ----------
    low, high : float arrays, boxes x axes
        The ranges of places.
    bottom, top, near : float arrays, boxes x axes
        The numbers at the ends and the number nearest to the factual's own; places for levels.
    change : float array, boxes x axes
        δ at the nearest number, at most.
    left : float array
        What the cost of the nearest point leaves of the radius, at least; negative where nothing is left.
    peak : float array
        The greatest peak·δ of the nearest point.
    is_open : bool array
        Which boxes hold anything.
    """

    low: Floats
    high: Floats
    bottom: Floats
    top: Floats
    near: Floats
    change: Floats
    left: Floats
    peak: Floats
    is_open: Flags

    def take(self, chosen: Flags) -> View:
        """Return some of the boxes."""
        return View(*(getattr(self, name)[chosen] for name in View.__slots__))


class Field:
    """The axes of a question and a ball around its factual."""

    def __init__(self, axes: list[Axis], ball: Ball) -> None:
        self.axes = axes
        self.ball = ball
        self.near = ball.near
        self.own = np.array([axis.own for axis in axes])
        self.level_delta = [self._level_deltas(j, axis) for j, axis in enumerate(axes)]
        self.is_allowed = [_allowed(axis) for axis in axes]
        self.numbers = np.array([j for j, axis in enumerate(axes) if not axis.has_levels], dtype=np.int64)
        self.leveled = [j for j, axis in enumerate(axes) if axis.has_levels]

    def _level_deltas(self, j: int, axis: Axis) -> Floats:
        if isinstance(axis.feature, Categorical):
            return np.asarray(axis.levels != axis.own, dtype=np.float64)
        return np.asarray(np.abs(axis.levels - axis.own) * self.ball.inverse[j] * (1 - self.near))

    # ---- costs

    def delta(self, j: int, number: Floats) -> Floats:
        """Return δ of a number of axis j, at most."""
        return np.asarray(np.abs(number - self.own[j]) * self.ball.inverse[j] * (1 - self.near))

    def part(self, j: int, delta: Floats) -> Floats:
        """Return what a change adds to the sum of costs."""
        ball = self.ball
        return np.asarray(ball.jump[j] * (delta > 0) + (ball.slope[j] + ball.square[j] * delta) * delta)

    # ---- boxes

    def view(self, low: Floats, high: Floats) -> View:
        """Return what the spans and the ball leave of boxes; twice over, since one axis makes room on another."""
        low, high = low.copy(), high.copy()
        is_open = np.ones(len(low), dtype=np.bool_)
        for _ in range(2):
            for j, axis in enumerate(self.axes):
                is_open &= self._snap(axis, low[:, j], high[:, j])
            # A closed box must not disturb the arithmetic of the others.
            low[~is_open], high[~is_open] = self._home, self._home
            view = self._look(low, high, is_open)
            if math.isinf(self.ball.radius):
                break
            is_open &= view.left >= 0
            for j, axis in enumerate(self.axes):
                self._reach(j, axis, view, low, high)
            is_open &= (low <= high).all(axis=1)
        for j, axis in enumerate(self.axes):
            is_open &= self._snap(axis, low[:, j], high[:, j])
        low[~is_open], high[~is_open] = self._home, self._home
        view = self._look(low, high, is_open)
        view.is_open = is_open & (view.left >= 0)
        return view

    @property
    def _home(self) -> Floats:
        return np.array([axis.home for axis in self.axes])

    def _snap(self, axis: Axis, low: Floats, high: Floats) -> Flags:
        """Shrink ranges of places to the spans of an axis, in place; return which hold anything."""
        spans = axis.spans
        if not len(spans):
            return np.zeros(len(low), dtype=np.bool_)
        first = np.searchsorted(spans[:, 1], low)
        last = np.searchsorted(spans[:, 0], high, side="right") - 1
        is_open = (first < len(spans)) & (last >= 0)
        first, last = np.minimum(first, len(spans) - 1), np.maximum(last, 0)
        low[:] = np.maximum(low, spans[first, 0])
        high[:] = np.minimum(high, spans[last, 1])
        return np.asarray(is_open & (low <= high))

    def _look(self, low: Floats, high: Floats, is_open: Flags) -> View:
        bottom, top, near, change = (np.empty_like(low) for _ in range(4))
        cost, peaks = np.empty_like(low), np.empty_like(low)
        for j, axis in enumerate(self.axes):
            if axis.has_levels:
                bottom[:, j], top[:, j] = low[:, j], high[:, j]
                deltas = np.where(self.inside(j, low, high), self.level_delta[j], math.inf)
                near[:, j] = deltas.argmin(axis=1)
                change[:, j] = np.where(is_open, deltas.min(axis=1), 0.0)
            else:
                bottom[:, j], top[:, j] = axis.values(low[:, j]), axis.values(high[:, j])
                near[:, j] = np.clip(axis.own, bottom[:, j], top[:, j])
                change[:, j] = self.delta(j, near[:, j])
            cost[:, j] = self.part(j, change[:, j])
            peaks[:, j] = self.ball.peak[j] * change[:, j]
        peak = peaks.max(axis=1)
        spent = cost.sum(axis=1) + peak
        left = self.ball.radius * (1 + self.near) - spent * (1 - self.near) + 1e-300
        return View(low, high, bottom, top, near, change, left, peak, is_open)

    def inside(self, j: int, low: Floats, high: Floats) -> Flags:
        """Return which ranks of axis j lie in the boxes."""
        ranks = np.arange(len(self.axes[j].levels))
        return np.asarray((ranks >= low[:, j, None]) & (ranks <= high[:, j, None]) & self.is_allowed[j])

    def _reach(self, j: int, axis: Axis, view: View, low: Floats, high: Floats) -> None:
        """Shrink the boxes to the changes of axis j that the radius leaves, in place."""
        ball = self.ball
        mine = self.part(j, view.change[:, j])
        # Without its own part; its own peak is at most the greatest, which is then counted once.
        budget = view.left + (mine + view.peak) * (1 + self.near) + self.near * ball.radius
        slope = ball.slope[j] + ball.peak[j]
        reach = _farthest(budget, ball.jump[j], slope, ball.square[j])
        apart = view.left + (mine + ball.peak[j] * view.change[:, j]) * (1 + self.near) + self.near * ball.radius
        if ball.slope[j] or ball.square[j] or ball.jump[j]:
            reach = np.minimum(reach, _farthest(apart, ball.jump[j], ball.slope[j], ball.square[j]))
        if axis.has_levels:
            near_enough = self.inside(j, low, high) & (self.level_delta[j] <= reach[:, None])
            ranks = np.arange(len(axis.levels), dtype=np.float64)
            low[:, j] = np.where(near_enough, ranks, math.inf).min(axis=1)
            high[:, j] = np.where(near_enough, ranks, -math.inf).max(axis=1)
            return
        if ball.inverse[j] == 0.0:
            return
        width = reach / ball.inverse[j] * (1 + 4 * self.near)
        room = 4 * math.ulp(axis.own)
        is_near = np.isfinite(width)
        width = np.where(is_near, width, 0.0)
        first = np.maximum(view.bottom[:, j], axis.own - width - room)
        last = np.minimum(view.top[:, j], axis.own + width + room)
        low[:, j] = np.where(is_near, np.maximum(low[:, j], axis.from_on(first)), low[:, j])
        high[:, j] = np.where(is_near, np.minimum(high[:, j], axis.up_to(last)), high[:, j])

    # ---- sums over the features

    def most(self, gains: Gains, view: View) -> tuple[Floats, Floats]:
        """Return upper bounds on sums over box and ball, beyond their value at the nearest point, and prices that give them.

        By weak duality every price θ >= 0 gives one: Σ_j max_v (gain_j(v) - θ cost_j(v)) + θ left. What rounding adds is not
        included: it is at most a few units of roundoff of the sum of all |gain|.
        """
        full = gains.value(np.zeros(gains.shape), view.left)
        price = np.zeros(gains.shape)
        if math.isinf(self.ball.radius):
            return full, price
        best = full
        for offer in self._offers(gains, view):
            found = offer.best_price(view.left)
            value = offer.value(found, offer.left(view.left))
            price = np.where(value < best, found, price)
            best = np.minimum(best, value)
        return best, price

    def _offers(self, gains: Gains, view: View) -> Iterator[Gains]:
        """Yield the costs that may be put on the gains: as they are, and with the greatest change shared out among the features."""
        ball = self.ball
        if ball.jump.any() or ball.slope.any() or ball.square.any():
            yield gains
        if ball.peak.any() and (ball.jump.any() or ball.slope.any()):
            yield gains.shared(ball.peak, view)

    def gains(self, slots: Floats, view: View, slot_from: list[int]) -> Gains:
        """Return sums over the features as items: the gain of each number's better end, and of each level.

        Parameters
        ----------
        slots : float array, boxes x sums x slots
            What each number is multiplied with, and each level adds.
        view : View
            The boxes.
        slot_from : list of int
            The first slot of each feature.
        """
        is_free: Flags = np.any(view.bottom < view.top, axis=0).reshape(-1)
        numbers = self.numbers[is_free[self.numbers]]
        factor = slots[:, :, [slot_from[j] for j in numbers]]
        up = factor * (view.top - view.near)[:, None, numbers]
        down = factor * (view.bottom - view.near)[:, None, numbers]
        is_up = up >= down
        gain = np.maximum(np.maximum(up, down), 0.0)
        far = np.where(is_up, view.top[:, None, numbers], view.bottom[:, None, numbers])
        start = view.change[:, None, numbers]
        end = np.abs(far - self.own[numbers]) * self.ball.inverse[numbers] * (1 - self.near)
        move = far - view.near[:, None, numbers]
        ends = _Ends(numbers, gain, np.broadcast_to(start, end.shape), end, move)
        tables = []
        for j in self.leveled:
            if (view.low[:, j] == view.high[:, j]).all():
                continue
            levels = slots[:, :, slot_from[j] : slot_from[j] + len(self.axes[j].levels)]
            here = np.take_along_axis(levels, view.near[:, None, j, None].astype(np.int64), axis=2)
            inside = self.inside(j, view.low, view.high)[:, None, :]
            delta = np.broadcast_to(self.level_delta[j], (len(view.near), len(self.axes[j].levels)))
            tables.append(_Table(j, np.where(inside, levels - here, -math.inf), delta, view.change[:, j]))
        return Gains(self, ends, tables)


def _allowed(axis: Axis) -> Flags:
    may = np.zeros(len(axis.levels), dtype=np.bool_)
    if axis.has_levels:
        may[axis.spans[:, 0].astype(np.int64)] = True
    return may


def _farthest(budget: Floats, jump: float, slope: float, square: float) -> Floats:
    """Return a δ that no change with jump + slope·δ + square·δ² within a budget exceeds; 0 where no change is."""
    left = budget - jump
    if square > 0:
        reach = (np.sqrt(np.maximum(slope * slope + 4 * square * np.maximum(left, 0.0), 0.0)) - slope) / (2 * square)
    elif slope > 0:
        reach = left / slope
    else:
        reach = np.full_like(left, math.inf)
    return np.asarray(np.where(left < 0, 0.0, reach * (1 + 2.0**-48) + 1e-300))


@dataclass(slots=True)
class _Ends:
    """The gain of each number's better end, δ at the nearest number and there, and the difference of the two numbers."""

    axes: Places
    gain: Floats
    start: Floats
    end: Floats
    move: Floats


@dataclass(slots=True)
class _Table:
    """The gains of the levels of one axis, their δ, and δ of the nearest."""

    axis: int
    gain: Floats
    delta: Floats
    start: Floats


class Gains:
    """Sums over the features with their costs, beyond the nearest point of each box."""

    def __init__(self, field: Field, ends: _Ends, tables: list[_Table], extra: Floats | None = None) -> None:
        self.field = field
        self.ends = ends
        self.tables = tables
        self.extra = extra
        self.shape = ends.gain.shape[:2]
        self._number_costs = self._costs_of_ends()
        self._level_costs = [self._costs_of_levels(table) for table in tables]

    def _slopes(self, axes: Places) -> Floats:
        """Return the slopes of some axes, boxes x sums x axes, with what they got of the greatest change."""
        slope = self.field.ball.slope[axes]
        return slope if self.extra is None else slope + self.extra[:, :, axes]

    def _costs_of_ends(self) -> Floats:
        ends, ball = self.ends, self.field.ball
        square, jump = ball.square[ends.axes], ball.jump[ends.axes]
        slope = self._slopes(ends.axes)
        before = (slope + square * ends.start) * ends.start
        after = (slope + square * ends.end) * ends.end
        cost = (
            after
            - before
            - self.field.near * after
            + jump * (1 - self.field.near) * ((ends.start <= 0) & (ends.end > 0))
        )
        return np.asarray(np.maximum(cost, 0.0))

    def _costs_of_levels(self, table: _Table) -> Floats:
        """Return what each level costs beyond the nearest one, boxes x sums x levels (or x 1 x levels)."""
        j, ball = table.axis, self.field.ball
        slope = ball.slope[j] if self.extra is None else ball.slope[j] + self.extra[:, :, j, None]
        delta, start = table.delta[:, None, :], table.start[:, None, None]

        def cost(change: Floats) -> Floats:
            return np.asarray(ball.jump[j] * (change > 0) + (slope + ball.square[j] * change) * change)

        after = cost(delta)
        return np.asarray(np.maximum(after - cost(start) - self.field.near * after, 0.0))

    def shared(self, peak: Floats, view: View) -> Gains:
        """Return the same with the greatest peak·δ shared out: it is at least every mean of the peak·δ, here weighted by gain."""
        score = np.zeros((*self.shape, len(peak)))
        score[:, :, self.ends.axes] = self.ends.gain / np.maximum(self.ends.end - self.ends.start, 1e-300)
        for table in self.tables:
            score[:, :, table.axis] = np.maximum(table.gain.max(axis=2), 0.0)
        score *= peak > 0
        whole = score.sum(axis=2, keepdims=True)
        extra = peak * score / np.where(whole > 0, whole, 1.0) * (1 - self.field.near)
        made = Gains(self.field, self.ends, self.tables, extra)
        made._moved = view.peak[:, None] - (extra * view.change[:, None, :]).sum(axis=2) * (1 - self.field.near)
        return made

    _moved: Floats | float = 0.0
    """What sharing the greatest change out gives back of it."""

    def left(self, left: Floats) -> Floats:
        """Return what is left of the radius."""
        return np.asarray(np.maximum(left[:, None] + self._moved, 0.0))

    def value(self, price: Floats, left: Floats) -> Floats:
        """Return Σ_j max_v (gain - price·cost) + price·left."""
        gain, _ = self._taken(price)
        left = left[:, None] if left.ndim == 1 else left
        return np.asarray(gain + np.where(price > 0, price * np.where(price > 0, left, 0.0), 0.0))

    def _taken(self, price: Floats) -> tuple[Floats, Floats]:
        """Return Σ_j max_v (gain - price·cost), and the costs of the v that attain it."""
        ball, ends = self.field.ball, self.ends
        price = price[:, :, None]
        square = ball.square[ends.axes]
        net = ends.gain - price * self._number_costs
        cost = np.where(net > 0, self._number_costs, 0.0)
        if square.any():
            net, cost = self._parabolas(price, net, cost, square)
        total, spent = np.maximum(net, 0.0).sum(axis=2), cost.sum(axis=2)
        for table, costs in zip(self.tables, self._level_costs, strict=True):
            net = table.gain - price * costs
            chosen = net.argmax(axis=2)[:, :, None]
            best = np.take_along_axis(net, chosen, axis=2)[:, :, 0]
            paid = np.take_along_axis(np.broadcast_to(costs, net.shape), chosen, axis=2)[:, :, 0]
            total += np.maximum(best, 0.0)
            spent += np.where(best > 0, paid, 0.0)
        return total, spent

    def _parabolas(self, price: Floats, net: Floats, cost: Floats, square: Floats) -> tuple[Floats, Floats]:
        """Return gain and cost at the best number where costs are squares: the end, or where the parabola is highest."""
        ends = self.ends
        width = np.maximum(ends.end - ends.start, 1e-300)
        steep = price * square
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            at = ends.gain / width / (2 * steep)
            inner = steep * (at - ends.start) ** 2
        is_inner = (steep > 0) & (at < ends.end)
        is_moved = is_inner & (at > ends.start)
        net = np.where(is_moved, np.where(is_inner, inner, 0.0), np.where(is_inner, 0.0, net))
        at = np.where(is_moved, at, 0.0)
        inner_cost = square * (at**2 - ends.start**2)
        return net, np.where(is_moved, inner_cost, np.where(is_inner, 0.0, cost))

    def best_price(self, left: Floats) -> Floats:
        """Return prices at which the bounds are least, or nearly."""
        left = self.left(left)
        if self.field.ball.square.any():
            return self._halved(left)
        price = self._sorted(left)
        if any(table.gain.shape[2] > 2 and self.field.ball.slope[table.axis] for table in self.tables):
            halved = self._halved(left)
            return np.where(self.value(halved, left) < self.value(price, left), halved, price)
        return price

    def _sorted(self, left: Floats) -> Floats:
        """Return the price of the item that fills what is left, the items taken in the order of gain over cost."""
        gains, costs = [self.ends.gain], [self._number_costs]
        for table, cost in zip(self.tables, self._level_costs, strict=True):
            ratio = np.where(table.gain > 0, table.gain / np.maximum(cost, 1e-300), -1.0)
            best = ratio.argmax(axis=2)[:, :, None]
            gains.append(np.maximum(np.take_along_axis(table.gain, best, axis=2), 0.0))
            costs.append(np.take_along_axis(np.broadcast_to(cost, table.gain.shape), best, axis=2))
        gain, cost = np.concatenate(gains, axis=2), np.concatenate(costs, axis=2)
        if not gain.shape[2]:
            return np.zeros(self.shape)
        cost = np.where(gain > 0, cost, 0.0)
        with np.errstate(over="ignore"):
            ratio = gain / np.maximum(cost, 1e-300)
        order = np.argsort(-ratio, axis=2)
        filled = np.cumsum(np.take_along_axis(cost, order, axis=2), axis=2) >= left[:, :, None]
        place = np.take_along_axis(order, filled.argmax(axis=2)[:, :, None], axis=2)
        price = np.take_along_axis(ratio, place, axis=2)[:, :, 0]
        return np.asarray(np.where(filled.any(axis=2) & np.isfinite(price) & (price < 1e200), price, 0.0))

    def _halved(self, left: Floats) -> Floats:
        """Return the price where what is taken costs what is left, by halving."""
        full, _ = self._taken(np.zeros(self.shape))
        high = full / np.maximum(left, 1e-300)
        high = np.where(np.isfinite(high), high, 0.0)
        low = np.zeros(self.shape)
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            _, spent = self._taken(middle)
            is_dear = spent > left
            low, high = np.where(is_dear, middle, low), np.where(is_dear, high, middle)
        return np.where(self.value(low, left) < self.value(high, left), low, high)

    # ---- points

    def point(self, price: Floats, view: View, slots: int, slot_from: list[int]) -> Floats:
        """Return where the bounds at some prices are attained, as differences from the nearest points over the slots.

        Only a suggestion: nothing that is proved depends on it.
        """
        dear, dear_cost = self._moved_at(price * (1 + 1e-9), view, slots, slot_from)
        cheap, cheap_cost = self._moved_at(price * (1 - 1e-9), view, slots, slot_from)
        gap = cheap_cost - dear_cost
        with np.errstate(invalid="ignore"):
            share = np.clip((self.left(view.left) - dear_cost) / np.where(gap > 0, gap, 1.0), 0.0, 1.0)
        return np.asarray(dear + np.where(gap > 0, share, 0.0)[:, :, None] * (cheap - dear))

    def _moved_at(self, price: Floats, view: View, slots: int, slot_from: list[int]) -> tuple[Floats, Floats]:
        ball, ends = self.field.ball, self.ends
        moved = np.zeros((*self.shape, slots))
        spread = price[:, :, None]
        share = (ends.gain > spread * self._number_costs).astype(np.float64)
        square = ball.square[ends.axes]
        if square.any():
            width = np.maximum(ends.end - ends.start, 1e-300)
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                at = ends.gain / width / (2 * spread * square)
            inner = np.clip((at - ends.start) / width, 0.0, 1.0)
            share = np.where((spread > 0) & np.isfinite(inner), inner, 1.0)
        moved[:, :, [slot_from[j] for j in ends.axes]] = share * ends.move
        for table, costs in zip(self.tables, self._level_costs, strict=True):
            net = table.gain - spread * costs
            chosen = net.argmax(axis=2)
            moves = np.take_along_axis(net, chosen[:, :, None], axis=2)[:, :, 0] > 0
            n, q = np.nonzero(moves)
            moved[n, q, slot_from[table.axis] + chosen[n, q]] += 1.0
            moved[n, q, slot_from[table.axis] + view.near[n, table.axis].astype(np.int64)] -= 1.0
        return moved, self._taken(price)[1]
