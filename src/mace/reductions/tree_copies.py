"""Tree ensembles that must reach their goal wherever noise leads from a row: copies of the ensemble at places, each behind a gate.

A *place* is a range of each noisy feature in which no node distinguishes values. If noise can move a row into the place, the ensemble must
put the moved row in the goal. A copy of the ensemble says so. Its nodes about noisy features are decided, so that its trees ask about the
other features only; nodes before them, the gate, ask whether noise can move the row there. Where it cannot, the copy is in the goal. So a
robust row brings all copies to the goal, whatever the places.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mace.constraints.robust import RobustCondition
from mace.exact import Floats, Ints, float_below, float_down, rounded_in
from mace.forms import Alternatives, Goal, Stated, TreeEnsemble
from mace.models.preprocessing.ground_trees import pruned
from mace.models.reading import Ask
from mace.problem import Problem
from mace.reductions.joint_forest import Joined, as_one
from mace.space import Column, Integer, Ordinal, Point, Real, Value

Ends = tuple[float, float]

MOST_LEAF_VALUES = 50_000_000
"""Leaf values of an ensemble and its copies together."""

MOST_ALTERNATIVES = 64
"""Ways in which an ensemble and its copies may reach a goal with several alternatives, each its own."""


class NoCopies(ValueError):
    """Copies at these places cannot be made."""


@dataclass(frozen=True, slots=True)
class Place:
    """A range of values of each noisy feature.

    Attributes
    ----------
    features : tuple of int
        Their positions in the space.
    ranges : tuple of pairs of numbers
        The least and the greatest value of each, both values of the feature; ``None`` where it is missing.
    """

    features: tuple[int, ...]
    ranges: tuple[Ends | None, ...]

    def gate(self, noise: RobustCondition) -> tuple[tuple[Fraction, Fraction] | None, ...]:
        """Return the range of each noisy feature from which noise leads into the place; ``None`` where it is missing."""
        pairs = zip(self.features, self.ranges, strict=True)
        return tuple(None if ends is None else _around(noise.space.names[j], ends, noise) for j, ends in pairs)

    def is_near(self, point: Point, gate: Sequence[tuple[Fraction, Fraction] | None]) -> bool:
        """Return whether a row passes the gate."""
        values = [point[j] for j in self.features]
        return all(
            ends is None if value is None else ends is not None and ends[0] <= Fraction(value) <= ends[1]
            for value, ends in zip(values, gate, strict=True)
        )

    def may_be_near(self, within: Mapping[int, Ends], gate: Sequence[tuple[Fraction, Fraction] | None]) -> bool:
        """Return whether some row whose features lie within ranges may pass the gate."""
        return all(
            j not in within or (ends is not None and ends[0] <= within[j][1] and within[j][0] <= ends[1])
            for j, ends in zip(self.features, gate, strict=True)
        )

    def of(self, point: Point) -> Point:
        """Return the row of the place that is nearest to a row from which noise leads there."""
        moved: list[Value] = list(point)
        for j, ends in zip(self.features, self.ranges, strict=True):
            value = point[j]
            if value is not None and ends is not None:
                moved[j] = type(value)(min(max(value, ends[0]), ends[1]))
        return tuple(moved)


def _around(name: str, ends: Ends, noise: RobustCondition) -> tuple[Fraction, Fraction]:
    """Return the values from which noise leads into a range; to a value off the feature's grid it leads from that value only."""
    feature = noise.space[name]
    if isinstance(feature, Real | Integer) and not (feature.has(ends[0]) and feature.has(ends[1])):
        if ends[0] != ends[1]:
            raise NoCopies(f"{ends} does not begin and end with values of {name!r}")
        return Fraction(ends[0]), Fraction(ends[1])
    return noise.reach(name, *ends)


def _sides(alternatives: Alternatives) -> tuple[set[int], set[int]]:
    """Return the outputs that margins want large, and those that they want small."""
    margins = list(itertools.chain(*alternatives))
    return {m.plus for m in margins if m.plus is not None}, {m.minus for m in margins if m.minus is not None}


def _is_doubled(alternatives: Alternatives) -> bool:
    large, small = _sides(alternatives)
    return bool(large & small)


