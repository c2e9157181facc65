"""Answers to a file as they come: JSON lines, CSV or Parquet, whole or not at all."""

from __future__ import annotations

import csv
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import repeat
from pathlib import Path
from typing import Any, TypeVar

from mace.answer.plain import plain
from mace.batch.table import Cells, Lines
from mace.disk import whole_file, whole_text
from mace.errors import InvalidOption, MissingPackage

GROUP = 10_000
"""Lines of a Parquet row group: what is kept in memory at one time."""

Answer = TypeVar("Answer")
Write = Callable[[int, Any, Any], None]


@contextmanager
def _json_lines(path: Path, table: Lines[Any]) -> Iterator[Write]:
    with whole_text(path) as file:

        def write(number: int, answer: Any, named: Any) -> None:
            own = {} if table.id is None else {"id": plain(named)}
            line = {"row": number, **own, **answer.to_dict()}
            file.write(json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n")

        yield write


@contextmanager
def _csv(path: Path, table: Lines[Any]) -> Iterator[Write]:
    with whole_text(path) as file:
        lines = csv.writer(file)
        lines.writerow(map(escaped, table.columns))

        def write(number: int, answer: Any, named: Any) -> None:
            for cells in table.cells(number, answer, named):
                lines.writerow([escaped(cell) if isinstance(cell, str) else cell for cell in cells.values()])

        yield write


_FORMULA = re.compile(r"'*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


def is_number(text: str) -> bool:
    """Return whether a text is a plain decimal literal: a sign, digits, a point, an exponent; nothing else."""
    return _NUMBER.fullmatch(text) is not None


def escaped(text: str) -> str:
    """Return the text of a CSV cell with an apostrophe before what a spreadsheet would run as a formula.

    A text that is a plain number stays as it is. One that begins with apostrophes before such a sign gets one more, so that taking one
    away always gives the text back.

    Examples
    --------
    >>> escaped("=1+1"), escaped("-1"), escaped("own")
    ("'=1+1", '-1', 'own')
    """
    return f"'{text}" if _FORMULA.match(text) and not is_number(text) else text


@contextmanager
def _parquet(path: Path, table: Lines[Any]) -> Iterator[Write]:
    pyarrow = _pyarrow()
    from pyarrow import parquet

    types = {
        "text": pyarrow.string(),
        "whole": pyarrow.int64(),
        "number": pyarrow.float64(),
        "flag": pyarrow.bool_(),
    }
    schema = pyarrow.schema([(name, types[kind]) for name, kind in table.columns.items()])
    pending: list[Cells] = []
    with whole_file(path) as whole, parquet.ParquetWriter(whole, schema) as file:

        def flush() -> None:
            file.write_table(pyarrow.Table.from_pylist(pending, schema=schema))
            pending.clear()

        def write(number: int, answer: Any, named: Any) -> None:
            pending.extend(table.cells(number, answer, named))
            if len(pending) >= GROUP:
                flush()

        yield write
        flush()


def _pyarrow() -> Any:
    try:
        import pyarrow
    except ImportError as error:
        raise MissingPackage(
            "Parquet needs pyarrow: pip install 'mace-xai[parquet]'. Or write .jsonl or .csv."
        ) from error
    return pyarrow


SINKS = {".jsonl": _json_lines, ".csv": _csv, ".parquet": _parquet}


def check_sink(path: str | os.PathLike[str]) -> Path:
    """Return the path of an answers file; refuse one that cannot be written before anything is solved."""
    file = Path(path)
    if file.suffix not in SINKS:
        raise InvalidOption(f"{file.name}: unknown kind of answers file. Accepted: {', '.join(SINKS)}.")
    if not file.parent.is_dir():
        raise InvalidOption(f"there is no folder {file.parent} for {file.name}.")
    if file.is_dir():
        raise InvalidOption(f"cannot write {file}: it is a folder.")
    if file.suffix == ".parquet":
        _pyarrow()
    return file


def save(
    answers: Iterable[Answer], path: str | os.PathLike[str], table: Lines[Answer], ids: Iterable[Any] | None = None
) -> int:
    """Write answers as they come, and return how many there were.

    Parameters
    ----------
    answers : iterable of Explanation or Reasons
        Of ``Explainer.explain_each``, say; memory does not grow with their number.
    path : path
        ``.jsonl``, ``.csv`` or ``.parquet``. The file appears under its name once it is whole, and is for its owner alone. In CSV an
        apostrophe stands before a text that a spreadsheet would run as a formula.
    table : Table or ReasonsTable
        ``Table.of(space, classes)``; with a column that identifies the rows, ``Table.of(space, classes, "customer")``.
    ids : iterable, optional
        What identifies each row; taken after its answer.
    """
    file = check_sink(path)
    count = 0
    with SINKS[file.suffix](file, table) as write:
        for number, (answer, named) in enumerate(zip(answers, repeat(None) if ids is None else ids)):  # noqa: B905
            write(number, answer, named)
            count += 1
    return count
