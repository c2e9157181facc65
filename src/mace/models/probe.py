"""A last check of a reader against the model itself: a handful of rows, before any question is answered.

The readers of PyTorch, ONNX and preprocessing follow what a graph or a step says. Should a library's operation mean
something else than they think, these rows tell.
"""

from __future__ import annotations

import warnings
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mace.errors import UnsupportedModel
from mace.forms import Composite, Interval, Network, ObliqueTrees, Outcomes, TreeEnsemble, divisor
from mace.forms.form import box_at
from mace.forms.scoring import column_values
from mace.models.reading import Reading
from mace.space import Feature, FeatureSpace, Integer, Point, Real, Value

ROWS = 24


def check_agrees(reading: Reading) -> Reading:
    """Return the reading of a network or ensemble that agrees with the real model wherever rounding leaves no doubt; others
    are refused."""
    form = reading.form
    assert isinstance(form, Network | TreeEnsemble | Composite | ObliqueTrees)
    points = probe_points(form.space)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            asked = reading.ask(points)
    except Exception as error:
        raise UnsupportedModel(
            f"the model refuses a row of the space, {form.space.values_of(points[0])} or its like: {type(error).__name__}: "
            f"{str(error)[:300]} Narrow the space to what the model accepts."
        ) from error
    if isinstance(form, Composite | ObliqueTrees):
        return _check_joint(reading, form, points, asked)
    scores = (
        form.float_scores(column_values(form.columns, points)) if isinstance(form, Network) else _sums(form, points)
    )
    for point, score, answer in zip(points, scores, asked, strict=True):
        # Twice: once for the library, once for the sums here.
        if not _fits(form, score, float(answer), 2 * _slack(form, point)):
            raise _differs(reading, point, answer)
    return reading


def _check_joint(
    reading: Reading, form: Composite | ObliqueTrees, points: list[Point], asked: list[Fraction]
) -> Reading:
    for point, answer in zip(points, asked, strict=True):
        box = box_at(point)
        if not form.is_regressor:
            fits = form.predicted(point) == answer or not form.is_beyond_rounding(
                point, Outcomes(frozenset([answer])), box
            )
        elif isinstance(form, Composite):
            fits = abs(form.exact_scores(point)[0] - answer) <= 2 * form.rounding(box)
        else:
            scale = divisor(form.trees)
            near = abs(form.exact_scores(point)[0] - answer * scale) <= 2 * _slack(form.trees, point)
            fits = near or not form.is_beyond_rounding(point, Interval(None, None, 0, None, None), box)
        if not fits:
            raise _differs(reading, point, answer)
    return reading


def _differs(reading: Reading, point: Point, answer: Fraction) -> UnsupportedModel:
    space = reading.form.space  # type: ignore[attr-defined]
    return UnsupportedModel(
        f"the model answers {reading.label(answer)!r} to {space.values_of(point)}, which is not what its parts say. "
        "It computes something that is not read; please report it."
    )


def _slack(form: Network | TreeEnsemble, point: Point) -> float:
    if isinstance(form, TreeEnsemble):
        return float(form.rounding) + 2.0**-40 * float(form.magnitude.max())
    return float(form.rounding(box_at(point)))


def _fits(form: Network | TreeEnsemble, score: NDArray[np.float64], answer: float, slack: float) -> bool:
    if form.is_regressor:
        scale = divisor(form)
        return bool(abs(score[0] - answer * scale) <= slack)
    sides = np.array([0.0, score[0]]) if len(score) == 1 else score
    return bool(sides[int(answer)] + slack >= sides.max())


def _sums(form: TreeEnsemble, points: list[Point]) -> NDArray[np.float64]:
    return np.array([[float(score) for score in form.exact_scores(point)] for point in points])


def probe_points(space: FeatureSpace) -> list[Point]:
    """Return rows at the ends and in the middle of the space, the same every time."""
    rng = np.random.default_rng(0)
    return [tuple(_value(feature, rng) for feature in space.values()) for _ in range(ROWS)]


def _value(feature: Feature, rng: np.random.Generator) -> Value:
    draw = float(rng.choice([0.0, 1.0, rng.random(), rng.random()]))
    if feature.missing and rng.random() < 0.2:
        return None
    if isinstance(feature, Real):
        return min(feature.nearest(feature.low + draw * (feature.high - feature.low)), feature.high)
    if isinstance(feature, Integer):
        return min(feature.low + int(draw * (feature.high - feature.low)), feature.high)
    return round(draw * (len(feature.levels) - 1))
