"""Questions at the edges of what can be asked, in every lane, against brute force over all rows."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest
import random_strange
from random_degenerate import FAMILIES, Degenerate, degenerate, disagreement
from random_strange import strange
from strange_referee import fault_of_lanes, fault_of_ranges, fault_of_several

import mace

FEW = 2 * len(FAMILIES)

FAULTS: dict[str, Callable[[Degenerate], str | None]] = {
    "lanes": fault_of_lanes,
    "several": lambda case: fault_of_several(case, 0),
    "ranges": fault_of_ranges,
}


def test_answers_where_little_or_nothing_may_vary_are_true() -> None:
    found = {seed: disagreement(degenerate(seed)) for seed in range(FEW)}
    assert set(found.values()) <= {None, "skipped"}, found


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(FEW, 10 * len(FAMILIES)))
def test_many_more_are_true(seed: int) -> None:
    assert disagreement(degenerate(seed)) in (None, "skipped")


def test_a_point_that_is_no_row_refutes_no_certificate() -> None:
    """An SMT solver finds points of the formula between the floats of a column."""
    assert disagreement(degenerate(60506)) is None


@pytest.mark.filterwarnings(
    "ignore::RuntimeWarning"
)  # of libraries, for coefficients and features near the ends of floats
@pytest.mark.parametrize("about", FAULTS)
def test_answers_at_the_ends_of_what_floats_and_spaces_can_be_are_true(about: str) -> None:
    faults = [_strange_fault(about, seed) for seed in range(len(random_strange.FAMILIES))]
    assert set(faults) <= {None, "refused"}, list(enumerate(faults))
    assert None in faults


@pytest.mark.filterwarnings(
    "ignore::RuntimeWarning"
)  # of libraries, for coefficients and features near the ends of floats
@pytest.mark.slow
@pytest.mark.parametrize("about", FAULTS)
@pytest.mark.parametrize("family", range(len(random_strange.FAMILIES)))
def test_many_more_of_these_are_true(about: str, family: int) -> None:
    count = len(random_strange.FAMILIES)
    faults = {seed: _strange_fault(about, seed) for seed in range(count + family, 12 * count, count)}
    assert set(faults.values()) <= {None, "refused"}, faults


def _strange_fault(about: str, seed: int) -> str | None:
    """Return what is wrong; "refused" where the library cannot fit such a model, or the question is refused with its reason."""
    case = strange(seed)
    if case is None:
        return "refused"
    with suppress(mace.MaceError):
        return FAULTS[about](case)
    return "refused"
