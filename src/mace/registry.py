"""Tables from names to ``"module:attribute"`` or modules, resolved on first use, open to other packages' entry points."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from importlib.metadata import entry_points
from typing import Any

from mace.errors import InvalidOption, MaceError, did_you_mean


def resolve(path: str) -> Any:
    """Return the object at ``"module:attribute"``, or the module where there is no attribute."""
    module, _, attribute = path.partition(":")
    found = importlib.import_module(module)
    return getattr(found, attribute) if attribute else found


class Registry(Mapping[str, str]):
    """Names and where to find what they name; nothing is imported before it is asked for.

    Another package adds a name with an entry point of the group ``mace.<kind>``.

    Parameters
    ----------
    kind : str
        What the names are, in the plural: the word in messages and the name of the entry-point group.
    table : mapping of str to str
        Our own names.
    error : type of MaceError
        Raised for an unknown name.
    """

    def __init__(self, kind: str, table: Mapping[str, str], error: type[MaceError] = InvalidOption) -> None:
        self._kind = kind
        self._own = dict(table)
        self._error = error
        self._all: dict[str, str] | None = None

    def _table(self) -> dict[str, str]:
        if self._all is None:
            foreign = {entry.name: entry.value for entry in entry_points(group=f"mace.{self._kind}")}
            self._all = foreign | self._own
        return self._all

    def __getitem__(self, name: str) -> str:
        return self._table()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._table())

    def __len__(self) -> int:
        return len(self._table())

    def load(self, name: str) -> Any:
        """Return the object called ``name``; an unknown name is an error that lists the known ones."""
        if name not in self._table():
            known = ", ".join(repr(known) for known in self)
            raise self._error(f"{name!r} is not one of the {self._kind}. Known: {known}.{did_you_mean(name, self)}")
        return resolve(self._table()[name])
