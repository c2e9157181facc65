"""What an operator is given: constants, rows over the columns, probabilities or labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mace.errors import UnsupportedModel
from mace.models.networks.outputs import Chances, Labels
from mace.models.networks.piecewise import Lowering
from mace.models.networks.rows import Tensor

ML = "ai.onnx.ml:"
"""The prefix of the operators of classical models."""

Constant = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Unread:
    """A value that decides nothing so far; whoever uses it is refused."""

    why: str


Value = Constant | Tensor | Chances | Labels | Unread


@dataclass(frozen=True, slots=True)
class Call:
    """One application of an operator.

    Attributes
    ----------
    lowering : Lowering
        Where rows and units are made.
    inputs : list of values
        ``None`` where an optional input is left out.
    attributes : dict
        The node's attributes.
    version : int
        The version of its operator set.
    outputs : int
        How many outputs the node names.
    """

    lowering: Lowering
    inputs: Sequence[Value | None]
    attributes: dict[str, Any]
    version: int
    outputs: int

    def value(self, position: int) -> Value:
        """Return an input that must be there."""
        found = self.inputs[position] if position < len(self.inputs) else None
        if found is None:
            raise UnsupportedModel(f"its input {position} is missing.")
        if isinstance(found, Unread):
            raise UnsupportedModel(found.why)
        return found

    def rows(self, position: int = 0) -> Tensor:
        """Return an input as rows; constants become rows."""
        found = self.value(position)
        if isinstance(found, Tensor):
            return found
        if isinstance(found, np.ndarray):
            return self.lowering.constant(as_floats(found))
        if isinstance(found, Chances):
            raise UnsupportedModel(
                f"it comes after a {found.kind}, which is not piecewise linear. A Sigmoid or Softmax may only come last; use Relu inside."
            )
        raise UnsupportedModel("it computes with labels.")

    def constant(self, position: int) -> Constant:
        """Return an input that must be a constant."""
        found = self.value(position)
        if not isinstance(found, np.ndarray):
            raise UnsupportedModel(
                "an input that must be a constant is computed. Two computed numbers cannot be multiplied."
            )
        return found

    def floats(self, position: int) -> Constant:
        """Return an input that must be a constant of numbers."""
        return as_floats(self.constant(position))

    def has(self, position: int) -> bool:
        """Return whether an optional input is there."""
        return position < len(self.inputs) and self.inputs[position] is not None

    def whole(self, name: str, default: int) -> int:
        """Return an attribute that is a whole number."""
        return int(self.attributes.get(name, default))

    def text(self, name: str, default: str) -> str:
        """Return an attribute that is text."""
        found = self.attributes.get(name, default)
        return found.decode() if isinstance(found, bytes) else str(found)

    def listed(self, name: str, position: int) -> list[int] | None:
        """Return whole numbers that are an attribute in old versions and an input in new ones."""
        if name in self.attributes:
            return [int(number) for number in self.attributes[name]]
        return [int(number) for number in self.constant(position).reshape(-1)] if self.has(position) else None


def as_floats(array: Constant) -> Constant:
    """Return a constant of numbers in float64, which holds them exactly (whole ones up to 2^53)."""
    if array.dtype not in (np.float32, np.float64, np.int32, np.int64):
        raise UnsupportedModel(f"a constant has the type {array.dtype}. Supported: float, double, int32, int64.")
    numbers = array.astype(np.float64)
    if array.dtype.kind == "i" and (np.abs(numbers) >= 2**53).any():
        raise UnsupportedModel("a constant is a whole number beyond 2^53.")
    return numbers


def axis_of(axis: int, rank: int) -> int:
    """Return an axis counted from the front."""
    if not -rank <= axis < rank:
        raise UnsupportedModel(f"axis {axis} of a tensor with {rank}.")
    return axis % rank
