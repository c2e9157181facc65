"""robust: counterfactuals that stay in the target wherever noise moves them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar

from mace.constraints.condition import Condition, Constraint, Values, ordered_feature
from mace.constraints.numbers import as_written, is_binary, plain_number
from mace.constraints.views import View
from mace.constraints.words import name_text, number_text
from mace.distances.people import SPREADS, a_day, spreads
from mace.errors import InvalidConstraint, InvalidDistance, cut
from mace.exact import float_down, float_up, greatest_float, least_float
from mace.language import syntax
from mace.space import Feature, FeatureSpace, Integer, Ordinal, Point, Real
from mace.space.decimals import decimal_of, dtype_of

Exact = tuple[Fraction | None, ...]

GREATEST_RADIUS = 1e150
"""The greatest radius."""

MOST_SHARE = 1e6
"""The greatest share of a range or spread."""

_SHARE = re.compile(r"([0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]+)?)\s*(%)?\s*(?:of\s+)?(range|sd|mad)")


@dataclass(frozen=True)
class RobustCondition(Condition):
    """Every plausible row that differs from this one by at most the radii is in the target too; with ``written``, between decimals.

    No formula says that; a search proves it of one point after the other and remembers those that it has proved.
    """

    space: FeatureSpace
    radii: dict[str, Fraction]
    written: bool = True
    proved: set[Exact] = field(default_factory=set, compare=False)
    search: ClassVar[str] = "robust"

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
    """The target is reached on the whole box around the answer.

    ``noise`` are radii; with ``share_of`` what ``share`` is of: nothing for ``"range"``, whose ends the space knows, otherwise the spread
    of each column of the data.
    """

    noise: tuple[tuple[str, float], ...]
    share: float | None = None
    share_of: str = ""

    def bind(self, space: FeatureSpace, factual: Point) -> Condition:
        """Return the condition."""
        radii = self.radii(space)
        for name in radii:
            ordered_feature(space, name, str(self))
        if is_binary() and self.share is None:
            noise = dict(self.noise)
            return RobustCondition(space, {name: _radius(space[name], noise[name]) for name in noise}, written=False)
        return RobustCondition(space, radii)

    def radii(self, space: FeatureSpace) -> dict[str, Fraction]:
        """Return by how much each noisy feature of a space may turn out otherwise."""
        if self.share is None:
            return {name: as_written(radius) for name, radius in self.noise}
        share, measured = as_written(self.share), dict(self.noise)
        if self.share_of == "range":
            ordered = {name: each for name, each in space.items() if isinstance(each, Real | Integer | Ordinal)}
            return {name: share * ends_apart(feature) for name, feature in ordered.items()}
        numbers = [name for name, feature in space.items() if isinstance(feature, Real | Integer)]
        absent = next((name for name in numbers if name not in measured), None)
        if absent is not None and self.is_unmeasured:
            raise InvalidConstraint(
                f"{self}: that is measured by people, and none were given. Give them: mace.robust({self._text!r}, data=X_train); on the "
                "command line those of --data, or --people, count."
            )
        if absent is not None:
            raise InvalidConstraint(
                f"{self}: data has no numbers in a column {absent!r}, which is a feature; add them."
            )
        return {name: share * as_written(measured[name]) * a_day(space[name]) for name in numbers}

    @property
    def is_unmeasured(self) -> bool:
        """Whether the noise is a share of what columns spread by, and no people have been given yet, as in a text."""
        return self.share_of in SPREADS and not self.noise

    def measured(self, data: Any) -> Robust:
        """Return the noise, measured by people."""
        return Robust(_spreads(self._text, self.share_of, data), self.share, self.share_of)

    @property
    def text(self) -> str:
        """The noise in the text form, which does not say what columns spread by: ``robust to 0.05 of sd``."""
        if self.share is not None:
            return f"robust to {self._text}"
        return "robust to " + ", ".join(f"{name_text(name)} by {number_text(radius)}" for name, radius in self.noise)

    def to_dict(self) -> dict[str, Any]:
        """Return the constraint as plain data."""
        arguments: list[Any] = [dict(self.noise)] if self.share is None else [self._text]
        return {"kind": "robust", "arguments": arguments + ([dict(self.noise)] if self.share_of in SPREADS else [])}

    @property
    def _text(self) -> str:
        assert self.share is not None
        return f"{self.share!r} of {self.share_of}"

    def __repr__(self) -> str:
        return cut(str(self))

    def __str__(self) -> str:
        if self.share is None:
            return f"robust({dict(self.noise)})"
        return f"robust({self._text!r})"


def robust(noise: Mapping[str, float] | float | str, data: Any = None) -> Robust:
    """Want the target for every plausible row in the box around the answer, proved.

    Parameters
    ----------
    noise : mapping of names to numbers, number, or text
        By how much each of these features may turn out otherwise, up or down, in its own unit (levels of an ordinal feature: so many
        levels). The other features are as in the answer. Rows outside the ranges and grids of the space do not count. A number is the same
        share of the range of every feature that has an order, in levels from the lowest to the highest: ``0.01``, or ``"1% of range"``.
        ``"5% of sd"`` and ``"5% of mad"`` are shares of what the column of each number spreads by, its standard deviation or its median
        absolute deviation; ordered levels are as in the answer.
    data : data frame, or mapping of names to numbers
        With ``"of sd"`` and ``"of mad"``: people, with a column for each number, or what their columns spread by.

    Examples
    --------
    >>> print(robust({"income": 500}))
    robust({'income': 500})
    >>> print(robust("5% of sd", data={"income": 1200.0}))
    robust('0.05 of sd')
    """
    if isinstance(noise, str):
        return _of_text(noise, data)
    if data is not None:
        raise InvalidConstraint("robust: data belongs to texts such as '5% of sd'; leave it out beside other noise.")
    if isinstance(noise, int | float) and not isinstance(noise, bool):
        return Robust((), _checked_share(noise, noise), "range")
    if not isinstance(noise, Mapping) or not noise:
        raise InvalidConstraint(
            f"robust: noise is {noise!r:.80}; give a dict from features to radii, e.g. {{'income': 500}}, a share of every range, e.g. "
            "0.01, or a text, e.g. '5% of sd' with data=X_train."
        )
    given: dict[str, Any] = {name: plain_number(radius) for name, radius in noise.items()}
    for name, radius in given.items():
        if isinstance(radius, bool) or not isinstance(radius, int | float) or not 0 <= radius <= GREATEST_RADIUS:
            raise InvalidConstraint(
                f"robust: the radius of {name!r} is {radius!r:.40}; it must be a number from 0 to {GREATEST_RADIUS:g}."
            )
    return Robust(tuple(given.items()))


def _of_text(text: str, data: Any) -> Robust:
    """Return the noise that a text names."""
    made = robust_share(text)
    if made.share_of in SPREADS:
        return made.measured(data)
    if data is not None:
        raise InvalidConstraint(f"robust({text!r}): the space knows the ranges; leave data out.")
    return made


def robust_share(text: str) -> Robust:
    """Return noise as a share of ranges, or of what columns spread by; it is then to be measured by people."""
    found = _SHARE.fullmatch(text.strip())
    if found is None:
        raise InvalidConstraint(f"robust: {text!r:.60} is no noise. Write '1% of range', '5% of sd' or '5% of mad'.")
    number, percent, share_of = found.groups()
    return Robust((), _checked_share(float(Decimal(number) / (100 if percent else 1)), text), share_of)


def measured(constraint: Constraint, people: Callable[[], Any]) -> Constraint:
    """Return a constraint; noise in a text that is to be measured by people is measured by these."""
    is_open = isinstance(constraint, Robust) and constraint.is_unmeasured
    return constraint.measured(people()) if is_open else constraint  # type: ignore[attr-defined]


def _spreads(text: str, share_of: str, data: Any) -> tuple[tuple[str, float], ...]:
    try:
        return tuple(spreads(share_of, data).items())
    except InvalidDistance as error:
        raise InvalidConstraint(f"robust({text!r}): {error}") from error


def _checked_share(share: float, given: object) -> float:
    if not 0 <= share <= MOST_SHARE:
        raise InvalidConstraint(f"robust: {given!r:.40} must be a share from 0 to {MOST_SHARE:g}, e.g. 0.01.")
    return share


def ends_apart(feature: Feature) -> Fraction:
    """Return how far the ends of a feature's range are apart, as they are written; of levels, how many steps."""
    if isinstance(feature, Real):
        return decimal_of(feature, feature.high) - decimal_of(feature, feature.low)
    return Fraction(feature.range)


def _radius(feature: Feature, radius: float) -> Fraction:
    """Return a radius as version 0.1 read it: on a grid of decimals with room for their rounding, so that a step is a step up and down."""
    if not radius or not isinstance(feature, Real) or feature.step is None:
        return Fraction(radius)
    return Fraction(radius) + 4 * Fraction(feature.spacing(max(abs(feature.low), abs(feature.high))))
