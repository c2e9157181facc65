"""Workers on one machine or a cluster, through joblib and whatever back end it is configured with."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any

from mace.answer.question import Question
from mace.batch.protocol import Explains
from mace.batch.transport import carrier, packed
from mace.batch.worker import Answered, end_with, failed, perform
from mace.solvers.compiling import is_under_way, wait_if_quicker
from mace.space import Point

LARGEST_PART = 16
"""Rows that a worker is given at most at one time: what is lost, and done again, where it dies."""

SECONDS_A_PART = 0.5

DEATHS = {"BrokenProcessPool", "KilledWorker", "RayActorError", "WorkerCrashedError"}
"""The errors by which process pools, Dask and Ray say that a worker is gone, as opposed to that the work went wrong."""


class Workers:
    """Answers rows in other processes; the model is read once in each.

    Where a worker dies, the rows that were not answered are asked again, one at a time; a row whose worker dies even when it is alone
    is an answer of status ``error``.
    """

    def __init__(self, explainer: Explains, question: Question, n_jobs: int | None) -> None:
        self.explainer = explainer
        self.question = question
        self.n_jobs = n_jobs
        self._part = 1
        self._data = packed(explainer, question)
        self._stack = ExitStack()
        self._parallel: Any = None

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *error: object) -> None:
        self._close()

    def __call__(self, part: Sequence[tuple[int, Point]], until: float) -> Iterator[Answered]:
        """Yield the answers as they come, in any order."""
        missing = dict(part)
        if is_under_way():
            yield from self._first(missing, until)
        yield from self._round(missing, self._part, until)
        if missing:
            yield from self._round(missing, 1, until)
        for number, point in list(missing.items()):
            yield from self._round(alone := {number: point}, 1, until)
            if alone:
                died = "the worker died, also when it had this row alone: killed, or out of memory"
                explanation = failed(self.explainer.space.values_of(point), self.question, died)
                yield Answered(number, explanation, is_final=True)

    def _first(self, missing: dict[int, Point], until: float) -> Iterator[Answered]:
        """Answer one row a worker while kernels are being compiled, and wait for them where that is quicker for all others."""
        from joblib import effective_n_jobs

        processes, seconds = int(effective_n_jobs(self.n_jobs)), 0.0
        few = dict(list(missing.items())[:processes])
        for answered in self._round(few, 1, until):
            del missing[answered.number]
            seconds = max(seconds, answered.explanation.seconds)
            yield answered
        wait_if_quicker(seconds * len(missing) / processes, processes, until)

    def _round(self, missing: dict[int, Point], size: int, until: float) -> Iterator[Answered]:
        """Ask for the rows that are missing, and strike off those that are answered, until all are or a worker dies."""
        rows = list(missing.items())
        parts = [rows[start : start + size] for start in range(0, len(rows), size)]
        try:
            for answers in self._answers(parts, until):
                self._adapt(answers)
                for answered in answers:
                    del missing[answered.number]
                    yield answered
        except Exception as error:
            self._close()
            if not is_death(error):
                raise

    def _answers(self, parts: list[list[tuple[int, Point]]], until: float) -> Iterator[list[Answered]]:
        """Yield the answers to parts as they come; a back end that gives nothing before everything is asked for a little at a time."""
        from joblib import delayed

        if self._parallel is None:
            self._open()
        tasks = [delayed(perform)(self._carrier, part, until) for part in parts]
        step = max(len(tasks), 1) if self._is_eager else 4 * self._processes
        for start in range(0, len(tasks), step):
            answers = self._parallel(tasks[start : start + step])
            try:
                for each in answers:  # noqa: UP028 - `yield from` would end them before the warning is silenced
                    yield each
            finally:
                _end(answers)

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

    def _adapt(self, answers: list[Answered]) -> None:
        """Let parts be large enough that handing them over costs little, and small enough that no worker waits for long."""
        seconds = sum(answered.explanation.seconds for answered in answers) / max(len(answers), 1)
        self._part = max(1, min(LARGEST_PART, int(SECONDS_A_PART / max(seconds, 1e-3))))


def _end(answers: Any) -> None:
    """Cancel the tasks of which nobody wants the answers any more; joblib would warn of it."""
    if hasattr(answers, "close"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            answers.close()


def is_death(error: BaseException) -> bool:
    """Return whether an error says that a worker is gone."""
    return bool(DEATHS & {base.__name__ for base in type(error).__mro__})
