"""Lists of leaves that are tested only in what has changed of their box are those of leaves tested in everything."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from random_ensembles import random_ensemble
from sklearn.datasets import make_classification
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from tiers import interpreted

import mace
from mace.solvers.compiled import _interpreted
from mace.solvers.trees import kernels

NAMES = ["a", "b", "c", "d"]


def watch_lists(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Have every list that is filtered quickly be filtered in full as well; return whether each was, as the search goes on."""
    names = _interpreted("mace.solvers.trees.kernels")
    filter_leaves, was_quick = names["filter_leaves_sorted"], []

    def lists(d: int, stack: Any) -> list[Any]:
        spans = zip(stack.first[d, : stack.active[d]], stack.last[d, : stack.active[d]], strict=True)
        return [stack.const[d].tolist(), *(stack.arena[first:last].tolist() for first, last in spans)]

    def both(
        d: int, source: int, test: Any, moved: Any, leaves: Any, goal: Any, stack: Any, work: Any, totals: Any
    ) -> int:
        was_quick.append(len(moved) > 0)
        copy, other = type(stack)(*(each.copy() for each in stack)), np.empty_like(totals)
        room = type(work)(*(each.copy() for each in work))
        said = filter_leaves(d, source, test, moved, leaves, goal, stack, work, totals)
        assert filter_leaves(d, source, test, moved[:0], leaves, goal, copy, room, other) == said
        if said == names["OPEN"]:
            assert lists(d, stack) == lists(d, copy)
            assert totals.tolist() == other.tolist()
        return int(said)

    monkeypatch.setitem(names, "filter_leaves_sorted", both)
    return was_quick


@pytest.mark.parametrize("distance", ["l1", "linf", "l0", mace.Distance(l0=0.3, l1=0.4, linf=0.3)])
@pytest.mark.parametrize("boosted", [False, True])
def test_lists_over_real_features_are_the_same(distance: Any, boosted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = make_classification(300, 4, n_informative=4, n_redundant=0, flip_y=0.1, random_state=3)
    family = (
        GradientBoostingClassifier(n_estimators=12, random_state=0)
        if boosted
        else RandomForestClassifier(12, random_state=0)
    )
    model = family.fit(X, y)
    explainer = mace.Explainer(model, mace.FeatureSpace({name: mace.real(-6, 6) for name in NAMES}))
    with interpreted():
        was_quick = watch_lists(monkeypatch)
        for row in X[:4]:
            for more in ({}, {"constraints": [mace.changes_at_most(2)]}):
                explainer.explain(dict(zip(NAMES, row.tolist(), strict=True)), distance=distance, **more)
    assert sum(was_quick) > 10
    assert not all(was_quick)


def test_lists_over_features_of_every_kind_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    with interpreted():
        was_quick = watch_lists(monkeypatch)
        for seed in range(0, 120, 3):
            case = random_ensemble(seed, finite=bool(seed % 2))
            try:
                mace.Explainer(case.model, case.space).explain(case.row, **case.question)
            except mace.MaceError:
                continue
    assert sum(was_quick) > 20


def moved_after(change: str) -> list[int] | None:
    """Return the features that count as moved after a change of the box of a child; ``None`` where all has to be looked at."""
    stack = SimpleNamespace(
        lo=np.array([[0, 2, 0]] * 2), hi=np.array([[9, 5, 3]] * 2), mask=np.array([[0, 0, 0b111]] * 2),
        point=np.array([[4, 2, 0]] * 2), limit=np.array([1.0, 0.0]),
    )  # fmt: skip
    work, limit = SimpleNamespace(moved=np.zeros(3, np.int64)), 1.0
    match change:
        case "an end":
            stack.hi[1, 0] = 4
        case "two ends":
            stack.lo[1, 0], stack.hi[1, 1] = 1, 3
        case "the nearest point":
            stack.lo[1, 0] = stack.point[1, 0] = 5
        case "a level":
            stack.hi[1, 0], stack.mask[1, 2] = 4, 0b011
        case "the limit":
            stack.hi[1, 0], limit = 4, 0.9
    cells = SimpleNamespace(is_mask=np.array([False, False, True]))
    count = kernels.find_moved.interpret(1, 0, limit, cells, stack, work)
    return None if count < 0 else work.moved[:count].tolist()


def test_leaves_are_tested_in_everything_where_the_nearest_point_a_level_or_the_limit_has_changed() -> None:
    assert moved_after("an end") == [0]
    assert moved_after("two ends") == [0, 1]
    assert [moved_after(change) for change in ("the nearest point", "a level", "the limit")] == [None] * 3
