"""Records that are the sequence of what they hold: answers, alternatives, reasons, batches."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import TypeVar, overload

T = TypeVar("T")


class Listed(Sequence[T]):
    """A sequence of the entries of one tuple."""

    __slots__ = ()

    @property
    @abstractmethod
    def _entries(self) -> tuple[T, ...]:
        """The tuple."""

    def __len__(self) -> int:
        return len(self._entries)

    @overload
    def __getitem__(self, index: int) -> T: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[T, ...]: ...

    def __getitem__(self, index: int | slice) -> T | tuple[T, ...]:
        return self._entries[index]

    def __iter__(self) -> Iterator[T]:
        return iter(self._entries)
