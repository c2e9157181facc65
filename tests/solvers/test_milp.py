"""The general lane: equal to brute force and to the other lanes; every step of its proofs against exact arithmetic; limits and faults."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import random_networks
from milp_referee import compare, is_l2
from problems import near, problem_of
from random_ensembles import random_ensemble
from random_functions import random_function
from random_problems import FAMILIES, Case, from_source, random_case
from referee import disagreement
from scipy import sparse
from scipy.optimize import linprog
from sklearn.neural_network import MLPClassifier

import mace
from mace import Explainer, FeatureSpace, InvalidOption, categorical, integer, real
from mace.language import evaluate, holds
from mace.language.syntax import Binary, Compare, Constant, Variable
from mace.problem import Limits, Problem, Status
from mace.solvers import choose, milp
from mace.solvers import enumerate as brute
from mace.solvers.abilities import obstacle
from mace.solvers.incumbent import BAND
from mace.solvers.milp import relaxation as relaxation_module
from mace.solvers.milp.builder import Builder, ChoicePart
from mace.solvers.milp.contract import Contractor
from mace.solvers.milp.model import build
from mace.solvers.milp.program import Choices, MixedProgram
from mace.solvers.milp.propagate import Propagator
from mace.solvers.milp.quantities import GridDomain, Quantities, domain_of, greatest, least
from mace.solvers.milp.relaxation import LinearRelaxation, Solved
from mace.solvers.milp.translate import MilpTranslator
from mace.space import Point


def problem_from(case: Case) -> tuple[Explainer, Problem]:
    explainer = Explainer(case.model, case.space)
    return explainer, problem_of(explainer, case.row, case.question)


# ---- agreement


@pytest.mark.parametrize("seed", [seed for seed in range(4 * len(FAMILIES)) if not is_l2(seed)])
def test_it_equals_brute_force_on_random_finite_problems(seed: int) -> None:
    assert disagreement(random_case(seed), solver="milp") in (None, "skipped")


@pytest.mark.parametrize("seed", range(60))
def test_it_equals_brute_force_on_random_functions(seed: int) -> None:
    assert compare(random_function(seed), "enumerate", 1e-12) is None


@pytest.mark.parametrize("seed", range(2000, 2027))
def test_it_agrees_with_smt_on_random_mixed_problems(seed: int) -> None:
    if not is_l2(seed):
        assert compare(random_case(seed, finite=False), "smt", 1.1e-6) is None


@pytest.mark.parametrize("seed", range(1000, 1012))
def test_it_agrees_with_smt_on_random_functions_of_real_features(seed: int) -> None:
    assert compare(random_function(seed, features=2, finite=False), "smt", 1.1e-6) is None


@pytest.mark.parametrize("seed", range(34))
def test_it_equals_the_tree_lane_with_missing_values_and_several_answers(seed: int) -> None:
    case = random_ensemble(seed)
    if "l2" not in str(case.question["distance"]):
        assert compare(case, "trees", 1e-12) is None


@pytest.mark.parametrize("seed", range(36))
def test_it_equals_brute_force_on_random_networks_with_constraints_across_features(seed: int) -> None:
    problem = random_networks.random_network(seed).problem
    if obstacle(milp, problem):
        assert problem.metric.power == 2
        return
    answer, truth = (lane.solve(problem, Limits()) for lane in (milp, brute))
    assert answer.status(problem.accuracy) == truth.status(problem.accuracy)
    assert answer.upper == truth.upper


@pytest.mark.parametrize(("seed", "most"), [(100_049, 0.3222), (100_292, 0.38045)])
def test_a_coarse_network_gets_the_nearest_point_that_rounding_cannot_disturb(seed: int, most: float) -> None:
    """Float32 networks with a wide undecided region, in which the nearest point that certainly counts was once not looked for."""
    problem = random_networks.random_network(seed, finite=False).problem
    answer = milp.solve(problem, Limits.of(60))
    assert answer.status(problem.accuracy) == Status.FEASIBLE
    assert answer.reason == BAND
    assert answer.upper is not None
    assert answer.lower < answer.upper < most


@pytest.mark.parametrize("seed", [7, 48, 67, 79, 97, 133, 157, 159, 204, 209, 229, 262, 283])
def test_cases_that_ranges_too_small_by_a_tenth_get_wrong(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Found by breaking the lane on purpose, and broken here again."""
    case = random_function(seed)
    assert compare(case, "enumerate", 1e-12) is None
    whole = Builder._link

    def too_small(self: Builder, quantity: int, parts: list[ChoicePart], ranges: list[tuple[float, float]]) -> None:
        whole(self, quantity, parts, [(low + 0.1 * (high - low), high - 0.1 * (high - low)) for low, high in ranges])

    monkeypatch.setattr(Builder, "_link", too_small)
    assert compare(case, "enumerate", 1e-12) is not None


