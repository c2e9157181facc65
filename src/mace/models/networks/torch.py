"""Reading PyTorch's ``nn.Sequential`` of piecewise-linear layers, as it computes on the CPU in evaluation mode.

Its input is one row of numbers a person: the space's features in the space's order, or the columns of the encoder given
to :func:`mace.wrap`, rounded to the dtype of the parameters. What its output means is said in
:mod:`mace.models.networks.outputs`.

Rounding is that of float32 or float64, whichever the parameters have: a ``Linear`` layer of n inputs is an inner
product and a bias in any order of summation, fused or not; the rest is counted operation by operation in
:mod:`mace.models.networks.piecewise`. Arithmetic with less (half precision, bf16 in matrix products, autocast) is refused when
the model is read and whenever it is asked.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mace.errors import UnsupportedModel
from mace.exact import UNIT
from mace.forms import Network
from mace.models.deployed import Deployed
from mace.models.estimator import check_no_missing, check_width
from mace.models.networks.outputs import Chances, Outcome, both_chances, codes_of, of_numbers
from mace.models.networks.piecewise import UNIT32, Lowering, largest_values
from mace.models.networks.rows import Tensor
from mace.space import Column, FeatureSpace

NOT_LINEAR = ("Tanh", "Sigmoid", "GELU", "ELU", "SELU", "CELU", "SiLU", "Softplus", "Mish", "Softsign", "Hardswish")


def deployed(model: Any) -> Deployed:
    """Return how a module is asked: rows in the dtype of its parameters, without gradients."""
    kind = _kind(model)
    outcome = _lower(model, np.zeros(_width(model)), kind)[1]
    is_chance = outcome.link == "sigmoid"

    def numbers(rows: Any) -> NDArray[Any]:
        _check_state(model)
        torch = sys.modules["torch"]
        with torch.inference_mode():
            answer = model(torch.from_numpy(np.ascontiguousarray(rows, dtype=kind)))
        flat: NDArray[Any] = answer.numpy().reshape(len(rows), -1)
        return flat

    if outcome.classes is None:
        return Deployed(numbers, None, None, None, is_probed=True)
    return Deployed(
        predict=lambda rows: codes_of(numbers(rows), is_chance=is_chance),
        probabilities=(lambda rows: both_chances(numbers(rows))) if outcome.is_squashed else None,
        classes=outcome.classes,
        names=None,
        is_probed=True,
    )


def read_sequential(model: Any, space: FeatureSpace, columns: tuple[Column, ...]) -> Network:
    """Return the form of an ``nn.Sequential``."""
    check_width("Sequential", _width(model), columns)
    check_no_missing("Sequential", space)
    lowering, outcome = _lower(model, largest_values(space, columns), _kind(model))
    return outcome.form(lowering, space, columns)


def _lower(model: Any, largest: NDArray[np.float64], kind: Any) -> tuple[Lowering, Outcome]:
    _check_state(model)
    lowering = Lowering(largest, _unit(kind))
    value: Tensor | Chances = lowering.columns()
    for name, module in _layers(model, ""):
        if isinstance(value, Chances) and type(module).__name__ not in PASSIVE:
            raise UnsupportedModel(
                f"cannot read layer {name} of the network, {type(module).__name__}, after a {value.kind}: that is not piecewise linear. "
                "A Sigmoid or Softmax may only come last; use ReLU inside."
            )
        value = _reader(name, module)(lowering, value, module)
    return lowering, of_numbers(lowering, value)


def _layers(module: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Yield the layers in the order in which they are applied, with their names."""
    stack = [(name, module)]
    while stack:
        name, module = stack.pop()
        if _is(module, "Sequential"):
            # Not named_children, which leaves out a layer that comes a second time.
            inner = [(f"{name}.{key}" if name else key, part) for key, part in module._modules.items()]
            stack.extend(reversed(inner))
        else:
            yield name or "0", module


def _is(module: Any, kind: str) -> bool:
    return type(module).__name__ == kind and type(module).__module__.startswith("torch.nn.")


# ---- layers

Reader = Callable[[Lowering, Any, Any], Any]


def _reader(name: str, module: Any) -> Reader:
    kind = type(module).__name__
    if kind in READERS and _is(module, kind):
        return READERS[kind]
    why = f": {kind} is not piecewise linear" if kind in NOT_LINEAR else ""
    raise UnsupportedModel(
        f"cannot read layer {name} of the network, {type(module).__module__}.{kind}{why}. Supported: Sequential, {', '.join(READERS)} "
        "(Sigmoid and Softmax last). Use ReLU inside, or export the network with torch.onnx.export."
    )


def _linear(lowering: Lowering, value: Tensor, module: Any) -> Tensor:
    bias = None if module.bias is None else _array(module.bias)
    return lowering.dense(value, _array(module.weight).T, bias)


def _normalise(lowering: Lowering, value: Tensor, module: Any) -> Tensor:
    if module.running_mean is None or module.running_var is None:
        raise UnsupportedModel(
            "cannot read BatchNorm1d(track_running_stats=False): it depends on the other rows of a batch, in evaluation too. "
            "Train it with running statistics."
        )
    scale = 1.0 if module.weight is None else _array(module.weight)
    offset = 0.0 if module.bias is None else _array(module.bias)
    mean, variance = _array(module.running_mean), _array(module.running_var)
    return lowering.normalise(value, mean, variance, scale, offset, float(module.eps))


