"""Linear models and networks behind preprocessing, as networks over the original features.

Columns of levels are tables, with the values that the fitted steps really give. Affine steps, clips and projections
become rows of the :class:`~mace.models.networks.piecewise.Lowering`, each with its roundings. A column of a whole number that is
none of these is the line through its asked values, bent where they do: what the library computes is exactly that value, so
only the products and sums stored here are rounded. Where it bends more than 4,096 times the line goes through some of the values,
and by how much it misses the others at most counts as rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, cast

import numpy as np

from mace.errors import UnsupportedModel
from mace.exact import UNIT, Ints
from mace.forms import Network
from mace.models.networks.piecewise import UNIT32, Lowering, largest_values, ranges
from mace.models.networks.rows import Floats, Tensor
from mace.models.preprocessing.crossings import LONGEST_RANGE, finite
from mace.models.preprocessing.ground_gates import gates_of, product_row
from mace.models.preprocessing.traced import Traced, all_values, ends_of, is_leveled
from mace.space import Column, FeatureSpace, Filled, Integer

FEW_BENDS = 256
"""The most bends of an interpolation, and of a column of whole numbers that might be read as steps."""

MOST_BENDS = 4096
"""The most bends of any column of whole numbers that is read exactly, and the most numbers of one that might be read as steps."""

SOME_BENDS = 2048
"""The bends of the line that is read in place of a column that bends more often."""

MOST_LOST = 1e-4
"""By how much such a line may miss values, as a share of their spread."""

STEEPEST = 2.0**20
"""An interpolation that rises faster over its whole range jumps, as far as floats can tell."""

LINE_ERROR = 32.0
"""In units of roundoff: more than two interpolations between heights of at most 1 and their mean are off, some ten."""


class Ground:
    """The features as sources, and the traced columns as rows over them.

    ``unit`` is the unit roundoff of the model behind; where a step computes in float32, all counts in that.
    """

    def __init__(
        self, columns: Sequence[Traced], space: FeatureSpace, unit: Fraction = UNIT, *, is_wide: bool = False
    ) -> None:
        self.space = space
        self.is_wide = is_wide
        self._features = list(space.values())
        self._rows: dict[tuple[int, int], Tensor] = {}
        self._groups: dict[int, Tensor] = {}
        tables = self._tables(columns)
        numeric = sorted({c.feature for c in _roots(columns) if not is_leveled(self._features[c.feature])})
        absent = [j for j in numeric if self._features[j].missing]
        self._stand_in = {j: _fill_of(columns, j, self._features[j]) for j in absent}
        held = {(c.feature, c.table) for c in tables}
        wanted = gates_of(columns, space)
        gates = {gate: c for gate, c in wanted.items() if (c.feature, c.table) not in held}
        self.columns: tuple[Column, ...] = (
            *(self._number(j) for j in numeric),
            *(Filled(f"{space.names[j]} is missing", j, None, missing=1.0, is_flag=True) for j in absent),
            *(Column(c.name, c.feature, c.table) for c in tables),
            *gates.values(),
        )
        self._numeric = {j: position for position, j in enumerate(numeric)}
        self._flags = {j: len(numeric) + position for position, j in enumerate(absent)}
        unit = max([unit, *(_unit(column, self._features) for column in columns)])
        self.lowering = Lowering(largest_values(space, self.columns), unit, rounds_constants=True)
        self._sources = self.lowering.columns()
        first = len(numeric) + len(absent)
        for position, column in enumerate(tables):
            self._rows[_key(column)] = self._source(first + position)
        place = {(c.feature, c.table): position for position, c in enumerate(self.columns)}
        self.gates = {gate: self._source(place[c.feature, c.table]) for gate, c in wanted.items()}
        """Rows that are 1 for some values of a feature and 0 for others, for products."""

    def of(self, column: Traced) -> Tensor:
        """Return a traced column as a row."""
        key = _key(column)
        if key not in self._rows:
            made, at_stand_in = self._made(column)
            self._rows[key] = made if at_stand_in is None else self._filled(column, made, at_stand_in)
        return self._rows[key]

    def feature(self, index: int) -> Tensor:
        """Return a numeric feature itself."""
        return self._source(self._numeric[index])

    def range_of(self, row: Tensor) -> tuple[float, float]:
        """Return a lower and an upper bound on a number."""
        return self.lowering.range_of(row, *ranges(self.space, self.columns))

    def grouped(self, key: object, make: Callable[[Ground], Tensor]) -> Tensor:
        """Return rows that several columns share, made once."""
        if id(key) not in self._groups:
            self._groups[id(key)] = make(self)
        return self._groups[id(key)]

    def _number(self, j: int) -> Column:
        name = self.space.names[j]
        return Filled(name, j, None, missing=self._stand_in[j]) if j in self._stand_in else Column(name, j, None)

    def _filled(self, column: Traced, made: Tensor, at_stand_in: Fraction) -> Tensor:
        """Return a column that steps fill, right where the value is missing too: there its row has the value of the stand-in, and the
        flag adds what is lacking."""
        lacking = float(Fraction(_at_missing(column)) - at_stand_in)
        if lacking == 0:
            return made
        flag = self._source(self._flags[column.feature])
        return self.lowering.add(made, self.lowering.scale(flag, lacking))

    def _source(self, position: int) -> Tensor:
        return self._sources.arranged(np.array([[position]]))

    def _tables(self, columns: Sequence[Traced]) -> list[Traced]:
        """Return the columns of levels that are needed, with their tables."""
        from mace.models.preprocessing.walk import tabled

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

    def _made(self, column: Traced) -> tuple[Tensor, Fraction | None]:
        """Return a column's row; where it fills missing values by another way than its row, also the row's value at the stand-in."""
        feature = self._features[column.feature]
        if column.lower is not None:
            made = column.lower(self)
            return made, self._at_stand_in(column, made)
        if column.factors:
            return product_row(self, column), None
        if column.is_mixed:
            raise UnsupportedModel(
                f"cannot read {column.where} behind a projection: it is not piecewise linear there. "
                "Use a scaler, or put it before the projection."
            )
        if isinstance(feature, Integer) and feature.size * (feature.step or 1) <= MOST_BENDS:
            return self._bent(column, feature)
        if column.line is not None:
            made = self._interpolated(column, *column.line)
            return made, self._at_stand_in(column, made)
        if isinstance(feature, Integer) and self.is_wide:
            return self._bent(column, feature)
        kind = type(feature).__name__.lower()
        raise UnsupportedModel(
            f"cannot read {column.where} of {self.space.names[column.feature]!r}, which is {kind}, before a linear model or network: it is "
            "not piecewise linear there. Use a scaler, trees, bins of every real feature before a linear model, or declare the feature as "
            "integer or levels if it is."
        )

    def _at_stand_in(self, column: Traced, made: Tensor) -> Fraction | None:
        """Return the value at the stand-in of the row of a column that is the first to fill missing values; ``None`` of others."""
        j = column.feature
        if column.is_mixed or j not in self._stand_in or not column.parents:
            return None
        if np.isnan(_at_missing(column)) or not np.isnan(_at_missing(column.parents[0])):
            return None
        return self.lowering.exact(made, {self._numeric[j]: Fraction(self._stand_in[j])})[0]

    def _interpolated(self, column: Traced, knots: Floats, heights: Floats) -> Tensor:
        """Return the line through points as hinges of the number that it is a line of."""
        name = self.space.names[column.feature]
        before = f"cannot read {column.where} of {name!r} before a linear model or network"
        rises = np.diff(heights)
        with np.errstate(all="ignore"):
            slopes = rises / np.diff(knots)
            steep = np.flatnonzero(~(slopes * (knots[-1] - knots[0]) < STEEPEST))
        if len(knots) < 2 or len(steep):
            at = float(knots[steep[0]]) if len(steep) else float(knots[0])
            raise UnsupportedModel(
                f"{before}: it jumps where its quantiles repeat, as at {at!r}. Use fewer quantiles, trees, or declare it as "
                "integer if it is."
            )
        if len(knots) > FEW_BENDS:
            raise UnsupportedModel(
                f"{before}: it bends {len(knots)} times, above {FEW_BENDS}. Set n_quantiles={FEW_BENDS} or less, or use trees."
            )
        unit = float(self.lowering.unit)
        _check_line(column, knots, heights, before, unit)
        source = self.of(column.parents[0])
        changes = np.diff(np.concatenate([[0.0], slopes, [0.0]]))
        made = self.lowering.dense(self.lowering.hinges(source, knots), changes[:, None], heights[:1])
        missed = _most_missed(knots, heights, changes, Fraction(self.lowering.reach(source)))
        wrong = (float(missed) / unit + LINE_ERROR) * (1 + 2.0**-20)
        return Tensor(made.shape, made.weights, made.shift, made.size + wrong, made.steps)

    def _bent(self, column: Traced, feature: Integer) -> tuple[Tensor, Fraction | None]:
        """Return the line through a column's values at whole numbers, and its value at the stand-in for missing values."""
        before = f"cannot read {column.where} of {self.space.names[column.feature]!r} before a linear model or network"
        if feature.high - feature.low >= LONGEST_RANGE:
            raise UnsupportedModel(
                f"{before}: its range has {feature.high - feature.low + 1:,} whole numbers, above {LONGEST_RANGE:,}, and each is asked. "
                "Narrow the range, or use trees."
            )
        numbers = all_values(feature)
        values = finite(column, self.space, numbers)
        turns, changes = _bends(values)
        if len(turns) > FEW_BENDS and not self.is_wide:
            raise UnsupportedModel(f"{before}: it bends {len(turns)} times over its range, above {FEW_BENDS}.")
        if is_coarse := len(turns) > MOST_BENDS:
            turns, changes = _fewer_bends(values)
        most = _most_wrong(values, turns, changes)
        if is_coarse and most > MOST_LOST * np.ptp(values):
            raise UnsupportedModel(
                f"{before}: it bends more than {MOST_BENDS} times over its range, and a line with {SOME_BENDS} bends misses it by "
                f"{float(most):.2g}. Narrow the range, or use trees."
            )
        x = self.feature(column.feature)
        lowering = self.lowering
        start = lowering.offset(x, -float(numbers[0]))
        parts = [start, *(lowering.bend(lowering.offset(x, -float(numbers[turn]))) for turn in turns)]
        made = lowering.dense(lowering.concatenate(parts, 1), changes[:, None], values[:1])
        # A size counts for each of the row's roundings.
        wrong = float(most) / float(lowering.unit) * (1 + 2.0**-20) / (made.steps if is_coarse else 1)
        made = Tensor(made.shape, made.weights, made.shift, made.size + wrong, made.steps)
        if column.feature not in self._stand_in:
            return made, None
        away = Fraction(self._stand_in[column.feature]) - int(numbers[0])
        return made, _line_at(away, values, turns, changes)


