"""From formulas of the core language to pySMT terms.

Levels become Boolean variables (one a level for categories; one a step for ordered levels), integers and grids an integer
``k``, and other reals a real variable. Comparisons of a feature with a constant are made on these directly, and exactly as the
floats compare; ``min``, ``max`` and ``abs`` become variables with their defining bounds, which linear relaxations profit from.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from fractions import Fraction
from itertools import pairwise
from typing import Any, Protocol

from pysmt.environment import Environment
from pysmt.typing import BOOL, INT, REAL

from mace.clock import check
from mace.language import syntax
from mace.language.roundings import unit
from mace.language.run import compare
from mace.problem import Problem
from mace.space import Categorical, Feature, Integer, Ordinal, Real, Value
from mace.space.decimals import decimal_of, is_short

Term = Any
"""A pySMT node; pySMT has no types of its own."""


class Encoding(Protocol):
    """A feature as solver variables."""

    domain: Term
    number: Term

    def compare(self, sign: syntax.CompareName, value: Fraction) -> Term:
        """Return the comparison of the feature with a constant."""

    def read(self, values: Any) -> Fraction:
        """Return the feature's number in a model of the solver."""


class LevelsEncoding:
    """A feature with levels: Boolean variables."""

    def __init__(self, manager: Any, name: str, size: int, *, ordered: bool) -> None:
        self.manager = manager
        self.size = size
        if ordered:
            steps = [manager.Symbol(f"{name} >= {k}", BOOL) for k in range(1, size)]
            self._above = [manager.TRUE(), *steps, manager.FALSE()]
            self._is = [manager.And(self._above[k], manager.Not(self._above[k + 1])) for k in range(size)]
            self.domain = manager.And([manager.Implies(b, a) for a, b in pairwise(steps)])
            self.number = manager.Plus([manager.Real(0), *(self._indicator(step) for step in steps)])
        else:
            self._is = [manager.Symbol(f"{name} = {k}", BOOL) for k in range(size)]
            self._above = [manager.Or(self._is[k:]) for k in range(size)] + [manager.FALSE()]
            self.domain = manager.And(manager.Or(self._is), manager.AtMostOne(self._is))
            weighted = [manager.Times(manager.Real(k), self._indicator(self._is[k])) for k in range(1, size)]
            self.number = manager.Plus([manager.Real(0), *weighted])

    def _indicator(self, literal: Term) -> Term:
        return self.manager.Ite(literal, self.manager.Real(1), self.manager.Real(0))

    def compare(self, sign: syntax.CompareName, value: Fraction) -> Term:
        """Return the comparison with a position."""
        negate = self.manager.Not
        match sign:
            case "==":
                whole = value.denominator == 1 and 0 <= value < self.size
                return self._is[int(value)] if whole else self.manager.FALSE()
            case "!=":
                return negate(self.compare("==", value))
            case ">=":
                return self._above[min(max(math.ceil(value), 0), self.size)]
            case ">":
                return self._above[min(max(math.floor(value) + 1, 0), self.size)]
            case "<":
                return negate(self.compare(">=", value))
            case "<=":
                return negate(self.compare(">", value))

    def read(self, values: Any) -> Fraction:
        """Return the level's position."""
        return Fraction(next(k for k in range(self.size) if values.get_py_value(self._is[k])))


