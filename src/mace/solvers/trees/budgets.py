"""Second costs with a limit: how many features change, and how far a point lies from the rows of data that it is to be near.

What a row that is near costs is compared with two limits: its own, and, where distances rise evenly, the radius of a ball more. Over a
point of the ball the way from the factual to the row is no longer than the radius and the row's own limit together, and of a block of cells
between the two, of which one end is near the factual and the other near the row, all of the way counts.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mace.constraints.budget import ChangeBudget
from mace.constraints.near_data import Neighbour
from mace.distances import NormMetric
from mace.problem import Problem
from mace.solvers.trees import kernels
from mace.solvers.trees.grid import Floats, Ints
from mace.space import Categorical

if TYPE_CHECKING:
    from mace.solvers.trees.parts import TreePart

BUDGET_SHARES = 2.0**36
MOST_SHARES = 2.0**8
"""What is spent of a row's limit is a multiple of one of so many shares of it, and at most so many limits: sums are exact."""


class CellBudgets:
    """The budgets of a question: of changes, of distances from rows, and of ways over a point to these.

    Attributes
    ----------
    most : float array
        How much of each may be spent.
    by_radius : float array
        How much more for each unit of the radius of a ball.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.changes = [c.whole(problem.space) for c in problem.conditions if isinstance(c, ChangeBudget)]
        self.neighbours = [c for c in problem.conditions if isinstance(c, Neighbour)]
        self.unit = _unit(problem, self.neighbours)
        ways = self.neighbours if self.unit else []
        self.most = np.array([float(most) for _, most in self.changes] + [1.0] * (len(self.neighbours) + len(ways)))
        others = np.zeros(len(self.changes) + len(self.neighbours))
        self.by_radius = np.append(others, [self.unit / each.most for each in ways])

    def spend(
        self,
        changes: NDArray[np.bool_],
        feature: Ints,
        is_missing: NDArray[np.bool_],
        low: Floats,
        high: Floats,
        cost: Floats,
    ) -> Floats:
        """Return the least that each cell spends of each budget.

        ``changes`` says where all of a cell is a change, ``feature`` of which feature it is, ``is_missing`` which of these are missing, and
        ``cost`` what it adds to the distance.
        """
        weights = np.array([weights for weights, _ in self.changes], dtype=np.float64).reshape(-1, len(is_missing))
        changed = weights[:, feature] * changes
        if not self.neighbours:
            return np.ascontiguousarray(changed)
        low, high = (np.where(is_missing[feature], np.nan, ends) for ends in (low, high))
        limits = np.array([each.most for each in self.neighbours])[:, None]
        made = np.array([self._costs(each, feature, low, high) for each in self.neighbours])
        if self.unit:
            ways = [
                self._ways(*pair, feature, low, high, self.unit * cost)
                for pair in zip(self.neighbours, made, strict=True)
            ]
            made, limits = np.concatenate([made, ways]), np.concatenate([limits, limits])
        shares = np.minimum(made, MOST_SHARES * limits) / limits
        return np.concatenate([changed, np.floor(shares * BUDGET_SHARES) / BUDGET_SHARES])

    @staticmethod
    def _costs(neighbour: Neighbour, feature: Ints, low: Floats, high: Floats) -> Floats:
        """Return what each cell adds to the distance from a row at least."""
        found = np.empty(len(feature))
        for j in range(int(feature[-1]) + 1):
            cells = feature == j
            found[cells] = neighbour.least_costs(j, low[cells], high[cells])
        return found

    def _ways(
        self, neighbour: Neighbour, away: Floats, feature: Ints, low: Floats, high: Floats, cost: Floats
    ) -> Floats:
        """Return what each cell adds at least to the way from the factual over a point to a row."""
        data, found = neighbour.data, away + cost
        for j, own in enumerate(self.problem.factual):
            goal = data.numbers[neighbour.row, j]
            if own is None or np.isnan(goal) or data.is_category[j]:
                continue
            cells = (feature == j) & ~np.isnan(low)
            first, last = min(float(own), goal), max(float(own), goal)
            beyond = np.maximum(np.maximum(low[cells] - last, first - high[cells]), 0.0)
            found[cells] = data.metric.costs.slope[j] * data.scales[j] * (last - first + 2.0 * beyond)
        return found


def _unit(problem: Problem, neighbours: list[Neighbour]) -> float:
    """Return what a unit of the distance is in that from the rows; 0 where they are not alike, or do not rise evenly."""
    metric = problem.metric
    if not neighbours or not isinstance(metric, NormMetric):
        return 0.0
    ordered = np.array([not isinstance(feature, Categorical) for feature in problem.space.values()])
    mine = metric.up_to_one()[0]
    for each in neighbours:
        other = each.data.metric.up_to_one()[0]
        is_alike = (other.norms, other.weights) == (mine.norms, mine.weights)
        is_even = not (other.costs.jump + other.costs.square)[ordered].any() and other.costs.slope.sum() > 0
        if not (is_alike and is_even):
            return 0.0
    return float(neighbours[0].data.metric.costs.slope.sum() / metric.costs.slope.sum())


def thrifty_cells(spend: Floats, off: Ints) -> Ints:
    """Return the cell of each feature that spends least of each budget."""
    found = [[int(np.argmin(each[a:b])) for a, b in pairwise(off)] for each in spend]
    return np.array(found, dtype=np.int64).reshape(len(spend), len(off) - 1)


def within_radius(part: TreePart, radius: float) -> kernels.CellTable:
    """Return the cells of a part with the budgets of a ball."""
    cells, by_radius = part.cells, part.by_radius
    return cells._replace(most=cells.most + by_radius * radius) if by_radius.any() else cells


def least_radius(cells: kernels.CellTable, box: kernels.CellBox, by_radius: Floats) -> float:
    """Return a radius without which a budget is exceeded throughout a box; 0 where there is none."""
    least = 0.0
    for b in np.flatnonzero(by_radius):
        spent = sum(kernels.least_spent(int(b), j, box, cells) for j in range(len(box.lo)))
        least = max(least, (spent - cells.most[b]) / by_radius[b] * (1 - 1e-12))
    return float(least)
