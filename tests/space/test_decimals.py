"""A number in a constraint means the decimal that is written, in search, in the check of the answer, and in certificates."""

from __future__ import annotations

import itertools
import json
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from random_decimals import FAMILIES, fault, random_case
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import mace
from mace.constraints.numbers import as_number, in_binary, read_number
from mace.exact import decimal_fraction, greatest_float, least_float
from mace.language import holds
from mace.language.roundings import operands, rounded, rounded_ends

WHOLE = mace.FeatureSpace({"x": mace.integer(0, 1000), "y": mace.integer(0, 1000)})


def from_edge(space: mace.FeatureSpace, edge: float, below: float) -> mace.Explainer:
    """Return an explainer of a model that says 1 from x = ``edge`` on, and not at ``below``."""
    others = [0.0] * (len(space) - 1)
    model = DecisionTreeClassifier().fit([[below, *others], [edge, *others]], [0, 1])
    return mace.Explainer(model, space)


def asked(explainer: mace.Explainer, row: dict[str, Any], constraint: Any, **more: Any) -> Any:
    """Return the answer, its certificate checked."""
    answer = explainer.explain(row, target=1, constraints=[constraint], certify=True, **more)
    proof = answer[0].certificate if len(answer) else answer.certificate
    verdict = mace.verify(mace.Certificate.from_json(proof.to_json()), explainer.model)
    assert verdict.outcome != "refuted", verdict
    return answer


# ---- the findings


@pytest.mark.parametrize("share", range(1, 100))
def test_a_whole_percentage_of_100_allows_that_much(share: int) -> None:
    explainer = from_edge(WHOLE, 100 + share, 99 + share)
    row = {"x": 100, "y": 5}
    given = (
        mace.at_most_change("x", f"{share}%"),
        f"x changes by at most {share}%",
        mace.at_most_change("x", share / 100, relative=True),
        f"x <= {(100 + share) / 100!r} * old.x",
    )
    for constraint in given:
        assert explainer.explain(row, target=1, constraints=[constraint])[0].values["x"] == 100 + share
    beyond = from_edge(WHOLE, 101 + share, 100 + share)
    assert beyond.explain(row, target=1, constraints=[given[0]]).status == "infeasible"


@pytest.mark.parametrize("solver", ["auto", "milp", "smt"])
@pytest.mark.parametrize("tenths", [3, 6, 7])
def test_tenths_of_10_are_whole(tenths: int, solver: str) -> None:
    explainer = from_edge(WHOLE, tenths, tenths - 1)
    for constraint in (
        f"x <= 0.{tenths} * y and y <= 10",
        f"x <= 0.{tenths} * old.y",
        f"lambda new, old: new.x <= 0.{tenths} * new.y and new.y <= 10",
        mace.linear({"x": 1, "y": -tenths / 10}, "<=", 0) & mace.within("y", 0, 10),
    ):
        answer = asked(explainer, {"x": 0, "y": 10}, constraint, solver=solver)
        assert answer[0].values == {"x": tenths, "y": 10}


@pytest.mark.parametrize("start", range(10))
def test_a_step_is_a_change_of_a_step(start: int) -> None:
    space = mace.FeatureSpace({"x": mace.real(0, 1, step=0.1)})
    row, goal = {"x": space["x"].value_at(start)}, space["x"].value_at(start + 1)  # type: ignore[union-attr]
    explainer = from_edge(space, goal, row["x"])
    for constraint in (
        mace.at_most_change("x", 0.1),
        "x changes by at most 0.1",
        "x <= old.x + 0.1",
        "lambda new, old: new.x - old.x <= 0.1",
        "abs(x - old.x) <= 0.1",
        mace.steps("x", 0.1),
    ):
        assert asked(explainer, row, constraint)[0].values["x"] == goal
    assert explainer.explain(row, target=1, constraints=["x < old.x + 0.1"]).status == "infeasible"


def test_reals_without_a_step_reach_the_decimal_too() -> None:
    space = mace.FeatureSpace({"x": mace.real(0, 1), "y": mace.real(0, 10)})

    def model(x: float, y: float) -> int:
        return 1 if x >= 0.4 else 0

    explainer = mace.Explainer(model, space)
    for constraint in (mace.at_most_change("x", 0.1), "x <= old.x + 0.1", "x <= 0.04 * old.y", "x == 0.1 + old.x"):
        answer = explainer.explain({"x": 0.3, "y": 10.0}, target=1, constraints=[constraint])
        assert answer[0].values["x"] == 0.4, constraint
    assert explainer.explain({"x": 0.3, "y": 10.0}, target=1, constraints=["x < old.x + 0.1"]).status == "infeasible"