class Copies:
    """A problem about a tree ensemble, and the copies that were made of the ensemble.

    Parameters
    ----------
    problem : Problem
        About the ensemble alone.
    noise : RobustCondition, optional
        The noise; without it there are no places.
    within : mapping of positions to pairs of numbers, optional
        Features whose values lie between two numbers (``None``: are missing): nodes that these decide are left out, and the question is
        about rows in these ranges only.
    """

    def __init__(
        self, problem: Problem, noise: RobustCondition | None, within: Mapping[int, Ends | None] | None = None
    ) -> None:
        assert isinstance(problem.form, TreeEnsemble)
        self.problem, self.form = problem, problem.form
        self.noise = RobustCondition(problem.space, {}) if noise is None else noise
        noisy = {problem.space.index(name) for name in self.noise.radii}
        self.others = {j: ends for j, ends in (within or {}).items() if j not in noisy}
        self.small = self.form if within is None else narrowed(self.form, within)
        self.alternatives = self.form.alternatives(problem.goal)
        self.made: dict[Place, TreeEnsemble] = {}

    @cached_property
    def yes(self) -> Floats:
        """The leaf of each tree that says yes."""
        return _leaves_in_goal(self.form, self.problem.goal, self.alternatives)

    @cached_property
    def wide(self) -> TreeEnsemble:
        """The ensemble that copies are made of, narrowed on unperturbed features only: a perturbation may leave the search box."""
        return narrowed(self.form, self.others) if self.others else self.form

    def of(self, place: Place) -> TreeEnsemble:
        """Return the copy at a place."""
        if place not in self.made:
            gate = _nodes(self.form, place, place.gate(self.noise))
            self.made[place] = _behind_gate(_at(self.wide, place), gate, self.yes)
        return self.made[place]

    def at(self, places: Sequence[Place]) -> Problem:
        """Return the problem whose answers also reach the goal at each place to which noise leads from them.

        Raises
        ------
        NoCopies
            A node distinguishes values of a place, the goal has too many alternatives, or all is too large.
        """
        if not places:
            return (
                self.problem
                if self.small is self.form
                else replace(self.problem, form=_together([self.small], self.form))
            )
        ways = len(self.alternatives)
        if ways ** (len(places) + 1) > MOST_ALTERNATIVES:
            raise NoCopies(f"the target can be reached in {ways} ways, and {len(places)} copies are too many then")
        copies = [self.of(place) for place in places]
        goal = Stated(self._of_copies(len(places)), self.problem.goal.slack, self.problem.goal)
        return replace(
            self.problem, form=_together([self.small, *copies], self.form), ask=self._asking(places), goal=goal
        )

    def _of_copies(self, copies: int) -> Alternatives:
        """Return every choice of an alternative of the goal for the ensemble and for each copy."""
        own, outputs = self.alternatives, self.form.outputs
        size = outputs * (1 + _is_doubled(own))
        each = [own]
        for copy in range(copies):
            begin = outputs + copy * size
            # Of a copy with its outputs twice, the second half is for those that must not be too large.
            each.append(tuple(tuple(m.moved(begin, begin + size - outputs) for m in margins) for margins in own))
        return tuple(tuple(itertools.chain(*chosen)) for chosen in itertools.product(*each))

    def _asking(self, places: Sequence[Place]) -> Ask:
        ask, goal, form = self.problem.ask, self.problem.goal, self.form
        pairs = [(place, place.gate(self.noise)) for place in places]

        def ask_all(points: Sequence[Point]) -> list[Fraction]:
            each = [
                [point, *(place.of(point) for place, gate in pairs if place.is_near(point, gate))] for point in points
            ]
            rows = list(itertools.chain(*each))
            said = [ask([row])[0] for row in rows] if form.is_blockwise else ask(rows)
            accepted = [goal.accepts(outcome) for outcome in said]
            ends = itertools.accumulate(map(len, each))
            return [Fraction(all(accepted[end - len(own) : end])) for own, end in zip(each, ends, strict=True)]

        return ask_all


def cell(form: TreeEnsemble, j: int, value: float) -> Ends:
    """Return the range of an ordered feature around a value in which no node of an ensemble distinguishes values."""
    feature = form.space[form.space.names[j]]
    if not isinstance(feature, Real | Integer):
        return value, value
    edges = _edges(form, j)
    k = int(np.searchsorted(edges, value))
    low = float(feature.low) if k == 0 else math.nextafter(edges[k - 1], math.inf)
    high = float(feature.high) if k == len(edges) else float(edges[k])
    return _as_values(feature, max(low, float(feature.low)), min(high, float(feature.high)), value)


