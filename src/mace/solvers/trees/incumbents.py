"""Some counterfactual to hold in hand: by ascents along one-move profiles, or by chance."""

from __future__ import annotations

import numpy as np

from mace.clock import check
from mace.solvers.trees import kernels, moves
from mace.solvers.trees.grid import Floats, Ints
from mace.solvers.trees.parts import Tables, TreePart
from mace.solvers.trees.prepared import kernel_goal

EVALUATIONS = 4e6
"""How many steps down a tree random points may take: some tens of milliseconds."""

FEWER_TRIES = 4
"""By how much fewer random points are tried where any will do, and searching comes next."""

RATIOS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
"""How the price of cost falls from one ascent to the next, for a sum over features."""

FEW_FEATURES = 32
"""Of no more features each is tried as the first to move, and every other pace does."""

MENDS = 40
"""How often some changes of the best point are taken back, and what is left repaired."""

FIRST_WORD = 88172645463325252
"""What the numbers that choose changes begin with."""

LEAST_COST = 1e-6
"""The price of cost begins where the score that is lacking pays for the least change, or for this."""

FIRST_BALL = 2.0**-12
WIDER_BALLS = (2.0, 1.5, 1.2, 1.1, 1.05)
"""The first ball in which a maximum over features is searched, and those around the best point of it that are tried afterwards."""


def find_incumbent(tables: Tables, part: TreePart, best: Ints) -> None:
    """Write the cells of some counterfactual into ``best``, as soon as one is found; it begins with -1 where there is none.

    Between its steps it looks at the clock: what ``best`` holds when :class:`~mace.clock.OutOfTime` is raised, counts.
    """
    if len(part.values.base) == 1 and not len(part.cells.at_least) and keeps_budgets(part):
        land = _landscape(tables, part)
        if has_sum(part):
            _fall(part, best, land)
        else:
            _slide(part, best, land)
    if best[0] < 0:
        _by_chance(tables, part, best)


def keeps_budgets(part: TreePart) -> bool:
    """Return whether a point without changes keeps every budget, as it may not where it has to be near a row of data."""
    return bool(kernels.exceeded_budget(part.cells.own, part.cells) < 0)


def find_by_chance(tables: Tables, part: TreePart, best: Ints) -> None:
    """Write the cells of some counterfactual into ``best`` where few random points lead to one."""
    _by_chance(tables, part, best, FEWER_TRIES)


def pulled_back(part: TreePart, point: Ints) -> Ints:
    """Return a counterfactual without the changes that can be taken back one by one."""
    margins, made = len(part.values.base), point.copy()
    scores = kernels.Scores(np.empty(len(point), np.int64), np.empty(margins), np.empty(margins))
    kernels.pull_back(made, part.box, part.cells, part.trees, kernel_goal(part.values), scores)
    return made


def exercise(tables: Tables, part: TreePart) -> None:
    """Run every kernel once, for all of them to be compiled."""
    best, land = part.cells.own.copy(), _landscape(tables, part)
    _fall(part, best, land)
    _slide(part, best, land)
    _by_chance(tables, part, best)


def has_sum(part: TreePart) -> bool:
    """Return whether the cost is at least partly a sum over features."""
    return bool(((part.cells.add > 0) & (part.cells.add < kernels.FAR)).any())


def has_maximum(part: TreePart) -> bool:
    """Return whether the cost is at least partly a maximum over features."""
    return bool(((part.cells.top > 0) & (part.cells.top < kernels.FAR)).any())


def lacking_score(part: TreePart, radius: float) -> tuple[float, Floats]:
    """Return what the factual's own score lacks, and what its own cells leave of the radius and of each budget."""
    most, least, cells = np.empty(1), np.empty(1), part.cells
    own = cells.off[:-1] + cells.own
    kernels.scores_at(cells.base_cell[own], cells, part.trees, kernel_goal(part.values), most, least)
    lacking = max(float(part.values.need[0] - most[0]), part.values.pad)
    budgets = np.maximum(cells.most - cells.spend[:, own].sum(axis=1), 0.0)
    return lacking, np.append(max(radius - part.nearest, 1e-300), budgets)


