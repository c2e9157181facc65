"""One question: the branch and bound over boxes, and what it proves."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mace.clock import OutOfTime
from mace.distances import NormMetric, distance_down, distance_up
from mace.exact import UNIT, float_up
from mace.forms import Alternatives, Margin, Network
from mace.problem import INTERRUPTED, LATE, SPENT, Bounds, Evidence, Limits, Problem
from mace.solvers.compiling import change_over, is_compiled
from mace.solvers.incumbent import BAND
from mace.solvers.network import kernels, proof
from mace.solvers.network.parts import NetworkPart, whole
from mace.solvers.network.prepared import Workspace
from mace.solvers.network.question import UNSEARCHED_SHARE, QuestionArrays
from mace.solvers.network.units import handover
from mace.solvers.network.units import search as splits
from mace.solvers.network.units.record import SignProof
from mace.solvers.pace import Pace
from mace.space import Point

GAP_OF_FINITE_SPACES = 1e-13
"""How far below the best point the search may end on a finite space, where the optimum itself is sought."""

MOST_UNDECIDED = 20_000

NODES_OF_A_PROOF = 10_000
"""The number of boxes of a search that may take as long as a proof without a search."""

WORK_BEFORE_RACE, WORK_OF_FEW_NUMBERS = 2**20, 2**25
"""From how much work on a rival takes turns: where many numbers are free, which is where boxes stall, and elsewhere.

The work of a box is the number of weights, and a little more.
"""

WORK_BEFORE_RACE_OF_SIGNS = 2**23
"""The same where units are split, which leaves fewer questions open."""

WORK_OF_A_TURN, WORK_OF_A_NODE, WORK_OF_A_NODE_BESIDE_SIGNS, WORK_BESIDE_WEIGHTS = 2**18, 2**14, 3 * 2**14, 64
"""Turns are counted, so that no answer depends on the clock: a rival's node takes about as long as boxes, or splits, of so much work."""

MODEL_REFUSED = "the real model refused a point that its reading puts in the goal"


class Beaten(Exception):
    """The rival has decided the question."""


class RivalSearch(Protocol):
    """Another search for the answer to the same question, by its name, which takes turns with this one."""

    name: str
    is_over: bool

    @property
    def is_decided(self) -> bool:
        """Whether it has proved the nearest point, or that there is none."""
        ...

    @property
    def lower(self) -> Fraction:
        """What it has proved so far."""
        ...

    def run(self, nodes: int) -> None:
        """Go on until so many nodes are done in all."""
        ...

    def bounds(self) -> Bounds:
        """Return what it has proved."""
        ...


MakeRival = Callable[[Problem, Limits], RivalSearch]


