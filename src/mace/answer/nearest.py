"""One search: the nearest answer to a problem, by the lane that takes it."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from fractions import Fraction

from mace.constraints import Condition
from mace.forms import Effects
from mace.problem import LATE, Bounds, Limits, Problem
from mace.solvers import Lane, choose
from mace.solvers.choose import is_lane_for
from mace.space import Point


@dataclass(frozen=True, slots=True)
class Found:
    """What a search proved.

    Attributes
    ----------
    bounds : Bounds
        What is proved; with causes, its point holds the actions.
    problem : Problem
        The problem that the point solves.
    lanes : tuple of Lane
        Which lanes answered, that of the point first.
    seconds : float
        Wall time inside the lanes.
    effects : Effects, optional
        With causes: what follows from the actions.
    caused : collection of str
        With causes: the features that have an equation.
    """

    bounds: Bounds
    problem: Problem
    lanes: tuple[Lane, ...]
    seconds: float = 0.0
    effects: Effects | None = None
    caused: Collection[str] = ()

    def row(self, point: Point) -> Point:
        """Return the row of a point: the point itself, or what its actions lead to."""
        return point if self.effects is None else self.effects.row(point)

    def actions(self, changed: Collection[str]) -> tuple[str, ...] | None:
        """Return what is set, if there are causes: features that change, and effects that are kept, but none that follows."""
        if self.effects is None:
            return None
        follow = {equation.name for equation in self.effects.equations}
        return tuple(name for name in self.problem.space if name in {*self.caused, *changed} - follow)


Find = Callable[[Problem, tuple[Condition, ...], Limits], Found]
"""Finds the nearest answer to a problem under further conditions; with causes, those are on the actions."""


@dataclass(frozen=True, slots=True)
class NearestRows:
    """Finds nearest rows; the lane that was chosen for ``problem`` is asked about it, other problems may need another."""

    solver: str
    problem: Problem
    lane: Lane

    def __call__(self, problem: Problem, further: tuple[Condition, ...], limits: Limits) -> Found:
        """Return the nearest row; a further condition is not looked at once time is up."""
        asked = replace(problem, conditions=(*problem.conditions, *further)) if further else problem
        is_known = problem is self.problem and is_lane_for(self.lane, self.solver, problem.space, further)
        lane = self.lane if is_known else choose(self.solver, asked)
        begun = time.monotonic()
        is_late = bool(further) and limits.remaining() <= 0
        bounds = Bounds(Fraction(0), reason=LATE) if is_late else lane.solve(asked, limits)
        if bounds.answered_by:
            lane = replace(
                lane, name=bounds.answered_by, why=f"decided it before {lane.name} did, with which it took turns"
            )
        return Found(bounds, asked, (lane,), time.monotonic() - begun)
