"""A sample of the campaign of readers: random models against every row's own predict, with certificates."""

from __future__ import annotations

import pytest
from random_readers import FAMILIES, fault_of, random_reader


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(1000, 1000 + 2 * len(FAMILIES)))
def test_answers_are_those_of_brute_force_and_their_certificates_hold(seed: int) -> None:
    case = random_reader(seed)
    assert case is None or fault_of(case) is None
