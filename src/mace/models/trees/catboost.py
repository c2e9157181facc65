"""Reading CatBoost's models, ``CatBoostClassifier`` and ``CatBoostRegressor``, from CatBoost's own JSON export.

CatBoost rounds a row to float32, goes right where x > border, and adds float64 leaves; the second class wins where the sum is above 0,
of several classes the first with the greatest sum. A one-hot split sends one category right; other splits of categories compare
statistics (:mod:`mace.models.trees.catboost_statistics`).
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mace.errors import UnsupportedModel
from mace.exact import Flags, Floats, Ints, float32_edge
from mace.forms import TreeEnsemble
from mace.models.deployed import Deployed, Native
from mace.models.estimator import check_width, class_labels
from mace.models.package import optional
from mace.models.preprocessing.ground_products import LEFT, expanded
from mace.models.trees.catboost_statistics import Element, routed, statistics
from mace.models.trees.forest import check_float32
from mace.models.trees.pack import Tree, join
from mace.space import Column, FeatureSpace

BINARY_LOSSES = ("Logloss", "CrossEntropy")
MULTICLASS_LOSSES = ("MultiClass",)
REGRESSION_LOSSES = ("RMSE", "MAE", "Quantile", "MAPE", "Huber", "LogCosh", "Expectile")
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
    splits = _Splits.of(saved, columns)
    outputs = len(base)
    if "oblivious_trees" in saved:
        trees = [_oblivious(tree, splits, outputs) for tree in saved["oblivious_trees"]]
    else:
        trees = [_nested(tree, splits, outputs) for tree in saved["trees"]]
    is_regressor = loss in REGRESSION_LOSSES
    made = TreeEnsemble(
        space=space,
        columns=columns,
        **join(trees, outputs=outputs, columns=len(columns) + len(splits.combined)),
        base=np.array(base, dtype=np.float64),
        link="identity" if is_regressor else "logistic" if loss in BINARY_LOSSES else "none",
        is_regressor=is_regressor,
    )
    return _with_combinations(made, splits.combined) if splits.combined else made


def _with_combinations(form: TreeEnsemble, combined: Sequence[Combination]) -> TreeEnsemble:
    """Return the ensemble with splits of features in place of those of combinations, which have columns of their own after the others."""
    columns, blocks, target = form.columns, {}, np.arange(len(form.left))
    routes = [routed(combination.elements, combination.lefts) for combination in combined]
    for node in np.flatnonzero((form.left >= 0) & (form.column >= len(columns))).tolist():
        first, blocks[node] = routes[form.column[node] - len(columns)]
        if not blocks[node]:
            target[node] = form.left[node] if first == LEFT else form.right[node]
    made = expanded(form, columns, form.space, blocks, target)
    return replace(made, columns=tuple(Column(each.name, each.feature, each.table) for each in made.columns))


def _check_loss(model: Any, family: str, loss: str) -> None:
    is_classifier = class_labels(model) is not None
    accepted = (*BINARY_LOSSES, *MULTICLASS_LOSSES) if is_classifier else REGRESSION_LOSSES
    if loss not in accepted:
        raise UnsupportedModel(f"cannot read {family}(loss_function={loss!r}). Supported: {', '.join(accepted)}.")
    threshold = float(dict(model.get_metadata().items()).get(THRESHOLD, 0.5))
    if loss in BINARY_LOSSES and threshold != 0.5:
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
    lefts: Flags | None = None


@dataclass(frozen=True, slots=True)
class Combination:
    """A split of several features: what they are, and which combinations go left."""

    elements: Sequence[Element]
    lefts: Flags


@dataclass(frozen=True, slots=True)
class _Splits:
    """Turns the export's splits into columns and edges; those of several features get columns after the others."""

    columns: Sequence[Column]
    numeric: list[dict[str, Any]]
    categorical: list[dict[str, Any]]
    hashes: dict[str, int]
    tables: dict[str, Any]
    statistics: dict[int, tuple[dict[str, Any], float]]
    combined: list[Combination] = field(default_factory=list)
    made: dict[int, _CatboostSplit] = field(default_factory=dict)

    @classmethod
    def of(cls, saved: dict[str, Any], columns: Sequence[Column]) -> _Splits:
        features = saved["features_info"]
        for kind in ("text_features", "embedding_features"):
            if features.get(kind):
                raise UnsupportedModel(f"cannot read CatBoost's model with {kind}. Leave them out.")
        hashes = {entry["value"]: entry["hash"] for entry in features.get("cat_features_hash", [])}
        numeric, categorical = features.get("float_features", []), features.get("categorical_features", [])
        return cls(columns, numeric, categorical, hashes, saved.get("ctr_data") or {}, _numbered(features))

    def __call__(self, split: dict[str, Any]) -> _CatboostSplit:
        kind = split["split_type"]
        if kind == "FloatFeature":
            entry = self.numeric[split["float_feature_index"]]
            missing_left = entry["nan_value_treatment"] != "AsTrue"
            return _CatboostSplit(entry["flat_feature_index"], _edge(split["border"]), missing_left)
        if kind == "OneHotFeature":
            return self._one_hot(self.categorical[split["cat_feature_index"]]["flat_feature_index"], split["value"])
        if kind == "OnlineCtr":
            return self._statistic(int(split["split_index"]), float(split["border"]))
        raise UnsupportedModel(f"cannot read CatBoost's splits of the kind {kind!r}. Fit it without such features.")

    def _statistic(self, number: int, border: float) -> _CatboostSplit:
        """Return a split of a statistic of one category, or of a combination, as splits of levels."""
        if number in self.made:
            return self.made[number]
        entry, own = self.statistics.get(number, (None, None))
        if entry is None or own != border:
            raise UnsupportedModel(
                "cannot read CatBoost's statistics of categories: splits and borders do not fit together."
            )
        elements = [self._element(each) for each in entry["elements"]]
        values = statistics(entry, self.tables[entry["identifier"]], elements)
        lefts = values <= np.float32(border)
        if len(elements) == 1 and elements[0].edge is None:
            position = next(k for k, column in enumerate(self.columns) if column.feature == elements[0].feature)
            self.made[number] = _CatboostSplit(position, 0.0, True, lefts)
        else:
            self.combined.append(Combination(elements, lefts))
            self.made[number] = _CatboostSplit(len(self.columns) + len(self.combined) - 1, 0.0, True)
        return self.made[number]

    def _element(self, entry: dict[str, Any]) -> Element:
        """Return an element of a combination: a category, a split of a number, or whether a category is one level."""
        kind = entry["combination_element"]
        if kind == "float_feature":
            number = self.numeric[entry["float_feature_index"]]
            edge = _edge(entry["border"])
            feature = self.columns[number["flat_feature_index"]].feature
            return Element(feature, (0, 1), edge, number["nan_value_treatment"] != "AsTrue")
        column = self.columns[self.categorical[entry["cat_feature_index"]]["flat_feature_index"]]
        hashes = self._hashes(column)
        if kind == "cat_feature_exact_value":
            return Element(column.feature, tuple(int(each == entry["value"] % 2**32) for each in hashes))
        if kind != "cat_feature_value":
            raise UnsupportedModel(
                f"cannot read CatBoost's combinations with {kind!r}. Fit it with max_ctr_complexity=1."
            )
        signed = (each - 2**32 if each >= 2**31 else each for each in hashes)
        return Element(column.feature, tuple(each % 2**64 for each in signed))

    def _hashes(self, column: Column) -> list[int]:
        """Return the hash of each level of a category; False and True are 0 and 1 to CatBoost."""
        assert isinstance(column, Native)
        return [self.hashes[str(int(label) if isinstance(label, bool) else label)] for label in column.labels]

    def _one_hot(self, position: int, value: int) -> _CatboostSplit:
        column = self.columns[position]
        lefts = np.array([each != value % 2**32 for each in self._hashes(column)])
        return _CatboostSplit(position, 0.0, True, lefts)


def _edge(border: float) -> float:
    """Return the greatest number that goes left at a border."""
    with np.errstate(over="ignore"):  # a border that splits off NaN alone is the largest float32
        return float(float32_edge(np.array([border], dtype=np.float32).astype(np.float64))[0])


def _numbered(features: dict[str, Any]) -> dict[int, tuple[dict[str, Any], float]]:
    """Return the statistic and the border of each split by its number: splits of numbers come first, then those of single levels."""
    before = sum(len(entry.get("borders") or ()) for entry in features.get("float_features", []))
    before += sum(len(entry.get("values") or ()) for entry in features.get("categorical_features", []))
    splits = [(entry, float(border)) for entry in features.get("ctrs") or [] for border in entry["borders"]]
    return dict(enumerate(splits, before))


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


def _tree(splits: Sequence[_CatboostSplit], left: Ints, right: Ints, value: Floats) -> Tree:
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
