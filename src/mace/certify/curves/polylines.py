"""A sum of networks, and of polylines of networks, as one network that lies nowhere on the wrong side of it.

A polyline is a sum of hinges, c·max(z - knot, 0), and a constant. Slopes are rounded to floats, and the constant is then moved, in
fractions, until the sum is at least (at most) the polyline at its knots and at the ends of the range of z: between those both are linear.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np

from mace.certify.curves.sigmoid import ExactLine, knots_between
from mace.certify.verdict import Refuted
from mace.exact import Floats, float_down, float_up
from mace.forms import Box, Composite, Curved, Network, Weighted
from mace.space import Column


def as_network(form: Composite, sides: tuple[int, ...], box: Box) -> Network:
    """Return a composite as a network: the outputs of side 1 are at least, those of side -1 at most those of the composite in ``box``.

    The scores of all models are computed in parallel, then the hinges, then the sums; units of slope 1 pass numbers on.
    """
    models: dict[int, Network] = {}
    for part in form.parts:
        if not isinstance(part, Weighted | Curved) or not isinstance(part.form, Network):
            raise Refuted("evidence.proof: a proof of a network, and not all models here are networks")
        models[id(part.form)] = part.form
    made = _Layers(list(models.values()))
    hinges: list[tuple[int, float, bool]] = []
    weights: list[Floats] = []
    starts = [Fraction(float(start)) for start in form.base]
    for part in form.parts:
        assert isinstance(part, Weighted | Curved)
        first = made.score_from[id(part.form)]
        if isinstance(part, Weighted):
            hinges += [(first + k, 0.0, True) for k in range(part.factors.shape[1])]
            weights += list(part.factors.T)
            continue
        assert part.curve is not None
        assert isinstance(part.form, Network)
        line = ExactLine(part.curve.knots, tuple(map(Fraction, part.curve.heights)))
        low, high = (float(end[0]) for end in part.form.score_bounds(box))
        hinges += [(first, knot, False) for knot in line.knots]
        each = np.zeros((len(line.knots), len(sides)))
        for k, side in enumerate(sides):
            factor = Fraction(float(part.factors[k]))
            if factor:
                each[:, k], start = _hinged(line, factor, side, low, high)
                starts[k] += start
        weights += list(each)
    made.add_hinges(hinges)
    rounded = [float_up(start) if side > 0 else float_down(start) for start, side in zip(starts, sides, strict=True)]
    made.add(np.array(weights).T.reshape(len(sides), -1), np.array(rounded))
    return Network(form.space, tuple(made.columns), tuple(made.weights), tuple(made.biases), tuple(made.slopes))


def _hinged(line: ExactLine, factor: Fraction, side: int, low: float, high: float) -> tuple[Floats, Fraction]:
    """Return the factor of each hinge of a line that is multiplied with a number, and the constant that moves their sum to the right side
    of it."""
    rises = [Fraction(0)]
    for k in range(len(line.knots) - 1):
        run = Fraction(line.knots[k + 1]) - Fraction(line.knots[k])
        rises.append((line.heights[k + 1] - line.heights[k]) / run)
    rises.append(Fraction(0))
    bends = [float(factor * (after - before)) for before, after in pairwise(rises)]

    def short(z: float) -> Fraction:
        """Return by how much the hinges alone fall short of the line at a number."""
        reached = [(knot, bend) for knot, bend in zip(line.knots, bends, strict=True) if knot < z]
        total = sum((Fraction(bend) * (Fraction(z) - Fraction(knot)) for knot, bend in reached), Fraction(0))
        return factor * line.value(z) - total

    needed = [short(z) for z in knots_between(line, low, high)]
    return np.array(bends), max(needed) if side > 0 else min(needed)


class _Layers:
    """Several networks as one, all with the depth of the deepest: their scores are the units of the last layer."""

    def __init__(self, models: list[Network]) -> None:
        self.columns: list[Column] = []
        position: dict[Hashable, int] = {}
        for model in models:
            for key, column in zip(_keys(model), model.columns, strict=True):
                if key not in position:
                    position[key] = len(self.columns)
                    self.columns.append(column)
        self.weights: list[Floats] = []
        self.biases: list[Floats] = []
        self.slopes: list[Floats] = []
        self.score_from: dict[int, int] = {}
        depth = max(len(model.weights) for model in models)
        below = [0] * len(models)
        for layer in range(depth):
            rows = [len(model.biases[min(layer, len(model.biases) - 1)]) for model in models]
            width = sum(below) if layer else len(self.columns)
            weight, bias, slope = np.zeros((sum(rows), width)), np.zeros(sum(rows)), np.ones(sum(rows))
            for number, model in enumerate(models):
                start = sum(rows[:number])
                here = slice(start, start + rows[number])
                inputs = np.arange(width)[sum(below[:number]) : sum(below[: number + 1])]
                if layer == 0:
                    inputs = np.array([position[key] for key in _keys(model)], dtype=np.int64)
                if layer < len(model.weights):
                    weight[here, inputs] = model.weights[layer]
                    bias[here] = model.biases[layer]
                else:
                    weight[here, inputs] = np.eye(rows[number])
                if layer < len(model.weights) - 1:
                    slope[here] = model.slopes[layer]
                self.score_from[id(model)] = start
            self.weights.append(weight)
            self.biases.append(bias)
            self.slopes.append(slope)
            below = rows

    def add_hinges(self, hinges: list[tuple[int, float, bool]]) -> None:
        """Add a layer of units max(score - knot, 0), or of the score itself where it is passed on."""
        weight = np.zeros((len(hinges), len(self.biases[-1])))
        for unit, (score, _, _) in enumerate(hinges):
            weight[unit, score] = 1.0
        self.add(weight, np.array([-knot for _, knot, _ in hinges]))
        self.slopes.append(np.array([float(is_passed) for _, _, is_passed in hinges]))

    def add(self, weight: Floats, bias: Floats) -> None:
        """Add a layer."""
        self.weights.append(weight)
        self.biases.append(bias)


def _keys(model: Network) -> Iterator[Hashable]:
    """Yield what each column of a model reads, and how many before it read the same."""
    seen: Counter[Column] = Counter()
    for column in model.columns:
        unnamed = replace(column, name="")
        seen[unnamed] += 1
        yield unnamed, seen[unnamed]