@pytest.mark.parametrize("solver", ["milp", "smt"])
def test_strict_rules_between_grids_are_exact_beside_a_real(solver: str) -> None:
    space = mace.FeatureSpace({"x": mace.real(0, 1, step=0.1), "y": mace.real(0, 10), "z": mace.real(0, 2, step=0.1)})

    def model(x: float, y: float, z: float) -> int:
        return 1 if x >= 0.4 else 0

    explainer = mace.Explainer(model, space)
    row = {"x": 0.3, "y": 10.0, "z": 0.7}
    for constraint, x, z in (
        ("x + z <= 1.1", 0.4, 0.7),
        ("x + z < 1.1", 0.4, 0.6),
        ("x == 0.4 * z", 0.4, 1.0),
        ("0.3 * x - z != -0.58 and z stays", 0.5, 0.7),
        ("lambda new, old: new.x * new.z <= 0.28", 0.4, 0.7),
    ):
        answer = asked(explainer, row, constraint, solver=solver)
        assert answer.status == "optimal", constraint
        assert answer[0].values == {"x": x, "y": 10.0, "z": z}


def test_weights_of_a_budget_are_decimals() -> None:
    space = mace.FeatureSpace({name: mace.integer(0, 1) for name in "abc"})
    model = LogisticRegression()
    model.fit([[0, 0, 0], [1, 1, 1]], [0, 1])
    model.coef_, model.intercept_ = np.array([[1.0, 1.0, 1.0]]), np.array([-2.5])
    explainer = mace.Explainer(model, space)
    row = {"a": 0, "b": 0, "c": 0}
    budget = mace.changes_at_most(0.6, weights={"a": 0.1, "b": 0.2, "c": 0.3})
    assert len(asked(explainer, row, budget)) == 1
    less = mace.changes_at_most(0.5999999999999999, weights={"a": 0.1, "b": 0.2, "c": 0.3})
    assert asked(explainer, row, less).status == "infeasible"


# ---- literals and texts


def test_a_literal_counts_with_all_its_digits() -> None:
    space = mace.FeatureSpace({"x": mace.real(0, 1, step=0.1)})
    point = space.point({"x": 0.3})
    values = {"x": Fraction(0.3)}
    for digits, is_allowed in (
        ("0.3", True),
        ("0.30000000000000000001", True),
        ("0.29999999999999999999", False),
        ("0.3000", True),
        ("3e-1", True),
    ):
        rule = mace.rule(f"x <= {digits}")
        assert mace.rule(rule.text) == rule  # type: ignore[attr-defined]
        assert rule.bind(space, point).holds(values) == is_allowed, digits
    with pytest.raises(mace.InvalidConstraint, match="too large, or too small"):
        mace.rule("x <= 1e-5000")
    with pytest.raises(mace.InvalidConstraint, match="too large, or too small"):
        mace.rule("x <= 1e5000")


@pytest.mark.parametrize("amount", ["3%", "0.7%", "12.345%", "1e-3%", "33.333333333333333333%", "100%"])
def test_the_text_of_a_share_reads_back(amount: str) -> None:
    made = mace.at_most_change("x", amount)
    assert mace.rule(made.text) == made
    guard = made.bind(WHOLE, WHOLE.point({"x": 100, "y": 0}))
    reach = Decimal(amount.removesuffix("%"))
    for change in range(101):
        assert guard.holds({"x": Fraction(100 + change), "y": Fraction(0)}) == (change <= reach)


def test_the_text_of_a_number_of_numpy_reads_back() -> None:
    made = mace.at_most_change("x", np.float64(0.3))
    assert mace.rule(made.text) == made


@pytest.mark.parametrize("text", ["0.1", "12", "1e22", "0.1000000000000000055511151231257827", "-2.50", "7e-9"])
def test_numbers_are_read_exactly(text: str) -> None:
    assert Fraction(str(read_number(text))) == Fraction(text)
    assert as_number(Fraction(text)) == read_number(text)


# ---- roundings


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_edges_lie_where_decimals_turn(dtype: str) -> None:
    rng = np.random.default_rng(3)
    kind = np.dtype(dtype).type
    for _ in range(300):
        value = float(kind(rng.choice([rng.uniform(-9, 9), np.round(rng.uniform(-3, 3), 1), rng.normal() * 1e-4])))
        decimal = decimal_fraction(value, dtype)
        assert kind(float(decimal)) == value
        for bound in (decimal, Fraction(value), decimal + Fraction(1, 10**30), decimal - Fraction(1, 10**30)):
            least, most = least_float(bound, dtype), greatest_float(bound, dtype)
            below, above = np.nextafter(kind(least), kind(-np.inf)), np.nextafter(kind(most), kind(np.inf))
            assert decimal_fraction(float(below), dtype) < bound <= decimal_fraction(least, dtype)
            assert decimal_fraction(most, dtype) <= bound < decimal_fraction(float(above), dtype)


