"""The linear program of a node: solved by HiGHS, and bounded by what its multipliers prove, not by what it says.

For any multipliers y of the rows, min c·x over ``row_low <= A·x <= row_high``, ``low <= x <= high`` is at least

    Σ_i (y_i row_low_i if y_i > 0 else y_i row_high_i)  +  Σ_j min(r_j low_j, r_j high_j),   r = c - Aᵀy

(Neumaier and Shcherbina, *Safe bounds in linear and mixed-integer linear programming*, 2004). Multipliers of HiGHS are dropped where a
row has no bound on their side, and the sum is evaluated with a bound on its rounding. With c = 0, a positive value proves that there is
no point. HiGHS's tolerances can make a bound weak, never wrong.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import highspy
import numpy as np
from scipy import sparse

from mace.exact import Floats
from mace.problem import Limits
from mace.solvers.linear_program import loaded
from mace.solvers.milp.contract import LOST_BY_UNDERFLOW, ROUND
from mace.solvers.milp.program import MixedProgram
from mace.solvers.milp.quantities import ZERO_OR_ONE

TOLERANCE_OF_HIGHS = 1e-9
OPTIONS: dict[str, bool | int | float | str] = {
    "output_flag": False,
    "presolve": "off",
    "solver": "simplex",
    "parallel": "off",
    "threads": 1,
    "simplex_scale_strategy": 0,
    "primal_feasibility_tolerance": TOLERANCE_OF_HIGHS,
    "dual_feasibility_tolerance": TOLERANCE_OF_HIGHS,
}

NARROWEST_SHARE = 2.0**-10
"""A range counts as at least so much of the size of its values."""

SMALLEST = 2.0**-200
"""Columns that hold nothing but what underflow leaves are not scaled."""

SECONDS_OF_HIGHS = 2.0
"""How long HiGHS's own search may look for a point."""


@dataclass(frozen=True, slots=True)
class Solved:
    """What is proved of a node, and a point to look at.

    Attributes
    ----------
    bound : float
        Proved: the objective is at least this on the node; infinite where there is no point.
    point : float array, optional
        HiGHS's solution.
    """

    bound: float
    point: Floats | None


class LinearRelaxation:
    """One HiGHS instance that holds a program's rows; the columns' bounds come and go."""

    def __init__(self, program: MixedProgram, objective: int, sense: float = 1.0) -> None:
        self.program = program
        self.width = program.width
        self.scale = _column_scale(program)
        rows = program.rows @ sparse.diags(self.scale)
        sizes = np.zeros(rows.shape[0])
        np.maximum.at(sizes, np.repeat(np.arange(len(sizes)), np.diff(rows.indptr)), np.abs(rows.data))
        factors = np.exp2(-np.ceil(np.log2(np.where(sizes > 0, sizes, 1.0))))
        self.rows = (sparse.diags(factors) @ rows).tocsr()
        self.by_column = self.rows.T.tocsr()
        self.sizes = abs(self.by_column)
        self.row_low, self.row_high = program.row_low * factors, program.row_high * factors
        self.cost = np.zeros(self.width)
        self.cost[objective] = sense * self.scale[objective]
        self.rounding = (np.diff(self.by_column.indptr) + 6.0) * ROUND
        self._all = np.arange(self.width, dtype=np.int32)
        rows = self.rows.indptr, self.rows.indices, self.rows.data
        low, high = program.low[: self.width] / self.scale, program.high[: self.width] / self.scale
        self.highs = loaded(OPTIONS, self.cost, low, high, rows, self.row_low, self.row_high)

    def solve(self, low: Floats, high: Floats, limits: Limits) -> Solved:
        """Return a proved bound on the objective over a box of columns."""
        low, high = low / self.scale, high / self.scale
        highs = self.highs
        highs.changeColsBounds(self.width, self._all, low, high)
        if not math.isinf(limits.deadline):
            highs.setOptionValue("time_limit", highs.getRunTime() + max(limits.remaining(), 1e-3))
        highs.run()
        status = highs.getModelStatus()
        if status == highspy.HighsModelStatus.kInfeasible:
            return Solved(math.inf if self._is_empty(low, high) else -math.inf, None)
        solution = highs.getSolution()
        if status != highspy.HighsModelStatus.kOptimal:
            return Solved(-math.inf, None)
        bound = self.safe_bound(np.array(solution.row_dual), self.cost, low, high)
        return Solved(bound, np.array(solution.col_value) * self.scale)

    def _is_empty(self, low: Floats, high: Floats) -> bool:
        """Return whether HiGHS's ray proves that the box holds no point of the program."""
        _, exists, ray = self.highs.getDualRay()
        if not exists:
            return False
        multipliers = np.array(ray, dtype=np.float64)
        nothing = np.zeros(self.width)
        return any(self.safe_bound(side * multipliers, nothing, low, high) > 0 for side in (1.0, -1.0))

    def safe_bound(self, multipliers: Floats, cost: Floats, low: Floats, high: Floats) -> float:
        """Return a number that the objective is not below on the box, for any multipliers."""
        if not np.isfinite(multipliers).all():
            return -math.inf
        y = np.where(np.isfinite(np.where(multipliers > 0, self.row_low, self.row_high)), multipliers, 0.0)
        ends = np.where(y > 0, self.row_low, np.where(y < 0, self.row_high, 0.0))
        reduced = cost - self.by_column @ y
        error = self.rounding * (np.abs(cost) + self.sizes @ np.abs(y))
        size = np.maximum(np.abs(low), np.abs(high))
        from_rows = y * ends
        from_columns = np.minimum(reduced * low, reduced * high)
        total = float(from_rows.sum() + from_columns.sum() - (error * size).sum())
        terms = len(y) + 2 * self.width + 8
        size_of_all = float(np.abs(from_rows).sum() + np.abs(from_columns).sum() + 2 * (error * size).sum())
        bound = total - terms * ROUND * size_of_all - LOST_BY_UNDERFLOW
        return bound if math.isfinite(bound) else -math.inf


def maximise(program: MixedProgram, objective: int, limits: Limits) -> Floats | None:
    """Return a point of a program, parts chosen and all, with as much as possible of one column, as HiGHS's own search finds it."""
    relaxation = LinearRelaxation(program, objective, sense=-1.0)
    highs = relaxation.highs
    whole = [place for place, domain in program.discrete if domain is ZERO_OR_ONE]
    columns = np.array([*program.choices.columns, *whole], dtype=np.int32)
    highs.changeColsIntegrality(len(columns), columns, np.full(len(columns), highspy.HighsVarType.kInteger))
    highs.setOptionValue("mip_feasibility_tolerance", TOLERANCE_OF_HIGHS)
    highs.setOptionValue("solver", "choose")
    highs.setOptionValue("presolve", "on")
    highs.setOptionValue("time_limit", max(min(limits.remaining(), SECONDS_OF_HIGHS), 1e-3))
    highs.run()
    values = np.array(highs.getSolution().col_value)
    is_found = highs.getInfo().primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    return values * relaxation.scale if is_found and len(values) == program.width else None


def _column_scale(program: MixedProgram) -> Floats:
    """Return a power of two for each column, near the size of its range: scaling by it rounds nothing."""
    low, high = program.low[: program.width], program.high[: program.width]
    size = np.maximum(high - low, NARROWEST_SHARE * np.maximum(np.abs(low), np.abs(high)))
    scale: Floats = np.exp2(np.round(np.log2(np.where(size > SMALLEST, size, 1.0))))
    return scale
