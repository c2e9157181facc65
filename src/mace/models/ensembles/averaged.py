"""Reading scikit-learn's ``VotingRegressor`` and ``BaggingRegressor``: the mean of their models' predictions.

Of trees it is one ensemble whose leaves are scaled; what the scaling and the nested sums round is part of ``squash``. Of linear models
and networks each prediction is carried as it is computed, in float64, and the mean is one more layer: n numbers added in any
order (bagging splits them among its jobs), weighted and divided, which the inner product's n + 1 roundings and the n +
4 here cover. Of both it is a form of several models (:mod:`mace.models.ensembles.mixed`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from mace.errors import UnsupportedModel
from mace.exact import added, gamma
from mace.forms import Form, Network, TreeEnsemble, divisor
from mace.models.ensembles.mixed import mean_of_numbers
from mace.models.ensembles.votes import are_same, coarsest, join_forms, shared_inputs
from mace.models.estimator import check_width
from mace.models.networks.piecewise import Lowering, largest_values
from mace.space import Column, FeatureSpace


def read_voting(model: Any, space: FeatureSpace, columns: tuple[Column, ...]) -> Form:
    """Return the form of a ``VotingRegressor``."""
    weights = model._weights_not_none
    every = [np.arange(len(columns))] * len(model.estimators_)
    return _mean(model, model.estimators_, every, np.ones(len(every)) if weights is None else weights, space, columns)


def read_bagging(model: Any, space: FeatureSpace, columns: tuple[Column, ...]) -> Form:
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
) -> Form:
    from mace.models import form_of

    check_width(type(model).__name__, int(model.n_features_in_), columns)
    forms = [form_of(part, space, tuple(columns[k] for k in seen)) for part, seen in zip(parts, chosen, strict=True)]
    if not np.sum(weights):
        raise UnsupportedModel(f"the weights of {type(model).__name__} add up to 0. Give weights that do not.")
    if all(isinstance(form, TreeEnsemble) and form.is_regressor for form in forms):
        return _of_trees(forms, weights, fixed_order=getattr(model, "n_jobs", None) in (None, 1))  # type: ignore[arg-type]
    if all(isinstance(form, Network) and form.is_regressor for form in forms):
        return _of_networks(forms, chosen, weights, space, columns)  # type: ignore[arg-type]
    made = mean_of_numbers(type(model).__name__, parts, forms, weights, space)
    return replace(made, fixed_order=getattr(model, "n_jobs", None) in (None, 1))


def _of_trees(forms: Sequence[TreeEnsemble], weights: Any, *, fixed_order: bool) -> TreeEnsemble:
    """Return the mean as one ensemble."""
    share = np.asarray(weights, dtype=np.float64) / np.sum(weights)
    scales = [w / divisor(form) for form, w in zip(forms, share, strict=True)]
    base = np.sum([form.base * scale for form, scale in zip(forms, scales, strict=True)], axis=0)
    made = join_forms(forms, [form.value * scale for form, scale in zip(forms, scales, strict=True)], base)
    steps = gamma(2 * max(len(form.roots) for form in forms) + len(forms) + 16, made.unit)
    size = added(float(form.magnitude.max()) * abs(scale) for form, scale in zip(forms, scales, strict=True))
    band = 2 * steps * Fraction(size) * (1 + Fraction(1, 2**20))
    in_order = made.fixed_order and fixed_order
    return replace(made, squash=band, link="identity", is_regressor=True, fixed_order=in_order)


def _of_networks(
    forms: Sequence[Network], chosen: Sequence[Any], weights: Any, space: FeatureSpace, columns: tuple[Column, ...]
) -> Network:
    """Return the mean as one more layer."""
    given = columns
    if all(are_same(form.columns, [columns[k] for k in seen]) for form, seen in zip(forms, chosen, strict=True)):
        lowering = Lowering(largest_values(space, columns), coarsest(forms))
        inputs = [lowering.columns().arranged(np.asarray(seen)[None, :]) for seen in chosen]
    else:
        lowering, inputs, given = shared_inputs(forms, space, columns)
    outputs = [lowering.run(tensor, form) for tensor, form in zip(inputs, forms, strict=True)]
    share = np.asarray(weights, dtype=np.float64)
    mean = lowering.dense(lowering.concatenate(outputs, 1), (share / share.sum())[:, None], steps=len(outputs) + 4)
    return lowering.network(mean, space, given, link="identity", is_regressor=True)
