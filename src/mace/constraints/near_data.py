"""near_data: keep a counterfactual to where rows of a data set are."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from mace.clock import check
from mace.constraints.condition import AtLeast, Condition, Values
from mace.constraints.numbers import as_written, is_binary, plain_number
from mace.constraints.views import View
from mace.distances import Distance, NormMetric, PartsMetric, as_distance
from mace.distances.change import differs, written_room
from mace.errors import InvalidConstraint, InvalidRow, cut
from mace.exact import Flags, Floats, Ints
from mace.language import syntax
from mace.recent import MOST_SPACES, Recent
from mace.space import RESERVED, Categorical, Feature, FeatureSpace, Integer, Point, Real, Scalar, Value
from mace.space.dates import as_text
from mace.space.features import plain_scalar
from mace.space.frames import as_pandas

RADIUS_SLACK_OF_0_1 = Fraction(1, 2**45)
"""What version 0.1 raised a radius above 0 by: decimals that are as far apart as it says differ from it by their rounding."""

UNSURE = 1e-9
"""How far a distance in floats may be from the exact one."""

LEAST_RANGE = 1e-300
"""A range below this is not divided by in floats."""

LEAST_CHANGE = math.ulp(0.0)
"""The least float above 0."""

EVERY = slice(None)


@dataclass(frozen=True)
class Neighbours(Condition):
    """At least ``least`` of some rows lie within ``radius`` of a point; with ``written``, as the decimals that values are written as."""

    space: FeatureSpace
    rows: tuple[Point, ...]
    least: int
    radius: Fraction
    distance: Distance
    written: bool = True
    cut: ClassVar[str] = "near_data"

    @cached_property
    def metric(self) -> NormMetric:
        """The distance from the first row; those from others differ from it by their rows alone."""
        start = self.distance.written_from if self.written else self.distance.from_factual
        made = start(self.space, self.rows[0])
        assert isinstance(made, NormMetric)
        return made

    @cached_property
    def off(self) -> Fraction:
        """By how much the distance between floats may differ from that between the decimals that they are written as."""
        return max(map(written_room, self.space.values())) if self.written else Fraction(0)

    @cached_property
    def room(self) -> Fraction:
        """The same in the unit of the measure, about the limit."""
        return (self.radius + self.off) ** self.metric.power - self.limit

    @cached_property
    def unsure(self) -> float:
        """How far a distance of floats, computed in floats, may be from the exact one of decimals."""
        return UNSURE + 4 * float(max(self.off, self.room))

    @cached_property
    def limit(self) -> Fraction:
        """The radius in the unit of the measure: its square for l2."""
        return self.radius**self.metric.power

    @cached_property
    def reach(self) -> Floats:
        """The greatest change of each feature that a row within the radius can have, or a little more, in floats."""
        reach = [float(self.metric.reach(j, self.radius)) for j in range(len(self.space))]
        return np.array(reach) + self.unsure

    @cached_property
    def numbers(self) -> Floats:
        """The rows as numbers, NaN where missing."""
        return np.array([[np.nan if value is None else float(value) for value in row] for row in self.rows])

    @cached_property
    def scales(self) -> Floats:
        """What a step of 1 in each ordered feature changes; 0 for a feature with one value."""
        return np.array([float(1 / feature.range) if feature.range else 0.0 for feature in self.space.values()])

    @cached_property
    def is_category(self) -> Flags:
        """Which features have no order."""
        return np.array([isinstance(feature, Categorical) for feature in self.space.values()])

    def changes(self, point: Point, rows: Ints | slice = EVERY) -> Floats:
        """Return the change of each feature from each row, or from some, to a point, in floats."""
        numbers, at = self.numbers[rows], np.array([np.nan if value is None else float(value) for value in point])
        # A change that is too small for a float is still a change.
        least = np.where(self.scales > 0, LEAST_CHANGE, 0.0) * (numbers != at)
        moved = np.where(self.is_category, numbers != at, np.maximum(np.abs(numbers - at) * self.scales, least))
        here, there = np.isnan(at), np.isnan(numbers)
        found: Floats = np.where(here | there, here != there, moved).astype(np.float64)
        return found

    def measures(self, changes: Floats) -> Floats:
        """Return the distance (for l2 its square) of each row, given the changes, in floats."""
        return self.metric.floats(changes)

    def holds(self, values: Values) -> bool:
        """Count the rows: in floats where these are sure, else exactly."""
        point: Any = tuple(None if values[name] is None else values[name] for name in self.space)
        measures, limit = self.measures(self.changes(point)), float(self.limit)
        count = int((measures <= limit - self.unsure).sum())
        for row in np.flatnonzero(np.abs(measures - limit) < self.unsure):
            exact = replace(self.metric, factual=self.rows[row]).measure(point, written=self.written)
            count += exact <= self.limit
        return count >= self.least

    def why_not(self, view: View, space: FeatureSpace) -> str:
        """Return why neighbours cannot be counted in a view."""
        if view is View.PIECEWISE:
            return "" if self.metric.power == 1 else "l2 in near_data is not piecewise linear"
        return "" if view is View.CUT else super().why_not(view, space)

    def formula(self, prefix: str) -> syntax.Guard:
        """Return the characteristic formula of the count with its result bounded."""
        return AtLeast(self.program, Fraction(self.least)).formula(prefix)

    @cached_property
    def program(self) -> syntax.Program:
        """The program that counts the rows within the radius."""
        metrics = [replace(self.metric, factual=row) for row in self.rows]
        return count_program(metrics, self.limit, written=self.written)


def count_program(metrics: Sequence[PartsMetric], limit: Fraction, *, written: bool) -> syntax.Program:
    """Return the program that counts the rows whose distance, from each of which there is a metric, is within a limit.

    ``limit`` is in the unit of the measure; ``written`` says whether the distance is one of decimals.
    """
    space, steps, near = metrics[0].space, list[syntax.Command](), list[syntax.Expression]()
    for number, metric in enumerate(metrics):
        check()
        names = [f"{RESERVED}row {number} delta({name})" for name in space]
        pairs = enumerate(zip(space, names, strict=True))
        steps += [metric.command(index, name, delta, written=written) for index, (name, delta) in pairs]
        each = zip(space.items(), metric.factual, strict=True)
        changed = [differs(name, feature, old) for (name, feature), old in each]
        deltas: list[syntax.Expression] = [syntax.Variable(name) for name in names]
        value = syntax.total(
            syntax.Binary("*", syntax.constant(share), norm.expression(deltas, changed, metric.weights))
            for norm, share in metric.norms
        )
        near.append(syntax.Indicator(syntax.Compare("<=", value, syntax.constant(limit))))
    return syntax.Program(space.names, syntax.sequence([*steps, syntax.Return(syntax.total(near))]))


@dataclass(frozen=True, eq=False)
class Neighbour(Condition):
    """One row of the data lies within the radius: part of ``near_data`` once it is decided which rows are neighbours."""

    data: Neighbours
    row: int

    @cached_property
    def alone(self) -> Neighbours:
        """The same as a count of one row."""
        return replace(self.data, rows=(self.data.rows[self.row],), least=1)

    def holds(self, values: Values) -> bool:
        """Measure the distance."""
        return self.alone.holds(values)

    def formula(self, prefix: str) -> syntax.Guard:
        """Return the characteristic formula of the distance with its result bounded."""
        return self.alone.formula(prefix)

    def why_not(self, view: View, space: FeatureSpace) -> str:
        """Return why the distance cannot be taken in a view."""
        return "" if view is View.NEIGHBOUR else self.alone.why_not(view, space)

    @property
    def most(self) -> float:
        """What the costs of the features of a row within the radius add up to at most."""
        return float(self.data.limit) + self.data.unsure

    def least_costs(self, j: int, low: Floats, high: Floats) -> Floats:
        """Return what the values from ``low`` to ``high`` of a feature cost at least, in floats; NaN is missing.

        What counts is a sum over features; a maximum over them does not.
        """
        data, own = self.data, self.data.numbers[self.row, j]
        costs, is_gone = data.metric.costs, np.isnan(low)
        if np.isnan(own):
            moved = np.where(is_gone, 0.0, 1.0)
        elif data.is_category[j]:
            moved = np.where(is_gone, 1.0, (low != own) * float(data.scales[j] > 0))
        else:
            moved = np.where(is_gone, 1.0, np.maximum(np.maximum(low - own, own - high), 0.0) * data.scales[j])
        cost = costs.jump[j] + (costs.slope[j] + costs.square[j] * moved) * moved
        return np.asarray(np.where(moved > 0, cost, 0.0))


@dataclass(frozen=True)
class NearData:
    """At least ``k`` rows of a data set lie within ``radius`` of the counterfactual."""

    names: tuple[str, ...]
    rows: tuple[tuple[Scalar, ...], ...]
    k: int
    radius: float
    distance: Distance

    def bind(self, space: FeatureSpace, factual: Point) -> Condition:
        """Return the condition; the same for every factual."""
        lacking = [name for name in space if name not in self.names]
        if lacking:
            raise InvalidConstraint(
                f"{self}: the frame has no column {lacking[0]!r}. Give it every feature of the space."
            )
        narrow = [name for name, feature in space.items() if 0 < feature.range < LEAST_RANGE]
        if narrow:
            raise InvalidConstraint(
                f"{self}: the range of {narrow[0]!r} is too narrow to divide by. Give the column in smaller units."
            )
        points = self._points.get(space) or self._points.put(space, self._read(space))
        self.distance.from_factual(space, factual)
        if self.distance.weights == "percentile":
            return self._by_people(space, points)
        if is_binary():
            radius = Fraction(self.radius) + (RADIUS_SLACK_OF_0_1 if self.radius else 0)
            return Neighbours(space, tuple(points), self.k, radius, self.distance, written=False)
        return Neighbours(space, tuple(points), self.k, as_written(self.radius), self.distance)

    def _by_people(self, space: FeatureSpace, points: list[Point]) -> Condition:
        """Return the condition of a distance that counts people, which only a program says."""
        metrics = [self.distance.written_from(space, point) for point in points]
        radius = as_written(self.radius)
        return AtLeast(count_program(metrics, radius ** metrics[0].power, written=True), Fraction(self.k))

    @cached_property
    def _points(self) -> Recent[FeatureSpace, list[Point]]:
        """The rows as points of the last spaces that were asked about."""
        return Recent(MOST_SPACES)

    def _read(self, space: FeatureSpace) -> list[Point]:
        columns, places = list(zip(*self.rows, strict=True)), [self.names.index(name) for name in space]
        try:
            made = [
                _values(name, feature, columns[place])
                for (name, feature), place in zip(space.items(), places, strict=True)
            ]
        except InvalidRow:
            for number, row in enumerate(self.rows):
                try:
                    space.point([row[place] for place in places])
                except InvalidRow as error:
                    raise InvalidConstraint(f"{self}: row {number} is not of the space: {error}") from error
            raise
        return list(zip(*made, strict=True))

    def to_dict(self) -> dict[str, Any]:
        """Return the constraint as plain data, rows included."""
        rows = [[None if value != value else value for value in row] for row in self.rows]
        table = {"columns": list(self.names), "rows": rows}
        return {"kind": "near_data", "arguments": [table, self.k, self.radius, self.distance.to_dict()]}

    def __repr__(self) -> str:
        return cut(str(self))

    def __str__(self) -> str:
        return f"near_data({len(self.rows)} rows, k={self.k}, radius={self.radius:g})"


def _values(name: str, feature: Feature, cells: tuple[Any, ...]) -> list[Value]:
    """Return the cells of a feature as points hold them: numbers all at once, whatever else by its different values."""
    kinds = set(map(type, cells))
    if isinstance(feature, Integer) and kinds == {int} and feature.low <= min(cells) and max(cells) <= feature.high:
        return list(cells)
    if isinstance(feature, Real) and kinds == {float}:
        with np.errstate(over="ignore", under="ignore"):
            numbers = np.array(cells).astype(feature.floats).astype(np.float64)
        is_in = (feature.low <= numbers) & (numbers <= feature.high)
        if (is_in | (np.isnan(numbers) & feature.missing)).all():
            return [number if there else None for number, there in zip(numbers.tolist(), is_in.tolist(), strict=True)]
    alone, known = FeatureSpace({name: feature}), dict[tuple[type, Scalar], Value]()
    for cell in cells:
        if (type(cell), cell) not in known:
            known[type(cell), cell] = alone.point({name: cell})[0]
    return [known[type(cell), cell] for cell in cells]


def near_data(frame: Any, k: int = 1, radius: float = 0.1, distance: object = "l1") -> NearData:
    """Keep the counterfactual within ``radius`` of at least ``k`` rows of a data set.

    Parameters
    ----------
    frame : data frame, or list of dicts
        The rows, over the features of the space; other columns are left out. Every row counts, also where it occurs twice.
    k : int
        So many rows at least.
    radius : float
        Within this distance, the end included.
    distance : str or Distance
        Of a row from the counterfactual, as for :meth:`~mace.Explainer.explain`, whatever distance is asked for there; it lies between 0
        and 1, in which a change of all features by their whole ranges counts 1. With ``weights="percentile"`` the share of people passed
        is counted by the general lanes, which are slow beyond some dozens of rows.

    Examples
    --------
    >>> print(near_data([{"age": 30, "income": 20}, {"age": 40, "income": 35}], k=1, radius=0.05))
    near_data(2 rows, k=1, radius=0.05)
    """
    names, rows = _table(frame)
    count: Any = plain_scalar(k)
    reach: Any = plain_number(radius)
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= len(rows):
        raise InvalidConstraint(
            f"near_data: k is {k!r}; it must be a whole number from 1 to the {len(rows)} rows given."
        )
    if isinstance(reach, bool) or not isinstance(reach, int | float) or not 0 <= reach < math.inf:
        raise InvalidConstraint(f"near_data: radius is {radius!r}; it must be a number of at least 0.")
    metric = Distance(**distance) if isinstance(distance, Mapping) else as_distance(distance)
    if not isinstance(metric, Distance):
        raise InvalidConstraint("near_data: the distance is a function; use a norm or mace.Distance(...).")
    return NearData(names, rows, count, float(reach), metric)


def _table(frame: Any) -> tuple[tuple[str, ...], tuple[tuple[Scalar, ...], ...]]:
    """Return names and rows of plain scalars, NaN where missing."""
    frame = as_pandas(frame)
    if isinstance(frame, Mapping) and set(frame) == {"columns", "rows"}:
        names, cells = list(frame["columns"]), list(frame["rows"])
    elif hasattr(frame, "columns") and hasattr(frame, "itertuples"):
        names, cells = list(frame.columns), list(frame.itertuples(index=False, name=None))
    elif isinstance(frame, Sequence) and not isinstance(frame, str) and all(isinstance(row, Mapping) for row in frame):
        names = list(frame[0]) if frame else []
        if any(set(row) != set(names) for row in frame):
            raise InvalidConstraint("near_data: the rows do not all have the same names.")
        cells = [[row[name] for name in names] for row in frame]
    else:
        raise InvalidConstraint(f"near_data: {type(frame).__name__} is no table; give a data frame or a list of dicts.")
    if not cells:
        raise InvalidConstraint("near_data: the frame has no row; give at least one.")
    if any(not isinstance(row, list | tuple) or len(row) != len(names) for row in cells):
        raise InvalidConstraint(f"near_data: a row does not have one value for each of {len(names)} columns.")
    rows = tuple(tuple(row) if set(map(type, row)) == {float} else tuple(map(_scalar, row)) for row in cells)
    return tuple(map(str, names)), rows


def _scalar(value: object) -> Scalar:
    if type(value) is float:
        return value
    import pandas as pd

    plain = plain_scalar(as_text(value))
    if plain is None or plain is pd.NA or plain is pd.NaT:
        return math.nan
    if not isinstance(plain, str | int | float | bool):
        return str(plain)
    return plain
