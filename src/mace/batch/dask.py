"""Batches on Dask: as joblib's back end, and on its own data frames.

With ``joblib.parallel_config(backend="dask")``, ``explain_many`` works on the cluster of the current client. :func:`explain_frame` keeps
the data there as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

from mace.answer.asked import AskedModel
from mace.answer.question import Options
from mace.batch.parts import PartTable, explained, sent_with
from mace.batch.transport import Carrier, held, token_of
from mace.models.package import optional

if TYPE_CHECKING:
    import pandas as pd


def register(client: Any, name: str, data: bytes, stack: ExitStack) -> None:
    """Give bytes to every worker, and to every one that comes later, until the stack is closed."""
    from distributed import WorkerPlugin

    class Bytes(WorkerPlugin):  # type: ignore[misc]
        def __init__(self) -> None:
            self.data = data

    client.register_plugin(Bytes(), name=name)
    stack.callback(client.unregister_worker_plugin, name)


def explain_frame(explainer: AskedModel, frame: Any, *, keep: Sequence[str] = (), **question: Unpack[Options]) -> Any:
    """Return the answers to the rows of a Dask data frame as another one, partition by partition, when it is computed.

    Parameters
    ----------
    explainer : Explainer
        Sent to each worker once.
    frame : dask.dataframe.DataFrame
        The factuals; columns that are no feature are left out. Equal rows of a partition are solved once.
    keep : names
        Columns to copy to the answers, an identifier, say.
    **question
        What ``explain`` takes: ``target``, ``distance``, ``constraints``, ``count``, ``time_limit``, ...

    Returns
    -------
    dask.dataframe.DataFrame
        The columns of ``Batch.to_frame`` but ``row``: each answer has the index of its row.
    """
    dask = optional("dask")
    columns, data = sent_with(explainer, keep, question)
    sent = dask.delayed(data, pure=True)
    return frame.map_partitions(
        _explained, sent, token_of(data), columns, meta=columns.empty(frame._meta), enforce_metadata=False
    )


def _explained(frame: pd.DataFrame, data: bytes, token: str, columns: PartTable) -> pd.DataFrame:
    return explained(frame, Carrier(token, partial(held, data)), columns)
