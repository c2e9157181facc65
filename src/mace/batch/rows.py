"""The rows of a batch: of frames, of frames that come one after the other, or of plain rows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mace.answer.asked import AskedModel
from mace.errors import InvalidOption, InvalidRow, MaceError, did_you_mean, listed
from mace.space import FeatureSpace, Point, Scalar
from mace.space.features import is_missing, plain_scalar


def rows_of(data: Any, space: FeatureSpace) -> Iterator[Any]:
    """Yield the rows of a frame, of an iterable of frames, or of an iterable of rows.

    Columns of a frame that are no feature are left out; a frame without a column of the space is refused as a whole.
    """
    from mace.space.frames import as_pandas

    data = as_pandas(data)
    if _is_frame(data):
        yield from _of_frame(data, space)
        return
    check_batch(data)
    for each in data:
        part = as_pandas(each)
        if _is_frame(part):
            yield from _of_frame(part, space)
        else:
            yield part


def check_batch(data: Any) -> None:
    """Refuse what are no rows."""
    is_row = isinstance(data, str | bytes | Mapping) or _holds_values(data)
    if is_row or not (hasattr(data, "columns") or isinstance(data, Iterable)):
        raise InvalidRow(
            f"A batch is a data frame, or an iterable of data frames or rows, not {type(data).__name__}. "
            "A single row is for explain(row), or goes into a list."
        )


def _holds_values(data: Any) -> bool:
    """Return whether data are a Series or an array of one row's values, rather than of rows."""
    return getattr(data, "ndim", 0) == 1 and all(isinstance(plain_scalar(each), Scalar) for each in data[:1])


@dataclass(frozen=True, slots=True)
class RowLabels:
    """What names the rows of a batch.

    Attributes
    ----------
    index : pandas index, optional
        That of the frame; ``None`` where the rows are no frame.
    name : str, optional
        The column that identifies them, where one was given.
    ids : tuple
        Its values.
    """

    index: Any = None
    name: str | None = None
    ids: tuple[Any, ...] = ()

    def __repr__(self) -> str:
        index = "no index" if self.index is None else f"an index of {len(self.index)}"
        return f"<RowLabels: {index}, {'no ids' if self.name is None else f'ids of {self.name!r:.80}'}>"

    @classmethod
    def of(cls, data: Any, name: str | None) -> RowLabels:
        """Return the index of a frame, or of a list of frames one after the other, and the values of a column of it.

        Rows that are mappings have no index, and their ids under the column's name.
        """
        from mace.space.frames import as_pandas

        parts = [as_pandas(part) for part in ([data] if hasattr(data, "columns") else data)]
        is_framed = bool(parts) and all(map(_is_frame, parts))
        index = parts[0].index.append([part.index for part in parts[1:]]) if is_framed else None
        if name is None:
            return cls(index)
        known = [part.columns if _is_frame(part) else _mapping_of(part) for part in parts]
        if not isinstance(name, str) or (parts and not any(name in each for each in known)):
            near = did_you_mean(name, next(iter(known), ()))
            raise InvalidOption(f"id={name!r:.80}: the rows have no such column.{near}")
        return cls(index, name, tuple(_id(value) for part in parts for value in _values(part, name)))


def labelled(data: Any, name: str | None, space: FeatureSpace) -> tuple[Any, RowLabels]:
    """Return the rows of a batch, without a column that is no feature where they are mappings, and what names them by it."""
    check_batch(data)
    if hasattr(data, "columns"):
        return data, RowLabels.of(data, name)
    rows = list(data)
    labels = RowLabels.of(rows, name)
    return (rows if name is None or name in space else [_without(row, name) for row in rows]), labels


def _without(row: Any, name: str) -> Any:
    named = _mapping_of(row)
    return {key: value for key, value in named.items() if key != name} if name in named else row


def _mapping_of(row: Any) -> Mapping[Any, Any]:
    """Return a row that names its values, a dict or a Series, as a mapping; one that does not, as an empty one."""
    if isinstance(row, Mapping):
        return row
    return row.to_dict() if hasattr(row, "to_dict") and not hasattr(row, "columns") else {}


def _values(part: Any, name: str) -> list[Any]:
    """Return what stands in a column, once for each row."""
    if not _is_frame(part):
        return [_mapping_of(part).get(name)]
    return part[name].tolist() if name in part.columns else [None] * len(part)


def _id(value: object) -> Scalar | None:
    """Return what identifies a row as a plain value: a date, say, as text; ``None`` where it is missing."""
    plain = plain_scalar(value)
    if is_missing(plain):
        return None
    return plain if isinstance(plain, str | int | float | bool) else str(plain)


def size_of(data: Any) -> int | None:
    """Return how many rows there are, where that is known without reading them."""
    shape = getattr(data, "shape", None)
    if shape is not None and len(shape) == 2:
        return int(shape[0])
    is_list = isinstance(data, list | tuple) and not any(hasattr(each, "columns") for each in data[:1])
    return len(data) if is_list else None


def _is_frame(data: Any) -> bool:
    return hasattr(data, "columns") and hasattr(data, "iloc")


def _of_frame(frame: Any, space: FeatureSpace) -> Iterator[Any]:
    absent = [name for name in space if name not in frame.columns]
    if absent:
        raise InvalidRow(
            f"The frame has no column {listed(map(repr, absent))}. Its columns: {listed(map(str, frame.columns))}."
        )
    names = list(space)
    chosen = frame[names]
    if chosen.shape[1] != len(names):
        raise InvalidRow("A column stands twice in the frame; each feature once.")
    yield from (
        dict(zip(names, cells, strict=True)) for cells in zip(*(chosen[name].tolist() for name in names), strict=True)
    )


@dataclass(frozen=True, slots=True)
class OutsideRow:
    """A row outside the space that its explainer lets in: its values in the space's order."""

    values: tuple[Scalar, ...]


BatchRow = Point | OutsideRow
"""A row of a batch, as what equal ones are known by."""


def point_of(explainer: AskedModel, row: Any) -> BatchRow | MaceError:
    """Return a row's point, or its values where it lies outside the space and is let in, or what is wrong with it."""
    try:
        try:
            return explainer.space.point(row)
        except MaceError:
            if explainer.outside == "error":
                raise
            values = explainer._space_of(row).validate(row)
            return OutsideRow(tuple(math.nan if is_missing(value) else value for value in values.values()))
    except MaceError as error:
        return error
    except Exception as error:  # whatever a row is, it is one row
        return InvalidRow(f"{type(error).__name__}: {error}")


def values_of(space: FeatureSpace, row: BatchRow) -> dict[str, Scalar]:
    """Return a row of a batch as plain values."""
    return dict(zip(space, row.values, strict=True)) if isinstance(row, OutsideRow) else space.values_of(row)


def cells_of(space: FeatureSpace, row: Any) -> dict[str, Scalar]:
    """Return what a bad row holds, for people: plain values where they are, text where they are not, missing where absent."""
    cells = row if isinstance(row, Mapping) else {}
    return {name: _cell(cells.get(name)) for name in space}


def _cell(value: object) -> Scalar:
    plain = plain_scalar(value)
    if plain is None or (isinstance(plain, float) and not math.isfinite(plain)):
        return math.nan
    return plain if isinstance(plain, str | int | float | bool) else repr(plain)[:80]
