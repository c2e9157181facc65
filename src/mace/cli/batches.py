"""``mace batch``: a CSV file in, a file of answers out, and a checkpoint in between."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mace.cli.commands import ANSWERED, UNDECIDED, app, is_late, late_rows
from mace.cli.completion import columns
from mace.cli.console import PlainConsole, note
from mace.cli.options import Answers, Asked, Data, Jobs, asks, checkpoint_beside

if TYPE_CHECKING:
    from mace.answer.explanation import Explanation
    from mace.batch.reasons_stream import ReasonsStream
    from mace.batch.stream import Stream
    from mace.batch.table import Lines


@app.command()
@asks
def batch(
    data: Data,
    asked: Asked,
    answers: Answers,
    out: Annotated[Path, typer.Option(help="Where the answers go: .parquet, .csv or .jsonl.")],
    total_time_limit: Annotated[float | None, typer.Option(help="Seconds for all rows.")] = None,
    jobs: Jobs = 1,
    identify: Annotated[
        str | None,
        typer.Option(
            "--id", help="A column of the CSV file that identifies the rows, to carry along.", autocompletion=columns
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the checkpoint that an earlier run left beside --out.")
    ] = False,
) -> int:
    """Explain every row of a CSV file.

    A run that was interrupted, or killed, goes on with --resume.
    """
    checkpoint = checkpoint_beside(out, is_resumed=resume)
    from mace.batch.stream import Stream
    from mace.batch.table import Table
    from mace.cli.waiting import waiting
    from mace.problem import Status

    with waiting("reading the model"):
        explainer, question = answers.ask(asked, data)
    table = Table.of(explainer.space, explainer.classes, identify)
    stream = Stream(
        explainer,
        question,
        total_time_limit=total_time_limit,
        n_jobs=jobs,
        checkpoint=checkpoint,
        progress=True,
    )
    counts: Counter[str] = Counter()
    late: Counter[bool] = Counter()
    hints: dict[str, None] = {}

    def count(explanation: Explanation) -> None:
        counts[_word(explanation)] += 1
        late[is_late(explanation, answers.time_limit)] += 1
        hints.update(dict.fromkeys(explanation.hints))

    if not write_answers(stream, table, data, out, count):
        PlainConsole(soft_wrap=True, stderr=True).print(
            f"Interrupted. The answers so far are in {checkpoint}; go on with --resume."
        )
        note("Hint", hints)
        return UNDECIDED
    is_complete = not counts["not reached"]
    if is_complete:
        checkpoint.unlink(missing_ok=True)
    described = ", ".join(f"{number} {status}" for status, number in counts.items()) or "none"
    rest = "" if is_complete else f" Go on with --resume; the answers so far are in {checkpoint}."
    PlainConsole(soft_wrap=True).print(f"{counts.total()} rows: {described}. Answers are in {out}.{rest}")
    if late[True]:
        note("Note", [late_rows(late[True], answers.time_limit)])
    note("Hint", hints)
    is_open = counts[str(Status.UNKNOWN)] or counts[str(Status.ERROR)] or counts["not reached"]
    return UNDECIDED if is_open else ANSWERED


def _word(explanation: Explanation) -> str:
    """Return what became of a row, in a word or two."""
    from mace.problem import Status

    if explanation.error.startswith("AlreadyThere"):  # of a checkpoint that 0.1 wrote
        return str(Status.REACHED)
    is_reached = explanation.prediction is not None or explanation.status != Status.UNKNOWN
    return str(explanation.status) if is_reached else "not reached"


def write_answers(
    stream: Stream | ReasonsStream, table: Lines[Any], data: Path, out: Path, count: Callable[[Any], None]
) -> bool:
    """Write the answers to the rows of a CSV file as they come, and count each; return False where Ctrl-C ended it."""
    from mace.batch.sinks import save
    from mace.cli.files import count_rows, read_rows

    space, ids = stream.explainer.space, deque[str]()
    rows = read_rows(data, space, table.id, ids)

    def counted() -> Iterator[Any]:
        for answer in stream.answers(rows, total=count_rows(data)):
            count(answer)
            yield answer

    try:
        save(counted(), out, table, None if table.id is None else iter(ids.popleft, None))
    except KeyboardInterrupt:
        return False
    return True
