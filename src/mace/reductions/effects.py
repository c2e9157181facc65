"""Questions about actions as questions about plain trees and networks: effects taken into the model.

An effect of a single cause is a column that a step before the model makes of the cause: its equation. What carries thresholds back through
the steps of a pipeline carries them through it (:mod:`mace.models.preprocessing.crossings`): a tree that asks for the effect asks for the
cause instead, at the float where the computed effect crosses the edge. In a network, the weights of an effect that is a sum are handed on
to its causes. Conditions on effects become conditions on causes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mace.clock import check
from mace.constraints import Condition
from mace.constraints.causal import inputs_of
from mace.constraints.condition import AtLeast, GuardCondition
from mace.constraints.typical import Usual
from mace.errors import UnsupportedModel
from mace.exact import TINY, UNIT, Floats, float_below, float_down
from mace.forms import Box, Effects, EffectsForm, Equation, Interval, Network, Outcomes, TreeEnsemble
from mace.forms.scoring import positions_guard
from mace.language import syntax
from mace.language.linear import Linear, add, linear, linear_sum, nearly_linear, solved
from mace.language.linear import room as rounding_room
from mace.language.monotone import direction
from mace.language.partial import given
from mace.language.run import compare
from mace.language.walk import map_comparisons, rewrite
from mace.models.networks.piecewise import largest_values
from mace.models.preprocessing.crossings import sides
from mace.models.preprocessing.ground_trees import ground_trees
from mace.models.preprocessing.traced import Traced, ends_of, raw_columns
from mace.problem import Problem
from mace.reductions.actions import InRanges, OfRow
from mace.space import Column, FeatureSpace, Filled, Integer, Point, Real


class Inexpressible(Exception):
    """An effect, or a condition on one, cannot be put in terms of single causes or of sums."""


def over_actions(problem: Problem) -> Problem | None:
    """Return a question about actions as one about a plain tree ensemble or network over them; ``None`` where that cannot be done.

    It has every answer of the question, at the same distance. It may have a little more, where the rounding of a condition is not followed
    to the last bit, so that an answer has to be asked of the question itself.

    Raises
    ------
    OutOfTime
        The deadline of :mod:`mace.clock` has passed.
    """
    form = problem.form
    if not isinstance(form, EffectsForm):
        return None
    try:
        effects = TracedEffects(form.effects, problem)
        conditions = tuple(effects.condition(each) for each in problem.conditions)
        if isinstance(form.inner, TreeEnsemble):
            return replace(problem, form=_trees(form.inner, effects), conditions=conditions)
        if isinstance(form.inner, Network) and isinstance(problem.goal, Outcomes | Interval):
            net, lost = handed_on(form.inner, effects)
            slack = problem.goal.slack + lost + form.inner.rounding(form.effects.widened(problem.box()))
            return replace(problem, form=net, goal=replace(problem.goal, slack=slack), conditions=conditions)
    except (Inexpressible, UnsupportedModel):
        pass
    return None


# ---- what effects follow from


@dataclass(frozen=True, slots=True)
class ActionSum:
    """A feature as a linear form over actions, and by how much its value as computed may differ from the form inside of its range."""

    form: Linear
    rounding: Fraction = Fraction(0)


class TracedEffects:
    """Effects and what they follow from, for one factual.

    Attributes
    ----------
    numbers : FeatureSpace
        The features, each number with the range that it has here, the factual's own value included.
    constants : dict
        The effects that are the same whatever is done.
    columns : dict
        The features that actions set, and the effects of at most one of these, as columns before the model.
    directions : dict
        Whether each of these never falls (1) or never rises (-1) as that feature rises, or stays (0).
    sums : dict
        The features that actions set, and the effects that are sums over them.
    """

    def __init__(self, effects: Effects, problem: Problem) -> None:
        self.effects, self.space, self.factual = effects, problem.space, problem.factual
        self.box: Box = problem.box()
        self.names = [equation.name for equation in effects.equations]
        self.numbers = FeatureSpace({name: self._number(name) for name in self.space})
        raw = {each.name: each for each in raw_columns(self.numbers, self.numbers.names, "float64")}
        self.columns = {name: column for name, column in raw.items() if name not in self.names}
        self.directions = dict.fromkeys(self.columns, 1)
        self.constants: dict[str, Fraction] = {}
        self.sums = {name: ActionSum(({name: Fraction(1)}, Fraction(0))) for name in self.columns}
        for equation in effects.equations:
            known = {name: self.constants[name] for name in inputs_of(equation.program) & set(self.constants)}
            made = replace(equation, program=given(equation.program, known)) if known else equation
            causes = sorted(inputs_of(made.program) & set(self.space))
            if not causes:
                self.constants[made.name] = Fraction(made.value(dict.fromkeys(self.space.names)))
                self.sums[made.name] = ActionSum(({}, self.constants[made.name]))
                self.columns[made.name] = self._column(made, [made.name], [raw[made.name]])
                continue
            self._trace(made, causes)
            self._add_up(made)

    def _number(self, name: str) -> Any:
        """Return a feature, a number without its grid and in its range here."""
        feature = self.space[name]
        if not isinstance(feature, Real | Integer):
            return feature
        low, high = self._ends(name)
        return Real(float(low), float(high), missing=feature.missing)

    def _ends(self, name: str) -> tuple[Fraction, Fraction]:
        """Return the range of a number, the factual's own included."""
        index = self.space.index(name)
        (low, high), own = self.box[index], Fraction(self.factual[index] or 0)
        return min(low, own), max(high, own)

    # ---- single causes

    def _trace(self, equation: Equation, causes: list[str]) -> None:
        """Keep an effect as a column where all its causes follow from one feature: of levels, or of a number in one direction."""
        sources = [self.columns[cause] for cause in causes if cause in self.columns]
        if len(sources) < len(causes) or len({source.feature for source in sources}) != 1:
            return
        root = self.space.names[sources[0].feature]
        column = self._column(equation, causes, sources)
        levels = getattr(self.space[root], "levels", None)
        if levels is not None:
            column = replace(column, table=tuple(column.values(np.arange(len(levels))).tolist()))
        rises = 0 if levels is not None else self._direction(equation, causes, sources)
        if rises is not None:
            self.columns[equation.name], self.directions[equation.name] = column, rises

    def _column(self, equation: Equation, causes: list[str], sources: list[Traced]) -> Traced:
        """Return an effect as a column before the model: what its equation makes of its cause, or of several causes that follow from one
        feature."""
        unset = dict.fromkeys(self.space.names)

        def computed(*columns: NDArray[Any]) -> Floats:
            check()
            each = zip(*(column.tolist() for column in columns), strict=True)
            rows = (dict(zip(causes, map(Fraction, row), strict=True)) for row in each)
            return np.array([float(equation.value(unset | row)) for row in rows])

        def values(x: NDArray[Any]) -> Floats:
            return computed(*(source.values(x) for source in sources))

        feature = sources[0].feature
        made = Traced(equation.name, feature, None, values=values, where=f"the equation of {equation.name!r}")
        if len(sources) == 1:
            return replace(made, local=computed, parents=(sources[0],))
        return replace(made, local=values, parents=(self.columns[self.space.names[feature]],))

    def _direction(self, equation: Equation, causes: list[str], sources: list[Traced]) -> int | None:
        """Return 1 or -1 where an effect, as computed, never falls or never rises with its root, 0 where it stays; otherwise ``None``."""
        if len(causes) == 1:
            ends = ends_of(self._number(self.space.names[sources[0].feature]))
            low, high = sorted(map(Fraction, sources[0].values(ends).tolist()))
            found = direction(equation.program, causes[0], low, high)
            return None if found is None else found * self.directions[causes[0]]
        if equation.sum is None:
            return None
        shares = equation.sum[0].items()
        signs = {(1 if share > 0 else -1) * self.directions[cause] for cause, share in shares if share} - {0}
        return None if len(signs) > 1 else max(signs, default=0, key=abs)

    def up_to(self, name: str, number: Fraction, *, below: bool = False) -> syntax.Guard:
        """Return the guard that an effect of one cause is at most ``number`` (below it), as an exact guard on the cause."""
        column = self.columns[name]
        limit = float_below(number) if below else float_down(number)
        found = sides(column, self.numbers, np.array([limit]))
        first, edges = bool(found.first[0]), found.edges[0]
        if not len(edges):
            return syntax.Truth(first)
        cause = syntax.Variable(self.space.names[column.feature])
        return syntax.Compare("<=" if first else ">", cause, syntax.constant(float(edges[0])))

    # ---- sums

    def _add_up(self, equation: Equation) -> None:
        """Keep an effect as a sum over actions, where it is one."""
        total = None if equation.sum is None or equation.is_rounded else self.through(equation.sum)
        if total is None or any(hasattr(self.space[name], "levels") for name in total.form[0]):
            return
        low, high = self.effects.ends(equation.name)
        rounding = total.rounding + max(abs(low), abs(high)) / 2**52 + TINY
        self.sums[equation.name] = ActionSum(add(total.form, ({}, equation.shift), Fraction(1)), rounding)

    def through(self, form: Linear) -> ActionSum | None:
        """Return a linear form over the row as one over actions; ``None`` where an effect in it is no sum."""
        made: Linear = ({}, form[1])
        rounding = Fraction(0)
        for name, share in form[0].items():
            if name not in self.sums:
                return None
            if share:
                made = add(made, self.sums[name].form, share)
                rounding += abs(share) * self.sums[name].rounding
        return ActionSum(made, rounding)

    # ---- conditions

    def condition(self, condition: Condition) -> Condition:
        """Return a condition of a question about actions in terms of these alone; it holds wherever the condition does."""
        match condition:
            case InRanges():
                return GuardCondition(syntax.conjunction(self._in_range(name) for name in self.names))
            case OfRow(GuardCondition(guard)):
                return GuardCondition(self._guard(guard))
            case OfRow(AtLeast(program) as inner) if not inputs_of(program) & set(self.names):
                return inner
            case OfRow(Usual() as usual):
                return self._usual(usual)
            case OfRow():
                raise Inexpressible
        return condition

    def _usual(self, usual: Usual) -> Usual:
        """Return what an isolation forest says of the row that actions lead to."""

        def ask_rows(points: Sequence[Point]) -> list[Fraction]:
            return usual.reading.ask([self.effects.row(point) for point in points])

        return Usual(usual.space, replace(usual.reading, form=_trees(usual.form, self), ask=ask_rows))

    def _in_range(self, name: str) -> syntax.Guard:
        return self._guard(syntax.between(syntax.Variable(name), *self.effects.ends(name)))

    def _has_effects(self, node: syntax.Node) -> bool:
        return bool(syntax.variables(node) & set(self.names))

    def _guard(self, guard: syntax.Guard) -> syntax.Guard:
        """Return a guard over actions that holds wherever one over the row does."""

        def implied(atom: syntax.Compare) -> syntax.Guard:
            exact = self._exactly(atom)
            return self._loosely(atom) if exact is None else exact

        return map_comparisons(self._present(guard), implied) if self._has_effects(guard) else guard

    def _present(self, guard: syntax.Guard) -> syntax.Guard:
        """Return a guard in which no effect is missing."""

        def change(node: syntax.Node) -> syntax.Node:
            return syntax.FALSE if isinstance(node, syntax.Missing) and node.name in self.names else node

        return rewrite(guard, change)

    def _exactly(self, atom: syntax.Compare) -> syntax.Guard | None:
        """Return a comparison of an effect with a number, or of a count of such comparisons, in terms of causes; ``None`` for others."""
        if not self._has_effects(atom):
            return atom
        if linear(atom) is None:
            counted = rewrite(atom, lambda node: node, instead=self._counted)
            return None if self._has_effects(counted) else counted
        of_one = solved(atom)
        if of_one is None:
            return None
        name, sign, number = of_one
        if name in self.constants:
            return syntax.Truth(compare(sign, self.constants[name], number))
        if name not in self.columns:
            return None
        column = self.columns[name]
        if column.table is not None:
            cause = self.space.names[column.feature]
            return positions_guard(cause, [compare(sign, Fraction(value), number) for value in column.table])
        at_most, less = self.up_to(name, number), self.up_to(name, number, below=True)
        more, at_least = syntax.negation(at_most), syntax.negation(less)
        return {
            "<=": at_most,
            "<": less,
            ">": more,
            ">=": at_least,
            "==": syntax.conjunction([at_most, at_least]),
            "!=": syntax.disjunction([more, less]),
        }[sign]

    def _counted(self, node: syntax.Node) -> syntax.Node | None:
        """Return a guard that an expression counts in terms of causes, exactly; other nodes are looked into."""

        def exact(atom: syntax.Compare) -> syntax.Guard:
            found = self._exactly(atom)
            if found is None:
                raise Inexpressible
            return found

        return syntax.Indicator(map_comparisons(node.guard, exact)) if isinstance(node, syntax.Indicator) else None

    def _loosely(self, atom: syntax.Compare) -> syntax.Guard:
        """Return a comparison of sums over actions, with room for the rounding of the effects in it."""
        form = nearly_linear(atom)
        total = None if form is None else self.through(form)
        if total is None:
            raise Inexpressible
        sizes = {name: max(map(abs, self._ends(name))) for name in syntax.variables(atom)}
        room = total.rounding + rounding_room(atom, sizes)
        shares, rest = total.form
        low = -rest - room if atom.name in (">", ">=", "==") else None
        high = -rest + room if atom.name in ("<", "<=", "==") else None
        return syntax.between(linear_sum((shares, Fraction(0))), low, high)