def _rectify(lowering: Lowering, value: Tensor, module: Any) -> Tensor:
    return lowering.bend(value)


def _leaky(lowering: Lowering, value: Tensor, module: Any) -> Tensor:
    return lowering.bend(value, _rounded(lowering, module.negative_slope))


def _parametric(lowering: Lowering, value: Tensor, module: Any) -> Tensor:
    return lowering.bend(value, _array(module.weight))


def _clip(lowering: Lowering, value: Tensor, module: Any) -> Tensor:
    return lowering.clip(value, _rounded(lowering, module.min_val), _rounded(lowering, module.max_val))


def _flatten(lowering: Lowering, value: Any, module: Any) -> Any:
    if module.start_dim not in (1, -1):
        raise UnsupportedModel(
            f"cannot read Flatten(start_dim={module.start_dim}): it would mix the rows of a batch. Use start_dim=1."
        )
    return value


def _same(lowering: Lowering, value: Any, module: Any) -> Any:
    return value


def _sigmoid(lowering: Lowering, value: Tensor, module: Any) -> Chances:
    return Chances(value, "sigmoid")


def _softmax(lowering: Lowering, value: Tensor, module: Any) -> Chances:
    if module.dim not in (1, -1):
        raise UnsupportedModel(f"cannot read Softmax(dim={module.dim}): it must be over the outputs. Use dim=1.")
    return Chances(value, "softmax")


READERS: dict[str, Reader] = {
    "Linear": _linear,
    "ReLU": _rectify,
    "LeakyReLU": _leaky,
    "PReLU": _parametric,
    "ReLU6": _clip,
    "Hardtanh": _clip,
    "BatchNorm1d": _normalise,
    "Flatten": _flatten,
    "Identity": _same,
    "Dropout": _same,
    "AlphaDropout": _same,
    "Sigmoid": _sigmoid,
    "Softmax": _softmax,
}
"""Layers by the name of their class, of PyTorch's own classes only."""

PASSIVE = ("Flatten", "Identity", "Dropout")


# ---- state and numbers


def _check_state(model: Any) -> None:
    """Refuse a module in training mode, off the CPU, with hooks, or under arithmetic that rounds more than its
    dtype."""
    torch = sys.modules["torch"]
    for name, module in model.named_modules():
        if module.training:
            raise UnsupportedModel(
                f"the network is in training mode ({name or 'the whole'}): Dropout and BatchNorm1d would act at random or on the batch. "
                "Call model.eval() first."
            )
        if module._forward_hooks or module._forward_pre_hooks:
            raise UnsupportedModel(
                f"layer {name or type(module).__name__} has a forward hook, which may change its output. Remove it, and explain that."
            )
    if torch.is_autocast_enabled("cpu") or not _is_precise(torch):
        raise UnsupportedModel(
            "PyTorch is set to round matrix products more than float32 does (autocast, or float32_matmul_precision). "
            "Call torch.set_float32_matmul_precision('highest'), and leave autocast."
        )


def _is_precise(torch: Any) -> bool:
    matmul = getattr(torch.backends.mkldnn, "matmul", None)
    settings = {getattr(holder, "fp32_precision", "none") for holder in (torch.backends.mkldnn, matmul)}
    return torch.get_float32_matmul_precision() == "highest" and settings <= {"none", "ieee"}


def _kind(model: Any) -> Any:
    """Return the dtype in which the module computes."""
    torch = sys.modules["torch"]
    tensors = [*model.parameters(), *(buffer for buffer in model.buffers() if buffer.is_floating_point())]
    if any(tensor.device.type != "cpu" for tensor in tensors):
        raise UnsupportedModel("the network is not on the CPU, where its rounding is known. Call model.cpu() first.")
    found = {tensor.dtype for tensor in tensors}
    for dtype, kind in ((torch.float32, np.float32), (torch.float64, np.float64)):
        if found == {dtype}:
            return kind
    listed = ", ".join(sorted(map(str, found))) or "none"
    raise UnsupportedModel(
        f"the parameters of the network have the dtypes {listed}. Supported: all float32, or all float64. Call model.float()."
    )


def _unit(kind: Any) -> Fraction:
    return UNIT32 if kind is np.float32 else UNIT


def _width(model: Any) -> int:
    """Return the number of columns that a module takes, which its first layer with weights knows."""
    for _, module in _layers(model, ""):
        for attribute in ("in_features", "num_features"):
            if hasattr(module, attribute):
                return int(getattr(module, attribute))
    raise UnsupportedModel("the network has no Linear layer, so it does not say how many columns it takes.")


def _array(parameter: Any) -> NDArray[np.float64]:
    array: NDArray[np.float64] = parameter.detach().numpy().astype(np.float64)
    return array


def _rounded(lowering: Lowering, number: float) -> float:
    """Return a setting of a layer as the library uses it, in the dtype of the numbers."""
    return float(number) if lowering.unit == UNIT else float(np.float32(number))
