"""The numbers, levels and features that comparisons in the text form are made of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mace.constraints.condition import feature_of
from mace.constraints.numbers import Given, Number, as_written, date_number, old_value
from mace.constraints.words import name_text, value_text
from mace.errors import InvalidConstraint
from mace.language import syntax
from mace.space import Categorical, Date, FeatureSpace, Ordinal, Point

BINDING_POWER = {"+": 1, "-": 1, "*": 2, "/": 2}


@dataclass(frozen=True, slots=True)
class Literal:
    """A number or a level."""

    value: Given


@dataclass(frozen=True, slots=True)
class Feature:
    """A feature of the counterfactual, or of the factual (``old.age``)."""

    name: str
    is_old: bool = False


@dataclass(frozen=True, slots=True)
class Minus:
    """The negative of a term."""

    operand: Term


@dataclass(frozen=True, slots=True)
class Operation:
    """Two terms joined by + - * / min or max."""

    operator: syntax.BinaryName
    left: Term
    right: Term


@dataclass(frozen=True, slots=True)
class Absolute:
    """The absolute value of a term."""

    operand: Term


Term = Literal | Feature | Minus | Operation | Absolute


def features(term: Term) -> Iterator[Feature]:
    """Yield the features of a term, in the order of the text."""
    match term:
        case Feature():
            yield term
        case Minus(operand) | Absolute(operand):
            yield from features(operand)
        case Operation(_, left, right):
            yield from features(left)
            yield from features(right)
        case Literal():
            pass


def term_text(term: Term) -> str:
    """Return a term as it is written."""
    match term:
        case Literal(value):
            return value_text(value)
        case Feature(name, is_old):
            return f"old.{name_text(name)}" if is_old else name_text(name)
        case Minus(operand):
            return f"-{_factor(operand)}"
        case Absolute(operand):
            return f"abs({term_text(operand)})"
        case Operation(("min" | "max") as name, left, right):
            return f"{name}({term_text(left)}, {term_text(right)})"
        case Operation(sign, left, right):
            before = f"({term_text(left)})" if _level(left) < BINDING_POWER[sign] else term_text(left)
            after = f"({term_text(right)})" if _level(right) <= BINDING_POWER[sign] else term_text(right)
            return f"{before} {sign} {after}"


def _level(term: Term) -> int:
    return BINDING_POWER.get(term.operator, 3) if isinstance(term, Operation) else 3


def _factor(term: Term) -> str:
    return f"({term_text(term)})" if _level(term) < 3 else term_text(term)


def dated(term: Term, feature: Date, constraint: str) -> Term:
    """Return a term with the texts in it as the dates that they write, numbers of the feature's unit."""
    match term:
        case Literal(str(text)):
            return Literal(date_number(feature, text, constraint))
        case Minus(operand):
            return Minus(dated(operand, feature, constraint))
        case Absolute(operand):
            return Absolute(dated(operand, feature, constraint))
        case Operation(operator, left, right):
            return Operation(operator, dated(left, feature, constraint), dated(right, feature, constraint))
    return term


def levels_of(term: Term, space: FeatureSpace) -> str | None:
    """Return the feature whose levels a term stands for; ``None`` where it is a number."""
    if isinstance(term, Feature) and isinstance(space[term.name], Ordinal | Categorical):
        return term.name
    return None


def expression(term: Term, space: FeatureSpace, factual: Point, constraint: str) -> syntax.Expression:
    """Return a term as a number of the core language; a feature with levels stands for the position of its level."""
    match term:
        case Literal(value):
            if isinstance(value, bool) or not isinstance(value, Number):
                raise InvalidConstraint(f"{constraint}: {value!r} is not a number here.")
            return syntax.Constant(as_written(value))
        case Feature(name, is_old):
            feature_of(space, name, constraint)
            if not is_old:
                return syntax.Variable(name)
            own = factual[space.index(name)]
            assert own is not None, "whoever asks has looked whether the factual's value is missing"
            return syntax.Constant(old_value(space[name], own))
        case Minus(operand):
            return syntax.Unary("neg", _number(operand, space, factual, constraint))
        case Absolute(operand):
            return syntax.Unary("abs", _number(operand, space, factual, constraint))
        case Operation(operator, left, right):
            divisor = _number(right, space, factual, constraint)
            if operator == "/" and (not isinstance(divisor, syntax.Constant) or divisor.value == 0):
                raise InvalidConstraint(
                    f"{constraint}: divides by {term_text(right)}; divide by a number other than 0."
                )
            return syntax.Binary(operator, _number(left, space, factual, constraint), divisor)


def _number(term: Term, space: FeatureSpace, factual: Point, constraint: str) -> syntax.Expression:
    """Return a term that is calculated with: levels are not."""
    made = expression(term, space, factual, constraint)
    name = levels_of(term, space)
    if name is not None:
        raise InvalidConstraint(f"{constraint}: {name!r} has levels, and levels cannot be calculated with.")
    return made
