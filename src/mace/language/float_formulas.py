"""Formulas that know about float64: one that no rounding escapes, one that no rounding disturbs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from mace.exact import TINY, is_float
from mace.language import syntax
from mace.language.flatten import flatten
from mace.language.formula import Semantics, characteristic, compact, equal, prepare
from mace.language.intervals import (
    EPSILON,
    OVERFLOW,
    End,
    Fact,
    Ranges,
    bounds_of,
    fact_of,
    facts_of,
    is_exact,
    operation,
    slack,
)
from mace.language.naming import commands
from mace.language.safety import asked_about, has_value
from mace.language.walk import map_comparisons


def floating(
    program: syntax.Program,
    *,
    ranges: Ranges,
    integers: frozenset[str],
    result: str = "y",
    prefix: str = "",
) -> syntax.Guard:
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
    if all(
        rounds.is_exact(command.value)
        for command in commands(flat.body)
        if isinstance(command, syntax.Assign | syntax.Return)
    ):
        return characteristic(program, result=result, prefix=prefix)
    asked = asked_about(flat.body)
    semantics = Semantics(
        result,
        rounds.equation,
        rounds.weakened,
        lambda node: rounds.weakened(has_value(node, asked=asked)),
    )
    return compact(flat.body, semantics)


def flattened(program: syntax.Program, *, result: str = "y", prefix: str = "") -> syntax.Program:
    """Return the program whose variables :func:`floating` speaks of: single assignment, one operation each."""
    return flatten(prepare(program, result=result, prefix=prefix), result=result, prefix=prefix)


def ranges_of(
    program: syntax.Program, *, ranges: Ranges, integers: frozenset[str], result: str = "y", prefix: str = ""
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


@dataclass(frozen=True, slots=True)
class _Rounding:
    """How flattened operations and comparisons behave in float64."""

    facts: Mapping[str, Fact]

    def is_exact(self, value: syntax.Expression) -> bool:
        """Whether the operation never rounds, given its operands."""
        match value:
            case syntax.Binary(name, left, right):
                operands = self._fact(left), self._fact(right)
                bounds = bounds_of(name, *operands) if all(fact.is_number for fact in operands) else None
                return bounds is not None and is_exact(name, *operands, bounds)
            case syntax.Constant(number):
                return number.denominator == 1 or is_float(number)
            case syntax.Indicator(guard):
                return self.weakened(guard) == guard
            case syntax.Variable() | syntax.Unary():
                return self._fact(value).is_number

    def equation(self, name: str, value: syntax.Expression) -> syntax.Guard:
        """Return what the calculated value of one operation satisfies."""
        if self.is_exact(value):
            return equal(name, value)
        match value:
            case syntax.Binary(operator, left, right):
                operands = self._fact(left), self._fact(right)
                if not operation(operator, *operands).is_number:
                    return syntax.TRUE
                return self._near(name, value, slack(operator, *operands), bounds_of(operator, *operands))
            case syntax.Constant(number):
                return self._near(name, value, TINY, (number, number))
            case syntax.Indicator(guard):
                yes = syntax.conjunction([self.weakened(guard), equal(name, syntax.Constant(Fraction(1)))])
                no = syntax.conjunction([self.weakened(syntax.negation(guard)), equal(name, syntax.ZERO)])
                return syntax.disjunction([yes, no])
            case syntax.Variable() | syntax.Unary():
                return syntax.TRUE

    def weakened(self, guard: syntax.Guard) -> syntax.Guard:
        """Return the guard without the comparisons that infinities or NaN may decide otherwise."""

        def change(comparison: syntax.Compare) -> syntax.Guard:
            first, second = self._fact(comparison.left), self._fact(comparison.right)
            wild = not (first.is_number and second.is_number) or not (first.is_finite or second.is_finite)
            return syntax.TRUE if wild else comparison

        return map_comparisons(guard, change)

    def _fact(self, atom: syntax.Expression) -> Fact:
        return fact_of(atom, self.facts)

    def _near(self, name: str, value: syntax.Expression, extra: End, bounds: tuple[End, End] | None) -> syntax.Guard:
        if bounds is None or isinstance(extra, float):
            return syntax.TRUE
        low, high = bounds
        sides = [_around(name, value, extra, sign) for sign in (1, -1) if (high > 0 if sign > 0 else low < 0)]
        sides = sides or [_around(name, value, extra, 1)]
        if len(sides) == 2:
            above, below = syntax.Compare(">=", value, syntax.ZERO), syntax.Compare("<", value, syntax.ZERO)
            sides = [syntax.conjunction([above, sides[0]]), syntax.conjunction([below, sides[1]])]
        return syntax.disjunction([*sides, *_overflows(name, value, low, high)])


def _around(name: str, value: syntax.Expression, extra: Fraction, sign: int) -> syntax.Guard:
    """Return that ``name`` lies within the error around ``value``, which has the given sign."""
    nearer, farther = 1 - 2 * EPSILON, 1 + 2 * EPSILON
    least, most = (nearer, farther) if sign > 0 else (farther, nearer)
    lowest = syntax.Binary("-", syntax.Binary("*", syntax.Constant(least), value), syntax.Constant(extra))
    highest = syntax.Binary("+", syntax.Binary("*", syntax.Constant(most), value), syntax.Constant(extra))
    return syntax.And(
        (syntax.Compare(">=", syntax.Variable(name), lowest), syntax.Compare("<=", syntax.Variable(name), highest))
    )


def _overflows(name: str, value: syntax.Expression, low: End, high: End) -> Iterator[syntax.Guard]:
    top, bottom = syntax.Constant(OVERFLOW), syntax.Constant(-OVERFLOW)
    if high > OVERFLOW:
        yield syntax.And((syntax.Compare(">=", value, top), syntax.Compare(">=", syntax.Variable(name), top)))
    if low < -OVERFLOW:
        yield syntax.And((syntax.Compare("<=", value, bottom), syntax.Compare("<=", syntax.Variable(name), bottom)))


def robust(
    program: syntax.Program,
    *,
    margin: Fraction,
    ranges: Ranges,
    integers: frozenset[str],
    result: str = "y",
    prefix: str = "",
) -> syntax.Guard:
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

    def defined(node: syntax.Expression | syntax.Guard) -> syntax.Guard:
        return syntax.conjunction([margins.strengthened(has_value(node, asked=asked)), *margins.decided(node)])

    return compact(ready.body, Semantics(result, equal, margins.strengthened, defined))


@dataclass(frozen=True, slots=True)
class _Margins:
    """Comparisons with room for rounding."""

    facts: Mapping[str, Fact]
    margin: Fraction

    def strengthened(self, guard: syntax.Guard) -> syntax.Guard:
        """Return the guard with its inexact comparisons holding by the margin."""
        return map_comparisons(guard, self._apart)

    def decided(self, node: syntax.Expression | syntax.Guard) -> Iterator[syntax.Guard]:
        """Yield, for each indicator inside ``node``, that it is decided by the margin."""
        for indicator in syntax.nodes(node):
            if not isinstance(indicator, syntax.Indicator):
                continue
            guard = indicator.guard
            yes, no = self.strengthened(guard), self.strengthened(syntax.negation(guard))
            if yes != guard:
                yield syntax.disjunction([yes, no])

    def _apart(self, comparison: syntax.Compare) -> syntax.Guard:
        left, right, margin = comparison.left, comparison.right, syntax.Constant(self.margin)
        if fact_of(left, self.facts).is_exact and fact_of(right, self.facts).is_exact:
            return comparison
        above = syntax.Compare(">=", syntax.Binary("-", left, right), margin)
        below = syntax.Compare(">=", syntax.Binary("-", right, left), margin)
        match comparison.name:
            case ">" | ">=":
                return above
            case "<" | "<=":
                return below
            case "!=":
                return syntax.Or((above, below))
            case "==":
                return syntax.FALSE
