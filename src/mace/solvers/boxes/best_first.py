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
from mace.problem import INTERRUPTED, LATE, Bounds
from mace.reductions.regions import Region
from mace.solvers.incumbent import Incumbent
from mace.solvers.witness import is_finite

MOST_OPEN_BOXES = 100_000

Node = TypeVar("Node")
Item = TypeVar("Item")


class BestFirst(Generic[Node]):
    """The boxes that are open, the one with the least bound first.

    ``examine`` takes the bound of a box and the box. It closes the box or pushes its parts, offers points to the incumbent, and sets the
    incumbent's reason to stop the search. ``closed`` is the least bound of the boxes that were closed but may hold points. While
    ``is_exact``, boxes are pruned that are no nearer than the incumbent; otherwise, as always on an infinite space, also where they are
    hardly nearer.
    """

    def __init__(self, incumbent: Incumbent, examine: Callable[[Fraction, Node], None]) -> None:
        self.incumbent, self.examine = incumbent, examine
        self.open: list[tuple[Fraction, int, Node]] = []
        self.closed: Fraction | None = None
        self.is_exact = is_finite(incumbent.problem)
        self._serial = itertools.count()

    def push(self, lower: Fraction, node: Node) -> None:
        """Open a box that holds no valid point nearer than ``lower``."""
        heapq.heappush(self.open, (lower, next(self._serial), node))

    def close(self, lower: Fraction) -> None:
        """Count a box as closed that holds no valid point nearer than ``lower``."""
        self.closed = lower if self.closed is None else min(self.closed, lower)

    def is_beaten(self, lower: Fraction) -> bool:
        """Return whether a box with this bound can be pruned."""
        limit = self.incumbent.upper if self.is_exact else self.incumbent.cutoff()
        return limit is not None and lower >= limit

    def run(self) -> list[Node]:
        """Examine box after box; return those that are left when the best of them is pruned or the search is stopped."""
        incumbent, left = self.incumbent, list[Node]()
        while self.open and not left:
            lower, _, node = heapq.heappop(self.open)
            if incumbent.limits.remaining() <= 0:
                incumbent.reason = LATE
            elif len(self.open) > MOST_OPEN_BOXES:
                incumbent.reason = "memory limit reached"
            elif not self.is_beaten(lower):
                try:
                    self.examine(lower, node)
                except KeyboardInterrupt:
                    incumbent.reason = INTERRUPTED
                except OutOfTime:
                    incumbent.reason = LATE
                if not incumbent.reason:
                    continue
            self.close(lower)
            left = [node, *(other for _, _, other in self.open)]
        self._prove()
        return left

    def report(self) -> None:
        """Report the progress between two boxes."""
        self._prove(*(lower for lower, _, _ in self.open[:1]))
        self.incumbent.report()

    def _prove(self, *lowers: Fraction) -> None:
        """Set the lower bound: the least of some bounds, that of the closed boxes, and the incumbent's distance."""
        known = (each for each in (*lowers, self.closed, self.incumbent.upper) if each is not None)
        self.incumbent.lower = min(known, default=Fraction(0))

    def bounds(self, doubt: str, notes: dict[str, int] | None = None) -> Bounds:
        """Return what is proved: that there is no valid point, where none was found and no closed box may hold one; else the bounds."""
        is_empty = self.incumbent.upper is None and self.closed is None
        return self.incumbent.infeasible(notes=notes) if is_empty else self.incumbent.bounds(doubt=doubt, notes=notes)


def outermost(items: Sequence[Item], holds: Callable[[Item, Item], bool], most: int) -> list[Item]:
    """Return items without those that another one ``holds``; all of them where they are more than ``most``."""
    if len(items) > most:
        return list(items)
    kept: list[Item] = []
    for item in items:
        if not any(holds(other, item) for other in kept):
            kept = [other for other in kept if not holds(item, other)]
            kept.append(item)
    return kept


def ranges_dict(region: Region, whole: Region) -> dict[str, Any]:
    """Return for a certificate the ranges of a box that are not the whole domain, of numbers the least and greatest float."""
    return {
        name: {"levels": sorted(left.levels), "missing": left.missing}
        if left.levels is not None
        else {"low": float_up(left.low), "high": float_down(left.high), "missing": left.missing}
        for name, left in region.items()
        if left != whole[name]
    }
