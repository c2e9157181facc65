"""Checking a certificate about actions: what these lead to, what they cost, and a proof for every choice of what they act upon.

The effects that are acted upon may be chosen in many ways; the checker goes through all of them itself, and wants of each a proof that no
actions nearer than ``lower`` lead to the target. Where a proof is about trees or a network with the equations taken into it, these are
made anew, and held against the equations: each edge by asking on both sides of it, each weight in exact numbers.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from mace.certify.statement import Statement
from mace.certify.verdict import Progress, Refuted, Unchecked
from mace.constraints import Condition
from mace.constraints.causal import effects_of, inputs_of
from mace.constraints.condition import GuardCondition
from mace.constraints.typical import Usual
from mace.distances import point_values
from mace.errors import InvalidRow, MaceError
from mace.exact import float_down
from mace.forms import Effects, EffectsForm, Equation, Network, TreeEnsemble
from mace.language import holds, syntax
from mace.language.monotone import direction
from mace.language.partial import given
from mace.problem import Problem
from mace.reductions.actions import OfRow, few_values, in_case, in_pieces, levels_of, of_levels, through
from mace.reductions.effects import over_actions
from mace.space import Column, Point, Real

PLAIN = ("trees", "network", "boxes")
"""Lanes whose proofs are about a plain model over actions."""

MOST_CASES = 256

MOST_TRIED = 1000
"""So many values of a feature are tried in a condition."""

CheckLane = Callable[[Problem, Fraction | None, dict[str, Any], Progress], None]


class Question:
    """A statement with causes, and what the claim says is acted upon."""

    def __init__(self, problem: Problem, statement: Statement, actions: list[str] | None) -> None:
        assert statement.causes is not None
        self.problem, self.actions = problem, actions
        try:
            programs = statement.causes.programs(problem.space)
            self.further: tuple[Condition, ...] = tuple(statement.apart())
            self.choices = list(effects_of(programs, problem.space, problem.factual))
        except MaceError as error:
            raise Refuted(f"statement.causes: {error}") from error
        self.all = frozenset(programs)

    # ---- the counterfactual

    def check_counterfactual(self, problem: Problem, row: dict[str, Any]) -> Fraction:
        """Follow the actions to the row, ask the model about it, and return what the actions cost."""
        if self.actions is None:
            raise Refuted("claim.actions: with a counterfactual there are actions")
        try:
            point = problem.space.point(row)
        except InvalidRow as error:
            raise Refuted(f"claim.counterfactual: {error}") from error
        effects = self._following(frozenset(self.actions))
        follow = {equation.name for equation in effects.equations}
        changed = {name for name, new, old in zip(problem.space, point, problem.factual, strict=True) if new != old}
        if set(self.actions) != (changed | self.all) - follow or len(set(self.actions)) != len(self.actions):
            raise Refuted("claim.actions: they are not what the counterfactual changes beside what follows")
        acted: Point = tuple(
            old if name in follow else new for name, new, old in zip(problem.space, point, problem.factual, strict=True)
        )
        if effects.row(acted) != point:
            raise Refuted("claim.counterfactual: it is not the row that the actions lead to by the equations")
        asked = through(problem, effects, self.further)
        if not asked.is_plausible(acted):
            raise Refuted(
                "claim.counterfactual: it, or the actions that lead to it, break a condition of the statement"
            )
        if not asked.goal.accepts(asked.ask([acted])[0]):
            raise Refuted("claim.counterfactual: the model does not put it in the target")
        if not asked.form.is_settled(acted, asked.goal):
            raise Refuted(
                "claim.counterfactual: the model does not give it the same outcome in every order of summation"
            )
        return asked.distance(acted)

    def _following(self, acted: frozenset[str]) -> Effects:
        wanted = self.all - acted
        return next(each for each in self.choices if {equation.name for equation in each.equations} == wanted)

    # ---- the proof

    def check_proof(
        self,
        problem: Problem,
        lower: Fraction | None,
        evidence: dict[str, Any],
        progress: Progress,
        *,
        check_lane: CheckLane,
    ) -> None:
        """Be convinced that no actions nearer than ``lower`` lead to the target, whatever they act upon, or raise."""
        if evidence["lane"] != "causes" or "missing" in evidence:
            raise Unchecked("the lane gave no proof for every choice of the effects that are acted upon")
        proofs = evidence["choices"]
        if not isinstance(proofs, list) or len(proofs) != len(self.choices):
            raise Refuted(f"evidence.choices: there is not one proof for each of {len(self.choices)} choices")
        for number, (effects, proof) in enumerate(zip(self.choices, proofs, strict=True)):
            part = _share(progress, number, len(proofs))
            for asked, each in self._parts(effects, proof):
                _check_one(asked, lower, each, part, check_lane)

    def _parts(self, effects: Effects, proof: dict[str, Any]) -> list[tuple[Problem, dict[str, Any]]]:
        """Return the questions that a choice comes to, each with its proof: itself, or one for each case or piece, all of them."""
        if proof["lane"] not in ("cases", "pieces"):
            return [(through(self.problem, effects, self.further), proof)]
        asked = self._cases(effects, proof["of"]) if proof["lane"] == "cases" else self._pieces(effects)
        if not isinstance(proof["proofs"], list) or len(proof["proofs"]) != len(asked):
            raise Refuted(f"evidence.proofs: there is not one proof for each of {len(asked)} {proof['lane']}")
        return list(zip(asked, proof["proofs"], strict=True))

    def _cases(self, effects: Effects, names: list[str]) -> list[Problem]:
        space = self.problem.space
        if any(not few_values(space, name) or space[name].missing for name in names) or len(set(names)) < len(names):
            raise Refuted("evidence.of: cases are of features with few values, which are never missing")
        if math.prod(len(few_values(space, name)) for name in names) > MOST_CASES:
            raise Unchecked(f"more than {MOST_CASES} cases are not gone through")
        return [
            through(self.problem, in_case(effects, levels), (*self.further, *of_levels(space, levels)))
            for levels in levels_of(space, names)
        ]

    def _pieces(self, effects: Effects) -> list[Problem]:
        parts = in_pieces(effects)
        if parts is None:
            raise Refuted("evidence.lane: the equations are not in pieces")
        return [
            through(self.problem, piece, (*self.further, OfRow(GuardCondition(guard), piece))) for guard, piece in parts
        ]


def _share(progress: Progress, number: int, parts: int) -> Progress:
    return lambda share: progress((number + share) / parts)


def _check_one(
    asked: Problem, lower: Fraction | None, proof: dict[str, Any], progress: Progress, check_lane: CheckLane
) -> None:
    if proof["lane"] in PLAIN and isinstance(asked.form, EffectsForm):
        plain = over_actions(asked)
        if plain is None:
            raise Refuted("evidence.lane: the equations cannot be taken into the model, which the proof is about")
        if isinstance(plain.form, TreeEnsemble):
            assert isinstance(asked.form.inner, TreeEnsemble)
            _confirm_trees(asked, asked.form.effects, asked.form.inner, plain.form)
        elif isinstance(plain.form, Network):
            _confirm_network(asked, asked.form, plain)
        for old, new in zip(asked.conditions, plain.conditions, strict=True):
            if isinstance(new, GuardCondition):
                _confirm_condition(asked, old, new.guard)
            if isinstance(old, OfRow) and isinstance(old.condition, Usual) and isinstance(new, Usual):
                _confirm_trees(asked, asked.form.effects, old.condition.form, new.form)
        asked = plain
    check_lane(asked, lower, proof, progress)


# ---- trees over actions


def _confirm_trees(asked: Problem, effects: Effects, old: TreeEnsemble, made: TreeEnsemble) -> None:
    """Be convinced that trees over actions go where the trees over rows do: each edge is asked about on both sides."""
    space = asked.space
    follow = {space.index(equation.name) for equation in effects.equations}
    asks: set[tuple[int, float, Column, float, bool]] = set()
    for node in np.flatnonzero(old.left >= 0):
        before, after = old.columns[old.column[node]], made.columns[made.column[node]]
        is_swapped = bool(made.left[node] != old.left[node])
        if is_swapped and (made.left[node], made.right[node]) != (old.right[node], old.left[node]):
            raise Refuted("the trees over actions branch otherwise")
        if before.feature in follow:
            asks.add((before.feature, float(old.edge[node]), after, float(made.edge[node]), is_swapped))
        elif before != after or old.edge[node] != made.edge[node] or is_swapped:
            raise Refuted("the trees over actions ask for another feature, or at another edge")
    for effect, edge, column, at, is_swapped in asks:
        # An effect that nothing moves is asked for itself, which actions leave at the factual's own value.
        own = asked.factual[effect]
        assert own is not None
        for value in [own] if column.feature == effect else _either_side(asked, column, at):
            acted = _with(asked.factual, column.feature, value)
            is_left = (column.table[int(value)] if column.table else value) <= at
            number = effects.row(acted)[effect]
            assert number is not None
            if (number <= edge) != (is_left != is_swapped):
                raise Refuted(f"{space.names[effect]!r} does not cross {edge!r} where the trees over actions say")
    for effect, cause in {(effect, column.feature) for effect, _, column, _, _ in asks}:
        _confirm_single_cause(asked, effects, space.names[effect], space.names[cause])


def _either_side(asked: Problem, column: Column, at: float) -> list[float]:
    """Return the values of a feature at which the effect must be compared: the two about an edge and the ends, or every level."""
    if column.table is not None:
        return [float(level) for level in range(len(column.table))]
    low, high = _ends(asked, column.feature)
    return [value for value in (low, at, math.nextafter(at, math.inf), high) if low <= value <= high]


def _ends(asked: Problem, index: int) -> tuple[float, float]:
    """Return the range of a number, the factual's own included."""
    low, high = asked.box()[index]
    own = asked.factual[index] or 0
    return min(float(low), own), max(float(high), own)


