"""What a norm is: one small class each, in its own file.

All work on the vector of normalised changes δ_j in [0, 1] (exact fractions) with weights w_j, and give a number in [0, 1].
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mace.language.syntax import Expression


class Norm(Protocol):
    """A norm of the changes, as a number, as an expression of the core language, and for one feature alone."""

    def value(self, deltas: Sequence[Fraction], weights: Sequence[Fraction]) -> Fraction:
        """Return the norm of ``deltas``, exactly."""
        ...

    def floats(self, deltas: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the norm of many rows of changes at once, in floats."""
        ...

    def expression(self, deltas: Sequence[Expression], weights: Sequence[Fraction]) -> Expression:
        """Return the same as an expression over the changes."""
        ...

    def alone(self, index: int, weights: Sequence[Fraction]) -> tuple[Fraction, Fraction]:
        """Return (jump, slope): a change δ > 0 of this feature alone costs jump + slope·δ; others only add to it."""
        ...
