"""Branch and bound over the signs of units in a growing ball.

Each stage proves that nothing lies within a radius; the first radii are small, where a bound or a few splits do, and only the last is that
of the best point. A discrete feature that the ball leaves free is branched on like a unit.
"""

from __future__ import annotations

import heapq
import itertools
import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mace.clock import OutOfTime
from mace.problem import INTERRUPTED, LATE, SPENT, Limits
from mace.solvers.network import kernels
from mace.solvers.network.prepared import Flags, Floats, PreparedNetwork, Workspace
from mace.solvers.network.units import dual
from mace.solvers.network.units.points import PointSearch
from mace.solvers.network.units.program import WORK_OF_A_PROGRAM, NodeProgram
from mace.solvers.pace import Interrupts, Pace

FIRST_SHARE_OF_RADIUS, RADIUS_GROWTH, LAST_RADIUS = 0.3, 1.12, 0.97
"""The first radius as a share of the best cost, how much larger the next is, and from which share on it is the last."""

BLIND_RADIUS = 0.01
"""The first radius where no point is known."""

ASCENT_STEPS, ROOT_ASCENT_STEPS, TRIAL_ASCENT_STEPS = 60, 200, 25
ASCENT_RATE, FINE_ASCENT_RATE = 0.1, 0.01
"""The steps of an ascent and their size: of alpha, and of beta in mean coefficients."""

GOAL_ROUNDS, ROOT_GOAL_ROUNDS = 3, 8
SPLIT_CANDIDATES = 4
"""How many units are tried before one is split."""

SHRINKING = 0.95
"""Units are bounded again while their ranges together shrink below this share."""


WORK_BESIDE_STEP, WEIGHTS_OF_A_STEP, STEPS_OF_A_ROUND = 32, 32, 64
"""What a step of an ascent, and bounding all units anew, count in turns with a rival: by the time that they take, in the unit of boxes."""

MOST_MEMORY = 2**29
"""What the open nodes of a search may take."""

MEMORY_REACHED = "memory limit reached"


class Halted(Exception):
    """The search ends before its time; the message says why."""


@dataclass(slots=True)
class SignNode:
    """A box, ranges of the units, and the multipliers of the last bound."""

    bound: float
    lo: Floats
    hi: Floats
    low: Floats
    high: Floats
    many: dual.Multipliers
    is_new_box: bool = False

    def child(self) -> SignNode:
        """Return a copy."""
        return SignNode(
            self.bound, self.lo.copy(), self.hi.copy(), self.low.copy(), self.high.copy(), copied(self.many)
        )


@dataclass(frozen=True, slots=True)
class SignBranching:
    """What a node is branched on: a feature and the last value of its lower side, or -2 less the number of a unit; and the two sides."""

    code: int
    at: float
    sides: list[SignNode]


def copied(many: dual.Multipliers) -> dual.Multipliers:
    """Return a copy of multipliers."""
    return dual.Multipliers(*(each.copy() for each in many))


