"""One walker of the syntax: results from the bottom up, and nodes rewritten, without the interpreter's stack.

:func:`~mace.language.syntax.nodes` yields the nodes themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from mace.clock import check
from mace.language import syntax
from mace.language.syntax import Node, children
from mace.language.trampoline import STEPS_BETWEEN_LOOKS

Result = TypeVar("Result")
Kind = TypeVar("Kind", bound=Node)


def fold(
    node: Node,
    combine: Callable[[Any, list[Result]], Result],
    *,
    into: Callable[[Node], tuple[Node, ...]] = children,
    known: Callable[[Any], Result | None] | None = None,
) -> Result:
    """Return what ``combine`` makes of a node and the results of its children, which come first, from the left.

    Parameters
    ----------
    node
        An expression, a guard or a command.
    combine
        Called once a node, with it and the list of its children's results.
    into
        The children that count: all, :func:`~mace.language.syntax.operands` or :func:`~mace.language.syntax.subcommands`.
    known
        Called before the children are looked at: a result other than ``None`` is taken without them.

    Raises
    ------
    OutOfTime
        The deadline of :mod:`mace.clock` has passed.

    Examples
    --------
    >>> from mace.language.syntax import ONE, total
    >>> fold(total([ONE] * 100_000), lambda node, below: 1 + max(below, default=0))
    100000
    """
    results: list[Result] = []
    pending: list[tuple[Node, int]] = [(node, -1)]
    taken = 0
    while pending:
        if taken % STEPS_BETWEEN_LOOKS == 0:
            check()
        taken += 1
        current, count = pending.pop()
        if count < 0:
            if known is not None and (found := known(current)) is not None:
                results.append(found)
                continue
            inner = into(current)
            count = len(inner)
            if count:
                pending.append((current, count))
                pending.extend([(child, -1) for child in reversed(inner)])
                continue
        below = results[len(results) - count :]
        del results[len(results) - count :]
        results.append(combine(current, below))
    return results[0]


def rewrite(node: Kind, change: Callable[[Any], Node], *, instead: Callable[[Any], Node | None] | None = None) -> Kind:
    """Return a node in which every node is what ``change`` makes of it, its children changed before.

    Parameters
    ----------
    node
        An expression, a guard or a command.
    change
        Called from the bottom up.
    instead
        Called from the top down: the node that it returns, if any, replaces the one that it is given and is not looked into.

    Examples
    --------
    >>> from mace.language.syntax import ONE, ZERO, Binary
    >>> rewrite(Binary("+", ZERO, ONE), lambda node: ZERO if node == ONE else node)
    Binary(name='+', left=Constant(value=Fraction(0, 1)), right=Constant(value=Fraction(0, 1)))
    """
    changed: Any = fold(node, lambda old, parts: change(_rebuilt(old, parts)), known=instead)
    result: Kind = changed
    return result


def _rebuilt(node: Any, parts: list[Any]) -> Node:
    """Return a node with other children."""
    kind = type(node)
    if kind in _NAMED:
        return kind(node.name, *parts)  # type: ignore[no-any-return]
    if kind in _JOINED:
        return kind(tuple(parts))  # type: ignore[no-any-return]
    if kind is syntax.For:
        return syntax.For(node.name, node.start, node.stop, *parts)
    return kind(*parts) if parts else node  # type: ignore[no-any-return]


_NAMED = {syntax.Unary, syntax.Binary, syntax.Compare, syntax.Assign}
_JOINED = {syntax.And, syntax.Or, syntax.Sequence}


def map_comparisons(guard: syntax.Guard, change: Callable[[syntax.Compare], syntax.Guard]) -> syntax.Guard:
    """Return a guard with each comparison changed; negations are pushed down to the comparisons first."""
    match guard:
        case syntax.Compare():
            return change(guard)
        case syntax.Not(syntax.Missing()) | syntax.Missing() | syntax.Truth():
            return guard
        case syntax.Not(part):
            return map_comparisons(syntax.negation(part), change)
        case syntax.And(parts):
            return syntax.conjunction(map_comparisons(part, change) for part in parts)
        case syntax.Or(parts):
            return syntax.disjunction(map_comparisons(part, change) for part in parts)