def _check_line(column: Traced, knots: Floats, heights: Floats, before: str, unit: float) -> None:
    """Ask the fitted step on, beside and between the knots, beyond them and at 0; refuse it where that is not the line."""
    assert column.local is not None
    beside = [np.nextafter(knots, side) for side in (-np.inf, np.inf)]
    beyond = [knots[0] - 1.0, knots[-1] + 1.0, 0.0]
    asked = np.concatenate([knots, *beside, knots[:-1] / 2 + knots[1:] / 2, beyond])
    asked = asked.astype(column.parents[0].floats).astype(np.float64)
    found = np.asarray(column.local(asked), dtype=np.float64)
    if not np.isfinite(found).all() or np.abs(found - np.interp(asked, knots, heights)).max() > LINE_ERROR * unit:
        raise UnsupportedModel(
            f"{before}: it does not give what its quantiles say. Give it dense float64, or use trees."
        )


def _most_missed(knots: Floats, heights: Floats, changes: Floats, most: Fraction) -> Fraction:
    """Return by how much the hinges, in exact arithmetic, miss the line at most, for numbers of at most ``most`` in size."""
    height, slope, worst = Fraction(float(heights[0])), Fraction(0), Fraction(0)
    at = Fraction(float(knots[0]))
    for knot, value, change in zip(knots.tolist(), heights.tolist(), changes.tolist(), strict=True):
        height += slope * (Fraction(knot) - at)
        worst = max(worst, abs(height - Fraction(value)))
        at, slope = Fraction(knot), slope + Fraction(change)
    return worst + abs(slope) * (most + abs(at))


