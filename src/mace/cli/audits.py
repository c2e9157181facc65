"""``mace audit``: groups of people compared."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mace.cli.commands import ANSWERED, UNDECIDED, app, late_rows
from mace.cli.completion import columns, features
from mace.cli.console import PlainConsole, note
from mace.cli.options import MOST_SECONDS_A_ROW, Asked, Data, Jobs, SecondsForRow, Target, asks, listed
from mace.errors import InvalidOption

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mace.audits import Audit

Day = Annotated[
    str | None, typer.Option(help="The day that the report bears, as in 2026-02-28; today where not given.")
]


@app.command()
@asks
def audit(
    data: Data,
    asked: Asked,
    target: Target,
    groups: Annotated[
        str, typer.Option(help="Columns whose values make groups, comma-separated.", autocompletion=columns)
    ] = "",
    protect: Annotated[
        str | None,
        typer.Option(
            help="Features that should not have to change; where not given, the groups that are features and those protected in the space.",
            autocompletion=features,
        ),
    ] = None,
    time_limit: SecondsForRow = MOST_SECONDS_A_ROW,
    jobs: Jobs = 1,
    rows: Annotated[
        int | None, typer.Option(min=1, help="Only so many people, drawn with --seed; all where not given.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The seed of the drawing and of the bootstrap.")] = 0,
    resamples: Annotated[int, typer.Option(help="How often the bootstrap draws.")] = 1000,
    out: Annotated[
        list[Path] | None,
        typer.Option(metavar="<path>", help="Write the report here: .html or .json; may be given twice."),
    ] = None,
    pictures: Annotated[
        bool, typer.Option(help="Whether the .html report has pictures, for which matplotlib is needed.")
    ] = True,
    date: Day = None,
) -> int:
    """Compare groups of people.

    Who has recourse, how far it is, by which features, and at what price for protecting some of them.
    """
    from mace.audits import audit as make
    from mace.cli.files import check_reports, read_people
    from mace.cli.targets import target_of
    from mace.cli.waiting import waiting

    check_reports(out or (), pictures=pictures)
    _refuse_causes(asked.constraints)
    with waiting("reading the model"):
        explainer = asked.explainer()
        people = drawn(read_people(data, explainer.space, listed(groups)), rows, seed)
    made = make(
        explainer,
        people,
        listed(groups),
        target=target_of(target, explainer.classes, explainer.space.wording.outcomes),
        distance=asked.measure(explainer.space, data),
        constraints=asked.all_constraints(explainer.space, data),
        protected=None if protect is None else listed(protect),
        time_limit=time_limit,
        solver=asked.solver,
        n_jobs=jobs,
        resamples=resamples,
        seed=seed,
        progress=True,
        model_name=asked.model.name,
        data_name=data.name,
        date=date,
    )
    return _reported(made, out or (), pictures, time_limit)


def _refuse_causes(path: Path | None) -> None:
    from mace.cli.files import read_causes

    if read_causes(None, path) is not None:
        raise InvalidOption(f"{path}: an audit is of rows, without [causes]. Leave that table out.")


def drawn(people: Any, rows: int | None, seed: int) -> Any:
    """Return so many people of a frame, drawn at random, in its order."""
    return (
        people if rows is None or rows >= len(people) else people.sample(rows, random_state=seed % 2**32).sort_index()
    )


def _reported(made: Audit, out: Iterable[Path], pictures: bool, time_limit: float) -> int:
    """Print and write an audit, and return its exit code."""
    console = PlainConsole()
    console.print(made)
    for path in out:
        made.save(path, pictures=pictures)
        console.print(f"Report: {path}", soft_wrap=True)
    if made.everyone.outcomes["unknown"]:
        note("Note", [late_rows(made.everyone.outcomes["unknown"], time_limit)])
    is_open = made.everyone.outcomes["unknown"] or made.everyone.outcomes["error"]
    return UNDECIDED if is_open else ANSWERED
