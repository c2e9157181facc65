"""Small linear programs: asked for a few times in a repair, so that setting one up must not take longer than solving it."""

from __future__ import annotations

from typing import Any

import highspy
import numpy as np

from mace.exact import Floats

OPTIONS_OF_REPAIRS = {"output_flag": False, "threads": 1, "solver": "simplex", "presolve": "off", "random_seed": 0}


def cheapest_point(cost: Floats, matrix: Floats, limits: Floats, high: Floats) -> Floats | None:
    """Return the point with the least cost·x among those with matrix·x <= limits and 0 <= x <= high; ``None`` where there is none."""
    highs: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    for name, value in OPTIONS_OF_REPAIRS.items():
        highs.setOptionValue(name, value)
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = len(cost), len(limits)
    model.col_cost_, model.col_lower_, model.col_upper_ = cost, np.zeros(len(cost)), high
    model.row_lower_, model.row_upper_ = np.full(len(limits), -np.inf), limits
    rows, columns = np.nonzero(matrix)
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    model.a_matrix_.start_ = np.searchsorted(rows, np.arange(len(limits) + 1))
    model.a_matrix_.index_, model.a_matrix_.value_ = columns, matrix[rows, columns]
    highs.passModel(model)
    highs.run()
    is_solved = highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return np.array(highs.getSolution().col_value) if is_solved else None
