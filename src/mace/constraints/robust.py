"""robust: counterfactuals that stay in the target wherever noise moves them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from mace.constraints.condition import Condition, Values, ordered_feature
from mace.constraints.numbers import as_written, is_binary
from mace.constraints.views import View
from mace.errors import InvalidConstraint, cut
from mace.exact import float_down, float_up, greatest_float, least_float
from mace.language import syntax
from mace.space import Feature, FeatureSpace, Point, Real
from mace.space.decimals import decimal_of, dtype_of
from mace.space.features import plain_scalar

Exact = tuple[Fraction | None, ...]

GREATEST_RADIUS = 1e150
"""The greatest radius."""


@dataclass(frozen=True)
class RobustCondition(Condition):
    """Every plausible row that differs from this one by at most the radii is in the target too; with ``written``, between decimals.

    No formula says that; a search proves it of one point after the other and remembers those that it has proved.
    """

    space: FeatureSpace
    radii: dict[str, Fraction]
    written: bool = True
    proved: set[Exact] = field(default_factory=set, compare=False)

    def reach(self, name: str, low: Fraction | float, high: Fraction | float) -> tuple[Fraction, Fraction]:
        """Return the range that perturbations of values between two numbers reach; values that can reach these two lie in it as well."""
        feature, radius = self.space[name], self.radii.get(name, Fraction(0))
        if self.written and radius and isinstance(feature, Real):
            first, last, dtype = float_up(Fraction(low)), float_down(Fraction(high)), dtype_of(feature)
            least = least_float(decimal_of(feature, first) - radius, dtype)
            most = greatest_float(decimal_of(feature, last) + radius, dtype)
            if first <= last and math.isfinite(least) and math.isfinite(most):
                return Fraction(least), Fraction(most)
        return Fraction(low) - radius, Fraction(high) + radius

    def remember(self, point: Point) -> None:
        """Take note that the box around a point was proved."""
        self.proved.add(tuple(None if value is None else Fraction(value) for value in point))

    def holds(self, values: Values) -> bool:
        """Return whether the box around the row was proved."""
        return tuple(values[name] for name in self.space) in self.proved

    def why_not(self, view: View, space: FeatureSpace) -> str:
        """Return that no view shows it: a search of its own proves it, answer by answer."""
        return "robust answers are proved one by one"

    def formula(self, prefix: str) -> syntax.Guard:
        """Return what always holds: the search for robust answers proves the condition."""
        return syntax.TRUE


@dataclass(frozen=True)
class Robust:
    """The target is reached on the whole box around the answer."""

    noise: tuple[tuple[str, float], ...]

    def bind(self, space: FeatureSpace, factual: Point) -> Condition:
        """Return the condition."""
        for name, _ in self.noise:
            ordered_feature(space, name, str(self))
        if is_binary():
            return RobustCondition(
                space, {name: _radius(space[name], radius) for name, radius in self.noise}, written=False
            )
        return RobustCondition(space, {name: as_written(radius) for name, radius in self.noise})

    def to_dict(self) -> dict[str, Any]:
        """Return the constraint as plain data."""
        return {"kind": "robust", "arguments": [dict(self.noise)]}

    def __repr__(self) -> str:
        return cut(str(self))

    def __str__(self) -> str:
        return f"robust({dict(self.noise)})"


def robust(noise: Mapping[str, float]) -> Robust:
    """Want the target for every plausible row in the box around the answer, proved.

    Parameters
    ----------
    noise : mapping of names to numbers
        By how much each of these features may turn out otherwise, up or down, in its own unit (levels of an ordinal feature: so many
        levels). The other features are as in the answer. Rows outside the ranges and grids of the space do not count.

    Examples
    --------
    >>> print(robust({"income": 500}))
    robust({'income': 500})
    """
    if not isinstance(noise, Mapping) or not noise:
        raise InvalidConstraint(
            f"robust: noise is {noise!r}; give a dict from features to radii, e.g. {{'income': 500}}."
        )
    given: dict[str, Any] = {name: plain_scalar(radius) for name, radius in noise.items()}
    for name, radius in given.items():
        if isinstance(radius, bool) or not isinstance(radius, int | float) or not 0 <= radius <= GREATEST_RADIUS:
            raise InvalidConstraint(
                f"robust: the radius of {name!r} is {radius!r:.40}; it must be a number from 0 to {GREATEST_RADIUS:g}."
            )
    return Robust(tuple(given.items()))


def _radius(feature: Feature, radius: float) -> Fraction:
    """Return a radius as version 0.1 read it: on a grid of decimals with room for their rounding, so that a step is a step up and down."""
    if not radius or not isinstance(feature, Real) or feature.step is None:
        return Fraction(radius)
    return Fraction(radius) + 4 * Fraction(feature.spacing(max(abs(feature.low), abs(feature.high))))
