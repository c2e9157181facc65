"""Data frames of other libraries: polars, pyarrow and whatever narwhals knows, in and out."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from mace.errors import InvalidOption, InvalidSpace, MissingPackage
from mace.space.dates import DATE_DTYPES, Date, cells_of
from mace.space.dtypes import INTEGER_DTYPES, LEVEL_DTYPES, NULLABLE, Category
from mace.space.features import Categorical, Feature, Integer, Ordinal, Value, is_missing, plain_scalar


def column_of(feature: Feature, values: Sequence[Value]) -> Any:
    """Return a feature's values as what pandas makes a column of its dtype of."""
    if isinstance(feature, Date):
        return cells_of(feature, values)
    if isinstance(feature, Ordinal | Categorical):
        levels = [feature.levels[int(value or 0)] for value in values]
        if feature.dtype is not None:
            return pd.Series(levels, dtype=pandas_dtype(feature))
        return _plain_levels(feature, levels)
    dtype = pandas_dtype(feature) or ("int64" if isinstance(feature, Integer) and not feature.missing else "float64")
    if dtype in INTEGER_DTYPES or dtype in ("float16", "float32", "float64"):
        return np.array([np.nan if value is None else value for value in values], dtype=dtype)
    return pd.array(list(values), dtype=dtype)  # type: ignore[arg-type]


def _plain_levels(feature: Ordinal | Categorical, levels: list[Any]) -> Any:
    """Return levels as pandas makes a column of them; where one stands for missing values, as in the data that it came from: ``None`` stays
    ``None``, and text with NaN stays objects."""
    if not any(map(is_missing, feature.levels)):
        return levels
    is_numeric = all(isinstance(level, int | float) for level in feature.levels)
    return pd.Series(levels, dtype="float64" if is_numeric else object)


def pandas_dtype(feature: Feature) -> Any:
    """Return the dtype that a feature states, as pandas has it."""
    dtype = feature.dtype
    return _category(dtype, tuple(map(type, dtype.categories))) if isinstance(dtype, Category) else dtype


@lru_cache(maxsize=256)
def _category(dtype: Category, types: tuple[type, ...]) -> pd.CategoricalDtype:
    """Return a category dtype; ``types`` tell 1 from True."""
    return pd.CategoricalDtype(pd.Index(list(dtype.categories), dtype=dtype.of), dtype.ordered)


def dtype_of(column: pd.Series[Any], feature: Feature) -> str | Category | None:
    """Return what a feature must remember of its column's dtype: nothing where pandas would make the same of its values."""
    plain = pd.Series(column_of(feature, _some_values(feature))).dtype
    dtype = column.dtype
    if dtype == plain:
        return None
    if not isinstance(dtype, pd.CategoricalDtype):
        held = DATE_DTYPES if isinstance(feature, Date) else LEVEL_DTYPES
        return str(dtype) if str(dtype) in held and pd.api.types.pandas_dtype(str(dtype)) == dtype else None
    categories = tuple(plain_scalar(level) for level in dtype.categories)
    of = dtype.categories.dtype
    return Category(categories, bool(dtype.ordered), None if pd.Index(list(categories)).dtype == of else str(of))


def _some_values(feature: Feature) -> list[Value]:
    if isinstance(feature, Ordinal | Categorical):
        return list(range(len(feature.levels)))
    return [feature.low, feature.high]


def is_foreign_frame(data: object) -> bool:
    """Return whether this is a data frame of another library than pandas; none is imported to find out."""
    if isinstance(data, pd.DataFrame) or type(data).__module__.partition(".")[0] not in sys.modules:
        return False
    if not hasattr(data, "columns") and not hasattr(data, "column_names"):
        return False
    import narwhals as nw

    return bool(nw.dependencies.is_into_dataframe(data))


def as_pandas(data: Any) -> Any:
    """Return a frame of another library as a pandas frame, column by column; anything else as it is.

    Numbers keep their width; whole ones with missing ones become pandas' nullable integers, enumerations ordered categories.
    """
    if not is_foreign_frame(data):
        return data
    import narwhals as nw

    frame = nw.from_native(data, eager_only=True)
    return pd.DataFrame({name: _column(name, frame[name], nw) for name in frame.columns})


