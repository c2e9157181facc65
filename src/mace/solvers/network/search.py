"""One question: its arrays, the branch and bound over boxes, and what it proves."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mace.clock import OutOfTime
from mace.constraints.differ import CountDifferent
from mace.distances import NormMetric, distance_down, distance_up
from mace.exact import UNIT, float_up
from mace.forms import Alternatives, Margin, Network
from mace.problem import INTERRUPTED, LATE, SPENT, Bounds, Evidence, Limits, Problem
from mace.solvers.compiling import change_over, is_compiled
from mace.solvers.domains import Allowed, Span, alike, values_between
from mace.solvers.incumbent import BAND
from mace.solvers.network import kernels, proof
from mace.solvers.network.conditions import Row, linear_rows
from mace.solvers.network.parts import NetworkPart, whole
from mace.solvers.network.prepared import Flags, Floats, Workspace, make_workspace
from mace.solvers.network.units import handover
from mace.solvers.network.units import search as splits
from mace.solvers.network.units.record import SignProof
from mace.solvers.pace import Pace
from mace.space import Feature, Integer, Point, Real, Value

UNSEARCHED_SHARE = 0.8
"""How much of the accuracy the search leaves unsearched below the best point; the rest is for the rounding of its own sums."""

GAP_OF_FINITE_SPACES = 1e-13
"""The same on a finite space, where the optimum itself is sought."""

MOST_UNDECIDED = 20_000

GRID_TOLERANCE = 1e-4
"""In steps of a grid: more than the rounding of the kernels' own values, less than how far a factual off the grid lies from it."""

NODES_OF_A_PROOF = 10_000
"""The number of boxes of a search that may take as long as a proof without a search."""

WORK_BEFORE_RACE, WORK_OF_FEW_NUMBERS = 2**20, 2**25
"""From how much work on a rival takes turns: where many numbers are free, which is where boxes stall, and elsewhere.

The work of a box is the number of weights, and a little more.
"""

WORK_BEFORE_RACE_OF_SIGNS = 2**23
"""The same where units are split, which leaves fewer questions open."""

