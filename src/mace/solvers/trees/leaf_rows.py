"""Rows of the goal that a single tree shows at once: one in each of its leaves."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mace.forms import TreeEnsemble
from mace.problem import Problem
from mace.solvers.trees.grid import Ints
from mace.solvers.trees.local import arrays_for, leaves_within
from mace.solvers.trees.parts import Tables, TreePart
from mace.space import Point

MOST_LEAF_ROWS = 200
"""How many rows at most, those that change the fewest features."""


def leaf_rows(problem: Problem) -> list[Point]:
    """Return rows that seem to be in the goal, none of which changes all that another does; none of a model of several trees.

    Each is the row nearest to the factual in a leaf. Nothing is proved of them: conditions across features may rule them out.
    """
    if not isinstance(problem.form, TreeEnsemble) or len(problem.form.roots) != 1:
        return []
    tables = Tables(problem)
    found: dict[int, tuple[TreePart, Ints]] = {}
    for values in tables.alternatives():
        part = tables.part(tables.patterns.factual, values)
        for cells in () if part is None else _nearest_of_leaves(tables, part):
            assert part is not None
            changes = int.from_bytes(np.packbits(cells != part.cells.own).tobytes())
            found.setdefault(changes, (part, cells))
    few: list[int] = []
    for changes in sorted(found, key=int.bit_count):
        if len(few) < MOST_LEAF_ROWS and not any(fewer & changes == fewer for fewer in few):
            few.append(changes)
    return [tables.point(cells, part) for part, cells in map(found.__getitem__, few)]


def _nearest_of_leaves(tables: Tables, part: TreePart) -> Iterator[Ints]:
    """Yield for each leaf in the goal the cells of its row that is nearest to the factual."""
    leaves = leaves_within(tables, part, part.farthest, arrays_for(tables, part))
    count, own, values = int(leaves.tree_start[-1]), part.cells.own, part.values
    is_sure = (values.base + values.least[leaves.leaf[:count]] >= values.sure).all(axis=1)
    for k in np.flatnonzero(is_sure):
        cells = np.clip(own, leaves.box_lo[k], leaves.box_hi[k])
        for j in np.flatnonzero(part.cells.is_mask):
            mask = int(leaves.box_mask[k, part.cells.mask_of[j]])
            cells[j] = own[j] if mask >> int(own[j]) & 1 else (mask & -mask).bit_length() - 1
        yield cells
