"""Attacks and repairs, in floats: a row within the noise of a point that a network refuses, and a robust point near one so refuted.

Nothing is proved here. The model is asked about a refused row, and a lane has to prove that a repaired point is robust.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from mace.constraints.robust import RobustCondition
from mace.distances import NormMetric
from mace.exact import Floats, float_down, float_up
from mace.forms import Network
from mace.forms.scoring import column_values
from mace.problem import Problem
from mace.reductions.noise_box import around
from mace.reductions.shifted_network import float_clearance, gradient
from mace.solvers.robust.program import cheapest_point
from mace.space import Integer, Point, Real, Value

VALUES_TRIED, CLOSER, ZOOMS = 128, 32, 3
"""Values of a feature that are tried at once, into how many parts the steps beside a valley are divided, and how often."""

MOST_VALLEYS = 6
"""How many of the deepest valleys along a feature are looked at more closely."""

SWEEPS_OF_FEATURES = 3
"""How often each of several noisy features is gone through."""

STEPS_OF_A_REPAIR, GAINS_LITTLE, GAINS_NOTHING = 5, 0.999, 1 - 1e-9
"""How often a point is moved; from which share of the distance before on that gains little, and is the last time, or nothing."""

LACKING = 1e6
"""What a repair that lacks a unit of the margin counts, in distances."""

COST_OF_SURE, HOLDS_BACK = 0.05, 8.0
"""What being surely inside of the goal may cost a repaired point, as a share of the accuracy; and how many times as far inside a valley
lies that still matters."""

BESIDE_A_FLOOR = 1e-7
"""How far beside a valley's floor its two slopes are taken, as a share of the noise."""

FARTHEST_REPAIR = 1.0
"""How far a repair may go, as a share of the point's distance and of the noise."""


@dataclass(frozen=True, slots=True)
class Valley:
    """A row at which the margin is least among those near it within the noise, and how the margin there changes with the point."""

    row: Point
    margin: float
    slopes: Floats
    is_inside: bool


Reach = Mapping[int, tuple[float, float]]
"""The ranges of noisy numbers around a point, by feature."""


