"""A last check of a reader against the model itself: a handful of rows, before any question is answered.

The readers of PyTorch and ONNX follow what a graph says. Should a library's operation mean something else than they
think, these rows tell.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mace.errors import UnsupportedModel
from mace.forms import Network
from mace.forms.scoring import column_values
from mace.models.reading import Reading
from mace.space import Feature, Integer, Point, Real, Value

ROWS = 24


def check_agrees(reading: Reading) -> Reading:
    """Return the reading of a network that agrees with the real model wherever rounding leaves no doubt; others are
    refused."""
    form = reading.form
    assert isinstance(form, Network)
    points = _points(form)
    scores, asked = _float_scores(form, points), reading.ask(points)
    for point, score, answer in zip(points, scores, asked, strict=True):
        box = tuple((Fraction(value), Fraction(value)) for value in point)  # type: ignore[arg-type]
        # Twice: once for the library, once for the sums here.
        if not _fits(form, score, float(answer), 2 * float(form.rounding(box))):
            raise UnsupportedModel(
                f"the model answers {reading.label(answer)!r} to {form.space.values_of(point)}, which is not what its layers say. "
                "It computes something that is not read; please report it."
            )
    return reading


def _fits(form: Network, score: NDArray[np.float64], answer: float, slack: float) -> bool:
    if form.is_regressor:
        return bool(abs(score[0] - answer) <= slack)
    sides = np.array([0.0, score[0]]) if form.is_binary else score
    return bool(sides[int(answer)] + slack >= sides.max())


def _float_scores(form: Network, points: list[Point]) -> NDArray[np.float64]:
    active = column_values(form.columns, points)
    for layer, (weights, biases) in enumerate(zip(form.weights, form.biases, strict=True)):
        if layer:
            active = np.where(active >= 0, active, form.slopes[layer - 1] * active)
        active = active @ weights.T + biases
    return active


def _points(form: Network) -> list[Point]:
    """Return rows at the ends and in the middle of the space, the same every time."""
    rng = np.random.default_rng(0)
    return [tuple(_value(feature, rng) for feature in form.space.values()) for _ in range(ROWS)]


def _value(feature: Feature, rng: np.random.Generator) -> Value:
    draw = float(rng.choice([0.0, 1.0, rng.random(), rng.random()]))
    if isinstance(feature, Real):
        return min(feature.low + draw * (feature.high - feature.low), feature.high)
    if isinstance(feature, Integer):
        return min(feature.low + int(draw * (feature.high - feature.low)), feature.high)
    return round(draw * (len(feature.levels) - 1))
