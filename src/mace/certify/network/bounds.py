"""What is known of boxes while a network is bounded: its units, and sums over the features."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mace.certify.network.ball import BallView
from mace.certify.network.coordinates import Flags, Floats


@dataclass(slots=True)
class Units:
    """Bounds on the sums of the units, what counts as their size, and the error of the deployed arithmetic; a list a layer."""

    low: list[Floats]
    high: list[Floats]
    size: list[Floats]
    error: list[Floats]
    begin: Floats
    nearest: Floats

    def take(self, chosen: Flags) -> Units:
        """Return some of the boxes."""
        low, high, size, error = (
            [layer[chosen] for layer in each] for each in (self.low, self.high, self.size, self.error)
        )
        return Units(low, high, size, error, self.begin[chosen], self.nearest[chosen])


@dataclass(slots=True)
class BoundedBoxes:
    """Boxes, the bounds on their units, and by how much each row is widened."""

    view: BallView
    units: Units
    band: Floats

    def take(self, chosen: Flags) -> BoundedBoxes:
        """Return some of the boxes."""
        return BoundedBoxes(self.view.take(chosen), self.units.take(chosen), self.band[chosen])


@dataclass(slots=True)
class SumBounds:
    """Upper bounds, boxes x sums: base + most, from sums over the slots, at prices."""

    base: Floats
    slots: Floats
    most: Floats
    price: Floats

    @property
    def total(self) -> Floats:
        """The bounds."""
        return np.asarray(self.base + self.most)

    def take(self, chosen: Flags) -> SumBounds:
        """Return the bounds of some of the boxes."""
        return SumBounds(*(getattr(self, name)[chosen] for name in SumBounds.__slots__))

    def where(self, keep: Flags, other: SumBounds) -> SumBounds:
        """Return these bounds where they are to be kept, else the others."""
        pairs = ((getattr(self, name), getattr(other, name)) for name in SumBounds.__slots__)
        return SumBounds(*(np.where(keep.reshape(-1, *(1,) * (a.ndim - 1)), a, b) for a, b in pairs))
