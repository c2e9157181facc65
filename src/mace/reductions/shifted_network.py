"""Several copies of a network as one, the input of each moved by some offset. A point must bring all copies to the goal."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from mace.exact import UNIT, Floats
from mace.forms import Alternatives, Box, Margin, Network, Stated
from mace.forms.scoring import column_values
from mace.problem import Problem
from mace.recent import Recent
from mace.space import Feature, Integer, Point, Real, Value


@dataclass(frozen=True, slots=True)
class Move:
    """What is added to a feature's number; or, where ``is_pinned``, what it is set to."""

    number: Fraction
    is_pinned: bool = False


Moves = tuple[Move, ...]
"""A move of each feature."""

STAY = Move(Fraction(0))

MOST_STACKED = 16
"""The most choices of copies of a network that are kept for the next question."""


def shifted(problem: Problem, moves: Sequence[Moves]) -> Problem:
    """Return a problem about a network whose answers reach the goal after each of these moves.

    A goal of several alternatives makes one of each choice of them for the copies: few copies only then.

    A value is moved in floats and so rounded; what the network's weights make of that rounding widens the goal.
    """
    every = tuple(dict.fromkeys(moves))
    if all(move == STAY for each in every for move in each):
        return problem
    form, ask, goal = problem.form, problem.ask, problem.goal
    assert isinstance(form, Network)
    features = list(problem.space.values())

    def ask_all(points: Sequence[Point]) -> list[Fraction]:
        said = ask([_moved(point, each, features) for point in points for each in every])
        rows = [said[begin : begin + len(every)] for begin in range(0, len(said), len(every))]
        return [Fraction(all(goal.accepts(outcome) for outcome in row)) for row in rows]

    outputs = len(form.biases[-1])
    most = [
        max((abs(m.number) for m in each if not m.is_pinned), default=Fraction(0)) for each in zip(*every, strict=True)
    ]
    box = problem.box()
    wide = tuple((low - more, high + more) for (low, high), more in zip(box, most, strict=True))
    slack = goal.slack + form.rounding(_clipped(wide, box, features)) + _shift_rounding(form, wide)
    of_copies = tuple(
        tuple(margin.moved(copy * outputs) for copy, margins in enumerate(taken) for margin in margins)
        for taken in itertools.product(form.alternatives(goal), repeat=len(every))
    )
    wanted = Stated(of_copies, slack, goal)
    return replace(problem, form=_stacked(form, every), ask=ask_all, goal=wanted)


def _moved(point: Point, moves: Moves, features: Sequence[Feature]) -> Point:
    """Return a point moved, in floats."""
    moved: list[Value] = []
    for value, move, feature in zip(point, moves, features, strict=True):
        if value is None or move == STAY:
            moved.append(value)
        elif isinstance(feature, Integer):
            moved.append(int(move.number if move.is_pinned else value + move.number))
        else:
            assert isinstance(feature, Real)
            moved.append(float(move.number) if move.is_pinned else feature.nearest(float(value) + float(move.number)))
    return tuple(moved)


def _clipped(wide: Box, box: Box, features: Sequence[Feature]) -> Box:
    """Return a box kept to the levels of features that have some."""
    return tuple(
        ends if isinstance(feature, Real | Integer) else whole
        for feature, ends, whole in zip(features, wide, box, strict=True)
    )


_STACKED: weakref.WeakKeyDictionary[Network, Recent[tuple[Moves, ...], Network]] = weakref.WeakKeyDictionary()


def _stacked(form: Network, every: tuple[Moves, ...]) -> Network:
    """Return the copies of a network as one, made once for moves of late."""
    known = _STACKED.setdefault(form, Recent(MOST_STACKED))
    return known.get(every) or known.put(every, _made(form, every))


def _made(form: Network, every: tuple[Moves, ...]) -> Network:
    weights: list[Floats] = []
    biases: list[Floats] = []
    slopes: list[Floats] = []
    sizes: list[Floats] = []
    for layer, (weight, bias) in enumerate(zip(form.weights, form.biases, strict=True)):
        if layer == 0:
            columns = [_columns(form, moves) for moves in every]
            weights.append(np.vstack([weight * stays for _, stays in columns]))
            biases.append(np.concatenate([bias + weight @ add for add, _ in columns]))
            sizes.append(np.concatenate([form.magnitudes[0] + np.abs(weight) @ np.abs(add) for add, _ in columns]))
        else:
            weights.append(np.asarray(np.kron(np.eye(len(every)), weight), dtype=np.float64))
            biases.append(np.tile(bias, len(every)))
            sizes.append(np.tile(form.magnitudes[layer], len(every)))
        if layer < len(form.slopes):
            slopes.append(np.tile(form.slopes[layer], len(every)))
    return replace(
        form, weights=tuple(weights), biases=tuple(biases), slopes=tuple(slopes), sizes=tuple(sizes), link="none"
    )


