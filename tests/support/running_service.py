"""A real service for tests: uvicorn in a thread, worker processes beside it, an ephemeral port of the loopback."""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from mace.service.app import make_app
from mace.service.backend import Backend
from mace.service.bodies import EXAMPLE_ROW
from mace.service.guard import Access
from mace.service.limits import ServiceLimits
from mace.service.server import Server, settings
from mace.service.source import Served

ROW: dict[str, Any] = dict(EXAMPLE_ROW)


@dataclass(frozen=True)
class Service:
    """A service that runs."""

    url: str
    backend: Backend
    failures: list[tuple[str, str]]

    def client(self, **options: Any) -> httpx.Client:
        """Return a client of it."""
        return httpx.Client(**{"base_url": self.url, "timeout": 60, "trust_env": False} | options)

    @property
    def searching(self) -> list[int]:
        """The process ids of the workers that search."""
        return [one.process.pid for one in list(self.backend.searchers._all) if one.process and one.process.pid]

    @contextmanager
    def frozen(self) -> Iterator[list[int]]:
        """Stop the workers that search, as a machine does that is out of memory or a library that hangs."""
        numbers = self.searching
        for number in numbers:
            os.kill(number, signal.SIGSTOP)
        try:
            yield numbers
        finally:
            for number in numbers:
                try:
                    os.kill(number, signal.SIGCONT)
                except ProcessLookupError:
                    continue


@contextmanager
def running(
    folder: Path,
    source: Served | None = None,
    *,
    workers: int = 1,
    keys: str = "",
    limits: ServiceLimits | None = None,
    wait: bool = True,
) -> Iterator[Service]:
    """Run a service in this process; its workers are processes of their own."""
    failures: list[tuple[str, str]] = []
    limits = limits or ServiceLimits()
    made = source or Served(limits=limits)
    backend = Backend(made, workers, lambda *said: failures.append(said), folder)
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    app = make_app(backend, Access.of("127.0.0.1", [], keys, limits))
    server = Server(settings(app, "127.0.0.1", 0), backend)
    logging.getLogger("mace.service").setLevel(logging.INFO)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    service = Service(f"http://127.0.0.1:{listener.getsockname()[1]}", backend, failures)
    try:
        if wait:
            until_ready(service)
        yield service
    finally:
        server.should_exit = True
        thread.join(60)
        listener.close()
        assert not thread.is_alive(), "the service does not end"


def until_ready(service: Service, seconds: float = 120) -> None:
    """Wait until questions are answered."""
    until = time.monotonic() + seconds
    with service.client() as client:
        while time.monotonic() < until:
            try:
                if client.get("/ready").status_code == 200:
                    return
            except httpx.TransportError:
                pass
            time.sleep(0.05)
    raise AssertionError(f"not ready after {seconds} s: {service.failures}")


def until(condition: Any, seconds: float = 30) -> None:
    """Wait until something holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never came to hold"
        time.sleep(0.02)
