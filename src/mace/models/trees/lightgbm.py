"""Reading LightGBM's models: ``LGBMClassifier``, ``LGBMRegressor`` and ``Booster``, from the text that LightGBM saves.

LightGBM compares in float64, x <= threshold goes left, and takes |x| up to float32's 1e-35 for 0. NaN goes the default way where the
node's missing type is NaN, else counts as 0. A set of categories at a node goes left; NaN and unknown categories go right. A booster
decides as the classifier does: the second class where its probability is above one half, or the class of the greatest probability. A
random forest (``boosting="rf"``) reports the mean of its trees, through the same link.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from mace.errors import UnsupportedModel
from mace.exact import Flags, Floats
from mace.forms import TreeEnsemble
from mace.models.deployed import Deployed
from mace.models.estimator import check_width, class_labels
from mace.models.trees.boosting import product_rounding
from mace.models.trees.pack import Tree, join, table_of
from mace.space import Column, FeatureSpace
from mace.space.features import Level

ZERO_THRESHOLD = float(np.float32(1e-35))
DOUBLE_SQUASH = Fraction(1, 2**48)
"""Beyond this distance of two sums the float64 sigmoid or softmax tells them apart."""

REGRESSION_OBJECTIVE_NAMES = ("regression", "regression_l1", "huber", "fair", "quantile", "mape")
CLASSIFYING_OBJECTIVES = ("binary", "multiclass", "multiclassova")

SATURATED_SUM = 20.0
"""Sums that may be larger in size are not told apart once the logistic function has rounded them to 1."""

CATEGORICAL, DEFAULT_LEFT = 1, 2
NO_MISSING, AS_ZERO, NAN = 0, 1, 2


@dataclass(frozen=True, slots=True)
class _SavedText:
    """What of a saved booster decides."""

    objective: str
    options: list[str]
    is_average: bool
    outputs: int
    names: tuple[str, ...]
    trees: list[dict[str, str]]
    categorical: list[int]
    categories: list[Sequence[Level]]

    @property
    def sigmoid(self) -> float:
        """By what a binary model multiplies its sum before the logistic function."""
        return next((float(o.partition(":")[2]) for o in self.options if o.startswith("sigmoid:")), 1.0)


# ---- asking


def deployed_estimator(model: Any) -> Deployed:
    """Return how an ``LGBMClassifier`` or ``LGBMRegressor`` is asked."""
    saved = _saved(model.booster_, iterations=1)
    names = _names(saved)
    return Deployed(
        predict=model.predict,
        probabilities=getattr(model, "predict_proba", None),
        classes=class_labels(model),
        labels=partial(class_labels, model),
        names=names,
        **_categories(saved, names),
        written=_written,
        is_by_order=True,
    )


def deployed_booster(booster: Any) -> Deployed:
    """Return how a ``Booster`` is asked: with its best iterations, as ``Booster.predict`` uses them."""
    saved = _saved(booster, iterations=1)
    names = _names(saved)

    def asked(predict: Any, probabilities: Any, classes: Any) -> Deployed:
        return Deployed(predict, probabilities, classes, names, written=_written, **_categories(saved, names))

    if saved.objective in REGRESSION_OBJECTIVE_NAMES:
        return asked(booster.predict, None, None)
    if saved.objective != "binary":
        return asked(lambda X: booster.predict(X).argmax(axis=1), booster.predict, tuple(range(saved.outputs)))
    return asked(
        lambda X: (booster.predict(X) > 0.5).astype(int),
        lambda X: np.column_stack([1 - booster.predict(X), booster.predict(X)]),
        (0, 1),
    )


def _written(name: str) -> str:
    """Return the name of a column as LightGBM keeps it: its files separate names by spaces."""
    return name.replace(" ", "_")


def _names(saved: _SavedText) -> tuple[str, ...] | None:
    """Return the training frame's columns; an array's are called Column_0, Column_1, ..."""
    return None if saved.names == tuple(f"Column_{j}" for j in range(len(saved.names))) else saved.names


def _categories(saved: _SavedText, names: tuple[str, ...] | None) -> dict[str, Any]:
    """Return the columns that are pandas categories, with their categories; where some are ordered, which are numbers to the trees, or
    others were named in categorical_feature, it is not saved which they are, and the space must tell."""
    if not saved.categories or names is None:
        return {}
    if len(saved.categorical) == len(saved.categories):
        return {"native": dict(zip(saved.categorical, saved.categories, strict=True))}
    return {"listed": saved.categories, "is_probed": True}


# ---- reading


def read_estimator(model: Any, space: FeatureSpace, columns: tuple[Column, ...]) -> TreeEnsemble:
    """Return the form of an ``LGBMClassifier`` or ``LGBMRegressor``; after early stopping, of its best iterations, as it predicts."""
    family = type(model).__name__
    _check_parameters(model.get_params(), family)
    saved, classes = _saved(model.booster_), class_labels(model)
    _check(saved, family, REGRESSION_OBJECTIVE_NAMES if classes is None else CLASSIFYING_OBJECTIVES)
    if classes is not None and len(classes) < 2:
        raise UnsupportedModel(f"{family} was fitted on a single class. Fit it on data with two or more.")
    if classes is not None and len(classes) == 2 and saved.outputs > 1:
        raise UnsupportedModel(
            f"cannot read {family}(objective={saved.objective!r}) of two classes: its predict_proba takes two columns for one. "
            "Fit it with objective='binary'."
        )
    return _form(saved, family, space, columns)


def read_booster(booster: Any, space: FeatureSpace, columns: tuple[Column, ...]) -> TreeEnsemble:
    """Return the form of a ``Booster`` with its best iterations, as ``Booster.predict`` uses them."""
    _check_parameters(booster.params, "Booster")
    saved = _saved(booster)
    _check(saved, "Booster", (*CLASSIFYING_OBJECTIVES, *REGRESSION_OBJECTIVE_NAMES))
    return _form(saved, "Booster", space, columns)


def _check_parameters(parameters: dict[str, Any], family: str) -> None:
    if parameters.get("pred_early_stop"):
        raise UnsupportedModel(
            f"cannot read {family}(pred_early_stop=True): it stops adding trees where it seems sure. Set it to False."
        )


def _form(saved: _SavedText, family: str, space: FeatureSpace, columns: tuple[Column, ...]) -> TreeEnsemble:
    check_width(family, len(saved.names), columns)
    is_regressor = saved.objective in REGRESSION_OBJECTIVE_NAMES
    reader = _Reader(family, space, columns)
    scale = saved.sigmoid / (len(saved.trees) // saved.outputs if saved.is_average else 1)
    trees = [reader.tree(entries, number % saved.outputs, scale) for number, entries in enumerate(saved.trees)]
    made = TreeEnsemble(
        space=space,
        columns=columns,
        **join(trees, outputs=saved.outputs, columns=len(columns)),
        squash=(Fraction(0) if is_regressor else DOUBLE_SQUASH)
        + product_rounding(scale, [tree.value for tree in trees]),
        link="identity" if is_regressor else "logistic" if saved.objective == "binary" else "none",
        is_regressor=is_regressor,
    )
    return _one_against_the_rest(made, family) if saved.objective == "multiclassova" else made


def _one_against_the_rest(form: TreeEnsemble, family: str) -> TreeEnsemble:
    """Return sums that are compared after a logistic function each, which flattens large ones: 1 - p falls as exp(-sum)."""
    largest = float(form.magnitude.max())
    if largest > SATURATED_SUM:
        raise UnsupportedModel(
            f"cannot read {family}(objective='multiclassova'): its sums may be as large as {largest:.3g}, above {SATURATED_SUM:g}, where "
            "probabilities are not told from 1. Fit fewer trees, or with objective='multiclass'."
        )
    return replace(form, squash=form.squash + DOUBLE_SQUASH * Fraction(math.exp(largest)))


@dataclass(frozen=True, slots=True)
class _Reader:
    """Turns the trees of one model into arrays."""

    family: str
    space: FeatureSpace
    columns: tuple[Column, ...]

    def tree(self, entries: dict[str, str], output: int, scale: float) -> Tree:
        """Return one tree; LightGBM counts leaves apart, as -1, -2, ...: here they follow the inner nodes."""
        value = _numbers(entries["leaf_value"]) * scale
        inner = len(value) - 1
        if inner == 0:
            return _leaf(float(value[0]), output)
        column, threshold, kind, left, right = (
            _numbers(entries[key])
            for key in ("split_feature", "threshold", "decision_type", "left_child", "right_child")
        )
        kinds = kind.astype(np.int64)
        pad = np.zeros(len(value))
        lefts, missing_left = {}, np.zeros(inner + len(value), dtype=bool)
        for node in range(inner):
            split = _LightgbmSplit.of(float(threshold[node]), int(kinds[node]), entries)
            missing_left[node] = split.goes_left(math.nan)
            levels = self._levels_left(self._column(int(column[node])), split)
            if levels is not None:
                lefts[node] = levels
        return Tree(
            column=np.concatenate([column, pad]).astype(np.int64),
            edge=np.concatenate([_edges(threshold), pad]),
            left=np.concatenate([np.where(left < 0, inner - left - 1, left), pad - 1]).astype(np.int64),
            right=np.concatenate([np.where(right < 0, inner - right - 1, right), pad - 1]).astype(np.int64),
            missing_left=missing_left,
            value=np.concatenate([np.zeros(inner), value]),
            output=output,
            lefts=lefts,
        )

    def _column(self, position: int) -> Column:
        if not 0 <= position < len(self.columns):
            raise UnsupportedModel("the tree is damaged: a node splits on a column that does not exist.")
        return self.columns[position]

    def _levels_left(self, column: Column, split: _LightgbmSplit) -> Flags | None:
        """Return which levels go left where a threshold does not say it; ``None`` where it does."""
        if column.table is not None:
            is_plain = split.members is None and split.missing != AS_ZERO and not np.isnan(column.table).any()
            return None if is_plain else np.array([split.goes_left(value) for value in column.table])
        if split.members is not None:
            table_of(column, self.family)
        if split.missing == AS_ZERO and split.default_left != (split.threshold >= 0) and self._may_be_zero(column):
            raise UnsupportedModel(
                f"cannot read {self.family}(zero_as_missing=True): 0 in {column.name!r} goes another way than its neighbours. "
                "Fit it with zero_as_missing=False, and NaN for what is missing."
            )
        return None

    def _may_be_zero(self, column: Column) -> bool:
        feature = self.space[self.space.names[column.feature]]
        return getattr(feature, "low", 0) <= ZERO_THRESHOLD and getattr(feature, "high", 0) >= -ZERO_THRESHOLD


@dataclass(frozen=True, slots=True)
class _LightgbmSplit:
    """One decision: a threshold, or a set of categories that go left."""

    threshold: float
    default_left: bool
    missing: int
    members: frozenset[int] | None

    @classmethod
    def of(cls, threshold: float, kind: int, entries: dict[str, str]) -> _LightgbmSplit:
        members = _members(int(threshold), entries) if kind & CATEGORICAL else None
        return cls(threshold, bool(kind & DEFAULT_LEFT), kind >> 2 & 3, members)

    def goes_left(self, value: float) -> bool:
        """Return LightGBM's decision on a number."""
        if self.members is not None:
            return not math.isnan(value) and value > -1 and int(value) in self.members
        is_zero = math.isnan(value) or abs(value) <= ZERO_THRESHOLD
        if (math.isnan(value) and self.missing == NAN) or (is_zero and self.missing == AS_ZERO):
            return self.default_left
        return (0.0 if is_zero else value) <= self.threshold


