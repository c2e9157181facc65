"""Branch and bound over the linear programs of ever smaller balls."""

from __future__ import annotations

import heapq
import itertools
import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from mace.exact import float_down, float_up
from mace.forms import FunctionForm
from mace.problem import Bounds, Limits, Problem
from mace.solvers.bisection import BAND
from mace.solvers.milp.branching import Change, Children, Gains, branches, is_missing, settled, split
from mace.solvers.milp.model import Model, build
from mace.solvers.milp.polish import nudge, polish
from mace.solvers.milp.program import Floats
from mace.solvers.milp.propagate import Propagator
from mace.solvers.milp.relaxation import Relaxation
from mace.solvers.milp.seek import pull, seek
from mace.solvers.milp.translate import OutOfTime
from mace.space import Point

LATE = "time limit reached"
FULL = "memory limit reached"
MOST_OPEN = 200_000
SHRINK = Fraction(1, 2)
"""When the point in hand is nearer than this share of the ball, the program is made anew for the smaller ball."""

GLANCE = 10
"""How many nodes go by between two looks at a rounded point."""

SHARE = Fraction(3, 4)
"""The share of the accuracy by which a node may be nearer than the point in hand and still be closed."""


@dataclass(slots=True)
class Node:
    """A part of the ball: how it differs from its parent, and what is proved of it."""

    parent: Node | None
    changes: tuple[Change, ...]
    bound: float
    polished: float = -math.inf
    cut: tuple[int, int] = (-1, 0)


class Search:
    """One question."""

    def __init__(self, problem: Problem, limits: Limits) -> None:
        self.problem = problem
        self.limits = limits
        self.lower = Fraction(0)
        self.best: Point | None = None
        self.upper: Fraction | None = None
        self.calls = self.nodes = self.builds = self.polished = 0
        self.reason = ""
        self.asked: dict[Point, bool] = {}
        self._told = -1

    def run(self) -> Bounds:
        """Search until lower and upper are within ε, or time or memory runs out."""
        try:
            return self._run()
        except OutOfTime:
            self.reason = LATE
        except KeyboardInterrupt:
            self.reason = "interrupted"
        return self._bounds()

    def _run(self) -> Bounds:
        if self.limits.remaining() <= 0:
            raise OutOfTime
        found = seek(self.problem, self.limits)
        if found is not None:
            self.accept(found)
        while True:
            ball = Ball(self, self.upper)
            match ball.search():
                case "smaller":
                    continue
                case "stopped":
                    return self._bounds()
                case "done" if self.upper is None and ball.undecided == math.inf:
                    return Bounds(self.lower, is_infeasible=True, calls=self.calls, notes=self._notes())
            self._settle()
            self.reason = "" if self._gap() <= self.problem.accuracy else BAND
            return self._bounds()

    def _settle(self) -> None:
        """Move a point that rounding might disturb inside, where that costs less than ε."""
        problem = self.problem
        if self.best is None or self.upper is None or isinstance(problem.form, FunctionForm):
            return
        if problem.form.cell(self.best) is not None:
            return
        if problem.form.is_robust(self.best, problem.goal, problem.box(self.upper)):
            return
        moved = polish(problem, self.best, self.lower + SHARE * problem.accuracy, self.limits)
        if moved is not None and self.is_valid(moved) and problem.distance(moved) <= self.lower + problem.accuracy:
            self.best, self.upper = moved, problem.distance(moved)

    # ---- points and bounds

    def cutoff(self) -> float:
        """Return the distance from which on nothing is of interest."""
        if self.upper is None:
            return math.inf
        return float_down(self.upper - SHARE * self.problem.accuracy)

    def is_valid(self, point: Point) -> bool:
        """Return whether a point is plausible and the real model puts it in the goal."""
        if point not in self.asked:
            self.asked[point] = self.problem.is_plausible(point) and self.problem.is_reached(point)
        return self.asked[point]

    def accept(self, point: Point) -> bool:
        """Keep a valid point where it is nearer; return whether it is."""
        distance = self.problem.distance(point)
        if self.upper is not None and distance >= self.upper:
            return False
        if not self.is_valid(point):
            return False
        self.best, self.upper = point, distance
        return True

    def raise_lower(self, bound: float) -> None:
        """Take over a proved bound."""
        if bound == math.inf and self.upper is None:
            return
        proved = self.upper if bound == math.inf else Fraction(bound)
        assert proved is not None
        self.lower = max(self.lower, proved if self.upper is None else min(proved, self.upper))
        self.report()

    def report(self) -> None:
        """Tell of progress, once a question."""
        if self.limits.on_progress is not None and self.calls > self._told:
            self._told = self.calls
            upper = math.inf if self.upper is None else float_up(self.upper)
            self.limits.on_progress(float_down(self.lower), upper, self.calls)

    def _gap(self) -> Fraction:
        return Fraction(2) if self.upper is None else self.upper - self.lower

    def _bounds(self) -> Bounds:
        return Bounds(self.lower, self.upper, self.best, reason=self.reason, calls=self.calls, notes=self._notes())

    def _notes(self) -> dict[str, int]:
        return {"nodes": self.nodes, "programs": self.builds, "polished": self.polished}


