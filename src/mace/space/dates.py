"""Dates and moments: whole numbers of a unit since 1970-01-01, shown as dates.

Inside MACE a date is an integer like any other. Rows, answers, constraints and files hold it as ISO text, ``2024-02-29`` or
``2024-02-29 10:30``, and frames in the dtype of their column. There are no time zones: a moment is what the calendar and the clock show.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mace.errors import InvalidSpace
from mace.exact import Floats
from mace.space.features import Integer, Number, Value, is_missing, restore, state_of

UNITS = {
    "day": 86_400_000_000,
    "hour": 3_600_000_000,
    "minute": 60_000_000,
    "second": 1_000_000,
    "millisecond": 1_000,
    "microsecond": 1,
}
"""The units, and how many microseconds each has."""

SHOWN = {
    "hour": "minutes",
    "minute": "minutes",
    "second": "seconds",
    "millisecond": "milliseconds",
    "microsecond": "microseconds",
}
"""Down to what a moment of a unit is shown."""

DATE_DTYPES = (
    *(f"datetime64[{unit}]" for unit in ("s", "ms", "us", "ns")),
    "object",
    "date32[day][pyarrow]",
    *(f"timestamp[{unit}][pyarrow]" for unit in ("s", "ms", "us", "ns")),
)
"""The dtypes of columns of dates; in one of objects they are Python's own."""

START = datetime.datetime(1970, 1, 1)

ISO = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?)?\Z")


@dataclass(frozen=True, slots=True, repr=False)
class Date(Integer):
    """A date in ``[low, high]``, or a moment: a whole number of ``unit`` since 1970-01-01. The ends may be given as dates or their text."""

    unit: str = "day"

    def __post_init__(self) -> None:
        if self.unit not in UNITS:
            raise InvalidSpace(f"date: unit is {self.unit!r:.40}; accepted: {', '.join(UNITS)}.")
        for name in ("low", "high"):
            object.__setattr__(self, name, self._end(name, getattr(self, name)))
        if isinstance(self.observed, tuple | list):
            object.__setattr__(self, "observed", tuple(self._end("observed", end) for end in self.observed))
        Integer.__post_init__(self)
        for end in (self.low, self.high):
            self.text(end)

    __getstate__, __setstate__ = state_of, restore

    def _end(self, name: str, value: object) -> object:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return value
        try:
            return self.number(value)
        except ValueError as error:
            raise InvalidSpace(f"date: {name} is {value!r:.60}, {error}.") from error

    def _checked_dtype(self) -> str | None:
        if self.dtype is None or self.dtype in DATE_DTYPES:
            return None if self.dtype == "datetime64[us]" else self.dtype
        raise InvalidSpace(f"date: dtype is {self.dtype!r}; accepted: {', '.join(DATE_DTYPES)}.")

    def number(self, value: object) -> int:
        """Return a date, a moment or its text as a number.

        Raises
        ------
        ValueError
            It is none, or finer than the unit; the message says what it is.
        """
        found = microseconds(value)
        if found % UNITS[self.unit]:
            raise ValueError(f"finer than a {self.unit}")
        return found // UNITS[self.unit]

    def text(self, value: Number) -> str:
        """Return the date of a number."""
        try:
            moment = START + datetime.timedelta(microseconds=int(value) * UNITS[self.unit])
        except OverflowError as error:
            raise InvalidSpace(f"date: {value!r} {self.unit}s since 1970 are beyond the years 1 to 9999.") from error
        return moment.date().isoformat() if self.unit == "day" else moment.isoformat(" ", SHOWN[self.unit])

    def begins(self, of: Literal["Y", "M", "D"]) -> NDArray[np.float64]:
        """Return where the years, months or days after the first one begin, in the feature's unit."""
        first, last = (moment.astype(f"datetime64[{of}]") for moment in self.moments([self.low, self.high]))
        starts = np.arange(first + 1, last + 1).astype("datetime64[us]").astype(np.int64)
        return starts / UNITS[self.unit]

    def moments(self, numbers: Any) -> NDArray[np.datetime64]:
        """Return numbers as moments, NaN as none."""
        given = np.asarray(numbers)
        if given.dtype.kind in "iu":
            return (given.astype(np.int64) * UNITS[self.unit]).view("datetime64[us]")
        known = ~np.isnan(given.astype(np.float64))
        made = (
            np.rint(np.where(known, given, 0).astype(np.float64) * UNITS[self.unit])
            .astype(np.int64)
            .view("datetime64[us]")
        )
        return np.where(known, made, np.datetime64("NaT"))

    def numbers(self, column: Any) -> Floats:
        """Return a column of dates as numbers of units, NaN where they are missing; one finer than the unit is a fraction."""
        found = column_microseconds(column)
        return np.where(np.isnan(found), np.nan, found / UNITS[self.unit])


