"""How long kernels run between two looks at the clock."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

PAUSE = 0.02
"""Seconds between two looks at the clock."""

FASTER = 16
"""So many times as many steps as before may come before the next look: the first ones say little of what others take."""

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
