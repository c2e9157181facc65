"""δ_j: the normalised change of one feature, as a number and as a command of the core language."""

from __future__ import annotations

from fractions import Fraction

from mace.language.syntax import (
    FALSE,
    ONE,
    ZERO,
    Assign,
    Binary,
    Command,
    Compare,
    Expression,
    Guard,
    If,
    Indicator,
    Missing,
    Not,
    Unary,
    Variable,
    constant,
    disjunction,
)
from mace.space import Categorical, Feature, Value


def change(feature: Feature, new: Value, old: Value) -> Fraction:
    """Return δ: |new - old| / range for numbers and ordered levels, 0 or 1 for categories and to or from missing."""
    if new is None or old is None:
        return Fraction(int((new is None) != (old is None)))
    if new == old or feature.range == 0:
        return Fraction(0)
    if isinstance(feature, Categorical):
        return Fraction(1)
    return abs(Fraction(new) - Fraction(old)) / feature.range


def change_command(name: str, feature: Feature, old: Value, result: str) -> Command:
    """Return the command ``result := δ`` of the feature ``name`` from ``old``."""
    if old is None:
        return Assign(result, Indicator(Not(Missing(name))))
    assign = Assign(result, _distance(name, feature, old))
    return If(Missing(name), Assign(result, ONE), assign) if feature.missing else assign


def differs(name: str, feature: Feature, old: Value) -> Guard:
    """Return the guard that δ is not 0."""
    if old is None:
        return Not(Missing(name))
    moved: Guard = FALSE if feature.range == 0 else Compare("!=", Variable(name), constant(old))
    return disjunction([Missing(name), moved]) if feature.missing else moved


def _distance(name: str, feature: Feature, old: int | float) -> Expression:
    if feature.range == 0:
        return ZERO
    if isinstance(feature, Categorical):
        return Indicator(Compare("!=", Variable(name), constant(old)))
    moved = Unary("abs", Binary("-", Variable(name), constant(old)))
    return Binary("*", constant(1 / feature.range), moved)
