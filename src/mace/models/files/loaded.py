"""Checks of a model that comes from a file, before anything predicts with it.

Compiled code walks the arrays of trees and of sparse matrices without looking where they end, and objects from a file need not be as
``fit`` leaves them. Every part of the model is checked here: arrays against each other, trees node by node, and MACE's own objects by
making them anew. What else may be wrong shows itself as an exception of the model, which :func:`mace.models.read` reports.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from mace.errors import UnsupportedModel, in_a_line
from mace.models.trees.forest import check_tree
from mace.models.trees.pack import check_nodes
from mace.space import FeatureSpace
from mace.space.columns import encoded_columns

MOST_COLUMNS = 10**7
MOST_THREADS = 256
WORDS_OF_A_SET = 8
"""How many words of 32 bits a set of scikit-learn's categories has."""

PER_COLUMN = {
    **dict.fromkeys(("mean_", "var_", "scale_", "min_", "center_", "data_min_", "data_max_", "data_range_", "max_abs_"), 0),
    **dict.fromkeys(("statistics_", "lambdas_", "n_bins_", "bin_edges_", "categories_", "feature_names_in_"), 0),
    **dict.fromkeys(("coef_", "components_", "quantiles_"), -1),
}  # fmt: skip
"""Attributes that hold something for each column, and along which axis."""


def check_loaded(model: Any, name: str) -> None:
    """Refuse a loaded model whose parts do not fit together.

    Parameters
    ----------
    model : estimator
        What a file held.
    name : str
        The file's name, for messages.
    """
    at = model
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            parts = list(_parts(model))
            for checks in (CHECKS, LAST_CHECKS):
                for at in parts:
                    for base in type(at).__mro__:
                        if base.__name__ in checks and base.__module__.partition(".")[0] in ("sklearn", "mace"):
                            checks[base.__name__](at)
    except UnsupportedModel as error:
        raise UnsupportedModel(f"{name} is damaged: {type(at).__name__}: {error}") from error
    except Exception as error:
        raise UnsupportedModel(f"{name} is damaged: {type(at).__name__}: {in_a_line(error)}") from error
    if not hasattr(model, "predict"):
        raise UnsupportedModel(f"{name} holds no model, but a {type(model).__name__}.")


def _parts(model: Any) -> Iterator[Any]:
    """Yield a model and every object inside it once."""
    met: set[int] = set()
    left = [model]
    while left:
        part = left.pop()
        if isinstance(part, str | int | float | type(None)) or id(part) in met:
            continue
        met.add(id(part))
        if isinstance(part, list | tuple):
            left += part
        elif isinstance(part, np.ndarray):
            left += part.ravel().tolist() if part.dtype == object else []
        else:
            yield part
            left += part.values() if isinstance(part, dict) else getattr(part, "__dict__", {}).values()


def _require(holds: object, what: str) -> None:
    if not holds:
        raise UnsupportedModel(what)


def _columns(part: Any) -> int:
    """Return how many columns a fitted part takes."""
    count = part.n_features_in_
    _require(isinstance(count, int | np.integer) and 0 < count <= MOST_COLUMNS, f"it takes {count!r:.40} columns")
    return int(count)


# ---- all estimators


def check_estimator(part: Any) -> None:
    """Refuse an estimator whose arrays are not of one width, or that would start thousands of threads."""
    jobs = getattr(part, "n_jobs", None)
    _require(jobs is None or (isinstance(jobs, int) and abs(jobs) <= MOST_THREADS), f"n_jobs is {jobs!r:.40}")
    if "n_features_in_" not in vars(part):
        return
    width = _columns(part)
    for name, axis in PER_COLUMN.items():
        held = vars(part).get(name)
        sides = (len(held),) if isinstance(held, list | tuple) else np.shape(held) if held is not None else ()
        _require(not sides or sides[axis] == width, f"{name} is not made for {width} columns")
    classes = vars(part).get("classes_")
    if isinstance(classes, np.ndarray) and "n_classes_" in vars(part):
        _require(np.shape(classes) == (part.n_classes_,), "classes_ and n_classes_ differ")


