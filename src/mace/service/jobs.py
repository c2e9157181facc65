"""Jobs: what takes longer than a request, with its files for their owner alone, and gone after a stated time."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from mace.disk import OWNER_ONLY, lock, parse_json, read_bytes, whole_text
from mace.errors import InvalidOption
from mace.service.limits import ServiceLimits
from mace.service.pool import Unanswered, WorkerPool
from mace.service.source import Served

EVENTS = logging.getLogger("mace.service")

WAITING, QUEUED, RUNNING, DONE, FAILED, CANCELLED = "waiting", "queued", "running", "done", "failed", "cancelled"
MOST_ATTEMPTS = 2
"""How often a job is begun whose worker dies."""

BETWEEN_SWEEPS = 300.0
"""Seconds after which old jobs are looked for."""

FOLDER_MODE = 0o700
RESULTS = {
    "batch": {"csv": "answers.csv", "jsonl": "answers.jsonl", "parquet": "answers.parquet"},
    "audit": {"json": "audit.json", "html": "audit.html"},
}
"""The files of a job's results, by kind and format."""


@dataclass(slots=True)
class Job:
    """One job; what is kept on disk of it, and how far it is."""

    id: str
    kind: str
    owner: str
    created: float
    options: dict[str, Any]
    state: str = WAITING
    file: str | None = None
    message: str = ""
    progress: dict[str, Any] = field(default_factory=dict)

    def shown(self, folder: Path, hours: int) -> dict[str, Any]:
        """Return the job as clients see it."""
        ready = [name for name, file in RESULTS[self.kind].items() if (folder / file).exists()]
        counted = {
            name: self.progress.get(name) for name in ("done", "total", "proved", "errors", "seconds", "remaining")
        }
        return {
            "id": self.id,
            "kind": self.kind,
            "state": self.state,
            **counted,
            "message": self.message,
            "results": ready if self.state == DONE else [],
            "created": moment(self.created),
            "removed_after": moment(self.created + 3600 * hours),
        }


