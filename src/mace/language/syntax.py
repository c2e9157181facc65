"""The core language of the paper's Appendix A: expressions, guards, commands, programs.

The classes are the grammar, one class a production. Everything is frozen and compares by value.

Numbers are exact: a constant is a :class:`~fractions.Fraction`, and a Python float stands for the dyadic fraction
that it is. A variable that stands for an ordinal or categorical feature holds the *position* of its level, a number
too; the front end (:mod:`mace.language.parse`) turns level names into positions.

Two productions go beyond the letter of the paper, and both are shorthands for its conditional:
``Indicator(b)`` (1 where ``b`` holds, else 0), and ``Missing(x)``, a unary predicate that holds where a feature has
no value. Four of the unary functions are roundings, which only constraints use (:mod:`mace.language.roundings`).

A *formula* is a guard: the characteristic formula of a program is a guard over its inputs, its variables and ``y``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from operator import attrgetter
from typing import Any, Literal

from mace.exact import exactly

UnaryName = Literal["neg", "abs", "decimal", "decimal32", "decimal16", "float"]
BinaryName = Literal["+", "-", "*", "/", "min", "max"]
CompareName = Literal["<", "<=", "==", "!=", ">", ">="]


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable; an input of the program when no command assigns it."""

    name: str


@dataclass(frozen=True, slots=True)
class Constant:
    """An exact number."""

    value: Fraction


@dataclass(frozen=True, slots=True)
class Unary:
    """``c1(e)``: a unary function."""

    name: UnaryName
    operand: Expression


@dataclass(frozen=True, slots=True)
class Binary:
    """``c2(e1, e2)``: a binary function."""

    name: BinaryName
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Indicator:
    """1 where the guard holds, else 0."""

    guard: Guard


Expression = Variable | Constant | Unary | Binary | Indicator


@dataclass(frozen=True, slots=True)
class Truth:
    """The guard that always (or never) holds."""

    value: bool


@dataclass(frozen=True, slots=True)
class Missing:
    """``P1(x)``: the feature ``name`` has no value (NaN in the row)."""

    name: str


