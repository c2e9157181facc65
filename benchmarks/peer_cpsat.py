"""A CP-SAT encoding of the nearest counterfactual of a tree ensemble, as a rival and as a second opinion.

Cells are made here, from the thresholds as read and not from the tree lane's grid. One literal stands for every boundary
between two cells (the value is below it), one for every level of a category, one for every leaf; exactly one leaf of a
tree is taken, and it implies its sides of the boundaries. The cost is the distance in whole units of 1 / ``COST``; the sum
of the leaves, in whole units of 1 / ``SCORE``, must be beyond the rounding.

Literals for inner nodes (fewer clauses) took two to three times as long, and presolve twice as long again, on forests of 10.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from ortools.sat.python import cp_model

from mace.forms import TreeEnsemble
from mace.space import Categorical, Feature, Integer, Ordinal, Point, Real

COST = 10**9
SCORE = 2**32

Path = dict[tuple[int, int], tuple[Any, float]]
"""The literals on the way to a node, and what each costs at least: the tightest on each side of a numeric feature, every
set of a category."""


class Cells:
    """The cells of a numeric or ordinal feature: the least and the greatest value of the domain in each."""

    def __init__(self, feature: Feature, edges: np.ndarray) -> None:
        if isinstance(feature, Ordinal):
            first, last = 0.0, feature.size - 1.0
        else:
            assert isinstance(feature, Real | Integer)
            assert feature.step is None
            first, last = float(feature.low), float(feature.high)
        cuts = np.unique(edges[(edges >= first) & (edges < last)])
        low = np.concatenate([[first], np.nextafter(cuts, np.inf)])
        high = np.concatenate([cuts, [last]])
        if not isinstance(feature, Real):
            low, high = np.ceil(low), np.floor(high)
        self.low, self.high = low[low <= high], high[low <= high]

    def below(self, edge: float) -> int:
        """Return the number of cells that lie at or below a threshold."""
        return int(np.searchsorted(self.high, edge, side="right"))

    def nearest(self, own: float) -> np.ndarray:
        """Return each cell's value nearest to ``own``."""
        return np.clip(own, self.low, self.high)


