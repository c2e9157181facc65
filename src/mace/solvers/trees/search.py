"""The search: balls that grow around the factual, part by part, until the nearest counterfactual is proved nearest."""

from __future__ import annotations

import heapq
import itertools
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from mace.clock import OutOfTime, until
from mace.distances import distance_down, distance_up
from mace.exact import UNIT, float_up
from mace.problem import INTERRUPTED, LATE, SPENT, Bounds, Evidence, Limits, Problem
from mace.solvers.compiling import change_over, is_compiled
from mace.solvers.incumbent import BAND
from mace.solvers.missing import TOO_MANY, More, Pattern
from mace.solvers.pace import Pace
from mace.solvers.trees import kernels
from mace.solvers.trees.arrays import LEAST_ARENA, MOST_BYTES_KEPT, BallArrays
from mace.solvers.trees.engines import Engine, Plain, Priced
from mace.solvers.trees.grid import Floats, Ints
from mace.solvers.trees.incumbents import (
    exercise,
    find_by_chance,
    find_incumbent,
    has_sum,
    keeps_budgets,
    lacking_score,
    pulled_back,
)
from mace.solvers.trees.local import Local, arrays_for
from mace.solvers.trees.parts import Tables, TreePart
from mace.solvers.trees.proof import Recorder
from mace.space import Point

FIRST_RADIUS, LEAST_RADIUS = 2.0**-10, 2.0**-14
"""How far beyond the nearest allowed point the first ball reaches, and how small it may be made."""

GROWTH_WHILE_SHUT = 8.0
"""A factor by which the radius grows while the leaves of the ball cannot reach the goal together, which is found quickly."""

GROWTH = ((9, 1.6), (30, 2.0), (400, 2.5), (1500, 1.5), (float("inf"), 1.2))
PRICED_GROWTH = ((1, 1.5), (30, 1.2), (300, 1.12), (float("inf"), 1.06))
"""Pairs of nodes and a factor by which the radius grows after a pass with at most these nodes.

Easy balls grow little, since it takes longer to collect leaves that are not needed than to search; hard ones too, since a ball that is
too large is harder still.
"""

GROWTH_TO_ROWS = 1.2
"""The most that a radius grows by where points are to be near rows of data."""

NODES_BEFORE_PRICES = 300
"""Nodes in one ball after which the plain engine is joined by the one with prices."""

MANY_LEAVES = 1000
LEAST_PATIENCE = 10
"""In a ball of more leaves than these the plain engine is joined sooner, in proportion, but not before so many nodes."""

PRICE = 16
"""How many plain nodes take about as long as one with prices."""

LEAST_PAID, MOST_PAID = 0.8, 0.98
"""What ball and budgets pay for at first, as shares of what the factual's own score lacks: with less the bound comes down slowly."""

LEAST_RACE = 2 * PRICE
"""So many plain nodes are what the engines take in turns at first, at least: the root of the one with prices is one."""

MORE_PATIENCE = 4
"""How many times the nodes of the ball before a ball may take."""

IN_REACH, NEARLY_ALL = 0.4, 0.97
"""A ball with this share of the best distance may as well have all of it: with the plain bound, and with prices."""

LEAVES_AT_FIRST = 4096
"""Leaves times boxes that are looked at before the first look at the clock: some milliseconds, at most."""

INCUMBENT_AFTER = 50
"""Nodes in a pass after which random points are tried, for some incumbent."""

NODES_TO_REACH = 1000
"""Nodes after which a first search for any point within the budgets is given up, at first."""

MOST_UNDECIDED = 20_000
CHUNK = 256

MOST_ARENA = 2**28

LEAST_PROOF = 0.05
"""Seconds that a proof may always take."""

MOST_PROOF = 2
"""How many times as long as the search a proof may take that could not be recorded on the way."""

PLAIN_SHARE = 0.1
"""The part of the time of a proof in which the plain engine may find one."""


