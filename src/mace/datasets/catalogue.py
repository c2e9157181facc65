"""The names of the data sets, and the way from a name to a :class:`Dataset`."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field

import pandas as pd

from mace.datasets.recipe import Recipe
from mace.datasets.source import read_download, read_embedded, read_files, read_folder
from mace.registry import Registry
from mace.space import FeatureSpace, Real

_RECIPES = Registry(
    "datasets",
    {
        "adult": "mace.datasets.adult:RECIPE",
        "compas": "mace.datasets.compas:RECIPE",
        "credit": "mace.datasets.credit:RECIPE",
        "german": "mace.datasets.german:RECIPE",
    },
)


@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """A prepared data set; frame and labels share the index 0, 1, ..., n - 1 and hold no missing value.

    Attributes
    ----------
    name : str
        The name it was loaded by.
    frame : pandas.DataFrame
        The original features: text for ordinal and categorical, ``int64`` for integer, ``float64`` for real.
    labels : pandas.Series
        What is to be predicted. `about` says what the values mean.
    space : FeatureSpace
        The frame's columns in order; numeric ranges as observed over the whole frame.
    about : str
        Source, licence, and what was done to the published file.
    """

    name: str
    frame: pd.DataFrame = field(repr=False)
    labels: pd.Series = field(repr=False)
    space: FeatureSpace = field(repr=False)
    about: str = field(repr=False)

    def __repr__(self) -> str:
        labels = " or ".join(map(str, sorted(self.labels.unique())))
        return f"<Dataset {self.name}: {len(self.frame)} rows, {len(self.space)} features, labels {labels}>"


def available() -> tuple[str, ...]:
    """Return the names that :func:`load` knows, sorted; some may need a data folder.

    Examples
    --------
    >>> available()
    ('adult', 'compas', 'credit', 'german')
    """
    return tuple(sorted(_RECIPES))


def load(
    name: str,
    *,
    data_home: str | os.PathLike[str] | None = None,
    files: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | None = None,
) -> Dataset:
    """Return a data set, prepared.

    Parameters
    ----------
    name : str
        One of :func:`available`.
    data_home : path, optional
        The folder that holds the file of a set that is not embedded (``credit``), under our name (``credit.csv``) or its
        publisher's; by default the folder named by the environment variable ``MACE_DATA``, else the user's cache, filled by
        download. Embedded sets never look there, so that they are the same everywhere.
    files : path or several, optional
        Your own copy instead: the publisher's files, or the archive that holds them (docs/datasets.md).

    Returns
    -------
    Dataset
        A fresh copy: the caller may change its frame.

    Raises
    ------
    InvalidOption
        The name is unknown.
    DatasetUnavailable
        The file is not in the data folder, cannot be downloaded, or is not what its publisher published.
    MissingPackage
        Downloading needs ``pooch``, a spreadsheet ``python-calamine``.

    Examples
    --------
    >>> german = load("german")
    >>> german.frame.shape
    (1000, 20)
    >>> german.labels.value_counts().to_dict()
    {'good': 700, 'bad': 300}
    """
    recipe: Recipe = _RECIPES.load(name)
    raw = _raw(recipe, data_home, files)
    prepared = recipe.prepare(raw)
    decimals = FeatureSpace.from_frame(prepared.frame).round_to
    round_to = {name: step for name, step in decimals.items() if isinstance(prepared.features[name], Real)}
    space = FeatureSpace(prepared.features, round_to=round_to)
    return Dataset(name, prepared.frame, prepared.labels, space, recipe.about)


def _raw(
    recipe: Recipe,
    data_home: str | os.PathLike[str] | None,
    own: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | None,
) -> pd.DataFrame:
    """Return the published columns from where the caller says, or from where they are."""
    if own is not None:
        return read_files(own, recipe.columns, recipe.published)
    if recipe.download is None:
        return read_embedded(recipe.file, recipe.columns)
    folder = data_home if data_home is not None else os.environ.get("MACE_DATA")
    if folder:
        return read_folder(folder, recipe.file, recipe.columns, recipe.published)
    return read_download(recipe.file, recipe.columns, recipe.published, recipe.download)
