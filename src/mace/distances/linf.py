"""linf: the greatest change."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mace.distances.norm import Norm, Parts


class LInf(Norm):
    """max(w δ) / max w."""

    def floats(self, deltas: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the greatest weighted change, for many points."""
        measures: NDArray[np.float64] = (deltas * weights).max(axis=1) / weights.max()
        return measures

    def parts(self, weights: Sequence[Fraction]) -> list[Parts]:
        """Return the slope of each feature's share in the maximum."""
        greatest = max(weights)
        return [Parts(peak=weight / greatest) for weight in weights]