def _column(name: str, column: Any, nw: Any) -> pd.Series[Any]:
    dtype, values = column.dtype, column.to_list()
    has_missing = any(value is None for value in values)
    if dtype == nw.Enum:
        return pd.Series(pd.Categorical(values, categories=list(dtype.categories), ordered=True))
    if dtype == nw.Categorical:
        return pd.Series(values, dtype=object).astype("category")
    if dtype.is_integer():
        width = _width(dtype, INTEGER_DTYPES, "int64")
        return pd.Series(values, dtype=NULLABLE[INTEGER_DTYPES.index(width)] if has_missing else width)
    if dtype.is_float() or dtype.is_decimal():
        numbers = [float("nan") if value is None else float(value) for value in values]
        return pd.Series(numbers, dtype=_width(dtype, ("float16", "float32"), "float64"))
    if dtype == nw.Boolean:
        return pd.Series(values, dtype="boolean" if has_missing else "bool")
    if dtype in (nw.String, nw.Date):
        return pd.Series(values, dtype=object)
    if dtype == nw.Datetime:
        refuse_zone(name, dtype.time_zone)
        return pd.Series(pd.array(values, dtype=f"datetime64[{dtype.time_unit}]"))
    raise InvalidSpace(
        f"Column {name!r} has dtype {dtype}, which is none of number, text, bool, date and category. "
        "Turn it into one (a duration into seconds, say), or drop it."
    )


def refuse_zone(name: str, zone: object) -> None:
    """Refuse a column of moments of a time zone."""
    if zone is not None:
        raise InvalidSpace(
            f"Column {name!r} has the time zone {zone}; dates are what the calendar shows. Take it away: "
            f"frame[{name!r}].dt.tz_localize(None) in pandas, .dt.replace_time_zone(None) in polars."
        )


def _width(dtype: Any, known: tuple[str, ...], otherwise: str) -> str:
    """Return the dtype of numpy with the name of one of narwhals."""
    name = type(dtype).__name__.lower()
    return name if name in known else otherwise


def to_native(frame: pd.DataFrame, library: str) -> Any:
    """Return a pandas frame in another library's frame; the index is left out.

    Parameters
    ----------
    library : {"pandas", "polars", "pyarrow"}
        Whose.
    """
    if library == "pandas":
        return frame
    if library not in ("polars", "pyarrow"):
        raise InvalidOption(f"library={library!r}; accepted: 'pandas', 'polars', 'pyarrow'.")
    import narwhals as nw

    try:
        __import__(library)
    except ImportError as error:
        raise MissingPackage(f"{library} is not installed: pip install {library}.") from error
    data = {name: [None if is_missing(value) else value for value in frame[name].tolist()] for name in frame.columns}
    schema = {name: _native_dtype(frame[name].dtype, library, nw) for name in frame.columns}
    made = nw.from_dict(data, backend=library)  # type: ignore[arg-type]
    casts = [nw.col(name).cast(dtype) for name, dtype in schema.items() if dtype is not None]
    return (made.with_columns(*casts) if casts else made).to_native()


def _native_dtype(dtype: Any, library: str, nw: Any) -> Any:
    """Return the dtype of narwhals for one of pandas; ``None`` where the library's own choice for the values is right."""
    if isinstance(dtype, pd.CategoricalDtype):
        is_text = all(isinstance(level, str) for level in dtype.categories)
        if not is_text:
            return None
        return nw.Enum(list(dtype.categories)) if dtype.ordered and library == "polars" else nw.Categorical()
    name = str(dtype).lower().removesuffix("[pyarrow]")
    widths = {each.lower(): each for each in ("Float16", "Float32", "Float64", *NULLABLE)}
    return getattr(nw, widths[name])() if name in widths and hasattr(nw, widths.get(name, "")) else None
