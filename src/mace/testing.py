"""The conformance kit: is what MACE read what the model computes?

:func:`check_model` compares the form of a model with the model itself on rows of your own, random rows, corners of the space, and rows
on and beside every threshold or decision boundary. Run it on a model before trusting an explanation of it, or on a reader of your own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from mace.errors import InvalidOption
from mace.forms import Composite, Interval, Network, ObliqueTrees, Outcomes, TreeEnsemble, clearance, divisor, winner
from mace.forms.form import box_at
from mace.models import Reading, read
from mace.space import FeatureSpace, Integer, Point, Real, Value
from mace.space.frames import as_pandas

MOST_THRESHOLDS = 2000
"""The most thresholds that are met, chosen at random where there are more."""


@dataclass(frozen=True, slots=True)
class Conformance:
    """What a check met.

    Attributes
    ----------
    family : str
        What the model is.
    rows : int
        How many rows were compared.
    decided : int
        On how many the form alone decides; on the others rounding does, and the real model is asked.
    thresholds : int
        On how many thresholds, or places where the model changes its mind, rows were laid.
    """

    family: str
    rows: int
    decided: int
    thresholds: int


def check_model(
    model: Any, space: FeatureSpace, rows: Iterable[Any] | None = None, *, count: int = 300, seed: int = 0
) -> Conformance:
    """Assert that a model is read as what it computes.

    Parameters
    ----------
    model : estimator, pipeline or network
        As for :class:`~mace.Explainer`.
    space : FeatureSpace
        Its features.
    rows : iterable of rows, or a frame, optional
        Rows of your own to compare as well.
    count : int
        How many random rows, and a third as many corners.
    seed : int
        Of the random rows.

    Returns
    -------
    Conformance
        How much was compared.

    Raises
    ------
    AssertionError
        The form and the model differ beyond rounding; the message holds the row.
    UnsupportedModel
        The model cannot be read at all.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from mace.space import FeatureSpace, real
    >>> model = DecisionTreeClassifier().fit([[0.0], [1.0], [2.0]], [0, 1, 0])
    >>> check_model(model, FeatureSpace({"x": real(0, 2)}), count=30)
    Conformance(family='DecisionTreeClassifier', rows=46, decided=46, thresholds=2)
    """
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise InvalidOption(f"count={count!r}; it must be a whole number of at least 1.")
    reading, given = read(model, space), [space.point(row) for row in _each(rows)]
    each = [_checked(one, space, given, count, seed) for one in reading.members or [reading]]
    sums = [sum(numbers) for numbers in zip(*((one.rows, one.decided, one.thresholds) for one in each), strict=True)]
    return Conformance(reading.family, *sums)


def _checked(reading: Reading, space: FeatureSpace, given: Sequence[Point], count: int, seed: int) -> Conformance:
    """Compare one model with its form."""
    form = reading.form
    rng = np.random.default_rng(seed)
    points = list(given)
    points += [_random(space, rng, corner=False) for _ in range(count)]
    points += [_random(space, rng, corner=True) for _ in range(count // 3)]
    if isinstance(form, TreeEnsemble):
        edges = _edges(form, rng)
        near = [point for feature, edge in edges for point in _beside(space, rng, feature, edge)]
        met = len(edges)
    elif isinstance(form, Network | Composite | ObliqueTrees):
        near, met = _at_boundary(reading, space, points[-count:])
    else:
        return Conformance(reading.family, 0, 0, 0)
    points = [_held(space, point) for point in (*points, *near)]
    decided = 0
    for point, outcome in zip(points, reading.ask(points), strict=True):
        decided += _agrees(reading, form, point, outcome)
    return Conformance(reading.family, len(points), decided, met)


def _each(rows: Iterable[Any] | None) -> list[Any]:
    if rows is None:
        return []
    rows = as_pandas(rows)
    if hasattr(rows, "iloc"):
        frame: Any = rows
        return [frame.iloc[[position]] for position in range(len(frame))]
    return list(rows)


def _agrees(
    reading: Reading, form: TreeEnsemble | Network | Composite | ObliqueTrees, point: Point, outcome: Fraction
) -> bool:
    """Return whether the form alone decides a point; assert that it then decides as the model."""
    if isinstance(form, Composite | ObliqueTrees) and not form.is_regressor:
        return _joint_agrees(reading, form, point, outcome)
    if isinstance(form, ObliqueTrees) and not form.is_beyond_rounding(
        point, Interval(None, None, 0, None, None), box_at(point)
    ):
        return False
    scores = form.exact_scores(point)
    form = form.trees if isinstance(form, ObliqueTrees) else form
    row = form.space.values_of(point)
    if form.is_regressor:
        scale = divisor(form)
        slack = _rounding(form, point) + 4 * form.unit * abs(scores[0])
        assert abs(scores[0] - outcome * scale) <= slack, (
            f"{reading.family} predicts {float(outcome)!r} for {row}, the form {float(scores[0] / scale)!r}"
        )
        return True
    assert not isinstance(form, Composite)
    outputs = len(scores)
    inside = [
        clearance(scores, Outcomes(frozenset([Fraction(k)])).alternatives(outputs, ties_last=form.ties_last))
        for k in range(max(2, outputs))
    ]
    ahead = max(range(len(inside)), key=lambda k: (inside[k], -k))
    rounding = _rounding(form, point)
    if inside[ahead] < rounding or (inside[ahead] == rounding and rounding > 0):
        return False
    if rounding == 0 and inside[ahead] == 0:
        ahead = winner(scores, ties_last=form.ties_last)
    assert ahead == outcome, (
        f"{reading.family} predicts {reading.label(outcome)!r} for {row}, the form {reading.label(Fraction(ahead))!r}"
    )
    return True


def _joint_agrees(reading: Reading, form: Composite | ObliqueTrees, point: Point, outcome: Fraction) -> bool:
    if not form.is_beyond_rounding(point, Outcomes(frozenset([outcome])), box_at(point)):
        return False
    predicted = Fraction(form.predicted(point))
    assert predicted == outcome, (
        f"{reading.family} predicts {reading.label(outcome)!r} for {form.space.values_of(point)}, the form {reading.label(predicted)!r}"
    )
    return True


def _rounding(form: TreeEnsemble | Network | Composite, point: Point) -> Fraction:
    return form.rounding if isinstance(form, TreeEnsemble) else form.rounding(box_at(point))


# ---- points


def _random(space: FeatureSpace, rng: np.random.Generator, *, corner: bool) -> Point:
    return tuple(_value(feature, rng, corner=corner) for feature in space.values())


def _value(feature: Any, rng: np.random.Generator, *, corner: bool) -> Value:
    if feature.missing and rng.random() < 0.25:
        return None
    draw = float(rng.integers(2)) if corner else rng.random()
    if isinstance(feature, Real):
        return min(feature.low + draw * (feature.high - feature.low), feature.high)
    if isinstance(feature, Integer):
        return min(feature.low + int(draw * (feature.high - feature.low + 1)), feature.high)
    return min(int(draw * len(feature.levels)), len(feature.levels) - 1)


def _edges(form: TreeEnsemble, rng: np.random.Generator) -> list[tuple[int, float]]:
    """Return the thresholds on numeric features."""
    inner = form.left >= 0
    found = sorted(
        {
            (form.columns[column].feature, float(edge))
            for column, edge in zip(form.column[inner], form.edge[inner], strict=True)
            if form.columns[column].table is None and math.isfinite(edge)
        }
    )
    if len(found) > MOST_THRESHOLDS:
        found = [found[k] for k in np.sort(rng.choice(len(found), MOST_THRESHOLDS, replace=False))]
    return found


def _beside(space: FeatureSpace, rng: np.random.Generator, feature: int, edge: float) -> list[Point]:
    """Return a random point moved onto, and beside, a threshold."""
    kind = list(space.values())[feature]
    assert isinstance(kind, Real | Integer)
    if isinstance(kind, Integer):
        near: list[Value] = [math.floor(edge), math.floor(edge) + 1]
    elif kind.is_single:
        near = [edge + n * kind.spacing(edge) for n in (-1, 0, 1)]
    else:
        near = [edge, math.nextafter(edge, math.inf), math.nextafter(edge, -math.inf)]
    base = _random(space, rng, corner=False)
    return [_moved(base, feature, value) for value in near if value is not None and kind.low <= value <= kind.high]


def _held(space: FeatureSpace, point: Point) -> Point:
    """Return a point as its columns hold it."""
    return tuple(
        feature.nearest(value) if isinstance(feature, Real) and value is not None else value
        for feature, value in zip(space.values(), point, strict=True)
    )


def _moved(point: Point, feature: int, value: Value) -> Point:
    return (*point[:feature], value, *point[feature + 1 :])


def _at_boundary(reading: Reading, space: FeatureSpace, points: Sequence[Point]) -> tuple[list[Point], int]:
    """Return points on and beside the places where the real model changes its mind along one real feature."""
    reals = [
        index
        for index, feature in enumerate(space.values())
        if isinstance(feature, Real) and feature.low < feature.high
    ]
    if not reals or reading.is_regressor:
        return [], 0
    features = list(space.values())
    lines = [(point, reals[k % len(reals)]) for k, point in enumerate(points)]
    ends = np.array([[features[j].low, features[j].high] for _, j in lines])  # type: ignore[union-attr]
    codes = [
        reading.ask([_moved(point, j, float(end[side])) for (point, j), end in zip(lines, ends, strict=True)])
        for side in (0, 1)
    ]
    chosen = [k for k in range(len(lines)) if codes[0][k] != codes[1][k]][:40]
    low, high = ends[chosen, 0], ends[chosen, 1]
    for _ in range(80 if chosen else 0):
        middle = low + (high - low) / 2
        asked = reading.ask([_moved(*lines[k], float(value)) for k, value in zip(chosen, middle, strict=True)])
        same = np.array([code == codes[0][k] for k, code in zip(chosen, asked, strict=True)])
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    near = []
    for k, a, b in zip(chosen, low, high, strict=True):
        kind: Any = features[lines[k][1]]
        around = (a, b, *(a + n * kind.spacing(a) for n in (-4096, -64, -7, 7, 64, 4096)))
        near += [_moved(*lines[k], float(value)) for value in around if kind.low <= value <= kind.high]
    return near, len(chosen)
