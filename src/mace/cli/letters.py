"""The command that writes a letter."""

from __future__ import annotations

import datetime
import inspect
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from mace.cli.commands import UNDECIDED, answer_of, app, exit_code
from mace.cli.console import PlainConsole, note
from mace.cli.options import Answers, Asked, Data, IdOfRow, RowOf, asks, check_folder
from mace.disk import whole_text
from mace.errors import InvalidOption

if TYPE_CHECKING:
    from mace.answer.explanation import Explanation

Pairs = list[str] | None
PAIR = "<name=text>"

Named = Annotated[
    Pairs, typer.Option(metavar=PAIR, help='What a feature is called: "age=your age"; may be given again.')
]
Counted = Annotated[
    Pairs, typer.Option(metavar=PAIR, help='In what it is counted: "duration=month|months"; may be given again.')
]
Called = Annotated[
    Pairs, typer.Option(metavar=PAIR, help='What a label is called: "bad=declined"; may be given again.')
]
Filled = Annotated[
    Pairs,
    typer.Option(
        metavar=PAIR,
        help='What is filled in: "name=Ms Miller"; also sender, date (today, or 2026-11-18), address, reference, contact, and those of '
        "a template; may be given again.",
    ),
]


@app.command()
@asks
def letter(
    data: Data,
    asked: Asked,
    answers: Answers,
    row: RowOf = "0",
    identify: IdOfRow = None,
    language: Annotated[str, typer.Option(help="en, de or fr.")] = "en",
    out: Annotated[Path | None, typer.Option(help="Write it here: .txt or .html; printed where not given.")] = None,
    template: Annotated[
        Path | None, typer.Option(help="A Jinja2 template; it is HTML where --out ends in .html.")
    ] = None,
    number: Annotated[str, typer.Option(help="Which answer of --count, 1 for the nearest; or all.")] = "1",
    score: Annotated[bool, typer.Option("--score", help="Tell the model's score before and after.")] = False,
    margin: Annotated[
        bool, typer.Option("--margin", help="Tell how far the changed values may be off, proved.")
    ] = False,
    names: Named = None,
    units: Counted = None,
    outcomes: Called = None,
    field: Filled = None,
) -> int:
    """Write a letter to one person of a CSV file.

    It says in plain words what would have led to the target.
    """
    from mace.cli.files import read_space
    from mace.cli.texts import pairs_of
    from mace.letters.catalogue import language_of

    check_folder("--out", out)
    if out is not None and out.suffix not in (".html", ".txt"):
        raise InvalidOption(f"--out {out.name}: unknown kind of letter. Accepted: .txt, .html.")
    language_of(language)
    which, features = _number(number), read_space(asked.space)
    options: dict[str, Any] = {
        "names": pairs_of("--names", names or (), features),
        "units": pairs_of("--units", units or (), features),
        "outcomes": pairs_of("--outcomes", outcomes or ()),
        **_fields(pairs_of("--field", field or ())),
    }
    explanation = answer_of(data, asked, answers, row, identify)
    if explanation.status == "unknown":
        note("Note", [f"no letter: {explanation.headline()}"])
        return UNDECIDED
    made = explanation.letter(
        template,
        html=out is not None and out.suffix == ".html",
        language=language,
        number=which,
        score=score,
        margin=margin,
        **options,
    )
    _give(made, out)
    note("Hint", [*explanation.hints, *_unnamed(explanation, options["outcomes"])])
    return exit_code(explanation)


def _unnamed(explanation: Explanation, given: Collection[str]) -> list[str]:
    """Return a hint where a letter calls outcomes 0 and 1, as the model does, and not what people call them."""
    labels = dict.fromkeys([explanation.prediction, *(each.prediction for each in explanation)])
    bare = [str(label) for label in labels if isinstance(label, int)]
    bare = [text for text in bare if text not in explanation.wording.outcomes and text not in given]
    if not bare:
        return []
    return [f'The letter says {" and ".join(bare)} of the result. Name it: --outcomes "{bare[0]}=declined".']


def _give(made: str, out: Path | None) -> None:
    """Print a letter, or write it to a file."""
    if out is None:
        PlainConsole(soft_wrap=True).print(made, end="")
        return
    with whole_text(out) as file:
        file.write(made)
    PlainConsole(soft_wrap=True).print(f"Letter: {out}")


def _number(text: str) -> int | Literal["all"]:
    if text == "all":
        return "all"
    if not text.isdecimal() or not text.isascii() or len(text) > 9:
        raise InvalidOption(f"--number {text!r:.40}: give a number counted from 1, or all.")
    return int(text)


def _fields(given: dict[str, str]) -> dict[str, object]:
    """Return what is filled in; a date as such."""
    from mace.answer.explanation import Explanation

    taken = inspect.signature(Explanation.letter).parameters
    clash = next((key for key in given if key in taken or not key.isidentifier()), None)
    if clash is not None:
        raise InvalidOption(f"--field {clash!r:.60}: choose another name, of letters, digits and underscores.")
    made: dict[str, object] = {key: text.replace("\\n", "\n") for key, text in given.items()}
    if "date" in given:
        try:
            today = datetime.datetime.now().astimezone().date()
            made["date"] = today if given["date"] == "today" else datetime.date.fromisoformat(given["date"])
        except ValueError:
            raise InvalidOption(f"--field date={given['date']!r:.40}: write today, or a date as 2026-11-18.") from None
    return made
