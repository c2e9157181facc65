"""The lanes: agreement with brute force, ties, boundaries, bands, deadlines, the number of calls."""

from __future__ import annotations

import contextlib
import math
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from problems import near, problem_of
from random_problems import FAMILIES, Case, random_case
from referee import disagreement
from sklearn.ensemble import RandomForestClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.tree import DecisionTreeClassifier

import mace
from mace import Explainer, FeatureSpace, InvalidOption, MissingPackage, integer, real
from mace.language.syntax import Guard
from mace.models import read
from mace.problem import Answer, Limits, Problem, Sat, Unknown, Unsat
from mace.solvers import SOLVERS, choose
from mace.solvers.bisection import Bisection, power_of_two_below


@pytest.mark.parametrize("seed", range(90))
def test_smt_equals_brute_force_on_random_finite_problems(seed: int) -> None:
    fault = disagreement(random_case(seed))
    assert fault in (None, "skipped"), fault


@pytest.mark.parametrize("seed", range(1000, 1018))
def test_cvc5_equals_brute_force_on_random_finite_problems(seed: int) -> None:
    fault = disagreement(random_case(seed), solver="cvc5")
    assert fault in (None, "skipped"), fault


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2000, 2036))
def test_no_sampled_point_below_lower_reaches_the_target_on_mixed_spaces(seed: int) -> None:
    case = random_case(seed, finite=False)
    explainer = Explainer(case.model, case.space)
    try:
        explanation = explainer.explain(case.row, time_limit=60, **case.question)
    except mace.InvalidTarget:
        return
    if explanation.status == "reached":
        return
    assert explanation.status in ("optimal", "infeasible")
    problem = problem_of(explainer, case.row, case.question)
    rng = np.random.default_rng(seed)
    points = [near(rng, case.space, problem.factual) for _ in range(1500)]
    points = [point for point in points if problem.is_plausible(point)]
    codes = problem.ask(points) if points else []
    for point, code in zip(points, codes, strict=True):
        if problem.goal.accepts(code):
            assert explanation, f"{point} reaches the target, called infeasible"
            assert problem.distance(point) >= Fraction(explanation.lower)


# ---- ties and boundaries


def forest_of_thirds(n_jobs: int | None = None) -> tuple[Any, FeatureSpace]:
    """Three stumps whose leaves are thirds: sums that are equal as fractions and differ as floats, and the other way round."""
    space = FeatureSpace({"a": integer(0, 3), "b": integer(0, 3), "c": integer(0, 3)})
    rng = np.random.default_rng(3)
    X = rng.integers(0, 4, (90, 3))
    y = (X.sum(axis=1) + rng.integers(-2, 3, 90) > 4).astype(int)
    forest = RandomForestClassifier(6, max_depth=2, random_state=1, n_jobs=n_jobs).fit(X, y)
    thirds = np.array([[1 / 3, 2 / 3], [2 / 3, 1 / 3], [0.1, 0.9], [0.9, 0.1]])
    for number, tree in enumerate(forest.estimators_):
        leaves = np.flatnonzero(tree.tree_.children_left < 0)
        for position, leaf in enumerate(leaves):
            tree.tree_.value[leaf, 0, :] = thirds[(position + number) % 4]
    return forest, space


def test_a_forest_with_ties_of_thirds_is_answered_as_its_floats_decide() -> None:
    model, space = forest_of_thirds()
    explainer = Explainer(model, space)
    form: Any = explainer._reading.form
    grid = [(a, b, c) for a in range(4) for b in range(4) for c in range(4)]
    exact_ties = [p for p in grid if abs(np.subtract(*form.exact_scores(p))) <= form.rounding]
    assert exact_ties, "the case must hold ties"
    for row in grid[::5]:
        for distance in ("l0", "l1", "linf"):
            truth = explainer.explain(row, distance=distance, solver="enumerate")
            answer = explainer.explain(row, distance=distance, solver="smt")
            assert (answer.status, [c.distance for c in answer]) == (truth.status, [c.distance for c in truth])


