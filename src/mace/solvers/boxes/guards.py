"""Guards across features, as a part of the search: boxes are narrowed by intervals and cut where a point fails."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from mace.constraints.condition import Values
from mace.distances import point_values
from mace.errors import InvalidProgram
from mace.exact import float_down, float_up
from mace.language import evaluate, holds, syntax
from mace.language.linear import nearly_linear
from mace.language.roundings import ROUNDINGS
from mace.problem import Problem
from mace.reductions.regions import Region, narrow
from mace.solvers.boxes.branching import (
    NARROWEST_CUT,
    branch_somewhere,
    cut_at,
    cut_range,
    next_value,
    size_of,
)
from mace.solvers.boxes.cuts import Branch, Left
from mace.solvers.domains import is_narrow, values_between
from mace.space import Categorical, Integer, Point, Real, Value
from mace.space.decimals import decimal_of, float_of


@dataclass(frozen=True)
class GuardsCut:
    """All guards across features that the lane cannot take."""

    problem: Problem
    guards: tuple[syntax.Guard, ...]

    @cached_property
    def _stepped(self) -> list[tuple[str, Real | Integer, Value]]:
        """Features with gaps between their values: on a grid, or of narrow floats; each with the factual's own value."""
        return [
            (name, feature, own)
            for (name, feature), own in zip(self.problem.space.items(), self.problem.factual, strict=True)
            if (isinstance(feature, Real | Integer) and feature.step is not None and feature.size != 1)
            or (isinstance(feature, Real) and is_narrow(feature))
        ]

    def narrow(self, region: Region) -> Left:
        """Return what grids and guards leave of a box."""
        left: Region | None = region
        for name, feature, own in self._stepped:
            left = None if left is None else _on_grid(left, name, feature, own)
        for guard in self.guards:
            left = None if left is None else narrow(guard, left)
        return Left(left, self)

    def may_hold(self, point: Point, values: Values) -> bool:
        """Return whether a point fulfils all guards."""
        return all(holds(guard, values) for guard in self.guards)

    def _failing(self, point: Point) -> syntax.Guard:
        values = point_values(self.problem.space, point)
        return next(guard for guard in self.guards if not holds(guard, values))

    def branch(self, region: Region, point: Point) -> list[Branch] | None:
        """Return the parts of a box, cut where a point fails a guard; ``None`` where it is too narrow to be cut."""
        parts = self._parts(region, point, self._failing(point))
        return None if parts is None else [(part, self) for part in parts]

    def _parts(self, region: Region, point: Point, failing: syntax.Guard) -> list[Region] | None:
        values = point_values(self.problem.space, point)
        for atom in needed_atoms(failing):
            parts = budget_parts(atom, region, values) if is_false(atom, values) else None
            if parts is not None:
                return parts
        at = dict(zip(self.problem.space, point, strict=True))
        for atom in _failing_atoms(failing, values):
            for name, shift in self._shifts(atom, at):
                value = at[name]
                assert value is not None
                bound = Fraction(value) + shift
                is_alone = len(syntax.variables(atom)) == 1
                if not is_alone and abs(shift) < NARROWEST_CUT * size_of(self.problem, name):
                    continue
                at_bound = is_alone and atom.name == "=="
                middle = bound if is_alone else (Fraction(value) + bound) / 2
                cut = cut_at(region[name], bound) if at_bound else cut_range(region[name], middle, above=shift > 0)
                if len(cut) > 1:
                    return [region | {name: part} for part in cut]
        return branch_somewhere(self.problem, region, point, sorted(syntax.variables(failing)))

    def _shifts(self, atom: syntax.Compare, at: dict[str, Value]) -> list[tuple[str, Fraction]]:
        """Return by how much each number, moved alone, would have to change for a linear comparison to hold; the least first."""
        if atom.name == "!=" or any(at[name] is None for name in syntax.variables(atom)):
            return []
        space = self.problem.space
        values = {name: None if value is None else Fraction(value) for name, value in at.items()}
        form = nearly_linear(
            syntax.Compare(atom.name, active_piece(atom.left, values), active_piece(atom.right, values))
        )
        if form is None:
            return []
        coefficients, rest = form
        known = {name: decimal_of(space[name], at[name] or 0) for name in coefficients}
        residual = rest + sum((a * known[name] for name, a in coefficients.items()), Fraction(0))
        shifts = [
            (name, -residual / a) for name, a in coefficients.items() if a and not isinstance(space[name], Categorical)
        ]
        if atom.name in ("<", ">"):
            inside = self.problem.accuracy / (8 * len(space))
            signs = {name: 1 if (a > 0) == (atom.name == ">") else -1 for name, a in coefficients.items()}
            shifts = [(name, shift + signs[name] * inside * size_of(self.problem, name)) for name, shift in shifts]
        return sorted(shifts, key=lambda pair: abs(pair[1]) / size_of(self.problem, pair[0]))

    def repaired(self, point: Point) -> Iterator[Point]:
        """Yield the point with one number moved so that a failing comparison holds."""
        names = list(self.problem.space)
        at = dict(zip(names, point, strict=True))
        for atom in _failing_atoms(self._failing(point), point_values(self.problem.space, point)):
            for name, shift in self._shifts(atom, at):
                j, value = names.index(name), at[name]
                assert value is not None
                feature = self.problem.space[name]
                number = decimal_of(feature, value) + shift
                if atom.name == "==" and feature.size is None:
                    yield (*point[:j], min(max(float_of(feature, number), feature.low), feature.high), *point[j + 1 :])
                yield (*point[:j], next_value(self.problem, j, number, up=shift > 0), *point[j + 1 :])