def _confirm_condition(asked: Problem, old: Condition, guard: syntax.Guard) -> None:
    """Look about every number of a condition on actions, one feature moved at a time: it holds where the statement's does of the row."""
    numbers = [float_down(number) for number in _numbers(guard)]
    for name in syntax.variables(guard):
        index = asked.space.index(name)
        low, high = _ends(asked, index)
        ends = [math.nextafter(number, way) for number in numbers for way in (-math.inf, math.inf)]
        tried: Iterable[float] = (
            {*numbers, *ends, low, high} if _is_real(asked, index) else range(int(low), int(high) + 1)
        )
        for value in itertools.islice((value for value in tried if low <= value <= high), MOST_TRIED):
            values = point_values(asked.space, _with(asked.factual, index, value))
            if not holds(guard, values) and old.holds(values):
                raise Refuted(f"a condition on actions leaves out {name} = {value!r}, which the statement allows")


def _is_real(asked: Problem, index: int) -> bool:
    return isinstance(list(asked.space.values())[index], Real)


def _numbers(guard: syntax.Guard) -> Iterator[Fraction]:
    """Yield the numbers that a guard compares single features with."""
    match guard:
        case syntax.Compare(_, syntax.Variable(), syntax.Constant(value)):
            yield value
        case syntax.And(parts) | syntax.Or(parts):
            for part in parts:
                yield from _numbers(part)
        case syntax.Not(part):
            yield from _numbers(part)


