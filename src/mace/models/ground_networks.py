"""Linear models and networks behind preprocessing, as networks over the original features.

Columns of levels are tables, with the values that the fitted steps really give. Affine steps, clips and projections
become rows of the :class:`~mace.models.piecewise.Lowering`, each with its roundings. A column of a whole number that is
none of these is the line through its asked values, bent where they do: what the library computes is exactly that value, so
only the products and sums stored here are rounded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from mace.errors import UnsupportedModel
from mace.exact import UNIT
from mace.forms import Network
from mace.models.crossings import finite
from mace.models.piecewise import Lowering, largest_values
from mace.models.rows import Floats, Tensor
from mace.models.traced import Traced, all_values, is_leveled
from mace.space import Column, FeatureSpace, Integer

MOST_BENDS = 256
"""A column of whole numbers may bend so often."""


class Ground:
    """The features as sources, and the traced columns as rows over them."""

    def __init__(self, columns: Sequence[Traced], space: FeatureSpace) -> None:
        absent = next((name for name, feature in space.items() if feature.missing), None)
        if absent is not None:
            raise UnsupportedModel(
                f"{absent!r} may be missing, and a linear model or network has no place for that, though the pipeline fills it. "
                "Set missing=False for it and fill the row, or use trees."
            )
        self.space = space
        self._features = list(space.values())
        self._rows: dict[tuple[int, int], Tensor] = {}
        self._groups: dict[int, Tensor] = {}
        tables = self._tables(columns)
        numeric = sorted({c.feature for c in _roots(columns) if not is_leveled(self._features[c.feature])})
        self.columns: tuple[Column, ...] = (
            *(Column(space.names[j], j, None) for j in numeric),
            *(Column(c.name, c.feature, c.table) for c in tables),
        )
        self._numeric = {j: position for position, j in enumerate(numeric)}
        self.lowering = Lowering(largest_values(space, self.columns), UNIT)
        self._sources = self.lowering.columns()
        for position, column in enumerate(tables):
            self._rows[_key(column)] = self._source(len(numeric) + position)

    def of(self, column: Traced) -> Tensor:
        """Return a traced column as a row."""
        key = _key(column)
        if key not in self._rows:
            self._rows[key] = self._made(column)
        return self._rows[key]

    def feature(self, index: int) -> Tensor:
        """Return a numeric feature itself."""
        return self._source(self._numeric[index])

    def grouped(self, key: object, make: Callable[[Ground], Tensor]) -> Tensor:
        """Return rows that several columns share, made once."""
        if id(key) not in self._groups:
            self._groups[id(key)] = make(self)
        return self._groups[id(key)]

    def _source(self, position: int) -> Tensor:
        return self._sources.arranged(np.array([[position]]))

    def _tables(self, columns: Sequence[Traced]) -> list[Traced]:
        """Return the columns of levels that are needed, with their tables."""
        from mace.models.preprocess import tabled

        needed = {
            _key(c): c
            for c in _ends(columns, self._features)
            if not c.is_mixed and is_leveled(self._features[c.feature])
        }
        found = list(tabled(list(needed.values()), self.space))
        for column in found:
            if column.table is not None and not np.isfinite(column.table).all():
                raise UnsupportedModel(
                    f"{column.where} makes NaN of a level of {self.space.names[column.feature]!r}, which the model does not take."
                )
        return found

    def _made(self, column: Traced) -> Tensor:
        feature = self._features[column.feature]
        if column.lower is not None:
            return column.lower(self)
        if isinstance(feature, Integer) and feature.size * (feature.step or 1) <= 4096:
            return self._bent(column, feature)
        kind = type(feature).__name__.lower()
        raise UnsupportedModel(
            f"cannot read {column.where} of {self.space.names[column.feature]!r}, which is {kind}, before a linear model or network: it is "
            "not piecewise linear there. Use a scaler, trees, bins of every real feature before a linear model, or declare the feature as "
            "integer or levels if it is."
        )

    def _bent(self, column: Traced, feature: Integer) -> Tensor:
        """Return the line through a column's values at whole numbers."""
        numbers = all_values(feature)
        values = finite(column, self.space, numbers)
        slopes = np.diff(values)
        turns = np.flatnonzero(np.diff(slopes)) + 1
        if len(turns) > MOST_BENDS:
            raise UnsupportedModel(
                f"cannot read {column.where} of {self.space.names[column.feature]!r} before a linear model or network: it bends "
                f"{len(turns)} times over its range, above {MOST_BENDS}. Narrow the range, or use trees."
            )
        x = self.feature(column.feature)
        lowering = self.lowering
        start = lowering.offset(x, -float(numbers[0]))
        parts = [start, *(lowering.bend(lowering.offset(x, -float(numbers[turn]))) for turn in turns)]
        changes = np.array([slopes[0] if len(slopes) else 0.0, *(slopes[turns] - slopes[turns - 1])])
        made = lowering.dense(lowering.concatenate(parts, 1), changes[:, None], values[:1])
        wrong = float(_most_wrong(values, numbers[turns] - numbers[0], changes)) / float(UNIT) * (1 + 2.0**-20)
        return Tensor(made.shape, made.weights, made.shift, made.size + wrong, made.steps)


def ground_network(form: Network, space: FeatureSpace) -> Network:
    """Return the network over the features themselves."""
    columns = cast(tuple[Traced, ...], form.columns)
    ground = Ground(columns, space)
    inputs = ground.lowering.concatenate([ground.of(column) for column in columns], 1)
    scores = ground.lowering.run(inputs, form)
    return ground.lowering.network(
        scores,
        space,
        ground.columns,
        squash=form.squash,
        ties_last=form.ties_last,
        link=form.link,
        is_regressor=form.is_regressor,
    )


def _most_wrong(values: Floats, turns: NDArray[np.int64], changes: Floats) -> Fraction:
    """Return by how much the bent line, in exact arithmetic, misses the values at most."""
    turning = {int(turn): Fraction(float(change)) for turn, change in zip(turns, changes[1:], strict=True)}
    slope, height, worst = Fraction(float(changes[0])), Fraction(float(values[0])), Fraction(0)
    for at, value in enumerate(values[1:]):
        slope += turning.get(at, 0)
        height += slope
        worst = max(worst, abs(height - Fraction(float(value))))
    return worst


def _key(column: Traced) -> tuple[int, int]:
    """Return what tells a column from others; a copy with a table is the same column."""
    return (-1, id(column.lower)) if column.is_mixed else (column.feature, id(column.values))


def _ends(columns: Sequence[Traced], features: Sequence[Any]) -> list[Traced]:
    """Return the columns of one feature that mixtures and the model read."""
    found: list[Traced] = []
    for column in columns:
        if not column.is_mixed and (is_leveled(features[column.feature]) or column.lower is None):
            found.append(column)
        elif column.is_mixed:
            found += _ends(column.parents, features)
    return found


def _roots(columns: Sequence[Traced]) -> list[Traced]:
    """Return one column of each feature that is read."""
    found: dict[int, Traced] = {}
    for column in columns:
        for root in _roots(column.parents) if column.is_mixed else [column]:
            found[root.feature] = root
    return list(found.values())
