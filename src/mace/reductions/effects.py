"""Questions about actions as questions about plain trees and networks: effects taken into the model.

A tree that asks for an effect of a single cause asks for the cause instead, at the float where the computed effect crosses the edge. A
network hands the weights of an effect on to its causes. Conditions on effects become conditions on causes.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from mace.clock import check
from mace.constraints import Condition
from mace.constraints.causal import inputs_of
from mace.constraints.condition import AtLeast, GuardCondition
from mace.constraints.typical import Usual
from mace.exact import UNIT
from mace.forms import Box, Effects, EffectsForm, Equation, Interval, Network, Outcomes, TreeEnsemble
from mace.forms.scoring import positions_guard
from mace.language import syntax
from mace.language.linear import Linear, linear, nearly_linear
from mace.language.linear import room as rounding_room
from mace.language.monotone import direction
from mace.language.partial import given
from mace.language.run import compare
from mace.problem import Problem
from mace.reductions.actions import InRanges, OfRow
from mace.space import Column, Filled, Point

Row = dict[str, Fraction]

LEAST_NORMAL = Fraction(1, 2**1022)
"""More than the rounding of a float can lose by underflow."""


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
    effects = TracedEffects(form.effects, problem)
    try:
        conditions = tuple(effects.condition(each) for each in problem.conditions)
        if isinstance(form.inner, TreeEnsemble):
            return replace(problem, form=_trees(form.inner, effects), conditions=conditions)
        if isinstance(form.inner, Network) and isinstance(problem.goal, Outcomes | Interval):
            net, lost = handed_on(form.inner, effects)
            slack = problem.goal.slack + lost + form.inner.rounding(form.effects.widened(problem.box()))
            return replace(problem, form=net, goal=replace(problem.goal, slack=slack), conditions=conditions)
    except Inexpressible:
        pass
    return None


# ---- what effects follow from


@dataclass(frozen=True, slots=True)
class Root:
    """The single feature that an effect follows from.

    Attributes
    ----------
    name : str
        The feature, which actions set.
    table : tuple of float, optional
        The effect at each level, where it has levels.
    direction : int
        Otherwise: 1 where the effect never falls as the feature rises, -1 where it never rises, 0 where it stays.
    low, high : float
        The least and the greatest value of the feature.
    """

    name: str
    table: tuple[float, ...] | None = None
    direction: int = 0
    low: float = 0.0
    high: float = 0.0


class TracedEffects:
    """Effects and what they follow from, for one factual.

    Attributes
    ----------
    constants : dict
        The effects that are the same whatever is done.
    roots : dict
        The effects of a single feature.
    sums : dict
        The effects that are sums over actions: coefficients, the constant under the empty name.
    rounding : dict
        By how much each of the latter, as it is computed, may differ from the exact sum where it lies in its range.
    """

    def __init__(self, effects: Effects, problem: Problem) -> None:
        self.effects, self.space, self.factual = effects, problem.space, problem.factual
        self.box: Box = problem.box()
        self.names = [equation.name for equation in effects.equations]
        self.equations: dict[str, Equation] = {}
        self.constants: dict[str, Fraction] = {}
        self.roots: dict[str, Root] = {}
        self.chains: dict[str, list[Equation]] = {}
        self.sums: dict[str, Row] = {}
        self.rounding: dict[str, Fraction] = {}
        self._edges: dict[tuple[str, Fraction, bool], tuple[float, bool, bool]] = {}
        for equation in effects.equations:
            known = {name: self.constants[name] for name in inputs_of(equation.program) & set(self.constants)}
            made = replace(equation, program=given(equation.program, known)) if known else equation
            self.equations[made.name] = made
            if not inputs_of(made.program) & set(self.space):
                self.constants[made.name] = Fraction(made.value(dict.fromkeys(self.space.names)))
                self.sums[made.name] = {"": self.constants[made.name]}
                continue
            self._trace(made)
            self._add_up(made)

    # ---- single causes

    def _trace(self, equation: Equation) -> None:
        name = equation.name
        parents = sorted(inputs_of(equation.program) & set(self.space))
        if any(parent in self.names and parent not in self.roots for parent in parents):
            return
        roots = {self.roots[parent].name if parent in self.names else parent for parent in parents}
        if len(roots) != 1:
            return
        (root,) = roots
        behind = {link.name for parent in parents for link in self.chains.get(parent, [])} | {name}
        self.chains[name] = [*(self.equations[link] for link in self.names if link in behind - {name}), equation]
        levels = getattr(self.space[root], "levels", None)
        if levels is not None:
            table = tuple(float(self.value(name, root, k)) for k in range(len(levels)))
            self.roots[name] = Root(root, table)
            return
        low, high = (float(end) for end in self._ends(root))
        rises = self._direction(equation, parents, root, low, high)
        if rises is not None:
            self.roots[name] = Root(root, None, rises, low, high)

    def _direction(self, equation: Equation, parents: list[str], root: str, low: float, high: float) -> int | None:
        """Return 1 or -1 where an effect, as computed, never falls or never rises with its root, 0 where it stays; otherwise ``None``."""
        ways = {parent: self.roots[parent].direction if parent in self.names else 1 for parent in parents}
        if len(parents) == 1:
            (parent,) = parents
            ends = [Fraction(low), Fraction(high)]
            if parent in self.names:
                ends = sorted(Fraction(self.value(parent, root, end)) for end in (low, high))
            found = direction(equation.program, parent, *ends)
            return None if found is None else found * ways[parent]
        if equation.sum is None:
            return None
        signs = {(1 if share > 0 else -1) * ways[parent] for parent, share in equation.sum[0].items() if share} - {0}
        return None if len(signs) > 1 else max(signs, default=0, key=abs)

    def _ends(self, name: str) -> tuple[Fraction, Fraction]:
        """Return the range of a number, the factual's own included."""
        index = self.space.index(name)
        (low, high), own = self.box[index], Fraction(self.factual[index] or 0)
        return min(low, own), max(high, own)

    def value(self, name: str, root: str, at: float) -> float:
        """Return an effect as it is computed where its root has some value."""
        values = dict.fromkeys(self.space.names) | {root: Fraction(at)}
        for equation in self.chains[name]:
            found = float(equation.value(values))
            values[equation.name] = Fraction(found)
        return found

    def edge(self, name: str, number: Fraction, *, below: bool = False) -> tuple[float, bool, bool]:
        """Return where an effect crosses a number: ``effect <= number`` (``<``, where ``below``) changes at a float of its root.

        Returns
        -------
        edge, before, after
            The last float of the root on the first side; whether the comparison holds up to it; whether it holds after it.
        """
        key = (name, number, below)
        if key not in self._edges:
            check()
            root = self.roots[name]

            def holds(value: float) -> bool:
                return value < number if below else value <= number

            def value(at: float) -> float:
                return self.value(name, root.name, at)

            before, after = holds(value(root.low)), holds(value(root.high))
            edge = root.high
            if before != after:
                edge = _last(value, lambda each: holds(each) == before, root.low, root.high, float(number))
            self._edges[key] = edge, before, after
        return self._edges[key]

    def _up_to(self, name: str, number: Fraction, *, below: bool = False) -> syntax.Guard:
        """Return that an effect is at most a number, or below it, in terms of its root; exactly."""
        edge, before, after = self.edge(name, number, below=below)
        if before == after:
            return syntax.TRUE if before else syntax.FALSE
        return syntax.Compare("<=" if before else ">", syntax.Variable(self.roots[name].name), syntax.constant(edge))

    # ---- sums

    def _add_up(self, equation: Equation) -> None:
        if equation.sum is None or equation.is_rounded:
            return
        if any(name in self.names and name not in self.sums for name in equation.sum[0]):
            return
        made: Row = {"": equation.sum[1] + equation.shift}
        low, high = self.effects.ends(equation.name)
        off = max(abs(low), abs(high)) / 2**52 + LEAST_NORMAL
        for name, share in equation.sum[0].items():
            if not share:
                continue
            off += abs(share) * self.rounding.get(name, Fraction(0))
            for cause, part in self.sums.get(name, {name: Fraction(1)}).items():
                made[cause] = made.get(cause, Fraction(0)) + share * part
        if any(name and hasattr(self.space[name], "levels") for name in made):
            return
        self.sums[equation.name], self.rounding[equation.name] = made, off

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
        low, high = self.effects.ends(name)
        effect = syntax.Variable(name)
        return self._guard(
            syntax.conjunction(
                [
                    syntax.Compare(">=", effect, syntax.Constant(low)),
                    syntax.Compare("<=", effect, syntax.Constant(high)),
                ]
            )
        )

    def _guard(self, guard: syntax.Guard) -> syntax.Guard:
        """Return a guard over actions that holds wherever one over the row does."""
        if not syntax.variables(guard) & set(self.names):
            return guard
        match guard:
            case syntax.Missing():
                return syntax.FALSE
            case syntax.And(parts):
                return syntax.conjunction(self._guard(part) for part in parts)
            case syntax.Or(parts):
                return syntax.disjunction(self._guard(part) for part in parts)
            case syntax.Not(part):
                if isinstance(part, syntax.Compare | syntax.And | syntax.Or | syntax.Not):
                    return self._guard(syntax.negation(part))
                return syntax.negation(self._guard(part))
            case syntax.Compare():
                exact = self._exactly(guard)
                return self._loosely(guard) if exact is None else exact
            case syntax.Truth():
                return guard

    def _exactly(self, atom: syntax.Compare) -> syntax.Guard | None:
        """Return a comparison in terms of roots, where it is of an effect and a number; ``None`` where it is more."""
        form = linear(atom)
        if form is None:
            counted = syntax.Compare(atom.name, self._counted(atom.left), self._counted(atom.right))
            return None if syntax.variables(counted) & set(self.names) else counted
        shares = {name: share for name, share in form[0].items() if share}
        if len(shares) != 1:
            return None
        ((name, share),) = shares.items()
        number = -form[1] / share
        sign: syntax.CompareName = atom.name
        if share < 0:
            sign = _MIRRORED[sign]
        if name in self.constants:
            return syntax.Truth(compare(sign, self.constants[name], number))
        if name not in self.roots:
            return None
        root = self.roots[name]
        if root.table is not None:
            return positions_guard(root.name, [compare(sign, Fraction(value), number) for value in root.table])
        at_most, less = self._up_to(name, number), self._up_to(name, number, below=True)
        match sign:
            case "<=":
                return at_most
            case "<":
                return less
            case ">":
                return syntax.negation(at_most)
            case ">=":
                return syntax.negation(less)
            case "==":
                return syntax.conjunction([at_most, syntax.negation(less)])
            case _:
                return syntax.disjunction([syntax.negation(at_most), less])

    def _counted(self, expression: syntax.Expression) -> syntax.Expression:
        """Return an expression with the guards that it counts in terms of roots, as far as these can be said exactly."""
        match expression:
            case syntax.Indicator(guard):
                return syntax.Indicator(self._counted_guard(guard))
            case syntax.Unary(name, operand):
                return syntax.Unary(name, self._counted(operand))
            case syntax.Binary(name, left, right):
                return syntax.Binary(name, self._counted(left), self._counted(right))
            case _:
                return expression

    def _counted_guard(self, guard: syntax.Guard) -> syntax.Guard:
        match guard:
            case syntax.Missing(name):
                return syntax.FALSE if name in self.names else guard
            case syntax.And(parts):
                return syntax.conjunction(map(self._counted_guard, parts))
            case syntax.Or(parts):
                return syntax.disjunction(map(self._counted_guard, parts))
            case syntax.Not(part):
                return syntax.negation(self._counted_guard(part))
            case syntax.Compare() if syntax.variables(guard) & set(self.names):
                exact = self._exactly(guard)
                if exact is None:
                    raise Inexpressible
                return exact
            case _:
                return guard

    def _loosely(self, atom: syntax.Compare) -> syntax.Guard:
        """Return a comparison of sums over actions, with room for the rounding of the effects in it."""
        form = nearly_linear(atom)
        if form is None:
            raise Inexpressible
        shares, rest, room = self.through(form)
        room += rounding_room(atom, {name: max(map(abs, self._ends(name))) for name in syntax.variables(atom)})
        terms: list[syntax.Expression] = [
            syntax.Binary("*", syntax.Constant(share), syntax.Variable(name)) for name, share in shares.items() if share
        ]
        left = syntax.total(terms) if terms else syntax.Constant(Fraction(0))
        low, high = (
            syntax.Compare(">=", left, syntax.Constant(-rest - room)),
            syntax.Compare("<=", left, syntax.Constant(-rest + room)),
        )
        match atom.name:
            case "<=" | "<":
                return high
            case ">=" | ">":
                return low
            case "==":
                return syntax.conjunction([low, high])
            case _:
                return syntax.TRUE

    def through(self, form: Linear) -> tuple[Row, Fraction, Fraction]:
        """Return a linear form over the row as one over actions: coefficients, a constant, and by how much rounding may move it."""
        shares: Row = {}
        rest, room = form[1], Fraction(0)
        for name, share in form[0].items():
            if name in self.names and name not in self.sums:
                raise Inexpressible
            for cause, part in self.sums.get(name, {name: Fraction(1)}).items():
                if cause:
                    shares[cause] = shares.get(cause, Fraction(0)) + share * part
                else:
                    rest += share * part
            room += abs(share) * self.rounding.get(name, Fraction(0))
        return shares, rest, room


