"""MO, minimum observable (Wexler et al. 2019): the nearest row of a data set that the model puts in the target."""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar

import numpy as np

from mace.baselines.baseline import Traits
from mace.baselines.columns import changes, numbers_of
from mace.exact import Floats
from mace.forms import Outcomes
from mace.models import Reading
from mace.problem import Problem
from mace.space import FeatureSpace, Point


class MinimumObservable:
    """The nearest row of a data set that the model puts in the target."""

    traits: ClassVar[Traits] = Traits(
        title="Minimum Observable (MO)",
        models=(),
        data=("heterogeneous",),
        distances=("l0", "l1", "l2", "linf", "mixtures", "functions"),
        is_plausible=True,
    )

    def __init__(self, reading: Reading, space: FeatureSpace, points: tuple[Point, ...]) -> None:
        self._reading = reading
        self._space = space
        self._points = tuple(dict.fromkeys(points))
        self._numbers = numbers_of(self._points)

    @cached_property
    def _codes(self) -> Floats:
        """What the model says of each row, asked once."""
        return np.array([float(code) for code in self._reading.ask(self._points)])

    def propose(self, problem: Problem, *, raw: bool) -> Point | str:
        """Return the nearest row that is in the target and fulfils the constraints; ``raw`` changes nothing."""
        there = np.flatnonzero(self._is_there(problem))
        for position in there[np.argsort(self._measures(problem, there), kind="stable")]:
            point = self._points[position]
            if problem.is_valid(point):
                return point
        return f"none of the {len(self._points)} rows is in the target and fulfils the constraints"

    def _is_there(self, problem: Problem) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        goal = problem.goal
        if isinstance(goal, Outcomes):
            return np.isin(self._codes, [float(code) for code in goal.codes], invert=goal.negated)
        return np.array([goal.accepts(outcome) for outcome in problem.ask(self._points)])

    def _measures(self, problem: Problem, rows: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Floats:
        measures = problem.metric.floats(changes(self._space, self._numbers[rows], problem.factual))
        if measures is None:
            return np.array([float(problem.metric.measure(self._points[row])) for row in rows])
        return measures
