"""Rows as users give them, cell by cell, with errors that say what to do."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, TypeGuard

from mace.errors import InvalidRow, did_you_mean
from mace.space.dates import Date, is_moment
from mace.space.features import (
    Categorical,
    Feature,
    Integer,
    Level,
    Number,
    Ordinal,
    Real,
    Value,
    is_missing,
    plain_scalar,
    position_of,
)


def as_mapping(row: Any, names: tuple[str, ...]) -> dict[str, object]:
    """Return a row, given in any of the accepted forms, as a dict from its names to its cells."""
    if isinstance(row, Mapping):
        return dict(row)
    if hasattr(row, "columns") and not hasattr(row, "iloc"):
        from mace.space.frames import as_pandas

        row = as_pandas(row)
    if hasattr(row, "columns") and hasattr(row, "iloc"):
        if len(row) != 1:
            raise InvalidRow(
                f"A frame of {len(row)} rows; give one, as in frame.iloc[[0]], or explain all: explainer.explain_many(frame)."
            )
        if not row.columns.is_unique:
            raise InvalidRow("A column stands twice in the frame; each feature once.")
        return {name: row[name].iloc[0] for name in row.columns}
    if hasattr(row, "to_dict") and hasattr(row, "index"):
        labels: Any = row.index
        if not labels.is_unique:
            raise InvalidRow("A label stands twice in the series; each feature once.")
        return dict(row.to_dict())
    if isinstance(row, str | bytes) or not hasattr(row, "__getitem__") or getattr(row, "ndim", 1) == 0:
        raise InvalidRow(
            f"A row is a dict, a Series, a one-row frame or a sequence, not {type(row).__name__}: frame.iloc[[0]], say."
        )
    cells: Any = row[0] if getattr(row, "ndim", 1) == 2 and len(row) == 1 else row
    if len(cells) != len(names):
        raise InvalidRow(f"A sequence of {len(cells)} values for {len(names)} features, in order: {', '.join(names)}.")
    return dict(zip(names, cells, strict=True))


def number_of(name: str, feature: Feature, value: object) -> Value:
    """Return a cell as the number of its feature: its value, the position of its level, or ``None`` where it is missing."""
    value = value if isinstance(feature, Date) else plain_scalar(value)
    if is_missing(value):
        if feature.missing:
            return None
        if isinstance(feature, Categorical) and feature.missing_level is not None:
            return feature.missing_level
        raise InvalidRow(
            f"{name!r} is missing (NaN), and the feature has no missing state. {_missing_advice(name, feature)}"
        )
    match feature:
        case Ordinal(levels) | Categorical(levels):
            return _position(name, levels, value)
        case Date():
            return _moment(name, feature, value)
        case Real() | Integer():
            return _in_range(name, feature, _plain_number(name, feature, value))


def _missing_advice(name: str, feature: Feature) -> str:
    match feature:
        case Ordinal():
            return "Fill it, or add a level for it, e.g. 'missing'."
        case Categorical(levels):
            allowing = f"categorical({list(levels)}, missing=True)"
        case Real() | Integer():
            allowing = _made(feature, feature.low, feature.high, "missing=True")
    return f"Fill it, or allow it: {_replacement(name, allowing)}."


def _replacement(name: str, feature: str) -> str:
    if name.isidentifier():
        return f"FeatureSpace.replace({name}={feature})"
    return f"FeatureSpace.replace({{{name!r}: {feature}}})"


def _position(name: str, levels: tuple[Level, ...], value: object) -> int:
    position = position_of(levels, value) if isinstance(value, str | int | float) else None
    if position is not None:
        return position
    shown = ", ".join(map(repr, levels[:20])) + (", ..." if len(levels) > 20 else "")
    raise InvalidRow(f"{name!r} is {value!r}, which is not one of its levels: {shown}.{did_you_mean(value, levels)}")


def _moment(name: str, feature: Date, value: object) -> Number:
    try:
        number = feature.number(value)
    except ValueError as error:
        raise InvalidRow(f"{name!r} is {str(value) if is_moment(value) else value!r:.60}, {error}.") from error
    return _in_range(name, feature, number)


def has_decimal_comma(value: object) -> TypeGuard[str]:
    """Return whether a text is a number but for a decimal comma, as spreadsheets of many languages write it."""
    return isinstance(value, str) and re.fullmatch(r"\s*[-+]?[0-9]{1,30},[0-9]{1,30}\s*", value) is not None


def _plain_number(name: str, feature: Real | Integer, value: object) -> Number:
    kind = "real" if isinstance(feature, Real) else "integer"
    try:
        number = value if isinstance(value, int) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        number = math.nan
    if isinstance(value, str | bytes) or number != number:
        point = f" Write {value.replace(',', '.')}, with a point." if has_decimal_comma(value) else ""
        raise InvalidRow(f"{name!r} is {value!r}, a {type(value).__name__}; a number is needed ({kind}).{point}")
    if isinstance(feature, Real) and feature.is_single and abs(number) < 1e300:
        number = feature.nearest(float(number))
    if isinstance(number, float) and math.isinf(number):
        raise InvalidRow(f"{name!r} is {number}; a finite number is needed ({kind}).")
    if isinstance(feature, Integer) and number != number // 1:
        raise InvalidRow(
            f"{name!r} is {number}, a fraction; whole numbers only (integer). Round it, or make the feature real: "
            f"{_replacement(name, f'real({feature.low}, {feature.high})')}."
        )
    return number


def _in_range(name: str, feature: Real | Integer, number: Number) -> Number:
    if not feature.low <= number <= feature.high:
        low, high = min(feature.low, number), max(feature.high, number)
        shown = feature.text if isinstance(feature, Date) else str
        raise InvalidRow(
            f"{name!r} is {shown(number)}, outside its range [{shown(feature.low)}, {shown(feature.high)}]. "
            f"Widen it with {_replacement(name, _made(feature, low, high))} if this is real, or let such rows in: "
            "Explainer(model, space, outside='keep'), or --outside keep."
        )
    return int(number) if isinstance(feature, Integer) else float(number)


def _made(feature: Real | Integer, low: Number, high: Number, *more: str) -> str:
    """Return how a feature of another range is written."""
    if isinstance(feature, Date):
        unit = [] if feature.unit == "day" else [f"unit={feature.unit!r}"]
        return f"date({', '.join([*(repr(feature.text(end)) for end in (low, high)), *unit, *more])})"
    return f"{type(feature).__name__.lower()}({', '.join([str(low), str(high), *more])})"
