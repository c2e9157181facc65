"""Reading scikit-learn's ``VotingRegressor`` and ``BaggingRegressor`` of linear models and networks: the mean of their
predictions.

Each model's prediction is carried as it is computed, in float64, and the mean is one more layer: n numbers added in any
order (bagging splits them among its jobs), weighted and divided, which the inner product's n + 1 roundings and the n +
4 here cover.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mace.errors import UnsupportedModel
from mace.exact import UNIT
from mace.forms import Network
from mace.models.estimator import check_columns
from mace.models.piecewise import Lowering, largest_values
from mace.models.votes import are_same, shared_inputs
from mace.space import Column, FeatureSpace


def read_voting(model: Any, space: FeatureSpace, columns: tuple[Column, ...]) -> Network:
    """Return the form of a ``VotingRegressor``."""
    weights = model._weights_not_none
    every = [np.arange(len(columns))] * len(model.estimators_)
    return _mean(model, model.estimators_, every, np.ones(len(every)) if weights is None else weights, space, columns)


def read_bagging(model: Any, space: FeatureSpace, columns: tuple[Column, ...]) -> Network:
    """Return the form of a ``BaggingRegressor``, whose models may each see some of the columns."""
    count = len(model.estimators_)
    return _mean(model, model.estimators_, model.estimators_features_, np.ones(count), space, columns)


def _mean(
    model: Any,
    parts: Sequence[Any],
    chosen: Sequence[Any],
    weights: Any,
    space: FeatureSpace,
    columns: tuple[Column, ...],
) -> Network:
    from mace.models import form_of

    check_columns(model, columns, space, missing=False)
    forms: list[Network] = []
    for part, seen in zip(parts, chosen, strict=True):
        form = form_of(part, space, tuple(columns[column] for column in seen))
        if not isinstance(form, Network) or not form.is_regressor:
            raise UnsupportedModel(
                f"cannot read {type(model).__name__} of {type(part).__name__}: only linear models and networks can be averaged "
                "exactly here. Explain them one by one, or a forest of trees."
            )
        forms.append(form)
    given = columns
    if all(are_same(form.columns, [columns[k] for k in seen]) for form, seen in zip(forms, chosen, strict=True)):
        lowering = Lowering(largest_values(space, columns), UNIT)
        inputs = [lowering.columns().arranged(np.asarray(seen)[None, :]) for seen in chosen]
    else:
        lowering, inputs, given = shared_inputs(forms, space, columns)
    outputs = [lowering.run(tensor, form) for tensor, form in zip(inputs, forms, strict=True)]
    share = np.asarray(weights, dtype=np.float64)
    if not share.sum():
        raise UnsupportedModel(f"the weights of {type(model).__name__} add up to 0. Give weights that do not.")
    mean = lowering.dense(lowering.concatenate(outputs, 1), (share / share.sum())[:, None], steps=len(outputs) + 4)
    return lowering.network(mean, space, given, link="identity", is_regressor=True)
