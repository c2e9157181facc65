"""What a norm is: one small class each, in its own file.

All work on the vector of normalised changes δ_j in [0, 1] (exact fractions) with weights w_j, and give a number in [0, 1].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mace.language import syntax


@dataclass(frozen=True, slots=True)
class Parts:
    """What a change δ > 0 of one feature contributes: jump + slope·δ + square·δ² to a sum, and peak·δ to a maximum."""

    jump: Fraction = Fraction(0)
    slope: Fraction = Fraction(0)
    square: Fraction = Fraction(0)
    peak: Fraction = Fraction(0)


class Norm(Protocol):
    """A norm of the changes, as a number, as an expression of the core language, and for one feature alone."""

    def value(self, deltas: Sequence[Fraction], weights: Sequence[Fraction]) -> Fraction:
        """Return the norm of ``deltas``, exactly."""
        ...

    def floats(self, deltas: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the norm of many rows of changes at once, in floats."""
        ...

    def expression(
        self, deltas: Sequence[syntax.Expression], changed: Sequence[syntax.Guard], weights: Sequence[Fraction]
    ) -> syntax.Expression:
        """Return the same as an expression over the changes, and over whether there is any."""
        ...

    def parts(self, weights: Sequence[Fraction]) -> list[Parts]:
        """Return what each feature's change contributes."""
        ...
