"""l1: the mean change."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mace.distances.norm import Parts
from mace.language import syntax


class L1:
    """Σ w δ / Σ w."""

    def value(self, deltas: Sequence[Fraction], weights: Sequence[Fraction]) -> Fraction:
        """Return the weighted mean of the changes."""
        return sum((w * d for d, w in zip(deltas, weights, strict=True)), Fraction(0)) / sum(weights)

    def floats(self, deltas: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the weighted mean of the changes, for many points."""
        measures: NDArray[np.float64] = deltas @ weights / weights.sum()
        return measures

    def expression(
        self, deltas: Sequence[syntax.Expression], changed: Sequence[syntax.Guard], weights: Sequence[Fraction]
    ) -> syntax.Expression:
        """Return the weighted sum."""
        whole = sum(weights)
        return syntax.total(
            syntax.Binary("*", syntax.constant(w / whole), d) for d, w in zip(deltas, weights, strict=True)
        )

    def parts(self, weights: Sequence[Fraction]) -> list[Parts]:
        """Return the slope of each feature."""
        whole = sum(weights)
        return [Parts(slope=weight / whole) for weight in weights]