def ground_network(form: Network, space: FeatureSpace, *, is_wide: bool = False) -> Network:
    """Return the network over the features themselves; where it ``is_wide``, also of columns that bend often."""
    columns = cast(tuple[Traced, ...], form.columns)
    ground = Ground(columns, space, form.unit, is_wide=is_wide)
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


def _unit(column: Traced, features: Sequence[Any]) -> Fraction:
    """Return the coarsest unit roundoff of the steps that make a column of numbers; float16 is refused."""
    if not column.parents or (not column.is_mixed and is_leveled(features[column.feature])):
        return UNIT
    if column.floats is np.float16:
        raise UnsupportedModel(
            f"cannot read {column.where} before a linear model or network: it computes in float16, whose rounding is too coarse to be "
            'proved anything about. Fit and ask it with frame.astype("float32") or frame.astype("float64").'
        )
    own = UNIT32 if column.floats is np.float32 else UNIT
    return max([own, *(_unit(parent, features) for parent in column.parents)])


def _at_missing(column: Traced) -> float:
    """Return what a column holds where its feature is missing; NaN where it is missing there too."""
    return float(np.asarray(column.values(np.array([np.nan])), dtype=np.float64)[0])


def _fill_of(columns: Sequence[Traced], j: int, feature: Any) -> float:
    """Return a number to stand for the missing values of a feature: what an imputer puts there, where it comes first."""
    pending = [column for column in columns if column.is_mixed or column.feature == j]
    while pending:
        column = pending.pop()
        pending += [each for each in column.parents if each.is_mixed or each.feature == j]
        if column.is_mixed or not column.parents or column.parents[0].parents:
            continue
        ends, fill = ends_of(feature), _at_missing(column)
        if np.isfinite(fill) and column.lower is not None and np.array_equal(column.values(ends), ends):
            return fill
    return float(feature.low)


