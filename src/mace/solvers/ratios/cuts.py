"""Where a box is cut: at an edge of the trees, or in the middle where scores are smooth."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from mace.exact import Floats, float_above
from mace.forms import Composite, TreeEnsemble
from mace.problem import Problem
from mace.reductions.regions import Range
from mace.solvers.boxes.branching import NARROWEST_CUT, size_of


class Cuts:
    """How the features of a box are cut in two."""

    def __init__(self, problem: Problem, form: Composite) -> None:
        trees = [part.form for part in form.parts if isinstance(part.form, TreeEnsemble)]
        self.problem, self.are_all_trees = problem, len(trees) == len(form.parts)
        self.edges: dict[str, Floats] = {name: _edges(trees, index) for index, name in enumerate(problem.space)}

    def halves(self, name: str, left: Range) -> list[Range]:
        """Return what one feature may be in two parts; in one where it cannot be cut, or no tree tells its values apart."""
        if left.is_single:
            return [left]
        if left.levels is not None:
            levels = sorted(left.levels)
            middle = len(levels) // 2
            return [left.only(levels[:middle]), left.only(levels[middle:])]
        between = self.edges[name]
        between = between[(between >= float(left.low)) & (between < float(left.high))]
        if len(between):
            return _at(left, Fraction(float(between[len(between) // 2])))
        if self.are_all_trees and not self._has_levels(name):
            return [left]
        if not left.is_whole and (left.high - left.low) / size_of(self.problem, name) < NARROWEST_CUT:
            return [left]
        middle_at = Fraction(float((left.low + left.high) / 2))
        if left.is_whole:
            return _at(left, middle_at)
        return [left.between(left.low, middle_at), left.between(middle_at, left.high)]

    def width(self, name: str, left: Range) -> Fraction:
        """Return how much of a feature is left: as a share of its range, of levels without order of their number."""
        if left.levels is not None:
            return Fraction(len(left.levels), self.problem.space[name].size or 1)
        return (left.high - left.low) / size_of(self.problem, name)

    def _has_levels(self, name: str) -> bool:
        """Return whether a feature has levels in order, of which columns read tables."""
        return hasattr(self.problem.space[name], "levels")


def _at(left: Range, edge: Fraction) -> list[Range]:
    """Return the values up to an edge, and those above it."""
    above = Fraction(math.floor(edge) + 1) if left.is_whole else Fraction(float_above(edge))
    parts = [left.between(left.low, edge), left.between(above, left.high)]
    return [left] if left in parts else [part for part in parts if not part.is_empty]


def _edges(trees: list[TreeEnsemble], feature: int) -> Floats:
    """Return the numbers at which trees split the number of a feature, ascending."""
    found = [np.zeros(0)]
    for form in trees:
        numeric = [k for k, column in enumerate(form.columns) if column.feature == feature and column.table is None]
        found.append(form.edge[(form.left >= 0) & (form.subset < 0) & np.isin(form.column, numeric)])
    return np.unique(np.concatenate(found))
