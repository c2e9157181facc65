"""changes_at_most: how many features may change, or what their changes may cost together."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mace.constraints.combine import Combinable
from mace.constraints.condition import Condition, GuardCondition, changed, feature_of
from mace.constraints.numbers import Number, as_written
from mace.constraints.words import name_text, number_text
from mace.errors import InvalidConstraint
from mace.language import syntax
from mace.space import FeatureSpace, Point


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
        return GuardCondition(syntax.Compare("<=", syntax.total(terms), syntax.Constant(as_written(self.budget))))

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
