"""The fingerprint of a model: two hashes that change when anything that decides changes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from mace.models.reading import Reading
from mace.space import FeatureSpace

ADDED_SINCE_0_1: dict[str, object] = {"dtype": None, "handed": "float64", "further_steps": 0, "observed": None}
"""Fields that 0.1.0 did not have, and what they are where nothing is said: left out there, so that fingerprints stay what they were."""


def fingerprint(reading: Reading) -> dict[str, str]:
    """Return the SHA-256 of the form (every array with its shape and type, every setting) and of the labels and kind of the model."""
    decides: tuple[object, ...] = (reading.classes, reading.is_regressor, reading.rate is not None)
    decides += (reading.at_least,) if reading.members else ()
    return {"form": _hash(reading.form), "parameters": _hash(decides)}


def _hash(value: object) -> str:
    digest = hashlib.sha256()
    for piece in _bytes_of(value):
        digest.update(piece)
    return digest.hexdigest()


def _bytes_of(value: object) -> Iterator[bytes]:
    """Yield a value's canonical bytes: a word for its kind, its size, then its parts in order. No recursion: programs nest deeply."""
    pending: list[Any] = [value]
    while pending:
        part = pending.pop()
        if isinstance(part, np.ndarray):
            plain = np.ascontiguousarray(part.astype(part.dtype.newbyteorder("<")))
            yield f"array {plain.dtype.str} {plain.shape};".encode()
            yield plain.tobytes()
        elif isinstance(part, bool | int | float | Fraction | None):
            yield f"{type(part).__name__} {part!r};".encode()
        elif isinstance(part, str):
            yield f"text {len(part)} {part};".encode()
        elif isinstance(part, FeatureSpace):
            pending.append(list(part.items()))
            yield b"space;"
        elif isinstance(part, tuple | list):
            yield f"list {len(part)};".encode()
            pending.extend(reversed(part))
        elif isinstance(part, frozenset | set):
            yield f"set {sorted(map(repr, part))};".encode()
        elif isinstance(part, Mapping):
            yield f"map {len(part)};".encode()
            pending.append([list(pair) for pair in part.items()])
        elif is_dataclass(part) and not isinstance(part, type):
            # Fields that are not compared decide nothing: what the answers of a feature had better be multiples of.
            named = [(field.name, getattr(part, field.name)) for field in fields(part) if field.compare]
            named = [
                (name, each) for name, each in named if name not in ADDED_SINCE_0_1 or each != ADDED_SINCE_0_1[name]
            ]
            yield f"{type(part).__name__} {len(named)};".encode()
            pending.append(named)
        else:
            raise TypeError(f"a {type(part).__name__} has no fingerprint")
