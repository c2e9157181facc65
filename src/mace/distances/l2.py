"""l2, carried as its square: the mean squared change."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mace.distances.norm import Norm, Parts


class L2(Norm):
    """Σ w δ² / Σ w, the square of the l2 distance."""

    def floats(self, deltas: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the weighted mean of the squared changes, for many points."""
        measures: NDArray[np.float64] = deltas**2 @ weights / weights.sum()
        return measures

    def parts(self, weights: Sequence[Fraction]) -> list[Parts]:
        """Return the factor of each feature's square."""
        whole = sum(weights)
        return [Parts(square=weight / whole) for weight in weights]
