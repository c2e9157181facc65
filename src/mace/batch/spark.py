"""Batches on Spark: a pandas function for ``mapInPandas``. Nothing here imports Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Unpack

from mace.answer.asked import AskedModel
from mace.answer.question import Options
from mace.batch.parts import PartTable, explained, sent_with
from mace.batch.transport import Carrier, held, token_of

if TYPE_CHECKING:
    import pandas as pd

TYPES = {"text": "string", "whole": "bigint", "number": "double", "flag": "boolean"}


@dataclass(frozen=True, slots=True)
class PandasFunction:
    """A function from frames to frames of answers; each process reads the model once.

    Attributes
    ----------
    schema : str
        The columns of the answers, as Spark writes them.
    """

    sent: Carrier
    columns: PartTable
    schema: str

    def __call__(self, frames: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        """Yield the answers to each frame."""
        for frame in frames:
            yield explained(frame, self.sent, self.columns).reset_index(drop=True)


def pandas_function(
    explainer: AskedModel, *, keep: Mapping[str, str] | None = None, **question: Unpack[Options]
) -> PandasFunction:
    """Return a function for ``mapInPandas``: ``rows.mapInPandas(function, function.schema)``.

    Parameters
    ----------
    explainer : Explainer
        Travels with the function.
    keep : mapping of str to str
        Columns to copy to the answers with their Spark types, ``{"id": "bigint"}``, say.
    **question
        What ``explain`` takes: ``target``, ``distance``, ``constraints``, ``count``, ``time_limit``, ...
    """
    kept = dict(keep or {})
    columns, data = sent_with(explainer, list(kept), question)
    types = kept | {name: TYPES[kind] for name, kind in columns.table.columns.items() if name != "row"}
    schema = ", ".join(f"`{name.replace('`', '``')}` {kind}" for name, kind in types.items())
    return PandasFunction(Carrier(token_of(data), partial(held, data)), columns, schema)
