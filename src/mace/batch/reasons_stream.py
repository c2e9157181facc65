"""The reasons of many rows: rows in, reasons out in the same order, with a checkpoint in between."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any

from mace.answer.asked import AskedModel
from mace.answer.question import ReasonsOptions
from mace.answer.reasons import Reasons
from mace.batch.answered import AnsweredRows, checkpoint_of
from mace.batch.checkpoint import Kept
from mace.batch.progress import shown
from mace.batch.rows import BatchRow, OutsideRow, cells_of, point_of, rows_of, size_of, values_of
from mace.batch.stream import RunningOptions, check_running, processes, split_options
from mace.batch.worker import TOO_LATE, in_words
from mace.errors import MaceError
from mace.problem import INTERRUPTED, LATE
from mace.space import FeatureSpace, Scalar

ROWS_A_TASK = 8
"""Rows that a process is given at one time."""


class ReasonsBatchOptions(ReasonsOptions, RunningOptions, total=False):
    """How a batch of reasons is run, and what it asks of every row."""


def _entry(each: Reasons) -> dict[str, Any]:
    return {"reasons": each.to_dict()}


def _reasons(entry: dict[str, Any]) -> Reasons:
    return Reasons.from_dict(entry["reasons"])


KEPT = Kept("mace reasons", "reasons", _entry, _reasons)

Asked = Sequence[tuple[int, Any, BatchRow | MaceError]]
"""Some rows with their numbers, and as points."""


@dataclass(frozen=True, slots=True)
class ReasonsStream:
    """A question why about many rows, and how it is worked off.

    Attributes
    ----------
    explainer : Explainer
        The model.
    options : ReasonsOptions
        What is asked of each row.
    running : RunningOptions
        As for ``Explainer.explain_many``.
    """

    explainer: AskedModel
    options: ReasonsOptions
    running: RunningOptions

    @classmethod
    def of(cls, explainer: AskedModel, options: ReasonsBatchOptions) -> ReasonsStream:
        """Return the stream of the options of ``Explainer.reasons_many``."""
        running, asked = split_options("reasons_many", options, ReasonsBatchOptions.__annotations__)
        check_running(running)
        return cls(explainer, asked, running)

    def answers(self, data: Any, *, total: int | None = None) -> Iterator[Reasons]:
        """Yield the reasons of each row, in order; Ctrl-C is raised after those that are known have been given."""
        explainer, running = self.explainer, self.running
        rows = ((number, row, point_of(explainer, row)) for number, row in enumerate(rows_of(data, explainer.space)))
        first = list(islice(rows, 1))
        point = first[0][2] if first else None
        sample = explainer.space.some_point() if point is None or isinstance(point, MaceError | OutsideRow) else point
        question = explainer._why(self.options)
        if not (question.target is None and len(explainer._reading.classes or ()) == 1):
            explainer._check(sample, question)
        limit = running.get("total_time_limit")
        with ExitStack() as stack:
            further = {name: self.options.get(name, name == "ranges") for name in ("smallest", "ranges")}
            further["outside"] = explainer.outside
            kept = checkpoint_of(running.get("checkpoint"), KEPT, explainer, question, sample, further, stack)
            report = stack.enter_context(shown(running.get("on_progress"), bar=running.get("progress", False)))
            until = math.inf if limit is None else time.time() + limit
            answered = AnsweredRows(explainer, kept, report, size_of(data) if total is None else total)
            run = _Pass(self, until, answered)
            if processes(running.get("n_jobs")) == 1:
                for each in chain(first, rows):
                    part = run.taken([each])
                    yield from run.given(part, _answered(explainer, part.asked, self.options, until))
            else:
                yield from run.shared(chain(first, rows))


@dataclass(slots=True)
class _Taken:
    """Some rows: what is known of them already, and each point that is asked about, once."""

    rows: Asked
    known: dict[int, Reasons]
    asked: list[BatchRow]


@dataclass(slots=True)
class _Pass:
    """One pass over the rows of a stream."""

    stream: ReasonsStream
    until: float
    answered: AnsweredRows[Reasons]

    def shared(self, rows: Iterator[Any]) -> Iterator[Reasons]:
        """Yield the reasons of rows that several processes are asked about."""
        from joblib import Parallel, delayed

        parts: deque[_Taken] = deque()
        stream, ask = self.stream, delayed(_listed)

        def tasks() -> Iterator[Any]:
            for some in iter(lambda: list(islice(rows, ROWS_A_TASK)), []):
                parts.append(self.taken(some))
                yield ask(stream.explainer, parts[-1].asked, stream.options, self.until)

        work = Parallel(n_jobs=stream.running.get("n_jobs"), return_as="generator")
        for made in work(tasks()):
            yield from self.given(parts.popleft(), iter(made))

    def taken(self, rows: Asked) -> _Taken:
        """Return rows with what is known of them."""
        known: dict[int, Reasons] = {}
        asked: dict[BatchRow, None] = {}
        for number, row, point in rows:
            if isinstance(point, MaceError):
                known[number] = _failed(cells_of(self.stream.explainer.space, row), point)
            elif (found := self.answered.known(number, point)) is not None:
                known[number] = found
            else:
                asked[point] = None
        return _Taken(rows, known, list(asked))

    def given(self, part: _Taken, answered: Iterator[tuple[Reasons, bool]]) -> Iterator[Reasons]:
        """Yield the reasons of some rows, once those that were asked for are there."""
        made = dict(zip(part.asked, answered, strict=False))
        for number, _, point in part.rows:
            if number in part.known:
                yield self._counted(part.known[number])
                continue
            assert not isinstance(point, MaceError)
            if point not in made:
                raise KeyboardInterrupt
            found, is_final = made[point]
            if is_final:
                self.answered.keep([number], point, found)
            self.answered.new += 1
            yield self._counted(found)
            if found.reason == INTERRUPTED:
                raise KeyboardInterrupt

    def _counted(self, found: Reasons) -> Reasons:
        self.answered.count(is_proved=found.complete, is_error=bool(found.error))
        return found


def _listed(
    explainer: AskedModel, points: Sequence[BatchRow], options: ReasonsOptions, until: float
) -> list[tuple[Reasons, bool]]:
    return list(_answered(explainer, points, options, until))


def _answered(
    explainer: AskedModel, points: Sequence[BatchRow], options: ReasonsOptions, until: float
) -> Iterator[tuple[Reasons, bool]]:
    """Yield the reasons of rows, and whether asking again would not help; none after one that Ctrl-C ended."""
    for point in points:
        made = _answer(explainer, values_of(explainer.space, point), options, until)
        yield made
        if made[0].reason == INTERRUPTED:
            return


def _answer(
    explainer: AskedModel, row: dict[str, Scalar], options: ReasonsOptions, until: float
) -> tuple[Reasons, bool]:
    left, own = until - time.time(), options.get("time_limit")
    if left <= 0:
        return not_asked(row, TOO_LATE), False
    is_shortened = left < math.inf and (own is None or left < own)
    limited: ReasonsOptions = {**options, "time_limit": left} if is_shortened else options
    try:
        made = explainer._explain_why(row, limited)
    except Exception as error:  # one bad row must never lose the others
        return _failed(row, error), False
    is_cut = made.reason == INTERRUPTED or (is_shortened and made.reason == LATE)
    return made, made.complete or not is_cut


def not_asked(row: dict[str, Scalar], reason: str) -> Reasons:
    """Return what is known of a row that was not asked about, and why it was not."""
    return Reasons((), complete=False, reason=reason, necessary=(), prediction=None, target="", factual=row)


def unreached(space: FeatureSpace, row: Any, point: BatchRow | MaceError) -> Reasons:
    """Return the same of a row that Ctrl-C came before."""
    if isinstance(point, MaceError):
        return _failed(cells_of(space, row), point)
    return not_asked(values_of(space, point), INTERRUPTED)


def _failed(row: dict[str, Scalar], error: Exception) -> Reasons:
    return replace(not_asked(row, ""), error=in_words(error))
