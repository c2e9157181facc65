"""The least and the greatest score of a model in a box."""

from __future__ import annotations

import math
from weakref import WeakKeyDictionary

import numpy as np

from mace.exact import UNIT, Flags, Floats, Ints
from mace.forms.form import Box
from mace.forms.network import Network
from mace.forms.trees import TreeEnsemble

_LAYERS: WeakKeyDictionary[TreeEnsemble, list[Ints]] = WeakKeyDictionary()


def scores_in(form: Network | TreeEnsemble, box: Box) -> tuple[Floats, Floats]:
    """Return numbers that no score is below, or above, for rows of a box in which nothing is missing.

    Of trees these are the least and the greatest leaves that some row may reach, added up, widened for their rounding.
    """
    if isinstance(form, Network):
        return form.score_bounds(box)
    is_leaf = (form.left < 0) & _reached(form, box)
    low = np.minimum.reduceat(np.where(is_leaf[:, None], form.value, np.inf), form.roots, axis=0).sum(axis=0)
    high = np.maximum.reduceat(np.where(is_leaf[:, None], form.value, -np.inf), form.roots, axis=0).sum(axis=0)
    room = 8 * (len(form.roots) + 8) * float(UNIT) * form.magnitude
    return low + form.base - room, high + form.base + room


def _reached(form: TreeEnsemble, box: Box) -> Flags:
    """Return the nodes that some row of a box may reach; where that is not clear, also others."""
    low, high, is_unclear = _column_ends(form, box)
    single = np.array([a == b for a, b in box])
    reached = np.zeros(len(form.left), dtype=bool)
    reached[form.roots] = True
    for layer in _layers(form):
        nodes = layer[reached[layer]]
        column, edge = form.column[nodes], form.edge[nodes]
        goes_left, goes_right = low[column] <= edge, high[column] > edge
        for k in np.flatnonzero((form.subset[nodes] >= 0) | is_unclear[column]):
            feature = form.columns[column[k]].feature
            goes_left[k] = goes_right[k] = True
            if form.subset[nodes[k]] >= 0 and single[feature]:
                goes_left[k] = form.subsets[form.subset[nodes[k]]][int(box[feature][0])]
                goes_right[k] = not goes_left[k]
        reached[form.left[nodes[goes_left]]] = True
        reached[form.right[nodes[goes_right]]] = True
    return reached


def _column_ends(form: TreeEnsemble, box: Box) -> tuple[Floats, Floats, Flags]:
    """Return the least and the greatest number of each column in a box, and where a level that is missing makes that unclear."""
    low, high = np.zeros(len(form.columns)), np.zeros(len(form.columns))
    is_unclear = np.zeros(len(form.columns), dtype=bool)
    for k, column in enumerate(form.columns):
        first, last = box[column.feature]
        if column.table is None:
            low[k], high[k] = math.nextafter(float(first), -math.inf), math.nextafter(float(last), math.inf)
            low[k], high[k] = (float(first), float(last)) if _are_floats(first, last) else (low[k], high[k])
        else:
            numbers = column.table[int(first) : int(last) + 1]
            is_unclear[k] = any(map(math.isnan, numbers))
            low[k], high[k] = (-math.inf, math.inf) if is_unclear[k] else (min(numbers), max(numbers))
    return low, high, is_unclear


def _are_floats(first: object, last: object) -> bool:
    return first == float(first) and last == float(last)  # type: ignore[arg-type]


def _layers(form: TreeEnsemble) -> list[Ints]:
    """Return the inner nodes of all trees, from the roots down."""
    if form not in _LAYERS:
        found, nodes = list[Ints](), form.roots[form.left[form.roots] >= 0]
        while len(nodes):
            found.append(nodes)
            below = np.concatenate([form.left[nodes], form.right[nodes]])
            nodes = below[form.left[below] >= 0]
        _LAYERS[form] = found
    return _LAYERS[form]
