"""Linear models whose columns are all steps, as tree ensembles over the original features.

Bins and thresholds of a number, levels, and whole numbers of a moderate range have finitely many values. A linear score of such
columns is a sum of one step function a feature: an ensemble with one tree a feature, whose leaves are cells. Products of features add a
tree for each set of features that they read, whose leaves are combinations of values. On a cell every column is the same float, so
the deployed model computes one score for all of it, and cells are cut on the very floats on which the fitted steps change
(:mod:`mace.models.preprocessing.crossings`).

The library adds up n products and the intercept in an order of its own; a leaf holds the sum of its feature's products. With
M the greatest Σ|w||x| + |b| over all cells, the library's sum is off the exact one by at most γ_{n+3+steps} M, and so are the sums of the
stored leaves. Both go into ``squash``, twice where two scores are compared; inside that band the real model is asked, one row
at a time. Where all weights and columns are small multiples of a coarse power of two (a perceptron's counts, on one-hot bins),
nothing is rounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import cast

import numpy as np

from mace.errors import UnsupportedModel
from mace.exact import UNIT, Floats, Ints, gamma, product, rounded_in
from mace.forms import Network, TreeEnsemble
from mace.forms.network import UNDERFLOW, UNDERFLOW_SINGLE
from mace.forms.trees import Link
from mace.models.preprocessing.crossings import LONGEST_RANGE, cuts_on, finite, sides
from mace.models.preprocessing.ground_products import combinations, grid, products
from mace.models.preprocessing.traced import Traced, all_values, dtype_of, is_leveled
from mace.space import Column, Feature, FeatureSpace, Integer, Real

MOST_CELLS_OF_FEATURE = 8192
"""The most cells that a feature is cut into."""

SHORT_BINARY = 2.0**10
"""Numbers below this that are multiples of its inverse have products with 40 binary digits at most."""

LINKS: dict[str, Link] = {"sigmoid": "logistic", "clip": "clip", "identity": "identity", "none": "none"}


@dataclass(frozen=True, slots=True)
class Cells:
    """A feature cut into cells, on each of which its columns are constant.

    Attributes
    ----------
    edges : float array
        The values (of levels: the positions) after which a new cell begins.
    columns : float array, cells x columns
        What the model is given there; where values may be missing, one more row says what it is given of these.
    may_miss : bool
        Whether there is such a row.
    """

    edges: Floats
    columns: Floats
    may_miss: bool


def ground_steps(form: Network, space: FeatureSpace) -> TreeEnsemble | None:
    """Return a linear model as an ensemble of step functions; ``None`` where it is not linear, or some column is not a step."""
    columns = cast(tuple[Traced, ...], form.columns)
    if len(form.weights) != 1 or any(column.is_mixed and column.joint is None for column in columns):
        return None
    own: dict[tuple[int, ...], list[int]] = {}
    for k, column in enumerate(columns):
        own.setdefault(column.reads or (column.feature,), []).append(k)
    cells: dict[tuple[int, ...], list[Cells]] = {}
    for reads, which in sorted(own.items()):
        made = (
            _joint_cells([columns[k] for k in which], space, reads)
            if len(reads) > 1
            else _cells([columns[k] for k in which], space)
        )
        if made is None:
            return None
        cells[reads] = made if isinstance(made, list) else [made]
    trees = [_tree(each, form.weights[0][:, own[reads]]) for reads, each in cells.items()]
    starts = np.cumsum([0, *(len(tree.edge) for tree in trees[:-1])])
    used = sorted({j for reads in cells for j in reads})
    asked = [
        np.array([used.index(j) for j in reads], dtype=np.int64)[tree.asked]
        for reads, tree in zip(cells, trees, strict=True)
    ]
    return TreeEnsemble(
        space=space,
        columns=tuple(Column(space.names[j], j, _positions(space, j)) for j in used),
        roots=starts.astype(np.int64),
        column=np.concatenate(asked),
        edge=np.concatenate([tree.edge for tree in trees]),
        left=np.concatenate(
            [np.where(tree.left < 0, -1, tree.left + s) for tree, s in zip(trees, starts, strict=True)]
        ),
        right=np.concatenate(
            [np.where(tree.left < 0, -1, tree.right + s) for tree, s in zip(trees, starts, strict=True)]
        ),
        missing_left=np.zeros(sum(len(tree.edge) for tree in trees), dtype=bool),
        value=np.concatenate([tree.value for tree in trees]),
        base=form.biases[0].astype(np.float64),
        is_blockwise=True,
        squash=form.squash
        + _rounding(
            form, [each[-1].columns for each in cells.values()], np.sum([tree.largest for tree in trees], axis=0)
        ),
        ties_last=form.ties_last,
        link=LINKS[form.link],
        unit=form.unit,
        is_regressor=form.is_regressor,
    )


def _rounding(form: Network, columns: list[Floats], largest: Floats) -> Fraction:
    """Return how far apart two scores, or a score and 0, must be for the sums not to confuse them."""
    is_double = form.unit == UNIT
    if is_double and all(map(_is_coarse, (form.weights[0], form.biases[0], *columns))) and form.sizes is None:
        return Fraction(0)
    sizes = form.sizes[0] if form.sizes is not None else np.abs(form.biases[0])
    count = form.weights[0].shape[1]
    relative, tiny = 2 * gamma(count + 3 + form.steps, form.unit), UNDERFLOW if is_double else UNDERFLOW_SINGLE
    worst: Fraction = relative * Fraction(float((largest + sizes).max())) + Fraction(tiny) * (1 + count)
    return (1 if form.is_binary else 2) * worst * (1 + Fraction(1, 2**20))


def _is_coarse(numbers: Floats) -> bool:
    """Return whether products of such numbers, and sums of thousands of these, are exact."""
    scaled = numbers * SHORT_BINARY
    return bool((scaled == np.floor(scaled)).all() and (np.abs(numbers) < SHORT_BINARY).all())


def _positions(space: FeatureSpace, j: int) -> tuple[float, ...] | None:
    """Return the table that gives a level's position; ``None`` for a number."""
    feature = list(space.values())[j]
    return tuple(map(float, range(len(feature.levels)))) if hasattr(feature, "levels") else None


