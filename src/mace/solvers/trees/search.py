"""One question: its tables, and the passes over growing balls."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mace.distances import NormMetric, distance_down, distance_up
from mace.diversity import CountDifferent
from mace.exact import UNIT
from mace.forms import TreeEnsemble
from mace.problem import Bounds, Limits, Problem
from mace.solvers.allowed import Allowed, allowed_values
from mace.solvers.bisection import BAND
from mace.solvers.trees import kernels
from mace.solvers.trees.grid import Floats, Ints, make_grid
from mace.solvers.trees.local import Local
from mace.solvers.trees.prepared import Values, costs, kernel_goal, margin_values, prepared
from mace.solvers.trees.question import needs_refining, plain_view, refined_view
from mace.space import Integer, Point, Real

FIRST_RADIUS = 2.0**-14
GROWTH = ((3, 4.0), (100, 2.0), (400, 1.5), (1500, 1.3), (float("inf"), 1.12))
"""By what the radius grows after a pass with at most so many nodes: the harder the last ball, the smaller the step."""

SEEK_AFTER = 50
"""After a pass with so many nodes, random points are tried to have some counterfactual in hand."""

EVALUATIONS = 4e6
"""How many steps down a tree that may take: some tens of milliseconds."""

MOST_UNDECIDED = 20_000
CHUNK = 256

MOST_ARENA = 2**28
PAUSE = 0.02
"""Seconds between two looks at the clock."""

MOST_PARTS = 4096
"""Ways of being missing that are tried before the search gives up on a proof."""


@dataclass(frozen=True, slots=True)
class Part:
    """One way of being missing and one alternative of the goal: its cost tables, its allowed box, and the trees."""

    pattern: NDArray[np.bool_]
    values: Values
    cells: kernels.Cells
    lo: Ints
    hi: Ints
    mask: Ints
    rep: Floats
    trees: kernels.Trees


@dataclass(frozen=True, slots=True)
class Best:
    """The nearest point so far, by its cost in floats."""

    cost: float
    point: Point | None = None


class Search:
    """One question: its tables, and the passes over growing balls."""

    def __init__(self, problem: Problem, limits: Limits) -> None:
        assert isinstance(problem.form, TreeEnsemble)
        assert isinstance(problem.metric, NormMetric)
        self.problem = problem
        self.form = problem.form
        self.limits = limits
        self.nodes = self.passes = 0
        self.undecided: dict[Point, float] = {}
        self.best = Best(np.inf)
        self.floor = 0.0
        self.is_single = False
        self.reason = ""

    def run(self) -> Bounds:
        """Search every way of being missing, from the fewest changes on, each until its optimum is proved or beaten."""
        self._prepare()
        for number, part in enumerate(self._parts()):
            if number == MOST_PARTS:
                self.reason = "too many ways of being missing to try them all"
                return self._bounds(complete=False)
            self.floor = 0.0
            if part is not None and not self._deepen(part):
                return self._bounds(complete=False)
        return self._bounds(complete=True)

    def exercise(self) -> None:
        """Run every kernel once, for all of them to be compiled."""
        self.run()
        for part in self._parts():
            if part is not None:
                self._seek(part)

    # ---- tables

    def _prepare(self) -> None:
        problem, form = self.problem, self.form
        made = prepared(form)
        strays = {
            j: float(own)
            for j, (feature, own) in enumerate(zip(problem.space.values(), problem.factual, strict=True))
            if own is not None
            and isinstance(feature, Real | Integer)
            and feature.step is not None
            and not feature.has(own)
        }
        self.grid = make_grid(form, strays) if strays else made.grid
        self.cache = made.values
        conditions = [c for c in problem.conditions if isinstance(c, CountDifferent)]
        self.conditions = conditions
        self.allowed = allowed_values(problem) if problem.conditions else made.free
        if needs_refining(self.allowed, problem, conditions):
            self.view = refined_view(self.grid, problem, self.allowed, conditions)
        else:
            self.view = plain_view(self.grid) if strays else made.view
        assert isinstance(problem.metric, NormMetric)
        self.jump, self.slope, self.square, self.peak = costs(made, problem.metric)
        self.inverse, self.is_category, self.mask_of = made.inverse, made.is_category, made.mask_of
        self.lowest = np.array([each.spans[0][0] if each.spans else np.inf for each in self.allowed])
        self.highest = np.array([each.spans[-1][1] if each.spans else -np.inf for each in self.allowed])
        masks = zip(self.allowed, self.grid.is_mask, strict=True)
        self.levels = np.array([_levels(each) if is_mask else 0 for each, is_mask in masks], dtype=np.int64)

    def _alternatives(self) -> list[Values]:
        goal = self.problem.goal
        band = self.form.rounding + goal.slack
        made = []
        for margins in goal.alternatives(self.form.outputs, ties_last=self.form.ties_last):
            if not margins:
                continue
            if margins not in self.cache:
                self.cache[margins] = margin_values(self.form, margins, band)
            made.append(self.cache[margins])
        return made

    def _parts(self) -> Iterator[Part | None]:
        """Yield each way of being missing with each alternative of the goal; ``None`` where no point is allowed."""
        alternatives = self._alternatives()
        for pattern in self._patterns():
            for values in alternatives:
                yield self._part(pattern, values)

    def _patterns(self) -> Iterator[NDArray[np.bool_]]:
        """Yield the ways in which features may be missing, those with the fewest changes first; dear ones are left out."""
        own = np.array([value is None for value in self.problem.factual])
        free = [
            j
            for j, (feature, allowed) in enumerate(zip(self.problem.space.values(), self.allowed, strict=True))
            if feature.missing and (allowed.spans if own[j] else allowed.missing)
        ]
        self.is_single = not free and len(self._alternatives()) == 1
        add, peak = self.jump + self.slope + self.square, self.peak
        for count in range(len(free) + 1):
            if np.sort(add[free])[:count].sum() + np.sort(peak[free])[:count].max(initial=0.0) >= self.best.cost:
                return
            for chosen in itertools.combinations(free, count):
                if add[list(chosen)].sum() + peak[list(chosen)].max(initial=0.0) >= self.best.cost:
                    continue
                pattern = own.copy()
                pattern[list(chosen)] ^= True
                if all(self.allowed[j].missing if pattern[j] else self.allowed[j].spans for j in range(len(own))):
                    yield pattern

    def _part(self, pattern: NDArray[np.bool_], values: Values) -> Part | None:
        tables = self._cells(pattern)
        if tables is None:
            return None
        return Part(pattern, values, *tables, self.grid.trees(values.most, values.least))

    def _cells(self, pattern: NDArray[np.bool_]) -> tuple[kernels.Cells, Ints, Ints, Ints, Floats] | None:
        """Return the cost tables of one pattern and its allowed ranges; ``None`` where some feature has no allowed cell."""
        view, grid = self.view, self.grid
        size = len(pattern)
        cells = len(view.low)
        factual = np.array([0.0 if value is None else float(value) for value in self.problem.factual])
        was_missing = np.array([value is None for value in self.problem.factual])
        add, top, rep = np.empty(cells), np.empty(cells), np.empty(cells)
        own, lo, hi, mask = (np.zeros(size, dtype=np.int64) for _ in range(4))
        fits = kernels.cost_tables(
            factual, was_missing, pattern, grid.is_mask,
            self.is_category, view.off, view.low, view.high, self.lowest, self.highest, self.levels,
            self.inverse, self.jump, self.slope, self.square, self.peak, add, top, rep, own, lo, hi, mask,
        )  # fmt: skip
        if not fits:
            return None
        differs = view.differs
        for i, condition in enumerate(self.conditions):
            for j in np.flatnonzero(pattern):
                differs = differs.copy()
                differs[i, view.off[j] : view.off[j + 1]] = condition.earlier[j] is not None
        at_least = np.array([condition.features for condition in self.conditions], dtype=np.int64)
        made = kernels.Cells(grid.is_mask, pattern, self.mask_of, view.off, add, top, own, view.base, differs, at_least)
        return made, lo, hi, mask, rep

    # ---- passes

    def _deepen(self, part: Part) -> bool:
        """Search ever larger balls of one part; False where time or memory ran out."""
        farthest = 2 * _farthest(part) + 1
        nearest = _nearest(part.cells)
        radius = nearest + max(FIRST_RADIUS, 1.01 * _least_step(part.cells))
        while nearest < self.best.cost:
            if self.limits.remaining() <= 0:
                self.reason = "time limit reached"
                return False
            radius = min(radius, self.best.cost, farthest)
            outcome = self._one_pass(part, radius)
            if outcome is None:
                if self.best.point is None:
                    self._seek(part)
                return False
            found, next_radius, nodes = outcome
            self.floor = min(radius, self.best.cost)
            self._report()
            if found or radius >= min(self.best.cost, farthest):
                break
            if nodes >= SEEK_AFTER and self.best.point is None:
                self._seek(part)
            growth = next(factor for most, factor in GROWTH if nodes <= most)
            radius = max(radius * growth, next_radius * (1 + 1e-6))
        return True

    def _seek(self, part: Part) -> None:
        """Look for any valid point, to have one in hand when a search is not easy."""
        best = np.empty(len(part.lo), dtype=np.int64)
        goal = kernel_goal(part.values)
        evaluations = EVALUATIONS / (len(self.grid.roots) * self.grid.depth)
        tries = int(min(400, max(20, evaluations / 2)))
        most_found = int(min(12, max(1, evaluations / (20 * len(part.lo)))))
        cost = kernels.seek(tries, most_found, part.lo, part.hi, part.mask, part.cells, part.trees, goal, best)
        if cost < min(self.best.cost, kernels.FAR):
            self.best = Best(float(cost), self._point(best, part))

    def _one_pass(self, part: Part, radius: float) -> tuple[bool, float, int] | None:
        """Search one ball; return whether a point was found, the next radius at which more leaves take part, and the nodes.

        ``None`` where time or memory ran out.
        """
        self.passes += 1
        local = Local(self.grid, self.view, radius, part.cells, part.lo, part.hi, part.mask, part.trees, part.values)
        if local.count == 0:
            return False, local.next_radius, 0
        arena = max(1 << 16, 16 * local.count)
        while True:
            outcome = self._branch_and_bound(part, radius, local, arena)
            if outcome != "full" or arena >= MOST_ARENA:
                break
            arena *= 8
        if outcome == "full":
            self.reason = "memory limit reached"
            return None
        registers, reals, best, _, _ = local.state
        self.nodes += int(registers[kernels.NODES])
        self._note_undecided(local, part)
        if registers[kernels.FOUND]:
            self.best = Best(float(reals[kernels.LIMIT]), self._point(local.cells_of(best), part))
        if outcome == "late":
            return None
        return bool(registers[kernels.FOUND]), local.next_radius, int(registers[kernels.NODES])

    def _branch_and_bound(self, part: Part, radius: float, local: Local, arena: int) -> str:
        """Run the kernel, pausing to look at the clock; "done", "late" or "full"."""
        local.reset(radius, arena)
        budget = 16
        registers, reals, best, log_point, log_cost = local.state
        while True:
            started = time.monotonic()
            try:
                kernels.advance(
                    budget, registers, reals, best, log_point, log_cost, local.cells, local.leaves, part.trees, kernel_goal(part.values),
                    local.stack, local.peaks, local.drop, local.soft, local.scratch, local.empty,
                )  # fmt: skip
            except KeyboardInterrupt:
                self.reason = "interrupted"
                return "late"
            if registers[kernels.STATUS] == kernels.LOG_FULL:
                self._note_undecided(local, part)
                if len(self.undecided) > MOST_UNDECIDED:
                    self.reason = "too many points lie on the boundary to ask the model about each"
                    return "late"
                registers[kernels.STATUS] = kernels.RUNNING
            if registers[kernels.STATUS] == kernels.FULL:
                return "full"
            if registers[kernels.DEPTH] < 0:
                return "done"
            if self.limits.remaining() <= 0:
                self.reason = "time limit reached"
                return "late"
            taken = time.monotonic() - started
            budget = max(1, min(1 << 14, int(budget * PAUSE / max(taken, 1e-6))))

    def _note_undecided(self, local: Local, part: Part) -> None:
        """Keep the points that only the real model can decide, and empty the kernel's log of them."""
        registers, _, _, log_point, log_cost = local.state
        for blocks, cost in zip(log_point[: registers[kernels.LOGGED]], log_cost, strict=False):
            self.undecided[self._point(local.cells_of(blocks), part)] = float(cost)
        registers[kernels.LOGGED] = 0

    def _point(self, cells: Ints, part: Part) -> Point:
        """Return the point that stands for some cells: in each, the value nearest to the factual."""
        numbers = part.rep[self.view.off[:-1] + cells]
        return tuple(
            None if part.pattern[j] else float(number) if isinstance(feature, Real) else int(number)
            for j, (feature, number) in enumerate(zip(self.problem.space.values(), numbers, strict=True))
        )

    # ---- the end

    def _report(self) -> None:
        if self.limits.on_progress is not None:
            power = 1 / self.problem.metric.power
            floor = min(self.floor, self.best.cost, *self.undecided.values()) if self.is_single else 0.0
            self.limits.on_progress(floor**power, self.best.cost**power, self.nodes)

    def _decide(self) -> float:
        """Ask the real model about the undecided points, nearest first; return the least cost that stays open."""
        problem = self.problem
        open_cost = np.inf
        waiting = [(cost, point) for point, cost in self.undecided.items() if cost < self.best.cost]
        waiting.sort(key=lambda pair: pair[0])
        for start in range(0, len(waiting), CHUNK):
            chunk = waiting[start : start + CHUNK]
            if start and self.limits.remaining() <= 0:
                return min(open_cost, chunk[0][0])
            for (cost, point), outcome in zip(chunk, problem.ask([point for _, point in chunk]), strict=True):
                if not problem.form.is_settled(point, problem.goal):
                    open_cost = min(open_cost, cost)
                elif problem.goal.accepts(outcome):
                    self.best = Best(cost, point)
                    return open_cost
        return open_cost

    def _bounds(self, complete: bool) -> Bounds:
        """Let the real model decide what the kernel could not, and return what is proved."""
        problem = self.problem
        open_cost = self._decide()
        point = self.best.point
        notes = {"nodes": self.nodes, "passes": self.passes}
        if complete and point is None and not np.isfinite(open_cost):
            return Bounds(Fraction(0), is_infeasible=True, calls=self.nodes, notes=notes)
        measure = problem.metric.measure(point) if point is not None else None
        measures = [measure] if measure is not None else []
        if np.isfinite(open_cost):
            measures.append(Fraction(open_cost))
        if not complete:
            measures.append(Fraction(self.floor) if self.is_single else Fraction(0))
        lowest = min(measures, default=Fraction(0))
        error = (len(problem.space) + 8) * 4 * UNIT
        lower = distance_down(problem.metric, max(Fraction(0), lowest - error))
        reason = self.reason or (BAND if np.isfinite(open_cost) else "")
        upper = distance_up(problem.metric, measure) if measure is not None else None
        return Bounds(lower, upper, point, reason=reason, calls=self.nodes, notes=notes)


def _levels(allowed: Allowed) -> int:
    return sum(1 << k for first, last in allowed.spans for k in range(int(np.ceil(first)), int(last) + 1))


def _nearest(cells: kernels.Cells) -> float:
    """Return the cost of the nearest allowed point."""
    own = cells.off[:-1] + cells.own
    return float(cells.add[own].sum() + cells.top[own].max())


def _least_step(cells: kernels.Cells) -> float:
    """Return the least cost of any change."""
    cost = cells.add + cells.top
    return float(cost[(cost > 0) & (cost < kernels.FAR)].min(initial=np.inf)) if (cost < kernels.FAR).any() else 0.0


def _farthest(part: Part) -> float:
    """Return a bound on the cost of every allowed point."""
    cells = part.cells
    total = peak = 0.0
    for j in range(len(part.lo)):
        begin, end = cells.off[j], cells.off[j + 1]
        chosen = slice(begin, end) if cells.is_mask[j] else slice(begin + part.lo[j], begin + part.hi[j] + 1)
        alive = cells.add[chosen] < kernels.FAR
        total += float(cells.add[chosen][alive].max(initial=0.0))
        peak = max(peak, float(cells.top[chosen][alive].max(initial=0.0)))
    return total + peak