def _members(position: int, entries: dict[str, str]) -> frozenset[int]:
    ends = [int(end) for end in entries["cat_boundaries"].split()]
    words = [int(word) for word in entries["cat_threshold"].split()][ends[position] : ends[position + 1]]
    return frozenset(32 * place + bit for place, word in enumerate(words) for bit in range(32) if word >> bit & 1)


def _edges(thresholds: Floats) -> Floats:
    """Return the greatest number that goes left at each threshold: numbers of at most 1e-35 count as 0."""
    beside_zero = np.where(thresholds >= 0, ZERO_THRESHOLD, np.nextafter(-ZERO_THRESHOLD, -np.inf))
    edges: Floats = np.where(np.abs(thresholds) <= ZERO_THRESHOLD, beside_zero, thresholds)
    return edges


def _leaf(value: float, output: int) -> Tree:
    none = np.full(1, -1, dtype=np.int64)
    return Tree(none, np.zeros(1), none, none, np.zeros(1, dtype=bool), np.array([value]), output)


# ---- the saved text


def _saved(booster: Any, *, iterations: int | None = None) -> _SavedText:
    """Return the parsed text of so many iterations, by default of those that ``predict`` uses."""
    text, _, tail = booster.model_to_string(num_iteration=iterations).partition("\nend of trees")
    head, *sections = text.split("\nTree=")
    header = _entries(head)
    objective, *options = header.get("objective", "custom").split()
    listed = next((line for line in tail.split("\n") if line.startswith("[categorical_feature:")), "").strip("[]")
    return _SavedText(
        objective=objective,
        options=options,
        is_average="average_output" in head.split("\n"),
        outputs=int(header["num_tree_per_iteration"]),
        names=tuple(header["feature_names"].split(" ")),
        trees=[_entries(section) for section in sections],
        categorical=[int(number) for number in listed.partition(":")[2].split(",") if number.strip()],
        categories=booster.pandas_categorical or [],
    )


def _check(saved: _SavedText, family: str, accepted: Sequence[str]) -> None:
    """Refuse what is not a sum of constant leaves, or is reported through another link."""
    if saved.objective not in accepted:
        raise UnsupportedModel(
            f"cannot read {family}(objective={saved.objective!r}). Supported: {', '.join(accepted)}."
        )
    if "sqrt" in saved.options:
        raise UnsupportedModel(f"cannot read {family}(reg_sqrt=True): it reports the square of a sum. Fit it without.")
    if any(tree.get("is_linear") == "1" for tree in saved.trees):
        raise UnsupportedModel(f"cannot read {family}(linear_tree=True): its leaves are linear models. Fit it without.")


def _entries(section: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in section.split("\n") if "=" in line)


def _numbers(text: str) -> Floats:
    return np.array(text.split(), dtype=np.float64)
