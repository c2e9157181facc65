"""The small linear programs of a repair."""

from __future__ import annotations

import highspy
import numpy as np

from mace.exact import Floats
from mace.solvers.linear_program import SIMPLEX_OPTIONS, loaded, rows_of


def cheapest_point(cost: Floats, matrix: Floats, limits: Floats, high: Floats) -> Floats | None:
    """Return the point with the least cost·x among those with matrix·x <= limits and 0 <= x <= high; ``None`` where there is none."""
    none = np.full(len(limits), -np.inf)
    highs = loaded(SIMPLEX_OPTIONS, cost, np.zeros(len(cost)), high, rows_of(matrix), none, limits)
    highs.run()
    is_solved = highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return np.array(highs.getSolution().col_value) if is_solved else None
