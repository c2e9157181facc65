"""``mace plot``: the answers of a row as a picture."""

from __future__ import annotations

import warnings
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mace.cli.commands import answer_of, app, exit_code
from mace.cli.console import PlainConsole, note
from mace.cli.options import Answers, Asked, Data, IdOfRow, RowOf, asks, check_folder

if TYPE_CHECKING:
    from mace.space import FeatureSpace


@app.command()
@asks
def plot(
    data: Data,
    asked: Asked,
    answers: Answers,
    out: Annotated[Path, typer.Option(help="Where the picture goes: .svg, .png or .pdf.")],
    row: RowOf = "0",
    identify: IdOfRow = None,
    others: Annotated[
        int, typer.Option(min=0, help="How many rows of --data are drawn as other people, at most; 0 for none.")
    ] = 300,
    menu: Annotated[
        bool, typer.Option("--menu", help="Draw the answers below each other, by distance, without scores.")
    ] = False,
) -> int:
    """Draw what one row of a CSV file would have to change.

    Several answers (--count) stand side by side.
    """
    from mace.models.package import optional
    from mace.plots import ChangesDisplay, MenuDisplay
    from mace.plots.display import Display, check_picture

    check_folder("--out", check_picture(out))
    optional("matplotlib", extra="plot")
    explanation = answer_of(data, asked, answers, row, identify)
    console = PlainConsole(soft_wrap=True)
    console.print(explanation.headline())
    note("Hint", explanation.hints)
    if explanation:
        assert explanation.space is not None
        people = None if menu else _others(data, explanation.space, others)
        display: Display = (
            MenuDisplay.from_explanation(explanation)
            if menu
            else ChangesDisplay.from_explanation(explanation, population=people)
        )
        with warnings.catch_warnings(record=True) as said:
            display.save(out)
        note("Note", dict.fromkeys(str(each.message) for each in said))
        console.print(f"Picture: {out}")
    return exit_code(explanation)


def _others(data: Path, space: FeatureSpace, most: int) -> Any:
    """Return the first rows of a file as a frame; ``None`` where there is nobody to compare with."""
    import pandas as pd

    from mace.cli.files import read_rows

    rows = list(islice(read_rows(data, space), most))
    return pd.DataFrame(rows, columns=list(space), dtype=object) if len(rows) > 1 else None
