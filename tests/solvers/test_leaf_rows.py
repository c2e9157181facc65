"""Rows of the goal that a single tree shows at once, beside the levers that a search proves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

import mace
from mace.answer.question import Question
from mace.problem import Problem
from mace.solvers import choose, trees
from mace.solvers.choose import is_lane_for

SPACE = mace.FeatureSpace(
    {
        "age": mace.integer(18, 40),
        "debt": mace.real(0, 1),
        "home": mace.categorical(["own", "rent", "none"]),
        "gap": mace.real(0, 5, missing=True),
        "school": mace.ordinal(["some", "high", "degree"]),
    }
)


def asked(seed: int, model: Any, constraints: list[Any]) -> tuple[mace.Explainer, dict[str, Any], Problem]:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 41, 300),
            "debt": rng.uniform(0, 1, 300),
            "home": rng.choice(["own", "rent", "none"], 300),
            "gap": np.where(rng.random(300) < 0.3, np.nan, rng.uniform(0, 5, 300)),
            "school": rng.choice(["some", "high", "degree"], 300),
        }
    )
    score = frame.age / 20 - 2 * frame.debt + (frame.home == "own") + frame.gap.fillna(3) / 5 + (frame.school == "high")
    fitted = make_pipeline(mace.Encoder(SPACE), model).fit(frame, score > score.median())
    explainer, row = mace.Explainer(fitted, SPACE), frame[~fitted.predict(frame)].iloc[seed].to_dict()
    question = Question(SPACE, True, "l0", constraints=constraints, classes=(False, True))
    return explainer, row, explainer._problem(row, question)[0]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("rule", [None, "age stays", "home in ['rent', 'none']"])
def test_rows_of_leaves_change_what_the_smallest_levers_do(seed: int, rule: str | None) -> None:
    rules = [mace.rule(rule)] if rule else []
    explainer, row, problem = asked(seed, DecisionTreeClassifier(max_depth=5, random_state=seed), rules)
    rows = trees.likely_rows(problem)
    assert problem.reaching(rows) == rows
    changed = [
        frozenset(name for name, new, old in zip(SPACE, each, problem.factual, strict=True) if new != old)
        for each in rows
    ]
    reasons = explainer.reasons(row, True, rules, ranges=False, count=1000)
    levers = {frozenset(names) for names in reasons.levers}
    assert reasons.complete
    if problem.is_plausible(problem.factual):
        assert all(any(lever <= each for lever in levers) for each in changed)
        assert not any(a < b for a in changed for b in changed)
        assert {each for each in levers if "gap" not in each} <= set(changed)


def test_a_forest_shows_none() -> None:
    assert trees.likely_rows(asked(0, RandomForestClassifier(3, random_state=0), [])[2]) == []


def test_the_lane_of_a_problem_is_kept_only_where_it_would_be_chosen_again() -> None:
    _, _, problem = asked(0, RandomForestClassifier(3, random_state=0), [])
    lane = choose("auto", problem)
    kept = mace.fixed("age", "home").bind(SPACE, problem.factual)
    across = mace.rule("if age changes then debt changes").bind(SPACE, problem.factual)
    noise = mace.robust({"age": 1}).bind(SPACE, problem.factual)
    assert is_lane_for(lane, "auto", SPACE, [kept])
    assert not is_lane_for(lane, "smt", SPACE, [kept])
    assert not is_lane_for(lane, "auto", SPACE, [kept, across])
    assert not is_lane_for(lane, "auto", SPACE, [noise])
    assert not is_lane_for(choose("smt", problem), "auto", SPACE, [kept])
