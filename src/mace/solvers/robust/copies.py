"""Copies of a network whose input is moved as noise may move it: a robust row brings all of them to the goal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from mace.constraints.robust import RobustCondition
from mace.exact import float_down
from mace.forms import Margin, Network
from mace.problem import Problem
from mace.reductions.regions import Region
from mace.reductions.shifted_network import STAY, Move, Moves, Offset, gradient, kept_inside, span
from mace.solvers.robust.ranges import cut_at_turn, turn_of
from mace.space import Feature, Integer, Point, Real
from mace.space.decimals import is_exact

MOST_OFFSETS = 6
"""The most copies that are moved by an offset."""

MOST_CHOICES = 64
"""The most choices of an alternative of the goal for each copy."""


class ShiftedCopies:
    """The copies that a search has asked for so far.

    A copy is moved by an offset to a corner of the noise, wherever the row lies; or its noisy features are pinned to the values of a
    refused row, in boxes from all of whose rows noise leads there.
    """

    def __init__(self, problem: Problem, noise: RobustCondition) -> None:
        self.problem, self.noise = problem, noise
        self.features = list(problem.space.values())
        self.offsets: list[Offset] = []

        form = problem.form
        self.goals: Sequence[Sequence[Margin]] = ()
        if isinstance(form, Network):
            self.goals = form.alternatives(problem.goal)

    def has_room(self, pinned: int = 0) -> bool:
        """Return whether another copy of a network may be made: each may reach the goal by any alternative, and the choices multiply."""
        copies = 2 + len(self.offsets) + pinned
        return bool(self.goals) and len(self.goals) ** copies <= MOST_CHOICES

    def of(self, region: Region, pinned: tuple[Moves, ...]) -> list[Moves]:
        """Return how the rows of a box are moved by all copies, the pinned ones last."""
        stay = (STAY,) * len(region)
        return list(dict.fromkeys([stay, *(self._fitting(offset, region) for offset in self.offsets), *pinned]))

    # ---- offsets

    def add_offset(self, refused: Point, point: Point | None = None) -> bool:
        """Add the offset that lowers the margin most at a row; return whether it is new and, where a point is given, refutes that.

        Where a single feature is noisy, the opposite offset comes with it: what undoes the next point often lies at the other end.
        """
        form, goal = self.problem.form, self.problem.goal
        if len(self.offsets) >= MOST_OFFSETS or not self.has_room():
            return False
        assert isinstance(form, Network)
        _, slopes = max((gradient(form, margins, refused) for margins in self.goals), key=lambda found: found[0])
        signs = -np.sign(slopes)
        offset = tuple(int(sign) * step for sign, step in zip(signs, self._steps(), strict=True))
        if not any(offset) or offset in self.offsets:
            return False
        if point is not None and goal.accepts(self.problem.ask([kept_inside(point, offset, self.features)])[0]):
            return False
        self.offsets.append(offset)
        if len(self.noise.radii) == 1 and self.has_room():
            self.offsets.append(tuple(-each for each in offset))
        return True

    def _steps(self) -> tuple[Fraction, ...]:
        """Return for each feature the largest offset within the noise that leads from values to values.

        That is a number of whole steps, or a little less than the radius; 0 where it may be missing, where the factual is off its grid, or
        where floats cannot hold that grid.
        """
        radii = (self.noise.radii.get(name, Fraction(0)) for name in self.problem.space)
        return tuple(map(_farthest, self.features, self.problem.factual, radii))

    def _fitting(self, offset: Offset, region: Region) -> Moves:
        """Return how an offset moves the rows of a box: by as much as it says, or to the end of the domain where that is nearer."""
        moves: list[Move] = []
        for left, feature, each in zip(region.values(), self.features, offset, strict=True):
            if not each:
                moves.append(STAY)
                continue
            assert isinstance(feature, Real | Integer)
            turn = turn_of(feature, each)
            if (left.high <= turn) if each < 0 else (left.low >= turn):
                moves.append(Move(span(feature)[each > 0], is_pinned=True))
            else:
                moves.append(Move(each))
        return tuple(moves)

    def cut_at_a_turn(self, region: Region) -> list[Region]:
        """Return a box cut in two where an offset would leave the domain; the box itself where none would in a part of it only.

        All cuts at once would make two to the power of the number of features parts, of which few are ever looked at.
        """
        for offset in self.offsets:
            for (name, feature), each in zip(self.problem.space.items(), offset, strict=True):
                if each:
                    sides = cut_at_turn(region[name], turn_of(feature, each), below=each > 0)
                    if len(sides) > 1:
                        return [region | {name: side} for side in sides]
        return [region]

    # ---- pinned copies

    def pinned_at(self, row: Point) -> Moves | None:
        """Return the noisy features set to a row's values; ``None`` where they cannot be."""
        noisy = {self.problem.space.index(name) for name in self.noise.radii}
        if not all(_is_number(self.features[j], row[j]) for j in noisy):
            return None
        return tuple(
            Move(Fraction(value), is_pinned=True) if j in noisy and value is not None else STAY
            for j, value in enumerate(row)
        )


def _farthest(feature: Feature, own: int | float | None, radius: Fraction) -> Fraction:
    """Return the largest offset within the noise that leads from values of a feature to values of it."""
    if not isinstance(feature, Real | Integer) or feature.missing or own is None:
        return Fraction(0)
    largest = max(abs(feature.low), abs(feature.high))
    rounding = Fraction(largest) / 2**50
    if isinstance(feature, Real) and feature.is_single:
        rounding += 4 * Fraction(feature.spacing(largest))
    if isinstance(feature, Integer) or feature.is_exact_grid:
        step = Fraction(feature.step or 1)
        reach = radius if is_exact(feature) else radius - rounding
        return max(math.floor(reach / step), 0) * step if feature.has(own) else Fraction(0)
    if feature.step is not None:
        return Fraction(0)
    return Fraction(float_down(max(radius * (1 - Fraction(1, 2**40)) - rounding, Fraction(0))))


def _is_number(feature: Feature, value: int | float | None) -> bool:
    """Return whether a value is one of a feature that is a number and never missing."""
    return isinstance(feature, Real | Integer) and not feature.missing and value is not None and feature.has(value)
