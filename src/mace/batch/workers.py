"""Workers on one machine or a cluster, through joblib and whatever back end it is told to use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any

from mace.batch.worker import Answered, Carrier, Explains, Options, carried, failed, perform
from mace.space import Point

LARGEST_PART = 16
"""Rows that a worker is given at most at one time: what is lost, and done again, where it dies."""

SECONDS_A_PART = 0.5

DEATHS = {"BrokenProcessPool", "KilledWorker", "RayActorError", "ActorDiedError", "WorkerCrashedError"}
"""The errors by which process pools, Dask and Ray say that a worker is gone, as opposed to that the work went wrong."""


class Workers:
    """Answers rows in other processes; the model is read once in each.

    Where a worker dies, the rows that were not answered are asked again, one at a time; a row whose worker dies even when it is alone
    is an answer of status ``error``.
    """

    def __init__(self, explainer: Explains, options: Options, n_jobs: int | None) -> None:
        self.explainer = explainer
        self.options = options
        self.n_jobs = n_jobs
        self._part = 1
        self._stack = ExitStack()

    def __enter__(self) -> Workers:
        self._carrier: Carrier = self._stack.enter_context(carried(self.explainer, self.options))
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def __call__(self, part: Sequence[tuple[int, Point]], until: float) -> Iterator[Answered]:
        """Yield the answers as they come, in any order."""
        missing = dict(part)
        yield from self._round(missing, self._part, until)
        if missing:
            yield from self._round(missing, 1, until)
        for number, point in list(missing.items()):
            yield from self._round(alone := {number: point}, 1, until)
            if alone:
                error = RuntimeError("the worker died, also when it had this row alone: killed, or out of memory")
                yield Answered(number, failed(self.explainer.space.values_of(point), self.options, error), True)

    def _round(self, missing: dict[int, Point], size: int, until: float) -> Iterator[Answered]:
        """Ask for the rows that are missing, and strike off those that are answered, until all are or a worker dies."""
        rows = list(missing.items())
        parts = [rows[start : start + size] for start in range(0, len(rows), size)]
        try:
            for answers in self._parallel(parts, until):
                self._adapt(answers)
                for answered in answers:
                    del missing[answered.number]
                    yield answered
        except Exception as error:
            if not DEATHS & {base.__name__ for base in type(error).__mro__}:
                raise

    def _parallel(self, parts: list[list[tuple[int, Point]]], until: float) -> Iterator[list[Answered]]:
        from joblib import Parallel, delayed

        tasks = [delayed(perform)(self._carrier, part, until) for part in parts]
        answers: Any = Parallel(n_jobs=self.n_jobs, batch_size=1, return_as="generator_unordered")(tasks)
        yield from answers

    def _adapt(self, answers: list[Answered]) -> None:
        """Let parts be large enough that handing them over costs little, and small enough that no worker waits for long."""
        seconds = sum(answered.explanation.seconds for answered in answers) / max(len(answers), 1)
        self._part = max(1, min(LARGEST_PART, int(SECONDS_A_PART / max(seconds, 1e-3))))
