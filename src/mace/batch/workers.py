"""Workers on one machine or a cluster, through joblib and whatever back end it is configured with."""

from __future__ import annotations

import math
import os
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, suppress
from itertools import islice
from typing import Any

from mace.answer.asked import AskedModel
from mace.answer.question import Question
from mace.batch.in_process import InProcess
from mace.batch.rows import BatchRow, values_of
from mace.batch.transport import Carrier, carrier, packed
from mace.batch.worker import TIMES_AS_LONG, Answered, Part, end_with, failed, perform
from mace.solvers.compiling import is_under_way, wait_if_quicker

FIRST_PART, FAIR_PART, LARGEST_PART = 16, 64, 512
"""Rows that a worker is given at one time: at first; when few are left and they are quick; at most."""

SECONDS_A_PART, MOST_SECONDS_A_PART = 0.5, 5.0
"""How long a part should take, and at most where most of it is the model's; after twice that a worker gives back what is not answered."""

FAIR_SECONDS = 0.1
"""How long a part may take when few rows are left, for which others wait."""

AFTER_A_DEATH = (LARGEST_PART, FIRST_PART, 1)
"""The largest part at first, and after each death of a worker: what it had is lost, and done again."""

ALONE, WORTH = 1.0, 8.0
"""Seconds that this process answers rows before it starts others, and how many must be left for that."""

DEATHS = {"BrokenProcessPool", "KilledWorker", "RayActorError", "WorkerCrashedError"}
"""The errors by which process pools, Dask and Ray say that a worker is gone, as opposed to that the work went wrong."""


