"""``mace reasons``: why the model decides as it does about a row."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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

if TYPE_CHECKING:
    from mace.batch.reasons import ReasonsOptions
    from mace.explainer import Explainer


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
    out: Annotated[
        Path | None,
        typer.Option(help="Ask about all rows instead, and write a line of JSON for each to this .jsonl file."),
    ] = None,
    jobs: Annotated[int, typer.Option(help="With --out: processes, -1 for one a core.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    certificate: Annotated[
        Path | None,
        typer.Option(
            help="Write the certificate of the first reason here; beside it those of others, numbered from 2, and of ranges, -ranges."
        ),
    ] = None,
) -> int:
    """Say which features alone force a decision.

    It is about one row of a CSV file, and says in which ranges they do.
    """
    from mace.cli.files import find_row, save_certificates
    from mace.cli.targets import target_of

    check_folder("--certificate", certificate)
    if asked.weights or asked.distance != "l1":
        raise InvalidOption("--distance and --weights: reasons are not measured. Leave them out.")
    if out is not None and (out.suffix != ".jsonl" or certificate is not None or as_json or row != "0"):
        raise InvalidOption("--out takes a .jsonl file, and no --row, --json or --certificate: it is about all rows.")
    explainer = asked.explainer()
    options: ReasonsOptions = {
        "target": None if target is None else target_of(target, explainer.classes),
        "constraints": asked.all_constraints(explainer.space, data),
        "count": count,
        "smallest": smallest,
        "time_limit": time_limit,
        "solver": asked.solver,
        "certify": certificate is not None,
    }
    if out is not None:
        return _of_all_rows(explainer, data, out, options, jobs)
    row_asked = find_row(data, row, identify, explainer.space)
    made = explainer.reasons(row_asked, **options)
    if certificate is not None:
        save_certificates((each.certificate for each in made), certificate)
        if of_ranges := [each.ranges_certificate for each in made if each.ranges_certificate is not None]:
            save_certificates(of_ranges, certificate.with_name(f"{certificate.stem}-ranges{certificate.suffix}"))
    if as_json:
        sys.stdout.write(made.to_json(indent=2) + "\n")
    else:
        PlainConsole(soft_wrap=True).print(str(made))
    return ANSWERED if made.complete or made else UNDECIDED


def _of_all_rows(explainer: Explainer, data: Path, out: Path, options: ReasonsOptions, jobs: int) -> int:
    """Write the reasons of all rows, and say in a line what was found."""
    from mace.batch.reasons import each_reasons
    from mace.cli.files import read_rows
    from mace.disk import whole_text

    rows = found = complete = 0
    with whole_text(out) as file:
        for each in each_reasons(explainer, read_rows(data, explainer.space), options, n_jobs=jobs):
            file.write(each.to_json() + "\n")
            rows, found, complete = rows + 1, found + (bool(each) or each.complete), complete + each.complete
    PlainConsole(soft_wrap=True).print(f"{rows} rows: {found} with reasons, {complete} complete. They are in {out}.")
    return ANSWERED if found == rows else UNDECIDED