def _line_at(away: Fraction, values: Floats, turns: Ints, changes: Floats) -> Fraction:
    """Return the height of the bent line so far after its first number."""
    height = Fraction(float(values[0])) + Fraction(float(changes[0])) * away
    for turn, change in zip(turns, changes[1:], strict=True):
        height += Fraction(float(change)) * max(Fraction(0), away - int(turn))
    return height


def _bends(values: Floats) -> tuple[Ints, Floats]:
    """Return after how many numbers the line through values bends, and the changes of its slope: from 0 at the start, then at each bend."""
    slopes = np.diff(values)
    turns = np.flatnonzero(np.diff(slopes)) + 1
    return turns, np.array([slopes[0] if len(slopes) else 0.0, *(slopes[turns] - slopes[turns - 1])])


def _fewer_bends(values: Floats) -> tuple[Ints, Floats]:
    """Return the same of a line through some of the values, the more of them the more the values curve."""
    curved = np.cumsum(np.sqrt(np.abs(np.diff(values, 2))))
    places = np.searchsorted(curved, np.linspace(0, curved[-1], SOME_BENDS)) + 1
    kept = np.unique([0, *places, len(values) - 1])
    return kept[1:-1], np.diff(np.diff(values[kept]) / np.diff(kept), prepend=0.0)


def _most_wrong(values: Floats, turns: Ints, changes: Floats) -> Fraction:
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
    if column.factors:
        return (-2, id(column.joint))
    return (-1, id(column.lower)) if column.is_mixed else (column.feature, id(column.values))


def _ends(columns: Sequence[Traced], features: Sequence[Any]) -> list[Traced]:
    """Return the columns of one feature that mixtures and the model read."""
    found: list[Traced] = []
    for column in columns:
        if not column.is_mixed and (is_leveled(features[column.feature]) or column.lower is None):
            found.append(column)
        elif column.is_mixed and not column.factors:
            found += _ends(column.parents, features)
    return found


def _roots(columns: Sequence[Traced]) -> list[Traced]:
    """Return one column of each feature that is read."""
    found: dict[int, Traced] = {}
    for column in columns:
        for root in _roots(column.parents) if column.is_mixed else [column]:
            found[root.feature] = root
    return list(found.values())