@pytest.mark.slow
def test_where_the_order_of_summation_is_not_fixed_a_tie_is_neither_returned_nor_excluded() -> None:
    model, space = forest_of_thirds(n_jobs=2)
    explainer = Explainer(model, space)
    form: Any = explainer._reading.form
    assert not form.fixed_order
    grid = [(a, b, c) for a in range(4) for b in range(4) for c in range(4)]
    settled = {p for p in grid if abs(np.subtract(*form.exact_scores(p))) > form.rounding}
    gaps = 0
    for row in sorted(settled)[::3]:
        answer, truth = (explainer.explain(row, solver=name) for name in ("smt", "enumerate"))
        for explanation in (answer, truth):
            if explanation:
                assert tuple(explanation[0].values.values()) in settled
            gaps += explanation.status == "feasible" and "rounding" in explanation.reason
        if truth.status == "optimal":
            assert answer[0].distance == truth[0].distance
    assert gaps, "some answer must have an honest gap"


def test_the_answer_of_a_linear_model_on_its_boundary_flips_in_any_summation_order() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    y = (X @ [1.0, -2.0, 0.5, 1.5] > 0.3).astype(int)
    space = FeatureSpace({name: real(-4, 4) for name in "abcd"})
    model = LogisticRegression().fit(X, y)
    explainer = Explainer(model, space)
    for row in X[model.predict(X) == 0][:5]:
        best = explainer.explain(list(row), accuracy=1e-9)[0]
        assert best.status == "optimal"
        point = np.array(list(best.values.values()))
        for _ in range(20):
            order = rng.permutation(4)
            total = model.intercept_[0]
            for j in order:
                total = total + model.coef_[0, j] * point[j]
            assert total > 0
        assert model.predict(np.tile(point, (7, 1))).tolist() == [1] * 7


def test_a_network_on_its_boundary_is_answered_with_a_real_flip() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 2))
    y = (np.maximum(X[:, 0], 0) + X[:, 1] > 0.4).astype(int)
    model = MLPClassifier((3,), max_iter=400, learning_rate_init=0.02, random_state=0).fit(X, y)
    explainer = Explainer(model, FeatureSpace({"a": real(-4, 4), "b": real(-4, 4)}))
    row = X[model.predict(X) == 0][0]
    best = explainer.explain(list(row), distance="linf", accuracy=1e-9)[0]
    assert best.status == "optimal"
    assert model.predict([list(best.values.values())])[0] == 1


def test_a_plateau_on_the_boundary_is_an_honest_gap() -> None:
    """A dead unit leaves the score at exactly 0 (refused: above 0 is needed) until x > 2: the widened target cannot exclude the plateau."""
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    model = MLPClassifier((1,), max_iter=1, random_state=0).fit(X, [0, 0, 1, 1])
    model.coefs_ = [np.array([[1.0]]), np.array([[1.0]])]
    model.intercepts_ = [np.array([-2.0]), np.array([0.0])]
    explainer = Explainer(model, FeatureSpace({"x": real(0, 4)}))
    explanation = explainer.explain({"x": 1.0}, target=1)
    assert explanation.status == "feasible"
    assert "rounding" in explanation.reason
    assert explanation.lower <= 0.25 <= explanation[0].distance <= 0.25 + 2e-6
    assert explanation[0].calls < 10_000, "the plateau is given up, not cut into floats"
    assert model.predict([[explanation[0].values["x"]]])[0] == 1


def test_a_tree_is_answered_on_the_float_where_it_changes_its_mind() -> None:
    X = np.array([[0.1], [0.2], [0.3], [0.4]])
    model = DecisionTreeClassifier(random_state=0).fit(X, [0, 0, 1, 1])
    explainer = Explainer(model, FeatureSpace({"x": real(0, 1)}))
    best = explainer.explain({"x": 0.1}, accuracy=1e-12)[0]
    last = best.values["x"]
    assert model.predict([[last]])[0] == 1
    step = 0.1
    while model.predict([[last - step]])[0] == 1 or step > 1e-7:
        step /= 2
    assert best.distance - best.lower <= 1e-12
    assert best.lower <= float(np.nextafter(np.float32(0.25), 1)) - 0.1


