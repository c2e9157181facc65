"""The workers as the service sees them: who is free, who waits, who died, and whose time is up."""

from __future__ import annotations

import asyncio
import multiprocessing
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from multiprocessing.process import BaseProcess
from typing import Any

from mace.registry import resolve
from mace.service.limits import ServiceLimits
from mace.service.messages import FAILED, NOT_THERE, PROGRESS, READY, REFUSED, STOP
from mace.service.source import Served

STOPPING_SECONDS = 0.5
"""How long a worker may take to give up a question before it is ended."""

AFTER_A_FAILED_START = 2.0
"""Seconds before another worker is started in the place of one that died before it was ready."""

OnProgress = Callable[[dict[str, Any]], None]


class Unanswered(Exception):
    """A request has no answer; the service says why.

    Attributes
    ----------
    status : int
        The status of HTTP.
    error : str
        Its name.
    """

    def __init__(self, status: int, error: str, message: str, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.status, self.error, self.retry_after = status, error, retry_after


def stopping() -> Unanswered:
    """Return what is said of a request that the end of the service leaves unanswered."""
    return Unanswered(503, "Stopping", "the service is being stopped. Ask again later.", 5)


class Worker:
    """One process, and what it sends."""

    def __init__(self, source: Served, *, warm: bool) -> None:
        self._source, self._warm = source, warm
        self.inbox: asyncio.Queue[tuple[int, str, Any] | None] = asyncio.Queue()
        self.number = 0
        self.process: BaseProcess | None = None

    async def start(self) -> None:
        """Start the process."""
        loop = asyncio.get_running_loop()
        await asyncio.to_thread(self._begin, loop)

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        context = started_from()
        self._pipe, theirs = context.Pipe()
        process = context.Process(target=work, args=(self._source, theirs), kwargs={"warm": self._warm}, daemon=True)
        process.start()
        self.process = process
        theirs.close()
        threading.Thread(target=self._listen, args=(loop,), daemon=True).start()

    def _listen(self, loop: asyncio.AbstractEventLoop) -> None:
        with suppress(RuntimeError):  # the loop is closed: the service ends
            try:
                while True:
                    loop.call_soon_threadsafe(self.inbox.put_nowait, self._pipe.recv())
            except (EOFError, OSError):
                loop.call_soon_threadsafe(self.inbox.put_nowait, None)

    async def send(self, task: str, given: Any) -> None:
        """Send a request, or that the one at hand is given up."""
        if task != STOP:
            self.number += 1
        with suppress(OSError):  # it died: the inbox says so
            await asyncio.to_thread(self._pipe.send, (self.number, task, given))

    async def next(self, until: float) -> tuple[str, Any] | None:
        """Return the next message about the request at hand; ``None`` where the process died. Later than ``until``: TimeoutError."""
        while True:
            async with asyncio.timeout(max(0.0, until - time.monotonic())):
                message = await self.inbox.get()
            if message is None:
                return None
            if message[0] == self.number:
                return message[1], message[2]

    def end(self) -> None:
        """End the process at once."""
        if self.process is not None:
            self.process.kill()
            threading.Thread(target=self._reap, args=(self.process,), daemon=True).start()

    def _reap(self, process: BaseProcess) -> None:
        process.join()
        with suppress(OSError):
            self._pipe.close()


def work(source: Served, pipe: Any, *, warm: bool) -> None:
    """Be a worker; what reads models is imported there, and not in the process that listens."""
    resolve("mace.service.worker:run")(source, pipe, warm=warm)


def started_from() -> Any:
    """Return how processes are started: from a server that has imported what workers need, where the system has one."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["mace.service.worker", "mace.solvers.trees.kernels", "sklearn.ensemble"])
    return context


def begin() -> None:
    """Let that server import what workers need, while this process imports what it needs itself."""
    if started_from().get_start_method() == "forkserver":
        from multiprocessing import forkserver

        forkserver.ensure_running()


class WorkerPool:
    """Workers that share a queue.

    Parameters
    ----------
    source : Served
        What is served.
    size : int
        How many.
    limits : ServiceLimits
        How long requests wait.
    warm : bool
        Whether workers ask themselves a first question.
    on_failure : callable
        Is told (error, message) where the model itself cannot be read.
    """

    def __init__(
        self,
        source: Served,
        size: int,
        limits: ServiceLimits,
        *,
        warm: bool,
        on_failure: Callable[[str, str], None],
    ) -> None:
        self._source, self.size, self._limits, self._warm = source, size, limits, warm
        self._on_failure = on_failure
        self._free: deque[Worker] = deque()
        self._all: set[Worker] = set()
        self._waiting: deque[asyncio.Future[Worker]] = deque()
        self._tasks: set[asyncio.Task[Any]] = set()
        self.is_stopping = False
        self.asked = self.ended = self.died = 0

    # ---- who is there

    @property
    def is_ready(self) -> bool:
        """Whether some worker has read the model."""
        return not self.is_stopping and any(each.number or each in self._free for each in self._all)

    @property
    def busy(self) -> int:
        """Workers that answer."""
        return sum(1 for each in self._all if each not in self._free)

    @property
    def waiting(self) -> int:
        """Requests that wait."""
        return len(self._waiting)

    def start(self) -> None:
        """Start all workers, without waiting for them."""
        for _ in range(self.size):
            self.in_background(self._add())

    def in_background(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something without waiting for it."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _add(self) -> None:
        """Start a worker and let it take requests once it has read the model."""
        while not self.is_stopping:
            one = Worker(self._source, warm=self._warm)
            self._all.add(one)
            try:
                await one.start()
                message = await one.next(time.monotonic() + self._limits.opening)
            except OSError:  # it takes too long (TimeoutError), or the system has no process or memory to give
                message = None
            if message is not None and message[0] == READY:
                self._release(one)
                return
            self._remove(one)
            if message is not None:
                what = message[1] if message[0] == REFUSED else ("InternalError", message[1])
                self._on_failure(*what)
                return
            await asyncio.sleep(AFTER_A_FAILED_START)

    def _release(self, one: Worker) -> None:
        """Hand a worker that is free to who waits longest."""
        if self.is_stopping:
            self._remove(one)
            return
        while self._waiting:
            first = self._waiting.popleft()
            if not first.done():
                first.set_result(one)
                return
        self._free.append(one)

    def _remove(self, one: Worker) -> None:
        self._all.discard(one)
        one.end()

    def _replace(self, one: Worker) -> None:
        self._remove(one)
        if not self.is_stopping:
            self.in_background(self._add())

    async def _take(self) -> Worker:
        """Return a worker that is free; wait for one, unless too many wait already."""
        if self.is_stopping:
            raise stopping()
        if self._free:
            return self._free.popleft()
        busy = f"{self.size} workers are busy and {len(self._waiting)} requests wait. Ask again later."
        if len(self._waiting) >= self._limits.waiting:
            raise Unanswered(429, "Busy", busy, 1)
        place: asyncio.Future[Worker] = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            async with asyncio.timeout(self._limits.patience):
                return await place
        except (TimeoutError, asyncio.CancelledError) as error:
            with suppress(ValueError):
                self._waiting.remove(place)
            if place.done() and not place.cancelled():
                self._release(place.result())
            if isinstance(error, TimeoutError) and not self.is_ready:
                raise Unanswered(503, "NotReady", "the model is still being read. Ask again.", 5) from None
            if isinstance(error, TimeoutError):
                raise Unanswered(429, "Busy", busy, 5) from None
            raise

    # ---- requests

    async def ask(
        self, task: str, given: dict[str, Any], seconds: float | None, on_progress: OnProgress | None = None
    ) -> bytes:
        """Return the answer to a request, JSON in bytes.

        Parameters
        ----------
        task : str
            What a :class:`~mace.service.answers.Handler` does.
        given : dict
            Its data.
        seconds : float, optional
            The hard deadline: a worker that takes longer is ended. None for a job.
        on_progress : callable, optional
            Receives progress.

        Raises
        ------
        Unanswered
            The request is at fault (4xx), or nothing was answered (429, 503).
        """
        one = await self._take()
        self.asked += 1
        try:
            kind, what = await self._result(one, task, given, seconds, on_progress)
        except asyncio.CancelledError:
            self.in_background(self._give_up(one))
            raise
        except Unanswered:
            self._replace(one)
            raise
        self._release(one)
        if kind == REFUSED:
            name, message = what
            raise Unanswered(422, name, message)
        if kind == NOT_THERE:
            raise Unanswered(404, "NotFound", what)
        if kind == FAILED:
            raise Unanswered(500, "InternalError", f"this is a bug in MACE: {what}. Please report it.")
        answer: bytes = what
        return answer

    async def _result(
        self, one: Worker, task: str, given: dict[str, Any], seconds: float | None, on_progress: OnProgress | None
    ) -> tuple[str, Any]:
        until = time.monotonic() + (1e9 if seconds is None else seconds)
        await one.send(task, given)
        lower = 0.0
        while True:
            try:
                message = await one.next(until)
            except TimeoutError:
                self.ended += 1
                proved = f" Proved until then: nothing nearer than {lower:.6g}." if lower else ""
                raise Unanswered(
                    503,
                    "Overran",
                    f"not answered within {seconds:g} s, and ended.{proved} Ask with a smaller time_limit.",
                ) from None
            if message is None and self.is_stopping:
                raise stopping()
            if message is None:
                self.died += 1
                raise Unanswered(503, "WorkerDied", "the process that had this request died. Ask again.", 1)
            if message[0] != PROGRESS:
                return message
            lower = message[1].get("lower", lower)
            if on_progress is not None:
                on_progress(message[1])

    async def _give_up(self, one: Worker) -> None:
        """Tell a worker that nobody waits any more; end it where it does not hear."""
        await one.send(STOP, None)
        until = time.monotonic() + STOPPING_SECONDS
        try:
            while (message := await one.next(until)) is not None:
                if message[0] != PROGRESS:
                    self._release(one)
                    return
        except TimeoutError:
            pass
        self._replace(one)

    async def stop(self, seconds: float) -> None:
        """Take nothing more, wait so long for what is being answered, and end all workers."""
        self.is_stopping = True
        for place in self._waiting:
            if not place.done():
                place.set_exception(stopping())
        until = time.monotonic() + seconds
        while self.busy and time.monotonic() < until:
            await asyncio.sleep(0.05)
        for one in list(self._all):
            self._remove(one)
        for task in list(self._tasks):
            task.cancel()
