"""Reading what the command line is given: spaces, rows, labels."""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from mace.batch.sinks import escaped, is_number
from mace.certify.certificate import Certificate
from mace.cli.console import note
from mace.cli.table import CsvTable, read_table
from mace.constraints.causal import Causal
from mace.disk import read_bytes, said
from mace.errors import InvalidOption, InvalidRow, InvalidSpace, MissingPackage, did_you_mean, listed
from mace.models.package import optional
from mace.space import Categorical, Date, Feature, FeatureSpace, Ordinal, Scalar
from mace.space.features import is_missing

MISSING_WORDS = {"", "na", "nan", "null", "<na>"}


def read_space(path: Path) -> FeatureSpace:
    """Return the feature space of a JSON file."""
    try:
        return FeatureSpace.from_json(read_bytes(path).decode("utf-8-sig"))
    except OSError as error:
        raise InvalidSpace(f"cannot read {path}: {said(error)}.") from error
    except UnicodeDecodeError as error:
        raise InvalidSpace(f"cannot read {path}: it is not UTF-8 ({error.reason}).") from error


def read_models(paths: Sequence[Path], at_least: int | None, *, trust: bool) -> Any:
    """Return the model of a file, or those of several files as a set, called by their names."""
    from mace.models.files.load import in_own_process, load_model
    from mace.models.sets import agree

    with in_own_process():
        loaded = [load_model(path, trust=trust) for path in paths]
    if len(paths) == 1 and at_least is None:
        return loaded[0]
    stems = [path.stem for path in paths]
    called = stems if len(set(stems)) == len(stems) else list(map(str, paths))
    return agree(dict(zip(called, loaded, strict=True)), at_least)


def read_causes(equations: Sequence[str] | None, path: Path | None) -> Causal | None:
    """Return the equations of the command line, ``effect = expression``, and of the table [causes] of a file; ``None`` without any."""
    loaded = None if path is None else Causal.load(path)
    made: dict[str, Any] = {} if loaded is None else dict(loaded.equations)
    for text in equations or ():
        name, sign, expression = text.partition("=")
        if not sign or not expression.strip() or expression.startswith("="):
            raise InvalidOption(
                f'--cause {text!r} is no equation. Write "effect = expression", e.g. "savings = 0.3 * income".'
            )
        if name.strip() in made:
            raise InvalidOption(f"--cause {text!r}: there are two equations of {name.strip()!r}.")
        made[name.strip()] = expression.strip()
    return Causal(made) if made else None


def read_row(path: Path, number: int, space: FeatureSpace) -> dict[str, Scalar]:
    """Return one row of a CSV file in the space's features; columns that are no feature (the label, say) are left out.

    Every cell is read as text and understood by its feature, so that a level called 'NA' or '01' stays one.
    """
    count = 0
    for row in read_rows(path, space):
        if count == number:
            return row
        count += 1
    raise InvalidRow(f"{path.name} has {count} rows; there is no row {number} (counted from 0).")


def find_row(path: Path, row: str, column: str | None, space: FeatureSpace) -> dict[str, Scalar]:
    """Return the row that a command names: by its number, or by its value in a column."""
    if column is None:
        if re.fullmatch(r"-?[0-9]{1,30}", row) is None:
            raise InvalidOption(
                f"--row {row!r:.40}: give a number counted from 0, or --id with the column that holds it. All rows are for mace batch."
            )
        return read_row(path, int(row), space)
    found = [cells for cells, (own,) in _rows(path, space, [column], "--id") if own == row]
    if len(found) != 1:
        count = f"{len(found)} rows" if found else "no row"
        raise InvalidRow(f"--row {row!r:.40}: {path.name} has {count} with this value in {column!r:.80}.")
    return found[0]


def read_rows(
    path: Path, space: FeatureSpace, column: str | None = None, ids: deque[str] | None = None
) -> Iterator[dict[str, Scalar]]:
    """Yield the rows of a CSV file in the space's features, as :func:`read_row` reads one, without keeping them.

    The text of a further column is added to ``ids`` as the rows are read.
    """
    for row, own in _rows(path, space, () if column is None else (column,), "--id"):
        if ids is not None:
            ids.extend(own)
        yield row