@pytest.mark.parametrize("seed", [48, 88, 151, 157])
def test_a_sloppy_linear_solver_makes_no_bound_wrong(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With multipliers that are off by a tenth the repaired bounds still hold; HiGHS's own objective does not."""
    case = random_function(seed)
    monkeypatch.setitem(relaxation_module.OPTIONS, "dual_feasibility_tolerance", 0.1)
    assert compare(case, "enumerate", 1e-12) is None
    repaired = LinearRelaxation.solve

    def trusting(self: LinearRelaxation, low: np.ndarray, high: np.ndarray, limits: Limits) -> Solved:
        solved = repaired(self, low, high, limits)
        if solved.point is None:
            return Solved(math.inf, None)
        return Solved(self.highs.getInfo().objective_function_value, solved.point)

    monkeypatch.setattr(LinearRelaxation, "solve", trusting)
    fault = compare(case, "enumerate", 1e-12)
    assert fault is not None
    assert "above a point" in fault


# ---- what the proofs are made of


@pytest.mark.parametrize("seed", range(40))
def test_no_multipliers_give_a_bound_above_a_point_of_the_program(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, width = int(rng.integers(1, 12)), int(rng.integers(1, 15))
    size = 10.0 ** rng.integers(-3, 4, width)
    low = -rng.random(width) * size
    high = rng.random(width) * size
    x = rng.uniform(low, high)
    matrix = sparse.random(rows, width, 0.4, random_state=seed, data_rvs=lambda n: rng.normal(size=n) * 3).tocsr()
    exact = [
        sum((Fraction(a) * Fraction(x[j]) for j, a in zip(row.indices, row.data, strict=True)), Fraction(0))
        for row in matrix
    ]
    slack = np.where(rng.random(rows) < 0.5, 0.0, rng.random(rows))
    row_low = np.array([math.nextafter(float(v) - s, -math.inf) for v, s in zip(exact, slack, strict=True)])
    row_high = np.array([math.nextafter(float(v) + s, math.inf) for v, s in zip(exact, slack, strict=True)])
    row_low[rng.random(rows) < 0.3] = -math.inf
    row_high[rng.random(rows) < 0.3] = math.inf
    relaxation = LinearRelaxation(program_of(matrix, row_low, row_high, low, high), int(rng.integers(width)))
    objective = int(np.flatnonzero(relaxation.cost)[0])
    scaled = low / relaxation.scale, high / relaxation.scale
    solved = relaxation.solve(low, high, Limits())
    assert solved.bound <= Fraction(x[objective])
    for spread in (0.0, 1e-9, 1e-3, 1.0, 1e6):
        y = np.array(relaxation.highs.getSolution().row_dual) + rng.normal(size=rows) * spread
        assert relaxation.safe_bound(y, relaxation.cost, *scaled) <= Fraction(x[objective])
        assert relaxation.safe_bound(y, np.zeros(width), *scaled) <= 0


def program_of(
    matrix: sparse.csr_matrix, row_low: np.ndarray, row_high: np.ndarray, low: np.ndarray, high: np.ndarray
) -> MixedProgram:
    none = np.zeros(0, dtype=np.int64)
    choices = Choices(none, none, none, none, none, none, np.zeros(0), np.zeros(0), none)
    return MixedProgram(
        low, high, len(low), matrix, row_low, row_high, sparse.csr_matrix((0, len(low))), (), {}, [], choices
    )


@pytest.mark.parametrize("seed", range(12))
def test_the_safe_bound_is_within_a_hair_of_the_optimum(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, width = 15, 20
    matrix = sparse.random(rows, width, 0.3, random_state=seed).tocsr()
    low, high = np.zeros(width), 1 + 100 * rng.random(width)
    row_low, row_high = matrix @ rng.uniform(low, high), np.full(rows, math.inf)
    relaxation = LinearRelaxation(program_of(matrix, row_low, row_high, low, high), 0)
    optimum = linprog(np.eye(width)[0], A_ub=-matrix, b_ub=-row_low, bounds=list(zip(low, high, strict=True))).fun
    assert relaxation.solve(low, high, Limits()).bound == pytest.approx(optimum, abs=1e-7)
    narrow = high / 1000
    solved = relaxation.solve(low, narrow, Limits())
    assert solved.bound == math.inf, "an empty box must be proved empty"


def valid_points(problem: Problem, rng: np.random.Generator, count: int) -> list[Point]:
    points = [near(rng, problem.space, problem.factual) for _ in range(count)]
    plausible = [point for point in points if problem.is_plausible(point)]
    codes = problem.ask(plausible) if plausible else []
    return [point for point, code in zip(plausible, codes, strict=True) if problem.goal.accepts(code)]


def sources() -> list[Callable[[int], Case]]:
    return [
        lambda seed: random_case(seed, finite=False),
        lambda seed: random_case(seed),
        lambda seed: random_function(seed, finite=False),
        lambda seed: random_function(seed, features=6, finite=False),
    ]


@pytest.mark.parametrize("source", range(len(sources())))
@pytest.mark.parametrize("seed", range(3000, 3008))
def test_every_valid_point_of_a_ball_is_a_point_of_its_program(seed: int, source: int) -> None:
    """With the features fixed, the bounds must not cross, and the bound of the linear program must not exceed the point's distance."""
    try:
        _, problem = problem_from(sources()[source](seed))
    except mace.InvalidTarget:
        return
    rng = np.random.default_rng(seed)
    if problem.metric.power != 1:
        return
    for point in valid_points(problem, rng, 150)[:4]:
        distance = problem.distance(point)
        for radius in (None, distance, distance * Fraction(3, 2)):
            model = build(problem, lower=Fraction(0), radius=radius)
            assert model is not None
            low, high = model.program.low.copy(), model.program.high.copy()
            for name, value in zip(problem.space, point, strict=True):
                fix(model, name, value, low, high)
            assert Propagator(model.program).propagate(low, high)
            width = model.program.width
            solved = LinearRelaxation(model.program, model.distance).solve(low[:width], high[:width], Limits())
            assert solved.bound <= distance


def fix(model: Any, name: str, value: float, low: np.ndarray, high: np.ndarray) -> None:
    place = model.program.place
    if name in model.translator.levels:
        for k, column in enumerate(model.translator.levels[name]):
            low[place[column]] = high[place[column]] = float(k == value)
    else:
        at = place[model.translator.numbers[name]]
        assert low[at] <= value <= high[at]
        low[at] = high[at] = value


@pytest.mark.parametrize("seed", range(25))
def test_contraction_loses_no_point_of_a_formula(seed: int) -> None:
    """Random formulas over features: every point that fulfils one lies in the box that follows from it."""
    rng = np.random.default_rng(seed)
    space = FeatureSpace({"a": real(-4, 4), "b": integer(-3, 9, step=3), "c": categorical([*"xyz"]), "d": real(0, 1)})
    problem = problem_of(Explainer(lambda a, b, c, d: 1 if a > 0 else 0, space), [-1.0, 0, "x", 0.5], {})
    guard = random_guard(rng, 3)
    translator = MilpTranslator(problem)
    parts = [*translator.take_definitions(), *translator.parts(guard)]
    box = Contractor(translator.quantities)
    is_empty = box.contract(parts) is None
    for _ in range(300):
        point = (float(rng.uniform(-4, 4)), int(3 * rng.integers(-1, 4)), int(rng.integers(3)), float(rng.random()))
        values = dict(zip(space, map(Fraction, point), strict=True))
        if holds(guard, values):
            assert not is_empty
            for name, value in zip(space, point, strict=True):
                if name in translator.numbers:
                    column = translator.numbers[name]
                    assert box.low[column] <= value <= box.high[column]
                else:
                    assert box.high[translator.levels[name][int(value)]] == 1


def random_guard(rng: np.random.Generator, depth: int) -> Any:
    from mace.language.syntax import And, Not, Or

    draw = rng.random()
    if depth and draw < 0.7:
        parts = tuple(random_guard(rng, depth - 1) for _ in range(int(rng.integers(2, 4))))
        return And(parts) if draw < 0.35 else Or(parts) if draw < 0.6 else Not(And(parts))
    sign = str(rng.choice(["<", "<=", ">", ">=", "!=", "=="]))
    if rng.random() < 0.2:
        return Compare(sign, Variable("c"), Constant(Fraction(int(rng.integers(3)))))  # type: ignore[arg-type]
    return Compare(sign, random_expression(rng, 3), random_expression(rng, 1))  # type: ignore[arg-type]


def random_expression(rng: np.random.Generator, depth: int) -> Any:
    from mace.language.syntax import Indicator, Unary

    draw = rng.random()
    if not depth or draw < 0.25:
        return Variable(str(rng.choice(["a", "b", "c", "d"])))
    if draw < 0.4:
        return Constant(Fraction(round(float(rng.normal() * 2), 2)))
    inner = random_expression(rng, depth - 1)
    if draw < 0.5:
        return Unary(str(rng.choice(["neg", "abs"])), inner)  # type: ignore[arg-type]
    if draw < 0.6:
        return Binary("*", Constant(Fraction(round(float(rng.normal()), 2))), inner)
    if draw < 0.65:
        return Indicator(random_guard(rng, 0))
    other = random_expression(rng, depth - 1)
    return Binary(str(rng.choice(["+", "-", "min", "max", "*"])), inner, other)  # type: ignore[arg-type]


def test_expressions_become_sums_that_have_their_value() -> None:
    """Fixing the features leaves each column that an expression brings in only the expression's value."""
    rng = np.random.default_rng(3)
    space = FeatureSpace({"a": real(-4, 4), "b": integer(-3, 9, step=3), "c": categorical([*"xyz"]), "d": real(0, 1)})
    problem = problem_of(Explainer(lambda a, b, c, d: 1 if a > 0 else 0, space), [-1.0, 0, "x", 0.5], {})
    for _ in range(60):
        expression = random_expression(rng, 3)
        translator = MilpTranslator(problem)
        result = Variable("result")
        parts = [*translator.take_definitions(), *translator.parts(Compare("==", result, expression))]
        point = (float(rng.uniform(-4, 4)), int(3 * rng.integers(-1, 4)), int(rng.integers(3)), float(rng.random()))
        box = Contractor(translator.quantities)
        box.grow()
        for name, value in zip(space, point, strict=True):
            if name in translator.numbers:
                assert box.tighten(translator.numbers[name], float(value), float(value))
            else:
                for k, column in enumerate(translator.levels[name]):
                    assert box.tighten(column, float(k == value), float(k == value))
        assert box.contract(parts) is not None
        value = evaluate(expression, dict(zip(space, map(Fraction, point), strict=True)))
        column = translator.variable("result")
        assert box.low[column] <= value <= box.high[column]
        assert box.high[column] - box.low[column] <= 1e-9 * (1 + abs(value))


@pytest.mark.parametrize("own", [None, 7.5, -20.0, 3.2])
@pytest.mark.parametrize("size", [1, 4, 5000])
def test_a_grid_is_asked_for_its_values(own: float | None, size: int) -> None:
    feature = real(0, 0.1 * (size - 1), step=0.1) if size > 1 else real(0, 0)
    grid = GridDomain(feature, own)
    values = sorted([*(feature.value_at(k) for k in range(size))] if size > 1 else [0.0])
    expected = sorted([*values, *([] if own is None else [own])])
    assert list(grid[: len(grid)] if False else (grid[k] for k in range(len(grid)))) == expected
    for limit in (-1.0, 0.0, 0.05, 0.1, 3.2, 1e9):
        assert greatest(grid, limit, strict=False) == max((v for v in expected if v <= limit), default=-math.inf)
        assert greatest(grid, limit, strict=True) == max((v for v in expected if v < limit), default=-math.inf)
        assert least(grid, limit, strict=False) == min((v for v in expected if v >= limit), default=math.inf)
        assert least(grid, limit, strict=True) == min((v for v in expected if v > limit), default=math.inf)
    assert domain_of(real(0, 1), 0.5) is None
    assert greatest(None, Fraction(1, 10), strict=False) < Fraction(1, 10) < least(None, Fraction(1, 10), strict=True)


def test_forms_that_differ_in_the_last_bits_are_one() -> None:
    quantities = Quantities()
    x, y = quantities.column(0, 1), quantities.column(0, 1)
    thin = Fraction(1) + Fraction(1, 2**51)
    first = quantities.form({x: Fraction(1), y: Fraction(-73, 100)})
    second = quantities.form({x: -thin, y: Fraction(73, 100)})
    other = quantities.form({x: Fraction(1), y: Fraction(-74, 100)})
    assert first.form == second.form != other.form
    assert second.factor < 0
    assert second.remainder
    assert not first.remainder


# ---- what it takes, and what it refuses

SPACE = FeatureSpace({"a": real(0, 10), "b": integer(0, 30), "c": categorical(["x", "y", "z"])})
ROW = {"a": 1.0, "b": 2, "c": "x"}


def function(*lines: str) -> Any:
    return from_source("\n".join(["def model(a, b, c):", *(f"    {line}" for line in lines), ""]), "model")


@pytest.mark.parametrize(
    "lines",
    [
        ("k = 2 * 1.7", "w = k * 0.3", "return 1 if w * a + b / k > 9.5 else 0"),
        ("r = 0.2", "if c == 'y':", "    r = 0.35", "return 1 if r * a + 0.1 * b > 4 else 0"),
        ("return 1 if (a > 3) * b + (c == 'z') * a > 17.5 else 0",),
        ("if b > 20:", "    return 1", "t = a - 3", "u = abs(t) * 2", "return 1 if u > 9 else 0"),
        (
            "s = 0",
            "for i in range(3):",
            "    s += max(a - i * 2, 0) * 0.5 + (i + 1) * b / 7",
            "return 1 if s > 8 else 0",
        ),
        ("return 1 if a == b and a > 4 else 0",),
        ("return 1 if a != 1 and min(a, b) >= 1.25 else 0",),
    ],
    ids=["constants", "rates", "indicators", "early return", "loop", "equality", "strictness"],
)
@pytest.mark.parametrize("distance", ["l0", "l1", "linf"])
def test_programs_of_every_shape_agree_with_smt(lines: tuple[str, ...], distance: str) -> None:
    case = Case("function", function(*lines), SPACE, ROW, {"distance": distance})
    assert compare(case, "smt", 1.1e-6) is None


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (("return 1 if a * b > 17 else 0",), "the function multiplies two quantities that both vary"),
        (("return 1 if a / (b + 1) > 3 else 0",), "the function divides by a quantity that varies"),
        (("t = a", "u = t * a", "return 1 if u > 20 else 0"), "the function multiplies two quantities that both vary"),
    ],
)
def test_what_is_not_piecewise_linear_is_refused_with_the_reason_and_left_to_smt(
    lines: tuple[str, ...], reason: str
) -> None:
    explainer = Explainer(function(*lines), SPACE)
    with pytest.raises(InvalidOption, match=reason):
        explainer.explain(ROW, solver="milp")
    assert explainer.explain(ROW, time_limit=20).solver.startswith("smt")


def test_l2_and_distances_that_multiply_are_refused() -> None:
    explainer = Explainer(function("return 1 if a > 3 else 0"), SPACE)
    with pytest.raises(InvalidOption, match="l2 is not piecewise linear"):
        explainer.explain(ROW, distance="l2", solver="milp")
    with pytest.raises(InvalidOption, match="the distance multiplies two quantities"):
        explainer.explain(ROW, distance="lambda new, old: (new.a - old.a) * (new.a - old.a)", solver="milp")


def test_auto_takes_it_for_functions_and_says_so() -> None:
    explanation = Explainer(function("return 1 if a + b > 9 else 0"), SPACE).explain(ROW)
    assert explanation.solver.startswith("milp: the first lane that can; not trees: ")
    assert explanation[0].solver == "milp"


def test_a_mixture_with_weights_and_diverse_answers_equals_brute_force() -> None:
    space = FeatureSpace({"a": integer(0, 9), "b": integer(0, 9), "c": categorical(["x", "y", "z"])})
    model = function("s = 2 * a - b + 3 * (c == 'y')", "return 1 if max(s, a) >= 8 else 0")
    distance = mace.Distance(l0=0.2, l1=0.5, linf=0.3, weights={"a": 2.0, "c": 0.5})
    explainer = Explainer(model, space)
    for diversity in (mace.differ(features=2), mace.differ(distance=0.2), None):
        answers = [
            explainer.explain([2, 5, "x"], distance=distance, count=4, diversity=diversity, solver=solver)
            for solver in ("milp", "enumerate")
        ]
        assert [c.distance for c in answers[0]] == pytest.approx([c.distance for c in answers[1]], abs=1e-12)
        assert answers[0].status == answers[1].status == "optimal"


# ---- nothing there, nothing decided


def test_contradictory_constraints_and_unreachable_goals_are_proved_infeasible() -> None:
    explainer = Explainer(function("return 1 if a + b > 9 else 0"), SPACE)
    contradiction = [mace.within("b", 0, 3), mace.within("b", 5, 9)]
    held = [mace.fixed("b"), mace.within("a", 0, 6.5)]
    nowhere = Explainer(function("return 1 if a + b > 41 else 0"), SPACE)
    for explanation in (
        explainer.explain(ROW, constraints=contradiction, solver="milp"),
        explainer.explain(ROW, constraints=held, solver="milp"),
        nowhere.explain(ROW, solver="milp", target=1),
    ):
        assert explanation.status == "infeasible"
        assert explanation.exhausted


def test_a_plateau_on_the_boundary_is_an_honest_gap_with_the_nearest_certain_point() -> None:
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    model = MLPClassifier((1,), max_iter=1, random_state=0).fit(X, [0, 0, 1, 1])
    model.coefs_ = [np.array([[1.0]]), np.array([[1.0]])]
    model.intercepts_ = [np.array([-2.0]), np.array([0.0])]
    explanation = Explainer(model, FeatureSpace({"x": real(0, 4)})).explain({"x": 1.0}, target=1, solver="milp")
    assert explanation.status == "feasible"
    assert "rounding" in explanation.reason
    assert explanation.lower <= 0.25 <= explanation[0].distance <= 0.25 + 2e-6


def test_an_answer_on_an_open_boundary_is_inside_and_within_the_accuracy() -> None:
    for accuracy in (1e-3, 1e-6, 1e-9):
        explainer = Explainer(function("return 1 if 0.3 * a + 0.1 * b > 2.2 else 0"), SPACE)
        best = explainer.explain(ROW, accuracy=accuracy, solver="milp")[0]
        assert best.status == "optimal"
        assert best.prediction == 1
        assert best.distance - best.lower <= accuracy


def test_numbers_too_large_for_a_linear_program_leave_an_honest_answer() -> None:
    space = FeatureSpace({"a": real(0, 1), "b": real(0, 1)})
    model = from_source("def model(a, b):\n    return 1 if 1e300 * a + 1e-300 * b > 1e299 else 0\n", "model")
    explanation = Explainer(model, space).explain([0.0, 0.0], solver="milp")
    assert explanation[0].prediction == 1
    assert explanation.lower <= 0.05 <= explanation[0].distance + 1e-9


# ---- limits


def hard() -> tuple[Explainer, dict[str, Any]]:
    case = random_function(0, features=60, finite=False)
    return Explainer(case.model, case.space), case.row


@pytest.mark.slow
def test_the_deadline_is_honoured_with_bounds_that_hold() -> None:
    explainer, row = hard()
    told: list[tuple[float, float, int]] = []
    started = time.process_time()
    explanation = explainer.explain(
        row, distance="l1", time_limit=4.0, solver="milp", on_progress=lambda *bounds: told.append(bounds)
    )
    assert time.process_time() - started < 20
    assert explanation.status == "feasible"
    assert explanation.reason == "time limit reached"
    assert 0 <= explanation.lower < explanation[0].distance
    lowers, uppers, calls = zip(*told, strict=True)
    assert list(lowers) == sorted(lowers)
    assert list(uppers) == sorted(uppers, reverse=True)
    assert list(calls) == sorted(set(calls))
    assert explanation.lower == pytest.approx(lowers[-1])


@pytest.mark.parametrize("seconds", [1e-9, 0.01, 0.05, 0.2])
def test_a_short_deadline_is_an_answer(seconds: float) -> None:
    explainer, row = hard()
    started = time.process_time()
    explanation = explainer.explain(row, time_limit=seconds, solver="milp")
    assert time.process_time() - started < seconds + 1
    assert explanation.reason == "time limit reached"
    assert explanation.status in ("unknown", "feasible")


@pytest.mark.slow
def test_an_interrupt_keeps_what_was_found() -> None:
    script = (
        "import signal\n"
        "from test_milp import hard\n"
        "explainer, row = hard()\n"
        "def interrupt(*_): raise KeyboardInterrupt\n"
        "signal.signal(signal.SIGALRM, interrupt)\n"
        "signal.setitimer(signal.ITIMER_REAL, 2.5)\n"
        "explanation = explainer.explain(row, solver='milp', time_limit=60)\n"
        "print(explanation.status, '|', explanation.reason, '|', len(explanation))\n"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-W", "ignore", "-c", script]
    result = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    status, reason, found = (part.strip() for part in result.stdout.split("|"))
    assert (status, reason, found) == ("feasible", "interrupted", "1")


def test_memory_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    explainer, row = hard()
    monkeypatch.setattr("mace.solvers.milp.ball.MOST_OPEN_NODES", 3)
    explanation = explainer.explain(row, solver="milp", time_limit=30)
    assert explanation.status == "feasible"
    assert explanation.reason == "memory limit reached"


def test_the_same_question_gives_the_same_answer() -> None:
    case = random_function(1005, features=8, finite=False)
    explainer = Explainer(case.model, case.space)
    first, second = (explainer.explain(case.row, solver="milp") for _ in range(2))
    assert [c.values for c in first] == [c.values for c in second]
    assert [c.calls for c in first] == [c.calls for c in second]


def test_the_statuses_of_the_lane_are_those_of_its_bounds() -> None:
    _, problem = problem_from(random_function(5))
    bounds = milp.solve(problem, Limits())
    assert bounds.status(problem.accuracy) in (Status.OPTIMAL, Status.INFEASIBLE)
    assert bounds.notes["nodes"] >= 0
    assert choose("milp", problem).why == "asked for by name"
