"""Reading ONNX: a ``ModelProto``, or an ``onnxruntime.InferenceSession`` as it is deployed. What is asked is
onnxruntime, on the CPU, row by row.

The input is the space's features in the space's order (or the columns of the encoder given to :func:`mace.wrap`),
rounded to the dtype of the input: one tensor (rows, columns), or one (rows, 1) a feature of the same name. What the
outputs mean is said in :mod:`mace.models.networks.outputs`; rounding, in :mod:`mace.models.onnx.operators`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mace.errors import UnsupportedModel
from mace.forms import Network
from mace.models.deployed import Deployed
from mace.models.estimator import check_no_missing, check_width
from mace.models.networks.outputs import both_chances, codes_of
from mace.models.networks.piecewise import largest_values
from mace.models.onnx.graph import Graph, Meaning, parse, understand
from mace.models.package import optional
from mace.space import Column, FeatureSpace, Integer

PROVIDER = "CPUExecutionProvider"
FAST_MATH = "mlas.enable_gemm_fastmath_arm64_bfloat16"
"""A setting of a session that rounds products more than float32 does."""


# ---- reading


def read_model(model: Any, space: FeatureSpace, columns: tuple[Column, ...]) -> Network:
    """Return the form of a ``ModelProto``."""
    return _read(parse(model), space, columns)


def read_session(session: Any, space: FeatureSpace, columns: tuple[Column, ...]) -> Network:
    """Return the form of the model in an ``InferenceSession``."""
    return _read(parse(model_of(session)), space, columns)


def _read(graph: Graph, space: FeatureSpace, columns: tuple[Column, ...]) -> Network:
    check_width("the ONNX model", graph.width, columns)
    check_no_missing("the ONNX model", space)
    _check_whole(graph, space, columns)
    lowering, meaning = understand(graph, largest_values(space, columns))
    return meaning.outcome.form(lowering, space, columns)


def _check_whole(graph: Graph, space: FeatureSpace, columns: tuple[Column, ...]) -> None:
    """Refuse an input of whole numbers that a feature with others is given to."""
    kinds = [part.kind for part in graph.inputs for _ in range(part.width)]
    features = list(space.values())
    for column, kind in zip(columns, kinds, strict=True):
        feature, table = features[column.feature], column.table
        whole = isinstance(feature, Integer) if table is None else all(float(entry).is_integer() for entry in table)
        if np.issubdtype(kind, np.integer) and not whole:
            raise UnsupportedModel(
                f"the ONNX model takes {column.name!r} as whole numbers, and the space has others. Export it with a float input."
            )


# ---- asking


def deployed_model(model: Any) -> Deployed:
    """Return how a ``ModelProto`` is asked: by onnxruntime, with one thread, once all of it has been understood."""
    graph = parse(model)
    meaning = understand(graph, np.zeros(graph.width))[1]
    runtime = optional("onnxruntime", extra="onnx")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    try:
        # Without its fall-back, which prints, there is one provider anyway.
        data = model.SerializeToString()
        session = runtime.InferenceSession(data, options, providers=[PROVIDER], enable_fallback=0)
    except Exception as error:
        raise UnsupportedModel(f"onnxruntime does not run the ONNX model: {str(error)[:200]}") from error
    return _deployed(session, graph, meaning)


def deployed_session(session: Any) -> Deployed:
    """Return how an ``InferenceSession`` is asked: as it is."""
    graph = parse(model_of(session))
    return _deployed(session, graph, understand(graph, np.zeros(graph.width))[1])


def model_of(session: Any) -> Any:
    """Return the ``ModelProto`` that a session was made from."""
    if set(session.get_providers()) - {PROVIDER}:
        raise UnsupportedModel(
            f"the session runs on {', '.join(session.get_providers())}. Supported: {PROVIDER}, whose rounding is known. "
            f"Make it with providers=['{PROVIDER}']."
        )
    if _setting(session.get_session_options(), FAST_MATH) == "1":
        raise UnsupportedModel(f"the session has {FAST_MATH}=1, which rounds more than float32 does. Leave it out.")
    data, path = getattr(session, "_model_bytes", None), getattr(session, "_model_path", None)
    if data is None and path is not None:
        data = Path(path).read_bytes()
    if data is None:
        raise UnsupportedModel("the session does not say which model it runs. Pass the onnx.ModelProto itself.")
    return parse_bytes(data, "the session's model")


def _setting(options: Any, name: str) -> str:
    try:
        return str(options.get_session_config_entry(name))
    except Exception:
        return ""


def parse_bytes(data: bytes, name: str) -> Any:
    """Return the ``ModelProto`` in some bytes; damaged ones are refused."""
    onnx = optional("onnx")
    try:
        model = onnx.load_model_from_string(data)
    except Exception as error:
        raise UnsupportedModel(f"{name} cannot be read as ONNX: {type(error).__name__}: {str(error)[:200]}") from error
    if not len(model.graph.node):
        raise UnsupportedModel(f"{name} cannot be read as ONNX: it holds no graph.")
    return model


def load(file: Path) -> Any:
    """Return the ``ModelProto`` of a file, checked; weights in other files are refused."""
    model = parse_bytes(file.read_bytes(), file.name)
    parse(model)
    return model


@dataclass(frozen=True, slots=True)
class _Runner:
    """Runs a session row by row."""

    session: Any
    graph: Graph
    wanted: tuple[str, ...]

    def __call__(self, rows: Any) -> list[list[Any]]:
        """Return the wanted outputs of each row."""
        feeds = _feeds(self.graph, rows)
        count = len(next(iter(feeds.values())))
        alone = ({name: part[number : number + 1] for name, part in feeds.items()} for number in range(count))
        return [self.session.run(list(self.wanted), feed) for feed in alone]


def _feeds(graph: Graph, rows: Any) -> dict[str, NDArray[Any]]:
    if len(graph.inputs) == 1:
        part = graph.inputs[0]
        return {part.name: np.ascontiguousarray(rows, dtype=part.kind)}
    assert isinstance(rows, pd.DataFrame)
    return {part.name: rows[[part.name]].to_numpy(dtype=part.kind) for part in graph.inputs}


def _deployed(session: Any, graph: Graph, meaning: Meaning) -> Deployed:
    names = tuple(part.name for part in graph.inputs) if len(graph.inputs) > 1 else None
    outcome = meaning.outcome
    numbers = (
        None if meaning.numbers is None else _numbers(_Runner(session, graph, (meaning.numbers,)), outcome.classes)
    )
    predict: Callable[[Any], Any]
    if meaning.label is not None:
        run = _Runner(session, graph, (meaning.label,))
        predict = lambda rows: [np.ravel(found)[0] for (found,) in run(rows)]  # noqa: E731
    else:
        assert numbers is not None
        returned, is_chance = numbers, outcome.link == "sigmoid"
        predict = returned
        if outcome.classes is not None:
            predict = lambda rows: codes_of(returned(rows), is_chance=is_chance)  # noqa: E731
    has_chances = (
        numbers is not None and outcome.classes is not None and (outcome.is_squashed or meaning.label is not None)
    )
    return Deployed(
        predict=predict,
        probabilities=(lambda rows: both_chances(numbers(rows))) if has_chances and numbers is not None else None,
        classes=outcome.classes,
        names=names,
        is_probed=True,
    )


def _numbers(run: _Runner, classes: tuple[Any, ...] | None) -> Callable[[Any], NDArray[Any]]:
    def one(found: Any) -> NDArray[Any]:
        if isinstance(found, list):  # of ZipMap: one mapping from labels to probabilities
            return np.array([found[0][label] for label in classes or ()])
        return np.ravel(found)

    return lambda rows: np.array([one(found) for (found,) in run(rows)])
