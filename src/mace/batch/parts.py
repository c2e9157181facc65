"""Parts of a cluster's data frame: a pandas frame in, the answers as a pandas frame out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mace.answer.asked import AskedModel
from mace.answer.question import Options, Question
from mace.batch.stream import Stream
from mace.batch.table import Table, frame_of
from mace.batch.transport import Carrier, packed, receive
from mace.errors import InvalidOption
from mace.solvers.compiling import as_worker

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class PartTable:
    """The columns of the answers to a part: those that are kept of the rows, then those of :class:`Table` but ``row``.

    The number of a row in its part says nothing about the row; its index does, and a column that is kept.
    """

    table: Table
    keep: tuple[str, ...]

    @classmethod
    def of(cls, explainer: AskedModel, keep: Sequence[str]) -> PartTable:
        """Return the columns for an explainer; ``keep`` are columns of the rows that are no feature, an identifier, say."""
        table = Table.of(explainer.space, explainer._reading.classes)
        kept = (keep,) if isinstance(keep, str) else tuple(keep)
        for name in kept:
            if name in table.columns:
                raise InvalidOption(f"keep: {name!r} is a column of the answers already. Rename it in the data.")
        return cls(table, kept)

    def empty(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the answers to no rows at all, with the columns and types of any others."""
        return self.answers(frame.iloc[:0], [])

    def answers(self, frame: pd.DataFrame, explanations: Sequence[Any]) -> pd.DataFrame:
        """Return the answers to the rows of a frame; each has the index of its row."""
        lines = [line for number, each in enumerate(explanations) for line in self.table.cells(number, each)]
        made = frame_of(self.table.columns, lines)
        rows = frame.iloc[made["row"].to_numpy(dtype=int)]
        made = made.drop(columns="row").set_axis(rows.index)
        for place, name in enumerate(self.keep):
            made.insert(place, name, rows[name])
        return made


def sent_with(explainer: AskedModel, keep: Sequence[str], options: Options) -> tuple[PartTable, bytes]:
    """Return the columns of the answers, and the explainer with its question as bytes."""
    return PartTable.of(explainer, keep), packed(
        explainer, Question(explainer.space, **options, classes=explainer._reading.classes)
    )


def explained(frame: pd.DataFrame, sent: Carrier, columns: PartTable) -> pd.DataFrame:
    """Return the answers to a part, in a worker."""
    explainer, question = receive(sent)
    with as_worker():
        return columns.answers(frame, list(Stream(explainer, question, n_jobs=1).answers(frame, remember=None)))
