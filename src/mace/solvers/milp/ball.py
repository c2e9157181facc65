"""Branch and bound in one ball: best bound first, diving from each node to the end."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Generator
from dataclasses import dataclass
from enum import Enum, auto
from fractions import Fraction

import numpy as np

from mace.exact import Floats, float_down, float_up
from mace.problem import LATE, SPENT
from mace.solvers.milp.branching import Change, Children, PseudoCosts, branches, is_missing, settled, split
from mace.solvers.milp.incumbent import MilpIncumbent
from mace.solvers.milp.model import Model, build
from mace.solvers.milp.polish import nudge, polish, short
from mace.solvers.milp.propagate import Propagator, propagate_exactly
from mace.solvers.milp.relaxation import LinearRelaxation
from mace.solvers.milp.seek import pull
from mace.space import Point

OUT_OF_MEMORY = "memory limit reached"
MOST_OPEN_NODES = 200_000

SHRINK = Fraction(1, 2)
"""The search starts again with a smaller ball when the incumbent is nearer than this share of the radius and many nodes are open."""

FEW_OPEN = 8
"""With fewer open nodes than this the search is about to end."""

GLANCE = 10
"""How many nodes go by between two looks at a rounded point."""

PROOF_SLACK = Fraction(1, 10**12)
"""More than what separates a proved bound from the distance that it is about, where distances are multiples of a step."""


class Ending(Enum):
    """How the search of a ball ended: it was searched; a smaller one is better; time or memory ran out."""

    DONE = auto()
    SMALLER = auto()
    STOPPED = auto()


@dataclass(slots=True)
class SearchNode:
    """A part of the ball: how it differs from its parent, and what is proved of it.

    Attributes
    ----------
    bound : float
        No point of the node is nearer.
    polished : float
        Points of the relaxation with a bound up to this have been looked at closely.
    cut : tuple
        The choice that the parent was cut at, or -1, and which side this is.
    """

    parent: SearchNode | None
    changes: tuple[Change, ...]
    bound: float
    polished: float = -math.inf
    cut: tuple[int, int] = (-1, 0)


class BallSearch:
    """The search of one ball.

    Parameters
    ----------
    incumbent : MilpIncumbent
        What is known so far, and what is found is put in.
    radius : Fraction, optional
        The ball's; the whole space where there is none.
    certain : bool
        Search only for points that stay in the goal whatever the rounding; nothing is proved then.
    most : int, optional
        End as soon as there is an incumbent, or after this many nodes.

    Attributes
    ----------
    undecided : float
        The least bound of a region that rounding leaves undecided; infinite where there is none.
    """

    def __init__(
        self, incumbent: MilpIncumbent, radius: Fraction | None, *, certain: bool = False, most: int | None = None
    ) -> None:
        self.incumbent = incumbent
        self.problem = incumbent.problem
        self.radius = radius
        self.certain = certain
        self._last = None if most is None else incumbent.nodes + most
        self.undecided = math.inf
        self._closed = math.inf
        self._open: list[tuple[float, int, SearchNode]] = []
        self._ties = itertools.count()
        self._gains = PseudoCosts()
        self._next_glance = 0

    def steps(self) -> Generator[bool, None, Ending]:
        """Search the ball, node after node; what is yielded is always false."""
        incumbent = self.incumbent
        model = build(self.problem, lower=incumbent.lower, radius=self.radius, certain=self.certain)
        incumbent.programs += 1
        incumbent.calls += 1
        if model is None:
            self._prove(self._limit())
            return Ending.DONE
        self._model: Model = model
        self._propagator = Propagator(model.program)
        self._relaxation = LinearRelaxation(model.program, model.distance)
        self._push(SearchNode(None, (), float_down(incumbent.lower)))
        while self._open:
            bound, _, node = heapq.heappop(self._open)
            if bound >= incumbent.float_cutoff():
                self._close(bound)
                continue
            self._prove(min(bound, self._closed, self.undecided))
            outcome = yield from self._dive(node)
            if outcome is not None:
                return outcome
        self._prove(min(self._closed, self.undecided))
        return Ending.DONE

    def _prove(self, bound: float) -> None:
        if not self.certain:
            self.incumbent.prove_float(bound)

    def _dive(self, node: SearchNode) -> Generator[bool, None, Ending | None]:
        """Go from a node down to where it ends, the other children left open."""
        current: SearchNode | None = node
        while current is not None:
            reason = (
                LATE
                if self.incumbent.limits.remaining() <= 0
                else SPENT
                if self.incumbent.nodes >= self.incumbent.limits.effort
                else OUT_OF_MEMORY
                if len(self._open) > MOST_OPEN_NODES
                else ""
            )
            if reason:
                self.incumbent.reason = reason
                still_open = [current.bound, *(bound for bound, _, _ in self._open)]
                self._prove(min(*still_open, self._closed, self.undecided))
                return Ending.STOPPED
            current = self._step(current)
            if self._last is not None and (self.incumbent.upper is not None or self.incumbent.nodes >= self._last):
                return Ending.DONE
            if self._is_smaller():
                return Ending.SMALLER
            yield False
        return None

    def _is_smaller(self) -> bool:
        upper = self.incumbent.upper
        if upper is None or len(self._open) < FEW_OPEN:
            return False
        return self.radius is None or upper < SHRINK * self.radius

    def _push(self, node: SearchNode) -> None:
        heapq.heappush(self._open, (node.bound, next(self._ties), node))

    def _close(self, bound: float) -> None:
        self._closed = min(self._closed, bound)

    def _limit(self) -> float:
        """Return the distance up to which a node without points of the program is proved to have no points at all."""
        cutoff = self.incumbent.float_cutoff()
        return cutoff if self.radius is None else min(cutoff, float_down(self.radius))

    # ---- one node

    def _step(self, node: SearchNode) -> SearchNode | None:
        """Bound a node; return the child to go on with, if any."""
        incumbent, program = self.incumbent, self._model.program
        incumbent.nodes += 1
        low, high = self._box(node)
        if (low > high).any() or not self._propagator.propagate(low, high):
            self._end(node, math.inf)
            return None
        solved = self._relaxation.solve(low[: program.width], high[: program.width], incumbent.limits)
        incumbent.calls += 1
        bound = max(node.bound, self._attained(max(solved.bound, float(low[self._model.distance]))))
        if bound >= incumbent.float_cutoff():
            self._end(node, bound)
            return None
        self._learn(node, bound)
        node.bound = bound
        if solved.point is not None:
            point = np.concatenate([solved.point, program.forms @ solved.point])
            choice, children = branches(program, self._propagator, self._gains, point, low, high)
            if children:
                self._glance(point, low, high)
                return self._branch(node, children, choice)
            if self._look_closely(node, point, low, high):
                return None
        children = split(self._model, self._propagator, solved.point, low, high)
        if children:
            return self._branch(node, children)
        self._leaf(node, low, high)
        return None

    def _box(self, node: SearchNode) -> tuple[Floats, Floats]:
        """Return the bounds of a node's columns and forms."""
        low, high = self._model.program.low.copy(), self._model.program.high.copy()
        current: SearchNode | None = node
        while current is not None:
            for column, least, most in current.changes:
                low[column], high[column] = max(low[column], least), min(high[column], most)
            current = current.parent
        distance = self._model.distance
        low[distance] = max(low[distance], node.bound)
        high[distance] = min(high[distance], self.incumbent.float_cutoff())
        return low, high

    def _end(self, node: SearchNode, bound: float) -> None:
        """Close a node whose points, if any, are no nearer than ``bound``."""
        self._learn(node, bound)
        self._close(self._limit() if math.isinf(bound) else bound)

    def _learn(self, node: SearchNode, bound: float) -> None:
        choice, side = node.cut
        reached = min(bound, self._limit())
        if choice >= 0 and math.isfinite(reached):
            self._gains.learn(choice, side, max(reached - node.bound, 0.0))

    def _attained(self, bound: float) -> float:
        """Return the least distance, no less than a bound, that a point can have at all."""
        if not math.isfinite(bound):
            return bound
        return max(bound, float_down(self.problem.metric.next_above(Fraction(bound) - PROOF_SLACK)))

    def _branch(self, node: SearchNode, children: Children, choice: int = -1) -> SearchNode:
        first, *others = (
            SearchNode(node, changes, node.bound, node.polished, (choice, side))
            for side, changes in enumerate(children)
        )
        for other in others:
            self._push(other)
        return first

    # ---- points

    def _glance(self, point: Floats, low: Floats, high: Floats) -> None:
        """Now and then, ask the real model about the point of a relaxation, rounded."""
        incumbent = self.incumbent
        if incumbent.nodes < self._next_glance:
            return
        self._next_glance = incumbent.nodes + GLANCE
        row = self._model.point(point, low, high)
        if incumbent.offer_rounded(row):
            incumbent.offer_rounded(pull(self.problem, row, incumbent.limits))

    def _look_closely(self, node: SearchNode, point: Floats, low: Floats, high: Floats) -> bool:
        """Look for a valid row near a point that the relaxation allows; return whether the node is closed by it."""
        incumbent = self.incumbent
        row = self._model.point(point, *settled(self._model.program, self._propagator, point, low, high))
        if (
            not (incumbent.offer_rounded(row) or incumbent.offer_rounded(short(self.problem, row)))
            and node.bound > node.polished
        ):
            self._polish(node, row)
        if node.bound < incumbent.float_cutoff():
            return False
        self._close(node.bound)
        return True

    def _polish(self, node: SearchNode, row: Point) -> None:
        """Look for a valid row inside the region, near one on its edge."""
        incumbent = self.incumbent
        step = self.problem.accuracy / 4
        node.polished = node.bound + float(step)
        incumbent.polished += 1
        radius = Fraction(max(node.bound, 0.0)) + 2 * step
        if any(incumbent.offer_rounded(other) for other in nudge(self.problem, row, radius)):
            return
        moved = polish(self.problem, row, radius, incumbent.limits)
        if moved is not None:
            incumbent.offer_rounded(moved)

    def _leaf(self, node: SearchNode, low: Floats, high: Floats) -> None:
        """End a node with nothing left to cut: a single row, part of a cell, or a region that rounding leaves undecided."""
        problem, model = self.problem, self._model
        exact = propagate_exactly(model.program, model.translator.quantities, low, high)
        if exact is None:
            self._close(self._limit())
            return
        low[: model.program.width] = [float_up(v) for v in exact[0]]
        high[: model.program.width] = [float_down(v) for v in exact[1]]
        row = model.point((low + high) / 2, low, high)
        place = model.program.place
        is_single = all(
            low[place[column]] >= high[place[column]] or is_missing(model, name, low)
            for name, column in model.translator.numbers.items()
        )
        if is_single and (not problem.is_plausible(row) or problem.form.is_settled(row, problem.goal)):
            self.incumbent.offer_rounded(row)
            self.incumbent.ruled_out.append(row)
            return
        cell = problem.form.cell(row)
        if cell is not None and not problem.accepts(row) and model.holds_of_all(cell, low, high):
            self.incumbent.ruled_out.append(row)
            return
        self.undecided = min(self.undecided, node.bound)
