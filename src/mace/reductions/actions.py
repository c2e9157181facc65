"""The question about actions: model and conditions see the row that actions lead to by structural equations."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from mace.constraints.causal import inputs_of
from mace.constraints.condition import Condition, GuardCondition, Values, compare
from mace.constraints.views import View
from mace.distances import point_values
from mace.forms import Effects, EffectsForm
from mace.language import syntax
from mace.language.linear import linear_sum
from mace.language.partial import given
from mace.language.pieces import pieces
from mace.language.substitute import substitute
from mace.problem import Problem
from mace.space import FeatureSpace, Integer, Point, Real, Value

MOST_VALUES_OF_CAUSE = 16
"""The most whole numbers of a cause that are gone through one by one."""

MOST_PIECES_TOGETHER = 32
"""How many pieces of the equations, one from each, are gone through together."""


def through(problem: Problem, effects: Effects, further: tuple[Condition, ...] = ()) -> Problem:
    """Return the question about actions: the model, and every condition but the ``further`` ones, see the row that these lead to.

    Actions leave an effect that follows from its causes at the factual's own value; ``further`` conditions are on the actions.
    """
    conditions = (*problem.conditions, *further)
    if not effects.equations:
        return replace(problem, conditions=conditions)
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
        conditions=(*still, InRanges(effects), *seen, *further),
    )


def cases_of(effects: Effects) -> tuple[str, ...]:
    """Return the features with few values beside which effects have other causes: given their values, fewer causes are left."""
    mixed = {
        name
        for equation in effects.equations
        if len(causes := inputs_of(equation.program) & set(effects.space)) > 1
        for name in causes - {each.name for each in effects.equations}
        if few_values(effects.space, name)
    }
    return tuple(name for name in effects.space if name in mixed)


def few_values(space: FeatureSpace, name: str) -> range:
    """Return the values of a feature with levels, by their positions, or of a few whole numbers; nothing of others."""
    feature = space[name]
    if isinstance(feature, Integer):
        is_short = feature.step in (None, 1) and feature.size <= MOST_VALUES_OF_CAUSE
        return range(feature.low, feature.high + 1) if is_short else range(0)
    return range(len(getattr(feature, "levels", ())))


def in_case(effects: Effects, levels: Mapping[str, Value]) -> Effects:
    """Return what follows from actions wherever some features have these levels, by their positions, or numbers."""
    values = {name: Fraction(level or 0) for name, level in levels.items()}
    return replace(
        effects, equations=tuple(replace(each, program=given(each.program, values)) for each in effects.equations)
    )


def in_pieces(problem: Problem, effects: Effects, further: tuple[Condition, ...] = ()) -> list[Problem] | None:
    """Return the question about actions in pieces, in each of which every equation is one linear form.

    Every row lies in exactly one. ``None`` where the equations are not piecewise linear, have one piece, or too many.
    """
    parts = [pieces(equation.program) for equation in effects.equations]
    found = [part for part in parts if part is not None]
    if len(found) < len(parts) or not 1 < math.prod(map(len, found)) <= MOST_PIECES_TOGETHER:
        return None
    made = []
    for chosen in itertools.product(*found):
        equations = [
            replace(equation, program=syntax.Program(equation.program.inputs, syntax.Return(linear_sum(form))))
            for equation, (_, form) in zip(effects.equations, chosen, strict=True)
        ]
        piece = replace(effects, equations=tuple(equations))
        where = GuardCondition(syntax.conjunction(guard for guard, _ in chosen))
        made.append(through(problem, piece, (*further, OfRow(where, piece))))
    return made


def at_levels(
    problem: Problem, effects: Effects, levels: Mapping[str, Value], further: tuple[Condition, ...] = ()
) -> Problem:
    """Return the question about actions where some features have these levels, by their positions, or numbers."""
    space = problem.space
    equal = [GuardCondition(compare(space, name, "==", level)) for name, level in levels.items()]
    return through(problem, in_case(effects, levels), (*further, *equal))


def levels_of(space: FeatureSpace, names: Sequence[str]) -> Iterator[dict[str, int]]:
    """Yield every choice of a level, or number, for each of some features."""
    for chosen in itertools.product(*(few_values(space, name) for name in names)):
        yield dict(zip(names, chosen, strict=True))


@dataclass(frozen=True, eq=False)
class OfRow(Condition):
    """A condition on the row that actions lead to."""

    condition: Condition
    effects: Effects

    def holds(self, values: Values) -> bool:
        """Return whether it holds of the row, exactly."""
        return self.condition.holds(
            point_values(self.effects.space, self.effects.row(_point(self.effects.space, values)))
        )

    def why_not(self, view: View, space: FeatureSpace) -> str:
        """Return why it cannot be taken in a view: a formula is as linear as the condition itself."""
        return self.condition.why_not(view, space) if view is View.PIECEWISE else super().why_not(view, space)

    def formula(self, prefix: str) -> syntax.Guard:
        """Return the condition over the variables of the effects."""
        return substitute(self.condition.formula(prefix), self.effects.named)


@dataclass(frozen=True, eq=False)
class InRanges(Condition):
    """Every effect lies in the range of its feature."""

    effects: Effects

    def holds(self, values: Values) -> bool:
        """Return whether the row's effects do."""
        return self.effects.in_ranges(self.effects.row(_point(self.effects.space, values)))

    def formula(self, prefix: str) -> syntax.Guard:
        """Return true: the effects' own formula says so already."""
        return syntax.TRUE


def _point(space: FeatureSpace, values: Values) -> Point:
    """Return exact values as a point; those of real features are floats."""
    return tuple(_value(space, name, values[name]) for name in space)


def _value(space: FeatureSpace, name: str, number: Fraction | None) -> Value:
    if number is None:
        return None
    return float(number) if isinstance(space[name], Real) else int(number)
