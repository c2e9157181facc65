"""When kernels are compiled, and by whom: questions are answered by interpreted kernels while a child process compiles them.

The child has the lowest priority, is the only one of its user on the machine (a lock), ends at most three minutes after the process that
started it, and ends quietly where nothing can be written. What it has compiled is in numba's cache, which writes by renaming. A file beside
the cache says that a lane is complete, so that nobody imports numba to find that it is not.
"""

from __future__ import annotations

import atexit
import hashlib
import importlib
import importlib.metadata
import logging
import math
import multiprocessing
import os
import platform
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from mace.disk import OWNER_ONLY, lock, whole_file
from mace.errors import InvalidOption
from mace.solvers import compiled
from mace.solvers.compiled import (
    BACKGROUND,
    NOW,
    VARIABLE,
    Kernel,
    change_tier,
    folder_of,
    is_kept,
    is_on_disk,
    mode,
    sources,
)

LOGGER = logging.getLogger("mace")

SECONDS = 60.0
"""Seconds that compiling a lane takes, about."""

OUTLIVES = 180.0
"""Seconds that a compiling process goes on after the one that started it has ended."""

LOADING = 10.0
"""Seconds that must be left of a time limit for kernels to be loaded in the middle of a search, which takes one or two."""

BETWEEN_LOOKS = 0.5

PATIENCE = 0.5
"""Seconds of this process's own time that a single question is left to interpreted kernels: importing numba and loading the others
takes longer than most need."""

SERVICES = (
    "gunicorn.arbiter",
    "uwsgi",
    "mod_wsgi",
    "uvicorn.server",
    "hypercorn.run",
    "waitress.server",
    "celery.worker",
)
"""Modules that are loaded in a process that serves requests."""

_IMPORTED_IN = os.getpid()
_IS_WORKER: ContextVar[bool] = ContextVar("is_worker", default=False)
_LOADS_LATE: ContextVar[bool] = ContextVar("loads_late", default=False)


@dataclass
class KernelLane:
    """The kernels of a lane, and how far they are.

    Attributes
    ----------
    name : str
        As messages call it.
    entry : Kernel
        The one that calls most others.
    exercise : callable
        Calls every kernel that a search calls, with arguments of the same types.
    """

    name: str
    entry: Kernel
    exercise: Callable[[], object]
    is_compiled: bool = False
    child: subprocess.Popen[bytes] | None = None
    started: float = math.inf
    next_look: float = 0.0
    patient_until: float = 0.0
    changing: threading.RLock = field(default_factory=threading.RLock)

    @property
    def package(self) -> str:
        """The package of its kernels."""
        return self.entry.lane

    def prepare(self) -> None:
        """Choose the tier for a question: compiled where that is in the cache, else as ``MACE_COMPILE`` says."""
        if not self.is_compiled:
            with self.changing:
                self._choose()

    def _choose(self) -> None:
        if mode() == NOW:
            self._compile()
        elif self._may_wait():
            change_tier(self.package, compiled=False)
        elif not self._load() and mode() == BACKGROUND:
            self._start()

    def _may_wait(self) -> bool:
        """Return whether loading may wait, because this is a single question that has only begun."""
        if not _LOADS_LATE.get() or not is_marked(self.package):
            return False
        now = time.process_time()
        self.patient_until = self.patient_until or now + PATIENCE
        return now < self.patient_until

    def change_over(self, deadline: float) -> None:
        """Change to compiled kernels in the middle of a search, once they are compiled and where there is time to load them."""
        now = time.monotonic()
        if self.is_compiled or now < self.next_look or deadline - now < LOADING:
            return
        if time.process_time() < self.patient_until:
            return
        self.next_look = now + BETWEEN_LOOKS
        with self.changing:
            self._load()

    def _compile(self) -> None:
        if self.is_compiled:  # by another thread, meanwhile
            return
        if not is_on_disk(self.entry):
            LOGGER.warning("Compiling the %s lane's kernels, once for this installation: about a minute.", self.name)
        self._use_compiled()
        if is_kept(self.entry):
            mark(self.package)

    def _use_compiled(self) -> None:
        self.next_look = math.inf
        change_tier(self.package, compiled=True)
        self.exercise()
        self.is_compiled = True

    def _load(self) -> bool:
        """Load the kernels, where the cache holds all of them; return whether it does."""
        if self.is_compiled or not is_marked(self.package):
            return self.is_compiled
        try:
            if is_on_disk(self.entry):
                self._use_compiled()
        except Exception:
            LOGGER.warning("The %s lane's kernels cannot be loaded; they are interpreted.", self.name, exc_info=True)
        if not self.is_compiled:
            change_tier(self.package, compiled=False)
            unmark(self.package)
        return self.is_compiled

    def _start(self) -> None:
        """Start a process that compiles, unless one was started here, or runs on this machine."""
        if self.child is not None:
            self.child.poll()
            return
        if not _may_start(self.package) or not _is_free():
            return
        LOGGER.info("Compiling the %s lane's kernels in the background; until then answers take longer.", self.name)
        with suppress(OSError):
            self.child = start(self.package)
            self.started = time.monotonic()
            atexit.register(setattr, self.child, "returncode", 0)  # it looks after itself: no warning at the end


