"""l2, carried as its square: the mean squared change."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from mace.distances.norm import Norm, Parts
from mace.exact import Floats


class L2(Norm):
    """Σ w δ² / Σ w, the square of the l2 distance."""

    def floats(self, deltas: Floats, weights: Floats) -> Floats:
        """Return the weighted mean of the squared changes, for many points."""
        measures: Floats = deltas**2 @ weights / weights.sum()
        return measures

    def parts(self, weights: Sequence[Fraction]) -> list[Parts]:
        """Return the factor of each feature's square."""
        whole = sum(weights)
        return [Parts(square=weight / whole) for weight in weights]
