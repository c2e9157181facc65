"""Round answers where a sum decides: the nearest row first, then a round row that changes no other features.

Over all round rows the nearest one would make up for the rounding by small changes of further features, which nobody wants.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum

from mace.answer.counterfactual import Counterfactual
from mace.answer.outside import in_range
from mace.answer.simplify import is_round
from mace.constraints import Constraint, fixed, one_of
from mace.exact import decimal_fraction
from mace.problem import Problem, Status
from mace.solvers import SOLVERS
from mace.space import Date, FeatureSpace, Integer, Point, Real
from mace.space.decimals import decimal_of
from mace.space.features import is_missing

MOST_SQUARES = 12
"""Under l2, the most features that an answer may change for the nearest round row next to it to be asked for: of more, too many rows cost
about the same."""

MOST_TO_TRY = 8
"""The most numbers that go to the multiple below or above for all their rows to be asked about, at most 256, in lanes that are not quick on
grids."""

AskRound = Callable[[tuple[Constraint, ...], str | None], tuple[Status, Counterfactual | None] | None]
"""Asks for the nearest round row under further constraints, in a lane of this name or in that of the question; ``None`` where no lane
can."""


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
    foreseeing : callable
        Gives the context in which the nearest row of all is searched for: the model is asked about the round one only.
    """

    space: FeatureSpace
    steps: Mapping[str, float]
    ask: AskRound
    foreseeing: Callable[[], AbstractContextManager[None]]

    def are_met(self, factual: Point, point: Point) -> bool:
        """Return whether every changed number of a point is a multiple of its step."""
        return is_round(self.space, self.steps, factual, point)

    def proved(self, problem: Problem, point: Point, lane: str) -> tuple[Counterfactual, Rounding] | None:
        """Return the nearest round row next to a proved nearest point, or of all that change no other features.

        ``None`` where there is none, where it is not found in time, or does not fulfil every condition of ``problem``.
        """
        moved = sum(value != own for value, own in zip(point, problem.factual, strict=True))
        most = getattr(SOLVERS.load(lane), "MOST_ON_GRIDS", 0) if lane in SOLVERS else 0
        for constraints, rounding in self._questions(problem, point, most):
            are_few = rounding is Rounding.NEXT and moved <= MOST_TO_TRY and not most
            asked = self.ask(constraints, "enumerate") if are_few else None
            asked = asked if asked is not None and asked[0].is_final else self.ask(constraints, None)
            status, answer = asked or (Status.UNKNOWN, None)
            if status != Status.OPTIMAL or answer is None:
                continue
            if problem.is_plausible(self.space.point(answer.values)):
                return answer, rounding
        return None

    def _questions(
        self, problem: Problem, point: Point, most: int
    ) -> Iterator[tuple[tuple[Constraint, ...], Rounding]]:
        """Yield the constraints under which a round row is asked for, and what a row that is nearest under these is.

        On a grid of more than ``most`` features the nearest row is hard to find.
        """
        each = list(zip(self.space, point, problem.factual, strict=True))
        stay = tuple(name for name, value, own in each if value == own)
        others = (fixed(*stay),) if stay else ()
        if len(each) - len(stay) <= most:
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
