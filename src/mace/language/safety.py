"""When an expression has a value: no divisor is zero, and nothing that is read is missing."""

from __future__ import annotations

from collections.abc import Iterable

from mace.language.naming import commands
from mace.language.run import evaluate
from mace.language.syntax import (
    TRUE,
    ZERO,
    And,
    Assign,
    Binary,
    Command,
    Compare,
    Constant,
    Expression,
    Guard,
    If,
    Indicator,
    Missing,
    Not,
    Or,
    Program,
    Return,
    Truth,
    Unary,
    Variable,
    conjunction,
    disjunction,
    negation,
    variables,
)
from mace.language.trampoline import Steps, each, finish

Node = Expression | Guard


def has_value(node: Node, *, asked: frozenset[str] = frozenset()) -> Guard:
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
    return conjunction(_without_repeats(finish(_condition(node, asked))))


def asked_about(command: Command) -> frozenset[str]:
    """Return the inputs of which ``command`` asks whether they are missing."""
    return frozenset(name for node in _nodes(command) for name in _asked(node))


def divides_by_variable(program: Program) -> bool:
    """Return whether some division of ``program`` is by anything but a number other than 0."""
    divisors = [divisor for node in _nodes(program.body) for divisor in _divisors(node)]
    return any(variables(divisor) or not evaluate(divisor, {}) for divisor in divisors)


def _divisors(node: Node) -> Iterable[Expression]:
    pending: list[Node] = [node]
    while pending:
        match pending.pop():
            case Binary(name, left, right):
                pending += (left, right)
                if name == "/":
                    yield right
            case Compare(_, left, right):
                pending += (left, right)
            case Unary(_, inner) | Indicator(inner) | Not(inner):
                pending.append(inner)
            case And(parts) | Or(parts):
                pending.extend(parts)
            case _:
                continue


def _nodes(command: Command) -> Iterable[Node]:
    for part in commands(command):
        match part:
            case Assign(_, node) | Return(node) | If(node, _, _):
                yield node
            case _:
                continue


def _asked(node: Node) -> Iterable[str]:
    pending: list[Node] = [node]
    while pending:
        match pending.pop():
            case Missing(name):
                yield name
            case Unary(_, operand):
                pending.append(operand)
            case Binary(_, left, right) | Compare(_, left, right):
                pending += (left, right)
            case Indicator(guard) | Not(guard):
                pending.append(guard)
            case And(parts) | Or(parts):
                pending.extend(parts)
            case Variable() | Constant() | Truth():
                pass


def _without_repeats(guard: Guard) -> Iterable[Guard]:
    """Yield the conjuncts, each presence once; divisors are not compared, for they may be deep."""
    seen: set[Guard] = set()
    for part in guard.parts if isinstance(guard, And) else (guard,):
        if isinstance(part, Not):
            if part in seen:
                continue
            seen.add(part)
        yield part


def _condition(node: Node, asked: frozenset[str]) -> Steps[Guard]:
    match node:
        case Constant() | Truth() | Missing():
            return TRUE
        case Variable(name):
            return Not(Missing(name)) if name in asked else TRUE
        case Unary(_, inner) | Indicator(inner) | Not(inner):
            below: Guard = yield _condition(inner, asked)
            return below
        case Binary(_, left, right) | Compare(_, left, right):
            first: Guard = yield _condition(left, asked)
            second: Guard = yield _condition(right, asked)
            return conjunction([first, second, _divisible(node)])
        case And(parts) | Or(parts):
            conditions: list[Guard] = yield each(_condition(part, asked) for part in parts)
            return _short_circuit(node, conditions)


def _divisible(node: Node) -> Guard:
    match node:
        case Binary("/", _, Constant(value)) if value != 0:
            return TRUE
        case Binary("/", _, divisor):
            return Compare("!=", divisor, ZERO)
        case _:
            return TRUE


def _short_circuit(node: And | Or, conditions: list[Guard]) -> Guard:
    """A part must have a value only where the parts before it have not decided yet."""
    result: Guard = TRUE
    for part, condition in zip(reversed(node.parts), reversed(conditions), strict=True):
        decided = negation(part) if isinstance(node, And) else part
        later = TRUE if result == TRUE else disjunction([decided, result])
        result = conjunction([condition, later])
    return result
