"""The question about actions: the model and the constraints are asked about the row that actions lead to."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from mace.constraints import Condition
from mace.constraints.condition import GuardCondition, Values, compare
from mace.distances import point_values
from mace.forms import Effects, EffectsForm, Equation
from mace.language import syntax
from mace.language.linear import linear_sum
from mace.language.partial import given
from mace.language.pieces import pieces
from mace.language.substitute import substitute
from mace.models.reading import Ask
from mace.problem import Problem
from mace.space import FeatureSpace, Integer, Point, Real

MOST_VALUES_OF_CAUSE = 16
"""An integer feature with more values than this has no cases."""

MOST_PIECES_TOGETHER = 32
"""How many combinations of pieces, one of each equation, a proof may have."""


@dataclass(frozen=True, eq=False)
class OnRow(Condition):
    """A condition on the row that actions lead to."""

    condition: Condition
    effects: Effects

    def holds(self, values: Values) -> bool:
        """Return whether it holds of the row, exactly."""
        row = self.effects.row(_point(self.effects.space, values))
        return self.condition.holds(point_values(self.effects.space, row))

    def formula(self, prefix: str) -> syntax.Guard:
        """Return the condition's formula with the effects' variables for the features that follow."""
        return substitute(self.condition.formula(prefix), self.effects.named)


@dataclass(frozen=True, eq=False)
class EffectsInRange(Condition):
    """Every effect lies in the range of its feature."""

    effects: Effects

    def holds(self, values: Values) -> bool:
        """Return whether the row that the actions lead to has all effects in their ranges."""
        return self.effects.in_ranges(self.effects.row(_point(self.effects.space, values)))

    def formula(self, prefix: str) -> syntax.Guard:
        """Return true: the definitions of the effects say so already."""
        return syntax.TRUE


def _point(space: FeatureSpace, values: Values) -> Point:
    return tuple(
        None if number is None else float(number) if isinstance(space[name], Real) else int(number)
        for name, number in ((name, values[name]) for name in space)
    )


def about_actions(problem: Problem, effects: Effects, further: tuple[Condition, ...]) -> Problem:
    """Return the question about actions. Conditions are on the row that these lead to, the ``further`` ones on the actions themselves.

    Actions leave a feature that follows from others at the factual's own value.
    """
    if not effects.equations:
        return replace(problem, conditions=(*problem.conditions, *further))
    own = dict(zip(problem.space, problem.factual, strict=True))
    names = [equation.name for equation in effects.equations]
    unmoved = [GuardCondition(compare(problem.space, name, "==", own[name])) for name in names]
    on_row = [OnRow(condition, effects) for condition in problem.conditions]
    conditions: tuple[Condition, ...] = (*unmoved, EffectsInRange(effects), *on_row, *further)
    return replace(
        problem, form=EffectsForm(problem.form, effects), ask=asked_of_rows(problem.ask, effects), conditions=conditions
    )


def asked_of_rows(ask: Ask, effects: Effects) -> Ask:
    """Return a way to ask a model about the rows that actions lead to."""

    def of_actions(points: Sequence[Point]) -> list[Fraction]:
        return ask([effects.row(point) for point in points])

    return of_actions


# ---- cases: equations with some features set


def few_values(space: FeatureSpace, name: str) -> range:
    """Return the values that cases may be made of: positions of levels, or a few whole numbers; nothing for other features."""
    feature = space[name]
    if isinstance(feature, Integer):
        is_short = feature.step in (None, 1) and feature.size <= MOST_VALUES_OF_CAUSE
        return range(feature.low, feature.high + 1) if is_short else range(0)
    return range(len(getattr(feature, "levels", ())))


def cases(effects: Effects, names: Sequence[str]) -> Iterator[tuple[tuple[Condition, ...], Effects]]:
    """Yield every choice of values for some features, as conditions, with the equations where these hold."""
    space = effects.space
    for chosen in itertools.product(*(few_values(space, name) for name in names)):
        values = dict(zip(names, chosen, strict=True))
        equal = tuple(GuardCondition(compare(space, name, "==", value)) for name, value in values.items())
        yield equal, _with_programs(effects, [given(each.program, _exact(values)) for each in effects.equations])


def _exact(values: Mapping[str, int]) -> dict[str, Fraction]:
    return {name: Fraction(value) for name, value in values.items()}


def _with_programs(effects: Effects, programs: Sequence[syntax.Program]) -> Effects:
    made: list[Equation] = [
        replace(equation, program=program) for equation, program in zip(effects.equations, programs, strict=True)
    ]
    return replace(effects, equations=tuple(made))


# ---- pieces: equations where they are linear


def linear_pieces(effects: Effects) -> list[tuple[Condition, Effects]] | None:
    """Return the pieces in which every equation is linear: a condition on the row, and the equations there.

    Exactly one condition holds of any row. ``None`` where the equations are not piecewise linear, have one piece, or too many.
    """
    parts = [pieces(equation.program) for equation in effects.equations]
    found = [part for part in parts if part is not None]
    if len(found) < len(parts) or not 1 < math.prod(map(len, found)) <= MOST_PIECES_TOGETHER:
        return None
    made: list[tuple[Condition, Effects]] = []
    for chosen in itertools.product(*found):
        piece = _with_programs(
            effects,
            [
                syntax.Program(equation.program.inputs, syntax.Return(linear_sum(form)))
                for equation, (_, form) in zip(effects.equations, chosen, strict=True)
            ],
        )
        guard = syntax.conjunction(guard for guard, _ in chosen)
        made.append((OnRow(GuardCondition(guard), piece), piece))
    return made
