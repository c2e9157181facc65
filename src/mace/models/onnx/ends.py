"""Operators of ONNX that end a graph, and the classical models: probabilities, labels, linear models, scalers."""

from __future__ import annotations

import numpy as np

from mace.errors import UnsupportedModel
from mace.models.networks.outputs import Chances, Labels
from mace.models.networks.rows import Tensor
from mace.models.onnx.arithmetic import inner
from mace.models.onnx.call import Call, Unread, Value, axis_of
from mace.models.onnx.layout import distinct, label

# ---- ends


def sigmoid(call: Call) -> list[Value]:
    """Read ``Sigmoid``."""
    return [Chances(call.rows(), "sigmoid")]


def softmax(call: Call) -> list[Value]:
    """Read ``Softmax`` over all outputs of a row."""
    rows, old = call.rows(), call.version < 13
    axis = axis_of(call.whole("axis", 1 if old else -1), len(rows.shape))
    over = int(np.prod(rows.shape[axis:])) if old else rows.shape[axis]
    if over != len(rows):
        raise UnsupportedModel("it must be over all outputs of a row.")
    return [Chances(rows, "softmax")]


def argmax(call: Call) -> list[Value]:
    """Read ``ArgMax`` over all outputs of a row."""
    found = call.value(0)
    if not isinstance(found, Tensor | Chances):
        raise UnsupportedModel("the greatest of constants or labels.")
    scores = found if isinstance(found, Tensor) else found.logits
    if scores.shape[axis_of(call.whole("axis", 0), len(scores.shape))] != len(scores):
        raise UnsupportedModel("it must be over all outputs of a row (axis=1).")
    if call.whole("select_last_index", 0):
        raise UnsupportedModel("select_last_index=1: the last of equals is not read.")
    return [Labels(scores, tuple(range(len(scores))), "none" if isinstance(found, Tensor) else found.kind)]


# ---- classical models


def scaler(call: Call) -> list[Value]:
    """Read ``Scaler``: (x - offset) * scale."""
    offset, scale = (np.array(call.attributes.get(name, []), dtype=np.float64) for name in ("offset", "scale"))
    rows = call.rows()
    if not (len(offset) == len(scale) and len(scale) in (1, len(rows))):
        raise UnsupportedModel("its offset and scale are not one a column.")
    return [call.lowering.scale(call.lowering.offset(rows, -offset), scale)]


def linear_regressor(call: Call) -> list[Value]:
    """Read ``LinearRegressor``."""
    targets = call.whole("targets", 1)
    if call.text("post_transform", "NONE") != "NONE":
        raise UnsupportedModel(f"post_transform={call.text('post_transform', 'NONE')}. Supported: NONE.")
    return [_scores(call, targets)]


def linear_classifier(call: Call) -> list[Value]:
    """Read ``LinearClassifier``: labels, and scores or probabilities."""
    names = call.attributes.get("classlabels_strings") or call.attributes.get("classlabels_ints") or []
    classes = distinct([label(name) for name in names])
    targets = len(call.attributes.get("intercepts", ()))
    if len(classes) < 2 or targets not in (len(classes), 1) or (targets == 1 and len(classes) != 2):
        raise UnsupportedModel(f"{targets} intercepts and {len(classes)} labels. Supported: one a class.")
    scores = _scores(call, targets)
    if targets == 1:
        pair = call.lowering.concatenate([call.lowering.scale(scores, -1), scores], 1)
        return [Labels(pair, classes), Unread("the probabilities of one score are not read.")]
    transform = call.text("post_transform", "NONE")
    numbers: dict[str, Value] = {
        "NONE": scores,
        "LOGISTIC": Chances(scores, "sigmoid"),
        "SOFTMAX": Chances(scores, "softmax"),
    }
    return [Labels(scores, classes), numbers.get(transform, Unread(f"post_transform={transform} is not read."))]


def _scores(call: Call, targets: int) -> Tensor:
    rows = call.rows()
    weights = np.array(call.attributes.get("coefficients", []), dtype=np.float64)
    shifts = np.array(call.attributes.get("intercepts", []), dtype=np.float64)
    if targets < 1 or len(weights) != targets * len(rows) or len(shifts) not in (0, targets):
        raise UnsupportedModel(
            f"{len(weights)} coefficients and {len(shifts)} intercepts for {targets} x {len(rows)} numbers."
        )
    return inner(call, rows, weights.reshape(targets, -1).T, shifts if len(shifts) else None)


def normalizer(call: Call) -> list[Value]:
    """Read ``Normalizer`` where it does nothing: on the probabilities of a softmax."""
    value = call.value(0)
    if isinstance(value, Chances) and value.kind == "softmax" and call.text("norm", "MAX") == "L1":
        return [value]
    raise UnsupportedModel(
        "it divides by the norm of the row, which is not piecewise linear. Scale each column by itself."
    )


def zip_map(call: Call) -> list[Value]:
    """Read ``ZipMap``: probabilities by label."""
    value = call.value(0)
    names = call.attributes.get("classlabels_strings") or call.attributes.get("classlabels_int64s") or []
    if not isinstance(value, Chances) or len(names) != len(value.logits):
        return [Unread("its labels do not fit the numbers.")]
    return [Chances(value.logits, value.kind, tuple(label(name) for name in names))]
