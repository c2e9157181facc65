"""How long kernels run between two looks at the clock."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

PAUSE = 0.02
"""Seconds between two looks at the clock."""

FASTER = 16
"""By what factor the number of steps between two looks may grow: the first steps say little about how long others take."""

MOST_STEPS_AT_ONCE = 1 << 14


class Pace:
    """The number of steps that a kernel may take before the next look at the clock.

    Boxes near the root take many times as long as those far below it. So the deadline is kept as if every step took as long as the
    slowest so far.
    """

    def __init__(self, deadline: float, first: int = 1) -> None:
        self.deadline, self.steps = deadline, first
        self._slowest = 0.0

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Measure the steps of this block, and say how many the next may have."""
        begun = time.monotonic()
        yield
        now = time.monotonic()
        each = max(now - begun, 1e-6) / self.steps
        self._slowest = max(self._slowest, each)
        self.steps = max(
            1, int(min(MOST_STEPS_AT_ONCE, FASTER * self.steps, PAUSE / each, (self.deadline - now) / self._slowest))
        )


class Interrupts:
    """Ctrl-C, noted while kernels are called again and again, and handled between the calls.

    An exception that a signal's handler raises while numba looks at the arguments of a call is lost, or ends the process.
    """

    def __init__(self) -> None:
        self._handler: Any = None
        self._noted: tuple[int, FrameType | None] | None = None

    def __enter__(self) -> Interrupts:
        handler = signal.getsignal(signal.SIGINT)
        if threading.current_thread() is threading.main_thread() and callable(handler):
            self._handler = handler
            signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        if self._handler is not None:
            signal.signal(signal.SIGINT, self._handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._noted = number, frame

    def handle(self) -> None:
        """Handle an interrupt that came since the last time: as a rule, raise KeyboardInterrupt."""
        noted, self._noted = self._noted, None
        if noted is not None:
            self._handler(*noted)
