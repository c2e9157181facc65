"""changes_at_most: how many features may change, or what their changes may cost together."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from mace.constraints.combine import Combinable
from mace.constraints.condition import Condition, GuardCondition, changed, feature_of
from mace.constraints.numbers import Number, as_written
from mace.constraints.views import View
from mace.constraints.words import name_text, number_text
from mace.errors import InvalidConstraint
from mace.language import syntax
from mace.space import FeatureSpace, Point

LARGEST_EXACT_SUM = 2**53
"""Whole numbers up to this add up exactly in floats."""


@dataclass(frozen=True, slots=True)
class ChangeBudget(GuardCondition):
    """The weights of the features that differ from the factual's add up to at most ``most``."""

    weights: tuple[tuple[str, Fraction], ...]
    most: Fraction

    def whole(self, space: FeatureSpace) -> tuple[tuple[int, ...], int]:
        """Return the weight of each feature of a space, and the most that they may add up to; one factor makes all of them whole."""
        unit = math.lcm(*(weight.denominator for _, weight in self.weights))
        weights = {name: int(weight * unit) for name, weight in self.weights}
        return tuple(weights.get(name, 0) for name in space), math.floor(self.most * unit)

    def why_not(self, view: View, space: FeatureSpace) -> str:
        """Return why the budget cannot be taken in a view."""
        if view is not View.BUDGET:
            return GuardCondition.why_not(self, view, space)
        weights, most = self.whole(space)
        return "" if max(sum(weights), most) < LARGEST_EXACT_SUM else "the weights of a budget have too many digits"


@dataclass(frozen=True, slots=True, repr=False)
class ChangesAtMost(Combinable):
    """The weights of the features that change add up to at most ``budget``; every feature of the space where none is named."""

    budget: Number
    weights: tuple[tuple[str, Number], ...]

    def bind(self, space: FeatureSpace, factual: Point) -> Condition:
        """Return the bound on the sum."""
        for name, _ in self.weights:
            feature_of(space, name, str(self))
        weights = self.weights or tuple((name, 1) for name in space)
        terms: list[syntax.Expression] = []
        for name, weight in weights:
            term: syntax.Expression = syntax.Indicator(changed(space, name, factual))
            terms.append(term if weight == 1 else syntax.Binary("*", syntax.Constant(as_written(weight)), term))
        most = as_written(self.budget)
        guard = syntax.Compare("<=", syntax.total(terms), syntax.Constant(most))
        return ChangeBudget(guard, tuple((name, as_written(weight)) for name, weight in weights), most)

    @property
    def text(self) -> str:
        """``at most 3 features change``, ``at most 1 of a, b change``."""
        if not self.weights:
            return f"at most {number_text(self.budget)} features change"
        listed = ", ".join(
            name_text(name) if weight == 1 else f"{name_text(name)} * {number_text(weight)}"
            for name, weight in self.weights
        )
        return f"at most {number_text(self.budget)} of {listed} change"


def changes_at_most(
    budget: Number, of: Sequence[str] | None = None, weights: Mapping[str, Number] | None = None
) -> ChangesAtMost:
    """Let at most so many features change.

    Parameters
    ----------
    budget : number
        How many; with weights, what those that change may weigh together.
    of : names, optional
        Only these count; all features where neither ``of`` nor ``weights`` is given.
    weights : mapping of names to numbers, optional
        What a change of each weighs. Features that are not named do not count: they may change freely. (Those that the weights of a
        :class:`~mace.Distance` do not name count 1.)

    Examples
    --------
    >>> print(changes_at_most(3))
    rule('at most 3 features change')
    >>> print(changes_at_most(1, of=["job", "housing"]))
    rule('at most 1 of job, housing change')
    >>> print(changes_at_most(3, weights={"job": 2, "housing": 1}))
    rule('at most 3 of job * 2, housing change')
    """
    if isinstance(budget, bool) or not isinstance(budget, Number) or not 0 <= budget < math.inf:
        raise InvalidConstraint(f"changes_at_most({budget!r}): give a number of at least 0, e.g. changes_at_most(3).")
    if of is not None and weights is not None:
        raise InvalidConstraint("changes_at_most: give of= or weights=, not both.")
    if isinstance(of, str):
        raise InvalidConstraint(f"changes_at_most: of={of!r}; give a list of names, e.g. of=[{of!r}].")
    chosen = dict.fromkeys(of, 1) if of is not None else dict(weights or {})
    if not chosen and (of is not None or weights is not None):
        raise InvalidConstraint("changes_at_most: no feature is named.")
    for name, weight in chosen.items():
        if isinstance(weight, bool) or not isinstance(weight, Number) or not 0 <= weight < math.inf:
            raise InvalidConstraint(
                f"changes_at_most: the weight of {name!r} is {weight!r}; give a number of at least 0."
            )
    return ChangesAtMost(budget, tuple(chosen.items()))
