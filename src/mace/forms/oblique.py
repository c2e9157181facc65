"""Tree ensembles over sums of several features, or over other models: a split compares a sum, so that no feature by itself decides it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from mace.exact import Floats
from mace.forms.composite import Composite
from mace.forms.decision import Alternatives, Goal, Interval, Margin, clearance, grain_of, reaches, separated, winner
from mace.forms.form import RESULT_PREFIX, Box, Form, box_at
from mace.forms.network import Network
from mace.forms.scoring import outcome_command
from mace.forms.trees import TreeEnsemble
from mace.language import syntax
from mace.space import RESERVED, FeatureSpace, Point


@dataclass(frozen=True, eq=False)
class ObliqueTrees(Form):
    """Trees whose columns are the scores of a network, or the outputs of several models.

    A computed column may differ from the exact score by rounding; within that distance of a split's edge a row may take either side.

    Attributes
    ----------
    space : FeatureSpace
        The features.
    inputs : Network or Composite
        The columns, one score or output each, over the features.
    trees : TreeEnsemble
        The trees, whose column k is the score k; its own ``columns`` are only names.
    """

    space: FeatureSpace
    inputs: Network | Composite
    trees: TreeEnsemble

    @property
    def is_regressor(self) -> bool:
        """Whether the outcome is a number."""
        return self.trees.is_regressor

    # ---- programs and formulas

    def program(self) -> syntax.Program:
        """Return the mixtures, the trees as nested conditionals, the sums and the outcome."""
        commands, columns = (
            self.inputs.computed() if isinstance(self.inputs, Composite) else self.inputs.computed(_EACH)
        )
        grown = [self._command(int(root), number, columns) for number, root in enumerate(self.trees.roots)]
        names = tuple(f"{RESERVED}sum_{k}" for k in range(self.trees.outputs))
        sums = [syntax.Assign(name, self._sum(k, "")) for k, name in enumerate(names)]
        trees = self.trees
        outcome = outcome_command(names, is_regressor=trees.is_regressor, ties_last=trees.ties_last)
        return syntax.Program(self.space.names, syntax.sequence([commands, *grown, *sums, outcome]))

    def _command(self, node: int, number: int, columns: Sequence[syntax.Expression]) -> syntax.Command:
        trees = self.trees
        if trees.left[node] < 0:
            return syntax.sequence(
                syntax.Assign(_leaf(number, k), syntax.Constant(Fraction(float(value))))
                for k, value in enumerate(trees.value[node])
            )
        goes_left = syntax.Compare("<=", columns[trees.column[node]], _number(trees.edge[node]))
        left, right = int(trees.left[node]), int(trees.right[node])
        return syntax.If(goes_left, self._command(left, number, columns), self._command(right, number, columns))

    def definitions(self, goal: Goal) -> syntax.Guard:
        """Return the characteristic formula of the mixtures."""
        return self.inputs.definitions(goal)

    def possible(self, goal: Goal, box: Box) -> syntax.Guard:
        """Return ``goal`` over the sums of leaves that rounding may lead to in ``box``, widened by the rounding of the sums."""
        return self._reaches(goal, box, 1, self.trees.band(goal))

    def certain(self, goal: Goal, box: Box) -> syntax.Guard:
        """Return ``goal`` over the sums of leaves that are reached whatever the rounding, narrowed by the rounding of the sums."""
        return self._reaches(goal, box, -4, -self.trees.band(goal))

    def _errors(self, box: Box) -> Floats:
        """Return by how much each column, as it is computed, may differ from the exact one in ``box``."""
        if isinstance(self.inputs, Network):
            return self.inputs.errors(box)
        return np.full(self.inputs.outputs, float(self.inputs.rounding(box)) * (1 + 2.0**-20))

    def _reaches(self, goal: Goal, box: Box, widen: int, slack: Fraction) -> syntax.Guard:
        """Return that a row goes down to leaves whose sums fulfil a goal, each column moved by ``widen`` times its error."""
        room, given = widen * self._errors(box), list[syntax.Guard]()
        columns: Sequence[syntax.Expression]
        if isinstance(self.inputs, Network):
            columns = self.inputs.scores(goal)
        else:
            given, columns = self.inputs.sums(box, widen)
        alternatives = self.trees.alternatives(goal)
        if slack == 0 and len(self.trees.roots) == 1:
            return syntax.conjunction([*given, self._path(int(self.trees.roots[0]), 0, columns, room, alternatives)])
        paths = [self._path(int(root), number, columns, room) for number, root in enumerate(self.trees.roots)]
        sums = [self._sum(k, RESULT_PREFIX) for k in range(self.trees.outputs)]
        return syntax.conjunction([*given, *paths, reaches(sums, separated(alternatives, self._grain), slack)])

    @cached_property
    def _grain(self) -> Fraction:
        """What the sums are multiples of, where they are exact; otherwise 0."""
        leaves = self.trees.value[self.trees.left < 0]
        return grain_of(np.concatenate([leaves.ravel(), self.trees.base])) if self.trees.has_exact_sums else Fraction(0)

    def _path(
        self,
        node: int,
        number: int,
        columns: Sequence[syntax.Expression],
        room: Floats,
        wanted: Alternatives | None = None,
    ) -> syntax.Guard:
        """Return that a row goes down from a node to some leaf, each edge moved by the room of its column, and what the leaf adds.

        With ``wanted``, to a leaf whose values fulfil it: where there is one tree, these alone decide.
        """
        trees = self.trees
        if trees.left[node] < 0 and wanted is not None:
            scores = [
                Fraction(float(base)) + Fraction(float(value))
                for base, value in zip(trees.base, trees.value[node], strict=True)
            ]
            return syntax.Truth(any(all(_holds(m, scores) for m in margins) for margins in wanted))
        if trees.left[node] < 0:
            return syntax.conjunction(
                syntax.Compare(
                    "==", syntax.Variable(RESULT_PREFIX + _leaf(number, k)), syntax.Constant(Fraction(float(value)))
                )
                for k, value in enumerate(trees.value[node])
            )
        column = int(trees.column[node])
        edge, wide = Fraction(float(trees.edge[node])), Fraction(float(room[column]))
        left = self._path(int(trees.left[node]), number, columns, room, wanted)
        right = self._path(int(trees.right[node]), number, columns, room, wanted)
        return syntax.disjunction(
            [
                syntax.conjunction([syntax.Compare("<=", columns[column], syntax.Constant(edge + wide)), left]),
                syntax.conjunction([syntax.Compare(">=", columns[column], syntax.Constant(edge - wide)), right]),
            ]
        )

    def _sum(self, k: int, prefix: str) -> syntax.Expression:
        leaves: list[syntax.Expression] = [syntax.Variable(prefix + _leaf(t, k)) for t in range(len(self.trees.roots))]
        start = Fraction(float(self.trees.base[k]))
        return syntax.total([syntax.Constant(start), *leaves] if start else leaves)

    # ---- evaluation

    def exact_scores(self, point: Point) -> tuple[Fraction, ...]:
        """Return each output's sum, columns and sums in exact arithmetic."""
        return self._walked(point)[0]

    def predicted(self, point: Point) -> int:
        """Return the class of a point, rounding aside."""
        return winner(self.exact_scores(point), ties_last=self.trees.ties_last)

    def _walked(self, point: Point) -> tuple[tuple[Fraction, ...], dict[int, Fraction]]:
        """Return the sums of a point, and for each column the least distance to an edge that it is compared with on the way."""
        trees, columns = self.trees, self.inputs.exact_scores(point)
        sums = [Fraction(float(base)) for base in trees.base]
        nearest: dict[int, Fraction] = {}
        for root in trees.roots:
            node = int(root)
            while trees.left[node] >= 0:
                column = int(trees.column[node])
                ahead = columns[column] - Fraction(float(trees.edge[node]))
                nearest[column] = min(abs(ahead), nearest.get(column, abs(ahead)))
                node = int(trees.left[node] if ahead <= 0 else trees.right[node])
            sums = [value + Fraction(float(added)) for value, added in zip(sums, trees.value[node], strict=True)]
        return tuple(sums), nearest

    def is_settled(self, point: Point, goal: Goal) -> bool:
        """Return whether the order of summation is fixed, or cannot matter at this point."""
        in_order = self.trees.fixed_order and getattr(self.inputs, "is_in_order", True)
        return in_order or self.is_beyond_rounding(point, goal, box_at(point))

    def is_beyond_rounding(self, point: Point, goal: Goal, box: Box) -> bool:
        """Return whether every edge on the way, and the goal, are farther off than rounding can move the row."""
        if isinstance(self.inputs, Composite) and not self.inputs.has_sure_votes(point, box):
            return False
        errors = self._errors(box)
        scores, nearest = self._walked(point)
        if any(distance <= Fraction(float(errors[column])) for column, distance in nearest.items()):
            return False
        band = self.trees.band(goal)
        alternatives = self.trees.alternatives(goal)
        return band == 0 or abs(clearance(scores, alternatives)) > band


_EACH = Interval(None, None, 0, None, None)


def _holds(margin: Margin, scores: Sequence[Fraction]) -> bool:
    value = margin.value(scores)
    return value > 0 if margin.strict else value >= 0


def _leaf(tree: int, output: int) -> str:
    return f"{RESERVED}leaf_{tree}_{output}"


def _number(edge: float) -> syntax.Constant:
    return syntax.Constant(Fraction(float(edge)))
