"""Asking the model about many rows at once: each row once, counted, and no longer than the deadline."""

from __future__ import annotations

import math
import time
from bisect import insort
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from mace.constraints.condition import Condition, GuardCondition
from mace.constraints.typical import Usual
from mace.constraints.views import View
from mace.distances import point_values
from mace.forms import Interval, Lead
from mace.problem import LATE, Limits, Problem
from mace.solvers.search.axes import Axes, Floats
from mace.space import Point

MOST_ROWS_TRIED = 20_000
"""Rows that the model is asked about in one search."""

ROWS_A_TRIAL = 1024
"""Rows that it is asked about in one call."""

FIRST_BLOCK = 64
"""The same at first, where there is a deadline: how long the model takes is not known."""

TIME_SHARE = 0.1
"""What part of the time that is left one call may take, as far as it can be foreseen."""


Row = tuple[float, ...]


class Ended(Exception):
    """The search has to end; the text says why, and is empty where the model was asked about enough rows."""


class Trials:
    """The rows that were tried: how far each is from the goal, and those that are valid.

    Attributes
    ----------
    asked : int
        Rows that the model was asked about.
    valid : list of (float, row)
        Measures and rows that the model, asked about many rows at once, puts in the goal, and that fulfil every condition; nearest first.
    elite : dict of bytes to (float, row)
        The nearest of them for each set of changes.
    """

    def __init__(self, problem: Problem, limits: Limits, axes: Axes) -> None:
        self.problem, self.limits, self.axes = problem, limits, axes
        self.asked = 0
        self.valid: list[tuple[float, Row]] = []
        self.elite: dict[bytes, tuple[float, Row]] = {}
        self._seconds = math.nan
        self._known: dict[Point, float] = {}
        across = [each for each in problem.conditions if each.why_not(View.DOMAINS, problem.space)]
        self._before = [condition for condition in across if isinstance(condition, GuardCondition)]
        self._after = [condition for condition in across if not isinstance(condition, GuardCondition)]

    def misses(self, rows: Floats) -> Floats:
        """Return how far each row is from being valid: 0 where it is, infinity where nothing is known but that it is not.

        Raises
        ------
        Ended
            The deadline has passed, or the model was asked about as many rows as it may be.
        """
        measures, points = self.axes.measures(rows), self.axes.points(rows)
        fresh = list({point: k for k, point in reversed(list(enumerate(points))) if point not in self._known}.values())
        asked = [k for k in reversed(fresh) if self._fulfils(points[k], self._before)]
        self._known |= {points[k]: math.inf for k in fresh}
        while asked:
            size = self._block()
            block, asked = asked[:size], asked[size:]
            for k, miss in zip(block, self._asked([points[k] for k in block]), strict=True):
                self._known[points[k]] = miss if miss or self._fulfils(points[k], self._after) else math.inf
                if not self._known[points[k]]:
                    self._add(float(measures[k]), rows[k])
        return np.array([self._known[point] for point in points])

    def _fulfils(self, point: Point, conditions: Sequence[Condition]) -> bool:
        if not conditions:
            return True
        self._check_time()
        values = point_values(self.problem.space, point)
        return all(
            condition.expected(point) if isinstance(condition, Usual) else condition.holds(values)
            for condition in conditions
        )

    def _check_time(self) -> None:
        if self.limits.remaining() <= 0:
            raise Ended(LATE)

    def _asked(self, points: list[Point]) -> list[float]:
        self._check_time()
        if self.asked >= MOST_ROWS_TRIED:
            raise Ended("")
        begun = time.monotonic()
        outcomes = self.problem.ask(points)
        self._seconds = (time.monotonic() - begun) / len(points)
        self.asked += len(points)
        return [self._miss(outcome) for outcome in outcomes]

    def _block(self) -> int:
        if math.isinf(self.limits.deadline):
            return ROWS_A_TRIAL
        if math.isnan(self._seconds):
            return FIRST_BLOCK
        return int(min(ROWS_A_TRIAL, max(1, TIME_SHARE * self.limits.remaining() / max(self._seconds, 1e-9))))

    def _miss(self, outcome: Fraction) -> float:
        """Return how far an outcome is from the goal, where it is a number of which that can be said."""
        goal = self.problem.goal
        if goal.accepts(outcome):
            return 0.0
        number = float(outcome)
        if isinstance(goal, Lead):
            return float(goal.least) - number
        if not isinstance(goal, Interval):
            return math.inf
        below = 0.0 if goal.low is None else float(goal.low) - number
        above = 0.0 if goal.high is None else number - float(goal.high)
        return max(below, above, 1e-300)

    @property
    def best(self) -> float:
        """The measure of the nearest valid row."""
        return self.valid[0][0] if self.valid else math.inf

    def _add(self, measure: float, row: Floats) -> None:
        is_nearer, found = measure < self.best, (measure, tuple(row.tolist()))
        insort(self.valid, found)
        kind = self.axes.away(row).tobytes()
        self.elite[kind] = min(self.elite.get(kind, found), found)
        if is_nearer and self.limits.on_progress is not None:
            self.limits.on_progress(0.0, measure ** (1 / self.problem.metric.power), self.asked)
