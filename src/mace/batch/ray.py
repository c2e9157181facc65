"""Batches on Ray: as joblib's back end, and on its own data sets.

With ``ray.util.joblib.register_ray()`` and ``joblib.parallel_config(backend="ray")``, ``explain_many`` works on Ray.
:func:`explain_dataset` keeps the data there as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

from mace.answer.asked import AskedModel
from mace.answer.question import Options
from mace.batch.parts import PartTable, explained, sent_with
from mace.batch.transport import Carrier, from_ray, receive, token_of
from mace.models.package import optional

if TYPE_CHECKING:
    import pandas as pd

ROWS_A_CALL = 64


class Actor:
    """An actor that has read the model and answers part after part."""

    def __init__(self, sent: Carrier, columns: PartTable) -> None:
        receive(sent)
        self.sent = sent
        self.columns = columns

    def __call__(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the answers to a part."""
        return explained(frame, self.sent, self.columns)


def explain_dataset(
    explainer: AskedModel,
    dataset: Any,
    *,
    keep: Sequence[str] = (),
    concurrency: int | None = None,
    **question: Unpack[Options],
) -> Any:
    """Return the answers to the rows of a Ray data set as another one, when it is consumed.

    Parameters
    ----------
    explainer : Explainer
        Put into the object store once; each actor reads it once.
    dataset : ray.data.Dataset
        The factuals; columns that are no feature are left out. Equal rows of a part are solved once.
    keep : names
        Columns to copy to the answers: an identifier, since Ray need not keep the order.
    concurrency : int, optional
        Actors; as many as the cluster has processors where not given.
    **question
        What ``explain`` takes: ``target``, ``distance``, ``constraints``, ``count``, ``time_limit``, ...

    Returns
    -------
    ray.data.Dataset
        The columns of ``Batch.to_frame`` but ``row``.
    """
    ray = optional("ray")
    columns, data = sent_with(explainer, keep, question)
    sent = Carrier(token_of(data), partial(from_ray, ray.put(data)))
    actors = concurrency or max(1, int(ray.cluster_resources().get("CPU", 1)))
    return dataset.map_batches(
        Actor, fn_constructor_args=(sent, columns), batch_format="pandas", batch_size=ROWS_A_CALL, concurrency=actors
    )
