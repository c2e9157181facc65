"""l1: the mean change."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from mace.distances.norm import Norm, Parts
from mace.exact import Floats


class L1(Norm):
    """Σ w δ / Σ w."""

    def floats(self, deltas: Floats, weights: Floats) -> Floats:
        """Return the weighted mean of the changes, for many points."""
        measures: Floats = deltas @ weights / weights.sum()
        return measures

    def parts(self, weights: Sequence[Fraction]) -> list[Parts]:
        """Return the slope of each feature."""
        whole = sum(weights)
        return [Parts(slope=weight / whole) for weight in weights]
