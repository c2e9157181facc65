"""The operators of ONNX that are read, one line each.

A value is a constant array, rows over the columns (:class:`~mace.models.networks.piecewise.Tensor`), probabilities, or labels.
The batch is one row. What an operator does, and its roundings, are those of onnxruntime on the CPU: float32 (or
float64) with any order of summation, fused or not. The graph optimiser may fold a batch normalisation or a scaling into
the weights beside it; the counts of :mod:`mace.models.networks.piecewise` hold for that too. ``LinearClassifier`` compares its
scores before it makes them probabilities.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from mace.models.onnx import arithmetic, ends, layout
from mace.models.onnx.call import ML, Call, Value

OPERATORS: dict[str, Callable[[Call], list[Value]]] = {
    "Gemm": arithmetic.gemm,
    "MatMul": arithmetic.matmul,
    "Add": arithmetic.add,
    "Sub": arithmetic.subtract,
    "Mul": arithmetic.multiply,
    "Div": arithmetic.divide,
    "Neg": arithmetic.negate,
    "Sum": arithmetic.add_all,
    "ReduceSum": partial(arithmetic.reduced, weight=1.0),
    "ReduceMean": partial(arithmetic.reduced, weight=None),
    "BatchNormalization": arithmetic.normalise,
    "Relu": partial(arithmetic.bent, slope=lambda call: 0.0),
    "LeakyRelu": partial(arithmetic.bent, slope=lambda call: np.float32(call.attributes.get("alpha", 0.01))),
    "PRelu": partial(arithmetic.bent, slope=lambda call: call.floats(1)),
    "Abs": partial(arithmetic.bent, slope=lambda call: -1.0),
    "Clip": arithmetic.clip,
    "Max": partial(arithmetic.extreme, name="maximum"),
    "Min": partial(arithmetic.extreme, name="minimum"),
    "Sigmoid": ends.sigmoid,
    "Softmax": ends.softmax,
    "ArgMax": ends.argmax,
    "Concat": layout.concat,
    "Reshape": layout.reshape,
    "Flatten": layout.flatten,
    "Squeeze": layout.squeeze,
    "Unsqueeze": layout.unsqueeze,
    "Transpose": layout.transpose,
    "Gather": layout.gather,
    "Identity": layout.identity,
    "Dropout": layout.dropout,
    "Cast": layout.cast,
    "Constant": layout.constant,
    f"{ML}Scaler": ends.scaler,
    f"{ML}LinearClassifier": ends.linear_classifier,
    f"{ML}LinearRegressor": ends.linear_regressor,
    f"{ML}Normalizer": ends.normalizer,
    f"{ML}ArrayFeatureExtractor": layout.extract,
    f"{ML}ZipMap": ends.zip_map,
}

CURVED_OPERATORS = frozenset(
    {
        *("Tanh", "Exp", "Log", "Erf", "Gelu", "Elu", "Selu", "Celu", "Softplus", "Softsign", "Mish", "HardSwish"),
        *("Pow", "Sqrt", "Reciprocal", "Sin", "Cos", "LogSoftmax", "LayerNormalization", "InstanceNormalization"),
        *("SVMClassifier", "SVMRegressor"),
    }
)


def reason_against(operator: str) -> str:
    """Return why an operator is not read, as the end of a sentence."""
    name = operator.rpartition(":")[2]
    if name.startswith("TreeEnsemble"):
        return ": trees in ONNX are not read. Explain the model that it was converted from."
    if name in CURVED_OPERATORS:
        return f": {name} is not piecewise linear. Use Relu inside, and Sigmoid or Softmax last."
    return f". Supported: {', '.join(known.removeprefix(ML) for known in OPERATORS)}."
