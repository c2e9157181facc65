"""``mace reasons``: why the model decides as it does about a row."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mace.cli.batches import write_answers
from mace.cli.commands import ANSWERED, UNDECIDED, app
from mace.cli.completion import columns
from mace.cli.console import PlainConsole, in_width, note
from mace.cli.options import (
    MOST_SECONDS_A_ROW,
    AnyTarget,
    Asked,
    Data,
    RowOf,
    SecondsForRow,
    asks,
    check_folder,
    checkpoint_beside,
)
from mace.errors import InvalidOption

if TYPE_CHECKING:
    from mace.answer.question import ReasonsOptions
    from mace.answer.reasons import Reasons
    from mace.batch.reasons_stream import ReasonsBatchOptions
    from mace.batch.stream import RunningOptions
    from mace.explainer import Explainer


Column = Annotated[
    str | None,
    typer.Option(
        "--id",
        help="A column of the CSV file by which --row finds the row; with --out, one to carry along.",
        autocompletion=columns,
    ),
]
Count = Annotated[int, typer.Option(help="How many reasons at most, up to 10,000.")]
WithRanges = Annotated[
    bool,
    typer.Option("--ranges/--values", help="How far each reason reaches, or the row's values only, which is quicker."),
]
Out = Annotated[
    Path | None,
    typer.Option(help="Ask about all rows instead, and write them to this file: .jsonl, .csv or .parquet."),
]
Resume = Annotated[
    bool, typer.Option("--resume", help="With --out: go on from the checkpoint that an earlier run left beside it.")
]
SecondsForAll = Annotated[float | None, typer.Option(help="With --out: seconds for all rows.")]
JobsOfAll = Annotated[int, typer.Option(help="With --out: processes, -1 for one a core.")]
CertificateFile = Annotated[
    Path | None,
    typer.Option(
        help="Write the certificate of the first reason here; beside it those of others, numbered from 2, of ranges, -ranges, "
        "and that there is no other reason, -all."
    ),
]


@app.command()
@asks
def reasons(
    data: Data,
    asked: Asked,
    target: AnyTarget = None,
    row: RowOf = "0",
    identify: Column = None,
    count: Count = 10,
    smallest: Annotated[bool, typer.Option("--smallest", help="Those of the fewest features first, proved.")] = False,
    ranges: WithRanges = True,
    time_limit: SecondsForRow = MOST_SECONDS_A_ROW,
    out: Out = None,
    resume: Resume = False,
    total_time_limit: SecondsForAll = None,
    jobs: JobsOfAll = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    certificate: CertificateFile = None,
) -> int:
    """Say which features alone force a decision.

    It is about one row of a CSV file, and says in which ranges they do.
    """
    from mace.cli.files import find_row, save_certificates
    from mace.cli.targets import target_of

    check_folder("--certificate", certificate)
    if asked.weights or asked.distance != "l1":
        raise InvalidOption("--distance and --weights: reasons are not measured. Leave them out.")
    _check(
        is_of_all=out is not None,
        of_one=as_json or certificate or row != "0",
        of_all=resume or total_time_limit or jobs != 1,
    )
    checkpoint = None if out is None else checkpoint_beside(out, is_resumed=resume)
    explainer = asked.explainer()
    options: ReasonsOptions = {
        "target": None if target is None else target_of(target, explainer.classes, explainer.space.wording.outcomes),
        "constraints": asked.all_constraints(explainer.space, data),
        "count": count,
        "smallest": smallest,
        "ranges": ranges,
        "time_limit": time_limit,
        "solver": asked.solver,
        "certify": certificate is not None,
    }
    if out is not None:
        running: RunningOptions = {"total_time_limit": total_time_limit, "n_jobs": jobs, "progress": True}
        return _of_all_rows(explainer, data, out, {**options, **running, "checkpoint": checkpoint}, identify)
    row_asked = find_row(data, row, identify, explainer.space)
    made = explainer.reasons(row_asked, **options)
    if certificate is not None:
        further = {"-ranges": [each.ranges_certificate for each in made], "-all": [made.certificate]}
        if made and all(each.certificate is None for each in made):
            note("Note", [f"{certificate} is not written: the time limit left no time for a proof."])
        else:
            save_certificates((each.certificate for each in made), certificate)
        for ending, certificates in further.items():
            if kept := [each for each in certificates if each is not None]:
                save_certificates(kept, certificate.with_name(f"{certificate.stem}{ending}{certificate.suffix}"))
    if as_json:
        sys.stdout.write(made.to_json(indent=2) + "\n")
    else:
        console = PlainConsole(soft_wrap=True)
        console.print(in_width(str(made), console.width))
    return ANSWERED if made.complete or made else UNDECIDED


def _check(*, is_of_all: bool, of_one: object, of_all: object) -> None:
    """Refuse options of one row beside ``--out``, and those of all rows without it."""
    if is_of_all and of_one:
        raise InvalidOption("--out takes no --row, --json or --certificate: it is about all rows.")
    if not is_of_all and of_all:
        raise InvalidOption("--resume, --total-time-limit and --jobs are of all rows: give --out too.")


def _of_all_rows(explainer: Explainer, data: Path, out: Path, asked: ReasonsBatchOptions, column: str | None) -> int:
    """Write the reasons of all rows, each to a checkpoint at once, and say in a line what was found."""
    from mace.batch.reasons import ReasonsTable
    from mace.batch.reasons_stream import ReasonsStream
    from mace.batch.worker import TOO_LATE

    counts = Counter[str]()

    def count(each: Reasons) -> None:
        counts["rows"] += 1
        counts["found"] += bool(each)
        counts["complete"] += each.complete
        counts["answered"] += bool(each) or each.complete
        counts["errors"] += bool(each.error)
        counts["not reached"] += each.reason == TOO_LATE

    checkpoint = Path(str(asked["checkpoint"]))
    if not write_answers(ReasonsStream.of(explainer, asked), ReasonsTable.of(column), data, out, count):
        said = f"Interrupted. What is known so far is in {checkpoint}; go on with --resume."
        PlainConsole(soft_wrap=True, stderr=True).print(said)
        return UNDECIDED
    if not counts["not reached"]:
        checkpoint.unlink(missing_ok=True)
    errors = f", {counts['errors']} errors" if counts["errors"] else ""
    rest = f" Go on with --resume; what is known is in {checkpoint}." if counts["not reached"] else ""
    PlainConsole(soft_wrap=True).print(
        f"{counts['rows']} rows: {counts['found']} with reasons, {counts['complete']} complete{errors}. They are in {out}.{rest}"
    )
    return ANSWERED if counts["answered"] == counts["rows"] else UNDECIDED
