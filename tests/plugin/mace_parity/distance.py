"""``"steps"``: half the number of changes, half their mean size."""

from __future__ import annotations

from mace.distances.l0 import L0
from mace.distances.l1 import L1
from mace.distances.norm import Parts
from mace.language import syntax


class Steps:
    def value(self, deltas, weights):
        return (L0().value(deltas, weights) + L1().value(deltas, weights)) / 2

    def floats(self, deltas, weights):
        return (L0().floats(deltas, weights) + L1().floats(deltas, weights)) / 2

    def expression(self, deltas, changed, weights):
        both = [norm.expression(deltas, changed, weights) for norm in (L0(), L1())]
        return syntax.total(syntax.Binary("*", syntax.constant(0.5), each) for each in both)

    def parts(self, weights):
        both = zip(L0().parts(weights), L1().parts(weights), strict=True)
        return [Parts(jump=jump.jump / 2, slope=slope.slope / 2) for jump, slope in both]
