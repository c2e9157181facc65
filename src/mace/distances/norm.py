"""What a norm is: one small class each, in its own file.

All work on the vector of normalised changes δ_j in [0, 1] (exact fractions) with weights w_j, and give a number in [0, 1].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Protocol

from mace.exact import Floats
from mace.language import syntax


@dataclass(frozen=True, slots=True)
class Parts:
    """What a change δ > 0 of one feature contributes: jump + slope·δ + square·δ² to a sum, and peak·δ to a maximum."""

    jump: Fraction = Fraction(0)
    slope: Fraction = Fraction(0)
    square: Fraction = Fraction(0)
    peak: Fraction = Fraction(0)


class Norm(Protocol):
    """A norm of the changes: what each feature contributes, and from that an expression of the core language."""

    def parts(self, weights: Sequence[Fraction]) -> list[Parts]:
        """Return what each feature's change contributes."""

    def floats(self, deltas: Floats, weights: Floats) -> Floats:
        """Return the norm of many rows of changes at once, in floats."""

    def expression(
        self, deltas: Sequence[syntax.Expression], changed: Sequence[syntax.Guard], weights: Sequence[Fraction]
    ) -> syntax.Expression:
        """Return the norm as an expression over the changes, and over whether there is any."""
        terms: list[syntax.Expression] = []
        peaks: list[syntax.Expression] = []
        for delta, guard, part in zip(deltas, changed, self.parts(weights), strict=True):
            of_sum = [(part.jump, syntax.Indicator(guard)), (part.slope, delta), (part.square, _times(delta, delta))]
            terms += [_times(syntax.constant(factor), term) for factor, term in of_sum if factor]
            if part.peak:
                peaks.append(delta if part.peak == 1 else _times(syntax.constant(part.peak), delta))
        if peaks:
            terms.append(reduce(lambda left, right: syntax.Binary("max", left, right), peaks))
        return syntax.total(terms)


def _times(left: syntax.Expression, right: syntax.Expression) -> syntax.Expression:
    return syntax.Binary("*", left, right)