# ---- cells


def _cells(columns: Sequence[Traced], space: FeatureSpace) -> Cells | None:
    """Return the cells of the one feature that some columns read; ``None`` where a column has no cells."""
    feature = list(space.values())[columns[0].feature]
    if is_leveled(feature):
        table = np.column_stack([np.array(column.table, dtype=np.float64) for column in columns])
        return _runs(table, np.arange(len(table), dtype=np.float64), None)
    assert isinstance(feature, Real | Integer)
    missing = _at_missing(columns, space) if feature.missing else None
    if isinstance(feature, Integer) and feature.high - feature.low < LONGEST_RANGE:
        numbers = all_values(feature)
        values = np.column_stack([finite(column, space, numbers) for column in columns])
        return _runs(values, numbers.astype(np.float64), missing)
    cuts = [_cuts(column) for column in columns]
    if any(each is None for each in cuts):
        return None
    found = [sides(source, space, at) for source, at in (each for each in cuts if each is not None) if len(at)]
    edges = np.unique(np.concatenate([np.empty(0), *(edge for each in found for edge in each.edges)]))
    if len(edges) >= MOST_CELLS_OF_FEATURE:
        return None
    return _asked(columns, space, feature, edges, missing)


def _joint_cells(columns: Sequence[Traced], space: FeatureSpace, reads: tuple[int, ...]) -> list[Cells] | None:
    """Return the values of each feature that some products read; the last holds the columns of all combinations. ``None`` where
    there are too many."""
    count = combinations(space, reads)
    if count is None or count > MOST_CELLS_OF_FEATURE:
        return None
    given = grid(space, reads)
    values = np.column_stack([products(column, given) for column in columns])
    features = [list(space.values())[j] for j in reads]
    return [
        _made(
            _numbers(feature)[:-1],
            values,
            np.empty((0, values.shape[1])) if feature.missing and not is_leveled(feature) else None,
        )
        for feature in features
    ]


def _numbers(feature: Feature) -> Floats:
    """Return the positions of levels, or the whole numbers."""
    return (
        np.arange(len(all_values(feature)), dtype=np.float64)
        if is_leveled(feature)
        else all_values(feature).astype(np.float64)
    )


def _cuts(column: Traced) -> tuple[Traced, Floats] | None:
    """Return the column that a step function is cut by, and where; ``None`` where it is no step function."""
    found, at = None, column
    while at.parents:
        if at.shape.is_flat:
            found = at.parents[0], cuts_on(at.shape.cuts, at.parents[0].floats)
        at = at.parents[0]
    return found