class Encoding:
    """The ensemble around one row: nothing farther than ``ball`` takes part."""

    def __init__(self, form: TreeEnsemble, factual: Point, ball: float = math.inf) -> None:
        self.form, self.factual, self.ball = form, factual, ball
        self.features = list(form.space.values())
        self.reads = np.array([column.feature for column in form.columns])
        self.model = cp_model.CpModel()
        self.true = self.model.new_constant(1)
        self.false = self.true.negated()
        self.cells: dict[int, Cells] = {}
        self.costs: dict[int, np.ndarray] = {}
        self.levels: dict[int, list[Any]] = {}
        self.left: dict[tuple[int, int], Any] = {}
        self.terms: list[Any] = []
        self.weights: list[int] = []
        for j, feature in enumerate(self.features):
            if isinstance(feature, Categorical):
                self._add_levels(j, feature)
            else:
                self._add_cells(j, feature)
        self._add_trees()
        self.model.minimize(cp_model.LinearExpr.weighted_sum(self.terms, self.weights))

    # ---- features

    def _add_levels(self, j: int, feature: Categorical) -> None:
        own = int(self.factual[j])
        literals = [self.model.new_bool_var("") for _ in feature.levels]
        self.model.add_exactly_one(literals)
        self.levels[j] = literals
        if feature.size > 1:
            self.terms.append(literals[own].negated())
            self.weights.append(round(COST / len(self.features)))
        if 1 / len(self.features) > self.ball:
            self.model.add_bool_and([literals[own]])

    def _add_cells(self, j: int, feature: Feature) -> None:
        nodes = np.flatnonzero((self.form.left >= 0) & (self.reads[self.form.column] == j))
        cells = Cells(feature, np.array([self._edge(int(node)) for node in nodes]))
        own = float(self.factual[j])
        change = np.abs(cells.nearest(own) - own) / float(feature.range or 1) / len(self.features)
        cost = np.round(COST * change).astype(np.int64)
        inside = np.flatnonzero(change <= self.ball)
        self.cells[j], self.costs[j] = cells, change
        for boundary in range(len(change) + 1):
            if boundary <= inside[0]:
                literal = self.false
            elif boundary > inside[-1]:
                literal = self.true
            else:
                literal = self.model.new_bool_var("")
                if boundary > inside[0] + 1:
                    self.model.add_implication(self.left[j, boundary - 1], literal)
                self._pay(literal, int(cost[boundary] - cost[boundary - 1]))
            self.left[j, boundary] = literal

    def _pay(self, below: Any, step: int) -> None:
        """Charge one step of the cost: above a boundary where it rises, below it where it falls."""
        if step:
            self.terms.append(below.negated() if step > 0 else below)
            self.weights.append(abs(step))

    def _edge(self, node: int) -> float:
        """Return the greatest value that goes left at a node, in levels for an ordinal feature."""
        column = self.form.columns[self.form.column[node]]
        if column.table is None:
            return float(self.form.edge[node])
        goes_left = np.array(column.table) <= self.form.edge[node]
        assert (np.diff(goes_left.astype(int)) <= 0).all(), "the codes of an ordinal feature must rise with its levels"
        return float(goes_left.sum()) - 0.5

    # ---- trees

    def _add_trees(self) -> None:
        form = self.form
        score = form.value[:, 0] if form.outputs == 1 else form.value[:, 1] - form.value[:, 0]
        base = form.base[0] if form.outputs == 1 else form.base[1] - form.base[0]
        terms, values, start = [], [], round(SCORE * float(base))
        for root in form.roots:
            leaves = [(literal, round(SCORE * float(score[leaf]))) for leaf, literal in self._leaves(int(root))]
            self.model.add_exactly_one(literal for literal, _ in leaves)
            least = min(value for _, value in leaves)
            start += least
            for literal, value in leaves:
                if value > least:
                    terms.append(literal)
                    values.append(value - least)
        # Each leaf is rounded by half a unit at most, so that a sum of at least one unit a tree is surely positive.
        self.model.add(cp_model.LinearExpr.weighted_sum(terms, values) >= len(form.roots) - start)

    def _leaves(self, root: int) -> list[tuple[int, Any]]:
        """Return the leaves of a tree that can be reached inside the ball, each with a literal that implies its path."""
        leaves = []
        pending: list[tuple[int, Path]] = [(root, {})]
        while pending:
            node, path = pending.pop()
            if self.form.left[node] >= 0:
                pending += self._children(node, path)
            elif _cost(path) <= self.ball:
                literal = self.model.new_bool_var("")
                for side, _ in path.values():
                    self.model.add_implication(literal, side)
                leaves.append((node, literal))
        return leaves

    def _children(self, node: int, path: Path) -> list[tuple[int, Path]]:
        j = int(self.reads[self.form.column[node]])
        if j in self.levels:
            key, literal = self._level_set(j, node)
            names = ((j, key), (j, -key))
            has_own = bool(key >> int(self.factual[j]) & 1)
            costs = (0.0 if has_own else 1 / len(self.features), 1 / len(self.features) if has_own else 0.0)
        else:
            boundary = self.cells[j].below(self._edge(node))
            literal = self.left[j, boundary]
            names = ((j, 0), (j, 1))
            costs = (self.costs[j][:boundary].min(initial=np.inf), self.costs[j][boundary:].min(initial=np.inf))
        children = (int(self.form.left[node]), int(self.form.right[node]))
        return [
            (child, path if side.index == self.true.index else {**path, name: (side, cost)})
            for child, name, side, cost in zip(children, names, (literal, literal.negated()), costs, strict=True)
            if side.index != self.false.index
        ]

    def _level_set(self, j: int, node: int) -> tuple[int, Any]:
        """Return the literal that the level of a category is among those that go left at a node."""
        goes_left = np.array(self.form.columns[self.form.column[node]].table) <= self.form.edge[node]
        key = int(sum(1 << int(k) for k in np.flatnonzero(goes_left)))
        if (j, key) not in self.left:
            literal = self.model.new_bool_var("")
            inside = [self.levels[j][k] for k in np.flatnonzero(goes_left)]
            outside = [self.levels[j][k] for k in np.flatnonzero(~goes_left)]
            self.model.add_bool_or(inside).only_enforce_if(literal)
            self.model.add_bool_or(outside).only_enforce_if(literal.negated())
            self.left[j, key] = literal
        return key, self.left[j, key]

    def point(self, solver: cp_model.CpSolver) -> Point:
        """Return the point of a solution: in every cell the value nearest to the factual."""
        values: list[float | int] = []
        for j, (feature, own) in enumerate(zip(self.features, self.factual, strict=True)):
            if j in self.levels:
                values.append(next(k for k, literal in enumerate(self.levels[j]) if solver.boolean_value(literal)))
                continue
            nearest = self.cells[j].nearest(float(own))
            cell = sum(not solver.boolean_value(self.left[j, boundary]) for boundary in range(1, len(nearest)))
            values.append(float(nearest[cell]) if isinstance(feature, Real) else int(nearest[cell]))
        return tuple(values)


def _cost(path: Path) -> float:
    """Return what a path costs at least: the dearest of its literals for every feature."""
    dearest: dict[int, float] = {}
    for (j, _), (_, cost) in path.items():
        dearest[j] = max(dearest.get(j, 0.0), cost)
    return sum(dearest.values())


def solve(form: TreeEnsemble, factual: Point, limit: float, ball: float = math.inf) -> tuple[str, Point | None, float]:
    """Return the solver's claim, its best point and its lower bound, with one worker."""
    encoding = Encoding(form, factual, ball)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.cp_model_presolve = False
    solver.parameters.max_time_in_seconds = limit
    status = solver.solve(encoding.model)
    if status == cp_model.INFEASIBLE:
        return "infeasible", None, math.inf
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return "unknown", None, solver.best_objective_bound / COST
    claim = "optimal" if status == cp_model.OPTIMAL else "feasible"
    return claim, encoding.point(solver), solver.best_objective_bound / COST
