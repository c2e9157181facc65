"""Nearest interventions: the cheapest actions whose effects, by structural equations, bring the row to the target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from mace.causes import InRanges, OfRow, effects_of
from mace.constraints.condition import GuardCondition, compare
from mace.exact import UNIT
from mace.forms import Effects, EffectsForm, Equation, Interval, Network, Outcomes
from mace.language.substitute import substitute
from mace.language.syntax import (
    Binary,
    Compare,
    Constant,
    Expression,
    Program,
    Return,
    Variable,
    constant,
    total,
    variables,
)
from mace.problem import Bounds, Limits, Problem
from mace.solvers import Lane, choose
from mace.solvers.linear import linear
from mace.space import Column, Point

Row = dict[str, Fraction]


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
    lane : Lane
        Which lane answered.
    """

    bounds: Bounds
    problem: Problem
    effects: Effects
    lane: Lane


def nearest_intervention(
    problem: Problem, programs: Mapping[str, Program], solver: str, limits: Limits
) -> Intervention:
    """Go through the choices of the effects that are acted upon, the fewest first; ties go to fewer."""
    best: Intervention | None = None
    lowers: list[Fraction] = []
    reasons: list[str] = []
    calls = 0
    for effects in effects_of(programs, problem.space, problem.factual):
        asked = through(problem, effects)
        made = _answered(asked, effects, solver, limits)
        calls += made.bounds.calls
        if best is None or _is_nearer(made.bounds, best.bounds):
            best = made
        if not made.bounds.is_infeasible:
            lowers.append(made.bounds.lower)
            reasons += [made.bounds.reason] if made.bounds.reason else []
        if made.bounds.reason == "interrupted":
            lowers.append(Fraction(0))
            break
    assert best is not None
    if not lowers:
        return replace(best, bounds=replace(best.bounds, calls=calls))
    lower = min(lowers)
    upper = best.bounds.upper
    closed = upper is not None and upper - lower <= problem.accuracy
    reason = "" if closed or not reasons else reasons[0]
    return replace(best, bounds=replace(best.bounds, lower=lower, is_infeasible=False, reason=reason, calls=calls))


def _is_nearer(one: Bounds, other: Bounds) -> bool:
    if one.upper is None:
        return other.is_infeasible and not one.is_infeasible
    return other.upper is None or one.upper < other.upper


def _answered(asked: Problem, effects: Effects, solver: str, limits: Limits) -> Intervention:
    """Ask a lane of our own about the network with the equations in it, where that can be done; else the lane that takes formulas."""
    short = composed(asked)
    if short is not None and solver == "auto":
        lane = choose(solver, short)
        bounds = lane.solve(short, limits)
        if bounds.point is None or asked.is_plausible(bounds.point):
            return Intervention(bounds, asked, effects, lane)
    lane = choose(solver, asked)
    return Intervention(lane.solve(asked, limits), asked, effects, lane)


def through(problem: Problem, effects: Effects) -> Problem:
    """Return the question about actions: every condition, and the model, see the row that these lead to."""
    if not effects.equations:
        return problem
    ask = problem.ask

    def ask_rows(points: Sequence[Point]) -> list[Fraction]:
        return ask([effects.row(point) for point in points])

    own = dict(zip(problem.space, problem.factual, strict=True))
    still = [GuardCondition(compare(problem.space, each.name, "==", own[each.name])) for each in effects.equations]
    seen = [OfRow(condition, effects) for condition in problem.conditions]
    return replace(
        problem,
        form=EffectsForm(problem.form, effects),
        ask=ask_rows,
        conditions=(*still, InRanges(effects), *seen),
    )


# ---- linear equations inside of a network


