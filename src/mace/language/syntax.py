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

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

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
    return Constant(Fraction(value))


def conjunction(parts: Iterable[Guard]) -> Guard:
    """Return the conjunction of ``parts``, flattened, without trivial parts."""
    kept: list[Guard] = []
    for part in parts:
        match part:
            case Truth(True):
                continue
            case Truth(False):
                return FALSE
            case And(inner):
                kept.extend(inner)
            case _:
                kept.append(part)
    if not kept:
        return TRUE
    return kept[0] if len(kept) == 1 else And(tuple(kept))


def disjunction(parts: Iterable[Guard]) -> Guard:
    """Return the disjunction of ``parts``, flattened, without trivial parts."""
    kept: list[Guard] = []
    for part in parts:
        match part:
            case Truth(False):
                continue
            case Truth(True):
                return TRUE
            case Or(inner):
                kept.extend(inner)
            case _:
                kept.append(part)
    if not kept:
        return FALSE
    return kept[0] if len(kept) == 1 else Or(tuple(kept))


def sequence(parts: Iterable[Command]) -> Command:
    """Return the composition of ``parts``, flattened, without skips."""
    kept: list[Command] = []
    for part in parts:
        match part:
            case Skip():
                continue
            case Sequence(inner):
                kept.extend(inner)
            case _:
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


_OPPOSITE: dict[CompareName, CompareName] = {
    "<": ">=",
    "<=": ">",
    "==": "!=",
    "!=": "==",
    ">": "<=",
    ">=": "<",
}


def negation(guard: Guard) -> Guard:
    """Return the negation of ``guard``, pushed down to its atoms."""
    match guard:
        case Truth(value):
            return Truth(not value)
        case Compare(name, left, right):
            return Compare(_OPPOSITE[name], left, right)
        case Not(part):
            return part
        case And(parts):
            return Or(tuple(negation(part) for part in parts))
        case Or(parts):
            return And(tuple(negation(part) for part in parts))
        case Missing():
            return Not(guard)


def variables(node: Expression | Guard) -> frozenset[str]:
    """Return the names that occur in an expression or guard."""
    return frozenset(_names(node))


def names(node: Expression | Guard) -> tuple[str, ...]:
    """Return the names that occur in an expression or guard, each once, in the order of the text."""
    return tuple(dict.fromkeys(_names(node)))


def _names(node: Expression | Guard) -> Iterator[str]:
    pending: list[Expression | Guard] = [node]
    while pending:
        match pending.pop():
            case Variable(name) | Missing(name):
                yield name
            case Unary(_, operand):
                pending.append(operand)
            case Binary(_, left, right) | Compare(_, left, right):
                pending += (right, left)
            case Indicator(guard) | Not(guard):
                pending.append(guard)
            case And(parts) | Or(parts):
                pending.extend(reversed(parts))
            case Constant() | Truth():
                pass
