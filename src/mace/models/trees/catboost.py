"""Reading CatBoost's models, ``CatBoostClassifier`` and ``CatBoostRegressor``, from CatBoost's own JSON export.

CatBoost rounds a row to float32, goes right where x > border, and adds float64 leaves; the second class wins where the sum is above 0,
of several classes the first with the greatest sum. A one-hot split sends one category right.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mace.errors import UnsupportedModel
from mace.exact import float32_edge
from mace.forms import TreeEnsemble
from mace.models.deployed import Deployed, Native
from mace.models.estimator import check_width, class_labels
from mace.models.package import optional
from mace.models.trees.forest import check_float32
from mace.models.trees.pack import Tree, join
from mace.space import Column, FeatureSpace

BINARY = ("Logloss", "CrossEntropy")
MULTICLASS = ("MultiClass",)
LINEAR = ("RMSE", "MAE", "Quantile", "MAPE", "Huber", "LogCosh", "Expectile")
THRESHOLD = "binclass_probability_threshold"


def deployed(model: Any) -> Deployed:
    """Return how the model is asked: categorical columns come as pandas categories of their labels."""
    names = tuple(model.feature_names_)
    by_position = names == tuple(map(str, range(len(names))))
    categorical = model.get_cat_feature_indices()
    if categorical and by_position:
        raise UnsupportedModel(
            f"cannot read {type(model).__name__} with cat_features fitted on an array. Fit it on a data frame, or one-hot encode "
            "with make_pipeline(mace.Encoder(space), model)."
        )
    classes = class_labels(model)
    return Deployed(
        predict=model.predict,
        probabilities=getattr(model, "predict_proba", None),
        classes=classes,
        names=None if by_position else names,
        native=dict.fromkeys(categorical),
    )


def read_catboost(model: Any, space: FeatureSpace, columns: tuple[Column, ...]) -> TreeEnsemble:
    """Return the form of a bias plus trees; after early stopping the model itself keeps only its best iterations."""
    family = type(model).__name__
    check_width(family, len(model.feature_names_), columns)
    check_float32(family, space)
    saved = _saved(model, columns)
    loss = saved["model_info"]["params"]["loss_function"]["type"]
    _check_loss(model, family, loss)
    scale, base = saved["scale_and_bias"]
    if scale != 1:
        raise UnsupportedModel(f"cannot read {family} with the scale {scale}. Call set_scale_and_bias(1, bias).")
    splits = _Splits.of(saved, columns, family)
    outputs = len(base)
    if "oblivious_trees" in saved:
        trees = [_oblivious(tree, splits, outputs) for tree in saved["oblivious_trees"]]
    else:
        trees = [_nested(tree, splits, outputs) for tree in saved["trees"]]
    is_regressor = loss in LINEAR
    return TreeEnsemble(
        space=space,
        columns=columns,
        **join(trees, outputs=outputs, columns=len(columns)),
        base=np.array(base, dtype=np.float64),
        link="identity" if is_regressor else "logistic" if loss in BINARY else "none",
        is_regressor=is_regressor,
    )


def _check_loss(model: Any, family: str, loss: str) -> None:
    is_classifier = class_labels(model) is not None
    accepted = (*BINARY, *MULTICLASS) if is_classifier else LINEAR
    if loss not in accepted:
        raise UnsupportedModel(f"cannot read {family}(loss_function={loss!r}). Supported: {', '.join(accepted)}.")
    threshold = float(dict(model.get_metadata().items()).get(THRESHOLD, 0.5))
    if loss in BINARY and threshold != 0.5:
        raise UnsupportedModel(
            f"cannot read {family} with the probability threshold {threshold}. "
            "Call set_probability_threshold(0.5), and ask for mace.at_least(p, label) instead."
        )


# ---- the export


def _saved(model: Any, columns: Sequence[Column]) -> dict[str, Any]:
    """Return the model's JSON export, with the hashes of the space's levels where there are categories."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.json"
        model.save_model(str(file), format="json", pool=_pool(columns))
        saved: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return saved


def _pool(columns: Sequence[Column]) -> Any:
    """Return rows that hold every level of every category, for their hashes; ``None`` where there are none."""
    native = [column for column in columns if isinstance(column, Native)]
    if not native:
        return None
    rows = max(len(column.labels) for column in native)
    frame = pd.DataFrame({column.name: np.zeros(rows) for column in columns})
    for column in native:
        frame[column.name] = pd.Categorical([column.labels[row % len(column.labels)] for row in range(rows)])
    return optional("catboost").Pool(frame, cat_features=[column.name for column in native])


# ---- splits


@dataclass(frozen=True, slots=True)
class _CatboostSplit:
    """One decision; what it holds of goes right."""

    column: int
    edge: float
    missing_left: bool
    lefts: NDArray[np.bool_] | None = None


