"""The general lane takes turns with boxes that do not end: answers equal to brute force; turns are counted and not timed."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import Any

import pytest
from random_networks import disagreement, mixture_network, random_network

from mace.problem import INTERRUPTED, LATE, Bounds, Limits, Problem, Status
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


def test_certificates_of_a_rivals_answers_are_those_of_its_lane() -> None:
    problem = mixture_network(75).problem
    found = raced(problem, Limits(record=True))
    assert found.evidence is not None
    assert found.evidence["lane"] == "milp"
