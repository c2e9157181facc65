"""δ_j: the normalised change of one feature, as a number and as a command of the core language."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from mace.language import syntax
from mace.language.roundings import DECIMALS, unit
from mace.space import Categorical, Feature, Integer, Real, Value
from mace.space.decimals import decimal_of, dtype_of


@lru_cache(maxsize=1 << 14)
def change(feature: Feature, new: Value, old: Value) -> Fraction:
    """Return δ: |new - old| / range for numbers and ordered levels, 0 or 1 for categories and to or from missing."""
    if new is None or old is None:
        return Fraction(int((new is None) != (old is None)))
    if new == old or feature.range == 0:
        return Fraction(0)
    if isinstance(feature, Categorical):
        return Fraction(1)
    return abs(Fraction(new) - Fraction(old)) / feature.range


def written_change(feature: Feature, new: Value, old: Value) -> Fraction:
    """Return δ of the decimals that values, and the ends of the range, are written as: what limits on distances are about."""
    if new is None or old is None or new == old or not isinstance(feature, Real) or feature.range == 0:
        return change(feature, new, old)
    return abs(decimal_of(feature, float(new)) - decimal_of(feature, float(old))) / written_range(feature)


def written_range(feature: Feature) -> Fraction:
    """Return the width of the range, or of the one observed, between the decimals that its ends are written as."""
    if not isinstance(feature, Real):
        return feature.range
    low, high = feature.observed or (feature.low, feature.high)
    return decimal_of(feature, high) - decimal_of(feature, low)


def greatest_change(feature: Feature) -> Fraction:
    """Return a δ that no two values of a feature exceed: above 1 where the range is wider than the one that distances divide by."""
    if not isinstance(feature, Real | Integer) or feature.observed is None:
        return Fraction(1)
    return max(Fraction(1), (Fraction(feature.high) - Fraction(feature.low)) / feature.range)


def written_room(feature: Feature) -> Fraction:
    """Return by how much δ of decimals and δ of floats may differ."""
    if not isinstance(feature, Real) or feature.range == 0:
        return Fraction(0)
    share, least = unit(DECIMALS[dtype_of(feature)])
    moved = 2 * (share * max(abs(Fraction(feature.low)), abs(Fraction(feature.high))) + least)
    return min(Fraction(1), 2 * moved / (feature.range - moved)) if feature.range > moved else Fraction(1)


def change_command(name: str, feature: Feature, old: Value, result: str, *, written: bool = False) -> syntax.Command:
    """Return the command ``result := δ`` of the feature ``name`` from ``old``; of decimals, where ``written``."""
    if old is None:
        return syntax.Assign(result, syntax.Indicator(syntax.Not(syntax.Missing(name))))
    assign = syntax.Assign(result, _distance(name, feature, old, written))
    return syntax.If(syntax.Missing(name), syntax.Assign(result, syntax.ONE), assign) if feature.missing else assign


def differs(name: str, feature: Feature, old: Value) -> syntax.Guard:
    """Return the guard that δ is not 0."""
    if old is None:
        return syntax.Not(syntax.Missing(name))
    moved: syntax.Guard = (
        syntax.FALSE if feature.range == 0 else syntax.Compare("!=", syntax.Variable(name), syntax.constant(old))
    )
    return syntax.disjunction([syntax.Missing(name), moved]) if feature.missing else moved


def _distance(name: str, feature: Feature, old: int | float, written: bool) -> syntax.Expression:
    if feature.range == 0:
        return syntax.ZERO
    if isinstance(feature, Categorical):
        return syntax.Indicator(syntax.Compare("!=", syntax.Variable(name), syntax.constant(old)))
    if written and isinstance(feature, Real):
        number = syntax.Unary(DECIMALS[dtype_of(feature)], syntax.Variable(name))
        moved = syntax.Unary("abs", syntax.Binary("-", number, syntax.Constant(decimal_of(feature, old))))
        return syntax.Binary("*", syntax.Constant(1 / written_range(feature)), moved)
    moved = syntax.Unary("abs", syntax.Binary("-", syntax.Variable(name), syntax.constant(old)))
    return syntax.Binary("*", syntax.constant(1 / feature.range), moved)
