"""One question: its arrays, the branch and bound over boxes, and what it proves."""

from __future__ import annotations

import math
import time
from fractions import Fraction

import numpy as np

from mace.distances import NormMetric, distance_down, distance_up
from mace.diversity import CountDifferent
from mace.exact import UNIT, float_up
from mace.forms import Margin, Network
from mace.problem import Bounds, Limits, Problem
from mace.solvers.allowed import Allowed, alike, allowed_values
from mace.solvers.bisection import BAND
from mace.solvers.network import kernels
from mace.solvers.network.conditions import Row, linear_rows
from mace.solvers.network.prepared import Floats, Prepared, costs, lend_work, prepared
from mace.space import Integer, Point, Real

SHARE = 0.8
"""How much of the accuracy the search leaves unsearched below the best point; the rest is for the rounding of its own sums."""

EXACT = 1e-13
"""The same on a finite space, where the optimum itself is sought."""

FIRST_BOXES = 256
MOST_BYTES = 2**29
LOG = 64
MOST_UNDECIDED = 20_000
PAUSE = 0.02
"""Seconds between two looks at the clock."""

REFUSED = "the real model refused a point that its reading puts in the goal"


class Search:
    """One question."""

    def __init__(self, problem: Problem, limits: Limits) -> None:
        assert isinstance(problem.form, Network)
        assert isinstance(problem.metric, NormMetric)
        self.problem = problem
        self.form = problem.form
        self.metric = problem.metric
        self.limits = limits
        self.best_cost = math.inf
        self.best: Point | None = None
        self.open = math.inf
        self.floor = 0.0
        self.nodes = self.asked = 0
        self.reason = ""

    def run(self) -> Bounds:
        """Search every alternative of the goal, each until its optimum is proved or beaten."""
        made = prepared(self.form)
        alternatives = self.form._alternatives(self.problem.goal)
        work = lend_work(made, max(map(len, alternatives), default=0) + len(self.problem.conditions) * 8)
        try:
            self._prepare(made)
            for number, margins in enumerate(alternatives):
                if not self._search(made, margins, work):
                    if number:
                        self.floor = 0.0
                    if number + 1 < len(alternatives):
                        self.floor = 0.0
                    return self._bounds(complete=False)
        finally:
            made.work.append(work)
        return self._bounds(complete=True)

    # ---- arrays

    def _prepare(self, made: Prepared) -> None:
        problem, layout = self.problem, made.layout
        self.made = made
        self.features = list(problem.space.values())
        self.allowed = allowed_values(problem) if problem.conditions else made.free
        self.rows = linear_rows(problem) if problem.conditions else []
        self.earlier = [c for c in problem.conditions if isinstance(c, CountDifferent)]
        self.factual = np.array(problem.factual, dtype=np.float64)
        self.may = self._may() if problem.conditions else np.ones(layout.slots, dtype=np.bool_)
        spans = [() if table else each.spans for each, table in zip(self.allowed, layout.is_table, strict=True)]
        self.span_off = np.cumsum([0, *map(len, spans)])
        flat = np.array([span for each in spans for span in each], dtype=np.float64).reshape(-1, 2)
        self.spans = np.ascontiguousarray(flat.T)
        self.is_empty = any(not each.spans for each in self.allowed)

    def _may(self) -> np.ndarray:
        """Return which slots of levels are allowed."""
        layout = self.made.layout
        may = np.ones(layout.slots, dtype=np.bool_)
        for j in np.flatnonzero(layout.is_table):
            may[layout.slot_from[j] : layout.slot_from[j] + layout.levels[j]] = _levels(
                self.allowed[j], layout.levels[j]
            )
        return may

    def _task(self, margins: tuple[Margin, ...], lo: Floats, hi: Floats) -> kernels.Task | None:
        made, layout = self.made, self.made.layout
        size, units = len(self.features), len(made.net.width) and int(made.net.width[0])
        jump, slope, square, peak, sort = costs(made, self.metric)
        slack = self.problem.goal.slack
        row, row_base = self._rows()
        task = kernels.Task(
            own=np.zeros(size),
            slot=np.zeros(size, dtype=np.int64),
            inverse=layout.inverse,
            is_table=layout.is_table,
            is_grid=layout.is_grid,
            base=layout.base,
            step=layout.step,
            off=np.zeros(size + 1, dtype=np.int64),
            entry_slot=np.zeros(layout.slots, dtype=np.int64),
            entry_delta=np.zeros(layout.slots),
            by_delta=np.zeros(layout.slots, dtype=np.int64),
            nearest=np.zeros(size),
            span_off=self.span_off,
            span_lo=self.spans[0],
            span_hi=self.spans[1],
            jump=jump,
            slope=slope,
            square=square,
            peak=peak,
            form=sort,
            plus=np.array([-1 if margin.plus is None else margin.plus for margin in margins], dtype=np.int64),
            minus=np.array([-1 if margin.minus is None else margin.minus for margin in margins], dtype=np.int64),
            shift=np.array([float(margin.shift) for margin in margins]),
            slack=np.array(
                [float_up(slack + abs(margin.shift) * UNIT) if margin.shift else float_up(slack) for margin in margins]
            ),
            row=row,
            row_base=row_base,
            row_error=np.array([each.error for each in self.rows]),
            alike_lo=np.zeros((len(self.earlier), size)),
            alike_hi=np.zeros((len(self.earlier), size)),
            at_least=np.array([each.features for each in self.earlier], dtype=np.int64),
            factual=np.zeros(units),
            factual_size=np.zeros(units),
        )
        if self.is_empty or not kernels.lay_out(
            self.factual, layout.slot_from, layout.levels, layout.is_category, self.may, made.net, task, lo, hi
        ):
            return None
        for c, condition in enumerate(self.earlier):
            for j in range(size):
                task.alike_lo[c, j], task.alike_hi[c, j] = self._alike(task, condition, j)
        return task

    def _rows(self) -> tuple[Floats, Floats]:
        """Return the coefficients of the linear conditions by slot, and their values at the factual."""
        layout, names = self.made.layout, self.problem.space.names
        row = np.zeros((len(self.rows), layout.slots))
        for r, each in enumerate(self.rows):
            for name, value in each.coefficients.items():
                j = names.index(name)
                start, levels = layout.slot_from[j], layout.levels[j]
                row[r, start : start + max(1, levels)] = float(value) * (np.arange(levels) if levels else 1.0)
        return row, np.array([float(self._row_at_factual(each)) for each in self.rows])

    def _row_at_factual(self, row: Row) -> Fraction:
        own = dict(zip(self.problem.space.names, self.problem.factual, strict=True))
        return row.constant + sum(
            (value * Fraction(own[name] or 0) for name, value in row.coefficients.items()), Fraction(0)
        )

    def _alike(self, task: kernels.Task, condition: CountDifferent, j: int) -> tuple[float, float]:
        """Return the range of feature j, in entries where it is a table, that counts as alike."""
        span = alike(self.features[j], condition.earlier[j], condition.by)
        if span is None:
            return math.inf, -math.inf
        if not task.is_table[j]:
            return span
        slot = self.made.layout.slot_from[j] + int(span[0])
        entries = np.flatnonzero(task.entry_slot[task.off[j] : task.off[j + 1]] == slot)
        return (float(entries[0]), float(entries[0])) if len(entries) else (math.inf, -math.inf)

    # ---- the search

    def _search(self, made: Prepared, margins: tuple[Margin, ...], work: kernels.Work) -> bool:
        """Search one alternative; False where time or memory ran out."""
        size = len(self.features)
        lo, hi = np.zeros(size), np.zeros(size)
        task = self._task(margins, lo, hi)
        if task is None:
            return True
        is_finite = all(
            table or grid or a == b for table, grid, a, b in zip(task.is_table, task.is_grid, lo, hi, strict=True)
        )
        accuracy = float(self.problem.accuracy)
        registers = np.zeros(9, dtype=np.int64)
        task.form[1] = is_finite
        best = np.zeros(size)
        reals = np.array(
            [
                self.best_cost,
                math.inf,
                EXACT if is_finite else SHARE * accuracy,
                1e-15 if is_finite else 0.01 * accuracy,
                0.02 * accuracy / size,
            ]
        )
        log, log_cost = np.zeros((LOG, size)), np.zeros(LOG)
        tree = _make_tree(FIRST_BOXES, size)
        tree.lo[0], tree.hi[0] = lo, hi
        registers[kernels.HEAP] = registers[kernels.USED] = 1
        budget = 32
        while True:
            started = time.monotonic()
            try:
                kernels.advance(budget, registers, reals, best, log, log_cost, tree, lo, hi, made.net, task, work)
            except KeyboardInterrupt:
                self.reason = "interrupted"
            taken = time.monotonic() - started
            if registers[kernels.FOUND]:
                self.best, self.best_cost = self._point(best, task), float(reals[kernels.BEST])
                registers[kernels.FOUND] = 0
            self._ask(registers, reals, log, log_cost, task)
            is_done = registers[kernels.HEAP] == 0 and not self.reason
            if not is_done and not self.reason:
                if self.limits.remaining() <= 0:
                    self.reason = "time limit reached"
                elif registers[kernels.STATUS] == kernels.FULL:
                    tree = self._grow(tree)
            if is_done or self.reason:
                break
            self.floor = self._heap_floor(tree, registers, reals, task)
            self._report()
            budget = max(1, min(1 << 14, int(budget * PAUSE / max(taken, 1e-6))))
        self.nodes += int(registers[kernels.NODES])
        self.open = min(self.open, float(reals[kernels.OPEN]))
        if not is_done:
            self.floor = self._heap_floor(tree, registers, reals, task)
        self.gap = float(reals[kernels.GAP])
        return bool(is_done)

    def _heap_floor(self, tree: kernels.Tree, registers: np.ndarray, reals: Floats, task: kernels.Task) -> float:
        """Return a bound on the cost of every point that is still sought."""
        sought = float(kernels.sought(reals, task))
        return min(sought, float(tree.bound[tree.heap[0]])) if registers[kernels.HEAP] else sought

    def _grow(self, tree: kernels.Tree) -> kernels.Tree:
        """Return the boxes with twice the room."""
        room, size = tree.lo.shape
        if 2 * room * (16 * size + 24) > MOST_BYTES:
            self.reason = "memory limit reached"
            return tree
        larger = _make_tree(2 * room, size)
        for old, new in zip(tree, larger, strict=True):
            new[:room] = old
        return larger

    def _ask(self, registers: np.ndarray, reals: Floats, log: Floats, log_cost: Floats, task: kernels.Task) -> None:
        """Let the real model decide the points that floats cannot, nearest first, each asked alone."""
        count = int(registers[kernels.LOGGED])
        registers[kernels.LOGGED] = 0
        for n in np.argsort(log_cost[:count], kind="stable"):
            cost = float(log_cost[n])
            if cost >= self.best_cost:
                return
            if self.asked >= MOST_UNDECIDED:
                self.reason = "too many points lie on the boundary to ask the model about each"
            if self.reason or (self.asked and self.limits.remaining() <= 0):
                self.open = min(self.open, cost)
                self.reason = self.reason or "time limit reached"
                return
            self.asked += 1
            point = self._point(log[n], task)
            if self.problem.is_plausible(point) and self.problem.is_reached(point):
                self.best, self.best_cost = point, cost
                reals[kernels.BEST] = cost
                return

    def _point(self, v: Floats, task: kernels.Task) -> Point:
        """Return a point of the kernels as numbers of the features."""
        layout = self.made.layout
        values: list[int | float] = []
        for j, feature in enumerate(self.features):
            if isinstance(feature, Real | Integer):
                values.append(self._number(feature, float(v[j]), j))
            else:
                values.append(int(task.entry_slot[task.off[j] + int(v[j])] - layout.slot_from[j]))
        return tuple(values)

    def _number(self, feature: Real | Integer, value: float, j: int) -> int | float:
        own = self.problem.factual[j]
        assert own is not None
        if value == own:
            return own
        if isinstance(feature, Integer):
            return int(value)
        if feature.step is None:
            return value
        k = round((value - feature.low) / feature.step)
        return min((feature.value_at(i) for i in (k - 1, k, k + 1)), key=lambda g: abs(g - value))

    # ---- the end

    def _report(self) -> None:
        if self.limits.on_progress is not None:
            power = 1 / self.metric.power
            floor = min(self.floor, self.open) if len(self.form._alternatives(self.problem.goal)) == 1 else 0.0
            self.limits.on_progress(max(floor - 1e-14, 0.0) ** power, self.best_cost**power, self.nodes)

    def _bounds(self, complete: bool) -> Bounds:
        """Confirm the point with the real model, and return what is proved."""
        problem, metric = self.problem, self.metric
        point = self.best
        notes = {"nodes": self.nodes, "asked": self.asked}
        if point is not None and not (problem.is_plausible(point) and problem.is_reached(point)):
            return Bounds(Fraction(0), reason=REFUSED, calls=self.nodes, notes=notes)
        if complete and point is None and math.isinf(self.open):
            return Bounds(Fraction(0), is_infeasible=True, calls=self.nodes, notes=notes)
        proved = self.open
        if not complete:
            proved = min(proved, self.floor)
        elif point is not None:
            root = math.sqrt(self.best_cost) if metric.power == 2 and self.gap != EXACT else None
            proved = min(proved, self.best_cost - self.gap if root is None else max(root - self.gap, 0.0) ** 2)
        lower = distance_down(metric, max(Fraction(0), Fraction(proved) - (len(problem.space) + 8) * 16 * UNIT))
        measure = metric.measure(point) if point is not None else None
        upper = distance_up(metric, measure) if measure is not None else None
        if lower > 0:
            lower = metric.next_above(lower - Fraction(1, 10**12)) if metric.power == 1 else lower
        if measure is not None:
            lower = min(lower, distance_down(metric, measure))
        gap = upper is not None and upper - lower <= problem.accuracy
        reason = "" if gap else self.reason or BAND
        return Bounds(lower, upper, point, reason=reason, calls=self.nodes, notes=notes)


def _levels(allowed: Allowed, count: int) -> np.ndarray:
    return np.array([any(a <= k <= b for a, b in allowed.spans) for k in range(count)], dtype=np.bool_)


def _make_tree(room: int, size: int) -> kernels.Tree:
    return kernels.Tree(
        lo=np.zeros((room, size)),
        hi=np.zeros((room, size)),
        bound=np.zeros(room),
        heap=np.zeros(room, dtype=np.int64),
        spare=np.zeros(room, dtype=np.int64),
    )
