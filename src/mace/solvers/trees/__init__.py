"""The tree lane: exact nearest counterfactuals of tree ensembles by branch and bound over cells.

The search deepens: is there a counterfactual within a small ball? Only the leaves that reach into the ball take part,
which are few; where there is none, the ball grows. A box of cells is closed when its distance, or the sum of its
trees' greatest leaves, rules it out.
"""

from __future__ import annotations

import itertools
import time
import weakref
from dataclasses import dataclass, field
from fractions import Fraction
from math import gcd

import numpy as np
from numpy.typing import NDArray

from mace.distances import NormMetric, distance_down, distance_up
from mace.diversity import CountDifferent
from mace.exact import UNIT, float_up
from mace.forms import Margin, TreeEnsemble
from mace.problem import Bounds, Limits, Problem
from mace.solvers.bisection import BAND
from mace.solvers.trees import kernels
from mace.solvers.trees.grid import Floats, Grid, Ints, make_grid, unsupported
from mace.solvers.trees.question import (
    Allowed,
    View,
    allowed_values,
    needs_refining,
    plain_view,
    refined_view,
    unsupported_condition,
    whole_domain,
)
from mace.solvers.trees.warmup import warm_up
from mace.space import Categorical, Integer, Point, Real

FIRST_RADIUS = 2.0**-14
GROWTH = ((3, 4.0), (100, 2.0), (400, 1.5), (1500, 1.3), (float("inf"), 1.12))
"""By what the radius grows after a pass with at most so many nodes: the harder the last ball, the smaller the step."""

SEEK_AFTER = 50
TRIES = 400
"""After a pass with so many nodes, so many random points are tried to have some counterfactual in hand."""

MOST_LOGGED = 4096
MOST_ARENA = 2**28
PAUSE = 0.02
"""Seconds between two looks at the clock."""

MOST_PATTERNS = 1 << 16


def supports(problem: Problem) -> str:
    """Return why the lane cannot take a problem; empty where it can."""
    if not isinstance(problem.form, TreeEnsemble):
        return "the model is not a tree ensemble"
    if not isinstance(problem.metric, NormMetric):
        return "the distance is a function"
    return unsupported(problem.form) or unsupported_condition(problem.conditions)


def solve(problem: Problem, limits: Limits) -> Bounds:
    """Find the nearest counterfactual."""
    return _Search(problem, limits).run()


def prepare() -> None:
    """Compile the kernels or load them from disk; nothing after the first time in a process."""
    warm_up(_exercise)


def _exercise(problem: Problem) -> None:
    """Run every kernel once."""
    search = _Search(problem, Limits())
    search.run()
    tables = search._cells(np.zeros(len(problem.space), dtype=bool))
    values = search._alternatives()[0]
    if tables is not None:
        cells, lo, hi, mask, _ = tables
        trees = search.grid.trees(values.most, values.least)
        kernels.seek(1, 1, lo, hi, mask, cells, trees, values_goal(values), np.empty(len(lo), dtype=np.int64))


# ---- what is made once for a model


