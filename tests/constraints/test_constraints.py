"""Constraints and diversity: conditions on the counterfactual, exact, and refused where they make no sense."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import mace
from mace import FeatureSpace, InvalidConstraint, InvalidOption, categorical, integer, ordinal, real
from mace.constraints.combine import as_constraints
from mace.distances import as_distance, point_values
from mace.space import Point

SPACE = FeatureSpace(
    {
        "n": integer(0, 10),
        "o": ordinal(["a", "b", "c"]),
        "c": categorical(["p", "q"]),
        "m": real(0, 1, missing=True),
    }
)
OLD: Point = (5, 1, 0, 0.5)


def allows(constraint: object, new: Point, old: Point = OLD) -> bool:
    return constraint.bind(SPACE, old).holds(point_values(SPACE, new))  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("constraint", "new", "allowed"),
    [
        (mace.fixed("n", "c"), (5, 2, 0, 0.1), True),
        (mace.fixed("n", "c"), (6, 1, 0, 0.5), False),
        (mace.fixed("m"), (5, 1, 0, None), False),
        (mace.increases("o"), (5, 1, 0, 0.5), True),
        (mace.increases("o", "n"), (6, 2, 0, 0.5), True),
        (mace.increases("o", "n"), (4, 2, 0, 0.5), False),
        (mace.increases("m"), (5, 1, 0, None), False),
        (mace.decreases("n"), (5, 1, 0, 0.5), True),
        (mace.decreases("n"), (6, 1, 0, 0.5), False),
        (mace.within("n", 2, 4), (4, 1, 0, 0.5), True),
        (mace.within("n", 2, 4), (5, 1, 0, 0.5), False),
        (mace.within("o", "b", "c"), (5, 0, 0, 0.5), False),
        (mace.within("m", 0, 1), (5, 1, 0, None), False),
        (mace.one_of("c", ["q"]), (5, 1, 1, 0.5), True),
        (mace.one_of("c", ["q"]), (5, 1, 0, 0.5), False),
        (mace.one_of("n", [1, 9]), (9, 1, 0, 0.5), True),
        (mace.one_of("n", [1, 9]), (2, 1, 0, 0.5), False),
    ],
)
def test_a_constraint_allows_exactly_what_it_says(constraint: object, new: Point, allowed: bool) -> None:
    assert allows(constraint, new) == allowed


def test_a_missing_factual_may_only_stay_missing_under_an_order() -> None:
    old: Point = (5, 1, 0, None)
    assert allows(mace.increases("m"), old, old)
    assert not allows(mace.increases("m"), (5, 1, 0, 1.0), old)
    assert allows(mace.fixed("m"), old, old)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: mace.fixed(), "names no feature"),
        (lambda: mace.only(), "names no feature"),
        (lambda: mace.at_most_change(2), r"changes_at_most\(2\)"),
        (lambda: mace.only("nn").bind(SPACE, OLD), "no feature 'nn'. Did you mean 'n'"),
        (lambda: mace.only(["n"]).bind(SPACE, OLD), "name the features one by one"),
        (lambda: mace.increases(), "names no feature"),
        (lambda: mace.fixed("nn").bind(SPACE, OLD), "no feature 'nn'. Did you mean 'n'"),
        (lambda: mace.increases("c").bind(SPACE, OLD), "'c' is categorical and has no order"),
        (lambda: mace.within("c", "p", "q").bind(SPACE, OLD), "no order"),
        (lambda: mace.within("n", 4, 2).bind(SPACE, OLD), "lower bound is above"),
        (lambda: mace.within("o", "a", "z").bind(SPACE, OLD), "'z' is not a level of 'o'"),
        (lambda: mace.within("n", "a", 3).bind(SPACE, OLD), "'a' is not a finite number"),
        (lambda: mace.one_of("c", []), "at least one"),
        (lambda: mace.one_of("c", "p"), "the levels are a list"),
        (lambda: mace.one_of("c", ["P"]).bind(SPACE, OLD), "'P' is not a level of 'c'"),
    ],
)
def test_a_constraint_that_makes_no_sense_is_refused(make: object, message: str) -> None:
    with pytest.raises(InvalidConstraint, match=message):
        make()  # type: ignore[operator]


@pytest.mark.parametrize(
    ("diversity", "new", "allowed"),
    [
        (mace.differ(), OLD, False),
        (mace.differ(), (6, 1, 0, 0.5), True),
        (mace.differ(), (5, 1, 0, 0.505), False),
        (mace.differ(), (5, 1, 0, 0.52), True),
        (mace.differ(), (5, 1, 0, None), True),
        (mace.differ(by=0), (5, 1, 0, 0.505), True),
        (mace.differ(features=2), (6, 1, 0, 0.5), False),
        (mace.differ(features=2), (6, 2, 0, 0.5), True),
        (mace.differ(distance=0.25), (5, 1, 1, 0.5), True),
        (mace.differ(distance=0.26), (5, 1, 1, 0.5), False),
    ],
)
def test_diversity_counts_as_the_paper_says(diversity: mace.differ, new: Point, allowed: bool) -> None:  # type: ignore[valid-type]
    conditions = diversity.bind(SPACE, OLD, OLD, as_distance("l1"))  # type: ignore[attr-defined]
    assert all(each.holds(point_values(SPACE, new)) for each in conditions) == allowed


@pytest.mark.parametrize(
    "options",
    [
        {"features": 0},
        {"features": 1.5},
        {"distance": 0},
        {"distance": -1},
        {"features": 1, "distance": 1},
        {"by": 2},
        {"by": "x"},
        {"in_sets": True, "features": 2},
        {"in_sets": True, "distance": 0.1},
        {"in_sets": 1},
        {"sets": "nested"},
        {"sets": True},
        {"sets": "incomparable", "features": 2},
        {"sets": "incomparable", "distance": 0.1},
        {"sets": "incomparable", "in_sets": True},
    ],
    ids=str,
)
def test_a_diversity_that_makes_no_sense_is_refused(options: dict[str, object]) -> None:
    with pytest.raises(InvalidOption):
        mace.differ(**options)  # type: ignore[arg-type]


def test_constraints_and_diversity_print_as_the_code_that_makes_them() -> None:
    for made in (
        mace.fixed("n"),
        mace.increases("o"),
        mace.within("n", 1, 2),
        mace.one_of("c", ["p"]),
        mace.differ(distance=0.1),
        mace.differ(in_sets=True),
        mace.differ(sets="incomparable"),
    ):
        assert eval(str(made), {name: getattr(mace, name) for name in mace.__all__}) == made


def test_the_distance_of_diversity_is_exact() -> None:
    (condition,) = mace.differ(distance=0.1).bind(SPACE, OLD, OLD, as_distance("l1"))
    assert condition.bound == Fraction(1, 10)  # type: ignore[attr-defined]


def accepts(n: int, o: str, c: str) -> bool:
    return n <= 4 or o == "c" or c == "q"


@pytest.mark.parametrize(
    "constraint",
    [
        mace.one_of("n", [3, 4, 3]),
        mace.one_of("n", [3, 3.0]),
        mace.one_of("c", ["p", "p"]),
        mace.transitions("o", {"b": ["c", "c"]}),
        mace.either(mace.one_of("c", ["q", "q"]), mace.fixed("n")),
    ],
    ids=str,
)
def test_values_that_are_given_twice_count_once_and_can_be_certified(constraint: object) -> None:
    assert mace.rule(constraint.text) == constraint  # type: ignore[attr-defined]
    explainer = mace.Explainer(accepts, SPACE.without("m"))
    answer = explainer.explain({"n": 5, "o": "b", "c": "p"}, constraints=[constraint], certify=True)
    assert mace.verify(answer[0].certificate, accepts).valid


SINGLE = FeatureSpace({"r": real(float(np.float32(0.1)), 1, dtype="float32")})
LOW, MIDDLE = float(np.float32(0.1)), float(np.float32(0.3))


@pytest.mark.parametrize(
    ("made", "allowed"),
    [
        (lambda: mace.within("r", np.float32(0.1), np.float32(0.3)), (LOW, MIDDLE)),
        (lambda: mace.one_of("r", [np.float32(0.1), np.float32(0.3)]), (LOW, MIDDLE)),
        (lambda: {"r": [np.float32(0.1), np.float32(0.3)]}, (LOW, MIDDLE)),
        (lambda: {"r": np.array([0.1, 0.3], dtype=np.float32)}, (LOW, MIDDLE)),
        (lambda: {"r": [LOW, MIDDLE]}, (LOW, MIDDLE)),
        (lambda: mace.within("r", MIDDLE, MIDDLE), (MIDDLE,)),
        (lambda: mace.one_of("r", [LOW, 0.3]), (LOW, MIDDLE)),
    ],
)
def test_a_number_of_a_float32_column_means_the_decimal_that_prints_it(made: Any, allowed: tuple[float, ...]) -> None:
    (constraint,) = as_constraints(made(), SINGLE)
    condition = constraint.bind(SINGLE, (0.5,))
    assert all(condition.holds({"r": Fraction(value)}) for value in allowed)
    assert not condition.holds({"r": Fraction(0.5)})
    assert mace.rule(constraint.text).bind(SINGLE, (0.5,)) == condition  # type: ignore[attr-defined]
