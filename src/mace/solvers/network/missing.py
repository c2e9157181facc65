"""Questions in which values may be missing: one part for each missingness pattern, the cheapest first."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from mace.clock import OutOfTime
from mace.distances import NormMetric
from mace.problem import INTERRUPTED, LATE, Bounds, Evidence, Limits, Problem
from mace.solvers.domains import Allowed, allowed_values
from mace.solvers.missing import TOO_MANY, More, Pattern, Patterns
from mace.solvers.network import kernels, proof
from mace.solvers.network.parts import part_of
from mace.solvers.network.search import NetworkSearch

COST_ERROR = 1e-9
"""More than the relative error of a cost in floats: patterns that cost this much more than the limit of a proof are proved too."""


def may_miss(problem: Problem) -> bool:
    """Return whether some value of a row may be missing."""
    return any(feature.missing for feature in problem.space.values()) or None in problem.factual


def solve(problem: Problem, limits: Limits) -> Bounds:
    """Search the patterns in the order of what they cost, until none that is left is cheaper than the best point; then write the proof that
    is asked for."""
    if not limits.record:
        return _searched(problem, limits)[0]
    bounds, search = _searched(problem, limits.first_half())
    return replace(bounds, evidence=_proof(problem, bounds, search, limits))


def _searched(problem: Problem, limits: Limits) -> tuple[Bounds, NetworkSearch | None]:
    """Return what is proved, and the search of the last pattern."""
    allowed = allowed_values(problem)
    search, is_complete, reason = None, True, ""
    for (floor, pattern), (next_floor, _) in itertools.pairwise(_in_order(problem, allowed)):
        if search is not None and floor >= search.best_cost:
            break
        reason = TOO_MANY if pattern is None else LATE if search is not None and limits.remaining() <= 0 else ""
        if pattern is not None and not reason:
            try:
                search = NetworkSearch(problem, limits, part_of(problem, allowed, pattern), earlier=search)
                search.elsewhere = next_floor
                is_complete = search.search_all()
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


def _proof(problem: Problem, bounds: Bounds, search: NetworkSearch | None, limits: Limits) -> Evidence | None:
    """Return the branchings that prove the bound for every pattern that costs less, or why there are none."""
    if not bounds.is_infeasible and bounds.lower <= 0:
        return None
    allowed = allowed_values(problem)

    def proofs(limit: float, most: int) -> list[dict[str, Any]]:
        made: list[dict[str, Any]] = []
        for floor, pattern in _in_order(problem, allowed):
            if floor > limit * (1 + COST_ERROR) or math.isinf(floor):
                return made
            if pattern is None:
                raise proof.Unfinished(TOO_MANY)
            part = NetworkSearch(problem, limits, part_of(problem, allowed, pattern))
            parts = [part.cuts(margins, limit, limits, most) for margins in part.alternatives]
            made.append({"missing": np.flatnonzero(pattern).tolist(), "parts": parts})
        return made

    best, gap, nodes = (math.inf, 0.0, 0) if search is None else (search.best_cost, search.gap, search.nodes)
    assert isinstance(problem.metric, NormMetric)
    radii = [kernels.WHOLE] if bounds.is_infeasible else proof.radii(problem.metric, bounds.lower, best, gap)
    found, reason = proof.first_that_ends(radii, nodes, proofs)
    return {"lane": "network", "ways": found} if found is not None else {"lane": "network", "missing": reason}


def _in_order(problem: Problem, allowed: list[Allowed]) -> Iterator[tuple[float, Pattern | None]]:
    """Yield the patterns by the least that they cost, after them an infinite cost; ``None`` where they become too many."""
    for cost, item in Patterns(problem, allowed).in_order():
        if item is not More.LATER:
            yield cost, None if isinstance(item, More) else item
    yield math.inf, None