def date(
    low: object,
    high: object,
    step: int | None = None,
    missing: bool = False,
    *,
    unit: str = "day",
    dtype: str | None = None,
) -> Date:
    """Return a feature of dates, or of moments.

    Parameters
    ----------
    low, high : date, datetime, or text
        The range, both ends included: ``"2024-02-29"``, ``"2024-02-29 10:30"``.
    step : int, optional
        Counterfactuals take only so many units after ``low``, or multiples of that, or the factual's own value.
    missing : bool
        Whether a missing value is one of the feature's.
    unit : {"day", "hour", "minute", "second", "millisecond", "microsecond"}
        Of what values are whole numbers. Amounts in constraints are counted in it.
    dtype : str, optional
        The dtype of its column where it is not datetime64[us].

    Examples
    --------
    >>> date("2020-01-01", "2024-12-31").size
    1827
    """
    return Date(low, high, step, missing, dtype, unit=unit)  # type: ignore[arg-type]


def is_moment(value: object) -> bool:
    """Return whether a value is a date or a moment of Python, numpy or pandas."""
    return isinstance(value, datetime.date | np.datetime64)


def microseconds(value: object) -> int:
    """Return a date, a moment or its ISO text as microseconds since 1970-01-01; of anything else say what it is."""
    if isinstance(value, str):
        if not ISO.match(value.strip()):
            raise ValueError("which is no date: write it as 2024-02-29, or 2024-02-29 10:30")
        try:
            value = datetime.datetime.fromisoformat(value.strip())
        except ValueError:
            raise ValueError("which is not in the calendar") from None
    if isinstance(value, np.datetime64):
        made = value.astype("datetime64[us]")
        if made != value:
            raise ValueError("finer than a microsecond")
        return int(made.astype(np.int64))
    if not isinstance(value, datetime.date):
        raise ValueError(f"of type {type(value).__name__}; a date is needed, as 2024-02-29")
    if isinstance(value, datetime.datetime):
        if value.tzinfo is not None:
            raise ValueError("which has a time zone; give the local time without one")
        if getattr(value, "nanosecond", 0):
            raise ValueError("finer than a microsecond")
        return (value.replace(tzinfo=None) - START) // datetime.timedelta(microseconds=1)
    return (value - START.date()) // datetime.timedelta(microseconds=1)


def column_microseconds(column: Any) -> Floats:
    """Return a column of dates as microseconds since 1970-01-01, NaN where they are missing.

    Raises
    ------
    ValueError
        A value is no date.
    """
    kind = getattr(column, "dtype", None)
    if isinstance(kind, np.dtype) and kind.kind == "M":
        moments = np.asarray(column)
        made = moments.astype("datetime64[us]")
        if not np.array_equal(made[~np.isnat(made)], moments[~np.isnat(made)]):
            raise ValueError("finer than a microsecond")
        return np.where(np.isnat(made), np.nan, made.astype(np.int64).astype(np.float64))
    cells = column.tolist() if hasattr(column, "tolist") else list(column)
    return np.array([np.nan if is_missing(cell) else float(microseconds(cell)) for cell in cells])


def unit_of(found: Floats) -> str:
    """Return the greatest unit of which all of some microseconds are whole numbers."""
    whole = found[~np.isnan(found)].astype(np.int64)
    return next(unit for unit, size in UNITS.items() if not (whole % size).any())


