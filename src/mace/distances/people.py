"""What a distance keeps of the people it is measured by: a deviation, or a few percentiles, of each column."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

from mace.distances.percentile import Percentiles
from mace.errors import InvalidDistance
from mace.exact import Floats
from mace.space import Categorical, Date, Feature, FeatureSpace, Integer, Ordinal, Real
from mace.space.dates import UNITS, as_text, column_microseconds, microseconds
from mace.space.features import plain_scalar
from mace.space.frames import as_pandas

WAYS = ("mad", "percentile")
"""What weights may be made of."""

SHARE = Fraction(1, 20)
"""The greatest share of the people that lie between two knots."""

MOST_TEXTS = 64
"""A column of more different texts is not taken for levels."""

Pairs = list[list[Any]]
"""Values in order, each with how many people are at or below it."""


def summary(weights: object, data: Any) -> dict[str, float] | dict[str, Pairs] | None:
    """Return what is kept of the data; a summary made before is checked and returned.

    Raises
    ------
    InvalidDistance
        There is no data, or it is neither a table nor a summary.
    """
    if weights not in WAYS:
        if data is not None:
            raise InvalidDistance(
                "data belongs to weights='mad' and weights='percentile'; leave it out beside other weights."
            )
        return None
    if data is None:
        raise InvalidDistance(f"weights={weights!r} is measured by people: give them, data=X_train.")
    if weights == "mad":
        return spreads("mad", data)
    if isinstance(data, Mapping):
        for name, entry in data.items():
            _check_pairs(name, entry)
        return dict(data)
    columns = _columns(data)
    pairs = {name: _pairs(column) for name, column in columns.items()}
    return {name: each for name, each in pairs.items() if each is not None}


def _columns(data: Any) -> dict[str, pd.Series[Any]]:
    """Return the columns of a table, without what is missing."""
    frame = as_pandas(data)
    if not isinstance(frame, pd.DataFrame) or frame.empty:
        given = "data has no rows" if isinstance(frame, pd.DataFrame) else f"data is {type(data).__name__}"
        raise InvalidDistance(f"{given}; give a data frame with the rows of people.")
    return {str(name): frame.iloc[:, k].dropna() for k, name in enumerate(frame.columns)}


def spreads(kind: str, data: Any) -> dict[str, float]:
    """Return by how much each column of numbers spreads, of a table or as it was computed before; ``kind`` is one of ``SPREADS``.

    Columns of dates spread by days.

    Raises
    ------
    InvalidDistance
        There is no data, or it is neither a table nor such numbers.
    """
    if data is None:
        raise InvalidDistance(f"{kind!r} is measured by people: give them, data=X_train.")
    if isinstance(data, Mapping):
        for name, entry in data.items():
            if isinstance(entry, bool) or not isinstance(entry, int | float) or not 0 <= entry < math.inf:
                raise InvalidDistance(
                    f"data: the deviation of {name!r} is {entry!r:.40}; it must be a number of at least 0."
                )
        return dict(data)
    spread = SPREADS[kind]
    numbers = {name: _as_numbers(column) for name, column in _columns(data).items()}
    return {name: spread(column) for name, column in numbers.items() if column is not None}


def a_day(feature: Feature) -> int | Fraction:
    """Return how many of its units a feature of dates counts in a day, by which data spreads; 1 of any other."""
    return Fraction(UNITS["day"], UNITS[feature.unit]) if isinstance(feature, Date) else 1


def _is_number(column: pd.Series[Any]) -> bool:
    is_number = pd.api.types.is_numeric_dtype(column.dtype) and not pd.api.types.is_bool_dtype(column.dtype)
    return bool(is_number and len(column) and np.isfinite(column.to_numpy(dtype=np.float64)).all())


def _moments(column: pd.Series[Any]) -> Floats | None:
    """Return a column of dates, or of their texts, as microseconds; ``None`` of any other."""
    try:
        return column_microseconds(column) if len(column) else None
    except ValueError:
        return None


def _as_numbers(column: pd.Series[Any]) -> pd.Series[Any] | None:
    """Return a column of numbers, of dates as days; ``None`` of any other."""
    if _is_number(column):
        return column
    moments = _moments(column)
    return None if moments is None else pd.Series(moments / UNITS["day"])


def _is_ordered(column: pd.Series[Any]) -> bool:
    return isinstance(column.dtype, pd.CategoricalDtype) and bool(column.dtype.ordered) and len(column) > 0


def _has_levels(column: pd.Series[Any]) -> bool:
    """Return whether a column has an order, or so few texts that they may be the levels of one, which the space then says."""
    if _is_ordered(column):
        return True
    return all(isinstance(each, str) for each in column) and 0 < column.nunique() <= MOST_TEXTS


# ---- deviations


def _deviation(column: pd.Series[Any]) -> float:
    """Return the median absolute deviation; where it is 0, as of a column that is mostly one value, the mean absolute deviation."""
    values = column.to_numpy(dtype=np.float64)
    apart = np.abs(values - np.median(values))
    return float(np.median(apart)) or float(np.mean(apart))


def _standard_deviation(column: pd.Series[Any]) -> float:
    """Return the standard deviation of a sample, as pandas has it; 0 of a single number."""
    return float(column.astype(np.float64).std()) if len(column) > 1 else 0.0


SPREADS = {"mad": _deviation, "sd": _standard_deviation}
"""Measures of the spread of a column, by their names."""


def deviation_weights(space: FeatureSpace, data: Mapping[str, float]) -> tuple[Fraction, ...]:
    """Return weights by which a number's change by its column's deviation costs what another category does.

    Levels, and numbers whose column has one value, count 1: the whole range is one category's worth.
    """
    return tuple(_weight(name, feature, data) for name, feature in space.items())


def _weight(name: str, feature: Feature, data: Mapping[str, float]) -> Fraction:
    if not isinstance(feature, Real | Integer) or feature.range == 0:
        return Fraction(1)
    if name not in data:
        raise InvalidDistance(f"data has no numbers in a column {name!r}, which is a feature; add them.")
    return feature.range / (Fraction(data[name]) * a_day(feature)) if data[name] else Fraction(1)


# ---- percentiles


def _pairs(column: pd.Series[Any]) -> Pairs | None:
    """Return values with how many people are at or below each: all levels, or numbers and dates that have few people between them.

    ``None`` of a column that has no order.
    """
    counts = column.value_counts(sort=False)
    if not _is_number(column):
        if _has_levels(column):
            levels = counts if _is_ordered(column) else counts.astype(int).rename(index=str)
            return [[plain_scalar(level), int(count)] for level, count in levels.sort_index().cumsum().items()]
        moments = _moments(column)
        if moments is None:
            return None
        counts = pd.Series(moments.astype("datetime64[us]")).value_counts(sort=False)
    rising = counts.sort_index().cumsum().items()
    each = [(as_text(plain_scalar(value)), int(count)) for value, count in rising]
    most, below = SHARE * len(column), [count for _, count in each]
    kept = [0]
    while kept[-1] < len(each) - 1:
        last = bisect.bisect_right(below, below[kept[-1]] + most) - 1
        kept.append(max(last, kept[-1] + 1))
    return [list(each[k]) for k in kept]


def _check_pairs(name: object, entry: Any) -> None:
    try:
        values, counts = zip(*entry, strict=True)
        is_told_apart = len(set(values)) == len(values) and all(isinstance(each, str | int | float) for each in values)
    except (TypeError, ValueError):
        values = ()
    if not values:
        raise InvalidDistance(
            f"data: {name!r} is {entry!r:.60}; give pairs of a value and how many people are at or below it."
        )
    is_counted = all(isinstance(count, int) and not isinstance(count, bool) for count in counts)
    if not is_counted or counts[0] < 0 or counts[-1] < 1 or any(a > b for a, b in itertools.pairwise(counts)):
        raise InvalidDistance(f"data: the counts of {name!r} must be whole numbers that do not fall.")
    if not is_told_apart or not all(math.isfinite(each) for each in values if not isinstance(each, str)):
        raise InvalidDistance(f"data: the values of {name!r} must be numbers or texts, each once.")


def scales_of(space: FeatureSpace, data: Mapping[str, Pairs]) -> tuple[Percentiles | None, ...]:
    """Return the percentiles of each feature that has an order and more than one value."""
    return tuple(_scale(name, feature, data) for name, feature in space.items())


def _scale(name: str, feature: Feature, data: Mapping[str, Pairs]) -> Percentiles | None:
    if isinstance(feature, Categorical) or feature.range == 0:
        return None
    if name not in data:
        way = "" if isinstance(feature, Real | Integer) else ", or make it an ordered category"
        raise InvalidDistance(
            f"data has no numbers, or levels in order, in a column {name!r}, which is a feature; add them{way}."
        )
    counts = (
        _of_levels(name, feature, data[name])
        if isinstance(feature, Ordinal)
        else _of_numbers(name, feature, data[name])
    )
    whole = counts[-1][1]
    return Percentiles(tuple(value for value, _ in counts), tuple(count / whole for _, count in counts))


def _of_numbers(name: str, feature: Real | Integer, pairs: Pairs) -> list[tuple[Fraction, Fraction]]:
    """Return knots with counts. Where the range goes beyond the data, its upper end counts as one more person: no step is for nothing."""
    knots = _numbers(name, _of_dates(name, feature, pairs) if isinstance(feature, Date) else pairs)
    low, high = Fraction(feature.low), Fraction(feature.high)
    before = [(low, Fraction(0))] if low < knots[0][0] else []
    after = [(high, knots[-1][1] + 1)] if high > knots[-1][0] else []
    return [*before, *knots, *after]


def _of_dates(name: str, feature: Date, pairs: Pairs) -> Pairs:
    """Return pairs with their dates, which are texts, in the units of a feature."""
    try:
        return [
            [Fraction(microseconds(value), UNITS[feature.unit]) if isinstance(value, str) else value, count]
            for value, count in pairs
        ]
    except ValueError as error:
        raise InvalidDistance(f"data: {name!r} has a text {error}.") from error


def _numbers(name: str, pairs: Pairs) -> list[tuple[Fraction, Fraction]]:
    if any(isinstance(value, str) for value, _ in pairs):
        raise InvalidDistance(f"data: {name!r} has texts, and is a number in the space.")
    knots = sorted((Fraction(value), Fraction(count)) for value, count in pairs if count)
    if any(a[1] >= b[1] for a, b in itertools.pairwise(knots)):
        raise InvalidDistance(f"data: the counts of {name!r} do not rise with its values.")
    return knots


def _of_levels(name: str, feature: Ordinal, pairs: Pairs) -> list[tuple[Fraction, Fraction]]:
    """Return the positions of levels with counts; a level that nobody has counts as one person."""
    levels: list[Any] = list(feature.levels)
    if all(level in dict(pairs) for level in levels) or any(isinstance(each, str) for each in [*dict(pairs), *levels]):
        counts = [0, *(count for _, count in pairs)]
        people = {value: Fraction(b - a) for (value, _), (a, b) in zip(pairs, itertools.pairwise(counts), strict=True)}
        each = [people.get(level, Fraction(0)) for level in levels]
    else:
        knots = _numbers(name, pairs)
        scale = Percentiles(tuple(value for value, _ in knots), tuple(count for _, count in knots))
        below = [Fraction(0) if level < knots[0][0] else scale.at(Fraction(level)) for level in levels]
        each = [max(b - a, Fraction(0)) for a, b in itertools.pairwise([Fraction(0), *below])]
    totals = itertools.accumulate(count or Fraction(1) for count in each)
    return [(Fraction(k), total) for k, total in enumerate(totals)]
