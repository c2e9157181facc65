"""When an expression has a value: no divisor is zero, and nothing that is read is missing."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from mace.language import syntax
from mace.language.run import evaluate
from mace.language.walk import fold

Node = syntax.Expression | syntax.Guard


def has_value(node: Node, *, asked: frozenset[str] = frozenset()) -> syntax.Guard:
    """Return the guard that holds where ``node`` can be evaluated, parts left out by a short circuit included.

    Parameters
    ----------
    node
        An expression or a guard.
    asked
        The inputs that may be missing; reading one of them needs it to be there.

    Examples
    --------
    >>> from mace.language import show_formula
    >>> show_formula(has_value(syntax.Binary("/", syntax.Variable("a"), syntax.Variable("b"))))
    'b ≠ 0'
    """
    return syntax.conjunction(_without_repeats(fold(node, partial(_condition, asked))))


def asked_about(command: syntax.Command) -> frozenset[str]:
    """Return the inputs of which ``command`` asks whether they are missing."""
    return frozenset(node.name for node in syntax.nodes(command) if isinstance(node, syntax.Missing))


def divides_by_variable(program: syntax.Program) -> bool:
    """Return whether some division of ``program`` is by anything but a number other than 0."""
    quotients = (node for node in syntax.nodes(program.body) if isinstance(node, syntax.Binary) and node.name == "/")
    return any(syntax.variables(node.right) or not evaluate(node.right, {}) for node in quotients)


def _without_repeats(guard: syntax.Guard) -> Iterable[syntax.Guard]:
    """Yield the conjuncts, each presence once; divisors are not compared, for they may be deep."""
    seen: set[syntax.Guard] = set()
    for part in syntax.conjuncts(guard):
        if isinstance(part, syntax.Not):
            if part in seen:
                continue
            seen.add(part)
        yield part


def _condition(asked: frozenset[str], node: Node, below: list[syntax.Guard]) -> syntax.Guard:
    """Return where a node has a value, from where its children have one."""
    match node:
        case syntax.Variable(name):
            return syntax.Not(syntax.Missing(name)) if name in asked else syntax.TRUE
        case syntax.And() | syntax.Or():
            return _short_circuit(node, below)
        case syntax.Binary("/", _, syntax.Constant(value)) if value != 0:
            return syntax.conjunction(below)
        case syntax.Binary("/", _, divisor):
            return syntax.conjunction([*below, syntax.Compare("!=", divisor, syntax.ZERO)])
        case _:
            return syntax.conjunction(below)


def _short_circuit(node: syntax.And | syntax.Or, conditions: list[syntax.Guard]) -> syntax.Guard:
    """A part must have a value only where the parts before it have not decided yet."""
    result: syntax.Guard = syntax.TRUE
    for part, condition in zip(reversed(node.parts), reversed(conditions), strict=True):
        decided = syntax.negation(part) if isinstance(node, syntax.And) else part
        later = syntax.TRUE if result == syntax.TRUE else syntax.disjunction([decided, result])
        result = syntax.conjunction([condition, later])
    return result
