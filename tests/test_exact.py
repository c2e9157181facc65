"""Floats and fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mace.exact import (
    decimal_fraction,
    float32_edge,
    float_above,
    float_below,
    float_down,
    float_up,
    gamma,
    root_down,
    root_up,
)

fractions = st.fractions(min_value=-(10**9), max_value=10**9)
thresholds = st.floats(-1e30, 1e30, allow_nan=False).filter(lambda t: t == 0 or abs(t) > 1e-35)


@given(fractions)
def test_rounding_up_and_down_encloses_and_is_tight(value: Fraction) -> None:
    low, high = float_down(value), float_up(value)
    assert low <= value <= high
    assert low == high or math.nextafter(low, math.inf) == high


@given(fractions | st.floats(-1e9, 1e9).map(Fraction))
def test_the_floats_next_to_a_number_are_above_and_below_it_and_tight(value: Fraction) -> None:
    low, high = float_below(value), float_above(value)
    assert low < value < high
    assert math.nextafter(low, math.inf) >= value >= math.nextafter(high, -math.inf)


@given(thresholds)
def test_the_float32_edge_is_the_last_float64_that_goes_left(threshold: float) -> None:
    edge = float(float32_edge(np.array([threshold]))[0])
    after = math.nextafter(edge, math.inf)
    assert float(np.float32(edge)) <= threshold
    assert float(np.float32(after)) > threshold


@given(st.fractions(min_value=0, max_value=4))
def test_roots_enclose_the_square_root_within_2_to_the_minus_60(square: Fraction) -> None:
    low, high = root_down(square), root_up(square)
    assert low * low <= square <= high * high
    assert high - low <= Fraction(1, 2**59)


def test_a_decimal_is_what_a_person_means() -> None:
    assert decimal_fraction(0.1) == Fraction(1, 10) != Fraction(0.1)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40), st.randoms())
def test_gamma_bounds_the_error_of_a_sum_in_any_order(values: list[float], random: object) -> None:
    exact = sum(map(Fraction, values))
    size = sum(abs(Fraction(value)) for value in values)
    shuffled = list(values)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    total = 0.0
    for value in shuffled:
        total += value
    assert abs(Fraction(total) - exact) <= gamma(len(values)) * size
