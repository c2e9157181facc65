"""Smallest sets that hit others: by branch and bound in Python while that is quick, and by an integer program where it is not."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from mace.answer.conflicts import Undecided
from mace.problem import LATE

MOST_LOOKS = 20_000
"""How many sets the quick search may look at, some milliseconds, before it leaves the rest to the integer program."""


def smallest_hitting(
    size: int, sets: Sequence[int], barred: Sequence[int], seconds: Callable[[], float] = lambda: math.inf
) -> int | None:
    """Return a smallest set with an element of each of some sets that holds none of the barred ones; ``None`` where there is none.

    Of several smallest ones it takes elements first that are in many of the sets, and of equal ones the first.

    Parameters
    ----------
    size : int
        How many elements there are.
    sets, barred : sequence of int
        Sets of elements, each as a number that has their bits. Every set holds an empty one.

    seconds : callable
        How long the integer program may take.

    Raises
    ------
    Undecided
        The integer program was not solved in time.

    Examples
    --------
    >>> bin(smallest_hitting(3, [0b011, 0b110], []))
    '0b10'
    >>> bin(smallest_hitting(3, [0b011, 0b110], [0b010]))
    '0b101'
    >>> smallest_hitting(2, [0b01, 0b10], [0b11]) is None
    True
    """
    if not all(barred):
        return None
    quick = _Search(barred, size)
    try:
        quick.go(0, 0, _smallest(sets), 0)
    except _TooLong:
        return _by_program(size, sets, barred, seconds())
    return quick.best


class _TooLong(Exception):
    """The quick search has looked at too many sets."""


class _Search:
    """Branch and bound: some set that is not hit yet is hit by one of its elements, or by one of those after it without it."""

    def __init__(self, barred: Sequence[int], size: int) -> None:
        self.barred, self.count, self.looks = barred, size + 1, 0
        self.best: int | None = None

    def go(self, chosen: int, excluded: int, left: list[int], count: int) -> None:
        """Look for a smaller set than the best with the chosen elements and without the excluded ones; ``left`` are the sets not hit."""
        self.looks += len(left) + len(self.barred)
        if self.looks > MOST_LOOKS:
            raise _TooLong
        if not left:
            self.best, self.count = chosen, count
            return
        for each in self.barred:
            missing = each & ~chosen
            if not missing & excluded and not missing & (missing - 1):
                excluded |= missing
        free = [each & ~excluded for each in left]
        if count + _apart(free) >= self.count:
            return
        tightest = min(free, key=int.bit_count)
        for bit in sorted(_bits(tightest), key=lambda bit: -sum(bit & each != 0 for each in free)):
            self.go(chosen | bit, excluded, [each for each in left if not each & bit], count + 1)
            excluded |= bit


def _apart(sets: Sequence[int]) -> int:
    """Return how many of some sets share no element, as far as is seen: so many elements are needed. Very many for an empty one."""
    taken, count = 0, 0
    for each in sorted(sets, key=int.bit_count):
        if not each:
            return 1 << 30
        if not each & taken:
            taken |= each
            count += 1
    return count


def _bits(number: int) -> list[int]:
    made = []
    while number:
        made.append(number & -number)
        number &= number - 1
    return made


def _smallest(sets: Sequence[int]) -> list[int]:
    """Return the sets that hold no other one."""
    made: list[int] = []
    for each in sorted(set(sets), key=int.bit_count):
        if not any(other & each == other for other in made):
            made.append(each)
    return made


def _by_program(size: int, sets: Sequence[int], barred: Sequence[int], seconds: float) -> int | None:
    """Return the same by an integer program."""
    import numpy as np
    from scipy.optimize import Bounds, LinearConstraint, milp

    places = range(size)
    rows = [([each >> place & 1 for place in places], 1.0, np.inf) for each in sets]
    rows += [([each >> place & 1 for place in places], -np.inf, each.bit_count() - 1.0) for each in barred]
    if seconds <= 0:
        raise Undecided(LATE)
    matrix, low, high = zip(*rows, strict=True)
    made = milp(
        np.ones(size),
        integrality=np.ones(size),
        bounds=Bounds(0, 1),
        constraints=LinearConstraint(np.array(matrix, dtype=float), low, high),
        options={} if seconds == math.inf else {"time_limit": seconds},
    )
    if made.status == 1:
        raise Undecided(LATE)
    if made.x is None:
        if made.status == 2:
            return None
        raise Undecided("the sets could not be gone through")
    return sum(1 << place for place in places if made.x[place] > 0.5)
