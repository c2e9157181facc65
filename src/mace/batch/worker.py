"""What a worker does: take the explainer in once, and answer rows; whatever a row does, it is an answer."""

from __future__ import annotations

import math
import os
import threading
import time
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from mace.answer.asked import AskedModel
from mace.answer.explanation import Explanation
from mace.answer.question import Question
from mace.batch.rows import BatchRow, OutsideRow, values_of
from mace.batch.transport import Carrier, receive
from mace.errors import MaceError
from mace.models.live import Block, Expected
from mace.problem import INTERRUPTED, Status
from mace.solvers.compiling import as_worker
from mace.space import FeatureSpace, Scalar

FIRST_PEOPLE, MOST_PEOPLE = 16, 1024
"""Rows that the model is asked about in one call: few at first, so that the first answers come soon."""

SECONDS_A_BLOCK, TIMES_AS_LONG = 0.5, 20
"""When the answers in hand are confirmed by the model and given: after this many seconds, or after this many times the seconds that
confirming took last."""

TOO_LATE = "the time limit of the whole batch was reached before"


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer to one row of a batch.

    Attributes
    ----------
    number : int
        Which row, counted from 0.
    explanation : Explanation
        Its answer.
    is_final : bool
        Whether asking again would not help: neither an interrupt nor the time limit of the whole batch cut it short.
    """

    number: int
    explanation: Explanation
    is_final: bool


Part = Sequence[tuple[int, BatchRow]]
"""Some rows with their numbers."""


def answer(explainer: AskedModel, question: Question, number: int, point: BatchRow, until: float) -> Answered:
    """Answer one row; ``until`` is the end of the batch by ``time.time()``."""
    left, own = until - time.time(), question.time_limit
    if left <= 0:
        return Answered(number, not_asked(explainer.space, point, question, TOO_LATE), is_final=False)
    is_shortened = own is None or left < own
    seconds = own if left == math.inf else left if own is None else min(left, own)
    try:
        asked = question if seconds == own else question.but(time_limit=seconds)
        explanation = explainer._answer(values_of(explainer.space, point), asked)
    except Exception as error:  # one bad row must never lose the others
        return Answered(number, failed(values_of(explainer.space, point), question, error), is_final=True)
    is_cut = INTERRUPTED in explanation.reason or (is_shortened and until < math.inf)
    if explanation.outside:
        _ = explanation.score  # asked here, since the model is read for this row alone
    else:
        explanation = explanation.with_scores(None)
    return Answered(number, explanation, is_final=explanation.status.is_final or not is_cut)


def answers(
    explainer: AskedModel,
    question: Question,
    part: Part,
    until: float,
    interrupts: Collection[int] = (),
    *,
    size: int = FIRST_PEOPLE,
    most_seconds: float = math.inf,
) -> Iterator[Answered]:
    """Yield the answers to rows, in order; the model is asked about many of them, ``size`` at first, in one call.

    ``interrupts`` holds the signals that came meanwhile: the answers so far are given then, and KeyboardInterrupt is raised. Soon after
    ``most_seconds`` no further row is answered; later where the model is slow, which is then asked about more rows at one time.
    """
    start, seconds, begun_at = 0, SECONDS_A_BLOCK, time.monotonic()
    while start < len(part):
        waiting = deque(part[start : start + size])
        start, size = start + size, min(4 * size, MOST_PEOPLE)
        try:
            block = explainer._block([point for _, point in waiting if not isinstance(point, OutsideRow)])
        except MaceError:  # whatever is wrong with the model is said of each row
            yield from (answer(explainer, question, number, point, until) for number, point in waiting)
            continue
        while waiting:
            made, is_interrupted, asking = _some(explainer, question, waiting, until, block, interrupts, seconds)
            begun = time.monotonic()
            scores = explainer._scored([each.explanation for each in made], question)
            seconds = max(SECONDS_A_BLOCK, TIMES_AS_LONG * (time.monotonic() - begun + asking))
            yield from (replace(each, explanation=scored) for each, scored in zip(made, scores, strict=True))
            if is_interrupted:
                raise KeyboardInterrupt
            if time.monotonic() - begun_at > max(most_seconds, seconds):
                return


def _some(
    explainer: AskedModel,
    question: Question,
    waiting: deque[tuple[int, BatchRow]],
    until: float,
    block: Block,
    interrupts: Collection[int],
    seconds: float,
) -> tuple[list[Answered], bool, float]:
    """Answer rows that wait for some seconds, and have the model confirm what was foreseen of it.

    Returned are the answers, whether an interrupt came, and how long the model took.

    Where the model says something else, the row is asked about once more, with the model asked at every step.
    """
    made: list[tuple[Answered, BatchRow, Expected]] = []
    is_interrupted, stop = False, time.monotonic() + seconds
    try:
        with block:
            while waiting and not is_interrupted and (not made or time.monotonic() < stop):
                number, point = waiting[0]
                answered = answer(explainer, question, number, point, until)
                made.append((answered, point, block.expected()))
                waiting.popleft()
                is_interrupted = bool(interrupts) or INTERRUPTED in answered.explanation.reason
    except KeyboardInterrupt:
        is_interrupted = True
    begun = time.monotonic()
    try:
        confirmed = block.are_confirmed([expected for *_, expected in made])
    except MaceError:
        confirmed = [False] * len(made)
    asking = time.monotonic() - begun
    kept = [
        answered if is_so else None if is_interrupted else answer(explainer, question, answered.number, point, until)
        for (answered, point, _), is_so in zip(made, confirmed, strict=True)
    ]
    return [each for each in kept if each is not None], is_interrupted, asking


def one_thread() -> Any:
    """Return a context in which the numeric libraries use one thread: rows, not sums, are shared out, and sums keep their order."""
    return _thread_pools().limit(limits=1)


@cache
def _thread_pools() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def not_asked(space: FeatureSpace, point: BatchRow, question: Question, reason: str) -> Explanation:
    """Return the explanation of a row that was not asked."""
    return Explanation((), Status.UNKNOWN, values_of(space, point), None, *question.in_words, lower=0.0, reason=reason)


def failed(factual: dict[str, Scalar], question: Question, error: Exception | str) -> Explanation:
    """Return the explanation of a row that cannot be explained, and why."""
    text = error if isinstance(error, str) else in_words(error)
    return Explanation((), Status.ERROR, factual, None, *question.in_words, lower=0.0, error=text)


def in_words(error: Exception) -> str:
    """Return why a row cannot be answered."""
    return f"{type(error).__name__}: {error}" if isinstance(error, MaceError) else f"internal error: {error!r}"


def perform(carrier: Carrier, part: Part, until: float, seconds: float = math.inf) -> list[Answered]:
    """Answer some rows in a worker, on one thread: all of them, or those that are answered when some seconds are over."""
    end_with(carrier.parent)
    explainer, question = receive(carrier)
    made: list[Answered] = []
    with one_thread(), as_worker(), suppress(KeyboardInterrupt):  # it is for the parent to end, and its workers with it
        made.extend(answers(explainer, question, part, until, size=max(len(part), 1), most_seconds=seconds))
    return made


SECONDS_BETWEEN_LOOKS = 0.5


@cache
def end_with(parent: int | None) -> None:
    """End this process soon after its parent has ended, however that was: a worker that is orphaned would wait for work for ever."""
    if parent is None or os.getppid() != parent:  # a worker that another process started, or threads of this one
        return

    def look() -> None:
        while os.getppid() == parent:
            time.sleep(SECONDS_BETWEEN_LOOKS)
        os._exit(1)

    threading.Thread(target=look, name="mace parent", daemon=True).start()