class WorstRows:
    """The rows within the noise of a point that a network refuses most clearly, as far as a local search finds them.

    For networks whose noisy features are never missing and off any grid; for others it finds nothing.
    """

    def __init__(self, problem: Problem, noise: RobustCondition) -> None:
        self.problem, self.noise = problem, noise
        self.features = list(problem.space.values())
        self._known_ends: dict[tuple[str, Value], tuple[float, float] | None] = {}
        noisy = [problem.space[name] for name in noise.radii]
        has_numbers = all(isinstance(f, Real | Integer) and f.step is None and not f.missing for f in noisy)
        self.form = problem.form if isinstance(problem.form, Network) and has_numbers else None
        if self.form is not None:
            self.alternatives = self.form.alternatives(problem.goal)
            self.grain = 1e-9 * (1 + float(np.abs(self.form.biases[-1]).max()))

    def near(self, point: Point) -> Point | None:
        """Return the worst row within the noise of a point that is clearly refused; ``None`` where none is found."""
        if self.form is None:
            return None
        worst, margin = self._worst(point, self._reach(point))
        return worst if margin < -self.grain else None

    def from_refused(self, refused: Point, point: Point) -> Point:
        """Return the worst row that is found from a refused one within the noise of a point."""
        return refused if self.form is None else self._worst(refused, self._reach(point))[0]

    def _reach(self, point: Point) -> Reach:
        ends = {self.problem.space.index(name): self._ends(name, point) for name in self.noise.radii}
        return {j: each for j, each in ends.items() if each is not None}

    def _ends(self, name: str, point: Point) -> tuple[float, float] | None:
        """Return the range of a noisy number around a point, which is made once for a value; ``None`` where it is a single one."""
        value = point[self.problem.space.index(name)]
        if (name, value) not in self._known_ends:
            left = around(self.problem, self.noise, point, [name])[name]
            is_range = left.has_values and not left.is_single
            self._known_ends[name, value] = (float_up(left.low), float_down(left.high)) if is_range else None
        return self._known_ends[name, value]

    def _worst(self, start: Point, reach: Reach) -> tuple[Point, float]:
        """Minimise the margin in a box, feature by feature."""
        best, least = start, self._margin(start)
        for _ in range(SWEEPS_OF_FEATURES if len(reach) > 1 else 1):
            before = best
            for j, ends in reach.items():
                for value, margin in self._valleys_along(best, j, ends):
                    if margin < least:
                        best, least = self._with(best, j, value), margin
            if best == before:
                break
        return best, least

    def _with(self, point: Point, j: int, value: float) -> Point:
        return (*point[:j], int(value) if isinstance(self.features[j], Integer) else value, *point[j + 1 :])

    def _margin(self, point: Point) -> float:
        """Return the margin of a point."""
        assert self.form is not None
        return float(self._clearance(column_values(self.form.columns, [point]))[0])

    def _clearance(self, columns: Floats) -> Floats:
        assert self.form is not None
        return float_clearance(self.form.float_scores(columns), self.alternatives)

    def _margins_along(self, point: Point, j: int) -> Callable[[Floats], Floats]:
        """Return a function that gives the margins of a point with some values of a feature."""
        assert self.form is not None
        own = column_values(self.form.columns, [point])
        reads = [k for k, column in enumerate(self.form.columns) if column.feature == j and column.table is None]

        def margins(values: Floats) -> Floats:
            columns = np.repeat(own, len(values), axis=0)
            columns[:, reads] = values[:, None]
            return self._clearance(columns)

        return margins

    def _valleys_along(self, point: Point, j: int, ends: tuple[float, float]) -> list[tuple[float, float]]:
        """Return the values of a feature at which the margin is least among those beside it, and the margins; the deepest first."""
        margins = self._margins_along(point, j)
        tried = self._values(j, np.linspace(*ends, VALUES_TRIED + 1), ends)
        found = margins(tried)
        for zoom in range(ZOOMS + 1):
            floors = _floors(found)[:MOST_VALLEYS]
            beside = [(max(n - 1, 0), min(n + 1, len(tried) - 1)) for n in floors]
            parts = [
                np.linspace(tried[a], tried[b], 2 * CLOSER + 1) if zoom < ZOOMS else _crossing(tried, found, n)
                for n, (a, b) in zip(floors, beside, strict=True)
            ]
            new = np.setdiff1d(self._values(j, np.concatenate([*parts, np.zeros(0)]), ends), tried)
            if not len(new):
                break
            tried, found = np.append(tried, new), np.append(found, margins(new))
            order = np.argsort(tried)
            tried, found = tried[order], found[order]
        return [(float(tried[n]), float(found[n])) for n in _floors(found)[:MOST_VALLEYS]]

    def _values(self, j: int, values: Floats, ends: tuple[float, float]) -> Floats:
        """Return the values of a feature near some numbers within a range, each once."""
        feature, (low, high) = self.features[j], ends
        if isinstance(feature, Integer):
            values = np.round(values).clip(math.ceil(low), math.floor(high))
        elif isinstance(feature, Real) and feature.is_single:
            values = np.array([feature.nearest(float(value)) for value in values])
        return np.unique(values[(values >= low) & (values <= high)])

    # ---- repairs

    def undoes(self, row: Point, point: Point) -> bool:
        """Return whether a point is clearly refused with the noisy values of a row, which are within its noise."""
        noisy = {self.problem.space.index(name) for name in self.noise.radii}
        moved = tuple(a if j in noisy else b for j, (a, b) in enumerate(zip(row, point, strict=True)))
        return self.form is not None and self._margin(moved) < -self.grain

    def repaired(self, problem: Problem, point: Point) -> tuple[Point, list[Valley]] | None:
        """Return a plausible point near a refuted one that seems robust, and the valleys that keep it from being nearer.

        A linear program gives the nearest point at which the margins of the valleys met so far, by their slopes, are large enough. It is
        solved a few times, each with the valleys of the last point; ``None`` where that leads nowhere.
        """
        if self.form is None or not isinstance(problem.metric, NormMetric):
            return None
        best: tuple[Point, list[Valley]] | None = None
        rows: list[tuple[Floats, float]] = []
        sure = self._sure(point)
        for attempt in range(STEPS_OF_A_REPAIR):
            valleys = self._valleys(point)
            if attempt and min(each.margin for each in valleys) >= sure / 2:
                is_first, before = best is None, point if best is None else best[0]
                best = point, [each for each in valleys if each.margin < HOLDS_BACK * sure]
                if not is_first and problem.distance(point) > GAINS_LITTLE * problem.distance(before):
                    return best
                rows.clear()
            at = _numbers(point)
            rows += [(each.slopes, sure - each.margin + float(each.slopes @ at)) for each in valleys]
            moved = self._nearest(problem, point, rows)
            if moved is None or moved == point or not problem.is_plausible(moved):
                return best
            if best is not None and problem.distance(moved) >= GAINS_NOTHING * problem.distance(best[0]):
                return best
            point = moved
        return best

    def _sure(self, point: Point) -> float:
        """Return the margin that a repaired point shall have: at the rate of the way from the factual, it costs little of the accuracy."""
        gained = abs(self._margin(self.problem.factual))
        distance = max(float(self.problem.distance(point)), 1e-12)
        return 2 * self.grain + COST_OF_SURE * float(self.problem.accuracy) * gained / distance

    def _valleys(self, point: Point) -> list[Valley]:
        """Return the valleys within the noise of a point; where several features are noisy, the deepest one that is found."""
        reach = self._reach(point)
        if len(reach) == 1:
            ((j, ends),) = reach.items()
            rows = [self._with(point, j, value) for value, _ in self._valleys_along(point, j, ends)]
        else:
            rows = [self._worst(point, reach)[0]]
        return [self._valley(row, reach) for row in rows]

    def _valley(self, row: Point, reach: Reach) -> Valley:
        """Return a valley: where its floor is a kink, the mean of the slopes on both sides that does not change along the noise."""
        margin, slopes = self._gradient(row)
        is_inside = False
        for j, (low, high) in reach.items():
            value, beside, feature = float(row[j] or 0), BESIDE_A_FLOOR * (high - low), self.features[j]
            assert isinstance(feature, Real | Integer)
            if value in (feature.low, feature.high):
                slopes = np.where(np.arange(len(slopes)) == j, 0.0, slopes)
            if isinstance(feature, Integer) or not (low + beside < value < high - beside):
                continue
            is_inside = True
            (_, left), (_, right) = (self._gradient(self._with(row, j, value + by)) for by in (-beside, beside))
            if left[j] < 0 < right[j]:
                slopes = (right[j] * left - left[j] * right) / (right[j] - left[j])
            slopes = np.where(np.arange(len(slopes)) == j, 0.0, slopes)
        return Valley(row, margin, slopes, is_inside)

    def _gradient(self, row: Point) -> tuple[float, Floats]:
        assert self.form is not None
        return max((gradient(self.form, margins, row) for margins in self.alternatives), key=lambda each: each[0])

    def _nearest(self, problem: Problem, start: Point, rows: list[tuple[Floats, float]]) -> Point | None:
        """Return the nearest point, by a linear program over real features, at which linear functions are at least some numbers.

        Where none is near enough, the point at which they lack least.
        """
        metric = problem.metric
        assert isinstance(metric, NormMetric)
        jump, slope, square, peak = metric.costs
        own, at = _numbers(problem.factual), _numbers(start)
        is_free = np.array([
            isinstance(f, Real) and f.step is None and a is not None and b is not None and (a != b or not cost)
            for f, a, b, cost in zip(self.features, start, problem.factual, jump, strict=True)
        ])  # fmt: skip
        free = np.flatnonzero(is_free)
        if not len(free):
            return None
        ends = np.array(
            [(float(f.low), float(f.high)) for f in (self.features[j] for j in free) if isinstance(f, Real)]
        )
        inverse = 1 / np.maximum(ends[:, 1] - ends[:, 0], 1e-300)
        change = np.abs(at - own)[free] * inverse
        widths = ((problem.space[name].range, radius) for name, radius in self.noise.radii.items())
        noise = max((float(radius / width) for width, radius in widths if width), default=0.0)
        far = FARTHEST_REPAIR * (float(problem.distance(start)) ** (1 / metric.power) + noise) / inverse
        up = np.maximum(np.minimum(ends[:, 1], at[free] + far) - own[free], 0.0)
        down = np.maximum(own[free] - np.maximum(ends[:, 0], at[free] - far), 0.0)
        cost = (slope[free] + 2 * square[free] * change + 1e-6 * peak[free]) * inverse
        moves = np.array([slopes[free] for slopes, _ in rows])
        least = np.array([need - slopes @ np.where(is_free, own, at) for slopes, need in rows])
        scale = max(float(np.abs(least).max()), 1e-300)
        none = np.zeros((len(rows), 1))
        limits = [np.hstack([-moves, moves, none, none - scale])]
        bounds = [-least]
        if peak.any():
            share = np.diag(peak[free] * inverse)
            none = np.zeros((len(free), 1))
            limits.append(np.hstack([share, share, none - 1.0, none]))
            bounds.append(np.zeros(len(free)))
        highest = np.concatenate([up, down, [np.inf, np.inf]])
        found = cheapest_point(
            np.concatenate([cost, cost, [1.0, LACKING]]), np.vstack(limits), np.concatenate(bounds), highest
        )
        if found is None:
            return None
        moved: list[Value] = list(start)
        for n, j in enumerate(free):
            feature, by = self.features[j], float(found[n] - found[len(free) + n])
            assert isinstance(feature, Real)
            near = min(max(own[j] + by, float(feature.low)), float(feature.high))
            moved[j] = problem.factual[j] if by == 0 else float(feature.nearest(near))
        return tuple(moved)


def _numbers(point: Point) -> Floats:
    return np.array([0.0 if value is None else float(value) for value in point])


def _floors(margins: Floats) -> list[int]:
    """Return where numbers are no greater than their neighbours, the least first; of equal neighbours only one."""
    padded = np.concatenate([[np.inf], margins, [np.inf]])
    floors = np.flatnonzero((margins <= padded[2:]) & (margins < padded[:-2]))
    return [int(n) for n in floors[np.argsort(margins[floors], kind="stable")]]


def _crossing(tried: Floats, found: Floats, n: int) -> Floats:
    """Return where the lines on both sides of a valley's floor cross, if they do."""
    crossed = []
    for a, b, c, d in ((n - 2, n - 1, n, n + 1), (n - 1, n, n + 1, n + 2)):
        if a < 0 or d >= len(tried):
            continue
        left = (found[b] - found[a]) / (tried[b] - tried[a])
        right = (found[d] - found[c]) / (tried[d] - tried[c])
        if left < right:
            crossed.append((found[c] - found[a] + left * tried[a] - right * tried[c]) / (left - right))
    return np.array([at for at in crossed if tried[max(n - 1, 0)] <= at <= tried[min(n + 1, len(tried) - 1)]])