class Workers:
    """Answers rows in other processes; the model is read once in each.

    To start a process takes seconds: the first rows are answered in this one, until others are ready, and all of them where that is sooner.

    Where a worker dies, the rows that were not answered are asked again, in the end one at a time; a row whose worker dies even when it
    is alone is an answer of status ``error``.

    Parameters
    ----------
    explainer, question, n_jobs
        As of the batch.
    total : int, optional
        How many rows there are, if known.
    meanwhile : callable, optional
        What to do while workers are busy.
    helps : bool
        Whether this process answers rows itself, until others are ready; not so on a cluster.
    """

    def __init__(
        self,
        explainer: AskedModel,
        question: Question,
        n_jobs: int | None,
        total: int | None = None,
        meanwhile: Callable[[], object] | None = None,
        *,
        helps: bool = True,
    ) -> None:
        self.explainer = explainer
        self.question = question
        self.n_jobs = n_jobs
        self.total = total
        self.meanwhile = meanwhile
        self._part, self._fair = FIRST_PART, FAIR_PART
        self._data = packed(explainer, question)
        self._stack = ExitStack()
        self._parallel: Any = None
        self._is_alone = helps and _is_local()
        self._alone_since, self._answered = math.inf, 0
        self._started: threading.Event | None = None

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *error: object) -> None:
        self._close()

    def __call__(self, part: Sequence[tuple[int, BatchRow]], until: float) -> Iterator[Answered]:
        """Yield the answers as they come, in any order."""
        missing = dict(part)
        if self._is_alone:
            yield from self._alone(missing, until)
        if missing and is_under_way():
            yield from self._first(missing, until)
        for size in AFTER_A_DEATH:
            while missing and (yield from self._round(missing, size, until)):
                pass
        for number, point in list(missing.items()):
            yield from self._round(alone := {number: point}, 1, until)
            if alone:
                died = "the worker died, also when it had this row alone: killed, or out of memory"
                explanation = failed(values_of(self.explainer.space, point), self.question, died)
                yield Answered(number, explanation, is_final=True)

    def _alone(self, missing: dict[int, BatchRow], until: float) -> Iterator[Answered]:
        """Answer rows in this process until others are ready, which are started where it pays."""
        solve = InProcess(self.explainer, self.question)
        self._alone_since = min(self._alone_since, time.monotonic())
        while missing:
            begun = time.monotonic()
            made = []
            for answered in solve(list(islice(missing.items(), self._part)), until, self._part):
                made.append(answered)
                del missing[answered.number]
                yield answered
            self._answered += len(made)
            self._adapt(made, time.monotonic() - begun)
            if self._started is None and self._is_worth_it():
                self._started = self._start(until)
            elif self._started is not None and self._started.is_set():
                self._is_alone = False
                return

    def _is_worth_it(self) -> bool:
        """Return whether others should be started: some time has passed, and more is left, at least as much again where nobody knows."""
        seconds = time.monotonic() - self._alone_since
        known = self.total is not None and self._answered
        left = seconds / self._answered * (self.total - self._answered) if known else seconds  # type: ignore[operator]
        return seconds > ALONE and left > WORTH

    def _start(self, until: float) -> threading.Event:
        """Start the workers; return what is set when they have read the model."""
        from joblib import delayed

        self._open()
        begun, ready = self._parallel([delayed(perform)(self._carrier, (), until)] * self._processes), threading.Event()

        def wait() -> None:
            with suppress(Exception):  # whoever has died is noticed when rows are sent
                deque(begun, maxlen=0)
            ready.set()

        threading.Thread(target=wait, name="mace start", daemon=True).start()
        return ready

    def _first(self, missing: dict[int, BatchRow], until: float) -> Iterator[Answered]:
        """Answer one row a worker while kernels are being compiled, and wait for them where that is quicker for all others."""
        from joblib import effective_n_jobs

        processes, seconds = int(effective_n_jobs(self.n_jobs)), 0.0
        few = dict(islice(missing.items(), processes))
        for answered in self._round(few, 1, until):
            del missing[answered.number]
            seconds = max(seconds, answered.explanation.seconds)
            yield answered
        wait_if_quicker(seconds * len(missing) / processes, processes, until)

    def _round(self, missing: dict[int, BatchRow], size: int, until: float) -> Generator[Answered, None, bool]:
        """Ask for the rows that are missing, and strike off those that are answered; return whether no worker died."""
        try:
            for answers, seconds in self._answers(self._parts(list(missing.items()), size), until):
                self._adapt(answers, seconds)
                for answered in answers:
                    del missing[answered.number]
                    yield answered
        except Exception as error:
            self._close()
            if not DEATHS & {base.__name__ for base in type(error).__mro__}:
                raise
            return False
        return True

    def _parts(self, rows: list[tuple[int, BatchRow]], most: int) -> Iterator[list[tuple[int, BatchRow]]]:
        """Yield parts of rows, as large as is then thought right; in the end smaller ones, so that no worker waits for long."""
        start = 0
        while start < len(rows):
            fair = max(self._fair, (len(rows) - start) // self._processes)
            size = min(most, self._part, fair)
            yield rows[start : start + size]
            start += size

    def _answers(
        self, parts: Iterator[list[tuple[int, BatchRow]]], until: float
    ) -> Iterator[tuple[list[Answered], float]]:
        """Yield the answers to parts as they come, and how long each took.

        A back end that gives nothing before everything is asked for a little at a time.
        """
        from joblib import delayed

        if self._parallel is None:
            self._open()
        tasks = (delayed(_timed)(self._carrier, part, until) for part in parts)
        while some := tasks if self._is_eager else list(islice(tasks, 4 * self._processes)):
            answers = self._parallel(some)
            if self.meanwhile is not None:
                self.meanwhile()
            try:
                for each in answers:  # noqa: UP028 - `yield from` would end them before the warning is silenced
                    yield each
            finally:
                _end(answers)
            if self._is_eager:
                return

    def _open(self) -> None:
        """Start the workers, which then stay for every block, and send them the explainer."""
        from joblib import Parallel, effective_n_jobs
        from joblib.parallel import get_active_backend

        backend, _ = get_active_backend()
        self._is_eager = bool(getattr(backend, "supports_return_generator", False))
        self._processes = int(effective_n_jobs(self.n_jobs))
        self._carrier = carrier(self._data, backend, self._stack)
        give = "generator_unordered" if self._is_eager else "list"
        is_local = type(backend).__name__ == "LokyBackend"
        start: dict[str, Any] = {"initializer": end_with, "initargs": (os.getpid(),)} if is_local else {}
        self._parallel = self._stack.enter_context(Parallel(n_jobs=self.n_jobs, batch_size=1, return_as=give, **start))

    def _close(self) -> None:
        self._parallel = None
        self._stack.close()

    def _adapt(self, answers: list[Answered], seconds: float) -> None:
        """Let parts be large enough that handing them over costs little, and small enough that no worker waits for long.

        What does not go into single rows is the model's, which is asked about all rows of a part at one time: parts last as long as that
        is little beside the rest.
        """
        alone = sum(answered.explanation.seconds for answered in answers)
        rate = max(alone / max(len(answers), 1), 1e-6)
        wanted = min(max(SECONDS_A_PART, TIMES_AS_LONG * (seconds - alone)), MOST_SECONDS_A_PART)
        self._part = max(1, min(LARGEST_PART, 4 * self._part, int(wanted / rate)))
        self._fair = max(1, min(FAIR_PART, int(FAIR_SECONDS / rate)))


def _timed(carrier: Carrier, part: Part, until: float) -> tuple[list[Answered], float]:
    """Answer rows in a worker; return how long it took, too."""
    begun = time.monotonic()
    made = perform(carrier, part, until, 2 * SECONDS_A_PART)
    return made, time.monotonic() - begun


def _is_local() -> bool:
    """Return whether joblib starts processes on this machine, and only these."""
    from joblib.parallel import get_active_backend

    return type(get_active_backend()[0]).__name__ == "LokyBackend"


def _end(answers: Any) -> None:
    """Cancel the tasks of which nobody wants the answers any more; joblib would warn of it."""
    if hasattr(answers, "close"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            answers.close()