def check_linear(part: Any) -> None:
    """Refuse coefficients and intercepts that do not fit the classes."""
    if "coef_" not in vars(part):
        return
    rows = np.atleast_2d(part.coef_).shape[0]
    _require(np.shape(part.intercept_) in ((), (1,), (rows,)), "coef_ and intercept_ differ in length")
    classes = vars(part).get("classes_")
    if isinstance(classes, np.ndarray):
        _require(
            rows == len(classes) or (rows == 1 and len(classes) == 2), f"coef_ is not made for {len(classes)} classes"
        )


def check_network(part: Any) -> None:
    """Refuse layers that do not follow each other."""
    if "coefs_" not in vars(part):
        return
    widths = [_columns(part), *(len(layer) for layer in part.intercepts_)]
    layers = [np.shape(layer) for layer in part.coefs_]
    _require(layers == list(pairwise(widths)), "its layers do not follow each other")
    _require(part.n_layers_ == len(widths) and part.n_outputs_ == widths[-1], "its layers are not as many as it says")


# ---- trees


def check_decision_tree(part: Any) -> None:
    """Refuse a damaged tree of nodes."""
    if "tree_" not in vars(part):
        return
    check_tree(part.tree_, _columns(part))
    _require(part.tree_.n_features == _columns(part), "its tree takes another number of columns")
    _require(part.tree_.n_outputs == part.n_outputs_, "its tree has another number of outputs")
    if hasattr(part, "classes_") and part.n_outputs_ == 1:
        _require(len(part.classes_) == part.tree_.max_n_classes, "its tree has another number of classes")


def check_trees(part: Any) -> None:
    """Refuse an ensemble whose members take other columns than it hands them."""
    members = vars(part).get("estimators_")
    if members is None:
        return
    chosen = getattr(part, "estimators_features_", None)
    width = _columns(part)
    # A list stays one: numpy would take a pipeline for an array of its steps.
    for number, member in enumerate(members.ravel() if isinstance(members, np.ndarray) else members):
        given = width
        if chosen is not None:
            taken = np.asarray(chosen[number])
            given = len(taken)
            _require(
                ((taken >= 0) & (taken < width)).all() and given <= width, "a member takes columns that do not exist"
            )
        _require(_columns(member) == given, f"a member takes another number of columns than {given}")


def check_boosting(part: Any) -> None:
    """Refuse a gradient boosting whose start or stages are not as many as its outputs."""
    if "estimators_" not in vars(part):
        return
    outputs, stages = part.n_trees_per_iteration_, np.shape(part.estimators_)
    _require(len(stages) == 2 and stages[1] == outputs, "its stages are not as many trees as it has outputs")
    if hasattr(part, "classes_"):
        _require(outputs == (1 if len(part.classes_) == 2 else len(part.classes_)), "its stages do not fit its classes")
    start = part._raw_predict_init(np.zeros((1, _columns(part)), dtype=np.float32))
    _require(np.shape(start) == (1, outputs), "its start is not as long as it has outputs")


def check_histogram(part: Any) -> None:
    """Refuse a histogram boosting with damaged nodes, sets of categories, or preprocessing."""
    if "_predictors" not in vars(part):
        return
    width, mapper = _columns(part), part._bin_mapper
    _require(getattr(part, "_in_fit", False) is False, "it is not fitted to the end")
    categorical = np.asarray(mapper.is_categorical_).astype(bool)
    _require(
        categorical.shape == (width,) and len(mapper.bin_thresholds_) == width,
        f"its bins are not made for {width} columns",
    )
    for column in np.flatnonzero(categorical):
        codes = np.asarray(mapper.bin_thresholds_[column], dtype=np.float64)
        _require(((codes >= 0) & (codes < 32 * WORDS_OF_A_SET)).all(), "a category is beyond those that there can be")
    for stage in part._predictors:
        _require(len(stage) == part.n_trees_per_iteration_, "its stages are not as many trees as it has outputs")
        for predictor in stage:
            _check_predictor(predictor, categorical)
    if part._preprocessor is not None:
        _require(_preprocessed(part, width).shape == (1, width), "its preprocessing makes another number of columns")


