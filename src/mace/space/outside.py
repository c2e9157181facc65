"""Rows outside a space: the space in which such a row lies, with its own values let in."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from mace.errors import InvalidRow, InvalidSpace
from mace.exact import decimal_fraction
from mace.space.dates import Date
from mace.space.dtypes import INTEGER_DTYPES
from mace.space.features import (
    Categorical,
    Feature,
    Integer,
    Number,
    Real,
    Value,
    is_missing,
    plain_scalar,
)
from mace.space.rows import number_of
from mace.space.space import FeatureSpace, Row

MOST_WHOLE = 2**53

MOST_TIMES = 2**20
"""How far outside its range a number may lie, in widths of the range, for the model to be read over a space that other rows share."""


@dataclass(frozen=True, slots=True)
class Admission:
    """A row outside a space, let in.

    Attributes
    ----------
    space : FeatureSpace
        The space with the row's own values.
    ranges : dict
        By feature: the range in which values other than the row's own lie, where the new one is wider.
    words : dict
        By feature: what was let in, in words.
    """

    space: FeatureSpace
    ranges: dict[str, tuple[Number, Number]]
    words: dict[str, str]


def admit(space: FeatureSpace, row: Row, *, widen: bool) -> Admission | None:
    """Return the space in which a row lies; ``None`` where it lies in the given one.

    Parameters
    ----------
    space : FeatureSpace
        The features.
    row : row
        As for :meth:`FeatureSpace.validate`.
    widen : bool
        Whether a range, and the width that distances divide by, grow up to a number outside of it. Otherwise they stay, and the number is
        a value beside the range.

    Raises
    ------
    InvalidRow
        A value is of the wrong kind, a fraction of an integer, infinite, or one that the column's dtype does not hold; a level is none of
        an ordinal feature's, whose order has no place for it.
    """
    features: dict[str, Feature] = {}
    ranges: dict[str, tuple[Number, Number]] = {}
    words: dict[str, str] = {}
    cells = space.cells(row)
    for name, feature in space.items():
        try:
            number_of(name, feature, cells[name])
        except InvalidRow as refusal:
            value = cells[name] if isinstance(feature, Date) else plain_scalar(cells[name])
            try:
                made, within = _with(name, feature, value, widen)
                _check_holds(made)
            except InvalidRow:
                raise refusal from None
            except (InvalidSpace, ValueError, TypeError, OverflowError) as error:
                also = "" if str(error) in str(refusal) else f" Nor can it be let in: {error}"
                raise InvalidRow(f"{refusal}{also}") from error
            features[name] = made
            if within is not None:
                ranges[name] = within
            words[name] = _in_words(name, feature, made, value, widen)
    return Admission(space.with_features(features), ranges, words) if features else None


def roomy(space: FeatureSpace, row: FeatureSpace) -> FeatureSpace | None:
    """Return a space with the ranges of ``row`` and room beside them, which other rows outside of ``space`` have too.

    Every range grows, on both sides, by as many of its widths as the number that lies farthest outside asks for: 1, 2, 4, ... It does not
    grow below 0 where nothing is below, nor beyond what the column's dtype holds. ``None`` where there is no such space.

    Parameters
    ----------
    space : FeatureSpace
        The features.
    row : FeatureSpace
        That of a row outside, see :func:`admit`.
    """
    numeric = [name for name, feature in row.items() if isinstance(feature, Real | Integer) and feature.step is None]
    times = 1
    for name in numeric:
        old, new = space[name], row[name]
        assert isinstance(old, Real | Integer)
        assert isinstance(new, Real | Integer)
        beyond = max(old.low - new.low, new.high - old.high)
        if beyond > 0 and (old.high == old.low or beyond / (old.high - old.low) > MOST_TIMES):
            return None
        while beyond > times * (old.high - old.low):
            times *= 2
    try:
        return row.with_features({name: _with_room(space[name], row[name], times) for name in numeric})
    except (InvalidSpace, OverflowError):
        return None


def _with_room(old: Feature, new: Feature, times: int) -> Feature:
    assert isinstance(old, Real | Integer)
    assert isinstance(new, Real | Integer)
    room = times * (old.high - old.low)
    low, high = old.low - room, old.high + room
    low = max(low, 0) if new.low >= 0 else low
    if isinstance(new, Real):
        most = float(np.finfo(new.floats).max)
        low, high = (new.nearest(min(max(end, -most), most)) for end in (low, high))
    elif new.dtype in INTEGER_DTYPES:
        held = np.iinfo(new.dtype.lower())
        low, high = max(low, int(held.min)), min(high, int(held.max))
    ends: Any = {"low": min(low, new.low), "high": max(high, new.high)}
    return replace(new, **ends, observed=None)


def _with(name: str, feature: Feature, value: Any, widen: bool) -> tuple[Feature, tuple[Number, Number] | None]:
    """Return a feature that has a value, and the range of its other values where that is narrower than its own."""
    if isinstance(feature, Categorical):
        return _with_level(name, feature, value), None
    if not isinstance(feature, Real | Integer):
        raise InvalidRow(f"{name!r} is ordinal")
    if is_missing(value):
        # A column of whole numbers with a missing one is one of floats.
        return replace(feature, missing=True, dtype=None if feature.dtype in INTEGER_DTYPES else feature.dtype), None
    number: Value
    if isinstance(feature, Date):
        number = feature.number(value)
    elif isinstance(feature, Real):
        most = float(np.finfo(feature.floats).max)
        number = number_of(name, Real(-most, most, dtype=feature.dtype), value)
    else:
        number = number_of(name, Integer(-MOST_WHOLE, MOST_WHOLE), value)
    assert number is not None
    return _with_number(feature, number, widen)


def _with_level(name: str, feature: Categorical, value: Any) -> Categorical:
    if is_missing(value):
        dtype = None if feature.dtype in ("bool", *INTEGER_DTYPES) else feature.dtype
        return Categorical((*feature.levels, None if value is None else math.nan), dtype)
    kinds = {type(level) for level in feature.levels if not is_missing(level)}
    if type(value) not in kinds and not (isinstance(value, int) and kinds == {float} and not isinstance(value, bool)):
        raise InvalidRow(f"{name!r} has levels of another type")
    return Categorical((*feature.levels, value), feature.dtype)


def _with_number(
    feature: Real | Integer, number: Number, widen: bool
) -> tuple[Real | Integer, tuple[Number, Number] | None]:
    old = feature.low, feature.high
    new = min(feature.low, number), max(feature.high, number)
    counted = feature.observed or old
    if widen or counted[0] == counted[1]:
        # Of a range without a width, the way to the value counts 1.
        counted = min(counted[0], number), max(counted[1], number)
    low = _on_grid_below(feature, number) if feature.step is not None and number < feature.low else new[0]
    ends: Any = {"low": low, "high": new[1]}
    made = replace(feature, **ends, observed=None if counted == (low, new[1]) else counted)
    kept = new if widen else old
    return made, None if kept == (low, new[1]) else kept


def _on_grid_below(feature: Real | Integer, number: Number) -> Number:
    """Return the last value of a feature's grid, were it to go on below its range, that is not above a number."""
    assert feature.step is not None
    if isinstance(feature, Integer):
        return feature.low - -(-(feature.low - int(number)) // feature.step) * feature.step
    low, step = feature.decimal(feature.low), decimal_fraction(feature.step)
    first: Fraction = low - math.ceil((low - feature.decimal(number)) / step) * step
    made = feature.nearest(float(first))
    if feature.decimal(made) != first:
        raise InvalidSpace(f"the grid of step {feature.step} cannot be written down to it in {feature.floats.__name__}")
    return made


def _check_holds(feature: Feature) -> None:
    """Raise where a column of the feature's dtype does not hold its values."""
    from mace.space.frames import column_of

    count = feature.size if isinstance(feature, Categorical) else 0
    column_of(feature, list(range(count)) if isinstance(feature, Categorical) else [feature.low, feature.high])  # type: ignore[union-attr]


def _in_words(name: str, feature: Feature, made: Feature, value: Any, widen: bool) -> str:
    if is_missing(value):
        return f"{name!r} is missing, for which it has no state, and may stay so"
    if isinstance(feature, Categorical):
        return f"{name!r} is {value!r}, which is not one of its levels, and may stay so"
    assert isinstance(feature, Real | Integer)
    shown = feature.text
    number = (
        feature.number(value) if isinstance(feature, Date) else int(value) if isinstance(feature, Integer) else value
    )
    number = feature.nearest(float(number)) if isinstance(feature, Real) else number
    ends = f"[{shown(feature.low)}, {shown(feature.high)}]"
    if widen:
        low, high = shown(min(feature.low, number)), shown(max(feature.high, number))
        return f"the range of {name!r}, {ends}, is widened to [{low}, {high}] for this row"
    return f"{name!r} is {shown(number)}, outside its range {ends}, and may stay so"
