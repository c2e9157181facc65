"""Loading a model from a file, without running code that the file brings along."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mace.errors import MaceError, UnsupportedModel
from mace.models.package import optional

KNOWN = (
    "mace.space.",
    "numpy.dtype",
    "numpy.number",
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.calibration._SigmoidCalibration",
    "sklearn.compose._column_transformer.make_column_selector",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.feature_selection._univariate_selection.",
    "sklearn.metrics._classification.",
    "sklearn.metrics._ranking.",
    "sklearn.metrics._scorer.",
    "sklearn.model_selection._split.",
    "sklearn.neural_network._stochastic_optimizers.",
    "sklearn.tree._tree.Tree",
    "sklearn.utils._bunch.Bunch",
    "sklearn.utils._metadata_requests.",
)
"""Types that hold data only, and functions that compute and do nothing else: this package's own, scikit-learn's, and the arrays of trees,
which the readers check before anything walks them."""

PICKLES = (".pkl", ".pickle", ".joblib")


def load_model(path: str | os.PathLike[str], *, trust: bool = False) -> Any:
    """Load a fitted model.

    Parameters
    ----------
    path : path
        A ``.skops`` file, an ``.onnx`` file, an XGBoost ``.json`` or ``.ubj`` file, a LightGBM ``.txt`` file, a CatBoost ``.cbm`` file; or,
        only with ``trust``, a ``.joblib`` or ``.pkl`` file. XGBoost's and CatBoost's come back as the estimators they were saved from,
        LightGBM's as a ``Booster`` (its text does not hold the labels), ONNX as a ``ModelProto``.
    trust : bool
        Whether the file may run code: unpickling does whatever the file says.

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
        return loader(file)
    except MaceError:
        raise
    except Exception as error:
        said = (str(error).splitlines() or [""])[0][:200]
        raise UnsupportedModel(f"{file.name} cannot be read: {type(error).__name__}: {said}") from error


def _load_skops(file: Path, *, trust: bool) -> Any:
    from skops import io

    try:
        named = io.get_untrusted_types(file=file)
        foreign = [name for name in named if not name.startswith(KNOWN)]
        if foreign and not trust:
            raise UnsupportedModel(
                f"{file.name} holds types that are not known to be safe: {', '.join(foreign)}. "
                "Say that you trust it (--trust, or trust=True) if you know where it comes from."
            )
        return io.load(file, trusted=named)
    except UnsupportedModel:
        raise
    except Exception as error:
        raise UnsupportedModel(
            f"{file.name} cannot be read as a skops file: {type(error).__name__}: {error}"
        ) from error


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
