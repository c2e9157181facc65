"""The stream of a batch: rows in, answers out in the same order, a block at a time, so that memory does not grow with the rows."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypedDict, TypeVar

from mace.answer.asked import AskedModel
from mace.answer.explanation import Explanation
from mace.answer.question import Options, Question, is_seconds
from mace.batch.answered import REMEMBERED, AnsweredRows, checkpoint_of
from mace.batch.checkpoint import EXPLANATIONS
from mace.batch.in_process import InProcess
from mace.batch.progress import OnProgress, shown
from mace.batch.rows import BatchRow, OutsideRow, cells_of, point_of, rows_of, size_of
from mace.batch.worker import TOO_LATE, failed, not_asked
from mace.batch.workers import Workers
from mace.errors import InvalidOption, MaceError
from mace.problem import INTERRUPTED, Status
from mace.slips import check_options

ROWS_READ_AHEAD = 1024
"""Rows that are read before any is answered."""

MOST_READ_AHEAD = 4 * ROWS_READ_AHEAD
"""The same with several processes, which wait for each other at the end of a block: they get larger ones where rows are quick."""

SECONDS_OF_A_QUICK_BLOCK = 5.0
"""Seconds that a block may take for the next one to be larger."""

MOST_JOBS = 1024

Answer = TypeVar("Answer")


class RunningOptions(TypedDict, total=False):
    """How a batch is run."""

    total_time_limit: float | None
    n_jobs: int | None
    checkpoint: str | os.PathLike[str] | None
    on_progress: OnProgress | None
    progress: bool


class BatchOptions(Options, RunningOptions, total=False):
    """How a batch is run, and what it asks of every row."""


def split_options(method: str, options: Mapping[str, Any], known: Iterable[str]) -> tuple[Any, Any]:
    """Return how a batch is run, and what it asks of every row; what a method does not know is refused."""
    check_options(method, options, known)
    running = {name: value for name, value in options.items() if name in RunningOptions.__annotations__}
    return running, {name: value for name, value in options.items() if name not in running}


def check_running(options: RunningOptions) -> None:
    """Refuse options of how a batch is run that cannot be meant."""
    limit, jobs, on_progress = (options.get(name) for name in ("total_time_limit", "n_jobs", "on_progress"))
    if not is_seconds(limit):
        raise InvalidOption(f"total_time_limit={limit!r}; it must be a positive number of seconds, or None.")
    if jobs is not None and (isinstance(jobs, bool) or not isinstance(jobs, int) or jobs == 0 or abs(jobs) > MOST_JOBS):
        raise InvalidOption(
            f"n_jobs={jobs!r:.40}; give a number of processes, at most {MOST_JOBS:,}, -1 for one a core, or None."
        )
    if on_progress is not None and not callable(on_progress):
        raise InvalidOption(f"on_progress={on_progress!r}; give a function that takes a Progress.")


@dataclass(frozen=True, slots=True)
class Stream:
    """A question about many rows, and how it is worked off.

    Attributes
    ----------
    explainer : Explainer
        The model.
    question : Question
        What is asked of each row.
    total_time_limit, n_jobs, checkpoint, on_progress, progress
        As for ``Explainer.explain_many``.
    """

    explainer: AskedModel
    question: Question
    total_time_limit: float | None = None
    n_jobs: int | None = None
    checkpoint: str | os.PathLike[str] | None = None
    on_progress: OnProgress | None = None
    progress: bool = False

    def __post_init__(self) -> None:
        check_running(
            {"total_time_limit": self.total_time_limit, "n_jobs": self.n_jobs, "on_progress": self.on_progress}
        )

    @classmethod
    def of(cls, explainer: AskedModel, options: BatchOptions) -> Stream:
        """Return the stream of the options of ``Explainer.explain_many``."""
        running, asked = split_options("explain_many", options, BatchOptions.__annotations__)
        return cls(explainer, Question(explainer.space, **asked, classes=explainer._reading.classes), **running)

    def answers(
        self, data: Any, *, remember: int | None = REMEMBERED, total: int | None = None
    ) -> Iterator[Explanation]:
        """Yield the explanation of each row, in order.

        ``remember`` is how many answers are kept for equal rows, ``None`` for all; ``total`` how many rows there are, if known.
        Ctrl-C is raised after the answers of the current block have been given.
        """
        rows = Ahead(rows_of(data, self.explainer.space), self.explainer)
        total = size_of(data) if total is None else total
        known = [point for point in rows.read()[1] if not isinstance(point, MaceError)]
        inside = (point for point in known if not isinstance(point, OutsideRow))
        sample = next(inside, self.explainer.space.some_point())
        if known:
            self.explainer._check(sample, self.question)
        with ExitStack() as stack:
            outside = {} if self.explainer.outside == "error" else {"outside": self.explainer.outside}
            kept = checkpoint_of(self.checkpoint, EXPLANATIONS, self.explainer, self.question, sample, outside, stack)
            solve: Workers | InProcess = InProcess(self.explainer, self.question)
            if processes(self.n_jobs) > 1:
                helps = kept is None or kept.is_new
                workers = Workers(self.explainer, self.question, self.n_jobs, total, rows.look, helps=helps)
                solve = stack.enter_context(workers)
            report = stack.enter_context(shown(self.on_progress, bar=self.progress))
            until = math.inf if self.total_time_limit is None else time.time() + self.total_time_limit
            answered = AnsweredRows(self.explainer, kept, report, total, remember)
            run = _Run(self.explainer, self.question, solve, until, answered)
            while rows.read()[0]:
                begun = time.monotonic()
                yield from run.block(*rows.take())
                if isinstance(solve, Workers) and time.monotonic() - begun < SECONDS_OF_A_QUICK_BLOCK:
                    rows.size = min(2 * rows.size, MOST_READ_AHEAD)


class Ahead:
    """The rows of a stream, a block at a time; the next block may be read while this one is answered."""

    def __init__(self, rows: Iterator[Any], explainer: AskedModel) -> None:
        self._rows, self._explainer = rows, explainer
        self._next: tuple[list[Any], list[BatchRow | MaceError]] | None = None
        self._failure: Exception | None = None
        self.size = ROWS_READ_AHEAD

    def look(self) -> None:
        """Read the next block where that has not been done; what goes wrong is raised when it is wanted."""
        try:
            self.read()
        except Exception as error:
            self._failure = error

    def read(self) -> tuple[list[Any], list[BatchRow | MaceError]]:
        """Return the next block, rows and points; read it where that has not been done."""
        if self._failure is not None:
            raise self._failure
        if self._next is None:
            rows = list(islice(self._rows, self.size))
            self._next = rows, [point_of(self._explainer, row) for row in rows]
        return self._next

    def take(self) -> tuple[list[Any], list[BatchRow | MaceError]]:
        """Return the next block, and go on to the one after it."""
        taken, self._next = self.read(), None
        return taken


@dataclass(slots=True)
class _Run:
    """One pass over the blocks of a stream."""

    explainer: AskedModel
    question: Question
    solve: Workers | InProcess
    until: float
    answered: AnsweredRows[Explanation]
    begun: int = 0

    def block(self, rows: Sequence[Any], points: Sequence[BatchRow | MaceError]) -> Iterator[Explanation]:
        """Yield the explanations of a block of rows, in order."""
        base = self.begun
        self.begun += len(rows)
        found: dict[int, Explanation] = {}
        asked: dict[BatchRow, list[int]] = {}
        for number, (row, point) in enumerate(zip(rows, points, strict=True), start=base):
            if isinstance(point, MaceError):
                self._found(found, number, failed(cells_of(self.explainer.space, row), self.question, point))
            elif (known := self.answered.known(number, point)) is not None:
                self._found(found, number, known)
            else:
                asked.setdefault(point, []).append(number)
        is_interrupted = False
        try:
            self._ask(asked, found)
        except KeyboardInterrupt:
            is_interrupted = True
        for number, point in enumerate(points, start=base):
            if number not in found:
                assert not isinstance(point, MaceError)
                reason = INTERRUPTED if is_interrupted else TOO_LATE
                found[number] = not_asked(self.explainer.space, point, self.question, reason)
        yield from self._with_scores([found.pop(number) for number in range(base, self.begun)])
        if is_interrupted:
            raise KeyboardInterrupt

    def _with_scores(self, explanations: list[Explanation]) -> list[Explanation]:
        """Return explanations with the scores that those of an old checkpoint lack."""
        bare = [number for number, each in enumerate(explanations) if not each.score_of]
        scored = self.explainer._scored([explanations[number] for number in bare], self.question) if bare else []
        for number, explanation in zip(bare, scored, strict=True):
            explanations[number] = explanation
        return explanations

    def _ask(self, asked: dict[BatchRow, list[int]], found: dict[int, Explanation]) -> None:
        """Answer each distinct row once, and give the answer to all that are equal to it."""
        if time.time() >= self.until:
            return
        by_number = {numbers[0]: point for point, numbers in asked.items()}
        for answered in self.solve(list(by_number.items()), self.until):
            point = by_number[answered.number]
            if answered.is_final:
                self.answered.keep(asked[point], point, answered.explanation)
            for number in asked[point]:
                self.answered.new += 1
                self._found(found, number, answered.explanation)

    def _found(self, found: dict[int, Explanation], number: int, explanation: Explanation) -> None:
        found[number] = explanation
        status = explanation.status
        self.answered.count(is_proved=status.is_final, is_error=status == Status.ERROR)


def processes(n_jobs: int | None) -> int:
    """Return how many processes are meant."""
    if n_jobs == 1:
        return 1
    from joblib import effective_n_jobs

    return int(effective_n_jobs(n_jobs))


def collected(answers: Iterable[Answer]) -> tuple[list[Answer], bool]:
    """Return the answers, and whether they ended with Ctrl-C."""
    found: list[Answer] = []
    try:
        found.extend(answers)
    except KeyboardInterrupt:
        return found, True
    return found, False
