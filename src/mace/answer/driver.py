"""Asking lane after lane for counterfactuals, and making answers of what they prove."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice
from typing import Any

from mace.answer.conflicts import Undecided, smallest_conflict
from mace.answer.costs import weights_of
from mace.answer.counterfactual import Counterfactual
from mace.answer.explanation import Explanation
from mace.answer.hints import hints_of
from mace.answer.nearest import Find, Found
from mace.answer.question import Question
from mace.answer.region import RecourseRegion
from mace.answer.round_ways import Rounding, Rounds
from mace.answer.simplify import made_round, shortened, simple
from mace.answer.words import MADE_ROUND
from mace.certify.certificate import VERSION, Certificate
from mace.certify.statement import Statement, row_of
from mace.constraints import Condition, Constraint
from mace.constraints.mentions import held
from mace.errors import InvalidOption
from mace.exact import float_down, float_up
from mace.forms import Goal
from mace.forms.sets import Agreement
from mace.models import Reading
from mace.problem import LATE, Bounds, Limits, Problem, Status
from mace.solvers import Lane
from mace.space import Point, Scalar

MOST_SECONDS_FOR_A_CONFLICT = 10.0
"""How long to look, where no counterfactual exists, for the constraints that are to blame."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One search for a (further) answer: the lanes that were asked, what they proved, and the answer, if there is one.

    An answer that was made round says how, and has a certificate of its own; ``certificate`` is that of the search.
    """

    lanes: tuple[Lane, ...]
    bounds: Bounds
    answer: Counterfactual | None = None
    certificate: Certificate | None = None
    rounding: Rounding | None = None


@dataclass(frozen=True, slots=True)
class Driver:
    """Asks for answer after answer to a question; each further one differs from all earlier ones, with causes in its actions.

    Attributes
    ----------
    reading : Reading
        The model.
    question : Question
        What is asked.
    problem : Problem
        That of the row.
    find : Find
        Finds rows, or with causes interventions.
    limits : Limits
        Of everything together.
    widen : callable
        What :meth:`Counterfactual.region` calls.
    statement : Statement, optional
        What certificates state, where they are asked for.
    rounds : Rounds, optional
        What makes answers round, where they shall be.
    """

    reading: Reading
    question: Question
    problem: Problem
    find: Find
    limits: Limits
    widen: Callable[..., RecourseRegion]
    statement: Statement | None = None
    rounds: Rounds | None = None

    def run(self, current: Fraction, started: float) -> Explanation:
        """Return the answers, nearest first; ``current`` is the model's outcome of the row itself."""
        problem, question = self.problem, self.question
        found: list[Counterfactual] = []
        lower, reason, exhausted, certificate = 0.0, "", False, None
        lanes: dict[str, None] = {}
        first: Attempt | None = None
        roundings: set[Rounding | None] = set()
        for attempt in islice(self._attempts(), question.count):
            lanes |= dict.fromkeys(f"{lane.name}: {lane.why}" for lane in attempt.lanes)
            if not found:
                lower, first = float_down(attempt.bounds.lower), attempt
            if attempt.answer is None:
                exhausted, certificate = attempt.bounds.is_infeasible, attempt.certificate
                reason = reason if exhausted else _which(attempt.bounds.reason, found, question.count)
                break
            found.append(attempt.answer)
            roundings.add(attempt.rounding)
            if attempt.answer.status != Status.OPTIMAL:
                is_rounded = question.decimals or attempt.rounding is not None
                reason = reason or attempt.bounds.reason or (MADE_ROUND if is_rounded else "")
        target, distance = question.in_words
        made = Explanation(
            counterfactuals=tuple(found),
            status=_overall(found, exhausted, question.count),
            factual=problem.space.values_of(problem.factual),
            prediction=self.reading.label(current),
            target=target,
            distance=distance,
            lower=lower,
            reason=reason,
            seconds=time.monotonic() - started,
            exhausted=exhausted,
            solver="; ".join(lanes),
            certificate=certificate,
            space=problem.space,
            hints=hints_of(problem.space, question.constraints, self._conditions[0]),
            diversity=str(question.diversity) if question.count > 1 else "",
            fixed=held(problem.space, question.constraints),
            classes=self.reading.classes,
        )
        if self.rounds is None or first is None or not roundings - {None}:
            return made
        return made.with_round_values(
            self.rounds.steps,
            changes=bool(roundings & {Rounding.CHANGES, Rounding.NEXT}),
            next_to=Rounding.NEXT in roundings,
            certificate=first.certificate,
        )

    def first(self) -> tuple[Status, Counterfactual | None]:
        """Return the nearest answer alone, and what is known of it or of there being none."""
        attempt = next(self._attempts())
        found = [] if attempt.answer is None else [attempt.answer]
        return _overall(found, attempt.bounds.is_infeasible, 1), attempt.answer

    @property
    def _conditions(self) -> tuple[tuple[Condition, ...], tuple[Condition, ...]]:
        """The conditions of the user's constraints, and those that are part of the space."""
        asked = len(self.question.constraints)
        return self.problem.conditions[:asked], self.problem.conditions[asked:]

    def _attempts(self) -> Iterator[Attempt]:
        """Yield answer after answer, until there is none."""
        stated, problem, question = self.statement, self.problem, self.question
        further: tuple[Condition, ...] = ()
        earlier: list[Point] = []
        while True:
            found, point = self._found(further)
            bounds = found.bounds
            if point is None:
                yield Attempt(found.lanes, bounds, certificate=certificate_of(stated, found))
                return
            bare = self._without_padding(found, point, earlier)
            if bare is None:
                attempt = self._attempt(found, point, stated)
                yield attempt
                if attempt.rounding is not None and attempt.answer is not None:
                    point = problem.space.point(attempt.answer.values)
            else:
                point = bare
            earlier.append(point)
            further = (*further, *question.diversity.bind(problem.space, problem.factual, point, question.distance))
            stated = None if stated is None else stated.after(point)

    def _found(self, further: tuple[Condition, ...]) -> tuple[Found, Point | None]:
        """Return what a search finds, and its point without needless changes.

        Where the answer will be a round row, which the model is asked about, it need not be asked about the point as well.
        """
        asks = nullcontext() if self.rounds is None else self.rounds.foreseeing()
        with asks:
            found = self.find(self.problem, further, self.limits)
            if found.bounds.point is None:
                return found, None
            point = simple(found.problem, found.bounds.point, found.bounds.lower, self.limits)
            return found, shortened(found.problem, point, self.question.decimals, self.limits)

    def _attempt(self, found: Found, point: Point, stated: Statement | None) -> Attempt:
        """Return what was found as an answer, made round where that is asked for."""
        rounds, problem, bounds = self.rounds, found.problem, found.bounds

        def unrounded() -> Attempt:
            answer = self._counterfactual(found, point)
            certificate = certificate_of(stated, found, point, answer.actions)
            return Attempt(found.lanes, bounds, replace(answer, certificate=certificate), certificate)

        if rounds is None or rounds.are_met(problem.factual, point):
            return unrounded()
        certificate = certificate_of(stated, found, point)
        status = replace(bounds, upper=problem.distance(point)).status(problem.accuracy)
        is_closed = status == Status.OPTIMAL
        is_smooth = problem.metric.power == 2
        near = self._next_to(found, point, stated, is_closed=is_closed) if is_smooth else None
        if is_closed and near is None:
            lane = found.lanes[0].name
            proved = rounds.proved(problem, point, lane)
            if proved is not None:
                best, rounding = proved
                best = replace(best, solver=lane, seconds=found.seconds + best.seconds, _widen=self.widen)
                return Attempt(found.lanes, bounds, best, certificate, rounding)
        near = near if is_smooth else self._next_to(found, point, stated, is_closed=is_closed)
        return unrounded() if near is None else Attempt(found.lanes, bounds, near, certificate, Rounding.MADE)

    def _next_to(
        self, found: Found, point: Point, stated: Statement | None, *, is_closed: bool
    ) -> Counterfactual | None:
        """Return a valid round row near a point, with what is proved of all rows; ``None`` where none is found.

        What is proved stays proved: a round row next to a nearest one is nearest too, or is not taken.
        """
        assert self.rounds is not None
        problem = found.problem
        with self.rounds.foreseeing():
            point = made_round(problem, point, self.rounds.steps, self.limits)
        is_too_far = is_closed and problem.distance(point) - found.bounds.lower > problem.accuracy
        if is_too_far or not self.rounds.are_met(problem.factual, point) or not problem.is_reached(point):
            return None
        answer = self._counterfactual(found, point)
        return replace(answer, certificate=certificate_of(stated, found, point, answer.actions))

    def _without_padding(self, found: Found, point: Point, earlier: Sequence[Point]) -> Point | None:
        """Return what is left of an answer without changes that only tell it from an earlier one; ``None`` where it needs all its
        changes.

        Where some of the features that an earlier answer changes suffice, a set that adds another feature to these is no new way. Such an
        answer is not shown, and the row that is left of it is excluded like an earlier answer.
        """
        if self.question.diversity.sets is None or found.effects is not None or self.limits.remaining() <= 0:
            return None
        problem, own = self.problem, self.problem.factual
        bare = [
            tuple(new if before != old else old for new, before, old in zip(point, each, own, strict=True))
            for each in earlier
        ]
        quick = problem.quick
        fewer = [each for each in bare if each != own and quick.is_plausible(each)]
        return next(filter(problem.is_valid, problem.reaching(fewer)), None)

    def nearest(self, further: tuple[Condition, ...]) -> tuple[frozenset[str], Counterfactual] | None:
        """Return the nearest answer under further conditions with what it changes; ``None`` where there is proved to be none.

        With causes, what it acts upon. Raise where neither is found in time.
        """
        found = self._decided(further, self.limits)
        if found is None or found.bounds.point is None:
            return None
        point = simple(found.problem, found.bounds.point, found.bounds.lower, self.limits)
        moved = zip(self.problem.space, point, self.problem.factual, strict=True)
        return frozenset(name for name, new, old in moved if new != old), self._counterfactual(found, point)

    def some(self, further: tuple[Condition, ...]) -> Found | None:
        """Return some point of the goal under further conditions; ``None`` where there is proved to be none. Raise where neither is found.

        Nothing but its validity is known of the point: no bound comes with it.
        """
        found = self._decided(further, replace(self.limits, any_point=True))
        return None if found is None else replace(found, bounds=replace(found.bounds, lower=Fraction(0)))

    def _decided(self, further: tuple[Condition, ...], limits: Limits) -> Found | None:
        """Return what a search finds, with a point; ``None`` where there is proved to be none. Raise where neither is found in time."""
        if self.limits.remaining() <= 0:
            raise Undecided(LATE)
        found = self.find(self.problem, further, limits)
        if found.bounds.is_infeasible:
            return None
        if found.bounds.point is None:
            raise Undecided(found.bounds.reason)
        return found

    def told(self, found: Sequence[Found]) -> dict[Point, Counterfactual]:
        """Return what was found as answers, after asking the real model about all of it at once."""
        points = {one.bounds.point: one for one in found if one.bounds.point is not None}
        if points:
            self.problem.ask(list(points))
        return {point: self._counterfactual(one, point) for point, one in points.items()}

    def _counterfactual(self, found: Found, point: Point) -> Counterfactual:
        """Return a point as an answer, after asking the real model and every condition once more."""
        problem, row = found.problem, found.row(point)
        outcome = problem.ask([point])[0]
        is_reached = problem.goal.accepts(outcome) and problem.form.is_settled(point, problem.goal)
        if not is_reached or not problem.is_plausible(point):
            raise AssertionError(f"{found.lanes[0].name} returned a point that is not valid: {point}")
        upper = problem.distance(point)
        made = Counterfactual.of(
            problem.space,
            problem.factual,
            row,
            distance=float_up(upper),
            lower=float_down(found.bounds.lower),
            status=replace(found.bounds, upper=upper).status(problem.accuracy),
            prediction=self.reading.label(outcome if problem.ask is self.reading.ask else self.reading.ask([row])[0]),
            solver=found.lanes[0].name,
            seconds=found.seconds,
            calls=found.bounds.calls,
            weights=weights_of(problem.space, problem.metric, problem.factual, point),
            _widen=self.widen,
            held_by=holders(self.reading, problem.goal, outcome),
        )
        return replace(made, actions=found.actions([change.feature for change in made.changes]))

    def why_none(self) -> tuple[tuple[Constraint, ...], str]:
        """Return which of the constraints, as few as possible, rule out every counterfactual, and that in words."""
        deadline = min(self.limits.deadline, time.monotonic() + MOST_SECONDS_FOR_A_CONFLICT)
        wanted, (asked, kept) = self.question.constraints, self._conditions
        bound = dict(zip(map(id, wanted), asked, strict=True))

        def is_conflict(chosen: Sequence[Constraint]) -> bool:
            conditions = (*(bound[id(constraint)] for constraint in chosen), *kept)
            try:
                bounds = self.find(replace(self.problem, conditions=conditions), (), Limits(deadline)).bounds
            except InvalidOption as error:  # a lane for few rows may take the question under all constraints only
                raise Undecided from error
            if not bounds.is_infeasible and bounds.point is None:
                raise Undecided
            return bounds.is_infeasible

        conflict, is_smallest = smallest_conflict(wanted, is_conflict)
        if not conflict:
            return (), "no point of the space reaches the target, whatever the constraints"
        named = "; ".join(map(str, conflict))
        if len(conflict) == 1:
            return conflict, f"no counterfactual fulfils {named}"
        return conflict, f"no counterfactual fulfils all of: {named}" + (
            "" if is_smallest else " (perhaps fewer would do)"
        )


