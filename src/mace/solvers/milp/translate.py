"""From formulas of the core language to bounds, rows and disjunctions over columns.

Levels become indicators, one a level; a numeric feature is one column, whose values are floats. A comparison of a feature with a number is
a bound on the float where it turns; every other strict comparison is relaxed to its closure, which keeps a lower bound a lower bound.
"""

from __future__ import annotations

import math
from fractions import Fraction

from mace.clock import check
from mace.exact import decimal_fraction, float_down, float_up
from mace.language import syntax
from mace.language.roundings import rounded, unit
from mace.language.run import compare
from mace.problem import Problem
from mace.solvers.milp.nodes import ALWAYS_TRUE, Bound, FormBound, Implied, Never, Node, NotEqual, Product, every, some
from mace.solvers.milp.quantities import ZERO_OR_ONE, Affine, Quantities, domain_of, greatest, least
from mace.space import Categorical, Integer, Ordinal, Real
from mace.space.decimals import is_short

ZERO, ONE = Fraction(0), Fraction(1)


class MilpTranslator:
    """Translates formulas over the features of one problem.

    Attributes
    ----------
    numbers : dict
        The column of each numeric feature.
    levels : dict
        The indicator columns of each feature with levels.
    missing : dict
        The indicator of each feature that may be missing.
    definitions : list of Node
        What holds of every point: exactly one level; what a maximum, a product or an indicator is.
    """

    def __init__(self, problem: Problem) -> None:
        self.quantities = Quantities()
        self.numbers: dict[str, int] = {}
        self.levels: dict[str, tuple[int, ...]] = {}
        self.missing: dict[str, int] = {}
        self.definitions: list[Node] = []
        self._variables: dict[str, int] = {}
        self._grids: dict[str, Real] = {}
        self._whole: set[int] = set()
        self._ranges: dict[str, tuple[Fraction | float, Fraction | float]] = {}
        self._known: dict[object, Affine] = {}
        for (name, feature), own in zip(problem.space.items(), problem.factual, strict=True):
            match feature:
                case Ordinal() | Categorical():
                    self.levels[name] = tuple(self.quantities.binary() for _ in range(feature.size))
                    whole = Affine(dict.fromkeys(self.levels[name], ONE), -ONE)
                    self.definitions.append(self._compare("==", whole))
                case Real() | Integer():
                    domain = domain_of(feature, own)
                    low, high = (feature.low, feature.high) if domain is None else (domain[0], domain[len(domain) - 1])
                    self.numbers[name] = self.quantities.column(float(low), float(high), domain, is_feature=True)
                    if isinstance(feature, Integer):
                        self._whole.add(self.numbers[name])
                    if feature.missing:
                        self.missing[name] = self.quantities.binary()
                    elif isinstance(feature, Real) and own is not None and feature.has(own) and is_short(feature):
                        self._grids[name] = feature

    def variable(self, name: str) -> int:
        """Return the column of a variable of the formulas that is no feature."""
        if name not in self._variables:
            low, high = self._ranges.get(name, (-math.inf, math.inf))
            self._variables[name] = self.quantities.column(float_down(Fraction(low)) if low > -math.inf else -math.inf,
                                                           float_up(Fraction(high)) if high < math.inf else math.inf)  # fmt: skip
        return self._variables[name]

    def know(self, ranges: dict[str, tuple[Fraction | float, Fraction | float]]) -> None:
        """Take over the ends of variables, where an execution of their program assigns them; before they are first used."""
        self._ranges |= ranges

    def parts(self, guard: syntax.Guard, *, upward: str = "") -> list[Node]:
        """Return the conjuncts of a formula, each after the definitions that it needs."""
        nodes: list[Node] = []
        for part in syntax.conjuncts(guard):
            node = self.node(part, upward=upward)
            nodes += [*self.take_definitions(), node]
        return nodes

    def take_definitions(self) -> list[Node]:
        """Return the definitions made since they were last taken."""
        taken, self.definitions = self.definitions, []
        return taken

    # ---- guards

    def node(self, guard: syntax.Guard, *, upward: str = "") -> Node:
        """Return a formula over columns that holds wherever ``guard`` does.

        With ``upward``, an equation of a variable whose name begins so bounds it from below only: enough where the variable is
        to be small and nothing else is asked of it, as with the parts of a norm.
        """
        check()
        match guard:
            case syntax.Truth(value):
                return ALWAYS_TRUE if value else Never()
            case syntax.Missing(name):
                return self._flag(name, is_missing=True)
            case syntax.Not(syntax.Missing(name)):
                return self._flag(name, is_missing=False)
            case syntax.Not(part):
                return self.node(syntax.negation(part), upward=upward)
            case syntax.And(parts):
                return every([self.node(part, upward=upward) for part in parts])
            case syntax.Or(parts):
                return some([self.node(part, upward=upward) for part in parts])
            case syntax.Compare("==", syntax.Variable(name), value) if upward and name.startswith(upward):
                difference = self.affine(value, sense=1).plus(self.affine(syntax.Variable(name)), -ONE)
                return every([self._compare("<=", difference), Implied(self._compare("==", difference))])
            case syntax.Compare(sign, syntax.Variable(name), syntax.Constant(value)) if name in self.levels:
                return self._level(name, sign, value)
            case syntax.Compare(sign, syntax.Constant(value), syntax.Variable(name)) if name in self.levels:
                return self._level(name, syntax.MIRRORED[sign], value)
            case syntax.Compare(sign, left, right):
                return self._compare(sign, self.affine(left).plus(self.affine(right), -ONE))

    def _flag(self, name: str, *, is_missing: bool) -> Node:
        if name not in self.missing:
            return Never() if is_missing else ALWAYS_TRUE
        value = ONE if is_missing else ZERO
        return Bound(self.missing[name], value, value)

    def _level(self, name: str, sign: syntax.CompareName, value: Fraction) -> Node:
        columns = self.levels[name]
        out = [column for k, column in enumerate(columns) if not compare(sign, Fraction(k), value)]
        return Never() if len(out) == len(columns) else every([Bound(column, ZERO, ZERO) for column in out])

    def _compare(self, sign: syntax.CompareName, difference: Affine) -> Node:
        """Return ``difference sign 0``."""
        if not difference.terms:
            return ALWAYS_TRUE if compare(sign, difference.shift, ZERO) else Never()
        if len(difference.terms) == 1:
            ((column, a),) = difference.terms.items()
            return self._bound(column, sign if a > 0 else syntax.MIRRORED[sign], -difference.shift / a)
        if sign in ("<", ">", "!=") and all(map(self._is_whole, difference.terms)):
            return self._apart(sign, difference)
        scaled = self.quantities.form(difference.terms)
        value = -difference.shift / scaled.factor
        sign = sign if scaled.factor > 0 else syntax.MIRRORED[sign]
        if sign == "!=":
            return ALWAYS_TRUE
        low = value if sign in ("==", ">", ">=") else None
        high = value if sign in ("==", "<", "<=") else None
        return FormBound(scaled.form, low, high, scaled.remainder, strict=sign in ("<", ">"))

    def _is_whole(self, column: int) -> bool:
        return column in self._whole or self.quantities.domain[column] is ZERO_OR_ONE

    def _apart(self, sign: syntax.CompareName, difference: Affine) -> Node:
        """Return a strict comparison of a sum over whole numbers with 0, on the last of its values that counts."""
        if sign == "!=":
            return some([self._apart("<", difference), self._apart(">", difference)])
        factors = difference.terms.values()
        scale = math.lcm(*(factor.denominator for factor in factors))
        grain = Fraction(math.gcd(*(int(factor * scale) for factor in factors)), scale)
        # The values are (n + rest)·grain for whole n.
        rest = difference.shift / grain % 1
        if sign == "<":
            return self._compare("<=", difference.plus(Affine(shift=(1 - rest) * grain)))
        return self._compare(">=", difference.plus(Affine(shift=-(rest or 1) * grain)))

    def _bound(self, column: int, sign: syntax.CompareName, value: Fraction) -> Node:
        domain = self.quantities.domain[column]
        if domain is None and not self.quantities.is_feature[column]:
            if sign == "!=":
                return NotEqual(column, value)
            low = value if sign in ("==", ">", ">=") else None
            high = value if sign in ("==", "<", "<=") else None
            return Bound(column, low, high, strict=sign in ("<", ">"))
        below = greatest(domain, value, strict=sign in ("<", "!="))
        above = least(domain, value, strict=sign in (">", "!="))
        match sign:
            case "<" | "<=":
                return _between(column, -math.inf, below)
            case ">" | ">=":
                return _between(column, above, math.inf)
            case "==":
                return _between(column, above, below)
            case "!=":
                return some([_between(column, -math.inf, below), _between(column, above, math.inf)])

    # ---- expressions

    def affine(self, expression: syntax.Expression, sense: int = 0) -> Affine:
        """Return an expression as a sum of columns.

        With ``sense`` 0 the sum equals the expression. With 1 the program need only keep it from being less, which is enough where
        less is what is sought; with -1, from being more.
        """
        check()
        match expression:
            case syntax.Variable(name):
                return self._read(name)
            case syntax.Constant(value):
                return Affine(shift=value)
            case syntax.Indicator(guard):
                return self._indicator(guard, sense)
            case syntax.Unary("neg", operand):
                return self.affine(operand, -sense).times(-ONE)
            case syntax.Unary("abs", operand):
                inner = self.affine(operand)
                return self._greatest(inner, inner.times(-ONE), sense)
            case syntax.Unary(name, syntax.Variable(variable)) if variable in self._grids and name != "float":
                return self._decimal(variable)
            case syntax.Unary(name, operand):
                return self._rounding(name, self.affine(operand))
            case syntax.Binary("+", _, _):
                return self._sum(expression, sense)
            case syntax.Binary("-", left, right):
                return self.affine(left, sense).plus(self.affine(right, -sense), -ONE)
            case syntax.Binary("*", syntax.Constant(value), other) | syntax.Binary("*", other, syntax.Constant(value)):
                return self.affine(other, sense if value > 0 else -sense).times(value)
            case syntax.Binary("*", left, right):
                return self._product(self.affine(left), self.affine(right))
            case syntax.Binary("/", left, syntax.Constant(value)) if value:
                return self.affine(left, sense if value > 0 else -sense).times(1 / value)
            case syntax.Binary("/", left, right):
                return self._quotient(self.affine(left), self.affine(right))
            case syntax.Binary("max", left, right):
                return self._greatest(self.affine(left, sense), self.affine(right, sense), sense)
            case syntax.Binary("min", left, right):
                lesser = self._greatest(
                    self.affine(left, sense).times(-ONE), self.affine(right, sense).times(-ONE), -sense
                )
                return lesser.times(-ONE)
            case _:
                raise AssertionError(f"no translation of {expression!r}")

    def _sum(self, expression: syntax.Expression, sense: int) -> Affine:
        """Return a sum; one that leans left is walked without recursion."""
        whole = Affine()
        for part in syntax.summands(expression):
            whole = whole.plus(self.affine(part, sense))
        return whole

    def _read(self, name: str) -> Affine:
        if name in self.levels:
            return Affine({column: Fraction(k) for k, column in enumerate(self.levels[name]) if k})
        return Affine({self.numbers[name] if name in self.numbers else self.variable(name): ONE})

    def _indicator(self, guard: syntax.Guard, sense: int) -> Affine:
        direct = self._direct(guard)
        if direct is not None:
            return direct
        key = ("indicator", guard, sense)
        if key not in self._known:
            column = self.quantities.binary()
            yes = every([Bound(column, ONE, ONE), *([] if sense > 0 else [self.node(guard)])])
            no = every([Bound(column, ZERO, ZERO), *([] if sense < 0 else [self.node(syntax.negation(guard))])])
            self.definitions.append(some([no, yes]))
            self._known[key] = Affine({column: ONE})
        return self._known[key]

    def _direct(self, guard: syntax.Guard) -> Affine | None:
        """Return the indicator of a guard over one feature's levels, or of being missing, which needs no new column."""
        match guard:
            case syntax.Truth(value):
                return Affine(shift=Fraction(int(value)))
            case syntax.Missing(name):
                return Affine({self.missing[name]: ONE}) if name in self.missing else Affine()
            case syntax.Not(part):
                inner = self._direct(part)
                return None if inner is None else Affine(shift=ONE).plus(inner, -ONE)
        inside = self._levels_inside(guard)
        if inside is None:
            return None
        name, positions = inside
        return Affine({self.levels[name][k]: ONE for k in sorted(positions)})

    def _levels_inside(self, guard: syntax.Guard) -> tuple[str, frozenset[int]] | None:
        match guard:
            case syntax.Compare(sign, syntax.Variable(name), syntax.Constant(value)) if name in self.levels:
                size = len(self.levels[name])
                return name, frozenset(k for k in range(size) if compare(sign, Fraction(k), value))
            case syntax.And(parts) | syntax.Or(parts):
                each = [self._levels_inside(part) for part in parts]
                known = [inside for inside in each if inside is not None]
                if len(known) < len(each) or len({name for name, _ in known}) > 1:
                    return None
                sets = [positions for _, positions in known]
                join = frozenset.intersection if isinstance(guard, syntax.And) else frozenset.union
                return known[0][0], join(*sets)
            case _:
                return None

    def _greatest(self, left: Affine, right: Affine, sense: int) -> Affine:
        """Return a column for the greater of two sums."""
        difference = left.plus(right, -ONE)
        if not difference.terms:
            return left if difference.shift >= 0 else right
        if sense < 0:
            sense = 0
        key = ("max", _frozen(left), _frozen(right), sense)
        if key not in self._known:
            result = Affine({self.quantities.column(): ONE})
            over_left, over_right = left.plus(result, -ONE), right.plus(result, -ONE)
            first = every([self._compare("==", over_left), self._compare(">=", difference)])
            second = every([self._compare("==", over_right), self._compare("<=", difference)])
            attained = some([first, second])
            self.definitions += [self._compare("<=", over_left), self._compare("<=", over_right)]
            self.definitions.append(Implied(attained) if sense > 0 else attained)
            self._known[key] = result
        return self._known[key]

    def _decimal(self, name: str) -> Affine:
        """Return the decimal of a number on a grid, low + k·step, by a column for k."""
        key = ("decimal", name)
        if key not in self._known:
            grid = self._grids[name]
            low, step = decimal_fraction(grid.low), decimal_fraction(grid.step or 1)
            last = (grid.size or 1) - 1
            index = self.quantities.column(0.0, float(last), domain_of(Integer(0, last), None))
            self._whole.add(index)
            made = Affine({index: step}, low)
            room = Affine(shift=Fraction(math.ulp(max(abs(grid.low), abs(grid.high)))))
            apart = Affine({self.numbers[name]: ONE}).plus(made, -ONE)
            self.definitions += [self._compare("<=", apart.plus(room, -ONE)), self._compare(">=", apart.plus(room))]
            self._known[key] = made
        return self._known[key]

    def _rounding(self, name: str, value: Affine) -> Affine:
        """Return a sum with a column for what its rounding may add to it, at most half an ulp either way."""
        if not value.terms:
            return Affine(shift=rounded(name, value.shift))
        key = ("rounding", name, _frozen(value))
        if key not in self._known:
            q = self.quantities
            size = float(abs(value.shift)) + sum(
                float(abs(a)) * max(abs(q.low[column]), abs(q.high[column])) for column, a in value.terms.items()
            )
            share, least = unit(name)
            room = float(share) * size * (1 + 1e-9) + 2 * float(least)
            self._known[key] = value.plus(Affine({q.column(-room, room): ONE}))
        return self._known[key]

    def _product(self, left: Affine, right: Affine) -> Affine:
        for one, other in ((left, right), (right, left)):
            if not one.terms:
                return other.times(one.shift)
        key = ("product", _frozen(left), _frozen(right))
        if key not in self._known:
            result = self.quantities.column()
            self.definitions.append(Product(result, self._as_column(left), self._as_column(right)))
            self._known[key] = Affine({result: ONE})
        return self._known[key]

    def _quotient(self, left: Affine, right: Affine) -> Affine:
        """Return a column q with q · right = left; where right may be 0 nothing is known of q, which is sound."""
        if not right.terms:
            return left.times(1 / right.shift) if right.shift else Affine({self.quantities.column(): ONE})
        key = ("quotient", _frozen(left), _frozen(right))
        if key not in self._known:
            result = self.quantities.column()
            self.definitions.append(Product(self._as_column(left), self._as_column(right), result))
            self._known[key] = Affine({result: ONE})
        return self._known[key]

    def _as_column(self, value: Affine) -> int:
        if not value.shift and len(value.terms) == 1:
            ((column, a),) = value.terms.items()
            if a == 1:
                return column
        key = ("column", _frozen(value))
        if key not in self._known:
            result = Affine({self.quantities.column(): ONE})
            self.definitions.append(self._compare("==", result.plus(value, -ONE)))
            self._known[key] = result
        return next(iter(self._known[key].terms))


def _between(column: int, low: float, high: float) -> Node:
    if low > high or low == math.inf or high == -math.inf:
        return Never()
    return Bound(column, None if math.isinf(low) else Fraction(low), None if math.isinf(high) else Fraction(high))


def _frozen(value: Affine) -> tuple[tuple[tuple[int, Fraction], ...], Fraction]:
    return tuple(sorted(value.terms.items())), value.shift
