"""Smallest sets that hit others, compared with going through every set."""

from __future__ import annotations

import itertools
import random
import time

import pytest

from mace.answer import hitting
from mace.answer.conflicts import Undecided
from mace.answer.hitting import smallest_hitting


def drawn(seed: int) -> tuple[int, list[int], list[int]]:
    draw = random.Random(seed)
    size = draw.randint(1, 9)
    sets, barred = (
        [draw.randrange(1, 1 << size) for _ in range(draw.randint(0, most))] for most in (10, draw.choice([0, 6]))
    )
    return size, sets, barred


def is_one(made: int, sets: list[int], barred: list[int]) -> bool:
    return all(made & each for each in sets) and not any(each & made == each for each in barred)


def least(size: int, sets: list[int], barred: list[int]) -> int | None:
    found = (
        count
        for count in range(size + 1)
        for chosen in itertools.combinations(range(size), count)
        if is_one(sum(1 << place for place in chosen), sets, barred)
    )
    return next(found, None)


@pytest.mark.parametrize("most", [hitting.MOST_LOOKS, 0])
def test_it_is_a_smallest_one_by_either_way(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hitting, "MOST_LOOKS", most)
    none = 0
    for seed in range(300):
        size, sets, barred = drawn(seed)
        made, truth = smallest_hitting(size, sets, barred), least(size, sets, barred)
        assert (made is None) == (truth is None), seed
        none += made is None
        if made is not None:
            assert (made.bit_count(), is_one(made, sets, barred)) == (truth, True), seed
    assert 20 < none < 280


def test_every_set_holds_the_empty_one() -> None:
    assert smallest_hitting(3, [0b011], [0b100, 0]) is None
    assert smallest_hitting(3, [0], []) is None
    assert smallest_hitting(3, [], []) == 0


def test_a_hard_question_ends_in_time() -> None:
    draw = random.Random(0)
    sets = [sum(1 << place for place in draw.sample(range(100), 5)) for _ in range(600)]
    started = time.process_time()
    with pytest.raises(Undecided, match="time limit"):
        smallest_hitting(100, sets, [], lambda: 0.2)
    assert time.process_time() - started < 5
    with pytest.raises(Undecided, match="time limit"):
        smallest_hitting(100, sets, [], lambda: -1.0)
