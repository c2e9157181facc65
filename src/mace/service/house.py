"""The house: the workers of one service, and what is asked of them."""

from __future__ import annotations

import asyncio
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

from mace.service.crew import Crew, Told, Unanswered
from mace.service.metrics import Metrics
from mace.service.source import Source

STOPPING = 10.0
"""Seconds that questions may take to end when the service is stopped."""


class House:
    """Two crews: one that searches, and one worker for what is quick, so that a score does not wait for a search.

    Parameters
    ----------
    source : Source
        What is served.
    workers : int
        How many search.
    on_failure : callable
        Is told (error, message) where the model cannot be read.
    """

    def __init__(self, source: Source, workers: int, on_failure: Callable[[str, str], None]) -> None:
        self.source, self.limits = source, source.limits
        self.metrics = Metrics()
        self.started = time.time()
        self.searchers = Crew(source, workers, self.limits, warm=True, on_failure=on_failure)
        self.clerks = Crew(source, 1, self.limits, warm=False, on_failure=on_failure)
        self._about: bytes | None = None
        self._asking = asyncio.Lock()

    async def start(self) -> None:
        """Start the workers, without waiting for them."""
        self.clerks.start()
        self.searchers.start()

    async def stop(self) -> None:
        """Let what is being answered end, then end all workers."""
        await asyncio.gather(*(crew.stop(STOPPING) for crew in (self.searchers, self.clerks)))

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
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
        crew = self.searchers
        return {
            "mace_workers": ("Workers that search.", crew.size),
            "mace_workers_busy": ("Workers that have a question, or are being started.", crew.busy),
            "mace_waiting": ("Questions that wait for a worker.", crew.waiting),
            "mace_questions_total": ("Questions that a worker was asked.", crew.asked),
            "mace_workers_ended_total": ("Workers ended at their hard deadline.", crew.ended + self.clerks.ended),
            "mace_workers_died_total": ("Workers that died.", crew.died + self.clerks.died),
            "mace_memory_most_bytes": ("The most memory of the process that listens.", most),
            "mace_start_time_seconds": ("When the service started.", self.started),
        }
