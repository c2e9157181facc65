"""Tree ensembles as arrays."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mace.exact import gamma
from mace.forms.decision import Goal, margin, reaches
from mace.forms.form import PREFIX, RESULT, Box
from mace.forms.scoring import column_values, pick_class, score_variables, split_guard
from mace.language import characteristic
from mace.language.syntax import (
    ZERO,
    Assign,
    Command,
    Expression,
    Guard,
    If,
    Not,
    Program,
    Return,
    Variable,
    conjunction,
    constant,
    sequence,
    total,
)
from mace.space import Column, FeatureSpace, Point


@dataclass(frozen=True, eq=False)
class TreeEnsemble:
    """A sum of decision trees over columns; the class with the greatest sum wins, the first of equals.

    Node arrays are joined over all trees; a leaf has ``left`` equal to -1. At an inner node a row goes left where its column is
    at most ``edge``, a float64 on which the library's own comparison turns (float32 rounding included).

    Attributes
    ----------
    space, columns
        The features, and what each column reads.
    roots : int array
        The root node of each tree.
    column, edge, left, right : arrays, one entry a node
        The split.
    missing_left : bool array
        Where a missing value goes.
    value : float array, nodes x classes
        What each leaf adds to each class.
    fixed_order : bool
        Whether the library adds the trees in the same order every time.
    """

    space: FeatureSpace
    columns: tuple[Column, ...]
    roots: NDArray[np.int64]
    column: NDArray[np.int64]
    edge: NDArray[np.float64]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    missing_left: NDArray[np.bool_]
    value: NDArray[np.float64]
    fixed_order: bool = True

    @cached_property
    def rounding(self) -> Fraction:
        """The most by which rounding may change the difference of two classes' sums.

        0 for a single tree, and where all leaf values are multiples of a power of two so coarse that sums are exact (a
        forest grown to pure leaves). Otherwise 2 γ_{T+1} Σ_t max|value|: T - 1 additions and the final division.
        """
        trees = len(self.roots)
        leaves = np.abs(self.value[self.left < 0])
        if trees == 1 or _sums_are_exact(leaves, trees):
            return Fraction(0)
        bounds = np.maximum.reduceat(np.abs(np.where(self.left[:, None] < 0, self.value, 0.0)), self.roots, axis=0)
        return 2 * gamma(trees + 1) * Fraction(float(bounds.sum(axis=0).max())) * (1 + gamma(trees + 1))

    # ---- programs and formulas

    def program(self) -> Program:
        """Return the ensemble as nested conditionals, the sums of the leaves, and the choice of the class."""
        return Program(self.space.names, sequence([self._sums(), pick_class(self._score_names(), self.is_binary)]))

    @property
    def is_binary(self) -> bool:
        """Whether one score, the second class's less the first's, decides."""
        return int(self.value.shape[1]) == 2

    def possible(self, goal: Goal, box: Box) -> Guard:
        """Return ``goal`` over the sums, widened by their rounding."""
        return reaches(self._scores, goal, self.rounding)

    def certain(self, goal: Goal, box: Box) -> Guard:
        """Return ``goal`` over the sums, narrowed by their rounding."""
        return reaches(self._scores, goal, -self.rounding)

    def cell(self, point: Point) -> Guard | None:
        """Return the box of the point's leaves: every point in it takes the same leaves, in the same order."""
        if not self.fixed_order and self.rounding:
            return None
        return conjunction(self._path(root, point) for root in self.roots)

    def is_settled(self, point: Point, goal: Goal) -> bool:
        """Return whether the order of summation is fixed, or cannot matter at this point."""
        return self.fixed_order or self.is_robust(point, goal, ())

    def is_robust(self, point: Point, goal: Goal, box: Box) -> bool:
        """Return whether the sums are exact, or too far apart to be confused."""
        return self.rounding == 0 or abs(margin(self.exact_scores(point), goal)) > self.rounding

    def definitions(self) -> Guard:
        """Return the characteristic formula of the sums."""
        return self._formula

    @cached_property
    def _formula(self) -> Guard:
        program = Program(self.space.names, sequence([self._sums(), Return(ZERO)]))
        return characteristic(program, result=RESULT, prefix=PREFIX)

    @property
    def _scores(self) -> tuple[Expression, ...]:
        return score_variables(self._score_names(), self.is_binary, PREFIX)

    def _score_names(self) -> tuple[str, ...]:
        return ("score",) if self.is_binary else tuple(f"score_{k}" for k in range(self.value.shape[1]))

    def _sums(self) -> Command:
        trees = [self._tree(int(root), number) for number, root in enumerate(self.roots)]
        sums = [
            Assign(name, total(Variable(_leaf_name(name, number)) for number in range(len(self.roots))))
            for name in self._score_names()
        ]
        return sequence([*trees, *sums])

    def _tree(self, node: int, number: int) -> Command:
        if self.left[node] < 0:
            return sequence(
                Assign(_leaf_name(name, number), constant(value))
                for name, value in zip(self._score_names(), self._leaf_scores(node), strict=True)
            )
        then = self._tree(int(self.left[node]), number)
        otherwise = self._tree(int(self.right[node]), number)
        return then if then == otherwise else If(self._guard(node), then, otherwise)

    def _leaf_scores(self, leaf: int) -> tuple[Fraction, ...]:
        values = tuple(Fraction(float(value)) for value in self.value[leaf])
        return (values[1] - values[0],) if self.is_binary else values

    def _guard(self, node: int) -> Guard:
        column = self.columns[self.column[node]]
        return split_guard(self.space, column, float(self.edge[node]), bool(self.missing_left[node]))

    def _path(self, root: int, point: Point) -> Guard:
        """Return the conjunction of the splits on the way of ``point`` down one tree."""
        node, guards = int(root), []
        while self.left[node] >= 0:
            goes_left = self._goes_left(node, point)
            guards.append(self._guard(node) if goes_left else Not(self._guard(node)))
            node = int(self.left[node] if goes_left else self.right[node])
        return conjunction(guards)

    # ---- evaluation

    def _goes_left(self, node: int, point: Point) -> bool:
        column = self.columns[self.column[node]]
        number = point[column.feature]
        if number is None:
            return bool(self.missing_left[node])
        return bool((column.table[int(number)] if column.table else float(number)) <= self.edge[node])

    def exact_scores(self, point: Point) -> tuple[Fraction, ...]:
        """Return each class's sum in exact arithmetic."""
        sums = [Fraction(0)] * self.value.shape[1]
        for root in self.roots:
            node = int(root)
            while self.left[node] >= 0:
                node = int(self.left[node] if self._goes_left(node, point) else self.right[node])
            sums = [value + Fraction(float(leaf)) for value, leaf in zip(sums, self.value[node], strict=True)]
        return tuple(sums)

    def leaves(self, points: list[Point]) -> NDArray[np.int64]:
        """Return the leaf that each point reaches in each tree, points x trees."""
        columns = column_values(self.columns, points)
        node = np.tile(self.roots, (len(points), 1))
        rows = np.arange(len(points))[:, None]
        while (inner := self.left[node] >= 0).any():
            cells = columns[rows, np.where(inner, self.column[node], 0)]
            goes_left = np.where(np.isnan(cells), self.missing_left[node], cells <= self.edge[node])
            node = np.where(inner, np.where(goes_left, self.left[node], self.right[node]), node)
        return node


def _leaf_name(score: str, tree: int) -> str:
    return f"{score}_of_tree_{tree}"


def _sums_are_exact(leaves: NDArray[np.float64], trees: int) -> bool:
    """Return whether all partial sums of the leaves are float64 and stay apart after the division by their number."""
    for bits in (0, 8, 16, 24):
        scaled = leaves * 2.0**bits
        if (scaled == np.floor(scaled)).all():
            return bool(scaled.max(initial=0.0) * trees * trees < 2**51)
    return False
