"""linf: the greatest change."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from mace.distances.norm import Parts
from mace.language import syntax


class LInf:
    """max(w δ) / max w."""

    def value(self, deltas: Sequence[Fraction], weights: Sequence[Fraction]) -> Fraction:
        """Return the greatest weighted change."""
        return max(w * d for d, w in zip(deltas, weights, strict=True)) / max(weights)

    def floats(self, deltas: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the greatest weighted change, for many points."""
        measures: NDArray[np.float64] = (deltas * weights).max(axis=1) / weights.max()
        return measures

    def expression(
        self, deltas: Sequence[syntax.Expression], changed: Sequence[syntax.Guard], weights: Sequence[Fraction]
    ) -> syntax.Expression:
        """Return the maximum."""
        top = max(weights)
        terms: list[syntax.Expression] = [
            d if w == top else syntax.Binary("*", syntax.constant(w / top), d)
            for d, w in zip(deltas, weights, strict=True)
        ]
        return reduce(lambda left, right: syntax.Binary("max", left, right), terms)

    def parts(self, weights: Sequence[Fraction]) -> list[Parts]:
        """Return the slope of each feature's share in the maximum."""
        greatest = max(weights)
        return [Parts(peak=weight / greatest) for weight in weights]
