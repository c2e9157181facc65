"""``mace space``: the feature space of a CSV file, to look at and correct before the first question."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mace.cli.commands import ANSWERED, app
from mace.cli.console import PlainConsole, note
from mace.cli.options import check_file, check_folder, listed
from mace.errors import InvalidOption, cut, did_you_mean

if TYPE_CHECKING:
    from mace.space import Categorical, Feature, FeatureSpace

MOST_LINES = 40
"""Features that the summary shows."""


@app.command()
def space(
    data: Annotated[Path, typer.Argument(help="A CSV file of people, as the model was fitted on, or of all of them.")],
    label: Annotated[str, typer.Option(help="The column that the model predicts: no feature.")] = "",
    drop: Annotated[
        str,
        typer.Option(help="Further columns that are no features, comma-separated: ids, names."),
    ] = "",
    ordered: Annotated[
        list[str] | None,
        typer.Option(
            metavar="<column=levels>",
            help='Levels in ascending order, e.g. "education=primary,secondary,degree"; may be given several times.',
        ),
    ] = None,
    protect: Annotated[
        str,
        typer.Option(help="Features that nobody should be told to change, comma-separated: age, sex."),
    ] = "",
    out: Annotated[Path | None, typer.Option(help="Write the space here; printed where not given.")] = None,
) -> int:
    """Write the feature space of a CSV file.

    It is JSON, for --space of the other commands. What was guessed, and what to check, is said on the standard error.
    """
    check_file("DATA", data)
    check_folder("--out", out)
    made, rows = space_of(data, [*listed(label), *listed(drop)], ordered or (), listed(protect))
    text = made.to_json() + "\n"
    if out is None:
        sys.stdout.write(text)
    else:
        from mace.disk import whole_text

        with whole_text(out) as file:
            file.write(text)
    PlainConsole(stderr=True, soft_wrap=True).print(summary(made, rows))
    note("Check", _checks(made))
    return ANSWERED


def space_of(
    path: Path, without: Sequence[str], ordered: Iterable[str], protected: Sequence[str]
) -> tuple[FeatureSpace, int]:
    """Return the space of a CSV file, as pandas reads it but for texts that are all dates, and how many rows it has.

    Parameters
    ----------
    path : Path
        The file.
    without : names
        Columns that are no features.
    ordered : texts
        ``column=level,level,...`` of columns whose levels have an order.
    protected : names
        Features to mark.
    """
    import pandas as pd

    from mace.cli.files import count_rows
    from mace.cli.table import read_table
    from mace.space import FeatureSpace
    from mace.space.inference import are_iso_dates

    table = read_table(path)
    columns = table.columns
    levels = dict(_pair(text, columns) for text in ordered)
    for option, names in (("--label or --drop", without), ("--ordered", levels), ("--protect", protected)):
        for name in names:
            if name not in columns or (name in without and option == "--protect"):
                raise InvalidOption(f"{option}: {path.name} has no column {name!r:.80}.{did_you_mean(name, columns)}")
    rows = count_rows(path)
    frame = pd.read_csv(path, encoding="utf-8-sig", sep=table.separator).drop(columns=list(without))
    for dated in [column for column in frame if column not in levels and are_iso_dates(frame[column])]:
        frame[dated] = pd.to_datetime(frame[dated], format="ISO8601")
    given = {name: _ordinal(frame[name], name, listed(text)) for name, text in levels.items() if name in frame}
    return FeatureSpace.from_frame(frame, **given).protect(*protected), rows


def _pair(text: str, columns: Sequence[str]) -> tuple[str, str]:
    """Return a column and its levels of ``column=level,level``; either may hold further signs of equality."""
    known = [name for name in columns if text.startswith(f"{name}=")]
    name = max(known, key=len, default=text.partition("=")[0])
    levels = text[len(name) + 1 :]
    if not name or len(listed(levels)) < 2:
        raise InvalidOption(f'--ordered {text!r:.80}: write "column=least,...,greatest".')
    return name, levels


def _ordinal(column: Any, name: str, texts: Sequence[str]) -> Feature:
    """Return a feature whose levels are those of a column in the order that their texts are given in."""
    from mace.space import ordinal
    from mace.space.features import plain_scalar

    values: dict[str, Any] = {str(plain_scalar(value)): plain_scalar(value) for value in column.dropna().unique()}
    absent = [text for text in values if text not in texts]
    if absent:
        raise InvalidOption(
            f"--ordered {name}: {cut(', '.join(map(repr, absent)), 80)} of the column is missing. Name every level, the least first."
        )
    return ordinal([values.get(text, text) for text in texts])


def summary(space: FeatureSpace, rows: int) -> str:
    """Return a space in a line a feature, of at most 80 characters."""
    from mace.space.wording import cells, in_one_line, padded

    lines = [f"{rows:,} rows, {len(space)} features:"]
    shown = list(space.items())[:MOST_LINES]
    width = max(cells(cut(in_one_line(name), 30)) for name, _ in shown)
    for name, feature in shown:
        marked = ", protected" if name in space.protected else ""
        line = f"  {padded(cut(in_one_line(name), 30), width)}  {_in_words(feature)}"
        lines.append(f"{cut(line, 80 - len(marked))}{marked}")
    more = len(space) - len(shown)
    return "\n".join([*lines, *([f"  and {more} more"] if more else [])])


def _in_words(feature: Feature) -> str:
    from mace.space import Categorical, Ordinal
    from mace.space.wording import in_one_line

    kind = type(feature).__name__.lower()
    if isinstance(feature, Ordinal | Categorical):
        sign = " < " if isinstance(feature, Ordinal) else ", "
        return f"{kind:<11}  {cut(sign.join(in_one_line(str(level)) for level in feature.levels), 40)}"
    missing = ", or missing" if feature.missing else ""
    return f"{kind:<11}  {feature.text(feature.low)} to {feature.text(feature.high)}{missing}"


def _has_commas(feature: Categorical) -> bool:
    """Return whether all levels are numbers but for a decimal comma."""
    from mace.space.features import is_missing
    from mace.space.rows import has_decimal_comma

    known = [level for level in feature.levels if not is_missing(level)]
    return all(map(has_decimal_comma, known))


def _checks(space: FeatureSpace) -> list[str]:
    """Return what strikes the eye about the guesses, and which features should perhaps be protected."""
    from mace.space import Categorical, Date
    from mace.space.sensitive import is_sensitive

    dates = [name for name, feature in space.items() if isinstance(feature, Date)]
    found = [f"{cut(', '.join(dates), 80)}: read as dates; the model must take them as dates too."] if dates else []
    found += [f"{name}: {said}." for name, guess in space.guesses.items() if (said := guess.partition(". Check: ")[2])]
    commas = [name for name, feature in space.items() if isinstance(feature, Categorical) and _has_commas(feature)]
    found += [f"{name}: read as texts, because of their decimal commas; write 3.5, not 3,5." for name in commas]
    free = [name for name in space if is_sensitive(name) and name not in space.protected]
    them = "this" if len(free) == 1 else "these"
    advice = f"{', '.join(free)}: should anybody be told to change {them}? If not, --protect {','.join(free)}."
    return [*found, *([advice] if free else [])]
