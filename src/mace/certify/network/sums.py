"""Sums over the features with their costs, and prices of distance that bound them over box and ball."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mace.exact import Floats, Ints

if TYPE_CHECKING:
    from mace.certify.network.ball import BallView, Field


PRICE_HALVINGS = 28
"""How often a price is halved where no sort of the items gives the best one at once."""


@dataclass(slots=True)
class NumberEnds:
    """The gain of each number's better end, δ at the nearest number and there, and the difference of the two numbers."""

    axes: Ints
    gain: Floats
    start: Floats
    end: Floats
    move: Floats


@dataclass(slots=True)
class LevelTable:
    """The gains of the levels of one axis, their δ, and δ of the nearest."""

    axis: int
    gain: Floats
    delta: Floats
    start: Floats


class SeparableSums:
    """Sums over the features with their costs, beyond the nearest point of each box."""

    def __init__(self, field: Field, ends: NumberEnds, tables: list[LevelTable], extra: Floats | None = None) -> None:
        self.field = field
        self.ends = ends
        self.tables = tables
        self.extra = extra
        self.shape = ends.gain.shape[:2]
        self._number_costs = self._costs_of_ends()
        self._level_costs = [self._costs_of_levels(table) for table in tables]

    def _slopes(self, axes: Ints) -> Floats:
        """Return the slopes of some axes, boxes x sums x axes, with the share of the greatest change that each pays."""
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

    def _costs_of_levels(self, table: LevelTable) -> Floats:
        """Return what each level costs beyond the nearest one, boxes x sums x levels (or x 1 x levels)."""
        j, ball = table.axis, self.field.ball
        slope = ball.slope[j] if self.extra is None else ball.slope[j] + self.extra[:, :, j, None]
        delta, start = table.delta[:, None, :], table.start[:, None, None]

        def cost(change: Floats) -> Floats:
            return np.asarray(ball.jump[j] * (change > 0) + (slope + ball.square[j] * change) * change)

        after = cost(delta)
        return np.asarray(np.maximum(after - cost(start) - self.field.near * after, 0.0))

    def shared(self, peak: Floats, view: BallView) -> SeparableSums:
        """Return the same with the greatest peak·δ shared out among the features: it is at least any weighted mean of them. The weights
        are the gains."""
        score = np.zeros((*self.shape, len(peak)))
        score[:, :, self.ends.axes] = self.ends.gain / np.maximum(self.ends.end - self.ends.start, 1e-300)
        for table in self.tables:
            score[:, :, table.axis] = np.maximum(table.gain.max(axis=2), 0.0)
        score *= peak > 0
        whole = score.sum(axis=2, keepdims=True)
        extra = peak * score / np.where(whole > 0, whole, 1.0) * (1 - self.field.near)
        made = SeparableSums(self.field, self.ends, self.tables, extra)
        made._moved = view.peak[:, None] - (extra * view.change[:, None, :]).sum(axis=2) * (1 - self.field.near)
        return made

    _moved: Floats | float = 0.0
    """The greatest peak·δ at the nearest point, less what the features pay of it once it is shared out."""

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
        coordinate = np.take_along_axis(order, filled.argmax(axis=2)[:, :, None], axis=2)
        price = np.take_along_axis(ratio, coordinate, axis=2)[:, :, 0]
        return np.asarray(np.where(filled.any(axis=2) & np.isfinite(price) & (price < 1e200), price, 0.0))

    def _halved(self, left: Floats) -> Floats:
        """Return the price where what is taken costs what is left, by halving."""
        full, _ = self._taken(np.zeros(self.shape))
        high = full / np.maximum(left, 1e-300)
        high = np.where(np.isfinite(high), high, 0.0)
        low = np.zeros(self.shape)
        for _ in range(PRICE_HALVINGS):
            middle = (low + high) / 2
            _, spent = self._taken(middle)
            is_dear = spent > left
            low, high = np.where(is_dear, middle, low), np.where(is_dear, high, middle)
        return np.where(self.value(low, left) < self.value(high, left), low, high)

    # ---- points

    def point(self, price: Floats, view: BallView, slots: int, slot_from: list[int]) -> Floats:
        """Return where the bounds at some prices are attained, as differences from the nearest points over the slots.

        Only a suggestion: nothing that is proved depends on it.
        """
        dear, dear_cost = self._moved_at(price * (1 + 1e-9), view, slots, slot_from)
        cheap, cheap_cost = self._moved_at(price * (1 - 1e-9), view, slots, slot_from)
        gap = cheap_cost - dear_cost
        with np.errstate(invalid="ignore"):
            share = np.clip((self.left(view.left) - dear_cost) / np.where(gap > 0, gap, 1.0), 0.0, 1.0)
        return np.asarray(dear + np.where(gap > 0, share, 0.0)[:, :, None] * (cheap - dear))

    def _moved_at(self, price: Floats, view: BallView, slots: int, slot_from: list[int]) -> tuple[Floats, Floats]:
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
