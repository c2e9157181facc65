"""The checker's own models over actions: they say of actions what the real ones say of the rows that these lead to."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from estimators import small
from sklearn.ensemble import IsolationForest
from sklearn.pipeline import make_pipeline

import mace
from mace.certify.effects.actions import about_actions, linear_pieces
from mace.certify.effects.models import over_actions
from mace.certify.verdict import Refuted
from mace.constraints.causal import effects_of
from mace.constraints.condition import GuardCondition
from mace.constraints.typical import Usual
from mace.distances import as_distance, point_values
from mace.forms import Network, Outcomes, TreeEnsemble
from mace.models import read
from mace.problem import Problem
from mace.space import Point

SPACE = mace.FeatureSpace(
    {
        "a": mace.real(-3, 9),
        "n": mace.integer(0, 12),
        "k": mace.categorical(["x", "y", "z"]),
        "e": mace.real(-40, 40),
        "f": mace.real(-60, 60),
        "w": mace.integer(-9, 9),
    }
)
FACTUAL: Point = (1.3, 4, 1, 2.7, -8.1, 3)

EQUATIONS = {
    "rising": {"e": "0.3 * a + 0.1"},
    "falling": {"e": "-1.7 * n"},
    "chain": {"e": "2 * a", "f": "7 - 0.3 * e"},
    "table": {"e": "5 if k == 'x' else -3"},
    "levels": {"e": "min(a, 2)", "f": "3 * max(e, 0) - 1"},
    "whole": {"w": "0.4 * n"},
    "constant": {"e": "4", "f": "e + a"},
    "sums": {"e": "a + 0.7 * n", "f": "0.1 * e - a"},
}
SUMS = ("rising", "falling", "chain", "table", "constant", "sums")

RULES = [
    "e <= 3.5",
    "not (e > 4 and f < -9)",
    "2 * e - a <= 6",
    "at most 3 features change",
    "e != 2",
    "f + e >= a - 20",
]


@cache
def fitted(kind: str) -> Any:
    rng = np.random.default_rng(0)
    rows = [random_point(rng) for _ in range(200)]
    frame = SPACE.frame_of(rows)
    labels = np.array([int((e or 0) + 0.4 * (f or 0) + (a or 0) > 0) for a, _, _, e, f, _ in rows])
    return make_pipeline(mace.Encoder(SPACE), small(kind)).fit(frame, labels)


def random_point(rng: np.random.Generator) -> Point:
    values: list[Any] = []
    for feature in SPACE.values():
        if feature.size is not None:
            k = int(rng.integers(feature.size))
            values.append(k if hasattr(feature, "levels") else feature.value_at(k))
        else:
            values.append(float(rng.uniform(feature.low, feature.high)))
    return tuple(values)


def question(model: Any, equations: dict[str, str], *constraints: Any) -> Problem:
    """Return the question about actions in which every effect follows."""
    reading = read(model, SPACE)
    conditions = tuple(
        mace.rule(each).bind(SPACE, FACTUAL) if isinstance(each, str) else each.bind(SPACE, FACTUAL)
        for each in constraints
    )
    metric = as_distance("l1").from_factual(SPACE, FACTUAL)
    problem = Problem(SPACE, reading.form, reading.ask, Outcomes(frozenset([Fraction(1)])), FACTUAL, metric, conditions)
    effects = next(iter(effects_of(mace.Causal(equations).programs(SPACE), SPACE, FACTUAL)))
    return about_actions(problem, effects, ())


def actions(asked: Problem, count: int = 300) -> list[Point]:
    """Return random actions that leave effects where they are; and some about the values where floats matter."""
    rng = np.random.default_rng(1)
    form: Any = asked.form
    follow = {SPACE.index(equation.name) for equation in form.effects.equations}
    made = []
    for _ in range(count):
        drawn = random_point(rng)
        made.append(tuple(FACTUAL[j] if j in follow else value for j, value in enumerate(drawn)))
    return made


@pytest.mark.parametrize("name", [name for name in EQUATIONS if name != "sums"])
def test_trees_over_actions_reach_the_leaves_of_the_rows(name: str) -> None:
    asked = question(fitted("forest"), EQUATIONS[name])
    form: Any = asked.form
    plain = over_actions(asked).form
    assert isinstance(plain, TreeEnsemble)
    points = actions(asked)
    # On both sides of every edge of the plain trees, too.
    for edge in np.unique(plain.edge[plain.left >= 0])[::7]:
        for at in (edge, np.nextafter(edge, np.inf)):
            points += [(float(at), *points[0][1:])] if -3 <= at <= 9 else []
    rows = [form.effects.row(point) for point in points]
    assert (plain.leaves(points) == form.inner.leaves(rows)).all()


def test_trees_whose_effects_have_several_causes_are_refused() -> None:
    asked = question(fitted("forest"), EQUATIONS["sums"])
    with pytest.raises(Refuted, match="cannot be taken into the model"):
        over_actions(asked)


@pytest.mark.parametrize("name", SUMS)
@pytest.mark.parametrize("kind", ["linear", "network"])
def test_networks_over_actions_score_the_rows_up_to_their_slack(name: str, kind: str) -> None:
    asked = question(fitted(kind), EQUATIONS[name])
    form: Any = asked.form
    made = over_actions(asked)
    assert isinstance(made.form, Network)
    slack = made.goal.slack - asked.goal.slack
    assert 0 < slack < Fraction(1, 10**9)
    for point in actions(asked, 100):
        row = form.effects.row(point)
        if form.effects.in_ranges(row):
            theirs, ours = form.inner.exact_scores(row), made.form.exact_scores(point)
            assert all(abs(a - b) <= slack for a, b in zip(theirs, ours, strict=True))


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", SUMS)
def test_conditions_on_actions_follow_from_those_on_rows(name: str, rule: str) -> None:
    asked = question(fitted("linear"), EQUATIONS[name], rule)
    made = over_actions(asked)
    added = [each for each in made.conditions[len(asked.conditions) :] if isinstance(each, GuardCondition)]
    assert added
    kept = 0
    for point in actions(asked):
        values = point_values(SPACE, point)
        if all(condition.holds(values) for condition in asked.conditions):
            kept += 1
            assert all(condition.holds(values) for condition in added)
        else:
            # What is left out is decided by the conditions themselves, which stay.
            assert not made.is_plausible(point)
    assert kept


@pytest.mark.slow
def test_a_forest_over_actions_is_asked_about_rows() -> None:
    rng = np.random.default_rng(5)
    frame = SPACE.frame_of([random_point(rng) for _ in range(100)])
    forest = make_pipeline(mace.Encoder(SPACE), IsolationForest(n_estimators=5, contamination=0.4, random_state=0)).fit(
        pd.DataFrame(frame)
    )
    asked = question(fitted("forest"), EQUATIONS["chain"], mace.typical(forest))
    (usual,) = (each for each in over_actions(asked).conditions if isinstance(each, Usual))
    form: Any = asked.form
    for point in actions(asked, 100):
        row = form.effects.row(point)
        assert usual.holds(point_values(SPACE, point)) == (forest.predict(SPACE.frame_of([row]))[0] == 1)
        assert usual.form.leaves([point]).tolist() == read(forest, SPACE).form.leaves([row]).tolist()


def test_exactly_one_piece_holds_of_a_row_and_has_its_effects() -> None:
    asked = question(fitted("linear"), EQUATIONS["levels"])
    form: Any = asked.form
    parts = linear_pieces(form.effects)
    assert parts is not None
    for point in actions(asked, 100):
        values = point_values(SPACE, point)
        holding = [
            piece for where, piece in parts if where.holds(values) and piece.row(point) == form.effects.row(point)
        ]
        assert len(holding) == 1