def _check_predictor(predictor: Any, categorical: Any) -> None:
    nodes, sets = predictor.nodes, predictor.raw_left_cat_bitsets
    leaf = nodes["is_leaf"] != 0
    left, right = (np.where(leaf, -1, nodes[side].astype(np.int64)) for side in ("left", "right"))
    _require(nodes.ndim == 1 and len(nodes) and sets.ndim == 2, "a tree is damaged: it has no nodes")
    check_nodes(left, right, nodes["feature_idx"], columns=len(categorical))
    by_set = ~leaf & (nodes["is_categorical"] != 0)
    if by_set.any():
        _require(categorical[nodes["feature_idx"][by_set]].all(), "the tree is damaged: it looks up a number in a set")
        inside = sets.shape[1] == WORDS_OF_A_SET and (nodes["bitset_idx"][by_set] < len(sets)).all()
        _require(inside, "the tree is damaged: a node has no set of categories")


def _preprocessed(part: Any, width: int) -> Any:
    """Return what the model makes of a row, to see how wide it is."""
    encoder = part._preprocessor.named_transformers_["encoder"]
    row: list[Any] = [0.0] * width
    for column, known in zip(np.flatnonzero(part.is_categorical_), encoder.categories_, strict=True):
        row[column] = known[0]
    names = getattr(part, "feature_names_in_", None)
    return part._preprocess_X(pd.DataFrame([row], columns=names) if names is not None else np.array([row]), reset=False)


# ---- steps


def check_one_hot(part: Any) -> None:
    """Refuse an encoder that would set columns which it does not have: asked with every category."""
    if "categories_" not in vars(part):
        return
    known = [list(levels) for levels in part.categories_]
    _require(known and all(known), "a column has no categories")
    rows = np.empty((max(map(len, known)), len(known)), dtype=object)
    for column, levels in enumerate(known):
        rows[:, column] = [levels[min(row, len(levels) - 1)] for row in range(len(rows))]
    asked = [rows]
    if part.handle_unknown != "error":
        asked.append(np.full((1, len(known)), "not a category", dtype=object))
    for each in asked:
        made = part.transform(each)
        if hasattr(made, "check_format"):
            made.check_format(full_check=True)


# ---- MACE's own


def check_space(part: Any) -> None:
    """Refuse a space that could not have been made."""
    made = FeatureSpace(part._features, guesses=part.guesses)
    for name, feature in made.items():
        again = replace(feature)
        _require(again == feature, f"its feature {name!r:.60} is damaged")
    for names in (part.protected, part._left_out):
        _require(isinstance(names, tuple) and all(isinstance(name, str) for name in names), "its marks are damaged")
    _require(set(part.protected) <= set(made), "it protects what is no feature")
    if part._described:
        wording = made.describe(**part._described).wording
        _require(wording.to_dict() == part._described, "its names are damaged")


def check_encoder(part: Any) -> None:
    """Refuse an encoder whose columns are not those of its space."""
    _require(part.space is None or isinstance(part.space, FeatureSpace), "its space is none")
    if "space_" not in vars(part) and "columns_" not in vars(part):
        return
    _require(isinstance(part.space_, FeatureSpace), "its space is none")
    check_space(part.space_)
    columns = encoded_columns(part.space_, categorical=part.categorical, ordinal=part.ordinal)
    _require(columns == tuple(part.columns_), "its columns are not those of its space")


CHECKS = {
    "BaseEstimator": check_estimator,
    "LinearModel": check_linear,
    "LinearClassifierMixin": check_linear,
    "BaseMultilayerPerceptron": check_network,
    "BaseDecisionTree": check_decision_tree,
    "BaseForest": check_trees,
    "BaseBagging": check_trees,
    "BaseGradientBoosting": check_trees,
    "BaseHistGradientBoosting": check_histogram,
    "OneHotEncoder": check_one_hot,
    "FeatureSpace": check_space,
    "Encoder": check_encoder,
}
"""What is checked of each class and of those that inherit from it."""

LAST_CHECKS = {"BaseGradientBoosting": check_boosting}
"""What asks another part of the model, once that is checked."""