class NetworkSearch:
    """One question, or one part of it; what an ``earlier`` part found is kept.

    With ``splits_first`` units are split from the start on wherever that is possible, not only where it pays. A ``rival`` takes turns with
    a search of boxes that does not end.
    """

    def __init__(
        self,
        problem: Problem,
        limits: Limits,
        part: NetworkPart | None = None,
        earlier: NetworkSearch | None = None,
        *,
        splits_first: bool = False,
        rival: MakeRival | None = None,
    ) -> None:
        assert isinstance(problem.form, Network)
        assert isinstance(problem.metric, NormMetric)
        self.problem = problem
        self.form = problem.form
        self.metric = problem.metric
        self.limits = limits
        self.part = whole(problem) if part is None else part
        self.made = self.part.made
        self.costs = self.part.costs
        self.factual = self.part.factual
        self.features = self.made.features
        self.leaves_points = True
        self.best_cost: float = math.inf if earlier is None else earlier.best_cost
        self.best: Point | None = None if earlier is None else earlier.best
        self.open: float = math.inf if earlier is None else earlier.open
        self.gap: float = 0.0 if earlier is None else earlier.gap
        self.nodes: int = 0 if earlier is None else earlier.nodes
        self.sign_work = 0
        self.asked: int = 0 if earlier is None else earlier.asked
        self.floor = 0.0
        self.elsewhere = self.in_hand = math.inf
        self.alternatives = self._alternatives()
        self.is_single = len(self.alternatives) == 1
        self.arrays = QuestionArrays(problem, self.part)
        self.splits_first = splits_first
        self._make_rival = rival
        self.rival: RivalSearch | None = None
        self.reason = ""

    def _alternatives(self) -> Alternatives:
        """Return the alternatives of the goal, made once for a model."""
        goal, kept = self.problem.goal, self.made.alternatives
        return kept.get(goal) or kept.put(goal, self.form.alternatives(goal))

    def run(self) -> Bounds:
        """Search every alternative of the goal, each until its optimum is proved or beaten; then write the proof that is asked for."""
        whole = self.limits
        if whole.record:
            self.limits = whole.first_half()
        try:
            bounds = self.bounds(complete=self.search_all())
        except Beaten:
            assert self.rival is not None
            return self._beaten(self.rival, whole)
        if self.rival is not None and bounds.reason and self.rival.lower > bounds.lower:
            return self._with_their_lower(bounds, self.rival.bounds())
        return replace(bounds, evidence=self._proof(bounds, whole)) if whole.record else bounds

    def _beaten(self, rival: RivalSearch, limits: Limits) -> Bounds:
        """Return what the rival has proved, under its name; with the proof of this search where that ends, which is quicker to check."""
        theirs = replace(rival.bounds(), answered_by=rival.name)
        if not limits.record:
            return theirs
        if theirs.point is not None:
            self.best, self.best_cost = theirs.point, float_up(self.metric.measure(theirs.point))
        self.nodes = max(self.nodes, NODES_OF_A_PROOF)
        own = self._proof(theirs, limits)
        return theirs if own is None or "missing" in own else replace(theirs, evidence=own)

    def _with_their_lower(self, bounds: Bounds, theirs: Bounds) -> Bounds:
        """Return the bounds with the better lower one of the rival, and its evidence."""
        lower = theirs.lower if bounds.upper is None else min(theirs.lower, bounds.upper)
        is_closed = bounds.upper is not None and bounds.upper - lower <= self.problem.accuracy
        reason = "" if is_closed and bounds.reason != INTERRUPTED else bounds.reason
        return replace(bounds, lower=lower, reason=reason, evidence=theirs.evidence)

    def _proof(self, bounds: Bounds, limits: Limits) -> Evidence | None:
        """Return the cuts that prove the bound, or why there are none."""
        if not bounds.is_infeasible and bounds.lower <= 0:
            return None
        radii = [kernels.WHOLE]
        if not bounds.is_infeasible:
            radii = proof.radii(self.metric, bounds.lower, self.best_cost, self.gap)
        return self._proved_at(radii, limits)

    def _proved_at(self, radii: list[float], limits: Limits) -> Evidence:
        """Return the cuts that prove that there is nothing up to one of some costs, or why there are none."""
        found, reason = proof.first_that_ends(
            radii,
            self.nodes,
            lambda limit, most: [self.cuts(margins, limit, limits, most) for margins in self.alternatives],
        )
        return {"lane": "network", "parts": found} if found is not None else {"lane": "network", "missing": reason}

    def prove(self, lower: Fraction | None, upper: Fraction | None, *, leaves_points: bool = True) -> Evidence:
        """Return the cuts that prove that nothing nearer than ``lower`` is in the goal, or why there are none.

        Nothing is searched for. Where ``lower`` is ``None``, all distances count; ``upper`` is that of the nearest point that may be there.
        Where they ``leaves_points``, cuts may end at single points, and whoever checks them asks the model about these.
        """
        self.leaves_points = leaves_points
        radii = [kernels.WHOLE]
        if lower is not None:
            layout = self.made.layout
            gap = (
                GAP_OF_FINITE_SPACES
                if (layout.is_table | layout.is_grid).all()
                else UNSEARCHED_SHARE * float(self.problem.accuracy)
            )
            best = math.inf if upper is None else float(upper) ** self.metric.power
            radii = proof.radii(self.metric, lower, best, gap)
        self.nodes = NODES_OF_A_PROOF
        return self._proved_at(radii, self.limits)

    def cuts(self, margins: tuple[Margin, ...], limit: float, limits: Limits, most: int) -> dict[str, NDArray[Any]]:
        """Return the proof tree that an alternative is not reached within a cost, with at most ``most`` entries."""
        most = int(min(most, limits.effort))
        workspace = self.arrays.workspace(margins)
        try:
            if self.arrays.is_empty(workspace):
                return proof.leaf()
            tolerance = 0.01 * float(self.problem.accuracy)
            domain = workspace.lo.copy(), workspace.hi.copy()
            splits = handover.may_split(self.made, workspace, self.costs)
            if not splits or not (self.splits_first or handover.has_many_numbers(workspace, domain, limit)):
                workspace.lo[:], workspace.hi[:] = domain
                return proof.cuts(
                    workspace, self.made, limit, tolerance, limits, most, leaves_points=self.leaves_points
                )
            workspace.state.reals[kernels.TOLERANCE] = tolerance
            signs = SignProof(self.made, workspace, domain, limit, limits, leaves_points=self.leaves_points)
            return signs.tree(most)
        except OutOfTime:
            raise proof.Unfinished(proof.NO_TIME) from None
        finally:
            self.arrays.keep(workspace, margins)

    def search_all(self) -> bool:
        """Search every alternative; False where time or memory ran out."""
        for margins in self.alternatives:
            workspace = self.arrays.workspace(margins)
            try:
                is_done = self.arrays.is_empty(workspace) or self._search(workspace)
            except OutOfTime:
                self.reason, self.floor = LATE, 0.0
                return False
            if not is_done:
                return False
            self.arrays.keep(workspace, margins)
        return True

    # ---- the search

    def _search(self, workspace: Workspace) -> bool:
        """Search one alternative; False where time or memory ran out."""
        registers, reals = workspace.state.registers, workspace.state.reals
        layout = self.made.layout
        is_finite = bool((layout.is_table | layout.is_grid | (workspace.lo == workspace.hi)).all())
        accuracy = float(self.problem.accuracy)
        workspace.fields["form"][1] = is_finite
        gap = GAP_OF_FINITE_SPACES if is_finite else UNSEARCHED_SHARE * accuracy
        self.gap = max(self.gap, gap)
        registers[:] = 0
        reals[kernels.BEST] = self.best_cost
        reals[kernels.OPEN] = math.inf
        reals[kernels.GAP] = gap
        reals[kernels.TOLERANCE] = 1e-15 if is_finite else 0.01 * accuracy
        reals[kernels.SMALL] = 0.02 * accuracy / len(self.features)
        workspace.tree.start(workspace.lo, workspace.hi, registers)
        floor = self._proved_floor(workspace)
        self.nodes += int(registers[kernels.NODES])
        self.open = min(self.open, float(reals[kernels.OPEN]))
        is_done = not self.reason
        if not is_done:
            self.floor = floor if self.is_single else 0.0
        return is_done

    def _proved_floor(self, workspace: Workspace) -> float:
        """Search by boxes, and by splitting units where that pays; return a lower bound on the cost of every point that may be left."""
        domain = workspace.lo.copy(), workspace.hi.copy()
        may_split = handover.may_split(self.made, workspace, self.costs)
        if may_split and not self.splits_first:
            self._advance(workspace, min(handover.BOXES_BEFORE_SPLITS, self._effort_left))
        if self.reason or not workspace.state.registers[kernels.HEAP]:
            return self._floor(workspace)
        radius = float(kernels.search_radius(workspace.state.reals, workspace.task))
        may_split &= not workspace.state.registers[kernels.CERTAIN]
        is_wide = handover.has_many_numbers(workspace, domain, radius)
        if not (may_split and (self.splits_first or is_wide)):
            self._race(workspace, WORK_BEFORE_RACE if is_wide else WORK_OF_FEW_NUMBERS)
            return self._floor(workspace)
        search = splits.SignSearch(
            self.made,
            workspace,
            domain,
            self.limits,
            lambda: self._take(workspace, search.proved),
            self._turns_of(workspace),
        )
        search.run(self._floor(workspace))
        self.sign_work += search.work_done
        self._forget_half_points(workspace)
        self.reason = self.reason or search.reason
        return search.floor

    @property
    def _effort_left(self) -> float:
        """How many nodes this alternative may take."""
        return max(1, self.limits.effort - self.nodes)

    def _take(self, workspace: Workspace, floor: float) -> None:
        """Take over the point that a search has found, ask about those that floats cannot decide, and report."""
        registers = workspace.state.registers
        if registers[kernels.FOUND]:
            self.best = self.arrays.point(workspace.state.best, workspace)
            self.best_cost = float(workspace.state.reals[kernels.BEST])
            registers[kernels.FOUND] = 0
        if registers[kernels.LOGGED]:
            self._ask(workspace)
        self._report(workspace, floor)

    def _advance(self, workspace: Workspace, most: float) -> None:
        """Search boxes until all or so many are done, pausing to look at the clock; where it is stopped, ``reason`` says why."""
        registers = workspace.state.registers
        pace = Pace(self.limits.deadline, self.made.first_budget if is_compiled(__package__) else 1)
        while registers[kernels.NODES] < most:
            least = workspace.tree.least_bound()
            try:
                with pace.timed():
                    kernels.advance(
                        int(min(pace.steps, most - registers[kernels.NODES])),
                        workspace.state,
                        workspace.tree.tree,
                        workspace.lo,
                        workspace.hi,
                        self.made.net,
                        workspace.task,
                        workspace.work,
                    )
            except (KeyboardInterrupt, OutOfTime) as error:
                self.reason = LATE if isinstance(error, OutOfTime) else INTERRUPTED
                self.in_hand = least
                self._forget_half_points(workspace)
            self._take(workspace, self._floor(workspace))
            if registers[kernels.HEAP] == 0 or self.reason:
                return
            if registers[kernels.NODES] >= self._effort_left:
                self.reason = SPENT
                return
            if self.limits.remaining() <= 0:
                self.reason = LATE
                return
            if registers[kernels.STATUS] == kernels.FULL and not self._make_room(workspace):
                return
            change_over(__package__, self.limits.deadline)

    def _race(self, workspace: Workspace, work: int) -> None:
        """Search boxes until all are done; after so much work, take turns with the rival, if there is one."""
        registers = workspace.state.registers
        work_of_box = WORK_BESIDE_WEIGHTS + sum(weight.size for weight in self.form.weights)
        most: float = math.inf if self._make_rival is None else math.ceil(work / work_of_box)
        while True:
            self._advance(workspace, min(most, self._effort_left))
            if registers[kernels.HEAP] == 0 or self.reason:
                return
            try:
                goes_on = self._rival_goes_on(workspace, self._boxes(workspace) * work_of_box // WORK_OF_A_NODE)
                most = most + math.ceil(WORK_OF_A_TURN / work_of_box) if goes_on else math.inf
            except (KeyboardInterrupt, OutOfTime) as error:
                self.reason = LATE if isinstance(error, OutOfTime) else INTERRUPTED

    def _boxes(self, workspace: Workspace) -> int:
        return self.nodes + int(workspace.state.registers[kernels.NODES])

    def _turns_of(self, workspace: Workspace) -> Callable[[int], None] | None:
        """Return what a search by splitting units calls with the work that it has done: from so much on the rival has its turns."""
        if self._make_rival is None:
            return None
        due: float = WORK_BEFORE_RACE_OF_SIGNS

        def turn(work: int) -> None:
            nonlocal due
            if work >= due:
                goes_on = self._rival_goes_on(workspace, (self.sign_work + work) // WORK_OF_A_NODE_BESIDE_SIGNS)
                due = work + WORK_OF_A_TURN if goes_on else math.inf

        return turn

    def _rival_goes_on(self, workspace: Workspace, nodes: int) -> bool:
        """Let the rival search until so many nodes are done, and take over its point; return whether it has more to do."""
        if self.rival is None:
            assert self._make_rival is not None
            self.rival = self._make_rival(self.problem, self.limits)
        self.rival.run(nodes)
        if self.rival.is_decided:
            raise Beaten
        theirs = self.rival.bounds()
        if theirs.reason == INTERRUPTED:
            raise KeyboardInterrupt
        if theirs.point is not None:
            cost = float_up(self.metric.measure(theirs.point))
            if cost < self.best_cost:
                self.best, self.best_cost = theirs.point, cost
                workspace.state.reals[kernels.BEST] = cost
        return not self.rival.is_over

    def _forget_half_points(self, workspace: Workspace) -> None:
        """Take what holds of arrays that a kernel was stopped in the middle of: a point may have its cost, and not yet all its values."""
        state = workspace.state
        if state.registers[kernels.FOUND]:
            state.reals[kernels.BEST] = kernels.cost_of(state.best, workspace.task)
            if not self.problem.is_valid(self.arrays.point(state.best, workspace)):
                state.registers[kernels.FOUND] = 0

    def _make_room(self, workspace: Workspace) -> bool:
        """Double the room for boxes, if there is memory."""
        if 2 * workspace.tree.room * (16 * len(self.features) + 24) > splits.MOST_MEMORY:
            self.reason = splits.MEMORY_REACHED
            return False
        workspace.tree = workspace.tree.doubled()
        return True

    def _floor(self, workspace: Workspace) -> float:
        """Return a lower bound on the cost of every point that may still be found."""
        radius = float(kernels.search_radius(workspace.state.reals, workspace.task))
        boxes = workspace.tree.least_bound() if workspace.state.registers[kernels.HEAP] else math.inf
        return min(radius, boxes, self.in_hand)

    def _ask(self, workspace: Workspace) -> None:
        """Let the real model decide the points that floats cannot, nearest first, each asked alone."""
        count = int(workspace.state.registers[kernels.LOGGED])
        workspace.state.registers[kernels.LOGGED] = 0
        for n in np.argsort(workspace.state.log_cost[:count], kind="stable"):
            cost = float(workspace.state.log_cost[n])
            if cost >= self.best_cost:
                return
            if self.asked >= MOST_UNDECIDED:
                self.reason = "too many points lie on the boundary to ask the model about each"
            elif self.asked and self.limits.remaining() <= 0:
                self.reason = LATE
            if self.reason:
                self.open = min(self.open, cost)
                return
            self.asked += 1
            point = self.arrays.point(workspace.state.log[n], workspace)
            if self.problem.is_valid(point):
                self.best, self.best_cost = point, cost
                workspace.state.reals[kernels.BEST] = cost
                return

    # ---- the end

    def _report(self, workspace: Workspace, floor: float) -> None:
        if self.limits.on_progress is not None:
            power = 1 / self.metric.power
            # The floor is that of boxes; points that floats cannot decide were asked about since then, or are left open.
            found = min(self.best_cost, self.open)
            floor = min(floor, found, float(workspace.state.reals[kernels.OPEN]), self.elsewhere)
            floor -= 1e-13 + self._grid_cost()
            floor = max(floor, 0.0) if self.is_single else 0.0
            self.limits.on_progress(
                floor**power, self.best_cost**power, self.nodes + int(workspace.state.registers[kernels.NODES])
            )

    def bounds(self, complete: bool) -> Bounds:
        """Confirm the point with the real model, and return what is proved."""
        problem, metric, point = self.problem, self.metric, self.best
        notes = {"nodes": self.nodes, "asked": self.asked}
        if point is not None and not problem.is_valid(point):
            return Bounds(Fraction(0), reason=MODEL_REFUSED, calls=self.nodes, notes=notes)
        if complete and point is None and math.isinf(self.open):
            return Bounds(Fraction(0), is_infeasible=True, calls=self.nodes, notes=notes)
        lower = self._proved(complete)
        if point is None:
            return Bounds(lower, reason=self.reason or BAND, calls=self.nodes, notes=notes)
        measure = metric.measure(point)
        upper = distance_up(metric, measure)
        lower = min(lower, distance_down(metric, measure))
        reason = "" if upper - lower <= problem.accuracy else self.reason or BAND
        return Bounds(lower, upper, point, reason=reason, calls=self.nodes, notes=notes)

    def _grid_cost(self) -> float:
        """Return how far the costs of the kernels may be off because they round the values of grids."""
        cost, layout = self.costs, self.made.layout
        if not layout.has_grid_errors:
            return 0.0
        return 2.0 * float((cost.slope + cost.square + cost.peak) @ (layout.grid_error * layout.inverse))

    def _proved(self, complete: bool) -> Fraction:
        """Return a distance below which there is no point: what is open or unsearched, less the rounding of the sums of costs."""
        metric = self.metric
        if not complete:
            cost = min(self.open, self.floor)
        elif metric.power == 2 and self.gap != GAP_OF_FINITE_SPACES:
            cost = min(self.open, max(math.sqrt(self.best_cost) - self.gap, 0.0) ** 2)
        else:
            cost = min(self.open, self.best_cost - self.gap)
        error = (len(self.features) + 8) * 16 * UNIT
        if grid_cost := self._grid_cost():
            error += Fraction(grid_cost)
        lower = distance_down(metric, max(Fraction(0), Fraction(cost) - error))
        return max(lower, metric.next_above(lower - Fraction(1, 10**12))) if lower > 0 and metric.power == 1 else lower
