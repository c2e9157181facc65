"""What one model of a composite adds to its outputs: weighted scores, a vote, or a score that went through a curve.

Each part says it four times: as commands of a program, as a formula, as an exact number, and with a bound on its rounding error.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from mace.exact import Floats
from mace.forms.decision import Alternatives, Outcomes, clearance, reaches, winner
from mace.forms.form import Box
from mace.forms.network import Network
from mace.forms.normalised import Normalised
from mace.forms.polyline import Polyline, sigmoid
from mace.forms.trees import TreeEnsemble
from mace.language import syntax
from mace.space import Point

Scored = Network | TreeEnsemble
Expressions = tuple[syntax.Expression, ...]

SIGMOID = 64
"""In units of roundoff of 1: the error of a computed probability, in addition to what the error of its score makes of it."""


@dataclass(frozen=True, eq=False)
class Weighted:
    """A model whose scores are added: ``factors`` (outputs x scores) times its scores."""

    form: Scored
    factors: Floats

    def commands(self, scores: Expressions, name: str) -> tuple[syntax.Command, list[syntax.Expression]]:
        """Return the commands that compute what is added, whose variables begin with ``name``, and that, one expression an output."""
        return syntax.Skip(), [
            syntax.total([_times(factor, score) for factor, score in zip(row, scores, strict=True) if factor])
            for row in self.factors
        ]

    def formula(
        self, scores: Expressions, name: str, box: Box, widen: int
    ) -> tuple[syntax.Guard, list[syntax.Expression]]:
        """Return a guard on what is added in ``box``, and that; a vote may differ by ``widen`` times its model's rounding."""
        return syntax.TRUE, self.commands(scores, name)[1]

    def error(self, box: Box) -> tuple[Fraction, Fraction]:
        """Return by how much rounding may change what is added to an output, and how large that may be."""
        weight = Fraction(float(np.abs(self.factors).sum(axis=1).max()))
        low, high = self.form.score_bounds(box)
        largest = Fraction(float(max(np.abs(low).max(), np.abs(high).max())))
        return weight * (_rounding(self.form, box) + 8 * self.form.unit * largest), weight * largest

    def contribution(self, point: Point) -> list[Fraction]:
        """Return what is added at a point, exactly."""
        scores = self.form.exact_scores(point)
        return [
            sum((Fraction(float(f)) * score for f, score in zip(row, scores, strict=True) if f), Fraction(0))
            for row in self.factors
        ]


@dataclass(frozen=True, eq=False)
class Voting:
    """A model that votes: the class that it predicts adds its row of ``added`` (classes x outputs)."""

    form: Scored
    added: Floats

    def commands(self, scores: Expressions, name: str) -> tuple[syntax.Command, list[syntax.Expression]]:
        """Return the commands that compute the vote, and what it adds, as :meth:`Weighted.commands` does."""
        choice, last = syntax.Variable(f"{name} votes for"), max(2, _outputs(self.form)) - 1
        command: syntax.Command = syntax.Assign(choice.name, syntax.constant(last))
        for c in reversed(range(last)):
            ahead = reaches(scores, self._wins(c), Fraction(0))
            command = syntax.If(ahead, syntax.Assign(choice.name, syntax.constant(c)), command)
        is_voted = [syntax.Indicator(syntax.Compare("==", choice, syntax.constant(c))) for c in range(len(self.added))]
        return command, [
            syntax.total([_times(value, voted) for value, voted in zip(column, is_voted, strict=True) if value])
            for column in self.added.T
        ]

    def formula(
        self, scores: Expressions, name: str, box: Box, widen: int
    ) -> tuple[syntax.Guard, list[syntax.Expression]]:
        """Return that the model votes for some class that it may predict, and what the vote adds."""
        votes: list[syntax.Expression] = [syntax.Variable(f"{name} votes {k}") for k in range(self.added.shape[1])]
        slack = widen * self._own_rounding(box)
        cases = [
            [
                reaches(scores, self._wins(c), slack),
                *(
                    syntax.Compare("==", vote, syntax.constant(float(value)))
                    for vote, value in zip(votes, row, strict=True)
                ),
            ]
            for c, row in enumerate(self.added)
        ]
        return syntax.disjunction(map(syntax.conjunction, cases)), votes

    def error(self, box: Box) -> tuple[Fraction, Fraction]:
        """Return 0, since a vote is exact, and how much it may add."""
        return Fraction(0), Fraction(float(np.abs(self.added).max()))

    def contribution(self, point: Point) -> list[Fraction]:
        """Return what the vote adds at a point."""
        return [Fraction(float(value)) for value in self.added[self._predicted(self.form.exact_scores(point))]]

    def is_sure(self, point: Point, box: Box) -> bool:
        """Return whether the vote is farther from changing at a point than rounding in ``box`` can move its scores."""
        band = self._own_rounding(box)
        scores = self.form.exact_scores(point)
        return band == 0 or clearance(scores, self._wins(self._predicted(scores))) > band

    def _wins(self, c: int) -> Alternatives:
        return Outcomes(frozenset([Fraction(c)])).alternatives(_outputs(self.form), ties_last=self.form.ties_last)

    def _predicted(self, scores: tuple[Fraction, ...]) -> int:
        return winner(scores, ties_last=self.form.ties_last)

    def _own_rounding(self, box: Box) -> Fraction:
        form = self.form
        return form.rounding(box) if isinstance(form, Network) else form.band(Outcomes(frozenset([Fraction(0)])))


