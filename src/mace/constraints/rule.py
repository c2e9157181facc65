"""rule and linear: a predicate in the text form, or as a Python function of the new and the old row."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any, cast

from mace.constraints.combine import Combinable
from mace.constraints.condition import AtLeast, Condition, Constraint, GuardCondition, feature_of, present
from mace.constraints.numbers import as_written, meant, meant_program, number_of, old_value
from mace.constraints.terms import (
    Feature,
    Literal,
    Minus,
    Operation,
    Term,
    dated,
    expression,
    features,
    levels_of,
    term_text,
)
from mace.constraints.words import name_text
from mace.errors import InvalidConstraint, InvalidProgram
from mace.language import Symbol, divides_by_variable, parse, syntax
from mace.language.source import find_source
from mace.space import Categorical, Date, FeatureSpace, Ordinal, Point
from mace.space import Feature as SpaceFeature

RULE_SIGNS: tuple[syntax.CompareName, ...] = ("<=", ">=", "==", "!=", "<", ">")


@dataclass(frozen=True, slots=True, repr=False)
class Comparison(Combinable):
    """Terms compared in a chain: ``0 <= debt <= 0.4 * income``. It does not hold where a feature in it is missing."""

    terms: tuple[Term, ...]
    signs: tuple[syntax.CompareName, ...]

    def bind(self, space: FeatureSpace, factual: Point) -> Condition:
        """Return the comparisons."""
        named = [feature for term in self.terms for feature in features(term)]
        for feature in named:
            feature_of(space, feature.name, str(self))
        if any(feature.is_old and factual[space.index(feature.name)] is None for feature in named):
            return GuardCondition(syntax.FALSE)
        new = dict.fromkeys(feature.name for feature in named if not feature.is_old)
        links = zip(pairwise(self._with_dates(space, named)), self.signs, strict=True)
        parts = [self._link(left, sign, right, space, factual) for (left, right), sign in links]
        return GuardCondition(syntax.conjunction([*present(space, new), *parts]))

    def _with_dates(self, space: FeatureSpace, named: list[Feature]) -> list[Term]:
        """Return the terms with the dates in them as numbers, where they are compared with features that are dates."""
        dates = [each for feature in named if isinstance(each := space[feature.name], Date)]
        if len({each.unit for each in dates}) > 1:
            raise InvalidConstraint(
                f"{self}: the dates in it are counted in different units; compare each with a date."
            )
        return [dated(term, dates[0], str(self)) for term in self.terms] if dates else list(self.terms)

    def _link(
        self, left: Term, sign: syntax.CompareName, right: Term, space: FeatureSpace, factual: Point
    ) -> syntax.Guard:
        leveled = [levels_of(left, space), levels_of(right, space)]
        named = next((name for name in leveled if name is not None), None)
        if named is None:
            sides = [expression(side, space, factual, str(self)) for side in (left, right)]
            return meant(syntax.Compare(sign, sides[0], sides[1]), space, factual)
        feature = space[named]
        if isinstance(feature, Categorical) and sign not in ("==", "!="):
            raise InvalidConstraint(
                f"{self}: {named!r} is categorical and has no order. Use == or !=, or make it ordinal."
            )
        made = [self._level(side, named, space, factual) for side in (left, right)]
        return syntax.Compare(sign, made[0], made[1])

    def _level(self, term: Term, named: str, space: FeatureSpace, factual: Point) -> syntax.Expression:
        """Return the position of a level among those of the feature ``named``."""
        if isinstance(term, Literal):
            return syntax.Constant(number_of(space, named, term.value, str(self)))
        other = levels_of(term, space)
        if other is None:
            raise InvalidConstraint(f"{self}: {named!r} has levels, and {term_text(term)} is a number.")
        if cast(Ordinal, space[other]).levels != cast(Ordinal, space[named]).levels:
            raise InvalidConstraint(f"{self}: {named!r} and {other!r} have different levels; they cannot be compared.")
        return expression(term, space, factual, str(self))

    @property
    def text(self) -> str:
        """The chain."""
        signs = (f" {sign} " for sign in self.signs)
        return "".join(part for pair in zip(map(term_text, self.terms), [*signs, ""], strict=True) for part in pair)


@dataclass(frozen=True, slots=True, repr=False)
class IsMissing(Combinable):
    """The feature has no value."""

    feature: str

    def bind(self, space: FeatureSpace, factual: Point) -> Condition:
        """Return that it is missing; never where it cannot be."""
        feature = feature_of(space, self.feature, str(self))
        if isinstance(feature, Categorical) and feature.missing_level is not None:
            return GuardCondition(
                syntax.Compare("==", syntax.Variable(self.feature), syntax.Constant(Fraction(feature.missing_level)))
            )
        return GuardCondition(syntax.Missing(self.feature) if feature.missing else syntax.FALSE)

    @property
    def text(self) -> str:
        """``income is missing``."""
        return f"{name_text(self.feature)} is missing"


@dataclass(frozen=True, slots=True, repr=False)
class FunctionRule(Combinable):
    """A Python function ``(new, old)`` that must be true; parsed, never executed."""

    function: Callable[..., object] | str

    def bind(self, space: FeatureSpace, factual: Point) -> Condition:
        """Return what the function says of the new row."""
        new = {name: _symbol(space[name], syntax.Variable(name)) for name in space}
        old = {
            name: _symbol(space[name], syntax.Constant(old_value(space[name], own)))
            for name, own in zip(space, factual, strict=True)
            if own is not None
        }
        try:
            parsed = parse(self.function, records=[new, old], reads=as_written)
        except InvalidProgram as error:
            raise InvalidConstraint(f"cannot read the rule: {error}") from error
        if parsed.labels is not None:
            raise InvalidConstraint("the rule returns text; it must return a condition, e.g. new.debt <= new.income.")
        if divides_by_variable(parsed.program):
            raise InvalidConstraint("the rule divides by something that depends on the new row. Multiply instead.")
        program = meant_program(syntax.Program(space.names, parsed.program.body), space, factual)
        if isinstance(program.body, syntax.Return) and isinstance(program.body.value, syntax.Indicator):
            return GuardCondition(program.body.value.guard)
        return AtLeast(program, Fraction(1))

    @property
    def text(self) -> str:
        """The function's source."""
        return ast.unparse(find_source(self.function).node)

    def __str__(self) -> str:
        name = getattr(self.function, "__name__", "<lambda>")
        return f"rule({self.function!r})" if isinstance(self.function, str) else f"rule({name})"


