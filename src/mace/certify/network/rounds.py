"""Rounds of a proof: an inequality that every counterfactual of a box fulfils, and what follows from it for the units.

A round multiplies the inequalities of the goal with numbers ``mix`` >= 0, adds them up, and goes backward through the layers as
:mod:`mace.certify.network.relaxation` does, with its own slopes ``alpha`` of the lines below bent units and its own additions ``beta`` to
the coefficients of the units. What comes out is G(x) = base + Σ slots·(x - nearest), at least 0 for every counterfactual of the box. Where
its greatest value in box and ball is below 0 there is none. Otherwise z <= A(x) of a unit, for any linear A, gives z <= max over box and
ball of A + price·G, for any price >= 0: points that cannot be counterfactuals no longer count.

So a range of a unit is here one of the *counterfactuals* of a box, not of all its points. All numbers of a round are free choices:
whatever they are, the bounds hold.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mace.certify.network.bounds import BoundedBoxes
from mace.certify.network.relaxation import ROUNDOFF, WIDER, BoxRelaxation, GoalRows
from mace.exact import Flags, Floats

MORE_THAN_UNDERFLOW = 1e-290
"""More than underflow can take from a bound."""


@dataclass(slots=True)
class Round:
    """The multipliers of one round for some boxes; units of all hidden layers in one row.

    Attributes
    ----------
    mix : float array, boxes x rows
        What each inequality of the goal is multiplied with, at least 0.
    alpha, beta : float arrays, boxes x units
        The share of the way from a unit's slope below 0 to 1 that the slope of the line below it goes; what is added to its coefficient.
    price : float array, boxes x 2 x units
        How much of the inequality is added to an upper bound on a unit, and to one on its negative; at least 0.
    """

    mix: Floats
    alpha: Floats
    beta: Floats
    price: Floats


class GoalRounds:
    """Rounds for one alternative of the goal."""

    def __init__(self, relaxation: BoxRelaxation, rows: GoalRows) -> None:
        self.relaxation = relaxation
        self.rows = rows
        self.edges = np.cumsum([len(bend) for bend in relaxation.form.slopes])[:-1]

    def run(self, boxes: BoundedBoxes, given: Round) -> Flags:
        """Tighten the ranges of the units of boxes, in place; return which boxes hold no counterfactual."""
        base, slots = self._goal(boxes, given)
        field = self.relaxation.field
        most, _ = field.most(field.gains(slots, boxes.view, self.relaxation.slot_from), boxes.view)
        total = (base + 8 * ROUNDOFF * WIDER * np.abs(most) + most)[:, 0]
        # A sum that left the range of floats says nothing.
        is_closed = np.isfinite(total) & (total < 0)
        left = np.flatnonzero(~is_closed)
        if len(left):
            some = boxes.take(left)
            for k in range(self.relaxation.depth):
                self._tighten(k, some, base[left], slots[left], self._layer(given.price[left], k))
            boxes.units.put(left, some.units)
            is_closed[left] = some.units.is_empty
        return np.asarray(is_closed)

    def _layer(self, flat: Floats, k: int) -> Floats:
        """Return the units of one layer out of a row of all hidden units."""
        return np.asarray(np.split(flat, self.edges, axis=-1)[k])

    def _goal(self, boxes: BoundedBoxes, given: Round) -> tuple[Floats, Floats]:
        """Return G: its value at the nearest points, widened, and what it puts on the slots."""
        rows, relaxation = self.rows, self.relaxation
        slopes = relaxation.form.slopes
        lines = [bend + (1 - bend) * self._layer(given.alpha, k) for k, bend in enumerate(slopes)]
        tilts = [self._layer(given.beta, k) for k in range(len(slopes))]
        lam = (given.mix @ rows.last)[:, None, :]
        extra = (given.mix @ rows.slots)[:, None, :] if rows.slots.any() else None
        base, slots = relaxation.linear(lam, relaxation.depth - 1, lines, boxes.units, extra, tilts)
        rounding = 4 * (len(rows) + 8) * ROUNDOFF * boxes.sizes
        constant = given.mix * (rows.constant + (boxes.band + rounding) * WIDER)
        return base + 8 * ROUNDOFF * np.abs(base) + constant.sum(axis=1, keepdims=True) + MORE_THAN_UNDERFLOW, slots

    def _tighten(self, k: int, boxes: BoundedBoxes, base: Floats, slots: Floats, price: Floats) -> None:
        """Tighten the ranges of the bent units of a layer, in place."""
        relaxation, units, view = self.relaxation, boxes.units, boxes.view
        is_bent = (units.low[k] < 0) & (units.high[k] > 0)
        bent = np.flatnonzero(is_bent.any(axis=0))
        if not len(bent):
            return
        above, shift = (relaxation.form.weights[k], relaxation.form.biases[k]) if k else (np.eye(len(is_bent[0])), 0.0)
        lam = np.concatenate([above[bent], -above[bent]])
        lam = np.broadcast_to(lam, (len(is_bent), *lam.shape))
        own, own_slots = relaxation.linear(lam, k - 1, relaxation.adaptive(units, k), units)
        paid = np.concatenate([price[:, 0, bent], price[:, 1, bent]], axis=1)
        both = own_slots + paid[:, :, None] * slots
        most, _ = relaxation.field.most(relaxation.field.gains(both, view, relaxation.slot_from), view)
        sizes = np.abs(own_slots) + paid[:, :, None] * np.abs(slots)
        rounding = 4 * (relaxation.terms + 8) * ROUNDOFF * np.einsum("nqs,ns->nq", sizes, relaxation.widths(view))
        rounding += 8 * ROUNDOFF * (np.abs(own) + paid * np.abs(base) + np.abs(most))
        bound = own + paid * base + most + rounding * WIDER + MORE_THAN_UNDERFLOW
        pad, shift = relaxation.own * units.size[k][:, bent], np.broadcast_to(shift, is_bent.shape[1:])[bent]
        high, low = bound[:, : len(bent)] + shift + pad, shift - bound[:, len(bent) :] - pad
        is_better = is_bent[:, bent] & np.isfinite(high) & (high < units.high[k][:, bent])
        units.high[k][:, bent] = np.where(is_better, high, units.high[k][:, bent])
        is_better = is_bent[:, bent] & np.isfinite(low) & (low > units.low[k][:, bent])
        units.low[k][:, bent] = np.where(is_better, low, units.low[k][:, bent])
