"""Why, of many rows: reasons in the order of the rows, as a table, and how often a feature is in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from mace.answer.reasons import Reasons
from mace.batch.batch import AnswersOfRows
from mace.batch.reasons_stream import ReasonsStream, unreached
from mace.batch.rows import RowLabels, labelled, point_of, rows_of
from mace.batch.stream import collected
from mace.batch.table import Cells, cell, column_of_ids

COLUMNS = {
    "row": "whole",
    "reason": "whole",
    "features": "text",
    "as_long_as": "text",
    "necessary": "text",
    "complete": "flag",
    "note": "text",
    "error": "text",
}


@dataclass(frozen=True, slots=True)
class ReasonsTable:
    """The columns of reasons: one line a reason, and one line for a row without any.

    Attributes
    ----------
    columns : dict
        Name to kind, as of :class:`~mace.batch.Table`.
    id : str, optional
        The column that identifies the rows, the first one.
    """

    columns: dict[str, str]
    id: str | None = None

    @classmethod
    def of(cls, id: str | None = None, ids: Sequence[object] = ("",)) -> ReasonsTable:  # noqa: A002
        """Return the columns; ``id`` is the name of a column that identifies the rows, and ``ids`` what is in it."""
        return cls(COLUMNS if id is None else {**column_of_ids(id, ids, COLUMNS), **COLUMNS}, id)

    def cells(self, number: int, answer: Reasons, named: object = None) -> list[Cells]:
        """Return the lines of one row, which ``named`` identifies: a cell a column, ``None`` where there is nothing."""
        common: Cells = {} if self.id is None else {self.id: named}
        common |= {
            "row": number,
            "necessary": ", ".join(answer.necessary),
            "complete": answer.complete,
            "note": answer.note or (answer.reason if not answer else None),
            "error": answer.error or None,
        }
        lines = [
            common
            | {"reason": place, "features": ", ".join(each.features), "as_long_as": each.as_long_as}
            | ({"note": each.note} if each.note else {})
            for place, each in enumerate(answer, start=1)
        ]
        return [{name: cell(kind, line.get(name)) for name, kind in self.columns.items()} for line in lines or [common]]


@dataclass(frozen=True, slots=True, repr=False)
class ReasonsBatch(AnswersOfRows[Reasons]):
    """The reasons of many rows, in their order; a row that could not be asked about has an ``error``.

    Attributes
    ----------
    answers : tuple of Reasons
        One a row.
    interrupted : bool
        Whether Ctrl-C ended it; rows that were not reached have no reasons then.
    labels : RowLabels
        The index of the rows, and what identifies them.
    """

    answers: tuple[Reasons, ...]
    interrupted: bool = False
    labels: RowLabels = field(default_factory=RowLabels)

    @property
    def _entries(self) -> tuple[Reasons, ...]:
        return self.answers

    def __str__(self) -> str:
        complete, found = sum(each.complete for each in self), sum(bool(each) for each in self)
        errors = sum(bool(each.error) for each in self)
        text = (
            f"{len(self)} rows{', interrupted' if self.interrupted else ''}: {found} with reasons, {complete} complete"
        )
        return text + (f", {errors} error{'' if errors == 1 else 's'}" if errors else "")

    @property
    def first_shares(self) -> dict[str, float]:
        """The share of the rows with a reason whose first reason holds a feature, greatest first: on what the decisions rest."""
        known = [each for each in self if each]
        names = dict.fromkeys(name for each in known for name in each.factual)
        count = {name: sum(name in each[0].features for each in known) / len(known) for name in names}
        return dict(sorted(count.items(), key=lambda each: -each[1]))

    @property
    def _columns(self) -> ReasonsTable:
        return ReasonsTable.of(self.labels.name, self.labels.ids)

    @classmethod
    def of(cls, stream: ReasonsStream, data: Any, id: str | None) -> ReasonsBatch:  # noqa: A002
        """Return the reasons of the rows of a frame, or of rows; ``id`` is a column that identifies them."""
        explainer = stream.explainer
        data, labels = labelled(data, id, explainer.space)
        ReasonsTable.of(id)
        found, interrupted = collected(stream.answers(data))
        if interrupted:
            rest = list(rows_of(data, explainer.space))[len(found) :]
            found += [unreached(explainer.space, row, point_of(explainer, row)) for row in rest]
        return cls(tuple(found), interrupted, labels)
