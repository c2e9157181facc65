"""The deadline of the question at hand, for long steps that are handed no limits: formulas are built deep below whoever set the limit."""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from threading import RLock

SHORT_LIMIT = 10.0
"""Seconds: in a longer limit, a pause of a tenth of a second hardly ever falls on the deadline."""

NO_COLLECTION = 2**30
"""A threshold of garbage collection that is not reached."""

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


class _Collections:
    """Python's full garbage collections, put off while anybody asks for it, in any thread."""

    def __init__(self) -> None:
        self._lock, self._askers = RLock(), 0
        self._thresholds = gc.get_threshold()

    @contextmanager
    def put_off(self) -> Iterator[None]:
        with self._lock:
            if not self._askers:
                self._thresholds = gc.get_threshold()
                gc.set_threshold(*self._thresholds[:2], NO_COLLECTION)
            self._askers += 1
        try:
            yield
        finally:
            with self._lock:
                self._askers -= 1
                if not self._askers and gc.get_threshold()[2] == NO_COLLECTION:
                    gc.set_threshold(*self._thresholds)


_COLLECTIONS = _Collections()


def without_pauses(limit: object) -> AbstractContextManager[None]:
    """Put off full garbage collections while a question with a short limit is answered; young objects are collected as ever.

    A full one looks at every object of the process and holds all threads: a tenth of a second for what a few libraries import.
    """
    is_short = isinstance(limit, int | float) and limit <= SHORT_LIMIT
    return _COLLECTIONS.put_off() if is_short else nullcontext()