_LANES: dict[str, KernelLane] = {}


def prepare(name: str, entry: Kernel, exercise: Callable[[], object]) -> None:
    """Choose the tier of a lane's kernels for a question (:class:`KernelLane` has the parameters)."""
    if entry.lane not in _LANES:
        _LANES.setdefault(entry.lane, KernelLane(name, entry, exercise))
    _LANES[entry.lane].prepare()


def change_over(package: str, deadline: float) -> None:
    """Change to the compiled kernels of a lane in the middle of a search, once they are there."""
    if package in _LANES:
        _LANES[package].change_over(deadline)


def is_compiled(package: str) -> bool:
    """Return whether a lane's kernels run compiled."""
    return package in _LANES and _LANES[package].is_compiled


@contextmanager
def loading_late(time_limit: float) -> Iterator[None]:
    """Load kernels of the cache only when a question takes long: for a process that asks one, with so many seconds, and ends."""
    token = _LOADS_LATE.set(time_limit >= LOADING + 2 * PATIENCE)
    try:
        yield
    finally:
        _LOADS_LATE.reset(token)


# ---- who may compile


@contextmanager
def as_worker() -> Iterator[None]:
    """Start no compiling process in this block: many workers would start one each."""
    token = _IS_WORKER.set(True)
    try:
        yield
    finally:
        _IS_WORKER.reset(token)


def _may_start(package: str) -> bool:
    """Return whether a process may be started here: not by workers, nor where nothing can be written."""
    is_worker = _IS_WORKER.get() or os.getpid() != _IMPORTED_IN or multiprocessing.parent_process() is not None
    is_service = any(name in sys.modules for name in SERVICES)
    can_run = bool(sys.executable) and not getattr(sys, "frozen", False)
    return can_run and not is_worker and not is_service and any(map(_is_writable, places(package)))


def _is_writable(folder: Path) -> bool:
    there = next(each for each in (folder, *folder.parents) if each.exists())
    return os.access(there, os.W_OK | os.X_OK)


# ---- what is in the cache


