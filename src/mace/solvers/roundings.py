"""Conditions with room for roundings. An oracle knows a rounded number to within half an ulp only; what is stated here holds of the point
whatever the rounding."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from mace.language import syntax
from mace.language.linear import room, unrounded
from mace.language.roundings import ROUNDINGS
from mace.language.walk import map_comparisons
from mace.space import FeatureSpace, Integer, Real

TIMES = 8
"""How many times the room that roundings need is left: the numbers of a witness are rounded to floats, too."""


def sizes_of(space: FeatureSpace) -> dict[str, Fraction]:
    """Return the most that the number of each feature may be."""
    return {
        name: max(abs(Fraction(feature.low)), abs(Fraction(feature.high)))
        if isinstance(feature, Real | Integer)
        else Fraction(len(feature.levels))
        for name, feature in space.items()
    }


def narrowed(guard: syntax.Guard, sizes: Mapping[str, Fraction]) -> syntax.Guard:
    """Return a guard without roundings that leaves room for them; an equation just loses them."""

    def change(atom: syntax.Compare) -> syntax.Guard:
        if not any(
            isinstance(node, syntax.Unary) and node.name in ROUNDINGS for node in syntax.nodes(atom, syntax.operands)
        ):
            return atom
        first, second = unrounded(atom.left), unrounded(atom.right)
        if atom.name == "==" or not syntax.variables(atom) <= set(sizes):
            return syntax.Compare(atom.name, first, second)
        margin = syntax.Constant(TIMES * room(atom, sizes))
        below = syntax.Compare("<=", syntax.Binary("+", first, margin), second)
        above = syntax.Compare(">=", first, syntax.Binary("+", second, margin))
        if atom.name == "!=":
            return syntax.disjunction([below, above])
        return below if atom.name in ("<", "<=") else above

    return map_comparisons(guard, change)
