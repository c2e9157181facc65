"""Reading ensembles of classifiers: votes, means of probabilities, one model against the rest.

Trees and forests report shares, and a mean of shares is one ensemble whose leaves are scaled; scaling and the nested means
round, which ``squash`` covers, and inside that band the real model is asked. The votes of single trees are counted exactly, as one
ensemble. Every other mixture is a form of several models (:mod:`mace.models.ensembles.mixed`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from mace.errors import UnsupportedModel
from mace.exact import gamma
from mace.forms import Form, Network, TreeEnsemble
from mace.models.ensembles.mixed import counted_votes, mean_of_chances
from mace.models.ensembles.threshold import CHANCE, SCORE, Threshold, response, thresholded
from mace.models.networks.piecewise import Lowering, largest_values
from mace.models.networks.rows import Tensor
from mace.models.preprocessing.traced import Traced
from mace.models.trees.pack import side_by_side
from mace.space import Column, FeatureSpace

TIE = Fraction(1, 2**60)
"""A band this narrow leaves exact ties, and nothing else, to the real model."""


def read_voting_classifier(model: Any, space: FeatureSpace, columns: tuple[Column, ...]) -> Form:
    """Return the form of a ``VotingClassifier``."""
    from mace.models import form_of

    weights = model._weights_not_none
    share = np.ones(len(model.estimators_)) if weights is None else np.asarray(weights, dtype=np.float64)
    forms = [form_of(part, space, columns) for part in model.estimators_]
    family, outputs = f"VotingClassifier(voting={model.voting!r})", len(model.classes_)
    if model.voting == "hard":
        if all(is_share(form) and len(form.roots) == 1 for form in forms):
            return _counted(forms, share)  # type: ignore[arg-type]
        return counted_votes(family, model.estimators_, forms, share, space, classes=outputs)
    if all(map(is_share, forms)):
        return _mean_of_shares(model, forms, share, [None] * len(forms))  # type: ignore[arg-type]
    return mean_of_chances(family, model.estimators_, forms, share, space, classes=outputs)


def read_bagging_classifier(model: Any, space: FeatureSpace, columns: tuple[Column, ...]) -> Form:
    """Return the form of a ``BaggingClassifier``, whose models may each see some of the columns and classes."""
    from mace.models import form_of

    forms = [
        form_of(part, space, tuple(columns[int(k)] for k in seen))
        for part, seen in zip(model.estimators_, model.estimators_features_, strict=True)
    ]
    classes = [np.asarray(part.classes_).astype(np.int64) for part in model.estimators_]
    in_order = model.n_jobs in (None, 1)
    if all(map(is_share, forms)):
        made = _mean_of_shares(model, forms, np.ones(len(forms)), classes)  # type: ignore[arg-type]
        return replace(made, fixed_order=made.fixed_order and in_order)
    outputs = len(model.classes_)
    if any(len(known) != outputs for known in classes):
        raise UnsupportedModel(
            "cannot read BaggingClassifier: one of its models was fitted on rows without some class. Draw more rows for each (max_samples)."
        )
    has_chances = [hasattr(part, "predict_proba") for part in model.estimators_]
    mixed = mean_of_chances if has_chances[0] else counted_votes
    whole = mixed("BaggingClassifier", model.estimators_, forms, np.ones(len(forms)), space, classes=outputs)
    return replace(whole, fixed_order=in_order)


def read_one_vs_rest(model: Any, space: FeatureSpace, columns: tuple[Column, ...]) -> Form:
    """Return the form of a ``OneVsRestClassifier``: the greatest of its models' scores, or shares."""
    from mace.models import form_of

    if model.label_binarizer_.y_type_.startswith("multilabel"):
        raise UnsupportedModel(
            "OneVsRestClassifier with several labels a row cannot be explained. Fit one model a label."
        )
    family = type(model.estimators_[0]).__name__
    if any(type(part).__name__ == "_ConstantPredictor" for part in model.estimators_):
        raise UnsupportedModel("OneVsRestClassifier was fitted on a class that every row has, or none. Fit it again.")
    kind = response(model.estimators_[0], (SCORE, CHANCE))
    forms = [form_of(part, space, columns) for part in model.estimators_]
    if len(forms) == 1:
        return thresholded(forms[0], family, kind, Threshold(0.0 if kind == SCORE else 0.5, 0.0))
    if all(isinstance(form, Network) and form.is_binary and not form.is_regressor for form in forms) and kind == SCORE:
        return _stacked(forms, space, columns)  # type: ignore[arg-type]
    if kind == SCORE and all(isinstance(form, TreeEnsemble) and form.outputs == 1 for form in forms):
        return _side_by_side(forms, [form.value[:, 0] for form in forms], [float(form.base[0]) for form in forms])  # type: ignore[attr-defined, arg-type]
    if kind == CHANCE and all(is_share(form) and form.outputs == 2 for form in forms):
        sizes = {len(form.roots) for form in forms}  # type: ignore[attr-defined]
        if len(sizes) == 1:
            return _side_by_side(forms, [form.value[:, 1] for form in forms], [0.0] * len(forms))  # type: ignore[attr-defined, arg-type]
    raise UnsupportedModel(
        f"cannot read OneVsRestClassifier of {family}: its models are compared as probabilities, and the greatest of several sigmoids is "
        "not told where more than one is rounded to 1. Use a model with a decision_function, or with several classes of its own."
    )


