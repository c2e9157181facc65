"""Which questions are searched by splitting units, and from when on."""

from __future__ import annotations

import numpy as np

from mace.solvers.network import kernels
from mace.solvers.network.prepared import Costs, Floats, PreparedNetwork, Workspace

BOXES_BEFORE_SPLITS = 32
"""How many boxes are searched before units are split: near answers are found and proved by them."""

FEW_NUMBERS, FEW_GRID_STEPS = 6, 8
"""With so few free numbers boxes are cut; a number of so few steps counts as a feature with levels."""

MOST_SPLIT_WEIGHTS = 2_000_000
"""Networks with more weights are searched by boxes alone: one bound would take longer than a deadline may be missed by."""


def may_split(made: PreparedNetwork, workspace: Workspace, costs: Costs) -> bool:
    """Return whether units can be split: there are some, the costs are slopes or peaks alone, and no answer must differ from another."""
    form = int(workspace.fields["form"][0])
    is_linear = form == kernels.PEAK or (form == kernels.SUM and not costs.jump.any())
    is_small = made.arrays["weight"].size <= MOST_SPLIT_WEIGHTS
    return bool(is_linear and is_small and made.shape[0] > 1 and not len(workspace.fields["at_least"]))


def has_many_numbers(workspace: Workspace, domain: tuple[Floats, Floats], radius: float) -> bool:
    """Return whether many numbers are free in a ball."""
    lo, hi, fields = workspace.lo, workspace.hi, workspace.fields
    lo[:], hi[:] = domain
    kernels.clip(lo, hi, radius, workspace.task, workspace.work)
    is_fine = ~fields["is_table"] & (hi - lo > FEW_GRID_STEPS * fields["step"])
    return int(np.count_nonzero(is_fine)) > FEW_NUMBERS