# ---- Algorithm 1


class Scripted:
    """An oracle over one real feature: the goal is reached from ``optimum`` on."""

    def __init__(self, optimum: Fraction, *, unknown_below: Fraction = Fraction(-1)) -> None:
        self.optimum = optimum
        self.unknown_below = unknown_below

    def possible(self, bound: Fraction | None) -> Answer:
        if bound is not None and bound < self.unknown_below:
            return Unknown("could not say")
        if bound is not None and bound < self.optimum:
            return Unsat()
        return Sat({"x": Fraction(1) if bound is None else bound})

    certain = possible

    def exclude(self, region: Guard) -> None:
        raise AssertionError("nothing to exclude")


def threshold_problem(optimum: float, accuracy: Fraction) -> Problem:
    space = FeatureSpace({"x": real(0, 1)})
    reading = read(lambda x: 1 if x >= 0.3 else 0, space)
    problem = problem_of(Explainer(lambda x: 1 if x >= 0.3 else 0, space), {"x": 0.0}, {})
    assert reading.form is not None
    from dataclasses import replace

    return replace(
        problem, accuracy=accuracy, ask=lambda points: [Fraction(int(point[0] >= optimum)) for point in points]
    )


@pytest.mark.parametrize("optimum", [0.0078125, 0.3, 0.5, 0.999, 1.0])
@pytest.mark.parametrize(
    "accuracy", [Fraction(1, 10), Fraction(1, 1024), Fraction(1, 10**6), Fraction(1e-6), Fraction(1, 2**20)]
)
def test_algorithm_1_needs_at_most_two_and_log_one_over_epsilon_calls(optimum: float, accuracy: Fraction) -> None:
    problem = threshold_problem(optimum, accuracy)
    bounds = Bisection(problem, Scripted(Fraction(optimum)), Limits()).run()
    assert bounds.upper is not None
    assert bounds.lower <= Fraction(optimum) <= bounds.upper
    assert bounds.upper - bounds.lower <= accuracy
    assert bounds.calls <= 2 + math.ceil(math.log2(1 / accuracy))


def test_an_unknown_moves_no_bound() -> None:
    problem = threshold_problem(0.3, Fraction(1, 10**6))
    bounds = Bisection(problem, Scripted(Fraction(0.3), unknown_below=Fraction(4, 10)), Limits()).run()
    assert bounds.lower == 0
    assert bounds.upper is not None
    assert Fraction(3, 10) <= bounds.upper <= Fraction(1, 2)
    assert bounds.reason == "could not say"
    assert bounds.status(problem.accuracy) == "feasible"


def test_progress_is_told_with_bounds_that_only_close() -> None:
    told: list[tuple[float, float, int]] = []
    case = random_case(4)
    Explainer(case.model, case.space).explain(case.row, solver="smt", on_progress=lambda *bounds: told.append(bounds))
    assert told
    lowers, uppers, calls = zip(*told, strict=True)
    assert list(lowers) == sorted(lowers)
    assert list(uppers) == sorted(uppers, reverse=True)
    assert list(calls) == sorted(set(calls))


@pytest.mark.parametrize("value", [Fraction(1, 10), Fraction(1, 8), Fraction(3), Fraction(1e-6)])
def test_the_power_of_two_below_is_tight(value: Fraction) -> None:
    power = power_of_two_below(value)
    assert power <= value < 2 * power


def test_l0_is_exact_for_any_accuracy_below_one_over_j() -> None:
    for seed in range(0, 27, 3):
        case = random_case(seed)
        explainer = Explainer(case.model, case.space)
        coarse = 0.99 / len(case.space)
        question = {"constraints": case.question["constraints"], "distance": "l0"}
        truth = explainer.explain(case.row, solver="enumerate", **question)
        answer = explainer.explain(case.row, solver="smt", accuracy=coarse, **question)
        assert [c.distance for c in answer] == [c.distance for c in truth]


# ---- limits and choice