def _columns(form: Network, moves: Moves) -> tuple[Floats, Floats]:
    """Return what is added to each column, and 0 where its own value no longer counts."""
    each = [STAY if column.table is not None else moves[column.feature] for column in form.columns]
    return np.array([float(move.number) for move in each]), np.array([0.0 if move.is_pinned else 1.0 for move in each])


def _shift_rounding(form: Network, wide: tuple[tuple[Fraction, Fraction], ...]) -> Fraction:
    """Bound how far a margin, of two scores, may be off because inputs and biases were shifted in floats; with a safety factor of 2."""
    ends = [(Fraction(0), Fraction(0)) if column.table is not None else wide[column.feature] for column in form.columns]
    largest = np.array([float(max(abs(low), abs(high))) for low, high in ends])
    features = list(form.space.values())
    unit = 8 * float(UNIT) * (2 + len(largest))
    moved = np.array([4 * _unit(features[column.feature]) for column in form.columns])
    error = np.abs(form.weights[0]) @ (largest * (unit + moved)) + unit * np.abs(form.biases[0])
    for weight in form.weights[1:]:
        error = np.abs(weight) @ error
    return 4 * Fraction(float(error.max()))


def _unit(feature: Feature) -> float:
    """Return the unit roundoff of a feature's own floats where they are narrower than float64; else 0."""
    return 2.0 ** -(1 + np.finfo(feature.floats).nmant) if isinstance(feature, Real) and feature.is_single else 0.0


def gradient(form: Network, margins: Sequence[Margin], point: Point) -> tuple[float, Floats]:
    """Return the least margin at a point, and its slope in each feature's number, in floats."""
    active = column_values(form.columns, [point])[0]
    slope = np.eye(len(active))
    for layer, (weight, bias) in enumerate(zip(form.weights, form.biases, strict=True)):
        active, slope = weight @ active + bias, weight @ slope
        if layer < len(form.slopes):
            bend = np.where(active >= 0, 1.0, form.slopes[layer])
            active, slope = bend * active, bend[:, None] * slope

    def of(values: Floats, margin: Margin) -> Floats:
        ahead = values[margin.plus] if margin.plus is not None else 0.0
        behind = values[margin.minus] if margin.minus is not None else 0.0
        return np.asarray(ahead - behind)

    least = min(margins, key=lambda margin: float(of(active, margin)) + float(margin.shift))
    by_column = of(slope, least)
    found = np.zeros(len(point))
    for column, value in zip(form.columns, by_column, strict=True):
        if column.table is None:
            found[column.feature] += value
    return float(of(active, least)) + float(least.shift), found


# ---- points

Offset = tuple[Fraction, ...]
"""By how much each feature's number is moved; it stays inside of its range."""


def kept_inside(point: Point, offset: Offset, features: Sequence[Feature]) -> Point:
    """Return a point moved, in floats, each value kept to the range of its feature."""
    moved: list[Value] = []
    for value, each, feature in zip(point, offset, features, strict=True):
        if value is None or not each or not isinstance(feature, Real | Integer):
            moved.append(value)
            continue
        low, high = span(feature)
        if isinstance(feature, Integer):
            moved.append(int(min(max(value + each, low), high)))
        else:
            moved.append(min(max(feature.nearest(float(value) + float(each)), float(low)), float(high)))
    return tuple(moved)


def span(feature: Real | Integer) -> tuple[Fraction, Fraction]:
    """Return the least and the greatest value that a feature can take."""
    high = feature.high if feature.size is None else feature.value_at(feature.size - 1)
    return Fraction(feature.low), Fraction(high)


# ---- margins


def float_clearance(scores: Floats, alternatives: Alternatives) -> Floats:
    """Return for rows of scores how far in the goal they are, in floats."""

    def side(output: int | None) -> Floats:
        return np.zeros(len(scores)) if output is None else scores[:, output]

    found = np.full(len(scores), -np.inf)
    for margins in alternatives:
        each = [side(m.plus) - side(m.minus) + float(m.shift) for m in margins]
        found = np.maximum(found, np.min([*each, np.full(len(scores), np.inf)], axis=0))
    return found