@cache
def places(package: str) -> list[Path]:
    """Return the folders in which it may be noted that a lane is compiled, in the order in which numba tries its own."""
    given = os.environ.get("NUMBA_CACHE_DIR")
    if given:
        with suppress(OSError):
            Path(given).mkdir(parents=True, exist_ok=True)
            return [Path(given).absolute()]
    found = [folder_of(package) / "__pycache__"]
    with suppress(RuntimeError):
        found.append(Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mace")
    return found


@cache
def _note(package: str) -> str:
    """Return the name of the file that says that a lane is compiled: from these sources, by this numba, for this Python and processor."""
    about = [
        sources(folder_of(package)),
        hashlib.sha256(Path(compiled.__file__).read_bytes()).hexdigest(),
        importlib.metadata.version("numba"),
        str(sys.implementation.cache_tag),
        os.environ.get("NUMBA_CPU_NAME") or _processor(),
        os.environ.get("NUMBA_CPU_FEATURES", ""),
    ]
    digest = hashlib.sha256("\n".join(about).encode()).hexdigest()[:16]
    return f"mace-{package.rpartition('.')[2]}-{digest}.ready"


def _processor() -> str:
    """Return what tells processors apart, as far as it is cheap to know."""
    lines = [platform.machine(), platform.processor()]
    with suppress(OSError), open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
        first = file.read(2**14).partition("\n\n")[0].splitlines()
        lines += [line for line in first if line.startswith(("model", "flags", "Features", "CPU"))]
    return "\n".join(lines)


def is_marked(package: str) -> bool:
    """Return whether it is noted that a lane's kernels are in the cache."""
    return any((place / _note(package)).exists() for place in places(package))


def mark(package: str) -> None:
    """Note that a lane's kernels are in the cache, in the first folder that takes it."""
    for place in places(package):
        with suppress(OSError, InvalidOption):
            place.mkdir(parents=True, exist_ok=True)
            with whole_file(place / _note(package)):
                return


def unmark(package: str) -> None:
    """Take the note back."""
    for place in places(package):
        with suppress(OSError):
            (place / _note(package)).unlink()


# ---- the child process


def start(package: str, *, background: bool = True) -> subprocess.Popen[bytes]:
    """Start a process that compiles a lane."""
    code = "import os; os.nice(19); " if background and hasattr(os, "nice") else ""
    code += f"from mace.solvers.compiling import work; work({package!r}, {os.getpid()}, background={background})"
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    paths = os.pathsep.join(each for each in sys.path if each)
    return subprocess.Popen(
        [sys.executable, "-P", "-c", code],
        env={**os.environ, **threads, "PYTHONPATH": paths, VARIABLE: NOW},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=background,
    )


def work(package: str, parent: int, *, background: bool) -> None:
    """Compile a lane in a process that was started for it."""
    if background and not _locked():
        return
    threading.Thread(target=_end_after, args=(parent,), daemon=True).start()
    module = importlib.import_module(package)
    kernels = importlib.import_module(f"{package}.kernels")
    if is_kept(kernels.advance):
        module.prepare()


def _end_after(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(BETWEEN_LOOKS)
    time.sleep(OUTLIVES)
    os._exit(1)


def _opened() -> int | None:
    user = os.getuid() if hasattr(os, "getuid") else ""
    path, flags = f"mace-compile-{user}.lock", os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
    try:
        return os.open(Path(tempfile.gettempdir()) / path, flags, OWNER_ONLY)
    except OSError:
        return None


def _locked() -> bool:
    """Take the lock for as long as this process lives; return whether it was free."""
    number = _opened()
    return number is not None and lock(number)


def _is_free() -> bool:
    """Return whether nobody compiles on this machine."""
    number = _opened()
    if number is None:
        return False
    try:
        return lock(number)
    finally:
        os.close(number)


# ---- batches


def is_under_way() -> bool:
    """Return whether some lane's kernels are being compiled for this process."""
    return any(lane.child is not None and not lane.is_compiled for lane in _LANES.values())


def wait_if_quicker(seconds: float, processes: int, until: float = math.inf) -> None:
    """Wait for the compiled kernels where that is quicker than to go on: every core is busy, and compiling would get no time.

    Parameters
    ----------
    seconds : float
        How long what is left takes with interpreted kernels.
    processes : int
        Processes that are busy with it; while a core is free, the kernels are compiled there meanwhile.
    until : float
        When there is nothing to be quick for any more, by ``time.time()``.
    """
    if not is_under_way() or processes < cores():
        return
    for lane in list(_LANES.values()):
        if lane.child is None or lane.is_compiled:
            continue
        if seconds > max(SECONDS - (time.monotonic() - lane.started), 0.0):
            LOGGER.warning("Waiting until the %s lane's kernels are compiled: about a minute.", lane.name)
            while lane.child.poll() is None and not is_marked(lane.package) and time.time() < until:
                time.sleep(BETWEEN_LOOKS / 5)


def cores() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
