"""The search in floats for refused rows within the noise of a point, and for points near one that is undone that stand the noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_networks import real_network
from scipy.optimize import linprog
from sklearn.neural_network import MLPClassifier

import mace
from mace.forms import Interval, Network
from mace.forms.form import box_at
from mace.forms.scoring import column_values
from mace.problem import Problem
from mace.reductions.shifted_network import float_clearance
from mace.solvers.robust.attack import WorstRows
from mace.solvers.robust.incumbent import foreseeing
from mace.solvers.robust.program import cheapest_point
from mace.space import Point, Real

RADIUS = 0.2
SEEDS = [seed for seed in range(18) if seed % 6 != 4]  # not the narrower floats, of which a grid of float64 says little


def searched(seed: int) -> tuple[Problem, WorstRows, Any]:
    """Return a question without its noise, the search for refused rows, and the margins of points moved along the noise."""
    problem = real_network(seed).problem
    noise = mace.robust({"real_0": RADIUS}).bind(problem.space, problem.factual)
    form = problem.form
    assert isinstance(form, Network)

    def margins(point: Point, values: Any) -> Any:
        columns = column_values(form.columns, [(float(value), *point[1:]) for value in values])
        return float_clearance(form.float_scores(columns), form.alternatives(problem.goal))

    return problem, WorstRows(problem, noise), margins  # type: ignore[arg-type]


def points(problem: Problem, seed: int) -> list[Point]:
    rng = np.random.default_rng(seed)
    return [
        tuple(float(v) if isinstance(v, float) else v for v in (*rng.uniform(-1, 1, n), *problem.factual[n:]))
        for n in [sum(name.startswith("real") for name in problem.space)] * 6
    ]


def along(point: Point) -> Any:
    """Return many values that noise makes of a point's first number."""
    at = float(point[0])  # type: ignore[arg-type]
    return np.linspace(max(at - RADIUS, -1), min(at + RADIUS, 1), 4001)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_row_of_a_fine_grid_is_worse_than_the_worst_that_is_found(seed: int) -> None:
    problem, search, margins = searched(seed)
    for point in points(problem, seed):
        (worst, margin), least = search._worst(point, search._reach(point)), margins(point, along(point)).min()
        assert margin <= least + 1e-9 * (1 + abs(least))
        assert worst[1:] == point[1:]
        assert margin == pytest.approx(float(margins(point, [worst[0]])[0]))
        assert (search.near(point) is None) == (margin >= -search.grain)


def test_the_slopes_of_the_deepest_valley_say_how_it_changes_with_the_point() -> None:
    agreed, count = 0, 0
    for seed in SEEDS:
        problem, search, _ = searched(seed)
        rng = np.random.default_rng(seed)
        for point in points(problem, seed):
            valley = min(search._valleys(point), key=lambda each: each.margin)
            step = 1e-6 * rng.normal(size=len(point)) * [isinstance(value, float) for value in point]
            moved = tuple(a + b if b else a for a, b in zip(point, step.tolist(), strict=True))  # type: ignore[operator]
            before, after = (search._worst(each, search._reach(each))[1] for each in (point, moved))
            room = 1e-2 * float(np.abs(valley.slopes * step).sum())
            agreed += abs(after - before - float(valley.slopes @ step)) <= room
            count += 1
    assert agreed > 0.85 * count  # a step may cross a kink


def test_repaired_points_stand_every_row_of_a_fine_grid_and_many_points_can_be_repaired() -> None:
    repaired = 0
    for seed in SEEDS:
        problem, search, margins = searched(seed)
        for point in points(problem, seed):
            found = search.repaired(problem, point)
            if found is None:
                continue
            repaired += 1
            near, valleys = found
            assert problem.is_plausible(near)
            assert margins(near, along(near)).min() > 0
            assert all(each.margin >= 0 for each in valleys)
    assert repaired > 30


def test_robust_answers_over_reals_are_proved_checked_and_no_nearer_point_stands_the_noise() -> None:
    rng = np.random.default_rng(1)
    space = mace.FeatureSpace({"a": mace.real(0, 10), "b": mace.real(-1, 1), "c": mace.real(0, 1)})
    frame = pd.DataFrame({"a": rng.uniform(0, 10, 400), "b": rng.uniform(-1, 1, 400), "c": rng.uniform(0, 1, 400)})
    labels = (np.sin(frame.a) + 2 * frame.b + frame.c > 0.5).astype(int)
    model = MLPClassifier((8,), solver="lbfgs", max_iter=60, random_state=0).fit(frame, labels)
    explainer, proved = mace.Explainer(model, space), 0
    for row in [row for row in frame.to_dict("records") if explainer.predict(row) == 0][:3]:
        answer = explainer.explain(row, target=1, constraints=[mace.robust({"a": 0.8})], certify=True)
        again = explainer.explain(row, target=1, constraints=[mace.robust({"a": 0.8})])
        assert (answer.status, answer.lower) == (again.status, again.lower)
        if not len(answer):
            continue
        proved += answer.status == "optimal"
        assert answer[0].values == again[0].values
        certificate = answer[0].certificate
        assert certificate is not None
        assert str(mace.verify(certificate, model)) == "valid"
        points = rng.dirichlet(np.ones(4), 3000)[:, :3] * 3 * answer.lower * rng.choice([-1.0, 1.0], (3000, 3))
        near = frame.iloc[:0].copy()
        for j, (name, feature) in enumerate(space.items()):
            assert isinstance(feature, Real)
            near[name] = np.clip(row[name] + points[:, j] * float(feature.range), feature.low, feature.high)
        stands = np.ones(len(near), dtype=bool)
        for by in np.linspace(-0.8, 0.8, 33):
            stands &= model.predict(near.assign(a=np.clip(near.a + by, 0, 10))) == 1
        assert not stands.any()
    assert proved >= 2


