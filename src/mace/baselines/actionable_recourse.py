"""AR, actionable recourse for linear models (Ustun, Spangher, Liu; FAT* 2019), with HiGHS as the solver.

Each column moves on a grid of its own, and every move has a cost in percentiles of the data: for l1 the sum over columns of
|log((1 - Q(new)) / (1 - Q(old)))|, the total log-percentile shift; for linf the greatest |Q(new) - Q(old)|, the maximum percentile
shift. The cheapest moves that carry the score across the boundary are found by a mixed-integer program. Columns are moved one by one:
as in the authors' implementation, nothing keeps the columns of a category or of an ordinal feature together.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, ClassVar

import highspy
import numpy as np
from scipy.sparse import csr_matrix, hstack, vstack

from mace.baselines.baseline import Traits
from mace.baselines.columns import decoded
from mace.distances import NormMetric
from mace.distances.norms import L1, LInf
from mace.errors import InvalidDistance, InvalidTarget, UnsupportedModel
from mace.exact import Floats
from mace.forms import Network, Outcomes
from mace.forms.scoring import column_values
from mace.models import Reading
from mace.problem import Problem
from mace.solvers.domains import Allowed, allowed_values
from mace.solvers.linear_program import loaded
from mace.space import Column, Feature, FeatureSpace, Integer, Point, Real

GRID = 101
"""The most values of a numeric column: the ends of its range and every hundredth between."""

INSIDE = 1e-6
"""How far inside of the boundary the score must lie, in units of the greatest term, for HiGHS's tolerance not to matter."""


class ActionableRecourse:
    """The cheapest moves in percentiles, on a grid, that carry a linear score across the boundary."""

    traits: ClassVar[Traits] = Traits(
        title="Actionable Recourse (AR)",
        models=("lr",),
        data=("numeric", "binary"),
        distances=("l1", "linf"),
        is_plausible=False,
    )

    def __init__(self, reading: Reading, space: FeatureSpace, points: tuple[Point, ...]) -> None:
        form = reading.form
        if not isinstance(form, Network) or len(form.weights) > 1 or not form.is_binary or form.is_regressor:
            raise UnsupportedModel(
                f"actionable recourse takes linear models of two classes, not {reading.family}. Use the baseline 'mo'."
            )
        self._form = form
        self._space = space
        self._sorted = np.sort(column_values(form.columns, points), axis=0)

    def propose(self, problem: Problem, *, raw: bool) -> Point | str:
        """Return the cheapest point of the grid across the boundary, its types repaired unless ``raw``."""
        form, is_max = self._form, _is_max(problem)
        if not isinstance(problem.goal, Outcomes):
            raise InvalidTarget("actionable recourse takes labels as target, not bounds on a number.")
        own = column_values(form.columns, [problem.factual])[0]
        allowed = allowed_values(problem)
        grids = [
            _grid(column, feature, float(own[position]), allowed[column.feature], self._sorted[:, position])
            for position, column in enumerate(form.columns)
            for feature in [tuple(self._space.values())[column.feature]]
        ]
        costs = [self._costs(position, grid, float(own[position]), is_max) for position, grid in enumerate(grids)]
        sign = 1.0 if problem.goal.accepts(Fraction(1)) else -1.0
        weights = sign * form.weights[0][0]
        row = _cheapest(grids, costs, weights, sign * float(form.biases[0][0]), is_max)
        if row is None:
            return "no action on the grid reaches the target"
        return decoded(self._space, form.columns, row, problem.factual, raw=raw)

    def _costs(self, position: int, grid: Floats, own: float, is_max: bool) -> Floats:
        shares = self._shares(position, np.append(grid, own))
        moved = shares[:-1] - shares[-1] if is_max else np.log((1 - shares[:-1]) / (1 - shares[-1]))
        costs: Floats = np.abs(moved)
        return costs

    def _shares(self, position: int, values: Floats) -> Floats:
        """Return Q: the share of the data below each value, equal ones by half, kept off 0 and 1."""
        data = self._sorted[:, position]
        counts = np.searchsorted(data, values, "left") + np.searchsorted(data, values, "right")
        shares: Floats = np.clip(counts, 1, 2 * len(data) - 1) / (2 * len(data))
        return shares


