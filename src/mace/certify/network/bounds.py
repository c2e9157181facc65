"""What is known of boxes while a network is bounded: its units, and sums over the features."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mace.certify.network.ball import BallView
from mace.exact import Flags, Floats, Ints

Chosen = Flags | Ints | slice
"""Which of many boxes."""


@dataclass(slots=True)
class Units:
    """Bounds on the sums of the units, what counts as their size, and the error of the deployed arithmetic: lists with an entry a layer."""

    low: list[Floats]
    high: list[Floats]
    size: list[Floats]
    error: list[Floats]
    begin: Floats
    nearest: Floats

    def take(self, chosen: Chosen) -> Units:
        """Return some of the boxes."""
        low, high, size, error = (
            [layer[chosen] for layer in each] for each in (self.low, self.high, self.size, self.error)
        )
        return Units(low, high, size, error, self.begin[chosen], self.nearest[chosen])

    def keep_within(self, known: Units) -> None:
        """Shrink the ranges of the sums to those that are known, in place."""
        self.low = [np.maximum(low, least) for low, least in zip(self.low, known.low, strict=True)]
        self.high = [np.minimum(high, most) for high, most in zip(self.high, known.high, strict=True)]

    def put(self, places: Ints, tightened: Units) -> None:
        """Overwrite the ranges of some boxes, in place."""
        for mine, given in zip((*self.low, *self.high), (*tightened.low, *tightened.high), strict=True):
            mine[places] = given

    @property
    def is_empty(self) -> Flags:
        """Which boxes have a unit whose range holds nothing."""
        found = np.zeros(len(self.begin), dtype=np.bool_)
        for low, high in zip(self.low, self.high, strict=True):
            found |= (low > high).any(axis=1)
        return found


@dataclass(slots=True)
class BoundedBoxes:
    """Boxes, the bounds on their units, what the roundings of each row are a share of, and by how much it is widened."""

    view: BallView
    units: Units
    sizes: Floats
    band: Floats

    def take(self, chosen: Chosen) -> BoundedBoxes:
        """Return some of the boxes."""
        return BoundedBoxes(self.view.take(chosen), self.units.take(chosen), self.sizes[chosen], self.band[chosen])


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

    def take(self, chosen: Chosen) -> SumBounds:
        """Return the bounds of some of the boxes."""
        return SumBounds(*(getattr(self, name)[chosen] for name in SumBounds.__slots__))

    def where(self, keep: Flags, other: SumBounds) -> SumBounds:
        """Return these bounds where they are to be kept, else the others."""
        pairs = ((getattr(self, name), getattr(other, name)) for name in SumBounds.__slots__)
        return SumBounds(*(np.where(keep.reshape(-1, *(1,) * (a.ndim - 1)), a, b) for a, b in pairs))
