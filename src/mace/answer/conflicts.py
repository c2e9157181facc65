"""Why no counterfactual exists: a smallest set of the user's constraints that already rules out every one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import TypeVar

T = TypeVar("T")

MOST_QUESTIONS = 200
"""How many subsets are asked about before the search for a smaller conflict ends."""


class Undecided(Exception):
    """A question was not answered in time."""


def smallest_conflict(parts: Sequence[T], is_conflict: Callable[[Sequence[T]], bool]) -> tuple[tuple[T, ...], bool]:
    """Return a smallest set of parts that conflict, and whether none smaller is possible.

    Parameters
    ----------
    parts : sequence
        All parts, known to conflict.
    is_conflict : callable
        Says whether some parts conflict; raises :class:`Undecided` where time runs out.

    Returns
    -------
    parts, is_smallest
        Empty where no parts are needed: the question itself has no answer. Without a part of it the set does not conflict,
        unless time ran out (then ``is_smallest`` is False).

    Examples
    --------
    >>> smallest_conflict("abcd", lambda parts: "b" in parts and "d" in parts)
    (('b', 'd'), True)
    """
    known = tuple(parts)
    try:
        known = _irreducible(known, is_conflict)
        asked = len(parts)
        for size in range(1, len(known)):
            for chosen in combinations(parts, size):
                asked += 1
                if asked > MOST_QUESTIONS:
                    return known, False
                if is_conflict(chosen):
                    return chosen, True
    except Undecided as stopped:
        return stopped.args[0] if stopped.args else known, False
    return known, True


def _irreducible(parts: tuple[T, ...], is_conflict: Callable[[Sequence[T]], bool]) -> tuple[T, ...]:
    """Return parts that conflict, none of which can be left out."""
    if is_conflict(()):
        return ()
    kept = parts
    for part in parts:
        fewer = tuple(other for other in kept if other is not part)
        try:
            if is_conflict(fewer):
                kept = fewer
        except Undecided:
            raise Undecided(kept) from None
    return kept
