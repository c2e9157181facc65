"""Checking that noise does not undo an answer, and that no nearer one stands it.

The first is a proof of a lane that the box of noise around the answer holds no row outside of the target. The second rests on *places*:
ranges of values of the noisy features on which no node of a tree ensemble tells values apart. A row that noise can bring to a place is
undone unless the ensemble, set to the place, reaches the target; so every robust row brings the ensemble *and* its copies at any places to
the target, where a copy says yes for rows that are not that near. The lane proves that no nearer row does; wrong places prove less.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from mace.certify.enumerate import MOST_POINTS, rows_below
from mace.certify.robust import network as moved
from mace.certify.verdict import Progress, Refuted, Unchecked
from mace.constraints.condition import GuardCondition
from mace.constraints.robust import Sturdy
from mace.distances import as_distance
from mace.exact import float_down, float_up, greatest_float, least_float
from mace.forms import Alternatives, Goal, Margin, TreeEnsemble, negated
from mace.language import syntax
from mace.problem import Problem
from mace.space import Categorical, Column, Integer, Ordinal, Point, Real, Value, grid_values
from mace.space.decimals import decimal_of, dtype_of

CheckLane = Callable[[Problem, Fraction | None, dict[str, Any], Progress], None]
Ends = tuple[Fraction, Fraction]

MOST_PLACES = 1000
MOST_NODES = 2_000_000
MOST_NUMBERS = 50_000_000
MOST_ALTERNATIVES = 64


def without_noise(problem: Problem) -> tuple[Problem, Sturdy | None]:
    """Return a problem without its condition on noise, and that; raise where there are several."""
    noisy = [condition for condition in problem.conditions if isinstance(condition, Sturdy)]
    if len(noisy) > 1:
        raise Unchecked("robust() stands twice")
    rest = tuple(condition for condition in problem.conditions if not isinstance(condition, Sturdy))
    return replace(problem, conditions=rest), noisy[0] if noisy else None


def around(sturdy: Sturdy, name: str, low: float, high: float) -> Ends:
    """Return the least and the greatest number that noise can turn a value of a feature between two others into.

    Noise is a difference of at most the radius, and so the same numbers are those that it can turn into a value between the two.
    """
    feature, radius = sturdy.space[name], sturdy.radii[name]
    least, most = Fraction(low) - radius, Fraction(high) + radius
    if sturdy.written and isinstance(feature, Real):
        # The difference is one of decimals, which rise with the floats that they are written for.
        first = least_float(decimal_of(feature, low) - radius, dtype_of(feature))
        last = greatest_float(decimal_of(feature, high) + radius, dtype_of(feature))
        least, most = (
            (Fraction(first) if math.isfinite(first) else least),
            (Fraction(last) if math.isfinite(last) else most),
        )
    return least, most


# ---- the box around an answer


def check_around(
    sturdy: Sturdy, problem: Problem, point: Point, evidence: dict[str, Any], check_lane: CheckLane
) -> None:
    """Be convinced that every row that noise makes of a point is in the target, or raise."""
    proof = evidence.get("around")
    if not isinstance(proof, dict):
        said = evidence.get("missing", "the evidence has no proof of it")
        raise Unchecked(f"whether noise undoes the counterfactual is not proved: {said!s:.300}")
    guards = [
        _within(name, value, sturdy, problem.space[name]) for name, value in zip(problem.space, point, strict=True)
    ]
    asked = replace(
        problem,
        goal=negated(problem.goal),
        factual=point,
        metric=as_distance("linf").from_factual(problem.space, point),
        conditions=tuple(map(GuardCondition, guards)),
    )
    try:
        check_lane(asked, None, proof, _silent)
    except Refuted as error:
        raise Refuted(f"evidence.around: {error}") from error


def _silent(share: float) -> None:
    """Tell nobody."""


def _within(name: str, value: Value, sturdy: Sturdy, feature: object) -> syntax.Guard:
    """Return the guard that a feature is what noise makes of a value."""
    variable = syntax.Variable(name)
    if value is None:
        return syntax.Missing(name)
    if isinstance(feature, Categorical) or not sturdy.radii.get(name):
        return syntax.conjunction(
            [syntax.Not(syntax.Missing(name)), syntax.Compare("==", variable, syntax.constant(value))]
        )
    low, high = around(sturdy, name, value, value)
    if isinstance(feature, Real):
        low, high = Fraction(float_up(low)), Fraction(float_down(high))
    return syntax.conjunction(
        [
            syntax.Not(syntax.Missing(name)),
            syntax.Compare(">=", variable, syntax.Constant(low)),
            syntax.Compare("<=", variable, syntax.Constant(high)),
        ]
    )


# ---- the lower bound


def check(
    sturdy: Sturdy,
    problem: Problem,
    lower: Fraction | None,
    evidence: dict[str, Any],
    progress: Progress,
    check_lane: CheckLane,
) -> None:
    """Be convinced that no plausible point nearer than ``lower`` is in the target with all that noise makes of it, or raise."""
    proof = evidence.get("proof")
    if not isinstance(proof, dict):
        raise Unchecked(f"there is no proof of lower: {evidence.get('missing', 'the evidence has none')!s:.300}")
    if proof.get("lane") == "enumerate":
        _check_rows(problem, sturdy, lower, progress)
        return
    if proof.get("lane") == "moved":
        moved.check(problem, sturdy, lower, proof, progress)
        return
    places = evidence["places"]
    asked = problem
    if places:
        if not isinstance(problem.form, TreeEnsemble):
            raise Refuted("evidence.places: the model is no tree ensemble")
        asked = with_copies(problem, [_read_place(problem, sturdy, place) for place in places])
    check_lane(asked, lower, proof, progress)


def _check_rows(problem: Problem, sturdy: Sturdy, lower: Fraction | None, progress: Progress) -> None:
    """Find for every row nearer than ``lower`` one that noise makes of it and that is not in the target."""
    refused: dict[Point, bool] = {}
    for rows, share in rows_below(problem, lower):
        each = [list(_around(problem, sturdy, row)) for row in rows]
        _look(problem, list(dict.fromkeys(row for own in each for row in own if row not in refused)), refused)
        for row, own in zip(rows, each, strict=True):
            if not any(refused[other] for other in own):
                raise Refuted(f"{problem.space.values_of(row)} is nearer than lower, and noise does not undo it")
        progress(share)


def _look(problem: Problem, rows: list[Point], refused: dict[Point, bool]) -> None:
    """Note which rows the model surely refuses: asked together where rounding cannot matter, else alone."""
    if len(refused) + len(rows) > MOST_POINTS:
        raise Unchecked(f"noise makes more than {MOST_POINTS:,} rows of those nearer than lower")
    box, form, goal = problem.box(), problem.form, problem.goal
    for row, outcome in zip(rows, problem.ask(rows) if rows else [], strict=True):
        is_robust = form.is_robust(row, goal, box)
        accepted = goal.accepts(outcome if is_robust else problem.ask([row])[0])
        refused[row] = not accepted and (is_robust or form.is_settled(row, goal))


def _around(problem: Problem, sturdy: Sturdy, row: Point) -> Iterator[Point]:
    """Yield the rows that noise makes of one, itself first."""
    values = [
        _noisy_values(problem.space[name], value, sturdy.radii.get(name, Fraction(0)), written=sturdy.written)
        for name, value in zip(problem.space, row, strict=True)
    ]
    if math.prod(map(len, values)) > MOST_POINTS:
        raise Unchecked("noise makes too many rows of one to be enumerated")
    yield from itertools.product(*values)


def _noisy_values(feature: Any, value: Value, radius: Fraction, *, written: bool) -> list[Value]:
    if value is None or isinstance(feature, Categorical) or not radius:
        return [value]
    number = partial(decimal_of, feature) if written else Fraction
    near = [v for v in grid_values(feature) if v is not None and abs(number(v) - number(value)) <= radius]
    return [value, *(each for each in near if each != value)]


# ---- places


@dataclass(frozen=True, slots=True)
class Place:
    """For each noisy feature, by position: its values there (``None``: missing), and those that noise brings to them."""

    values: dict[int, tuple[float, float] | None]
    gate: dict[int, Ends | None]

    def is_near(self, point: Point) -> bool:
        """Return whether noise can bring a row here."""
        for j, ends in self.gate.items():
            value = point[j]
            if value is None or ends is None:
                if value is not None or ends is not None:
                    return False
            elif not ends[0] <= Fraction(value) <= ends[1]:
                return False
        return True

    def of(self, point: Point) -> Point:
        """Return the row here that noise makes of one that is near."""
        moved = list(point)
        for j, ends in self.values.items():
            value = point[j]
            if value is not None and ends is not None:
                moved[j] = type(value)(min(max(value, ends[0]), ends[1]))
        return tuple(moved)


def _read_place(problem: Problem, sturdy: Sturdy, entry: dict[str, Any]) -> Place:
    values: dict[int, tuple[float, float] | None] = {}
    gate: dict[int, Ends | None] = {}
    for name, ends in entry.items():
        if name not in sturdy.radii:
            raise Refuted(f"evidence.places: there is no noise on {name!r:.60}")
        j = problem.space.index(name)
        values[j] = gate[j] = None
        if ends is not None:
            low, high = (float(end) for end in ends)
            is_value = _are_values(problem.space[name], low, high)
            if not low <= high or (low < high and not is_value):
                raise Refuted(f"evidence.places: {name!r:.60} is not from a value of it to another")
            values[j] = (low, high)
            gate[j] = around(sturdy, name, low, high) if is_value else (Fraction(low), Fraction(high))
    return Place(values, gate)


def _are_values(feature: object, *values: float) -> bool:
    """Return whether numbers are values of a feature, wherever a row comes from."""
    if isinstance(feature, Ordinal):
        return all(value in range(len(feature.levels)) for value in values)
    return isinstance(feature, Real | Integer) and all(feature.has(value) for value in values)


# ---- copies


@dataclass(frozen=True, eq=False)
class WithCopies(TreeEnsemble):
    """An ensemble and its copies as one, each with outputs of its own; a margin is one of the ensemble or of a copy, never across."""

    one: TreeEnsemble | None = None

    def band(self, goal: Goal) -> Fraction:
        """Return how far off a margin of the ensemble, or of a copy, may be."""
        assert self.one is not None
        return self.one.band(getattr(goal, "goal", goal))

    @property
    def _as_difference(self) -> bool:
        """Two outputs are of different sums here, and not folded into their difference."""
        return False


@dataclass(frozen=True, slots=True)
class Everywhere:
    """A goal that an ensemble and its copies reach, each in any way. A copy has its outputs twice: to be large, and to be small."""

    goal: Goal
    outputs: int
    copies: int

    @property
    def slack(self) -> Fraction:
        """The slack of the goal."""
        return self.goal.slack

    def accepts(self, outcome: Fraction) -> bool:
        """Return whether all reached it."""
        return outcome == 1

    def alternatives(self, outputs: int, *, ties_last: bool) -> Alternatives:
        """Return every choice of an alternative for each."""
        own = self.goal.alternatives(self.outputs, ties_last=ties_last)
        if len(own) ** (self.copies + 1) > MOST_ALTERNATIVES:
            raise Unchecked("the target has too many alternatives for so many places")
        each = [own]
        for copy in range(self.copies):
            large = (2 * copy + 1) * self.outputs
            each.append(tuple(tuple(_moved(margin, large, self.outputs) for margin in margins) for margins in own))
        return tuple(tuple(itertools.chain(*chosen)) for chosen in itertools.product(*each))

    def of_result(self, result: str) -> syntax.Guard:
        """Return the goal's formula of a result of the ensemble."""
        return self.goal.of_result(result)


