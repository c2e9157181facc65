"""The lowering: random graphs, computed step by step in float32 or float64, stay within the bound of the form they become."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from conformance import at

from mace import FeatureSpace, UnsupportedModel, real
from mace.exact import UNIT
from mace.forms import Network
from mace.models.networks.piecewise import UNIT32, Lowering, largest_values
from mace.models.networks.rows import Tensor
from mace.space import numeric_columns

SPACE = FeatureSpace({"a": real(-3, 3), "b": real(0, 5000), "c": real(-1e-3, 1e-3)})
COLUMNS = numeric_columns(SPACE)
assert COLUMNS is not None


class Graph:
    """A graph that is lowered and computed side by side: what a reader does, and what a library does."""

    def __init__(self, rows: np.ndarray, unit: Fraction) -> None:
        assert COLUMNS is not None
        self.kind = np.float32 if unit == UNIT32 else np.float64
        self.lowering = Lowering(largest_values(SPACE, COLUMNS), unit)
        self.tensor = self.lowering.columns()
        self.values = rows.astype(self.kind)[:, None, :]

    def numbers(self, rng: np.random.Generator, *shape: int, spread: float = 1.0) -> Any:
        return (rng.normal(0, spread, shape)).astype(self.kind)

    def both(self, tensor: Tensor, values: np.ndarray) -> None:
        assert values.dtype == self.kind
        assert values.shape[1:] == tensor.shape
        self.tensor, self.values = tensor, values

    def form(self) -> Network:
        assert COLUMNS is not None
        return self.lowering.network(self.tensor, SPACE, COLUMNS)


def scaled(graph: Graph, rng: np.random.Generator) -> None:
    factor = graph.numbers(rng, graph.tensor.shape[-1])
    graph.both(graph.lowering.scale(graph.tensor, factor), graph.values * factor)


def divided(graph: Graph, rng: np.random.Generator) -> None:
    by = np.exp(graph.numbers(rng, 1, graph.tensor.shape[-1])).astype(graph.kind)
    graph.both(graph.lowering.divide(graph.tensor, by), graph.values / by)


def moved(graph: Graph, rng: np.random.Generator) -> None:
    offset = graph.numbers(rng, graph.tensor.shape[-1], spread=100)
    graph.both(graph.lowering.offset(graph.tensor, offset), graph.values + offset)


def dense(graph: Graph, rng: np.random.Generator) -> None:
    weights, bias = graph.numbers(rng, graph.tensor.shape[-1], int(rng.integers(1, 6))), graph.numbers(rng, 1)
    graph.both(graph.lowering.dense(graph.tensor, weights, bias), graph.values @ weights + bias)


def normalised(graph: Graph, rng: np.random.Generator) -> None:
    width = graph.tensor.shape[-1]
    mean, scale, offset = (graph.numbers(rng, width, spread=spread) for spread in (50, 1, 3))
    variance = np.exp(graph.numbers(rng, width)).astype(graph.kind)
    epsilon = graph.kind(1e-5)
    lowered = graph.lowering.normalise(graph.tensor, mean, variance, scale, offset, float(epsilon))
    if rng.random() < 0.5:
        graph.both(lowered, (graph.values - mean) / np.sqrt(variance + epsilon) * scale + offset)
    else:  # as onnxruntime does
        factor = scale / np.sqrt(variance + epsilon)
        graph.both(lowered, graph.values * factor + (offset - mean * factor))


def leaky(graph: Graph, rng: np.random.Generator) -> None:
    slope = graph.kind(rng.choice([0.0, 0.01, 0.3, 1.0, -1.0, 2.5, -0.2]))
    values = np.where(graph.values >= 0, graph.values, slope * graph.values)
    graph.both(graph.lowering.bend(graph.tensor, slope), values)


def clipped(graph: Graph, rng: np.random.Generator) -> None:
    first, second = map(float, graph.numbers(rng, 2, spread=2))
    low, high = (first if rng.random() < 0.8 else -np.inf), (second if rng.random() < 0.8 else np.inf)
    graph.both(
        graph.lowering.clip(graph.tensor, low, high), np.minimum(np.maximum(graph.values, low), high).astype(graph.kind)
    )


def residual(graph: Graph, rng: np.random.Generator) -> None:
    width = graph.tensor.shape[-1]
    weights, sign = graph.numbers(rng, width, width), int(rng.choice([-1, 1]))
    other, values = graph.lowering.bend(graph.lowering.dense(graph.tensor, weights)), graph.values @ weights
    graph.both(graph.lowering.add(graph.tensor, other, sign=sign), graph.values + sign * np.maximum(values, 0))


def greatest(graph: Graph, rng: np.random.Generator) -> None:
    weights = graph.numbers(rng, graph.tensor.shape[-1], graph.tensor.shape[-1])
    other, values = graph.lowering.dense(graph.tensor, weights), graph.values @ weights
    if rng.random() < 0.5:
        graph.both(graph.lowering.maximum(graph.tensor, other), np.maximum(graph.values, values))
    else:
        graph.both(graph.lowering.minimum(other, graph.tensor), np.minimum(graph.values, values))


def joined(graph: Graph, rng: np.random.Generator) -> None:
    other = graph.lowering.scale(graph.tensor, graph.kind(0.3))
    tensor = graph.lowering.concatenate([other, graph.tensor], 1)
    values = np.concatenate([graph.values * graph.kind(0.3), graph.values], axis=2)
    order = rng.permutation(len(tensor))[:6]
    graph.both(tensor.arranged(tensor.positions[:, order]), values[:, :, order])


STEPS = (scaled, divided, moved, dense, normalised, leaky, clipped, residual, greatest, joined)


def random_rows(rng: np.random.Generator, count: int) -> np.ndarray:
    rows = np.array([[rng.uniform(f.low, f.high) for f in SPACE.values()] for _ in range(count)])  # type: ignore[union-attr]
    rows[: count // 4] = [[rng.choice([f.low, f.high]) for f in SPACE.values()] for _ in range(count // 4)]  # type: ignore[union-attr]
    return rows


def random_graph(seed: int, unit: Fraction, count: int = 24) -> tuple[Network, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    rows = random_rows(rng, count)
    graph = Graph(rows, unit)
    for _ in range(int(rng.integers(1, 7))):
        STEPS[int(rng.integers(len(STEPS)))](graph, rng)
    return graph.form(), rows, graph.values.reshape(count, -1)


def excess(form: Network, rows: np.ndarray, values: np.ndarray) -> float:
    """Return the greatest error of a computed number, relative to the bound of its row."""
    worst = 0.0
    for row, computed in zip(rows, values, strict=True):
        point = tuple(map(float, row))
        bound = form.rounding(at(point)) / (1 if form.is_binary else 2)
        errors = [abs(s - Fraction(float(v))) for s, v in zip(form.exact_scores(point), computed, strict=True)]
        worst = max(worst, float(max(errors) / bound))
    return worst


@pytest.mark.slow
@pytest.mark.parametrize("unit", [UNIT32, UNIT], ids=["float32", "float64"])
def test_what_a_library_computes_stays_within_the_bound(unit: Fraction) -> None:
    ratios = [excess(*random_graph(seed, unit)) for seed in range(100)]
    assert max(ratios) <= 1
    assert max(ratios) > 0.03, "the bound is too wide to mean anything"


def there_and_back(graph: Graph) -> None:
    """Add a million and take it away: the shift that is left is 0, what is lost is not."""
    for offset in (graph.kind(1e6), graph.kind(-1e6)):
        graph.both(graph.lowering.offset(graph.tensor, offset), graph.values + offset)


def many_products(graph: Graph) -> None:
    for number in range(600):
        factor = graph.kind(1.1 if number % 2 else 1 / 1.1)
        graph.both(graph.lowering.scale(graph.tensor, factor), graph.values * factor)


@pytest.mark.parametrize(
    ("field", "forgotten", "steps"),
    [("sizes", None, there_and_back), ("steps", 0, many_products), ("unit", UNIT32 / 64, many_products)],
)
def test_a_bound_that_forgets_a_part_of_the_rounding_is_found_out(field: str, forgotten: Any, steps: Any) -> None:
    graph = Graph(rows := random_rows(np.random.default_rng(0), 40), UNIT32)
    steps(graph)
    values = graph.values.reshape(40, -1)
    assert excess(graph.form(), rows, values) <= 1
    assert excess(replace(graph.form(), **{field: forgotten}), rows, values) > 1


def test_a_normalisation_before_cancelling_shifts_needs_its_sizes() -> None:
    """(x - 4999) * 1000 near x = 4999: the folded shift is large, and so is what is lost."""
    assert COLUMNS is not None
    lowering = Lowering(largest_values(SPACE, COLUMNS), UNIT32)
    wide = lowering.normalise(lowering.columns(), 4999.3, 1e-6, 1.0, 0.0, 0.0)
    form = lowering.network(wide.arranged(np.array([[1]])), SPACE, COLUMNS)
    point = (0.0, 4999.0, 0.0)
    x, mean = np.float32(4999.0), np.float32(4999.3)
    computed = (x - mean) / np.sqrt(np.float32(1e-6))
    assert abs(form.exact_scores(point)[0] - Fraction(float(computed))) <= form.rounding(at(point))
    assert form.sizes is not None
    assert form.sizes[-1][0] >= abs(form.biases[-1][0])


def test_layers_are_as_few_as_they_can_be() -> None:
    assert COLUMNS is not None
    lowering = Lowering(largest_values(SPACE, COLUMNS), UNIT32)
    rng = np.random.default_rng(0)
    hidden = lowering.bend(
        lowering.normalise(lowering.dense(lowering.columns(), rng.normal(size=(3, 4))), 1, 2, 3, 4, 0.1)
    )
    clipped = lowering.clip(lowering.offset(lowering.scale(hidden, 3.0), 1.0), 0.0, 6.0)
    form = lowering.network(lowering.dense(clipped, rng.normal(size=(4, 2))), SPACE, COLUMNS)
    assert [weight.shape for weight in form.weights] == [(4, 3), (8, 4), (2, 8)]
    assert all((slopes == 0).all() for slopes in form.slopes)


def test_units_that_nothing_reads_are_left_out() -> None:
    assert COLUMNS is not None
    lowering = Lowering(largest_values(SPACE, COLUMNS), UNIT)
    lowering.bend(lowering.dense(lowering.columns(), np.ones((3, 50))))
    form = lowering.network(lowering.dense(lowering.columns(), np.ones((3, 1))), SPACE, COLUMNS)
    assert [weight.shape for weight in form.weights] == [(1, 3)]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda lowering, x: lowering.scale(x, np.nan),
        lambda lowering, x: lowering.offset(x, np.inf),
        lambda lowering, x: lowering.divide(x, [1.0, 0.0, 1.0]),
        lambda lowering, x: lowering.scale(lowering.scale(x, 1e30), 1e30),
        lambda lowering, x: lowering.dense(x, np.ones((2, 2))),
        lambda lowering, x: lowering.offset(x, np.ones(7)),
        lambda lowering, x: lowering.offset(x, np.ones((10_000_000, 1))),
        lambda lowering, x: lowering.add(x, lowering.constant(np.ones((10_000_000, 1)))),
        lambda lowering, x: lowering.dense(x, np.ones((3, 30_000_000), dtype=np.float16)),
        lambda lowering, x: lowering.normalise(x, 0, [-1.0, 1, 1], 1, 0, 0.5),
        lambda lowering, x: lowering.clip(x, np.nan, 1),
        lambda lowering, x: lowering.clip(x, np.inf, np.inf),
        lambda lowering, x: lowering.bend(x, np.inf),
        lambda lowering, x: lowering.scale(lowering.scale(x, 1e-200), 1e-200),
        lambda lowering, x: lowering.concatenate([x, lowering.constant(np.ones((2, 2, 2)))], 1),
    ],
)
def test_numbers_and_shapes_that_make_no_sense_are_refused(wrong: Any) -> None:
    assert COLUMNS is not None
    lowering = Lowering(largest_values(SPACE, COLUMNS), UNIT32)
    with pytest.raises(UnsupportedModel):
        wrong(lowering, lowering.columns())