def as_text(value: object) -> object:
    """Return a date or a moment as its text; anything else as it is."""
    if not is_moment(value) or is_missing(value):
        return value
    found = microseconds(value)
    unit = unit_of(np.array([float(found)]))
    return Date(0, 0, unit=unit).text(found // UNITS[unit])


def cells_of(feature: Date, values: Iterable[Value]) -> Any:
    """Return numbers as what pandas makes a column of the feature's dtype of."""
    import pandas as pd

    listed = list(values)
    if feature.dtype != "object":
        moments = feature.moments([np.nan if value is None else value for value in listed])
        return moments if feature.dtype is None else pd.Series(moments).astype(feature.dtype).array  # type: ignore[call-overload]
    texts = [None if value is None else feature.text(value) for value in listed]
    read = datetime.date.fromisoformat if feature.unit == "day" else datetime.datetime.fromisoformat
    return pd.Series([None if text is None else read(text) for text in texts], dtype=object)


def days(X: Any) -> Floats:
    """Return columns of dates as days since 1970-01-01, a moment with its part of the day, NaN where they are missing.

    For ``FunctionTransformer(mace.days)`` before a model, which MACE reads exactly.

    Examples
    --------
    >>> import pandas as pd
    >>> days(pd.DataFrame({"start": pd.to_datetime(["1970-01-02 00:00", "2024-02-29 12:00"])}))
    array([[1.00000e+00],
           [1.97825e+04]])
    """
    return np.column_stack([column / UNITS["day"] for column in _columns(X)])


def years(X: Any) -> NDArray[np.float64]:
    """Return the year of each date, NaN where it is missing. For ``FunctionTransformer(mace.years)``, as :func:`days`.

    Examples
    --------
    >>> import pandas as pd
    >>> years(pd.DataFrame({"start": pd.to_datetime(["1970-01-02", "2024-02-29"])}))
    array([[1970.],
           [2024.]])
    """
    return _counted(X, "Y", lambda count: count + START.year)


def months(X: Any) -> NDArray[np.float64]:
    """Return the month of each date, 1 to 12, NaN where it is missing. For ``FunctionTransformer(mace.months)``, as :func:`days`.

    Examples
    --------
    >>> import pandas as pd
    >>> months(pd.DataFrame({"start": pd.to_datetime(["1970-01-02", "2024-02-29"])}))
    array([[1.],
           [2.]])
    """
    return _counted(X, "M", lambda count: count % 12 + 1)


def weekdays(X: Any) -> NDArray[np.float64]:
    """Return the day of the week of each date, 0 (Monday) to 6, NaN where it is missing. For ``FunctionTransformer(mace.weekdays)``,
    as :func:`days`.

    Examples
    --------
    >>> import pandas as pd
    >>> weekdays(pd.DataFrame({"start": pd.to_datetime(["1970-01-02", "2024-02-29"])}))
    array([[4.],
           [3.]])
    """
    return _counted(X, "D", lambda count: (count + START.weekday()) % 7)


CALENDAR: dict[Callable[[Any], NDArray[np.float64]], Literal["Y", "M", "D"]] = {years: "Y", months: "M", weekdays: "D"}
"""Functions of dates that stay the same for a year, a month or a day."""


def _counted(
    X: Any, unit: Literal["Y", "M", "D"], made: Callable[[NDArray[np.int64]], NDArray[np.int64]]
) -> NDArray[np.float64]:
    """Return what is made of how many whole years, months or days since 1970-01-01 each date comes after."""
    found = []
    for column in _columns(X):
        gone = np.isnan(column)
        moments = np.where(gone, 0, column).astype(np.int64).view("datetime64[us]")
        found.append(np.where(gone, np.nan, made(moments.astype(f"datetime64[{unit}]").astype(np.int64))))
    return np.column_stack(found)


def _columns(X: Any) -> list[NDArray[np.float64]]:
    """Return the columns of dates of a frame or array as microseconds since 1970-01-01."""
    from mace.space.frames import as_pandas

    made = as_pandas(X)
    columns = [made.iloc[:, k] for k in range(made.shape[1])] if hasattr(made, "iloc") else list(np.asarray(made).T)
    return [column_microseconds(column) for column in columns]
