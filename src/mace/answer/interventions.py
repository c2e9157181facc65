"""Nearest interventions: the cheapest actions whose effects, by structural equations, bring the row to the target."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

from mace.answer.nearest import Found, NearestRows
from mace.clock import OutOfTime, until
from mace.constraints import Condition
from mace.constraints.causal import effects_of, inputs_of
from mace.constraints.condition import GuardCondition
from mace.errors import InvalidOption
from mace.exact import float_up
from mace.forms import Effects
from mace.language import syntax
from mace.problem import INTERRUPTED, LATE, Bounds, Evidence, Limits, Problem, within
from mace.reductions.actions import at_levels, cases_of, in_pieces, levels_of, through
from mace.reductions.effects import over_actions
from mace.solvers import choose

MOST_CHOICES_TRIED = 32
"""How many choices of levels are tried one by one, so that effects have a single cause in each."""

MOST_OF_GRID = 1000
"""How many values of an effect with a grid a formula lists."""


@dataclass(frozen=True, slots=True)
class NearestInterventions:
    """Finds nearest interventions; ``rows`` answers where nothing follows from the actions."""

    programs: Mapping[str, syntax.Program]
    rows: NearestRows

    def __call__(self, problem: Problem, further: tuple[Condition, ...], limits: Limits) -> Found:
        """Go through the choices of the effects that are acted upon, the fewest first; ties go to fewer.

        Choices of which a lane of ours takes the model with its equations come first: their answers bound the others.
        """
        begun = time.monotonic()
        best = _Best(problem, limits)
        asked = _Asked(problem, further, self.rows, best.limits)
        choices = list(effects_of(self.programs, problem.space, problem.factual))
        waiting: list[int] = []
        for number, effects in enumerate(choices):
            if best.is_stopped:
                break
            is_late = limits.remaining() <= 0
            made = asked.too_late(effects) if is_late else asked.in_time(asked.own_lane, effects)
            if made is None:
                waiting.append(number)
            else:
                best.add(number, made)
            if is_late:
                break
        for number in waiting:
            if best.is_stopped:
                break
            made = asked.in_time(partial(asked.general_lane, upper=best.upper), choices[number])
            assert made is not None
            best.add(number, made)
        found = best.together(len(choices))
        return replace(found, seconds=time.monotonic() - begun, caused=tuple(self.programs))


class _Best:
    """What is proved of the choices of the effects that are acted upon, by their numbers, and the nearest point of them."""

    def __init__(self, problem: Problem, limits: Limits) -> None:
        self.accuracy, self.record, self.on_progress = problem.accuracy, limits.record, limits.on_progress
        self.limits = replace(limits, on_progress=None)
        self.made: dict[int, Found] = {}
        self.best: int | None = None
        self.is_stopped = False

    @property
    def upper(self) -> Fraction | None:
        """The distance of the incumbent."""
        return None if self.best is None else self.made[self.best].bounds.upper

    def add(self, number: int, made: Found) -> None:
        self.made[number] = made
        if self.best is None or _is_nearer(made.bounds, self.made[self.best].bounds, number < self.best):
            self.best = number
        self.is_stopped = made.bounds.reason == INTERRUPTED
        if self.on_progress is not None:
            upper = math.inf if self.upper is None else float_up(self.upper)
            self.on_progress(0.0, upper, sum(each.bounds.calls for each in self.made.values()))

    def together(self, choices: int) -> Found:
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


@dataclass(frozen=True, slots=True)
class _Asked:
    """A problem under further conditions on the actions, to be solved for each choice of the effects that follow."""

    problem: Problem
    further: tuple[Condition, ...]
    rows: NearestRows
    limits: Limits

    @property
    def is_ours(self) -> bool:
        """Whether a lane may be given the model with the equations in it, because it was not asked for as one that takes formulas."""
        return self.rows.solver == "auto" or not self.rows.lane.takes_formulas

    def through(self, effects: Effects) -> Problem:
        """Return the problem over actions, of which some effects follow."""
        return through(self.problem, effects, self.further)

    def too_late(self, effects: Effects) -> Found:
        """Return that nothing is proved."""
        return Found(Bounds(Fraction(0), reason=LATE), self.through(effects), (), effects=effects)

    def in_time(self, solve: Callable[[Effects], Found | None], effects: Effects) -> Found | None:
        """Return a lane's answer; the deadline also ends steps that know of no limits."""
        try:
            with until(self.limits.deadline):
                return solve(effects)
        except OutOfTime:
            return self.too_late(effects)

    def own_lane(self, effects: Effects) -> Found | None:
        """Ask a lane of ours about trees or a network with the equations in it; ``None`` where that cannot be done."""
        if not self.is_ours:
            return None
        if not effects.equations:
            return replace(self.rows(self.problem, self.further, self.limits), effects=effects)
        asked = self.through(effects)
        made = self._inside(asked) or self._by_cases(effects)
        return None if made is None else replace(made, problem=asked, effects=effects)

    def general_lane(self, effects: Effects, upper: Fraction | None) -> Found:
        """Ask a lane that takes formulas; nothing farther than the incumbent is looked at."""
        solver = self.rows.solver
        _check_grids(effects, solver)
        asked = self.through(effects)
        hint = self._one_cause_at_a_time(asked, effects) if self.is_ours else None
        uppers = [each for each in (upper, None if hint is None else hint.upper) if each is not None]
        nearest = min(uppers, default=None)
        close = () if nearest is None else map(GuardCondition, within(asked, nearest))
        near = replace(asked, conditions=(*asked.conditions, *close))
        lane = choose(solver, near)
        bounds = lane.solve(near, self.limits)
        if bounds.is_infeasible and nearest is not None:
            bounds = replace(bounds, lower=nearest, is_infeasible=False)
        if hint is not None and _is_nearer(hint, bounds):
            closed = hint.upper is not None and hint.upper - bounds.lower <= asked.accuracy
            bounds = replace(bounds, point=hint.point, upper=hint.upper, reason="" if closed else bounds.reason)
        return Found(bounds, asked, (lane,), effects=effects)

    def _one_cause_at_a_time(self, asked: Problem, effects: Effects) -> Bounds | None:
        """Return a near point, where effects with several causes are moved by one of them alone; nothing is proved by it."""
        space = asked.space
        follow = {equation.name for equation in effects.equations}
        causes = [inputs_of(equation.program) & set(space) - follow for equation in effects.equations]
        mixed = sorted(set().union(*(each for each in causes if len(each) > 1)), key=space.index)
        own = dict(zip(space, asked.factual, strict=True))
        best: Bounds | None = None
        for moved in mixed if len(mixed) <= MOST_CHOICES_TRIED else ():
            levels = {name: own[name] for name in mixed if name != moved}
            plain = over_actions(at_levels(self.problem, effects, levels, self.further))
            lane = None if plain is None else choose("auto", plain)
            if plain is None or lane is None or lane.takes_formulas:
                continue
            point = lane.solve(plain, replace(self.limits, record=False)).point
            if point is not None and asked.is_plausible(point) and asked.is_reached(point):
                made = Bounds(Fraction(0), asked.distance(point), point)
                best = made if best is None or _is_nearer(made, best) else best
        return best

    def _inside(self, asked: Problem) -> Found | None:
        """Return the answer of a lane that sees nothing of effects; ``None`` where there is none, or its point is not plausible."""
        plain = over_actions(asked)
        if plain is None:
            return None
        lane = choose(self.rows.solver, plain)
        bounds = lane.solve(plain, self.limits)
        if bounds.point is not None and not asked.is_plausible(bounds.point):
            return None
        return Found(bounds, asked, (lane,))

    def _by_cases(self, effects: Effects) -> Found | None:
        """Return the best answer over the pieces of the equations, or over the levels of the causes of which an effect has several."""
        parts = in_pieces(self.problem, effects, self.further)
        if parts is not None:
            made = self._best_of(parts, {"lane": "pieces"})
            if made is not None:
                return made
        names = cases_of(effects)
        levels = list(levels_of(self.problem.space, names)) if names else []
        if not 0 < len(levels) <= MOST_CHOICES_TRIED:
            return None
        asked = [at_levels(self.problem, effects, each, self.further) for each in levels]
        return self._best_of(asked, {"lane": "cases", "of": list(names)})

    def _best_of(self, cases: list[Problem], proof: Evidence) -> Found | None:
        """Return the best answer of several problems, of which a lane of ours takes each; ``None`` where one cannot be taken."""
        best: Found | None = None
        every: list[Found] = []
        for asked in cases:
            made = self._inside(asked)
            if made is None:
                return None
            every.append(made)
            if best is None or _is_nearer(made.bounds, best.bounds):
                best = made
        assert best is not None
        bounds = _together(best.bounds, [each.bounds for each in every], self.problem.accuracy)
        proofs = [each.bounds.evidence for each in every]
        evidence = None if any(each is None for each in proofs) else {**proof, "proofs": proofs}
        return replace(best, bounds=replace(bounds, evidence=evidence))


def _check_grids(effects: Effects, solver: str) -> None:
    """Refuse effects with very many values of a grid where a formula would have to list them."""
    for equation in effects.equations:
        size = equation.feature.size or 0
        if equation.is_rounded and size > MOST_OF_GRID and solver != "enumerate":
            raise InvalidOption(
                f"the effect {equation.name!r} has {size:,} values, and its equation before this model needs a lane that lists them, "
                f"at most {MOST_OF_GRID}. Declare it as mace.real(low, high) without step, or give it a single cause before trees."
            )
