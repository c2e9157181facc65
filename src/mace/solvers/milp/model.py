"""A problem within a ball as a mixed integer linear program."""

from __future__ import annotations

import bisect
from dataclasses import dataclass
from fractions import Fraction

from mace.constraints.condition import AtLeast
from mace.constraints.differ import CountDifferent
from mace.constraints.near_data import Neighbours
from mace.distances import NormMetric
from mace.exact import Floats
from mace.forms import Box, EffectsForm, FunctionForm
from mace.language import characteristic, ranges_of, syntax
from mace.problem import Problem
from mace.solvers.milp.builder import Builder, Room
from mace.solvers.milp.contract import Contractor
from mace.solvers.milp.nodes import Bound, Node
from mace.solvers.milp.program import MixedProgram
from mace.solvers.milp.translate import MilpTranslator
from mace.solvers.roundings import narrowed, sizes_of
from mace.space import RESERVED, Integer, Point, Real, Value

DISTANCE = f"{RESERVED}distance"


@dataclass(frozen=True, slots=True)
class Model:
    """A program over a problem's features.

    Attributes
    ----------
    problem, translator, program
        What it is made from, and what was made.
    distance : int
        The position of the distance among the program's columns.
    room : int, optional
        The position of the room left at the inequalities.
    """

    problem: Problem
    translator: MilpTranslator
    program: MixedProgram
    distance: int
    room: int | None = None

    def point(self, values: Floats, low: Floats, high: Floats, *, at_ends: bool = True) -> Point:
        """Return the row of the features nearest to a point of the relaxation, inside the bounds.

        With ``at_ends``, a number that is almost at one of its bounds, or at the factual's, is put there.
        """
        return tuple(
            self._value(name, own, values, low, high, at_ends)
            for name, own in zip(self.problem.space, self.problem.factual, strict=True)
        )

    def _value(self, name: str, own: Value, values: Floats, low: Floats, high: Floats, at_ends: bool) -> Value:
        place = self.program.place
        if name in self.translator.levels:
            columns = [place[column] for column in self.translator.levels[name]]
            return max(range(len(columns)), key=lambda k: (high[columns[k]] > 0, values[columns[k]], -k))
        if name in self.translator.missing and values[place[self.translator.missing[name]]] > 0.5:
            return None
        feature = self.problem.space[name]
        assert isinstance(feature, Real | Integer)
        column = self.translator.numbers[name]
        at = place[column]
        domain = self.translator.quantities.domain[column]
        value = min(max(float(values[at]), float(low[at])), float(high[at]))
        if domain is not None:
            index = bisect.bisect(domain, value)
            near = [domain[k] for k in (index - 1, index) if 0 <= k < len(domain)]
            number = min(near, key=lambda v: abs(v - value))
            return int(number) if isinstance(feature, Integer) else number
        for end in (low[at], high[at], own) if at_ends else ():
            if end is not None and low[at] <= end <= high[at] and abs(value - end) <= 1e-9 * float(feature.range):
                return float(end)
        return value

    def holds_of_all(self, region: syntax.Guard, low: Floats, high: Floats) -> bool:
        """Return whether a guard over the features holds of every point within the bounds."""
        refused = self.translator.node(syntax.negation(region))
        box = Contractor(self.translator.quantities)
        for quantity, place in self.program.place.items():
            if quantity < len(self.translator.quantities):
                box.low[quantity], box.high[quantity] = float(low[place]), float(high[place])
        return box.narrow(refused) is None


@dataclass(frozen=True, slots=True)
class Near:
    """A box around a point: numbers within a share of their range, levels as they are."""

    point: Point
    spread: tuple[Fraction, ...]

    def parts(self, problem: Problem, translator: MilpTranslator) -> list[Node]:
        """Return the bounds of the box."""
        nodes: list[Node] = []
        one, zero = Fraction(1), Fraction(0)
        for (name, feature), value, spread in zip(problem.space.items(), self.point, self.spread, strict=True):
            if name in translator.missing:
                is_missing = one if value is None else zero
                nodes.append(Bound(translator.missing[name], is_missing, is_missing))
            if value is None:
                continue
            if name in translator.levels:
                nodes += [Bound(c, zero, zero) for k, c in enumerate(translator.levels[name]) if k != value]
            elif feature.size is not None:
                nodes.append(Bound(translator.numbers[name], Fraction(value), Fraction(value)))
            else:
                room = spread * feature.range
                nodes.append(Bound(translator.numbers[name], Fraction(value) - room, Fraction(value) + room))
        return nodes


