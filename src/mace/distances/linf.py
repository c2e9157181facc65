"""linf: the greatest change."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from mace.distances.norm import Norm, Parts
from mace.exact import Floats


class LInf(Norm):
    """max(w δ) / max w."""

    def floats(self, deltas: Floats, weights: Floats) -> Floats:
        """Return the greatest weighted change, for many points."""
        measures: Floats = (deltas * weights).max(axis=1) / weights.max()
        return measures

    def parts(self, weights: Sequence[Fraction]) -> list[Parts]:
        """Return the slope of each feature's share in the maximum."""
        greatest = max(weights)
        return [Parts(peak=weight / greatest) for weight in weights]
