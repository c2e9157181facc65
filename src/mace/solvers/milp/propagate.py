"""Bounds at a node of the search: what follows from the forms and the choices, rounded outward, a few array operations a pass."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from mace.exact import Floats, Ints
from mace.solvers.milp.contract import LOST_BY_UNDERFLOW, ROUND
from mace.solvers.milp.program import MixedProgram
from mace.solvers.milp.quantities import ZERO_OR_ONE, Quantities, greatest, least

MOST_PROPAGATIONS = 4
LEAST_TIGHTENING = 0.1
"""A pass that tightens no column by at least this share of its range in the whole ball is the last."""


def propagate_exactly(
    program: MixedProgram, quantities: Quantities, low: Floats, high: Floats
) -> tuple[list[Fraction], list[Fraction]] | None:
    """Return bounds of the columns in exact arithmetic; ``None`` where no point is left.

    For a node with nothing left to cut: what the room for rounding left open, an equation may still decide.
    """
    lows, highs = [Fraction(v) for v in low[: program.width]], [Fraction(v) for v in high[: program.width]]
    for _ in range(MOST_PROPAGATIONS):
        for position, form in enumerate(program.form_numbers):
            terms = quantities.exact[form]
            assert terms is not None
            placed = [(program.place[column], a) for column, a in terms.items()]
            ends = [(a * lows[c], a * highs[c]) if a > 0 else (a * highs[c], a * lows[c]) for c, a in placed]
            least_sum, most_sum = (sum((end[side] for end in ends), Fraction(0)) for side in (0, 1))
            at_least, at_most = Fraction(low[program.width + position]), Fraction(high[program.width + position])
            for (column, a), (smallest, largest) in zip(placed, ends, strict=True):
                first, second = (at_least - most_sum + largest) / a, (at_most - least_sum + smallest) / a
                lows[column] = max(lows[column], first if a > 0 else second)
                highs[column] = min(highs[column], second if a > 0 else first)
                if lows[column] > highs[column]:
                    return None
    return lows, highs


class Propagator:
    """Propagates the bounds of one program."""

    def __init__(self, program: MixedProgram) -> None:
        self.program = program
        forms = program.forms
        self.count = forms.shape[0]
        self.row: Ints = np.repeat(np.arange(self.count), np.diff(forms.indptr))
        self.column: Ints = forms.indices.astype(np.int64)
        self.value: Floats = forms.data
        self.starts: Ints = forms.indptr[:-1].astype(np.int64)
        self.span: Floats = (program.high - program.low)[: program.width]
        self.is_plus = self.value > 0
        self.error: Floats = (np.diff(forms.indptr) + 6.0) * ROUND
        self.form: Ints = program.width + self.row
        self.nested = [int(choice) for choice in np.flatnonzero(program.choices.parent >= 0)]
        self.discrete = [(place, domain) for place, domain in program.discrete if domain is not ZERO_OR_ONE]
        self.binary: Ints = np.array(
            [place for place, domain in program.discrete if domain is ZERO_OR_ONE], dtype=np.int64
        )
        choices = program.choices
        self.segment_quantity = choices.quantity[choices.segments] if len(choices.segments) else choices.segments
        self.segment_choice = (
            choices.choice[choices.part[choices.segments]] if len(choices.segments) else choices.segments
        )

    def propagate(self, low: Floats, high: Floats) -> bool:
        """Tighten the bounds in place; return False where no point is left."""
        width = self.program.width
        for _ in range(MOST_PROPAGATIONS):
            before = high[:width] - low[:width]
            if not (self._choices(low, high) and self._forms(low, high) and self._discrete(low, high)):
                return False
            if (low > high).any():
                return False
            if not (before - (high[:width] - low[:width]) > LEAST_TIGHTENING * self.span).any():
                return True
        return True

    def _forms(self, low: Floats, high: Floats) -> bool:
        if not self.count:
            return True
        program = self.program
        width = program.width
        column_low, column_high = low[self.column], high[self.column]
        least_term = self.value * np.where(self.is_plus, column_low, column_high)
        most_term = self.value * np.where(self.is_plus, column_high, column_low)
        size = np.add.reduceat(np.maximum(np.abs(least_term), np.abs(most_term)), self.starts)
        room = self.error * size + LOST_BY_UNDERFLOW
        smallest = np.add.reduceat(least_term, self.starts)
        largest = np.add.reduceat(most_term, self.starts)
        np.maximum(low[width:], smallest - room, out=low[width:])
        np.minimum(high[width:], largest + room, out=high[width:])
        at_most = high[self.form] - (smallest[self.row] - least_term) + room[self.row]
        at_least = low[self.form] - (largest[self.row] - most_term) - room[self.row]
        first, second = at_least / self.value, at_most / self.value
        first -= np.where(self.is_plus, 1, -1) * (np.abs(first) * 4 * ROUND + LOST_BY_UNDERFLOW)
        second += np.where(self.is_plus, 1, -1) * (np.abs(second) * 4 * ROUND + LOST_BY_UNDERFLOW)
        np.maximum.at(low, self.column, np.where(self.is_plus, first, second))
        np.minimum.at(high, self.column, np.where(self.is_plus, second, first))
        return True

    def _discrete(self, low: Floats, high: Floats) -> bool:
        low[self.binary] = np.ceil(low[self.binary])
        high[self.binary] = np.floor(high[self.binary])
        for place, domain in self.discrete:
            low[place] = least(domain, float(low[place]), strict=False)
            high[place] = greatest(domain, float(high[place]), strict=False)
        return True

    def _choices(self, low: Floats, high: Floats) -> bool:
        """Drop the parts that the box rules out, and take over what the remaining parts imply."""
        choices = self.program.choices
        if not len(choices.starts):
            return True
        columns = choices.columns
        apart = (low[choices.quantity] > choices.high) | (high[choices.quantity] < choices.low)
        high[columns[choices.part[apart]]] = 0.0
        alive = self._alive(low, high)
        if alive is None:
            return False
        held = self.held(low)
        live = alive[choices.part]
        segment_low = np.minimum.reduceat(np.where(live, choices.low, math.inf), choices.segments)
        segment_high = np.maximum.reduceat(np.where(live, choices.high, -math.inf), choices.segments)
        known = held[self.segment_choice]
        np.maximum.at(low, self.segment_quantity[known], segment_low[known])
        np.minimum.at(high, self.segment_quantity[known], segment_high[known])
        return True

    def _alive(self, low: Floats, high: Floats) -> np.ndarray | None:
        """Settle the parts' columns; return which parts are left, ``None`` where a choice that must be made has none."""
        choices = self.program.choices
        columns = choices.columns
        for choice in self.nested[::-1]:
            inside = columns[choices.starts[choice] : self.end(choice)]
            parent = columns[choices.parent[choice]]
            if not (high[inside] > 0).any():
                high[parent] = 0.0
            if (low[inside] > 0).any():
                low[parent] = 1.0
        for choice in self.nested:
            if high[columns[choices.parent[choice]]] <= 0:
                high[columns[choices.starts[choice] : self.end(choice)]] = 0.0
        alive = (high[columns] > 0) & (low[columns] <= high[columns])
        chosen = low[columns] > 0
        if chosen.any():
            picked = np.add.reduceat(chosen.astype(np.int64), choices.starts)
            if (picked > 1).any():
                return None
            alive &= chosen | (picked[choices.choice] == 0)
            high[columns[~alive]] = 0.0
        left = np.add.reduceat(alive.astype(np.int64), choices.starts)
        held = self.held(low)
        if ((left == 0) & held).any():
            return None
        low[columns[alive & ((left == 1) & held)[choices.choice]]] = 1.0
        return alive

    def end(self, choice: int) -> int:
        """Return where the parts of a choice end."""
        starts = self.program.choices.starts
        return int(starts[choice + 1]) if choice + 1 < len(starts) else len(self.program.choices.columns)

    def held(self, low: Floats) -> np.ndarray:
        """Return which choices must be made: those on the outside, and those inside a part that is chosen."""
        choices = self.program.choices
        return (choices.parent < 0) | (low[choices.columns[np.maximum(choices.parent, 0)]] > 0)
