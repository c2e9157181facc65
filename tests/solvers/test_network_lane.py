"""The network lane: equal to brute force on finite spaces and to SMT on mixed ones; sound bounds; limits and faults."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from random_networks import DISTANCES, FAMILIES, asked, disagreement, random_network
from random_problems import random_case
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline

import mace
from mace import Explainer, FeatureSpace, categorical, integer, ordinal, real
from mace.answer.question import Question
from mace.constraints.condition import AtLeast, GuardCondition
from mace.distances import as_distance, distance_up
from mace.exact import UNIT
from mace.forms import Interval, Network, Outcomes
from mace.language.syntax import Binary, Compare, Constant, Program, Return, Variable
from mace.problem import Limits, Problem, Status
from mace.reductions.shifted_network import STAY, Move, shifted
from mace.solvers import enumerate as brute
from mace.solvers import network
from mace.solvers.abilities import obstacle
from mace.solvers.compiled import is_on_disk
from mace.solvers.compiling import is_marked
from mace.solvers.network import kernels, prepared
from mace.solvers.network.search import NetworkSearch
from mace.space import Column, Point

ROUNDS = len(FAMILIES) * len(DISTANCES)


@pytest.mark.parametrize("seed", range(2 * ROUNDS))
def test_it_equals_brute_force_on_random_finite_problems(seed: int) -> None:
    assert disagreement(random_network(seed), "enumerate") in (None, "skipped")


@pytest.mark.parametrize("seed", range(10_000, 10_000 + ROUNDS // 2))
def test_it_agrees_with_smt_on_random_mixed_problems(seed: int) -> None:
    assert disagreement(random_network(seed, finite=False), "smt", seconds=10) in (None, "skipped")


@pytest.mark.parametrize("seed", [k for k in range(120) if k % 9 in (4, 5, 6, 7)])
def test_it_equals_brute_force_through_the_explainer(seed: int) -> None:
    """Fitted scikit-learn models, with the final check of the explainer."""
    case = random_case(seed)
    explainer = Explainer(case.model, case.space)
    if isinstance(case.question["distance"], str) and case.question["distance"].startswith("lambda"):
        case.question["distance"] = "l1"
    try:
        truth = explainer.explain(case.row, solver="enumerate", **case.question)
    except mace.InvalidTarget:
        return
    if truth.status == "reached":
        return
    answer = explainer.explain(case.row, solver="network", **case.question)
    assert answer.status == truth.status
    assert [best.distance for best in answer] == pytest.approx([best.distance for best in truth], abs=1e-12)


# ---- the bounds, each against points drawn from the box and the ball


def opened(seed: int, limit: float) -> tuple[NetworkSearch, Any, kernels.CellBox] | None:
    """Return a search whose root box is clipped to a ball and propagated; ``None`` where nothing is left."""
    problem = replace(random_network(seed, finite=False).problem, conditions=())
    search = NetworkSearch(problem, Limits())
    margins = problem.goal.alternatives(len(search.form.biases[-1]), ties_last=False)[0]
    workspace = search.arrays.workspace(margins)
    assert not search.arrays.is_empty(workspace)
    if not kernels.clip(workspace.lo, workspace.hi, limit, workspace.task, workspace.work):
        return None
    box = kernels.open_box(workspace.lo, workspace.hi, search.made.net, workspace.task, workspace.work)
    kernels.propagate(limit, box, search.made.net, workspace.task, workspace.work)
    return search, workspace, box


def drawn(
    search: NetworkSearch, workspace: Any, limit: float, rng: np.random.Generator, count: int
) -> list[np.ndarray]:
    """Return points of the box within the ball, many of them at its edge."""
    points = []
    size = len(workspace.lo)
    for _ in range(count):
        v = np.array(
            [
                home if table else own
                for home, table, own in zip(
                    workspace.fields["nearest"], workspace.fields["is_table"], workspace.fields["own"], strict=True
                )
            ]
        )
        order = rng.permutation(size)
        for j in order[: int(rng.integers(1, size + 1))]:
            kept = v[j]
            if workspace.fields["is_table"][j]:
                v[j] = rng.integers(int(workspace.lo[j]), int(workspace.hi[j]) + 1)
            else:
                end = rng.choice([workspace.lo[j], workspace.hi[j], rng.uniform(workspace.lo[j], workspace.hi[j])])
                v[j] = kernels.snap_down(j, end, workspace.task)
            if kernels.cost_of(v, workspace.task) > limit:
                v[j] = kept
        points.append(v)
    return points


def exact_units(form: Network, point: Point) -> list[list[Fraction]]:
    """Return the exact pre-activations of every layer."""
    layers = []
    for k in range(len(form.weights)):
        part = replace(
            form, weights=form.weights[: k + 1], biases=form.biases[: k + 1], slopes=form.slopes[:k], sizes=None
        )
        layers.append(list(part.exact_scores(point)))
    return layers


@pytest.mark.parametrize("limit", [0.02, 0.1, 0.4])
@pytest.mark.parametrize("seed", range(0, ROUNDS, 2))
def test_no_point_of_the_ball_escapes_the_bounds_on_units_and_rows(seed: int, limit: float) -> None:
    made = opened(seed, limit)
    if made is None:
        return
    search, workspace, box = made
    work, task, net = workspace.work, workspace.task, search.made.net
    form = search.form
    depth = len(form.weights) - 1
    rng = np.random.default_rng(seed)
    points = drawn(search, workspace, limit, rng, 25)
    units = [exact_units(form, search.arrays.point(v, workspace)) for v in points]
    for k in range(depth):
        for i in range(len(form.biases[k])):
            for layers in units:
                assert (
                    Fraction(workspace.scratch["low"][k, i])
                    <= layers[k][i]
                    <= Fraction(workspace.scratch["high"][k, i])
                )
    margins = search.problem.goal.alternatives(len(form.biases[-1]), ties_last=False)[0]
    for r, margin in enumerate(margins):
        for mode in (kernels.ADAPTIVE, kernels.LOCAL):
            kernels.judge(points[0], net, task, work)
            value, error, _ = kernels.bound_row(r, mode, box, net, task, work)
            gains = workspace.scratch["rows"][r, : box.columns].copy()
            bound = Fraction(value + kernels.most_gain(gains, limit, box, task, work) + error)
            values = [margin.value(layers[depth]) for layers in units]
            assert max(values) <= bound
            for v, reached in zip(points, values, strict=True):
                need = float(reached) - value - error
                least = kernels.least_cost(gains, need, limit, 1e-15, box, task, work)
                assert least <= kernels.cost_of(v, task) * (1 + 1e-12) + 1e-15


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_the_band_covers_what_the_deployed_arithmetic_does(seed: int) -> None:
    """At drawn points, float32 and float64 scores stay within the error of the point and of the box."""
    made = opened(seed, 0.3)
    if made is None:
        return
    search, workspace, _ = made
    form, depth = search.form, len(search.form.weights) - 1
    dtype = np.float64 if form.unit == UNIT else np.float32
    whole = [float(e) for e in workspace.scratch["error"][depth, : len(form.biases[-1])]]
    for v in drawn(search, workspace, 0.3, np.random.default_rng(seed), 10):
        point = search.arrays.point(v, workspace)
        exact = form.exact_scores(point)
        kernels.judge(v, search.made.net, workspace.task, workspace.work)
        here = workspace.scratch["point_error"][depth]
        regressor = replace(form, is_regressor=True, biases=form.biases)
        for i, score in enumerate(exact):
            single = replace(
                regressor,
                weights=(*form.weights[:-1], form.weights[-1][i : i + 1]),
                biases=(*form.biases[:-1], form.biases[-1][i : i + 1]),
            )
            deployed = asked(single)([point])[0]
            assert abs(deployed - score) <= Fraction(float(here[i]))
            assert float(here[i]) <= whole[i] * (1 + 1e-9)
    assert dtype in (np.float32, np.float64)


def test_a_verdict_of_sure_or_no_is_what_the_deployed_arithmetic_says() -> None:
    for seed in range(0, 4 * ROUNDS, 3):
        made = opened(seed, 1.0)
        if made is None:
            continue
        search, workspace, _ = made
        problem = search.problem
        if len(problem.goal.alternatives(len(search.form.biases[-1]), ties_last=False)) > 1:
            continue
        for v in drawn(search, workspace, 1.0, np.random.default_rng(seed), 10):
            verdict, _ = kernels.judge(v, search.made.net, workspace.task, workspace.work)
            if verdict != kernels.MAYBE:
                assert problem.goal.accepts(problem.ask([search.arrays.point(v, workspace)])[0]) == (
                    verdict == kernels.SURE
                )


# ---- particular questions


def small(scale: float = 1.0) -> tuple[Any, FeatureSpace, pd.DataFrame]:
    space = FeatureSpace(
        {
            "x": real(-3, 3),
            "y": real(0, 1000),
            "n": integer(0, 20),
            "o": ordinal(["a", "b", "c", "d"]),
            "c": categorical(["p", "q", "r"]),
        }
    )
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "x": rng.uniform(-3, 3, 300),
            "y": rng.uniform(0, 1000, 300),
            "n": rng.integers(0, 21, 300),
            "o": rng.choice(list("abcd"), 300),
            "c": rng.choice(list("pqr"), 300),
        }
    )
    labels = (frame.x + frame.y / 500 + frame.n / 10 + (frame.c == "q") + rng.normal(0, 0.3, 300) > 2.5).astype(int)
    model = make_pipeline(mace.Encoder(space), MLPClassifier((8, 6), max_iter=60, random_state=0)).fit(frame, labels)
    return model, space, frame


@pytest.mark.parametrize("distance", ["l0", "l1", "l2", "linf", mace.Distance(l0=1 / 3, l1=1 / 3, linf=1 / 3)], ids=str)
def test_no_sampled_point_nearer_than_lower_flips_the_real_model(distance: Any) -> None:
    model, space, frame = small()
    explainer = Explainer(model, space)
    rng = np.random.default_rng(1)
    for index in frame.index[model.predict(frame) == 0][:3]:
        row = frame.loc[index]
        best = explainer.explain(row, distance=distance)[0]
        assert (best.status, best.solver) == ("optimal", "network")
        sample = pd.DataFrame([row] * 3000).reset_index(drop=True)
        for name in ("x", "y"):
            moved = rng.random(3000) < 0.6
            noise = rng.normal(0, 1, 3000) * rng.choice([0.3, 0.03, 0.003], 3000) * float(space[name].range)  # type: ignore[arg-type]
            low, high = space[name].low, space[name].high  # type: ignore[union-attr]
            sample[name] = np.clip(np.where(moved, sample[name] + noise, sample[name]), low, high)
        sample["n"] = np.clip(sample["n"] + rng.integers(-2, 3, 3000), 0, 20)
        keep = rng.random(3000) < 0.7
        sample["c"] = np.where(keep, sample["c"], rng.choice(list("pqr"), 3000))
        flipped = sample[model.predict(sample) == 1]
        metric = as_distance(distance).from_factual(space, space.point(row))
        for _, point in flipped.head(300).iterrows():
            assert distance_up(metric, metric.measure(space.point(point))) >= Fraction(best.lower)


def plain(form: Network, factual: Point, distance: Any, goal: Any = None, conditions: tuple[Any, ...] = ()) -> Problem:
    ask = asked(form)
    goal = goal or Outcomes(frozenset([Fraction(1)]))
    return Problem(
        form.space, form, ask, goal, factual, as_distance(distance).from_factual(form.space, factual), conditions
    )


def linear(space: FeatureSpace, weights: list[float], bias: float, **options: Any) -> Network:
    columns = tuple(Column(name, j, None) for j, name in enumerate(space))
    return Network(space, columns, (np.array([weights]),), (np.array([bias]),), **options)


def test_a_huge_integer_needs_no_table() -> None:
    space = FeatureSpace({"n": integer(0, 2**50), "m": integer(0, 10**9, step=7)})
    form = linear(space, [2.0**-50, -(2.0**-30)], -0.75)
    answer = network.solve(plain(form, (5, 0), "l1"), Limits())
    assert answer.status(Fraction(1, 10**6)) == Status.OPTIMAL
    assert answer.point is not None
    assert 0 < answer.point[0] - 3 * 2**48 < 1e-12 * 2**50
    assert answer.notes["nodes"] < 200


def test_a_score_of_exactly_zero_on_a_finite_space_is_decided_by_the_model() -> None:
    space = FeatureSpace({"n": integer(0, 10), "m": integer(0, 10)})
    for ties_last in (False, True):
        form = linear(space, [1.0, 1.0], -5.0, ties_last=ties_last)
        problem = replace(
            plain(form, (0, 0), "l1"),
            ask=lambda points, last=ties_last: [
                Fraction(int(sum(point) > 5 or (last and sum(point) == 5))) for point in points
            ],
        )
        answer, truth = network.solve(problem, Limits()), brute.solve(problem, Limits())
        assert (answer.upper, answer.is_infeasible) == (truth.upper, truth.is_infeasible)
        assert answer.notes["asked"] > 0


def test_a_plateau_on_the_boundary_is_an_honest_gap() -> None:
    """A dead unit gives a score of exactly 0 on half of the range; the real model never says yes there, and no proof says so."""
    space = FeatureSpace({"x": real(0, 1)})
    form = Network(
        space,
        (Column("x", 0, None),),
        (np.array([[1.0]]), np.array([[1.0]])),
        (np.array([-0.6]), np.array([0.0])),
        (np.array([0.0]),),
    )
    answer = network.solve(plain(form, (0.1,), "l1"), Limits.of(5))
    assert answer.upper is not None
    assert float(answer.upper) == pytest.approx(0.5, abs=1e-5)
    assert answer.lower == 0 or answer.status(Fraction(1, 10**6)) == Status.OPTIMAL
    assert answer.reason


def test_an_open_boundary_costs_less_than_the_accuracy() -> None:
    space = FeatureSpace({"x": real(0, 1), "y": real(0, 1)})
    form = linear(space, [1.0, 0.5], -0.7)
    for accuracy in (Fraction(1, 10**3), Fraction(1, 10**6), Fraction(1, 10**9)):
        answer = network.solve(replace(plain(form, (0.1, 0.1), "l1"), accuracy=accuracy), Limits())
        assert answer.upper is not None
        assert answer.upper - answer.lower <= accuracy
        assert float(answer.upper) == pytest.approx(0.275, abs=float(accuracy))


@pytest.mark.parametrize("sign", ["<=", "<", "==", ">="])
def test_linear_conditions_across_features(sign: str) -> None:
    space = FeatureSpace({"a": integer(0, 12), "b": integer(0, 12), "o": ordinal(["s", "t", "u"])})
    form = Network(
        space,
        (Column("a", 0, None), Column("b", 1, None), Column("o", 2, (0.0, 1.0, 3.0))),
        (np.array([[1.0, -1.0, 0.5], [0.5, 0.25, 1.0]]), np.array([[1.0, 1.0]])),
        (np.array([-2.0, -3.0]), np.array([-4.0])),
        (np.zeros(2),),
    )
    total = Binary("+", Variable("a"), Binary("*", Constant(Fraction(2)), Variable("b")))
    guard = GuardCondition(Compare(sign, total, Binary("-", Constant(Fraction(14)), Variable("o"))))  # type: ignore[arg-type]
    for factual in ((1, 9, 0), (0, 0, 1), (3, 5, 2)):
        for distance in ("l0", "l1", "l2", "linf"):
            problem = plain(form, factual, distance, conditions=(guard,))
            assert obstacle(network, problem) == ""
            answer, truth = network.solve(problem, Limits()), brute.solve(problem, Limits())
            assert (answer.upper, answer.is_infeasible) == (truth.upper, truth.is_infeasible)


def test_a_range_of_a_regressor_between_two_bounds() -> None:
    space = FeatureSpace({"x": real(-2, 2), "n": integer(0, 9)})
    form = Network(
        space,
        (Column("x", 0, None), Column("n", 1, None)),
        (np.array([[1.0, -0.5], [-1.0, 0.25]]), np.array([[2.0, 1.0]])),
        (np.array([0.5, 0.25]), np.array([0.0])),
        (np.zeros(2),),
        link="identity",
        is_regressor=True,
    )
    for low, high in ((3.0, 3.25), (1.0, 1.0001), (0.5, None), (None, -0.5)):
        ends = tuple(None if end is None else Fraction(end) for end in (low, high))
        problem = plain(form, (-0.3, 1), "l1", goal=Interval(*ends, 0, *ends))
        if problem.goal.accepts(problem.ask([problem.factual])[0]):
            continue
        answer = network.solve(problem, Limits.of(10))
        from mace.solvers.smt import search as smt

        truth = smt.solve(problem, Limits.of(20))
        assert answer.is_infeasible == truth.is_infeasible
        if answer.upper is not None and truth.upper is not None:
            assert abs(float(answer.upper - truth.upper)) <= 1.1e-6
            assert answer.status(problem.accuracy) == Status.OPTIMAL


def test_the_unscaled_float32_band_is_that_of_the_ball_not_of_the_domain() -> None:
    """Over the whole range the rounding of float32 is larger than every score; near the answer it is not."""
    space = FeatureSpace({"x": real(0, 1e8), "y": real(0, 1)})
    columns = (Column("x", 0, None), Column("y", 1, None))
    unit = Fraction(1, 2**24)
    form = Network(space, columns, (np.array([[0.5, 1.0]]),), (np.array([-1.0]),), unit=unit)
    assert form.rounding(((Fraction(0), Fraction(10**8)), (Fraction(0), Fraction(1)))) > 1
    answer = network.solve(replace(plain(form, (0.25, 0.5), "l1"), accuracy=Fraction(1, 10**12)), Limits())
    assert answer.upper is not None
    assert answer.upper - answer.lower <= Fraction(1, 10**12)
    assert float(answer.upper) == pytest.approx(0.75e-8 / 2, rel=1e-3)


def test_auto_takes_the_lane_and_leaves_what_it_cannot() -> None:
    model, space, frame = small()
    explainer = Explainer(model, space)
    row = frame[model.predict(frame) == 0].iloc[0]
    assert explainer.explain(row)[0].solver == "network"
    problem = plain(linear(FeatureSpace({"x": real(0, 1)}), [1.0], -0.5), (0.1,), "l1")
    product = Program(("x",), Return(Binary("*", Variable("x"), Variable("x"))))
    assert "condition" in obstacle(network, replace(problem, conditions=(AtLeast(product, Fraction(0)),)))
    assert obstacle(network, problem) == ""


def test_diverse_answers_differ_and_grow() -> None:
    model, space, frame = small()
    explainer = Explainer(model, space)
    answers = explainer.explain(frame[model.predict(frame) == 0].iloc[1], count=4, diversity=mace.differ())
    assert [best.status for best in answers] == ["optimal"] * 4
    assert [best.distance for best in answers] == sorted(best.distance for best in answers)
    assert {best.solver for best in answers} == {"network"}


def test_none_exists_is_proved() -> None:
    space = FeatureSpace({"x": real(0, 1), "n": integer(0, 4), "c": categorical(["p", "q"])})
    form = Network(
        space,
        (Column("x", 0, None), Column("n", 1, None), Column("c", 2, (0.0, 1.0))),
        (np.array([[1.0, 0.25, 1.0], [1.0, -0.25, 1.0]]), np.array([[1.0, 1.0]])),
        (np.zeros(2), np.array([-4.01])),
        (np.zeros(2),),
    )
    for distance in ("l0", "l1", "l2", "linf", mace.Distance(l1=0.5, linf=0.5)):
        answer = network.solve(plain(form, (0.5, 2, 0), distance), Limits.of(10))
        assert answer.is_infeasible


# ---- limits


def hard() -> tuple[Any, FeatureSpace, Any]:
    X, y = make_classification(2000, 20, n_informative=16, random_state=0)
    frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(20)])
    model = MLPClassifier((60, 60), max_iter=40, random_state=0).fit(frame, y)
    far = np.argmin(model.predict_proba(frame)[:, 1])
    return model, FeatureSpace.from_frame(frame), frame.iloc[int(far)]


def test_the_deadline_is_honoured_with_bounds_that_hold() -> None:
    model, space, row = hard()
    explainer = Explainer(model, space)
    explainer.explain(row, time_limit=0.2)
    told: list[tuple[float, float, int]] = []
    started = time.process_time()
    explanation = explainer.explain(row, time_limit=1.0, on_progress=lambda *bounds: told.append(bounds))
    assert time.process_time() - started < 3
    assert explanation.status == "feasible"
    assert explanation.reason == "time limit reached"
    assert 0 <= explanation.lower < explanation[0].distance
    assert [bounds[0] for bounds in told] == sorted(bounds[0] for bounds in told)
    assert model.predict(pd.DataFrame([explanation[0].values]))[0] == 1


@pytest.mark.slow
def test_an_interrupt_keeps_what_was_found() -> None:
    script = (
        f"import os, signal, sys, threading; sys.path[:0] = {[str(Path(__file__).parent), str(Path(__file__).parents[1] / 'support')]!r}\n"
        "from test_network_lane import hard\n"
        "import mace\n"
        "model, space, row = hard()\n"
        "explainer = mace.Explainer(model, space)\n"
        "explainer.explain(row, time_limit=0.1)\n"
        "threading.Timer(0.7, lambda: os.kill(os.getpid(), signal.SIGINT)).start()\n"
        "explanation = explainer.explain(row, time_limit=60)\n"
        "print(len(explanation), '|', explanation.reason)\n"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    count, reason = (part.strip() for part in result.stdout.split("|"))
    assert (count, reason) == ("1", "interrupted")


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    model, space, row = hard()
    monkeypatch.setattr("mace.solvers.network.units.search.MOST_MEMORY", 2**17)
    explanation = Explainer(model, space).explain(row, solver="network", time_limit=60)
    assert explanation.reason == "memory limit reached"
    assert explanation[0].lower < explanation[0].distance


def test_kernels_are_found_on_disk_after_the_first_use() -> None:
    network.prepare()
    assert is_on_disk(kernels.advance)
    assert is_marked(network.__name__)


def test_the_same_question_gives_the_same_answer_after_others() -> None:
    space = FeatureSpace({"x": real(0, 1), "y": real(0, 1), "n": integer(0, 5)})
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.random((200, 2)), rng.integers(0, 6, 200)])
    model = LogisticRegression().fit(X, (X.sum(axis=1) > 3.5).astype(int))
    explainer = Explainer(model, space)
    first = explainer.explain([0.2, 0.3, 1], distance="linf")[0].values
    explainer.explain([0.9, 0.9, 0], distance="l0")
    explainer.explain([0.1, 0.9, 2], constraints=[mace.fixed("x")])
    assert explainer.explain([0.2, 0.3, 1], distance="linf")[0].values == first


def test_copies_of_a_network_are_searched_as_if_nothing_were_known_of_their_weights(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def nothing_known(weights: Any) -> tuple[Any, Any]:
        return np.zeros(len(weights), dtype=np.int64), np.full(len(weights), weights.shape[1])

    rng = np.random.default_rng(4)
    space = mace.FeatureSpace({name: mace.real(0, 1) for name in "abc"})
    frame = pd.DataFrame(rng.uniform(size=(200, 3)), columns=list("abc"))
    labels = (np.sin(6 * frame.a) + frame.b > 1).astype(int)
    model = MLPClassifier((5, 4), solver="lbfgs", max_iter=200, random_state=1).fit(frame, labels)
    by = [tuple(Move(Fraction(sign, 20)) if name == "a" else STAY for name in "abc") for sign in (-1, 1)]
    pinned = (Move(Fraction(1, 2), is_pinned=True), STAY, STAY)
    found = []
    for is_known in (True, False):
        if not is_known:
            monkeypatch.setattr(prepared, "_not_zero", nothing_known)
            monkeypatch.setattr(prepared, "_first_alike", lambda first: np.arange(first.shape[1]))
        explainer = Explainer(model, space)
        for row in range(8):
            problem, _ = explainer._problem(frame.iloc[row], Question(space, classes=(0, 1)))
            bounds = network.solve(shifted(problem, [(STAY,) * 3, *by, pinned]), Limits())
            found.append((is_known, row, bounds.lower, bounds.point, bounds.calls, bounds.notes))
    assert [each[1:] for each in found if each[0]] == [each[1:] for each in found if not each[0]]