@pytest.mark.parametrize("name", ["decimal", "float"])
def test_ranges_of_roundings_lose_nothing(name: str) -> None:
    rng = np.random.default_rng(4)
    for _ in range(300):
        value = float(np.round(rng.uniform(-2, 2), int(rng.integers(1, 18))))
        near = [value, math.nextafter(value, -3), math.nextafter(value, 3)]
        result = rounded(name, Fraction(value))
        low, high = (Fraction(value) + Fraction(int(k), 10**18) for k in sorted(rng.integers(-300, 300, size=2)))
        for each in near:
            if low <= Fraction(each) <= high:
                ends = rounded_ends(name, low, high)
                assert ends is not None
                assert ends[0] <= rounded(name, Fraction(each)) <= ends[1]
            if low <= rounded(name, Fraction(each)) <= high:
                inside = operands(name, low, high)
                assert inside is not None
                assert inside[0] <= Fraction(each) <= inside[1]
        assert operands(name, result, result) is not None


# ---- limits on distances


TENTHS = mace.FeatureSpace({"x": mace.real(0, 1, step=0.1), "y": mace.real(0.1, 0.8, step=0.1)})


def tenths() -> list[dict[str, float]]:
    values = [[f.value_at(k) for k in range(f.size)] for f in TENTHS.values()]  # type: ignore[union-attr]
    return [dict(zip(TENTHS, chosen, strict=True)) for chosen in itertools.product(*values)]


def apart(one: dict[str, float], other: dict[str, float]) -> Decimal:
    """Return 14 times the l1 distance, in decimals."""
    x, y = (abs(Decimal(repr(one[name])) - Decimal(repr(other[name]))) for name in TENTHS)
    return 7 * x + 10 * y


@pytest.mark.parametrize("radius", ["0.05", "0.15", "0.1", "0.25"])
@pytest.mark.parametrize("solver", ["auto", "smt"])
def test_a_radius_holds_between_decimals(radius: str, solver: str) -> None:
    data = [{"x": 0.3, "y": 0.1}, {"x": 0.7, "y": 0.6}]
    condition = mace.near_data(data, radius=float(radius)).bind(TENTHS, TENTHS.point(data[0]))
    allowed = []
    for row in tenths():
        is_near = any(apart(row, each) <= 14 * Decimal(radius) for each in data)
        values = {name: Fraction(value) for name, value in row.items()}
        assert condition.holds(values) == is_near, row
        allowed += [row] if is_near else []
    for edge in sorted({row["x"] for row in tenths()})[4:9]:
        explainer = from_edge(TENTHS, edge, edge - 0.1)
        answer = asked(explainer, data[0], mace.near_data(data, radius=float(radius)), solver=solver)
        reached = [row for row in allowed if int(explainer.model.predict([list(row.values())])[0]) == 1]
        assert (answer.status == "infeasible") == (not reached)
        if reached:
            assert answer[0].values in reached


@pytest.mark.parametrize("solver", ["auto", "smt"])
def test_a_distance_between_answers_is_one_of_decimals(solver: str) -> None:
    explainer = from_edge(TENTHS, 0.4, 0.3)
    row = {"x": 0.3, "y": 0.1}
    differ = mace.differ(distance=0.05)
    answers = explainer.explain(row, target=1, count=3, diversity=differ, solver=solver)
    for one, other in itertools.combinations([each.values for each in answers], 2):
        assert apart(one, other) >= 14 * Decimal("0.05")
    # 0.1 of x is exactly 0.05, so the next step is far enough.
    assert [each.values["x"] for each in answers[:2]] == [0.4, 0.5]


@pytest.mark.parametrize("kind", ["tree", "linear"])
def test_a_share_of_the_range_is_one_of_decimals(kind: str) -> None:
    space = mace.FeatureSpace({"x": mace.real(0, 0.7)})
    explainer = from_edge(space, 0.2, 0.1)
    if kind == "linear":
        model = LogisticRegression().fit([[0.1], [0.2]], [0, 1])
        model.coef_, model.intercept_ = np.array([[1.0]]), np.array([-0.15])
        explainer = mace.Explainer(model, space)
    answers = explainer.explain({"x": 0.05}, target=1, count=3, diversity=mace.differ(features=1, by=0.3), certify=True)
    assert len(answers) >= 2
    for one, other in itertools.combinations([each.values["x"] for each in answers], 2):
        assert abs(Decimal(repr(one)) - Decimal(repr(other))) >= Decimal("0.21")
    for each in answers:
        assert mace.verify(each.certificate, explainer.model).outcome == "valid"