def _on_grid(region: Region, name: str, feature: Real | Integer, own: Value) -> Region | None:
    """Return a box with the range of a feature as narrow as the values of its grid, and the factual's own, in it."""
    left = region[name]
    if not left.has_values:
        return region
    ends = values_between(feature, float_up(left.low), float_down(left.high), own)
    kept = left.nothing_but_missing() if ends is None else left.between(Fraction(ends[0]), Fraction(ends[1]))
    return None if kept.is_empty else region if kept == left else region | {name: kept}


# ---- the comparisons of a guard


def _failing_atoms(guard: syntax.Guard, values: Values) -> Iterator[syntax.Compare]:
    """Yield the comparisons that fail at a row and make the guard fail there."""
    pending = [guard]
    while pending:
        match pending.pop():
            case syntax.Not(part):
                if not isinstance(part, syntax.Compare | syntax.And | syntax.Or | syntax.Not):
                    continue
                pending.append(syntax.negation(part))
            case syntax.And(parts) | syntax.Or(parts):
                pending.extend(part for part in parts if is_false(part, values))
            case syntax.Compare() as atom:
                yield atom
            case _:
                pass


def needed_atoms(guard: syntax.Guard) -> Iterator[syntax.Compare]:
    """Yield the comparisons without which a guard does not hold."""
    match guard:
        case syntax.Compare():
            yield guard
        case syntax.And(parts):
            for part in parts:
                yield from needed_atoms(part)
        case syntax.Not(syntax.Compare() | syntax.Or() | syntax.Not() as part):
            yield from needed_atoms(syntax.negation(part))


def budget_parts(atom: syntax.Compare, region: Region, values: dict[str, Fraction | None]) -> list[Region] | None:
    """Branch on a budget, "at most m of these tests hold": the parts cover every row of a box that keeps it, and not the point.

    Take m of the tests that hold at the point: one of them fails, or every other test does. Where m is 1 there is a part for each test
    instead. ``None`` where the comparison is no budget.
    """
    tests = _tests(atom.left)
    if atom.name not in ("<=", "<") or tests is None or not isinstance(atom.right, syntax.Constant):
        return None
    most = math.floor(atom.right.value) if atom.name == "<=" else math.ceil(atom.right.value) - 1
    free = []
    for test in tests:
        if narrow(syntax.negation(test), region) is None:
            most -= 1
        elif narrow(test, region) is not None:
            free.append(test)
    if most < 0:
        return None
    if most == 1:
        failing = [[test for test in free if test != chosen] for chosen in free]
    else:
        first = [test for test in free if not is_false(test, values)][:most]
        failing = [*([test] for test in first), [test for test in free if test not in first]]
    parts = [narrow(syntax.conjunction(map(syntax.negation, each)), region) for each in failing]
    # A part that is no smaller than the box would be cut for ever.
    return None if region in parts else [part for part in parts if part is not None]


def _tests(expression: syntax.Expression) -> list[syntax.Guard] | None:
    """Return the guards whose number an expression counts; ``None`` where it does more."""
    terms = syntax.summands(expression)
    tests = [term.guard for term in terms if isinstance(term, syntax.Indicator)]
    return tests if len(tests) == len(terms) else None


def is_false(guard: syntax.Guard, values: dict[str, Fraction | None]) -> bool:
    """Return whether a part of a guard, taken alone, fails at a row; a part that compares what is missing does not."""
    try:
        return not holds(guard, values)
    except InvalidProgram:
        return False


def active_piece(expression: syntax.Expression, values: dict[str, Fraction | None]) -> syntax.Expression:
    """Return the piece of an expression that is in use at a row."""
    match expression:
        case syntax.Unary(name, operand):
            inner = active_piece(operand, values)
            if name in ROUNDINGS:
                return syntax.Unary(name, inner)
            return inner if name == "abs" and evaluate(operand, values) >= 0 else syntax.Unary("neg", inner)
        case syntax.Binary(("min" | "max") as name, left, right):
            first_is_less = evaluate(left, values) <= evaluate(right, values)
            return active_piece(left if first_is_less == (name == "min") else right, values)
        case syntax.Binary(name, left, right):
            return syntax.Binary(name, active_piece(left, values), active_piece(right, values))
        case syntax.Indicator():
            return syntax.Constant(evaluate(expression, values))
        case _:
            return expression
