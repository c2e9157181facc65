"""What is asked for when it is first wanted, and kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Later(Generic[T]):
    """Something that takes a question of its own; pickled, it is what is known of it.

    Attributes
    ----------
    known : optional
        What it is, where it was asked for.
    """

    def __init__(self, ask: Callable[[], T] | None, known: T | None = None) -> None:
        self._ask, self.known = ask, known

    def __reduce__(self) -> tuple[type[Later[T]], tuple[None, T | None]]:
        return type(self), (None, self.known)

    def get(self) -> T | None:
        """Return it; ``None`` where it was not asked for in the process that could."""
        if self.known is None and self._ask is not None:
            self.known = self._ask()
        return self.known
