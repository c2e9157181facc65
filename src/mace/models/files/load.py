"""Loading a model from a file, without running code that the file brings along."""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import ModuleType
from typing import Any

from mace.errors import MaceError, UnsupportedModel, in_a_line
from mace.models.files.archive import check_archive
from mace.models.files.child import opened_in_child
from mace.models.files.loaded import check_loaded
from mace.models.files.saved_text import check_json, check_text
from mace.models.package import optional

PICKLES = (".pkl", ".pickle", ".joblib")

_IS_OURS: ContextVar[bool] = ContextVar("is_ours", default=False)


@contextmanager
def in_own_process() -> Iterator[None]:
    """Say that this process is MACE's own: the command line, a worker. Nobody else asks skops there, so that it may be imported sooner."""
    token = _IS_OURS.set(True)
    try:
        yield
    finally:
        _IS_OURS.reset(token)


def load_model(path: str | os.PathLike[str], *, trust: bool = False) -> Any:
    """Load a fitted model.

    Parameters
    ----------
    path : path
        A ``.skops`` file, an ``.onnx`` file, an XGBoost ``.json`` or ``.ubj`` file, a LightGBM ``.txt`` file, a CatBoost ``.cbm`` file; or,
        only with ``trust``, a ``.joblib`` or ``.pkl`` file. XGBoost's and CatBoost's come back as the estimators they were saved from,
        LightGBM's as a ``Booster`` (its text does not hold the labels), ONNX as a ``ModelProto``.
    trust : bool
        Whether the file may run code: unpickling does whatever the file says. A file that is trusted is opened as it is; any other
        is checked first: a ``.skops`` file name by name and array by array, a booster's and an ONNX file by opening it in a child
        process.

    Raises
    ------
    UnsupportedModel
        The file does not exist, is damaged, is of an unknown kind, or needs ``trust``.
    MissingPackage
        It needs an optional package that is not installed.
    """
    file = Path(path)
    if not file.is_file():
        raise UnsupportedModel(f"there is no model file {file}.")
    if file.suffix == ".skops":
        return _load_skops(file, trust=trust)
    if file.suffix in PICKLES:
        if not trust:
            raise UnsupportedModel(
                f"{file.name} is a pickle: loading it runs whatever code it holds. "
                "Say that you trust it (--trust, or trust=True), or save the model with skops.io.dump."
            )
        return _load_pickle(file)
    loader = FORMATS.get(file.suffix)
    if loader is None or (file.suffix == ".txt" and not file.read_bytes().startswith(b"tree")):
        raise UnsupportedModel(
            f"{file.name}: unknown kind of model file. Supported: .skops, .onnx, XGBoost's .json and .ubj, "
            f"LightGBM's .txt, CatBoost's .cbm, and with trust {', '.join(PICKLES)}."
        )
    try:
        if trust:
            return loader(file)
        optional(LIBRARY_OF_SUFFIX[file.suffix])
        if file.suffix == ".txt":
            check_text(file)
        with opened_in_child(file, LIBRARY_OF_SUFFIX[file.suffix]) as clean:
            if clean.suffix == ".json":
                check_json(clean)
            return loader(clean)
    except MaceError:
        raise
    except Exception as error:
        raise UnsupportedModel(f"{file.name} cannot be read: {in_a_line(error)}") from error


def _load_skops(file: Path, *, trust: bool) -> Any:
    io = _skops()
    data = file.read_bytes()
    named = None if trust else check_archive(data, file.name)
    try:
        loaded = io.loads(data, trusted=io.get_untrusted_types(data=data) if named is None else named)
    except Exception as error:
        raise UnsupportedModel(f"{file.name} cannot be read as a skops file: {in_a_line(error)}") from error
    if not trust:
        check_loaded(loaded, file.name)
    return loaded


def _skops() -> Any:
    """Return ``skops.io``.

    To list the types that it trusts where none are given, skops imports every module of scikit-learn and looks for each ufunc in every
    module, which takes longer than all else that is done for a file. Here they are always given, so that a process of our own leaves
    its lists empty.
    """
    if _IS_OURS.get() and "skops.io" not in sys.modules:
        sys.modules[_SKOPS_LISTS] = _empty_lists()
    return importlib.import_module("skops.io")


_SKOPS_LISTS = "skops.io._trusted_types"


def _empty_lists() -> ModuleType:
    """Return a module whose lists of types are empty, but for the one by which skops decides what a generator may be."""
    import numpy as np

    made = ModuleType(_SKOPS_LISTS)
    kinds = [each for each in vars(np.random).values() if isinstance(each, type)]
    generators = [
        each for each in kinds if issubclass(each, np.random.BitGenerator) and each is not np.random.BitGenerator
    ]
    made.NUMPY_RANDOM_BIT_GENERATOR_TYPE_NAMES = sorted(f"numpy.random.{each.__name__}" for each in generators)  # type: ignore[attr-defined]
    made.__getattr__ = _no_names  # type: ignore[method-assign]
    return made


def _no_names(name: str) -> list[str]:
    if not name.endswith("_NAMES"):
        raise AttributeError(f"module {_SKOPS_LISTS!r} has no attribute {name!r}")
    return []


def _load_pickle(file: Path) -> Any:
    import joblib

    try:
        return joblib.load(file)
    except Exception as error:
        raise UnsupportedModel(f"{file.name} cannot be unpickled: {type(error).__name__}: {error}") from error


def _load_xgboost(file: Path) -> Any:
    xgboost = optional("xgboost")
    booster = xgboost.Booster(model_file=str(file))
    saved = json.loads(booster.attr("scikit_learn") or "{}").get("_estimator_type")
    kind = {"classifier": xgboost.XGBClassifier, "regressor": xgboost.XGBRegressor}.get(saved)
    if kind is None:
        return booster
    model = kind()
    model.load_model(str(file))
    return model


def _load_lightgbm(file: Path) -> Any:
    return optional("lightgbm").Booster(model_file=str(file))


def _load_catboost(file: Path) -> Any:
    catboost = optional("catboost")
    model = catboost.CatBoost().load_model(str(file))
    kind = catboost.CatBoostClassifier if len(model.classes_) else catboost.CatBoostRegressor
    return kind().load_model(str(file))


def _load_onnx(file: Path) -> Any:
    from mace.models.onnx.reader import load

    return load(file)


FORMATS: dict[str, Callable[[Path], Any]] = {
    ".json": _load_xgboost,
    ".ubj": _load_xgboost,
    ".txt": _load_lightgbm,
    ".cbm": _load_catboost,
    ".onnx": _load_onnx,
}
"""Formats of data only: their own libraries parse them, and run nothing that they hold."""

LIBRARY_OF_SUFFIX = {".json": "xgboost", ".ubj": "xgboost", ".txt": "lightgbm", ".cbm": "catboost", ".onnx": "onnx"}
"""Which library opens a file first, in a child process."""
