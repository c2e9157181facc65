"""Noticing that parts of a model were replaced, by which objects it consists of."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator
from itertools import chain
from operator import is_
from types import FunctionType
from typing import Any

import numpy as np

WATCHED_LIBRARIES = frozenset({"sklearn", "xgboost", "lightgbm", "catboost", "torch", "onnxruntime"})
"""Whose objects are looked into; anything else is a part as a whole."""

OUR_CLASSES = frozenset({"Encoder", "Endpoint", "ModelSet", "Wrapped"})


class Watch:
    """The parts of a model at one time: its attributes, those of the models inside it, the members of its lists and tables.

    Fitting replaces them, and so does assigning to an attribute. What an array holds is not looked at.

    Parameters
    ----------
    model : object
        The model.
    """

    def __init__(self, model: Any) -> None:
        self._holders: list[Collection[Any]] = []
        self._marks: list[Callable[[], Any]] = []
        self._walk(model)
        self._parts = list(chain.from_iterable(self._holders))
        self._marked = [mark() for mark in self._marks]

    def is_same(self) -> bool:
        """Return whether every part is still the same object."""
        return (
            sum(map(len, self._holders)) == len(self._parts)
            and all(map(is_, chain.from_iterable(self._holders), self._parts))
            and all(mark() == known for mark, known in zip(self._marks, self._marked, strict=True))
        )

    def _walk(self, model: Any) -> None:
        pending, seen = [model], set[int]()
        while pending:
            part = pending.pop()
            if id(part) in seen:
                continue
            seen.add(id(part))
            self._marks += _marks(part)
            if (held := _members(part)) is not None:
                self._holders.append(held)
                pending.extend(held)
            elif isinstance(part, tuple):
                pending += part
            elif _is_own(part):
                pending += [getattr(part, name) for name in getattr(part, "__slots__", ())]


def _members(part: Any) -> Any:
    """Return the members of a part, as they are whenever they are looked at; ``None`` of what has none that can be replaced."""
    if isinstance(part, list):
        return part
    if isinstance(part, dict):
        return part.values()
    if isinstance(part, np.ndarray):
        return part.reshape(-1) if part.dtype == object else None
    if hasattr(part, "__dict__") and not isinstance(part, type | FunctionType) and (_is_known(part) or _is_own(part)):
        return vars(part).values()
    return None


def _is_known(part: Any) -> bool:
    return any(base.__module__.partition(".")[0] in WATCHED_LIBRARIES for base in type(part).__mro__)


def _is_own(part: Any) -> bool:
    return type(part).__name__ in OUR_CLASSES and type(part).__module__.startswith("mace.")


def _marks(part: Any) -> Iterator[Callable[[], Any]]:
    """Yield what tells that an object was changed in place, for the kinds that can be."""
    library = type(part).__module__.partition(".")[0]
    if isinstance(part, FunctionType):
        yield lambda: _function(part)
    elif library == "torch" and hasattr(part, "_version"):
        yield lambda: part._version
    elif library == "lightgbm" and type(part).__name__ == "Booster":
        yield lambda: (part.num_trees(), part.best_iteration)
    elif library == "xgboost" and type(part).__name__ == "Booster":
        yield part.num_boosted_rounds
    elif library == "catboost" and hasattr(part, "get_metadata"):
        yield lambda: _catboost_id(part)


def _catboost_id(model: Any) -> str:
    """Return what CatBoost calls a model by: fitting again gives it another, and so does loading one."""
    metadata = model.get_metadata()
    return "".join(metadata.get(key, "") for key in ("model_guid", "train_finish_time"))


def _function(function: FunctionType) -> tuple[Any, ...]:
    """Return the code of a function, and what it reads from outside."""
    try:
        around = inspect.getclosurevars(function)
    except ValueError:  # a variable that has no value yet
        return (function.__code__,)
    return function.__code__, function.__defaults__, around.nonlocals, around.globals
