"""What is shown on a terminal while something takes long; on standard error, and gone afterwards."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress
from rich.text import Text

SILENCE = 1.0
"""Seconds before anything is shown."""


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[float], None]]:
    """Give a function that takes the share that is done."""
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(what, total=1.0)
        yield lambda share: bar.update(task, completed=share)


class Waiting:
    """A line about what is done, with the seconds that it has taken so far; a spinner shows it anew as they pass."""

    def __init__(self, said: str) -> None:
        self.said = said
        self.begun = time.monotonic()

    def __rich__(self) -> Text:
        return Text(f"{self.said} ({time.monotonic() - self.begun:.0f} s)")

    def report(self, lower: float, upper: float, calls: int) -> None:
        """Take the bounds of a search, as ``on_progress`` gives them."""
        self.said = f"searching: {bounds_text(lower, upper)}"


@contextmanager
def waiting(said: str, console: Console | None = None) -> Iterator[Waiting]:
    """Give a line that a spinner shows after a second, while something lasts longer."""
    console = Console(stderr=True) if console is None else console
    line = Waiting(said)
    status = console.status(line)
    timer = threading.Timer(SILENCE, status.start)
    timer.daemon = True
    if console.is_terminal:
        timer.start()
    try:
        yield line
    finally:
        timer.cancel()
        timer.join() if timer.is_alive() else None
        status.stop()


def bounds_text(lower: float, upper: float) -> str:
    """Return the bounds of the nearest answer in words."""
    if math.isinf(lower):
        return "proved: none exists; asking which constraints rule it out"
    if math.isinf(upper):
        return f"nothing nearer than {lower:.4g}; no answer in hand yet"
    return f"the nearest lies between {lower:.4g} and {upper:.4g}"