def _with(point: Point, index: int, value: float) -> Point:
    return (*point[:index], value, *point[index + 1 :])


def _confirm_single_cause(asked: Problem, effects: Effects, name: str, cause: str) -> None:
    """Be convinced that an effect follows from one feature alone, and (a number) never turns back; or, of itself, from none.

    Every equation on the way goes one way only in each of its causes, and all ways from the feature lead in the same direction.
    """
    ways: dict[str, tuple[str, int]] = {}
    same: set[str] = set()
    for equation in _simplified(effects):
        causes = sorted(inputs_of(equation.program) & set(asked.space))
        if not causes:
            same.add(equation.name)
            continue
        each = [ways.get(other, (other, 1)) for other in causes]
        followed = {other.name for other in effects.equations}
        if len({root for root, _ in each}) != 1 or any(other in followed and other not in ways for other in causes):
            continue
        root = each[0][0]
        if hasattr(asked.space[root], "levels"):
            ways[equation.name] = root, 0
            continue
        signs = _ways(asked, effects, equation, causes, each)
        if len(signs) == 1:
            ways[equation.name] = root, signs.pop()
    if name not in same if name == cause else ways.get(name, ("", 0))[0] != cause:
        raise Refuted(f"{name!r} does not follow from {cause!r} alone in one direction")


def _simplified(effects: Effects) -> list[Equation]:
    """Return the equations with the effects that nothing moves put into those that they are causes of."""
    made: list[Equation] = []
    same: dict[str, Fraction] = {}
    for equation in effects.equations:
        known = {name: same[name] for name in inputs_of(equation.program) & set(same)}
        made.append(replace(equation, program=given(equation.program, known)))
        if not inputs_of(made[-1].program) & set(effects.space):
            same[equation.name] = Fraction(made[-1].value(dict.fromkeys(effects.space)))
    return made


def _ways(
    asked: Problem, effects: Effects, equation: Equation, causes: list[str], each: list[tuple[str, int]]
) -> set[int]:
    """Return the directions in which an effect goes as the one feature behind its causes rises; none where they are not known."""
    if len(causes) == 1:
        index = asked.space.index(each[0][0])
        ends = sorted(
            Fraction(effects.row(_with(asked.factual, index, end))[asked.space.index(causes[0])] or 0)
            for end in _ends(asked, index)
        )
        found = direction(equation.program, causes[0], *ends)
        return set() if found is None else {found * each[0][1]}
    shares = {} if equation.sum is None else equation.sum[0]
    signs = {
        (1 if shares[cause] > 0 else -1) * way
        for cause, (_, way) in zip(causes, each, strict=True)
        if shares.get(cause)
    }
    return signs - {0} or signs


# ---- networks over actions


