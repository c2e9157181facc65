"""The tables of one question, and its parts: a missingness pattern with an alternative of the goal each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mace.constraints.budget import ChangeBudget
from mace.constraints.differ import CountDifferent
from mace.distances import PartsMetric, PercentileMetric
from mace.forms import TreeEnsemble
from mace.problem import Problem
from mace.solvers.domains import allowed_values
from mace.solvers.missing import Patterns
from mace.solvers.trees import kernels
from mace.solvers.trees.grid import Floats, Ints, make_grid
from mace.solvers.trees.pockets import PocketSearch
from mace.solvers.trees.prepared import Values, allowed_ends, margin_values, prepared
from mace.solvers.trees.question import needs_refining, plain_view, refined_view
from mace.solvers.trees.rows import block_rows, groups_of, no_rows
from mace.space import Integer, Point, Real


@dataclass(frozen=True, slots=True)
class TreePart:
    """One missingness pattern and one alternative of the goal: its cost tables, its allowed box, and the trees.

    Attributes
    ----------
    value : float array
        The representative of each cell: its value nearest to the factual.
    nearest, least_step, farthest : float
        The cost of the nearest allowed point, the least cost of any change (0 where there is none), and a cost above every one.
    """

    pattern: NDArray[np.bool_]
    values: Values
    cells: kernels.CellTable
    box: kernels.CellBox
    value: Floats
    trees: kernels.Trees
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
            for j, (feature, own) in enumerate(zip(problem.space.values(), problem.factual, strict=True))
            if own is not None
            and isinstance(feature, Real | Integer)
            and feature.step is not None
            and not feature.has(own)
        }
        self.grid = make_grid(self.form, strays) if strays else made.grid
        self.cache = made.values
        conditions = [c for c in problem.conditions if isinstance(c, CountDifferent)]
        self.conditions = conditions
        self.budgets = [c.whole(problem.space) for c in problem.conditions if isinstance(c, ChangeBudget)]
        self.groups = groups_of(problem)
        self.allowed = allowed_values(problem) if problem.conditions else made.free
        if needs_refining(self.allowed, problem, conditions):
            self.view = refined_view(self.grid, problem, self.allowed, conditions)
        else:
            self.view = plain_view(self.grid) if strays else made.view
        self.boundaries = kernels.Boundaries(self.view.start, self.view.start_off)
        self.masks = max(1, int(self.grid.is_mask.sum()))
        assert isinstance(problem.metric, PartsMetric)
        self.jump, self.slope, self.square, self.peak = problem.metric.costs
        self.inverse, self.is_category, self.mask_of = made.inverse, made.is_category, made.mask_of
        self.ends = allowed_ends(self.allowed, self.grid.is_mask) if problem.conditions else made.ends
        self.patterns = Patterns(problem, self.allowed)

    @cached_property
    def pockets(self) -> PocketSearch:
        """What searches boxes on which only limits on distances are left to decide."""
        return PocketSearch(self.problem, self.groups)

    @property
    def has_neighbours(self) -> bool:
        """Whether some rows are to be near."""
        return any(not group.is_far for group in self.groups)

    def alternatives(self) -> list[Values]:
        """Return the leaf values for each alternative of the goal."""
        return [values for _, values in self.numbered_alternatives()]

    def numbered_alternatives(self) -> list[tuple[int, Values]]:
        """Return the leaf values for each alternative of the goal, with its number."""
        goal = self.problem.goal
        band = self.form.band(goal)
        made = []
        for number, margins in enumerate(self.form.alternatives(goal)):
            if not margins:
                continue
            if (margins, band) not in self.cache:
                self.cache[margins, band] = margin_values(self.form, margins, band)
            made.append((number, self.cache[margins, band]))
        return made

    def part(self, pattern: NDArray[np.bool_], values: Values) -> TreePart | None:
        """Return one part; ``None`` where no point is allowed."""
        tables = self._cells(pattern)
        if tables is None:
            return None
        cells, box, _ = tables
        return TreePart(
            pattern, values, *tables, self.grid.trees(values.most, values.least), *kernels.extent(box, cells)
        )

    def point(self, cells: Ints, part: TreePart) -> Point:
        """Return the point with the value nearest to the factual in each of some cells."""
        numbers = part.value[self.view.off[:-1] + cells]
        return tuple(
            None if part.pattern[j] else float(number) if isinstance(feature, Real) else int(number)
            for j, (feature, number) in enumerate(zip(self.problem.space.values(), numbers, strict=True))
        )

    def _cells(self, pattern: NDArray[np.bool_]) -> tuple[kernels.CellTable, kernels.CellBox, Floats] | None:
        """Return the cost tables of one pattern, its allowed box and each cell's value; ``None`` where some feature has no allowed cell."""
        view, grid = self.view, self.grid
        size, cells = len(pattern), len(view.low)
        factual = np.array([0.0 if value is None else float(value) for value in self.problem.factual])
        own, lo, hi, mask = (np.zeros(size, dtype=np.int64) for _ in range(4))
        made = kernels.CostTables(np.empty(cells), np.empty(cells), np.empty(cells), own)
        box = kernels.CellBox(lo, hi, mask)
        fits = kernels.cost_tables(
            kernels.CellRow(factual, self.patterns.factual, pattern),
            kernels.Kinds(grid.is_mask, self.is_category, view.off, view.low, view.high),
            kernels.AllowedEnds(*self.ends),
            kernels.Weights(self.inverse, self.jump, self.slope, self.square, self.peak),
            made,
            box,
        )
        if not fits:
            return None
        if isinstance(self.problem.metric, PercentileMetric):
            self._count_people(self.problem.metric, pattern, made)
        differs = view.differs
        for i, condition in enumerate(self.conditions):
            for j in np.flatnonzero(pattern):
                differs = differs.copy()
                differs[i, view.off[j] : view.off[j + 1]] = condition.earlier[j] is not None
        at_least = np.array([condition.features for condition in self.conditions], dtype=np.int64)
        found = kernels.CellTable(
            grid.is_mask, pattern, self.mask_of, view.off, made.add, made.top, own, view.base, differs, at_least,
            self._spend(pattern, factual, made), np.array([most for _, most in self.budgets], dtype=np.float64),
            self._rows(pattern, made),
        )  # fmt: skip
        return found, box, made.value

    def _spend(self, pattern: NDArray[np.bool_], factual: Floats, made: kernels.CostTables) -> Floats:
        """Return what each cell spends of each budget: the weight of its feature, where its value nearest to the factual is a change."""
        feature = np.repeat(np.arange(len(pattern)), np.diff(self.view.off))
        changes = (made.value != factual[feature]) & (made.add < kernels.FAR)
        changes = np.where(
            (pattern | self.patterns.factual)[feature], (pattern != self.patterns.factual)[feature], changes
        )
        weights = np.array([weights for weights, _ in self.budgets], dtype=np.float64).reshape(-1, len(pattern))
        return np.ascontiguousarray(weights[:, feature] * changes)

    def _rows(self, pattern: NDArray[np.bool_], made: kernels.CostTables) -> kernels.Rows:
        """Return the rows to be far from; those to be near are many, and only looked at within balls."""
        if not self.groups:
            return no_rows()
        far = [group for group in self.groups if group.is_far]
        return block_rows(far, pattern, self.view.off, self.view.low, self.view.high, made.value, np.inf)

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
