"""Conditions with room for roundings: what holds of a point for certain, where an oracle knows a rounding within half an ulp only."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from mace.language.linear import room, unrounded
from mace.language.roundings import ROUNDINGS
from mace.language.syntax import (
    And,
    Binary,
    Compare,
    Constant,
    Expression,
    Guard,
    Missing,
    Not,
    Or,
    Truth,
    Unary,
    conjunction,
    disjunction,
    negation,
    variables,
)
from mace.space import FeatureSpace, Integer, Real

TIMES = 8
"""So many times the room that roundings need is left: a witness becomes floats first."""


def sizes_of(space: FeatureSpace) -> dict[str, Fraction]:
    """Return the most that the number of each feature may be."""
    return {
        name: max(abs(Fraction(feature.low)), abs(Fraction(feature.high)))
        if isinstance(feature, Real | Integer)
        else Fraction(len(feature.levels))
        for name, feature in space.items()
    }


def narrowed(guard: Guard, sizes: Mapping[str, Fraction]) -> Guard:
    """Return a guard without roundings that leaves room for them; an equation is taken as it stands without them."""
    match guard:
        case And(parts):
            return conjunction(narrowed(part, sizes) for part in parts)
        case Or(parts):
            return disjunction(narrowed(part, sizes) for part in parts)
        case Not(Missing()) | Missing() | Truth():
            return guard
        case Not(part):
            return narrowed(negation(part), sizes)
        case Compare(sign, left, right):
            if not (_rounds(left) or _rounds(right)):
                return guard
            first, second = unrounded(left), unrounded(right)
            if sign == "==" or not variables(guard) <= set(sizes):
                return Compare(sign, first, second)
            margin = Constant(TIMES * room(guard, sizes))
            below = Compare("<=", Binary("+", first, margin), second)
            above = Compare(">=", first, Binary("+", second, margin))
            if sign == "!=":
                return disjunction([below, above])
            return below if sign in ("<", "<=") else above


def _rounds(expression: Expression) -> bool:
    match expression:
        case Unary(name, operand):
            return name in ROUNDINGS or _rounds(operand)
        case Binary(_, left, right):
            return _rounds(left) or _rounds(right)
        case _:
            return False
