"""The tables of one question, and its parts: a missingness pattern with an alternative of the goal each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mace.constraints.differ import counts
from mace.distances import PartsMetric, PercentileMetric
from mace.forms import TreeEnsemble
from mace.problem import Problem
from mace.solvers.domains import allowed_values
from mace.solvers.missing import Patterns
from mace.solvers.trees import kernels
from mace.solvers.trees.budgets import CellBudgets, least_radius, thrifty_cells
from mace.solvers.trees.grid import Floats, Ints, make_grid
from mace.solvers.trees.prepared import Values, allowed_ends, margin_values, prepared
from mace.solvers.trees.question import needs_refining, plain_view, refined_view
from mace.space import Point, Real


@dataclass(frozen=True, slots=True)
class TreePart:
    """One missingness pattern and one alternative of the goal: its cost tables, its allowed box, and the trees.

    Attributes
    ----------
    value : float array
        The representative of each cell: its value nearest to the factual.
    by_radius : float array
        How much more of each budget may be spent for each unit of the radius of a ball.
    least_way : float
        No ball with a smaller radius has a point that is near the rows it must be near.
    nearest, least_step, farthest : float
        The cost of the nearest allowed point, the least cost of any change (0 where there is none), and a cost above every one.
    """

    pattern: NDArray[np.bool_]
    values: Values
    cells: kernels.CellTable
    box: kernels.CellBox
    value: Floats
    trees: kernels.Trees
    by_radius: Floats
    least_way: float
    nearest: float
    least_step: float
    farthest: float


class Tables:
    """What one question needs: the grid, what is allowed, and what changes cost."""

    def __init__(self, problem: Problem) -> None:
        assert isinstance(problem.form, TreeEnsemble)
        self.problem = problem
        self.form = problem.form
        made = prepared(self.form)
        strays = {
            j: float(own)
            for j, feature in made.stepped
            if (own := problem.factual[j]) is not None and not feature.has(own)
        }
        self.made = made
        self.grid = make_grid(self.form, strays) if strays else made.grid
        self.conditions = conditions = counts(problem.conditions)
        self.budgets = CellBudgets(problem)
        self.allowed = allowed_values(problem) if problem.conditions else made.free
        if problem.conditions and needs_refining(self.allowed, problem, conditions):
            self.view = refined_view(self.grid, problem, self.allowed, conditions)
        else:
            self.view = plain_view(self.grid) if strays else made.view
        self.boundaries = kernels.Boundaries(self.view.start, self.view.start_off)
        assert isinstance(problem.metric, PartsMetric)
        self.jump, self.slope, self.square, self.peak = problem.metric.costs
        self.ends = allowed_ends(self.allowed, self.grid.is_mask) if problem.conditions else made.ends
        self.patterns = Patterns(problem, self.allowed)

    def alternatives(self) -> list[Values]:
        """Return the leaf values for each alternative of the goal."""
        return [values for _, values in self.numbered_alternatives()]

    def numbered_alternatives(self) -> list[tuple[int, Values]]:
        """Return the leaf values for each alternative of the goal, with its number."""
        goal, kept = self.problem.goal, self.made.alternatives
        found = kept.get(goal)
        if found is None:
            band, values = self.form.band(goal), self.made.values
            found = []
            for number, margins in enumerate(self.form.alternatives(goal)):
                if not margins:
                    continue
                if (made := values.get((margins, band))) is None:
                    values[margins, band] = made = margin_values(self.form, margins, band)
                found.append((number, made))
            # Only now: another thread takes whatever is kept for all that there is.
            kept.put(goal, found)
        return found

    def part(self, pattern: NDArray[np.bool_], values: Values) -> TreePart | None:
        """Return one part; ``None`` where no point is allowed."""
        tables = self._cells(pattern)
        if tables is None:
            return None
        cells, box, _ = tables
        nearest, least_step, farthest = kernels.extent(box, cells)
        return TreePart(
            pattern, values, *tables, self.grid.trees(values.most, values.least), self.budgets.by_radius,
            least_radius(cells, box, self.budgets.by_radius), nearest, least_step, farthest,
        )  # fmt: skip

    def point(self, cells: Ints, part: TreePart) -> Point:
        """Return the point with the value nearest to the factual in each of some cells."""
        numbers = part.value[self.view.off[:-1] + cells]
        return tuple(
            None if part.pattern[j] else float(number) if isinstance(feature, Real) else int(number)
            for j, (feature, number) in enumerate(zip(self.problem.space.values(), numbers, strict=True))
        )

    def _cells(self, pattern: NDArray[np.bool_]) -> tuple[kernels.CellTable, kernels.CellBox, Floats] | None:
        """Return the cost tables of one pattern, its allowed box and each cell's value; ``None`` where some feature has no allowed cell."""
        view, grid, of_model = self.view, self.grid, self.made
        size, cells = len(pattern), len(view.low)
        factual = np.array([0.0 if value is None else value for value in self.problem.factual], dtype=np.float64)
        own, lo, hi, mask = (np.zeros(size, dtype=np.int64) for _ in range(4))
        made = kernels.CostTables(np.empty(cells), np.empty(cells), np.empty(cells), own)
        box = kernels.CellBox(lo, hi, mask)
        fits = kernels.cost_tables(
            kernels.CellRow(factual, self.patterns.factual, pattern),
            kernels.Kinds(grid.is_mask, of_model.is_category, view.off, view.low, view.high),
            kernels.AllowedEnds(*self.ends),
            kernels.Weights(of_model.inverse, self.jump, self.slope, self.square, self.peak),
            made,
            box,
        )
        if not fits:
            return None
        if isinstance(self.problem.metric, PercentileMetric):
            self._count_people(self.problem.metric, pattern, made)
        differs = view.differs
        missing = np.flatnonzero(pattern) if self.conditions else ()
        for i, condition in enumerate(self.conditions):
            for j in missing:
                differs = differs.copy()
                differs[i, view.off[j] : view.off[j + 1]] = (
                    condition.counts(int(j)) and condition.earlier[j] is not None
                )
        at_least = np.array([condition.features for condition in self.conditions], dtype=np.int64)
        spend = self._spend(pattern, factual, made)
        found = kernels.CellTable(
            grid.is_mask, pattern, of_model.mask_of, view.off, made.add, made.top, own, view.base, differs, at_least,
            spend, thrifty_cells(np.where(made.add < kernels.FAR, spend, np.inf), view.off), self.budgets.most,
        )  # fmt: skip
        return found, box, made.value

    def _spend(self, pattern: NDArray[np.bool_], factual: Floats, made: kernels.CostTables) -> Floats:
        """Return the least that each cell spends of each budget; a change is one where the value nearest to the factual is."""
        if not len(self.budgets.most):
            return np.empty((0, len(made.add)))
        feature = np.repeat(np.arange(len(pattern)), np.diff(self.view.off))
        changes = (made.value != factual[feature]) & (made.add < kernels.FAR)
        changes = np.where(
            (pattern | self.patterns.factual)[feature], (pattern != self.patterns.factual)[feature], changes
        )
        return self.budgets.spend(changes, feature, pattern, self.view.low, self.view.high, made.add)

    def _count_people(self, metric: PercentileMetric, pattern: NDArray[np.bool_], made: kernels.CostTables) -> None:
        """Let cells cost the share of people passed, where the distance says so; the nearest value stays the cheapest."""
        for j, (scale, own) in enumerate(zip(metric.scales, self.problem.factual, strict=True)):
            if scale is None or own is None or pattern[j]:
                continue
            at = np.arange(self.view.off[j], self.view.off[j + 1])
            at = at[made.add[at] < kernels.FAR]
            values = made.value[at]
            delta = scale.floats(float(own), values)
            made.add[at] = np.where(values == own, 0.0, self.jump[j] + (self.slope[j] + self.square[j] * delta) * delta)
            made.top[at] = self.peak[j] * delta
            if not (values == own).any():
                # The nearest value on the other side of the factual may pass fewer people.
                made.own[j] = at[np.argmin(made.add[at] + made.top[at])] - self.view.off[j]
