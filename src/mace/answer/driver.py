"""Asking lane after lane for counterfactuals, and making answers of what they prove."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice
from typing import Any

from mace.answer.conflicts import Undecided, smallest_conflict
from mace.answer.explanation import Change, Counterfactual, Explanation
from mace.answer.region import RecourseRegion
from mace.answer.simplify import shortened, tidy
from mace.certify.certificate import VERSION, Certificate
from mace.certify.statement import Statement, row_of
from mace.constraints import Condition, Constraint
from mace.constraints.differ import Differ
from mace.distances import Distance, FunctionDistance
from mace.errors import InvalidOption, did_you_mean
from mace.exact import float_down, float_up
from mace.models import Reading
from mace.problem import LATE, Bounds, Limits, Problem, Status
from mace.solvers import Lane, choose
from mace.space import FeatureSpace, Point, Real, Scalar

MOST_SECONDS_FOR_A_CONFLICT = 10.0
"""How long to look, where no counterfactual exists, for the constraints that are to blame."""


@dataclass(frozen=True, slots=True)
class Step:
    """One question for a (further) answer: the lanes that were asked, what they proved, and the answer, if there is one."""

    lanes: tuple[Lane, ...]
    bounds: Bounds
    answer: Counterfactual | None = None
    certificate: Certificate | None = None


@dataclass(frozen=True, slots=True)
class Search:
    """Asks for counterfactual after counterfactual; each further one has a condition more, which may need another lane."""

    reading: Reading
    solver: str
    limits: Limits
    metric: Distance | FunctionDistance
    diversity: Differ
    statement: Statement | None
    digits: dict[int, int]
    widen: Callable[..., RecourseRegion]

    def run(self, problem: Problem, count: int, target: str, prediction: Scalar, started: float) -> Explanation:
        """Return up to ``count`` answers, nearest first."""
        steps = self._steps(problem)
        return explanation_of(steps, problem, count, target, prediction, started, self.metric, bool(self.digits))

    def _steps(self, problem: Problem) -> Iterator[Step]:
        """Yield answer after answer, until there is none."""
        stated, asked = self.statement, problem
        while True:
            lane = choose(self.solver, asked)
            begun = time.monotonic()
            is_late = asked is not problem and self.limits.remaining() <= 0
            bounds = Bounds(Fraction(0), reason=LATE) if is_late else lane.solve(asked, self.limits)
            if bounds.point is None:
                yield Step((lane,), bounds, certificate=certificate_of(stated, lane.name, bounds, asked, None))
                return
            seconds = time.monotonic() - begun
            point = shortened(asked, tidy(asked, bounds.point, bounds.lower, self.limits), self.digits, self.limits)
            answer = self.counterfactual(asked, lane, bounds, point, seconds)
            yield Step((lane,), bounds, answer, certificate_of(stated, lane.name, bounds, asked, point))
            asked = self._further(asked, point)
            stated = None if stated is None else stated.after(point)

    def nearest(self, problem: Problem, further: tuple[Condition, ...]) -> tuple[frozenset[str], Counterfactual] | None:
        """Return the nearest answer under further conditions with what it changes; ``None`` where there is proved to be none.

        Raise where neither is found in time.
        """
        if self.limits.remaining() <= 0:
            raise Undecided(LATE)
        problem = replace(problem, conditions=(*problem.conditions, *further))
        lane = choose(self.solver, problem)
        begun = time.monotonic()
        bounds = lane.solve(problem, self.limits)
        if bounds.is_infeasible:
            return None
        if bounds.point is None:
            raise Undecided(bounds.reason)
        point = tidy(problem, bounds.point, bounds.lower, self.limits)
        answer = self.counterfactual(problem, lane, bounds, point, time.monotonic() - begun)
        return frozenset(change.feature for change in answer.changes), answer

    def _further(self, problem: Problem, point: Point) -> Problem:
        """Return the problem of a further counterfactual, different from ``point`` too."""
        condition = self.diversity.bind(problem.space, problem.factual, point, self.metric)
        return replace(problem, conditions=(*problem.conditions, condition))

    def counterfactual(
        self, problem: Problem, lane: Lane, bounds: Bounds, point: Point, seconds: float
    ) -> Counterfactual:
        """Return a point as an answer, after asking the real model and every condition once more."""
        outcome = problem.ask([point])[0]
        if not problem.goal.accepts(outcome) or not problem.is_plausible(point):
            raise AssertionError(f"{lane.name} returned a point that is not valid: {point}")
        bounds = replace(bounds, upper=problem.distance(point))
        values = problem.space.values_of(point)
        before = problem.space.values_of(problem.factual)
        return Counterfactual(
            values=values,
            changes=tuple(
                Change.of(problem.space, name, before[name], values[name])
                for name, new, old in zip(problem.space, point, problem.factual, strict=True)
                if new != old
            ),
            distance=float_up(problem.distance(point)),
            lower=float_down(bounds.lower),
            status=bounds.status(problem.accuracy),
            prediction=self.reading.label(outcome if problem.ask is self.reading.ask else self.reading.ask([point])[0]),
            solver=lane.name,
            seconds=seconds,
            calls=bounds.calls,
            widen=self.widen,
        )


def explanation_of(
    steps: Iterator[Step],
    problem: Problem,
    count: int,
    target: str,
    prediction: Scalar,
    started: float,
    metric: Distance | FunctionDistance,
    is_rounded: bool,
) -> Explanation:
    """Return what becomes of up to ``count`` questions for a further answer."""
    found: list[Counterfactual] = []
    lower, reason, exhausted, certificate = 0.0, "", False, None
    lanes: dict[str, None] = {}
    for step in islice(steps, count):
        lanes |= dict.fromkeys(f"{lane.name}: {lane.why}" for lane in step.lanes)
        if not found:
            lower = float_down(step.bounds.lower)
        if step.answer is None:
            exhausted, certificate = step.bounds.is_infeasible, step.certificate
            reason = reason if exhausted else _which(step.bounds.reason, found, count)
            break
        found.append(replace(step.answer, certificate=step.certificate))
        if step.answer.status != Status.OPTIMAL:
            reason = reason or step.bounds.reason or ("the answer was rounded" if is_rounded else "")
    return Explanation(
        counterfactuals=tuple(found),
        status=_overall(found, exhausted, count),
        factual=problem.space.values_of(problem.factual),
        prediction=prediction,
        target=target,
        distance=str(metric),
        lower=lower,
        reason=reason,
        seconds=time.monotonic() - started,
        exhausted=exhausted,
        solver="; ".join(lanes),
        certificate=certificate,
        space=problem.space,
    )


def decimals(digits: object, space: FeatureSpace) -> dict[int, int]:
    """Return how many decimals the answers of real features shall have, by position."""
    if digits is None:
        return {}
    given: dict[str, Any] = dict(digits) if isinstance(digits, Mapping) else dict.fromkeys(space, digits)
    for name, number in given.items():
        if name not in space:
            raise InvalidOption(f"digits names {name!r}, which is not a feature.{did_you_mean(name, space)}")
        if isinstance(number, bool) or not isinstance(number, int) or not -300 <= number <= 300:
            raise InvalidOption(f"digits={number!r}; give a whole number of decimals, e.g. digits=2.")
    return {space.index(name): number for name, number in given.items() if isinstance(space[name], Real)}


def _overall(found: list[Counterfactual], exhausted: bool, count: int) -> Status:
    """Return how a search for several answers ended."""
    if not found:
        return Status.INFEASIBLE if exhausted else Status.UNKNOWN
    complete = exhausted or len(found) == count
    return Status.OPTIMAL if complete and all(c.status == Status.OPTIMAL for c in found) else Status.FEASIBLE


def _which(reason: str, found: list[Counterfactual], count: int) -> str:
    """Return why a search ended, and after how many answers."""
    return f"{reason}, after {len(found)} of {count} counterfactuals" if found else reason


def certificate_of(
    statement: Statement | None,
    lane: str,
    bounds: Bounds,
    problem: Problem,
    point: Point | None,
    row: Point | None = None,
    **claimed: object,
) -> Certificate | None:
    """Return the certificate of an answer, or of there being none; ``None`` where none was asked for.

    ``row`` is what the point leads to, where that is another; ``claimed`` is what the claim says beside.
    """
    if statement is None:
        return None
    upper = None if point is None else problem.distance(point)
    status = replace(bounds, upper=upper).status(problem.accuracy)
    claim = {
        "status": str(status),
        "lower": None if bounds.is_infeasible else float_down(bounds.lower),
        "upper": None if upper is None else float_up(upper),
        "counterfactual": None if point is None else row_of(problem.space, row or point),
        **claimed,
    }
    missing = {"lane": lane, "missing": "this lane records no proof of this problem"}
    evidence = missing if bounds.evidence is None else bounds.evidence
    return Certificate(VERSION, statement.to_dict(), claim, evidence)


def why_none(
    problem: Problem, wanted: tuple[Constraint, ...], solve: Callable[[Problem, Limits], Bounds], limits: Limits
) -> str:
    """Say which of the constraints, as few as possible, rule out every counterfactual; ``solve`` answers a problem.

    The problem's conditions are those of the constraints, in their order.
    """
    deadline = min(limits.deadline, time.monotonic() + MOST_SECONDS_FOR_A_CONFLICT)

    bound = {id(constraint): condition for constraint, condition in zip(wanted, problem.conditions, strict=True)}

    def is_conflict(chosen: Sequence[Constraint]) -> bool:
        conditions = tuple(bound[id(constraint)] for constraint in chosen)
        bounds = solve(replace(problem, conditions=conditions), Limits(deadline))
        if not bounds.is_infeasible and bounds.point is None:
            raise Undecided
        return bounds.is_infeasible

    conflict, is_smallest = smallest_conflict(wanted, is_conflict)
    if not conflict:
        return "no point of the space reaches the target, whatever the constraints"
    named = "; ".join(map(str, conflict))
    if len(conflict) == 1:
        return f"no counterfactual fulfils {named}"
    return f"no counterfactual fulfils all of: {named}" + ("" if is_smallest else " (perhaps fewer would do)")


MOST_ANSWERS = 10_000
"""The most counterfactuals of one row: each is searched for, and must differ from all before."""


def check_options(
    count: int,
    accuracy: float,
    time_limit: float | None,
    certify: bool = False,
    solver: str = "auto",
    diversity: Differ | None = None,
) -> None:
    """Refuse options outside of what is accepted."""
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MOST_ANSWERS:
        given = "a number of many digits" if isinstance(count, int) and count.bit_length() > 99 else repr(count)
        raise InvalidOption(f"count={given:.40}; it must be a whole number from 1 to {MOST_ANSWERS:,}.")
    if isinstance(accuracy, bool) or not isinstance(accuracy, int | float) or not 1e-15 <= accuracy <= 1e6:
        raise InvalidOption(f"accuracy={accuracy!r}; it must be a number from 1e-15 to 1e6, e.g. 1e-6.")
    if time_limit is not None and (
        isinstance(time_limit, bool) or not isinstance(time_limit, int | float) or not 0 < time_limit <= 1e9
    ):
        raise InvalidOption(
            f"time_limit={time_limit!r}; it must be a positive number of seconds (at most 1e9), or None."
        )
    if not isinstance(certify, bool):
        raise InvalidOption(f"certify={certify!r}; it must be True or False.")
    if not isinstance(solver, str):
        raise InvalidOption(f"solver={solver!r}; give a name, e.g. 'auto'.")
    if diversity is not None and not isinstance(diversity, Differ):
        raise InvalidOption(f"diversity={diversity!r}; make it with mace.differ(...).")


def target_text(target: object) -> str:
    """Return a target in words."""
    if target is None:
        return "any other outcome"
    return str(target)
