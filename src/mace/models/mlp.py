"""Reading scikit-learn's ``MLPClassifier`` with relu or identity units."""

from __future__ import annotations

from typing import Any

import numpy as np

from mace.errors import UnsupportedModel
from mace.exact import UNIT
from mace.forms import Network
from mace.forms.network import SQUASH
from mace.models.estimator import check_columns
from mace.models.linear import check_finite
from mace.space import Column, FeatureSpace


def read_mlp(model: Any, space: FeatureSpace, columns: tuple[Column, ...]) -> Network:
    """Return the form of a network; identity layers are kept apart, so that their rounding is counted."""
    check_columns(model, columns, space, missing=False)
    hidden = len(model.coefs_) - 1
    if hidden and model.activation not in ("relu", "identity"):
        raise UnsupportedModel(
            f"cannot read MLPClassifier(activation={model.activation!r}): {model.activation} is not piecewise linear. "
            "Supported activations: 'relu', 'identity'. Fit it with activation='relu'."
        )
    if model.out_activation_ not in ("logistic", "softmax") or model._label_binarizer.y_type_ not in (
        "binary",
        "multiclass",
    ):
        raise UnsupportedModel("MLPClassifier with several labels a row cannot be explained. Fit one model a label.")
    weights = tuple(np.asarray(layer, dtype=np.float64).T for layer in model.coefs_)
    biases = tuple(np.asarray(layer, dtype=np.float64) for layer in model.intercepts_)
    check_finite(model, *weights, *biases)
    return Network(
        space=space,
        columns=columns,
        weights=weights,
        biases=biases,
        slopes=tuple(np.full(len(layer), 0.0 if model.activation == "relu" else 1.0) for layer in biases[:-1]),
        squash=SQUASH * UNIT,
        link="sigmoid" if len(biases[-1]) == 1 else "none",
    )
