"""The batch: a sequence of explanations in the order of the rows."""

from __future__ import annotations

import json
import os
import time
from abc import abstractmethod
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, TypeVar

from mace.answer.explanation import Explanation
from mace.answer.listed import Listed
from mace.answer.plain import plain
from mace.answer.reasons import Reasons
from mace.batch.rows import RowLabels, labelled, point_of, rows_of
from mace.batch.sinks import save
from mace.batch.stream import Stream, collected
from mace.batch.table import Lines, Table, frame_of
from mace.batch.worker import failed, not_asked
from mace.errors import MaceError
from mace.problem import INTERRUPTED, Status
from mace.registry import resolve

Answer = TypeVar("Answer", Explanation, Reasons)


class AnswersOfRows(Listed[Answer]):
    """The answers to many rows, in their order: as a frame, as JSON, in a file."""

    __slots__ = ()

    labels: RowLabels

    @property
    @abstractmethod
    def _columns(self) -> Lines[Answer]:
        """The columns of a table of the answers."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self}>"

    def id_of(self, number: int) -> Any:
        """Return what identifies a row, counted from 0; ``None`` where no column was named."""
        return self.labels.ids[number] if self.labels.ids else None

    def to_frame(self, library: str = "pandas") -> Any:
        """Return the answers as a frame: one line an answer, and one line for a row without any; see ``docs/batches.md``.

        Parameters
        ----------
        library : {"pandas", "polars", "pyarrow"}
            Whose data frame. That of pandas has the index of the frame that was explained.
        """
        from mace.space.frames import to_native

        lines = [
            line for number, each in enumerate(self) for line in self._columns.cells(number, each, self.id_of(number))
        ]
        frame = frame_of(self._columns.columns, lines)
        if self.labels.index is not None:
            frame.index = self.labels.index[[line["row"] for line in lines]]
        return frame if library == "pandas" else to_native(frame.astype(object).where(frame.notna(), None), library)

    def to_json(self, indent: int | None = None) -> str:
        """Return the answers as a JSON array."""
        made = [each.to_dict() for each in self]
        if self._columns.id is not None:
            made = [{"id": plain(self.id_of(number)), **each} for number, each in enumerate(made)]
        return json.dumps(made, indent=indent, ensure_ascii=False, allow_nan=False)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the answers to a ``.jsonl``, ``.csv`` or ``.parquet`` file."""
        save(self, path, self._columns, map(self.id_of, range(len(self))))


@dataclass(frozen=True, slots=True, repr=False)
class Batch(AnswersOfRows[Explanation]):
    """The explanations of many rows, in their order.

    Attributes
    ----------
    explanations : tuple of Explanation
        One a row.
    table : Table
        The columns of :meth:`to_frame` and :meth:`save`.
    seconds : float
        Wall time of everything.
    interrupted : bool
        Whether Ctrl-C ended it; rows that were not reached are ``unknown`` then.
    labels : RowLabels
        The index of the rows, and what identifies them.
    """

    explanations: tuple[Explanation, ...]
    table: Table
    seconds: float = 0.0
    interrupted: bool = False
    labels: RowLabels = field(default_factory=RowLabels)

    @classmethod
    def of(cls, stream: Stream, data: Any, id: str | None = None) -> Batch:  # noqa: A002
        """Return the answers of a stream about some rows, all of them in memory; ``id`` is a column that identifies them."""
        started = time.monotonic()
        explainer = stream.explainer
        data, labels = labelled(data, id, explainer.space)
        table = Table.of(explainer.space, explainer._reading.classes, id, labels.ids)
        found, interrupted = collected(stream.answers(data, remember=None))
        if interrupted:
            rest = list(rows_of(data, explainer.space))[len(found) :]
            found += [_unreached(stream, point_of(explainer, row)) for row in rest]
        return cls(tuple(found), table, time.monotonic() - started, interrupted, labels)

    @property
    def _entries(self) -> tuple[Explanation, ...]:
        return self.explanations

    @property
    def _columns(self) -> Table:
        return self.table

    @property
    def counts(self) -> dict[str, int]:
        """How many rows have each status."""
        counted = Counter(str(explanation.status) for explanation in self)
        return {str(status): counted[str(status)] for status in Status if counted[str(status)]}

    @property
    def proved_share(self) -> float:
        """The share of the rows for which nothing is left to prove: nearest, none exists, or at the target already."""
        return sum(each.status.is_final for each in self) / len(self) if self else 0.0

    def __str__(self) -> str:
        counted = ", ".join(f"{count} {status}" for status, count in self.counts.items())
        ended = ", interrupted" if self.interrupted else ""
        return f"{len(self)} rows in {self.seconds:.1f} s{ended}: {counted or 'none'}; {self.proved_share:.1%} proved."

    def _repr_html_(self) -> str:
        made: str = resolve("mace.notebook:batch_html")(self)
        return made

    def plot(self, axes: Any = None) -> Any:
        """Draw the answers of everyone: how many rows are proved, how far the nearest answers are, which features they change.

        Parameters
        ----------
        axes : three matplotlib axes, optional
            Where to draw; new ones where not given.

        Returns
        -------
        BatchDisplay
            See :mod:`mace.plots`; its ``save(path)`` writes a picture.
        """
        return resolve("mace.plots:BatchDisplay").from_batch(self).plot(axes)


def _unreached(stream: Stream, point: Any) -> Explanation:
    if isinstance(point, MaceError):
        return failed({}, stream.question, point)
    return not_asked(stream.explainer.space, point, stream.question, INTERRUPTED)
