"""Arrays that the tree lane keeps from question to question leave nothing behind: answers do not depend on what was asked before."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from problems import problem_of
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier

import mace
from mace.problem import Limits
from mace.solvers.trees.prepared import prepared
from mace.solvers.trees.search import TreeSearch

NAMES = [f"x{j}" for j in range(5)]
QUESTIONS: list[dict[str, Any]] = [
    {"distance": "l1"},
    {"distance": "l0", "count": 2},
    {"distance": "linf", "constraints": [mace.fixed("x0")]},
    {"distance": "l1", "constraints": [mace.changes_at_most(2)]},
    {"distance": "l2", "constraints": [mace.changes_at_most(3), mace.fixed("x1")]},
    {"distance": mace.Distance(l0=0.5, linf=0.5), "constraints": {"x2": [0, 3]}},
    {"distance": "l1", "certify": True},
]


def make_explainer(classes: int, trees: int = 7) -> tuple[mace.Explainer, list[dict[str, float]]]:
    X, y = make_classification(
        120, 5, n_informative=4, n_redundant=0, n_classes=classes, n_clusters_per_class=1, random_state=trees
    )
    model = RandomForestClassifier(trees, random_state=0).fit(X, y)
    space = mace.FeatureSpace({name: mace.real(-6, 6) for name in NAMES})
    return mace.Explainer(model, space), [dict(zip(NAMES, row, strict=True)) for row in X[:6].tolist()]


def said(explanation: mace.Explanation) -> object:
    found = [(each.values, each.distance, each.lower, each.status, each.calls) for each in explanation]
    return explanation.status, explanation.lower, found


@pytest.mark.parametrize("classes", [2, 3])
def test_answers_do_not_depend_on_what_was_asked_before(classes: int) -> None:
    used, rows = make_explainer(classes)
    asked = [(row, question) for row in rows[:3] for question in QUESTIONS]
    before = [said(used.explain(row, **question)) for row, question in asked]
    again = [said(used.explain(row, **question)) for row, question in reversed(asked)]
    alone = [said(make_explainer(classes)[0].explain(row, **question)) for row, question in asked]
    assert before == alone == again[::-1]


def test_arrays_are_kept_for_the_next_question_and_given_to_one_at_a_time() -> None:
    explainer, rows = make_explainer(2)
    problem = problem_of(explainer, rows[0], {})
    kept = prepared(problem.form).arrays
    assert not kept
    TreeSearch(problem, Limits()).run()
    (first,) = kept
    TreeSearch(problem, Limits()).run()
    assert kept == [first]
    searches = [TreeSearch(problem, Limits()) for _ in range(2)]
    assert searches[0].run().upper == searches[1].run().upper


def test_threads_that_ask_one_explainer_get_their_own_arrays() -> None:
    explainer, rows = make_explainer(2, trees=11)
    asked = [(row, question) for row in rows for question in QUESTIONS[:4]]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda each: said(explainer.explain(each[0], **each[1])), asked))
    assert found == [said(explainer.explain(row, **question)) for row, question in asked]
