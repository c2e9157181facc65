"""Upper bounds on the margins of a network over boxes, with every rounding accounted for.

Write h for the activations below a layer and z for its sums. Going backward from a margin, Σλ·h(z) is replaced by Σμ·z + κ: for
any number μ, λ·h(z) - μ·z is linear from the least z to 0 and from 0 to the greatest, so κ is the largest of its values there. At the first
layer the bound is a sum over the features, whose greatest value in box and ball :mod:`mace.certify.network.ball` bounds.

All numbers are floats; what rounding may take from a bound is added to it. Let size_i be at least |b_i| + Σ_p |w_ip| |h_p| of unit i in
the box. A sum of n products is off by at most γ_n times the sum of the absolute values, so that computing Σ_i μ_i w_ip for all p, the
constants, and at the first layer the value at the nearest point, the gains and their sum, is off by at most a few γ_n Σ_i |μ_i| size_i:
``own`` times that sum, with own = 8 (n + 16) u and n the greatest number of terms, covers them all in each layer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from mace.certify.network.ball import BallView, Field
from mace.certify.network.bounds import BoundedBoxes, SumBounds, Units
from mace.certify.network.coordinates import CoordinateAxis
from mace.certify.network.inequalities import Inequality
from mace.exact import UNIT, Flags, Floats, float_up, gamma
from mace.forms import Margin, Network
from mace.forms.network import UNDERFLOW, UNDERFLOW_SINGLE

ROUNDOFF = 2.0**-53
WIDER = 1 + 2.0**-20
"""Bounds on rounding are themselves computed in floats."""

MIXES = 14
"""How finely the share of a row in a mean is chosen."""

ATTEMPTS = 4
"""How often the lines below bent units are chosen anew, by the point that the last bound gave."""


@dataclass(frozen=True, slots=True)
class GoalRows:
    """Inequalities that a point in the goal fulfils: margins of scores, then linear conditions.

    ``last`` is what each puts on the activations below the scores (on the scores where there is no layer below), ``slots`` what it puts on
    the features.
    """

    last: Floats
    slots: Floats
    constant: Floats
    margins: Sequence[Margin]
    slack: Floats

    def __len__(self) -> int:
        return len(self.constant)


class BoxRelaxation:
    """A network over the axes of a question, inside a ball."""

    def __init__(self, form: Network, field: Field, slack: Fraction) -> None:
        self.form, self.field = form, field
        self.slack = slack
        axes = field.axes
        widths = [max(1, len(axis.levels)) for axis in axes]
        self.slot_from = [sum(widths[:j]) for j in range(len(axes))]
        self.slots = sum(widths)
        self.first, self.first_size = self._first_layer(axes)
        self.depth = len(form.biases) - 1
        self.sizes = [
            np.maximum(np.abs(bias), form.sizes[k] if form.sizes else 0) for k, bias in enumerate(form.biases)
        ]
        self.terms = max(self.slots, len(form.columns), *(len(bias) for bias in form.biases))
        self.own = 8 * (self.terms + 16) * ROUNDOFF

    def _first_layer(self, axes: list[CoordinateAxis]) -> tuple[Floats, Floats]:
        """Return what each slot (a number, or a level by its rank) adds to the first layer, and the sum of the absolute values."""
        first = np.zeros((self.slots, len(self.form.biases[0])))
        size = np.zeros_like(first)
        for column, weights in zip(self.form.columns, self.form.weights[0].T, strict=True):
            start, axis = self.slot_from[column.feature], axes[column.feature]
            values = np.ones(1)
            if axis.has_levels:
                values = axis.levels if column.table is None else np.array(column.table)[axis.levels.astype(np.int64)]
            added = np.outer(values, weights)
            first[start : start + len(values)] += added
            size[start : start + len(values)] += np.abs(added)
        return first, size

    # ---- the rows of a question

    def rows(self, margins: Sequence[Margin], conditions: Sequence[Inequality]) -> GoalRows:
        """Return the rows of an alternative of the goal."""
        form, count = self.form, len(margins) + len(conditions)
        scores = np.zeros((count, len(form.biases[-1])))
        constant, slack, slots = np.zeros(count), np.zeros(count), np.zeros((count, self.slots))
        for r, margin in enumerate(margins):
            if margin.plus is not None:
                scores[r, margin.plus] += 1
            if margin.minus is not None:
                scores[r, margin.minus] -= 1
            constant[r] = float(margin.shift)
            slack[r] = float_up((self.slack + form.squash + abs(margin.shift) * UNIT) * (1 + 4 * UNIT))
        for r, condition in enumerate(conditions, start=len(margins)):
            constant[r] = float(condition.constant)
            for j, factor in condition.coefficients.items():
                start, axis = self.slot_from[j], self.field.axes[j]
                values = axis.levels if axis.has_levels else np.ones(1)
                slots[r, start : start + len(values)] = float(factor) * values
        last = scores if self.depth == 0 else scores @ form.weights[-1]
        if self.depth:
            constant = constant + scores @ form.biases[-1]
        return GoalRows(last, slots, constant, margins, slack)

    # ---- bounds on units

    def units(self, view: BallView) -> Units:
        """Bound every unit over the boxes, layer by layer, and the error of the deployed arithmetic."""
        nearest, reach = self._nearest(view)
        begin = nearest @ self.first + self.form.biases[0]
        made = Units([], [], [], [], begin, nearest)
        inputs = self._spread(reach)
        self._note_size(made, 0, inputs + self.sizes[0], (float(self.form.unit) * inputs if self._is_single else 0.0))
        for k in range(self.depth):
            self._bound_layer(made, k, view)
            low, high = self._bent(k, made.low[k]), self._bent(k, made.high[k])
            weight = np.abs(self.form.weights[k + 1]).T
            size = np.maximum(np.abs(low), np.abs(high)) @ weight + self.sizes[k + 1]
            self._note_size(made, k + 1, size, made.error[k] @ weight)
        return made

    @property
    def _is_single(self) -> bool:
        return self.form.unit != UNIT

    def _nearest(self, view: BallView) -> tuple[Floats, Floats]:
        """Return the nearest points over the slots, and the greatest absolute number at each slot in the boxes."""
        count = len(view.near)
        nearest, reach = np.zeros((count, self.slots)), np.zeros((count, self.slots))
        for j, axis in enumerate(self.field.axes):
            start = self.slot_from[j]
            if axis.has_levels:
                nearest[np.arange(count), start + view.near[:, j].astype(np.int64)] = 1.0
                reach[:, start : start + len(axis.levels)] = self.field.inside(j, view.low, view.high)
            else:
                nearest[:, start] = view.near[:, j]
                reach[:, start] = np.maximum(np.abs(view.bottom[:, j]), np.abs(view.top[:, j]))
        return nearest, reach

    def _spread(self, reach: Floats) -> Floats:
        """Return Σ|w||x| of the first layer's units over the boxes, at most."""
        numbers = [self.slot_from[j] for j in self.field.numbers]
        total = reach[:, numbers] @ self.first_size[numbers]
        for j in self.field.leveled:
            each = slice(self.slot_from[j], self.slot_from[j] + len(self.field.axes[j].levels))
            total += (reach[:, each, None] * self.first_size[None, each]).max(axis=1)
        return np.asarray(total)

    def _note_size(self, made: Units, k: int, size: Floats, through: Floats | float) -> None:
        """Note the size of a layer, and its error: |W| e + γ (|W| (|h| + e) + |b|), and what underflow costs."""
        form = self.form
        inputs = form.weights[k].shape[1]
        tiny = UNDERFLOW_SINGLE if self._is_single else UNDERFLOW
        relative = float_up(gamma(inputs + 3 + form.steps, form.unit))
        made.size.append(size * WIDER)
        made.error.append((through + relative * (size + through) + tiny * (1 + inputs)) * WIDER)

    def _bent(self, k: int, sums: Floats) -> Floats:
        return np.where(sums >= 0, sums, self.form.slopes[k] * sums)

    def _bound_layer(self, made: Units, k: int, view: BallView) -> None:
        """Bound a layer's sums by intervals and, where that leaves a unit bent, by a linear bound over box and ball."""
        size = made.size[k]
        if k == 0:
            both = np.concatenate([self.first.T, -self.first.T])
            slots = np.broadcast_to(both, (len(size), *both.shape))
            most, _ = self.field.most(self.field.gains(slots, view, self.slot_from), view)
            pad = self.own * size
            units = len(self.first.T)
            made.low.append(made.begin - most[:, units:] - pad)
            made.high.append(made.begin + most[:, :units] + pad)
            return
        weight, bias = self.form.weights[k], self.form.biases[k]
        low, high = self._bent(k - 1, made.low[k - 1]), self._bent(k - 1, made.high[k - 1])
        plus, minus = np.maximum(weight, 0.0).T, np.minimum(weight, 0.0).T
        pad = self.own * size
        least, greatest = low @ plus + high @ minus + bias - pad, high @ plus + low @ minus + bias + pad
        bent = np.flatnonzero(((least < 0) & (greatest > 0)).any(axis=0) & (self.form.slopes[k] != 1))
        if len(bent):
            lam = np.concatenate([weight[bent], -weight[bent]])
            lam = np.broadcast_to(lam, (len(size), *lam.shape))
            bound = self._bound(lam, k - 1, self.adaptive(made, k), made, view, None).total
            above, below = bound[:, : len(bent)] + bias[bent], bias[bent] - bound[:, len(bent) :]
            greatest[:, bent] = np.minimum(greatest[:, bent], above + pad[:, bent])
            least[:, bent] = np.maximum(least[:, bent], below - pad[:, bent])
        made.low.append(least)
        made.high.append(greatest)

    def adaptive(self, made: Units, layers: int) -> list[Floats]:
        """Return for each unit the line below it that loses less over its range."""
        return [
            np.where(made.high[k] > -made.low[k], 1.0, np.broadcast_to(self.form.slopes[k], made.low[k].shape))
            for k in range(layers)
        ]

    # ---- bounds on sums of units

    def _bound(
        self, lam: Floats, top: int, lines: list[Floats], made: Units, view: BallView, extra: Floats | None
    ) -> SumBounds:
        """Return upper bounds on Σ lam·activation of layer ``top`` (of the first layer's sums where it is -1)."""
        base, slots = self.linear(lam, top, lines, made, extra)
        most, price = self.field.most(self.field.gains(slots, view, self.slot_from), view)
        return SumBounds(base + 8 * ROUNDOFF * WIDER * np.abs(most), slots, most, price)

    def linear(
        self,
        lam: Floats,
        top: int,
        lines: list[Floats],
        made: Units,
        extra: Floats | None = None,
        tilts: list[Floats] | None = None,
    ) -> tuple[Floats, Floats]:
        """Return linear functions above Σ lam·activation: their values at the nearest points, widened, and what they put on the slots.

        ``lines`` are slopes of lines below bent units, ``tilts`` what is added to the μ of each unit; any numbers will do.
        """
        shape = lam.shape[:2]
        constant, error = np.zeros(shape), np.zeros(shape)
        mu = lam
        for k in range(top, -1, -1):
            mu, kappa = self._step(k, lam, lines[k], made, None if tilts is None else tilts[k])
            constant += kappa
            error += self.own * np.einsum("nqi,ni->nq", np.abs(mu), made.size[k])
            if k:
                constant += mu @ self.form.biases[k]
                lam = mu @ self.form.weights[k]
        if top < 0:
            error += self.own * np.einsum("nqi,ni->nq", np.abs(mu), made.size[0])
        slots = mu @ self.first.T
        begin = np.einsum("nqi,ni->nq", mu, made.begin)
        if extra is not None:
            slots = slots + extra
            begin = begin + np.einsum("nqs,ns->nq", extra, made.nearest)
        rounding = 8 * ROUNDOFF * (np.abs(constant) + np.abs(begin))
        return constant + begin + (error + rounding) * WIDER, slots

    def _step(self, k: int, lam: Floats, line: Floats, made: Units, tilt: Floats | None) -> tuple[Floats, Floats]:
        """Return μ and Σκ of one layer."""
        low, high = made.low[k][:, None, :], made.high[k][:, None, :]
        bend = self.form.slopes[k]
        is_bent = (low < 0) & (high > 0)
        whole = np.where(is_bent, high - low, 1.0)
        above = np.where(is_bent, (high - bend * low) / whole, np.where(low >= 0, 1.0, bend))
        below = np.where(is_bent, line[:, None, :], above)
        mu = lam * np.where(lam > 0, above, below)
        if tilt is not None:
            mu = mu + tilt[:, None, :]
        at_low = lam * np.where(low >= 0, low, bend * low) - mu * low
        at_high = lam * np.where(high >= 0, high, bend * high) - mu * high
        kappa = np.maximum(np.maximum(at_low, at_high), np.where(is_bent, 0.0, -math.inf))
        # Without tilts the sum of all κ is of the size of Σ|μ|·size; with them μ may be small where κ is not.
        share = 8 * ROUNDOFF if tilt is None else self.own
        kappa += share * (np.abs(lam) + np.abs(mu)) * np.maximum(np.abs(low), np.abs(high))
        return mu, kappa.sum(axis=2)

    # ---- closing boxes

    def closed(self, rows: GoalRows, boxes: BoundedBoxes) -> tuple[Flags, Floats]:
        """Return which boxes hold no point that may fulfil all rows, and for each the sum over the slots that came nearest to it."""
        count = len(boxes.view.near)
        is_closed = np.zeros(count, dtype=np.bool_)
        nearest = np.zeros((count, self.slots))
        pending = np.arange(count)
        lines = self.adaptive(boxes.units, self.depth)
        for attempt in range(ATTEMPTS if self.depth else 1):
            bounds = self._of_rows(rows, lines, boxes)
            is_open = ~(bounds.total.min(axis=1) < 0)
            is_closed[pending[~is_open]] = True
            pending, boxes, bounds = pending[is_open], boxes.take(is_open), bounds.take(is_open)
            if len(rows) > 1 and len(pending):
                bounds = self._mixed(bounds, boxes)
                is_open = ~(bounds.total[:, 0] < 0)
                is_closed[pending[~is_open]] = True
                pending, boxes, bounds = pending[is_open], boxes.take(is_open), bounds.take(is_open)
            nearest[pending] = bounds.slots[:, 0]
            if not len(pending) or attempt == ATTEMPTS - 1:
                break
            lines = self._lines_at(self._point(bounds, boxes)[:, 0], boxes)
        return is_closed, nearest

    def boxes(self, rows: GoalRows, view: BallView) -> BoundedBoxes:
        """Return the boxes with the bounds on their units, the size of each row there, and by how much it is widened."""
        units = self.units(view)
        band, sizes = np.empty((len(view.near), len(rows))), np.empty((len(view.near), len(rows)))
        error, size = units.error[-1], units.size[-1]
        for r, margin in enumerate(rows.margins):
            sides = [side for side in (margin.plus, margin.minus) if side is not None]
            sizes[:, r] = size[:, sides].sum(axis=1) + abs(float(margin.shift))
            band[:, r] = (error[:, sides].sum(axis=1) + rows.slack[r] + self.own * sizes[:, r]) * WIDER
        count = len(rows.margins)
        reach = self._nearest(view)[1]
        sizes[:, count:] = reach @ np.abs(rows.slots[count:]).T + np.abs(rows.constant[count:])
        band[:, count:] = self.own * sizes[:, count:] * WIDER
        return BoundedBoxes(view, units, sizes, band)

    def _of_rows(self, rows: GoalRows, lines: list[Floats], boxes: BoundedBoxes) -> SumBounds:
        """Return a bound on each row alone."""
        count = len(boxes.view.near)
        lam = np.broadcast_to(rows.last, (count, *rows.last.shape))
        extra = np.broadcast_to(rows.slots, (count, *rows.slots.shape)) if rows.slots.any() else None
        bounds = self._bound(lam, self.depth - 1, lines, boxes.units, boxes.view, extra)
        bounds.base += rows.constant + boxes.band + 8 * ROUNDOFF * np.abs(rows.constant)
        return bounds

    def _mixed(self, rows: SumBounds, boxes: BoundedBoxes) -> SumBounds:
        """Return bounds on weighted means of the rows. Rows that the point of the last bound breaks are mixed in, with the weight that
        makes the bound least."""
        view, field = boxes.view, self.field
        count, number = rows.base.shape
        size = np.abs(rows.base) + np.einsum("nrs,ns->nr", np.abs(rows.slots), self.widths(view))
        # Inequalities of like size mix well; powers of two scale without rounding.
        scale = np.exp2(-np.clip(np.frexp(size)[1], -900, 900))
        rows = SumBounds(rows.base * scale, rows.slots * scale[:, :, None], rows.most * scale, rows.price)
        size = size * scale
        rounding = 4 * (number + self.terms + 8) * ROUNDOFF * size * WIDER

        def mean(weights: Floats) -> SumBounds:
            slots = np.einsum("nr,nrs->ns", weights, rows.slots)[:, None, :]
            base = (weights * (rows.base + rounding)).sum(axis=1, keepdims=True)
            return SumBounds(base, slots, *field.most(field.gains(slots, view, self.slot_from), view))

        weights = np.eye(number)[rows.total.argmin(axis=1)]
        best = mean(weights)
        for _ in range(2 * number):
            values = rows.base + np.einsum("nrs,ns->nr", rows.slots, self._point(best, boxes)[:, 0])
            # Where the point breaks no row, no mean of them excludes it.
            if not ((values.min(axis=1) < 0) & (best.total[:, 0] >= 0)).any():
                break
            towards = np.eye(number)[values.argmin(axis=1)]
            low, high, kept = np.zeros((count, 1)), np.ones((count, 1)), weights
            for _ in range(MIXES):
                share = (low + high) / 2
                trial = (1 - share) * weights + share * towards
                found = mean(trial)
                is_better = found.total < best.total
                best = best.where(~is_better[:, 0], found)
                kept = np.where(is_better, trial, kept)
                broken = rows.base + np.einsum("nrs,ns->nr", rows.slots, self._point(found, boxes)[:, 0])
                is_broken = (broken * towards).sum(axis=1, keepdims=True) < 0
                low, high = np.where(is_broken, share, low), np.where(is_broken, high, share)
            if (kept == weights).all():
                break
            weights = kept
        return best

    def widths(self, view: BallView) -> Floats:
        """Return the greatest difference from the nearest point at each slot."""
        widths = np.zeros((len(view.near), self.slots))
        for j, axis in enumerate(self.field.axes):
            start = self.slot_from[j]
            if axis.has_levels:
                widths[:, start : start + len(axis.levels)] = (view.low[:, j] < view.high[:, j])[:, None]
            else:
                widths[:, start] = np.maximum(view.top[:, j] - view.near[:, j], view.near[:, j] - view.bottom[:, j])
        return widths

    def _point(self, bounds: SumBounds, boxes: BoundedBoxes) -> Floats:
        """Return where the bounds are attained, as differences from the nearest points over the slots."""
        gains = self.field.gains(bounds.slots, boxes.view, self.slot_from)
        return gains.point(bounds.price, boxes.view, self.slots, self.slot_from)

    def _lines_at(self, moved: Floats, boxes: BoundedBoxes) -> list[Floats]:
        """Return for each unit the line below it that is exact at a point."""
        sums = boxes.units.begin + moved @ self.first
        lines = []
        for k in range(self.depth):
            if k:
                sums = self._bent(k - 1, sums) @ self.form.weights[k].T + self.form.biases[k]
            lines.append(np.where(sums >= 0, 1.0, np.broadcast_to(self.form.slopes[k], sums.shape)))
        return lines