def build(
    problem: Problem,
    *,
    lower: Fraction,
    radius: Fraction | None,
    certain: bool = False,
    near: Near | None = None,
) -> Model | None:
    """Return the program of the points within a distance that the deployed model may put in the goal; ``None`` where there are none.

    Parameters
    ----------
    problem : Problem
        The problem.
    lower, radius : Fraction
        Known bounds on the distance.
    certain : bool
        Instead, the points that stay in the goal whatever the rounding.
    near : Near, optional
        Only points in this box, with a column for the room that they leave at the inequalities.
    """
    translator = MilpTranslator(problem)
    parts = translator.take_definitions()
    upward = DISTANCE if isinstance(problem.metric, NormMetric) else ""
    metric = problem.metric.program()
    translator.know(_exact_ranges(problem, metric, result=DISTANCE, prefix=f"{DISTANCE}."))
    parts += translator.parts(characteristic(metric, result=DISTANCE, prefix=f"{DISTANCE}."), upward=upward)
    parts.append(Bound(translator.variable(DISTANCE), lower, radius))
    if near is not None:
        parts += near.parts(problem, translator)
    rigid = len(parts)
    for number, condition in enumerate(problem.conditions):
        prefix = f"{RESERVED}condition {number}."
        if isinstance(condition, AtLeast | CountDifferent | Neighbours):
            translator.know(_exact_ranges(problem, condition.program, result=f"{prefix}result", prefix=prefix))
        formula = condition.formula(prefix)
        parts += translator.parts(narrowed(formula, sizes_of(problem.space)) if certain else formula)
    box = Contractor(translator.quantities)
    contracted = box.contract(parts)
    if contracted is None:
        return None
    ranges = feature_ranges(problem, translator, box)
    if isinstance(problem.form, FunctionForm | EffectsForm):
        translator.know(problem.form.ranges(ranges))
    wanted = problem.form.certain if certain else problem.form.possible
    goal = translator.parts(problem.form.definitions(problem.goal)) + translator.parts(wanted(problem.goal, ranges))
    room = None if near is None else Room(translator.quantities, [*parts[rigid:], *goal])
    contracted = box.contract([*contracted, *goal])
    if contracted is None:
        return None
    program = Builder(box, room).build(contracted)
    if program is None:
        return None
    if translator.variable(DISTANCE) not in program.place:
        raise OverflowError("the distance has no bounds")
    distance = program.place[translator.variable(DISTANCE)]
    return Model(problem, translator, program, distance, None if room is None else program.place[room.column])


def _exact_ranges(
    problem: Problem, program: syntax.Program, *, result: str, prefix: str
) -> dict[str, tuple[Fraction | float, Fraction | float]]:
    """Return the ends of the variables of a program over the whole space."""
    integers = frozenset(name for name, feature in problem.space.items() if not isinstance(feature, Real))
    ranges = dict(zip(problem.space.names, problem.box(), strict=True))
    return ranges_of(program, ranges=ranges, integers=integers, result=result, prefix=prefix)


def feature_ranges(problem: Problem, translator: MilpTranslator, box: Contractor) -> Box:
    """Return the ranges of the features' numbers in a box of columns."""
    ranges = []
    for name in problem.space:
        if name in translator.numbers:
            column = translator.numbers[name]
            ranges.append((Fraction(box.low[column]), Fraction(box.high[column])))
        else:
            alive = [k for k, column in enumerate(translator.levels[name]) if box.high[column] > 0]
            ranges.append((Fraction(alive[0]), Fraction(alive[-1])))
    return tuple(ranges)
