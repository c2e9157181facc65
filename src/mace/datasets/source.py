"""Reading a published file, embedded or in the data folder, and checking that it is what it should be."""

from __future__ import annotations

import io
import lzma
import os
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import IO

import pandas as pd

from mace.errors import DatasetUnavailable

Column = type[int] | type[float] | type[str] | tuple[str, ...] | tuple[int, ...]
"""What a published column holds: ``int``, ``float`` (may be missing), ``str``, or one of these values."""

_LARGEST = 2**53  # up to here every whole number is a float

_REMEDY = (
    "Pass data_home=, or set the environment variable MACE_DATA, to a folder that holds the file as published, "
    "as comma-separated text with one header row; MACE does not download it (see docs/datasets.md)."
)


def read_embedded(file: str, columns: Mapping[str, Column]) -> pd.DataFrame:
    """Return the wanted columns of a file that ships with MACE."""
    packed = files("mace.datasets").joinpath("files", file).read_bytes()
    return _read(io.BytesIO(lzma.decompress(packed)), columns, origin=f"the embedded {file}")


def read_folder(
    file: str, columns: Mapping[str, Column], *, data_home: str | os.PathLike[str] | None = None
) -> pd.DataFrame:
    """Return the wanted columns of a file in ``data_home``, by default the folder named by ``MACE_DATA``."""
    folder = data_home if data_home is not None else os.environ.get("MACE_DATA")
    if not folder:
        raise DatasetUnavailable(f"{file} is not embedded, and no data folder is given. {_REMEDY}")
    path = Path(folder).expanduser() / file
    try:
        with path.open("rb") as stream:
            return _read(stream, columns, origin=str(path))
    except DatasetUnavailable:
        raise
    except OSError as error:
        raise DatasetUnavailable(f"{path} cannot be read ({error.strerror}). {_REMEDY}") from error


def _read(stream: IO[bytes], columns: Mapping[str, Column], *, origin: str) -> pd.DataFrame:
    try:
        # Only an empty cell is missing: pandas would also take words such as "None" for it.
        # "utf-8-sig" because spreadsheets write a byte-order mark.
        table = pd.read_csv(stream, keep_default_na=False, na_values=[""], encoding="utf-8-sig", low_memory=False)
    except ValueError as error:  # pandas' parser errors and undecodable bytes alike
        raise DatasetUnavailable(f"{origin} is not comma-separated text: {error}. {_REMEDY}") from error
    absent = [name for name in columns if name not in table.columns]
    if absent:
        names = ", ".join(repr(name) for name in absent)
        raise DatasetUnavailable(f"{origin} lacks {len(absent)} of {len(columns)} columns: {names}. {_REMEDY}")
    if table.empty:
        raise DatasetUnavailable(f"{origin} has a header and no rows. {_REMEDY}")
    return pd.DataFrame({name: _checked(table[name], column, origin) for name, column in columns.items()})


def _checked(values: pd.Series, column: Column, origin: str) -> pd.Series:
    """Return ``values`` in the dtype that ``column`` promises, or say which value breaks the promise."""
    accepted = "one of " + ", ".join(repr(level) for level in column) if isinstance(column, tuple) else ""
    if column is str:
        _refuse(values, values.isna(), "text", origin)
        return values.astype(str)
    if isinstance(column, tuple) and isinstance(column[0], str):
        _refuse(values, ~values.isin(column), accepted, origin)
        return values
    # One wrong word makes pandas read the whole column as text: look at the numbers, and blame only that word.
    numbers = pd.to_numeric(values, errors="coerce").astype("float64")
    if column is float:
        _refuse(values, numbers.isna() & values.notna(), "a number or empty", origin)
        return numbers
    if isinstance(column, tuple):
        _refuse(values, ~numbers.isin(column), accepted, origin)
    _refuse(values, (numbers % 1 != 0) | (numbers.abs() > _LARGEST), "a whole number", origin)
    return numbers.astype("int64")


def _refuse(values: pd.Series, wrong: pd.Series, accepted: str, origin: str) -> None:
    if not wrong.any():
        return
    position = int(wrong.to_numpy().argmax())
    found = values.iloc[position]
    shown = "empty" if pd.isna(found) else repr(getattr(found, "item", lambda: found)())
    raise DatasetUnavailable(
        f"{origin}: column {values.name!r} is {shown} in data row {position + 1} ({int(wrong.sum())} such rows); "
        f"it must be {accepted}. {_REMEDY}"
    )