def _is_max(problem: Problem) -> bool:
    norms = problem.metric.norms if isinstance(problem.metric, NormMetric) else ()
    if len(norms) != 1 or not isinstance(norms[0][0], L1 | LInf):
        raise InvalidDistance("actionable recourse has costs for 'l1' and 'linf' only. Use one of these.")
    return isinstance(norms[0][0], LInf)


def _grid(column: Column, feature: Feature, own: float, allowed: Allowed, data: Floats) -> Floats:
    """Return the values that a column may move to, its own included."""
    if column.table is not None:
        levels = [k for k in range(len(column.table)) if any(low <= k <= high for low, high in allowed.spans)]
        return np.unique([own, *(column.table[k] for k in levels)])
    assert isinstance(feature, Real | Integer)
    if feature.size is not None and (feature.step is not None or feature.size == 1):
        steps = np.unique(np.round(np.linspace(0, feature.size - 1, min(GRID, feature.size))).astype(int))
        values = np.array([float(feature.value_at(int(k))) if feature.step else float(feature.low) for k in steps])
    else:
        values = np.linspace(data[0], data[-1], GRID)
        values = np.unique(np.round(values)) if isinstance(feature, Integer) else values
    inside = np.zeros(len(values), dtype=bool)
    for low, high in allowed.spans:
        inside |= (low <= values) & (values <= high)
    return np.unique(np.append(values[inside], own))


def _cheapest(grids: list[Floats], costs: list[Floats], weights: Floats, bias: float, is_max: bool) -> Floats | None:
    """Return the cheapest choice of one value a column with weights · values + bias above 0, or ``None``."""
    sizes = [len(grid) for grid in grids]
    owner = np.repeat(np.arange(len(grids)), sizes)
    values, cost = np.concatenate(grids), np.concatenate(costs)
    terms = weights[owner] * values
    scale = float(np.abs(terms).max(initial=0.0)) or 1.0
    count = len(values)
    picks = csr_matrix((np.ones(count), (owner, np.arange(count))), shape=(len(grids), count))
    one, no = np.ones(len(grids)), csr_matrix((len(grids), 1))
    # One value a column; the score above the boundary; and for a greatest cost the last variable, at least each column's cost.
    blocks: list[Any] = [hstack([picks, no]), csr_matrix(np.append(terms, 0.0)[None] / scale)]
    low, high = [one, np.array([-bias / scale + INSIDE])], [one, np.array([np.inf])]
    objective = np.append(cost, 0.0)
    if is_max:
        blocks.append(hstack([csr_matrix(-picks.multiply(cost)), csr_matrix(one[:, None])]))
        low, high = [*low, 0 * one], [*high, np.inf * one]
        objective = np.append(1e-4 * cost / len(grids), 1.0)  # the sum breaks ties
    solution = _solve(objective, csr_matrix(vstack(blocks)), np.concatenate(low), np.concatenate(high))
    if solution is None:
        return None
    chosen = np.flatnonzero(solution[:count] > 0.5)
    return values[chosen]


def _solve(objective: Floats, rows: csr_matrix[Any], low: Floats, high: Floats) -> Floats | None:
    """Minimise over binary variables and a last one that is only not negative; ``None``: there is no solution."""
    count = len(objective) - 1
    least, most = np.zeros(count + 1), np.append(np.ones(count), np.inf)
    by_row = rows.indptr, rows.indices, rows.data
    highs = loaded({"output_flag": False}, objective, least, most, by_row, low, high)
    highs.changeColsIntegrality(count, np.arange(count, dtype=np.int32), np.full(count, highspy.HighsVarType.kInteger))
    highs.run()
    if highs.getInfo().primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
        return None
    return np.asarray(highs.getSolution().col_value)
