"""Best-first branch and bound over boxes: the queue, pruning, closing, limits and progress.

What a box is asked, how it is branched and what remains as evidence is up to the search that uses it: of conditions across features
(:mod:`mace.solvers.boxes.search`), or of robust answers (:mod:`mace.solvers.robust.search`).
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, Generic, TypeVar

from mace.clock import OutOfTime
from mace.exact import float_down, float_up
from mace.problem import INTERRUPTED, LATE
from mace.reductions.regions import Range, Region, lies_in
from mace.solvers.incumbent import Incumbent
from mace.solvers.witness import is_finite

MOST_OPEN = 100_000

Node = TypeVar("Node")
Item = TypeVar("Item")


class BestFirst(Generic[Node]):
    """The boxes that are open, the one with the least bound first.

    Parameters
    ----------
    incumbent : Incumbent
        The best point so far; boxes that hold nothing nearer are pruned.
    examine : callable
        Takes the bound of a box and the box. It closes the box or pushes its parts, offers points to the incumbent, and sets the
        incumbent's reason to stop the search.

    Attributes
    ----------
    open : list
        Bound, serial number and node of each open box, as a heap.
    closed : Fraction, optional
        The least bound of the boxes that were closed although they may hold points, which are no nearer.
    """

    def __init__(self, incumbent: Incumbent, examine: Callable[[Fraction, Node], None]) -> None:
        self.incumbent, self.examine = incumbent, examine
        self.open: list[tuple[Fraction, int, Node]] = []
        self.closed: Fraction | None = None
        self._is_finite = is_finite(incumbent.problem)
        self._serial = itertools.count()

    def push(self, lower: Fraction, node: Node) -> None:
        """Open a box that holds no valid point nearer than ``lower``."""
        heapq.heappush(self.open, (lower, next(self._serial), node))

    def close(self, lower: Fraction) -> None:
        """Count a box as closed that holds no valid point nearer than ``lower``."""
        self.closed = lower if self.closed is None else min(self.closed, lower)

    def is_beaten(self, lower: Fraction) -> bool:
        """Return whether a box with this bound can be pruned: on a finite space where it is no nearer than the incumbent, else nearly."""
        limit = self.incumbent.upper if self._is_finite else self.incumbent.cutoff()
        return limit is not None and lower >= limit

    def run(self) -> list[Node]:
        """Examine box after box; return those that are left when the best of them is pruned or the search is stopped.

        The incumbent's lower bound is then what was proved.
        """
        left: list[Node] = []
        while self.open:
            lower, _, node = heapq.heappop(self.open)
            if not self._is_stopped(len(self.open)) and not self.is_beaten(lower):
                self._examine(lower, node)
                if not self.incumbent.reason:
                    continue
            self.close(lower)
            left = [node, *(other for _, _, other in self.open)]
            break
        self._update(lowers=())
        return left

    def _is_stopped(self, count: int) -> bool:
        incumbent = self.incumbent
        if incumbent.limits.remaining() <= 0:
            incumbent.reason = LATE
        elif count > MOST_OPEN:
            incumbent.reason = "memory limit reached"
        return bool(incumbent.reason)

    def _examine(self, lower: Fraction, node: Node) -> None:
        try:
            self.examine(lower, node)
        except KeyboardInterrupt:
            self.incumbent.reason = INTERRUPTED
        except OutOfTime:
            self.incumbent.reason = LATE

    def report(self) -> None:
        """Report the progress between two boxes."""
        self._update(lowers=[self.open[0][0]] if self.open else ())
        self.incumbent.report()

    def _update(self, lowers: Sequence[Fraction]) -> None:
        """Set what is proved: there is no point nearer than the nearest of the open and closed boxes, and the incumbent."""
        known = [*lowers, *(each for each in (self.closed, self.incumbent.upper) if each is not None)]
        self.incumbent.lower = min(known, default=Fraction(0))

    @property
    def is_empty(self) -> bool:
        """Whether every box was proved to hold no valid point."""
        return self.incumbent.upper is None and self.closed is None


def outermost(items: Sequence[Item], region_of: Callable[[Item], Region], most: int) -> list[Item]:
    """Return items without those whose box lies in the box of another; all of them where they are more than ``most``."""
    if len(items) > most:
        return list(items)
    kept: list[Item] = []
    for item in items:
        if not any(lies_in(region_of(item), region_of(other)) for other in kept):
            kept = [other for other in kept if not lies_in(region_of(other), region_of(item))]
            kept.append(item)
    return kept


def ranges_dict(region: Region, whole: Region) -> dict[str, Any]:
    """Return for a certificate the ranges of a box that are not the whole domain."""
    return {name: _range_dict(left) for name, left in region.items() if left != whole[name]}


def _range_dict(left: Range) -> dict[str, Any]:
    """Return a range for a certificate; of a range of numbers its least and greatest float."""
    if left.levels is not None:
        return {"levels": sorted(left.levels), "missing": left.missing}
    return {"low": float_up(left.low), "high": float_down(left.high), "missing": left.missing}
