"""Checking that no nearer row of a linear model or network is robust: copies of the model whose inputs are moved.

The evidence is a list of boxes, which must hold every row nearer than ``lower``. Each has *moves*, ways in which noise can change all its
rows: a number is added to a feature, or it is set to one. A robust row brings the model to the target as it is and after each of them;
that no row of the box nearer than ``lower`` does is a proof of the network lane about all copies of the model in one network, whose
first biases hold the moves. The copies are made here. A move that leads some row of the box out of its noise is refused.

A value is moved in floats. With ρ the most by which that rounds, a row moved by a number a is one of the noise where |a| + ρ is at most the
radius. The goal is widened by how far ρ, and the rounding of the biases to floats, can change the scores.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from mace.certify.boxes import checker as boxes
from mace.certify.boxes.cover import Box, check_cover
from mace.certify.boxes.ranges import Span
from mace.certify.proofs import check_box
from mace.certify.verdict import Progress, Refuted, Unchecked
from mace.constraints.robust import RobustCondition
from mace.distances import NormMetric
from mace.exact import UNIT, Floats, decimal_fraction, float_up
from mace.forms import Network, Stated
from mace.problem import Problem
from mace.space import Feature, Filled, Integer, Point, Real, Value
from mace.space.decimals import decimal_of, is_exact

MOST_COPIED_WEIGHTS = 4_000_000
"""How many weights the copies of a layer may have together."""

WIDER = 1 + 2.0**-20
"""Bounds on rounding are themselves computed in floats."""


@dataclass(frozen=True, slots=True)
class NoiseMove:
    """A change of one feature within the noise: a number is added to it, or (``is_set``) it is set to that number."""

    number: Fraction
    is_set: bool


Moves = dict[int, NoiseMove]
"""By position of the feature; the others stay."""


def check(
    problem: Problem, noise: RobustCondition, lower: Fraction | None, evidence: dict[str, Any], progress: Progress
) -> None:
    """Raise unless it is shown that no plausible point nearer than ``lower`` is in the target with all rows within its noise."""
    form = problem.form
    if not isinstance(form, Network):
        raise Refuted("evidence.proof: the model is not a network")
    if not isinstance(problem.metric, NormMetric):
        raise Refuted("evidence.proof: a proof by moves is about norms")
    if len(form.alternatives(problem.goal)) != 1:
        raise Unchecked("the target is reached in several ways, and a proof by moves is about one")
    entries = evidence["boxes"]
    spans = [boxes.read_box(problem, entry["ranges"]) for entry in entries]
    check_cover(problem, lower, spans)
    for number, (box, entry) in enumerate(zip(spans, entries, strict=True)):
        moves = [_read_moves(problem, noise, box, each) for each in entry["moves"]]
        check_box(number, boxes.inside(with_moves(problem, moves), box), lower, entry["proof"])
        progress((number + 1) / len(spans))


# ---- moves


def _read_moves(problem: Problem, noise: RobustCondition, box: Box, entry: dict[str, Any]) -> Moves:
    """Return a way in which noise can change every row of a box, or raise."""
    found: Moves = {}
    for name, said in entry.items():
        if name not in noise.radii:
            raise Refuted(f"evidence.moves: there is no noise on {name!r:.60}")
        if not isinstance(said, dict) or len(said) != 1 or not said.keys() <= {"by", "at"}:
            raise Refuted(f"evidence.moves: {name!r:.60} is moved 'by' a number or set 'at' one")
        j = problem.space.index(name)
        ((way, number),) = said.items()
        move = NoiseMove(Fraction(float(number)), way == "at")
        _check_move(problem, j, move, noise, box[j])
        found[j] = move
    return found


def _check_move(problem: Problem, j: int, move: NoiseMove, noise: RobustCondition, span: Span | None) -> None:
    """Raise unless the move stays within the noise for every row whose value lies in a span."""
    name, own = problem.space.names[j], problem.factual[j]
    feature, radius = problem.space[name], noise.radii[name]
    assert isinstance(problem.form, Network)
    read = [column for column in problem.form.columns if column.feature == j]
    if not isinstance(feature, Real | Integer) or feature.missing or own is None:
        raise Unchecked(f"{name!r:.60} is no number that is always known, and moves are about these")
    if any(column.table is not None or isinstance(column, Filled) for column in read):
        raise Unchecked(f"the model does not read {name!r:.60} as a plain number")
    if span is not None and (span.levels is not None or span.missing):
        raise Refuted(f"evidence.moves: {name!r:.60} is no range of numbers in a box")
    low, high = _ends(feature, own, span)
    if low > high:
        return
    if move.is_set:
        if not feature.has(float(move.number)):
            raise Refuted(f"evidence.moves: {float(move.number)!r} is no value of {name!r:.60}")
        number = partial(_as_written, feature) if noise.written else Fraction
        if max(abs(number(move.number) - number(low)), abs(number(move.number) - number(high))) > radius:
            raise Refuted(f"evidence.moves: noise does not bring all values of {name!r:.60} in a box to one place")
        return
    step = _step(feature)
    if step is not None and (move.number % step or (not feature.has(own) and low <= own <= high)):
        raise Refuted(f"evidence.moves: {name!r:.60} is not moved from values of its grid by whole steps")
    off = Fraction(0) if step is not None else _rounding(feature, low, high, move)
    if noise.written and not is_exact(feature):
        off += _rounding(feature, low, high, move)
    if abs(move.number) + off > radius:
        raise Refuted(f"evidence.moves: {name!r:.60} is moved farther than the noise")
    first, last = _range(feature)
    if low + move.number < first or high + move.number > last:
        raise Refuted(f"evidence.moves: {name!r:.60} is moved out of its range")


def _as_written(feature: Real | Integer, number: Fraction) -> Fraction:
    return decimal_of(feature, float(number)) if isinstance(feature, Real) else number


def _step(feature: Real | Integer) -> Fraction | None:
    """Return the step of a grid on which sums of steps are exact; ``None`` where there is no grid."""
    if isinstance(feature, Integer):
        return Fraction(feature.step or 1)
    if feature.step is None:
        return None
    if not feature.is_exact_grid or decimal_fraction(feature.step) != feature.step:
        raise Unchecked("values of a grid that floats cannot hold are not moved")
    return Fraction(feature.step)


def _range(feature: Real | Integer) -> tuple[Fraction, Fraction]:
    """Return the least and the greatest value of a feature."""
    high = feature.high if feature.size is None or feature.low == feature.high else feature.value_at(feature.size - 1)
    return Fraction(feature.low), Fraction(high)


def _ends(feature: Real | Integer, own: int | float, span: Span | None) -> tuple[Fraction, Fraction]:
    """Return two numbers between which all values that a feature may take in a span lie: those of its range, and the factual's own."""
    first, last = _range(feature)
    first, last = min(first, Fraction(own)), max(last, Fraction(own))
    if span is None:
        return first, last
    if not span.has_values:
        return Fraction(1), Fraction(0)
    return max(first, Fraction(span.low)), min(last, Fraction(span.high))


