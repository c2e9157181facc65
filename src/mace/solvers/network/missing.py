"""Questions in which values may be missing: one part for each way of being missing, the cheapest first."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from mace.clock import OutOfTime
from mace.distances import NormMetric
from mace.forms import Alternatives, Network
from mace.problem import INTERRUPTED, LATE, Bounds, Evidence, Limits, Problem
from mace.solvers.missing import Pattern, Ways
from mace.solvers.network import kernels, proof
from mace.solvers.network.parts import free_values, part_of
from mace.solvers.network.search import Search

MOST_WAYS = 4096
"""Ways of being missing that are tried before the search gives up on a proof."""

TOO_MANY = "too many ways of being missing to try them all"

NEAR = 1e-9
"""More than the floats of a cost are off, as a share: so far beyond the limit of a proof, ways are in it too."""


def may_miss(problem: Problem) -> bool:
    """Return whether some value of a row may be missing."""
    return any(feature.missing for feature in problem.space.values()) or None in problem.factual


def solve(problem: Problem, limits: Limits) -> Bounds:
    """Search the ways of being missing in the order of what they cost, until the best point costs no more than any that is left; then write
    the proof that is asked for."""
    if not limits.record:
        return _searched(problem, limits)[0]
    bounds, search = _searched(problem, limits.first_half())
    return replace(bounds, evidence=_proof(problem, bounds, search, limits))


def _searched(problem: Problem, limits: Limits) -> tuple[Bounds, Search | None]:
    """Return what is proved, and the search of the last way."""
    alternatives = _alternatives(problem)
    allowed = free_values(problem)
    search, is_complete, reason = None, True, ""
    for (floor, pattern), (next_floor, _) in itertools.pairwise(_in_order(Ways(problem, allowed))):
        if search is not None and floor >= search.best_cost:
            break
        reason = TOO_MANY if pattern is None else _late(search, limits)
        if pattern is not None and not reason:
            try:
                search = Search(problem, limits, part_of(problem, allowed, pattern), earlier=search)
                search.elsewhere = next_floor
                is_complete = search.search_all(alternatives)
            except KeyboardInterrupt:
                reason = INTERRUPTED
            except OutOfTime:
                reason = LATE
        if search is not None and not is_complete:
            search.floor = min(max(search.floor, floor), next_floor)
            break
        if reason:
            is_complete = False
            if search is not None:
                search.reason, search.floor = reason, floor
            break
    nothing = Bounds(Fraction(0), is_infeasible=is_complete, reason=reason)
    return (nothing if search is None else search.bounds(complete=is_complete)), search


def _alternatives(problem: Problem) -> Alternatives:
    form = problem.form
    assert isinstance(form, Network)
    return problem.goal.alternatives(len(form.biases[-1]), ties_last=form.ties_last)


def _proof(problem: Problem, bounds: Bounds, search: Search | None, limits: Limits) -> Evidence | None:
    """Return the cuts that prove the bound in every way of being missing that costs less, or why there are none."""
    if not bounds.is_infeasible and bounds.lower <= 0:
        return None
    alternatives, allowed = _alternatives(problem), free_values(problem)

    def ways(limit: float, most: int) -> list[dict[str, Any]]:
        made: list[dict[str, Any]] = []
        for floor, pattern in _in_order(Ways(problem, allowed)):
            if floor > limit * (1 + NEAR) or math.isinf(floor):
                return made
            if pattern is None:
                raise proof.Unfinished(TOO_MANY)
            part = Search(problem, limits, part_of(problem, allowed, pattern))
            parts = [part.cuts(margins, limit, limits, most) for margins in alternatives]
            made.append({"missing": np.flatnonzero(pattern).tolist(), "parts": parts})
        return made

    best, gap, nodes = (math.inf, 0.0, 0) if search is None else (search.best_cost, search.gap, search.nodes)
    assert isinstance(problem.metric, NormMetric)
    radii = [kernels.WHOLE] if bounds.is_infeasible else proof.radii(problem.metric, bounds.lower, best, gap)
    found, reason = proof.first_that_ends(radii, nodes, ways)
    return {"lane": "network", "ways": found} if found is not None else {"lane": "network", "missing": reason}


def _late(search: Search | None, limits: Limits) -> str:
    """Return that time is up, once a first part was searched; empty where it is not."""
    return LATE if search is not None and limits.remaining() <= 0 else ""


def _in_order(ways: Ways) -> Iterator[tuple[float, Pattern | None]]:
    """Yield ways of being missing by the least that they cost, after them an infinite cost; ``None`` where they become too many."""
    serial = itertools.count()
    waiting: list[tuple[float, int, int | Pattern]] = [(0.0, next(serial), 0)]
    made = 0
    while waiting:
        floor, _, item = heapq.heappop(waiting)
        if not isinstance(item, int):
            yield floor, item
            continue
        found = list(itertools.islice(ways.of(item), MOST_WAYS + 1))
        made += len(found)
        if made > MOST_WAYS:
            yield floor, None
            break
        for cost, pattern in found:
            heapq.heappush(waiting, (cost, next(serial), pattern))
        if item < len(ways.free):
            heapq.heappush(waiting, (ways.least_cost(item + 1), next(serial), item + 1))
    yield math.inf, None
