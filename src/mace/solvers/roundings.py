"""Conditions with room for roundings: what holds of a point for certain, where an oracle knows a rounding within half an ulp only."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from mace.language import syntax
from mace.language.linear import room, unrounded
from mace.language.roundings import ROUNDINGS
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


def narrowed(guard: syntax.Guard, sizes: Mapping[str, Fraction]) -> syntax.Guard:
    """Return a guard without roundings that leaves room for them; an equation is taken as it stands without them."""
    match guard:
        case syntax.And(parts):
            return syntax.conjunction(narrowed(part, sizes) for part in parts)
        case syntax.Or(parts):
            return syntax.disjunction(narrowed(part, sizes) for part in parts)
        case syntax.Not(syntax.Missing()) | syntax.Missing() | syntax.Truth():
            return guard
        case syntax.Not(part):
            return narrowed(syntax.negation(part), sizes)
        case syntax.Compare(sign, left, right):
            if not (_rounds(left) or _rounds(right)):
                return guard
            first, second = unrounded(left), unrounded(right)
            if sign == "==" or not syntax.variables(guard) <= set(sizes):
                return syntax.Compare(sign, first, second)
            margin = syntax.Constant(TIMES * room(guard, sizes))
            below = syntax.Compare("<=", syntax.Binary("+", first, margin), second)
            above = syntax.Compare(">=", first, syntax.Binary("+", second, margin))
            if sign == "!=":
                return syntax.disjunction([below, above])
            return below if sign in ("<", "<=") else above


def _rounds(expression: syntax.Expression) -> bool:
    match expression:
        case syntax.Unary(name, operand):
            return name in ROUNDINGS or _rounds(operand)
        case syntax.Binary(_, left, right):
            return _rounds(left) or _rounds(right)
        case _:
            return False
