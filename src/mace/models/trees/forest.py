"""Reading scikit-learn's decision trees and forests, for classes and for numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mace.errors import UnsupportedModel
from mace.exact import Floats, float32_edge
from mace.forms import TreeEnsemble
from mace.models.estimator import check_columns, several_outputs
from mace.models.trees.pack import NO_NUMBER, Arrays, check_finite_leaves, check_nodes
from mace.space import Column, FeatureSpace

FLOAT32_MAX = float(np.finfo(np.float32).max)


def read_tree(model: Any, space: FeatureSpace, columns: tuple[Column, ...]) -> TreeEnsemble:
    """Return the form of a ``DecisionTreeClassifier`` or ``DecisionTreeRegressor``."""
    return _ensemble([model], model, space, columns, fixed_order=True)


def read_forest(model: Any, space: FeatureSpace, columns: tuple[Column, ...]) -> TreeEnsemble:
    """Return the form of a forest that averages its trees' probabilities or predictions.

    With ``n_jobs`` other than 1 the threads add their trees in whatever order they finish, so the order is not fixed.
    """
    return _ensemble(model.estimators_, model, space, columns, fixed_order=model.n_jobs in (None, 1))


def _ensemble(
    estimators: list[Any], model: Any, space: FeatureSpace, columns: tuple[Column, ...], *, fixed_order: bool
) -> TreeEnsemble:
    check_columns(model, columns, space, missing=accept_missing(estimators))
    check_float32(type(model).__name__, space)
    if model.n_outputs_ != 1:
        raise several_outputs(model)
    trees = [estimator.tree_ for estimator in estimators]
    return TreeEnsemble(
        space=space,
        columns=columns,
        **join_trees(trees, [tree.value[:, 0, :] for tree in trees], columns=len(columns)),
        fixed_order=fixed_order,
        link="mean",
        is_regressor=not hasattr(model, "classes_"),
    )


def join_trees(trees: Sequence[Any], values: Sequence[Floats], *, columns: int) -> Arrays:
    """Return scikit-learn's trees in one set of arrays, with ``values`` (nodes x outputs) for what each node adds."""
    for tree in trees:
        check_tree(tree, columns)
    sizes = np.array([tree.node_count for tree in trees])
    roots = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
    leaf = np.concatenate([tree.children_left for tree in trees]) < 0
    shift = np.repeat(roots, sizes)
    edge = float32_edge(np.concatenate([tree.threshold for tree in trees]))
    value = np.concatenate(values)
    check_finite_leaves(value)
    return Arrays(
        roots=roots,
        column=np.where(leaf, 0, np.concatenate([tree.feature for tree in trees])).astype(np.int64),
        edge=np.where(leaf, 0.0, edge),
        left=np.where(leaf, -1, np.concatenate([tree.children_left for tree in trees]) + shift),
        right=np.where(leaf, -1, np.concatenate([tree.children_right for tree in trees]) + shift),
        missing_left=np.concatenate([tree.missing_go_to_left for tree in trees]).astype(bool),
        value=value,
        subset=np.full(len(leaf), -1, dtype=np.int64),
        subsets=(),
    )


def check_tree(tree: Any, columns: int) -> None:
    """Refuse a tree of scikit-learn that is damaged, before anything walks it: the library's own code would not notice."""
    if not 0 < tree.node_count <= tree.capacity:
        raise UnsupportedModel("the tree is damaged: it has another number of nodes than it says.")
    check_nodes(tree.children_left, tree.children_right, tree.feature, columns=columns)
    if not (tree.threshold[tree.children_left >= 0] > -np.inf).all():
        raise UnsupportedModel(NO_NUMBER)


def accept_missing(estimators: Sequence[Any]) -> bool:
    """Return whether every one of these trees takes NaN."""
    return all(estimator.__sklearn_tags__().input_tags.allow_nan for estimator in estimators)


def check_float32(family: str, space: FeatureSpace) -> None:
    """Refuse a range that overflows float32, in which the model compares."""
    for name, feature in space.items():
        for bound in (getattr(feature, "low", 0), getattr(feature, "high", 0)):
            if abs(bound) > FLOAT32_MAX:
                raise UnsupportedModel(
                    f"{name!r} reaches {bound}, beyond float32, and {family} computes in float32. Narrow its range."
                )
