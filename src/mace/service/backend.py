"""The workers of one service, and what is asked of them."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mace.service.jobs import Jobs
from mace.service.metrics import Metrics
from mace.service.pool import OnProgress, Unanswered, WorkerPool
from mace.service.source import Served

STOPPING = 10.0
"""Seconds that questions may take to end when the service is stopped."""


class Backend:
    """Three pools of workers: those that search, one for what is quick, so that a score does not wait for a search, and one for jobs.

    Parameters
    ----------
    source : Served
        What is served.
    workers : int
        How many search.
    on_failure : callable
        Is told (error, message) where the model cannot be read.
    folder : Path, optional
        Where jobs are kept; the user's folder for such where not given.
    """

    def __init__(
        self, source: Served, workers: int, on_failure: Callable[[str, str], None], folder: Path | None = None
    ) -> None:
        self.source, self.limits = source, source.limits
        self.metrics = Metrics()
        self.started = time.time()
        self.searchers = WorkerPool(source, workers, self.limits, warm=True, on_failure=on_failure)
        self.quick = WorkerPool(source, 1, self.limits, warm=False, on_failure=on_failure)
        self.job_workers = WorkerPool(source, 1, self.limits, warm=False, on_failure=on_failure)
        self.jobs = Jobs(source, self.job_workers, folder)
        self._about: bytes | None = None
        self._asking = asyncio.Lock()
        self._stopping: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start the workers, without waiting for them."""
        self.quick.start()
        self.searchers.start()
        self.jobs.start()

    async def stop(self) -> None:
        """Take no more, let what is being answered end, then end all workers; asked twice, this is done once."""
        if self._stopping is None:
            self._stopping = asyncio.get_running_loop().create_task(self._stop())
        await asyncio.shield(self._stopping)

    async def _stop(self) -> None:
        await self.jobs.stop()
        seconds = {self.searchers: STOPPING, self.quick: STOPPING, self.job_workers: 0.0}
        await asyncio.gather(*(pool.stop(limit) for pool, limit in seconds.items()))

    # ---- questions

    async def about(self) -> bytes:
        """Return the answer of ``/v1/model``, which stays the same."""
        async with self._asking:
            if self._about is None:
                self._about = await self.quickly("model", {})
        return self._about

    async def quickly(self, task: str, given: dict[str, Any]) -> bytes:
        """Ask what is no search."""
        return await self.quick.ask(task, given, self.limits.quick)

    async def search(self, task: str, given: dict[str, Any], on_progress: OnProgress | None = None) -> bytes:
        """Ask a question that searches; its hard deadline is its time limit and some grace."""
        return await self.searchers.ask(task, given, given["time_limit"] + self.limits.grace, on_progress)

    # ---- state

    def ready(self) -> dict[str, Any]:
        """Return who is there; raise unless questions are answered."""
        if not (self.searchers.is_ready and self.quick.is_ready):
            raise Unanswered(503, "NotReady", "the model is still being read, or the service is being stopped.", 2)
        return {"status": "ready", "workers": self.searchers.size, "busy": self.searchers.busy}

    def gauges(self) -> dict[str, tuple[str, float]]:
        """Return figures of the workers for Prometheus."""
        pool = self.searchers
        return {
            "mace_workers": ("Workers that search.", pool.size),
            "mace_workers_busy": ("Workers that have a question, or are being started.", pool.busy),
            "mace_waiting": ("Questions that wait for a worker.", pool.waiting),
            "mace_questions_total": ("Questions that a worker was asked.", pool.asked),
            "mace_workers_ended_total": ("Workers ended at their hard deadline.", pool.ended + self.quick.ended),
            "mace_workers_died_total": ("Workers that died.", pool.died + self.quick.died),
            "mace_memory_most_bytes": ("The most memory of the process that listens.", most_memory()),
            "mace_start_time_seconds": ("When the service started.", self.started),
        }


def most_memory() -> int:
    """Return the most memory that this process has had, in bytes; 0 where the system does not say."""
    try:
        import resource
    except ImportError:
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