def _rounding(feature: Feature, low: Fraction, high: Fraction, move: NoiseMove) -> Fraction:
    """Return more than a value of a range is rounded by where it is moved, in the floats that it is one of."""
    size = max(abs(low), abs(high)) + abs(move.number)
    if not isinstance(feature, Real) or not feature.is_single:
        return 2 * UNIT * size
    info = np.finfo(feature.floats)
    return 2 * UNIT * size + Fraction(1, 2**info.nmant) * size + Fraction(float(info.tiny))


# ---- copies


def with_moves(problem: Problem, moves: Sequence[Moves]) -> Problem:
    """Return the problem of reaching the goal as it is and after each of some moves."""
    form, ask, goal = problem.form, problem.ask, problem.goal
    assert isinstance(form, Network)
    every: list[Moves] = [{}, *moves]
    if any(weight.size * len(every) ** 2 > MOST_COPIED_WEIGHTS for weight in form.weights):
        raise Unchecked(f"{len(every)} copies of the network are too large together")
    features = list(problem.space.values())

    def ask_all(points: Sequence[Point]) -> list[Fraction]:
        rows = [[_moved(point, each, features) for each in every] for point in points]
        return [Fraction(all(goal.accepts(ask([row])[0]) for row in own)) for own in rows]

    stacked, lost = _stacked(form, every, problem)
    outputs = len(form.biases[-1])
    (margins,) = form.alternatives(goal)
    of_copies = tuple(margin.moved(copy * outputs) for copy in range(len(every)) for margin in margins)
    return replace(problem, form=stacked, ask=ask_all, goal=Stated((of_copies,), goal.slack + lost, goal))


