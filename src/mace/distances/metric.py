"""A distance from one factual: its measure, exactly and as a program, and what each feature's change contributes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple, Protocol

import numpy as np

from mace.distances.change import change, change_command, differs, greatest_change, written_change
from mace.distances.norm import Norm, Parts
from mace.distances.norms import L0
from mace.exact import Floats, root_down, root_up
from mace.language import syntax
from mace.language.syntax import total
from mace.space import RESERVED, Feature, FeatureSpace, Point, Value


class Metric(Protocol):
    """A distance from one factual.

    ``measure`` is the distance to the ``power`` (2 for l2, else 1): exact where the distance itself need not be rational.
    """

    @property
    def power(self) -> int:
        """2 where the measure is the square of the distance, else 1."""

    def measure(self, point: Point) -> Fraction:
        """Return the measure of a point, exactly."""

    def floats(self, deltas: Floats) -> Floats | None:
        """Return the measure of many rows of changes δ in floats; ``None`` where it is not a function of the changes."""

    def program(self) -> syntax.Program:
        """Return the measure as a program over the features."""

    def reach(self, index: int, bound: Fraction) -> Fraction:
        """Return the greatest change δ of one feature that a point within distance ``bound`` can have; 1 is any change, greater too."""

    def next_above(self, bound: Fraction) -> Fraction:
        """Return the least distance above ``bound`` that a point can have; ``bound`` itself where that is not known."""


def distance_up(metric: Metric, measure: Fraction) -> Fraction:
    """Return the distance of a measure, rounded up where it is irrational."""
    return root_up(measure) if metric.power == 2 else measure


def distance_down(metric: Metric, measure: Fraction) -> Fraction:
    """Return the distance of a measure, rounded down where it is irrational."""
    return root_down(measure) if metric.power == 2 else measure


class FloatParts(NamedTuple):
    """What a change of each feature contributes, as in :class:`Parts`, in floats."""

    jump: Floats
    slope: Floats
    square: Floats
    peak: Floats


Shares = tuple[tuple[Norm, Fraction], ...]

LARGEST_BITS = 500
"""Weights of more binary digits are scaled down before they are added up in floats."""


@dataclass(frozen=True)
class PartsMetric:
    """A convex combination of norms of the changes δ of each feature from one factual; what δ is, the classes below say.

    ``parts`` is what each feature's change contributes, ``costs`` the same as floats; both are the same objects for the same
    combination, so that what solvers make of them is made once.
    """

    space: FeatureSpace
    factual: Point
    norms: Shares
    weights: tuple[Fraction, ...]
    parts: tuple[Parts, ...]
    costs: FloatParts
    power: int = 1

    def delta(self, index: int, feature: Feature, new: Value, *, written: bool = False) -> Fraction:
        """Return the change of one feature to a value, exactly; of decimals, where ``written``."""
        return (written_change if written else change)(feature, new, self.factual[index])

    def command(self, index: int, name: str, result: str, *, written: bool = False) -> syntax.Command:
        """Return the command ``result := δ`` of one feature."""
        return change_command(name, self.space[name], self.factual[index], result, written=written)

    def measure(self, point: Point, *, written: bool = False) -> Fraction:
        """Return the measure of a point, exactly; of decimals, where ``written``."""
        total = top = Fraction(0)
        rows = zip(self.space.values(), point, self.factual, self.parts, strict=True)
        for index, (feature, new, old, part) in enumerate(rows):
            if new == old:
                continue
            delta = self.delta(index, feature, new, written=written)
            if delta:
                is_flat = not part.slope and not part.square
                total += part.jump if is_flat else part.jump + (part.slope + part.square * delta) * delta
                top = max(top, part.peak * delta) if part.peak else top
        return total + top

    def terms(self, point: Point) -> tuple[Floats, Floats]:
        """Return in floats what the change of each feature adds to the measure's sum, and what it counts in its maximum."""
        (terms,), (peaks,) = self.terms_of([point])
        return terms, peaks

    def terms_of(self, points: Sequence[Point]) -> tuple[Floats, Floats]:
        """Return the :meth:`terms` of points, points by features; of a value that several points share, the change is taken once."""
        deltas = np.zeros((len(points), len(self.factual)))
        changed = np.zeros(deltas.shape, dtype=bool)
        for j, (feature, own) in enumerate(zip(self.space.values(), self.factual, strict=True)):
            column = [point[j] for point in points]
            known = {value: float(self.delta(j, feature, value)) for value in {*column} - {own}} | {own: 0.0}
            deltas[:, j] = [known[value] for value in column]
            changed[:, j] = [value != own for value in column]
        jump, slope, square, peak = self.costs
        return np.where(changed, jump + (slope + square * deltas) * deltas, 0.0), peak * deltas

    def floats(self, deltas: Floats) -> Floats | None:
        """Return the measure of many rows of changes; ``None`` where it is not a function of shares of ranges."""
        return None

    def program(self, *, written: bool = False) -> syntax.Program:
        """Return the measure as a program: one δ a feature, of decimals where ``written``, then the norms of them."""
        names = [f"{RESERVED}delta({name})" for name in self.space]
        pairs = enumerate(zip(self.space, names, strict=True))
        steps = [self.command(index, name, delta, written=written) for index, (name, delta) in pairs]
        deltas = [syntax.Variable(name) for name in names]
        changed = [
            differs(name, feature, old) for (name, feature), old in zip(self.space.items(), self.factual, strict=True)
        ]
        terms = [(norm.expression(deltas, changed, self.weights), share) for norm, share in self.norms]
        value = total(term if share == 1 else syntax.Binary("*", syntax.constant(share), term) for term, share in terms)
        return syntax.Program(self.space.names, syntax.sequence([*steps, syntax.Return(value)]))

    def reach(self, index: int, bound: Fraction) -> Fraction:
        """Return the greatest change δ of one feature that a point within distance ``bound`` can have; 1 is any change, greater too."""
        parts = self.parts[index]
        if self.power == 2:
            return min(Fraction(1), root_up(bound * bound / parts.square))
        if parts.jump > bound:
            return Fraction(0)
        slope = parts.slope + parts.peak
        return min(Fraction(1), (bound - parts.jump) / slope) if slope else Fraction(1)

    def next_above(self, bound: Fraction) -> Fraction:
        """Return the next multiple of 1/J for l0 with equal weights; no more is known of other distances."""
        if len(self.norms) > 1 or not isinstance(self.norms[0][0], L0) or len(set(self.weights)) > 1:
            return bound
        grain = Fraction(1, len(self.weights))
        return (bound // grain + 1) * grain

    def up_to_one(self) -> tuple[PartsMetric, int]:
        """Return the distance in units in which no two rows are farther apart than 1, and how much such a unit is: a power of two."""
        return self, 1


@dataclass(frozen=True)
class NormMetric(PartsMetric):
    """A convex combination of norms from one factual; a change δ is a share of the feature's range."""

    def floats(self, deltas: Floats) -> Floats:
        """Return the measure of many rows of changes."""
        # No sum of weights may be beyond all floats. A power of two changes no digit of them.
        unit = Fraction(2) ** max(0, int(max(self.weights)).bit_length() - LARGEST_BITS)
        weights = np.array([float(weight / unit) for weight in self.weights])
        return sum((float(share) * norm.floats(deltas, weights) for norm, share in self.norms), np.zeros(len(deltas)))

    def up_to_one(self) -> tuple[NormMetric, int]:
        """Return the distance in units in which no two rows are farther apart than 1, and how much such a unit is: a power of two."""
        if all(getattr(feature, "observed", None) is None for feature in self.space.values()):
            return self, 1
        most = [greatest_change(feature) for feature in self.space.values()]
        if all(each == 1 for each in most):
            return self, 1
        pairs = list(zip(most, self.parts, strict=True))
        total = sum(part.jump + (part.slope + part.square * delta) * delta for delta, part in pairs)
        total += max(part.peak * delta for delta, part in pairs)
        unit = 1
        while unit**self.power < total:
            unit *= 2
        norms, parts, costs = _divided(self.norms, self.parts, unit**self.power)
        return replace(self, norms=norms, parts=parts, costs=costs), unit


@lru_cache(maxsize=64)
def _divided(norms: Shares, parts: tuple[Parts, ...], by: int) -> tuple[Shares, tuple[Parts, ...], FloatParts]:
    """Return norms, and what changes contribute to them, divided by a number."""
    made = tuple(Parts(*(getattr(part, name) / by for name in FloatParts._fields)) for part in parts)
    return tuple((norm, share / by) for norm, share in norms), made, as_floats(made)


def as_floats(parts: tuple[Parts, ...]) -> FloatParts:
    """Return what changes contribute, in floats."""
    return FloatParts(*(np.array([float(getattr(part, name)) for part in parts]) for name in FloatParts._fields))
