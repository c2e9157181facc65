"""Path formulae and characteristic formulae (Appendix A): a program as one guard over its inputs and its result.

The formula of a program holds of inputs and ``y``, for some values of the program's variables, exactly where
the program returns ``y``. A program that raises (a division by zero) has no such ``y``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mace.errors import InvalidProgram
from mace.language.naming import Fresh, assigned, commands
from mace.language.safety import asked_about, has_value
from mace.language.single import single_assignment
from mace.language.substitute import rename
from mace.language.syntax import (
    TRUE,
    And,
    Assign,
    Command,
    Compare,
    Expression,
    For,
    Guard,
    If,
    Missing,
    Not,
    Program,
    Return,
    Sequence,
    Skip,
    Variable,
    conjunction,
    disjunction,
    negation,
)
from mace.language.trampoline import Steps, finish
from mace.language.unroll import falls_through


def path_formulae(program: Program, result: str = "y") -> tuple[Guard, ...]:
    """Return the paper's PF: one conjunction a path through the program. Their number may be exponential.

    Examples
    --------
    >>> from mace.language import parse, show_formula
    >>> tree = parse("lambda x1, x2: 0 if x1 > 1 else x2").program
    >>> [show_formula(path) for path in path_formulae(tree)]
    ['x1 > 1 ∧ y = 0', 'x1 ≤ 1 ∧ y = x2']
    """
    ready = prepare(program, result=result)
    return finish(_paths(ready.body, exact_reading(ready, result)))


def literal(program: Program, result: str = "y") -> Guard:
    """Return the paper's characteristic formula: the disjunction of the path formulae."""
    return disjunction(path_formulae(program, result))


def characteristic(program: Program, *, result: str = "y", prefix: str = "") -> Guard:
    """Return the characteristic formula in its compact form, linear in the single-assignment program.

    Parameters
    ----------
    program
        Any program.
    result
        The name of the returned value; no input may have it.
    prefix
        Put before the name of every variable that is neither input nor result, so that the formulas of
        several programs can be joined.

    Examples
    --------
    >>> from mace.language import parse, show_formula
    >>> show_formula(characteristic(parse("lambda x1, x2: 0 if x1 > 1 else x2").program))
    '(x1 > 1 ∧ y = 0) ∨ (x1 ≤ 1 ∧ y = x2)'
    """
    ready = prepare(program, result=result, prefix=prefix)
    return compact(ready.body, exact_reading(ready, result))


@dataclass(frozen=True, slots=True)
class Reading:
    """How the parts of a program become parts of its formula.

    Parameters
    ----------
    result
        The name of the returned value.
    equation
        What ``name := expression`` says, where the expression has a value.
    test
        What it says that a guard holds; asked of a conditional's guard and of its negation.
    defined
        What it says that an expression or guard can be evaluated.
    """

    result: str
    equation: Callable[[str, Expression], Guard]
    test: Callable[[Guard], Guard]
    defined: Callable[[Expression | Guard], Guard]


def equal(name: str, value: Expression) -> Guard:
    """Return ``name = value``; nothing at all for ``name = name``."""
    return TRUE if value == Variable(name) else Compare("==", Variable(name), value)


def exact_reading(program: Program, result: str) -> Reading:
    """Return the reading in exact arithmetic."""
    asked = asked_about(program.body)
    return Reading(result, equal, lambda guard: guard, lambda node: has_value(node, asked=asked))


def prepare(program: Program, *, result: str = "y", prefix: str = "") -> Program:
    """Return the single-assignment form, its variables named so that the result and the inputs stay apart.

    Where the program returns its own variable called ``result`` and nothing else, that variable is the result.
    """
    if result in program.inputs:
        raise InvalidProgram(
            f"the result is called {result!r}, and so is an input. They need different names. Pass another `result`."
        )
    single = single_assignment(program)
    if falls_through(single.body):
        raise InvalidProgram("a path ends without a return. Every path must return. Add a return at the end.")
    own = _returned(single) if _returned(program) == result else None
    fresh = Fresh([*program.inputs, result])
    new = {name: result if name == own else fresh(prefix + name) for name in assigned(single.body)}
    return Program(single.inputs, rename(single.body, new))


def _returned(program: Program) -> str | None:
    """Return the one variable that every return of ``program`` returns; None where there is none."""
    values = [part.value for part in commands(program.body) if isinstance(part, Return)]
    found = {value.name if isinstance(value, Variable) else None for value in values}
    name = found.pop() if len(found) == 1 else None
    return name if name in assigned(program.body) else None


def compact(body: Command, reading: Reading) -> Guard:
    """Return the formula of a single-assignment command: one conjunct a command, one disjunction a conditional."""
    return finish(_compact(body, reading, frozenset()))


def _compact(command: Command, reading: Reading, known: frozenset[str]) -> Steps[Guard]:
    match command:
        case Skip():
            return TRUE
        case Assign(name, value):
            return _equation(name, value, reading, known)
        case Return(value):
            return _equation(reading.result, value, reading, known)
        case Sequence(parts):
            formulas: list[Guard] = []
            for part in parts:
                formulas.append((yield _compact(part, reading, known)))
                known |= _present(formulas[-1])
            return conjunction(formulas)
        case If(guard, then, otherwise):
            defined, known = _defined(guard, reading, known)
            yes, no = reading.test(guard), reading.test(negation(guard))
            first: Guard = yield _compact(then, reading, known | _present(yes))
            second: Guard = yield _compact(otherwise, reading, known | _present(no))
            return conjunction([defined, disjunction([conjunction([yes, first]), conjunction([no, second])])])
        case For():  # pragma: no cover - a single-assignment program has no loops
            raise AssertionError("a loop outlived unrolling")


def _paths(command: Command, reading: Reading) -> Steps[tuple[Guard, ...]]:
    match command:
        case Sequence(parts):
            paths: tuple[Guard, ...] = (TRUE,)
            for part in parts:
                last: tuple[Guard, ...] = yield _paths(part, reading)
                paths = tuple(conjunction([path, step]) for path in paths for step in last)
            return paths
        case If(guard, then, otherwise):
            defined = reading.defined(guard)
            first: tuple[Guard, ...] = yield _paths(then, reading)
            second: tuple[Guard, ...] = yield _paths(otherwise, reading)
            yes, no = reading.test(guard), reading.test(negation(guard))
            return (
                *(conjunction([defined, yes, path]) for path in first),
                *(conjunction([defined, no, path]) for path in second),
            )
        case _:
            formula: Guard = yield _compact(command, reading, frozenset())
            return (formula,)


def _equation(name: str, value: Expression, reading: Reading, known: frozenset[str]) -> Guard:
    defined, _ = _defined(value, reading, known)
    return conjunction([defined, reading.equation(name, value)])


def _defined(node: Expression | Guard, reading: Reading, known: frozenset[str]) -> tuple[Guard, frozenset[str]]:
    """Return the condition of ``node``, without the presences already known; and what is known after it."""
    condition = reading.defined(node)
    parts = condition.parts if isinstance(condition, And) else (condition,)
    new = [part for part in parts if not (_presence(part) & known)]
    return conjunction(new), known | _present(condition)


def _present(guard: Guard) -> frozenset[str]:
    """Return the inputs that ``guard`` says are not missing."""
    parts = guard.parts if isinstance(guard, And) else (guard,)
    return frozenset(name for part in parts for name in _presence(part))


def _presence(guard: Guard) -> frozenset[str]:
    match guard:
        case Not(Missing(name)):
            return frozenset([name])
        case _:
            return frozenset()
