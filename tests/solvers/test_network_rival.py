"""The general lane takes turns with boxes that do not end: answers equal to brute force; turns are counted and not timed."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import Any

import pytest
from random_networks import disagreement, mixture_network, random_network, real_network

from mace.answer.nearest import NearestRows
from mace.certify.proofs import check_lane
from mace.certify.verdict import Refuted, Unchecked, silent
from mace.problem import INTERRUPTED, LATE, SPENT, Bounds, Limits, Problem, Status
from mace.solvers import choose, milp, network
from mace.solvers.milp.rival import Rival
from mace.solvers.network import search as boxes


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the rival's turns come from the first box on, a node or so each."""
    for name in ("WORK_BEFORE_RACE", "WORK_OF_FEW_NUMBERS", "WORK_OF_A_TURN"):
        monkeypatch.setattr(boxes, name, 1)
    monkeypatch.setattr(boxes, "WORK_OF_A_NODE", 150)


raced = partial(network.solve, rival=Rival)


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("seed", range(40))
def test_it_equals_brute_force_on_random_finite_problems(seed: int) -> None:
    assert disagreement(random_network(seed), "enumerate", solve=raced) in (None, "skipped")


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("seed", range(12))
def test_it_agrees_with_the_milp_lane_on_mixtures_over_many_real_features(seed: int) -> None:
    assert disagreement(mixture_network(seed), "milp", seconds=20, solve=raced) in (None, "skipped")


def test_boxes_that_do_not_end_are_decided_by_the_rival() -> None:
    for seed, status in ((75, Status.OPTIMAL), (111, Status.INFEASIBLE)):
        problem = mixture_network(seed).problem
        found = raced(problem, Limits.of(60))
        assert found.status(problem.accuracy) == status
        assert "programs" in found.notes
        alone = milp.solve(problem, Limits())
        assert (found.notes["nodes"], found.lower, found.upper, found.point) == (
            alone.notes["nodes"],
            alone.lower,
            alone.upper,
            alone.point,
        )


@pytest.mark.parametrize("seed", [33, 99])
def test_boxes_that_end_first_give_the_answer(seed: int) -> None:
    problem = mixture_network(seed).problem
    found = raced(problem, Limits.of(60))
    assert found.status(problem.accuracy) == Status.OPTIMAL
    assert "asked" in found.notes


def test_the_same_question_has_the_same_answer_whatever_the_clock_says(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = mixture_network(99).problem
    first = raced(problem, Limits())
    monkeypatch.setattr("mace.solvers.pace.PAUSE", 1e-4)
    assert raced(problem, Limits()).point == first.point


class FakeRival:
    """A rival that proves a little and finds a point, or is interrupted."""

    name = "milp"
    is_over = is_decided = False
    lower = Fraction(1, 100)

    def __init__(self, problem: Problem, limits: Limits, *, point: Any = None, reason: str = LATE) -> None:
        self.point, self.reason = point, reason
        self.upper = None if point is None else problem.distance(point)
        self.nodes: list[int] = []

    def run(self, nodes: int) -> None:
        """Note how far it may go."""
        self.nodes.append(nodes)

    def bounds(self) -> Bounds:
        """Return what it has proved."""
        return Bounds(self.lower, self.upper, self.point, reason=self.reason, evidence={"lane": "milp"})


@pytest.mark.usefixtures("at_once")
def test_a_search_that_is_stopped_has_the_better_lower_bound_and_the_nearer_point() -> None:
    problem = mixture_network(75).problem
    nearest = milp.solve(problem, Limits())
    found = network.solve(problem, Limits.of(0.5), rival=partial(FakeRival, point=nearest.point))
    assert (found.point, found.upper) == (nearest.point, nearest.upper)
    assert found.lower >= FakeRival.lower
    assert found.status(problem.accuracy) == Status.FEASIBLE


@pytest.mark.usefixtures("at_once")
def test_an_interrupt_in_a_rivals_turn_ends_the_search() -> None:
    found = network.solve(mixture_network(75).problem, Limits.of(60), rival=partial(FakeRival, reason=INTERRUPTED))
    assert found.reason == INTERRUPTED


def test_auto_has_a_rival_and_a_lane_by_its_name_has_none() -> None:
    problem = mixture_network(75).problem
    assert choose("auto", problem).solve(problem, Limits()).status(problem.accuracy) == Status.OPTIMAL
    assert choose("network", problem).solve is network.solve


@pytest.mark.usefixtures("at_once")
def test_where_boxes_do_not_end_a_rivals_answer_keeps_its_own_certificate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boxes, "WORK_OF_A_NODE", 1)
    monkeypatch.setattr(boxes.NetworkSearch, "_proof", lambda *_: {"lane": "network", "missing": "too large"})
    found = raced(mixture_network(0).problem, Limits(record=True))
    assert found.answered_by == "milp"
    assert found.evidence is not None
    assert found.evidence["lane"] == "milp"


