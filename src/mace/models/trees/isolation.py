"""Reading scikit-learn's ``IsolationForest``: 1 for a usual row, -1 for an outlier."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from mace.errors import UnsupportedModel
from mace.exact import UNIT, Floats, added, gamma
from mace.forms import TreeEnsemble
from mace.models.deployed import Deployed
from mace.models.estimator import check_columns
from mace.models.trees.forest import accept_missing, check_float32, join_trees
from mace.space import Column, FeatureSpace

OUTLIER_AND_INLIER = (-1, 1)


def read_isolation(model: Any, space: FeatureSpace, columns: tuple[Column, ...]) -> TreeEnsemble:
    """Return the form: the depths of a row's leaves added up, less the depth from which on it is usual.

    The model computes -2^(-depths / d) - offset, d a constant, and calls a row usual where that is not below 0: where the depths add up to
    at least D = -d log2(-offset). A division, a power and a subtraction, and the same here, lose a few units of roundoff of the score,
    which are d / ln 2 times as many of the depths; the library's sum starts from 0, not from -D, so its own rounding is counted here.
    """
    check_columns(model, columns, space, missing=accept_missing(model.estimators_))
    check_float32("IsolationForest", space)
    scale = len(model.estimators_) * _average_length(model)
    offset = float(model.offset_)
    if not scale > 0 or not -1 < offset < 0:
        raise UnsupportedModel(
            f"cannot read this IsolationForest: with offset_ {offset!r} it calls all rows the same. Fit it on more rows."
        )
    trees = [estimator.tree_ for estimator in model.estimators_]
    values = [
        (depths + lengths - 1.0)[:, None]
        for depths, lengths in zip(model._decision_path_lengths, model._average_path_length_per_tree, strict=True)
    ]
    arrays = join_trees(trees, values, columns=len(columns))
    ends = [*arrays["roots"][1:], len(arrays["column"])]
    for features, begin, end in zip(model.estimators_features_, arrays["roots"], ends, strict=True):
        arrays["column"][begin:end] = np.asarray(features)[arrays["column"][begin:end]]
    threshold = -scale * math.log2(-offset)
    deepest = added(float(np.abs(value).max()) for value in values)
    lost = 64 * UNIT * Fraction(scale + abs(threshold)) + 2 * gamma(len(trees) + 2) * Fraction(deepest)
    return TreeEnsemble(
        space=space,
        columns=columns,
        **arrays,
        base=np.array([-threshold]),
        squash=lost,
        ties_last=True,
    )


def _average_length(model: Any) -> float:
    """Return the average length of a path in a tree of as many rows as each of the model's trees was grown on.

    The model keeps its average length of the root of each tree, which holds all of them.
    """
    lengths: list[Floats] = list(model._average_path_length_per_tree)
    sizes = [int(estimator.tree_.n_node_samples[0]) for estimator in model.estimators_]
    if len(set(sizes)) != 1 or sizes[0] != int(model._max_samples):
        from sklearn.ensemble._iforest import _average_path_length

        return float(_average_path_length([model._max_samples])[0])
    return float(lengths[0][0])


def deployed(model: Any) -> Deployed:
    """Return how the forest is asked."""
    names = getattr(model, "feature_names_in_", None)
    return Deployed(
        predict=model.predict,
        probabilities=None,
        classes=OUTLIER_AND_INLIER,
        names=None if names is None else tuple(map(str, names)),
    )
