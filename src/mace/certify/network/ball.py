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

from mace.certify.network.coordinates import CoordinateAxis
from mace.certify.network.sums import LevelTable, NumberEnds, SeparableSums
from mace.distances import NormMetric
from mace.distances.norm import Parts
from mace.exact import Flags, Floats, Ints, float_down, float_up
from mace.space import Categorical


@dataclass(frozen=True, slots=True)
class CostBall:
    """The points whose cost is at most ``radius``; infinite where the distance does not matter.

    ``near`` is more than the relative error of any cost that is computed here: a sum over the features, and a few roundings.
    """

    radius: float
    near: float
    jump: Floats
    slope: Floats
    square: Floats
    peak: Floats
    inverse: Floats


def make_ball(
    metric: NormMetric, axes: list[CoordinateAxis], lower: Fraction | None, parts: Sequence[Parts] | None = None
) -> CostBall:
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
    return CostBall(radius, 4 * (len(axes) + 16) * 2.0**-53, jump, slope, square, peak, inverse)


@dataclass(slots=True)
class BallView:
    """Boxes inside a ball.

    Attributes
    ----------
    low, high : float arrays, boxes x axes
        The ranges of coordinates.
    bottom, top, near : float arrays, boxes x axes
        The numbers at the ends and the number nearest to the factual's own; coordinates for levels.
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

    def take(self, chosen: Flags | Ints | slice) -> BallView:
        """Return some of the boxes."""
        return BallView(*(getattr(self, name)[chosen] for name in BallView.__slots__))


class Field:
    """The axes of a question and a ball around its factual."""

    def __init__(self, axes: list[CoordinateAxis], ball: CostBall) -> None:
        self.axes = axes
        self.ball = ball
        self.near = ball.near
        self.own = np.array([axis.own for axis in axes])
        self.level_delta = [self._level_deltas(j, axis) for j, axis in enumerate(axes)]
        self.is_allowed = [_allowed(axis) for axis in axes]
        self.numbers = np.array([j for j, axis in enumerate(axes) if not axis.has_levels], dtype=np.int64)
        self.leveled = [j for j, axis in enumerate(axes) if axis.has_levels]

    def _level_deltas(self, j: int, axis: CoordinateAxis) -> Floats:
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

    def view(self, low: Floats, high: Floats) -> BallView:
        """Return what the spans and the ball leave of boxes. They are shrunk twice: where one axis costs more, less is left for the
        others."""
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

    def _snap(self, axis: CoordinateAxis, low: Floats, high: Floats) -> Flags:
        """Shrink ranges of coordinates to the spans of an axis, in place; return which hold anything."""
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

    def _look(self, low: Floats, high: Floats, is_open: Flags) -> BallView:
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
        return BallView(low, high, bottom, top, near, change, left, peak, is_open)

    def inside(self, j: int, low: Floats, high: Floats) -> Flags:
        """Return which ranks of axis j lie in the boxes."""
        ranks = np.arange(len(self.axes[j].levels))
        return np.asarray((ranks >= low[:, j, None]) & (ranks <= high[:, j, None]) & self.is_allowed[j])

    def _reach(self, j: int, axis: CoordinateAxis, view: BallView, low: Floats, high: Floats) -> None:
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

    def most(self, gains: SeparableSums, view: BallView) -> tuple[Floats, Floats]:
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

    def _offers(self, gains: SeparableSums, view: BallView) -> Iterator[SeparableSums]:
        """Yield the costs that may be put on the gains: as they are, and with the greatest change shared out among the features."""
        ball = self.ball
        if ball.jump.any() or ball.slope.any() or ball.square.any():
            yield gains
        if ball.peak.any() and (ball.jump.any() or ball.slope.any()):
            yield gains.shared(ball.peak, view)

    def gains(self, slots: Floats, view: BallView, slot_from: list[int]) -> SeparableSums:
        """Return sums over the features as items: the gain of each number's better end, and of each level.

        Parameters
        ----------
        slots : float array, boxes x sums x slots
            What each number is multiplied with, and each level adds.
        view : BallView
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
        ends = NumberEnds(numbers, gain, np.broadcast_to(start, end.shape), end, move)
        tables = []
        for j in self.leveled:
            if (view.low[:, j] == view.high[:, j]).all():
                continue
            levels = slots[:, :, slot_from[j] : slot_from[j] + len(self.axes[j].levels)]
            here = np.take_along_axis(levels, view.near[:, None, j, None].astype(np.int64), axis=2)
            inside = self.inside(j, view.low, view.high)[:, None, :]
            delta = np.broadcast_to(self.level_delta[j], (len(view.near), len(self.axes[j].levels)))
            tables.append(LevelTable(j, np.where(inside, levels - here, -math.inf), delta, view.change[:, j]))
        return SeparableSums(self, ends, tables)


def _allowed(axis: CoordinateAxis) -> Flags:
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
