"""Missingness patterns: which features of a counterfactual have no value, in the order of the least that this alone costs."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator, Sequence
from enum import Enum, auto

import numpy as np

from mace.distances import PartsMetric
from mace.exact import Flags
from mace.problem import Problem
from mace.solvers.domains import Allowed

Pattern = Flags
"""Which features are missing."""

MOST_PATTERNS = 4096
"""The most patterns that are tried before a search gives up on a proof."""

TOO_MANY = "too many ways of being missing to try them all"


class More(Enum):
    """Marks in the stream of patterns. LATER: no later pattern costs less than this. TOO_MANY: there are more than can be tried."""

    LATER = auto()
    TOO_MANY = auto()


class Patterns:
    """The missingness patterns that the conditions leave.

    Attributes
    ----------
    factual : bool array
        Which of the factual's values are missing.
    """

    def __init__(self, problem: Problem, allowed: Sequence[Allowed]) -> None:
        assert isinstance(problem.metric, PartsMetric)
        self.factual: Pattern = np.array([value is None for value in problem.factual])
        self._allowed = allowed
        self._free = [
            j
            for j, (feature, each) in enumerate(zip(problem.space.values(), allowed, strict=True))
            if feature.missing and (each.spans if self.factual[j] else each.missing)
        ]
        jump, slope, square, peak = problem.metric.costs
        self._add, self._peak = (jump + slope + square)[self._free], peak[self._free]

    def in_order(self) -> Iterator[tuple[float, Pattern | More]]:
        """Yield every pattern with the least that it costs, the cheapest first.

        Those that change one more feature are made only when it is their turn; just before, ``More.LATER`` says the least that they cost.
        """
        if not self._free:
            # As a rule nothing can be missing.
            if all(one.missing if own else one.spans for one, own in zip(self._allowed, self.factual, strict=True)):
                yield 0.0, self.factual.copy()
            else:
                yield 0.0, More.LATER
            return
        serial = itertools.count()
        waiting: list[tuple[float, int, int | Pattern]] = [(0.0, next(serial), 0)]
        made = 0
        while waiting:
            cost, _, item = heapq.heappop(waiting)
            if not isinstance(item, int):
                yield cost, item
                continue
            yield cost, More.LATER
            found = list(itertools.islice(self._changing(item), MOST_PATTERNS + 1))
            made += len(found)
            if made > MOST_PATTERNS:
                yield cost, More.TOO_MANY
                return
            for each, pattern in found:
                heapq.heappush(waiting, (each, next(serial), pattern))
            if item < len(self._free):
                heapq.heappush(waiting, (self._least_cost(item + 1), next(serial), item + 1))

    def _least_cost(self, count: int) -> float:
        """Return the least that ``count`` changes from or to a missing value cost."""
        return float(np.sort(self._add)[:count].sum() + np.sort(self._peak)[:count].max(initial=0.0))

    def _changing(self, count: int) -> Iterator[tuple[float, Pattern]]:
        """Yield the patterns that differ from the factual's own in ``count`` features, each with the least it costs."""
        for chosen in itertools.combinations(range(len(self._free)), count):
            pattern = self.factual.copy()
            pattern[[self._free[k] for k in chosen]] ^= True
            each = list(chosen)
            if all(
                one.missing if is_missing else one.spans for one, is_missing in zip(self._allowed, pattern, strict=True)
            ):
                yield float(self._add[each].sum() + self._peak[each].max(initial=0.0)), pattern