@dataclass(frozen=True, slots=True)
class Compare:
    """``P2(e1, e2)``: a comparison."""

    name: CompareName
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class And:
    """All parts hold; evaluated from the left, stopping at the first that fails."""

    parts: tuple[Guard, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Some part holds; evaluated from the left, stopping at the first that holds."""

    parts: tuple[Guard, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """The part does not hold."""

    part: Guard


Guard = Truth | Missing | Compare | And | Or | Not


@dataclass(frozen=True, slots=True)
class Skip:
    """Do nothing."""


@dataclass(frozen=True, slots=True)
class Assign:
    """``x := e``."""

    name: str
    value: Expression


@dataclass(frozen=True, slots=True)
class Sequence:
    """``c1; c2; ...``."""

    parts: tuple[Command, ...]


@dataclass(frozen=True, slots=True)
class If:
    """``if b then c1 else c2``."""

    guard: Guard
    then: Command
    otherwise: Command


@dataclass(frozen=True, slots=True)
class For:
    """``for i = start, ..., stop - 1 do c``: a syntactically bounded loop."""

    name: str
    start: int
    stop: int
    body: Command


@dataclass(frozen=True, slots=True)
class Return:
    """``return e``."""

    value: Expression


Command = Skip | Assign | Sequence | If | For | Return

Node = Expression | Guard | Command


@dataclass(frozen=True, slots=True)
class Program:
    """A command with the names of its inputs, in order."""

    inputs: tuple[str, ...]
    body: Command


TRUE = Truth(True)
FALSE = Truth(False)
ZERO = Constant(Fraction(0))
ONE = Constant(Fraction(1))


def constant(value: int | float | Fraction) -> Constant:
    """Return the constant of a number; a float stands for exactly the fraction that it is."""
    return Constant(exactly(value))


def conjunction(parts: Iterable[Guard]) -> Guard:
    """Return the conjunction of ``parts``, flattened, without trivial parts."""
    return _junction(And, parts, neutral=TRUE)


def between(value: Expression, low: int | float | Fraction | None, high: int | float | Fraction | None) -> Guard:
    """Return that an expression lies between two numbers, both included; that it is one where they are the same; ``None`` is no end."""
    if low is not None and low == high:
        return Compare("==", value, constant(low))
    ends = [] if low is None else [Compare(">=", value, constant(low))]
    return conjunction(ends if high is None else [*ends, Compare("<=", value, constant(high))])


def conjuncts(guard: Guard) -> tuple[Guard, ...]:
    """Return the guards that must all hold."""
    return guard.parts if isinstance(guard, And) else (guard,)


def bound(guard: Guard) -> tuple[str, CompareName, Fraction] | None:
    """Return the parts of ``variable sign constant``; ``None`` of any other guard."""
    if isinstance(guard, Compare) and isinstance(guard.left, Variable) and isinstance(guard.right, Constant):
        return guard.left.name, guard.name, guard.right.value
    return None


def compared_with(guard: Guard) -> list[Fraction] | None:
    """Return the numbers that a guard on one feature compares it with; ``None`` where it does more than compare."""
    found: list[Fraction] = []
    pending: list[Guard] = [guard]
    while pending:
        match pending.pop():
            case Compare(_, Variable(), Constant(value)) | Compare(_, Constant(value), Variable()):
                found.append(value)
            case Compare():
                return None
            case And(parts) | Or(parts):
                pending.extend(parts)
            case Not(part):
                pending.append(part)
            case _:
                pass
    return found


def disjunction(parts: Iterable[Guard]) -> Guard:
    """Return the disjunction of ``parts``, flattened, without trivial parts."""
    return _junction(Or, parts, neutral=FALSE)


def _junction(kind: type[And] | type[Or], parts: Iterable[Guard], *, neutral: Truth) -> Guard:
    kept: list[Guard] = []
    for part in parts:
        if isinstance(part, kind):
            kept.extend(part.parts)
        elif not isinstance(part, Truth):
            kept.append(part)
        elif part.value is not neutral.value:
            return part
    if not kept:
        return neutral
    return kept[0] if len(kept) == 1 else kind(tuple(kept))


def sequence(parts: Iterable[Command]) -> Command:
    """Return the composition of ``parts``, flattened, without skips."""
    kept: list[Command] = []
    for part in parts:
        if isinstance(part, Sequence):
            kept.extend(part.parts)
        elif not isinstance(part, Skip):
            kept.append(part)
    if not kept:
        return Skip()
    return kept[0] if len(kept) == 1 else Sequence(tuple(kept))


def total(terms: Iterable[Expression]) -> Expression:
    """Return the sum of ``terms``, added from the left; 0 when there are none."""
    result: Expression | None = None
    for term in terms:
        result = term if result is None else Binary("+", result, term)
    return ZERO if result is None else result


def summands(expression: Expression) -> list[Expression]:
    """Return the terms of a sum, in order; walked without recursion."""
    terms: list[Expression] = []
    pending = [expression]
    while pending:
        match pending.pop():
            case Binary("+", left, right):
                pending += [right, left]
            case term:
                terms.append(term)
    return terms


OPPOSITE: dict[CompareName, CompareName] = {"<": ">=", "<=": ">", "==": "!=", "!=": "==", ">": "<=", ">=": "<"}
"""``a OPPOSITE b`` holds where ``a sign b`` does not."""

MIRRORED: dict[CompareName, CompareName] = {"<": ">", "<=": ">=", "==": "==", "!=": "!=", ">": "<", ">=": "<="}
"""``b MIRRORED a`` is ``a sign b``."""


def negation(guard: Guard) -> Guard:
    """Return the negation of ``guard``, pushed down to its atoms."""
    match guard:
        case Truth(value):
            return Truth(not value)
        case Compare(name, left, right):
            return Compare(OPPOSITE[name], left, right)
        case Not(part):
            return part
        case And(parts):
            return Or(tuple(negation(part) for part in parts))
        case Or(parts):
            return And(tuple(negation(part) for part in parts))
        case Missing():
            return Not(guard)


_CHILDREN: dict[type, Callable[[Any], tuple[Any, ...]]] = {
    Unary: lambda node: (node.operand,),
    Binary: attrgetter("left", "right"),
    Indicator: lambda node: (node.guard,),
    Compare: attrgetter("left", "right"),
    And: attrgetter("parts"),
    Or: attrgetter("parts"),
    Not: lambda node: (node.part,),
    Assign: lambda node: (node.value,),
    Sequence: attrgetter("parts"),
    If: attrgetter("guard", "then", "otherwise"),
    For: lambda node: (node.body,),
    Return: lambda node: (node.value,),
}
_COMMANDS: dict[type, Callable[[Any], tuple[Command, ...]]] = {
    Sequence: _CHILDREN[Sequence],
    If: attrgetter("then", "otherwise"),
    For: _CHILDREN[For],
}


def children(node: Node) -> tuple[Node, ...]:
    """Return the nodes that a node is made of, in the order of the text."""
    get = _CHILDREN.get(type(node))
    return get(node) if get else ()


def operands(node: Node) -> tuple[Node, ...]:
    """Return the children of a node that is calculated; an indicator has none, for its guard is no number."""
    return () if isinstance(node, Indicator) else children(node)


def subcommands(node: Node) -> tuple[Command, ...]:
    """Return the commands among the children of a command."""
    get = _COMMANDS.get(type(node))
    return get(node) if get else ()


def nodes(node: Node, into: Callable[[Node], tuple[Node, ...]] = children) -> Iterator[Node]:
    """Yield a node and every node inside it, in the order of the text."""
    pending = [node]
    while pending:
        current = pending.pop()
        yield current
        pending.extend(reversed(into(current)))


def variables(node: Node) -> frozenset[str]:
    """Return the names that are read in an expression, guard or command."""
    match node:
        case Compare(_, Variable(name), Constant()):
            return frozenset((name,))
        case _:
            return frozenset(_names(node))


def names(node: Node) -> tuple[str, ...]:
    """Return the names that are read in an expression, guard or command, each once, in the order of the text."""
    return tuple(dict.fromkeys(_names(node)))


def _names(node: Node) -> Iterator[str]:
    return (part.name for part in nodes(node) if isinstance(part, Variable | Missing))
