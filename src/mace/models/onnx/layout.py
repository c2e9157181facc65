"""Operators of ONNX that move numbers and labels around, change their type, or say a constant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mace.errors import UnsupportedModel
from mace.models.networks.outputs import Chances, Labels
from mace.models.networks.rows import Tensor
from mace.models.onnx.call import Call, Unread, Value
from mace.models.package import optional
from mace.space import Scalar
from mace.space.features import plain_scalar

FLOAT_TYPES = (1, 11)
INTEGER_TYPES = (6, 7)
CONSTANT_KINDS: dict[int, Any] = {1: np.float32, 11: np.float64, 6: np.int32, 7: np.int64, 9: np.bool_}

# ---- layout

Layout = Callable[[NDArray[Any]], NDArray[Any]]


def _laid_out(value: Value, layout: Layout) -> Value:
    """Return a value in another layout; labels are one value in any."""
    match value:
        case Tensor():
            return value.arranged(layout(value.positions))
        case Chances():
            return value.arranged(layout(value.logits.positions))
        case np.ndarray():
            return layout(value)
    return value


def identity(call: Call) -> list[Value]:
    """Read ``Identity``."""
    return [call.value(0)]


def dropout(call: Call) -> list[Value]:
    """Read ``Dropout`` outside of training."""
    if call.has(2) and call.constant(2).any():
        raise UnsupportedModel("training_mode is on. Export it in evaluation mode.")
    return [call.value(0), Unread("the mask of a Dropout.")][: max(1, call.outputs)]


def reshape(call: Call) -> list[Value]:
    """Read ``Reshape``."""
    wanted = [int(size) for size in call.constant(1).reshape(-1)]

    def layout(array: NDArray[Any]) -> NDArray[Any]:
        zero = bool(call.whole("allowzero", 0))
        sizes = [array.shape[axis] if size == 0 and not zero else size for axis, size in enumerate(wanted)]
        return array.reshape(sizes)

    return [_laid_out(call.value(0), layout)]


def flatten(call: Call) -> list[Value]:
    """Read ``Flatten``."""

    def layout(array: NDArray[Any]) -> NDArray[Any]:
        axis = call.whole("axis", 1)
        before = array.shape[: axis if axis >= 0 else axis + array.ndim]
        return array.reshape(int(np.prod(before)), -1)

    return [_laid_out(call.value(0), layout)]


def squeeze(call: Call) -> list[Value]:
    """Read ``Squeeze``."""
    axes = call.listed("axes", 1)
    return [_laid_out(call.value(0), lambda array: np.squeeze(array, None if axes is None else tuple(axes)))]


def unsqueeze(call: Call) -> list[Value]:
    """Read ``Unsqueeze``."""
    axes = call.listed("axes", 1) or []
    return [_laid_out(call.value(0), lambda array: np.expand_dims(array, tuple(axes)))]


def transpose(call: Call) -> list[Value]:
    """Read ``Transpose``."""
    order = call.attributes.get("perm")
    return [_laid_out(call.value(0), lambda array: np.transpose(array, None if order is None else list(order)))]


def concat(call: Call) -> list[Value]:
    """Read ``Concat``."""
    values = [call.value(position) for position in range(len(call.inputs))]
    axis = int(call.attributes["axis"])
    if all(isinstance(value, np.ndarray) for value in values):
        return [np.concatenate([call.constant(position) for position in range(len(values))], axis)]
    chances = [value for value in values if isinstance(value, Chances) and value.kind == "sigmoid"]
    if len(chances) == len(values):
        return [Chances(call.lowering.concatenate([value.logits for value in chances], axis), "sigmoid")]
    return [call.lowering.concatenate([call.rows(position) for position in range(len(values))], axis)]


def gather(call: Call) -> list[Value]:
    """Read ``Gather``: columns, or the labels of classes."""
    axis = call.whole("axis", 0)
    if isinstance(call.value(1), Labels):
        return [_looked_up(call)]
    places = call.constant(1)
    return [_laid_out(call.value(0), lambda array: np.take(array, places, axis=axis, mode="raise"))]


def extract(call: Call) -> list[Value]:
    """Read ``ArrayFeatureExtractor``: columns, or the labels of classes."""
    if isinstance(call.value(1), Labels):
        return [_looked_up(call)]
    places = call.constant(1).reshape(-1)
    if (places < 0).any():
        raise UnsupportedModel("a column before the first.")
    return [_laid_out(call.value(0), lambda array: np.take(np.atleast_2d(array), places, axis=-1, mode="raise"))]


def _looked_up(call: Call) -> Labels:
    """Return labels by the position that won."""
    table, labels = call.constant(0).reshape(-1), call.value(1)
    assert isinstance(labels, Labels)
    if any(not isinstance(place, int) or not 0 <= place < len(table) for place in labels.classes):
        raise UnsupportedModel("a class without a label.")
    return Labels(labels.scores, distinct([label(table[int(place)]) for place in labels.classes]), labels.squash)


def label(entry: Any) -> Scalar:
    """Return an entry of a list of labels as a Python scalar."""
    plain = plain_scalar(entry.decode() if isinstance(entry, bytes) else entry)
    if not isinstance(plain, str | int | float):
        raise UnsupportedModel(f"the label {plain!r:.40}.")
    return plain


def distinct(labels: list[Scalar]) -> tuple[Scalar, ...]:
    """Return labels that all differ."""
    if len(set(labels)) < len(labels):
        raise UnsupportedModel("two classes have the same label.")
    return tuple(labels)


def cast(call: Call) -> list[Value]:
    """Read ``Cast`` between numbers of the same meaning."""
    value, to = call.value(0), int(call.attributes["to"])
    if isinstance(value, np.ndarray) and to in CONSTANT_KINDS and value.dtype.kind in "fiub":
        return [value.astype(CONSTANT_KINDS[to])]
    if isinstance(value, Tensor) and to in FLOAT_TYPES:
        return [Tensor(value.shape, value.weights, value.shift, value.size + call.lowering.tiny, value.steps + 1)]
    if isinstance(value, Chances) and to in FLOAT_TYPES:
        return [value]
    if isinstance(value, Labels) and to in INTEGER_TYPES and all(type(label) is int for label in value.classes):
        return [value]
    if isinstance(value, Labels) and to == 8 and all(type(label) is str for label in value.classes):
        return [value]
    raise UnsupportedModel(f"it casts to type {to}, which is not read here. Supported: numbers to float or double.")


def constant(call: Call) -> list[Value]:
    """Read ``Constant``."""
    ((name, value),) = call.attributes.items()
    kinds = {"value_float": np.float32, "value_floats": np.float32, "value_int": np.int64, "value_ints": np.int64}
    if name == "value" and value.data_location != value.EXTERNAL:
        return [optional("onnx").numpy_helper.to_array(value)]
    if name not in kinds:
        raise UnsupportedModel(f"a constant given as {name}.")
    return [np.array(value, dtype=kinds[name])]
