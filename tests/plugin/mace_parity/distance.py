"""``"steps"``: half the number of changes, half their mean size."""

from __future__ import annotations

from mace.distances.norm import Norm, Parts
from mace.distances.norms import L0, L1


class Steps(Norm):
    def floats(self, deltas, weights):
        return (L0().floats(deltas, weights) + L1().floats(deltas, weights)) / 2

    def parts(self, weights):
        both = zip(L0().parts(weights), L1().parts(weights), strict=True)
        return [Parts(jump=jump.jump / 2, slope=slope.slope / 2) for jump, slope in both]