def _at_missing(columns: Sequence[Traced], space: FeatureSpace) -> Floats:
    """Return what the model is given of a missing value, which must be filled."""
    nothing = np.array([np.nan])
    values = np.array([np.asarray(column.values(nothing), dtype=np.float64)[0] for column in columns])
    if not np.isfinite(values).all():
        raise UnsupportedModel(
            f"a missing value of {space.names[columns[0].feature]!r} reaches the model, which takes none. "
            "Put a SimpleImputer before it, or set missing=False."
        )
    return values


def _runs(values: Floats, numbers: Floats, missing: Floats | None) -> Cells | None:
    """Return the cells of a feature whose every value is known: stretches of the same columns."""
    begins = np.concatenate([[True], (values[1:] != values[:-1]).any(axis=1)])
    if begins.sum() > MOST_CELLS_OF_FEATURE:
        return None
    return _made(numbers[:-1][begins[1:]], values[begins], missing)


def _asked(
    columns: Sequence[Traced], space: FeatureSpace, feature: Real | Integer, edges: Floats, missing: Floats | None
) -> Cells:
    """Return the cells between edges, after asking the fitted steps at both ends and in the middle of each."""
    if isinstance(feature, Integer):
        edges = np.unique(np.floor(edges))
        lows, highs = np.concatenate([[feature.low], edges + 1]), np.concatenate([edges, [feature.high]])
    else:
        lows, highs = rounded_in(
            np.concatenate([[feature.low], np.nextafter(edges, np.inf)]),
            np.concatenate([edges, [feature.high]]),
            feature.floats,
        )
    middles = lows + (highs - lows) / 2
    kind = dtype_of(feature)
    asked = [np.column_stack([finite(c, space, x.astype(kind)) for c in columns]) for x in (lows, highs, middles)]
    if not (np.array_equal(asked[0], asked[1]) and np.array_equal(asked[0], asked[2])):
        raise UnsupportedModel(
            f"cannot read {columns[0].where} of {space.names[columns[0].feature]!r}: asked as a whole, the steps before "
            "the model do not give what they give one by one. Please report it."
        )
    return _made(edges, asked[0], missing)


def _made(edges: Floats, values: Floats, missing: Floats | None) -> Cells:
    return Cells(edges, values if missing is None else np.vstack([values, missing]), missing is not None)


# ---- trees


@dataclass(frozen=True, slots=True)
class _Tree:
    """One tree, its root first; ``asked`` says which of its features a node splits, ``largest`` is its greatest sum of absolute
    products, for each output."""

    asked: Ints
    edge: Floats
    left: Ints
    right: Ints
    value: Floats
    largest: Floats


def _tree(cells: Sequence[Cells], weights: Floats) -> _Tree:
    """Return a tree over the cells of one feature, or of several one after the other; the last holds the columns.

    It is balanced; where values may be missing the root sends them to a part of their own.
    """
    columns = cells[-1].columns
    values = product(columns, weights.T)
    nodes: list[tuple[int, float, int, int, int]] = []

    def put(depth: int, before: int) -> int:
        """Put the features from ``depth`` on, after a combination of those before, and return the place of their root."""
        if depth == len(cells):
            nodes.append((0, 0.0, -1, -1, before))
            return len(nodes) - 1
        edges, may_miss = cells[depth].edges, cells[depth].may_miss
        first = before * (len(edges) + 1 + may_miss)
        if not may_miss:
            return among(depth, first, 0, len(edges))
        place = len(nodes)
        nodes.append((depth, np.inf, -1, -1, -1))
        present = among(depth, first, 0, len(edges))
        nodes[place] = (depth, np.inf, present, put(depth + 1, first + len(edges) + 1), -1)
        return place

    def among(depth: int, start: int, first: int, last: int) -> int:
        """Put the cells from ``first`` to ``last`` of one feature."""
        if first == last:
            return put(depth + 1, start + first)
        place, middle = len(nodes), (first + last) // 2
        nodes.append((depth, 0.0, -1, -1, -1))
        below = among(depth, start, first, middle)
        nodes[place] = (
            depth,
            float(cells[depth].edges[middle]),
            below,
            among(depth, start, middle + 1, last),
            -1,
        )
        return place

    put(0, 0)
    asked, edge, left, right, cell = zip(*nodes, strict=True)
    leaf = np.array(cell)
    return _Tree(
        asked=np.array(asked, dtype=np.int64),
        edge=np.array(edge),
        left=np.array(left, dtype=np.int64),
        right=np.array(right, dtype=np.int64),
        value=np.where(leaf[:, None] >= 0, values[leaf], 0.0),
        largest=product(np.abs(columns), np.abs(weights).T).max(axis=0),
    )