def _confirm_network(asked: Problem, form: EffectsForm, plain: Problem) -> None:
    """Be convinced, in exact numbers, that a network over actions scores what the network over rows does, up to the slack of its goal."""
    old, made, effects, space = form.inner, plain.form, form.effects, asked.space
    assert isinstance(old, Network)
    assert isinstance(made, Network)
    if len(old.weights) != len(made.weights) or any(
        not np.array_equal(a, b)
        for a, b in zip([*old.weights[1:], *old.biases[1:]], [*made.weights[1:], *made.biases[1:]], strict=True)
    ):
        raise Refuted("the network over actions differs behind its first layer")
    box, follow = asked.box(), {equation.name: equation for equation in _simplified(effects)}
    largest = [_largest(column, box) for column in made.columns]
    off: list[Fraction] = []
    for unit in range(len(old.biases[0])):
        wanted, constant, error = _unit(old, unit, effects, follow, space.names)
        error += abs(constant - Fraction(float(made.biases[0][unit])))
        for place, column in enumerate(made.columns):
            exact = wanted.pop((column.feature, column.table), Fraction(0))
            error += abs(exact - Fraction(float(made.weights[0][unit, place]))) * largest[place]
        if any(wanted.values()):
            raise Refuted("the network over actions leaves a cause out")
        off.append(error)
    for weight in made.weights[1:]:
        off = [
            sum((abs(Fraction(float(w))) * e for w, e in zip(line, off, strict=True) if w), Fraction(0))
            for line in weight
        ]
    rounding = old.rounding(effects.widened(box))
    if plain.goal.slack < asked.goal.slack + rounding + 2 * max(off):
        raise Refuted("the network over actions differs by more than the target is widened for it")


def _unit(
    network: Network, unit: int, effects: Effects, follow: dict[str, Any], names: tuple[str, ...]
) -> tuple[dict[tuple[int, Any], Fraction], Fraction, Fraction]:
    """Return what a unit of the first layer adds up over actions: weights by column, a constant, and what rounding of effects may add."""
    weights: dict[tuple[int, Any], Fraction] = {}
    constant, error = Fraction(float(network.biases[0][unit])), Fraction(0)
    for place, column in enumerate(network.columns):
        weight = Fraction(float(network.weights[0][unit, place]))
        name = names[column.feature]
        if name not in follow:
            key = (column.feature, column.table)
            weights[key] = weights.get(key, Fraction(0)) + weight
            continue
        shares, rest, room, table = _followed(name, effects, follow, names)
        error += abs(weight) * room
        constant += weight * rest
        for key, share in [*((((names.index(cause)), None), share) for cause, share in shares.items()), *table]:
            weights[key] = weights.get(key, Fraction(0)) + weight * share
    return weights, constant, error


def _followed(
    name: str, effects: Effects, follow: dict[str, Any], names: tuple[str, ...]
) -> tuple[dict[str, Fraction], Fraction, Fraction, list[tuple[tuple[int, Any], Fraction]]]:
    """Return an effect over actions: a sum with its constant and rounding, or a table over levels."""
    equation = follow[name]
    if (
        equation.sum is None
        or equation.is_rounded
        or any(hasattr(effects.space[cause], "levels") for cause in equation.sum[0])
    ):
        causes = inputs_of(equation.program) & set(effects.space)
        if not causes:
            return {}, Fraction(equation.value(dict.fromkeys(names))), Fraction(0), []
        if len(causes) != 1:
            raise Refuted(f"{name!r} is no sum over its causes, and has several")
        (cause,) = causes
        levels = range(len(getattr(effects.space[cause], "levels", ())))
        if not levels:
            raise Refuted(f"{name!r} is no sum over its causes")
        table = tuple(equation.value({**dict.fromkeys(names), cause: Fraction(level)}) for level in levels)
        return {}, Fraction(0), Fraction(0), [((names.index(cause), table), Fraction(1))]
    low, high = effects.ends(name)
    shares: dict[str, Fraction] = {}
    rest, room = equation.sum[1] + equation.shift, max(abs(low), abs(high)) / 2**53 + Fraction(1, 2**1022)
    for cause, share in equation.sum[0].items():
        if cause not in follow:
            shares[cause] = shares.get(cause, Fraction(0)) + share
            continue
        inner, constant, wrong, tables = _followed(cause, effects, follow, names)
        if tables:
            raise Refuted(f"{name!r} is a sum over a table")
        rest, room = rest + share * constant, room + abs(share) * wrong
        for other, part in inner.items():
            shares[other] = shares.get(other, Fraction(0)) + share * part
    return shares, rest, room, []


def _largest(column: Column, box: tuple[tuple[Fraction, Fraction], ...]) -> Fraction:
    if column.table is not None:
        return Fraction(max(map(abs, column.table)))
    return max(map(abs, box[column.feature]))
