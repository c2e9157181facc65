"""Batches: many rows explained, in parallel, in order, resumable, with flat memory.

``Explainer.explain_many`` and ``Explainer.explain_each`` are the way in; :mod:`mace.batch.dask`, :mod:`mace.batch.ray` and
:mod:`mace.batch.spark` do the same on the data frames of a cluster.
"""

from mace.batch.batch import Batch
from mace.batch.progress import OnProgress, Progress
from mace.batch.sinks import save
from mace.batch.table import Table

__all__ = ["Batch", "OnProgress", "Progress", "Table", "save"]
