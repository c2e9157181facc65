"""Recursion without the interpreter's stack.

A function over the syntax is written as a generator: it yields the steps of a part and receives that part's
result. :func:`finish` runs such steps on a list, so a sum of thousands of terms is no deeper than a sum of two.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import Any, TypeAlias, TypeVar

from mace.clock import check

Result = TypeVar("Result")

Steps: TypeAlias = Generator[Any, Any, Result]

STEPS_BETWEEN_LOOKS = 256
"""Steps between two looks at the clock."""


def finish(steps: Steps[Result], *, is_timed: bool = True) -> Result:
    """Return the result of ``steps``, running the steps that it yields first.

    Raises
    ------
    OutOfTime
        The deadline of :mod:`mace.clock` has passed; never where the steps are not timed.

    Examples
    --------
    >>> def count(depth: int) -> Steps[int]:
    ...     if depth == 0:
    ...         return 0
    ...     below: int = yield count(depth - 1)
    ...     return below + 1
    >>> finish(count(100_000))
    100000
    """
    pending: list[Steps[Any]] = [steps]
    value: Any = None
    taken = 0
    while pending:
        if is_timed and taken % STEPS_BETWEEN_LOOKS == 0:
            check()
        taken += 1
        try:
            below = pending[-1].send(value)
        except StopIteration as stop:
            pending.pop()
            value = stop.value
        else:
            pending.append(below)
            value = None
    result: Result = value
    return result


def each(parts: Iterable[Steps[Result]]) -> Steps[list[Result]]:
    """Return the results of several steps, in order."""
    results: list[Result] = []
    for part in parts:
        result: Result = yield part
        results.append(result)
    return results