@dataclass(frozen=True, slots=True)
class Best:
    """The incumbent, and its cost in floats."""

    cost: float
    point: Point | None = None


@dataclass(slots=True)
class Climb:
    """A part that is searched in a growing ball.

    Attributes
    ----------
    floor : float
        A lower bound on the cost of the part's counterfactuals.
    radius, farthest : float
        Of the next ball, and of one that holds everything.
    multipliers : float array, optional
        λ of the dual bound and μ of each budget to begin with; ``None`` while the plain bound suffices.
    patience : int
        Nodes after which a ball is given up for a smaller one, or for another engine.
    to_reach : int
        Nodes after which the next search for any point within the budgets is given up.
    smallest : float, optional
        How large the next ball is at least, while no ball has had leaves that reach the goal together; ``None`` after that.
    is_done : bool
        Whether the part holds nothing better than the incumbent.
    """

    part: TreePart
    floor: float
    radius: float
    farthest: float
    multipliers: Floats | None = None
    patience: int = NODES_BEFORE_PRICES
    to_reach: int = NODES_TO_REACH
    smallest: float | None = None
    is_done: bool = False


class TreeSearch:
    """One question: its parts, searched in the order of their lower bounds, and the incumbent."""

    def __init__(self, problem: Problem, limits: Limits, patience: int | None = None) -> None:
        self.problem = problem
        self.limits = limits
        self.patience = NODES_BEFORE_PRICES if patience is None else patience
        self.tables = Tables(problem)
        self.nodes = self.passes = 0
        self.undecided: dict[Point, float] = {}
        self.best = Best(self._farthest_sought())
        self.reason = ""
        self.has_tried = False
        self.recorder = Recorder(self.tables) if limits.record else None
        self.arrays: BallArrays | None = None
        self.started = time.monotonic()

    def _farthest_sought(self) -> float:
        """Return a cost from which on no point is sought: that of ``within``, and what rounding may take off the bound that is proved."""
        within = self.limits.within
        return np.inf if within is None else float_up(within**self.problem.metric.power + 2 * self._rounding)

    def run(self) -> Bounds:
        """Return the nearest counterfactual, and what is proved of it."""
        kept = self.tables.made.arrays
        with suppress(IndexError):  # another thread may have it
            self.arrays = kept.pop()
        bounds = self._bounds(self._searched())
        if self.arrays is not None and not kept and self.arrays.bytes <= MOST_BYTES_KEPT:
            kept.append(self.arrays)
        return bounds

    def _searched(self) -> float:
        """Search the part with the least lower bound one ball farther, until the incumbent is below all of them.

        Returns a cost below which only the points met so far can be counterfactuals; infinite where all was searched.
        """
        serial = itertools.count()
        # Of equal floors a pattern, whose parts are not made yet, comes before a part.
        waiting: list[tuple[float, bool, int, Pattern | More | Climb]] = []
        alternatives, patterns = self.tables.alternatives(), self.tables.patterns.in_order()

        def put(floor: float, item: Pattern | More | Climb) -> None:
            heapq.heappush(waiting, (floor, isinstance(item, Climb), next(serial), item))

        put(*next(patterns))
        while waiting and waiting[0][0] < self.best.cost and not self._is_enough():
            floor, _, _, item = heapq.heappop(waiting)
            if isinstance(item, Climb):
                try:
                    self._climb(item)
                except KeyboardInterrupt:
                    self.reason = INTERRUPTED
                except OutOfTime:
                    self.reason = LATE
                if not item.is_done:
                    put(item.floor, item)
                lowest = waiting[0][0] if waiting else np.inf
                self._report(lowest)
                if self.reason:
                    return lowest
                continue
            if item is More.TOO_MANY:
                self.reason = TOO_MANY
                return floor
            if not isinstance(item, More):
                try:
                    parts = [self.tables.part(item, values) for values in alternatives]
                    climbs = [self._start(part) for part in parts if part is not None]
                except OutOfTime:
                    self.reason = LATE
                    return floor
                for climb in climbs:
                    put(climb.floor, climb)
            following = next(patterns, None)
            if following is not None:
                put(*following)
        return waiting[0][0] if waiting and self._is_enough() else np.inf

    def _is_enough(self) -> bool:
        """Return whether any point will do, and one is in hand."""
        return self.limits.any_point and self.best.point is not None

    def exercise(self) -> None:
        """Run every kernel once, for all of them to be compiled."""
        self.run()
        part = self.tables.part(self.tables.patterns.factual, self.tables.alternatives()[0])
        if part is not None:
            exercise(self.tables, part)

    # ---- passes

    def _start(self, part: TreePart) -> Climb:
        step = 1.01 * part.least_step
        nearest = max(part.nearest, part.least_way)
        smallest: float | None = nearest + max(LEAST_RADIUS, step)
        radius = nearest + max(FIRST_RADIUS, step)
        if self.limits.any_point:
            radius, smallest = part.farthest, None
            self._find_incumbent(part, find_by_chance)
        multipliers = None
        if self.patience <= 0 and self._can_price(part):
            multipliers = LEAST_PAID * first_multipliers(part, radius)
        return Climb(part, part.nearest, radius, part.farthest, multipliers, max(self.patience, 1), smallest=smallest)

    def _can_price(self, part: TreePart) -> bool:
        """Return whether the dual bound applies: it is about one margin. Of rows that points are to be near, it knows too little."""
        return len(part.values.base) == 1 and not self.tables.budgets.neighbours

    def _climb(self, climb: Climb) -> None:
        """Search one ball of a part, and set its next one."""
        if self.limits.remaining() <= 0:
            self.reason = LATE
            return
        part, tables = climb.part, self.tables
        if self.recorder is not None:
            self.recorder.meet(part)
        radius = min(climb.radius, self.best.cost, climb.farthest)
        self.passes += 1
        self.arrays = arrays_for(tables, part, self.arrays)
        local = Local(tables, part, radius, climb.smallest, self.arrays)
        radius, nodes = local.radius, 0
        if local.count > 0:
            climb.smallest = None
            engine, ended = self._search(local, climb, radius)
            if climb.is_done:
                return
            nodes = engine.nodes
            climb.floor = max(climb.floor, min(engine.floor, self.best.cost))
            if isinstance(engine, Priced):
                climb.multipliers = engine.multipliers
            if not ended:
                self._go_on(climb, engine)
                return
            if self.recorder is not None:
                self.recorder.keep(part, engine, radius)
        elif self.recorder is not None:
            self.recorder.keep_empty(part, radius)
        climb.floor = max(climb.floor, radius)
        climb.is_done = radius >= min(self.best.cost, climb.farthest)
        if nodes >= INCUMBENT_AFTER and self.best.point is None:
            self._find_some(climb)
        steps = GROWTH if climb.multipliers is None else PRICED_GROWTH
        growth = next(factor for most, factor in steps if nodes <= most)
        if climb.smallest is not None:
            climb.smallest, growth = radius * growth, GROWTH_WHILE_SHUT
        climb.patience = max(climb.patience, MORE_PATIENCE * nodes)
        if part.by_radius.any():
            # What lies near the rows as well is not told apart by a ball that is too large.
            climb.radius = radius * min(growth, GROWTH_TO_ROWS)
        else:
            climb.radius = max(radius * growth, local.next_radius * (1 + 1e-6))
        nearly_all = IN_REACH if climb.multipliers is None and not part.by_radius.any() else NEARLY_ALL
        if climb.radius >= nearly_all * self.best.cost:
            climb.radius = self.best.cost

    def _go_on(self, climb: Climb, engine: Engine) -> None:
        """Set the next ball after one that was not searched to its end."""
        if self.reason:
            if self.best.point is None:
                # There is no time for more.
                self._find_incumbent(climb.part, find_by_chance)
        elif engine.status == kernels.RESTART:
            climb.radius = max(1.05 * climb.floor, 0.9 * self.best.cost)
        else:
            climb.radius = (climb.floor + engine.radius) / 2
            climb.patience *= 2

    def _search(self, local: Local, climb: Climb, radius: float) -> tuple[Engine, bool]:
        """Search a ball; return the engine that did, and whether it came to its end."""
        part = climb.part
        arena = max(LEAST_ARENA, 16 * local.count)
        patience = min(climb.patience, max(LEAST_PATIENCE, climb.patience * MANY_LEAVES // local.count))
        while True:
            engine: Engine
            if climb.multipliers is None:
                engine = Plain(local, part.trees, part.values, radius, arena, record=self.limits.record)
            else:
                engine = self._priced(local, climb, radius, arena, climb.multipliers)
                patience = climb.patience
            ended = self._run(engine, part, patience if self._can_price(part) else None)
            is_stuck = not (ended or self.reason or self._is_enough()) and engine.status == kernels.RUNNING
            if is_stuck and climb.multipliers is None:
                engine, ended = self._race(engine, local, climb, arena)
            if engine.status != kernels.FULL:
                return engine, ended
            if arena >= MOST_ARENA:
                self.reason = "memory limit reached"
                return engine, False
            arena *= 8

    def _race(self, plain: Engine, local: Local, climb: Climb, arena: int) -> tuple[Engine, bool]:
        """Run the plain engine, which did not end, and one with the dual bound in turns; return the first to end."""
        part, radius = climb.part, plain.radius
        if self.best.point is None:
            self._find_some(climb)
            if climb.is_done or self.reason:
                return plain, False
        multipliers = LEAST_PAID * first_multipliers(part, radius)
        if not has_sum(part) and self.best.cost < NEARLY_ALL * radius:
            # Where distance has no price, the size of the ball is all that keeps its points near.
            climb.multipliers = multipliers
            plain.registers[kernels.STATUS] = kernels.RESTART
            return plain, False
        priced = self._priced(local, climb, radius, arena, multipliers)
        nodes = max(plain.nodes, LEAST_RACE)
        while plain.status != kernels.FULL or priced.status != kernels.FULL:
            for engine, more in ((priced, nodes // PRICE), (plain, nodes)):
                engine.reals[kernels.LIMIT] = min(engine.reals[kernels.LIMIT], self.best.cost)
                if engine.status != kernels.FULL:
                    ended = self._run(engine, part, engine.nodes + more)
                    if ended or self.reason or engine.status == kernels.RESTART or self._is_enough():
                        return engine, ended
            nodes *= 2
        return plain, False

    def _priced(self, local: Local, climb: Climb, radius: float, arena: int, multipliers: Floats) -> Priced:
        lacking, kept = lacking_score(climb.part, radius)
        paid = float(multipliers @ kept)
        share = min(max(1.0, LEAST_PAID * lacking / paid), MOST_PAID * lacking / paid) if paid > 0 else 1.0
        # A smaller ball is not the last.
        records = self.limits.record and radius >= min(NEARLY_ALL * self.best.cost, climb.farthest)
        return Priced(
            local,
            climb.part.trees,
            climb.part.values,
            radius,
            arena,
            share * multipliers,
            lacking=lacking if records else 0.0,
        )

    def _run(self, engine: Engine, part: TreePart, most_nodes: int | None) -> bool:
        """Run an engine, pausing to look at the clock, and keep its incumbent; return whether it came to its end."""
        before = engine.nodes
        ended = self._advance(engine, part, most_nodes)
        self.nodes += engine.nodes - before
        self._note_undecided(engine, part)
        # A kernel that was stopped in the middle may have noted the cost of a point, and not yet the point.
        cost = float(kernels.cost_of(engine.best, engine.local.cells) if self.reason else engine.reals[kernels.LIMIT])
        if engine.found and cost < self.best.cost:
            cells = engine.local.cells_of(engine.best)
            if self.limits.any_point:
                cells = pulled_back(part, cells)
                cost = float(kernels.cost_of(cells, part.cells))
            self.best = Best(cost, self.tables.point(cells, part))
        return ended

    def _advance(self, engine: Engine, part: TreePart, most_nodes: int | None) -> bool:
        first, is_counted = self._first_steps(engine, most_nodes), self.limits.any_point
        pace = Pace(self.limits.deadline, first, is_counted=is_counted)
        before = engine.nodes
        while True:
            try:
                with pace.timed():
                    left = max(1.0, self.limits.effort - self.nodes - engine.nodes + before)
                    engine.advance(int(min(pace.steps, left)))
            except KeyboardInterrupt:
                self.reason = INTERRUPTED
                return False
            except OutOfTime:
                self.reason = LATE
                return False
            if engine.status == kernels.PROOF_FULL:
                engine.make_room()
                engine.registers[kernels.STATUS] = kernels.RUNNING
            if engine.status == kernels.LOG_FULL:
                self._note_undecided(engine, part)
                if len(self.undecided) > MOST_UNDECIDED:
                    self.reason = "too many points lie on the boundary to ask the model about each"
                    return False
                engine.registers[kernels.STATUS] = kernels.RUNNING
            if engine.status != kernels.RUNNING:
                return False
            if engine.registers[kernels.DEPTH] < 0:
                return True
            if self.limits.remaining() <= 0:
                self.reason = LATE
                return False
            if self.nodes + engine.nodes - before >= self.limits.effort:
                self.reason = SPENT
                return False
            if self.limits.any_point and engine.found:
                return False
            self._look_ahead(part)
            if most_nodes is not None:
                if engine.nodes >= most_nodes:
                    return False
                pace.steps = min(pace.steps, most_nodes - engine.nodes)

    def _first_steps(self, engine: Engine, most_nodes: int | None) -> int:
        """Return how many steps come before the first look at the clock: more than one in a ball of few leaves."""
        if isinstance(engine, Priced) or self.limits.any_point:
            return 1
        steps = max(1, LEAVES_AT_FIRST // int(engine.local.count))
        return steps if most_nodes is None else max(1, min(steps, most_nodes - engine.nodes))

    def _note_undecided(self, engine: Engine, part: TreePart) -> None:
        """Keep the points that only the real model can decide, and empty the kernel's log of them."""
        logged = engine.registers[kernels.LOGGED]
        if not logged:
            return
        for blocks, cost in zip(engine.log_point[:logged], engine.log_cost, strict=False):
            self.undecided[self.tables.point(engine.local.cells_of(blocks), part)] = float(cost)
        engine.registers[kernels.LOGGED] = 0

    def _look_ahead(self, part: TreePart) -> None:
        """Change over to compiled kernels that have come; without them, find some point in half of the time: later there is none for it."""
        change_over(__package__, self.limits.deadline)
        half = (self.started + self.limits.deadline) / 2
        if self.best.point is None and not self.has_tried and time.monotonic() > half and not is_compiled(__package__):
            self._find_incumbent(part)

    def _find_some(self, climb: Climb) -> None:
        """Look for some valid point; where few changes are allowed and it is not found, by searching, which may find that there is none."""
        part = climb.part
        self._find_incumbent(part)
        if self.best.point is not None or not len(part.cells.most) or not keeps_budgets(part):
            return
        local = Local(self.tables, part, climb.farthest)
        if local.count == 0:
            self._end(climb, None)
            return
        arena = max(LEAST_ARENA, 16 * local.count)
        engines: list[tuple[Engine, int]] = [
            (Plain(local, part.trees, part.values, climb.farthest, arena, record=self.limits.record), climb.to_reach)
        ]
        if self._can_price(part):
            multipliers = LEAST_PAID * first_multipliers(part, climb.farthest)
            priced = self._priced(local, climb, climb.farthest, arena, multipliers)
            engines.append((priced, climb.to_reach // PRICE))
        for engine, nodes in engines:
            engine.reals[kernels.RESTART_BELOW] = kernels.FAR
            if self._run(engine, part, nodes):
                self._end(climb, engine)
                return
            if self.best.point is not None or self.reason:
                break
        climb.to_reach *= MORE_PATIENCE

    def _end(self, climb: Climb, engine: Engine | None) -> None:
        """Note that a part was searched as far as it goes; without an engine, nothing of it is possible."""
        if self.recorder is not None and engine is not None:
            self.recorder.keep(climb.part, engine, climb.farthest)
        elif self.recorder is not None:
            self.recorder.keep_empty(climb.part, climb.farthest)
        climb.floor, climb.is_done = climb.farthest, True

    def _find_incumbent(self, part: TreePart, find: Callable[[Tables, TreePart, Ints], None] = find_incumbent) -> None:
        """Look for any valid point: a search that is not easy needs an incumbent."""
        self.has_tried = self.has_tried or find is find_incumbent
        best = np.full(len(part.cells.own), -1)
        try:
            find(self.tables, part, best)
        finally:
            cost = float(kernels.cost_of(best, part.cells)) if best[0] >= 0 else np.inf
            if cost < self.best.cost:
                self.best = Best(cost, self.tables.point(best, part))

    # ---- the end

    def _report(self, floor: float) -> None:
        if self.limits.on_progress is not None:
            power = 1 / self.problem.metric.power
            lowest = min(floor, self.best.cost, *self.undecided.values())
            lower = max(0.0, lowest - float(self._rounding)) ** power
            self.limits.on_progress(lower, self.best.cost**power, self.nodes)

    @property
    def _rounding(self) -> Fraction:
        """By how much a cost in floats may be off, or a little more."""
        return (len(self.problem.space) + 8) * 4 * UNIT

    def _decide(self) -> float:
        """Ask the real model about the undecided points, nearest first; return the least cost that stays open."""
        problem, size = self.problem, 1 if self.tables.form.is_blockwise else CHUNK
        open_cost = np.inf
        waiting = [(cost, point) for point, cost in self.undecided.items() if cost < self.best.cost]
        waiting.sort(key=lambda pair: pair[0])
        for start in range(0, len(waiting), size):
            chunk = waiting[start : start + size]
            if start and self.limits.remaining() <= 0:
                return min(open_cost, chunk[0][0])
            for (cost, point), outcome in zip(chunk, problem.ask([point for _, point in chunk]), strict=True):
                if not problem.form.is_settled(point, problem.goal):
                    open_cost = min(open_cost, cost)
                elif problem.goal.accepts(outcome):
                    self.best = Best(cost, point)
                    return open_cost
        return open_cost

    def _bounds(self, floor: float) -> Bounds:
        """Let the real model decide what the kernel could not, and return what is proved.

        ``floor`` is a cost below which only the points met so far can be counterfactuals; infinite where all was searched.
        """
        problem = self.problem
        open_cost = self._decide()
        point = self.best.point
        if point is None:
            floor = min(floor, self.best.cost)
        notes = {"nodes": self.nodes, "passes": self.passes}
        if floor == np.inf and point is None and open_cost == np.inf:
            return Bounds(
                Fraction(0), is_infeasible=True, calls=self.nodes, notes=notes, evidence=self._evidence(np.inf)
            )
        measure = problem.metric.measure(point) if point is not None else None
        measures = [measure] if measure is not None else []
        measures += [Fraction(cost) for cost in (open_cost, floor) if cost < np.inf]
        lowest = min(measures, default=Fraction(0))
        lower = distance_down(problem.metric, max(Fraction(0), lowest - self._rounding))
        reason = self.reason or (BAND if open_cost < np.inf else "")
        upper = distance_up(problem.metric, measure) if measure is not None else None
        if not reason and upper is not None and upper - lower > problem.accuracy:
            reason = "the accuracy asked for is finer than the rounding of distances"
        evidence = None if self.recorder is None else self._evidence(float_up(lower**problem.metric.power))
        return Bounds(lower, upper, point, reason=reason, calls=self.nodes, notes=notes, evidence=evidence)

    def _evidence(self, radius: float) -> Evidence | None:
        """Return the recorded proof that nothing costs less than ``radius``, where one was asked for.

        Where a ball was closed by prices, of which too many pass to be recorded, it is searched again at its final size, by either engine,
        for at most twice as long as the whole search took. A long branching may become shorter there too.
        """
        if self.recorder is None:
            return None
        gaps = self.recorder.gaps(radius)
        begun = time.monotonic()
        end = min(begun + max(LEAST_PROOF, MOST_PROOF * (begun - self.started)), self.limits.deadline)
        for part in gaps:
            size = min(radius, part.farthest)
            share = end - time.monotonic()
            is_proved = self._prove(part, size, end - (1 - PLAIN_SHARE) * share if self._can_price(part) else end)
            if not is_proved and self._can_price(part):
                self._prove(part, size, end, by_prices=True)
        made = {id(part) for part in gaps}
        for part in self.recorder.long(radius):
            if id(part) not in made:
                self._prove(part, min(radius, part.farthest), min(end, 2 * begun - self.started))
        return self.recorder.evidence(radius)

    def _prove(self, part: TreePart, radius: float, end: float, *, by_prices: bool = False) -> bool:
        """Search a ball that holds nothing for its branching; return whether it was found in time."""
        try:
            with until(end):
                return self._proved(part, radius, end, by_prices=by_prices)
        except OutOfTime:
            return False

    def _proved(self, part: TreePart, radius: float, end: float, *, by_prices: bool) -> bool:
        assert self.recorder is not None
        tables, arena = self.tables, 1 << 20
        local, pace = Local(tables, part, radius), Pace(end)
        if local.count == 0:
            self.recorder.keep_empty(part, radius)
            return True
        while arena <= MOST_ARENA:
            engine: Engine
            if by_prices:
                first, lacking = LEAST_PAID * first_multipliers(part, radius), lacking_score(part, radius)[0]
                engine = Priced(local, part.trees, part.values, radius, arena, first, lacking=lacking)
            else:
                engine = Plain(local, part.trees, part.values, radius, max(arena, 16 * local.count), record=True)
            while engine.status in (kernels.RUNNING, kernels.LOG_FULL, kernels.PROOF_FULL):
                if engine.registers[kernels.DEPTH] < 0:
                    self.recorder.keep(part, engine, radius)
                    return True
                if time.monotonic() > end or self.reason == INTERRUPTED:
                    return False
                if engine.status == kernels.PROOF_FULL:
                    engine.make_room()
                    if engine.branching is None:
                        return False
                # Points on the boundary were asked about before.
                engine.registers[kernels.LOGGED] = engine.registers[kernels.STATUS] = 0
                try:
                    with pace.timed():
                        engine.advance(pace.steps)
                except KeyboardInterrupt:
                    self.reason = INTERRUPTED
            arena *= 8
        return False


def first_multipliers(part: TreePart, radius: float) -> Floats:
    """Return λ and μ of each budget at which these kept, in equal shares, pay for what the factual's own score lacks.

    Where the radius is no limit, only budgets pay; nor does distance pay where it is a maximum over features: the ball itself
    says all that it has to say, and what is left is for the trees to agree.
    """
    lacking, kept = lacking_score(part, radius)
    pays = kept > 0
    pays[0] = has_sum(part) and (radius < part.farthest or not pays[1:].any())
    shares: Floats = np.where(pays, lacking / np.maximum(kept, 1e-300) / max(pays.sum(), 1), 0.0)
    return shares