WORK_OF_A_TURN, WORK_OF_A_NODE, WORK_BESIDE_WEIGHTS = 2**18, 2**14, 64
"""Turns are counted, so that no answer depends on the clock: a rival's node takes about as long as boxes of so much work."""

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
        self.is_plain = self.part.is_plain and not any(self._is_off_grid(j) for j in self.made.stepped)
        self.splits_first = splits_first
        self._make_rival = rival
        self.rival: RivalSearch | None = None
        self.reason = ""

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

    def prove(self, lower: Fraction | None, upper: Fraction | None) -> Evidence:
        """Return the cuts that prove that nothing nearer than ``lower`` is in the goal, or why there are none.

        Nothing is searched for. Where ``lower`` is ``None``, all distances count; ``upper`` is that of the nearest point that may be there.
        """
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
        workspace = self._workspace(margins)
        try:
            if self._is_empty(workspace):
                return proof.leaf()
            tolerance = 0.01 * float(self.problem.accuracy)
            domain = workspace.lo.copy(), workspace.hi.copy()
            splits = handover.may_split(self.made, workspace, self.costs)
            if not splits or not (self.splits_first or handover.has_many_numbers(workspace, domain, limit)):
                workspace.lo[:], workspace.hi[:] = domain
                return proof.cuts(workspace, self.made, limit, tolerance, limits, most)
            workspace.state.reals[kernels.TOLERANCE] = tolerance
            return SignProof(self.made, workspace, domain, limit, limits).tree(most)
        except OutOfTime:
            raise proof.Unfinished(proof.NO_TIME) from None
        finally:
            self._keep(workspace, margins)

    def search_all(self) -> bool:
        """Search every alternative; False where time or memory ran out."""
        for margins in self.alternatives:
            workspace = self._workspace(margins)
            try:
                is_done = self._is_empty(workspace) or self._search(workspace)
            except OutOfTime:
                self.reason, self.floor = LATE, 0.0
                return False
            if not is_done:
                return False
            self._keep(workspace, margins)
        return True

    # ---- arrays

    def _alternatives(self) -> Alternatives:
        goal, kept = self.problem.goal, self.made.alternatives
        if goal not in kept:
            kept[goal] = self.form.alternatives(goal)
        return kept[goal]

    def _is_off_grid(self, j: int) -> bool:
        """Return whether a factual's own number lies off the feature's grid."""
        feature, own = self.features[j], self.factual[j]
        return isinstance(feature, Real | Integer) and own is not None and not feature.has(own)

    def _workspace(self, margins: tuple[Margin, ...]) -> Workspace:
        """Return the arrays of a search, those of an earlier one where there are no conditions."""
        used = self.made.workspaces.get(self._key(margins)) if self.is_plain else None
        workspace = used.pop() if used else make_workspace(self.made, self._fields(len(margins)))
        workspace.fields["digits"][:] = np.where(self._are_apart(), 1, -1) * self.made.layout.digits
        slack = self.problem.goal.slack
        for r, margin in enumerate(margins):
            workspace.fields["plus"][r] = -1 if margin.plus is None else margin.plus
            workspace.fields["minus"][r] = -1 if margin.minus is None else margin.minus
            workspace.fields["shift"][r] = float(margin.shift)
            workspace.fields["slack"][r] = float_up(slack + abs(margin.shift) * UNIT) if margin.shift or slack else 0.0
        return workspace

    def _are_apart(self) -> Flags:
        """Return of which features neighbouring floats may cost more than the accuracy tells apart."""
        cost, layout = self.costs, self.made.layout
        weight = np.maximum(cost.slope + cost.square + cost.peak, 1e-3 * cost.jump)
        apart: Flags = layout.spacing * layout.inverse * weight > UNSEARCHED_SHARE / 4 * float(self.problem.accuracy)
        return apart

    def _keep(self, workspace: Workspace, margins: tuple[Margin, ...]) -> None:
        if self.is_plain:
            self.made.workspaces.setdefault(self._key(margins), []).append(workspace)

    def _key(self, margins: tuple[Margin, ...]) -> tuple[int, int]:
        return len(margins), id(self.costs.parts)

    def _fields(self, margins: int) -> dict[str, NDArray[Any]]:
        problem, layout = self.problem, self.made.layout
        size, units = len(self.features), self.made.shape[2]
        allowed = self.made.free if self.part.allowed is None else self.part.allowed
        rows = linear_rows(problem)
        earlier = sum(isinstance(condition, CountDifferent) for condition in problem.conditions)
        spans = [_spans(*each) for each in zip(self.features, allowed, self.factual, strict=True)]
        flat = np.array([span for each in spans for span in each], dtype=np.float64).reshape(-1, 2)
        cost = self.costs
        is_allowed = np.ones(layout.slots, dtype=np.bool_)
        for j in np.flatnonzero(layout.is_table):
            for k in range(layout.levels[j]):
                is_allowed[layout.slot_from[j] + k] = any(a <= k <= b for a, b in allowed[j].spans)
        return {
            "own": np.zeros(size),
            "slot": np.zeros(size, dtype=np.int64),
            "inverse": layout.inverse,
            "is_table": layout.is_table,
            "is_grid": layout.is_grid,
            "base": layout.base,
            "step": layout.step,
            "digits": layout.digits.copy(),
            "off": np.zeros(size + 1, dtype=np.int64),
            "entry_slot": np.zeros(layout.slots, dtype=np.int64),
            "entry_delta": np.zeros(layout.slots),
            "by_delta": np.zeros(layout.slots, dtype=np.int64),
            "nearest": np.zeros(size),
            "span_off": np.cumsum([0, *map(len, spans)]),
            "span_lo": np.ascontiguousarray(flat[:, 0]),
            "span_hi": np.ascontiguousarray(flat[:, 1]),
            "jump": cost.jump,
            "slope": cost.slope,
            "square": cost.square,
            "peak": cost.peak,
            "form": cost.form.copy(),
            "plus": np.zeros(margins, dtype=np.int64),
            "minus": np.zeros(margins, dtype=np.int64),
            "shift": np.zeros(margins),
            "slack": np.zeros(margins),
            "row": self._row_slots(rows),
            "row_base": np.array([float(self._row_at_factual(row)) for row in rows]),
            "row_error": np.array([row.error for row in rows]),
            "alike_lo": np.zeros((earlier, size)),
            "alike_hi": np.zeros((earlier, size)),
            "at_least": np.zeros(earlier, dtype=np.int64),
            "factual": np.zeros(units),
            "factual_size": np.zeros(units),
            "is_allowed": is_allowed,
        }

    def _row_slots(self, rows: list[Row]) -> Floats:
        """Return the coefficients of the linear conditions by slot."""
        layout, names = self.made.layout, self.problem.space.names
        slots = np.zeros((len(rows), layout.slots))
        for r, row in enumerate(rows):
            for name, value in row.coefficients.items():
                j = names.index(name)
                start, levels = layout.slot_from[j], layout.levels[j]
                slots[r, start : start + max(1, levels)] = float(value) * (np.arange(levels) if levels else 1.0)
        return slots

    def _row_at_factual(self, row: Row) -> Fraction:
        own = dict(zip(self.problem.space.names, self.factual, strict=False))
        terms = (value * Fraction(own[name] or 0) for name, value in row.coefficients.items())
        return row.constant + sum(terms, Fraction(0))

    def _is_empty(self, workspace: Workspace) -> bool:
        """Write the question into its arrays; return whether some feature has no allowed value."""
        layout, fields = self.made.layout, workspace.fields
        factual = np.array(self.factual, dtype=np.float64)
        is_allowed: Flags = fields["is_allowed"]
        if not kernels.lay_out(
            factual,
            layout.slot_from,
            layout.levels,
            layout.is_category,
            is_allowed,
            self.made.net,
            workspace.task,
            workspace.lo,
            workspace.hi,
        ):
            return True
        earlier = [condition for condition in self.problem.conditions if isinstance(condition, CountDifferent)]
        for c, condition in enumerate(earlier):
            fields["at_least"][c] = condition.features
            for j in range(len(self.features)):
                fields["alike_lo"][c, j], fields["alike_hi"][c, j] = self._alike(fields, condition, j)
        return False

    def _alike(self, fields: dict[str, NDArray[Any]], condition: CountDifferent, j: int) -> tuple[float, float]:
        """Return the range of feature j, in entries where it is a table, that counts as alike."""
        pattern = self.part.pattern
        if pattern is not None and (j >= len(pattern) or pattern[j]):
            is_alike = j >= len(pattern) or condition.earlier[j] is None
            return (-math.inf, math.inf) if is_alike else (math.inf, -math.inf)
        span = alike(self.features[j], condition.earlier[j], condition)
        if span is None:
            return math.inf, -math.inf
        if not fields["is_table"][j]:
            return self._around(span, j) if self.made.layout.grid_error[j] else span
        slot = self.made.layout.slot_from[j] + int(span[0])
        entries = np.flatnonzero(fields["entry_slot"][fields["off"][j] : fields["off"][j + 1]] == slot)
        return (float(entries[0]), float(entries[0])) if len(entries) else (math.inf, -math.inf)

    def _around(self, span: Span, j: int) -> Span:
        """Return a range about the values of a grid that lie in a span, with room for how the kernels round them."""
        feature, own = self.features[j], self.factual[j]
        assert isinstance(feature, Real)
        ends, room = values_between(feature, *span, own), GRID_TOLERANCE * float(feature.step or 0.0)
        return (math.inf, -math.inf) if ends is None else (ends[0] - room, ends[1] + room)

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
            self.best = self._point(workspace.state.best, workspace)
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
                goes_on = self._rival_goes_on(workspace, self._boxes(workspace) * work_of_box)
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
                goes_on = self._rival_goes_on(workspace, self.sign_work + work)
                due = work + WORK_OF_A_TURN if goes_on else math.inf

        return turn

    def _rival_goes_on(self, workspace: Workspace, work: int) -> bool:
        """Let the rival search for as long as this search has, and take over its point; return whether it has more to do."""
        if self.rival is None:
            assert self._make_rival is not None
            self.rival = self._make_rival(self.problem, self.limits)
        self.rival.run(work // WORK_OF_A_NODE)
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
            if not self.problem.is_valid(self._point(state.best, workspace)):
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
            point = self._point(workspace.state.log[n], workspace)
            if self.problem.is_valid(point):
                self.best, self.best_cost = point, cost
                workspace.state.reals[kernels.BEST] = cost
                return

    def _point(self, v: Floats, workspace: Workspace) -> Point:
        """Return a point of the kernels as numbers of the features."""
        slot, off = workspace.fields["entry_slot"], workspace.fields["off"]
        found = tuple(
            self._number(feature, value, j)
            if isinstance(feature, Real | Integer)
            else int(slot[off[j] + int(value)] - self.made.layout.slot_from[j])
            for j, (feature, value) in enumerate(zip(self.features, v.tolist(), strict=True))
        )
        pattern = self.part.pattern
        if pattern is None:
            return found
        return tuple(None if is_missing else each for each, is_missing in zip(found, pattern, strict=False))

    def _number(self, feature: Real | Integer, value: float, j: int) -> int | float:
        own = self.factual[j]
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

    def _report(self, workspace: Workspace, floor: float) -> None:
        if self.limits.on_progress is not None:
            power = 1 / self.metric.power
            floor = min(floor, float(workspace.state.reals[kernels.OPEN]), self.elsewhere)
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


def _spans(feature: Feature, allowed: Allowed, own: Value) -> list[Span]:
    """Return the ranges that a number may lie in, their ends among its values; none for a feature with levels."""
    if not isinstance(feature, Real | Integer):
        return []
    if isinstance(feature, Integer) and feature.step is None:
        return [(math.ceil(a), math.floor(b)) for a, b in allowed.spans if math.ceil(a) <= math.floor(b)]
    if allowed.spans == ((own, own),):
        return [(float(own), float(own))]  # type: ignore[arg-type]
    return [span for a, b in allowed.spans if (span := values_between(feature, a, b, own)) is not None]
