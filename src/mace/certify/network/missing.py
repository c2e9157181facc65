"""Patterns of missing values, and what the model and the distance are under each: the columns of a missing feature are constants.

Under one pattern it is fixed which features are missing, so that a question becomes one without missing values: over axes of
:mod:`mace.certify.network.coordinates`. The axis of a feature that changes from or to missing holds one level, at the cost of that change.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from mace.certify.network.coordinates import Alike, CoordinateAxis, make_alikes, make_axes
from mace.certify.patterns import patterns
from mace.certify.verdict import Refuted
from mace.distances import NormMetric
from mace.distances.norm import Parts
from mace.errors import InvalidProgram
from mace.exact import Floats
from mace.forms import Network
from mace.language import holds, syntax
from mace.problem import Problem
from mace.space import Column, Filled, Point, Real

Way = frozenset[int]
"""The features that are missing."""


def may_miss(problem: Problem) -> bool:
    """Return whether some value of a row may be missing."""
    return any(feature.missing for feature in problem.space.values()) or None in problem.factual


def ways(problem: Problem, lower: Fraction | None) -> Iterator[Way]:
    """Yield every pattern under which there may be a point nearer than ``lower`` (at any distance, where ``None``)."""
    metric = problem.metric
    assert isinstance(metric, NormMetric)
    known = make_axes(problem)
    choices = [list(_choices(problem, j, parts, bool(len(known[j].spans)))) for j, parts in enumerate(metric.parts)]
    for pattern in patterns(choices, None if lower is None else lower**metric.power):
        yield frozenset(j for j, is_missing in enumerate(pattern) if is_missing)


def _choices(problem: Problem, j: int, parts: Parts, may_be_known: bool) -> Iterator[tuple[Fraction, Fraction, bool]]:
    """Yield what a feature costs where it is known, and where it is missing, as far as each is allowed: the least that is added to the
    sum, and the share in the maximum."""
    nothing = Fraction(0), Fraction(0)
    change = parts.jump + parts.slope + parts.square, parts.peak
    is_own = problem.factual[j] is None
    if may_be_known:
        yield (*(change if is_own else nothing), False)
    if (is_own or list(problem.space.values())[j].missing) and _is_allowed(problem, problem.space.names[j]):
        yield (*(nothing if is_own else change), True)


def _is_allowed(problem: Problem, name: str) -> bool:
    """Return whether the conditions on a feature alone let it be missing; a condition that cannot be evaluated then forbids nothing."""
    for part in problem.guards:
        if syntax.variables(part) == {name}:
            try:
                if not holds(part, {name: None}):
                    return False
            except InvalidProgram:
                continue
    return True


@dataclass(frozen=True, slots=True)
class MissingPart:
    """A question under one pattern of missing values.

    Attributes
    ----------
    missing : frozenset of int
        The features that are missing.
    form : Network
        The model, its columns over the axes.
    axes : list of CoordinateAxis
        Of the features, and of the changes that fill one.
    alikes : list of Alike
        The earlier counterfactuals.
    costs : list of Parts
        What a change along each axis costs.
    """

    missing: Way
    form: Network
    axes: list[CoordinateAxis]
    alikes: list[Alike]
    costs: list[Parts]

    def point(self, problem: Problem, coordinates: Floats) -> Point:
        """Return the row at coordinates."""
        values = [axis.value(float(coordinate)) for axis, coordinate in zip(self.axes, coordinates, strict=True)]
        return tuple(
            None if j in self.missing else value if isinstance(feature, Real) else int(value)
            for j, (feature, value) in enumerate(zip(problem.space.values(), values, strict=False))
        )


def part_of(problem: Problem, missing: Way) -> MissingPart:
    """Return the question under one pattern of missing values."""
    assert isinstance(problem.form, Network)
    assert isinstance(problem.metric, NormMetric)
    axes = make_axes(problem, missing)
    filled = [j for j, own in enumerate(problem.factual) if own is None and j not in missing]
    parts = problem.metric.parts
    costs = [Parts() if j in filled else each for j, each in enumerate(parts)] + [parts[j] for j in filled]
    form = _filled(problem.form, missing)
    return MissingPart(missing, form, axes, make_alikes(problem, axes, missing), costs)


def _filled(form: Network, missing: Way) -> Network:
    """Return a model with the columns of missing features as constants, and without flags that are 0."""
    kept = [k for k, column in enumerate(form.columns) if column.feature in missing or not _is_flag(column)]
    if len(kept) == len(form.columns) and not any(isinstance(column, Filled) for column in form.columns):
        if missing & {column.feature for column in form.columns}:
            raise Refuted("evidence.ways: the model is not read where values are missing")
        return form
    return replace(
        form,
        columns=tuple(_column(form.columns[k], missing) for k in kept),
        weights=(form.weights[0][:, kept], *form.weights[1:]),
        # The library adds the flags that are left out.
        steps=form.steps + len(form.columns) - len(kept),
    )


def _is_flag(column: Column) -> bool:
    return isinstance(column, Filled) and column.is_flag


def _column(column: Column, missing: Way) -> Column:
    if column.feature not in missing:
        return Column(column.name, column.feature, column.table)
    if not isinstance(column, Filled) or not math.isfinite(column.missing):
        raise Refuted(f"evidence.ways: the column {column.name!r} is not read where its value is missing")
    return Column(column.name, column.feature, (column.missing, column.missing))
