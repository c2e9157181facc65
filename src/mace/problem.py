"""The problem that solvers solve, what limits them, and what they answer."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fractions import Fraction
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from mace.clock import OutOfTime, until
from mace.constraints import Condition
from mace.constraints.condition import GuardCondition
from mace.distances import Metric, distance_up, point_values
from mace.forms import Box, Form, Goal
from mace.language import syntax
from mace.models.reading import Ask
from mace.space import Categorical, Feature, FeatureSpace, Integer, Ordinal, Point, Real

Progress = Callable[[float, float, int], None]
"""Receives (lower, upper, oracle calls); upper is infinite while nothing valid is in hand."""

C = TypeVar("C", bound=Condition)

Evidence = dict[str, Any]
"""A solver's proof of its lower bound: values of JSON and numpy arrays of integers and floats; ``"lane"`` names its checker."""


class Status(StrEnum):
    """How an explanation ended."""

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    UNKNOWN = "unknown"
    REACHED = "reached"
    ERROR = "error"

    @property
    def is_final(self) -> bool:
        """Whether nothing is left to prove: nearest, none exists, or nothing to change."""
        return self in (Status.OPTIMAL, Status.INFEASIBLE, Status.REACHED)


@dataclass(frozen=True, slots=True)
class Problem:
    """The nearest plausible point that the deployed model puts in the goal.

    Attributes
    ----------
    space, form, ask
        The features, the model as read, and the real model.
    goal : Goal
        The outcomes that count.
    factual : Point
        The row.
    metric : Metric
        The distance from it.
    conditions : tuple of Condition
        Constraints and diversity, all of which a counterfactual fulfils.
    accuracy : Fraction
        ε: how far apart lower and upper may stay.
    """

    space: FeatureSpace
    form: Form
    ask: Ask
    goal: Goal
    factual: Point
    metric: Metric
    conditions: tuple[Condition, ...] = ()
    accuracy: Fraction = Fraction(1, 10**6)

    def is_plausible(self, point: Point) -> bool:
        """Return whether a point lies in the domain and fulfils every condition, exactly."""
        domain = all(
            in_domain(feature, value, own)
            for feature, value, own in zip(self.space.values(), point, self.factual, strict=True)
        )
        if not domain or not self.conditions:
            return domain
        values = point_values(self.space, point)
        return all(condition.holds(values) for condition in self.conditions)

    @property
    def quick(self) -> Problem:
        """The problem without the conditions that are slower to ask than the model."""
        return replace(self, conditions=tuple(each for each in self.conditions if not each.is_slow))

    def apart(self, kind: type[C]) -> tuple[list[C], Problem]:
        """Return the conditions of one kind, and the problem without them."""
        found = [each for each in self.conditions if isinstance(each, kind)]
        rest = tuple(each for each in self.conditions if not isinstance(each, kind))
        return found, replace(self, conditions=rest)

    @property
    def searched(self) -> tuple[list[Condition], Problem]:
        """The conditions that have a search of their own, and the problem without them."""
        found = [each for each in self.conditions if each.search]
        return found, replace(self, conditions=tuple(each for each in self.conditions if not each.search))

    def reaching(self, points: Sequence[Point]) -> list[Point]:
        """Return the points that the real model, asked about all of them at once, puts in the goal."""
        said = self.ask(points) if points else []
        return [point for point, outcome in zip(points, said, strict=True) if self.goal.accepts(outcome)]

    @property
    def guards(self) -> list[syntax.Guard]:
        """The guards that must all hold: those of the conditions that are guards, one by one."""
        own = [condition.guard for condition in self.conditions if isinstance(condition, GuardCondition)]
        return [part for guard in own for part in syntax.conjuncts(guard)]

    def accepts(self, point: Point) -> bool:
        """Return whether the real model, asked about this row alone, puts it in the goal."""
        return self.goal.accepts(self.ask([point])[0])

    def is_reached(self, point: Point) -> bool:
        """Ask the real model about this row alone; a point whose outcome is not fixed does not count."""
        return self.accepts(point) and self.form.is_settled(point, self.goal)

    def is_valid(self, point: Point) -> bool:
        """Return whether a point is plausible and the real model puts it in the goal; slow conditions come last."""
        slow = [condition for condition in self.conditions if condition.is_slow]
        if not slow:
            return self.is_plausible(point) and self.is_reached(point)
        values = point_values(self.space, point)
        return self.quick.is_valid(point) and all(condition.holds(values) for condition in slow)

    def distance(self, point: Point) -> Fraction:
        """Return the distance of a point, exactly (l2: rounded up)."""
        return distance_up(self.metric, self.metric.measure(point))

    def box(self, bound: Fraction | None = None) -> Box:
        """Return the range of each feature's number within distance ``bound`` of the factual."""
        return tuple(
            _range(feature, own, Fraction(1) if bound is None else self.metric.reach(index, bound))
            for index, (feature, own) in enumerate(zip(self.space.values(), self.factual, strict=True))
        )


def within(problem: Problem, bound: Fraction) -> list[syntax.Guard]:
    """Return what a distance leaves of single features that are never missing; nothing of those that it leaves as they are."""
    rows = zip(problem.space.items(), problem.box(bound), problem.box(), strict=True)
    return [
        syntax.between(syntax.Variable(name), *ends)
        for (name, feature), ends, whole in rows
        if ends != whole and not feature.missing
    ]