class GridEncoding:
    """An integer, or a number on a grid: an integer variable k, and whether the factual's own value off the grid is taken."""

    def __init__(self, manager: Any, name: str, feature: Integer | Real, own: Value) -> None:
        assert feature.size is not None
        self.manager = manager
        self.feature = feature
        self.size = feature.size
        self.index = manager.Symbol(f"{name} index", INT)
        self.own = None
        if own is not None and not feature.has(own):
            self.own = manager.Symbol(f"{name} stays", BOOL)
            self.own_value = own
        inside = manager.And(manager.GE(self.index, manager.Int(0)), manager.LE(self.index, manager.Int(self.size - 1)))
        self.decimal: Term | None = None
        self.number, self.domain = self._number(name, inside)

    def _number(self, name: str, inside: Term) -> tuple[Term, Term]:
        m = self.manager
        low, step = Fraction(self.feature.low), Fraction(self.feature.step or 1)
        if isinstance(self.feature, Real) and self.feature.step is not None:
            low, step = self.feature.decimals
        term = m.Plus(m.Real(low), m.Times(m.Real(step), m.ToReal(self.index)))
        if isinstance(self.feature, Real) and self.size > 1 and is_short(self.feature):
            self.decimal = term
            if self.own is not None:
                self.decimal = m.Ite(self.own, m.Real(decimal_of(self.feature, self.own_value)), term)
        if isinstance(self.feature, Real) and not self.feature.is_exact_grid:
            # The decimal low + k·step is not a float; the feature's float lies within half an ulp of it.
            exact, term = term, m.Symbol(f"{name} value", REAL)
            half = m.Real(Fraction(self.feature.spacing(max(abs(self.feature.low), abs(self.feature.high)))) / 2)
            inside = m.And(inside, m.LE(m.Minus(exact, half), term), m.LE(term, m.Plus(exact, half)))
        if self.own is not None:
            term = m.Ite(self.own, m.Real(Fraction(self.own_value)), term)
        return term, inside

    def compare(self, sign: syntax.CompareName, value: Fraction) -> Term:
        """Return the comparison on the index: the grid is ascending."""
        m = self.manager
        below, up_to = (side(range(self.size), value, key=self._at) for side in (bisect_left, bisect_right))
        is_value = m.Equals(self.index, m.Int(below)) if up_to > below else m.FALSE()
        match sign:
            case "<" | "<=":
                term = m.LT(self.index, m.Int(below if sign == "<" else up_to))
            case ">" | ">=":
                term = m.GE(self.index, m.Int(up_to if sign == ">" else below))
            case "==" | "!=":
                term = is_value if sign == "==" else m.Not(is_value)
        if self.own is None:
            return term
        return m.Ite(self.own, m.Bool(compare(sign, Fraction(self.own_value), value)), term)

    def _at(self, index: int) -> Fraction:
        """Return a value of the grid."""
        return Fraction(self.feature.value_at(index) if self.size > 1 else self.feature.low)

    def read(self, values: Any) -> Fraction:
        """Return the number, exactly the float that the feature takes."""
        if self.own is not None and values.get_py_value(self.own):
            return Fraction(self.own_value)
        return self._at(int(values.get_py_value(self.index)))


class RealEncoding:
    """A real number in a range."""

    def __init__(self, manager: Any, name: str, feature: Real) -> None:
        self.manager = manager
        self.number = manager.Symbol(name, REAL)
        self.domain = manager.And(self.compare(">=", Fraction(feature.low)), self.compare("<=", Fraction(feature.high)))

    def compare(self, sign: syntax.CompareName, value: Fraction) -> Term:
        """Return the comparison of the variable."""
        return compare_terms(self.manager, sign, self.number, self.manager.Real(value))

    def read(self, values: Any) -> Fraction:
        """Return the exact value."""
        return Fraction(values.get_py_value(self.number))


def encode(manager: Any, name: str, feature: Feature, own: Value) -> Encoding:
    """Return a feature as solver variables."""
    match feature:
        case Ordinal() | Categorical():
            return LevelsEncoding(manager, name, feature.size, ordered=isinstance(feature, Ordinal))
        case Real() if feature.size is None:
            return RealEncoding(manager, name, feature)
        case Real() | Integer():
            return GridEncoding(manager, name, feature, own)


