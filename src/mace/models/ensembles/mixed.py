"""Several models as one form, where they are not of one kind: means of probabilities, counted votes, means of predictions.

A probability is a share of trees, which is a sum of leaves; or the sigmoid of a score; or (``modified_huber``) a score clipped. Of two
classes one mean decides: the second class is predicted where its mean is above one half. Of more, each class has a mean of shares and
softmaxes, and the greatest wins. How far the library's own sums may be off is
the form's bound, whatever their order, and inside that band the real model is asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mace.errors import UnsupportedModel
from mace.forms import Composite, Curved, Form, Network, Normalised, Polyline, TreeEnsemble, Voting, Weighted, divisor
from mace.models.ensembles.calibrated_classes import is_softmax
from mace.models.ensembles.normalised import softmax_of
from mace.space import FeatureSpace

CLIP = Polyline((-1.0, 1.0), (0.0, 1.0))
"""The probability of a score, less 0, after ``loss="modified_huber"``."""


def mean_of_chances(
    family: str, parts: Sequence[Any], forms: Sequence[Form], weights: Any, space: FeatureSpace, *, classes: int
) -> Composite:
    """Return the weighted mean of the probabilities of models.

    Parameters
    ----------
    family : str
        What the whole is called, for messages.
    parts, forms
        The models, and as what they were read.
    weights : sequence of float
        One a model.
    space : FeatureSpace
        The features.
    classes : int
        How many classes there are.
    """
    share = normalised(family, weights)
    if classes != 2:
        made = [
            shares(family, part, form, float(weight)) for part, form, weight in zip(parts, forms, share, strict=True)
        ]
        return Composite(space, tuple(made), np.zeros(classes), link="chance")
    each = [chance(family, part, form, float(weight)) for part, form, weight in zip(parts, forms, share, strict=True)]
    return Composite(space, tuple(each), np.array([-0.5]), link="chance")


def normalised(family: str, weights: Any) -> Any:
    """Return weights that add up to 1."""
    share = np.asarray(weights, dtype=np.float64)
    if not np.isfinite(share).all() or (share < 0).any() or not share.sum():
        raise UnsupportedModel(f"the weights of {family} must be at least 0 and not all 0. Give such weights.")
    return share / share.sum()


def chance(family: str, part: Any, form: Form, weight: float) -> Weighted | Curved:
    """Return what the probability of the second class, times a weight, adds."""
    if isinstance(form, TreeEnsemble) and form.link == "mean" and form.outputs == 2 and not form.is_regressor:
        return Weighted(form, np.array([[0.0, weight / len(form.roots)]]))
    if isinstance(form, TreeEnsemble) and form.link == "logistic" and form.outputs == 1:
        return Curved(form, None, np.array([weight]))
    if isinstance(form, Network) and form.is_binary and form.link in ("sigmoid", "clip"):
        return Curved(form, CLIP if form.link == "clip" else None, np.array([weight]))
    raise UnsupportedModel(
        f"cannot read {family} of {type(part).__name__}: its probability is neither a share of trees nor one sigmoid of one score. "
        "Explain that model by itself, or leave it out."
    )


def shares(family: str, part: Any, form: Form, weight: float) -> Weighted | Normalised:
    """Return what the probabilities of three or more classes, times a weight, add."""
    if isinstance(form, TreeEnsemble) and form.link == "mean" and not form.is_regressor:
        return Weighted(form, np.eye(form.outputs) * (weight / len(form.roots)))
    if isinstance(form, Network | TreeEnsemble) and is_softmax(part, form):
        classes = form.outputs if isinstance(form, TreeEnsemble) else len(form.biases[-1])
        return softmax_of(form, np.eye(classes) * weight)
    raise UnsupportedModel(
        f"cannot read {family} of {type(part).__name__}: its probabilities are neither shares of trees nor one softmax of its scores. "
        "Explain that model by itself, or leave it out."
    )


def counted_votes(
    family: str, parts: Sequence[Any], forms: Sequence[Form], weights: Any, space: FeatureSpace, *, classes: int
) -> Composite:
    """Return the counted votes of classifiers; parameters as in :func:`mean_of_chances`."""
    made = []
    for part, form, weight in zip(parts, forms, np.asarray(weights, dtype=np.float64), strict=True):
        if not isinstance(form, TreeEnsemble | Network) or form.is_regressor:
            raise UnsupportedModel(
                f"cannot read {family} of {type(part).__name__}: it is itself made of several models. Explain that one by itself."
            )
        added = np.array([[-1.0], [1.0]]) if classes == 2 else np.eye(classes)
        made.append(Voting(form, weight * added))
    return Composite(space, tuple(made), np.zeros(1 if classes == 2 else classes))


def mean_of_numbers(
    family: str, parts: Sequence[Any], forms: Sequence[Form], weights: Any, space: FeatureSpace
) -> Composite:
    """Return the weighted mean of the predictions of regressors; parameters as in :func:`mean_of_chances`."""
    share = np.asarray(weights, dtype=np.float64)
    made = []
    for part, form, weight in zip(parts, forms, share / share.sum(), strict=True):
        if not isinstance(form, TreeEnsemble | Network) or not form.is_regressor:
            raise UnsupportedModel(
                f"cannot read {family} of {type(part).__name__}: it is itself made of several models. Explain that one by itself."
            )
        made.append(Weighted(form, np.array([[weight / divisor(form)]])))
    return Composite(space, tuple(made), np.zeros(1), link="identity", is_regressor=True)