def in_domain(feature: Feature, value: int | float | None, own: int | float | None) -> bool:
    """Return whether a feature may take a value: the factual's own, or one of its range and grid."""
    if value == own:
        return True
    if value is None:
        return feature.missing
    if isinstance(feature, Ordinal | Categorical):
        return value in range(len(feature.levels))
    return feature.has(value)


def _range(feature: Feature, own: int | float | None, reach: Fraction) -> tuple[Fraction, Fraction]:
    low, high = _whole_range(feature)
    if own is None or reach >= 1:
        return low, high
    if isinstance(feature, Categorical):
        return Fraction(own), Fraction(own)
    return max(low, Fraction(own) - reach * feature.range), min(high, Fraction(own) + reach * feature.range)


def _whole_range(feature: Feature) -> tuple[Fraction, Fraction]:
    match feature:
        case Real() | Integer():
            return Fraction(feature.low), Fraction(feature.high)
        case Ordinal(levels) | Categorical(levels):
            return Fraction(0), Fraction(len(levels) - 1)


INTERRUPTED = "interrupted"
"""The reason of a search that Ctrl-C ended."""

LATE = "time limit reached"
"""The reason of a search that its deadline ended."""

SPENT = "as many nodes as were allowed"
"""The reason of a search that its ``effort`` ended."""

NOT_PROVED = "not proved:"
"""How the reason of a search begins that proves nothing."""

NOT_READ = f"{NOT_PROVED} the model could not be read"
"""The reason of every answer about a model that is only asked."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What bounds a search: a deadline (``time.monotonic``), who is told of progress, and whether the proof is recorded.

    With ``any_point`` any valid point will do, and a lane may end at the first; one that does not gives the nearest. After ``effort`` nodes
    a lane that counts its nodes stops, with the reason ``SPENT``. Of points that are not nearer than ``within`` a lane need find none.
    """

    deadline: float = math.inf
    on_progress: Progress | None = None
    record: bool = False
    any_point: bool = False
    effort: float = math.inf
    within: Fraction | None = None

    @classmethod
    def of(
        cls,
        seconds: float | None,
        on_progress: Progress | None = None,
        *,
        record: bool = False,
        since: float | None = None,
    ) -> Limits:
        """Return the limits of a search whose clock starts now, or has started at a moment of ``time.monotonic``."""
        if seconds is None:
            return cls(math.inf, on_progress, record)
        return cls((time.monotonic() if since is None else since) + seconds, on_progress, record)

    def remaining(self) -> float:
        """Return the seconds left."""
        return self.deadline - time.monotonic()

    def first_half(self) -> Limits:
        """Return the limits of a search that leaves half of the time for its proof."""
        if math.isinf(self.deadline):
            return self
        return replace(self, deadline=self.deadline - max(0.0, self.remaining()) / 2)


@dataclass(frozen=True, slots=True)
class Sat:
    """The oracle found a point: exact numbers by feature, ``None`` where missing."""

    values: dict[str, Fraction | None]


@dataclass(frozen=True, slots=True)
class Unsat:
    """The oracle proved that there is none."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """The oracle could not say; no bound moves."""

    reason: str


Answer = Sat | Unsat | Unknown


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a solver proved.

    Attributes
    ----------
    lower : Fraction
        No plausible point nearer than this is predicted as the target.
    upper : Fraction, optional
        The distance of ``point``.
    point : Point, optional
        The nearest valid point in hand.
    is_infeasible : bool
        Proved: there is none at all.
    reason : str
        Why the gap is not closed; empty where it is.
    calls : int
        Questions to the oracle.
    evidence : dict, optional
        The proof of ``lower``, or of infeasibility; ``None`` where none was asked for or the solver records none.
    is_proved : bool
        Whether the solver proves anything; where it does not, a point is never called optimal.
    answered_by : str
        The lane that decided the question in the place of the one that was asked; empty where that one did.
    """

    lower: Fraction
    upper: Fraction | None = None
    point: Point | None = None
    is_infeasible: bool = False
    reason: str = ""
    calls: int = 0
    notes: dict[str, int] = field(default_factory=dict)
    evidence: Evidence | None = None
    is_proved: bool = True
    answered_by: str = ""

    def status(self, accuracy: Fraction) -> Status:
        """Return how the search ended."""
        if self.is_infeasible:
            return Status.INFEASIBLE
        if self.upper is None:
            return Status.UNKNOWN
        is_closed = self.is_proved and self.upper - self.lower <= accuracy
        return Status.OPTIMAL if is_closed else Status.FEASIBLE


Options = ParamSpec("Options")


def timed(
    solve: Callable[Concatenate[Problem, Limits, Options], Bounds],
) -> Callable[Concatenate[Problem, Limits, Options], Bounds]:
    """Have a solver's deadline end the steps, too, that know of no limits; what such a step interrupts has proved nothing."""

    @wraps(solve)
    def solve_in_time(problem: Problem, limits: Limits, /, *args: Options.args, **options: Options.kwargs) -> Bounds:
        try:
            with until(limits.deadline):
                return solve(problem, limits, *args, **options)
        except OutOfTime:
            return Bounds(Fraction(0), reason=LATE)

    return solve_in_time
