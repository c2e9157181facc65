"""Reading scikit-learn's linear classifiers: score above 0, or the greatest score."""

from __future__ import annotations

from typing import Any

import numpy as np

from mace.forms import Network
from mace.models.estimator import check_columns
from mace.space import Column, FeatureSpace


def read_linear(model: Any, space: FeatureSpace, columns: tuple[Column, ...]) -> Network:
    """Return the form of a model that decides by ``X @ coef_.T + intercept_``."""
    check_columns(model, columns, space, missing=False)
    weights = np.atleast_2d(np.asarray(model.coef_, dtype=np.float64))
    biases = np.broadcast_to(np.asarray(model.intercept_, dtype=np.float64), (weights.shape[0],))
    return Network(space=space, columns=columns, weights=(weights,), biases=(biases,))
