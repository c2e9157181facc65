"""Several answers, each with other changes than the ones before: the nearest of their kind, with certificates, and soon."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from problems import problem_of
from random_ensembles import random_ensemble
from random_problems import random_case
from random_several import disagreement
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mace
from mace.constraints.differ import SomeChange, counts
from mace.constraints.views import View
from mace.distances import as_distance, point_values
from mace.solvers.trees.parts import Tables


@pytest.mark.parametrize("seed", range(500_000, 500_024))
def test_answers_of_tree_ensembles_are_the_nearest_of_their_kind(seed: int) -> None:
    assert disagreement(random_ensemble(seed), seed) is None


@pytest.mark.parametrize("seed", range(510_000, 510_018))
def test_answers_of_other_models_are_the_nearest_of_their_kind(seed: int) -> None:
    assert disagreement(random_case(seed), seed) is None


BEFORE_MANY_NUMBERS = {
    "forest": RandomForestClassifier(10, random_state=0),
    "logistic regression": make_pipeline(StandardScaler(), LogisticRegression(max_iter=5000)),
    "network": make_pipeline(StandardScaler(), MLPClassifier((6,), max_iter=300, random_state=0)),
}


@pytest.mark.parametrize("name", BEFORE_MANY_NUMBERS)
def test_three_answers_over_many_numbers_end_without_a_limit(name: str) -> None:
    """They did not, in ten minutes, while what must change and what must not was cut into ranges of single features."""
    data = load_breast_cancer(as_frame=True)
    model = BEFORE_MANY_NUMBERS[name].fit(data.data, data.target)
    row = data.data[model.predict(data.data) == 0].iloc[0]
    answer = mace.Explainer(model, mace.FeatureSpace.from_frame(data.data)).explain(row, count=3)
    assert [each.status for each in answer] == ["optimal"] * 3
    sets = [{change.feature for change in each.changes} for each in answer]
    assert not [(a, b) for a in sets for b in sets if a is not b and a <= b]


def test_where_every_feature_has_changed_nothing_is_like_none_before() -> None:
    space = mace.FeatureSpace({"a": mace.integer(0, 3), "b": mace.integer(0, 3)})
    bound = mace.differ(sets="incomparable").bind(space, (0, 0), (1, 2), as_distance("l1"))
    rows = [(a, b) for a in range(4) for b in range(4)]
    assert not any(all(each.holds(point_values(space, row)) for each in bound) for row in rows)
    frame = space.frame_of(rows)
    model = RandomForestClassifier(5, bootstrap=False, random_state=0).fit(frame, np.minimum(frame.a, frame.b) > 0)
    answer = mace.Explainer(model, space).explain({"a": 0, "b": 0}, count=3)
    assert (len(answer), answer.exhausted) == (1, True)


def test_that_some_feature_changes_is_a_guard_and_a_count() -> None:
    space = mace.FeatureSpace({name: mace.integer(0, 3) for name in "abc"})
    condition = SomeChange.of(space, (1, 1, 1), ("a", "c"))
    (count,) = counts([condition])
    for row in ((1, 1, 1), (1, 2, 1), (0, 1, 1), (1, 1, 3)):
        values = point_values(space, row)
        assert condition.holds(values) == count.holds(values) == (row[0] != 1 or row[2] != 1)
    assert not condition.why_not(View.SOME_CHANGE, space)
    assert not condition.why_not(View.GUARD, space)
    assert condition.why_not(View.DIFFERENT, space)


def test_cells_of_trees_count_as_another_change_only_where_another_feature_changes() -> None:
    """Answers stay right without, since points are checked again; what is lost is work."""
    space = mace.FeatureSpace({name: mace.integer(0, 3) for name in "abc"})
    frame = space.frame_of([(a, b, c) for a in range(4) for b in range(4) for c in range(4)])
    model = RandomForestClassifier(3, random_state=0).fit(frame, frame.sum(axis=1) > 4)
    problem = problem_of(mace.Explainer(model, space), {"a": 0, "b": 0, "c": 0}, {"distance": "l1", "constraints": []})
    tables = Tables(replace(problem, conditions=(SomeChange.of(space, problem.factual, ("a", "c")),)))
    view = tables.view
    for j, name in enumerate(space):
        cells = slice(view.off[j], view.off[j + 1])
        assert view.differs[0, cells].tolist() == [int(name in "ac" and low > 0) for low in view.low[cells]]
