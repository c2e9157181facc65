"""What one pass over the rows of a batch has answered: equal rows are asked about once, and rows of a checkpoint not again."""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from mace.answer.asked import AskedModel
from mace.answer.explanation import Explanation
from mace.answer.question import Question
from mace.answer.reasons import Reasons
from mace.batch.checkpoint import Checkpoint, Kept
from mace.batch.progress import OnProgress, Progress
from mace.batch.rows import BatchRow
from mace.errors import InvalidOption, MaceError
from mace.space import Point

REMEMBERED = 4096
"""Answers that a stream keeps, so that an equal row is not solved again."""

Answer = TypeVar("Answer", Explanation, Reasons)


@dataclass(slots=True)
class AnsweredRows(Generic[Answer]):
    """The answers of one pass that are kept, and how many rows were answered.

    Attributes
    ----------
    explainer : Explainer
        The model.
    checkpoint : Checkpoint, optional
        Where answers are kept on disk.
    report : callable
        Receives the progress, row by row.
    total : int, optional
        How many rows there are, where that is known.
    remember : int, optional
        How many answers are kept for equal rows; ``None`` for all.
    new : int
        Rows that were answered in this pass.
    """

    explainer: AskedModel
    checkpoint: Checkpoint[Answer] | None
    report: OnProgress
    total: int | None
    remember: int | None = REMEMBERED
    new: int = 0
    _remembered: OrderedDict[BatchRow, Answer] = field(default_factory=OrderedDict)
    _started: float = field(default_factory=time.monotonic)
    _done: int = 0
    _proved: int = 0
    _errors: int = 0

    def known(self, number: int, point: BatchRow) -> Answer | None:
        """Return the answer to a row that was answered already, or that is equal to one; it is in the checkpoint then."""
        found = None if self.checkpoint is None else self.checkpoint.get(number, point)
        if found is not None:
            space, classes = self.explainer._space_of(found.factual), self.explainer._reading.classes
            found = replace(found, space=space, classes=classes)
            self._remember(point, found)
            return found
        same = self._remembered.get(point)
        if same is not None and self.checkpoint is not None:
            self.checkpoint.put(number, point, same)
        return same

    def keep(self, numbers: Sequence[int], point: BatchRow, answer: Answer) -> None:
        """Keep the answer to some equal rows, which would be the same if they were asked about again."""
        if self.checkpoint is not None:
            for number in numbers:
                self.checkpoint.put(number, point, answer)
        self._remember(point, answer)

    def _remember(self, point: BatchRow, answer: Answer) -> None:
        self._remembered[point] = answer
        if self.remember is not None and len(self._remembered) > self.remember:
            self._remembered.popitem(last=False)

    def count(self, *, is_proved: bool, is_error: bool) -> None:
        """Count an answer, and report the progress."""
        self._done += 1
        self._proved += is_proved
        self._errors += is_error
        seconds = time.monotonic() - self._started
        self.report(Progress(self._done, self.total, self._proved, self._errors, self.new, seconds))


def checkpoint_of(
    path: str | os.PathLike[str] | None,
    kind: Kept[Answer],
    explainer: AskedModel,
    question: Question,
    sample: Point,
    further: dict[str, Any],
    stack: ExitStack,
) -> Checkpoint[Answer] | None:
    """Return the checkpoint of a question, open for as long as a stack is; ``further`` is what else tells questions apart."""
    if path is None:
        return None
    try:
        asked = question.to_dict(explainer._statement(sample, question))
    except MaceError as error:
        said = str(error).removeprefix("certify: ")
        raise InvalidOption(f"checkpoint: the question cannot be told from others: {said}") from error
    made = Checkpoint(path, asked | further, kind)
    stack.callback(made.close)
    return made
