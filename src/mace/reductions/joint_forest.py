"""A tree ensemble and isolation forests as one ensemble: the goal of the one, and that the others call a row usual, as margins."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

import numpy as np

from mace.constraints.typical import USUAL, Usual
from mace.exact import Floats
from mace.forms import Goal, Margin, Stated, TreeEnsemble
from mace.models.trees.pack import own_outputs, side_by_side
from mace.problem import Problem
from mace.space import Point

DEPTH_SCALE = 2.0**24
"""Depths are rounded to multiples of 1 / DEPTH_SCALE, which add up exactly, so that an ensemble with exact sums keeps them."""


@dataclass(frozen=True, eq=False)
class Joined(TreeEnsemble):
    """An ensemble with more outputs: the sum of another's single output, or copies of its own.

    How far its own margins may be off is what it was before; the margin of another ensemble carries its own slack.
    """

    first: TreeEnsemble | None = None

    def band(self, goal: Goal) -> Fraction:
        """Return the band of the first ensemble."""
        assert self.first is not None
        return self.first.band(getattr(goal, "goal", goal))

    @property
    def _as_difference(self) -> bool:
        """False: two outputs are folded into their difference only where both belong to one ensemble."""
        return False


def joined(problem: Problem) -> Problem:
    """Return a problem over tree ensembles with its isolation forests in the ensemble rather than among the conditions."""
    usual, made = problem.apart(Usual)
    if not usual or not isinstance(problem.form, TreeEnsemble):
        return problem
    for condition in usual:
        made = _with(made, condition)
    return made


def _with(problem: Problem, condition: Usual) -> Problem:
    form, ask, goal = problem.form, problem.ask, problem.goal
    assert isinstance(form, TreeEnsemble)
    other, other_ask = condition.form, condition.reading.ask
    # Each depth and the start are off by half a grain at most.
    slack = other.band(USUAL) + Fraction(len(other.roots) + 1) / int(2 * DEPTH_SCALE)
    margin = Margin(form.outputs, None, slack=slack)

    def ask_both(points: Sequence[Point]) -> list[Fraction]:
        said = zip(ask(points), other_ask(points), strict=True)
        return [Fraction(goal.accepts(first) and USUAL.accepts(second)) for first, second in said]

    alternatives = form.alternatives(goal)
    both = Stated(tuple((*margins, margin) for margins in alternatives), goal.slack, goal)
    return replace(problem, form=_join(form, other), ask=ask_both, goal=both)


@lru_cache(maxsize=16)
def _join(form: TreeEnsemble, other: TreeEnsemble) -> Joined:
    """Return two ensembles as one; the same object again, so that what a lane makes of it is made once too."""
    rounded = replace(other, value=_on_grains(other.value), base=_on_grains(other.base))
    return as_one([form, rounded], form)


def _on_grains(values: Floats) -> Floats:
    return np.asarray(np.rint(values * DEPTH_SCALE) / DEPTH_SCALE)


def as_one(each: Sequence[TreeEnsemble], first: TreeEnsemble) -> Joined:
    """Return several ensembles as one, each with its own outputs. What is no array is taken from the first."""
    return Joined(
        space=first.space,
        columns=tuple(itertools.chain(*(one.columns for one in each))),
        **side_by_side(each, own_outputs(each)),
        base=np.concatenate([one.base for one in each]),
        fixed_order=all(one.fixed_order for one in each),
        is_blockwise=first.is_blockwise,
        unit=first.unit,
        squash=first.squash,
        ties_last=first.ties_last,
        link=first.link,
        is_regressor=first.is_regressor,
        first=first,
    )
