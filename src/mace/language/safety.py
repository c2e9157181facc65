"""When an expression has a value: no divisor is zero, and nothing that is read is missing."""

from __future__ import annotations

from collections.abc import Iterable

from mace.language import syntax
from mace.language.naming import commands
from mace.language.run import evaluate
from mace.language.trampoline import Steps, each, finish

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
    >>> show_formula(has_value(Binary("/", Variable("a"), Variable("b"))))
    'b ≠ 0'
    """
    return syntax.conjunction(_without_repeats(finish(_condition(node, asked))))


def asked_about(command: syntax.Command) -> frozenset[str]:
    """Return the inputs of which ``command`` asks whether they are missing."""
    return frozenset(name for node in _nodes(command) for name in _asked(node))


def divides_by_variable(program: syntax.Program) -> bool:
    """Return whether some division of ``program`` is by anything but a number other than 0."""
    divisors = [divisor for node in _nodes(program.body) for divisor in _divisors(node)]
    return any(syntax.variables(divisor) or not evaluate(divisor, {}) for divisor in divisors)


def _divisors(node: Node) -> Iterable[syntax.Expression]:
    pending: list[Node] = [node]
    while pending:
        match pending.pop():
            case syntax.Binary(name, left, right):
                pending += (left, right)
                if name == "/":
                    yield right
            case syntax.Compare(_, left, right):
                pending += (left, right)
            case syntax.Unary(_, inner) | syntax.Indicator(inner) | syntax.Not(inner):
                pending.append(inner)
            case syntax.And(parts) | syntax.Or(parts):
                pending.extend(parts)
            case _:
                continue


def _nodes(command: syntax.Command) -> Iterable[Node]:
    for part in commands(command):
        match part:
            case syntax.Assign(_, node) | syntax.Return(node) | syntax.If(node, _, _):
                yield node
            case _:
                continue


def _asked(node: Node) -> Iterable[str]:
    pending: list[Node] = [node]
    while pending:
        match pending.pop():
            case syntax.Missing(name):
                yield name
            case syntax.Unary(_, operand):
                pending.append(operand)
            case syntax.Binary(_, left, right) | syntax.Compare(_, left, right):
                pending += (left, right)
            case syntax.Indicator(guard) | syntax.Not(guard):
                pending.append(guard)
            case syntax.And(parts) | syntax.Or(parts):
                pending.extend(parts)
            case syntax.Variable() | syntax.Constant() | syntax.Truth():
                pass


def _without_repeats(guard: syntax.Guard) -> Iterable[syntax.Guard]:
    """Yield the conjuncts, each presence once; divisors are not compared, for they may be deep."""
    seen: set[syntax.Guard] = set()
    for part in guard.parts if isinstance(guard, syntax.And) else (guard,):
        if isinstance(part, syntax.Not):
            if part in seen:
                continue
            seen.add(part)
        yield part


def _condition(node: Node, asked: frozenset[str]) -> Steps[syntax.Guard]:
    match node:
        case syntax.Constant() | syntax.Truth() | syntax.Missing():
            return syntax.TRUE
        case syntax.Variable(name):
            return syntax.Not(syntax.Missing(name)) if name in asked else syntax.TRUE
        case syntax.Unary(_, inner) | syntax.Indicator(inner) | syntax.Not(inner):
            below: syntax.Guard = yield _condition(inner, asked)
            return below
        case syntax.Binary(_, left, right) | syntax.Compare(_, left, right):
            first: syntax.Guard = yield _condition(left, asked)
            second: syntax.Guard = yield _condition(right, asked)
            return syntax.conjunction([first, second, _divisible(node)])
        case syntax.And(parts) | syntax.Or(parts):
            conditions: list[syntax.Guard] = yield each(_condition(part, asked) for part in parts)
            return _short_circuit(node, conditions)


def _divisible(node: Node) -> syntax.Guard:
    match node:
        case syntax.Binary("/", _, syntax.Constant(value)) if value != 0:
            return syntax.TRUE
        case syntax.Binary("/", _, divisor):
            return syntax.Compare("!=", divisor, syntax.ZERO)
        case _:
            return syntax.TRUE


def _short_circuit(node: syntax.And | syntax.Or, conditions: list[syntax.Guard]) -> syntax.Guard:
    """A part must have a value only where the parts before it have not decided yet."""
    result: syntax.Guard = syntax.TRUE
    for part, condition in zip(reversed(node.parts), reversed(conditions), strict=True):
        decided = syntax.negation(part) if isinstance(node, syntax.And) else part
        later = syntax.TRUE if result == syntax.TRUE else syntax.disjunction([decided, result])
        result = syntax.conjunction([condition, later])
    return result
