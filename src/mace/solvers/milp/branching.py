"""Where to cut a node: at a disjunction that the relaxed point breaks, at a value that it misses, or around the point itself."""

from __future__ import annotations

import math

import numpy as np

from mace.exact import Floats
from mace.solvers.milp.model import Model
from mace.solvers.milp.program import MixedProgram
from mace.solvers.milp.propagate import Propagator
from mace.solvers.milp.quantities import ZERO_OR_ONE, Domain, greatest, least

Change = tuple[int, float, float]
"""A column, and the bounds that it gets."""

Children = list[tuple[Change, ...]]
"""What each child changes, the one to go on with first; together they hold all points of the node."""

BROKEN = 1e-7
"""By what share of a quantity's range a disjunction, or a value, must be missed to count as broken."""


class PseudoCosts:
    """By how much a cut at a choice has raised the bound so far, on either side: what another cut there can be hoped to bring."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], tuple[float, int]] = {}
        self._all = (0.0, 0)

    def learn(self, choice: int, side: int, gain: float) -> None:
        """Note what one side of a cut has brought."""
        total, count = self._known.get((choice, side), (0.0, 0))
        self._known[choice, side] = total + gain, count + 1
        self._all = self._all[0] + gain, self._all[1] + 1

    def score(self, choice: int, missed: float) -> float:
        """Return how good a cut promises to be: what both sides may gain, and by how much the point breaks the choice."""
        mean = self._all[0] / self._all[1] if self._all[0] else 1.0
        hopes = [self._hope(choice, side, mean) for side in (0, 1)]
        return math.prod(max(hope, 1e-3 * mean) for hope in hopes) * math.sqrt(missed)

    def _hope(self, choice: int, side: int, mean: float) -> float:
        total, count = self._known.get((choice, side), (0.0, 0))
        return (total + mean) / (count + 1)


def branches(
    program: MixedProgram, propagator: Propagator, gains: PseudoCosts, point: Floats, low: Floats, high: Floats
) -> tuple[int, Children]:
    """Return the choice to cut at, and the children; -1 where it is a value, and no children where the point breaks nothing."""
    choice = _broken_choice(program, propagator, gains, point, low, high)
    if choice is not None:
        return choice, _at_choice(program, propagator, choice, point, high)
    place, domain, missed = max(
        ((place, domain, _missed(domain, point[place])) for place, domain in program.discrete if low[place] < high[place]),
        key=lambda entry: entry[2],
        default=(-1, ZERO_OR_ONE, 0.0),
    )  # fmt: skip
    if missed <= 10 * BROKEN:
        return -1, []
    return -1, _at_value(place, domain, float(point[place]), float(low[place]), float(high[place]))


def broken(program: MixedProgram, propagator: Propagator, point: Floats, high: Floats) -> Floats:
    """Return by how much a point breaks each part of each choice, as a share of the ranges; infinite for parts that are out."""
    choices = program.choices
    value = point[choices.quantity]
    width = program.high[choices.quantity] - program.low[choices.quantity]
    miss = np.maximum(choices.low - value, value - choices.high) / np.where(width > 0, width, 1.0)
    parts = np.zeros(len(choices.columns))
    np.maximum.at(parts, choices.part, miss)
    parts[high[choices.columns] <= 0] = math.inf
    for choice in propagator.nested[::-1]:
        inside = parts[choices.starts[choice] : propagator.end(choice)]
        parent = choices.parent[choice]
        parts[parent] = max(parts[parent], inside.min())
    return parts


def _broken_choice(
    program: MixedProgram, propagator: Propagator, gains: PseudoCosts, point: Floats, low: Floats, high: Floats
) -> int | None:
    choices = program.choices
    if not len(choices.starts):
        return None
    missed = np.minimum.reduceat(broken(program, propagator, point, high), choices.starts)
    several = np.add.reduceat((high[choices.columns] > 0).astype(np.int64), choices.starts) > 1
    open_choices = np.flatnonzero(several & propagator.held(low) & (missed > BROKEN))
    return max(map(int, open_choices), key=lambda choice: gains.score(choice, float(missed[choice])), default=None)


def _at_choice(program: MixedProgram, propagator: Propagator, choice: int, point: Floats, high: Floats) -> Children:
    """Return two children, each with some of the choice's parts: as even a cut of the relaxed point's weights as there is."""
    columns = program.choices.columns[program.choices.starts[choice] : propagator.end(choice)]
    alive = columns[high[columns] > 0]
    weights = np.cumsum(point[alive])
    cut = 1 + int(np.argmin(np.abs(weights[:-1] - 0.5 * weights[-1])))
    first, second = alive[:cut], alive[cut:]
    if point[first].sum() < point[second].sum():
        first, second = second, first
    return [tuple((int(column), 0.0, 0.0) for column in out) for out in (second, first)]


def _missed(domain: Domain, value: float) -> float:
    """Return how far a value is from the domain, as a share of the gap that it lies in."""
    below, above = greatest(domain, value, strict=False), least(domain, value, strict=False)
    if below == above or math.isinf(below) or math.isinf(above):
        return 0.0
    return min(value - below, above - value) / (above - below)


def _at_value(place: int, domain: Domain, value: float, low: float, high: float) -> Children:
    below, above = greatest(domain, value, strict=False), least(domain, value, strict=False)
    children: Children = [((place, low, below),), ((place, above, high),)]
    return children if value - below <= above - value else children[::-1]


def split(model: Model, propagator: Propagator, point: Floats | None, low: Floats, high: Floats) -> Children:
    """Return children that close in on a point, or on the middle of the node; none where nothing is left to cut."""
    program, translator = model.program, model.translator
    at = (low[: program.width] + high[: program.width]) / 2 if point is None else point
    place = program.place
    for columns in translator.levels.values():
        free = [place[column] for column in columns if high[place[column]] > 0]
        if len(free) > 1:
            likeliest = max(free, key=lambda column: at[column])
            return [((likeliest, 1.0, 1.0),), ((likeliest, 0.0, 0.0),)]
    for column in translator.missing.values():
        flag = place[column]
        if low[flag] < high[flag]:
            nearer = float(round(at[flag]))
            return [((flag, nearer, nearer),), ((flag, 1 - nearer, 1 - nearer),)]
    for name, column in translator.numbers.items():
        domain, spot = translator.quantities.domain[column], place[column]
        if domain is None or low[spot] == high[spot] or is_missing(model, name, low):
            continue
        value = greatest(domain, max(float(at[spot]), float(low[spot])), strict=False)
        if value >= high[spot]:
            below = greatest(domain, float(high[spot]), strict=True)
            return [((spot, float(high[spot]), float(high[spot])),), ((spot, float(low[spot]), below),)]
        above = least(domain, value, strict=True)
        return [((spot, float(low[spot]), value),), ((spot, above, float(high[spot])),)]
    choices = program.choices
    held = propagator.held(low) if len(choices.starts) else np.zeros(0, dtype=bool)
    for choice in map(int, np.flatnonzero(held)):
        inside = choices.columns[choices.starts[choice] : propagator.end(choice)]
        alive = inside[high[inside] > 0]
        if len(alive) > 1:
            chosen = int(alive[np.argmax(at[alive])])
            return [
                tuple((int(column), 0.0, 0.0) for column in alive if column != chosen),
                ((chosen, 0.0, 0.0),),
            ]
    return []


def is_missing(model: Model, name: str, low: Floats) -> bool:
    """Return whether a feature is missing in all of a node."""
    column = model.translator.missing.get(name)
    return column is not None and bool(low[model.program.place[column]] > 0)


def settled(
    program: MixedProgram, propagator: Propagator, point: Floats, low: Floats, high: Floats
) -> tuple[Floats, Floats]:
    """Return the bounds of a node, narrowed to the part of each choice that the point fulfils best."""
    choices = program.choices
    low, high = low.copy(), high.copy()
    if not len(choices.starts):
        return low, high
    parts = broken(program, propagator, point, high)
    taken = np.zeros(len(parts), dtype=bool)
    for choice, start in enumerate(choices.starts):
        parent = choices.parent[choice]
        if parent < 0 or taken[parent]:
            taken[start + int(np.argmin(parts[start : propagator.end(choice)]))] = True
    inside = taken[choices.part]
    np.maximum.at(low, choices.quantity[inside], choices.low[inside])
    np.minimum.at(high, choices.quantity[inside], choices.high[inside])
    return low, high
