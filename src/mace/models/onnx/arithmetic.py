"""Operators of ONNX that compute: sums, products with constants, and units."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mace.errors import UnsupportedModel
from mace.models.networks.outputs import Chances
from mace.models.networks.rows import Tensor
from mace.models.onnx.call import Call, Constant, Value, as_floats, axis_of

# ---- arithmetic


def gemm(call: Call) -> list[Value]:
    """Read ``Gemm``: alpha·A·B + beta·C, B and C being constants."""
    matrix, alpha, beta = (
        call.floats(1),
        float(call.attributes.get("alpha", 1.0)),
        float(call.attributes.get("beta", 1.0)),
    )
    if call.whole("transA", 0):
        raise UnsupportedModel("transA=1 would mix the rows of a batch.")
    if call.whole("transB", 0):
        matrix = matrix.T
    bias = np.broadcast_to(call.floats(2) * beta, (1, matrix.shape[1]))[0] if call.has(2) else None
    return [inner(call, call.rows(0), matrix * alpha, bias, steps=2 * (alpha != 1) + 2 * (beta != 1))]


def matmul(call: Call) -> list[Value]:
    """Read ``MatMul`` with a constant."""
    return [inner(call, call.rows(0), call.floats(1))]


def inner(call: Call, rows: Tensor, matrix: Constant, bias: Constant | None = None, *, steps: int = 0) -> Tensor:
    """Return the product of one row with a matrix, or with a vector."""
    wide = matrix[:, None] if matrix.ndim == 1 else matrix
    if wide.ndim != 2 or not rows.shape or rows.shape[-1] != len(rows):
        raise UnsupportedModel(
            f"the product of shapes {rows.shape} and {matrix.shape}; only a row and a matrix are read."
        )
    made = call.lowering.dense(rows, wide, bias, steps=steps)
    shape = rows.shape[:-1] + matrix.shape[1:]
    return made.arranged(made.positions.reshape(shape))


def add(call: Call) -> list[Value]:
    """Read ``Add``."""
    return [_sum_of(call, call.value(0), call.value(1), 1)]


def subtract(call: Call) -> list[Value]:
    """Read ``Sub``; 1 less a sigmoid is the sigmoid of the negated score."""
    first, second = call.value(0), call.value(1)
    if isinstance(second, Chances) and isinstance(first, np.ndarray):
        if second.kind != "sigmoid" or not (first == 1).all():
            raise UnsupportedModel(f"a {second.kind} is subtracted from a number that is not 1.")
        return [Chances(call.lowering.scale(second.logits, -1), "sigmoid")]
    return [_sum_of(call, first, second, -1)]


def _sum_of(call: Call, first: Value, second: Value, sign: int) -> Value:
    lowering = call.lowering
    match first, second:
        case np.ndarray(), np.ndarray():
            return first + second if sign > 0 else first - second
        case Tensor(), np.ndarray():
            return lowering.offset(first, sign * as_floats(second))
        case np.ndarray(), Tensor():
            return lowering.offset(lowering.scale(second, sign), as_floats(first))
        case Tensor(), Tensor():
            return lowering.add(first, second, sign=sign)
    raise UnsupportedModel("it adds to probabilities or labels, which is not read.")


def multiply(call: Call) -> list[Value]:
    """Read ``Mul`` by a constant."""
    first, second = call.value(0), call.value(1)
    if isinstance(first, np.ndarray) and isinstance(second, np.ndarray):
        return [first * second]
    if isinstance(first, np.ndarray):
        return [call.lowering.scale(call.rows(1), as_floats(first))]
    return [call.lowering.scale(call.rows(0), call.floats(1))]


def divide(call: Call) -> list[Value]:
    """Read ``Div`` by a constant."""
    first, second = call.value(0), call.constant(1)
    if isinstance(first, np.ndarray):
        if not np.issubdtype(first.dtype, np.floating):
            raise UnsupportedModel("a division of whole numbers.")
        return [np.divide(first, _nonzero(second))]
    return [call.lowering.divide(call.rows(0), as_floats(second))]


def _nonzero(array: Constant) -> Constant:
    if (array == 0).any():
        raise UnsupportedModel("a division by 0.")
    return array


def negate(call: Call) -> list[Value]:
    """Read ``Neg``."""
    return [call.lowering.scale(call.rows(), -1)]


def add_all(call: Call) -> list[Value]:
    """Read ``Sum``."""
    total = call.value(0)
    for position in range(1, len(call.inputs)):
        total = _sum_of(call, total, call.value(position), 1)
    return [total]


def reduced(call: Call, weight: float | None) -> list[Value]:
    """Read ``ReduceSum`` (with the weight 1) and ``ReduceMean`` (with none)."""
    rows, axes = call.rows(), call.listed("axes", 1)
    if axes is None or (not axes and call.whole("noop_with_empty_axes", 0)):
        if axes is not None or call.whole("noop_with_empty_axes", 0):
            return [rows]
        axes = list(range(len(rows.shape)))
    gone = sorted({axis_of(axis, len(rows.shape)) for axis in axes})
    kept = [axis for axis in range(len(rows.shape)) if axis not in gone]
    groups = rows.positions.transpose([*kept, *gone]).reshape(-1, int(np.prod([rows.shape[axis] for axis in gone])))
    ones = np.full((groups.shape[1], 1), 1 / groups.shape[1] if weight is None else weight)
    parts = [call.lowering.dense(rows.arranged(group[None, :]), ones, steps=3) for group in groups]
    joined = call.lowering.concatenate(parts, 1)
    shape = [1 if axis in gone else size for axis, size in enumerate(rows.shape)]
    if not call.whole("keepdims", 1):
        shape = [rows.shape[axis] for axis in kept]
    return [joined.arranged(joined.positions.reshape(shape))]


def normalise(call: Call) -> list[Value]:
    """Read ``BatchNormalization`` outside of training."""
    rows = call.rows()
    if len(rows.shape) != 2 or call.whole("training_mode", 0):
        raise UnsupportedModel("only (rows, channels) outside of training are read.")
    scale, offset, mean, variance = (call.floats(position) for position in range(1, 5))
    if any(part.shape != (rows.shape[1],) for part in (scale, offset, mean, variance)):
        raise UnsupportedModel("its constants are not one a channel.")
    return [call.lowering.normalise(rows, mean, variance, scale, offset, float(call.attributes.get("epsilon", 1e-5)))]


# ---- units


def bent(call: Call, slope: Callable[[Call], Any]) -> list[Value]:
    """Read ``Relu``, ``LeakyRelu``, ``PRelu`` and ``Abs``: units with a slope below 0."""
    return [call.lowering.bend(call.rows(), slope(call))]


def clip(call: Call) -> list[Value]:
    """Read ``Clip``, whose bounds are attributes or inputs."""
    bounds = []
    for position, (name, none) in enumerate((("min", -np.inf), ("max", np.inf)), start=1):
        given = call.floats(position).reshape(-1) if call.has(position) else [call.attributes.get(name, none)]
        if len(given) != 1:
            raise UnsupportedModel(f"its {name} is not one number.")
        bounds.append(float(given[0]))
    low, high = bounds
    # No number reaches the greatest ones, so a bound there is none.
    most = call.lowering.most
    return [call.lowering.clip(call.rows(), -np.inf if low < -most else low, np.inf if high > most else high)]


def extreme(call: Call, name: str) -> list[Value]:
    """Read ``Max`` and ``Min``, by the name of what the lowering makes of two rows."""
    chosen = call.rows(0)
    for position in range(1, len(call.inputs)):
        chosen = getattr(call.lowering, name)(chosen, call.rows(position))
    return [chosen]
