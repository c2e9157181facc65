"""Opens a file of a compiled library, writes the model anew and asks it for one row: run as a process of its own, which a damaged file
may kill.

What it writes is ``model`` in the folder, with the suffix that ``CLEAN`` says: whole, whatever the file was. ONNX is not written anew.

It imports the library alone, and nothing of MACE: ``python -P opening.py SUFFIX FILE FOLDER BYTES SECONDS``.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

REFUSAL = "refused: "
"""Begins the line that says why."""

CLEAN = {".json": ".json", ".ubj": ".json", ".txt": ".txt", ".cbm": ".cbm"}
"""The suffix of what is written, by that of the file."""

HEAVY = ("sklearn", "pandas", "pyarrow", "dask", "matplotlib", "graphviz")
"""What the libraries import for other purposes, where they find it."""


def light(name: str) -> Any:
    """Return a library, imported without what it does not need to open a file."""
    sys.modules.update(dict.fromkeys(HEAVY))  # type: ignore[arg-type]
    try:
        return importlib.import_module(name)
    except ImportError:
        for module in [each for each in sys.modules if each in HEAVY or each.partition(".")[0] == name]:
            del sys.modules[module]
        return importlib.import_module(name)


def open_xgboost(file: str, folder: str) -> None:
    """Open a ``.json`` or ``.ubj`` file of XGBoost."""
    xgboost = light("xgboost")
    import numpy as np

    clean = str(Path(folder) / "model.json")
    xgboost.Booster(model_file=file).save_model(clean)
    booster = xgboost.Booster(model_file=clean)
    booster.save_raw("json")
    booster.save_config()
    for value in (0.0, np.nan):
        row = np.full((1, booster.num_features()), value)
        with contextlib.suppress(ValueError, xgboost.core.XGBoostError):
            types = booster.feature_types
            booster.predict(xgboost.DMatrix(row, feature_types=types, enable_categorical=True), validate_features=False)


def open_lightgbm(file: str, folder: str) -> None:
    """Open a ``.txt`` file of LightGBM."""
    lightgbm = light("lightgbm")
    import numpy as np

    clean = str(Path(folder) / "model.txt")
    lightgbm.Booster(model_file=file).save_model(clean, num_iteration=-1)
    booster = lightgbm.Booster(model_file=clean)
    booster.model_to_string()
    for value in (0.0, np.nan):
        with contextlib.suppress(ValueError, lightgbm.basic.LightGBMError):
            booster.predict(np.full((1, booster.num_feature()), value))


def open_catboost(file: str, folder: str) -> None:
    """Open a ``.cbm`` file of CatBoost."""
    sys.modules.update(dict.fromkeys(("matplotlib", "plotly", "graphviz", "IPython")))  # type: ignore[arg-type]
    import catboost

    clean = str(Path(folder) / "model.cbm")
    catboost.CatBoost().load_model(file).save_model(clean)
    model = catboost.CatBoost().load_model(clean)
    kind = catboost.CatBoostClassifier if len(model.classes_) else catboost.CatBoostRegressor
    model = kind().load_model(clean)
    json.loads(dict(model.get_metadata().items())["params"])["loss_function"]["type"]
    levels = set(model.get_cat_feature_indices())
    for value in (0.0, float("nan")):
        with contextlib.suppress(ValueError, catboost.CatBoostError):
            model.predict([["0" if column in levels else value for column in range(len(model.feature_names_))]])
    with contextlib.suppress(catboost.CatBoostError):
        model.save_model(str(Path(folder) / "model.json"), format="json")


def open_onnx(file: str, folder: str) -> None:
    """Open an ``.onnx`` file, and run it where it needs no other file."""
    import numpy as np
    import onnx
    from onnx import external_data_helper

    model = onnx.load_model_from_string(Path(file).read_bytes())
    if any(map(external_data_helper.uses_external_data, external_data_helper._get_all_tensors(model))):
        return
    try:
        onnxruntime = importlib.import_module("onnxruntime")
    except ImportError:
        return
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    with contextlib.suppress(Exception):
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"], enable_fallback=0
        )
        kinds = {
            "tensor(float)": np.float32,
            "tensor(double)": np.float64,
            "tensor(int64)": np.int64,
            "tensor(int32)": np.int32,
        }
        shapes = {
            each.name: [side if isinstance(side, int) else 1 for side in each.shape] for each in session.get_inputs()
        }
        session.run(None, {each.name: np.zeros(shapes[each.name], kinds[each.type]) for each in session.get_inputs()})


OPENERS: dict[str, Callable[[str, str], None]] = {
    ".json": open_xgboost,
    ".ubj": open_xgboost,
    ".txt": open_lightgbm,
    ".cbm": open_catboost,
    ".onnx": open_onnx,
}


def main(suffix: str, file: str, folder: str, most_bytes: str, seconds: str) -> int:
    """Open a file within limits of memory and time, where the system has such limits."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds)))
        resource.setrlimit(resource.RLIMIT_AS, (int(most_bytes), int(most_bytes)))
    try:
        OPENERS[suffix](file, folder)
    except Exception as error:
        said = (str(error).splitlines() or [""])[0][:200]
        sys.stderr.write(f"\n{REFUSAL}{type(error).__name__}: {said}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
