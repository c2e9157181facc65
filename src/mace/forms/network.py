"""Linear models and ReLU networks as arrays."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from mace.clock import check
from mace.exact import UNIT, Floats, gamma
from mace.forms.decision import Alternatives, Goal, clearance, reaches
from mace.forms.form import RESULT, RESULT_PREFIX, Box, Form
from mace.forms.scoring import column_values, outcome_command, positions_guard, score_names
from mace.language import characteristic, syntax
from mace.space import RESERVED, Column, FeatureSpace, Filled, Point

UNDERFLOW, UNDERFLOW_SINGLE = 1e-300, 1e-36
"""More than one operation of float64 or float32 can lose by underflow."""

SQUASH_UNITS = 32
"""How far apart two scores must be at most, in units of roundoff, for a rounded sigmoid or softmax to confuse them (exp is good to a few
ulps)."""


@dataclass(frozen=True, eq=False)
class Network(Form):
    """Layers of weights with units between them that bend at 0; the class with the greatest score wins, the first of equals.

    Without a hidden layer it is a linear model.

    Attributes
    ----------
    space, columns
        The features, and what each column reads.
    weights : tuple of float arrays, outputs x inputs
        One a layer; the last gives a single score (binary: above 0 is the second class) or one a class.
    biases : tuple of float arrays
        One a layer.
    slopes : tuple of float arrays
        One a hidden layer: what each unit multiplies a number below 0 with, from 0 (ReLU) to 1 (it lets everything through).
    sizes : tuple of float arrays, optional
        What counts as |bias| in the bound on rounding, where the library computes a layer in more than one step.
    steps : int
        How many roundings a layer has in addition to those of its inner product and its bias.
    unit : Fraction
        The unit roundoff of the library's arithmetic; above float64's, the inputs are rounded too.
    squash : Fraction
        How far apart two scores must be at most for the library's rounded sigmoid or softmax to confuse them; 0 where it compares scores.
    ties_last : bool
        Whether a single score of exactly 0 is the second class.
    link : str
        How a score becomes the number that the model reports: ``"none"`` (no bound can be put on it), ``"identity"``, ``"sigmoid"``, or
        ``"clip"`` ((clip(score, -1, 1) + 1) / 2).
    is_regressor : bool
        Whether the score is the outcome.
    """

    space: FeatureSpace
    columns: tuple[Column, ...]
    weights: tuple[Floats, ...]
    biases: tuple[Floats, ...]
    slopes: tuple[Floats, ...] = ()
    sizes: tuple[Floats, ...] | None = None
    steps: int = 0
    unit: Fraction = UNIT
    squash: Fraction = Fraction(0)
    ties_last: bool = False
    link: str = "none"
    is_regressor: bool = False

    def __post_init__(self) -> None:
        assert len(self.slopes) == len(self.weights) - 1

    @property
    def is_binary(self) -> bool:
        """Whether a single score decides."""
        return len(self.biases[-1]) == 1

    @property
    def magnitudes(self) -> tuple[Floats, ...]:
        """The ``sizes``; without them, those of the biases."""
        return self.sizes if self.sizes is not None else tuple(np.abs(bias) for bias in self.biases)

    def rescaled(self, factor: Any, shift: Any, *, steps: int, **settings: Any) -> Network:
        """Return the network with the scores factor·score + shift, by ``steps`` more roundings; ``settings`` are other fields to change."""
        factor, shift = np.asarray(factor), np.asarray(shift)
        return replace(
            self,
            weights=(*self.weights[:-1], self.weights[-1] * factor.reshape(-1, 1)),
            biases=(*self.biases[:-1], self.biases[-1] * factor + shift),
            sizes=(*self.magnitudes[:-1], self.magnitudes[-1] * np.abs(factor) + np.abs(shift)),
            steps=self.steps + steps,
            **settings,
        )

    def rounding(self, box: Box) -> Fraction:
        """Return the most by which rounding may change the difference of two scores for inputs in ``box``.

        With e the error that has come in and h the exact activation, a layer of n inputs computes W(h + e) + b with an error of at
        most |W| e + γ_{n+2} (|W| (|h| + e) + |b|), in any order of summation, fused or not; a unit that multiplies adds one rounding.
        Columns are exact in float64 and lose one rounding in float32. The bound itself is computed in floats and widened by 2^-20.
        """
        worst = Fraction(float(self.errors(box).max())) * (1 + Fraction(1, 2**20))
        return (1 if self.is_binary else 2) * worst + self.squash

    def errors(self, box: Box) -> Floats:
        """Return by how much each score, as it is computed, may differ from the exact one for inputs in ``box``."""
        largest = np.array([max(abs(float(low)), abs(float(high))) for low, high in self._column_box(box)])
        found: Floats = self._errors(largest[:, None])[:, 0]
        return found

    def errors_at(self, columns: Floats) -> Floats:
        """Return the same for rows of columns, rows x outputs."""
        return self._errors(np.abs(columns).T).T

    def _errors(self, largest: Floats) -> Floats:
        """Return the errors of columns of which these are the absolute values, a row a column."""
        error = np.zeros_like(largest) if self.unit == UNIT else float(self.unit) * largest
        tiny = UNDERFLOW if self.unit == UNIT else UNDERFLOW_SINGLE
        for weight, size in zip(self.weights, self.magnitudes, strict=True):
            relative = float(gamma(weight.shape[1] + 3 + self.steps, self.unit))
            through = np.abs(weight) @ error
            largest = np.abs(weight) @ largest + size[:, None]
            error = through + relative * (largest + through) + tiny * (1 + weight.shape[1])
        return error * (1 + 2.0**-20)

    def score_bounds(self, box: Box) -> tuple[Floats, Floats]:
        """Return numbers that no score is below, or above, for inputs in ``box``: intervals, layer by layer, widened for their rounding."""
        ends = np.array(self._column_box(box), dtype=np.float64).reshape(-1, 2)
        low, high = ends[:, 0], ends[:, 1]
        for layer, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            if layer:
                slope = self.slopes[layer - 1]
                low, high = np.maximum(low, slope * low), np.maximum(high, slope * high)
            up, down = np.maximum(weight, 0), np.minimum(weight, 0)
            size = np.abs(weight) @ np.maximum(np.abs(low), np.abs(high)) + np.abs(bias)
            room = 8 * (weight.shape[1] + 8) * float(UNIT) * size + UNDERFLOW
            low, high = up @ low + down @ high + bias - room, up @ high + down @ low + bias + room
        return low, high

    def _column_box(self, box: Box) -> list[tuple[float, float]]:
        bounds = []
        for column in self.columns:
            low, high = box[column.feature]
            if column.table is not None:
                reachable = column.table[int(low) : int(high) + 1]
                bounds.append((min(reachable), max(reachable)))
            elif isinstance(column, Filled):
                known = (0.0, 0.0) if column.is_flag else (float(low), float(high))
                bounds.append((min(known[0], column.missing), max(known[1], column.missing)))
            else:
                bounds.append((float(low), float(high)))
        return bounds

    # ---- programs and formulas

    def program(self) -> syntax.Program:
        """Return the network as assignments, one a unit, and the choice of the class."""
        outcome = outcome_command(self._names, is_regressor=self.is_regressor, ties_last=self.ties_last)
        return syntax.Program(self.space.names, syntax.sequence([self._layers(), outcome]))

    def possible(self, goal: Goal, box: Box) -> syntax.Guard:
        """Return ``goal`` over the scores, widened by the rounding over ``box``."""
        return reaches(self.scores(goal), self.alternatives(goal), self.rounding(box) + goal.slack)

    def certain(self, goal: Goal, box: Box) -> syntax.Guard:
        """Return ``goal`` over the scores, narrowed by four times the rounding over ``box``.

        Four times, so that a point stays inside when its exact coordinates are rounded to floats.
        """
        return reaches(self.scores(goal), self.alternatives(goal), -4 * (self.rounding(box) + goal.slack))

    def is_beyond_rounding(self, point: Point, goal: Goal, box: Box) -> bool:
        """Return whether the exact scores are farther apart than rounding can move them."""
        return abs(clearance(self.exact_scores(point), self.alternatives(goal))) > self.rounding(box) + goal.slack

    def alternatives(self, goal: Goal) -> Alternatives:
        """Return a goal as alternatives, of each of which all margins must be reached."""
        return goal.alternatives(len(self.biases[-1]), ties_last=self.ties_last)

    def definitions(self, goal: Goal) -> syntax.Guard:
        """Return the characteristic formula of the layers."""
        return self._formula

    @cached_property
    def _formula(self) -> syntax.Guard:
        program = syntax.Program(self.space.names, syntax.sequence([self._layers(), syntax.Return(syntax.ZERO)]))
        return characteristic(program, result=RESULT, prefix=RESULT_PREFIX)

    def scores(self, goal: Goal) -> tuple[syntax.Expression, ...]:
        """Return the scores as variables of the definitions."""
        return tuple(syntax.Variable(RESULT_PREFIX + name) for name in self._names)

    def computed(self, goal: Goal) -> tuple[syntax.Command, tuple[syntax.Expression, ...]]:
        """Return the commands that compute the scores, and the scores in their variables."""
        return self._layers(), tuple(syntax.Variable(name) for name in self._names)

    @property
    def _names(self) -> tuple[str, ...]:
        return score_names(len(self.biases[-1]))

    def _layers(self) -> syntax.Command:
        commands = [_fill(self.space, k, column) for k, column in enumerate(self.columns) if isinstance(column, Filled)]
        inputs = [self._column_expression(k, column) for k, column in enumerate(self.columns)]
        last = len(self.weights) - 1
        for layer, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            names = [f"{RESERVED}z_{layer}_{unit}" for unit in range(len(bias))] if layer < last else list(self._names)
            commands += [
                syntax.Assign(name, affine(row, inputs, float(shift)))
                for name, row, shift in zip(names, weight, bias, strict=True)
            ]
            if layer < last:
                inputs = []
                for unit, slope in enumerate(self.slopes[layer]):
                    active = names[unit] if slope == 1 else f"{RESERVED}h_{layer}_{unit}"
                    if slope != 1:
                        commands.append(_bend(names[unit], float(slope), active))
                    inputs.append(syntax.Variable(active))
        return syntax.sequence(commands)

    def _column_expression(self, k: int, column: Column) -> syntax.Expression:
        name = self.space.names[column.feature]
        if isinstance(column, Filled):
            return syntax.Variable(_filled_name(k))
        if column.table is None:
            return syntax.Variable(name)
        values = sorted(set(column.table))
        if values == [0.0, 1.0]:
            return syntax.Indicator(positions_guard(name, [value == 1.0 for value in column.table]))
        if column.table == tuple(float(code) for code in range(len(column.table))):
            return syntax.Variable(name)
        return affine(
            np.array(values),
            [syntax.Indicator(positions_guard(name, [entry == value for entry in column.table])) for value in values],
            0.0,
        )

    # ---- evaluation

    def float_scores(self, columns: Floats) -> Floats:
        """Return the scores (rows x outputs) of rows of columns, in floats: nothing may rest on their last bits."""
        active = columns.T
        for layer, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            if layer:
                active = np.where(active >= 0, active, self.slopes[layer - 1][:, None] * active)
            active = weight @ active + bias[:, None]
        return active.T

    def exact_scores(self, point: Point) -> tuple[Fraction, ...]:
        """Return the scores in exact arithmetic."""
        active = [Fraction(float(value)) for value in column_values(self.columns, [point])[0]]
        for layer, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            if layer:
                bends = zip(active, self.slopes[layer - 1], strict=True)
                active = [value if value >= 0 else Fraction(float(slope)) * value for value, slope in bends]
            active = [
                sum((Fraction(float(w)) * h for w, h in zip(row, active, strict=True)), Fraction(float(shift)))
                for row, shift in zip(weight, bias, strict=True)
            ]
        return tuple(active)


def affine(weights: Floats, inputs: list[syntax.Expression], shift: float) -> syntax.Expression:
    """Return the expression Σ w·x + shift, without the terms whose weight is 0."""
    check()
    terms: list[syntax.Expression] = [
        syntax.Binary("*", syntax.constant(float(weight)), term)
        for weight, term in zip(weights, inputs, strict=True)
        if weight != 0
    ]
    return syntax.total([*terms, syntax.Constant(Fraction(shift))] if shift or not terms else terms)


def _filled_name(k: int) -> str:
    return f"{RESERVED}filled_{k}"


def _fill(space: FeatureSpace, k: int, column: Filled) -> syntax.Command:
    """Return the assignment of a column: of a number or 0, or of its replacement where it is missing."""
    name, filled = space.names[column.feature], _filled_name(k)
    known = syntax.ZERO if column.is_flag else syntax.Variable(name)
    return syntax.If(
        syntax.Missing(name), syntax.Assign(filled, syntax.constant(column.missing)), syntax.Assign(filled, known)
    )


def _bend(source: str, slope: float, name: str) -> syntax.Command:
    below = syntax.ZERO if slope == 0 else syntax.Binary("*", syntax.constant(slope), syntax.Variable(source))
    return syntax.If(
        syntax.Compare(">=", syntax.Variable(source), syntax.ZERO),
        syntax.Assign(name, syntax.Variable(source)),
        syntax.Assign(name, below),
    )
