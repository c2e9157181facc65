"""The rows of a batch: of frames, of frames that come one after the other, or of plain rows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from mace.errors import InvalidRow, MaceError
from mace.space import FeatureSpace, Point, Scalar
from mace.space.features import plain_scalar


def rows_of(data: Any, space: FeatureSpace) -> Iterator[Any]:
    """Yield the rows of a frame, of an iterable of frames, or of an iterable of rows.

    Columns of a frame that are no feature are left out; a frame without a column of the space is refused as a whole.
    """
    from mace.space.frames import as_pandas

    data = as_pandas(data)
    if _is_frame(data):
        yield from _of_frame(data, space)
        return
    if isinstance(data, str | bytes | Mapping) or not isinstance(data, Iterable):
        raise InvalidRow(
            f"A batch is a data frame, or an iterable of data frames or rows, not {type(data).__name__}. "
            "Put a single row into a list."
        )
    for each in data:
        part = as_pandas(each)
        if _is_frame(part):
            yield from _of_frame(part, space)
        else:
            yield part


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
            f"The frame has no column {', '.join(map(repr, absent))}. Its columns: {', '.join(map(str, frame.columns))}."
        )
    names = list(space)
    chosen = frame[names]
    if chosen.shape[1] != len(names):
        raise InvalidRow("A column stands twice in the frame; each feature once.")
    yield from (
        dict(zip(names, cells, strict=True)) for cells in zip(*(chosen[name].tolist() for name in names), strict=True)
    )


def point_of(space: FeatureSpace, row: Any) -> Point | MaceError:
    """Return a row's point, or what is wrong with it."""
    try:
        return space.point(row)
    except MaceError as error:
        return error
    except Exception as error:  # whatever a row is, it is one row
        return InvalidRow(f"{type(error).__name__}: {error}")


def cells_of(space: FeatureSpace, row: Any) -> dict[str, Scalar]:
    """Return what a bad row holds, for people: plain values where they are, text where they are not, missing where absent."""
    cells = row if isinstance(row, Mapping) else {}
    return {name: _cell(cells.get(name)) for name in space}


def _cell(value: object) -> Scalar:
    plain = plain_scalar(value)
    if plain is None or (isinstance(plain, float) and not math.isfinite(plain)):
        return math.nan
    return plain if isinstance(plain, str | int | float | bool) else repr(plain)[:80]
