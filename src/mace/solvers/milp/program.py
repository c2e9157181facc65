"""A mixed integer linear program: its rows, and the choices between parts that its 0/1 columns make."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from mace.exact import Floats, Ints
from mace.solvers.milp.quantities import Domain


@dataclass(frozen=True, slots=True)
class Choices:
    """All choices as arrays.

    Attributes
    ----------
    columns : int array, one entry a part
        The 0/1 column.
    starts : int array, one entry a choice
        Its first part.
    choice : int array, one entry a part
        The choice it belongs to.
    parent : int array, one entry a choice
        The part that a choice lies in, or -1.
    part, quantity, low, high : arrays, one entry for each quantity of each part
        The ranges; the entries of one quantity over the parts of one choice follow each other.
    segments : int array
        Where each such group of entries begins.
    """

    columns: Ints
    starts: Ints
    choice: Ints
    parent: Ints
    part: Ints
    quantity: Ints
    low: Floats
    high: Floats
    segments: Ints


@dataclass(frozen=True, slots=True)
class MixedProgram:
    """Rows over columns, and what the search needs to know of both.

    Attributes
    ----------
    low, high : float arrays
        Bounds of the columns, then of the forms.
    width : int
        The number of columns.
    rows, row_low, row_high : sparse matrix and arrays
        The linear program: ``row_low <= rows · x <= row_high``.
    forms : sparse matrix
        The forms, one row each.
    form_numbers : tuple of int
        Which quantity each of them is.
    place : dict
        The position of a quantity that is a column.
    discrete : list of (position, Domain)
        The columns that take only some values.
    choices : Choices
        The disjunctions.
    """

    low: Floats
    high: Floats
    width: int
    rows: sparse.csr_matrix
    row_low: Floats
    row_high: Floats
    forms: sparse.csr_matrix
    form_numbers: tuple[int, ...]
    place: dict[int, int]
    discrete: list[tuple[int, Domain]]
    choices: Choices


def matrix(rows: list[dict[int, float]], place: dict[int, int], width: int) -> sparse.csr_matrix:
    """Return rows of coefficients by quantity as a matrix over the positions of the quantities."""
    starts = np.cumsum([0, *(len(row) for row in rows)])
    columns = ints(place[q] for row in rows for q in row)
    values = np.array([a for row in rows for a in row.values()], dtype=np.float64)
    return sparse.csr_matrix((values, columns, starts), shape=(len(rows), width))


def ints(values: Iterable[int]) -> Ints:
    """Return whole numbers as an array."""
    return np.array(list(values), dtype=np.int64)
