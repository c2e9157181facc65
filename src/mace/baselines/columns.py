"""Between a model's columns and the features, for methods that think in columns: what an answer in columns means, and what it costs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mace.exact import Floats
from mace.space import Categorical, Column, Feature, FeatureSpace, Integer, Ordinal, Point, Real


def numbers_of(points: Sequence[Point]) -> Floats:
    """Return points as a matrix, NaN where missing."""
    return np.array([[np.nan if value is None else value for value in point] for point in points], dtype=np.float64)


def changes(space: FeatureSpace, numbers: Floats, factual: Point) -> Floats:
    """Return the change δ of each feature for many rows of numbers; beyond 1 where a number is out of range."""
    own = numbers_of([factual])[0]
    missing = np.isnan(numbers)
    is_level = np.array([isinstance(feature, Categorical) for feature in space.values()])
    width = np.array([float(feature.range) or np.inf for feature in space.values()])
    moved = np.where(is_level, numbers != own, np.abs(numbers - own) / width)
    found: Floats = np.where(missing | np.isnan(own), missing != np.isnan(own), moved)
    return found


def columns_of(columns: Sequence[Column], feature: int) -> list[int]:
    """Return the positions of the columns that read a feature."""
    return [position for position, column in enumerate(columns) if column.feature == feature]


def column_changes(
    space: FeatureSpace, columns: Sequence[Column], matrix: Floats, own: Floats, factual: Point
) -> Floats:
    """Return the change δ of each feature for many rows of columns that need not be anybody's.

    A feature in one column counts as its number does. In several columns a category counts 1 where any differs, and an ordinal
    feature the sum of the differences over K - 1.
    """
    numbers = np.tile(numbers_of([factual]), (len(matrix), 1))
    wide: dict[int, Floats] = {}
    for index, feature in enumerate(space.values()):
        read = columns_of(columns, index)
        if len(read) == 1:
            numbers[:, index] = matrix[:, read[0]]
        elif read:
            differences = np.abs(matrix[:, read] - own[read])
            total = differences.sum(axis=1)
            wide[index] = (
                (total > 0).astype(float) if isinstance(feature, Categorical) else total / float(feature.range)
            )
    found = changes(space, numbers, factual)
    for index, delta in wide.items():
        found[:, index] = delta
    return found


def projected(space: FeatureSpace, columns: Sequence[Column], matrix: Floats, factual: Point) -> Floats:
    """Return the nearest plausible numbers of many rows of columns: in range, whole, on the grid, a level."""
    numbers = np.tile(numbers_of([factual]), (len(matrix), 1))
    for index, feature in enumerate(space.values()):
        read = columns_of(columns, index)
        if not read:
            continue
        match feature:
            case Ordinal() | Categorical():
                numbers[:, index] = _nearest_level(columns, read, matrix)
            case Real() | Integer():
                numbers[:, index] = _snapped(feature, matrix[:, read[0]])
    return numbers


def _nearest_level(columns: Sequence[Column], read: list[int], matrix: Floats) -> Floats:
    tables = np.array([columns[position].table for position in read])
    far = np.abs(matrix[:, read, None] - tables[None]).sum(axis=1)
    nearest: Floats = np.argmin(far, axis=1).astype(np.float64)
    return nearest


def _snapped(feature: Real | Integer, values: Floats) -> Floats:
    clipped: Floats = np.clip(values, feature.low, feature.high)
    if feature.step is not None:
        last = (feature.size or 1) - 1
        steps = np.clip(np.round((clipped - feature.low) / feature.step), 0, last)
        return np.array([float(feature.value_at(int(k))) for k in steps])
    return clipped.round() if isinstance(feature, Integer) else clipped


def as_point(space: FeatureSpace, numbers: Floats) -> Point:
    """Return a row of numbers as a point: whole numbers as int but for real features, NaN as missing."""
    return tuple(
        None
        if np.isnan(number)
        else int(number)
        if not isinstance(feature, Real) and float(number).is_integer()
        else float(number)
        for feature, number in zip(space.values(), numbers, strict=True)
    )


def decoded(space: FeatureSpace, columns: Sequence[Column], row: Floats, factual: Point, *, raw: bool) -> Point | str:
    """Return what a row of columns says of the features, or why it says nothing.

    As in the paper's Appendix B.3 integers are rounded and the most activated category is taken; ``raw`` leaves that out. Several
    columns that no level has (two categories at once, a gap in a thermometer) say nothing where they are not repaired.
    """
    numbers = numbers_of([factual])[0]
    for index, (name, feature) in enumerate(space.items()):
        read = columns_of(columns, index)
        if not read:
            continue
        if len(read) == 1:
            numbers[index] = row[read[0]] if raw or isinstance(feature, Real) else np.round(row[read[0]])
            continue
        level = _level(feature, columns, read, row, raw=raw)
        if level is None:
            return f"the columns of {name!r} are {', '.join(f'{value:g}' for value in row[read])}, which no level has"
        numbers[index] = level
    return as_point(space, numbers)


def _level(feature: Feature, columns: Sequence[Column], read: list[int], row: Floats, *, raw: bool) -> int | None:
    if isinstance(feature, Categorical) and not raw:
        return int(_nearest_level(columns, read, row[None])[0])
    tables = np.array([columns[position].table for position in read])
    values = row[read] if raw else np.round(row[read])
    matching = np.flatnonzero((tables == values[:, None]).all(axis=0))
    return int(matching[0]) if len(matching) else None