def _moved(margin: Margin, large: int, apart: int) -> Margin:
    plus = None if margin.plus is None else large + margin.plus
    return replace(margin, plus=plus, minus=None if margin.minus is None else large + apart + margin.minus)


def with_copies(problem: Problem, places: Sequence[Place]) -> Problem:
    """Return the problem of reaching the goal at some places as well."""
    form, ask, goal = problem.form, problem.ask, problem.goal
    assert isinstance(form, TreeEnsemble)
    if len(places) > MOST_PLACES:
        raise Unchecked(f"there are {len(places):,} places, and at most {MOST_PLACES:,} are looked at")
    made = _Nodes(form, 2 * len(places))
    made.add_ensemble()
    yes = _yes(form, goal)
    for number, place in enumerate(places):
        made.add_copy(place, number, yes)

    def ask_all(points: Sequence[Point]) -> list[Fraction]:
        found = []
        for point in points:
            rows = [point, *(place.of(point) for place in places if place.is_near(point))]
            found.append(Fraction(all(goal.accepts(ask([row])[0]) for row in rows)))
        return found

    return replace(problem, form=made.joined(), ask=ask_all, goal=Everywhere(goal, form.outputs, len(places)))


def _yes(form: TreeEnsemble, goal: Goal) -> list[tuple[list[float], list[float]]]:
    """Return for each tree what its copies add where they say yes, to be large and to be small: more than any of its leaves.

    The sums of these must be in the goal by more than any rounding.
    """
    ends = [*form.roots[1:], len(form.left)]
    found = []
    for begin, end in zip(form.roots, ends, strict=True):
        own = form.value[begin:end][form.left[begin:end] < 0]
        most, least = own.max(axis=0), own.min(axis=0)
        more = 2.0 ** math.ceil(math.log2(max(float((most - least).max()), 2.0**-20)))
        found.append(((most + more).tolist(), (least - more).tolist()))
    start = [Fraction(float(base)) for base in form.base]
    large = [base + sum(Fraction(up[k]) for up, _ in found) for k, base in enumerate(start)]
    small = [base + sum(Fraction(down[k]) for _, down in found) for k, base in enumerate(start)]
    for margin in itertools.chain(*goal.alternatives(form.outputs, ties_last=form.ties_last)):
        ahead = Fraction(0) if margin.plus is None else large[margin.plus]
        behind = Fraction(0) if margin.minus is None else small[margin.minus]
        if ahead - behind + margin.shift <= form.band(goal) + margin.slack:
            raise Unchecked("copies of the ensemble cannot be made to say yes for sure")
    return found


