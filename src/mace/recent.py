"""What is kept for the next question, up to a number of things: callers choose targets, weights and steps, and there is no end of these."""

from __future__ import annotations

from threading import Lock
from typing import Generic, TypeVar

MOST_SPACES = 8
"""The most spaces for which something is kept: of round values, of rows outside the one that was given."""

K = TypeVar("K")
V = TypeVar("V")


class Recent(Generic[K, V]):
    """Things by what they were made for; what was last put in the longest ago is forgotten first.

    Threads may share it: what :meth:`get` and :meth:`put` return is good, whatever is forgotten meanwhile. Pickled, it is empty.

    Parameters
    ----------
    most : int
        So many things are kept.

    Examples
    --------
    >>> roots = Recent(2)
    >>> for number in (1, 4, 9):
    ...     _ = roots.put(number, number**0.5)
    >>> roots.get(1), roots.get(4), roots.get(9), len(roots)
    (None, 2.0, 3.0, 2)
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._made: dict[K, V] = {}
        self._lock = Lock()

    def get(self, key: K) -> V | None:
        """Return what was made for something; ``None`` where that is not kept."""
        return self._made.get(key)

    def put(self, key: K, made: V) -> V:
        """Keep what was made for something, or was used once more, and return it."""
        with self._lock:
            self._made.pop(key, None)
            self._made[key] = made
            if len(self._made) > self.most:
                del self._made[next(iter(self._made))]
        return made

    def __len__(self) -> int:
        return len(self._made)

    def __reduce__(self) -> tuple[type[Recent[K, V]], tuple[int]]:
        return type(self), (self.most,)
