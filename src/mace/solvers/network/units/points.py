"""Points for the search over signs of units: by linearisation from many starts, and from one pattern of signs to the next."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mace.solvers.network import kernels
from mace.solvers.network.prepared import Flags, Floats
from mace.solvers.network.units.program import WORK_OF_A_PROGRAM

if TYPE_CHECKING:
    from mace.solvers.network.units.search import SignSearch

MOST_RANDOM_STARTS, STARTS_IN_VAIN = 30, 8
"""How many random starts there are at most, and how many in a row that find nothing."""

LINEAR_STEPS = 8
PATTERNS_OF_A_DESCENT = 30
"""How many patterns one descent looks at."""

OUTWARD_SHARES = (0.0, 1e-9, 1e-8, 1e-7, 1e-6)
"""By which share a program's point is moved outward until it is in the goal for sure: the program's own tolerances."""


class PointSearch:
    """The points of one search over signs of units."""

    def __init__(self, search: SignSearch) -> None:
        self.search = search
        self.state, self.net, self.task, self.work = search.state, search.net, search.task, search.work
        self.scratch, self.reals = search.scratch, search.reals
        self.random = np.random.default_rng(0)
        self.seen: set[bytes] = set()

    @property
    def best(self) -> float:
        """The cost of the best point."""
        return float(self.reals[kernels.BEST])

    # ---- from relaxations

    def offer(self, box: kernels.InputBox) -> None:
        """Try the relaxed point in ``best_x`` and what linearisation makes of it; ``best_x`` stays."""
        kept, before = self.scratch["best_x"].copy(), self.best
        v = self.scratch["point"]
        kernels.round_relaxation(kept, box, self.task, self.work, v)
        kernels.try_point(v, self.state, self.net, self.task, self.work)
        kernels.descend(v, 3, box, self.state, self.net, self.task, self.work)
        if self.best < before:
            self._follow(box)
        self.scratch["best_x"][:] = kept
        self.search.told()

    def offer_relaxed(self, x: Floats, box: kernels.InputBox) -> bool:
        """Try a program's point, moved outward as little as makes it sure; return whether it is a better one."""
        before = self.best
        for share in OUTWARD_SHARES:
            v = self.scratch["point"]
            moved = np.zeros_like(self.scratch["x"])
            moved[: len(x)] = x * (1 + share)
            kernels.round_relaxation(moved, box, self.task, self.work, v)
            if kernels.try_point(v, self.state, self.net, self.task, self.work) == kernels.SURE:
                break
        return self.best < before

    def single(self, bound: float) -> None:
        """Decide a box that is a single point, which may be too near to the boundary to say."""
        v = self.scratch["point"]
        v[:] = self.scratch["near"]
        if kernels.try_point(v, self.state, self.net, self.task, self.work) == kernels.MAYBE:
            self.give_up(bound)

    def give_up(self, bound: float) -> None:
        """Leave a node open that rounding does not let be decided: the real model is asked about its point."""
        kernels.log_point(self.scratch["point"], self.state, self.task)
        self.reals[kernels.OPEN] = min(self.reals[kernels.OPEN], bound)
        self.search.told()

    # ---- first points

    def first(self) -> None:
        """Look for a near point: from the best so far, then from random starts about the factual."""
        search = self.search
        search.radius = kernels.WHOLE
        if self.best < kernels.WHOLE:
            self._follow(None)
        in_vain = 0
        for number in range(MOST_RANDOM_STARTS):
            search.look_at_clock()
            box = self._ball()
            if box is None:
                return
            before = self.best
            v = self._start(number)
            kernels.judge(v, self.net, self.task, self.work)
            kernels.descend(v, LINEAR_STEPS, box, self.state, self.net, self.task, self.work)
            if self.best < before:
                self._follow(box)
            in_vain = 0 if self.best < before * (1 - 1e-4) else in_vain + 1
            search.told()
            if in_vain >= STARTS_IN_VAIN:
                return

    def _ball(self) -> kernels.InputBox | None:
        """Open the domain inside the ball of the best point."""
        workspace = self.search.workspace
        workspace.lo[:], workspace.hi[:] = self.search.domain
        if not kernels.clip(workspace.lo, workspace.hi, self.search.limit, self.task, self.work):
            return None
        return self.search.opened()

    def _start(self, number: int) -> Floats:
        """Return a random point of the ball, or one about the best."""
        lo, hi = self.search.workspace.lo, self.search.workspace.hi
        near, random = self.scratch["near"], self.random
        is_number = ~self.search.workspace.fields["is_table"]
        move = np.where(random.random(len(lo)) < 0.2, random.standard_normal(len(lo)), 0.0)
        share = 0.5 if self.best < kernels.WHOLE else 4.0 ** -(number % 4)
        v = near + np.where(is_number, share * move * (hi - lo), 0.0)
        if number % 2 and self.best < kernels.WHOLE:
            kept = random.random(len(lo)) < 0.7
            v = np.where(kept, self.state.best, near) + np.where(is_number, 0.2 * move * (hi - lo), 0.0)
        return np.asarray(np.clip(v, lo, hi))

    # ---- patterns of signs

    def _follow(self, box: kernels.InputBox | None) -> None:
        """Go from the best point's pattern to neighbouring ones: the nearest point of each, then across the signs that hold it back."""
        search = self.search
        if box is None:
            box = self._ball()
        if box is None:
            return
        v = self.state.best.copy()
        kernels.judge(v, self.net, self.task, self.work)
        pattern: Flags = (self.scratch["z"] >= 0) & search.is_hidden
        tries = PATTERNS_OF_A_DESCENT
        current, hold = self._at(pattern, box)
        while tries > 0:
            held = np.argwhere(hold > 1e-9)
            if not len(held):
                return
            flips = [held] if len(held) == 1 else [held, *(held[n : n + 1] for n in range(len(held)))]
            for flip in flips:
                tries -= 1
                search.look_at_clock()
                other = pattern.copy()
                other[flip[:, 0], flip[:, 1]] ^= True
                cost, there = self._at(other, box)
                if cost < current * (1 - 1e-7):
                    pattern, current, hold = other, cost, there
                    break
                if tries <= 0:
                    return
            else:
                return

    def _at(self, pattern: Flags, box: kernels.InputBox) -> tuple[float, Floats]:
        """Try the nearest point of a pattern; return its cost and by unit how strongly its sign holds it back."""
        nothing = np.inf, np.zeros(pattern.shape)
        key = np.packbits(pattern).tobytes()
        if key in self.seen:
            return nothing
        self.seen.add(key)
        low, high = np.where(pattern, 0.0, -np.inf), np.where(pattern, np.inf, 0.0)
        is_free = np.ones(pattern.shape, dtype=np.bool_)
        left = self.search.limits.remaining()
        self.search.work_done += WORK_OF_A_PROGRAM
        found = self.search.program.solve(low, high, is_free, self._scale(), box, left)
        if found is None:
            return nothing
        self.offer_relaxed(found.x, box)
        cost = float(kernels.cost_of(self.scratch["point"], self.task))
        return (cost, found.hold) if self.is_sure() else nothing

    def _scale(self) -> float:
        return min(self.best, 1.0)

    def is_sure(self) -> bool:
        """Return whether the point at hand is in the goal for sure."""
        verdict, _ = kernels.judge(self.scratch["point"], self.net, self.task, self.work)
        return bool(verdict == kernels.SURE)
