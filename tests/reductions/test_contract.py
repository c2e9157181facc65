"""Every reduction keeps its promise: on small finite spaces the answers of both questions are compared row by row."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from problems import problem_of
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline

import mace
from mace.constraints.causal import effects_of
from mace.constraints.robust import RobustCondition
from mace.forms import Composite, Curved, Margin, Polyline, Stated, Weighted
from mace.problem import Problem
from mace.reductions import REDUCTIONS, Relation
from mace.reductions.actions import at_levels, in_pieces, through
from mace.reductions.effects import over_actions
from mace.reductions.joint_forest import joined
from mace.reductions.noise_box import inside
from mace.reductions.polylines import lowered
from mace.reductions.regions import whole_region
from mace.reductions.shifted_network import STAY, Move, shifted
from mace.reductions.tree_copies import Copies, NoCopies, Place, cell
from mace.registry import resolve
from mace.solvers.network.parts import network_of
from mace.space import Point

SPACE = mace.FeatureSpace({"a": mace.integer(0, 6), "b": mace.integer(0, 6), "c": mace.categorical(["x", "y", "z"])})
NUMBERS = mace.FeatureSpace({"a": mace.integer(0, 8), "b": mace.integer(0, 8)})

Rows = set[Point]
Case = tuple[Problem, Rows, Rows]
"""The new question, the rows that it is about, and the answers of the first among them."""


def rows_of(problem: Problem) -> list[Point]:
    return list(itertools.product(*(range(feature.size) for feature in problem.space.values())))


def answers(problem: Problem, rows: Iterable[Point]) -> Rows:
    plausible = [row for row in rows if problem.is_plausible(row)]
    return {
        row for row, outcome in zip(plausible, problem.ask(plausible), strict=True) if problem.goal.accepts(outcome)
    }


def may_answer(problem: Problem, rows: Iterable[Point]) -> Rows:
    """Return the rows that the form of a question, with its band, lets reach the goal: what a lane must look at."""
    form, goal = problem.form, problem.goal
    found = set()
    for row in rows:
        if not problem.is_plausible(row):
            continue
        scores = form.exact_scores(row)
        own = tuple((Fraction(value), Fraction(value)) for value in row)
        room = goal.slack + (form.band(goal) if hasattr(form, "band") else form.rounding(own))
        alternatives = goal.alternatives(len(scores), ties_last=form.ties_last)
        if any(all(margin.value(scores) + room >= 0 for margin in margins) for margins in alternatives):
            found.add(row)
    return found


def explainer_of(
    seed: int, kind: str, space: mace.FeatureSpace = NUMBERS
) -> tuple[mace.Explainer, np.random.Generator]:
    rng = np.random.default_rng(seed)
    points = [tuple(int(rng.integers(feature.size)) for feature in space.values()) for _ in range(200)]
    frame = space.frame_of(points)
    sums = np.array(points) @ rng.normal(1, 1, len(space)) + rng.normal(0, 1, 200)
    # Every second seed has three classes: margins are differences of outputs then, and not a sign.
    labels = np.digitize(sums, np.quantile(sums, [0.4, 0.7] if seed % 4 > 1 else [0.5]))
    model = {
        "forest": RandomForestClassifier(5, max_depth=4, random_state=seed),
        "linear": LogisticRegression(),
        "network": MLPClassifier((4,), max_iter=100, random_state=seed),
    }[kind]
    if any(hasattr(feature, "levels") for feature in space.values()):
        model = make_pipeline(mace.Encoder(space), model)
    return mace.Explainer(model.fit(frame, labels), space), rng


def joint_forest(seed: int) -> Iterator[Case]:
    explainer, rng = explainer_of(seed, "forest", SPACE)
    frame = SPACE.frame_of([tuple(int(rng.integers(feature.size)) for feature in SPACE.values()) for _ in range(60)])
    first = problem_of(explainer, {"a": 1, "b": 1, "c": "x"}, {"constraints": [mace.typical(frame, 0.2)]})
    yield joined(first), set(rows_of(first)), answers(first, rows_of(first))


def box(seed: int) -> Iterator[Case]:
    explainer, rng = explainer_of(seed, "forest", SPACE)
    first = problem_of(explainer, {"a": 1, "b": 1, "c": "x"}, {})
    low, high = sorted(int(v) for v in rng.integers(0, 7, 2))
    region = whole_region(first.space, first.factual)
    region["a"] = region["a"].between(Fraction(low), Fraction(high))
    yield (
        inside(first, region),
        set(rows_of(first)),
        {row for row in answers(first, rows_of(first)) if low <= row[0] <= high},
    )


def actions(seed: int) -> Iterator[tuple[Problem, Problem]]:
    explainer, rng = explainer_of(seed, ("forest", "linear", "network")[seed % 3])
    causal = mace.Causal({"b": f"lambda x: {float(rng.choice([0.5, -0.5, 1.0]))} * x.a"})
    first = problem_of(explainer, {"a": 2, "b": 3}, {})
    for effects in effects_of(causal.programs(NUMBERS), NUMBERS, first.factual):
        if effects.equations:
            yield first, through(first, effects)


def questions_of_actions(seed: int) -> Iterator[Case]:
    for first, asked in actions(seed):
        effects = asked.form.effects
        own = first.factual[1]
        acted = [row for row in rows_of(first) if row[1] == own]
        led = {row: effects.row(row) for row in acted}
        reached = answers(first, [row for row in led.values() if effects.in_ranges(row)])
        yield asked, set(rows_of(first)), {row for row in acted if led[row] in reached}


def effects_in_models(seed: int) -> Iterator[Case]:
    for first, asked in actions(seed):
        plain = over_actions(asked)
        if plain is not None:
            yield plain, set(rows_of(first)), answers(asked, rows_of(first))


def causal_question(seed: int, equation: str) -> Iterator[tuple[Problem, Problem]]:
    explainer, _ = explainer_of(seed, ("forest", "linear", "network")[seed % 3])
    first = problem_of(explainer, {"a": 2, "b": 3}, {})
    for effects in effects_of(mace.Causal({"b": equation}).programs(NUMBERS), NUMBERS, first.factual):
        if effects.equations:
            yield first, through(first, effects)


def pieces_of_equations(seed: int) -> Iterator[Case]:
    for first, whole in causal_question(seed, f"abs(a - {seed % 4 + 2})"):
        parts = in_pieces(first, whole.form.effects)
        rows = rows_of(first)
        for row in rows:
            assert sum(part.is_plausible(row) for part in parts) == whole.is_plausible(row)
        for part in parts:
            yield part, set(rows), answers(whole, [row for row in rows if part.is_plausible(row)])


def levels_of_causes(seed: int) -> Iterator[Case]:
    for first, whole in causal_question(seed, "a if a > 4 else 8 - a"):
        for level in (seed % 9, (seed + 4) % 9):
            made = at_levels(first, whole.form.effects, {"a": level})
            yield made, set(rows_of(first)), {row for row in answers(whole, rows_of(first)) if row[0] == level}


def networks_of_polylines(seed: int) -> Iterator[Case]:
    """Two networks, the score of one through a polyline; what is asked is exact."""
    explainer, _ = explainer_of(seed - seed % 4, "network")
    first = problem_of(explainer, {"a": 1, "b": 1}, {})
    form, rng = first.form, np.random.default_rng(seed)
    curve = Polyline((-2.0, -1.0, 0.5), tuple(map(float, rng.integers(-8, 9, 3) / 4)))
    parts = (Weighted(form, np.array([[0.5]])), Curved(form, curve, np.array([float(rng.choice([-1.5, 0.75]))])))
    whole = Composite(NUMBERS, parts, np.array([float(rng.normal())]))

    def ask(points: Iterable[Point]) -> list[Fraction]:
        return [Fraction(whole.exact_scores(point)[0] >= 0) for point in points]

    first = replace(first, form=whole, ask=ask, goal=Stated(((Margin(0, None),),)))
    yield replace(first, form=lowered(whole)), set(rows_of(first)), answers(first, rows_of(first))


def robust_rows(first: Problem, radius: int) -> Rows:
    reached = answers(first, rows_of(first))
    moves = range(-radius, radius + 1)
    return {
        (a, b) for a, b in reached
        if all((a + step, b) in reached for step in moves if 0 <= a + step <= 8)
    }  # fmt: skip


def shifted_networks(seed: int) -> Iterator[Case]:
    explainer, _ = explainer_of(seed, ("linear", "network")[seed % 2])
    first = problem_of(explainer, {"a": 1, "b": 1}, {})
    for step in (-1, 1):
        rows = {row for row in rows_of(first) if 0 <= row[0] + step <= 8}
        moves = [(STAY, STAY), (Move(Fraction(step)), STAY)]
        yield shifted(first, moves), rows, robust_rows(first, 1) & rows


def copies_of_trees(seed: int) -> Iterator[Case]:
    explainer, rng = explainer_of(seed, "forest")
    first = problem_of(explainer, {"a": 1, "b": 1}, {})
    noise = RobustCondition(NUMBERS, {"a": Fraction(1)})
    low, high = cell(first.form, 0, float(rng.integers(9)))
    place = Place((0,), ((int(np.ceil(low)), int(np.floor(high))),))
    try:
        yield Copies(first, noise).at([place]), set(rows_of(first)), robust_rows(first, 1)
    except NoCopies:
        return


def test_a_margin_that_is_moved_is_over_outputs_so_many_places_later() -> None:
    margin = Margin(0, 1, shift=Fraction(1, 2), strict=True, slack=Fraction(1, 8))
    assert margin.moved(3) == replace(margin, plus=3, minus=4)
    assert margin.moved(3, 5) == replace(margin, plus=3, minus=6)
    assert Margin(None, 1).moved(2) == Margin(None, 3)


CASES: dict[str, Callable[[int], Iterator[Case]]] = {
    "mace.reductions.joint_forest:joined": joint_forest,
    "mace.reductions.noise_box:inside": box,
    "mace.reductions.actions:through": questions_of_actions,
    "mace.reductions.actions:in_pieces": pieces_of_equations,
    "mace.reductions.actions:at_levels": levels_of_causes,
    "mace.reductions.effects:over_actions": effects_in_models,
    "mace.reductions.polylines:lowered": networks_of_polylines,
    "mace.reductions.shifted_network:shifted": shifted_networks,
    "mace.reductions.tree_copies:Copies": copies_of_trees,
}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_a_reduction_has_the_answers_that_it_promises(name: str) -> None:
    seen = 0
    for seed in range(60):
        if seen >= 12:
            break
        for made, rows, first in CASES[name](seed):
            mine = answers(made, rows)
            if REDUCTIONS[name].relation is Relation.RELAXATION:
                assert first <= mine
            else:
                assert first == mine
            if hasattr(made.form, "exact_scores"):
                assert mine <= may_answer(made, rows), "the form misses answers of the real model"
            seen += bool(first)
    assert seen >= 6, "the problems are too hard to tell anything"


@pytest.mark.parametrize("name", REDUCTIONS)
def test_the_checker_has_a_derivation_of_its_own(name: str) -> None:
    ours, checkers = resolve(name), resolve(REDUCTIONS[name].derived)
    assert ours.__module__.startswith("mace.reductions.")
    assert checkers.__module__.startswith("mace.certify.")


@pytest.mark.parametrize("name", REDUCTIONS)
def test_row_and_distance_stay(name: str) -> None:
    for made, rows, _ in CASES[name](3):
        assert made.metric.measure(made.factual) == 0
        assert made.factual in rows or made.factual in set(rows_of(made))


def test_the_network_of_a_missingness_pattern_has_the_scores_of_rows_in_which_these_values_are_missing() -> None:
    space = mace.FeatureSpace({"a": mace.integer(0, 4, missing=True), "b": mace.integer(0, 4, missing=True)})
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.integers(0, 5, (80, 2)).astype(float), columns=list(space))
    frame = frame.mask(rng.random(frame.shape) < 0.2)
    imputer = SimpleImputer(add_indicator=True)
    model = make_pipeline(imputer, MLPClassifier((3,), max_iter=100, random_state=0))
    problem = problem_of(
        mace.Explainer(model.fit(frame, (frame.sum(axis=1) > 4).astype(int)), space), {"a": None, "b": 1}, {}
    )
    for pattern in itertools.product([False, True], repeat=2):
        network = network_of(problem.form, np.array(pattern))
        for numbers in itertools.product(range(5), repeat=2):
            row = tuple(None if lost else number for lost, number in zip(pattern, numbers, strict=True))
            inner = tuple(1 if lost else number for lost, number in zip(pattern, numbers, strict=True))
            assert network.exact_scores(inner) == problem.form.exact_scores(row)
