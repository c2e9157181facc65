"""Names that nobody uses yet, and the names that a program uses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count

from mace.clock import check
from mace.language.syntax import Assign, Command, For, If, Program, Return, Sequence, Skip, names
from mace.language.trampoline import STEPS


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


def commands(command: Command) -> Iterator[Command]:
    """Yield every command inside ``command``, itself first, in the order of the text; look at the clock on the way."""
    pending: list[Command] = [command]
    for number in count(1):
        if not pending:
            return
        if number % STEPS == 0:
            check()
        current = pending.pop()
        yield current
        match current:
            case Sequence(parts):
                pending.extend(reversed(parts))
            case If(_, then, otherwise):
                pending += (otherwise, then)
            case For(_, _, _, body):
                pending.append(body)
            case Skip() | Assign() | Return():
                pass


def assigned(command: Command) -> tuple[str, ...]:
    """Return the names that ``command`` may assign, in the order of the text; loop variables are not among them."""
    return tuple(dict.fromkeys(part.name for part in commands(command) if isinstance(part, Assign)))


def all_names(program: Program) -> frozenset[str]:
    """Return every name of ``program``: inputs, variables read or assigned, loop variables."""
    found = set(program.inputs)
    for command in commands(program.body):
        match command:
            case Assign(name, value):
                found.add(name)
                found.update(names(value))
            case Return(value):
                found.update(names(value))
            case If(guard, _, _):
                found.update(names(guard))
            case For(name, _, _, _):
                found.add(name)
            case Skip() | Sequence():
                pass
    return frozenset(found)


def has_return(command: Command) -> bool:
    """Whether a return occurs in ``command``."""
    return any(isinstance(part, Return) for part in commands(command))
