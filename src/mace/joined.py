"""A tree ensemble and isolation forests as one ensemble: the goal of the one, and that the others call a row usual, as margins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

import numpy as np

from mace.forms import Alternatives, Goal, Margin, TreeEnsemble
from mace.language.syntax import Guard
from mace.outliers import USUAL, Usual
from mace.problem import Problem
from mace.space import Point

GRAIN = 2.0**24
"""Depths are rounded to multiples of 1 / GRAIN, which add up exactly, so that an ensemble with exact sums keeps them."""


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
        """Whether two outputs are folded into one: not where they are of different sums."""
        return False


@dataclass(frozen=True, slots=True)
class Both:
    """A goal, and a further margin that holds whatever the alternative. An outcome is 1 where both are reached, else 0."""

    goal: Goal
    outputs: int
    margin: Margin

    @property
    def slack(self) -> Fraction:
        """The slack of the goal; the margin has its own."""
        return self.goal.slack

    def accepts(self, outcome: Fraction) -> bool:
        """Return whether both were reached."""
        return outcome == 1

    def alternatives(self, outputs: int, *, ties_last: bool) -> Alternatives:
        """Return the goal's alternatives, each with the margin."""
        return tuple((*margins, self.margin) for margins in self.goal.alternatives(self.outputs, ties_last=ties_last))

    def of_result(self, result: str) -> Guard:
        """Return the goal's formula of a result, which knows nothing of the margin."""
        return self.goal.of_result(result)


def joined(problem: Problem) -> Problem:
    """Return a problem over tree ensembles with its isolation forests in the ensemble rather than among the conditions."""
    usual = [condition for condition in problem.conditions if isinstance(condition, Usual)]
    if not usual or not isinstance(problem.form, TreeEnsemble):
        return problem
    rest = tuple(condition for condition in problem.conditions if not isinstance(condition, Usual))
    made = replace(problem, conditions=rest)
    for condition in usual:
        made = _with(made, condition)
    return made


def _with(problem: Problem, condition: Usual) -> Problem:
    form, ask, goal = problem.form, problem.ask, problem.goal
    assert isinstance(form, TreeEnsemble)
    other, other_ask = condition.form, condition.reading.ask
    # Each depth and the start are off by half a grain at most.
    slack = other.band(USUAL) + Fraction(len(other.roots) + 1) / int(2 * GRAIN)
    margin = Margin(form.outputs, None, slack=slack)

    def ask_both(points: Sequence[Point]) -> list[Fraction]:
        said = zip(ask(points), other_ask(points), strict=True)
        return [Fraction(goal.accepts(first) and USUAL.accepts(second)) for first, second in said]

    return replace(problem, form=_join(form, other), ask=ask_both, goal=Both(goal, form.outputs, margin))


@lru_cache(maxsize=16)
def _join(form: TreeEnsemble, other: TreeEnsemble) -> Joined:
    """Return two ensembles as one; the same object again, so that what a lane makes of it is made once too."""
    nodes, outputs = len(form.left), form.outputs
    value = np.zeros((nodes + len(other.left), outputs + 1))
    value[:nodes, :outputs] = form.value
    value[nodes:, outputs] = np.rint(other.value[:, 0] * GRAIN) / GRAIN
    start = np.rint(other.base * GRAIN) / GRAIN

    def below(children: np.ndarray) -> np.ndarray:
        return np.where(children < 0, -1, children + nodes)

    return Joined(
        space=form.space,
        columns=(*form.columns, *other.columns),
        roots=np.concatenate([form.roots, other.roots + nodes]),
        column=np.concatenate([form.column, other.column + len(form.columns)]),
        edge=np.concatenate([form.edge, other.edge]),
        left=np.concatenate([form.left, below(other.left)]),
        right=np.concatenate([form.right, below(other.right)]),
        missing_left=np.concatenate([form.missing_left, other.missing_left]),
        value=value,
        base=np.concatenate([form.base, start]),
        subset=np.concatenate([form.subset, np.where(other.subset < 0, -1, other.subset + len(form.subsets))]),
        subsets=(*form.subsets, *other.subsets),
        fixed_order=form.fixed_order and other.fixed_order,
        unit=form.unit,
        squash=form.squash,
        ties_last=form.ties_last,
        link=form.link,
        is_regressor=form.is_regressor,
        first=form,
    )
