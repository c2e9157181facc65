"""What one data set is made of: the published columns, and how they become features and labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pandas as pd

from mace.datasets.source import Column, Download, Published
from mace.space import Feature, integer, real


@dataclass(frozen=True, slots=True, eq=False)
class PreparedData:
    """A frame, its labels, and its features in the frame's order."""

    frame: pd.DataFrame
    labels: pd.Series
    features: Mapping[str, Feature]


@dataclass(frozen=True, slots=True, eq=False)
class Recipe:
    """How one data set is read and prepared.

    Attributes
    ----------
    file : str
        The file's name in the data folder, or among the embedded files (``.xz``).
    columns : mapping
        The published columns that are used, and what each may hold; others are ignored.
    prepare : callable
        From the checked published columns to features and labels.
    published : Published
        How its publisher gives it.
    about : str
        Source, licence, and what `prepare` does.
    download : Download, optional
        Where to get it; ``None`` where the file ships with MACE.
    """

    file: str
    columns: Mapping[str, Column]
    prepare: Callable[[pd.DataFrame], PreparedData]
    published: Published
    about: str
    download: Download | None = None


def observed_integer(column: pd.Series) -> Feature:
    """Return the integer feature with the range seen in ``column``."""
    return integer(int(column.min()), int(column.max()))


def observed_real(column: pd.Series) -> Feature:
    """Return the real feature with the range seen in ``column``."""
    return real(float(column.min()), float(column.max()))
