"""l0: the share of features that change."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mace.distances.norm import Parts
from mace.language import syntax


class L0:
    """Σ w [δ > 0] / Σ w."""

    def value(self, deltas: Sequence[Fraction], weights: Sequence[Fraction]) -> Fraction:
        """Return the weighted share of features that change."""
        return sum((w for d, w in zip(deltas, weights, strict=True) if d), Fraction(0)) / sum(weights)

    def floats(self, deltas: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the weighted share of features that change, for many points."""
        measures: NDArray[np.float64] = (deltas != 0) @ weights / weights.sum()
        return measures

    def expression(
        self, deltas: Sequence[syntax.Expression], changed: Sequence[syntax.Guard], weights: Sequence[Fraction]
    ) -> syntax.Expression:
        """Return the sum of indicators."""
        whole = sum(weights)
        return syntax.total(
            syntax.Binary("*", syntax.constant(w / whole), syntax.Indicator(guard))
            for guard, w in zip(changed, weights, strict=True)
        )

    def parts(self, weights: Sequence[Fraction]) -> list[Parts]:
        """Return the jump of each changed feature."""
        whole = sum(weights)
        return [Parts(jump=weight / whole) for weight in weights]
