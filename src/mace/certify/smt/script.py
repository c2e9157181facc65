"""Formulas of the core language as an SMT-LIB 2 script, written anew for checking.

A feature is one variable: an integer for levels, whole numbers and grids (the index), a real otherwise, and a further Boolean where it
may be missing. A number of a grid that is no exact decimal lies within half an ulp of it, and is compared with constants on its index, as
floats compare.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from fractions import Fraction

from mace.language import syntax
from mace.language.roundings import unit
from mace.language.run import compare
from mace.problem import Problem
from mace.space import Categorical, Feature, Integer, Ordinal, Real, Value
from mace.space.decimals import decimal_of, is_short

SMT_SIGNS = {"<": "<", "<=": "<=", "==": "=", ">": ">", ">=": ">="}


class Script:
    """A script that grows by assertions."""

    def __init__(self, problem: Problem) -> None:
        self.lines: list[str] = []
        self.is_linear = True
        self._names: dict[str, str] = {}
        self._defined: dict[str, str] = {}
        self.numbers: dict[str, str] = {}
        self.grids: dict[str, tuple[str, Real]] = {}
        self.decimals: dict[str, str] = {}
        self.missing: dict[str, str] = {}
        self.own: dict[str, tuple[str, Fraction]] = {}
        self._features = {name: (f"x{j}", feature) for j, (name, feature) in enumerate(problem.space.items())}
        self._wanted: list[str] = []
        for j, ((name, feature), own) in enumerate(zip(problem.space.items(), problem.factual, strict=True)):
            self._declare_feature(f"x{j}", name, feature, own)
        self._wanted = [line.split()[1] for line in self.lines if line.startswith("(declare-const")]

    def text(self) -> str:
        """Return the whole script."""
        logic = "QF_LIRA" if self.is_linear else "QF_NIRA"
        wanted = " ".join(self._wanted)
        options = "(set-option :produce-models true)"
        return "\n".join([options, f"(set-logic {logic})", *self.lines, "(check-sat)", f"(get-value ({wanted}))", ""])

    def read(self, values: dict[str, str]) -> dict[str, Fraction | None] | None:
        """Return the features' numbers in the values of a solver; ``None`` where they cannot be read."""
        try:
            return {name: self._number_of(name, x, feature, values) for name, (x, feature) in self._features.items()}
        except (KeyError, ValueError, ZeroDivisionError):
            return None

    def _number_of(self, name: str, x: str, feature: Feature, values: dict[str, str]) -> Fraction | None:
        if values.get(self.missing.get(name, "")) == "true":
            return None
        if name in self.own and values.get(self.own[name][0]) == "true":
            return self.own[name][1]
        number = _parsed(values[x])
        if isinstance(feature, Ordinal | Categorical) or feature.size is None:
            return number
        return Fraction(feature.low if feature.size == 1 else feature.value_at(int(number)))

    def add(self, guard: syntax.Guard) -> None:
        """Assert a formula."""
        formula = self._guard(guard)
        self.lines.append(f"(assert {formula})")

    # ---- features

    def _declare_feature(self, x: str, name: str, feature: Feature, own: Value) -> None:
        if feature.missing:
            self.missing[name] = self._declare(f"{x}_missing", "Bool")
        if isinstance(feature, Ordinal | Categorical):
            self._declare(x, "Int")
            self.lines.append(f"(assert (and (<= 0 {x}) (<= {x} {len(feature.levels) - 1})))")
            self.numbers[name] = f"(to_real {x})"
        elif isinstance(feature, Real) and feature.size is None:
            self._declare(x, "Real")
            self.lines.append(f"(assert (and (<= {_real(feature.low)} {x}) (<= {x} {_real(feature.high)})))")
            self.numbers[name] = x
        else:
            self._declare_grid(x, name, feature, own)

    def _declare_grid(self, x: str, name: str, feature: Real | Integer, own: Value) -> None:
        self._declare(x, "Int")
        self.lines.append(f"(assert (and (<= 0 {x}) (<= {x} {(feature.size or 1) - 1})))")
        low, step = Fraction(feature.low), Fraction(feature.step or 1)
        if isinstance(feature, Real) and feature.step is not None:
            low, step = feature.decimals
        number = f"(+ {_real(low)} (* {_real(step)} (to_real {x})))"
        if isinstance(feature, Real) and feature.size != 1 and is_short(feature):
            self.decimals[name] = number
        if isinstance(feature, Real) and feature.size == 1:
            number = _real(feature.low)
        elif isinstance(feature, Real) and not feature.is_exact_grid:
            value = self._declare(f"{x}_value", "Real")
            half = _real(Fraction(feature.spacing(max(abs(feature.low), abs(feature.high)))) / 2)
            self.lines.append(f"(assert (and (<= (- {number} {half}) {value}) (<= {value} (+ {number} {half}))))")
            self.grids[name] = (x, feature)
            number = value
        if own is not None and not feature.has(own):
            stays = self._declare(f"{x}_stays", "Bool")
            self.own[name] = (stays, Fraction(own))
            if name in self.decimals:
                self.decimals[name] = f"(ite {stays} {_real(decimal_of(feature, own))} {self.decimals[name]})"
            number = f"(ite {stays} {_real(own)} {number})"
        self.numbers[name] = number

    def _declare(self, name: str, sort: str) -> str:
        self.lines.append(f"(declare-const {name} {sort})")
        return name

    def _variable(self, name: str) -> str:
        if name in self.numbers:
            return self.numbers[name]
        if name not in self._names:
            self._names[name] = self._declare(f"v{len(self._names)}", "Real")
        return self._names[name]

    # ---- formulas

    def _guard(self, guard: syntax.Guard) -> str:
        match guard:
            case syntax.Truth(value):
                return "true" if value else "false"
            case syntax.Missing(name):
                return self.missing.get(name, "false")
            case syntax.Not(part):
                return f"(not {self._guard(part)})"
            case syntax.And(parts):
                return f"(and true {' '.join(self._guard(part) for part in parts)})"
            case syntax.Or(parts):
                return f"(or false {' '.join(self._guard(part) for part in parts)})"
            case syntax.Compare(sign, syntax.Variable(name), syntax.Constant(value)) if name in self.grids:
                return self._on_grid(sign, name, value)
            case syntax.Compare(sign, syntax.Constant(value), syntax.Variable(name)) if name in self.grids:
                return self._on_grid(syntax.MIRRORED[sign], name, value)
            case syntax.Compare("!=", left, right):
                return f"(not (= {self._term(left)} {self._term(right)}))"
            case syntax.Compare(sign, left, right):
                return f"({SMT_SIGNS[sign]} {self._term(left)} {self._term(right)})"

    def _on_grid(self, sign: syntax.CompareName, name: str, constant: Fraction) -> str:
        """Compare a grid with a constant: on the index, by how many values lie below the constant."""
        x, feature = self.grids[name]
        indices = range(feature.size or 1)
        below = bisect_left(indices, constant, key=lambda k: Fraction(feature.value_at(k)))
        up_to = bisect_right(indices, constant, key=lambda k: Fraction(feature.value_at(k)))
        is_value = up_to > below
        found = {
            "<": f"(< {x} {below})",
            "<=": f"(< {x} {up_to})",
            ">": f"(>= {x} {up_to})",
            ">=": f"(>= {x} {below})",
            "==": f"(= {x} {below})" if is_value else "false",
            "!=": f"(not (= {x} {below}))" if is_value else "true",
        }[sign]
        if name not in self.own:
            return found
        stays, own = self.own[name]
        return f"(ite {stays} {'true' if compare(sign, own, constant) else 'false'} {found})"

    def _term(self, expression: syntax.Expression) -> str:
        match expression:
            case syntax.Variable(name):
                return self._variable(name)
            case syntax.Constant(value):
                return _real(value)
            case syntax.Indicator(guard):
                return f"(ite {self._guard(guard)} 1.0 0.0)"
            case syntax.Unary("neg", operand):
                return f"(- {self._term(operand)})"
            case syntax.Unary("abs", operand):
                inner = self._named(self._term(operand))
                return self._named(f"(ite (>= {inner} 0.0) {inner} (- {inner}))")
            case syntax.Unary(name, operand):
                return self._rounding(name, operand)
            case syntax.Binary("+", _, _):
                return f"(+ {' '.join(self._term(part) for part in syntax.summands(expression))})"
            case syntax.Binary("-", left, right):
                return f"(- {self._term(left)} {self._term(right)})"
            case syntax.Binary("*", left, right):
                self.is_linear &= isinstance(left, syntax.Constant) or isinstance(right, syntax.Constant)
                return f"(* {self._term(left)} {self._term(right)})"
            case syntax.Binary("/", left, right):
                self.is_linear &= isinstance(right, syntax.Constant) and right.value != 0
                return f"(/ {self._term(left)} {self._term(right)})"
            case syntax.Binary("min" | "max" as which, left, right):
                first, second = self._named(self._term(left)), self._named(self._term(right))
                return self._named(f"(ite ({'>=' if which == 'max' else '<='} {first} {second}) {first} {second})")
            case _:
                raise AssertionError(f"no translation of {expression!r}")

    def _rounding(self, name: str, operand: syntax.Expression) -> str:
        """Return the decimal of a number on a grid, or a variable for a rounding, within u·|v| + t of the number v that is rounded."""
        if isinstance(operand, syntax.Variable) and operand.name in self.decimals and name != "float":
            return self.decimals[operand.name]
        inner = self._named(self._term(operand))
        key = f"({name} {inner})"
        if key not in self._defined:
            share, least = map(_real, unit(name))
            result = self._declare(f"r{len(self._defined)}", "Real")
            size = self._named(f"(ite (>= {inner} 0.0) {inner} (- {inner}))")
            moved = self._named(f"(+ (* {share} {size}) {least})")
            self.lines.append(f"(assert (and (<= (- {inner} {moved}) {result}) (<= {result} (+ {inner} {moved}))))")
            self._defined[key] = result
        return self._defined[key]

    def _named(self, term: str) -> str:
        """Return a name for a term that occurs several times."""
        if term not in self._defined:
            self._defined[term] = f"t{len(self._defined)}"
            self.lines.append(f"(define-fun {self._defined[term]} () Real {term})")
        return self._defined[term]


def _real(value: Fraction | float) -> str:
    """Return a number as a real constant, exactly."""
    number = Fraction(value)
    size = (
        f"{abs(number.numerator)}.0"
        if number.denominator == 1
        else f"(/ {abs(number.numerator)}.0 {number.denominator}.0)"
    )
    return f"(- {size})" if number < 0 else size


def _parsed(text: str) -> Fraction:
    """Return the number that a solver prints: ``3``, ``(- 3)``, ``0.5``, ``(/ 1 3)``, ``(- (/ 1.0 3.0))``."""
    words = text.replace("(", " ").replace(")", " ").split()
    negative = words[0] == "-"
    words = words[1:] if negative else words
    if words[0] == "/":
        top, bottom = words[1:3] if words[1] != "-" else (f"-{words[2]}", words[3])
        number = Fraction(top) / Fraction(bottom)
    else:
        number = Fraction(words[0])
    return -number if negative else number