class SignSearch:
    """One question: the domain, the point and the bound that are known, and the arrays of the kernels."""

    def __init__(
        self,
        made: PreparedNetwork,
        workspace: Workspace,
        domain: tuple[Floats, Floats],
        limits: Limits,
        told: Callable[[], None],
        turn: Callable[[int], None] | None = None,
    ) -> None:
        self.made, self.workspace, self.limits, self.told = made, workspace, limits, told
        self.turn, self.work_done = turn, 0
        weights = int(sum(a * b for a, b in itertools.pairwise([len(domain[0]), *made.arrays["width"].tolist()])))
        self._work_of_step = WORK_BESIDE_STEP + weights // WEIGHTS_OF_A_STEP
        self.domain = domain
        self.state, self.task, self.work, self.net = workspace.state, workspace.task, workspace.work, made.net
        self.reals, self.scratch = workspace.state.reals, workspace.scratch
        self.widths: list[int] = made.arrays["width"].tolist()
        self.is_hidden = np.arange(max(self.widths)) < np.array(self.widths)[:, None]
        self.is_hidden[-1] = False
        self.floor = self.proved = 0.0
        self.radius = 0.0
        self.reason = ""
        self.size: Floats | None = None
        self.error: Floats | None = None
        self.program = NodeProgram(made, workspace)
        self._make_arrays()
        self.points = PointSearch(self)

    def _make_arrays(self) -> None:
        units = self.scratch["low"].shape
        rows, columns = len(self.scratch["constants"]), len(self.scratch["gains"])
        self.many = self._no_multipliers()
        weight = self.made.arrays["weight"]
        self.ascent = dual.Ascent(
            lam=np.zeros(units),
            mu=np.zeros(units),
            z=np.zeros(units),
            moments=np.zeros((4, *units)),
            row_moments=np.zeros((2, rows)),
            row_values=np.zeros(rows),
            kept=self._no_multipliers(),
            gains=np.zeros(columns),
            by_input=np.ascontiguousarray(weight.transpose(0, 2, 1)),
            by_column=np.zeros((columns, units[1])),
            reach=np.zeros(len(self.domain[0])),
        )
        self.gains, self.scores = np.zeros(columns), np.zeros(units)
        self.node_bytes = 8 * (6 * self.scores.size + 2 * len(self.domain[0])) + 1024
        self.pace = Pace(self.limits.deadline, 1)
        self._slowest_step = 0.0
        self.interrupts = Interrupts()

    def _no_multipliers(self) -> dual.Multipliers:
        units = self.scratch["low"].shape
        rows = len(self.scratch["constants"])
        return dual.Multipliers(np.zeros(units), np.zeros(units), np.zeros((2, *units)), np.ones(rows))

    # ---- radii

    @property
    def limit(self) -> float:
        """The cost up to which points are searched for in this stage."""
        return min(self.radius, float(kernels.search_radius(self.reals, self.task)))

    def run(self, floor: float) -> None:
        """Search from a proved cost on; afterwards ``floor`` is what is proved, and ``reason`` says what stopped the search, if so."""
        self.floor = self.proved = floor
        try:
            with self.interrupts:
                self._grow()
            self.interrupts.handle()
        except Halted as halted:
            self.reason = str(halted)
        except OutOfTime:
            self.reason = LATE
        except KeyboardInterrupt:
            self.reason = INTERRUPTED

    def _grow(self) -> None:
        """Search one radius after another."""
        self.points.first()
        radius = 0.0
        while True:
            radius = self._next_radius(radius)
            self._empty(radius)
            self.floor = self.proved = max(self.floor, self.limit)
            if radius >= float(kernels.search_radius(self.reals, self.task)):
                return

    def _next_radius(self, radius: float) -> float:
        best = float(kernels.search_radius(self.reals, self.task))
        if best >= kernels.WHOLE:
            radius = max(2 * radius, BLIND_RADIUS, 2 * self.floor)
            return radius if radius < 1 else kernels.WHOLE
        radius = max(FIRST_SHARE_OF_RADIUS * best, RADIUS_GROWTH * max(radius, self.floor))
        return radius if radius < LAST_RADIUS * best else best

    # ---- one stage

    def _empty(self, radius: float) -> None:
        """Search until nothing is left within a radius."""
        self.radius = radius
        root = self._root()
        if root is None or self._is_closed(root, ROOT_GOAL_ROUNDS, ROOT_ASCENT_STEPS):
            return
        heap, count, node = [(root.bound, 0, root)], 0, None
        try:
            while heap and heap[0][0] <= self.limit:
                node = heapq.heappop(heap)[2]
                for child in self._children(node):
                    count += 1
                    heapq.heappush(heap, (child.bound, count, child))
                node = None
                self.proved = max(self.proved, min(self.limit, heap[0][0] if heap else self.limit))
                self.told()
                if len(heap) * self.node_bytes > MOST_MEMORY:
                    raise Halted(MEMORY_REACHED)
                if self.state.registers[kernels.NODES] >= self.limits.effort:
                    raise Halted(SPENT)
        except (Halted, OutOfTime, KeyboardInterrupt):
            least = [self.limit, *([] if node is None else [node.bound]), *(bound for bound, _, _ in heap[:1])]
            self.floor = max(self.floor, min(least))
            raise

    def _root(self) -> SignNode | None:
        lo, hi = self.domain
        node = SignNode(
            self.floor,
            lo.copy(),
            hi.copy(),
            np.full_like(self.scratch["low"], -np.inf),
            np.full_like(self.scratch["high"], np.inf),
            self._no_multipliers(),
            is_new_box=True,
        )
        self.size = self.error = None
        box = self._open(node)
        if box is None:
            return None
        self.size, self.error = self.scratch["size"].copy(), self.scratch["error"].copy()
        node.low, node.high = self.scratch["low"].copy(), self.scratch["high"].copy()
        node.many.alpha[:] = node.high > -node.low
        self.is_free = (node.low < 0) & (node.high > 0)
        node.is_new_box = False
        return node

    def _open(self, node: SignNode) -> kernels.InputBox | None:
        """Write a node into the arrays of the kernels; ``None`` where its box is empty."""
        lo, hi, scratch = self.workspace.lo, self.workspace.hi, self.scratch
        lo[:], hi[:] = node.lo, node.hi
        if not kernels.clip(lo, hi, self.limit, self.task, self.work):
            return None
        box = self.opened()
        if node.is_new_box:
            self.look_at_clock()
            kernels.propagate(self.limit, box, self.net, self.task, self.work)
            np.maximum(scratch["low"], node.low, out=scratch["low"])
            np.minimum(scratch["high"], node.high, out=scratch["high"])
        else:
            scratch["low"][:], scratch["high"][:] = node.low, node.high
        if self.size is not None:
            scratch["size"][1:], scratch["error"][:] = self.size[1:], self.error
        for own, each in zip(self.many, node.many, strict=True):
            own[:] = each
        return box

    def opened(self) -> kernels.InputBox:
        """Open the box at hand."""
        lo, hi = self.workspace.lo, self.workspace.hi
        return kernels.InputBox(lo, hi, *dual.opened(lo, hi, self.net, self.task, self.work))

    def look_at_clock(self) -> None:
        """Raise where the time is over or the user has interrupted."""
        self.interrupts.handle()
        if self.limits.remaining() <= 0:
            raise Halted(LATE)
        if self.turn is not None:
            self.turn(self.work_done)

    def _keep(self, node: SignNode) -> None:
        node.low[:], node.high[:] = self.scratch["low"], self.scratch["high"]
        for own, each in zip(self.many, node.many, strict=True):
            each[:] = own
        node.is_new_box = False

    # ---- bounds

    def _is_closed(self, node: SignNode, rounds: int, steps: int) -> bool:
        """Bound a node until that closes it or gains little; what is gained is kept in it."""
        box = self._open(node)
        if box is None or self._is_crossed():
            return True
        for number in range(rounds + 1):
            found, value = self._ascend(steps, ASCENT_RATE, box)
            node.bound = max(node.bound, found)
            if found > self.limit:
                return True
            self._offer(box)
            if node.bound > self.limit:
                return True
            if number == rounds:
                break
            before = self._width()
            if not self._tighten(value, box):
                return True
            if self._width() > SHRINKING * before:
                break
        self._keep(node)
        return False

    def _offer(self, box: kernels.InputBox) -> None:
        self.points.offer(box)

    def _ascend(self, steps: int, rate: float, box: kernels.InputBox) -> tuple[float, float]:
        """Look for better multipliers, in as many steps as there is time for; only a single one is ever begun without knowing that."""
        self.look_at_clock()
        left = self.limits.remaining()
        if not math.isinf(left):
            if steps > 1 and not self._slowest_step:
                SignSearch._ascend(self, 1, rate, box)
            steps = max(1, int(min(steps, left / max(self._slowest_step, 1e-9))))
        self.work_done += steps * self._work_of_step
        begun = time.monotonic()
        found, value = dual.ascend(
            steps,
            rate,
            self.limit,
            float(self.reals[kernels.TOLERANCE]),
            self.many,
            self.ascent,
            box,
            self.net,
            self.task,
            self.work,
        )
        self._slowest_step = max(self._slowest_step, (time.monotonic() - begun) / steps)
        return float(found), float(value)

    def _tighten(self, value: float, box: kernels.InputBox) -> bool:
        """Bound the bent units anew, with the goal; False where a range becomes empty."""
        self.work_done += STEPS_OF_A_ROUND * self._work_of_step
        for k, width in enumerate(self.widths[:-1]):
            first = 0
            while first < width:
                last = min(width, first + self.pace.steps)
                self.look_at_clock()
                with self.pace.timed():
                    is_open = dual.tighten(
                        k,
                        first,
                        last,
                        value,
                        self.limit,
                        self.many,
                        self.gains,
                        self.ascent,
                        box,
                        self.net,
                        self.task,
                        self.work,
                    )
                if not is_open:
                    return False
                first = last
        return True

    def _bent(self) -> Flags:
        low, high = self.scratch["low"], self.scratch["high"]
        return np.asarray((low < 0) & (high > 0) & (self.made.arrays["bend"] != 1) & self.is_free)

    def _width(self) -> float:
        bent = self._bent()
        return float((self.scratch["high"] - self.scratch["low"])[bent].sum())

    def _is_crossed(self) -> bool:
        return bool((self.scratch["low"] > self.scratch["high"]).any())

    # ---- branching

    def _children(self, node: SignNode) -> list[SignNode]:
        """Return the parts of a node that are not closed."""
        self.state.registers[kernels.NODES] += 1
        box = self._open(node)
        if box is None:
            return []
        if box.columns == 0:
            self.points.single(node.bound)
            return []
        found = self._branching(node, box)
        if found is None:
            return []
        return [
            side
            for side in found.sides
            if side.bound <= self.limit and not self._is_closed(side, GOAL_ROUNDS, ASCENT_STEPS)
        ]

    def _branching(self, node: SignNode, box: kernels.InputBox) -> SignBranching | None:
        """Return how to branch on a node, which is open in the arrays; ``None`` where it is settled instead."""
        self._ascend(1, ASCENT_RATE, box)
        feature = int(kernels.fractional_feature(box, self.task, self.work))
        most = float(dual.losses(self.scores, self.ascent, self.net, self.work))
        is_bent = self._bent()
        if feature >= 0 and (not is_bent.any() or self._is_coarse(feature, box)):
            return self._cut(node, feature, box)
        if is_bent.any():
            return self._split(node, is_bent, most, box)
        if self._is_settled(node, box):
            return None
        feature = self._discrete(box)
        if feature >= 0:
            return self._cut(node, feature, box)
        self._give_up(node)
        return None

    def _give_up(self, node: SignNode) -> None:
        self.points.give_up(node.bound)

    def _discrete(self, box: kernels.InputBox) -> int:
        """Return a free feature with levels or a grid, the one that moves the combination most; -1 where there is none."""
        fields, best, chosen = self.workspace.fields, -1.0, -1
        for f in range(box.free):
            j = int(self.scratch["feature"][f])
            spread = float(kernels.spread(f, self.ascent.gains, box, self.task, self.work))
            if (fields["is_table"][j] or fields["is_grid"][j]) and spread > best:
                best, chosen = spread, f
        return chosen

    def _is_coarse(self, feature: int, box: kernels.InputBox) -> bool:
        """Return whether a free feature has levels, or so few values that each is a large step."""
        j = int(self.scratch["feature"][feature])
        fields = self.workspace.fields
        return bool(fields["is_table"][j] or (fields["is_grid"][j] and box.hi[j] - box.lo[j] < 4 * fields["step"][j]))

    def _cut(self, node: SignNode, feature: int, box: kernels.InputBox) -> SignBranching:
        """Return the two sides of a free feature's cut; one of them may be empty."""
        j = int(self.scratch["feature"][feature])
        at, _ = kernels.where_to_branch(feature, box, self.task, self.work)
        if at >= box.hi[j]:
            at = kernels.below(j, at, self.task)
        lower, upper = node.child(), node.child()
        lower.hi[j], upper.lo[j] = at, kernels.above(j, at, self.task)
        lower.is_new_box = upper.is_new_box = True
        return SignBranching(j, float(at), [lower, upper])

    def _split(self, node: SignNode, is_bent: Flags, most: float, box: kernels.InputBox) -> SignBranching:
        """Return the two sides of the unit whose split promises most, of a few that are tried."""
        low, high = self.scratch["low"], self.scratch["high"]
        gap = np.where(is_bent, -low * high / np.where(is_bent, high - low, 1.0), 0.0)
        scores = np.where(is_bent, self.scores + 1e-3 * np.abs(self.ascent.lam) * gap + 1e-12 * (most + 1.0), -1.0)
        best, chosen = -1.0, SignBranching(-1, 0.0, [])
        for n in np.argsort(-scores, axis=None, kind="stable")[:SPLIT_CANDIDATES]:
            k, i = np.unravel_index(n, scores.shape)
            if scores[k, i] < 0:
                break
            sides = [self._tried(node, int(k), int(i), side, box) for side in range(2)]
            room = max(self.limit - node.bound, 1e-12)
            gains = [min(side.bound - node.bound, room) + 1e-3 * room for side in sides]
            if gains[0] * gains[1] > best:
                best, chosen = gains[0] * gains[1], SignBranching(-2 - self._number(int(k), int(i)), 0.0, sides)
            if all(side.bound > self.limit for side in sides):
                break
        return chosen

    def _number(self, k: int, i: int) -> int:
        """Return the number of a hidden unit, all layers through."""
        return sum(self.widths[:k]) + i

    def _tried(self, node: SignNode, k: int, i: int, side: int, box: kernels.InputBox) -> SignNode:
        """Return one side of a unit's split, bounded in a few steps."""
        child = node.child()
        (child.low if side else child.high)[k, i] = 0.0
        self.scratch["low"][:], self.scratch["high"][:] = child.low, child.high
        for own, each in zip(self.many, node.many, strict=True):
            own[:] = each
        found, _ = self._ascend(TRIAL_ASCENT_STEPS, ASCENT_RATE, box)
        child.bound = max(node.bound, found)
        self._keep(child)
        self.scratch["low"][:], self.scratch["high"][:] = node.low, node.high
        return child

    def _is_settled(self, node: SignNode, box: kernels.InputBox) -> bool:
        """Bound a node in which every unit is decided by the multipliers of its linear program, and try the program's point."""
        self.look_at_clock()
        self.work_done += WORK_OF_A_PROGRAM
        found = self.program.solve(node.low, node.high, self.is_free, self.limit, box, self.limits.remaining())
        if found is not None:
            for own, each in zip(self.many, (found.alpha, found.beta, self.many.price, found.mix), strict=True):
                own[:] = each
            bound, _ = self._ascend(ROOT_ASCENT_STEPS, FINE_ASCENT_RATE, box)
            node.bound = max(node.bound, bound)
            self._offer_relaxed(found.x, box)
        return node.bound > self.limit

    def _offer_relaxed(self, x: Floats, box: kernels.InputBox) -> None:
        self.points.offer_relaxed(x, box)