def composed(problem: Problem) -> Problem | None:
    """Return a problem about actions as one about a network over them; ``None`` where its equations or conditions do not allow that.

    The weights of an effect are handed on to its causes. What floats lose on the way, and the rounding of the network over the whole
    domain, effects included, widen the goal.
    """
    form = problem.form
    if not isinstance(form, EffectsForm) or not isinstance(form.inner, Network):
        return None
    effects, network, goal = form.effects, form.inner, problem.goal
    sums = _sums(effects)
    if sums is None or not isinstance(goal, Outcomes | Interval):
        return None
    guards = [each for each in problem.conditions if isinstance(each, GuardCondition)]
    for condition in problem.conditions:
        if isinstance(condition, OfRow):
            if not isinstance(condition.condition, GuardCondition) or variables(condition.condition.guard) & set(sums):
                return None
            guards.append(condition.condition)
    made = _handed_on(network, problem, sums)
    if made is None:
        return None
    net, lost = made
    slack = goal.slack + lost + network.rounding(effects.widened(problem.box()))
    guards += [guard for equation in effects.equations for guard in _range_guards(equation, effects, sums)]
    return replace(problem, form=net, goal=replace(goal, slack=slack), conditions=tuple(guards))


def _sums(effects: Effects) -> dict[str, Row] | None:
    """Return each effect as a sum over actions, its constant under the empty name; ``None`` where one is not linear."""
    found: dict[str, Row] = {}
    exact: dict[str, Expression] = {}
    for equation in effects.equations:
        body = equation.program.body
        if not isinstance(body, Return):
            return None
        exact[equation.name] = Binary("+", substitute(body.value, exact), constant(equation.shift))
        form = linear(Compare(">=", exact[equation.name], Constant(Fraction(0))))
        if form is None:
            return None
        found[equation.name] = {**form[0], "": form[1]}
    return found


def _handed_on(network: Network, problem: Problem, sums: dict[str, Row]) -> tuple[Network, Fraction] | None:
    names = list(problem.space)
    columns = list(network.columns)
    plain = {column.feature: place for place, column in enumerate(columns) if column.table is None}
    for row in sums.values():
        for name in row:
            if name and hasattr(problem.space[name], "levels"):
                return None
            if name and names.index(name) not in plain:
                plain[names.index(name)] = len(columns)
                columns.append(Column(name, names.index(name), None))
    first = network.weights[0]
    weight = np.hstack([first, np.zeros((len(first), len(columns) - first.shape[1]))])
    bias, size = network.biases[0].copy(), np.abs(network.biases[0])
    box = problem.box()
    size = size + np.abs(weight) @ np.array([_largest(column, box) for column in columns])
    for place, column in enumerate(network.columns):
        name = names[column.feature]
        if name not in sums:
            continue
        if column.table is not None:
            return None
        own = weight[:, place].copy()
        weight[:, place] = 0.0
        for cause, share in sums[name].items():
            largest = Fraction(1)
            if cause:
                index = names.index(cause)
                weight[:, plain[index]] += own * float(share)
                largest = max(abs(box[index][0]), abs(box[index][1]))
            else:
                bias += own * float(share)
            size = size + np.abs(own) * float(abs(share) * largest)
    error = 16 * float(UNIT) * (len(columns) + 4) * size
    for later in network.weights[1:]:
        error = np.abs(later) @ error
    made = replace(
        network,
        columns=tuple(columns),
        weights=(weight, *network.weights[1:]),
        biases=(bias, *network.biases[1:]),
        sizes=None,
    )
    return made, 4 * Fraction(float(error.max()))


def _largest(column: Column, box: tuple[tuple[Fraction, Fraction], ...]) -> float:
    if column.table is not None:
        return max(map(abs, column.table))
    return float(max(abs(end) for end in box[column.feature]))


def _range_guards(equation: Equation, effects: Effects, sums: dict[str, Row]) -> list[GuardCondition]:
    """Return that an effect lies in its range, with room for the rounding of a float."""
    terms: list[Expression] = [
        Binary("*", Constant(share), Variable(name)) for name, share in sums[equation.name].items() if name
    ]
    low, high = effects.ends(equation.name)
    room, shift = max(abs(low), abs(high)) / 2**52, sums[equation.name][""]
    if not terms:
        return []
    return [
        GuardCondition(Compare(">=", total(terms), Constant(low - room - shift))),
        GuardCondition(Compare("<=", total(terms), Constant(high + room - shift))),
    ]