class Jobs:
    """All jobs of a service.

    Parameters
    ----------
    source : Served
        What is served: jobs of another model are not taken up.
    pool : WorkerPool
        The workers that do them; started with the first one.
    folder : Path, optional
        Where they are kept.
    """

    def __init__(self, source: Served, pool: WorkerPool, folder: Path | None) -> None:
        self._source, self._pool = source, pool
        self._limits: ServiceLimits = source.limits
        self._wanted = folder
        self.folder: Path | None = None
        self._jobs: dict[str, Job] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._one_at_a_time = asyncio.Semaphore(pool.size)
        self._is_started = False
        self._lock: int | None = None
        self._sweeper: asyncio.Task[None] | None = None

    # ---- beginning and end

    def start(self) -> None:
        """Open the folder, and go on with what an earlier service left."""
        self.folder = self._opened()
        if self.folder is None:
            EVENTS.warning("no folder for jobs can be written: there are none")
            return
        for each in sorted(self.folder.iterdir()):
            job = _read(each)
            if job is not None:
                self._jobs[job.id] = job
                if job.state in (QUEUED, RUNNING):
                    self._queue(job)
        self._sweeper = asyncio.get_running_loop().create_task(self._sweep())

    def _opened(self) -> Path | None:
        """Return the folder of this service's jobs, locked; one of its own where another service has it."""
        for parent in filter(None, (self._wanted or state_folder(), Path(tempfile.gettempdir()))):
            with suppress(OSError):
                made = parent / f"mace-jobs-{_user()}" / _digest(self._source)
                made.parent.mkdir(parents=True, exist_ok=True, mode=FOLDER_MODE)
                made.mkdir(exist_ok=True, mode=FOLDER_MODE)
                if made.is_symlink() or made.stat().st_uid != _user():
                    continue
                made.chmod(FOLDER_MODE)
                number = os.open(made / ".lock", os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), OWNER_ONLY)
                if lock(number):
                    self._lock = number
                    return made
                os.close(number)
                return Path(tempfile.mkdtemp(prefix="mace-jobs-"))
        return None

    async def stop(self) -> None:
        """Let jobs rest where they are: the next service goes on with them."""
        for task in [*self._tasks.values(), *([self._sweeper] if self._sweeper else [])]:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        if self._lock is not None:
            os.close(self._lock)

    async def _sweep(self) -> None:
        while True:
            for job in list(self._jobs.values()):
                if time.time() > job.created + 3600 * self._limits.keep_hours:
                    await self.remove(job)
            await asyncio.sleep(BETWEEN_SWEEPS)

    # ---- jobs

    def create(self, kind: str, options: dict[str, Any], owner: str) -> Job:
        """Return a new job; an audit begins at once, a batch waits for its file."""
        folder = self._open_folder()
        if len(self._jobs) >= self._limits.jobs:
            raise Unanswered(429, "Busy", f"{len(self._jobs)} jobs are kept already. Remove one, or wait.", 60)
        job = Job(secrets.token_urlsafe(18), kind, owner, time.time(), options)
        (folder / job.id).mkdir(mode=FOLDER_MODE)
        self._jobs[job.id] = job
        self._note(job)
        if kind != "batch":
            self._queue(job)
        return job

    def get(self, name: str, owner: str) -> Job:
        """Return a job by its id, to its owner alone."""
        job = self._jobs.get(name)
        if job is None or job.owner != owner:
            raise Unanswered(404, "NotFound", "there is no such job; jobs are removed after a day.")
        return job

    def shown(self, job: Job) -> dict[str, Any]:
        """Return a job as clients see it."""
        return job.shown(self._folder(job), self._limits.keep_hours)

    def result(self, job: Job, kind: str) -> Path:
        """Return the file of a result."""
        file = RESULTS[job.kind].get(kind)
        if file is None:
            known = ", ".join(RESULTS[job.kind])
            raise Unanswered(422, "InvalidRequest", f"format {kind!r:.40} is none of this job's. Known: {known}.")
        if job.state != DONE or not (self._folder(job) / file).exists():
            raise Unanswered(409, "NotYet", f"the job is {job.state}; it has no result as {kind}.")
        return self._folder(job) / file

    async def take_file(self, job: Job, suffix: str, body: AsyncIterator[bytes]) -> None:
        """Keep the file of a batch, and begin."""
        if job.kind != "batch" or job.state != WAITING:
            raise Unanswered(409, "NotYet", f"the job is {job.state}, and takes no file.")
        job.state = "receiving"
        name = f"data{suffix}"
        try:
            with open(
                os.open(self._folder(job) / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, OWNER_ONLY), "wb"
            ) as file:
                async for part in body:
                    await asyncio.to_thread(file.write, part)
        except BaseException:
            job.state = WAITING
            raise
        job.file = name
        self._queue(job)

    async def cancel(self, job: Job) -> None:
        """End a job; what it has answered is kept."""
        if job.state not in (QUEUED, RUNNING):
            raise Unanswered(409, "NotYet", f"the job is {job.state}; only one that is queued or running is cancelled.")
        await self._end(job)
        job.state, job.message = CANCELLED, "cancelled; resume goes on with it"
        self._note(job)

    def resume(self, job: Job) -> None:
        """Go on with a job that was cancelled or has failed."""
        if job.state not in (CANCELLED, FAILED):
            raise Unanswered(
                409, "NotYet", f"the job is {job.state}; only one that was cancelled or failed is resumed."
            )
        self._queue(job)

    async def remove(self, job: Job) -> None:
        """End a job and remove its files."""
        await self._end(job)
        self._jobs.pop(job.id, None)
        await asyncio.to_thread(shutil.rmtree, self._folder(job), ignore_errors=True)

    async def _end(self, job: Job) -> None:
        task = self._tasks.pop(job.id, None)
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    # ---- doing them

    def _queue(self, job: Job) -> None:
        job.state, job.message = QUEUED, ""
        self._note(job)
        if not self._is_started:
            self._is_started = True
            self._pool.start()
        self._tasks[job.id] = asyncio.get_running_loop().create_task(self._run(job))

    async def _run(self, job: Job) -> None:
        async with self._one_at_a_time:
            job.state = RUNNING
            self._note(job)
            given = {"folder": str(self._folder(job)), "file": job.file, "options": job.options}
            for attempt in range(1, MOST_ATTEMPTS + 1):
                try:
                    await self._pool.ask(job.kind, given, None, job.progress.update)
                    job.state = DONE
                except Unanswered as error:
                    if error.error == "WorkerDied" and attempt < MOST_ATTEMPTS:
                        continue
                    if error.error == "Stopping":  # the next service goes on with it
                        return
                    job.state, job.message = FAILED, f"{error.error}: {error}"[:2000]
                break
            self._note(job)
            self._tasks.pop(job.id, None)

    # ---- on disk

    def _open_folder(self) -> Path:
        if self.folder is None:
            raise Unanswered(503, "NoJobs", "this service has no folder to keep jobs in; start it with --jobs.")
        return self.folder

    def _folder(self, job: Job) -> Path:
        return self._open_folder() / job.id

    def _note(self, job: Job) -> None:
        with suppress(InvalidOption, OSError), whole_text(self._folder(job) / "job.json") as file:
            json.dump(asdict(job), file)


def _read(folder: Path) -> Job | None:
    try:
        job = Job(**parse_json(read_bytes(folder / "job.json")))
        return job if job.id == folder.name and job.kind in RESULTS else None
    except (OSError, ValueError, TypeError):
        return None


def state_folder() -> Path | None:
    """Return the user's folder for what programs keep between runs."""
    try:
        return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    except RuntimeError:
        return None


def moment(seconds: float) -> str:
    """Return a time of the clock as text."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def _user() -> int:
    return os.getuid() if hasattr(os, "getuid") else 0


def _digest(source: Served) -> str:
    """Return a name for what is served: jobs are gone on with only where it is the same."""
    known = hashlib.sha256(repr((source.target, source.id)).encode())
    for path in (source.model, source.space, source.constraints, source.data):
        known.update(b"-" if path is None or not path.is_file() else hashlib.sha256(path.read_bytes()).digest())
    return known.hexdigest()[:16]
