"""How features become model columns: each column reads one feature, as it is or through a table over its levels."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

from mace.errors import InvalidOption
from mace.space.dates import Date
from mace.space.features import Categorical, Feature, Ordinal, restore
from mace.space.space import FeatureSpace

CategoricalEncoding = Literal["onehot", "codes"]
OrdinalEncoding = Literal["thermometer", "codes"]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the model's input.

    Attributes
    ----------
    name : str
        The column's name.
    feature : int
        The position in the space of the feature that it reads.
    table : tuple of float, optional
        The column's value at each level; ``None`` where the column is the feature's own number.
    handed : str
        The dtype of the array that the model is handed it in.
    """

    name: str
    feature: int
    table: tuple[float, ...] | None
    handed: str = field(default="float64", kw_only=True)

    __setstate__ = restore


@dataclass(frozen=True, slots=True)
class Filled(Column):
    """A column of a number that may be missing, for a model that is given another number then.

    Attributes
    ----------
    missing : float
        What the column holds where the value is missing.
    is_flag : bool
        Whether it holds 0 where the value is known, rather than the value.
    """

    missing: float = 0.0
    is_flag: bool = False


def encoded_columns(
    space: FeatureSpace, *, categorical: CategoricalEncoding = "onehot", ordinal: OrdinalEncoding = "thermometer"
) -> tuple[Column, ...]:
    """Return the columns of an encoding.

    Parameters
    ----------
    space : FeatureSpace
        The features.
    categorical : {"onehot", "codes"}
        One column a level (a single one where there are two levels), or the level's position.
    ordinal : {"thermometer", "codes"}
        Column k is 1 where the level is k or above, or the level's position.
    """
    _check("categorical", categorical, ("onehot", "codes"))
    _check("ordinal", ordinal, ("thermometer", "codes"))
    columns: list[Column] = []
    for index, (name, feature) in enumerate(space.items()):
        columns += _feature_columns(name, index, feature, categorical, ordinal)
    return tuple(columns)


def numeric_columns(space: FeatureSpace) -> tuple[Column, ...] | None:
    """Return one column a feature, holding numbers and numeric levels as they are; ``None`` where there is a date or a text."""
    columns = []
    for index, (name, feature) in enumerate(space.items()):
        table = None
        if isinstance(feature, Date):
            return None
        if isinstance(feature, Ordinal | Categorical):
            if any(isinstance(level, str) for level in feature.levels):
                return None
            table = tuple(math.nan if level is None else float(level) for level in feature.levels)
        columns.append(Column(name, index, table))
    return tuple(columns)


def _feature_columns(
    name: str, index: int, feature: Feature, categorical: CategoricalEncoding, ordinal: OrdinalEncoding
) -> list[Column]:
    match feature:
        case Categorical(levels) if categorical == "onehot" and len(levels) == 2:
            return [Column(name, index, (0.0, 1.0))]
        case Categorical(levels) if categorical == "onehot":
            sign, tables = "=", [[code == k for code in range(len(levels))] for k in range(len(levels))]
        case Ordinal(levels) if ordinal == "thermometer":
            sign, tables = ">=", [[code >= k for code in range(len(levels))] for k in range(len(levels))]
        case Ordinal(levels) | Categorical(levels):
            return [Column(name, index, tuple(float(code) for code in range(len(levels))))]
        case _:
            return [Column(name, index, None)]
    return [
        Column(f"{name}{sign}{level}" if len(levels) > 1 else name, index, tuple(map(float, table)))
        for level, table in zip(levels, tables, strict=True)
    ]


def _check(name: str, value: str, accepted: tuple[str, ...]) -> None:
    if value not in accepted:
        raise InvalidOption(f"{name}={value!r}; accepted: {', '.join(map(repr, accepted))}.")