def _symbol(feature: SpaceFeature, expression: syntax.Expression) -> Symbol:
    """Return what a feature means to a function; levels that are floats are the decimals that they are written as."""
    made = Symbol.of(feature, expression)
    if made.levels is None:
        return made
    return replace(
        made, levels=tuple(as_written(level) if isinstance(level, float) else level for level in made.levels)
    )


def rule(condition: object) -> Constraint:
    """Return a constraint from its text form, or from a Python function of the new and the old row.

    Parameters
    ----------
    condition : str or function
        A text such as ``"if education changes then age >= old.age + 2"`` (see docs/constraints.md for the grammar), or a function or lambda
        ``(new, old)`` in the core language, which is parsed, never executed.

    Examples
    --------
    >>> print(rule("debt <= 0.4 * income or guarantor == 'yes'"))
    rule("debt <= 0.4 * income or guarantor == 'yes'")
    """
    if isinstance(condition, str):
        if condition.lstrip().startswith(("lambda ", "lambda:", "def ")):
            return FunctionRule(condition)
        from mace.constraints.text import read

        return read(condition)
    if callable(condition) and not hasattr(condition, "bind"):
        return FunctionRule(condition)
    raise InvalidConstraint(f"rule({condition!r}): give a text, or a function of (new, old).")


def linear(
    coefficients: str | Mapping[str, int | float], sign: str | None = None, bound: float | None = None
) -> Comparison:
    """Return a linear inequality across features, written out or as coefficients.

    Examples
    --------
    >>> print(linear("months_late_30 <= months_late_12"))
    rule('months_late_30 <= months_late_12')
    >>> print(linear({"debt": 1, "income": -0.4}, "<=", 0))
    rule('debt + -0.4 * income <= 0')
    """
    if isinstance(coefficients, str):
        made = rule(coefficients)
        if sign is not None or bound is not None or not isinstance(made, Comparison):
            raise InvalidConstraint(
                f"linear({coefficients!r}): write one inequality, e.g. linear('debt <= 0.4 * income')."
            )
    else:
        made = _from_coefficients(coefficients, sign, bound)
    for term in made.terms:
        if not _is_linear(term):
            raise InvalidConstraint(f"{made}: {term_text(term)} is not linear. Use rule(...).")
    return made


def _from_coefficients(coefficients: Any, sign: str | None, bound: float | None) -> Comparison:
    if not isinstance(coefficients, Mapping) or not coefficients:
        raise InvalidConstraint(f"linear({coefficients!r}): give a text or a dict from features to coefficients.")
    if sign not in RULE_SIGNS or isinstance(bound, bool) or not isinstance(bound, int | float):
        raise InvalidConstraint(
            f"linear({{...}}, {sign!r}, {bound!r}): give a sign of {', '.join(RULE_SIGNS)} and a number."
        )
    total: Term | None = None
    for name, value in coefficients.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InvalidConstraint(f"linear: the coefficient of {name!r} is {value!r}; give a number.")
        term: Term = Feature(name) if value == 1 else Operation("*", Literal(value), Feature(name))
        total = term if total is None else Operation("+", total, term)
    assert total is not None
    return Comparison((total, Literal(bound)), (sign,))


def _is_linear(term: Term) -> bool:
    match term:
        case Literal() | Feature():
            return True
        case Minus(operand):
            return _is_linear(operand)
        case Operation("+" | "-", left, right):
            return _is_linear(left) and _is_linear(right)
        case Operation("*", left, right):
            return _is_linear(left) and _is_linear(right) and (_is_constant(left) or _is_constant(right))
        case Operation("/", left, _):
            return _is_linear(left)
        case _:
            return _is_constant(term)


def _is_constant(term: Term) -> bool:
    return all(feature.is_old for feature in features(term))