@pytest.mark.parametrize("noise", [0.1, 0.2, 0.3])
@pytest.mark.parametrize("step", [None, 0.1])
def test_noise_reaches_as_far_as_its_decimal(noise: float, step: float | None) -> None:
    """1 from 0.2 to 0.8: with noise of 0.3 only 0.5 stands, in decimals."""
    space = mace.FeatureSpace({"x": mace.real(0, 1, step=step)})

    def decide(x: float) -> int:
        return 1 if 0.2 <= x <= 0.8 else 0

    explainer = mace.Explainer(decide, space)
    answer = explainer.explain({"x": 0.0}, target=1, constraints=[mace.robust({"x": noise})])
    first = float(Decimal("0.2") + Decimal(repr(noise)))
    assert abs(answer[0].values["x"] - first) <= 1e-6
    condition = mace.robust({"x": noise}).bind(space, space.point({"x": 0.0}))
    low, high = condition.reach("x", 0.5, 0.5)  # type: ignore[attr-defined]
    assert low == Fraction(float(Decimal("0.5") - Decimal(repr(noise))))
    assert high == Fraction(float(Decimal("0.5") + Decimal(repr(noise))))


# ---- the referee


@pytest.mark.parametrize("seed", range(4 * len(FAMILIES)))
def test_answers_agree_with_an_evaluator_written_with_decimal(seed: int) -> None:
    assert fault(random_case(1_000_000 + seed)) in (None, "skipped")


def test_the_checker_keeps_to_a_value_that_a_grid_may_not_take() -> None:
    """Found by the campaign: a proof of the network lane was refuted, because the checker took 0.4 for allowed."""
    case = random_case(357)
    for constraints in (["y != 0.4", "y >= 0.36"], ["y < 0.4"], ["y > 0.35", "y != 0.4"]):
        answer = case.explainer.explain(case.row, constraints=constraints, certify=True)
        proof = answer[0].certificate if len(answer) else answer.certificate
        assert mace.verify(proof, case.explainer.model).outcome == "valid"
    assert fault(case) is None


# ---- certificates of version 1


def of_version_1(answer: Any) -> dict[str, Any]:
    proof = answer[0].certificate if len(answer) else answer.certificate
    data: dict[str, Any] = json.loads(proof.to_json())
    assert data["version"] == 2
    data["version"] = 1
    return data


def test_version_1_is_valid_where_the_meanings_agree() -> None:
    explainer = from_edge(WHOLE, 103, 102)
    for constraint in ("x <= 2 * y + 100", "y stays", mace.at_most_change("x", 3), "x <= 1.5 * old.x"):
        answer = explainer.explain({"x": 100, "y": 5}, target=1, constraints=[constraint], certify=True)
        assert mace.verify(of_version_1(answer), explainer.model).outcome == "valid"


def test_version_1_is_unchecked_where_the_meanings_differ() -> None:
    explainer = from_edge(WHOLE, 103, 102)
    answer = explainer.explain({"x": 100, "y": 5}, target=1, constraints=[mace.at_most_change("x", "3%")], certify=True)
    assert mace.verify(answer[0].certificate, explainer.model).outcome == "valid"
    verdict = mace.verify(of_version_1(answer), explainer.model)
    assert verdict.outcome == "unchecked"
    assert "binary fractions" in verdict.reason


def test_version_1_reads_numbers_as_binary_fractions() -> None:
    space = mace.FeatureSpace({"x": mace.real(0, 10), "y": mace.real(0, 10)})
    factual = space.point({"x": 0.3, "y": 10.0})
    three = {"x": Fraction(3), "y": Fraction(10)}
    for given in ("x <= 0.3 * y", "lambda new, old: new.x <= 0.3 * new.y", "x <= 0.3 * old.y"):
        rule = mace.rule(given)
        assert rule.bind(space, factual).holds(three)
        with in_binary():
            assert not rule.bind(space, factual).holds(three)


def test_a_guard_of_one_feature_is_one_of_floats() -> None:
    space = mace.FeatureSpace({"x": mace.real(0, 10)})
    factual = space.point({"x": 0.3})
    for given, edge in (("x <= old.x + 0.1", 0.4), ("2 * x <= 0.6", 0.3), ("x >= 3 * old.x", 0.9)):
        condition: Any = mace.rule(given).bind(space, factual)
        assert condition.guard.right.value == Fraction(edge)
        assert holds(condition.guard, {"x": Fraction(edge)})
