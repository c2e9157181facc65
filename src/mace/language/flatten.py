"""One operation a variable: the form in which each rounding of a program has a name."""

from __future__ import annotations

from dataclasses import dataclass

from mace.exact import is_float
from mace.language import syntax
from mace.language.naming import Fresh, all_names
from mace.language.safety import asked_about, has_value
from mace.language.trampoline import Steps, each, finish


def flatten(program: syntax.Program, *, result: str = "y", prefix: str = "") -> syntax.Program:
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
    return syntax.Program(program.inputs, finish(flattener.command(program.body)))


@dataclass(frozen=True, slots=True)
class _Flattener:
    """Translates commands; ``before`` receives the assignments that a part needs."""

    fresh: Fresh
    asked: frozenset[str]
    prefix: str

    def command(self, command: syntax.Command) -> Steps[syntax.Command]:
        before: list[syntax.Command] = []
        match command:
            case syntax.Skip() | syntax.For():
                return command
            case syntax.Assign(name, value):
                flat: syntax.Expression = yield self.operation(value, before)
                return syntax.sequence([*before, syntax.Assign(name, flat)])
            case syntax.Return(value):
                last: syntax.Expression = yield self.operation(value, before)
                return syntax.sequence([*before, syntax.Return(last)])
            case syntax.Sequence(parts):
                done: list[syntax.Command] = yield each(map(self.command, parts))
                return syntax.sequence(done)
            case syntax.If(guard, then, otherwise):
                test: syntax.Guard = yield self.guard(guard, before)
                choice = syntax.If(test, (yield self.command(then)), (yield self.command(otherwise)))
                return syntax.sequence([*before, choice])

    def operation(self, expression: syntax.Expression, before: list[syntax.Command]) -> Steps[syntax.Expression]:
        """Return the expression as one operation on atoms."""
        match expression:
            case syntax.Variable() | syntax.Constant():
                return expression
            case syntax.Unary(name, operand):
                return syntax.Unary(name, (yield self.atom(operand, before)))
            case syntax.Binary(name, left, right):
                return syntax.Binary(name, (yield self.atom(left, before)), (yield self.atom(right, before)))
            case syntax.Indicator(guard):
                return syntax.Indicator((yield self.guard(guard, before)))

    def atom(self, expression: syntax.Expression, before: list[syntax.Command]) -> Steps[syntax.Expression]:
        """Return a variable or constant with the value of ``expression``."""
        match expression:
            case syntax.Variable():
                return expression
            case syntax.Constant(value) if value.denominator == 1 or is_float(value):
                return expression
            case _:
                flat: syntax.Expression = yield self.operation(expression, before)
                return self._keep(flat, before)

    def _keep(self, value: syntax.Expression, before: list[syntax.Command]) -> syntax.Variable:
        name = self.fresh(f"{self.prefix}t")
        before.append(syntax.Assign(name, value))
        return syntax.Variable(name)

    def guard(self, guard: syntax.Guard, before: list[syntax.Command]) -> Steps[syntax.Guard]:
        """Return the guard with comparisons between atoms."""
        match guard:
            case syntax.Truth() | syntax.Missing():
                return guard
            case syntax.Compare(name, left, right):
                return syntax.Compare(name, (yield self.atom(left, before)), (yield self.atom(right, before)))
            case syntax.Not(part):
                return syntax.Not((yield self.guard(part, before)))
            case syntax.And() | syntax.Or():
                joined: syntax.Guard = yield self._junction(guard, before)
                return joined

    def _junction(self, guard: syntax.And | syntax.Or, before: list[syntax.Command]) -> Steps[syntax.Guard]:
        kind = type(guard)
        done: list[syntax.Guard] = []
        for part in guard.parts:
            needed: list[syntax.Command] = []
            flat: syntax.Guard = yield self.guard(part, needed)
            if not done or not needed or has_value(part, asked=self.asked) == syntax.TRUE:
                before.extend(needed)
                done.append(flat)
                continue
            name = self.fresh(f"{self.prefix}t")
            run = syntax.sequence([*needed, syntax.Assign(name, syntax.Indicator(flat))])
            decided = syntax.Assign(name, syntax.ZERO if kind is syntax.And else syntax.ONE)
            branches = (run, decided) if kind is syntax.And else (decided, run)
            before.append(syntax.If(done[0] if len(done) == 1 else kind(tuple(done)), *branches))
            done = [syntax.Compare("==", syntax.Variable(name), syntax.ONE)]
        return done[0] if len(done) == 1 else kind(tuple(done))
