"""Trees as a library writes them, joined into the arrays of a tree ensemble."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from mace.errors import UnsupportedModel
from mace.exact import Flags, Floats, Ints
from mace.forms import TreeEnsemble
from mace.space import Column

OUTSIDE = "the tree is damaged: a node's child lies outside the tree or above it, or has two parents."
NO_NUMBER = "the tree is damaged: a node's threshold is no number."


@dataclass(frozen=True, slots=True)
class Tree:
    """One tree: node arrays in any order with the root first, a leaf marked by ``left`` -1.

    Attributes
    ----------
    column, edge, left, right, missing_left
        As in :class:`~mace.forms.TreeEnsemble`, with children counted within the tree.
    value : float array
        What each leaf adds: to one output, or (nodes x outputs) to each.
    output : int
        Which output, where it is one.
    lefts : mapping of int to bool array
        For nodes that split levels: which levels go left.
    """

    column: Ints
    edge: Floats
    left: Ints
    right: Ints
    missing_left: Flags
    value: Floats
    output: int = 0
    lefts: Mapping[int, Flags] = field(default_factory=dict)


class Arrays(TypedDict):
    """The node arrays of a tree ensemble."""

    roots: Ints
    column: Ints
    edge: Floats
    left: Ints
    right: Ints
    missing_left: Flags
    value: Floats
    subset: Ints
    subsets: tuple[Flags, ...]


def join(trees: Sequence[Tree], *, outputs: int, columns: int) -> Arrays:
    """Return all trees in one set of arrays, each tree's nodes from the root down; nodes that no row reaches are left out.

    Raises
    ------
    UnsupportedModel
        There is no tree, or a node points outside its tree, back up, or at no column: a damaged or hostile file.
    """
    if not trees:
        raise UnsupportedModel(
            "the model has no trees: it gives every row the same answer. Fit it for more iterations."
        )
    orders = [_from_the_root(tree) for tree in trees]
    sizes = np.array([len(order) for order in orders])
    roots = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
    value = np.zeros((int(sizes.sum()), outputs))
    subset = np.full(len(value), -1, dtype=np.int64)
    subsets: dict[tuple[bool, ...], int] = {}
    lefts, rights = [], []
    for tree, order, root in zip(trees, orders, roots, strict=True):
        place = np.full(len(tree.left), -1, dtype=np.int64)
        place[order] = np.arange(root, root + len(order))
        leaf = tree.left[order] < 0
        lefts.append(np.where(leaf, -1, place[tree.left[order]]))
        rights.append(np.where(leaf, -1, place[tree.right[order]]))
        leaves = slice(None) if tree.value.ndim == 2 else slice(tree.output, tree.output + 1)
        added = tree.value[order].reshape(len(order), -1)
        value[root : root + len(order), leaves] = np.where(leaf[:, None], added, 0.0)
        for node, goes_left in tree.lefts.items():
            if place[node] >= 0:
                subset[place[node]] = subsets.setdefault(tuple(map(bool, goes_left)), len(subsets))
    left = np.concatenate(lefts)
    # No number is at most minus infinity, nor at most the least float: the form keeps infinity for "every number".
    edge = np.maximum(_picked([tree.edge for tree in trees], orders), np.finfo(np.float64).min)
    column = np.where(left < 0, 0, _picked([tree.column for tree in trees], orders))
    if ((column < 0) | (column >= columns)).any():
        raise UnsupportedModel("the tree is damaged: a node splits on a column that does not exist.")
    if np.isnan(edge[(left >= 0) & (subset < 0)]).any():
        raise UnsupportedModel(NO_NUMBER)
    check_finite_leaves(value)
    return Arrays(
        roots=roots,
        column=column.astype(np.int64),
        edge=np.where((left < 0) | (subset >= 0), 0.0, edge),
        left=left,
        right=np.concatenate(rights),
        missing_left=_picked([tree.missing_left for tree in trees], orders).astype(bool) & (left >= 0),
        value=value,
        subset=subset,
        subsets=tuple(np.array(levels) for levels in subsets),
    )


def side_by_side(forms: Sequence[TreeEnsemble], values: Sequence[Floats]) -> Arrays:
    """Return the nodes of several ensembles in one set of arrays, with these values of their leaves; columns lie behind each other."""
    nodes, columns = _begins(len(form.left) for form in forms), _begins(len(form.columns) for form in forms)
    # Copies of one ensemble share its subsets.
    kinds = {id(form.subsets): form.subsets for form in forms}
    subsets = dict(zip(kinds, _begins(map(len, kinds.values())), strict=True))

    def moved(arrays: Iterable[Ints], begins: Sequence[int]) -> Ints:
        return np.concatenate([np.where(own < 0, -1, own + at) for own, at in zip(arrays, begins, strict=True)])

    return Arrays(
        roots=moved((form.roots for form in forms), nodes),
        column=moved((form.column for form in forms), columns),
        edge=np.concatenate([form.edge for form in forms]),
        left=moved((form.left for form in forms), nodes),
        right=moved((form.right for form in forms), nodes),
        missing_left=np.concatenate([form.missing_left for form in forms]),
        value=np.concatenate(values),
        subset=moved((form.subset for form in forms), [subsets[id(form.subsets)] for form in forms]),
        subsets=tuple(itertools.chain(*kinds.values())),
    )


def own_outputs(forms: Sequence[TreeEnsemble]) -> list[Floats]:
    """Return the values of the leaves of each ensemble, to outputs of its own: those of all lie one after the other."""
    begins = [*_begins(form.outputs for form in forms), sum(form.outputs for form in forms)]
    ends = zip(forms, begins, begins[1:], strict=False)
    return [np.pad(form.value, ((0, 0), (first, begins[-1] - last))) for form, first, last in ends]


def _begins(sizes: Iterable[int]) -> list[int]:
    return list(itertools.accumulate(sizes, initial=0))[:-1]


def table_of(column: Column, family: str) -> tuple[float, ...]:
    """Return what a column that is categorical to a model is at each level; one that is a number in the space is refused."""
    if column.table is None:
        raise UnsupportedModel(
            f"column {column.name!r} is categorical to {family} and a number in the space. "
            "Declare its levels: mace.categorical([...]) or mace.ordinal([...])."
        )
    return column.table


def check_nodes(left: Ints, right: Ints, column: Ints, *, columns: int) -> None:
    """Refuse a tree whose nodes point outside it, back up, twice at the same node, or at no column: a damaged or hostile file.

    Parameters
    ----------
    left, right, column : int arrays, one entry a node
        The children, and the column that is compared; a leaf has ``left`` -1. A child comes after its parent.
    columns : int
        How many columns there are.
    """
    size = len(left)
    inner = np.flatnonzero(left >= 0)
    below = np.concatenate([left[inner], right[inner]])
    if (below <= np.concatenate([inner, inner])).any() or (below >= size).any() or (left[left < 0] != -1).any():
        raise UnsupportedModel(OUTSIDE)
    if len(below) != size - 1 or (np.bincount(below, minlength=size)[1:] != 1).any():
        raise UnsupportedModel(OUTSIDE)
    if ((column[inner] < 0) | (column[inner] >= columns)).any():
        raise UnsupportedModel("the tree is damaged: a node splits on a column that does not exist.")


def check_finite_leaves(value: Floats) -> None:
    """Refuse leaves that hold NaN or infinity: their sums decide nothing."""
    if not np.isfinite(value).all():
        raise UnsupportedModel("a leaf of the model is NaN or infinite. Fit it on finite data, with finite parameters.")


def _picked(arrays: Sequence[NDArray[Any]], orders: Sequence[Ints]) -> NDArray[Any]:
    return np.concatenate([array[order] for array, order in zip(arrays, orders, strict=True)])


def _from_the_root(tree: Tree) -> Ints:
    """Return the nodes in reach, level by level."""
    size = len(tree.left)
    arrays = (tree.column, tree.edge, tree.right, tree.missing_left, tree.value)
    if not size or any(len(array) != size for array in arrays):
        raise UnsupportedModel("the tree is damaged: its nodes' arrays are not of one length.")
    levels = [np.zeros(1, dtype=np.int64)]
    met = np.zeros(size, dtype=bool)
    met[0] = True
    while len(inner := levels[-1][tree.left[levels[-1]] >= 0]):
        below = np.concatenate([tree.left[inner], tree.right[inner]])
        if (below <= 0).any() or (below >= size).any() or met[below].any() or len(set(below.tolist())) != len(below):
            raise UnsupportedModel(OUTSIDE)
        met[below] = True
        levels.append(below)
    return np.concatenate(levels)