class SmtTranslator:
    """Translates formulas over the features of one problem.

    Attributes
    ----------
    domain : list of terms
        What every assignment fulfils: ranges, grids, exactly one level.
    definitions : list of terms
        Definitions of variables that :meth:`guard` has introduced since they were last taken.
    """

    def __init__(self, environment: Environment, problem: Problem) -> None:
        self.manager: Any = environment.formula_manager
        self.features = {
            name: encode(self.manager, f"feature {number}", feature, own)
            for number, ((name, feature), own) in enumerate(zip(problem.space.items(), problem.factual, strict=True))
        }
        self.missing = {
            name: self.manager.Symbol(f"feature {number} missing", BOOL)
            for number, (name, feature) in enumerate(problem.space.items())
            if feature.missing
        }
        self.sizes = {
            name: max(abs(Fraction(feature.low)), abs(Fraction(feature.high)))
            for name, feature in problem.space.items()
            if isinstance(feature, Real)
        }
        self.domain = [encoding.domain for encoding in self.features.values()]
        self.definitions: list[Term] = []
        self._defined: dict[tuple[str, Term, Term], Term] = {}

    def read(self, values: Any) -> dict[str, Fraction | None]:
        """Return the features' numbers in a model of the solver."""
        return {
            name: None if name in self.missing and values.get_py_value(self.missing[name]) else encoding.read(values)
            for name, encoding in self.features.items()
        }

    def guard(self, guard: syntax.Guard) -> Term:
        """Return a formula as a Boolean term."""
        check()
        match guard:
            case syntax.Truth(value):
                return self.manager.Bool(value)
            case syntax.Missing(name):
                return self.missing.get(name, self.manager.FALSE())
            case syntax.Not(part):
                return self.manager.Not(self.guard(part))
            case syntax.And(parts):
                return self.manager.And([self.guard(part) for part in parts])
            case syntax.Or(parts):
                return self.manager.Or([self.guard(part) for part in parts])
            case syntax.Compare(sign, syntax.Variable(name), syntax.Constant(value)) if name in self.features:
                return self.features[name].compare(sign, value)
            case syntax.Compare(sign, syntax.Constant(value), syntax.Variable(name)) if name in self.features:
                return self.features[name].compare(syntax.MIRRORED[sign], value)
            case syntax.Compare(sign, left, right):
                return compare_terms(self.manager, sign, self.term(left), self.term(right))

    def term(self, expression: syntax.Expression) -> Term:
        """Return an expression as a real term."""
        check()
        m = self.manager
        match expression:
            case syntax.Variable(name):
                return self.features[name].number if name in self.features else m.Symbol(f"variable {name}", REAL)
            case syntax.Constant(value):
                return m.Real(value)
            case syntax.Indicator(guard):
                return m.Ite(self.guard(guard), m.Real(1), m.Real(0))
            case syntax.Unary("neg", operand):
                return m.Times(m.Real(-1), self.term(operand))
            case syntax.Unary("abs", operand):
                term = self.term(operand)
                return self._extreme("max", term, m.Times(m.Real(-1), term))
            case syntax.Unary(name, operand):
                return self._rounding(name, operand)
            case syntax.Binary("+", _, _):
                return m.Plus([self.term(part) for part in syntax.summands(expression)])
            case syntax.Binary("-", left, right):
                return m.Minus(self.term(left), self.term(right))
            case syntax.Binary("*", left, right):
                return m.Times(self.term(left), self.term(right))
            case syntax.Binary("/", left, syntax.Constant(value)) if value:
                return m.Times(m.Real(1 / value), self.term(left))
            case syntax.Binary("/", left, right):
                return m.Div(self.term(left), self.term(right))
            case syntax.Binary("min" | "max" as which, left, right):
                return self._extreme(which, self.term(left), self.term(right))
            case _:
                raise AssertionError(f"no translation of {expression!r}")

    def _rounding(self, name: str, operand: syntax.Expression) -> Term:
        """Return the decimal of a number on a grid where it is known; else a variable within half an ulp, which allows a little more."""
        m = self.manager
        grid = self.features.get(operand.name) if isinstance(operand, syntax.Variable) else None
        if isinstance(grid, GridEncoding) and grid.decimal is not None and name != "float":
            return grid.decimal
        term = self.term(operand)
        key = (name, term, term)
        if key not in self._defined:
            result = m.Symbol(f"{name} {len(self._defined)}", REAL)
            share, least = unit(name)
            if isinstance(operand, syntax.Variable) and operand.name in self.sizes:
                moved = m.Real(share * self.sizes[operand.name] + least)
            else:
                size = self._extreme("max", term, m.Times(m.Real(-1), term))
                moved = m.Plus(m.Times(m.Real(share), size), m.Real(least))
            near = m.And(m.LE(m.Minus(term, moved), result), m.LE(result, m.Plus(term, moved)))
            self.definitions.append(near)
            self._defined[key] = result
        return self._defined[key]

    def _extreme(self, which: str, left: Term, right: Term) -> Term:
        """Return a variable for the greater (or lesser) of two terms, defined by its bounds."""
        key = (which, left, right)
        if key not in self._defined:
            m = self.manager
            result = m.Symbol(f"{which} {len(self._defined)}", REAL)
            bound = m.GE if which == "max" else m.LE
            attained = m.Or(m.Equals(result, left), m.Equals(result, right))
            self.definitions.append(m.And(bound(result, left), bound(result, right), attained))
            self._defined[key] = result
        return self._defined[key]


def compare_terms(manager: Any, sign: syntax.CompareName, left: Term, right: Term) -> Term:
    """Return the comparison of two real terms."""
    if sign == "!=":
        return manager.Not(manager.Equals(left, right))
    made = {"<": manager.LT, "<=": manager.LE, "==": manager.Equals, ">": manager.GT, ">=": manager.GE}
    return made[sign](left, right)