@pytest.mark.parametrize("solver", ["smt", "cvc5"])
def test_the_deadline_is_honoured_with_an_honest_status(solver: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 8))
    y = (np.sin(X).sum(axis=1) > 0).astype(int)
    model = MLPClassifier((12, 12), max_iter=200, random_state=0).fit(X, y)
    explainer = Explainer(model, FeatureSpace({f"x{k}": real(-4, 4) for k in range(8)}))
    row = list(X[model.predict(X) == 0][0])
    started = time.monotonic()
    explanation = explainer.explain(row, time_limit=1.0, solver=solver)
    assert time.monotonic() - started < 6
    assert explanation.status in ("feasible", "unknown")
    assert "time limit" in explanation.reason
    assert 0 <= explanation.lower <= 1


def test_a_deadline_of_a_millisecond_is_an_answer() -> None:
    cases = [random_case(seed) for seed in range(9)]
    X = np.random.default_rng(0).normal(size=(40, 2))
    several = [("a", LogisticRegression()), ("b", LogisticRegression(C=0.1))]
    votes = VotingClassifier(several, voting="soft").fit(X, X[:, 0] > 0)
    cases.append(Case("votes", votes, FeatureSpace({"x": real(-3, 3), "y": real(-3, 3)}), {"x": 1.0, "y": 0.0}, {}))
    classes = LogisticRegression().fit(X, np.digitize(X[:, 0], [-0.5, 0.5]))
    three = VotingClassifier([("a", classes), ("b", classes)], voting="soft").fit(X, classes.predict(X))
    cases.append(Case("votes of three", three, cases[-1].space, cases[-1].row, {}))
    for solver in SOLVERS:
        answers = []
        for case in cases:
            with contextlib.suppress(InvalidOption):  # not every lane takes every model
                answers.append(Explainer(case.model, case.space).explain(case.row, time_limit=1e-9, solver=solver))
        assert answers
        for answer in answers:
            # The first look at the clock may come after the answer.
            assert answer.status in ("optimal", "infeasible") or answer.reason.endswith("time limit reached")


def test_unknown_and_missing_solvers_are_refused() -> None:
    case = random_case(0)
    explainer = Explainer(case.model, case.space)
    with pytest.raises(InvalidOption, match=r"solver='smtt' is not known.*Did you mean 'smt'"):
        explainer.explain(case.row, solver="smtt")
    with pytest.raises(MissingPackage, match="'yices' is not installed"):
        explainer.explain(case.row, solver="yices")
    with pytest.raises(InvalidOption, match="'x' is real without a step"):
        Explainer(lambda x: 1 if x > 0 else 0, FeatureSpace({"x": real(-1, 1)})).explain({"x": 0.0}, solver="enumerate")
    space = FeatureSpace({"a": integer(0, 10**4), "b": integer(0, 10**4)})
    with pytest.raises(InvalidOption, match="points, above"):
        Explainer(lambda a, b: 1 if a > b else 0, space).explain({"a": 0, "b": 0}, solver="enumerate")


def test_auto_takes_the_first_lane_that_can() -> None:
    case = random_case(0)
    explainer = Explainer(case.model, case.space)
    assert choose("auto", problem_of(explainer, case.row, {})).name in SOLVERS


@pytest.mark.slow
def test_the_same_question_gives_the_same_answer_in_any_process_and_order() -> None:
    script = (
        "import sys; sys.path.insert(0, {folder!r})\n"
        "from random_problems import random_case\n"
        "import mace\n"
        "for seed in {seeds}:\n"
        "    case = random_case(seed)\n"
        "    e = mace.Explainer(case.model, case.space).explain(case.row, count=2, constraints=case.question['constraints'])\n"
        "    print(seed, [c.values for c in e])\n"
    )
    folder = str(Path(__file__).parents[1] / "support")
    printed = []
    for hash_seed, seeds in (("1", list(range(len(FAMILIES)))), ("2", list(reversed(range(len(FAMILIES)))))):
        result = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", script.format(folder=folder, seeds=seeds)],
            capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": hash_seed, "PATH": ""},
        )  # fmt: skip
        printed.append(sorted(result.stdout.splitlines()))
    assert printed[0] == printed[1]
