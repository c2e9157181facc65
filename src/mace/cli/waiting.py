"""What is shown on a terminal while something takes long; on standard error, and gone afterwards."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress

SILENCE = 1.0
"""Seconds before the bounds of a search are shown."""


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[float], None]]:
    """Give a function that takes the share that is done."""
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(what, total=1.0)
        yield lambda share: bar.update(task, completed=share)


@contextmanager
def bounds_shown(console: Console | None = None) -> Iterator[Callable[[float, float, int], None]]:
    """Give a function for ``on_progress``: after a second it shows the bounds of the search and how long it runs."""
    console = Console(stderr=True) if console is None else console
    begun = time.monotonic()
    status = console.status("searching")
    timer = threading.Timer(SILENCE, status.start)
    said = ""

    def report(lower: float, upper: float, calls: int) -> None:
        nonlocal said
        said = bounds_text(lower, upper)
        status.update(f"searching, {time.monotonic() - begun:.0f} s: {said}")

    timer.daemon = True
    if console.is_terminal:
        timer.start()
    try:
        yield report
    finally:
        timer.cancel()
        timer.join() if timer.is_alive() else None
        status.stop()


def bounds_text(lower: float, upper: float) -> str:
    """Return the bounds of the nearest answer in words."""
    if math.isinf(upper):
        return f"nothing nearer than {lower:.4g}; no answer in hand yet"
    return f"the nearest lies between {lower:.4g} and {upper:.4g}"
