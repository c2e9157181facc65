"""Linear programs for HiGHS."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import highspy
import numpy as np

from mace.exact import Floats, Ints

Options = Mapping[str, bool | int | float | str]

SIMPLEX_OPTIONS: Options = {
    "output_flag": False,
    "threads": 1,
    "solver": "simplex",
    "presolve": "off",
    "random_seed": 0,
}
"""For small programs, so that setting one up takes no longer than solving it."""

Rows = tuple[Ints, Ints, Floats]
"""A sparse matrix row by row: where each row begins, and the column and the value of each entry."""


def rows_of(matrix: Floats) -> Rows:
    """Return the rows of a dense matrix."""
    rows, columns = np.nonzero(matrix)
    return np.searchsorted(rows, np.arange(len(matrix) + 1)), columns, matrix[rows, columns]


def loaded(
    options: Options,
    cost: Floats,
    low: Floats,
    high: Floats,
    rows: Rows,
    row_low: Floats,
    row_high: Floats,
) -> Any:
    """Return HiGHS with a linear program: the least cost·x with row_low <= rows·x <= row_high and low <= x <= high."""
    highs: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    for name, value in options.items():
        highs.setOptionValue(name, value)
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = len(cost), len(row_low)
    model.col_cost_, model.col_lower_, model.col_upper_ = cost, low, high
    model.row_lower_, model.row_upper_ = row_low, row_high
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    model.a_matrix_.start_, model.a_matrix_.index_, model.a_matrix_.value_ = rows
    highs.passModel(model)
    return highs
