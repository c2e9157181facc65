"""Reading scikit-learn's linear models.

They compute ``X @ coef_.T + intercept_`` in float64, or in float32 where both are (the form's own bound on rounding), and

- classifiers take the second class where a single score is above 0, or the class of the greatest score, the first of
  equals;
- regressors return the score.

The probability of a binary model, where it has one, is the sigmoid of the score; after
``SGDClassifier(loss="modified_huber")`` it is (clip(score, -1, 1) + 1) / 2.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mace.errors import UnsupportedModel
from mace.exact import UNIT
from mace.forms import Network
from mace.models.estimator import check_columns, several_outputs
from mace.models.networks.piecewise import UNIT32, largest_values
from mace.space import Column, FeatureSpace


def read_linear(model: Any, space: FeatureSpace, columns: tuple[Column, ...]) -> Network:
    """Return the form of a linear classifier."""
    check_columns(model, columns, space, missing=False)
    binarizer = getattr(model, "_label_binarizer", None)
    if binarizer is not None and binarizer.y_type_.startswith("multilabel"):
        raise UnsupportedModel(
            f"{type(model).__name__} with several labels a row cannot be explained. Fit one model a label."
        )
    weights, biases = _coefficients(model)
    link = _link(model) if len(biases) == 1 else "none"
    unit = unit_of(model, columns, model.coef_)
    form = Network(space=space, columns=columns, weights=(weights,), biases=(biases,), link=link, unit=unit)
    return checked(form, type(model).__name__)


def read_linear_regressor(model: Any, space: FeatureSpace, columns: tuple[Column, ...]) -> Network:
    """Return the form of a linear regressor."""
    check_columns(model, columns, space, missing=False)
    weights, biases = _coefficients(model)
    if len(biases) != 1:
        raise several_outputs(model)
    form = Network(
        space=space,
        columns=columns,
        weights=(weights,),
        biases=(biases,),
        unit=unit_of(model, columns, model.coef_),
        link="identity",
        is_regressor=True,
    )
    return checked(form, type(model).__name__)


def _coefficients(model: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    coefficients = model.coef_.toarray() if hasattr(model.coef_, "toarray") else model.coef_
    weights = np.atleast_2d(np.asarray(coefficients, dtype=np.float64))
    biases = np.broadcast_to(np.asarray(model.intercept_, dtype=np.float64), (weights.shape[0],))
    return weights, biases


def unit_of(model: Any, columns: tuple[Column, ...], weights: Any) -> Fraction:
    """Return the unit roundoff of products of the columns, as the model is handed them, with its weights."""
    kind = np.result_type(columns[0].handed, weights.dtype)
    if kind == np.float16:
        raise UnsupportedModel(
            f"{type(model).__name__} computes in float16 here, whose rounding is too coarse to be proved anything about. Fit and ask it "
            'with frame.astype("float32") or frame.astype("float64").'
        )
    return UNIT32 if kind == np.float32 else UNIT


def _link(model: Any) -> str:
    if not hasattr(model, "predict_proba"):
        return "none"
    return "clip" if getattr(model, "loss", None) == "modified_huber" else "sigmoid"


def checked(form: Network, family: str) -> Network:
    """Return a form whose numbers stay finite over the whole space; others are refused."""
    largest = largest_values(form.space, form.columns)
    with np.errstate(over="ignore", invalid="ignore"):
        for weights, biases in zip(form.weights, form.biases, strict=True):
            largest = np.abs(weights) @ largest + np.abs(biases)
            most = 1e300 if form.unit == UNIT else 1e37
            if not (largest < most).all():
                raise UnsupportedModel(
                    f"{family} holds a parameter that is not a number, or its scores may go beyond {most:g} on this space. "
                    "Fit it again on scaled data, or narrow the space."
                )
    return form
