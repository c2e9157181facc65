"""One operation a variable: the form in which each rounding of a program has a name."""

from __future__ import annotations

from dataclasses import dataclass

from mace.language.intervals import is_float
from mace.language.naming import Fresh, all_names
from mace.language.safety import asked_about, has_value
from mace.language.syntax import (
    ONE,
    TRUE,
    ZERO,
    And,
    Assign,
    Binary,
    Command,
    Compare,
    Constant,
    Expression,
    For,
    Guard,
    If,
    Indicator,
    Missing,
    Not,
    Or,
    Program,
    Return,
    Sequence,
    Skip,
    Truth,
    Unary,
    Variable,
    sequence,
)
from mace.language.trampoline import Steps, each, finish


def flatten(program: Program, *, result: str = "y", prefix: str = "") -> Program:
    """Return an equal program with at most one operation in each assignment and return.

    Comparisons are between variables and constants. Parts of a guard that may have no value are calculated only
    where the parts before them have not decided.

    Parameters
    ----------
    program
        A program in single-assignment form; so is what is returned.
    result
        A name that no new variable may have.
    prefix
        Put before the name of every new variable.
    """
    flattener = _Flattener(Fresh([*all_names(program), result]), asked_about(program.body), prefix)
    return Program(program.inputs, finish(flattener.command(program.body)))


@dataclass(frozen=True, slots=True)
class _Flattener:
    """Translates commands; ``before`` receives the assignments that a part needs."""

    fresh: Fresh
    asked: frozenset[str]
    prefix: str

    def command(self, command: Command) -> Steps[Command]:
        before: list[Command] = []
        match command:
            case Skip() | For():
                return command
            case Assign(name, value):
                flat: Expression = yield self.operation(value, before)
                return sequence([*before, Assign(name, flat)])
            case Return(value):
                last: Expression = yield self.operation(value, before)
                return sequence([*before, Return(last)])
            case Sequence(parts):
                done: list[Command] = yield each(map(self.command, parts))
                return sequence(done)
            case If(guard, then, otherwise):
                test: Guard = yield self.guard(guard, before)
                choice = If(test, (yield self.command(then)), (yield self.command(otherwise)))
                return sequence([*before, choice])

    def operation(self, expression: Expression, before: list[Command]) -> Steps[Expression]:
        """Return the expression as one operation on atoms."""
        match expression:
            case Variable() | Constant():
                return expression
            case Unary(name, operand):
                return Unary(name, (yield self.atom(operand, before)))
            case Binary(name, left, right):
                return Binary(name, (yield self.atom(left, before)), (yield self.atom(right, before)))
            case Indicator(guard):
                return Indicator((yield self.guard(guard, before)))

    def atom(self, expression: Expression, before: list[Command]) -> Steps[Expression]:
        """Return a variable or constant with the value of ``expression``."""
        match expression:
            case Variable():
                return expression
            case Constant(value) if value.denominator == 1 or is_float(value):
                return expression
            case _:
                flat: Expression = yield self.operation(expression, before)
                return self._keep(flat, before)

    def _keep(self, value: Expression, before: list[Command]) -> Variable:
        name = self.fresh(f"{self.prefix}t")
        before.append(Assign(name, value))
        return Variable(name)

    def guard(self, guard: Guard, before: list[Command]) -> Steps[Guard]:
        """Return the guard with comparisons between atoms."""
        match guard:
            case Truth() | Missing():
                return guard
            case Compare(name, left, right):
                return Compare(name, (yield self.atom(left, before)), (yield self.atom(right, before)))
            case Not(part):
                return Not((yield self.guard(part, before)))
            case And() | Or():
                joined: Guard = yield self._junction(guard, before)
                return joined

    def _junction(self, guard: And | Or, before: list[Command]) -> Steps[Guard]:
        kind = type(guard)
        done: list[Guard] = []
        for part in guard.parts:
            needed: list[Command] = []
            flat: Guard = yield self.guard(part, needed)
            if not done or not needed or has_value(part, asked=self.asked) == TRUE:
                before.extend(needed)
                done.append(flat)
                continue
            name = self.fresh(f"{self.prefix}t")
            run = sequence([*needed, Assign(name, Indicator(flat))])
            decided = Assign(name, ZERO if kind is And else ONE)
            branches = (run, decided) if kind is And else (decided, run)
            before.append(If(done[0] if len(done) == 1 else kind(tuple(done)), *branches))
            done = [Compare("==", Variable(name), ONE)]
        return done[0] if len(done) == 1 else kind(tuple(done))
