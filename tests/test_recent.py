"""What is kept for the next question does not grow with the questions: of targets, weights and steps there is no end."""

from __future__ import annotations

import copy
import gc
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import IsolationForest, RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import mace
from mace.answer.asked import AskedModel
from mace.constraints.typical import Usual
from mace.recent import Recent
from mace.solvers.network.prepared import Costs, Workspace
from mace.solvers.trees.prepared import Values

QUESTIONS = 20
MOST = 16
"""As many as are kept of anything here, and fewer than there are questions."""

Ask = Callable[[mace.Explainer, int], mace.Explanation]


def people() -> tuple[pd.DataFrame, Any]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.integers(0, 100, 200), "b": rng.integers(0, 100, 200)})
    return X, (X.a + X.b + rng.normal(0, 5, 200) > 100).astype(int)


X, Y = people()
SPACE = mace.FeatureSpace({"a": mace.integer(0, 100), "b": mace.integer(0, 100)})
FOREST = RandomForestClassifier(5, max_depth=3, random_state=0).fit(X, Y)
LINEAR = LogisticRegression().fit(X, Y)
TYPICAL = mace.typical(IsolationForest(n_estimators=5, random_state=0).fit(X))
ROW = {"a": 30, "b": 30}

ASKED: dict[str, tuple[Any, type, Ask]] = {
    "targets of trees": (FOREST, Values, lambda e, k: e.explain(ROW, mace.at_least(0.5 + k / 1000, 1))),
    "costs of networks": (LINEAR, Costs, lambda e, k: e.explain(ROW, distance=mace.Distance(weights={"a": 1 + k}))),
    "arrays of networks": (
        LINEAR,
        Workspace,
        lambda e, k: e.explain(ROW, distance=mace.Distance(weights={"b": 1 + k})),
    ),
    "ways to round": (FOREST, AskedModel, lambda e, k: e.explain(ROW, round_to={"a": 1 + k})),
    "spaces of typical": (FOREST, Usual, lambda e, k: e.explain({"a": 101 + k, "b": 5}, 1, constraints=[TYPICAL])),
}


def alive(kind: type) -> int:
    """Return how many objects of a kind there are in the process."""
    gc.collect()
    return sum(type(each) is kind for each in gc.get_objects())


@pytest.mark.parametrize("case", ASKED)
def test_what_is_kept_does_not_grow_with_the_questions(case: str) -> None:
    model, kind, ask = ASKED[case]
    explainer, before = mace.Explainer(model, SPACE, outside="keep"), alive(kind)
    answers = [ask(explainer, k) for k in range(QUESTIONS)]
    assert all(answers)
    answers.clear()
    assert 0 < alive(kind) - before <= MOST


@pytest.mark.parametrize("case", ASKED)
def test_answers_are_the_same_after_something_was_forgotten(case: str) -> None:
    model, _, ask = ASKED[case]
    used = mace.Explainer(model, SPACE, outside="keep")
    for _ in range(2):
        for k in range(0, QUESTIONS, 3):
            found, fresh = (ask(each, k) for each in (used, mace.Explainer(model, SPACE, outside="keep")))
            assert [(each.values, each.distance, each.lower) for each in found] == [
                (each.values, each.distance, each.lower) for each in fresh
            ]


def test_near_data_keeps_its_rows_for_few_spaces() -> None:
    constraint = mace.near_data(X.iloc[:50], k=1, radius=0.3)
    explainer, sizes = mace.Explainer(FOREST, SPACE, outside="keep"), set()
    for k in range(QUESTIONS):
        assert explainer.explain({"a": 101 + k, "b": 5}, 1, constraints=[constraint])
        sizes.add(len(pickle.dumps(constraint)))
    assert 0 < len(constraint._points) <= MOST
    assert len(sizes) == 1


def test_what_was_put_in_first_is_forgotten_first() -> None:
    kept: Recent[str, int] = Recent(2)
    assert [kept.put(name, number) for number, name in enumerate("abc")] == [0, 1, 2]
    assert [kept.get(name) for name in "abc"] == [None, 1, 2]
    assert kept.put("b", 5) == 5
    assert (kept.get("b"), kept.get("c"), len(kept)) == (5, 2, 2)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda kept: pickle.loads(pickle.dumps(kept))])
def test_copies_are_empty_and_keep_as_much(copied: Any) -> None:
    kept: Recent[int, int] = Recent(3)
    kept.put(1, 1)
    other = copied(kept)
    assert (len(other), other.most) == (0, 3)


def test_threads_get_back_what_they_put_in() -> None:
    kept: Recent[int, int] = Recent(2)

    def ask(number: int) -> bool:
        key = number % 7
        found = kept.get(key)
        return (kept.put(key, key) if found is None else found) == key

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(ask, range(2000)))
    assert len(kept) == 2
