"""Reading a data set's file: embedded, in the data folder, downloaded, or a user's own copy; and checking that it is what it should be."""

from __future__ import annotations

import io
import lzma
import os
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import pandas as pd

from mace.errors import DatasetUnavailable, MissingPackage
from mace.exact import WHOLE

Column = type[int] | type[float] | type[str] | tuple[str, ...] | tuple[int, ...]
"""What a published column holds: ``int``, ``float`` (may be missing), ``str``, or one of these values."""


_REMEDY = "docs/datasets.md says which files are read, and where to get them."


@dataclass(frozen=True, slots=True)
class Published:
    """The form in which a publisher gives a data set.

    Attributes
    ----------
    files : tuple of str
        Its files, in the order in which their rows are joined.
    read : callable
        From the bytes of one of them, or of the text that we make of it, to a table that has the wanted columns by our names.
    """

    files: tuple[str, ...]
    read: Callable[[bytes], pd.DataFrame]


@dataclass(frozen=True, slots=True)
class Download:
    """Where a file is published, and the SHA-256 of the comma-separated text that we make of it."""

    url: str
    sha256: str


def read_embedded(file: str, columns: Mapping[str, Column]) -> pd.DataFrame:
    """Return the wanted columns of a file that ships with MACE."""
    packed = files("mace.datasets").joinpath("files", file).read_bytes()
    return _wanted([(f"the embedded {file}", lzma.decompress(packed))], columns, None)


def read_folder(
    folder: str | os.PathLike[str], file: str, columns: Mapping[str, Column], published: Published
) -> pd.DataFrame:
    """Return the wanted columns of a file in the data folder, under our name or its publisher's."""
    home = Path(folder).expanduser()
    theirs = [home / name for name in published.files]
    if not (home / file).exists() and all(path.exists() for path in theirs):
        return read_files(theirs, columns, published)
    return read_files(home / file, columns, published)


def read_files(
    own: str | os.PathLike[str] | Iterable[str | os.PathLike[str]], columns: Mapping[str, Column], published: Published
) -> pd.DataFrame:
    """Return the wanted columns of a user's own copy: files as published or as we keep them, joined; archives are opened."""
    paths = [own] if isinstance(own, str | os.PathLike) else list(own)
    contents: list[tuple[str, bytes]] = []
    for path in map(Path, paths):
        try:
            contents += _contents(path.expanduser(), published)
        except (OSError, zipfile.BadZipFile) as error:
            raise DatasetUnavailable(
                f"{path} cannot be read ({getattr(error, 'strerror', None) or error}). {_REMEDY}"
            ) from error
    return _wanted(contents, columns, published)


def read_download(file: str, columns: Mapping[str, Column], published: Published, source: Download) -> pd.DataFrame:
    """Return the wanted columns of a file in the user's cache, downloaded there if need be."""
    try:
        import pooch
    except ImportError as error:
        raise MissingPackage(
            f"{file} is not embedded, and no data folder is given: pip install 'mace-xai[download]' to fetch it, or pass "
            f"data_home= (or set MACE_DATA). {_REMEDY}"
        ) from error

    def fetch(url: str, output_file: str, pooch_: object) -> None:
        pooch.HTTPDownloader(timeout=60)(url, output_file, pooch_)
        path = Path(output_file)
        path.write_text(published.read(path.read_bytes()).to_csv(index=False, lineterminator="\n"), "utf-8")

    cache = pooch.create(
        path=pooch.os_cache("mace-xai"), base_url="", registry={file: source.sha256}, urls={file: source.url}
    )
    try:
        path = cache.fetch(file, downloader=fetch)
    except (OSError, ValueError) as error:  # no connection, or another file than the one we know
        raise DatasetUnavailable(
            f"{file} could not be downloaded from {source.url} ({error}). Pass data_home= (or set MACE_DATA) to a folder "
            f"that holds a copy. {_REMEDY}"
        ) from error
    return read_files(path, columns, published)


def read_text(content: bytes, **options: object) -> pd.DataFrame:
    """Return a table of comma-separated text; ``options`` are those of :func:`pandas.read_csv`."""
    # Only an empty cell is missing: pandas would also take words such as "None" for it.
    # "utf-8-sig" because spreadsheets write a byte-order mark.
    defaults = {"keep_default_na": False, "na_values": [""], "encoding": "utf-8-sig", "low_memory": False}
    return pd.read_csv(io.BytesIO(content), **(defaults | options))  # type: ignore[call-overload,no-any-return]


def _contents(path: Path, published: Published) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the bytes of a file, or of the publisher's files inside an archive."""
    if path.suffix.lower() != ".zip":
        yield str(path), path.read_bytes()
        return
    with zipfile.ZipFile(path) as archive:
        for name in published.files:
            if name not in archive.namelist():
                raise DatasetUnavailable(f"{path} does not hold {name!r}. {_REMEDY}")
            yield f"{path}/{name}", archive.read(name)


def _wanted(
    contents: Iterable[tuple[str, bytes]], columns: Mapping[str, Column], published: Published | None
) -> pd.DataFrame:
    parts = [_part(content, columns, published, origin) for origin, content in contents]
    if not parts:
        raise DatasetUnavailable(f"no file is given. {_REMEDY}")
    return pd.concat(parts, ignore_index=True)


def _part(content: bytes, columns: Mapping[str, Column], published: Published | None, origin: str) -> pd.DataFrame:
    try:
        table = read_text(content) if published is None else published.read(content)
    except ValueError as error:  # pandas' parser errors, undecodable bytes and broken sheets alike
        raise DatasetUnavailable(f"{origin} is not a file of this data set: {error}. {_REMEDY}") from error
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
    _refuse(values, (numbers % 1 != 0) | (numbers.abs() > WHOLE), "a whole number", origin)
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
