"""A sample of the campaign of realism: random questions over finite spaces against brute force by definition."""

from __future__ import annotations

import warnings

import pytest
from realism_by_definition import KINDS, fault, fault_of_intervention, random_intervention, random_realistic


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", [0, 1, 2, 3, 4, 9])
def test_answers_kept_realistic_are_what_brute_force_finds(seed: int, kind: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        case = random_realistic(seed, kind)
        assert case is not None
        assert fault(case) is None


@pytest.mark.parametrize("seed", range(8))
def test_interventions_are_what_brute_force_finds(seed: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        case = random_intervention(seed)
        assert case is not None
        assert fault_of_intervention(case) is None
