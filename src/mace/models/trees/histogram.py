"""Reading scikit-learn's ``HistGradientBoostingClassifier`` and ``HistGradientBoostingRegressor``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mace.errors import UnsupportedModel
from mace.exact import Ints
from mace.forms import TreeEnsemble
from mace.models import estimator
from mace.models.deployed import Deployed, Native
from mace.models.estimator import check_columns
from mace.models.trees.pack import Tree, join, table_of
from mace.space import Column, FeatureSpace
from mace.space.features import Level, plain_scalar

LINEAR_LOSSES = ("squared_error", "absolute_error", "quantile")


def deployed(model: Any) -> Deployed:
    """Return how the model is asked: category columns of a training frame come as pandas categories."""
    plain = estimator.deployed(model)
    if plain.names is None:
        return plain
    by_dtype = isinstance(model.categorical_features, str)
    native = {
        column: known
        for column, known in _known(model).items()
        if by_dtype or any(isinstance(level, str) for level in known)
    }
    return replace(plain, native=native)


def read_histogram(model: Any, space: FeatureSpace, columns: tuple[Column, ...]) -> TreeEnsemble:
    """Return the form of a baseline plus trees: float64 throughout, x <= threshold goes left, categories by bit sets.

    A category that the model does not know goes the way of missing values, as the library does it.
    """
    check_columns(model, columns, space, missing=True)
    is_regressor = not hasattr(model, "classes_")
    if is_regressor and model.loss not in LINEAR_LOSSES:
        raise UnsupportedModel(
            f"cannot read {type(model).__name__}(loss={model.loss!r}): it reports the exponential of a sum. "
            f"Supported losses: {', '.join(map(repr, LINEAR_LOSSES))}. Fit one of these to the logarithm."
        )
    outputs = int(model.n_trees_per_iteration_)
    codes = {j: _codes(columns[j], known) for j, known in _known(model).items()}
    order = _column_order(model, len(columns))
    trees = [
        _tree(predictor, order, columns, codes, output)
        for stage in model._predictors
        for output, predictor in enumerate(stage)
    ]
    return TreeEnsemble(
        space=space,
        columns=columns,
        **join(trees, outputs=outputs, columns=len(columns)),
        base=np.asarray(model._baseline_prediction, dtype=np.float64).reshape(-1),
        link="identity" if is_regressor else "logistic" if outputs == 1 else "none",
        is_regressor=is_regressor,
    )


def _known(model: Any) -> dict[int, Sequence[Level]]:
    """Return each categorical column's categories by code."""
    if model.is_categorical_ is None:
        return {}
    encoder = model._preprocessor.named_transformers_["encoder"]
    return {
        int(column): [plain_scalar(level) for level in categories if level == level]  # type: ignore[misc]
        for column, categories in zip(np.flatnonzero(model.is_categorical_), encoder.categories_, strict=True)
    }


def _column_order(model: Any, width: int) -> Ints:
    """Return which column each of the trees' columns is: the library puts the categorical ones first."""
    if model.is_categorical_ is None:
        return np.arange(width)
    return np.concatenate([np.flatnonzero(model.is_categorical_), np.flatnonzero(~model.is_categorical_)])


def _codes(column: Column, known: Sequence[Level]) -> list[int | None]:
    """Return the code of each level of a column, ``None`` for one that the model does not know."""
    table = table_of(column, "the model")
    if isinstance(column, Native):
        return [None if np.isnan(code) else int(code) for code in table]
    position = {level: code for code, level in enumerate(known)}
    return [position.get(value) for value in table]


def _tree(
    predictor: Any, order: Ints, columns: Sequence[Column], codes: dict[int, list[int | None]], output: int
) -> Tree:
    nodes = predictor.nodes
    leaf = nodes["is_leaf"].astype(bool)
    column = order[np.where(leaf, 0, nodes["feature_idx"])]
    lefts = {}
    for node in np.flatnonzero(~leaf & nodes["is_categorical"].astype(bool)):
        bits = predictor.raw_left_cat_bitsets[nodes["bitset_idx"][node]]
        missing = bool(nodes["missing_go_to_left"][node])
        lefts[int(node)] = np.array(
            [
                missing if code is None else bool(bits[code // 32] >> (code % 32) & 1)
                for code in codes[int(column[node])]
            ]
        )
    return Tree(
        column=column,
        edge=nodes["num_threshold"].astype(np.float64),
        left=np.where(leaf, -1, nodes["left"].astype(np.int64)),
        right=np.where(leaf, -1, nodes["right"].astype(np.int64)),
        missing_left=nodes["missing_go_to_left"].astype(bool),
        value=nodes["value"].astype(np.float64),
        output=output,
        lefts=lefts,
    )
