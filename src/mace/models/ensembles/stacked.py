"""Reading scikit-learn's ``StackingClassifier`` and ``StackingRegressor``: a final model over what other models report.

A linear final model adds what the others report, each number times a weight: shares of trees, sigmoids, softmaxes, scores, predictions,
votes, and with ``passthrough`` the columns themselves. That is a form of several models (:mod:`mace.models.ensembles.mixed`).

A tree or forest as final model splits what the others report. A split of a probability that is one sigmoid is one of the score, at its
logit; how far rounding may move that counts as rounding of the score. Scores of linear models and networks are mixtures of features;
shares and sums of trees, and votes, are outputs of a form of several models. Together they are trees over such columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from mace.errors import UnsupportedModel
from mace.exact import Floats, product
from mace.forms import Composite, Curved, Form, Network, ObliqueTrees, Part, TreeEnsemble, Voting, Weighted, divisor
from mace.models.ensembles.calibrated_classes import SCORED, is_softmax
from mace.models.ensembles.mixed import chance
from mace.models.ensembles.normalised import softmax_of
from mace.models.ensembles.threshold import CHANCE, SCORE, Threshold, as_score
from mace.models.ensembles.votes import shared_inputs
from mace.models.estimator import check_no_missing, check_width
from mace.models.networks.rows import Tensor
from mace.models.preprocessing.traced import Traced
from mace.space import Column, FeatureSpace, real

BEYOND_MODELS = 1e30
"""More than any model reports."""

SQUASHED = ("sigmoid", "clip", "logistic")
"""How a score becomes a probability that a final tree may compare as a score."""

AS_SCORE = "score"
"""What is asked of a model whose probabilities are compared as scores."""


@dataclass(frozen=True, slots=True)
class Base:
    """One of the models below the final one: the model, as what it was read, what is asked of it, and how many columns that gives."""

    model: Any
    form: Form
    method: str
    width: int


@dataclass(frozen=True, slots=True)
class BaseScores:
    """A network below final trees: the place of its first column, its form, and how far a score may be off beside its rounding."""

    begin: int
    form: Network
    slack: float


def read_stacking(model: Any, space: FeatureSpace, columns: tuple[Column, ...]) -> Form:
    """Return the form of a ``StackingClassifier`` or ``StackingRegressor``."""
    from mace.models import form_of

    family = type(model).__name__
    check_width(family, int(model.n_features_in_), columns)
    if model.passthrough:
        check_no_missing(f"the final_estimator of {family}, with passthrough,", space)
    bases = [
        Base(part, form_of(part, space, columns), method, _width(part, method))
        for part, method in zip(model.estimators_, model.stack_method_, strict=True)
    ]
    head = _head(model, sum(base.width for base in bases) + (len(columns) if model.passthrough else 0))
    if isinstance(head, TreeEnsemble):
        return _under_trees(family, head, bases, model.passthrough, space, columns)
    return _added(family, head, bases, model.passthrough, space, columns)


def _width(part: Any, method: str) -> int:
    """Return how many columns a model gives: of two classes one, of more as many, of a prediction one."""
    classes = len(getattr(part, "classes_", ()))
    return 1 if method == "predict" or classes <= 2 else classes


def _head(model: Any, width: int) -> Network | TreeEnsemble:
    """Return the final model over columns of its own."""
    from mace.models import form_of

    family, final = type(model).__name__, model.final_estimator_
    own = FeatureSpace({f"column {k}": real(-BEYOND_MODELS, BEYOND_MODELS) for k in range(width)})
    try:
        form = form_of(final, own, tuple(Column(name, k, None) for k, name in enumerate(own)))
    except UnsupportedModel as error:
        raise UnsupportedModel(f"cannot read the final_estimator of {family}. {error}") from error
    is_linear = isinstance(form, Network) and len(form.weights) == 1 and not form.squash and not form.ties_last
    if is_linear or isinstance(form, TreeEnsemble):
        return form  # type: ignore[return-value]
    raise UnsupportedModel(
        f"cannot read {family}(final_estimator={type(final).__name__}(...)). Supported: linear models, trees and forests. Fit it with one."
    )


# ---- a linear final model


def _added(
    family: str,
    head: Network,
    bases: Sequence[Base],
    passthrough: bool,
    space: FeatureSpace,
    columns: tuple[Column, ...],
) -> Composite:
    weights, parts, at = head.weights[0], list[Part](), 0
    for base in bases:
        parts.append(_part(family, base, weights[:, at : at + base.width]))
        at += base.width
    if passthrough:
        own = np.ascontiguousarray(weights[:, at:])
        form = Network(space, columns, (own,), (np.zeros(len(own)),), unit=head.unit)
        parts.append(Weighted(form, np.eye(len(own))))
    return Composite(
        space,
        tuple(parts),
        head.biases[0].astype(np.float64),
        link="identity" if head.is_regressor else "none",
        is_regressor=head.is_regressor,
        further_steps=weights.shape[1],
    )


def _part(family: str, base: Base, weights: Floats) -> Part:
    """Return what one model adds to each output."""
    form = base.form
    if not isinstance(form, TreeEnsemble | Network):
        raise UnsupportedModel(
            f"cannot read {family} of {type(base.model).__name__}: it is itself made of several models. Stack its models themselves."
        )
    if base.method == "predict" and not form.is_regressor:
        return Voting(form, np.outer(_codes(family, base), weights[:, 0]))
    if base.method == "predict":
        return Weighted(form, weights / divisor(form))
    if base.method == SCORE and _has_score(base):
        return Weighted(form, weights)
    if base.method == CHANCE and base.width > 1 and isinstance(form, TreeEnsemble) and form.link == "mean":
        return Weighted(form, weights / len(form.roots))
    if base.method == CHANCE and base.width > 1 and is_softmax(base.model, form):
        return softmax_of(form, weights)
    if base.method == CHANCE and base.width == 1:
        part = chance(family, base.model, form, 1.0)
        return (
            replace(part, factors=weights[:, 0])
            if isinstance(part, Curved)
            else Weighted(form, product(weights, part.factors))
        )
    raise _unread(family, base)


def _codes(family: str, base: Base) -> Floats:
    """Return the numbers that a classifier predicts."""
    try:
        return np.asarray(base.model.classes_).astype(np.float64)
    except ValueError:
        raise UnsupportedModel(
            f"cannot read {family}: {type(base.model).__name__} predicts labels that are no numbers. Fit it without cv='prefit'."
        ) from None


def _has_score(base: Base) -> bool:
    """Return whether the form's scores are what decision_function gives."""
    if isinstance(base.form, Network):
        return not base.form.is_regressor and len(base.form.biases[-1]) == base.width
    is_plain = getattr(base.model, "loss", "log_loss") == "log_loss"
    return type(base.model).__name__ in SCORED and is_plain