_MIRRORED: dict[syntax.CompareName, syntax.CompareName] = {
    "<": ">",
    "<=": ">=",
    ">": "<",
    ">=": "<=",
    "==": "==",
    "!=": "!=",
}


# ---- the float where an effect crosses a number


def _last(
    value: Callable[[float], float], is_first: Callable[[float], bool], low: float, high: float, aim: float
) -> float:
    """Return the last float whose value is on the side of ``low``; that of ``high`` is on the other, and values rise or fall all the way.

    A straight line is tried between the ends, then floats beside it, then the middle.
    """
    begin, end = _ordinal(low), _ordinal(high)
    heights = {begin: value(low), end: value(high)}

    def look(at: int) -> None:
        nonlocal begin, end
        if not begin < at < end:
            return
        heights[at] = value(_float(at))
        if is_first(heights[at]):
            begin = at
        else:
            end = at

    while end - begin > 1:
        a, b = _float(begin), _float(end)
        rise = heights[end] - heights[begin]
        if rise and math.isfinite(rise):
            guess = _ordinal(min(max(a + (aim - heights[begin]) / rise * (b - a), a), b))
            look(min(max(guess, begin + 1), end - 1))
            step = 1
            while step < 64 and end - begin > step:
                look(begin + step if guess <= begin else end - step)
                step *= 4
        look((begin + end) // 2)
    return _float(begin)


def _ordinal(number: float) -> int:
    """Return the place of a float among all floats in order."""
    bits: int = struct.unpack("<q", struct.pack("<d", number + 0.0))[0]
    return bits if bits >= 0 else -(bits & 0x7FFF_FFFF_FFFF_FFFF)


def _float(place: int) -> float:
    made: float = struct.unpack("<d", struct.pack("<q", abs(place)))[0]
    return made if place >= 0 else -made


# ---- trees


def _trees(form: TreeEnsemble, effects: TracedEffects) -> TreeEnsemble:
    """Return an ensemble that asks for the roots of effects; the computed effect crosses each edge at that float of its root."""
    columns = list(form.columns)
    column, edge = form.column.copy(), form.edge.copy()
    left, right = form.left.copy(), form.right.copy()
    inner = form.left >= 0
    reads = np.array([each.feature for each in columns], dtype=np.int64)[form.column]
    for name in effects.names:
        nodes = np.flatnonzero(inner & (reads == effects.space.index(name)))
        if not len(nodes):
            continue
        if name in effects.constants:
            # Actions leave the effect at the factual's own value, which is put on the side of what it becomes.
            own = float(effects.factual[effects.space.index(name)] or 0)
            is_left = edge[nodes] >= float(effects.constants[name])
            edge[nodes] = np.where(is_left, own, math.nextafter(own, -math.inf))
            continue
        if name not in effects.roots or any(_is_odd(columns[k]) for k in np.unique(column[nodes])):
            raise Inexpressible
        root = effects.roots[name]
        place = _column(columns, Column(root.name, effects.space.index(root.name), root.table))
        column[nodes] = place
        if root.table is not None:
            continue
        for number in np.unique(edge[nodes]):
            those = nodes[form.edge[nodes] == number]
            if math.isinf(number):
                raise Inexpressible
            at, before, after = effects.edge(name, Fraction(float(number)))
            edge[those] = at
            if before == after and not before:
                edge[those] = math.nextafter(effects.roots[name].low, -math.inf)
            elif after and not before:
                left[those], right[those] = form.right[those], form.left[those]
    return replace(form, columns=tuple(columns), column=column, edge=edge, left=left, right=right)


def _is_odd(column: Column) -> bool:
    return column.table is not None or isinstance(column, Filled)


def _column(columns: list[Column], wanted: Column) -> int:
    """Return the place of a column, which is added where there is none like it."""
    for place, column in enumerate(columns):
        if (column.feature, column.table) == (wanted.feature, wanted.table) and not isinstance(column, Filled):
            return place
    columns.append(wanted)
    return len(columns) - 1


# ---- networks


def handed_on(network: Network, effects: TracedEffects) -> tuple[Network, Fraction]:
    """Return a network whose weights of effects are handed on to their causes, and by how much a score may differ for that.

    What floats lose on the way is bounded, and so is the rounding of the effects themselves, as far as they lie in their ranges.
    """
    space, box = effects.space, effects.box
    names = list(space)
    columns = list(network.columns)
    first = network.weights[0]
    weight, bias = first.copy(), network.biases[0].copy()
    size = np.abs(bias) + np.abs(first) @ np.array([_largest(column, box) for column in columns])
    error = np.zeros(len(first))
    for place, column in enumerate(network.columns):
        name = names[column.feature]
        if name not in effects.names:
            continue
        if _is_odd(column):
            raise Inexpressible
        own = first[:, place]
        weight[:, place] = 0.0
        root = effects.roots.get(name)
        if name in effects.sums:
            error = error + np.abs(own) * float(effects.rounding.get(name, 0))
            for cause, share in effects.sums[name].items():
                largest = Fraction(1)
                if cause:
                    weight, at = _with_column(weight, columns, Column(cause, names.index(cause), None))
                    weight[:, at] += own * float(share)
                    largest = max(map(abs, box[names.index(cause)]))
                else:
                    bias += own * float(share)
                size = size + np.abs(own) * float(abs(share) * largest)
        elif root is not None and root.table is not None:
            weight, at = _with_column(weight, columns, Column(root.name, names.index(root.name), root.table))
            weight[:, at] += own
            size = size + np.abs(own) * max(map(abs, root.table))
        else:
            raise Inexpressible
    size = size + np.abs(weight) @ np.array([_largest(column, box) for column in columns])
    error = error + 16 * float(UNIT) * (len(columns) + 4) * size
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


def _with_column(
    weight: np.ndarray[tuple[int, int], np.dtype[np.float64]], columns: list[Column], wanted: Column
) -> tuple[np.ndarray[tuple[int, int], np.dtype[np.float64]], int]:
    """Return the weights with room for a column, and its place."""
    at = _column(columns, wanted)
    if at == weight.shape[1]:
        weight = np.hstack([weight, np.zeros((len(weight), 1))])
    return weight, at


def _largest(column: Column, box: Box) -> float:
    if column.table is not None:
        return max(map(abs, column.table))
    filled = abs(column.missing) if isinstance(column, Filled) else 0.0
    return max(filled, float(max(abs(end) for end in box[column.feature])))
