"""The norms: l0, l1, l2 and linf."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from mace.distances.norm import Norm, Parts
from mace.exact import Floats


class L0(Norm):
    """Σ w [δ > 0] / Σ w, the share of features that change."""

    def floats(self, deltas: Floats, weights: Floats) -> Floats:
        """Return the weighted share of features that change, for many points."""
        measures: Floats = (deltas != 0) @ weights / weights.sum()
        return measures

    def parts(self, weights: Sequence[Fraction]) -> list[Parts]:
        """Return the jump of each changed feature."""
        whole = sum(weights)
        return [Parts(jump=weight / whole) for weight in weights]


class L1(Norm):
    """Σ w δ / Σ w, the mean change."""

    def floats(self, deltas: Floats, weights: Floats) -> Floats:
        """Return the weighted mean of the changes, for many points."""
        measures: Floats = deltas @ weights / weights.sum()
        return measures

    def parts(self, weights: Sequence[Fraction]) -> list[Parts]:
        """Return the slope of each feature."""
        whole = sum(weights)
        return [Parts(slope=weight / whole) for weight in weights]


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


class LInf(Norm):
    """max(w δ) / max w, the greatest change."""

    def floats(self, deltas: Floats, weights: Floats) -> Floats:
        """Return the greatest weighted change, for many points."""
        measures: Floats = (deltas * weights).max(axis=1) / weights.max()
        return measures

    def parts(self, weights: Sequence[Fraction]) -> list[Parts]:
        """Return the slope of each feature's share in the maximum."""
        greatest = max(weights)
        return [Parts(peak=weight / greatest) for weight in weights]
