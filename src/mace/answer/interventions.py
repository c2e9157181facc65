"""Nearest interventions: the cheapest actions whose effects, by structural equations, bring the row to the target."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from mace.answer.conflicts import Undecided
from mace.answer.driver import Step, certificate_of, explanation_of
from mace.answer.explanation import Change, Counterfactual, Explanation
from mace.answer.region import RecourseRegion
from mace.answer.simplify import shortened, tidy
from mace.certify.statement import Statement
from mace.clock import OutOfTime, until
from mace.constraints import Condition
from mace.constraints.causal import effects_of, inputs_of
from mace.constraints.condition import GuardCondition
from mace.constraints.differ import Differ
from mace.distances import Distance, FunctionDistance
from mace.errors import InvalidOption
from mace.exact import float_down, float_up
from mace.forms import Effects
from mace.language import Program, syntax
from mace.models import Reading
from mace.problem import INTERRUPTED, LATE, Bounds, Evidence, Limits, Problem
from mace.reductions.actions import OfRow, cases_of, in_case, in_pieces, levels_of, of_levels, through
from mace.reductions.effects import over_actions
from mace.solvers import Lane, choose
from mace.space import Point, Scalar

MOST_CASES = 32
"""How many choices of levels are gone through one by one, so that effects have a single cause in each."""

MOST_OF_GRID = 1000
"""How many values of an effect with a grid a formula lists."""

OWN = ("auto", "trees", "network")
"""Solvers that are asked about the model with the equations in it; the others take them as formulas."""


@dataclass(frozen=True, slots=True)
class Intervention:
    """The best answer over all choices of the effects that are acted upon.

    Attributes
    ----------
    bounds : Bounds
        What is proved; its point holds the actions.
    problem : Problem
        The question that the point answers.
    effects : Effects
        What follows from the actions.
    lanes : tuple of Lane
        Which lanes answered, that of the point first.
    """

    bounds: Bounds
    problem: Problem
    effects: Effects
    lanes: tuple[Lane, ...]


def nearest_intervention(
    problem: Problem,
    programs: Mapping[str, Program],
    solver: str,
    limits: Limits,
    further: tuple[Condition, ...] = (),
) -> Intervention:
    """Go through the choices of the effects that are acted upon, the fewest first; ties go to fewer.

    ``further`` conditions are on the actions.
    """
    found = _Found(problem, limits)
    choices = list(effects_of(programs, problem.space, problem.factual))
    waiting: list[int] = []
    for number, effects in enumerate(choices):
        if found.is_stopped:
            break
        if limits.remaining() <= 0:
            found.add(number, _too_late(problem, effects, further))
            break
        try:
            with until(limits.deadline):
                made = _own_lane(problem, effects, further, solver, found.limits) if solver in OWN else None
        except OutOfTime:
            made = _too_late(problem, effects, further)
        if made is None:
            waiting.append(number)
        else:
            found.add(number, made)
    for number in waiting:
        if found.is_stopped:
            break
        try:
            with until(limits.deadline):
                made = _general_lane(problem, choices[number], further, solver, found.limits, found.upper)
        except OutOfTime:
            made = _too_late(problem, choices[number], further)
        found.add(number, made)
    return found.together(len(choices))


def _too_late(problem: Problem, effects: Effects, further: tuple[Condition, ...]) -> Intervention:
    return Intervention(Bounds(Fraction(0), reason=LATE), through(problem, effects, further), effects, ())


class _Found:
    """What is known of the choices of the effects that are acted upon, by their numbers."""

    def __init__(self, problem: Problem, limits: Limits) -> None:
        self.accuracy, self.record, self.on_progress = problem.accuracy, limits.record, limits.on_progress
        self.limits = replace(limits, on_progress=None)
        self.made: dict[int, Intervention] = {}
        self.best: int | None = None
        self.is_stopped = False

    @property
    def upper(self) -> Fraction | None:
        """The distance of the nearest point in hand."""
        return None if self.best is None else self.made[self.best].bounds.upper

    def add(self, number: int, made: Intervention) -> None:
        self.made[number] = made
        if self.best is None or _is_nearer(made.bounds, self.made[self.best].bounds, number < self.best):
            self.best = number
        self.is_stopped = made.bounds.reason == INTERRUPTED
        if self.on_progress is not None:
            upper = math.inf if self.upper is None else float_up(self.upper)
            self.on_progress(0.0, upper, sum(each.bounds.calls for each in self.made.values()))

    def together(self, choices: int) -> Intervention:
        """Return the best of all choices with what is proved of them together."""
        assert self.best is not None
        best = self.made[self.best]
        every = [each.bounds for each in self.made.values()]
        if len(every) < choices:
            every.append(Bounds(Fraction(0)))
        bounds = _together(best.bounds, every, self.accuracy)
        missing = {"lane": "causes", "missing": "it was not asked about"}
        proofs = [self.made[k].bounds.evidence or missing if k in self.made else missing for k in range(choices)]
        evidence = {"lane": "causes", "choices": proofs} if self.record else None
        lanes = (*best.lanes, *(lane for each in self.made.values() for lane in each.lanes))
        return replace(best, bounds=replace(bounds, evidence=evidence), lanes=lanes)


def _together(best: Bounds, every: list[Bounds], accuracy: Fraction) -> Bounds:
    """Return what is proved of several questions together, of which ``best`` has the nearest point."""
    calls = sum(each.calls for each in every)
    open_ = [each for each in every if not each.is_infeasible]
    if not open_:
        return replace(best, calls=calls)
    lower = min(each.lower for each in open_)
    reasons = [each.reason for each in open_ if each.reason]
    closed = best.upper is not None and best.upper - lower <= accuracy
    reason = "" if closed or not reasons else reasons[0]
    return replace(best, lower=lower, is_infeasible=False, reason=reason, calls=calls)


def _is_nearer(one: Bounds, other: Bounds, is_first: bool = False) -> bool:
    if one.upper is None:
        return other.is_infeasible and not one.is_infeasible
    return other.upper is None or one.upper < other.upper or (is_first and one.upper == other.upper)


def _own_lane(
    problem: Problem, effects: Effects, further: tuple[Condition, ...], solver: str, limits: Limits
) -> Intervention | None:
    """Ask a lane of our own about trees or a network with the equations in it; ``None`` where that cannot be done."""
    asked = through(problem, effects, further)
    if not effects.equations:
        lane = choose(solver, asked)
        return Intervention(lane.solve(asked, limits), asked, effects, (lane,))
    plain = over_actions(asked)
    made = None if plain is None else _inside(asked, plain, effects, solver, limits)
    made = made or _by_cases(problem, effects, further, solver, limits)
    return None if made is None else replace(made, problem=asked, effects=effects)


def _general_lane(
    problem: Problem,
    effects: Effects,
    further: tuple[Condition, ...],
    solver: str,
    limits: Limits,
    upper: Fraction | None,
) -> Intervention:
    """Ask a lane that takes formulas; nothing farther than a point in hand is looked at."""
    _check_grids(effects, solver)
    asked = through(problem, effects, further)
    hint = _one_cause_at_a_time(asked, problem, effects, further, limits) if solver in OWN else None
    uppers = [each for each in (upper, None if hint is None else hint.upper) if each is not None]
    nearest = min(uppers, default=None)
    near = asked if nearest is None else replace(asked, conditions=(*asked.conditions, *_within(asked, nearest)))
    lane = choose(solver, near)
    bounds = lane.solve(near, limits)
    if bounds.is_infeasible and nearest is not None:
        bounds = replace(bounds, lower=nearest, is_infeasible=False)
    if hint is not None and _is_nearer(hint, bounds):
        closed = hint.upper is not None and hint.upper - bounds.lower <= problem.accuracy
        bounds = replace(bounds, point=hint.point, upper=hint.upper, reason="" if closed else bounds.reason)
    return Intervention(bounds, asked, effects, (lane,))


def _one_cause_at_a_time(
    asked: Problem, problem: Problem, effects: Effects, further: tuple[Condition, ...], limits: Limits
) -> Bounds | None:
    """Return a near point, where effects with several causes are moved by one of them alone; nothing is proved by it."""
    follow = {equation.name for equation in effects.equations}
    causes = [inputs_of(equation.program) & set(problem.space) - follow for equation in effects.equations]
    mixed = sorted(set().union(*(each for each in causes if len(each) > 1)), key=problem.space.index)
    own = dict(zip(problem.space, problem.factual, strict=True))
    best: Bounds | None = None
    for kept in mixed if len(mixed) <= MOST_CASES else ():
        levels = {name: own[name] for name in mixed if name != kept}
        held = through(problem, in_case(effects, levels), (*further, *of_levels(problem.space, levels)))
        plain = over_actions(held)
        lane = None if plain is None else choose("auto", plain)
        if plain is None or lane is None or lane.name not in OWN:
            continue
        found = lane.solve(plain, replace(limits, record=False))
        point = found.point
        if point is not None and asked.is_plausible(point) and asked.is_reached(point):
            made = Bounds(Fraction(0), asked.distance(point), point)
            best = made if best is None or _is_nearer(made, best) else best
    return best


def _within(problem: Problem, upper: Fraction) -> list[Condition]:
    """Return that no feature changes more than it can within a distance."""
    made: list[Condition] = []
    for name, (low, high), whole in zip(problem.space, problem.box(upper), problem.box(), strict=True):
        feature = problem.space[name]
        if (low, high) == whole or feature.missing:
            continue
        at = syntax.Variable(name)
        guards = [syntax.Compare(">=", at, syntax.constant(low)), syntax.Compare("<=", at, syntax.constant(high))]
        made.append(
            GuardCondition(syntax.conjunction(guards) if low < high else syntax.Compare("==", at, syntax.constant(low)))
        )
    return made


def _check_grids(effects: Effects, solver: str) -> None:
    """Refuse effects with very many values of a grid where a formula would have to list them."""
    for equation in effects.equations:
        size = equation.feature.size or 0
        if equation.is_rounded and size > MOST_OF_GRID and solver != "enumerate":
            raise InvalidOption(
                f"the effect {equation.name!r} has {size:,} values, and its equation before this model needs a lane that lists them, "
                f"at most {MOST_OF_GRID}. Declare it as mace.real(low, high) without step, or give it a single cause before trees."
            )


def _inside(asked: Problem, plain: Problem, effects: Effects, solver: str, limits: Limits) -> Intervention | None:
    """Return the answer of a lane that sees nothing of effects; ``None`` where its point does not stand."""
    lane = choose(solver, plain)
    bounds = lane.solve(plain, limits)
    if bounds.point is not None and not asked.is_plausible(bounds.point):
        return None
    return Intervention(bounds, asked, effects, (lane,))


def _by_cases(
    problem: Problem, effects: Effects, further: tuple[Condition, ...], solver: str, limits: Limits
) -> Intervention | None:
    """Return the best answer over the pieces of the equations, or over the levels of causes that effects have beside others."""
    parts = in_pieces(effects)
    if parts is not None:
        asked = [through(problem, piece, (*further, OfRow(GuardCondition(guard), piece))) for guard, piece in parts]
        made = _best_of(problem, asked, effects, solver, limits, {"lane": "pieces"})
        if made is not None:
            return made
    names = cases_of(effects)
    levels = list(levels_of(problem.space, names)) if names else []
    if not 0 < len(levels) <= MOST_CASES:
        return None
    asked = [through(problem, in_case(effects, each), (*further, *of_levels(problem.space, each))) for each in levels]
    return _best_of(problem, asked, effects, solver, limits, {"lane": "cases", "of": list(names)})


def _best_of(
    problem: Problem, cases: list[Problem], effects: Effects, solver: str, limits: Limits, proof: Evidence
) -> Intervention | None:
    """Return the best answer of several questions, of which a lane of our own takes each; ``None`` where one cannot be taken."""
    best: Intervention | None = None
    every: list[Intervention] = []
    for asked in cases:
        plain = over_actions(asked)
        made = None if plain is None else _inside(asked, plain, effects, solver, limits)
        if made is None:
            return None
        every.append(made)
        if best is None or _is_nearer(made.bounds, best.bounds):
            best = made
    assert best is not None
    bounds = _together(best.bounds, [each.bounds for each in every], problem.accuracy)
    proofs = [each.bounds.evidence for each in every]
    evidence = None if any(each is None for each in proofs) else {**proof, "proofs": proofs}
    return replace(best, bounds=replace(bounds, evidence=evidence))


# ---- answers


@dataclass(frozen=True, slots=True)
class Recourse:
    """Asks for intervention after intervention; each further one differs from all earlier ones in its actions."""

    reading: Reading
    programs: Mapping[str, Program]
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
        stated = self.statement
        further: tuple[Condition, ...] = ()
        while True:
            begun = time.monotonic()
            made = self.nearest_of(problem, further)
            bounds = made.bounds
            if bounds.point is None:
                proof = certificate_of(stated, "causes", bounds, made.problem, None, **self._claim(None))
                yield Step(made.lanes, bounds, certificate=proof)
                return
            point = tidy(made.problem, bounds.point, bounds.lower, self.limits)
            point = shortened(made.problem, point, self.digits, self.limits)
            answer = self.counterfactual(made, point, time.monotonic() - begun)
            row = made.effects.row(point)
            proof = certificate_of(stated, "causes", bounds, made.problem, point, row, **self._claim(answer))
            yield Step(made.lanes, bounds, answer, proof)
            further = (*further, self.diversity.bind(problem.space, problem.factual, point, self.metric))
            stated = None if stated is None else stated.after(point)

    def nearest_of(self, problem: Problem, further: tuple[Condition, ...]) -> Intervention:
        """Return the nearest intervention."""
        return nearest_intervention(problem, self.programs, self.solver, self.limits, further)

    def nearest(self, problem: Problem, further: tuple[Condition, ...]) -> tuple[frozenset[str], Counterfactual] | None:
        """Return the nearest answer with what it acts upon; ``None`` where there is proved to be none.

        Raise where neither is found in time.
        """
        if self.limits.remaining() <= 0:
            raise Undecided(LATE)
        begun = time.monotonic()
        made = self.nearest_of(problem, further)
        if made.bounds.is_infeasible:
            return None
        if made.bounds.point is None:
            raise Undecided(made.bounds.reason)
        point = tidy(made.problem, made.bounds.point, made.bounds.lower, self.limits)
        moved = zip(problem.space, point, problem.factual, strict=True)
        acted = frozenset(name for name, new, old in moved if new != old)
        return acted, self.counterfactual(made, point, time.monotonic() - begun)

    def counterfactual(self, made: Intervention, point: Point, seconds: float) -> Counterfactual:
        """Return actions as an answer about the row that they lead to, after asking the real model and every condition once more."""
        asked, space = made.problem, made.problem.space
        row = made.effects.row(point)
        if not asked.is_reached(point) or not asked.is_plausible(point):
            raise AssertionError(f"{made.lanes[0].name} returned actions that are not valid: {point}")
        bounds = replace(made.bounds, upper=asked.distance(point))
        values, before = space.values_of(row), space.values_of(asked.factual)
        changed = [name for name, new, old in zip(space, row, asked.factual, strict=True) if new != old]
        return Counterfactual(
            values=values,
            changes=tuple(Change.of(space, name, before[name], values[name]) for name in changed),
            distance=float_up(asked.distance(point)),
            lower=float_down(bounds.lower),
            status=bounds.status(asked.accuracy),
            prediction=self.reading.label(self.reading.ask([row])[0]),
            solver=made.lanes[0].name,
            seconds=seconds,
            calls=bounds.calls,
            widen=self.widen,
            actions=tuple(self._acted(made.effects, changed)),
        )

    def _acted(self, effects: Effects, changed: list[str]) -> Iterator[str]:
        """Yield what is set: features that change, and effects that are held where they are, but none that follows."""
        follow = {equation.name for equation in effects.equations}
        return (name for name in effects.space if name in {*self.programs, *changed} - follow)

    @staticmethod
    def _claim(answer: Counterfactual | None) -> dict[str, Any]:
        return {"actions": None if answer is None else list(answer.actions or ())}
