"""Ways of being missing: which features of a counterfactual have no value, and the least that this alone costs."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from mace.distances import NormMetric
from mace.problem import Problem
from mace.solvers.domains import Allowed

Pattern = NDArray[np.bool_]
"""Which features are missing."""


class Ways:
    """The ways of being missing that the conditions leave, by how many features differ from the factual's own way.

    Attributes
    ----------
    factual : bool array
        Which of the factual's values are missing.
    free : list of int
        The features that may go from missing to known, or back.
    """

    def __init__(self, problem: Problem, allowed: Sequence[Allowed]) -> None:
        assert isinstance(problem.metric, NormMetric)
        self.factual: Pattern = np.array([value is None for value in problem.factual])
        self._allowed = allowed
        self.free = [
            j
            for j, (feature, each) in enumerate(zip(problem.space.values(), allowed, strict=True))
            if feature.missing and (each.spans if self.factual[j] else each.missing)
        ]
        jump, slope, square, peak = problem.metric.costs
        self._add, self._peak = (jump + slope + square)[self.free], peak[self.free]

    def least_cost(self, count: int) -> float:
        """Return the least that ``count`` changes from or to a missing value cost."""
        return float(np.sort(self._add)[:count].sum() + np.sort(self._peak)[:count].max(initial=0.0))

    def of(self, count: int) -> Iterator[tuple[float, Pattern]]:
        """Yield the ways that differ from the factual's own in ``count`` features, each with the least it costs."""
        for chosen in itertools.combinations(range(len(self.free)), count):
            pattern = self.factual.copy()
            pattern[[self.free[k] for k in chosen]] ^= True
            each = list(chosen)
            if all(
                one.missing if is_missing else one.spans for one, is_missing in zip(self._allowed, pattern, strict=True)
            ):
                yield float(self._add[each].sum() + self._peak[each].max(initial=0.0)), pattern
