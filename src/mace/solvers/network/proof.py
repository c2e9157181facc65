"""The proof that a certificate carries: for each alternative of the goal a tree of cuts, made in one pass at the final radius.

The search bounds boxes in balls that shrink as points are found; with the radius known, far fewer cuts do. Bounds are not recorded: a
checker finds its own.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mace.distances import NormMetric
from mace.exact import float_up
from mace.problem import INTERRUPTED, Limits
from mace.solvers.network import kernels
from mace.solvers.network.prepared import Floats, PreparedNetwork, Workspace
from mace.solvers.pace import Pace
from mace.space import Real

SHARE_BEYOND_LOWER = 0.02
"""How much farther than ``lower`` is proved where possible, as a share of what the search leaves unsearched: room for the roundings of a
checker."""

FIRST_ROOM, DEEPEST_CUT = 1024, 4096

NO_TIME = "the time limit left no time for the proof"

LEFT_TO_THE_MODEL = "of a single point only the model knows that it is refused"

BESIDE = 2e-4
"""In steps of a grid: how far above a value a cut is written down, more than the kernels' own values are off."""


class Unfinished(Exception):
    """There is no proof; the message says why."""


def radii(metric: NormMetric, lower: Fraction, best: float, gap: float) -> list[float]:
    """Return the costs up to which to try to prove that there is nothing: a little beyond ``lower`` first, where nothing is known to be.

    Parameters
    ----------
    metric : NormMetric
        The distance.
    lower : Fraction
        The distance that the claim is about.
    best : float
        The cost of the best point; infinite where there is none.
    gap : float
        How far below the best point the search ended, as a distance.
    """
    power = metric.power
    end = best ** (1 / power) - gap / 2
    exact = min(float_up(lower), end)
    beyond = min(exact + SHARE_BEYOND_LOWER * gap, end) if end - exact < gap else exact
    return [max(distance, 0.0) ** power for distance in dict.fromkeys((beyond, exact))]


def first_that_ends(
    radii: list[float], nodes: int, proved: Callable[[float, int], list[dict[str, Any]]]
) -> tuple[list[dict[str, Any]] | None, str]:
    """Return the first proof that ends, made at a radius with trees of at most so many entries; or ``None`` and why there is none.

    The true optimum may lie just beyond ``lower``; then cutting does not end, and only ``lower`` itself, the last radius, can be proved.
    """
    reason = ""
    for limit in radii:
        try:
            return proved(limit, 4096 + 16 * nodes if limit == radii[-1] else 64 + nodes), ""
        except Unfinished as error:
            reason = str(error)
        except KeyboardInterrupt:
            return None, INTERRUPTED
    return None, reason


def cuts(
    workspace: Workspace,
    made: PreparedNetwork,
    limit: float,
    tolerance: float,
    limits: Limits,
    most: int,
    *,
    leaves_points: bool = True,
) -> dict[str, NDArray[Any]]:
    """Return the tree of cuts of one alternative, whose arrays are in ``workspace``, of at most so many entries.

    Where it ``leaves_points``, a leaf may be a single point of which only the model knows that it is refused.
    """
    features = len(made.features)
    tree = kernels.ProofArrays(
        counts=np.array([1, 0, 0], dtype=np.int64),
        feature=np.zeros(FIRST_ROOM, dtype=np.int64),
        at=np.zeros(FIRST_ROOM),
        lo=np.zeros((DEEPEST_CUT, features)),
        hi=np.zeros((DEEPEST_CUT, features)),
        forced=np.full((DEEPEST_CUT, 2), -1.0),
    )
    tree.lo[0], tree.hi[0] = workspace.lo, workspace.hi
    pace = Pace(limits.deadline, made.first_budget)
    while tree.counts[0]:
        if tree.counts[0] + 2 > DEEPEST_CUT or tree.counts[1] >= most:
            raise Unfinished("the proof at the final radius is too large")
        if limits.remaining() <= 0:
            raise Unfinished(NO_TIME)
        if tree.counts[1] >= len(tree.feature):
            tree = tree._replace(feature=np.tile(tree.feature, 2), at=np.tile(tree.at, 2))
        with pace.timed():
            kernels.prove(
                pace.steps, limit, tolerance, tree, workspace.lo, workspace.hi, made.net, workspace.task, workspace.work
            )
    if tree.counts[2] and not leaves_points:
        raise Unfinished(LEFT_TO_THE_MODEL)
    size = tree.counts[1]
    return written(workspace, made, tree.feature[:size], tree.at[:size])


def written(
    workspace: Workspace, made: PreparedNetwork, feature: NDArray[np.int64], at: Floats
) -> dict[str, NDArray[Any]]:
    """Return cuts as numbers of the features: of levels the rank, a category's own level first."""
    at, layout = at.copy(), made.layout
    for j, kind in enumerate(made.features):
        mine = feature == j
        if not mine.any():
            continue
        if layout.is_table[j]:
            slots = workspace.fields["entry_slot"][workspace.fields["off"][j] : workspace.fields["off"][j + 1]]
            level = (slots - layout.slot_from[j])[np.clip(at[mine].astype(np.int64), 0, len(slots) - 1)]
            own = int(workspace.fields["slot"][j] - layout.slot_from[j])
            at[mine] = np.where(level == own, 0, level + (level < own)) if layout.is_category[j] else level
        elif isinstance(kind, Real) and kind.step is not None:
            at[mine] += BESIDE * kind.step
    most = max(2, len(made.features), -int(feature.min()))
    return {"feature": feature.astype(np.min_scalar_type(-most)), "at": at[feature >= 0]}


def leaf() -> dict[str, NDArray[Any]]:
    """Return the tree of a question whose domain is empty."""
    return {"feature": np.array([-1], dtype=np.int8), "at": np.zeros(0)}
