"""The batch: a sequence of explanations in the order of the rows."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, overload

from mace.answer.explanation import Explanation
from mace.batch.rows import point_of, rows_of
from mace.batch.sinks import save
from mace.batch.stream import Stream, collected
from mace.batch.table import Table
from mace.batch.worker import failed, not_asked
from mace.errors import MaceError
from mace.problem import INTERRUPTED, Status


@dataclass(frozen=True, slots=True)
class Batch(Sequence[Explanation]):
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
    """

    explanations: tuple[Explanation, ...]
    table: Table
    seconds: float = 0.0
    interrupted: bool = False

    @classmethod
    def of(cls, stream: Stream, data: Any) -> Batch:
        """Return the answers of a stream about some rows, all of them in memory."""
        started = time.monotonic()
        space = stream.explainer.space
        if not hasattr(data, "columns"):
            data = list(rows_of(data, space))
        found, interrupted = collected(stream.answers(data, remember=None))
        if interrupted:
            rest = [point_of(space, row) for row in rows_of(data, space)][len(found) :]
            missed = [_unreached(stream, point) for point in rest]
            found += missed
        table = Table.of(space, stream.explainer.classes)
        return cls(tuple(found), table, time.monotonic() - started, interrupted)

    def __len__(self) -> int:
        return len(self.explanations)

    @overload
    def __getitem__(self, index: int) -> Explanation: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Explanation, ...]: ...
    def __getitem__(self, index: int | slice) -> Explanation | tuple[Explanation, ...]:
        return self.explanations[index]

    @property
    def counts(self) -> dict[str, int]:
        """How many rows have each status."""
        counted = Counter(str(explanation.status) for explanation in self)
        return {str(status): counted[str(status)] for status in Status if counted[str(status)]}

    @property
    def proved_share(self) -> float:
        """The share of the rows with a proof: nearest, or none exists."""
        proved = self.counts.get("optimal", 0) + self.counts.get("infeasible", 0)
        return proved / len(self) if self else 0.0

    def __str__(self) -> str:
        counted = ", ".join(f"{count} {status}" for status, count in self.counts.items())
        ended = ", interrupted" if self.interrupted else ""
        return f"{len(self)} rows in {self.seconds:.1f} s{ended}: {counted or 'none'}; {self.proved_share:.1%} proved."

    def __repr__(self) -> str:
        return f"<Batch: {self}>"

    def to_frame(self, library: str = "pandas") -> Any:
        """Return the answers as a frame: one line an answer, and one line for a row without any; see ``docs/batches.md``.

        Parameters
        ----------
        library : {"pandas", "polars", "pyarrow"}
            Whose data frame.
        """
        from mace.space.frames import to_native

        lines = [line for number, each in enumerate(self) for line in self.table.cells(number, each)]
        frame = self.table.frame(lines)
        return frame if library == "pandas" else to_native(frame.astype(object).where(frame.notna(), None), library)

    def to_json(self, indent: int | None = None) -> str:
        """Return the explanations as a JSON array."""
        return json.dumps([each.to_dict() for each in self], indent=indent, ensure_ascii=False, allow_nan=False)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the answers to a ``.jsonl``, ``.csv`` or ``.parquet`` file."""
        save(self, path, self.table)


def _unreached(stream: Stream, point: Any) -> Explanation:
    if isinstance(point, MaceError):
        return failed({}, stream.question, point)
    return not_asked(stream.explainer.space, point, stream.question, INTERRUPTED)
