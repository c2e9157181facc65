"""Formulas that know about float64: one that no rounding escapes, one that no rounding disturbs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from mace.language.flatten import flatten
from mace.language.formula import Reading, characteristic, compact, equal, prepare
from mace.language.intervals import (
    LARGEST,
    TINY,
    UNIT,
    End,
    Fact,
    Ranges,
    bounds_of,
    fact_of,
    facts_of,
    is_exact,
    is_float,
    operation,
    slack,
)
from mace.language.naming import commands
from mace.language.safety import asked_about, has_value
from mace.language.syntax import (
    FALSE,
    TRUE,
    ZERO,
    And,
    Assign,
    Binary,
    Compare,
    Constant,
    Expression,
    Guard,
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
)


def floating(
    program: Program,
    *,
    ranges: Ranges,
    integers: frozenset[str],
    result: str = "y",
    prefix: str = "",
) -> Guard:
    """Return a guard that holds wherever Python's own float64 evaluation returns ``y``.

    Each operation that may round gets its own variable, which may differ from the exact value by the relative
    error 2^-51 and the absolute error 2^-1074: more than IEEE rounding, so fused operations are covered too.
    Operations that never round are equalities. Where none rounds, this is the characteristic formula.

    Parameters
    ----------
    program
        Any program.
    ranges
        The ends of each input, between which the guard speaks; an input without them is any float64.
    integers
        The inputs that are always whole numbers.
    result, prefix
        As in :func:`~mace.language.characteristic`.

    Returns
    -------
    Guard
        For inputs within ``ranges`` and a finite ``y`` that Python returns, some values of the other variables make it
        true: those that Python calculates. A value that overflows is held by any number at least 2^1023 in size, and
        one that may be NaN by any number.

    Examples
    --------
    >>> from mace.language import parse, show_formula
    >>> program = parse("lambda n: 3 * n + 1").program
    >>> show_formula(floating(program, ranges={"n": (Fraction(0), Fraction(9))}, integers=frozenset("n")))
    'y = 3 * n + 1'
    """
    flat = flattened(program, result=result, prefix=prefix)
    facts = facts_of(flat, ranges=ranges, integers=integers)
    rounds = _Rounding(facts)
    if all(rounds.is_exact(value) for value in _values(flat)):
        return characteristic(program, result=result, prefix=prefix)
    asked = asked_about(flat.body)
    reading = Reading(
        result,
        rounds.equation,
        rounds.weakened,
        lambda node: rounds.weakened(has_value(node, asked=asked)),
    )
    return compact(flat.body, reading)


def flattened(program: Program, *, result: str = "y", prefix: str = "") -> Program:
    """Return the program whose variables :func:`floating` speaks of: single assignment, one operation each."""
    return flatten(prepare(program, result=result, prefix=prefix), result=result, prefix=prefix)


def ranges_of(
    program: Program, *, ranges: Ranges, integers: frozenset[str], result: str = "y", prefix: str = ""
) -> dict[str, tuple[End, End]]:
    """Return the ends of every variable of the formulas of ``program``, exact or floating, where an execution assigns it.

    A variable that an execution does not assign may be given any value without making a formula false of it.

    Parameters
    ----------
    program, ranges, integers, result, prefix
        As in :func:`floating`.

    Examples
    --------
    >>> from mace.language import parse
    >>> program = parse("lambda n: 3 * n + 1").program
    >>> ranges_of(program, ranges={"n": (Fraction(0), Fraction(9))}, integers=frozenset("n"))
    {'t': (Fraction(0, 1), Fraction(27, 1))}
    """
    flat = flattened(program, result=result, prefix=prefix)
    facts = facts_of(flat, ranges=ranges, integers=integers)
    return {
        name: (fact.low, fact.high) for name, fact in facts.items() if name not in program.inputs and fact.is_number
    }


def _values(program: Program) -> Iterator[Expression]:
    for command in commands(program.body):
        match command:
            case Assign(_, value) | Return(value):
                yield value
            case _:
                continue


@dataclass(frozen=True, slots=True)
class _Rounding:
    """How flattened operations and comparisons behave in float64."""

    facts: Mapping[str, Fact]

    def is_exact(self, value: Expression) -> bool:
        """Whether the operation never rounds, given its operands."""
        match value:
            case Binary(name, left, right):
                operands = self._fact(left), self._fact(right)
                bounds = bounds_of(name, *operands) if all(fact.is_number for fact in operands) else None
                return bounds is not None and is_exact(name, *operands, bounds)
            case Constant(number):
                return number.denominator == 1 or is_float(number)
            case Indicator(guard):
                return self.weakened(guard) == guard
            case Variable() | Unary():
                return self._fact(value).is_number

    def equation(self, name: str, value: Expression) -> Guard:
        """Return what the calculated value of one operation satisfies."""
        if self.is_exact(value):
            return equal(name, value)
        match value:
            case Binary(operator, left, right):
                operands = self._fact(left), self._fact(right)
                if not operation(operator, *operands).is_number:
                    return TRUE
                return self._near(name, value, slack(operator, *operands), bounds_of(operator, *operands))
            case Constant(number):
                return self._near(name, value, TINY, (number, number))
            case Indicator(guard):
                yes = conjunction([self.weakened(guard), equal(name, Constant(Fraction(1)))])
                no = conjunction([self.weakened(negation(guard)), equal(name, ZERO)])
                return disjunction([yes, no])
            case Variable() | Unary():
                return TRUE

    def weakened(self, guard: Guard) -> Guard:
        """Return the guard without the comparisons that infinities or NaN may decide otherwise."""
        match guard:
            case Compare(_, left, right):
                first, second = self._fact(left), self._fact(right)
                wild = not (first.is_number and second.is_number) or not (first.is_finite or second.is_finite)
                return TRUE if wild else guard
            case Not(Missing()) | Missing() | Truth():
                return guard
            case Not(part):
                return self.weakened(negation(part))
            case And(parts):
                return conjunction(map(self.weakened, parts))
            case Or(parts):
                return disjunction(map(self.weakened, parts))

    def _fact(self, atom: Expression) -> Fact:
        return fact_of(atom, self.facts)

    def _near(self, name: str, value: Expression, extra: End, bounds: tuple[End, End] | None) -> Guard:
        if bounds is None or isinstance(extra, float):
            return TRUE
        low, high = bounds
        sides = [_around(name, value, extra, sign) for sign in (1, -1) if (high > 0 if sign > 0 else low < 0)]
        sides = sides or [_around(name, value, extra, 1)]
        if len(sides) == 2:
            above, below = Compare(">=", value, ZERO), Compare("<", value, ZERO)
            sides = [conjunction([above, sides[0]]), conjunction([below, sides[1]])]
        return disjunction([*sides, *_overflows(name, value, low, high)])


def _around(name: str, value: Expression, extra: Fraction, sign: int) -> Guard:
    """Return that ``name`` lies within the error around ``value``, which has the given sign."""
    nearer, farther = 1 - 2 * UNIT, 1 + 2 * UNIT
    least, most = (nearer, farther) if sign > 0 else (farther, nearer)
    lowest = Binary("-", Binary("*", Constant(least), value), Constant(extra))
    highest = Binary("+", Binary("*", Constant(most), value), Constant(extra))
    return And((Compare(">=", Variable(name), lowest), Compare("<=", Variable(name), highest)))


def _overflows(name: str, value: Expression, low: End, high: End) -> Iterator[Guard]:
    top, bottom = Constant(LARGEST), Constant(-LARGEST)
    if high > LARGEST:
        yield And((Compare(">=", value, top), Compare(">=", Variable(name), top)))
    if low < -LARGEST:
        yield And((Compare("<=", value, bottom), Compare("<=", Variable(name), bottom)))


def robust(
    program: Program,
    *,
    margin: Fraction,
    ranges: Ranges,
    integers: frozenset[str],
    result: str = "y",
    prefix: str = "",
) -> Guard:
    """Return the characteristic formula with every comparison that rounding may disturb decided by ``margin``.

    A comparison between values that float64 calculates exactly stays as it is. Any other must hold, or fail, by at
    least ``margin``; an equality between such values can only fail.

    Parameters
    ----------
    program
        Any program.
    margin
        More than the error that rounding can bring to a side of a comparison.
    ranges, integers, result, prefix
        As in :func:`floating`.

    Examples
    --------
    >>> from mace.language import parse, show_formula
    >>> program = parse("lambda x: 1 if x + 1 > 3 else 0").program
    >>> show_formula(robust(program, margin=Fraction(1, 4), ranges={}, integers=frozenset()))
    '(x + 1 - 3 ≥ 0.25 ∧ y = 1) ∨ (3 - (x + 1) ≥ 0.25 ∧ y = 0)'
    """
    ready = prepare(program, result=result, prefix=prefix)
    margins = _Margins(facts_of(ready, ranges=ranges, integers=integers), margin)
    asked = asked_about(ready.body)

    def defined(node: Expression | Guard) -> Guard:
        return conjunction([margins.strengthened(has_value(node, asked=asked)), *margins.decided(node)])

    return compact(ready.body, Reading(result, equal, margins.strengthened, defined))


@dataclass(frozen=True, slots=True)
class _Margins:
    """Comparisons with room for rounding."""

    facts: Mapping[str, Fact]
    margin: Fraction

    def strengthened(self, guard: Guard) -> Guard:
        """Return the guard with its inexact comparisons holding by the margin."""
        match guard:
            case Compare(_, left, right):
                exact = fact_of(left, self.facts).is_exact and fact_of(right, self.facts).is_exact
                return guard if exact else self._apart(guard)
            case Not(Missing()) | Missing() | Truth():
                return guard
            case Not(part):
                return self.strengthened(negation(part))
            case And(parts):
                return conjunction(map(self.strengthened, parts))
            case Or(parts):
                return disjunction(map(self.strengthened, parts))

    def decided(self, node: Expression | Guard) -> Iterator[Guard]:
        """Yield, for each indicator inside ``node``, that it is decided by the margin."""
        for guard in _indicated(node):
            yes, no = self.strengthened(guard), self.strengthened(negation(guard))
            if yes != guard:
                yield disjunction([yes, no])

    def _apart(self, comparison: Compare) -> Guard:
        above = Compare(">=", Binary("-", comparison.left, comparison.right), Constant(self.margin))
        below = Compare(">=", Binary("-", comparison.right, comparison.left), Constant(self.margin))
        match comparison.name:
            case ">" | ">=":
                return above
            case "<" | "<=":
                return below
            case "!=":
                return Or((above, below))
            case "==":
                return FALSE


def _indicated(node: Expression | Guard) -> Iterator[Guard]:
    """Yield the guards of the indicators inside ``node``."""
    pending: list[Expression | Guard] = [node]
    while pending:
        match pending.pop():
            case Indicator(guard):
                yield guard
                pending.append(guard)
            case Unary(_, inner) | Not(inner):
                pending.append(inner)
            case Binary(_, left, right) | Compare(_, left, right):
                pending += (right, left)
            case And(parts) | Or(parts):
                pending.extend(reversed(parts))
            case Variable() | Constant() | Missing() | Truth():
                pass
