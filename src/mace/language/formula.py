"""Path formulae and characteristic formulae (Appendix A): a program as one guard over its inputs and its result.

The formula of a program holds of inputs and ``y``, for some values of the program's variables, exactly where
the program returns ``y``. A program that raises (a division by zero) has no such ``y``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mace.errors import InvalidProgram
from mace.language import syntax
from mace.language.naming import Fresh, assigned, commands
from mace.language.safety import asked_about, has_value
from mace.language.single import single_assignment
from mace.language.substitute import rename
from mace.language.trampoline import Steps, finish
from mace.language.unroll import falls_through


def path_formulae(program: syntax.Program, result: str = "y") -> tuple[syntax.Guard, ...]:
    """Return the paper's PF: one conjunction a path through the program. Their number may be exponential.

    Examples
    --------
    >>> from mace.language import parse, show_formula
    >>> tree = parse("lambda x1, x2: 0 if x1 > 1 else x2").program
    >>> [show_formula(path) for path in path_formulae(tree)]
    ['x1 > 1 ∧ y = 0', 'x1 ≤ 1 ∧ y = x2']
    """
    ready = prepare(program, result=result)
    return finish(_paths(ready.body, exact_semantics(ready, result)))


def literal(program: syntax.Program, result: str = "y") -> syntax.Guard:
    """Return the paper's characteristic formula: the disjunction of the path formulae."""
    return syntax.disjunction(path_formulae(program, result))


def characteristic(program: syntax.Program, *, result: str = "y", prefix: str = "") -> syntax.Guard:
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
    return compact(ready.body, exact_semantics(ready, result))


@dataclass(frozen=True, slots=True)
class Semantics:
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
    equation: Callable[[str, syntax.Expression], syntax.Guard]
    test: Callable[[syntax.Guard], syntax.Guard]
    defined: Callable[[syntax.Expression | syntax.Guard], syntax.Guard]


def equal(name: str, value: syntax.Expression) -> syntax.Guard:
    """Return ``name = value``; nothing at all for ``name = name``."""
    return syntax.TRUE if value == syntax.Variable(name) else syntax.Compare("==", syntax.Variable(name), value)


def exact_semantics(program: syntax.Program, result: str) -> Semantics:
    """Return the semantics in exact arithmetic."""
    asked = asked_about(program.body)
    return Semantics(result, equal, lambda guard: guard, lambda node: has_value(node, asked=asked))


def prepare(program: syntax.Program, *, result: str = "y", prefix: str = "") -> syntax.Program:
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
    return syntax.Program(single.inputs, rename(single.body, new))


def _returned(program: syntax.Program) -> str | None:
    """Return the one variable that every return of ``program`` returns; None where there is none."""
    values = [part.value for part in commands(program.body) if isinstance(part, syntax.Return)]
    found = {value.name if isinstance(value, syntax.Variable) else None for value in values}
    name = found.pop() if len(found) == 1 else None
    return name if name in assigned(program.body) else None


def compact(body: syntax.Command, semantics: Semantics) -> syntax.Guard:
    """Return the formula of a single-assignment command: one conjunct a command, one disjunction a conditional."""
    return finish(_compact(body, semantics, frozenset()))


def _compact(command: syntax.Command, semantics: Semantics, known: frozenset[str]) -> Steps[syntax.Guard]:
    match command:
        case syntax.Skip():
            return syntax.TRUE
        case syntax.Assign(name, value):
            return _equation(name, value, semantics, known)
        case syntax.Return(value):
            return _equation(semantics.result, value, semantics, known)
        case syntax.Sequence(parts):
            formulas: list[syntax.Guard] = []
            for part in parts:
                formulas.append((yield _compact(part, semantics, known)))
                known |= _present(formulas[-1])
            return syntax.conjunction(formulas)
        case syntax.If(guard, then, otherwise):
            defined, known = _defined(guard, semantics, known)
            yes, no = semantics.test(guard), semantics.test(syntax.negation(guard))
            first: syntax.Guard = yield _compact(then, semantics, known | _present(yes))
            second: syntax.Guard = yield _compact(otherwise, semantics, known | _present(no))
            return syntax.conjunction(
                [defined, syntax.disjunction([syntax.conjunction([yes, first]), syntax.conjunction([no, second])])]
            )
        case syntax.For():  # pragma: no cover - a single-assignment program has no loops
            raise AssertionError("a loop outlived unrolling")


def _paths(command: syntax.Command, semantics: Semantics) -> Steps[tuple[syntax.Guard, ...]]:
    match command:
        case syntax.Sequence(parts):
            paths: tuple[syntax.Guard, ...] = (syntax.TRUE,)
            for part in parts:
                last: tuple[syntax.Guard, ...] = yield _paths(part, semantics)
                paths = tuple(syntax.conjunction([path, step]) for path in paths for step in last)
            return paths
        case syntax.If(guard, then, otherwise):
            defined = semantics.defined(guard)
            first: tuple[syntax.Guard, ...] = yield _paths(then, semantics)
            second: tuple[syntax.Guard, ...] = yield _paths(otherwise, semantics)
            yes, no = semantics.test(guard), semantics.test(syntax.negation(guard))
            return (
                *(syntax.conjunction([defined, yes, path]) for path in first),
                *(syntax.conjunction([defined, no, path]) for path in second),
            )
        case _:
            formula: syntax.Guard = yield _compact(command, semantics, frozenset())
            return (formula,)


def _equation(name: str, value: syntax.Expression, semantics: Semantics, known: frozenset[str]) -> syntax.Guard:
    defined, _ = _defined(value, semantics, known)
    return syntax.conjunction([defined, semantics.equation(name, value)])


def _defined(
    node: syntax.Expression | syntax.Guard, semantics: Semantics, known: frozenset[str]
) -> tuple[syntax.Guard, frozenset[str]]:
    """Return the condition of ``node``, without the presences already known; and what is known after it."""
    condition = semantics.defined(node)
    parts = syntax.conjuncts(condition)
    new = [part for part in parts if not (_presence(part) & known)]
    return syntax.conjunction(new), known | _present(condition)


def _present(guard: syntax.Guard) -> frozenset[str]:
    """Return the inputs that ``guard`` says are not missing."""
    parts = syntax.conjuncts(guard)
    return frozenset(name for part in parts for name in _presence(part))


def _presence(guard: syntax.Guard) -> frozenset[str]:
    match guard:
        case syntax.Not(syntax.Missing(name)):
            return frozenset([name])
        case _:
            return frozenset()
