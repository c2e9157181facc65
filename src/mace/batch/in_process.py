"""Rows answered one after the other in this process, and the signals that end it."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

from mace.answer.asked import AskedModel
from mace.answer.question import Question
from mace.batch.worker import FIRST_PEOPLE, Answered, Part, answers, one_thread
from mace.solvers.compiling import wait_if_quicker

ENDING = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
"""The signals that ask a program to end."""


@dataclass(frozen=True, slots=True)
class InProcess:
    """Answers rows one after the other, in this process."""

    explainer: AskedModel
    question: Question

    def __call__(self, part: Part, until: float, size: int = FIRST_PEOPLE) -> Iterator[Answered]:
        """Yield the answers, about ``size`` rows in one call of the model at first; an interrupt is raised after those that it leaves."""
        with one_thread(), noted_interrupts() as interrupts:
            begun = time.monotonic()
            made = answers(self.explainer, self.question, part, until, interrupts, size=size)
            for done, answered in enumerate(made, start=1):
                yield answered
                wait_if_quicker((time.monotonic() - begun) / done * (len(part) - done), 1, until)


@contextmanager
def noted_interrupts() -> Iterator[list[int]]:
    """Note each Ctrl-C that comes meanwhile, before it is raised: a solver that is just done may not report it.

    Other signals that end the program in the same way are noted too.
    """
    seen: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        seen.append(number)
        signal.default_int_handler(number, frame)

    usual = [each for each in ENDING if signal.getsignal(each) is signal.default_int_handler]
    if threading.current_thread() is not threading.main_thread():
        usual = []
    for each in usual:
        signal.signal(each, note)
    try:
        yield seen
    finally:
        for each in usual:
            signal.signal(each, signal.default_int_handler)
