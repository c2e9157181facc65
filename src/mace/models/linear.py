"""Reading scikit-learn's linear classifiers: score above 0, or the greatest score."""

from __future__ import annotations

from typing import Any

import numpy as np

from mace.errors import UnsupportedModel
from mace.forms import Network
from mace.models.estimator import check_columns
from mace.space import Column, FeatureSpace


def read_linear(model: Any, space: FeatureSpace, columns: tuple[Column, ...]) -> Network:
    """Return the form of a model that decides by ``X @ coef_.T + intercept_``."""
    check_columns(model, columns, space, missing=False)
    coefficients = model.coef_.toarray() if hasattr(model.coef_, "toarray") else model.coef_
    weights = np.atleast_2d(np.asarray(coefficients, dtype=np.float64))
    biases = np.broadcast_to(np.asarray(model.intercept_, dtype=np.float64), (weights.shape[0],))
    check_finite(model, weights, biases)
    has_probability = len(biases) == 1 and hasattr(model, "predict_proba")
    return Network(
        space=space,
        columns=columns,
        weights=(weights,),
        biases=(biases,),
        link="sigmoid" if has_probability else "none",
    )


def check_finite(model: Any, *arrays: Any) -> None:
    """Refuse a model whose numbers are not finite, or so large that sums of them may not be."""
    if not all((np.abs(array) < 1e150).all() for array in arrays):
        raise UnsupportedModel(
            f"{type(model).__name__} holds a parameter that is not a number or beyond 1e150. Fit it again on scaled data."
        )
