"""l2, carried as its square: the mean squared change."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mace.distances.norm import Parts
from mace.language import syntax


class L2:
    """Σ w δ² / Σ w, the square of the l2 distance."""

    def value(self, deltas: Sequence[Fraction], weights: Sequence[Fraction]) -> Fraction:
        """Return the weighted mean of the squared changes."""
        return sum((w * d * d for d, w in zip(deltas, weights, strict=True)), Fraction(0)) / sum(weights)

    def floats(self, deltas: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the weighted mean of the squared changes, for many points."""
        measures: NDArray[np.float64] = deltas**2 @ weights / weights.sum()
        return measures

    def expression(
        self, deltas: Sequence[syntax.Expression], changed: Sequence[syntax.Guard], weights: Sequence[Fraction]
    ) -> syntax.Expression:
        """Return the weighted sum of squares."""
        whole = sum(weights)
        return syntax.total(
            syntax.Binary("*", syntax.constant(w / whole), syntax.Binary("*", d, d))
            for d, w in zip(deltas, weights, strict=True)
        )

    def parts(self, weights: Sequence[Fraction]) -> list[Parts]:
        """Return the factor of each feature's square."""
        whole = sum(weights)
        return [Parts(square=weight / whole) for weight in weights]
