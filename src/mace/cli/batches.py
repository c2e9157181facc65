"""``mace batch``: a CSV file in, a file of answers out, and a checkpoint in between."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from mace.answer.explanation import Explanation
from mace.answer.question import Question
from mace.batch.sinks import save
from mace.batch.stream import Stream
from mace.batch.table import Table
from mace.cli.files import count_rows, read_named_rows, read_rows
from mace.cli.options import checkpoint_beside
from mace.explainer import Explainer
from mace.problem import Status


@dataclass(frozen=True, slots=True)
class BatchOutcome:
    """What became of the rows.

    Attributes
    ----------
    text : str
        A line about it.
    is_open : bool
        Whether some row has neither an answer nor a proof that there is none.
    is_interrupted : bool
        Whether Ctrl-C, or another request to end, came before all rows were answered.
    hints : tuple of str
        Those of the answers, each once.
    late : int
        How many rows their deadline left without a proof.
    """

    text: str
    is_open: bool
    is_interrupted: bool = False
    hints: tuple[str, ...] = ()
    late: int = 0


def run_batch(
    explainer: Explainer,
    data: Path,
    out: Path,
    question: Question,
    *,
    jobs: int,
    total_time_limit: float | None,
    is_resumed: bool,
    id: str | None = None,  # noqa: A002
    is_late: Callable[[Explanation], bool] = lambda _: False,
) -> BatchOutcome:
    """Explain the rows of a CSV file into ``out``.

    Each answer goes to ``<out>.checkpoint`` at once, and is given up only when ``out`` is whole and every row was reached. An old
    checkpoint is neither used nor overwritten unless ``is_resumed`` says so. ``id`` is a column of the file to carry along.
    """
    checkpoint = checkpoint_beside(out, is_resumed=is_resumed)
    table = Table.of(explainer.space, explainer.classes, id)
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
    ids: deque[str] = deque()
    rows = read_rows(data, explainer.space) if id is None else read_named_rows(data, explainer.space, id, ids)
    answers = _counted(stream.answers(rows, total=count_rows(data)), counts, hints, late, is_late)
    try:
        save(answers, out, table, None if id is None else iter(ids.popleft, None))
    except KeyboardInterrupt:
        return BatchOutcome(
            f"Interrupted. The answers so far are in {checkpoint}; go on with --resume.",
            is_open=True,
            is_interrupted=True,
            hints=tuple(hints),
        )
    is_complete = not counts["not reached"]
    if is_complete:
        checkpoint.unlink(missing_ok=True)
    described = ", ".join(f"{count} {status}" for status, count in counts.items()) or "none"
    rest = "" if is_complete else f" Go on with --resume; the answers so far are in {checkpoint}."
    is_open = bool(counts[str(Status.UNKNOWN)] or counts[str(Status.ERROR)] or counts["not reached"])
    return BatchOutcome(
        f"{counts.total()} rows: {described}. Answers are in {out}.{rest}", is_open, hints=tuple(hints), late=late[True]
    )


def _counted(
    answers: Iterable[Explanation],
    counts: Counter[str],
    hints: dict[str, None],
    late: Counter[bool],
    is_late: Callable[[Explanation], bool],
) -> Iterator[Explanation]:
    for explanation in answers:
        hints |= dict.fromkeys(explanation.hints)
        counts[_word(explanation)] += 1
        late[is_late(explanation)] += 1
        yield explanation


def _word(explanation: Explanation) -> str:
    """Return what became of a row, in a word or two."""
    if explanation.error.startswith("AlreadyThere"):  # of a checkpoint that 0.1 wrote
        return str(Status.REACHED)
    is_reached = explanation.prediction is not None or explanation.status != Status.UNKNOWN
    return str(explanation.status) if is_reached else "not reached"