# ---- trees


def _trees(form: TreeEnsemble, effects: TracedEffects) -> TreeEnsemble:
    """Return an ensemble that asks for the causes of effects, each as a column before it."""
    used = set(np.unique(form.column[form.left >= 0]).tolist())
    columns = []
    for k, column in enumerate(form.columns):
        name = effects.space.names[column.feature]
        traced = effects.columns.get(name, Traced(name, column.feature, None))
        if k in used and name not in effects.columns:
            raise Inexpressible
        columns.append(traced if name in effects.names else replace(traced, name=column.name, table=column.table))
    made = ground_trees(replace(form, columns=tuple(columns)), effects.numbers)
    assert isinstance(made, TreeEnsemble)
    return replace(made, space=form.space)


# ---- networks


def handed_on(network: Network, effects: TracedEffects) -> tuple[Network, Fraction]:
    """Return a network whose weights of effects are handed on to their causes, and by how much a score may differ for that.

    What floats lose on the way is bounded, and so is the rounding of the effects themselves, as far as they lie in their ranges.
    """
    names, first = effects.space.names, network.weights[0]
    columns = list(network.columns)
    shares: list[dict[int, float]] = []
    shift, rounding, is_effect = (np.zeros(len(columns)) for _ in range(3))
    for place, column in enumerate(network.columns):
        name = names[column.feature]
        if name not in effects.names:
            shares.append({place: 1.0})
            continue
        if column.table is not None or isinstance(column, Filled):
            raise Inexpressible
        is_effect[place] = 1.0
        traced = effects.columns.get(name)
        if (total := effects.sums.get(name)) is not None:
            causes = {_place(columns, Column(cause, names.index(cause), None)): cause for cause in total.form[0]}
            shares.append({at: float(total.form[0][cause]) for at, cause in causes.items()})
            shift[place], rounding[place] = float(total.form[1]), float(total.rounding)
        elif traced is not None and traced.table is not None:
            shares.append({_place(columns, Column(names[traced.feature], traced.feature, traced.table)): 1.0})
        else:
            raise Inexpressible
    taken = np.zeros((len(shares), len(columns)))
    for row, each in zip(taken, shares, strict=True):
        row[list(each)] = list(each.values())
    largest = largest_values(effects.numbers, tuple(columns))
    weight, bias = first @ taken, network.biases[0] + first @ shift
    inputs = is_effect * largest[: len(shares)] + np.abs(taken) @ largest + np.abs(shift)
    size = np.abs(network.biases[0]) + np.abs(first) @ inputs + np.abs(weight) @ largest
    error = np.abs(first) @ rounding + 16 * float(UNIT) * (len(columns) + 4) * size
    for later in network.weights[1:]:
        error = np.abs(later) @ error
    weights, biases = (weight, *network.weights[1:]), (bias, *network.biases[1:])
    made = replace(network, columns=tuple(columns), weights=weights, biases=biases, sizes=None)
    return made, 4 * Fraction(float(error.max()))


def _place(columns: list[Column], wanted: Column) -> int:
    """Return the place of a column, which is added where there is none like it."""
    for place, column in enumerate(columns):
        if (column.feature, column.table) == (wanted.feature, wanted.table) and not isinstance(column, Filled):
            return place
    columns.append(wanted)
    return len(columns) - 1
