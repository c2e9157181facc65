"""FT and PFT, (plausible) feature tweaking of trees and forests (Tolomei, Silvestri, Haines, Lalmas; KDD 2017).

For every tree that does not vote for the target, and every path of it that ends in such a vote, the ε-satisfactory instance sets each
column on the path to θ - ε (a condition x <= θ) or θ + ε (x > θ); of several conditions on one column the deepest one counts. Of the
instances that the whole forest puts in the target the nearest is the answer. ε is half a standard deviation of the column.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from mace.baselines.baseline import Traits
from mace.baselines.columns import as_point, changes, column_changes, decoded, projected
from mace.errors import InvalidDistance, InvalidTarget, UnsupportedModel
from mace.exact import Floats, Ints
from mace.forms import Outcomes, TreeEnsemble
from mace.forms.scoring import column_values, encode_numbers
from mace.models import Reading
from mace.problem import Problem
from mace.space import FeatureSpace, Point

STEP = 0.5
"""ε in standard deviations."""

FIRST_BLOCK, LARGEST_BLOCK = 64, 4096
"""How many instances the forest is asked about at once: few at first, then twice as many each time."""


class FeatureTweaking:
    """The nearest instance just across the thresholds of one path of a tree; its columns need not come from a row of features."""

    traits: ClassVar[Traits] = Traits(
        title="Feature Tweaking (FT)",
        models=("tree", "forest"),
        data=("heterogeneous",),
        distances=("l0", "l1", "l2", "linf", "mixtures"),
        is_plausible=False,
    )

    def __init__(self, reading: Reading, space: FeatureSpace, points: tuple[Point, ...]) -> None:
        form = reading.form
        if not isinstance(form, TreeEnsemble) or form.link != "mean" or form.is_regressor or form.subsets:
            raise UnsupportedModel(
                f"feature tweaking takes decision trees and forests that classify, not {reading.family}. Use the baseline 'mo'."
            )
        if any(feature.missing for feature in space.values()):
            raise UnsupportedModel("feature tweaking knows no missing values. Use the baseline 'mo'.")
        self._form = form
        self._space = space
        spread = column_values(form.columns, points).std(axis=0)
        leaves = np.flatnonzero(form.left < 0)
        self._tweaks = _tweaks(form, STEP * spread)[leaves]
        self._votes = np.argmax(form.value[leaves], axis=1)
        self._trees = np.searchsorted(form.roots, leaves, side="right") - 1

    def propose(self, problem: Problem, *, raw: bool) -> Point | str:
        """Return the nearest instance that the forest puts in the target, its types repaired unless ``raw``."""
        instances = self._instances(problem)
        own = column_values(self._form.columns, [problem.factual])[0]
        deltas = column_changes(self._space, self._form.columns, instances, own, problem.factual)
        order = np.argsort(_measures(problem, deltas), kind="stable")
        for position in self._in_target(problem, instances, order):
            return decoded(self._space, self._form.columns, instances[position], problem.factual, raw=raw)
        return f"the model puts none of the {len(instances)} tweaked instances in the target"

    def _instances(self, problem: Problem) -> Floats:
        """Return the ε-satisfactory instances as rows of columns."""
        goal, form = problem.goal, self._form
        if not isinstance(goal, Outcomes):
            raise InvalidTarget("feature tweaking takes labels as target, not bounds on a number.")
        wanted = np.array([goal.accepts(code) for code in map(Fraction, range(form.outputs))])
        own_votes = np.argmax(form.value[form.leaves([problem.factual])[0]], axis=1)
        usable = wanted[self._votes] & ~wanted[own_votes][self._trees]
        tweaks = self._tweaks[usable]
        own = column_values(form.columns, [problem.factual])[0]
        instances: Floats = np.where(np.isnan(tweaks), own, tweaks)
        return instances

    def _in_target(self, problem: Problem, rows: Floats, order: Ints) -> Iterator[int]:
        """Yield the rows of columns that the forest, in floats, puts in the target, in the given order."""
        goal, form = problem.goal, self._form
        start, size = 0, FIRST_BLOCK
        while start < len(order):
            chunk = order[start : start + size]
            sums = form.value[form.leaves_of_columns(rows[chunk])].sum(axis=1)
            accepted = np.array([goal.accepts(code) for code in map(Fraction, range(form.outputs))])
            yield from (int(position) for position in chunk[accepted[np.argmax(sums, axis=1)]])
            start, size = start + size, min(2 * size, LARGEST_BLOCK)


class PlausibleFeatureTweaking(FeatureTweaking):
    """Feature tweaking whose instances are projected into the plausible domain before the nearest is chosen."""

    traits: ClassVar[Traits] = replace(
        FeatureTweaking.traits, title="Plausible Feature Tweaking (PFT)", is_plausible=True
    )

    def propose(self, problem: Problem, *, raw: bool) -> Point | str:
        """Return the nearest projected instance in the target that fulfils the constraints; ``raw`` changes nothing."""
        columns = self._form.columns
        instances = self._instances(problem)
        numbers = projected(self._space, columns, instances, problem.factual)
        order = np.argsort(_measures(problem, changes(self._space, numbers, problem.factual)), kind="stable")
        for position in self._in_target(problem, encode_numbers(columns, numbers), order):
            point = as_point(self._space, numbers[position])
            if problem.is_valid(point):
                return point
        return (
            f"none of the {len(instances)} tweaked instances, projected, is in the target and fulfils the constraints"
        )


def _tweaks(form: TreeEnsemble, step: Floats) -> Floats:
    """Return for each node what its path sets each column to, NaN where it sets nothing."""
    tweaks = np.full((len(form.left), len(form.columns)), np.nan)
    level = form.roots
    while len(level := level[form.left[level] >= 0]):
        column, edge = form.column[level], form.edge[level]
        for child, sign in ((form.left[level], -1), (form.right[level], 1)):
            tweaks[child] = tweaks[level]
            tweaks[child, column] = edge + sign * step[column]
        level = np.concatenate([form.left[level], form.right[level]])
    return tweaks


def _measures(problem: Problem, deltas: Floats) -> Floats:
    measures = problem.metric.floats(deltas)
    if measures is None:
        raise InvalidDistance("feature tweaking takes norms and mixtures of them as distance, not functions.")
    return measures
