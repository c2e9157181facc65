"""Answers as a table: the same columns in memory, in a file and on a cluster."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from mace.answer.explanation import Explanation
from mace.errors import InvalidOption
from mace.space import Categorical, Date, FeatureSpace, Integer, Ordinal, Scalar

if TYPE_CHECKING:
    import pandas as pd

COLUMN_DTYPES = {"text": "string", "whole": "Int64", "number": "float64", "flag": "boolean"}
"""The pandas dtype of each kind of column; all of them know a missing value."""

Cells = dict[str, Any]

Answer = TypeVar("Answer", contravariant=True)


class Lines(Protocol[Answer]):
    """Answers of some kind as lines of a table."""

    @property
    def columns(self) -> dict[str, str]:
        """Name to kind: ``"text"``, ``"whole"``, ``"number"`` or ``"flag"``."""
        ...

    @property
    def id(self) -> str | None:
        """The column that identifies the rows."""
        ...

    def cells(self, number: int, answer: Answer, named: object = None, /) -> list[Cells]:
        """Return the lines of one row, which ``named`` identifies: a cell a column, ``None`` where there is nothing."""
        ...


def cell(kind: str, value: Any) -> Any:
    """Return a value as the cell of a column of some kind; ``None`` where it is missing."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    return str(value) if kind == "text" else float(value) if kind == "number" else value


def frame_of(columns: dict[str, str], lines: Iterable[Cells]) -> pd.DataFrame:
    """Return lines as a pandas frame; the dtypes do not depend on what is in them."""
    import pandas as pd

    kept = list(lines)
    made = {name: pd.Series([line[name] for line in kept], dtype=COLUMN_DTYPES[kind]) for name, kind in columns.items()}
    return pd.DataFrame(made)


def column_of_ids(name: str, ids: Sequence[object], head: dict[str, str]) -> dict[str, str]:
    """Return the column that identifies rows, whose name no other column may have; only the kinds of ``ids`` matter."""
    if name in head:
        raise InvalidOption(f"id={name!r}: the answers have a column of that name. Rename it in the data.")
    return {name: kind_of([each for each in ids if each is not None] or [""])}


@dataclass(frozen=True, slots=True)
class Table:
    """The columns of a batch's answers.

    One line an answer, and one line for a row without any. The column of a feature has its name, or ``new.<name>`` where one of the
    other columns is called so already.

    Attributes
    ----------
    columns : dict
        Name to kind: ``"text"``, ``"whole"``, ``"number"`` or ``"flag"``.
    features : dict
        Feature to the name of its column.
    id : str, optional
        The column that identifies the rows, the first one.
    """

    columns: dict[str, str]
    features: dict[str, str]
    id: str | None = None

    @classmethod
    def of(
        cls,
        space: FeatureSpace,
        classes: Sequence[Scalar] | None,
        id: str | None = None,  # noqa: A002
        ids: Sequence[object] = ("",),
    ) -> Table:
        """Return the columns for a space and the labels of a model.

        Parameters
        ----------
        space : FeatureSpace
            The features.
        classes : sequence of labels, optional
            Those of the model; ``None`` where it returns numbers.
        id : str, optional
            The name of a column that identifies the rows.
        ids : sequence
            What is in it; only the kinds of the values matter. Text where not given.
        """
        label = "number" if classes is None else kind_of(classes)
        head = {
            "row": "whole",
            "rank": "whole",
            "status": "text",
            "prediction": label,
            "becomes": label,
            "score_of": "text",
            "score_before": "number",
            "score_after": "number",
            "threshold": "number",
            "distance": "number",
            "lower": "number",
            "seconds": "number",
            "changes": "text",
            "reason": "text",
        }
        if id is not None:
            head = {**column_of_ids(id, ids, head), **head}
        features = {name: f"new.{name}" if name in head else name for name in space}
        return cls(head | {features[name]: _feature_kind(space, name) for name in space}, features, id)

    def __repr__(self) -> str:
        return f"<Table of {len(self.columns)} columns, {len(self.features)} of them features>"

    def cells(self, number: int, explanation: Explanation, named: object = None) -> list[Cells]:
        """Return the lines of one row, which ``named`` identifies: a cell a column, ``None`` where there is nothing."""
        common: Cells = {} if self.id is None else {self.id: named}
        common |= {
            "row": number,
            "status": str(explanation.status),
            "prediction": explanation.prediction,
            "score_of": explanation.score_of or None,
            "score_before": explanation.score,
            "threshold": None if isinstance(explanation.threshold, tuple) else explanation.threshold,
            "seconds": explanation.seconds,
            "reason": explanation.error or explanation.reason,
        }
        made = []
        for rank, found in enumerate(explanation, start=1):
            answer = {
                "rank": rank,
                "becomes": found.prediction,
                "score_after": found.score,
                "distance": found.distance,
                "lower": found.lower,
                "changes": "; ".join(map(str, found.changes)),
            }
            values = {self.features[name]: value for name, value in found.values.items()}
            made.append(common | answer | values)
        lines = made or [common | {"lower": explanation.lower}]
        return [{name: cell(kind, line.get(name)) for name, kind in self.columns.items()} for line in lines]


def _feature_kind(space: FeatureSpace, name: str) -> str:
    feature = space[name]
    if isinstance(feature, Ordinal | Categorical):
        return kind_of(feature.levels)
    if isinstance(feature, Date):
        return "text"
    return "whole" if isinstance(feature, Integer) else "number"


def kind_of(values: Sequence[object]) -> str:
    """Return the kind of column that holds some labels or levels."""
    if all(isinstance(value, bool) for value in values):
        return "flag"
    if all(isinstance(value, int) and not isinstance(value, bool) for value in values):
        return "whole"
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return "number"
    return "text"
