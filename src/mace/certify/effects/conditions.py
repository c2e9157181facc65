"""Conditions on the row that actions lead to, as conditions on the actions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import TypeVar

from mace.certify.effects.actions import EffectsInRange, OnRow
from mace.certify.effects.causes import Causes
from mace.constraints import Condition
from mace.constraints.condition import GuardCondition
from mace.forms.scoring import positions_guard
from mace.language import syntax
from mace.language.linear import linear_sum, nearly_linear, solved
from mace.language.linear import room as rounding_room
from mace.language.run import compare

T = TypeVar("T")


def _all(parts: Iterable[T | None]) -> list[T] | None:
    """Return the parts; ``None`` where one of them is not known."""
    found = list(parts)
    known = [part for part in found if part is not None]
    return known if len(known) == len(found) else None


class OverActions:
    """Turns guards over the row into guards over the actions."""

    def __init__(self, causes: Causes) -> None:
        self.causes = causes

    def implied(self, condition: Condition) -> Iterator[GuardCondition]:
        """Yield a condition on the actions that holds wherever a condition on the row does."""
        effects = self.causes.effects
        match condition:
            case EffectsInRange():
                yield from (GuardCondition(self._in_range(equation.name)) for equation in effects.equations)
            case OnRow(GuardCondition(guard)):
                yield GuardCondition(self._implied(guard))

    def _in_range(self, name: str) -> syntax.Guard:
        return self._implied(syntax.between(syntax.Variable(name), *self.causes.effects.ends(name)))

    def _implied(self, guard: syntax.Guard) -> syntax.Guard:
        """Return a guard over actions that holds wherever one over the row does; true where nothing better is known."""
        equal = self._equal(guard)
        if equal is not None:
            return equal
        match guard:
            case syntax.And(parts):
                return syntax.conjunction(map(self._implied, parts))
            case syntax.Or(parts):
                return syntax.disjunction(map(self._implied, parts))
            case syntax.Not(syntax.Compare() | syntax.And() | syntax.Or() | syntax.Not() as part):
                return self._implied(syntax.negation(part))
            case syntax.Compare():
                return self._of_sums(guard)
        return syntax.TRUE

    # ---- exactly

    def _equal(self, guard: syntax.Guard) -> syntax.Guard | None:
        """Return a guard over actions that holds exactly where one over the row does; ``None`` where none is known."""
        if not syntax.variables(guard) & self.causes.names:
            return guard
        match guard:
            case syntax.Missing():
                return syntax.FALSE
            case syntax.And(parts) | syntax.Or(parts):
                found: list[syntax.Guard] | None = _all(map(self._equal, parts))
                join = syntax.conjunction if isinstance(guard, syntax.And) else syntax.disjunction
                return None if found is None else join(found)
            case syntax.Not(part):
                equal = self._equal(part)
                return None if equal is None else syntax.negation(equal)
            case syntax.Compare(name, left, right):
                of_one = self._of_one(guard)
                if of_one is not None:
                    return of_one
                sides: list[syntax.Expression] | None = _all([self._counted(left), self._counted(right)])
                return None if sides is None else syntax.Compare(name, *sides)
        return None

    def _of_one(self, atom: syntax.Compare) -> syntax.Guard | None:
        """Return a comparison of a single effect with a number in terms of what the effect follows from."""
        of_one = solved(atom)
        if of_one is None:
            return None
        name, sign, number = of_one
        if name in self.causes.constants:
            return syntax.Truth(compare(sign, self.causes.constants[name], number))
        if name not in self.causes.roots:
            return None
        root = self.causes.roots[name]
        if root.table is not None:
            return positions_guard(root.name, [compare(sign, Fraction(value), number) for value in root.table])
        at_most, less = self._up_to(name, number, below=False), self._up_to(name, number, below=True)
        match sign:
            case "<=":
                return at_most
            case "<":
                return less
            case ">":
                return syntax.negation(at_most)
            case ">=":
                return syntax.negation(less)
            case "==":
                return syntax.conjunction([at_most, syntax.negation(less)])
            case _:
                return syntax.disjunction([syntax.negation(at_most), less])

    def _up_to(self, name: str, number: Fraction, *, below: bool) -> syntax.Guard:
        last, before, after = self.causes.crossing(name, number, below=below)
        if before == after:
            return syntax.Truth(before)
        root = syntax.Variable(self.causes.roots[name].name)
        return syntax.Compare("<=" if before else ">", root, syntax.constant(last))

    def _counted(self, expression: syntax.Expression) -> syntax.Expression | None:
        """Return an expression that only counts guards over effects, with these over actions."""
        match expression:
            case syntax.Indicator(guard):
                equal = self._equal(guard)
                return None if equal is None else syntax.Indicator(equal)
            case syntax.Unary(name, operand):
                inner = self._counted(operand)
                return None if inner is None else syntax.Unary(name, inner)
            case syntax.Binary(name, left, right):
                sides: list[syntax.Expression] | None = _all([self._counted(left), self._counted(right)])
                return None if sides is None else syntax.Binary(name, *sides)
            case syntax.Variable(name) if name in self.causes.names:
                return None
        return expression

    # ---- up to rounding

    def _of_sums(self, atom: syntax.Compare) -> syntax.Guard:
        """Return a linear comparison with the sums put in for its effects, wider by all roundings; true where an effect is no sum."""
        form = nearly_linear(atom)
        total = None if form is None else self.causes.through(form)
        if total is None or atom.name == "!=":
            return syntax.TRUE
        shares, constant = total.form
        room = total.rounding + rounding_room(atom, {name: self._size(name) for name in syntax.variables(atom)})
        low = -constant - room if atom.name in (">", ">=", "==") else None
        high = -constant + room if atom.name in ("<", "<=", "==") else None
        return syntax.between(linear_sum((shares, Fraction(0))), low, high)

    def _size(self, name: str) -> Fraction:
        return max(abs(Fraction(end)) for end in self.causes.ends(name))