def _edges(form: TreeEnsemble, j: int) -> Floats:
    reads = np.array([column.feature for column in form.columns], dtype=np.int64)
    return np.unique(form.edge[(form.left >= 0) & (reads[form.column] == j)])


def _as_values(feature: Real | Integer, low: float, high: float, value: float) -> Ends:
    """Return a range as narrow as the feature's values in it, ``value`` among them."""
    if feature.step is not None:
        step, count = Fraction(feature.step), feature.size or 1
        first = min(max(math.ceil((Fraction(low) - Fraction(feature.low)) / step), 0), count - 1)
        last = min(max(math.floor((Fraction(high) - Fraction(feature.low)) / step), 0), count - 1)
        low, high = float(feature.value_at(first)), float(feature.value_at(last))
    elif isinstance(feature, Integer):
        low, high = float(math.ceil(low)), float(math.floor(high))
    else:
        low, high = (float(ends[0]) for ends in rounded_in(np.array([low]), np.array([high]), feature.floats))
    return (low, high) if feature.has(value) and low <= value <= high else (value, value)


# ---- ensembles with fewer nodes


def _levels(column: Column, ends: Ends | None) -> Ints:
    """Return the positions of the levels of a column within a range."""
    every = np.arange(0 if column.table is None else len(column.table))
    return every if ends is None else every[(every >= ends[0]) & (every <= ends[1])]


def _values(column: Column, ends: Ends | None) -> Ends:
    """Return the least and the greatest value of a column where its feature lies within a range."""
    if ends is None:
        return -math.inf, math.inf
    if column.table is None:
        return ends
    values = np.array(column.table)[_levels(column, ends)]
    return (float(values.min()), float(values.max())) if len(values) else (-math.inf, math.inf)


def _may_be_missing(form: TreeEnsemble, column: Column) -> bool:
    return form.space[form.space.names[column.feature]].missing


def narrowed(form: TreeEnsemble, within: Mapping[int, Ends | None]) -> TreeEnsemble:
    """Return an ensemble without the nodes that are decided where features lie within ranges, or (``None``) are missing."""
    known = [within.get(column.feature, (-math.inf, math.inf)) for column in form.columns]
    values = np.array([_values(column, ends) for column, ends in zip(form.columns, known, strict=True)])
    least, most = values[form.column].T
    ways = np.where(most <= form.edge, 1, np.where(least > form.edge, 0, -1))
    subsets = np.column_stack([form.column, form.subset])
    for column, subset in np.unique(subsets[form.subset >= 0], axis=0):
        inside = form.subsets[subset][_levels(form.columns[column], known[column])]
        ways[(subsets == (column, subset)).all(axis=1)] = -1 if inside.any() != inside.all() else int(inside.any())
    is_missing = np.array([ends is None for ends in known])[form.column]
    may_be_missing = np.array(
        [column.feature not in within and _may_be_missing(form, column) for column in form.columns]
    )
    ways = np.where(may_be_missing[form.column] & (ways != form.missing_left), -1, ways)
    ways = np.where(form.left < 0, -1, np.where(is_missing, form.missing_left, ways))
    return pruned(form, ways)[0]


def _at(form: TreeEnsemble, place: Place) -> TreeEnsemble:
    """Return an ensemble at a place."""
    made = narrowed(form, dict(zip(place.features, place.ranges, strict=True)))
    noisy = np.isin([column.feature for column in form.columns], place.features)
    if noisy[made.column[made.left >= 0]].any():
        raise NoCopies("a node tells values of a place apart")
    return made


# ---- gates


@dataclass(frozen=True, slots=True)
class _Node:
    """A node of a gate: it lets rows on to the left or to the right; all others it sends to the leaf that says yes."""

    column: Column
    edge: float
    on_left: bool
    missing_left: bool


