"""A hash of all that a model holds, far quicker to make than the model is to read."""

from __future__ import annotations

import hashlib
import pickle
from typing import Any

from mace.models.watch import WATCHED_LIBRARIES

TRUSTED_MODULES = WATCHED_LIBRARIES | {
    "builtins",
    "collections",
    "copyreg",
    "functools",
    "mace",
    "numpy",
    "pandas",
    "scipy",
}
"""Whose objects are looked into, and whose functions are what their names say."""

OPAQUE = frozenset({"_handle", "_object", "handle", "train_set", "valid_sets"})
"""Attributes that hold a library's own memory: what it is the object says, or it decides nothing."""

PIECE = 50
"""Trees of a LightGBM booster that are written together: one text of more than a mebibyte is written twice by the library."""


def contents(model: Any) -> bytes | None:
    """Return a hash of a model's pickle: equal hashes are of equal models, and unequal ones may be too.

    Returns
    -------
    bytes or None
        ``None`` of a model that cannot be pickled, or that holds functions or objects of others than
        :data:`TRUSTED_MODULES`, whose pickles may lack what decides: a function is pickled as its name.
    """
    hashed = _Hashed()
    try:
        _Pickler(hashed, 5, buffer_callback=hashed.take).dump(model)
    except Exception:  # the pickling of others, which may fail in any way
        return None
    return hashed.stream.digest() + hashed.arrays.digest()


class _Hashed:
    """A file that keeps the hash of what is written, and apart from it the hash of the arrays, which are not copied."""

    def __init__(self) -> None:
        self.stream, self.arrays = hashlib.sha256(), hashlib.sha256()

    def write(self, piece: bytes) -> int:
        self.stream.update(piece)
        return len(piece)

    def take(self, buffer: pickle.PickleBuffer) -> None:
        raw = buffer.raw()
        self.arrays.update(f"{raw.nbytes};".encode())
        self.arrays.update(raw)


class _Pickler(pickle.Pickler):
    """A pickler that refuses what is not :data:`TRUSTED_MODULES`, and leaves no attribute of a model out."""

    def reducer_override(self, part: Any) -> Any:
        is_named = hasattr(part, "__qualname__")  # a class or a function, those of Cython too
        kind = part if is_named else type(part)
        library = str(kind.__module__).partition(".")[0]
        if library not in TRUSTED_MODULES:
            raise pickle.PicklingError(f"{kind} is not known")
        if is_named or library not in WATCHED_LIBRARIES or not _chooses(part):
            return NotImplemented
        held = {name: value for name, value in vars(part).items() if name not in OPAQUE}
        return tuple, ((kind, held, _memory(part)),)


def _chooses(part: Any) -> bool:
    """Return whether an object chooses what is pickled of its attributes, and may leave some out."""
    states: Any = type(part).__getstate__
    return hasattr(part, "__dict__") and states is not object.__getstate__ and states.__module__ != "sklearn.base"


def _memory(part: Any) -> Any:
    """Return what an object says of its library's own memory, the trees of LightGBM in pieces."""
    if not hasattr(part, "model_to_string"):
        return part.__getstate__()
    step = max(1, PIECE // part.num_model_per_iteration())
    return [part.model_to_string(step, start) for start in range(0, max(1, part.current_iteration()), step)]
