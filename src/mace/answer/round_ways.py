"""Round answers where a sum decides: the nearest row first, then a round row that changes no other features.

Over all round rows the nearest one would make up for the rounding by small changes of further features, which nobody wants.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from mace.answer.counterfactual import Counterfactual
from mace.answer.explanation import Explanation
from mace.answer.outside import in_range
from mace.answer.simplify import is_round
from mace.constraints import Constraint, fixed, one_of
from mace.exact import decimal_fraction
from mace.problem import Problem, Status
from mace.space import Date, FeatureSpace, Integer, Point, Real
from mace.space.decimals import decimal_of
from mace.space.features import is_missing

MOST_CHANGES = {"trees": math.inf, "network": 4}
"""By lane: where an answer changes at most so many features, the nearest of all rows that are round in them is asked for, not only of those
next to the answer. On a grid of many features the nearest row is hard to find."""

MOST_SQUARES = 12
"""Under l2 the nearest of the round rows next to an answer is asked for where it changes at most so many features: of more, too many cost
about the same."""

AskRound = Callable[[tuple[Constraint, ...]], Explanation | None]
"""Asks for the nearest round row under further constraints; ``None`` where no lane can."""


class Rounding(StrEnum):
    """What is known of an answer that was made round.

    Attributes
    ----------
    CHANGES
        Proved nearest among the round rows that change no other features than the nearest row.
    NEXT
        Proved nearest among the round rows next to the nearest row: each number that is not round goes to the multiple below or above.
    MADE
        Valid, and next to the nearest row that is in hand; what is proved of that row's distance is a bound for this one.
    """

    CHANGES = "changes"
    NEXT = "next"
    MADE = "made"


@dataclass(frozen=True, slots=True)
class Rounds:
    """Makes answers round, once it is known which features they change.

    Attributes
    ----------
    space : FeatureSpace
        The features.
    steps : dict of str to number
        Of what values shall be multiples.
    ask : callable
        Asks for the nearest round row.
    """

    space: FeatureSpace
    steps: Mapping[str, float]
    ask: AskRound

    def are_met(self, factual: Point, point: Point) -> bool:
        """Return whether every changed number of a point is a multiple of its step."""
        return is_round(self.space, self.steps, factual, point)

    def proved(self, problem: Problem, point: Point, lane: str) -> tuple[Counterfactual, Rounding] | None:
        """Return the nearest round row next to a proved nearest point, or of all that change no other features.

        ``None`` where there is none, where it is not found in time, or does not fulfil every condition of ``problem``.
        """
        for constraints, rounding in self._questions(problem, point, lane):
            asked = self.ask(constraints)
            if asked is None or asked.status != Status.OPTIMAL:
                continue
            if problem.is_plausible(self.space.point(asked[0].values)):
                return asked[0], rounding
        return None

    def _questions(
        self, problem: Problem, point: Point, lane: str
    ) -> Iterator[tuple[tuple[Constraint, ...], Rounding]]:
        """Yield the constraints under which a round row is asked for, and what a row that is nearest under these is."""
        each = list(zip(self.space, point, problem.factual, strict=True))
        stay = tuple(name for name, value, own in each if value == own)
        others = (fixed(*stay),) if stay else ()
        if len(each) - len(stay) <= MOST_CHANGES.get(lane, 0):
            yield others, Rounding.CHANGES
        if problem.metric.power == 2 and len(each) - len(stay) > MOST_SQUARES:
            return
        changed = {name: value for name, value, own in each if value != own and value is not None}
        yield (*others, *(made for name in changed for made in self._next(name, changed[name]))), Rounding.NEXT

    def _next(self, name: str, value: int | float) -> Iterator[Constraint]:
        """Yield that a feature keeps its value in an answer, or goes to the multiple below or above it."""
        feature = self.space[name]
        if isinstance(feature, Date):
            return
        if not isinstance(feature, Real | Integer):
            level = feature.levels[int(value)]
            if not is_missing(level):
                yield one_of(name, [level])
            return
        at = decimal_of(feature, value)
        unit = decimal_fraction(self.steps[name]) if name in self.steps else None
        ends = [at, at] if unit is None else [math.floor(at / unit) * unit, math.ceil(at / unit) * unit]
        low, high = (max(min(float(end), feature.high), feature.low) for end in ends)
        yield in_range(name, feature, low, high)
