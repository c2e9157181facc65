"""Reading scikit-learn's ``MLPClassifier`` and ``MLPRegressor`` with relu or identity units.

A layer is an inner product and a bias in float64, or in float32 where data and weights are (the form's own bound on
rounding), a relu rounds nothing. A
classifier decides after a sigmoid (above one half) or a softmax (the greatest, the first of equals), which may confuse
scores a few units of roundoff apart.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mace.errors import UnsupportedModel
from mace.forms import Network
from mace.forms.network import SQUASH_UNITS
from mace.models.estimator import check_columns, several_outputs
from mace.models.networks.linear import checked, unit_of
from mace.space import Column, FeatureSpace


def read_mlp(model: Any, space: FeatureSpace, columns: tuple[Column, ...]) -> Network:
    """Return the form of an ``MLPClassifier``."""
    if model.out_activation_ not in ("logistic", "softmax") or model._label_binarizer.y_type_ not in (
        "binary",
        "multiclass",
    ):
        raise UnsupportedModel("MLPClassifier with several labels a row cannot be explained. Fit one model a label.")
    is_binary = len(model.intercepts_[-1]) == 1
    squash = SQUASH_UNITS * unit_of(model, columns, model.coefs_[0])
    return _form(model, space, columns, squash=squash, link="sigmoid" if is_binary else "none")


def read_mlp_regressor(model: Any, space: FeatureSpace, columns: tuple[Column, ...]) -> Network:
    """Return the form of an ``MLPRegressor``."""
    if model.out_activation_ != "identity":
        raise UnsupportedModel(
            f"cannot read MLPRegressor(loss={model.loss!r}): its prediction goes through {model.out_activation_}, which is not "
            "piecewise linear. Fit it with loss='squared_error'."
        )
    if len(model.intercepts_[-1]) != 1:
        raise several_outputs(model)
    return _form(model, space, columns, link="identity", is_regressor=True)


def _form(model: Any, space: FeatureSpace, columns: tuple[Column, ...], **settings: Any) -> Network:
    """Return the layers; identity layers are kept apart, so that their rounding is counted."""
    check_columns(model, columns, space, missing=False)
    if len(model.coefs_) > 1 and model.activation not in ("relu", "identity"):
        raise UnsupportedModel(
            f"cannot read {type(model).__name__}(activation={model.activation!r}): {model.activation} is not piecewise linear. "
            "Supported activations: 'relu', 'identity'. Fit it with activation='relu'."
        )
    weights = tuple(np.asarray(layer, dtype=np.float64).T for layer in model.coefs_)
    biases = tuple(np.asarray(layer, dtype=np.float64) for layer in model.intercepts_)
    slope = 0.0 if model.activation == "relu" else 1.0
    slopes = tuple(np.full(len(layer), slope) for layer in biases[:-1])
    settings["unit"] = unit_of(model, columns, model.coefs_[0])
    form = Network(space=space, columns=columns, weights=weights, biases=biases, slopes=slopes, **settings)
    return checked(form, type(model).__name__)