def _unread(family: str, base: Base) -> UnsupportedModel:
    return UnsupportedModel(
        f"cannot read {family} of {base.method} of {type(base.model).__name__}: it is no share of trees, no sigmoid or softmax of scores, "
        "and no score that is read. Use stack_method='predict', or another model."
    )


# ---- trees as final model


def _under_trees(
    family: str,
    head: TreeEnsemble,
    bases: Sequence[Base],
    passthrough: bool,
    space: FeatureSpace,
    columns: tuple[Column, ...],
) -> ObliqueTrees:
    """Return the final trees over the other models: over one network where all of these are linear models and networks."""
    edge, parts, scores, at = head.edge.copy(), list[Part](), list[BaseScores](), 0
    width = sum(base.width for base in bases) + (len(columns) if passthrough else 0)
    for base in bases:
        slack = 0.0
        if base.method == CHANCE and base.width == 1 and getattr(base.form, "link", "none") in SQUASHED:
            own = (head.left >= 0) & (head.column == at)
            moved = [as_score(base.form, type(base.model).__name__, Threshold(float(e), 0.0)) for e in edge[own]]
            edge[own] = [threshold.at for threshold in moved]
            slack = max((threshold.slack for threshold in moved), default=0.0) * (1 + 2.0**-20)
            base = replace(base, method=AS_SCORE)
        if isinstance(base.form, Network) and (base.method != "predict" or base.form.is_regressor):
            if base.method == CHANCE or len(base.form.biases[-1]) != base.width:
                raise _unread(family, base)
            scores.append(BaseScores(at, base.form, slack))
        else:
            parts.append(_below_trees(family, base, slack, np.eye(width)[:, at : at + base.width], space))
        at += base.width
    if passthrough:
        scores.append(BaseScores(at, Network(space, columns, (np.eye(len(columns)),), (np.zeros(len(columns)),)), 0.0))
    names = tuple(Column(column.name, 0, None) for column in head.columns)
    trees = replace(head, space=space, columns=names, edge=edge)
    if not parts:
        return ObliqueTrees(space, _as_network(scores, space, columns), trees)
    if scores:
        places = [each.begin + k for each in scores for k in range(len(each.form.biases[-1]))]
        parts.append(Weighted(_as_network(scores, space, columns), np.eye(width)[:, places]))
    return ObliqueTrees(space, Composite(space, tuple(parts), np.zeros(width)), trees)


def _as_network(scores: Sequence[BaseScores], space: FeatureSpace, columns: tuple[Column, ...]) -> Network:
    """Return networks beside each other, over the features."""
    lowering, inputs, over = shared_inputs([each.form for each in scores], space, columns)
    rows = []
    for each, tensor in zip(scores, inputs, strict=True):
        made = lowering.run(tensor, each.form)
        wrong = each.slack / float(lowering.unit) * (1 + 2.0**-20)
        rows.append(Tensor(made.shape, made.weights, made.shift, made.size + wrong, made.steps))
    network = lowering.network(lowering.concatenate(rows, 1), space, over)
    if any(isinstance(column, Traced) for column in over):
        from mace.models.preprocessing.ground_networks import ground_network

        return ground_network(network, space)
    return network


def _below_trees(family: str, base: Base, slack: float, placed: Floats, space: FeatureSpace) -> Part:
    """Return what a model that is no network, or that votes, reports, in its place among all columns."""
    from mace.models import ground

    form = ground(base.form, space)
    if isinstance(form, TreeEnsemble | Network) and base.method == "predict" and not form.is_regressor:
        return Voting(form, np.outer(_codes(family, base), placed[:, 0]))
    if not isinstance(form, TreeEnsemble):
        raise UnsupportedModel(
            f"cannot read {family} of {type(base.model).__name__} below a tree: it is itself made of several models, or stands behind a "
            "projection. Use a linear final_estimator."
        )
    if base.method == "predict":
        return Weighted(form, placed / divisor(form))
    if base.method == AS_SCORE or (base.method == SCORE and _has_score(base)):
        return Weighted(replace(form, squash=form.squash + Fraction(slack)), placed)
    if base.method == CHANCE and form.link == "mean":
        shares = placed if base.width > 1 else np.outer(placed[:, 0], [0.0, 1.0])
        return Weighted(form, shares / len(form.roots))
    raise _unread(family, base)