def read_people(path: Path, space: FeatureSpace, groups: Sequence[str]) -> pd.DataFrame:
    """Return the features of a CSV file and the columns that make groups."""
    further = [name for name in groups if name not in space]
    cells = [{**row, **dict(zip(further, others, strict=True))} for row, others in _rows(path, space, further)]
    return pd.DataFrame(cells, columns=[*space, *further], dtype=object)


def _rows(
    path: Path, space: FeatureSpace, further: Sequence[str], option: str = "--groups"
) -> Iterator[tuple[dict[str, Scalar], list[str]]]:
    """Yield each row in the space's features, and the texts of further columns."""
    table = read_table(path)
    places = _places(table, space)
    for name in further:
        if name not in table.columns:
            raise InvalidOption(
                f"{option}: {path.name} has no column {name!r}.{did_you_mean(name, table.columns)} "
                f"Its columns: {listed(table.columns)}."
            )
    others = [table.columns.index(name) for name in further]
    readers = [(name, place, _reader(space[name])) for name, place in places.items()]
    for cells in table.rows:
        yield {name: read(cells[place]) for name, place, read in readers}, [cells[place] for place in others]


def _places(table: CsvTable, space: FeatureSpace) -> dict[str, int]:
    """Return the column of each feature in a table, by its name or by that name as answer files escape it."""
    at = {name: place for place, name in reversed(list(enumerate(table.columns)))}
    places = {name: at.get(name, at.get(escaped(name), -1)) for name in space}
    absent = [name for name, place in places.items() if place < 0]
    if absent:
        raise InvalidRow(
            f"{table.name} has no column {listed(map(repr, absent))}. Its columns: {listed(table.columns)}."
        )
    return places


def check_reports(paths: Iterable[Path], *, pictures: bool) -> None:
    """Refuse a report that cannot be written before anything is solved."""
    for path in paths:
        if path.suffix not in (".html", ".json"):
            raise InvalidOption(f"--out {path.name}: unknown kind of report. Accepted: .html, .json.")
        if not path.parent.is_dir():
            raise InvalidOption(f"--out: there is no folder {path.parent} for {path.name}.")
        if path.suffix == ".html" and pictures:
            try:
                optional("matplotlib", extra="plot")
            except MissingPackage as error:
                raise MissingPackage(f"{error}, or leave the pictures out: --no-pictures.") from error


def count_rows(path: Path) -> int:
    """Return how many rows a CSV file has; a line that is none of a table is refused before anything is solved."""
    return sum(1 for _ in read_table(path).rows)


def _reader(feature: Feature) -> Callable[[str], Scalar]:
    """Return how the cells of a feature are understood."""
    if isinstance(feature, Date):
        return lambda text: math.nan if text.strip().lower() in MISSING_WORDS else text
    if not isinstance(feature, Ordinal | Categorical):
        return _number
    named: dict[str, Scalar] = {}
    for level in feature.levels:
        if level is not None and not is_missing(level):
            named.setdefault(str(level), level)
    for text, level in list(named.items()):
        named.setdefault(escaped(text), level)

    def read(text: str) -> Scalar:
        return named[text] if text in named else math.nan if text.strip().lower() in MISSING_WORDS else text

    return read


def _number(text: str) -> Scalar:
    """Return the number of a plain decimal literal, NaN of a word for a missing value, and any other text itself."""
    bare = text.strip()
    if is_number(bare):
        return float(bare)
    return math.nan if bare.lower() in MISSING_WORDS else text


def save_certificates(certificates: Iterable[Certificate | None], path: Path) -> None:
    """Write the first certificate to a file, and further ones beside it; where there is none, that is said."""
    made = [each for each in certificates if each is not None]
    if not made:
        note("Note", [f"{path} is not written: there is nothing that a certificate would prove."])
    for number, certificate in enumerate(made, start=1):
        name = path if number == 1 else path.with_name(f"{path.stem}-{number}{path.suffix}")
        certificate.save(name)
