"""Distances: program, exact value and fast value say the same."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mace import Distance, FeatureSpace, InvalidDistance, categorical, integer, ordinal, real
from mace.distances import NORMS, as_distance, distance_down, distance_up, point_values
from mace.distances.change import change
from mace.language import run
from mace.space import Point

SPACE = FeatureSpace(
    {
        "x": real(-1, 3),
        "n": integer(0, 10),
        "o": ordinal(["a", "b", "c"]),
        "c": categorical(["p", "q", "r"]),
        "m": real(0, 1, missing=True),
        "one": integer(5, 5),
    }
)

points = st.tuples(
    st.floats(-1, 3), st.integers(0, 10), st.integers(0, 2), st.integers(0, 2), st.none() | st.floats(0, 1), st.just(5)
)
DISTANCES = [
    *NORMS,
    Distance(l0=0.25, l1=0.25, linf=0.5),
    Distance(l1=1, weights={"x": 2.5, "c": 0.1}),
    Distance(linf=1, weights={"x": 3}),
    Distance(l0=1, weights={"n": 7}),
    Distance(l2=1, weights={"n": 7}),
]


@pytest.mark.parametrize("distance", DISTANCES, ids=str)
@given(old=points, new=points)
def test_program_exact_value_and_fast_value_agree(distance: object, old: Point, new: Point) -> None:
    metric = as_distance(distance).from_factual(SPACE, old)
    exact = metric.measure(new)
    assert run(metric.program(), point_values(SPACE, new)) == exact
    deltas = np.array([[float(change(f, a, b)) for f, a, b in zip(SPACE.values(), new, old, strict=True)]])
    fast = metric.floats(deltas)
    assert fast is not None
    assert fast[0] == pytest.approx(float(exact), rel=1e-12, abs=1e-300)
    assert 0 <= exact <= 1
    assert (exact == 0) == (new == old)


@pytest.mark.parametrize("distance", DISTANCES, ids=str)
@given(old=points, new=points)
def test_a_point_within_a_bound_moves_no_feature_beyond_its_reach(distance: object, old: Point, new: Point) -> None:
    metric = as_distance(distance).from_factual(SPACE, old)
    bound = distance_up(metric, metric.measure(new))
    for index, (feature, a, b) in enumerate(zip(SPACE.values(), new, old, strict=True)):
        assert change(feature, a, b) <= metric.reach(index, bound)


@given(old=points, new=points)
def test_l0_knows_its_next_value(old: Point, new: Point) -> None:
    metric = as_distance("l0").from_factual(SPACE, old)
    value = metric.measure(new)
    for below in (value - Fraction(1, 10**9), value - Fraction(1, 7)):
        if below >= 0:
            assert metric.next_above(below) <= value


def test_the_designs_definitions_by_hand() -> None:
    old: Point = (0.0, 5, 0, 0, None, 5)
    new: Point = (1.0, 5, 2, 1, 0.5, 5)
    deltas = [Fraction(1, 4), 0, 1, 1, 1, 0]
    expected = {"l0": Fraction(4, 6), "l1": sum(deltas) / 6, "l2": sum(d * d for d in deltas) / 6, "linf": Fraction(1)}
    for name, value in expected.items():
        assert as_distance(name).from_factual(SPACE, old).measure(new) == value


def test_l2_is_reported_as_a_root_rounded_outward() -> None:
    metric = as_distance("l2").from_factual(SPACE, (0.0, 5, 0, 0, None, 5))
    square = metric.measure((1.0, 5, 0, 0, None, 5))
    assert distance_down(metric, square) ** 2 <= square <= distance_up(metric, square) ** 2
    assert float(distance_up(metric, square)) == pytest.approx(math.sqrt(1 / 16 / 6))


def test_a_function_is_a_distance() -> None:
    def steps(new, old):  # type: ignore[no-untyped-def]
        cost = 2 * abs(new.n - old.n)
        if new.c != old.c:
            cost += 5 if new.c == "r" else 1
        return cost + (0 if new.o >= old.o else 100)

    old: Point = (0.0, 5, 1, 0, 0.5, 5)
    metric = as_distance(steps).from_factual(SPACE, old)
    assert metric.measure((0.0, 2, 1, 2, 0.5, 5)) == 11
    assert metric.measure((0.0, 5, 0, 1, 0.5, 5)) == 101
    assert (
        as_distance("lambda new, old: abs(new.n - old.n)").from_factual(SPACE, old).measure((0.0, 9, 1, 0, 0.5, 5)) == 4
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: as_distance("l3"), "'l3' is not one of the distances"),
        (lambda: as_distance(3), "is not a distance"),
        (lambda: Distance(), "add up to 0"),
        (lambda: Distance(l1=0.7), "add up to 0.7"),
        (lambda: Distance(l1=2, linf=-1), "linf is -1"),
        (lambda: Distance(l1=math.nan), "l1 is nan"),
        (lambda: Distance(l1=0.5, l2=0.5), "l2 cannot be mixed"),
        (lambda: Distance(l1=1, weights={"x": 0}), "weight of 'x' is 0"),
        (lambda: Distance(l1=1, weights={"xx": 1}).from_factual(SPACE, (0.0, 5, 0, 0, 0.5, 5)), "no feature 'xx'"),
        (lambda: as_distance(lambda new: 1).from_factual(SPACE, (0.0, 5, 0, 0, 0.5, 5)), "cannot read the distance"),
        (lambda: as_distance(lambda new, old: new.n % 2).from_factual(SPACE, (0.0, 5, 0, 0, 0.5, 5)), "cannot read"),
        (lambda: as_distance(lambda new, old: -1).from_factual(SPACE, (0.0, 5, 0, 0, 0.5, 5)).measure((0.0, 5, 0, 0, 0.5, 5)), "negative"),
    ],
)  # fmt: skip
def test_what_is_no_distance_is_refused(make: object, message: str) -> None:
    with pytest.raises(InvalidDistance, match=message):
        make()  # type: ignore[operator]


def test_shares_within_rounding_are_normalised() -> None:
    third = Distance(l0=1 / 3, l1=1 / 3, linf=1 / 3)
    metric = third.from_factual(SPACE, (-1.0, 0, 0, 0, None, 5))
    assert metric.measure((3.0, 10, 2, 1, 0.0, 5)) == Fraction(1, 3) * (Fraction(5, 6) + Fraction(5, 6) + 1)
