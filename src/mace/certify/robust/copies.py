"""Copies of a tree ensemble at cells of the noisy features, all of which a robust row brings to the target.

A *cell* (``places`` in the evidence) is a range of values of some noisy features that no node of the ensemble tells apart. If noise can
move a row into a cell, then the ensemble, with its nodes about these features decided, must put the row in the target. A copy of the
ensemble for the cell says that: each tree is behind nodes that ask whether noise can move the row there; elsewhere it adds more than
any leaf, so that the copy is in the target. Whatever the cells are, a robust row brings all copies to the target.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from mace.certify.robust.noise import Ends, around
from mace.certify.verdict import Refuted, Unchecked
from mace.constraints.robust import RobustCondition
from mace.exact import float_down
from mace.forms import Alternatives, Goal, Stated, TreeEnsemble
from mace.problem import Problem
from mace.space import Column, Integer, Ordinal, Point, Real

MOST_CELLS_OF_COPIES = 1000
MOST_NODES_OF_COPIES = 2_000_000
MOST_LEAF_VALUES = 50_000_000
MOST_ALTERNATIVES = 64


@dataclass(frozen=True, slots=True)
class NoiseCell:
    """A range of values of some noisy features, by position (``None``: missing), and the range from which noise can lead into it."""

    values: dict[int, tuple[float, float] | None]
    gate: dict[int, Ends | None]

    def is_near(self, point: Point) -> bool:
        """Return whether noise can move a row into the cell."""
        for j, ends in self.gate.items():
            value = point[j]
            if value is None or ends is None:
                if value is not None or ends is not None:
                    return False
            elif not ends[0] <= Fraction(value) <= ends[1]:
                return False
        return True

    def of(self, point: Point) -> Point:
        """Return the row of the cell that noise can move a near row to."""
        moved = list(point)
        for j, ends in self.values.items():
            value = point[j]
            if value is not None and ends is not None:
                moved[j] = type(value)(min(max(value, ends[0]), ends[1]))
        return tuple(moved)


def read_cell(problem: Problem, noise: RobustCondition, entry: dict[str, Any]) -> NoiseCell:
    """Return the cell of an entry of the evidence, or raise."""
    values: dict[int, tuple[float, float] | None] = {}
    gate: dict[int, Ends | None] = {}
    for name, ends in entry.items():
        if name not in noise.radii:
            raise Refuted(f"evidence.places: there is no noise on {name!r:.60}")
        j = problem.space.index(name)
        values[j] = gate[j] = None
        if ends is not None:
            low, high = (float(end) for end in ends)
            is_value = _are_values(problem.space[name], low, high)
            if not low <= high or (low < high and not is_value):
                raise Refuted(f"evidence.places: {name!r:.60} is not from a value of it to another")
            values[j] = (low, high)
            gate[j] = around(noise, name, low, high) if is_value else (Fraction(low), Fraction(high))
    return NoiseCell(values, gate)


def _are_values(feature: object, *values: float) -> bool:
    """Return whether numbers are values of a feature, wherever a row comes from."""
    if isinstance(feature, Ordinal):
        return all(value in range(len(feature.levels)) for value in values)
    return isinstance(feature, Real | Integer) and all(feature.has(value) for value in values)


# ---- copies


@dataclass(frozen=True, eq=False)
class WithCopies(TreeEnsemble):
    """An ensemble and its copies as one, each with outputs of its own; a margin is one of the ensemble or of a copy, never across."""

    one: TreeEnsemble | None = None

    def band(self, goal: Goal) -> Fraction:
        """Return how far off a margin of the ensemble, or of a copy, may be."""
        assert self.one is not None
        return self.one.band(getattr(goal, "goal", goal))

    @property
    def _as_difference(self) -> bool:
        """Two outputs are of different sums here, and not folded into their difference."""
        return False


def with_copies(problem: Problem, cells: Sequence[NoiseCell]) -> Problem:
    """Return the problem of reaching the goal at some cells as well."""
    form, ask, goal = problem.form, problem.ask, problem.goal
    assert isinstance(form, TreeEnsemble)
    if len(cells) > MOST_CELLS_OF_COPIES:
        raise Unchecked(f"there are {len(cells):,} places, and at most {MOST_CELLS_OF_COPIES:,} are looked at")
    made = _NodeList(form, 2 * len(cells))
    made.add_ensemble()
    yes = _yes(form, goal)
    for number, cell in enumerate(cells):
        made.add_copy(cell, number, yes)

    def ask_all(points: Sequence[Point]) -> list[Fraction]:
        found = []
        for point in points:
            rows = [point, *(cell.of(point) for cell in cells if cell.is_near(point))]
            found.append(Fraction(all(goal.accepts(ask([row])[0]) for row in rows)))
        return found

    return replace(
        problem, form=made.joined(), ask=ask_all, goal=Stated(_every_choice(form, goal, len(cells)), goal.slack, goal)
    )


def _every_choice(form: TreeEnsemble, goal: Goal, copies: int) -> Alternatives:
    """Return every choice of an alternative for an ensemble and for each copy. A copy has its outputs twice: some are to be large, some
    small."""
    own = form.alternatives(goal)
    if len(own) ** (copies + 1) > MOST_ALTERNATIVES:
        raise Unchecked("the target has too many alternatives for so many places")
    each = [own]
    for copy in range(copies):
        large = (2 * copy + 1) * form.outputs
        each.append(tuple(tuple(margin.moved(large, large + form.outputs) for margin in margins) for margins in own))
    return tuple(tuple(itertools.chain(*chosen)) for chosen in itertools.product(*each))


def _yes(form: TreeEnsemble, goal: Goal) -> list[tuple[list[float], list[float]]]:
    """Return for each tree what its copies add where they say yes, to be large and to be small: more than any of its leaves.

    The sums of these must be in the goal by more than any rounding.
    """
    ends = [*form.roots[1:], len(form.left)]
    found = []
    for begin, end in zip(form.roots, ends, strict=True):
        own = form.value[begin:end][form.left[begin:end] < 0]
        most, least = own.max(axis=0), own.min(axis=0)
        more = 2.0 ** math.ceil(math.log2(max(float((most - least).max()), 2.0**-20)))
        found.append(((most + more).tolist(), (least - more).tolist()))
    start = [Fraction(float(base)) for base in form.base]
    large = [base + sum(Fraction(up[k]) for up, _ in found) for k, base in enumerate(start)]
    small = [base + sum(Fraction(down[k]) for _, down in found) for k, base in enumerate(start)]
    for margin in itertools.chain(*form.alternatives(goal)):
        ahead = Fraction(0) if margin.plus is None else large[margin.plus]
        behind = Fraction(0) if margin.minus is None else small[margin.minus]
        if ahead - behind + margin.shift <= form.band(goal) + margin.slack:
            raise Unchecked("copies of the ensemble cannot be made to say yes for sure")
    return found


class _NodeList:
    """The nodes of an ensemble and its copies, one after the other."""

    def __init__(self, form: TreeEnsemble, halves: int) -> None:
        self.form = form
        self.outputs = form.outputs * (1 + halves)
        self.columns = list(form.columns)
        self.roots: list[int] = []
        self.column: list[int] = []
        self.edge: list[float] = []
        self.left: list[int] = []
        self.right: list[int] = []
        self.missing_left: list[bool] = []
        self.subset: list[int] = []
        self.values: list[tuple[int, int, list[float]]] = []

    def _node(self, column: int = 0, edge: float = 0.0, missing_left: bool = False, subset: int = -1) -> int:
        if len(self.left) >= MOST_NODES_OF_COPIES:
            raise Unchecked(f"the ensemble and its copies have more than {MOST_NODES_OF_COPIES:,} nodes")
        self.column.append(column)
        self.edge.append(edge)
        self.missing_left.append(missing_left)
        self.subset.append(subset)
        self.left.append(-1)
        self.right.append(-1)
        return len(self.left) - 1

    def _leaf(self, begin: int, numbers: list[float]) -> int:
        node = self._node()
        self.values.append((node, begin, numbers))
        return node

    def add_ensemble(self) -> None:
        """Put the ensemble itself first."""
        for root in self.form.roots:
            self.roots.append(self._grow(int(root), {}, 0, 1))

    def add_copy(self, cell: NoiseCell, number: int, yes: list[tuple[list[float], list[float]]]) -> None:
        """Put the copy at a cell, each of its trees behind the gate."""
        begin = (2 * number + 1) * self.form.outputs
        gate = list(self._gate(cell))
        for root, (large, small) in zip(self.form.roots, yes, strict=True):
            self.roots.append(len(self.left))
            waiting: list[tuple[int, bool]] = []
            for column, edge, on_left, missing_left in gate:
                node = self._node(column, edge, missing_left)
                self._hang(waiting, node)
                no = self._leaf(begin, [*large, *small])
                (self.right if on_left else self.left)[node] = no
                waiting = [(node, on_left)]
            self._hang(waiting, self._grow(int(root), cell.values, begin, 2))

    def _hang(self, waiting: list[tuple[int, bool]], child: int) -> None:
        for node, is_left in waiting:
            (self.left if is_left else self.right)[node] = child

    def _gate(self, cell: NoiseCell) -> Iterator[tuple[int, float, bool, bool]]:
        """Yield column, edge, the side that is let on, and whether what is missing goes left."""
        for j, ends in cell.gate.items():
            name = self.form.space.names[j]
            feature = self.form.space[name]
            table = tuple(float(k) for k in range(len(feature.levels))) if isinstance(feature, Ordinal) else None
            self.columns.append(Column(name, j, table))
            column = len(self.columns) - 1
            if ends is None:
                yield column, math.inf, False, False
            else:
                below = float_down(ends[0])
                yield column, (math.nextafter(below, -math.inf) if below == ends[0] else below), False, True
                yield column, float_down(ends[1]), True, False

    def _grow(self, root: int, cell: dict[int, tuple[float, float] | None], begin: int, times: int) -> int:
        """Put a tree, without the nodes that a cell decides; return its first node."""
        first = len(self.left)
        pending: list[tuple[int, int, bool]] = [(root, -1, True)]
        form = self.form
        while pending:
            old, above, is_left = pending.pop()
            while form.left[old] >= 0 and form.columns[form.column[old]].feature in cell:
                old = int(form.left[old] if self._goes_left(old, cell) else form.right[old])
            if form.left[old] < 0:
                new = self._leaf(begin, form.value[old].tolist() * times)
            else:
                new = self._node(
                    int(form.column[old]), float(form.edge[old]), bool(form.missing_left[old]), int(form.subset[old])
                )
                pending += [(int(form.right[old]), new, False), (int(form.left[old]), new, True)]
            if above >= 0:
                (self.left if is_left else self.right)[above] = new
        return first

    def _goes_left(self, node: int, cell: dict[int, tuple[float, float] | None]) -> bool:
        """Return where all rows of a cell go at a node about a noisy feature; raise where they part."""
        form = self.form
        column = form.columns[form.column[node]]
        ends = cell[column.feature]
        if ends is None:
            return bool(form.missing_left[node])
        if column.table is None and form.subset[node] < 0:
            ways = {bool(end <= form.edge[node]) for end in ends}
        else:
            levels = range(math.ceil(ends[0]), math.floor(ends[1]) + 1)
            subset = form.subsets[form.subset[node]] if form.subset[node] >= 0 else None
            table = column.table or tuple(map(float, levels))
            ways = {bool(table[k] <= form.edge[node] if subset is None else subset[k]) for k in levels}
        if len(ways) != 1:
            raise Refuted(f"evidence.places: the model tells values of {column.name!r:.60} in a place apart")
        return ways.pop()

    def joined(self) -> WithCopies:
        """Return all of it as one ensemble."""
        form = self.form
        if len(self.left) * self.outputs > MOST_LEAF_VALUES:
            raise Unchecked("the copies are too large together")
        value = np.zeros((len(self.left), self.outputs))
        for node, begin, numbers in self.values:
            value[node, begin : begin + len(numbers)] = numbers
        return WithCopies(
            space=form.space,
            columns=tuple(self.columns),
            roots=np.array(self.roots, dtype=np.int64),
            column=np.array(self.column, dtype=np.int64),
            edge=np.array(self.edge, dtype=np.float64),
            left=np.array(self.left, dtype=np.int64),
            right=np.array(self.right, dtype=np.int64),
            missing_left=np.array(self.missing_left, dtype=bool),
            value=value,
            base=np.tile(form.base, self.outputs // form.outputs),
            subset=np.array(self.subset, dtype=np.int64),
            subsets=form.subsets,
            fixed_order=form.fixed_order,
            is_blockwise=form.is_blockwise,
            unit=form.unit,
            squash=form.squash,
            ties_last=form.ties_last,
            link=form.link,
            is_regressor=form.is_regressor,
            one=form,
        )