def _nodes(form: TreeEnsemble, place: Place, gate: Sequence[tuple[Fraction, Fraction] | None]) -> list[_Node]:
    """Return the nodes of the gate of a place."""
    made = []
    for j, ends in zip(place.features, gate, strict=True):
        name = form.space.names[j]
        feature = form.space[name]
        levels = tuple(map(float, range(len(feature.levels)))) if isinstance(feature, Ordinal) else None
        column = Column(name, j, levels)
        if ends is None:
            # No number is above the edge: only what is missing is let on.
            made.append(_Node(column, math.inf, on_left=False, missing_left=False))
            continue
        made.append(_Node(column, float_below(ends[0]), on_left=False, missing_left=True))
        made.append(_Node(column, float_down(ends[1]), on_left=True, missing_left=False))
    return made


def _leaves_in_goal(form: TreeEnsemble, goal: Goal, alternatives: Alternatives) -> Floats:
    """Return a leaf for each tree, whose sum fulfils every margin beyond rounding; raise :class:`NoCopies` where there are none."""
    large, _ = _sides(alternatives)
    leaf = (form.left < 0)[:, None]
    most = np.maximum.reduceat(np.where(leaf, form.value, -np.inf), form.roots, axis=0)
    least = np.minimum.reduceat(np.where(leaf, form.value, np.inf), form.roots, axis=0)
    # A power of two, so that coarse values stay coarse.
    more = 2.0 ** np.ceil(np.log2(np.maximum((most - least).max(axis=1), 2.0**-20)))[:, None]
    wanted = np.array([k in large for k in range(form.outputs)])
    if _is_doubled(alternatives):
        found = np.hstack([most + more, least - more])
        start = np.hstack([form.base, form.base])
    else:
        found, start = np.where(wanted, most + more, least - more), form.base
    sums = [
        sum(map(Fraction, column.tolist()), Fraction(float(base))) for column, base in zip(found.T, start, strict=True)
    ]
    band = form.band(goal)
    for margin in itertools.chain(*alternatives):
        apart = len(sums) - form.outputs if _is_doubled(alternatives) else 0
        if margin.moved(0, apart).value(sums) <= band:
            raise NoCopies("the leaves of the ensemble do not add up to the target for sure")
    return found


def _behind_gate(copy: TreeEnsemble, gates: Sequence[_Node], yes: Floats) -> TreeEnsemble:
    """Return a copy with each tree behind the nodes of a gate."""
    trees, size, depth = len(copy.roots), len(copy.left), len(gates)
    ahead = depth + 1
    tree = np.searchsorted(copy.roots, np.arange(size), side="right") - 1
    at = np.arange(size) + ahead * (tree + 1)
    roots = copy.roots + ahead * np.arange(trees)
    value = np.zeros((size + ahead * trees, yes.shape[1]))
    value[at] = np.hstack([copy.value] * (yes.shape[1] // copy.outputs))
    value[roots + depth] = yes

    def spread(own: NDArray[np.generic], of_gate: Sequence[Ints | bool | float]) -> NDArray[np.generic]:
        made = np.zeros(size + ahead * trees, dtype=own.dtype)
        made[at] = own
        for k, each in enumerate(of_gate):
            made[roots + k] = each
        return made

    def below(children: Ints, is_left: bool) -> Ints:
        inner = children >= 0
        moved = np.full(size, -1, dtype=np.int64)
        moved[inner] = at[children[inner]]
        on = [roots + k + (1 if k + 1 < depth else 2) for k in range(depth)]
        sides = [on[k] if gate.on_left == is_left else roots + depth for k, gate in enumerate(gates)]
        return spread(moved, [*sides, np.full(trees, -1)]).astype(np.int64)

    return replace(
        copy,
        columns=(*copy.columns, *(gate.column for gate in gates)),
        roots=roots,
        column=spread(copy.column, [len(copy.columns) + k for k in range(depth)]).astype(np.int64),
        edge=spread(copy.edge, [gate.edge for gate in gates]).astype(np.float64),
        left=below(copy.left, True),
        right=below(copy.right, False),
        missing_left=spread(copy.missing_left, [gate.missing_left for gate in gates]).astype(bool),
        value=value,
        base=np.tile(copy.base, yes.shape[1] // copy.outputs),
        subset=spread(copy.subset, [-1] * ahead).astype(np.int64),
    )


def _together(each: Sequence[TreeEnsemble], first: TreeEnsemble) -> Joined:
    """Return an ensemble and its copies as one, unless that is too large."""
    if sum(len(one.left) for one in each) * sum(one.outputs for one in each) > MOST_LEAF_VALUES:
        raise NoCopies("the copies are too large together")
    return as_one(each, first)
