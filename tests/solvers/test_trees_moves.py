"""First answers of the tree lane: profiles say what every single move does, and the ascents along them end at counterfactuals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from problems import problem_of
from random_ensembles import random_ensemble
from random_problems import Case
from tiers import interpreted

import mace
from mace import Explainer
from mace.clock import OutOfTime, until
from mace.solvers.trees import incumbents, kernels, moves
from mace.solvers.trees.grid import Ints
from mace.solvers.trees.parts import Tables, TreePart

DISTANCES = ("l1", "linf")


def hill(case: Case, distance: str) -> tuple[TreePart, moves.Landscape] | None:
    """Return a question as the ascents see it; ``None`` where its goal has several margins, or needs several features changed."""
    asked = {**case.question, "distance": distance}
    try:
        tables = Tables(problem_of(Explainer(case.model, case.space), case.row, asked))
    except mace.MaceError:
        return None
    found = tables.alternatives()
    part = tables.part(tables.patterns.factual, found[0]) if found and len(found[0].base) == 1 else None
    return None if part is None or len(part.cells.at_least) else (part, incumbents._landscape(tables, part))


def score_of(part: TreePart, land: moves.Landscape, point: Ints) -> float:
    most, least = np.empty(1), np.empty(1)
    at = part.cells.off[:-1] + point
    kernels.scores_at(part.cells.base_cell[at], part.cells, part.trees, land.goal, most, least)
    return float(least[0])


def moved(part: TreePart, point: Ints) -> list[tuple[int, int]]:
    """Return the single moves that the box allows."""
    cells, box = part.cells, part.box
    return [
        (int(j), k)
        for j in np.flatnonzero(~np.asarray(cells.is_missing, dtype=bool))
        for k in range(int(cells.off[j + 1] - cells.off[j]))
        if ((int(box.mask[j]) >> k) & 1 if cells.is_mask[j] else box.lo[j] <= k <= box.hi[j]) and k != point[j]
    ]


@pytest.mark.parametrize("seed", range(0, 90, 2))
@pytest.mark.parametrize("tier", ["compiled", "interpreted"])
def test_a_profile_is_what_every_single_move_adds(seed: int, tier: str) -> None:
    made = hill(random_ensemble(seed, finite=seed % 4 == 0), "l1")
    if made is None:
        return
    part, land = made
    point = part.cells.own.copy()
    rng = np.random.default_rng(seed)
    for _ in range(3):
        before = moves.profile(point, land) if tier == "compiled" else _interpreted_profile(point, land)
        assert before == pytest.approx(score_of(part, land, point), abs=1e-9)
        choices = moved(part, point)
        for j, k in choices:
            other = point.copy()
            other[j] = k
            gain = land.gain[part.cells.off[j] + j + k]
            assert before + gain == pytest.approx(score_of(part, land, other), abs=1e-9)
        if not choices:
            return
        j, k = choices[rng.integers(len(choices))]
        point[j] = k


def _interpreted_profile(point: Ints, land: moves.Landscape) -> float:
    with interpreted():
        return float(moves.profile(point, land))


@pytest.mark.parametrize("seed", range(0, 120, 3))
@pytest.mark.parametrize("distance", DISTANCES)
def test_first_answers_are_counterfactuals_and_the_same_in_both_tiers(seed: int, distance: str) -> None:
    made = hill(random_ensemble(seed, finite=seed % 2 == 0), distance)
    if made is None:
        return
    part, land = made
    found = []
    for climb in (incumbents._fall, incumbents._slide):
        best = np.full(len(part.cells.own), -1)
        climb(part, best, land)
        again = np.full(len(part.cells.own), -1)
        with interpreted():
            climb(part, again, land)
        assert best.tolist() == again.tolist()
        if best[0] >= 0:
            found.append(best)
    scores = kernels.Scores(np.empty(len(part.cells.own), np.int64), np.empty(1), np.empty(1))
    for point in found:
        assert kernels.is_counterfactual(point, part.cells, part.trees, land.goal, scores)


@pytest.mark.parametrize(("climb", "distance"), [(incumbents._fall, "l1"), (incumbents._slide, "linf")])
def test_looking_for_a_first_answer_ends_at_the_deadline_and_keeps_what_it_has(climb: Any, distance: str) -> None:
    kept = 0
    for seed in range(0, 60, 2):
        made = hill(random_ensemble(seed), distance)
        if made is None:
            continue
        part, land = made
        best = np.full(len(part.cells.own), -1)
        with until(0.0), pytest.raises(OutOfTime):
            climb(part, best, land)
        kept += best[0] >= 0
    assert kept or distance == "linf", "the first ball under linf is small, and holds no answer"


@pytest.mark.slow
def test_mending_never_makes_an_answer_worse_and_sometimes_better() -> None:
    better = 0
    for seed in range(0, 300, 2):
        made = hill(random_ensemble(seed), "l1")
        if made is None:
            continue
        part, land = made
        best: Any = np.full(len(part.cells.own), -1)
        lacking = incumbents.lacking_score(part, part.farthest)[0]
        moves.fall(lacking, lacking / part.farthest, 0.5, best, land)
        if best[0] < 0:
            continue
        before = moves.sum_of(best, land)
        kept = moves.mend(20, np.array([incumbents.FIRST_WORD], np.uint64), best, land)
        after = moves.sum_of(best, land)
        assert (after < before) == (kept > 0)
        assert after <= before
        assert score_of(part, land, best) >= land.goal.sure[0]
        better += kept
    assert better > 0
