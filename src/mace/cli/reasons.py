"""``mace reasons``: why the model decides as it does about a row."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from mace.cli.commands import ANSWERED, UNDECIDED, app
from mace.cli.console import PlainConsole
from mace.cli.options import (
    MOST_SECONDS_A_ROW,
    AnyTarget,
    Asked,
    Data,
    IdOfRow,
    RowOf,
    SecondsForRow,
    asks,
    check_folder,
)
from mace.errors import InvalidOption


@app.command()
@asks
def reasons(
    data: Data,
    asked: Asked,
    target: AnyTarget = None,
    row: RowOf = "0",
    identify: IdOfRow = None,
    count: Annotated[int, typer.Option(help="How many reasons at most, up to 10,000.")] = 10,
    smallest: Annotated[bool, typer.Option("--smallest", help="Those of the fewest features first, proved.")] = False,
    time_limit: SecondsForRow = MOST_SECONDS_A_ROW,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    certificate: Annotated[
        Path | None,
        typer.Option(
            help="Write the certificate of the first reason here; those of others beside it, numbered from 2."
        ),
    ] = None,
) -> int:
    """Say which features alone force the decision about one row of a CSV file, and as long as what."""
    from mace.cli.files import find_row, save_certificates
    from mace.cli.targets import target_of

    check_folder("--certificate", certificate)
    if asked.weights or asked.distance != "l1":
        raise InvalidOption("--distance and --weights: reasons are not measured. Leave them out.")
    explainer = asked.explainer()
    made = explainer.reasons(
        find_row(data, row, identify, explainer.space),
        None if target is None else target_of(target, explainer.classes),
        asked.all_constraints(explainer.space),
        count=count,
        smallest=smallest,
        time_limit=time_limit,
        solver=asked.solver,
        certify=certificate is not None,
    )
    if certificate is not None:
        save_certificates((each.certificate for each in made), certificate)
    if as_json:
        sys.stdout.write(made.to_json(indent=2) + "\n")
    else:
        PlainConsole(soft_wrap=True).print(str(made))
    return ANSWERED if made.complete or made else UNDECIDED