def is_share(form: Form) -> TypeGuard[TreeEnsemble]:
    """Return whether a model reports shares of trees."""
    return isinstance(form, TreeEnsemble) and form.link == "mean" and not form.is_regressor


def _mean_of_shares(model: Any, trees: Sequence[TreeEnsemble], weights: Any, classes: Sequence[Any]) -> TreeEnsemble:
    """Return the weighted mean of ensembles that report shares."""
    outputs = len(model.classes_)
    parts = []
    for form, weight, known in zip(trees, weights, classes, strict=True):
        value = np.zeros((len(form.left), outputs))
        value[:, np.arange(outputs) if known is None else known] = form.value * (weight / len(form.roots))
        parts.append(value)
    made = join_forms(trees, parts, np.zeros(outputs))
    steps = gamma(2 * max(len(form.roots) for form in trees) + len(trees) + 16)
    band = 2 * steps * Fraction(float(np.sum(np.abs(weights)))) * (1 + Fraction(1, 2**20))
    return replace(made, squash=band, link="none")


def _counted(trees: Sequence[TreeEnsemble], weights: Any) -> TreeEnsemble:
    """Return the counted votes of single trees: each leaf adds its tree's weight to the class that it predicts."""
    parts = []
    for form, weight in zip(trees, weights, strict=True):
        votes = np.zeros_like(form.value)
        votes[np.arange(len(votes)), form.value.argmax(axis=1)] = weight
        parts.append(votes)
    return replace(join_forms(trees, parts, np.zeros(trees[0].outputs)), link="none")


def _side_by_side(forms: Sequence[TreeEnsemble], values: Sequence[NDArray[np.float64]], bases: list[float]) -> Form:
    """Return ensembles of one number each as the outputs of one; the greatest wins."""
    parts = []
    for output, value in enumerate(values):
        part = np.zeros((len(value), len(forms)))
        part[:, output] = value
        parts.append(part)
    made = join_forms(forms, parts, np.array(bases))
    errors = max(form.rounding for form in forms)
    trees = max(len(form.roots) for form in forms)
    division = 8 * made.unit * trees
    return replace(made, squash=2 * errors + division + TIE, link="none")


def join_forms(
    forms: Sequence[TreeEnsemble], values: Sequence[NDArray[np.float64]], base: NDArray[np.float64]
) -> TreeEnsemble:
    """Return several ensembles as one, with these values of their leaves."""
    return TreeEnsemble(
        space=forms[0].space,
        columns=tuple(column for form in forms for column in form.columns),
        **side_by_side(forms, values),
        base=base,
        fixed_order=all(form.fixed_order for form in forms),
        unit=max(form.unit for form in forms),
    )


def _stacked(forms: Sequence[Network], space: FeatureSpace, columns: tuple[Column, ...]) -> Network:
    """Return networks of one score each as one of several; the greatest wins."""
    lowering, inputs, given = shared_inputs(forms, space, columns)
    scores = [lowering.run(tensor, form) for tensor, form in zip(inputs, forms, strict=True)]
    return lowering.network(lowering.concatenate(scores, 1), space, given)


def are_same(first: Sequence[Column], second: Sequence[Column]) -> bool:
    """Return whether these are the very same columns, not only of the same name and feature."""
    return len(first) == len(second) and all(one is other for one, other in zip(first, second, strict=True))


def coarsest(forms: Sequence[Network]) -> Fraction:
    """Return the greatest unit roundoff of some networks."""
    return max(form.unit for form in forms)


def shared_inputs(
    forms: Sequence[Network], space: FeatureSpace, columns: tuple[Column, ...]
) -> tuple[Lowering, list[Tensor], tuple[Column, ...]]:
    """Return a lowering with the inputs of each network: the columns themselves, or what pipelines inside make of them."""
    if all(are_same(form.columns, columns) for form in forms):
        lowering = Lowering(largest_values(space, columns), coarsest(forms))
        return lowering, [lowering.columns()] * len(forms), columns
    from mace.models.preprocessing.ground_networks import Ground

    if not all(isinstance(column, Traced) for form in forms for column in form.columns):
        raise UnsupportedModel("cannot read models of different columns together. Put the encoder before the whole.")
    ground = Ground([column for form in forms for column in form.columns], space, coarsest(forms))  # type: ignore[misc]
    inputs = [
        ground.lowering.concatenate([ground.of(column) for column in form.columns], 1)  # type: ignore[arg-type]
        for form in forms
    ]
    return ground.lowering, inputs, ground.columns