class Ball:
    """The search of one ball."""

    def __init__(self, search: Search, radius: Fraction | None) -> None:
        self.owner = search
        self.next_glance = 0
        self.gains = Gains()
        self.problem = search.problem
        self.radius = radius
        self.model = build(self.problem, search.limits, lower=search.lower, radius=radius)
        search.builds += 1
        self.undecided = math.inf
        self.closed = math.inf
        self.open: list[tuple[float, int, Node]] = []
        self._ties = itertools.count()

    def search(self) -> str:
        """Return "done", "stopped", or "smaller" where the point in hand has become much nearer."""
        owner = self.owner
        if self.model is None:
            owner.raise_lower(math.inf if self.radius is None else float_down(self.radius))
            return "done"
        self.propagator = Propagator(self.model.program)
        self.relaxation = Relaxation(self.model.program, self.model.distance)
        self._push(Node(None, (), float_down(owner.lower)))
        while self.open:
            bound, _, node = heapq.heappop(self.open)
            if bound >= owner.cutoff():
                self.closed = min(self.closed, bound)
                continue
            owner.raise_lower(min(bound, self.closed, self.undecided))
            current: Node | None = node
            while current is not None:
                if owner.limits.remaining() <= 0:
                    owner.reason = LATE
                    return self._stop(current)
                if len(self.open) > MOST_OPEN:
                    owner.reason = FULL
                    return self._stop(current)
                current = self._step(current)
                if self._is_smaller():
                    return "smaller"
        owner.raise_lower(min(self.closed, self.undecided))
        return "done"

    def _stop(self, current: Node) -> str:
        bounds = [current.bound, self.closed, self.undecided, *(bound for bound, _, _ in self.open)]
        self.owner.raise_lower(min(bounds))
        return "stopped"

    def _is_smaller(self) -> bool:
        upper = self.owner.upper
        if upper is None or len(self.open) < 8:
            return False
        return self.radius is None or upper < SHRINK * self.radius

    def _push(self, node: Node) -> None:
        heapq.heappush(self.open, (node.bound, next(self._ties), node))

    def _close(self, bound: float) -> None:
        self.closed = min(self.closed, bound)

    def _limit(self) -> float:
        """Return the distance below which a node that holds no point of the program is proved to hold no point at all."""
        cutoff = self.owner.cutoff()
        return cutoff if self.radius is None else min(cutoff, float_down(self.radius))

    def _box(self, node: Node) -> tuple[Floats, Floats]:
        assert self.model is not None
        low, high = self.model.program.low.copy(), self.model.program.high.copy()
        chain: list[Node] = []
        current: Node | None = node
        while current is not None:
            chain.append(current)
            current = current.parent
        for each in reversed(chain):
            for column, least, most in each.changes:
                low[column], high[column] = max(low[column], least), min(high[column], most)
        distance = self.model.distance
        high[distance] = min(high[distance], self.owner.cutoff())
        low[distance] = max(low[distance], node.bound)
        return low, high

    # ---- one node

    def _step(self, node: Node) -> Node | None:
        """Bound a node; return the child to go on with, if any."""
        owner, model = self.owner, self.model
        assert model is not None
        owner.nodes += 1
        low, high = self._box(node)
        if (low > high).any() or not self.propagator.propagate(low, high):
            self._learn(node, math.inf)
            self._close(self._limit())
            return None
        width = model.program.width
        solved = self.relaxation.solve(low[:width], high[:width], owner.limits)
        owner.calls += 1
        self._learn(node, solved.bound)
        node.bound = max(node.bound, self._rounded(solved.bound))
        if node.bound >= owner.cutoff() or solved.bound == math.inf:
            self._close(self._limit() if solved.bound == math.inf else node.bound)
            return None
        if solved.point is not None:
            extended = np.concatenate([solved.point, model.program.forms @ solved.point])
            choice, made = branches(model.program, self.propagator, self.gains, extended, low, high)
            if made:
                self._glance(extended, low, high)
                return self._branch(node, made, choice)
            if self._try(node, extended, low, high):
                return None
        made = split(model, self.propagator, solved.point, low, high)
        if made:
            return self._branch(node, made)
        self._leaf(node, low, high)
        return None

    def _learn(self, node: Node, bound: float) -> None:
        choice, side = node.cut
        reached = min(bound, self._limit())
        if choice >= 0 and math.isfinite(reached):
            self.gains.learn(choice, side, max(reached - node.bound, 0.0))

    def _rounded(self, bound: float) -> float:
        """Return the least distance that a point can have where no distance is below a bound."""
        if not math.isfinite(bound):
            return bound
        return max(bound, float_down(self.problem.metric.next_above(Fraction(bound) - Fraction(1, 10**12))))

    def _branch(self, node: Node, made: Children, choice: int = -1) -> Node:
        first, *others = (
            Node(node, changes, node.bound, node.polished, (choice, side)) for side, changes in enumerate(made)
        )
        for other in others:
            self._push(other)
        return first

    def _glance(self, extended: Floats, low: Floats, high: Floats) -> None:
        """Now and then, ask the real model about the point of a relaxation, rounded."""
        owner, model = self.owner, self.model
        assert model is not None
        if owner.nodes < self.next_glance:
            return
        self.next_glance = owner.nodes + GLANCE
        point = model.point(extended, low, high)
        if owner.accept(point):
            owner.accept(pull(self.problem, point, owner.limits))
            self.next_glance = owner.nodes + 1

    def _try(self, node: Node, extended: Floats, low: Floats, high: Floats) -> bool:
        """Look for a valid point beside one that the relaxation allows; return whether the node is closed by it."""
        owner, model = self.owner, self.model
        assert model is not None
        near_low, near_high = settled(model.program, self.propagator, extended, low, high)
        point = model.point(extended, near_low, near_high)
        if not owner.accept(point) and node.bound > node.polished:
            self._polish(node, point)
        if node.bound >= owner.cutoff():
            self._close(node.bound)
            return True
        return False

    def _polish(self, node: Node, point: Point) -> None:
        """Look for a valid point inside, beside one on the edge."""
        step = self.problem.accuracy / 4
        node.polished = node.bound + float(step)
        self.owner.polished += 1
        radius = Fraction(max(node.bound, 0.0)) + 2 * step
        if any(self.owner.accept(other) for other in nudge(self.problem, point, radius)):
            return
        moved = polish(self.problem, point, radius, self.owner.limits)
        if moved is not None:
            self.owner.accept(moved)

    def _leaf(self, node: Node, low: Floats, high: Floats) -> None:
        """A node with nothing left to branch on: one point, one cell, or a region that rounding leaves undecided."""
        owner, model, problem = self.owner, self.model, self.problem
        assert model is not None
        point = model.point((low + high) / 2, low, high)
        place = model.program.place
        is_single = all(
            low[place[column]] == high[place[column]] or is_missing(model, name, low)
            for name, column in model.translator.numbers.items()
        )
        if is_single and (not problem.is_plausible(point) or problem.form.is_settled(point, problem.goal)):
            owner.accept(point)
            return
        region = problem.form.cell(point)
        is_refused = region is not None and not problem.goal.accepts(problem.ask([point])[0])
        if region is not None and is_refused and model.holds_everywhere(region, low, high):
            return
        self.undecided = min(self.undecided, node.bound)
