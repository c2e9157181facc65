"""The deadline of the question at hand, for long steps that are handed no limits: formulas are built deep below whoever set the limit."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_DEADLINE: ContextVar[float] = ContextVar("deadline", default=math.inf)


class OutOfTime(Exception):
    """The deadline passed in the middle of a step, which left nothing behind."""


@contextmanager
def until(deadline: float) -> Iterator[None]:
    """Have :func:`check` raise after a deadline of ``time.monotonic``, in this thread and this block.

    Examples
    --------
    >>> with until(time.monotonic() + 60):
    ...     check()
    """
    token = _DEADLINE.set(deadline)
    try:
        yield
    finally:
        _DEADLINE.reset(token)


def check() -> None:
    """Raise :class:`OutOfTime` where the deadline of the block has passed."""
    if time.monotonic() > _DEADLINE.get():
        raise OutOfTime
