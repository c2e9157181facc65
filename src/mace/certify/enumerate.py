"""The checker of the enumerating lane: there is no evidence but the space itself, so it looks at every row again."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from itertools import islice, product
from math import prod
from typing import Any

import numpy as np

from mace.certify.verdict import Progress, Refuted, Unchecked
from mace.distances import point_values
from mace.distances.change import change
from mace.language import holds, syntax
from mace.problem import Problem
from mace.space import Feature, Point, Value, grid_values

MOST_POINTS = 2_000_000
TOGETHER = 1024


def check(problem: Problem, lower: Fraction | None, evidence: dict[str, Any], progress: Progress) -> None:
    """Ask the real model about every plausible row nearer than ``lower`` (about every one, where ``None``), or raise."""
    for rows, share in rows_below(problem, lower):
        _refuse(problem, rows)
        progress(share)


def rows_below(problem: Problem, lower: Fraction | None) -> Iterator[tuple[list[Point], float]]:
    """Yield the plausible rows nearer than ``lower`` (every one, where ``None``), some at a time, and the share that is done then."""
    for name, feature in problem.space.items():
        if feature.size is None:
            raise Refuted(f"evidence.lane: {name!r} takes infinitely many values, which cannot be enumerated")
    largest = max((feature.size or 1) for feature in problem.space.values())
    if largest > MOST_POINTS:
        raise Unchecked(f"a feature has {largest:,} values; at most {MOST_POINTS:,} rows are enumerated")
    measure = None if lower is None else lower**problem.metric.power
    domains = [
        _values(feature, own, problem, j, lower)
        for j, (feature, own) in enumerate(zip(problem.space.values(), problem.factual, strict=True))
    ]
    whole = max(1, prod(map(len, domains)))
    if whole > MOST_POINTS:
        raise Unchecked(f"{whole:,} rows may be nearer than lower; at most {MOST_POINTS:,} are enumerated")
    rows = product(*domains)
    seen = 0
    while chunk := list(islice(rows, TOGETHER)):
        seen += len(chunk)
        yield [row for row in _nearer(problem, measure, chunk) if problem.is_plausible(row)], seen / whole


def _values(feature: Feature, own: Value, problem: Problem, j: int, lower: Fraction | None) -> list[Value]:
    """Return the values of a feature that a row nearer than ``lower`` can have, and that conditions on it alone allow."""
    reach = Fraction(1) if lower is None else problem.metric.reach(j, lower)
    near = [value for value in _domain(feature, own) if reach >= 1 or change(feature, value, own) <= reach]
    guards = [part for part in problem.guards if syntax.variables(part) == {problem.space.names[j]}]
    return [value for value in near if all(holds(guard, _with(problem, j, value)) for guard in guards)]


def _with(problem: Problem, j: int, value: Value) -> dict[str, Any]:
    """Return the factual with another value of one feature, as conditions see it."""
    return point_values(problem.space, (*problem.factual[:j], value, *problem.factual[j + 1 :]))


def _domain(feature: Feature, own: Value) -> Iterator[Value]:
    stray = own
    for value in grid_values(feature):
        stray = None if value == own else stray
        yield value
    if feature.missing or own is None:
        yield None
    if stray is not None:
        yield stray


def _nearer(problem: Problem, measure: Fraction | None, rows: list[Point]) -> list[Point]:
    """Return the rows nearer than a measure; floats leave the far ones out, fractions decide."""
    if measure is None:
        return rows
    features = list(zip(problem.space.values(), problem.factual, strict=True))
    columns = [
        [_float_change(feature, value, own) for value in column]
        for (feature, own), column in zip(features, zip(*rows, strict=True), strict=True)
    ]
    measures = problem.metric.floats(np.array(columns).T)
    far = float(measure) * (1 + 1e-9) + 1e-12
    candidates = rows if measures is None else [row for row, m in zip(rows, measures, strict=True) if m <= far]
    return [row for row in candidates if problem.metric.measure(row) < measure]


@lru_cache(maxsize=1 << 16)
def _float_change(feature: Feature, value: Value, own: Value) -> float:
    return float(change(feature, value, own))


def _refuse(problem: Problem, rows: list[Point]) -> None:
    """Raise unless the model refuses every row. It is asked about rows together where rounding cannot matter, else one by one."""
    if not rows:
        return
    box = problem.box()
    together = problem.ask(rows)
    for row, outcome in zip(rows, together, strict=True):
        is_beyond_rounding = problem.form.is_beyond_rounding(row, problem.goal, box)
        if not is_beyond_rounding and not problem.form.is_settled(row, problem.goal):
            raise Refuted(f"{problem.space.values_of(row)} is nearer than lower, and its outcome is left to rounding")
        if problem.goal.accepts(outcome if is_beyond_rounding else problem.ask([row])[0]):
            raise Refuted(f"{problem.space.values_of(row)} is nearer than lower, and the model puts it in the target")
