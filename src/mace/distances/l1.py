"""l1: the mean change."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mace.distances.norm import Norm, Parts


class L1(Norm):
    """Σ w δ / Σ w."""

    def floats(self, deltas: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the weighted mean of the changes, for many points."""
        measures: NDArray[np.float64] = deltas @ weights / weights.sum()
        return measures

    def parts(self, weights: Sequence[Fraction]) -> list[Parts]:
        """Return the slope of each feature."""
        whole = sum(weights)
        return [Parts(slope=weight / whole) for weight in weights]
