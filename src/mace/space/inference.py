"""Inferring a feature space from a data frame, with a sentence for every guess."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd

from mace.errors import InvalidSpace, did_you_mean
from mace.space.dates import DATE_DTYPES, UNITS, Date, column_microseconds, unit_of
from mace.space.features import MOST_LEVELS, Categorical, Feature, Integer, Ordinal, Real, plain_scalar, with_dtype
from mace.space.frames import as_pandas, dtype_of, refuse_zone


def infer(frame: Any, overrides: Mapping[str, Feature]) -> tuple[dict[str, Feature], dict[str, str], dict[str, float]]:
    """Return the features of ``frame``; for each one that was guessed, the reason; and of what its numbers are multiples."""
    frame = as_pandas(frame)
    if not isinstance(frame, pd.DataFrame):
        raise InvalidSpace(f"from_frame needs a data frame (pandas, polars, pyarrow), not {type(frame).__name__}.")
    if frame.empty:
        raise InvalidSpace(f"The frame has {frame.shape[0]} rows and {frame.shape[1]} columns; nothing to infer from.")
    for name in overrides:
        if name not in frame.columns:
            raise InvalidSpace(f"There is no column {name!r} to override.{did_you_mean(name, frame.columns)}")
    features: dict[str, Feature] = {}
    guesses: dict[str, str] = {}
    round_to: dict[str, float] = {}
    for position, name in enumerate(frame.columns):
        if not isinstance(name, str):
            raise InvalidSpace(
                f"Column name {name!r} is not text. Rename it: frame.columns = frame.columns.astype(str)."
            )
        if name in features:
            raise InvalidSpace(f"Column {name!r} stands twice; give each column its own name.")
        column = frame.iloc[:, position]
        if name in overrides:
            features[name] = overrides[name]
        else:
            _refuse_identifier(name, column)
            features[name], guesses[name] = _infer_column(name, column)
            guesses[name] += _suggestion(name, features[name], column)
        features[name] = with_dtype(features[name], dtype_of(column, features[name]))
        if (unit := _unit(features[name], column)) is not None:
            round_to[name] = unit
            if name in guesses:
                guesses[name] += f"; answers are rounded to multiples of {unit:g}"
    return features, guesses, round_to


def _infer_column(name: str, column: pd.Series[Any]) -> tuple[Feature, str]:
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return _infer_category(name, column, dtype)
    if _is_of_dates(column):
        return _infer_dates(name, column)
    if pd.api.types.is_bool_dtype(dtype) or pd.api.types.is_string_dtype(dtype) or dtype == np.dtype(object):
        return _infer_levels(name, column)
    if pd.api.types.is_integer_dtype(dtype):
        return _infer_number(name, column, whole=True)
    if pd.api.types.is_float_dtype(dtype):
        return _infer_number(name, column, whole=False)
    raise InvalidSpace(
        f"Column {name!r} has dtype {dtype}, which is none of number, text, bool, date and category. "
        "Turn it into one (a duration into seconds, say), or drop it."
    )


def _is_of_dates(column: pd.Series[Any]) -> bool:
    dtype = column.dtype
    if pd.api.types.is_datetime64_any_dtype(dtype) or str(dtype) in DATE_DTYPES[-5:]:
        return True
    present: Any = column.dropna() if dtype == np.dtype(object) else ()
    return len(present) > 0 and all(isinstance(value, date) for value in present)


def are_iso_dates(column: pd.Series[Any]) -> bool:
    """Return whether a column holds texts, and every one is a date or a moment as :func:`microseconds` reads it."""
    present = pd.unique(column.dropna())
    if not len(present) or not all(isinstance(value, str) for value in present):
        return False
    try:
        return bool(len(column_microseconds(present)))
    except ValueError:
        return False


def _infer_dates(name: str, column: pd.Series[Any]) -> tuple[Feature, str]:
    refuse_zone(
        name, getattr(column.dtype, "tz", None) or getattr(getattr(column.dtype, "pyarrow_dtype", None), "tz", None)
    )
    try:
        found = column_microseconds(column)
    except ValueError as error:
        raise InvalidSpace(f"Column {name!r} has a value {error}. Round it, or drop the column.") from error
    missing = bool(np.isnan(found).any())
    present = found[~np.isnan(found)]
    if not len(present):
        raise InvalidSpace(
            f"Column {name!r} has no value at all; drop it, or pass {name}=date(low, high, missing=True)."
        )
    unit = unit_of(present)
    low, high = (int(end) // UNITS[unit] for end in (present.min(), present.max()))
    feature = Date(low, high, None, missing, unit=unit)
    state = f", and missing, since {_values(int(np.isnan(found).sum()))}" if missing else ""
    ends = f"[{feature.text(low)}, {feature.text(high)}]"
    return feature, f"date, from dtype {column.dtype}: observed range {ends}, counted in {unit}s{state}"


def _refuse_identifier(name: str, column: pd.Series[Any]) -> None:
    """Refuse a column of more different texts than a feature may have levels."""
    dtype = column.dtype
    if len(column) <= MOST_LEVELS or not (
        isinstance(dtype, pd.CategoricalDtype) or pd.api.types.is_string_dtype(dtype) or dtype == np.dtype(object)
    ):
        return
    try:
        distinct = column.nunique()
    except TypeError:  # of lists: refused where levels are made
        return
    if distinct > MOST_LEVELS:
        raise InvalidSpace(
            f"Column {name!r} has {distinct:,} different values; a feature has at most {MOST_LEVELS:,} levels. "
            "Drop it where it is an identifier, or group its values."
        )


MANY = 20
"""A column of at least this many different values, one a row, looks like an identifier."""


def _suggestion(name: str, feature: Feature, column: pd.Series[Any]) -> str:
    """Return what to check about a guess; empty where nothing strikes the eye."""
    present = column.dropna()
    distinct = present.nunique()
    if isinstance(feature, Categorical) and are_iso_dates(column):
        return f". Check: its texts are dates; pd.to_datetime(frame[{name!r}]) makes a feature of dates of them"
    if distinct == 1:
        return ". Check: it has one value only, so no counterfactual changes it; drop it, or widen it"
    if distinct == len(present) >= MANY and not isinstance(feature, Real | Date):
        return (
            f". Check: every row has its own value, as an identifier has; drop it, or keep it with mace.fixed({name!r})"
        )
    if isinstance(feature, Integer) and not isinstance(feature, Date) and distinct == 2:
        low, high = feature.low, feature.high
        return f". Check: it has two values only; if they are kinds, not amounts, use categorical([{low}, {high}])"
    if isinstance(feature, Real) and bool((present == present.round()).all()):
        gaps = ", missing=True" if feature.missing else ""
        return f". Check: it holds whole numbers only; if it must, use integer({feature.low:g}, {feature.high:g}{gaps})"
    return ""


ENOUGH_VALUES = 30
"""Different values from which on their decimals say something of the column."""

MOST_DECIMALS = 9

MOST_UNITS = 1e8
"""More multiples of a unit than this are no round numbers."""


def _unit(feature: Feature, column: pd.Series[Any]) -> float | None:
    """Return the greatest power of ten that all values of a column are multiples of; ``None`` where that says nothing."""
    if not isinstance(feature, Real | Integer) or isinstance(feature, Date) or feature.step is not None:
        return None
    values = pd.unique(column.dropna())
    if len(values) < ENOUGH_VALUES:
        return None
    exponent = 300
    for value in values:
        text = feature.text(float(value)) if isinstance(feature, Real) else str(int(value))
        if number := Decimal(text):
            last = number.normalize().as_tuple().exponent
            exponent = min(exponent, int(last))
            if exponent < -MOST_DECIMALS:
                return None
    if isinstance(feature, Integer):
        return None if exponent == 0 else 10**exponent
    unit = float(f"1e{exponent}")
    is_fine = max(abs(feature.low), abs(feature.high)) > MOST_UNITS * unit
    return None if is_fine else unit


def _infer_category(name: str, column: pd.Series[Any], dtype: pd.CategoricalDtype) -> tuple[Feature, str]:
    seen = set(column.dropna().unique())
    levels = tuple(plain_scalar(level) for level in dtype.categories if level in seen)
    if dtype.ordered:
        _refuse_missing(name, column)
        return Ordinal(levels), f"ordinal, from an ordered category dtype with {_levels(levels)}"  # type: ignore[arg-type]
    missing, state = _missing_level(column)
    return (
        Categorical((*levels, *missing)),  # type: ignore[arg-type]
        f"categorical, from a category dtype with {_levels(levels)}{state}",
    )


def _infer_levels(name: str, column: pd.Series[Any]) -> tuple[Feature, str]:
    missing, state = _missing_level(column)
    try:
        levels = list(dict.fromkeys(plain_scalar(value) for value in column.dropna().unique()))
    except TypeError as error:
        raise InvalidSpace(
            f"Column {name!r} holds lists or other values that are no levels. Drop it, or turn it into text."
        ) from error
    try:
        levels.sort()
        order = "sorted"
    except TypeError:
        levels.sort(key=lambda level: (type(level).__name__, str(level)))
        order = "sorted as text, since they are of several types"
    return (
        Categorical((*levels, *missing)),  # type: ignore[arg-type]
        f"categorical, from dtype {column.dtype}: {_levels(levels)}, {order}{state}",
    )


def _missing_level(column: pd.Series[Any]) -> tuple[tuple[float | None, ...], str]:
    """Return the level of missing values, as they are in the column, and what to say of it; nothing where there are none."""
    count = int(column.isna().sum())
    if not count:
        return (), ""
    is_none = column.dtype == np.dtype(object) and any(value is None for value in column)
    return (None if is_none else math.nan,), f", and missing as a level, since {_values(count)}"


def _refuse_missing(name: str, column: pd.Series[Any]) -> None:
    if column.isna().any():
        raise InvalidSpace(
            f"Column {name!r} has {int(column.isna().sum())} missing values, and levels in order have no missing state. "
            f"Make it unordered, or name a level: frame[{name!r}].cat.add_categories('missing').fillna('missing')."
        )


def _infer_number(name: str, column: pd.Series[Any], *, whole: bool) -> tuple[Feature, str]:
    kind = "integer" if whole else "real"
    present = column.dropna()
    missing = len(present) < len(column)
    if present.empty:
        raise InvalidSpace(
            f"Column {name!r} has no value at all; drop it, or pass {name}={kind}(low, high, missing=True)."
        )
    low, high = present.min(), present.max()
    if not whole and not (np.isfinite(low) and np.isfinite(high)):
        raise InvalidSpace(f"Column {name!r} holds an infinite value; replace it, or pass {name}=real(low, high).")
    feature = Integer(int(low), int(high), None, missing) if whole else Real(float(low), float(high), None, missing)
    state = f", and missing, since {_values(len(column) - len(present))}" if missing else ""
    return feature, f"{kind}, from dtype {column.dtype}: observed range [{feature.low}, {feature.high}]{state}"


def _values(count: int) -> str:
    return "1 value is" if count == 1 else f"{count} values are"


def _levels(levels: Sequence[object]) -> str:
    return f"{len(levels)} observed level{'' if len(levels) == 1 else 's'}"
