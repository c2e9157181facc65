"""Numbers of a graph as rows: weights over sources, a shift, a size and a count of roundings.

Their contract, and the rules that keep it, stand in :mod:`mace.models.networks.piecewise`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mace.errors import UnsupportedModel

MOST_WEIGHTS = 20_000_000
"""More weights than this are not a model that can be explained, but a mistake or an attack."""

LEAST_PRODUCT = 1e-290
"""A product of weights below this is not told from one that underflowed."""

Floats = NDArray[np.float64]


def check_size(numbers: int) -> None:
    """Refuse a model that would need more weights than can be held."""
    if numbers > MOST_WEIGHTS:
        raise UnsupportedModel(f"the model needs more than {MOST_WEIGHTS:,} weights; it is too large to explain.")


@dataclass(frozen=True, slots=True, eq=False)
class Tensor:
    """Numbers of a graph, each a row over the sources.

    Attributes
    ----------
    shape : tuple of int
        The tensor's shape for one input row; its numbers are flat, in C order.
    weights : float array, numbers x sources
        Over the sources that were known when it was made.
    shift, size : float arrays
        c and s of the contract.
    steps : int array
        k of the contract.
    """

    shape: tuple[int, ...]
    weights: Floats
    shift: Floats
    size: Floats
    steps: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.shift)

    def arranged(self, order: NDArray[Any]) -> Tensor:
        """Return the numbers at the given flat positions, in that array's shape."""
        check_size(order.size * self.weights.shape[1])
        flat = order.reshape(-1).astype(np.intp)
        return Tensor(order.shape, self.weights[flat], self.shift[flat], self.size[flat], self.steps[flat])

    @property
    def positions(self) -> NDArray[np.intp]:
        """Return the flat position of each number, in the tensor's shape: what layout operations move around."""
        return np.arange(len(self)).reshape(self.shape)

    @property
    def parts(self) -> tuple[Floats, Floats, Floats, NDArray[np.int64]]:
        """The weights, shift, size and steps."""
        return self.weights, self.shift, self.size, self.steps


def products(weights: Floats, factors: Floats) -> Floats:
    """Return products of weights with constants; what underflows is refused."""
    found: Floats = weights * factors
    _refuse_lost((weights != 0) & (factors != 0), found)
    return found


def folded(matrix: Floats, weights: Floats) -> Floats:
    """Return the product of two matrices each of whose entries is a single product."""
    found: Floats = matrix @ weights
    if not np.isin(weights, (0.0, 1.0)).all():
        _refuse_lost((matrix != 0).astype(float) @ (weights != 0), found)
    return found


def _refuse_lost(expected: NDArray[Any], products: Floats) -> None:
    """Refuse products that underflow in float64: the row would lose what the library may still compute."""
    if ((expected != 0) & (np.abs(products) < LEAST_PRODUCT)).any():
        raise UnsupportedModel(f"the model multiplies with a number below {LEAST_PRODUCT}. Round such weights to 0.")


def wide(weights: Floats, width: int) -> Floats:
    """Return weights over so many sources."""
    return np.pad(weights, ((0, 0), (0, width - weights.shape[1]))) if weights.shape[1] < width else weights


def broadcast(tensor: Tensor, values: Any) -> tuple[Tensor, Floats]:
    """Return a tensor and constants in their common shape, the constants flat."""
    array = np.asarray(values, dtype=np.float64)
    try:
        shape = np.broadcast_shapes(tensor.shape, array.shape)
    except ValueError:
        raise UnsupportedModel(f"the model combines shapes {tensor.shape} and {array.shape}.") from None
    check_size(math.prod(shape) * tensor.weights.shape[1])
    if shape != tensor.shape:
        tensor = tensor.arranged(np.broadcast_to(tensor.positions, shape))
    return tensor, np.broadcast_to(array, shape).reshape(-1)
