"""Limits on the number of changes: which features every point of a box, or of a leaf in it, changes, and what that spends."""

from __future__ import annotations

import numpy as np

from mace.certify.trees.cells import CellAxis
from mace.certify.trees.leaves import Leaves
from mace.certify.verdict import Unchecked
from mace.constraints.budget import ChangeBudget
from mace.exact import Flags, Ints
from mace.problem import Problem

LARGEST_SPENT = 2**62


class Budgets:
    """The budgets of a question with some features missing.

    A feature changes throughout a box, or a leaf, that does not hold its home cell, the one with the factual's own value.

    Attributes
    ----------
    weights : int array, budgets x features
        What a change of each feature spends.
    rooms : list of int
        What the features that are missing leave of each budget.
    """

    def __init__(self, problem: Problem, axes: list[CellAxis], missing: Flags, leaves: Leaves) -> None:
        found = [c.whole(problem.space) for c in problem.conditions if isinstance(c, ChangeBudget)]
        if any(sum(weights) >= LARGEST_SPENT for weights, _ in found):
            raise Unchecked("the weights of a budget have too many digits")
        self.axes, self.missing = axes, missing
        self.weights: Ints = np.array([weights for weights, _ in found], dtype=np.int64).reshape(-1, len(axes))
        lost = np.array([bool(lost) and axis.missing_changes for axis, lost in zip(axes, missing, strict=True)])
        self.rooms = [most - int(weights[lost].sum()) for weights, (_, most) in zip(self.weights, found, strict=True)]
        self.homes = np.array([axis.home for axis in axes])
        self._away = self._leaves_away(leaves) if found else np.zeros((len(leaves.node), len(axes)), dtype=bool)

    @property
    def count(self) -> int:
        """How many budgets there are."""
        return len(self.rooms)

    def _leaves_away(self, leaves: Leaves) -> Flags:
        """Return, leaf by leaf, the features that change in all of it."""
        away = (self.homes < leaves.low) | (self.homes > leaves.high)
        for j, inside in leaves.inside.items():
            away[:, j] = ~inside[:, self.homes[j]] if self.homes[j] >= 0 else True
        return np.asarray(away & ~self.missing)

    def _box_away(self, low: Ints, high: Ints, inside: dict[int, Flags]) -> Flags:
        """Return the features that change in all of a box."""
        away = (self.homes < low) | (self.homes > high)
        for j, kept in inside.items():
            away[j] = self.homes[j] < 0 or not kept[self.homes[j]]
        return np.asarray(away & ~self.missing)

    def may_keep(self, low: Ints, high: Ints, inside: dict[int, Flags]) -> bool:
        """Return whether the features that change in all of a box leave every budget kept."""
        away = self._box_away(low, high, inside)
        return all(int(weights[away].sum()) <= room for weights, room in zip(self.weights, self.rooms, strict=True))

    def kept_by(self, chosen: Ints, low: Ints, high: Ints, inside: dict[int, Flags]) -> Flags:
        """Return which of some leaves that meet a box hold a point of it that keeps each budget, taken alone."""
        kept = np.ones(len(chosen), dtype=bool)
        if self.count:
            away = self._away[chosen] | self._box_away(low, high, inside)
            for weights, room in zip(self.weights, self.rooms, strict=True):
                kept &= away @ weights <= room
        return kept

    def left_of(self, near: list[Flags], low: Ints, high: Ints, inside: dict[int, Flags]) -> list[Flags]:
        """Return cells of a box without those that exceed a budget together with what the box changes elsewhere."""
        left = list(near)
        away = self._box_away(low, high, inside) if self.count else np.zeros(len(near), dtype=bool)
        for weights, room in zip(self.weights, self.rooms, strict=True):
            rest = room - int(weights[away].sum())
            for j in np.flatnonzero(~away & ~self.missing & (weights > max(rest, 0))):
                left[j] = left[j] & (np.arange(self.axes[j].size) == self.homes[j])
        return left
