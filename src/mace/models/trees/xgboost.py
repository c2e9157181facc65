"""Reading XGBoost's models: ``XGBClassifier``, ``XGBRegressor`` and ``Booster``.

XGBoost rounds a row to float32, goes left where x < threshold, and adds float32 leaves to a float32 start. A set of categories at a node
goes right. Where trees were dropped in training (dart) each has a weight. A booster is asked through a ``DMatrix``; it decides as the
classifier does: the second class where its probability is above one half, or the class of the greatest probability.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mace.errors import UnsupportedModel
from mace.exact import Floats, Ints, added, float32_edge
from mace.forms import TreeEnsemble
from mace.models.deployed import Deployed, Native
from mace.models.estimator import check_width, class_labels
from mace.models.package import optional
from mace.models.trees.forest import check_float32
from mace.models.trees.pack import Tree, join, table_of
from mace.space import Column, FeatureSpace
from mace.space.features import Level, is_missing

UNIT32 = Fraction(1, 2**24)

SINGLE_SQUASH = Fraction(1, 2**20)
"""Beyond this distance of two sums the float32 sigmoid or softmax, each step good to 2 units in the last place, tells them apart."""

MOST_CATEGORIES = 2**24

BINARY_OBJECTIVES = ("binary:logistic",)
MULTICLASS_OBJECTIVES = ("multi:softprob", "multi:softmax")
REGRESSION_OBJECTIVES = ("reg:squarederror", "reg:absoluteerror", "reg:pseudohubererror", "reg:quantileerror")
SUPPORTED = (*BINARY_OBJECTIVES, *MULTICLASS_OBJECTIVES, *REGRESSION_OBJECTIVES)


@dataclass(frozen=True, slots=True)
class _SavedBooster:
    """What of a saved booster decides."""

    objective: str
    classes: int
    width: int
    base: NDArray[np.float32]
    trees: list[dict[str, Any]]
    weights: Floats
    outputs: list[int]
    iterations: list[int]
    categorical: list[int]


# ---- asking


def deployed_estimator(model: Any) -> Deployed:
    """Return how an ``XGBClassifier`` or ``XGBRegressor`` is asked."""
    booster = model.get_booster()
    return Deployed(
        predict=model.predict,
        probabilities=getattr(model, "predict_proba", None),
        classes=class_labels(model),
        labels=partial(class_labels, model),
        names=_names(booster),
        native=_native(booster, type(model).__name__),
        is_by_order=getattr(model, "objective", None) == "binary:logistic",
    )


def deployed_booster(booster: Any) -> Deployed:
    """Return how a ``Booster`` is asked: through a ``DMatrix``, with all of its iterations."""
    names, native = _names(booster), _native(booster, "Booster")
    types = None if names is not None else booster.feature_types
    learner = json.loads(booster.save_config())["learner"]
    objective, count = learner["objective"]["name"], int(learner["learner_model_param"]["num_class"])

    def raw(X: Any) -> NDArray[np.float32]:
        matrix = optional("xgboost").DMatrix(X, enable_categorical=True, feature_types=types)
        answer: NDArray[np.float32] = booster.predict(matrix)
        return answer

    if objective in REGRESSION_OBJECTIVES:
        return Deployed(raw, None, None, names, native)
    classes = tuple(range(max(2, count)))
    if objective == "multi:softmax":
        return Deployed(lambda X: raw(X).astype(int), None, classes, names, native)
    if objective == "multi:softprob":
        return Deployed(lambda X: raw(X).argmax(axis=1), raw, classes, names, native)
    return Deployed(lambda X: (raw(X) > 0.5).astype(int), lambda X: _both(raw(X)), classes, names, native)


def _both(chance: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.column_stack([1 - chance, chance])


def _names(booster: Any) -> tuple[str, ...] | None:
    return None if booster.feature_names is None else tuple(booster.feature_names)


def _native(booster: Any, family: str) -> dict[int, Sequence[Level]]:
    """Return each column that was a pandas category at training, with its categories by code; codes in an array are numbers."""
    types = booster.feature_types or []
    if "c" not in types or booster.feature_names is None:
        return {}
    model = _learner(booster, family)["gradient_booster"]["model"]
    entries = model.get("cats", {}).get("enc", [])
    found: dict[int, Sequence[Level]] = {}
    for column in (column for column, kind in enumerate(types) if kind == "c"):
        found[column] = _labels(entries[column]) if column < len(entries) else []
        if not found[column]:
            raise UnsupportedModel(
                f"cannot read {family}: {booster.feature_names[column]!r} is a pandas category, and the model does not say which. "
                "Fit it with XGBoost 3.2 or later, or on the codes of mace.Encoder(space, categorical='codes')."
            )
    return found


def _labels(entry: dict[str, Any]) -> list[Level]:
    values = entry["values"]
    if "offsets" not in entry:
        return list(values)
    text = bytes(value % 256 for value in values)
    return [text[start:end].decode(errors="replace") for start, end in pairwise(entry["offsets"])]


# ---- reading


def read_estimator(model: Any, space: FeatureSpace, columns: tuple[Column, ...]) -> TreeEnsemble:
    """Return the form of an ``XGBClassifier`` or ``XGBRegressor``; after early stopping, of its best iterations, as it predicts."""
    family = type(model).__name__
    if callable(model.objective):
        raise UnsupportedModel(
            f"cannot read {family} with an objective that is a function. Use {', '.join(SUPPORTED)}."
        )
    if not np.isnan(model.missing):
        raise UnsupportedModel(
            f"cannot read {family}(missing={model.missing!r}): that number would count as missing. "
            "Fit it with missing=nan, the default, and NaN in the data."
        )
    classes = class_labels(model)
    saved = _saved(
        model.get_booster(),
        family,
        REGRESSION_OBJECTIVES if classes is None else (*BINARY_OBJECTIVES, *MULTICLASS_OBJECTIVES),
    )
    if classes is not None and (len(classes) < 2 or (len(classes) == 2 and saved.objective == "multi:softprob")):
        raise UnsupportedModel(
            f"cannot read {family}(objective={saved.objective!r}) with the classes {', '.join(map(str, classes))}: "
            "it predicts no class a row. Fit two classes with objective='binary:logistic'."
        )
    _, end = model._get_iteration_range(None)
    return _form(saved, family, end, space, columns)


def read_booster(booster: Any, space: FeatureSpace, columns: tuple[Column, ...]) -> TreeEnsemble:
    """Return the form of a ``Booster`` with all of its iterations, as ``Booster.predict`` uses them."""
    return _form(_saved(booster, "Booster", SUPPORTED), "Booster", 0, space, columns)


def _form(
    saved: _SavedBooster, family: str, end: int, space: FeatureSpace, columns: tuple[Column, ...]
) -> TreeEnsemble:
    check_width(family, saved.width, columns)
    check_float32(family, space)
    count = saved.iterations[end] if end else len(saved.trees)
    codes = {column: _codes(columns[column], family) for column in saved.categorical}
    trees = [
        _tree(tree, output, codes, float(weight))
        for tree, output, weight in zip(saved.trees[:count], saved.outputs[:count], saved.weights[:count], strict=True)
    ]
    is_regressor = saved.objective in REGRESSION_OBJECTIVES
    base = saved.base.astype(np.float64)
    link = "identity" if is_regressor else "logistic" if saved.objective in BINARY_OBJECTIVES else "none"
    return TreeEnsemble(
        space=space,
        columns=columns,
        **join(trees, outputs=max(1, saved.classes), columns=len(columns)),
        base=base,
        unit=UNIT32,
        # The base's logarithm is the machine's own, good to a unit in the last place.
        squash=(Fraction(0) if is_regressor else SINGLE_SQUASH)
        + 4 * UNIT32 * Fraction(float(np.abs(base).max()))
        + _weighting(saved.weights[:count], trees, base),
        link=link,  # type: ignore[arg-type]
        is_regressor=is_regressor,
    )


def _weighting(weights: Floats, trees: Sequence[Tree], base: Floats) -> Fraction:
    """Return by how much weights of trees may change a difference of two sums: each leaf is added to the base, the base taken off again
    and what is left multiplied, in float32."""
    if (weights == 1).all():
        return Fraction(0)
    start = float(np.abs(base).max())
    sizes = [
        abs(weight) * start + float(np.abs(tree.value[tree.left < 0]).max())
        for weight, tree in zip(weights, trees, strict=True)
    ]
    return 8 * UNIT32 * Fraction(added(sizes)) * (1 + Fraction(1, 2**20))


def _learner(booster: Any, family: str) -> dict[str, Any]:
    """Return a booster as it saves itself; one that is no sum of trees is refused."""
    learner: dict[str, Any] = json.loads(bytes(booster.save_raw("json")))["learner"]
    gradient = learner["gradient_booster"]
    if (
        gradient["name"] == "dart"
    ):  # which calls itself gbtree from XGBoost 3.4 on, and keeps its weights beside the trees
        gradient["model"] = {**gradient["gbtree"]["model"], "weight_drop": gradient["weight_drop"]}
    elif gradient["name"] != "gbtree":
        raise UnsupportedModel(
            f"cannot read {family}(booster={gradient['name']!r}). Supported: booster='gbtree' and 'dart'. Fit it with one of these."
        )
    return learner


def _saved(booster: Any, family: str, accepted: Sequence[str]) -> _SavedBooster:
    learner = _learner(booster, family)
    gradient = learner["gradient_booster"]
    objective = learner["objective"]["name"]
    if objective not in accepted:
        raise UnsupportedModel(f"cannot read {family}(objective={objective!r}). Supported: {', '.join(accepted)}.")
    parameters, model = learner["learner_model_param"], gradient["model"]
    classes, targets = int(parameters["num_class"]), int(parameters.get("num_target", "1"))
    vectors = any(int(tree["tree_param"]["size_leaf_vector"]) > 1 for tree in model["trees"])
    if targets > 1 or vectors:
        raise UnsupportedModel(
            f"{family} has several outputs (multi_strategy or several targets); one target at a time can be explained. "
            "Fit one model an output."
        )
    per_iteration = int(model["gbtree_model_param"]["num_parallel_tree"]) * max(1, classes)
    return _SavedBooster(
        objective=objective,
        classes=classes,
        width=int(parameters["num_feature"]),
        base=_base(parameters["base_score"], objective, max(1, classes)),
        trees=model["trees"],
        weights=np.array(model.get("weight_drop") or [1.0] * len(model["trees"]), dtype=np.float32).astype(np.float64),
        outputs=model["tree_info"],
        iterations=model.get("iteration_indptr") or list(range(0, len(model["trees"]) + 1, per_iteration)),
        categorical=[column for column, kind in enumerate(learner["feature_types"]) if kind == "c"],
    )


def _base(text: str, objective: str, outputs: int) -> NDArray[np.float32]:
    """Return the start of each sum: the base score, for probabilities as -log(1/p - 1), in float32 as the library computes it."""
    parsed = json.loads(text)
    scores = np.broadcast_to(np.asarray(parsed, dtype=np.float32).reshape(-1), (outputs,)).copy()
    if objective not in BINARY_OBJECTIVES:
        return scores
    odds = np.float32(1) / scores - np.float32(1)
    return (-np.log(odds.astype(np.float64))).astype(np.float32)


# ---- categories


def _codes(column: Column, family: str) -> Ints:
    """Return the code of each level, -1 for that of missing values."""
    known = table_of(column, family)
    labels = column.labels if isinstance(column, Native) else ()
    is_missing_level = np.array([is_missing(label) for label in labels] or [False] * len(known))
    table = np.where(is_missing_level, 0, np.array(known))
    if np.isnan(table).any():
        unknown = labels[int(np.isnan(table).argmax())]
        if not str(unknown).isascii():
            # XGBoost 3.2 counts letters and cuts bytes: of "Köln", "Ulm" it keeps "Köl", "nUl".
            raise UnsupportedModel(
                f"{column.name!r}: level {unknown!r} of the space has letters beyond ASCII, and {family} does not keep such categories "
                "whole. Rename them, or fit it on the codes of mace.Encoder(space, categorical='codes')."
            )
        raise UnsupportedModel(
            f"{column.name!r}: level {unknown!r} of the space is unknown to {family}, which would refuse it."
        )
    if ((table != np.floor(table)) | (table < 0) | (table >= MOST_CATEGORIES)).any():
        raise UnsupportedModel(
            f"column {column.name!r} is categorical to {family}, and its levels are not whole numbers from 0. "
            "Use mace.Encoder(space, categorical='codes')."
        )
    return np.where(is_missing_level, -1, table.astype(np.int64))


def _tree(tree: dict[str, Any], output: int, codes: dict[int, Ints], weight: float) -> Tree:
    condition = np.array(tree["split_conditions"], dtype=np.float64).astype(np.float32)
    column = np.array(tree["split_indices"], dtype=np.int64)
    starts, sizes = tree["categories_segments"], tree["categories_sizes"]
    lefts = {}
    for node, start, size in zip(tree["categories_nodes"], starts, sizes, strict=True):
        right = np.array(tree["categories"][start : start + size], dtype=np.int64)
        code = codes[int(column[node])]
        lefts[int(node)] = np.where(code < 0, tree["default_left"][node] != 0, ~np.isin(code, right))
    left = np.array(tree["left_children"], dtype=np.int64)
    return Tree(
        column=column,
        edge=float32_edge(np.nextafter(condition, np.float32(-np.inf)).astype(np.float64)),
        left=left,
        right=np.array(tree["right_children"], dtype=np.int64),
        missing_left=np.array(tree["default_left"], dtype=bool),
        value=condition.astype(np.float64) * weight,
        output=output,
        lefts=lefts,
    )