def _moved(point: Point, moves: Moves, features: Sequence[object]) -> Point:
    """Return a row moved, in floats."""
    moved: list[Value] = list(point)
    for j, move in moves.items():
        value = point[j]
        assert value is not None
        if isinstance(features[j], Integer):
            moved[j] = int(move.number) if move.is_set else int(value) + int(move.number)
        else:
            moved[j] = float(move.number) if move.is_set else float(value) + float(move.number)
    return tuple(moved)


def _stacked(form: Network, every: Sequence[Moves], problem: Problem) -> tuple[Network, Fraction]:
    """Return the copies of a network as one; and by how much a margin of a copy may differ from that of the network at the moved row."""
    count = len(every)
    copies = [_first_layer(form, moves, problem) for moves in every]
    weights = [np.vstack([copy.weight for copy in copies])]
    weights += [np.asarray(np.kron(np.eye(count), weight), dtype=np.float64) for weight in form.weights[1:]]
    stacked = replace(
        form,
        weights=tuple(weights),
        biases=(np.concatenate([copy.bias for copy in copies]), *(np.tile(bias, count) for bias in form.biases[1:])),
        slopes=tuple(np.tile(slope, count) for slope in form.slopes),
        sizes=(
            np.concatenate([form.magnitudes[0] + copy.size for copy in copies]),
            *(np.tile(size, count) for size in form.magnitudes[1:]),
        ),
        link="none",
    )
    error = np.max([copy.error for copy in copies], axis=0)
    for weight in form.weights[1:]:
        # No unit changes a difference to a greater one.
        error = np.abs(weight) @ error * WIDER
    largest = float(error.max())
    if not math.isfinite(largest):
        raise Unchecked("the moves are too large for the floats of this checker")
    # Two scores make a margin; twice, for what the difference does to the rounding of the layers above.
    return stacked, 4 * Fraction(largest)


@dataclass(frozen=True, slots=True)
class _First:
    """The first layer of a copy: weights without those of features that are set, biases, the size of what was added, and its error."""

    weight: Floats
    bias: Floats
    size: Floats
    error: Floats


def _first_layer(form: Network, moves: Moves, problem: Problem) -> _First:
    weight, bias = form.weights[0].copy(), form.biases[0].copy()
    size, error = np.zeros(len(bias)), np.zeros(len(bias))
    if not moves:
        return _First(weight, bias, size, error)
    columns = [(k, moves[column.feature]) for k, column in enumerate(form.columns) if column.feature in moves]
    for i, own in enumerate(bias):
        exact = sum((Fraction(float(weight[i, k])) * move.number for k, move in columns), Fraction(float(own)))
        bias[i] = float(exact)
        error[i] = float_up(abs(exact - Fraction(float(bias[i]))))
    box = problem.box()
    for k, move in columns:
        j = form.columns[k].feature
        own = problem.factual[j]
        assert own is not None
        ends = min(box[j][0], Fraction(own)), max(box[j][1], Fraction(own))
        each = np.abs(weight[:, k])
        size += each * float_up(abs(move.number))
        if not move.is_set:
            error += each * float_up(_rounding(list(problem.space.values())[j], *ends, move))
        if form.unit != UNIT:
            # The library rounds what it is given; the copy only what is left of it.
            error += each * float_up(2 * form.unit * (abs(move.number) + max(map(abs, ends))))
        if move.is_set:
            weight[:, k] = 0.0
    return _First(weight, bias, size * WIDER, error * WIDER)
