"""l0: the share of features that change."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from mace.distances.norm import Norm, Parts
from mace.exact import Floats


class L0(Norm):
    """Σ w [δ > 0] / Σ w."""

    def floats(self, deltas: Floats, weights: Floats) -> Floats:
        """Return the weighted share of features that change, for many points."""
        measures: Floats = (deltas != 0) @ weights / weights.sum()
        return measures

    def parts(self, weights: Sequence[Fraction]) -> list[Parts]:
        """Return the jump of each changed feature."""
        whole = sum(weights)
        return [Parts(jump=weight / whole) for weight in weights]