@dataclass(frozen=True, slots=True)
class _Splits:
    """Turns the export's splits into columns and edges."""

    family: str
    columns: Sequence[Column]
    numeric: list[dict[str, Any]]
    categorical: list[dict[str, Any]]
    hashes: dict[str, int]

    @classmethod
    def of(cls, saved: dict[str, Any], columns: Sequence[Column], family: str) -> _Splits:
        features = saved["features_info"]
        for kind in ("text_features", "embedding_features"):
            if features.get(kind):
                raise UnsupportedModel(f"cannot read {family} with {kind}. Leave them out.")
        hashes = {entry["value"]: entry["hash"] for entry in features.get("cat_features_hash", [])}
        return cls(
            family, columns, features.get("float_features", []), features.get("categorical_features", []), hashes
        )

    def __call__(self, split: dict[str, Any]) -> _CatboostSplit:
        kind = split["split_type"]
        if kind == "FloatFeature":
            entry = self.numeric[split["float_feature_index"]]
            border = np.array([split["border"]], dtype=np.float32).astype(np.float64)
            with np.errstate(over="ignore"):  # a border that splits off NaN alone is the largest float32
                edge = float(float32_edge(border)[0])
            return _CatboostSplit(entry["flat_feature_index"], edge, entry["nan_value_treatment"] != "AsTrue")
        if kind == "OneHotFeature":
            return self._one_hot(self.categorical[split["cat_feature_index"]]["flat_feature_index"], split["value"])
        raise UnsupportedModel(
            f"cannot read {self.family}: it splits on statistics of categories ({kind}), which depend on the training data. "
            "Fit it with one_hot_max_size at least the number of levels, or one-hot encode with mace.Encoder."
        )

    def _one_hot(self, position: int, value: int) -> _CatboostSplit:
        column = self.columns[position]
        assert isinstance(column, Native)
        lefts = np.array([self.hashes[str(label)] != value % 2**32 for label in column.labels])
        return _CatboostSplit(position, 0.0, True, lefts)


# ---- trees


def _oblivious(tree: dict[str, Any], read: Callable[[dict[str, Any]], _CatboostSplit], outputs: int) -> Tree:
    """Return a tree that asks one question a level; bit k of a leaf's number is the answer to question k."""
    splits = [read(split) for split in tree["splits"] or []]
    depth = len(splits)
    level = np.repeat(np.arange(depth), 2 ** np.arange(depth))
    inner = np.arange(2**depth - 1)
    numbers = np.zeros(2**depth, dtype=np.int64)
    for question in range(depth):  # node p's children are 2p + 1 and 2p + 2: the first question is the highest bit here
        numbers |= (np.arange(2**depth) >> (depth - 1 - question) & 1) << question
    leaves = np.array(tree["leaf_values"], dtype=np.float64).reshape(-1, outputs)[numbers]
    return _tree(
        [splits[k] for k in level],
        np.concatenate([2 * inner + 1, np.full(2**depth, -1)]),
        np.concatenate([2 * inner + 2, np.full(2**depth, -1)]),
        np.concatenate([np.zeros((len(inner), outputs)), leaves]),
    )


def _nested(tree: dict[str, Any], read: Callable[[dict[str, Any]], _CatboostSplit], outputs: int) -> Tree:
    """Return a tree of any shape; its inner nodes come first."""
    nodes = [tree]
    for node in nodes:
        if "split" in node:
            nodes += [node["left"], node["right"]]
    inner = [node for node in nodes if "split" in node]
    ordered = [*inner, *(node for node in nodes if "split" not in node)]
    order = {id(node): number for number, node in enumerate(ordered)}
    return _tree(
        [read(node["split"]) for node in inner],
        np.array([order[id(node["left"])] if "split" in node else -1 for node in ordered], dtype=np.int64),
        np.array([order[id(node["right"])] if "split" in node else -1 for node in ordered], dtype=np.int64),
        np.array([np.broadcast_to(node.get("value", 0.0), (outputs,)) for node in ordered], dtype=np.float64),
    )


def _tree(
    splits: Sequence[_CatboostSplit], left: NDArray[np.int64], right: NDArray[np.int64], value: NDArray[np.float64]
) -> Tree:
    pad = len(left) - len(splits)
    return Tree(
        column=np.array([split.column for split in splits] + [-1] * pad, dtype=np.int64),
        edge=np.array([split.edge for split in splits] + [0.0] * pad),
        left=left,
        right=right,
        missing_left=np.array([split.missing_left for split in splits] + [False] * pad),
        value=value,
        lefts={node: split.lefts for node, split in enumerate(splits) if split.lefts is not None},
    )
