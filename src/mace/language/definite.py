"""Which variables surely have a value."""

from __future__ import annotations

from mace.language import syntax
from mace.language.trampoline import Steps, finish


def surely_assigned(command: syntax.Command, known: frozenset[str]) -> frozenset[str] | None:
    """Return the names that have a value after ``command`` if ``known`` have one before; None if it always returns.

    Examples
    --------
    >>> from mace.language.syntax import TRUE, ZERO, Assign, If, Return
    >>> surely_assigned(If(TRUE, Assign("a", ZERO), Return(ZERO)), frozenset())
    frozenset({'a'})
    """
    return finish(_after(command, known))


def _after(command: syntax.Command, known: frozenset[str]) -> Steps[frozenset[str] | None]:
    match command:
        case syntax.Skip():
            return known
        case syntax.Assign(name, _):
            return known | {name}
        case syntax.Return():
            return None
        case syntax.Sequence(parts):
            current: frozenset[str] | None = known
            for part in parts:
                if current is None:
                    return None
                current = yield _after(part, current)
            return current
        case syntax.If(_, then, otherwise):
            first: frozenset[str] | None = yield _after(then, known)
            second: frozenset[str] | None = yield _after(otherwise, known)
            if first is None or second is None:
                return second if first is None else first
            return first & second
        case syntax.For(_, start, stop, body):
            turned: frozenset[str] | None = yield _after(body, known)
            return turned if start < stop else known
