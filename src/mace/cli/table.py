"""CSV files, read line by line: what is not a table is refused with the number of the line."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mace.disk import open_lines, said
from mace.errors import InvalidRow

LONGEST_LINE = 2**24
"""Bytes of one line of the file."""

SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab"}
"""What may stand between cells; the first that the first line has."""

_BROKEN = {
    "unexpected end of data": "a quote is opened and not closed",
    "field larger than field limit": "a cell of more than 131,072 characters, or a quote that is not closed",
    "new-line character seen in unquoted field": "a carriage return outside quotes",
}
"""What Python's own reader says, and what we say."""


@dataclass(frozen=True, slots=True)
class CsvTable:
    """A CSV file: its columns, and its rows as they are read.

    Attributes
    ----------
    name : str
        The file's.
    columns : tuple of str
        The first line.
    rows : iterator of list of str
        The other lines but empty ones, each with as many cells as there are columns.
    separator : str
        What stands between two cells.
    """

    name: str
    columns: tuple[str, ...]
    rows: Iterator[list[str]]
    separator: str


def read_table(path: Path) -> CsvTable:
    """Return the table of a CSV file in UTF-8, with or without a byte order mark.

    Between cells are commas; semicolons or tabs, as some spreadsheets write them, where the first line has no comma.

    Raises
    ------
    InvalidRow
        The file cannot be read, or a line of it: now, or as the rows are read.
    """
    first = next(_lines(path), "")
    separator = next((sign for sign in SEPARATORS if sign in first), ",")
    lines = _records(path, separator)
    _, columns = next(lines, (0, []))
    if not columns:
        raise InvalidRow(f"{path.name} is empty; the first line of a CSV file names its columns.")
    twice = next((name for place, name in enumerate(columns) if name in columns[:place]), None)
    if twice is not None:
        raise InvalidRow(f"{path.name}, line 1: the column {twice!r:.80} stands twice; give each its own name.")
    return CsvTable(path.name, tuple(columns), _cells(path, lines, len(columns), separator), separator)


def _cells(path: Path, records: Iterator[tuple[int, list[str]]], width: int, separator: str) -> Iterator[list[str]]:
    for line, cells in records:
        if len(cells) != width:
            raise InvalidRow(
                f"{path.name}, line {line}: {len(cells)} cells, and {width} columns are named in line 1. "
                f"A cell that holds a {SEPARATORS[separator]} stands between quotes."
            )
        yield cells


def _records(path: Path, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Yield each record that is not empty, with the number of the line that it begins in; quoted cells may go over several."""
    reader = csv.reader(_lines(path), delimiter=separator, strict=True)
    while True:
        begin = reader.line_num + 1
        try:
            cells = next(reader, None)
        except csv.Error as error:
            what = next((ours for theirs, ours in _BROKEN.items() if str(error).startswith(theirs)), str(error))
            raise InvalidRow(f"{path.name}, line {begin}: {what}.") from error
        if cells is None:
            return
        if cells:
            yield begin, cells


def _lines(path: Path) -> Iterator[str]:
    """Yield the lines of a file as text."""
    try:
        with open_lines(path) as file:
            encoding, number = "utf-8-sig", 0
            while line := file.readline(LONGEST_LINE + 1):
                number += 1
                if len(line) > LONGEST_LINE:
                    raise InvalidRow(f"{path.name}, line {number}: longer than {LONGEST_LINE:,} bytes.")
                if b"\0" in line:
                    raise InvalidRow(f"{path.name}, line {number}: a NUL character. Save the file as CSV in UTF-8.")
                yield line.decode(encoding)
                encoding = "utf-8"
    except OSError as error:
        raise InvalidRow(f"cannot read {path}: {said(error)}.") from error
    except UnicodeDecodeError as error:
        raise InvalidRow(
            f"{path.name}, line {number}: is not UTF-8 ({error.reason}). Save the file in UTF-8."
        ) from error
