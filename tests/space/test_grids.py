"""Grids of decimals: their values and places by whole numbers and floats, against fractions; what guards leave of them."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from mace.errors import InvalidSpace
from mace.language import holds, syntax
from mace.solvers.domains import _bounded, _first_and_last, _spans_of, on_grid
from mace.space import Real

STEPS = (1.0, 0.1, 0.01, 1e-5, 1e-9, 0.25, 0.3, 100.0, 7e5, 1 / 3)


def grids(seed: int) -> list[Real]:
    rng = np.random.default_rng(seed)
    made: list[Real] = []
    while len(made) < 60:
        step = float(rng.choice(STEPS))
        low = float(rng.choice([0.0, -1.5, rng.uniform(-10, 10), round(rng.uniform(-1e4, 1e4), 2), 1e6 * rng.random()]))
        high = low + step * float(rng.choice([1, 2.5, 3, 1000, 10**6, 2**30]))
        dtype: Any = None if rng.random() < 0.7 else "float32"
        try:
            made.append(Real(low, high, step=step, dtype=dtype))
        except InvalidSpace:
            continue
    return made


def in_fractions(feature: Real, k: int) -> float:
    low, step = feature.decimals
    return feature.nearest(float(low + k * step))


@pytest.mark.parametrize("seed", range(3))
def test_a_value_is_on_a_grid_where_fractions_say_so(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for feature in grids(seed):
        assert feature.size is not None
        for k in map(int, rng.integers(0, feature.size, 10)):
            value = feature.value_at(k)
            assert value == in_fractions(feature, k)
            near = [value, math.nextafter(value, math.inf), math.nextafter(value, -math.inf), round(value, 3)]
            for other in [*near, feature.nearest(float(rng.uniform(feature.low, feature.high)))]:
                is_in = feature.low <= other <= feature.high and feature.nearest(other) == other
                low, step = feature.decimals
                place = round((feature.decimal(other) - low) / step)
                assert feature.has(other) == (is_in and in_fractions(feature, place) == other)


@pytest.mark.parametrize("seed", range(3))
def test_the_ends_of_a_grid_between_two_numbers_are_the_same_one_by_one_and_in_arrays(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for feature in grids(seed):
        for _ in range(5):
            ends = sorted(float(each) for each in rng.uniform(feature.low, feature.high, 2))
            ends[0] = feature.value_at(0) if rng.random() < 0.2 else math.nextafter(ends[0], math.inf)
            firsts, lasts = on_grid(feature, np.array([ends[0]]), np.array([ends[1]]))
            assert _first_and_last(feature, *ends) == (firsts[0], lasts[0])


def test_a_grid_of_one_value_whose_step_is_longer_than_whole_numbers_hold() -> None:
    feature = Real(0.123456789012345, 700_000.0, step=7e5)
    assert feature.size == 1
    firsts, lasts = on_grid(feature, np.array([0.0]), np.array([1.0]))
    assert firsts[0] == lasts[0] == feature.low


@pytest.mark.parametrize("seed", range(3))
def test_comparisons_with_floats_leave_the_range_that_trying_every_piece_leaves(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(100):
        low, high = sorted(float(each) for each in rng.normal(size=2))
        constants = [Fraction(float(each)) for each in [low, high, *rng.normal(size=2)]]
        guards: list[syntax.Guard] = [
            syntax.Compare(str(rng.choice(["<=", ">=", "=="])), syntax.Variable("x"), syntax.Constant(constants[k]))  # type: ignore[arg-type]
            for k in rng.integers(0, 4, rng.integers(1, 4))
        ]
        found = _bounded(guards, low, high)
        assert found == _spans_of("x", guards, low, high)
        for value in constants:
            is_in = any(a <= value <= b for a, b in found or ())
            assert is_in == (low <= value <= high and all(holds(guard, {"x": value}) for guard in guards))
    assert _bounded([syntax.Compare("<=", syntax.Variable("x"), syntax.Constant(Fraction(1, 3)))], 0.0, 1.0) is None
