"""Data frames of other libraries: polars, pyarrow and whatever narwhals knows, in and out."""

from __future__ import annotations

import sys
from typing import Any

import pandas as pd

from mace.errors import InvalidOption, InvalidSpace, MissingPackage


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

    Whole numbers with missing ones become pandas' nullable integers, enumerations ordered categories.
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
        return pd.Series(values, dtype="Int64" if has_missing else "int64")
    if dtype.is_float() or dtype.is_decimal():
        return pd.Series([float("nan") if value is None else float(value) for value in values], dtype="float64")
    if dtype == nw.Boolean:
        return pd.Series(values, dtype="boolean" if has_missing else "bool")
    if dtype == nw.String:
        return pd.Series(values, dtype=object)
    raise InvalidSpace(
        f"Column {name!r} has dtype {dtype}, which is none of number, text, bool and category. "
        "Turn it into one (a date into days, say), or drop it."
    )


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
    data = {name: [_plain(value) for value in frame[name].tolist()] for name in frame.columns}
    return nw.from_dict(data, backend=library).to_native()  # type: ignore[arg-type]


def _plain(value: Any) -> Any:
    return None if value is None or value != value else value
