"""Reading scikit-learn's ``AdaBoostClassifier`` over decision trees."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

from mace.errors import UnsupportedModel
from mace.exact import UNIT, Floats
from mace.forms import TreeEnsemble
from mace.models.estimator import check_columns
from mace.models.trees.forest import check_float32, join_trees
from mace.space import Column, FeatureSpace


def read_adaboost(model: Any, space: FeatureSpace, columns: tuple[Column, ...]) -> TreeEnsemble:
    """Return the form of weighted votes.

    A tree votes its weight for the class that it predicts, and takes weight / (classes - 1) from each other class. With two classes
    the model reports the logistic function of twice the mean vote, and decides by its sign: the votes are scaled to that.
    """
    check_columns(model, columns, space, missing=False)
    check_float32("AdaBoostClassifier", space)
    for estimator in model.estimators_:
        if type(estimator) not in (DecisionTreeClassifier, ExtraTreeClassifier):
            raise UnsupportedModel(
                f"cannot read AdaBoostClassifier(estimator={type(estimator).__name__}(...)). "
                "Supported: DecisionTreeClassifier, the default. Fit it with one."
            )
    if len(model.classes_) < 2:
        raise UnsupportedModel("AdaBoostClassifier was fitted on a single class. Fit it on data with two or more.")
    trees = [estimator.tree_ for estimator in model.estimators_]
    values = [_votes(model, estimator, weight) for estimator, weight in _voters(model)]
    is_binary = len(model.classes_) == 2
    return TreeEnsemble(
        space=space,
        columns=columns,
        **join_trees(trees, values, columns=len(columns)),
        # The scaled votes are rounded, so that equal sums of theirs may be unequal sums of the library's.
        squash=8 * UNIT,
        link="logistic" if is_binary else "none",
    )


def _voters(model: Any) -> list[tuple[Any, float]]:
    weights = [float(weight) for weight in model.estimator_weights_[: len(model.estimators_)]]
    return list(zip(model.estimators_, weights, strict=True))


def _votes(model: Any, estimator: Any, weight: float) -> Floats:
    predicted = estimator.classes_[np.argmax(estimator.tree_.value[:, 0, :], axis=1)]
    classes = len(model.classes_)
    share = weight / float(model.estimator_weights_.sum())
    votes: Floats = np.where(predicted[:, None] == model.classes_[None, :], share, -share / (classes - 1))
    return 2 * votes[:, 1:] if classes == 2 else votes