class _Nodes:
    """The nodes of an ensemble and its copies, one after the other."""

    def __init__(self, form: TreeEnsemble, halves: int) -> None:
        self.form = form
        self.outputs = form.outputs * (1 + halves)
        self.columns = list(form.columns)
        self.roots: list[int] = []
        self.column: list[int] = []
        self.edge: list[float] = []
        self.left: list[int] = []
        self.right: list[int] = []
        self.missing_left: list[bool] = []
        self.subset: list[int] = []
        self.values: list[tuple[int, int, list[float]]] = []

    def _node(self, column: int = 0, edge: float = 0.0, missing_left: bool = False, subset: int = -1) -> int:
        if len(self.left) >= MOST_NODES:
            raise Unchecked(f"the ensemble and its copies have more than {MOST_NODES:,} nodes")
        self.column.append(column)
        self.edge.append(edge)
        self.missing_left.append(missing_left)
        self.subset.append(subset)
        self.left.append(-1)
        self.right.append(-1)
        return len(self.left) - 1

    def _leaf(self, begin: int, numbers: list[float]) -> int:
        node = self._node()
        self.values.append((node, begin, numbers))
        return node

    def add_ensemble(self) -> None:
        """Put the ensemble itself first."""
        for root in self.form.roots:
            self.roots.append(self._grow(int(root), {}, 0, 1))

    def add_copy(self, place: Place, number: int, yes: list[tuple[list[float], list[float]]]) -> None:
        """Put the copy at a place, each of its trees behind the gate."""
        begin = (2 * number + 1) * self.form.outputs
        gate = list(self._gate(place))
        for root, (large, small) in zip(self.form.roots, yes, strict=True):
            self.roots.append(len(self.left))
            waiting: list[tuple[int, bool]] = []
            for column, edge, on_left, missing_left in gate:
                node = self._node(column, edge, missing_left)
                self._hang(waiting, node)
                no = self._leaf(begin, [*large, *small])
                (self.right if on_left else self.left)[node] = no
                waiting = [(node, on_left)]
            self._hang(waiting, self._grow(int(root), place.values, begin, 2))

    def _hang(self, waiting: list[tuple[int, bool]], child: int) -> None:
        for node, is_left in waiting:
            (self.left if is_left else self.right)[node] = child

    def _gate(self, place: Place) -> Iterator[tuple[int, float, bool, bool]]:
        """Yield column, edge, the side that is let on, and whether what is missing goes left."""
        for j, ends in place.gate.items():
            name = self.form.space.names[j]
            feature = self.form.space[name]
            table = tuple(float(k) for k in range(len(feature.levels))) if isinstance(feature, Ordinal) else None
            self.columns.append(Column(name, j, table))
            column = len(self.columns) - 1
            if ends is None:
                yield column, math.inf, False, False
            else:
                below = float_down(ends[0])
                yield column, (math.nextafter(below, -math.inf) if below == ends[0] else below), False, True
                yield column, float_down(ends[1]), True, False

    def _grow(self, root: int, place: dict[int, tuple[float, float] | None], begin: int, times: int) -> int:
        """Put a tree, without the nodes that a place decides; return its first node."""
        first = len(self.left)
        pending: list[tuple[int, int, bool]] = [(root, -1, True)]
        form = self.form
        while pending:
            old, above, is_left = pending.pop()
            while form.left[old] >= 0 and form.columns[form.column[old]].feature in place:
                old = int(form.left[old] if self._goes_left(old, place) else form.right[old])
            if form.left[old] < 0:
                new = self._leaf(begin, form.value[old].tolist() * times)
            else:
                new = self._node(
                    int(form.column[old]), float(form.edge[old]), bool(form.missing_left[old]), int(form.subset[old])
                )
                pending += [(int(form.right[old]), new, False), (int(form.left[old]), new, True)]
            if above >= 0:
                (self.left if is_left else self.right)[above] = new
        return first

    def _goes_left(self, node: int, place: dict[int, tuple[float, float] | None]) -> bool:
        """Return where all rows of a place go at a node about a noisy feature; raise where they part."""
        form = self.form
        column = form.columns[form.column[node]]
        ends = place[column.feature]
        if ends is None:
            return bool(form.missing_left[node])
        if column.table is None and form.subset[node] < 0:
            ways = {bool(end <= form.edge[node]) for end in ends}
        else:
            levels = range(math.ceil(ends[0]), math.floor(ends[1]) + 1)
            subset = form.subsets[form.subset[node]] if form.subset[node] >= 0 else None
            table = column.table or tuple(map(float, levels))
            ways = {bool(table[k] <= form.edge[node] if subset is None else subset[k]) for k in levels}
        if len(ways) != 1:
            raise Refuted(f"evidence.places: the model tells values of {column.name!r:.60} in a place apart")
        return ways.pop()

    def joined(self) -> WithCopies:
        """Return all of it as one ensemble."""
        form = self.form
        if len(self.left) * self.outputs > MOST_NUMBERS:
            raise Unchecked("the copies are too large together")
        value = np.zeros((len(self.left), self.outputs))
        for node, begin, numbers in self.values:
            value[node, begin : begin + len(numbers)] = numbers
        return WithCopies(
            space=form.space,
            columns=tuple(self.columns),
            roots=np.array(self.roots, dtype=np.int64),
            column=np.array(self.column, dtype=np.int64),
            edge=np.array(self.edge, dtype=np.float64),
            left=np.array(self.left, dtype=np.int64),
            right=np.array(self.right, dtype=np.int64),
            missing_left=np.array(self.missing_left, dtype=bool),
            value=value,
            base=np.tile(form.base, self.outputs // form.outputs),
            subset=np.array(self.subset, dtype=np.int64),
            subsets=form.subsets,
            fixed_order=form.fixed_order,
            is_blockwise=form.is_blockwise,
            unit=form.unit,
            squash=form.squash,
            ties_last=form.ties_last,
            link=form.link,
            is_regressor=form.is_regressor,
            one=form,
        )