def _landscape(tables: Tables, part: TreePart) -> moves.Landscape:
    cells, features = part.cells, len(part.cells.own)
    return moves.Landscape(
        box=part.box,
        cells=cells,
        boundaries=tables.boundaries,
        trees=part.trees,
        goal=kernel_goal(part.values),
        cost=cells.add + cells.top,
        gain=np.empty(len(cells.add) + features + 2),
        ranges=np.empty((3, features), np.int64),
        stack=np.empty((3, tables.grid.depth + 2), np.int64),
    )


def _fall(part: TreePart, best: Ints, land: moves.Landscape) -> None:
    lacking = lacking_score(part, part.farthest)[0]
    are_few = len(part.cells.own) <= FEW_FEATURES
    for ratio in RATIOS[::2] if are_few else RATIOS:
        moves.fall(lacking / max(part.least_step, LEAST_COST), lacking / part.farthest, ratio, best, land)
        check()
    if are_few:
        _begin_with_each(part, best, land)
    state = np.array([FIRST_WORD], np.uint64)
    for _ in range(MENDS if best[0] >= 0 and not has_maximum(part) else 0):
        moves.mend(1, state, best, land)
        check()


def _begin_with_each(part: TreePart, best: Ints, land: moves.Landscape) -> None:
    """Begin with a move of each feature, the one that costs least for what it gains of what is lacking, and repair what it leads to."""
    cells, own, sure = part.cells, part.cells.own, float(land.goal.sure[0])
    scores = kernels.Scores(np.empty(len(own), np.int64), np.empty(1), np.empty(1))
    lacking, gain = sure - float(moves.profile(own.copy(), land)), land.gain.copy()
    known = kernels.FAR if best[0] < 0 else float(moves.sum_of(best, land))
    for j in range(len(own)):
        begin = cells.off[j]
        places, box = np.arange(cells.off[j + 1] - begin), part.box
        gained, cost = gain[begin + j + places], land.cost[begin + places] - land.cost[begin + own[j]]
        is_inside = (
            (box.mask[j] >> places) & 1 == 1 if cells.is_mask[j] else (box.lo[j] <= places) & (places <= box.hi[j])
        )
        may = is_inside & (gained > moves.LEAST_RISE) & (cost < known)
        point, k = (
            own.copy(),
            int(np.argmin(np.where(may, cost / np.where(may, np.minimum(gained, lacking), 1.0), np.inf))),
        )
        if not may[k] or not moves.may_move(j, k, point, cells):
            continue
        point[j] = k
        score = float(moves.repair(moves.profile(point, land), known, point, land))
        if score < sure:
            continue
        moves.polish(score, point, land)
        cost_of_point = float(moves.sum_of(point, land))
        if cost_of_point < known and kernels.is_counterfactual(point, cells, part.trees, land.goal, scores):
            best[:], known = point, cost_of_point
        check()


def _slide(part: TreePart, best: Ints, land: moves.Landscape) -> None:
    radius, found = FIRST_BALL, kernels.FAR
    while radius < 2 * part.farthest and found == kernels.FAR:
        found = float(moves.slide(radius, kernels.FAR, best, land))
        radius *= 2
        check()
    for factor in WIDER_BALLS if found < kernels.FAR else ():
        found = min(found, float(moves.slide(factor * found, found, best, land)))
        check()


def _by_chance(tables: Tables, part: TreePart, best: Ints, fewer: int = 1) -> None:
    evaluations = EVALUATIONS / fewer / (len(tables.grid.roots) * tables.grid.depth)
    tries = int(min(400, max(20, evaluations / 2)))
    most_found = int(min(12, max(1, evaluations / (20 * len(best)))))
    kernels.find_incumbent(tries, most_found, part.box, part.cells, part.trees, kernel_goal(part.values), best)
