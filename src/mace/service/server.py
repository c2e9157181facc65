"""Running the service: listening, logs, signals, and what the command line says."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import uvicorn

from mace.errors import InvalidOption, MaceError
from mace.service.app import make_app
from mace.service.backend import STOPPING, Backend
from mace.service.guard import Access, Asgi
from mace.service.source import Served


class JsonLines(logging.Formatter):
    """A line of JSON for each event; nothing of a request but its route, status and time."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        event = getattr(record, "event", {})
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03}Z"
        failure = {} if record.exc_info is None else {"exception": getattr(record.exc_info[0], "__name__", "")}
        return json.dumps(
            {"time": at, "level": record.levelname.lower(), "message": record.getMessage(), **event, **failure}
        )


def serve(
    source: Served,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    workers: int | None = None,
    allowed: Iterable[str] = (),
    jobs: Path | None = None,
    say: Callable[[str], object] = lambda text: None,
) -> None:
    """Serve until a signal ends it; questions that are being answered may end.

    Parameters
    ----------
    source : Served
        What is served.
    host, port
        Where to listen; port 0 takes a free one.
    workers : int, optional
        Processes that search; one a core where not given.
    allowed : names
        Further hosts by which the service may be called.
    jobs : Path, optional
        Where jobs are kept; the user's folder for such where not given.
    say : callable
        Is told, in a line, where the page is.

    Raises
    ------
    MaceError
        The model, the space, the data or the rules cannot be read.
    InvalidOption
        The address cannot be listened at.
    """
    failures: list[tuple[str, str]] = []

    def failed(error: str, message: str) -> None:
        failures.append((error, message))
        server.should_exit = True

    backend = Backend(source, workers or os.cpu_count() or 1, failed, jobs)
    access = Access.of(host, allowed, os.environ.get("MACE_API_KEYS", ""), source.limits)
    config = settings(make_app(backend, access), host, port)
    server = Server(config, backend)
    try:
        socket = _bound(config)
    except OSError as error:
        raise InvalidOption(
            f"cannot listen at {host}:{port}: {error.strerror or error}. Choose another --port."
        ) from error
    address = f"http://{f'[{host}]' if ':' in host else host}:{socket.getsockname()[1]}"
    say(f"{source.name}: {address} (Ctrl-C ends it)")
    log()
    threading.Thread(target=_compile, daemon=True).start()
    with socket, suppress(KeyboardInterrupt):  # a signal, which uvicorn gives back once it has ended
        server.run(sockets=[socket])
    if failures:
        name, message = failures[0]
        raise _named(name)(message)


class Server(uvicorn.Server):
    """Uvicorn that has the workers stopped at once: it would first wait for requests, which in turn wait for workers."""

    def __init__(self, config: uvicorn.Config, backend: Backend) -> None:
        super().__init__(config)
        self._backend = backend

    async def shutdown(self, sockets: list[Any] | None = None) -> None:
        """Take no more connections, and answer those that there are."""
        ending = asyncio.get_running_loop().create_task(self._backend.stop())
        await super().shutdown(sockets)
        if not self.force_exit:
            await ending


def settings(app: Asgi, host: str, port: int) -> uvicorn.Config:
    """Return how uvicorn serves the application."""
    return uvicorn.Config(
        app,
        host=host,
        port=port,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=int(STOPPING) + 5,
        timeout_keep_alive=15,
        h11_max_incomplete_event_size=64_000,
        limit_concurrency=1000,
        ws="none",
    )


def _bound(config: uvicorn.Config) -> Any:
    """Return a socket that listens; what is wrong is raised rather than printed."""
    import socket

    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # by which asyncio knows not to delay
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((config.host, config.port))
        made.listen(config.backlog)
    except BaseException:
        made.close()
        raise
    return made


def _named(error: str) -> type[Exception]:
    """Return the class of an error that a worker named."""
    known = {each.__name__: each for each in MaceError.__subclasses__()}
    return known.get(error, RuntimeError)


def _compile() -> None:
    """Compile the kernels that are not, one lane after the other: workers take them up as they come."""
    import importlib

    from mace.solvers.compiled import BACKGROUND, mode
    from mace.solvers.compiling import is_marked, start
    from mace.solvers.ready import LANES

    for lane in LANES if mode() == BACKGROUND else ():
        importlib.import_module(lane)
        if not is_marked(lane):
            start(lane).wait()


def is_no_cancellation(record: logging.LogRecord) -> bool:
    """Whether a record is worth a line: requests that a second Ctrl-C cuts off are no failure."""
    return record.exc_info is None or record.exc_info[0] is not asyncio.CancelledError


def log() -> None:
    """Write the log to the standard error, a line of JSON an event."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    handler.addFilter(is_no_cancellation)
    for name, level in (("mace.service", logging.INFO), ("uvicorn.error", logging.WARNING)):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level)
