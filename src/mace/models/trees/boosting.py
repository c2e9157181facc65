"""Reading scikit-learn's ``GradientBoostingClassifier`` and ``GradientBoostingRegressor``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from sklearn.dummy import DummyClassifier, DummyRegressor

from mace.errors import UnsupportedModel
from mace.exact import UNIT, Floats
from mace.forms import TreeEnsemble
from mace.models.estimator import check_columns
from mace.models.trees.forest import check_float32, join_trees
from mace.space import Column, FeatureSpace

RANDOM_STARTS = ("stratified", "uniform")


def read_boosting(model: Any, space: FeatureSpace, columns: tuple[Column, ...]) -> TreeEnsemble:
    """Return the form of a start plus the learning rate times each tree.

    Two classes: one sum, the second class where it is at least 0. More classes: a sum each, the first of the greatest. The exponential
    loss reports the logistic function of twice the sum, so everything is doubled, which is exact.
    """
    check_columns(model, columns, space, missing=False)
    check_float32(type(model).__name__, space)
    is_regressor = not hasattr(model, "classes_")
    outputs = int(model.n_trees_per_iteration_)
    double = 2.0 if model.loss == "exponential" else 1.0
    trees = [estimator.tree_ for stage in model.estimators_ for estimator in stage]
    rate = float(model.learning_rate)
    values = [
        _output(rate * tree.value[:, 0, 0] * double, number % outputs, outputs) for number, tree in enumerate(trees)
    ]
    return TreeEnsemble(
        space=space,
        columns=columns,
        **join_trees(trees, values, columns=len(columns)),
        base=_start(model) * double,
        squash=product_rounding(rate, values),
        ties_last=not is_regressor,
        link="identity" if is_regressor else "logistic" if outputs == 1 else "none",
        is_regressor=is_regressor,
    )


def _output(values: Floats, output: int, outputs: int) -> Floats:
    spread = np.zeros((len(values), outputs))
    spread[:, output] = values
    return spread


def _start(model: Any) -> Floats:
    """Return what the sums start from, computed by the library itself on a row of zeros; a start that looks at the row is refused."""
    start = model.init_
    constant = type(start) in (DummyClassifier, DummyRegressor) and start.strategy not in RANDOM_STARTS
    if not constant and not (isinstance(start, str) and start == "zero"):
        raise UnsupportedModel(
            f"cannot read {type(model).__name__}(init={start!r}): its start depends on the row. "
            "Supported: init=None, init='zero'. Fit it with one of these."
        )
    base: Floats = model._raw_predict_init(np.zeros((1, model.n_features_in_), dtype=np.float32))[0]
    return np.asarray(base, dtype=np.float64)


def product_rounding(factor: float, values: Sequence[Floats]) -> Fraction:
    """Return by how much sums of rounded products and of exact ones may differ in a margin.

    Leaves are multiplied here and rounded; a library may multiply the sum instead, or fuse its multiplication and addition.
    """
    if math.frexp(factor)[0] == 0.5 or len(values) == 1:
        return Fraction(0)
    return 4 * UNIT * len(values) * Fraction(max(float(np.abs(value).max()) for value in values))
