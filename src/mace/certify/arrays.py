"""Arrays in JSON: packed with their type and shape, and read back within limits."""

from __future__ import annotations

import base64
import binascii
import math
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mace.errors import InvalidCertificate

DTYPES = ("|u1", "<u2", "<u4", "|i1", "<i2", "<i4", "<i8", "<f4", "<f8")
MOST_ARRAY_BYTES = 2**28
"""All arrays of a certificate together, unpacked."""

ENCODED_AT_ONCE = 3 * 2**16
"""Bytes that are turned into base64 at a time; a multiple of 3, so that the pieces join."""

ARRAY_KEYS = {"dtype", "shape", "data"}


def is_packed(value: dict[str, Any]) -> bool:
    """Return whether an object of JSON stands for an array; a feature has a dtype too, but neither shape nor data."""
    return set(value) == ARRAY_KEYS


def narrowed(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array of integers or floats in the narrowest type that holds it exactly."""
    if array.dtype.kind == "f":
        kept: NDArray[Any] = array.astype("<f4" if array.dtype == np.float32 else "<f8")
        return kept
    if array.dtype.kind not in "iub":
        raise TypeError(f"an array of {array.dtype} cannot be part of a certificate; integers and floats can")
    low, high = (int(array.min()), int(array.max())) if array.size else (0, 0)
    for name in DTYPES[:-2]:
        limits = np.iinfo(name)
        if limits.min <= low and high <= limits.max:
            narrow: NDArray[Any] = array.astype(name)
            return narrow
    raise OverflowError(f"{high} does not fit into 64 bits")


def pack(array: NDArray[Any]) -> dict[str, Any]:
    """Return an array as an object of JSON."""
    narrow = narrowed(array)
    return {"dtype": narrow.dtype.str, "shape": list(narrow.shape), "data": "".join(encoded(narrow))}


def encoded(narrow: NDArray[Any]) -> Iterator[str]:
    """Yield the data of an array, compressed and in base64, piece by piece."""
    squeeze = zlib.compressobj(9)
    rest = b""
    raw = memoryview(np.ascontiguousarray(narrow).tobytes())
    for start in range(0, len(raw), 2**20):
        rest += squeeze.compress(raw[start : start + 2**20])
        whole = len(rest) - len(rest) % ENCODED_AT_ONCE
        yield base64.b64encode(rest[:whole]).decode("ascii")
        rest = rest[whole:]
    yield base64.b64encode(rest + squeeze.flush()).decode("ascii")


class Unpacking:
    """Reads arrays back; all of them together stay within a limit."""

    def __init__(self, most_bytes: int = MOST_ARRAY_BYTES) -> None:
        self._left = most_bytes

    def array(self, value: dict[str, Any], place: str) -> NDArray[Any]:
        """Return the array that an object of JSON stands for; anything odd is an :class:`InvalidCertificate`."""
        dtype, shape, data = value["dtype"], value["shape"], value["data"]
        if dtype not in DTYPES:
            raise InvalidCertificate(f"{place}: the type {dtype!r:.40} is not one of {', '.join(DTYPES)}.")
        if not isinstance(shape, list) or not 1 <= len(shape) <= 4 or not all(type(n) is int and n >= 0 for n in shape):
            raise InvalidCertificate(f"{place}: {shape!r:.60} is not a shape of 1 to 4 dimensions.")
        size = math.prod(shape) * np.dtype(dtype).itemsize
        if size > self._left:
            raise InvalidCertificate(f"{place}: an array of {size} bytes is more than a certificate may hold.")
        self._left -= size
        made: NDArray[Any] = np.frombuffer(_inflated(data, size, place), dtype=dtype).reshape(shape)
        if made.dtype.kind == "f" and not np.isfinite(made).all():
            raise InvalidCertificate(f"{place}: a number is infinite or no number.")
        return made


def _inflated(data: object, size: int, place: str) -> bytes:
    """Return exactly ``size`` bytes out of compressed base64, and never more on the way."""
    if not isinstance(data, str):
        raise InvalidCertificate(f"{place}: the data of an array is text in base64, not {type(data).__name__}.")
    inflate = zlib.decompressobj()
    try:
        raw = inflate.decompress(base64.b64decode(data, validate=True), size + 1)
    except (binascii.Error, ValueError, zlib.error) as error:
        raise InvalidCertificate(f"{place}: the data of an array is damaged: {error}.") from error
    if len(raw) != size or not inflate.eof or inflate.unused_data:
        raise InvalidCertificate(
            f"{place}: the data of an array does not have the {size} bytes that its shape asks for."
        )
    return raw