def holders(reading: Reading, goal: Goal, outcome: Fraction) -> tuple[Scalar, ...] | None:
    """Return the names of the models of a set that reach the goal; ``None`` of one model."""
    if not isinstance(goal, Agreement):
        return None
    return tuple(reading.names[k] for k in goal.holders(outcome))


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
    statement: Statement | None, found: Found, point: Point | None = None, actions: tuple[str, ...] | None = None
) -> Certificate | None:
    """Return the certificate of an answer, or of there being none; ``None`` where none was asked for."""
    if statement is None:
        return None
    problem, bounds = found.problem, found.bounds
    upper = None if point is None else problem.distance(point)
    claim: dict[str, Any] = {
        "status": str(replace(bounds, upper=upper).status(problem.accuracy)),
        "lower": None if bounds.is_infeasible else float_down(bounds.lower),
        "upper": None if upper is None else float_up(upper),
        "counterfactual": None if point is None else row_of(problem.space, found.row(point)),
    }
    if found.effects is not None:
        claim["actions"] = None if actions is None else list(actions)
    lane = found.lanes[0].name if found.effects is None else "causes"
    missing = {"lane": lane, "missing": "this lane records no proof of this problem"}
    return Certificate(VERSION, statement.to_dict(), claim, missing if bounds.evidence is None else bounds.evidence)
