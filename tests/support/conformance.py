"""What every reader must fulfil, on random rows, at the ends of the space, and on both sides of every threshold or decision boundary."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

from mace import FeatureSpace, categorical, integer, ordinal, real
from mace.distances import point_values
from mace.forms import Box, Network, Outcomes, TreeEnsemble, clearance
from mace.language import run
from mace.models import Reading, read
from mace.space import Integer, Point, Real

Raw = Callable[[Any], Any]

SPACE = FeatureSpace(
    {
        "x": real(-3, 3),
        "n": integer(-5, 40_000_000),
        "ord": ordinal(["low", "mid", "high", "top"]),
        "cat": categorical(["a", "b", "c", "d", "e"]),
        "flag": categorical([False, True]),
    }
)
GAPS = SPACE.replace(x=real(-3, 3, missing=True), n=integer(-5, 40_000_000, missing=True))
NUMBERS = FeatureSpace(
    {"x": real(-3, 3, missing=True), "n": integer(-5, 60), "k": categorical([0, 1, 2, 3, 4]), "z": real(-1, 1)}
)
CATEGORIES = FeatureSpace(
    {"x": real(-3, 3, missing=True), "n": integer(-5, 60), "k": categorical([*"pqrst"]), "m": categorical([3, 5, 8])}
)


SCALED = FeatureSpace(
    {
        "x": real(-3, 3),
        "n": integer(-5, 60),
        "ord": ordinal(["low", "mid", "high", "top"]),
        "cat": categorical(["a", "b", "c", "d", "e"]),
        "flag": categorical([False, True]),
        "z": real(0, 0.001),
    }
)
PLAIN = FeatureSpace({"x": real(-3, 3), "n": integer(-5, 60), "k": categorical([0, 1, 2, 3, 4]), "z": real(-100, 1)})


def random_points(space: FeatureSpace, count: int, seed: int) -> list[Point]:
    """Return points all over a space; a third of the values that may be missing are."""
    rng = np.random.default_rng(seed)

    def value(feature: Any) -> Any:
        if feature.missing and rng.random() < 0.3:
            return None
        match feature:
            case Real(low, high):
                return float(rng.uniform(low, high)) if rng.random() < 0.8 else 0.0
            case Integer(low, high):
                return int(rng.integers(low, min(high, 60))) if rng.random() < 0.5 else int(rng.integers(low, high))
            case _:
                return int(rng.integers(feature.size))

    return [tuple(value(feature) for feature in space.values()) for _ in range(count)]


def training(space: FeatureSpace, classes: int | None, *, seed: int = 3, count: int = 400) -> tuple[Any, np.ndarray]:
    """Return rows and labels (numbers where ``classes`` is None) that depend on every feature."""
    points = random_points(space, count, seed)
    frame = space.frame_of(points)
    numbers = np.array([[0.4 if v is None else float(v) for v in point] for point in points])
    score = numbers[:, 0] * 2 + np.log1p(np.abs(numbers[:, 1])) / 3 + np.isin(numbers[:, 2], (1, 3))
    score += 1.5 * np.isin(numbers[:, 3], (0, 2)) + np.array([point[0] is None for point in points])
    if classes is None:
        return frame, score
    return frame, np.searchsorted(np.quantile(score, np.arange(1, classes) / classes), score)


def near_edges(form: TreeEnsemble, seed: int = 5, most: int = 250) -> list[Point]:
    """Return points on, one float and one float32 step beside every threshold of every numeric column."""
    base = random_points(form.space, 60, seed)
    features = list(form.space.values())
    splits = sorted(
        {
            (form.columns[int(c)].feature, float(e))
            for c, e, left, subset in zip(form.column, form.edge, form.left, form.subset, strict=True)
            if left >= 0 and subset < 0 and form.columns[int(c)].table is None
        }
    )
    splits = [(j, edge) for j, edge in splits if features[j].low <= edge <= features[j].high]  # type: ignore[union-attr]
    points = []
    for number, (feature, edge) in enumerate(splits[:: max(1, len(splits) // most)]):
        row = base[number % len(base)]
        whole = isinstance(features[feature], Integer)
        points += [(*row[:feature], value, *row[feature + 1 :]) for value in _beside(edge, whole)]
    return points


def _beside(edge: float, whole: bool) -> list[int | float]:
    if whole:
        return [math.floor(edge), math.ceil(edge), math.floor(edge) + 1, math.ceil(edge) - 1]
    single = np.float32(edge)
    steps = [single, np.nextafter(single, np.float32(np.inf)), np.nextafter(single, np.float32(-np.inf))]
    return [edge, math.nextafter(edge, math.inf), math.nextafter(edge, -math.inf), *map(float, steps)]


def check(model: Any, space: FeatureSpace, raw: Raw | None = None, *, seed: int = 11) -> Reading:
    """Assert that the form says what the real model says, on 300 random rows and beside every threshold.

    ``raw`` takes the reading's own rows and gives the library's sums.
    """
    reading = read(model, space)
    form = reading.form
    assert isinstance(form, TreeEnsemble)
    points = random_points(space, 300, seed) + near_edges(form)
    scores = [form.exact_scores(point) for point in points]
    asked = reading.ask(points)
    if raw is not None:
        _check_sums(form, scores, np.asarray(raw(points), dtype=np.float64).reshape(len(points), -1))
    if form.is_regressor:
        trees = len(form.roots) if form.link == "mean" else 1
        for score, number in zip(scores, asked, strict=True):
            assert abs(score[0] - number * trees) <= form.rounding + 4 * form.unit * abs(score[0])
    else:
        _check_classes(form, points, scores, asked)
        _check_rates(reading, form, points, scores)
    return reading


def _check_sums(form: TreeEnsemble, scores: Sequence[tuple[Fraction, ...]], sums: np.ndarray) -> None:
    for score, row in zip(scores, sums, strict=True):
        for exact, computed in zip(score, row, strict=True):
            assert abs(exact - Fraction(float(computed))) <= form.rounding


def _check_classes(
    form: TreeEnsemble, points: Sequence[Point], scores: Sequence[tuple[Fraction, ...]], asked: Sequence[Fraction]
) -> None:
    decided, program = 0, form.program()
    for point, score, code in zip(points, scores, asked, strict=True):
        goals = [Outcomes(frozenset([Fraction(k)])) for k in range(max(2, form.outputs))]
        inside = [clearance(score, goal.alternatives(form.outputs, ties_last=form.ties_last)) for goal in goals]
        ahead = max(range(len(inside)), key=lambda k: inside[k])
        if inside[ahead] <= form.rounding:
            continue
        decided += 1
        assert ahead == code, (point, score)
        if decided <= 25:
            assert run(program, point_values(form.space, point)) == code
    assert decided > 0.9 * len(points)


def _check_rates(
    reading: Reading, form: TreeEnsemble, points: Sequence[Point], scores: Sequence[tuple[Fraction, ...]]
) -> None:
    if form.link == "none":
        return
    assert reading.rate is not None
    for code in range(len(reading.classes or ())):
        for score, rate in zip(scores, reading.rate(points, code), strict=True):
            if form.link == "mean":
                expected = float(score[code] / len(form.roots))
            else:
                expected = 1 / (1 + math.exp(-float(score[0]))) if code else 1 / (1 + math.exp(float(score[0])))
            assert abs(expected - rate) <= 64 * float(form.unit)


# ---- networks


def check_network(
    model: Any, space: FeatureSpace, raw: Raw | None = None, *, seed: int = 11, rows: int = 300
) -> Reading:
    """Assert that a network's form says what the real model says, within its own bound on rounding at each single point.

    The points are random ones, ends of the space, and points on and a few floats beside the boundary between two outcomes. ``raw``
    takes the points and gives the library's own scores.
    """
    reading = read(model, space)
    form = reading.form
    assert isinstance(form, Network)
    spread = random_points(space, rows, seed) + end_points(space, 40, seed)
    points = spread + ([] if form.is_regressor else near_boundary(reading, space, seed))
    scores = [form.exact_scores(point) for point in points]
    bounds = [form.rounding(at(point)) for point in points]
    asked = reading.ask(points)
    if raw is not None:
        shared = 1 if form.is_binary else 2
        computed = np.asarray(raw(points), dtype=np.float64).reshape(len(points), -1)
        for score, bound, row in zip(scores, bounds, computed, strict=True):
            for exact, number in zip(score, row, strict=True):
                assert abs(exact - Fraction(float(number))) <= (bound - form.squash) / shared
    if form.is_regressor:
        assert reading.classes is None
        for score, bound, number in zip(scores, bounds, asked, strict=True):
            assert abs(score[0] - number) <= bound
        for point, score in list(zip(points, scores, strict=True))[::30]:
            assert run(form.program(), point_values(space, point)) == score[0]
    else:
        _check_decisions(form, points, scores, bounds, asked, random=rows)
        _check_chances(reading, form, points, scores, bounds)
    return reading


def _check_decisions(
    form: Network,
    points: Sequence[Point],
    scores: Sequence[tuple[Fraction, ...]],
    bounds: Sequence[Fraction],
    asked: Sequence[Fraction],
    *,
    random: int,
) -> None:
    outputs, program = len(form.biases[-1]), form.program()
    goals = [Outcomes(frozenset([Fraction(k)])) for k in range(max(2, outputs))]
    alternatives = [goal.alternatives(outputs, ties_last=form.ties_last) for goal in goals]
    decided = 0
    for number, (point, score, bound, code) in enumerate(zip(points, scores, bounds, asked, strict=True)):
        inside = [clearance(score, alternative) for alternative in alternatives]
        ahead = max(range(len(inside)), key=lambda k: inside[k])
        if inside[ahead] <= bound:
            continue
        decided += number < random
        assert ahead == code, (point, score)
        if number % 10 == 0:
            assert run(program, point_values(form.space, point)) == code
    assert decided > 0.95 * random


def _check_chances(
    reading: Reading,
    form: Network,
    points: Sequence[Point],
    scores: Sequence[tuple[Fraction, ...]],
    bounds: Sequence[Fraction],
) -> None:
    if form.link == "none":
        return
    assert reading.rate is not None
    for code in range(2):
        for score, bound, rate in zip(scores, bounds, reading.rate(points, code), strict=True):
            side = float(score[0]) * (1 if code else -1)
            expected = (np.clip(side, -1, 1) + 1) / 2 if form.link == "clip" else 1 / (1 + math.exp(-max(side, -700)))
            assert abs(expected - rate) <= 16 * float(form.unit) + float(bound) * (0.5 if form.link == "clip" else 0.25)


def at(point: Point) -> Box:
    """Return the box that holds one point."""
    return tuple((Fraction(value), Fraction(value)) for value in point)  # type: ignore[arg-type]


def end_points(space: FeatureSpace, count: int, seed: int) -> list[Point]:
    """Return random corners of a space."""
    rng = np.random.default_rng(seed)
    ends = [
        (0, len(feature.levels) - 1) if hasattr(feature, "levels") else (feature.low, feature.high)
        for feature in space.values()
    ]
    return [tuple(pair[int(rng.integers(2))] for pair in ends) for _ in range(count)]


def near_boundary(reading: Reading, space: FeatureSpace, seed: int, count: int = 25) -> list[Point]:
    """Return points on and beside the place where the real model changes its mind along one real feature."""
    features = list(space.values())
    reals = [index for index, feature in enumerate(features) if isinstance(feature, Real)]
    rng = np.random.default_rng(seed)
    ends = []
    for point in random_points(space, 12 * count, seed + 1):
        index = reals[int(rng.integers(len(reals)))]
        ends.append((point, index, float(features[index].low), float(features[index].high)))  # type: ignore[union-attr]
    starts = reading.ask([_moved(point, index, low) for point, index, low, _ in ends])
    stops = reading.ask([_moved(point, index, high) for point, index, _, high in ends])
    chosen = [(end, code) for end, code, other in zip(ends, starts, stops, strict=True) if code != other][:count]
    assert chosen, "no boundary was met"
    found: list[Point] = []
    for point, index, low, high in _narrowed(reading, chosen):
        for edge in (low, high):
            near = [*_beside(edge, whole=False), *(edge + k * math.ulp(edge) for k in (-64, -7, 7, 64, 4096))]
            kept = [value for value in near if features[index].low <= value <= features[index].high]  # type: ignore[union-attr]
            found += [_moved(point, index, value) for value in kept]
    return found


def _moved(point: Point, index: int, value: float) -> Point:
    return (*point[:index], value, *point[index + 1 :])


End = tuple[Point, int, float, float]
"""A point, one of its features, and two values of that feature with different outcomes."""


def _narrowed(reading: Reading, chosen: Sequence[tuple[End, Fraction]]) -> list[End]:
    """Return the same with the two values next to each other, all bisected together."""
    ends, codes = [end for end, _ in chosen], [code for _, code in chosen]
    for _ in range(75):
        middles = [(low + high) / 2 for _, _, low, high in ends]
        asked = reading.ask([_moved(end[0], end[1], middle) for end, middle in zip(ends, middles, strict=True)])
        ends = [
            (point, index, middle, high) if code == now else (point, index, low, middle)
            for (point, index, low, high), middle, code, now in zip(ends, middles, codes, asked, strict=True)
        ]
    return ends


def same(one: Reading, other: Reading) -> None:
    """Assert that two readings have the same form, array by array, and the same classes."""
    first, second = one.form, other.form
    assert isinstance(first, TreeEnsemble)
    assert isinstance(second, TreeEnsemble)
    for name in ("roots", "column", "edge", "left", "right", "missing_left", "value", "base", "subset"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name), name)
    assert [levels.tolist() for levels in first.subsets] == [levels.tolist() for levels in second.subsets]
    settings = ("unit", "squash", "ties_last", "link", "is_regressor", "fixed_order")
    assert [getattr(first, name) for name in settings] == [getattr(second, name) for name in settings]
    assert one.classes == other.classes


def as_categories(frame: pd.DataFrame, space: FeatureSpace) -> pd.DataFrame:
    """Return a frame whose levels are pandas categories."""
    leveled = [name for name, feature in space.items() if hasattr(feature, "levels")]
    return frame.astype(dict.fromkeys(leveled, "category"))
