"""What a worker does: take the explainer in once, and answer rows; whatever a row does, it is an answer."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from mace.answer.explanation import Explanation
from mace.answer.question import Question
from mace.batch.protocol import Explains
from mace.batch.transport import Carrier, receive
from mace.errors import MaceError
from mace.problem import INTERRUPTED, Status
from mace.solvers.compiling import as_worker
from mace.space import FeatureSpace, Point, Scalar

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


Part = Sequence[tuple[int, Point]]
"""Some rows with their numbers."""


def answer(explainer: Explains, question: Question, number: int, point: Point, until: float) -> Answered:
    """Answer one row; ``until`` is the end of the batch by ``time.time()``."""
    left, own = until - time.time(), question.time_limit
    if left <= 0:
        return Answered(number, not_asked(explainer.space, point, question, TOO_LATE), is_final=False)
    is_shortened = own is None or left < own
    seconds = own if left == math.inf else left if own is None else min(left, own)
    try:
        explanation = explainer._answer(explainer.space.values_of(point), question.but(time_limit=seconds))
    except Exception as error:  # one bad row must never lose the others
        return Answered(number, failed(explainer.space.values_of(point), question, error), is_final=True)
    is_cut = INTERRUPTED in explanation.reason or (is_shortened and until < math.inf)
    return Answered(number, explanation.with_scores(None), is_final=explanation.status.is_final or not is_cut)


def one_thread() -> Any:
    """Return a context in which the numeric libraries use one thread: rows, not sums, are shared out, and sums keep their order."""
    return _thread_pools().limit(limits=1)


@cache
def _thread_pools() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def not_asked(space: FeatureSpace, point: Point, question: Question, reason: str) -> Explanation:
    """Return the explanation of a row that was not asked."""
    return Explanation((), Status.UNKNOWN, space.values_of(point), None, *question.in_words, lower=0.0, reason=reason)


def failed(factual: dict[str, Scalar], question: Question, error: Exception | str) -> Explanation:
    """Return the explanation of a row that cannot be explained, and why."""
    if isinstance(error, MaceError):
        error = f"{type(error).__name__}: {error}"
    text = error if isinstance(error, str) else f"internal error: {error!r}"
    return Explanation((), Status.ERROR, factual, None, *question.in_words, lower=0.0, error=text)


def perform(carrier: Carrier, part: Part, until: float) -> list[Answered]:
    """Answer some rows in a worker, on one thread."""
    end_with(carrier.parent)
    explainer, question = receive(carrier)
    with one_thread(), as_worker():
        return [answer(explainer, question, number, point, until) for number, point in part]


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
