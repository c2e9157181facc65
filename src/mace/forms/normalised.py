"""Probabilities that are divided by their sum: calibrations of several classes, and softmaxes.

A model gives one number a class. These may go through a softmax; then each goes through the calibration of its class, and what comes out
is divided by its sum (where that is 0, every class has the same share). Each probability rises with its own class's number and falls with
the others', but is not piecewise linear: no formula says it.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from mace.errors import UnsupportedModel
from mace.exact import Floats, gamma
from mace.forms.form import Box
from mace.forms.network import Network
from mace.forms.polyline import Polyline
from mace.forms.reach import scores_in
from mace.forms.trees import TreeEnsemble
from mace.language import syntax
from mace.space import Point

ROUNDINGS_OF_A_QUOTIENT = 64
"""What a softmax, a sigmoid, an interpolation or a quotient of some numbers is off at most, in units of roundoff of itself."""

ANY_CHANCE = Fraction(2)
"""How far probabilities may be off where nothing is known of them: more than any two differ."""

EXPONENTS = 700.0
"""Exponentials of larger numbers are taken as these."""


@dataclass(frozen=True, slots=True)
class Sigmoid:
    """The calibration ``sigmoid(slope·x + shift)``."""

    slope: float
    shift: float


@dataclass(frozen=True, eq=False)
class Normalised:
    """A model whose numbers, one a class, become probabilities that are multiplied by ``factors`` (outputs x classes) and added.

    Attributes
    ----------
    form : Network or TreeEnsemble
        The model, with a score for each class.
    is_softmax : bool
        Whether the scores go through a softmax first.
    curves : tuple of Sigmoid, or of Polyline
        The calibration of each class, all of one kind; empty where the softmax is all.
    factors : float array, outputs x classes
        What the probabilities are multiplied by.
    """

    form: Network | TreeEnsemble
    is_softmax: bool
    curves: tuple[Sigmoid | Polyline, ...]
    factors: Floats

    def __post_init__(self) -> None:
        assert self.is_softmax or self.curves

    # ---- evaluation

    def chances(self, scores: Floats) -> Floats:
        """Return the probabilities of rows of scores, rows x classes, in floats."""
        numbers = softmax(scores) if self.is_softmax else scores
        if not self.curves:
            return numbers
        heights = np.column_stack([height_of(curve, numbers[:, k]) for k, curve in enumerate(self.curves)])
        total = heights.sum(axis=1, keepdims=True)
        made: Floats = np.divide(heights, total, out=np.full_like(heights, 1 / heights.shape[1]), where=total > 0)
        return made

    def contribution(self, point: Point) -> list[Fraction]:
        """Return what is added at a point, computed in floats."""
        scores = np.array([[float(score) for score in self.form.exact_scores(point)]])
        return [Fraction(float(added)) for added in self.factors @ self.chances(scores)[0]]

    # ---- rounding

    def error(self, box: Box) -> tuple[Fraction, Fraction]:
        """Return by how much rounding may change what is added to an output, and how large that may be."""
        weight = Fraction(float(np.abs(self.factors).max()))
        return weight * self._off(box), weight

    def _off(self, box: Box) -> Fraction:
        """Return by how much the probabilities may be off, added up over the classes.

        An error e of the scores makes a softmax wrong by a factor of at most exp(2e), and a sigmoid's logarithm has a slope of at most 1.
        What a polyline is off counts as a share of the least sum that it may be divided by.
        """
        form, unit, classes = self.form, self.form.unit, self.factors.shape[1]
        rounded: Fraction = ROUNDINGS_OF_A_QUOTIENT * (classes + 2) * unit
        wrong: Fraction = form.rounding(box) if isinstance(form, Network) else form.rounding
        if self.is_softmax:
            wrong = 3 * wrong + rounded
        if wrong > Fraction(1, 100):
            return ANY_CHANCE
        if not self.curves:
            return wrong + rounded
        low, high = self.numbers_in(box)
        if isinstance(self.curves[0], Sigmoid):
            largest = np.maximum(np.abs(low), np.abs(high))
            moved = max(
                abs(Fraction(each.slope)) * (wrong + 8 * unit * Fraction(float(x)))
                + 8 * unit * abs(Fraction(each.shift))
                for each, x in zip(self._sigmoids, largest, strict=True)
            )
            return ANY_CHANCE if moved > Fraction(1, 100) else rounded + 3 * moved
        each_off = [line.steepest * wrong + rounded * (1 + Fraction(line.greatest)) for line in self._polylines]
        room = float(wrong) * (1 + 2.0**-20)
        ends = zip(self._polylines, low - room, high + room, strict=True)
        pairs = [(line.value(Fraction(float(a))), line.value(Fraction(float(b)))) for line, a, b in ends]
        if all(first == last == 0 for first, last in pairs):
            return rounded
        least = sum((min(pair) for pair in pairs), Fraction(0)) - sum(each_off, Fraction(0))
        return min(ANY_CHANCE, 2 * sum(each_off, Fraction(0)) / least + rounded) if least > 0 else ANY_CHANCE

    @cached_property
    def _sigmoids(self) -> tuple[Sigmoid, ...]:
        return tuple(curve for curve in self.curves if isinstance(curve, Sigmoid))

    @cached_property
    def _polylines(self) -> tuple[Polyline, ...]:
        return tuple(curve for curve in self.curves if isinstance(curve, Polyline))

    # ---- bounds

    def numbers_in(self, box: Box) -> tuple[Floats, Floats]:
        """Return numbers that none of those that are calibrated is below, or above, in a box."""
        low, high = scores_in(self.form, box)
        if not self.is_softmax:
            return low, high
        room = float(gamma(ROUNDINGS_OF_A_QUOTIENT * len(low)))
        return softmax_ends(low, high, -room), softmax_ends(high, low, room)

    # ---- what a form with a formula has

    def commands(self, scores: object, name: str) -> tuple[syntax.Command, list[syntax.Expression]]:
        """Raise: there is no program."""
        raise _no_formula()

    def formula(self, scores: object, name: str, box: Box, widen: int) -> tuple[syntax.Guard, list[syntax.Expression]]:
        """Raise: there is no formula."""
        raise _no_formula()


def _no_formula() -> UnsupportedModel:
    return UnsupportedModel(
        "probabilities that are divided by their sum have no formula. Ask for their counterfactuals instead."
    )


def softmax(scores: Floats) -> Floats:
    """Return the softmax of rows of scores."""
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    made: Floats = powers / powers.sum(axis=1, keepdims=True)
    return made


def softmax_ends(own: Floats, others: Floats, room: float) -> Floats:
    """Return each class's probability where its score is one of ``own`` and those of the others are ``others``; times 1 + ``room``."""
    apart = np.clip(others[None, :] - own[:, None], -EXPONENTS, EXPONENTS)
    np.fill_diagonal(apart, 0.0)
    made: Floats = np.clip((1 + room) / np.exp(apart).sum(axis=1), 0.0, 1.0)
    return made


def height_of(curve: Sigmoid | Polyline, numbers: Floats) -> Floats:
    """Return the heights of a calibration at some numbers, in floats."""
    if isinstance(curve, Polyline):
        return np.interp(numbers, curve.knots, curve.heights)
    at = np.clip(curve.slope * numbers + curve.shift, -EXPONENTS, EXPONENTS)
    small = np.exp(-np.abs(at))
    return np.where(at >= 0, 1.0, small) / (1.0 + small)
