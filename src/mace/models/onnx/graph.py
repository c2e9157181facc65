"""An ONNX graph for one row: its inputs, constants and nodes, and what its outputs mean.

Nothing of a file is run before all of it that decides has been understood: the graph is walked node by node in
:mod:`mace.models.onnx.operators`, and only then given to onnxruntime. What is not understood is refused with the name
of its node.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mace.errors import UnsupportedModel
from mace.exact import UNIT, Floats
from mace.models.networks.outputs import Chances, Labels, Outcome, of_labels, of_numbers
from mace.models.networks.piecewise import UNIT32, Lowering
from mace.models.networks.rows import Tensor
from mace.models.onnx.call import ML, Call, Value
from mace.models.onnx.operators import OPERATORS, reason_against
from mace.models.package import optional

INPUT_TYPES: dict[int, Any] = {1: np.float32, 11: np.float64, 6: np.int32, 7: np.int64}
"""Types of an input by ONNX's numbers for them."""

ON_INTEGERS = frozenset(
    {
        *("Cast", "Identity", "Concat", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Gather"),
        *("ArrayFeatureExtractor", "Scaler", "LinearClassifier"),
    }
)
"""What may be done with whole numbers before they are cast: integer arithmetic overflows and divides otherwise."""

MOST_HELD = 100_000_000
"""More numbers than this are not held while a graph is read."""

LEAST_VERSION = 7
"""Before this version of the operators, broadcasting was another."""


@dataclass(frozen=True, slots=True)
class Input:
    """An input: its name, dtype, and how many columns it takes."""

    name: str
    kind: Any
    width: int


@dataclass(frozen=True, slots=True)
class Node:
    """One operation."""

    name: str
    operator: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: dict[str, Any]
    version: int

    @property
    def is_single(self) -> bool:
        """Whether it makes float32 numbers of its own: by a cast, a constant, or as the classical models do."""
        value = self.attributes.get("value")
        return (
            self.operator.startswith(ML)
            or self.attributes.get("to") == 1
            or getattr(value, "data_type", 0) == 1
            or not self.attributes.keys().isdisjoint(("value_float", "value_floats"))
        )


@dataclass(frozen=True, slots=True)
class Graph:
    """What of a model decides."""

    inputs: tuple[Input, ...]
    constants: dict[str, NDArray[Any]]
    nodes: tuple[Node, ...]
    outputs: tuple[str, ...]

    @property
    def width(self) -> int:
        """The number of columns."""
        return sum(part.width for part in self.inputs)

    @property
    def unit(self) -> Fraction:
        """The coarsest unit roundoff of its arithmetic.

        In float64 onnxruntime may take a product with a single number into the matrix product beside it, and rounds that number to
        float32 then; so such a graph counts as float32.
        """
        single = any(part.kind == np.float32 for part in self.inputs)
        single |= any(constant.dtype == np.float32 for constant in self.constants.values())
        single |= any(node.is_single or self._scales(node) for node in self.nodes)
        return UNIT32 if single else UNIT

    def _scales(self, node: Node) -> bool:
        wide = [name for name in node.inputs if name in self.constants and self.constants[name].size > 1]
        return node.operator in ("Mul", "Div") and not wide


@dataclass(frozen=True, slots=True)
class Meaning:
    """What the outputs stand for.

    Attributes
    ----------
    outcome : Outcome
        The scores and how they decide.
    label : str, optional
        The output that holds labels.
    numbers : str, optional
        The output that holds the numbers, or the probabilities beside the labels.
    """

    outcome: Outcome
    label: str | None
    numbers: str | None


# ---- parsing


def parse(model: Any) -> Graph:
    """Return the graph of a ``ModelProto``.

    Raises
    ------
    UnsupportedModel
        It is damaged, or holds something that is not read.
    """
    onnx = optional("onnx")
    _check_data(model)
    versions: dict[str, int] = {}
    for entry in model.opset_import:
        versions[entry.domain] = max(versions.get(entry.domain, 0), entry.version)
    graph = model.graph
    try:
        constants = {part.name: onnx.numpy_helper.to_array(part) for part in graph.initializer}
    except Exception as error:
        raise UnsupportedModel(f"a constant of the ONNX model is damaged: {_short(error)}") from error
    inputs = tuple(_input(part) for part in graph.input if part.name not in constants)
    if not inputs or not len(graph.output):
        raise UnsupportedModel("the ONNX model has no input or no output. Export it again.")
    if len(inputs) > 1 and any(part.width != 1 for part in inputs):
        raise UnsupportedModel(
            f"the ONNX model has {len(inputs)} inputs of several columns. Supported: one input of all columns, or one a column."
        )
    nodes = tuple(_node(part, versions, onnx) for part in graph.node)
    return Graph(inputs, constants, nodes, tuple(part.name for part in graph.output))


def _check_data(model: Any) -> None:
    if len(model.graph.sparse_initializer):
        raise UnsupportedModel("the ONNX model has sparse constants. Export it with dense ones.")
    if any(part.data_location == part.EXTERNAL for part in model.graph.initializer):
        raise UnsupportedModel(
            "the ONNX model keeps its weights in another file. Save it as one: onnx.save_model(model, path, save_as_external_data=False)."
        )


def _input(part: Any) -> Input:
    tensor = part.type.tensor_type
    kind = INPUT_TYPES.get(tensor.elem_type)
    if not part.type.HasField("tensor_type") or kind is None:
        raise UnsupportedModel(
            f"input {part.name!r} of the ONNX model is not float, double, int32 or int64. Export it with numeric inputs."
        )
    dims = tensor.shape.dim
    if len(dims) != 2 or dims[0].dim_value > 1 or dims[1].dim_value < 1:
        shape = ", ".join(str(dim.dim_value or dim.dim_param or "?") for dim in dims)
        raise UnsupportedModel(
            f"input {part.name!r} of the ONNX model has the shape ({shape}). Supported: (rows, columns), the rows left open or 1, "
            "the columns a number. Export it with that."
        )
    return Input(part.name, kind, int(dims[1].dim_value))


def _node(part: Any, versions: dict[str, int], onnx: Any) -> Node:
    operator = part.op_type if part.domain in ("", "ai.onnx") else f"{part.domain}:{part.op_type}"
    version = versions.get(part.domain, versions.get("", 0))
    if ":" not in operator and version < LEAST_VERSION:
        raise UnsupportedModel(
            f"the ONNX model uses version {version} of the operators. Convert it: onnx.version_converter.convert_version(model, 17)."
        )
    name = part.name or (part.output[0] if len(part.output) else part.op_type)
    try:
        attributes = {entry.name: onnx.helper.get_attribute_value(entry) for entry in part.attribute}
    except ValueError as error:
        raise UnsupportedModel(f"node {name!r} of the ONNX model, {operator}, is damaged: {_short(error)}") from error
    return Node(name, operator, tuple(part.input), tuple(part.output), attributes, version)


# ---- evaluating


@dataclass
class _GraphWalk:
    """Values by name; a node is evaluated once, and only where an output needs it."""

    graph: Graph
    lowering: Lowering
    values: dict[str, Value] = field(default_factory=dict)
    integers: set[str] = field(default_factory=set)
    held: int = 0

    def __post_init__(self) -> None:
        columns, start = self.lowering.columns(), 0
        self.values.update(self.graph.constants)
        for part in self.graph.inputs:
            self.values[part.name] = columns.arranged(columns.positions[:, start : start + part.width])
            start += part.width
            if np.issubdtype(part.kind, np.integer):
                self.integers.add(part.name)

    def value(self, output: str) -> Value:
        for node in self._needed(output):
            self._evaluate(node)
        if output not in self.values:
            raise UnsupportedModel(f"the ONNX model's output {output!r} is computed by no node.")
        return self.values[output]

    def _needed(self, output: str) -> list[Node]:
        wanted, chosen = {output}, []
        for node in reversed(self.graph.nodes):
            if wanted.intersection(node.outputs) and not self.values.keys() & set(node.outputs):
                chosen.append(node)
                wanted.update(node.inputs)
        return chosen[::-1]

    def _evaluate(self, node: Node) -> None:
        operator = OPERATORS.get(node.operator)
        where = f"node {node.name!r} of the ONNX model, {node.operator}"
        if operator is None:
            raise UnsupportedModel(f"cannot read {where}{reason_against(node.operator)}")
        absent = [name for name in node.inputs if name and name not in self.values]
        if absent:
            raise UnsupportedModel(f"cannot read {where}: its input {absent[0]!r} is computed by no node before it.")
        whole = [name for name in node.inputs if name in self.integers]
        if whole and node.operator.removeprefix(ML) not in ON_INTEGERS:
            raise UnsupportedModel(
                f"cannot read {where}: it computes with whole numbers. Cast {whole[0]!r} to float first."
            )
        given = [self.values[name] if name else None for name in node.inputs]
        try:
            made = operator(Call(self.lowering, given, node.attributes, node.version, len(node.outputs)))
        except UnsupportedModel as error:
            raise UnsupportedModel(f"cannot read {where}: {error}") from error
        except (ValueError, TypeError, IndexError, KeyError, AttributeError, OverflowError, MemoryError) as error:
            raise UnsupportedModel(f"cannot read {where}: its inputs do not fit together: {_short(error)}") from error
        self.values.update(zip(node.outputs, made, strict=False))
        self.held += sum(_numbers_in(value) for value in made)
        if self.held > MOST_HELD:
            raise UnsupportedModel(f"the ONNX model needs more than {MOST_HELD:,} numbers to be read; it is too large.")
        if whole and node.operator in ON_INTEGERS and node.operator != "Cast":
            self.integers.update(node.outputs)


def _numbers_in(value: Value) -> int:
    match value:
        case Tensor():
            return int(value.weights.size)
        case Chances():
            return int(value.logits.weights.size)
        case np.ndarray():
            return int(value.size)
    return 0


def understand(graph: Graph, largest: Floats) -> tuple[Lowering, Meaning]:
    """Return the graph as rows over its columns, and what its outputs mean."""
    lowering = Lowering(largest, graph.unit)
    walk = _GraphWalk(graph, lowering)
    values: dict[str, Value] = {}
    refusals: list[UnsupportedModel] = []
    for output in graph.outputs:
        try:
            values[output] = walk.value(output)
        except UnsupportedModel as error:
            refusals.append(error)
    labels = [name for name, value in values.items() if isinstance(value, Labels)]
    if labels:
        return lowering, _labelled(lowering, graph.outputs, values, labels[0])
    if refusals:
        raise refusals[0]
    if len(values) != 1:
        raise UnsupportedModel(
            f"the ONNX model has the outputs {', '.join(graph.outputs)}, none of them labels. Keep the one that decides."
        )
    ((name, value),) = values.items()
    if not isinstance(value, Tensor | Chances):
        raise UnsupportedModel(f"the ONNX model's output {name!r} does not depend on its input.")
    if isinstance(value, Chances) and value.labels is not None:
        raise UnsupportedModel(
            "the ONNX model returns probabilities by label (ZipMap) and no label. Export it without ZipMap."
        )
    if name in walk.integers:
        raise UnsupportedModel(f"the ONNX model's output {name!r} is its input. Export the model, not a part of it.")
    return lowering, Meaning(of_numbers(lowering, value), None, name)


def _labelled(lowering: Lowering, outputs: Sequence[str], values: dict[str, Value], label: str) -> Meaning:
    chances = [name for name in outputs if isinstance(values.get(name), Chances)]
    labels, numbers = values[label], values[chances[0]] if chances else None
    assert isinstance(labels, Labels)
    outcome = of_labels(lowering, labels, numbers)
    return Meaning(outcome, label, chances[0] if chances and outcome.link == "sigmoid" else None)


def _short(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{(lines[0] if lines else type(error).__name__)[:200].rstrip('.')}."