@dataclass(slots=True)
class _Prepared:
    """What is made once for a model: its grid, and the values of its leaves for the margins that were asked about."""

    grid: Grid
    view: View
    inverse: Floats
    is_category: NDArray[np.bool_]
    mask_of: Ints
    free: list[Allowed]
    values: dict[tuple[Margin, ...], _Values] = field(default_factory=dict)
    costs: dict[object, tuple[Floats, Floats, Floats, Floats]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Values:
    """The margins of one alternative: the most and the least that each leaf adds, and what the sums start from.

    A point whose least sums reach ``sure`` is in the goal; one whose most do not reach ``need`` is not; in between, the real
    model decides.
    """

    most: Floats
    least: Floats
    base: Floats
    need: Floats
    sure: Floats
    pad: float


_PREPARED: weakref.WeakKeyDictionary[TreeEnsemble, _Prepared] = weakref.WeakKeyDictionary()


def _prepared(form: TreeEnsemble) -> _Prepared:
    if form not in _PREPARED:
        grid = make_grid(form)
        features = list(form.space.values())
        _PREPARED[form] = _Prepared(
            grid,
            plain_view(grid),
            inverse=np.array([float(1 / feature.range) if feature.range else 0.0 for feature in features]),
            is_category=np.array([isinstance(feature, Categorical) for feature in features]),
            mask_of=(np.cumsum(grid.is_mask) - 1).astype(np.int64),
            free=[whole_domain(feature) for feature in features],
        )
    return _PREPARED[form]


def _costs(prepared: _Prepared, metric: NormMetric) -> tuple[Floats, Floats, Floats, Floats]:
    """Return each feature's jump, slope, square and peak; made once for a distance."""
    key = (tuple((type(norm), share) for norm, share in metric.norms), metric.weights)
    if key not in prepared.costs:
        prepared.costs[key] = (
            np.array([float(part.jump) for part in metric.parts]),
            np.array([float(part.slope) for part in metric.parts]),
            np.array([float(part.square) for part in metric.parts]),
            np.array([float(part.peak) for part in metric.parts]),
        )
    return prepared.costs[key]


COARSE = 2.0**24
"""Leaf values that are multiples of 1 / COARSE add up exactly; among themselves they make real ties, which need no
rounding to be decided."""

ABOVE_ZERO = 5e-324


def _values(form: TreeEnsemble, margins: tuple[Margin, ...], band: Fraction) -> _Values:
    value = np.column_stack([_difference(form.value, margin) for margin in margins])
    value[form.left >= 0] = 0.0
    base = np.array([_difference(form.base[None, :], margin)[0] + float(margin.shift) for margin in margins])
    sizes = np.maximum.reduceat(np.abs(value), form.roots, axis=0).sum(axis=0) + np.abs(base)
    most, least = value.copy(), value.copy()
    need = np.array([ABOVE_ZERO if margin.strict else 0.0 for margin in margins])
    sure = need.copy()
    coarse: NDArray[np.bool_] = np.asarray(_is_coarse(form.value).all(axis=1))
    for k, margin in enumerate(margins):
        is_exact_start = bool(_is_coarse(base[k : k + 1]).all()) and form.squash == 0 and margin.shift.denominator == 1
        error = float_up(4 * band + 32 * (len(form.roots) + 4) * UNIT * Fraction(float(sizes[k])))
        if band == 0:
            if is_exact_start and coarse[form.left < 0].all():
                need[k] = sure[k] = _least_in_goal(form, value[:, k], base[k], strict=margin.strict)
        elif is_exact_start and coarse[form.left < 0].any():
            # Ties between coarse leaves are real; every other leaf may bring rounding into the sum.
            rough = (form.left < 0) & ~coarse
            most[rough, k] += error
            least[rough, k] -= error
        else:
            need[k], sure[k] = -error, error
    return _Values(most, least, base, need, sure, pad=1e-11 * float(sizes.max()))


def _is_coarse(values: Floats) -> NDArray[np.bool_]:
    """Return which values are multiples of 1 / COARSE, small enough for sums of very many to be exact."""
    scaled = values * COARSE
    coarse: NDArray[np.bool_] = (scaled == np.floor(scaled)) & (np.abs(values) < 2.0**10)
    return coarse


def _difference(value: Floats, margin: Margin) -> Floats:
    zero = np.zeros(len(value))
    ahead = value[:, margin.plus] if margin.plus is not None else zero
    behind = value[:, margin.minus] if margin.minus is not None else zero
    difference: Floats = ahead - behind
    return difference


def _least_in_goal(form: TreeEnsemble, value: Floats, base: float, *, strict: bool) -> float:
    """Return a float just below the least sum in the goal, for exact sums.

    The sums are congruent modulo the greatest common divisor of the differences between the leaves of each tree: a
    forest whose leaves are -1 and 1 has sums of one parity, so that the least sum above 0 is 1 or 2.
    """
    leaf = form.left < 0
    ends = [*form.roots[1:], len(value)]
    step, offset = 0, int(base * COARSE)
    for start, end in zip(form.roots, ends, strict=True):
        own = [int(v) for v in np.unique(value[start:end][leaf[start:end]] * COARSE)]
        offset += own[0]
        for v in own[1:]:
            step = gcd(step, v - own[0])
    least = 1 if strict else 0
    if step:
        least += (offset - least) % step
    elif offset >= least:
        least = offset
    return (least - (step or 1) / 4) / COARSE


# ---- one question


@dataclass(slots=True)
class _Best:
    """The nearest point so far, by its cost in floats."""

    cost: float
    point: Point | None = None


class _Search:
    """One question: its tables, and the passes over growing balls."""

    def __init__(self, problem: Problem, limits: Limits) -> None:
        assert isinstance(problem.form, TreeEnsemble)
        assert isinstance(problem.metric, NormMetric)
        self.problem = problem
        self.form = problem.form
        self.limits = limits
        self.nodes = self.passes = 0
        self.undecided: list[tuple[float, Point]] = []
        self.best = _Best(np.inf)
        self.floors: list[float] = []
        self.reason = ""

    def run(self) -> Bounds:
        """Search every way of being missing, from the cheapest on, each until its optimum is proved or beaten."""
        self._prepare()
        parts = list(itertools.product(self._patterns(), self._alternatives()))
        self.floors = [0.0] * len(parts)
        complete = all(self._deepen(number, pattern, values) for number, (pattern, values) in enumerate(parts))
        return self._bounds(complete)

    # ---- tables

    def _prepare(self) -> None:
        problem, form = self.problem, self.form
        prepared = _prepared(form)
        strays = {
            j: float(own)
            for j, (feature, own) in enumerate(zip(problem.space.values(), problem.factual, strict=True))
            if own is not None
            and isinstance(feature, Real | Integer)
            and feature.step is not None
            and not feature.has(own)
        }
        self.grid = make_grid(form, strays) if strays else prepared.grid
        self.cache = prepared.values
        conditions = [c for c in problem.conditions if isinstance(c, CountDifferent)]
        self.conditions = conditions
        self.allowed = allowed_values(problem) if problem.conditions else prepared.free
        if needs_refining(self.allowed, problem, conditions):
            self.view = refined_view(self.grid, problem, self.allowed, conditions)
        else:
            self.view = plain_view(self.grid) if strays else prepared.view
        assert isinstance(problem.metric, NormMetric)
        self.jump, self.slope, self.square, self.peak = _costs(prepared, problem.metric)
        self.inverse, self.is_category, self.mask_of = prepared.inverse, prepared.is_category, prepared.mask_of
        self.lowest = np.array([each.spans[0][0] if each.spans else np.inf for each in self.allowed])
        self.highest = np.array([each.spans[-1][1] if each.spans else -np.inf for each in self.allowed])
        masks = zip(self.allowed, self.grid.is_mask, strict=True)
        self.levels = np.array([_levels(each) if is_mask else 0 for each, is_mask in masks], dtype=np.int64)

    def _alternatives(self) -> list[_Values]:
        goal = self.problem.goal
        band = self.form.rounding + goal.slack
        made = []
        for margins in goal.alternatives(self.form.outputs, ties_last=self.form.ties_last):
            if not margins:
                continue
            if margins not in self.cache:
                self.cache[margins] = _values(self.form, margins, band)
            made.append(self.cache[margins])
        return made

    def _patterns(self) -> list[NDArray[np.bool_]]:
        """Return the ways in which features may be missing, those with the fewest changes first."""
        own = np.array([value is None for value in self.problem.factual])
        free = [
            j
            for j, (feature, allowed) in enumerate(zip(self.problem.space.values(), self.allowed, strict=True))
            if feature.missing and (not own[j] or allowed.spans) and (own[j] or allowed.missing)
        ]
        patterns = []
        for count in range(len(free) + 1):
            for chosen in itertools.combinations(free, count):
                pattern = own.copy()
                pattern[list(chosen)] ^= True
                if all(self.allowed[j].missing if pattern[j] else self.allowed[j].spans for j in range(len(own))):
                    patterns.append(pattern)
                if len(patterns) > MOST_PATTERNS:
                    return patterns
        return patterns

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

    def _deepen(self, number: int, pattern: NDArray[np.bool_], values: _Values) -> bool:
        """Search ever larger balls for one pattern and one alternative; False where time or memory ran out."""
        tables = self._cells(pattern)
        if tables is None:
            self.floors[number] = np.inf
            return True
        cells, lo, hi, mask, rep = tables
        farthest = 2 * _farthest(cells, lo, hi, mask) + 1
        radius = _nearest(cells) + max(FIRST_RADIUS, 1.01 * _least_step(cells))
        trees = self.grid.trees(values.most, values.least)
        while True:
            if self.limits.remaining() <= 0:
                self.reason = "time limit reached"
                return False
            radius = min(radius, self.best.cost, farthest)
            outcome = self._one_pass(radius, cells, lo, hi, mask, rep, trees, values, pattern)
            if outcome is None:
                if self.best.point is None:
                    self._seek(cells, lo, hi, mask, rep, trees, values, pattern)
                return False
            found, next_radius, nodes = outcome
            self.floors[number] = min(radius, self.best.cost)
            self._report()
            if found or radius >= min(self.best.cost, farthest):
                self.floors[number] = np.inf
                return True
            if nodes >= SEEK_AFTER and self.best.point is None:
                self._seek(cells, lo, hi, mask, rep, trees, values, pattern)
            growth = next(factor for most, factor in GROWTH if nodes <= most)
            radius = max(radius * growth, next_radius * (1 + 1e-6))

    def _seek(
        self, cells: kernels.Cells, lo: Ints, hi: Ints, mask: Ints, rep: Floats, trees: kernels.Trees, values: _Values,
        pattern: NDArray[np.bool_],
    ) -> None:  # fmt: skip
        """Look for any valid point, to have one in hand when a search is not easy."""
        best = np.empty(len(lo), dtype=np.int64)
        cost = kernels.seek(TRIES, 1, lo, hi, mask, cells, trees, values_goal(values), best)
        if cost < self.best.cost:
            self.best = _Best(float(cost), self._point(best, rep, pattern))

    def _one_pass(
        self, radius: float, cells: kernels.Cells, lo: Ints, hi: Ints, mask: Ints, rep: Floats, trees: kernels.Trees,
        values: _Values, pattern: NDArray[np.bool_],
    ) -> tuple[bool, float, int] | None:  # fmt: skip
        """Search one ball; ``None`` where time or memory ran out."""
        self.passes += 1
        local = _Local(self, radius, cells, lo, hi, mask, trees, values)
        if local.count == 0:
            return False, local.next_radius, 0
        arena = max(1 << 16, 16 * local.count)
        while True:
            outcome = self._branch_and_bound(radius, local, trees, values, arena)
            if outcome != "full" or arena >= MOST_ARENA:
                break
            arena *= 8
        if outcome == "full":
            self.reason = "memory limit reached"
            return None
        registers, reals, best, log_point, log_cost = local.state
        self.nodes += int(registers[kernels.NODES])
        for point, cost in zip(log_point[: registers[kernels.LOGGED]], log_cost, strict=False):
            self.undecided.append((float(cost), self._point(local.cells_of(point), rep, pattern)))
        if registers[kernels.FOUND]:
            self.best = _Best(float(reals[kernels.LIMIT]), self._point(local.cells_of(best), rep, pattern))
        if outcome == "late":
            return None
        return bool(registers[kernels.FOUND]), local.next_radius, int(registers[kernels.NODES])

    def _branch_and_bound(self, radius: float, local: _Local, trees: kernels.Trees, values: _Values, arena: int) -> str:
        """Run the kernel, pausing to look at the clock; "done", "late" or "full"."""
        local.reset(radius, arena)
        budget = 16
        registers, reals, best, log_point, log_cost = local.state
        while True:
            started = time.monotonic()
            try:
                kernels.advance(
                    budget, registers, reals, best, log_point, log_cost, local.cells, local.leaves, trees, values_goal(values),
                    local.stack, local.peaks, local.drop, local.soft, local.scratch, local.empty,
                )  # fmt: skip
            except KeyboardInterrupt:
                self.reason = "interrupted"
                return "late"
            if registers[kernels.STATUS] == kernels.FULL:
                return "full"
            if registers[kernels.DEPTH] < 0:
                return "done"
            if self.limits.remaining() <= 0:
                self.reason = "time limit reached"
                return "late"
            taken = time.monotonic() - started
            budget = max(1, min(1 << 14, int(budget * PAUSE / max(taken, 1e-6))))

    def _point(self, cells: Ints, rep: Floats, pattern: NDArray[np.bool_]) -> Point:
        """Return the point that stands for some cells: in each, the value nearest to the factual."""
        numbers = rep[self.view.off[:-1] + cells]
        return tuple(
            None if pattern[j] else float(number) if isinstance(feature, Real) else int(number)
            for j, (feature, number) in enumerate(zip(self.problem.space.values(), numbers, strict=True))
        )

    # ---- the end

    def _report(self) -> None:
        if self.limits.on_progress is not None:
            power = 1 / self.problem.metric.power
            floor = min(self.floors)
            self.limits.on_progress(min(floor, self.best.cost) ** power, self.best.cost**power, self.nodes)

    def _bounds(self, complete: bool) -> Bounds:
        """Let the real model decide what the kernel could not, and return what is proved."""
        problem = self.problem
        open_cost = np.inf
        for cost, candidate in sorted(self.undecided, key=lambda pair: pair[0]):
            if cost >= self.best.cost:
                break
            if not problem.form.is_settled(candidate, problem.goal):
                open_cost = min(open_cost, cost)
            elif problem.is_reached(candidate):
                self.best = _Best(cost, candidate)
        point = self.best.point
        notes = {"nodes": self.nodes, "passes": self.passes}
        if complete and point is None and not np.isfinite(open_cost):
            return Bounds(Fraction(0), is_infeasible=True, calls=self.nodes, notes=notes)
        measure = problem.metric.measure(point) if point is not None else None
        measures = [measure] if measure is not None else []
        if np.isfinite(open_cost):
            measures.append(Fraction(open_cost))
        if not complete:
            floor = min(self.floors)
            measures.append(Fraction(floor if np.isfinite(floor) else 0.0))
        lowest = min(measures, default=Fraction(0))
        error = (len(problem.space) + 8) * 4 * UNIT
        lower = distance_down(problem.metric, max(Fraction(0), lowest - error))
        reason = self.reason or (BAND if np.isfinite(open_cost) else "")
        upper = distance_up(problem.metric, measure) if measure is not None else None
        return Bounds(lower, upper, point, reason=reason, calls=self.nodes, notes=notes)


class _Local:
    """The problem inside one ball: its leaves, its cells merged where no leaf tells them apart, and the kernel's working arrays."""

    def __init__(
        self,
        search: _Search,
        radius: float,
        cells: kernels.Cells,
        lo: Ints,
        hi: Ints,
        mask: Ints,
        trees: kernels.Trees,
        values: _Values,
    ) -> None:
        grid, view = search.grid, search.view
        features = len(lo)
        self.trees = len(grid.roots)
        masks = max(1, int(grid.is_mask.sum()))
        tree_start = np.empty(self.trees + 1, dtype=np.int64)
        dropped = np.empty(1)
        capacity = 64 * self.trees + 256
        while True:
            leaf = np.empty(capacity, dtype=np.int64)
            box_lo, box_hi = np.empty((capacity, features), np.int32), np.empty((capacity, features), np.int32)
            box_mask = np.zeros((capacity, masks), dtype=np.int64)
            count = kernels.collect(
                radius,
                lo,
                hi,
                mask,
                cells,
                view.start,
                view.start_off,
                trees,
                grid.depth + 1,
                tree_start,
                leaf,
                box_lo,
                box_hi,
                box_mask,
                dropped,
            )
            if count >= 0:
                break
            capacity *= 8
        self.count = count
        self.next_radius = float(dropped[0])
        lo, hi, mask = lo.copy(), hi.copy(), mask.copy()
        near = np.empty(features, dtype=np.int64)
        distance = kernels.shrink_to_ball(
            radius, lo, hi, mask, cells.own, cells.is_mask, cells.off, cells.add, cells.top, near
        )
        if distance >= radius:
            self.count = 0
            self.next_radius = min(self.next_radius, float(distance))
            return
        blocks = int(view.off[-1])
        new_off, new_own = np.empty(features + 1, np.int64), np.empty(features, np.int64)
        new_add, new_top, new_rep = np.empty(blocks), np.empty(blocks), np.empty(blocks, np.int64)
        size = kernels.compress(
            count, lo, hi, cells, view.cut, box_lo, box_hi, new_off, new_add, new_top, new_rep, new_own
        )
        self.off, self.rep = new_off, new_rep[:size]
        owner = np.repeat(np.arange(features), np.diff(new_off))
        at = view.off[owner] + self.rep
        self.cells = kernels.Cells(
            cells.is_mask, cells.is_missing, cells.mask_of, new_off, new_add[:size], new_top[:size], new_own, view.base[at],
            np.ascontiguousarray(cells.differs[:, at]), cells.at_least,
        )  # fmt: skip
        self.leaves = kernels.Leaves(box_lo[:count], box_hi[:count], box_mask[:count], values.most[leaf[:count]])
        self.tree_start = tree_start
        self.order = np.empty(count, dtype=np.int64)
        kernels.sort_leaves(tree_start, self.leaves.gain, self.order)
        self.start_lo = np.zeros(features, np.int64)
        self.start_hi = np.diff(new_off) - 1
        self.start_mask = mask
        self.base = values.base
        self.margins = len(values.base)

    def reset(self, radius: float, arena: int) -> None:
        """Make the working arrays of a fresh run."""
        features, margins, trees = len(self.start_lo), self.margins, self.trees
        size = len(self.rep)
        depth = min(size + features + 4, 4096)
        ints = np.int64
        self.stack = kernels.Stack(
            arena=np.empty(arena, np.int32),
            lo=np.empty((depth, features), ints),
            hi=np.empty((depth, features), ints),
            mask=np.empty((depth, features), ints),
            first=np.empty((depth, trees), ints),
            last=np.empty((depth, trees), ints),
            active=np.empty(depth, ints),
            top=np.empty(depth, ints),
            const=np.empty((depth, margins)),
            state=np.zeros(depth, ints),
            feature=np.empty(depth, ints),
            at=np.empty(depth, ints),
            near_side=np.empty(depth, ints),
            point=np.empty((depth, features), ints),
            at_first=np.empty(trees, ints),
            open=np.empty(features, ints),
            closed=np.empty(2),
            reach=np.empty((features, 3), ints),
            level=np.empty((features, 2)),
        )
        stack = self.stack
        stack.arena[: self.count] = self.order
        stack.lo[0], stack.hi[0], stack.mask[0] = self.start_lo, self.start_hi, self.start_mask
        stack.first[0], stack.last[0] = self.tree_start[:-1], self.tree_start[1:]
        stack.active[0], stack.top[0], stack.const[0] = trees, self.count, self.base
        registers = np.zeros(8, ints)
        registers[kernels.FRESH] = 1
        reals = np.array([radius])
        self.state = (
            registers, reals, np.zeros(features, ints), np.empty((MOST_LOGGED, features), ints), np.empty(MOST_LOGGED),
        )  # fmt: skip
        widest = int(np.diff(self.off).max())
        self.peaks = np.empty((trees, margins))
        self.drop, self.soft = np.empty((2, size + 1)), np.empty((2, size + 1))
        self.scratch = np.empty((2, widest + 1))
        self.empty = np.empty((2, size + 1), ints)

    def cells_of(self, blocks: Ints) -> Ints:
        """Return the cells that stand for blocks."""
        cells: Ints = self.rep[self.off[:-1] + blocks]
        return cells


def values_goal(values: _Values) -> kernels.Goal:
    """Return the kernels' goal of some margins."""
    return kernels.Goal(values.base, values.need, values.sure, values.pad)


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


def _farthest(cells: kernels.Cells, lo: Ints, hi: Ints, mask: Ints) -> float:
    """Return a bound on the cost of every allowed point."""
    total = peak = 0.0
    for j in range(len(lo)):
        begin, end = cells.off[j], cells.off[j + 1]
        chosen = slice(begin, end) if cells.is_mask[j] else slice(begin + lo[j], begin + hi[j] + 1)
        alive = cells.add[chosen] < kernels.FAR
        total += float(cells.add[chosen][alive].max(initial=0.0))
        peak = max(peak, float(cells.top[chosen][alive].max(initial=0.0)))
    return total + peak
