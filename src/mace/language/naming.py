"""Names that nobody uses yet, and the names that a program uses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mace.clock import check
from mace.language import syntax


class Fresh:
    """A supply of names; none is given twice, and none is one of ``taken``.

    Examples
    --------
    >>> fresh = Fresh(["t"])
    >>> fresh("t"), fresh("t"), fresh("u")
    ('t_2', 't_3', 'u')
    """

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = set(taken)
        self._counts: dict[str, int] = {}

    def __call__(self, wanted: str) -> str:
        """Return ``wanted``, or ``wanted_2``, ``wanted_3``, ...: the first that is free; it is taken from now on."""
        count = self._counts.get(wanted, 1)
        name = wanted if count == 1 else f"{wanted}_{count}"
        while name in self._taken:
            count += 1
            name = f"{wanted}_{count}"
        self._counts[wanted] = count
        self._taken.add(name)
        return name


def commands(command: syntax.Command) -> Iterator[syntax.Command]:
    """Yield every command inside ``command``, itself first, in the order of the text; look at the clock on the way."""
    pending: list[syntax.Command] = [command]
    while pending:
        check()
        current = pending.pop()
        yield current
        pending.extend(reversed(syntax.subcommands(current)))


def assigned(command: syntax.Command) -> tuple[str, ...]:
    """Return the names that ``command`` may assign, in the order of the text; loop variables are not among them."""
    return tuple(dict.fromkeys(part.name for part in commands(command) if isinstance(part, syntax.Assign)))


def all_names(program: syntax.Program) -> frozenset[str]:
    """Return every name of ``program``: inputs, variables read or assigned, loop variables."""
    named = syntax.Variable | syntax.Missing | syntax.Assign | syntax.For
    return frozenset([*program.inputs, *(node.name for node in syntax.nodes(program.body) if isinstance(node, named))])


def has_return(command: syntax.Command) -> bool:
    """Whether a return occurs in ``command``."""
    return any(isinstance(part, syntax.Return) for part in commands(command))
