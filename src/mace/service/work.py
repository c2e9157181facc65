"""What workers do for jobs: a batch, an audit; each leaves files in the folder of its job."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from mace.answer.explanation import Explanation
from mace.answer.reasons import Reasons
from mace.audits import audit
from mace.batch.progress import Progress
from mace.batch.reasons import ReasonsTable
from mace.batch.reasons_stream import ReasonsStream
from mace.batch.rows import rows_of
from mace.batch.sinks import check_sink, save
from mace.batch.stream import RunningOptions, Stream
from mace.batch.table import Table
from mace.cli.files import count_rows, read_people, read_rows
from mace.disk import open_lines, parse_json
from mace.errors import InvalidOption, InvalidRow, MissingPackage, in_a_line
from mace.models.package import optional
from mace.service.asking import OWN, distance_of, question_of, reasons_asked, rules_of, target_of_request
from mace.service.opened import Opened

MOST_UNPACKED = 2**30
"""Bytes of a Parquet file as it is in memory."""

Report = Callable[[dict[str, Any]], None]


def run_batch_job(opened: Opened, given: dict[str, Any], report: Report) -> dict[str, Any]:
    """Explain the rows of a file: answers as JSON lines, CSV and, where pyarrow is there, Parquet.

    Answers are kept in a checkpoint as they come: a job that was ended is gone on with from there.
    """
    folder, options = Path(given["folder"]), given["options"]
    data, name = folder / given["file"], options.get("id")
    running: RunningOptions = {"checkpoint": folder / "checkpoint", "on_progress": reporting(report), "n_jobs": 1}
    most = opened.source.limits.batch_rows
    ids: deque[str] = deque()
    is_why = options.get("about") == "reasons"  # of jobs of 0.2 it is not said
    read, stream, table = (_reasons if is_why else _explanations)(opened, options, running)
    rows, total = (_of_parquet if data.suffix == ".parquet" else _of_csv)(data, opened, name, ids, most)
    lines = folder / "answers.jsonl"
    save(stream.answers(rows, total=total), lines, table, None if name is None else iter(ids.popleft, None))
    for suffix in (".csv", ".parquet"):
        kept: deque[Any] = deque()
        try:
            check_sink(folder / f"answers{suffix}")
        except MissingPackage:
            continue
        again = None if name is None else iter(kept.popleft, OWN)
        save(_kept(lines, kept, read), folder / f"answers{suffix}", table, again)
    return {"rows": total}


def _explanations(opened: Opened, options: dict[str, Any], running: RunningOptions) -> tuple[Any, Any, Any]:
    """Return how answers are read again, what gives them, and their columns."""
    explainer = opened.explainer
    question, _ = question_of(opened, options)
    table = Table.of(explainer.space, explainer.classes, options.get("id"))
    return Explanation.from_dict, Stream(explainer, question, **running), table


def _reasons(opened: Opened, options: dict[str, Any], running: RunningOptions) -> tuple[Any, Any, Any]:
    """Return the same where it is asked why."""
    stream = ReasonsStream.of(opened.explainer, {**reasons_asked(opened, options), **running})
    return Reasons.from_dict, stream, ReasonsTable.of(options.get("id"))


def _kept(path: Path, ids: deque[Any], read: Callable[[Any], Any]) -> Iterator[Any]:
    """Yield the answers of a file of JSON lines again."""
    with open_lines(path) as lines:
        for line in lines:
            data = parse_json(line)
            ids.append(data.get("id"))
            yield read(data)


def _of_csv(path: Path, opened: Opened, name: str | None, ids: deque[str], most: int) -> tuple[Iterator[Any], int]:
    total = count_rows(path)
    _check_size(total, most)
    return read_rows(path, opened.explainer.space, name, ids), total


def _of_parquet(path: Path, opened: Opened, name: str | None, ids: deque[str], most: int) -> tuple[Iterator[Any], int]:
    optional("pyarrow", extra="parquet")
    from pyarrow import parquet

    try:
        file = parquet.ParquetFile(path)
    except Exception as error:
        raise InvalidRow(f"the file is no Parquet that can be read: {in_a_line(error)}") from error
    about = file.metadata
    _check_size(about.num_rows, most)
    if sum(about.row_group(each).total_byte_size for each in range(about.num_row_groups)) > MOST_UNPACKED:
        raise InvalidRow(f"the file has more than {MOST_UNPACKED:,} bytes when unpacked. Give fewer rows or columns.")
    known = set(file.schema_arrow.names)
    if name is not None and name not in known:
        raise InvalidOption(f"id: the file has no column {name!r:.80}.")
    columns = [each for each in (*opened.explainer.space, *([] if name is None else [name])) if each in known]

    def rows() -> Iterator[Any]:
        for part in file.iter_batches(batch_size=1024, columns=columns):
            frame = part.to_pandas()
            if name is not None:
                ids.extend(map(str, frame[name].tolist()))
            yield from rows_of(frame, opened.explainer.space)

    return rows(), about.num_rows


def _check_size(rows: int, most: int) -> None:
    if rows > most:
        raise InvalidRow(f"the file has {rows:,} rows; at most {most:,} are taken. Give it in parts.")


def run_audit_job(opened: Opened, given: dict[str, Any], report: Report) -> dict[str, Any]:
    """Compare groups of the people: the report as JSON and, where matplotlib is there, as a page."""
    folder, options = Path(given["folder"]), given["options"]
    people = _people(opened, options["groups"])
    if options["rows"] is not None and options["rows"] < len(people):
        people = people.sample(options["rows"], random_state=options["seed"]).sort_index()
    made = audit(
        opened.explainer,
        people,
        options["groups"],
        target=target_of_request(opened, options.get("target", OWN)),
        distance=distance_of(options["distance"], options["weights"]),
        constraints=[constraint for _, constraint in rules_of(opened, options["constraints"])],
        protected=options["protected"],
        time_limit=options["time_limit"],
        n_jobs=1,
        resamples=options["resamples"],
        seed=options["seed"],
        on_progress=reporting(report),
    )
    made.save(folder / "audit.json")
    with suppress(MissingPackage):
        made.save(folder / "audit.html")
    return {"people": len(made.people)}


def _people(opened: Opened, groups: list[str]) -> Any:
    import pandas as pd

    if opened.source.data is not None:
        return read_people(opened.source.data, opened.explainer.space, groups)
    found = opened.people()
    if found is None:
        raise InvalidOption("an audit is of the people of --data, and the service was started without.")
    return pd.DataFrame(found[0], dtype=object)


def reporting(report: Report) -> Callable[[Progress], None]:
    """Return what batches tell their progress to: it is passed on a few times a second."""
    last = 0.0

    def progress(so_far: Progress) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last < 0.2 and so_far.done != so_far.total:
            return
        last = now
        report(
            {
                "done": so_far.done,
                "total": so_far.total,
                "proved": so_far.proved,
                "errors": so_far.errors,
                "seconds": round(so_far.seconds, 2),
                "remaining": None if so_far.remaining is None else round(so_far.remaining, 1),
            }
        )

    return progress
