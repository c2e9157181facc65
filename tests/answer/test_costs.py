"""What one step of each feature costs."""

from __future__ import annotations

import math

import pytest

import mace
from mace.answer.costs import costs
from mace.distances import as_distance

SPACE = mace.FeatureSpace(
    {
        "age": mace.integer(18, 90),
        "income": mace.real(0, 250_000),
        "rate": mace.real(0, 0.5, missing=True),
        "degree": mace.ordinal(["none", "school", "university"]),
        "housing": mace.categorical(["rent", "own", "free"]),
        "constant": mace.integer(3, 3),
        "grid": mace.real(0, 10, step=2.5),
    }
)


def table(row: dict[str, object], distance: object = "l1") -> dict[str, tuple[str, float]]:
    factual = SPACE.point(row)
    made = costs(SPACE, as_distance(distance).from_factual(SPACE, factual), factual)
    return {feature: (change, cost) for feature, change, cost in made}


ROW = {"age": 30, "income": 20_000.0, "rate": 0.2, "degree": "school", "housing": "own", "constant": 3, "grid": 5.0}


def test_a_step_of_each_kind_of_feature() -> None:
    made = table(ROW)
    assert {name: change for name, (change, _) in made.items()} == {
        "age": "+1", "income": "+1000", "rate": "+0.01", "degree": "school -> university", "housing": "another level", "grid": "+2.5",
    }  # fmt: skip
    shares = {"age": 1 / 72, "income": 1 / 250, "rate": 0.02, "degree": 0.5, "housing": 1.0, "grid": 0.25}
    assert {name: cost for name, (_, cost) in made.items()} == pytest.approx(
        {name: share / 7 for name, share in shares.items()}
    )


def test_steps_stay_inside_and_missing_is_any_value() -> None:
    made = table(ROW | {"age": 90, "degree": "university", "rate": math.nan})
    assert made["age"] == ("-1", pytest.approx(1 / 72 / 7))
    assert made["degree"][0] == "university -> school"
    assert made["rate"] == ("any value", pytest.approx(1 / 7))


def test_weights_and_norms_count() -> None:
    heavy = table(ROW, mace.Distance(weights={"age": 3}))
    assert heavy["age"][1] == pytest.approx(3 / 72 / 9)
    assert table(ROW, "l0")["age"][1] == pytest.approx(1 / 7)
    assert table(ROW, "linf")["age"][1] == pytest.approx(1 / 72)
