"""A model behind structural equations: rows are what actions lead to."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from mace.exact import decimal_fraction
from mace.forms.decision import Goal
from mace.forms.form import Box, Form
from mace.forms.function import FunctionForm
from mace.language import characteristic, run, syntax
from mace.language.linear import Linear, linear_expression
from mace.language.substitute import substitute
from mace.space import RESERVED, FeatureSpace, Integer, Point, Real


@dataclass(frozen=True)
class Equation:
    """An effect is a program of other features, plus ``shift``, rounded to a float, or to the nearest value of its grid.

    Attributes
    ----------
    name : str
        The effect.
    program : Program
        What its causes make of it.
    shift : Fraction
        What is the factual's own: what the program leaves unexplained.
    feature : Real or Integer
        What it may be.
    """

    name: str
    program: syntax.Program
    shift: Fraction
    feature: Real | Integer

    @cached_property
    def sum(self) -> Linear | None:
        """What its causes make of it as a linear form, without the shift; ``None`` where it is none."""
        body = self.program.body
        return linear_expression(body.value) if isinstance(body, syntax.Return) else None

    @cached_property
    def _line(self) -> tuple[list[tuple[str, Fraction]], Fraction] | None:
        """The same with the shift."""
        return None if self.sum is None else (list(self.sum[0].items()), self.sum[1] + self.shift)

    @property
    def is_rounded(self) -> bool:
        """Whether only the values of a grid count."""
        return isinstance(self.feature, Integer) or self.feature.step is not None

    @cached_property
    def grid(self) -> tuple[Fraction, Fraction]:
        """The first value of the grid, and its step."""
        return decimal_fraction(float(self.feature.low)), decimal_fraction(float(self.feature.step or 1))

    def value(self, values: Mapping[str, Fraction | None]) -> int | float:
        """Return the effect of its causes: the exact number, rounded once; beyond the grid, a number outside of the range."""
        if self._line is None:
            exact = run(self.program, values) + self.shift
        else:
            shares, exact = self._line
            for name, share in shares:
                exact += share * (values[name] or 0)
        if not self.is_rounded:
            try:
                return float(exact)
            except OverflowError:
                # Beyond all floats, the last of them, which is outside of the range as well.
                return sys.float_info.max if exact > 0 else -sys.float_info.max
        first, step = self.grid
        place = math.floor((exact - first) / step + Fraction(1, 2))
        if 0 <= place < (self.feature.size or 1):
            return self.feature.value_at(place)
        return float(self.feature.low - step if place < 0 else self.feature.high + step)


@dataclass(frozen=True, eq=False)
class Effects:
    """What actions lead to: each effect that is not acted upon follows from its causes.

    Attributes
    ----------
    space : FeatureSpace
        The features.
    equations : tuple of Equation
        In the order in which they follow from each other.
    """

    space: FeatureSpace
    equations: tuple[Equation, ...]

    def row(self, actions: Point) -> Point:
        """Return the row that some actions lead to; the actions' own values of effects do not count."""
        values = {
            name: None if value is None else Fraction(value) for name, value in zip(self.space, actions, strict=True)
        }
        row = list(actions)
        for equation in self.equations:
            found = equation.value(values)
            values[equation.name] = Fraction(found)
            row[self.space.index(equation.name)] = found
        return tuple(row)

    @cached_property
    def named(self) -> dict[str, syntax.Expression]:
        """The variables that stand for the effects."""
        return {equation.name: syntax.Variable(f"{RESERVED}effect({equation.name})") for equation in self.equations}

    @cached_property
    def formula(self) -> syntax.Guard:
        """How the effects follow from the actions, each up to the rounding of a float, inside of its range."""
        parts: list[syntax.Guard] = []
        for equation in self.equations:
            result = f"{RESERVED}equation({equation.name})"
            made = characteristic(equation.program, result=result, prefix=f"{result}.")
            parts.append(substitute(made, self.named))
            low, high = self.ends(equation.name)
            effect, rounding = self.named[equation.name], max(abs(low), abs(high)) / 2**52
            exact = syntax.Binary("+", syntax.Variable(result), syntax.constant(equation.shift))
            if equation.is_rounded:
                parts.append(_nearest_of_grid(equation, effect, exact))
                continue
            off = syntax.Binary("-", effect, exact)
            parts += [syntax.between(off, -rounding, rounding), syntax.between(effect, low, high)]
        return syntax.conjunction(parts)

    def in_ranges(self, row: Point) -> bool:
        """Return whether every effect lies in its range."""
        at = dict(zip(self.space, row, strict=True))
        ends = {equation.name: self.ends(equation.name) for equation in self.equations}
        return all(low <= Fraction(at[name] or 0) <= high for name, (low, high) in ends.items())

    def widened(self, box: Box) -> Box:
        """Return a box of actions with the whole range of each effect."""
        effects = {self.space.index(equation.name): self.ends(equation.name) for equation in self.equations}
        return tuple(effects.get(index, ends) for index, ends in enumerate(box))

    def ends(self, name: str) -> tuple[Fraction, Fraction]:
        """Return the range of an effect."""
        feature = self.space[name]
        assert isinstance(feature, Real | Integer)
        return Fraction(feature.low), Fraction(feature.high)


def _nearest_of_grid(equation: Equation, effect: syntax.Expression, exact: syntax.Expression) -> syntax.Guard:
    """Return that an effect is a value of its grid, and that no other is nearer to an exact number."""
    first, step = equation.grid
    return syntax.disjunction(
        syntax.conjunction(
            [
                syntax.Compare("==", effect, syntax.constant(equation.feature.value_at(place))),
                syntax.between(exact, first + place * step - step / 2, first + place * step + step / 2),
            ]
        )
        for place in range(equation.feature.size or 0)
    )


@dataclass(frozen=True, eq=False)
class EffectsForm(Form):
    """A model that is asked about the rows that actions lead to."""

    inner: Form
    effects: Effects

    def program(self) -> syntax.Program:
        """Return the model's own program, over the row that the actions lead to."""
        return self.inner.program()

    def definitions(self, goal: Goal) -> syntax.Guard:
        """Return the model's definitions over the effects, and how these follow from the actions."""
        return syntax.conjunction([self.effects.formula, self._over_effects(self.inner.definitions(goal))])

    def possible(self, goal: Goal, box: Box) -> syntax.Guard:
        """Return the model's formula over the effects."""
        return self._over_effects(self.inner.possible(goal, self.effects.widened(box)))

    def certain(self, goal: Goal, box: Box) -> syntax.Guard:
        """Return the model's formula over the effects."""
        return self._over_effects(self.inner.certain(goal, self.effects.widened(box)))

    def _over_effects(self, guard: syntax.Guard) -> syntax.Guard:
        return substitute(guard, self.effects.named)

    def ranges(self, box: Box) -> dict[str, tuple[Fraction | float, Fraction | float]]:
        """Return the ends of the variables of a function's formulas."""
        return self.inner.ranges(self.effects.widened(box)) if isinstance(self.inner, FunctionForm) else {}

    def is_settled(self, point: Point, goal: Goal) -> bool:
        """Return what the model says of the row."""
        return self.inner.is_settled(self.effects.row(point), goal)

    def is_beyond_rounding(self, point: Point, goal: Goal, box: Box) -> bool:
        """Return what the model says of the row."""
        return self.inner.is_beyond_rounding(self.effects.row(point), goal, self.effects.widened(box))
