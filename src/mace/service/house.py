"""The house: the workers of one service, and what is asked of them."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mace.service.crew import Crew, Told, Unanswered
from mace.service.jobs import Jobs
from mace.service.metrics import Metrics
from mace.service.source import Served

STOPPING = 10.0
"""Seconds that questions may take to end when the service is stopped."""


class House:
    """Three crews: one that searches, one worker for what is quick, so that a score does not wait for a search, and one for jobs.

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
        self.searchers = Crew(source, workers, self.limits, warm=True, on_failure=on_failure)
        self.clerks = Crew(source, 1, self.limits, warm=False, on_failure=on_failure)
        self.workshop = Crew(source, 1, self.limits, warm=False, on_failure=on_failure)
        self.jobs = Jobs(source, self.workshop, folder)
        self._about: bytes | None = None
        self._asking = asyncio.Lock()

    async def start(self) -> None:
        """Start the workers, without waiting for them."""
        self.clerks.start()
        self.searchers.start()
        self.jobs.start()

    async def stop(self) -> None:
        """Let what is being answered end, then end all workers."""
        await self.jobs.stop()
        seconds = {self.searchers: STOPPING, self.clerks: STOPPING, self.workshop: 0.0}
        await asyncio.gather(*(crew.stop(limit) for crew, limit in seconds.items()))

    # ---- questions

    async def about(self) -> bytes:
        """Return the answer of ``/v1/model``, which stays the same."""
        async with self._asking:
            if self._about is None:
                self._about = await self.quickly("model", {})
        return self._about

    async def quickly(self, task: str, given: dict[str, Any]) -> bytes:
        """Ask what is no search."""
        return await self.clerks.ask(task, given, self.limits.quick)

    async def search(self, task: str, given: dict[str, Any], told: Told | None = None) -> bytes:
        """Ask a question that searches; its hard deadline is its time limit and some grace."""
        return await self.searchers.ask(task, given, given["time_limit"] + self.limits.grace, told)

    # ---- state

    def ready(self) -> dict[str, Any]:
        """Return who is there; raise unless questions are answered."""
        if not (self.searchers.is_ready and self.clerks.is_ready):
            raise Unanswered(503, "NotReady", "the model is still being read, or the service is being stopped.", 2)
        return {"status": "ready", "workers": self.searchers.size, "busy": self.searchers.busy}

    def gauges(self) -> dict[str, tuple[str, float]]:
        """Return figures of the workers for Prometheus."""
        crew = self.searchers
        return {
            "mace_workers": ("Workers that search.", crew.size),
            "mace_workers_busy": ("Workers that have a question, or are being started.", crew.busy),
            "mace_waiting": ("Questions that wait for a worker.", crew.waiting),
            "mace_questions_total": ("Questions that a worker was asked.", crew.asked),
            "mace_workers_ended_total": ("Workers ended at their hard deadline.", crew.ended + self.clerks.ended),
            "mace_workers_died_total": ("Workers that died.", crew.died + self.clerks.died),
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
