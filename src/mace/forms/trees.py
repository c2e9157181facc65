"""Tree ensembles as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Literal

import numpy as np

from mace.clock import check
from mace.exact import UNIT, Flags, Floats, Ints, gamma
from mace.forms.decision import Alternatives, Goal, Interval, clearance, innermost, reaches
from mace.forms.form import RESULT, RESULT_PREFIX, Box, Form
from mace.forms.scoring import column_values, outcome_command, positions_guard, score_names, split_guard
from mace.language import characteristic, syntax
from mace.space import Categorical, Column, FeatureSpace, Ordinal, Point

Link = Literal["identity", "mean", "logistic", "clip", "none"]
"""How a score becomes the number that the model reports; "clip" is (clip(score, -1, 1) + 1) / 2, "none" where no single score does."""


@dataclass(frozen=True, eq=False)
class TreeEnsemble(Form):
    """A sum of decision trees over columns, and how it decides.

    Node arrays are joined over all trees; a leaf has ``left`` equal to -1, and a child comes after its parent. At an inner node a row goes
    left where its column is at most ``edge``, a float64 on which the library's own comparison turns (float32 rounding included); or, where
    ``subset`` is not -1, where its level is in that subset.

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
    value : float array, nodes x outputs
        What each leaf adds to each output, as the library adds it (a learning rate multiplied in, with the library's rounding).
    base : float array, one entry an output
        What the sum starts from.
    subset : int array, one entry a node
        Position in ``subsets``, or -1.
    subsets : tuple of bool arrays
        For each level of the node's feature, whether it goes left.
    fixed_order : bool
        Whether the library adds the trees in the same order every time.
    is_blockwise : bool
        Whether the library may add the leaves in another order when it predicts several rows at once; such a model is asked row by row.
    unit : Fraction
        Unit roundoff of the library's sums: 2^-53, or 2^-24 where it adds in float32.
    squash : Fraction
        How far apart two sums may be and still be confused by what the library does after adding leaves (a link function, products).
    ties_last : bool
        With one output: whether a score of exactly 0 is the second class.
    link : {"identity", "mean", "logistic", "clip", "none"}
        How a score becomes the number that the model reports.
    is_regressor : bool
        Whether the reported number, not a class, is the outcome.
    """

    space: FeatureSpace
    columns: tuple[Column, ...]
    roots: Ints
    column: Ints
    edge: Floats
    left: Ints
    right: Ints
    missing_left: Flags
    value: Floats
    base: Floats = field(default_factory=lambda: np.zeros(0))
    subset: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    subsets: tuple[Flags, ...] = ()
    fixed_order: bool = True
    is_blockwise: bool = False
    unit: Fraction = UNIT
    squash: Fraction = Fraction(0)
    ties_last: bool = False
    link: Link = "none"
    is_regressor: bool = False

    def __post_init__(self) -> None:
        if not len(self.base):
            object.__setattr__(self, "base", np.zeros(self.outputs))
        if not len(self.subset):
            object.__setattr__(self, "subset", np.full(len(self.left), -1, dtype=np.int64))

    @property
    def outputs(self) -> int:
        """How many sums there are."""
        return int(self.value.shape[1])

    @cached_property
    def has_exact_sums(self) -> bool:
        """Whether every sum of leaves is exact: a single tree, or values that are multiples of a coarse power of two."""
        leaves = np.abs(self.value[self.left < 0])
        one_tree = len(self.roots) == 1 and not self.base.any()
        return one_tree or _sums_are_exact(np.append(leaves, np.abs(self.base)), len(self.roots), self.unit)

    @cached_property
    def rounding(self) -> Fraction:
        """The most by which rounding may change a margin: the difference of two sums, or of a sum and a number.

        With exact sums only the link function matters. Otherwise 2 γ_{T+2} (|base| + Σ_t max|value|): T additions, a final division, and
        the subtraction, with the library's unit roundoff; twice, for the two sides of a margin.
        """
        squash = self.squash
        if self.has_exact_sums:
            return squash
        error = gamma(len(self.roots) + 2, self.unit)
        return squash + 2 * error * (1 + error) * Fraction(float(self.magnitude.max())) * (1 + Fraction(1, 2**20))

    def band(self, goal: Goal) -> Fraction:
        """Return how far from the goal's boundary an exact margin may be for the deployed model to see it on the other side."""
        is_sign = self.outputs == 1 and self.fixed_order and not isinstance(innermost(goal), Interval)
        return (self._rounding_of_sign if is_sign else self.rounding) + goal.slack

    @cached_property
    def _rounding_of_sign(self) -> Fraction:
        """The most by which an exact sum may be off 0 where the computed one has the other sign.

        The k-th addition errs by at most u |S_k|, S_k the computed partial sum. It is at most F_k = |base| + Σ_{t<=k} max|value|; and,
        since what is still to come must bring it back, at most |S_T| + B_k with B_k = |base| + Σ_{t>k} max|value| + γ F_T. So the exact sum
        is at least S_T - u Σ_k min(F_k, S_T + B_k) >= (1 - uT) S_T - u Σ_k min(F_k, B_k) for S_T >= 0, and likewise below 0.
        """
        if self.has_exact_sums:
            return self.squash
        largest = np.maximum.reduceat(np.abs(np.where(self.left < 0, self.value[:, 0], 0.0)), self.roots)
        relative = float(gamma(len(self.roots) + 2, self.unit))
        start = abs(float(self.base[0]))
        ahead = start + np.cumsum(largest)
        behind = start + largest.sum() - np.cumsum(largest) + relative * (ahead[-1] + start)
        error = float(self.unit) * float(np.minimum((1 + relative) * ahead, behind).sum() + 2 * start)
        return self.squash + Fraction(error) * (1 + Fraction(1, 2**20))

    @cached_property
    def magnitude(self) -> Floats:
        """A bound on each output's sum of absolute values."""
        leaves = np.abs(np.where(self.left[:, None] < 0, self.value, 0.0))
        bound: Floats = np.abs(self.base) + np.maximum.reduceat(leaves, self.roots, axis=0).sum(axis=0)
        return bound

    def score_bounds(self, box: Box) -> tuple[Floats, Floats]:
        """Return numbers that no sum is below, or above, widened for their rounding."""
        leaves = self.left[:, None] < 0
        low = np.minimum.reduceat(np.where(leaves, self.value, np.inf), self.roots, axis=0).sum(axis=0) + self.base
        high = np.maximum.reduceat(np.where(leaves, self.value, -np.inf), self.roots, axis=0).sum(axis=0) + self.base
        room = 8 * (len(self.roots) + 8) * float(UNIT) * self.magnitude
        return low - room, high + room

    # ---- programs and formulas

    def program(self) -> syntax.Program:
        """Return the ensemble as nested conditionals, the sums of the leaves, and the outcome."""
        names = self._score_names(self._as_difference)
        outcome = outcome_command(names, is_regressor=self.is_regressor, ties_last=self.ties_last)
        return syntax.Program(self.space.names, syntax.sequence([self._sums(self._as_difference), outcome]))

    @property
    def _as_difference(self) -> bool:
        """Whether a class is decided by one difference: two outputs, of which only the difference matters."""
        return self.outputs == 2 and not self.is_regressor

    def definitions(self, goal: Goal) -> syntax.Guard:
        """Return the characteristic formula of the sums."""
        as_difference = self._needs_difference(goal)
        if as_difference not in self._formulas:
            sums = syntax.sequence([self._sums(as_difference), syntax.Return(syntax.ZERO)])
            program = syntax.Program(self.space.names, sums)
            self._formulas[as_difference] = characteristic(program, result=RESULT, prefix=RESULT_PREFIX)
        return self._formulas[as_difference]

    def possible(self, goal: Goal, box: Box) -> syntax.Guard:
        """Return ``goal`` over the sums, widened by their rounding."""
        return reaches(self.scores(goal), self.alternatives(goal), self.band(goal))

    def certain(self, goal: Goal, box: Box) -> syntax.Guard:
        """Return ``goal`` over the sums, narrowed by their rounding."""
        return reaches(self.scores(goal), self.alternatives(goal), -self.band(goal))

    def cell(self, point: Point) -> syntax.Guard | None:
        """Return the box of the point's leaves: every point in it takes the same leaves, in the same order."""
        if not self.fixed_order and self.rounding:
            return None
        return syntax.conjunction(self._path(root, point) for root in self.roots)

    def is_settled(self, point: Point, goal: Goal) -> bool:
        """Return whether the order of summation is fixed, or cannot matter at this point."""
        return self.fixed_order or self.is_beyond_rounding(point, goal, ())

    def is_beyond_rounding(self, point: Point, goal: Goal, box: Box) -> bool:
        """Return whether the sums are exact, or too far from the goal's boundary to be confused."""
        band = self.band(goal)
        return band == 0 or abs(clearance(self.exact_scores(point), self.alternatives(goal))) > band

    def alternatives(self, goal: Goal) -> Alternatives:
        """Return a goal as alternatives, of each of which all margins must be reached."""
        return goal.alternatives(self.outputs, ties_last=self.ties_last)

    def _needs_difference(self, goal: Goal) -> bool:
        return self._as_difference and not isinstance(innermost(goal), Interval)

    @cached_property
    def _formulas(self) -> dict[bool, syntax.Guard]:
        """The characteristic formula of the sums, by whether two outputs are folded into their difference; made on first use."""
        return {}

    def scores(self, goal: Goal) -> tuple[syntax.Expression, ...]:
        """Return the sums as variables of the definitions; of two that are folded into their difference, 0 and that."""
        as_difference = self._needs_difference(goal)
        variables = tuple(syntax.Variable(RESULT_PREFIX + name) for name in self._score_names(as_difference))
        return (syntax.ZERO, *variables) if as_difference else variables

    def computed(self, goal: Goal) -> tuple[syntax.Command, tuple[syntax.Expression, ...]]:
        """Return the commands that compute the sums, and the sums in their variables, folded as in :meth:`scores`."""
        as_difference = self._needs_difference(goal)
        variables = tuple(syntax.Variable(name) for name in self._score_names(as_difference))
        return self._sums(as_difference), (syntax.ZERO, *variables) if as_difference else variables

    def _score_names(self, as_difference: bool) -> tuple[str, ...]:
        return score_names(1 if as_difference else self.outputs)

    def _sums(self, as_difference: bool) -> syntax.Command:
        names = self._score_names(as_difference)
        trees = [self._tree(int(root), number, as_difference) for number, root in enumerate(self.roots)]
        bases = [Fraction(float(base)) for base in self.base]
        starts = [bases[1] - bases[0]] if as_difference else bases
        sums = []
        for name, start in zip(names, starts, strict=True):
            terms: list[syntax.Expression] = [
                syntax.Variable(_leaf_name(name, number)) for number in range(len(self.roots))
            ]
            sums.append(syntax.Assign(name, syntax.total([syntax.Constant(start), *terms] if start else terms)))
        return syntax.sequence([*trees, *sums])

    def _tree(self, node: int, number: int, as_difference: bool) -> syntax.Command:
        check()
        if self.left[node] < 0:
            return syntax.sequence(
                syntax.Assign(_leaf_name(name, number), syntax.constant(value))
                for name, value in zip(
                    self._score_names(as_difference), self._leaf_scores(node, as_difference), strict=True
                )
            )
        then = self._tree(int(self.left[node]), number, as_difference)
        otherwise = self._tree(int(self.right[node]), number, as_difference)
        return then if then == otherwise else syntax.If(self._guard(node), then, otherwise)

    def _leaf_scores(self, leaf: int, as_difference: bool) -> tuple[Fraction, ...]:
        values = tuple(Fraction(float(value)) for value in self.value[leaf])
        return (values[1] - values[0],) if as_difference else values

    def _guard(self, node: int) -> syntax.Guard:
        column = self.columns[self.column[node]]
        if self.subset[node] >= 0:
            return positions_guard(self.space.names[column.feature], self.subsets[self.subset[node]])
        return split_guard(self.space, column, float(self.edge[node]), bool(self.missing_left[node]))

    def _path(self, root: int, point: Point) -> syntax.Guard:
        """Return the conjunction of the splits on the way of ``point`` down one tree."""
        node, guards = int(root), []
        while self.left[node] >= 0:
            goes_left = self._goes_left(node, point)
            guards.append(self._guard(node) if goes_left else syntax.Not(self._guard(node)))
            node = int(self.left[node] if goes_left else self.right[node])
        return syntax.conjunction(guards)

    # ---- evaluation

    def _goes_left(self, node: int, point: Point) -> bool:
        column = self.columns[self.column[node]]
        number = point[column.feature]
        if number is None:
            return bool(self.missing_left[node])
        if self.subset[node] >= 0:
            return bool(self.subsets[self.subset[node]][int(number)])
        return bool((column.table[int(number)] if column.table else float(number)) <= self.edge[node])

    def leaf(self, root: int, point: Point) -> int:
        """Return the leaf that a point reaches in one tree."""
        node = int(root)
        while self.left[node] >= 0:
            node = int(self.left[node] if self._goes_left(node, point) else self.right[node])
        return node

    def exact_scores(self, point: Point) -> tuple[Fraction, ...]:
        """Return each output's sum in exact arithmetic."""
        sums = [Fraction(float(base)) for base in self.base]
        for root in self.roots:
            leaf = self.value[self.leaf(root, point)]
            sums = [value + Fraction(float(term)) for value, term in zip(sums, leaf, strict=True)]
        return tuple(sums)

    def leaves(self, points: Sequence[Point]) -> Ints:
        """Return the leaf that each point reaches in each tree, points x trees."""
        return self._leaves(column_values(self.columns, points), points)

    def leaves_of_columns(self, columns: Floats) -> Ints:
        """Return the leaf that each row of columns reaches in each tree, also one that no features make; for ensembles without subsets."""
        return self._leaves(columns, ())

    def _leaves(self, columns: Floats, points: Sequence[Point]) -> Ints:
        node = np.tile(self.roots, (len(columns), 1))
        rows = np.arange(len(columns))[:, None]
        numbers = np.array([[point[column.feature] or 0 for column in self.columns] for point in points])
        has_missing = bool(np.isnan(columns).any())
        while (inner := self.left[node] >= 0).any():
            column = np.where(inner, self.column[node], 0)
            cells = columns[rows, column]
            goes_left = cells <= self.edge[node]
            if has_missing:
                goes_left = np.where(np.isnan(cells), self.missing_left[node], goes_left)
            if self.subsets and (subset := self.subset[node]).max() >= 0:
                level = np.where(subset >= 0, numbers[rows, column], 0).astype(np.intp)
                goes_left = np.where(subset >= 0, self._levels_left[subset, level], goes_left)
            node = np.where(inner, np.where(goes_left, self.left[node], self.right[node]), node)
        return node

    @cached_property
    def _levels_left(self) -> Flags:
        """Whether each level goes left, subsets x levels."""
        table = np.zeros((len(self.subsets), max(map(len, self.subsets))), dtype=bool)
        for row, subset in zip(table, self.subsets, strict=True):
            row[: len(subset)] = subset
        return table


def same_for_all(space: FeatureSpace) -> TreeEnsemble:
    """Return a tree that says class 0 of every row."""
    name, feature = next(iter(space.items()))
    numbers = tuple(map(float, range(len(feature.levels)))) if isinstance(feature, Categorical | Ordinal) else None
    leaf = np.array([-1])
    return TreeEnsemble(
        space=space,
        columns=(Column(name, 0, numbers),),
        roots=np.array([0]),
        column=np.array([0]),
        edge=np.zeros(1),
        left=leaf,
        right=leaf,
        missing_left=np.zeros(1, dtype=bool),
        value=np.array([[1.0, 0.0]]),
    )


def divisor(form: object) -> int:
    """Return what the sums of a form are divided by for the number that it reports: of a mean the number of trees, else 1."""
    return len(form.roots) if isinstance(form, TreeEnsemble) and form.link == "mean" else 1


def _leaf_name(score: str, tree: int) -> str:
    return f"{score}_of_tree_{tree}"


def _sums_are_exact(values: Floats, trees: int, unit: Fraction) -> bool:
    """Return whether all partial sums are exact at the unit roundoff, and stay apart after a division by their number."""
    for bits in (0, 8, 16, 24):
        scaled = values * 2.0**bits
        if (scaled == np.floor(scaled)).all():
            return bool(scaled.max(initial=0.0) * trees * trees < 1 / (4 * unit))
    return False