@dataclass(frozen=True, eq=False)
class Curved:
    """A model of one score that goes through a curve before it is multiplied by ``factors`` (one an output) and added.

    ``curve`` is ``None`` for the sigmoid, the one curve that is not piecewise linear.
    """

    form: Scored
    curve: Polyline | None
    factors: Floats

    def commands(self, scores: Expressions, name: str) -> tuple[syntax.Command, list[syntax.Expression]]:
        """Return the commands that compute the height of the curve, and what is added, as :meth:`Weighted.commands` does."""
        assert self.curve is not None, "a sigmoid has no program"
        height = syntax.Variable(f"{name} curved")
        *inner, last = self.curve.pieces
        command: syntax.Command = syntax.Assign(height.name, _line(last.slope, scores[0], last.shift))
        for piece in reversed(inner):
            value = syntax.Assign(height.name, _line(piece.slope, scores[0], piece.shift))
            before = syntax.Compare("<=", scores[0], syntax.Constant(piece.high or Fraction(0)))
            command = syntax.If(before, value, command)
        return command, [_times(factor, height) for factor in self.factors]

    def formula(
        self, scores: Expressions, name: str, box: Box, widen: int
    ) -> tuple[syntax.Guard, list[syntax.Expression]]:
        """Return that a point lies on the curve, and what its height adds."""
        assert self.curve is not None, "a sigmoid has no formula"
        z, height = scores[0], syntax.Variable(f"{name} curved")
        cases = []
        for piece in self.curve.pieces:
            at_height = syntax.Compare("==", height, _line(piece.slope, z, piece.shift))
            cases.append(syntax.conjunction([at_height, syntax.between(z, piece.low, piece.high)]))
        return syntax.disjunction(cases), [_times(factor, height) for factor in self.factors]

    def error(self, box: Box) -> tuple[Fraction, Fraction]:
        """Return by how much rounding may change what is added to an output, and how large that may be."""
        weight = Fraction(float(np.abs(self.factors).max()))
        slope = Fraction(1, 4) if self.curve is None else self.curve.steepest
        greatest = Fraction(1) if self.curve is None else Fraction(self.curve.greatest)
        own = slope * _rounding(self.form, box) + SIGMOID * self.form.unit * (1 + greatest)
        return weight * own, weight * greatest

    def contribution(self, point: Point) -> list[Fraction]:
        """Return what is added at a point; exactly, but for a sigmoid, which is computed in floats."""
        score = self.form.exact_scores(point)[0]
        height = Fraction(sigmoid(float(score))) if self.curve is None else self.curve.value(score)
        return [Fraction(float(factor)) * height for factor in self.factors]


Part = Weighted | Voting | Curved | Normalised


def _outputs(form: Scored) -> int:
    return len(form.biases[-1]) if isinstance(form, Network) else form.outputs


def _rounding(form: Scored, box: Box) -> Fraction:
    return form.rounding(box) if isinstance(form, Network) else form.rounding


def _times(factor: float, expression: syntax.Expression) -> syntax.Expression:
    return syntax.Binary("*", syntax.constant(float(factor)), expression)


def _line(slope: Fraction, z: syntax.Expression, shift: Fraction) -> syntax.Expression:
    level = syntax.Constant(shift)
    return syntax.Binary("+", syntax.Binary("*", syntax.Constant(slope), z), level) if slope else level