# ---- signs of units


@pytest.fixture
def signs_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have units split from the start, and the rival's turns come soon after."""
    monkeypatch.setattr(boxes, "WORK_BEFORE_RACE_OF_SIGNS", 1)
    monkeypatch.setattr(boxes, "WORK_OF_A_TURN", 1)
    monkeypatch.setattr("mace.solvers.network.units.handover.BOXES_BEFORE_SPLITS", 1)
    monkeypatch.setattr("mace.solvers.network.units.handover.FEW_NUMBERS", 0)


def signs(problem: Problem, limits: Limits, *, cost: int = 2**14) -> Bounds:
    """Search by signs in turns with the rival, whose nodes count as so much work."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(boxes, "WORK_OF_A_NODE", cost)
        return network.solve(problem, limits, rival=Rival)


@pytest.mark.usefixtures("signs_at_once")
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("cost", [1, 2**14])
def test_signs_of_units_in_turns_with_a_rival_agree_with_the_milp_lane(seed: int, cost: int) -> None:
    case = real_network(seed)
    assert disagreement(case, "milp", seconds=20, solve=partial(signs, cost=cost)) in (None, "skipped")


@pytest.mark.usefixtures("signs_at_once")
def test_a_rival_that_decides_first_is_named_and_its_answer_is_that_of_signs() -> None:
    named = set()
    for seed in range(12):
        problem = real_network(seed).problem
        alone, found = network.solve(problem, Limits()), signs(problem, Limits(), cost=1)
        named.add(found.answered_by)
        assert found.status(problem.accuracy) == alone.status(problem.accuracy)
        if alone.upper is not None and found.upper is not None:
            assert abs(alone.upper - found.upper) <= 2 * problem.accuracy
    assert "milp" in named


# ---- names, certificates, and nodes that are counted


def test_an_answer_names_the_lane_that_decided_it() -> None:
    problem = mixture_network(75).problem
    assert raced(problem, Limits()).answered_by == "milp"
    assert raced(mixture_network(99).problem, Limits()).answered_by == ""
    lane = choose("auto", problem)
    found = NearestRows("auto", problem, lane)(problem, (), Limits())
    assert [each.name for each in found.lanes] == ["milp"]
    assert "network" in found.lanes[0].why


@pytest.mark.usefixtures("at_once")
def test_a_rivals_bound_has_the_proof_of_boxes_where_that_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boxes, "WORK_OF_A_NODE", 1)
    lanes = []
    for seed in range(4):
        problem = mixture_network(seed).problem
        found = raced(problem, Limits(record=True))
        assert found.evidence is not None
        if (found.answered_by, found.evidence["lane"]) == ("milp", "network"):
            lanes.append(seed)
            check_lane(problem, None if found.is_infeasible else found.lower, found.evidence, silent)
            with pytest.raises((Refuted, Unchecked)):
                check_lane(problem, Fraction(1), {**found.evidence, "parts": []}, silent)
    assert lanes


@pytest.mark.parametrize("solve", [network.solve, milp.solve])
def test_a_search_ends_after_as_many_nodes_as_it_may_have(solve: Any) -> None:
    problem = mixture_network(75).problem
    found = solve(problem, Limits(effort=40))
    assert found.reason == SPENT
    assert 40 <= found.notes["nodes"] <= 60
    nearest = milp.solve(problem, Limits())
    assert nearest.upper is not None
    assert found.lower <= nearest.upper
    assert found.upper is None or found.upper >= nearest.lower
