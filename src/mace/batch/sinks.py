"""Answers to a file as they come: JSON lines, CSV or Parquet, whole or not at all."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mace.batch.table import Cells, Table
from mace.errors import InvalidOption, MissingPackage
from mace.explanation import Explanation

GROUP = 10_000
"""Lines of a Parquet row group: what is kept in memory at one time."""

Write = Callable[[int, Explanation], None]


@contextmanager
def _json_lines(path: Path, table: Table) -> Iterator[Write]:
    with path.open("w", encoding="utf-8") as file:

        def write(number: int, explanation: Explanation) -> None:
            line = {"row": number, **explanation.to_dict()}
            file.write(json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n")

        yield write


@contextmanager
def _csv(path: Path, table: Table) -> Iterator[Write]:
    with path.open("w", encoding="utf-8", newline="") as file:
        lines = csv.DictWriter(file, list(table.columns))
        lines.writeheader()
        yield lambda number, explanation: lines.writerows(table.cells(number, explanation))


@contextmanager
def _parquet(path: Path, table: Table) -> Iterator[Write]:
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
    with parquet.ParquetWriter(path, schema) as file:

        def flush() -> None:
            file.write_table(pyarrow.Table.from_pylist(pending, schema=schema))
            pending.clear()

        def write(number: int, explanation: Explanation) -> None:
            pending.extend(table.cells(number, explanation))
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
    if file.suffix == ".parquet":
        _pyarrow()
    return file


def save(explanations: Iterable[Explanation], path: str | os.PathLike[str], table: Table) -> int:
    """Write explanations as they come, and return how many there were.

    Parameters
    ----------
    explanations : iterable of Explanation
        Of ``Explainer.explain_each``, say; memory does not grow with their number.
    path : path
        ``.jsonl``, ``.csv`` or ``.parquet``. The file appears under its name once it is whole.
    table : Table
        ``Table.of(space, classes)``.
    """
    file = check_sink(path)
    draft = file.with_name(f".{file.name}.{os.getpid()}.part")
    count = 0
    try:
        with SINKS[file.suffix](draft, table) as write:
            for number, explanation in enumerate(explanations):
                write(number, explanation)
                count += 1
        os.replace(draft, file)
    finally:
        draft.unlink(missing_ok=True)
    return count
