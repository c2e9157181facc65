"""Public data sets, prepared: a frame of original features, labels, and the feature space."""

from __future__ import annotations

from mace.datasets.catalogue import Dataset, available, load

__all__ = ["Dataset", "available", "load"]