def test_a_poor_repair_costs_time_and_makes_nothing_untrue(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    space = mace.FeatureSpace({"a": mace.real(0, 10), "b": mace.real(-1, 1)})
    frame = pd.DataFrame({"a": rng.uniform(0, 10, 300), "b": rng.uniform(-1, 1, 300)})
    model = MLPClassifier((5,), solver="lbfgs", max_iter=60, random_state=0)
    explainer = mace.Explainer(model.fit(frame, (np.sin(frame.a) + 2 * frame.b > 0.5).astype(int)), space)
    row = next(row for row in frame.to_dict("records") if explainer.predict(row) == 0)
    question: Any = {"target": 1, "constraints": [mace.robust({"a": 0.8})], "round_to": None}
    nearest = explainer.explain(row, **question)
    honest, poor = WorstRows.repaired, []

    def farther(self: WorstRows, problem: Problem, point: Point) -> Any:
        found = honest(self, problem, point)
        if found is None:
            return None
        pairs = zip(problem.space.values(), found[0], problem.factual, strict=True)
        far = tuple(min(max(old + 1.3 * (new - old), f.low), f.high) for f, new, old in pairs)  # type: ignore
        poor.append(far)
        return far, found[1]

    monkeypatch.setattr(WorstRows, "repaired", farther)
    answer = explainer.explain(row, **question)
    assert poor
    assert answer.status == nearest.status == "optimal"
    assert answer[0].distance == pytest.approx(nearest[0].distance, abs=2e-6)
    assert answer.lower <= nearest[0].distance


@pytest.mark.parametrize("seed", SEEDS[:6])
def test_on_the_way_the_model_is_asked_only_about_rows_that_rounding_decides(seed: int) -> None:
    problem = real_network(seed).problem
    assert isinstance(problem.form, Network)
    rng = np.random.default_rng(seed)
    rows = points(problem, seed)
    asked: list[Point] = []

    def model(about: Sequence[Point]) -> list[Fraction]:
        asked.extend(about)
        return [Fraction(7)] * len(about)

    wide = replace(problem.form, squash=Fraction(float(rng.choice([0, 1e9]))))
    for form in (problem.form, wide):
        foresees = foreseeing(replace(problem, form=form, ask=model))
        asked.clear()
        said = foresees.ask(rows)
        sure = [form.is_beyond_rounding(row, problem.goal, box_at(row)) for row in rows]
        assert all(is_sure or row in asked for row, is_sure in zip(rows, sure, strict=True))
        for row, outcome in zip(rows, said, strict=True):
            assert outcome == (7 if row in asked else form_says(form, row))
    assert asked == (rows if wide.squash else [])


def form_says(form: Network, row: Point) -> int:
    """Return the class that the exact scores of a row give it."""
    scores = form.exact_scores(row)
    return int(scores[0] > 0) if len(scores) == 1 else max(range(len(scores)), key=lambda k: scores[k])


def test_the_model_is_asked_about_everything_where_the_target_is_no_class() -> None:
    problem = replace(real_network(0).problem, goal=Interval(Fraction(0), None, 0, Fraction(0), None))
    assert foreseeing(problem) is problem


@given(st.data())
def test_the_cheapest_point_is_that_of_another_solver(data: st.DataObject) -> None:
    number = st.floats(-4, 4).map(lambda value: round(value, 3))
    columns, rows = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 4))
    cost = np.array(data.draw(st.lists(number, min_size=columns, max_size=columns)))
    matrix = np.array([data.draw(st.lists(number, min_size=columns, max_size=columns)) for _ in range(rows)])
    limits = np.array(data.draw(st.lists(number, min_size=rows, max_size=rows)))
    high = np.array(data.draw(st.lists(st.floats(0, 3), min_size=columns, max_size=columns)))
    found = cheapest_point(cost, matrix, limits, high)
    other = linprog(cost, matrix, limits, bounds=[(0, end) for end in high])
    assert (found is None) == (other.status != 0)
    if found is not None:
        assert float(cost @ found) == pytest.approx(other.fun, abs=1e-6)
        assert (matrix @ found <= limits + 1e-6).all()
        assert (found >= -1e-9).all()
        assert (found <= high + 1e-9).all()
