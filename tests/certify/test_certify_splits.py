"""Proofs with splits on the signs of units and recorded multipliers: right ones are accepted, and no number makes a false bound pass."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from certified_networks import inside, place, small
from random_networks import DISTANCES, FAMILIES, SINGLE, random_network
from unit_proofs import PlainProver, over_reals

import mace
from mace import FeatureSpace, real
from mace.certify.network import checker, splits
from mace.certify.network.ball import Field, make_ball
from mace.certify.network.coordinates import make_axes
from mace.certify.network.inequalities import linear_conditions
from mace.certify.network.relaxation import BoxRelaxation
from mace.certify.network.rounds import GoalRounds, Round
from mace.certify.verdict import Refuted, Unchecked
from mace.distances import NormMetric
from mace.exact import UNIT, float_up
from mace.forms import Network
from mace.problem import Limits, Problem
from mace.solvers import network
from mace.space import Column

HIDDEN = [(4,), (5, 4), (6, 6), (4, 3, 3)]
CASES = [(seed, norm) for seed in range(12) for norm in ("l1", "linf")]


@pytest.fixture(autouse=True)
def few_cuts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the checker cut little by itself: here it is about what is recorded."""
    monkeypatch.setattr(checker, "MORE_CUTS", 1)


def verdict(problem: Problem, lower: Fraction | None, evidence: Any) -> str:
    """Return why a proof is not accepted; empty where it is."""
    try:
        checker.check(problem, lower, evidence, lambda share: None, most_cuts=8)
    except (Refuted, Unchecked) as reason:
        return f"{type(reason).__name__}: {reason}"
    return ""


@cache
def question(seed: int, norm: str, unit: Fraction = UNIT) -> tuple[Problem, float]:
    """Return a question, and the distance of a counterfactual, which is the nearest in nearly all of them."""
    problem = over_reals(seed, norm, HIDDEN[seed % len(HIDDEN)], 3 + seed % 8, unit)
    network.prepare()
    bounds = network.solve(problem, Limits.of(1.0))
    assert bounds.point is not None
    assert problem.is_reached(bounds.point)
    return problem, float_up(problem.distance(bounds.point))


@cache
def proof(seed: int, norm: str, share: float, unit: Fraction = UNIT) -> tuple[dict[str, Any], bool]:
    """Return a proof at a share of the nearest distance, and whether its prover closed all leaves."""
    problem, nearest = question(seed, norm, unit)
    prover = PlainProver(problem, nearest * share, norm, rounds=1 + seed % 2, cuts=seed % 3 == 0, deepest=8)
    return prover.evidence(), prover.is_closed


# ---- right proofs


@pytest.mark.parametrize(("seed", "norm"), CASES)
def test_proofs_are_accepted_by_what_they_record_alone(seed: int, norm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The checker's own means of closing a leaf are taken away."""

    def never(self: BoxRelaxation, rows: Any, boxes: Any) -> Any:
        return np.zeros(len(boxes.band), dtype=np.bool_), np.zeros((len(boxes.band), self.slots))

    monkeypatch.setattr(BoxRelaxation, "closed", never)
    problem, nearest = question(seed, norm)
    for share in (0.6, 0.95):
        evidence, is_closed = proof(seed, norm, share)
        if is_closed:
            assert verdict(problem, Fraction(nearest * share * (1 - 1e-6)), evidence) == ""


def test_the_proofs_of_this_file_split_cut_and_tighten() -> None:
    made = [proof(seed, norm, share) for seed, norm in CASES for share in (0.6, 0.95)]
    assert sum(is_closed for _, is_closed in made) > 0.8 * len(made)
    parts = [evidence["parts"][0] for evidence, _ in made]
    assert sum(int((part["feature"] < -1).sum()) for part in parts) > 20
    assert sum(int((part["feature"] >= 0).sum()) for part in parts) > 3
    assert sum(bool(part["price"].any()) for part in parts) > 3
    assert sum(bool(part["beta"].any()) for part in parts) > 3


def test_a_float32_network_is_proved_within_its_own_rounding() -> None:
    for seed in range(3):
        problem, nearest = question(seed, "l1", SINGLE)
        evidence, is_closed = proof(seed, "l1", 0.9, SINGLE)
        assert is_closed
        assert verdict(problem, Fraction(nearest * 0.9 * (1 - 1e-4)), evidence) == ""


# ---- false claims


@pytest.mark.parametrize(("seed", "norm"), CASES)
def test_a_bound_beyond_a_counterfactual_is_refused(seed: int, norm: str) -> None:
    """With proofs made for less, for as much, and for more."""
    problem, nearest = question(seed, norm)
    for share in (0.9, 1.0, 1.05):
        evidence, _ = proof(seed, norm, share)
        for lower in (Fraction(nearest) + Fraction(1, 10**9), Fraction(nearest * 1.05), None):
            assert "leaf" in verdict(problem, lower, evidence)


ODD = (0, 1, -1, 2, 255, 1e-30, 1e-3, 17.5, 1e30, -1e30, 1e300, -1e300, np.nan, np.inf, -np.inf)


def altered(evidence: dict[str, Any], rng: np.random.Generator, many: int) -> Iterator[dict[str, Any]]:
    """Yield copies with one number changed: to odd ones, to others of the same array, and nearby."""
    part = evidence["parts"][0]
    for name, array in part.items():
        for _ in range(min(many, array.size)):
            place = np.unravel_index(int(rng.integers(array.size)), array.shape)
            old = array[place]
            for new in (*rng.choice(np.array(ODD), 3), old + rng.integers(-3, 4), old * rng.normal(1, 1)):
                if array.dtype.kind != "f" and not (np.isfinite(new) and abs(new) < 2**40):
                    continue
                made = copy.deepcopy(evidence)
                made["parts"][0][name] = array.astype(np.float64 if array.dtype.kind == "f" else np.int64)
                made["parts"][0][name][place] = new
                yield made


@pytest.mark.parametrize(("seed", "norm"), CASES[::3])
def test_no_altered_number_makes_a_false_bound_pass(seed: int, norm: str) -> None:
    problem, nearest = question(seed, norm)
    evidence, _ = proof(seed, norm, 0.97)
    rng = np.random.default_rng(seed)
    beyond = Fraction(nearest) + Fraction(1, 10**9)
    said = [verdict(problem, beyond, made) for made in altered(evidence, rng, 6)]
    assert len(said) > 30
    assert all(said)


def test_an_altered_number_leaves_a_true_claim_or_is_refused_cleanly() -> None:
    made = ((seed, norm, *proof(seed, norm, 0.95)) for seed, norm in CASES)
    seed, norm, evidence, _ = next(each for each in made if each[3] and (each[2]["parts"][0]["feature"] < -1).any())
    problem, nearest = question(seed, norm)
    said = [verdict(problem, Fraction(nearest * 0.949), one) for one in altered(evidence, np.random.default_rng(0), 8)]
    assert "" in said
    assert any(said)


# ---- the bounds themselves


def counterfactuals(problem: Problem, lower: Fraction, rng: np.random.Generator) -> list[tuple[Any, Any]]:
    """Return coordinates and points, nearer than ``lower`` and reached by the model."""
    assert isinstance(problem.metric, NormMetric)
    axes = make_axes(problem)
    if any(not len(axis.spans) for axis in axes):
        return []
    found = []
    for _ in range(300):
        places = [place(rng, axis) for axis in axes]
        values = [axis.value(at) for axis, at in zip(axes, places, strict=True)]
        point = tuple(
            value if isinstance(axis.feature, mace.space.Real) else int(value)
            for axis, value in zip(axes, values, strict=True)
        )
        if (
            problem.metric.measure(point) < lower**problem.metric.power
            and problem.is_plausible(point)
            and problem.goal.accepts(problem.ask([point])[0])
        ):
            found.append((np.array(places), point))
    return found[:12]


@pytest.mark.parametrize("seed", [*range(len(FAMILIES) * len(DISTANCES)), *range(10_000, 10_040)])
def test_rounds_with_any_multipliers_keep_every_counterfactual(seed: int) -> None:
    """Boxes large and small around counterfactuals of questions of all kinds: none is closed, and all units stay in their ranges."""
    problem = random_network(seed, finite=seed < 10_000).problem
    assert isinstance(problem.form, Network)
    assert isinstance(problem.metric, NormMetric)
    rng = np.random.default_rng(seed)
    lower = Fraction(float(rng.uniform(0.3, 1.5)))
    axes = make_axes(problem)
    field = Field(axes, make_ball(problem.metric, axes, lower))
    relaxation = BoxRelaxation(problem.form, field, problem.goal.slack)
    conditions = linear_conditions(problem)
    alternatives = problem.goal.alternatives(len(problem.form.biases[-1]), ties_last=problem.form.ties_last)
    many = sum(map(len, problem.form.slopes))
    for places, point in counterfactuals(problem, lower, rng):
        width = float(rng.choice([0.0, 1e-12, 1e-3, 0.1, 1.0]))
        ends = [around(axis, at, width) for axis, at in zip(axes, places, strict=True)]
        view = field.view(*np.array(ends).T[:, None, :])
        assert view.is_open[0]
        for margins in alternatives:
            if not fulfils(problem, margins, point):
                continue
            rows = relaxation.rows(margins, conditions)
            boxes = relaxation.boxes(rows, view)
            for _ in range(4):
                given = Round(
                    rng.choice([0.0, 1.0, 0.3], (1, len(rows))),
                    rng.integers(0, 256, (1, many)) / 255,
                    rng.normal(0, 1, (1, many)) * rng.choice([0, 0, 0.1, 10.0], (1, many)),
                    rng.choice([0, 0.1, 1.0, 1e3], (1, 2, many)),
                )
                assert not GoalRounds(relaxation, rows).run(boxes, given)[0]
                inside(problem.form, point, boxes.units)


def around(axis: Any, at: float, width: float) -> tuple[float, float]:
    """Return the ends of a range about a coordinate, some share of its axis to both sides."""
    first, last = axis.spans[0, 0], axis.spans[-1, 1]
    if not (axis.has_levels or axis.is_grid or axis.is_whole):
        return max(first, at - width * (last - first)), min(last, at + width * (last - first))
    steps = np.floor(width * (last - first))
    return (max(first, np.floor(at - steps)), min(last, np.ceil(at + steps))) if steps else (at, at)


def fulfils(problem: Problem, margins: Any, point: Any) -> bool:
    """Return whether a point that the model accepts is of this alternative, by its exact scores."""
    assert isinstance(problem.form, Network)
    scores = problem.form.exact_scores(point)

    def side(which: int | None) -> Fraction:
        return Fraction(0) if which is None else scores[which]

    return all(side(margin.plus) - side(margin.minus) + margin.shift >= 0 for margin in margins)


def test_a_split_leaves_nothing_out() -> None:
    """A unit whose sum is 0 all over: both sides hold every point, and neither is closed for it."""
    problem, nearest = question(0, "l1")
    evidence, _ = proof(0, "l1", 1.02)
    part = evidence["parts"][0]
    units = part["alpha"].shape[1]
    for unit in range(units):
        tree = {**part, "feature": np.array([-2 - unit, -1, -1]), "at": np.zeros(0), "rounds": np.array([0, 0, 0])}
        for name in ("mix", "alpha", "beta", "price"):
            tree[name] = part[name][:0]
        assert "leaf" in verdict(problem, Fraction(nearest) + Fraction(1, 10**9), {"parts": [tree]})


# ---- what is no tree, or too large


def empty(units: int, nodes: list[int], rounds: list[int]) -> dict[str, Any]:
    """Return a part whose multipliers are all 0."""
    total = sum(rounds)
    return {
        "feature": np.array(nodes),
        "at": np.zeros(sum(node >= 0 for node in nodes)),
        "rounds": np.array(rounds),
        "mix": np.zeros((total, 1)),
        "alpha": np.zeros((total, units), dtype=np.uint8),
        "beta": np.zeros((total, units)),
        "price": np.zeros((total, 2, units), dtype=np.float32),
    }


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"feature": np.array([-1, -1])}, "rounds"),
        ({"feature": np.array([-200, -1, -1]), "rounds": np.zeros(3, dtype=int)}, "or a unit"),
        ({"feature": np.array([99, -1, -1]), "at": np.zeros(1)}, "or a unit"),
        ({"feature": np.array([-2, -1])}, "rounds"),
        ({"feature": np.array([-2, -1]), "rounds": np.array([0, 1])}, "no leaf"),
        ({"feature": np.array([-1, -1]), "rounds": np.array([0, 1])}, "is over"),
        ({"feature": np.array([], dtype=int), "rounds": np.array([], dtype=int)}, ".alpha"),
        ({"rounds": np.array([-1])}, "rounds"),
        ({"rounds": np.array([2])}, ".alpha"),
        ({"rounds": np.array([2**62])}, "rounds"),
        ({"rounds": np.array([1.0])}, "rounds"),
        ({"rounds": "many"}, "rounds"),
        ({"alpha": np.zeros((1, 4))}, ".alpha"),
        ({"alpha": np.full((1, 4), 256)}, ".alpha"),
        ({"alpha": None}, ".alpha"),
        ({"beta": np.full((1, 4), np.nan)}, ".beta"),
        ({"beta": np.full((1, 4), 1e200)}, ".beta"),
        ({"beta": np.zeros((1, 5))}, ".beta"),
        ({"beta": [[{}] * 4]}, ".beta"),
        ({"mix": np.array([[-1.0]])}, ".mix"),
        ({"mix": np.array([[1e-300]])}, ".mix"),
        ({"mix": np.array([[np.inf]])}, ".mix"),
        ({"mix": np.array([1.0])}, ".mix"),
        ({"price": np.full((1, 2, 4), -1e-3)}, ".price"),
        ({"price": np.zeros((2, 1, 4))}, ".price"),
        ({"price": np.zeros((0, 2, 4))}, ".price"),
    ],
)  # fmt: skip
def test_arrays_that_make_no_tree_are_refused_with_their_name(change: dict[str, Any], reason: str) -> None:
    problem, nearest = question(0, "l1")
    part = {**empty(4, [-1], [1]), **change}
    said = verdict(problem, Fraction(nearest * 0.9), {"parts": [part]})
    assert reason in said
    assert "cannot be followed" not in said


@pytest.mark.parametrize("nodes", [[-2] * 40_000 + [-1] * 40_001, [-2, -1] * 40_000 + [-1], [-2] * 300_000])
def test_deep_trees_and_many_nodes_end(nodes: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checker, "MOST_PRODUCTS", 10**9)
    problem, nearest = question(0, "l1")
    started = time.process_time()
    said = verdict(problem, Fraction(nearest) + Fraction(1, 10**6), {"parts": [empty(4, nodes, [0] * len(nodes))]})
    assert said
    assert time.process_time() - started < 20


def test_a_tree_that_takes_too_long_is_unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, nearest = question(0, "l1")
    monkeypatch.setattr(splits, "MOST_SPLIT_NODES", 2)
    assert "Unchecked" in verdict(problem, Fraction(nearest * 0.5), {"parts": [empty(4, [-2, -1, -1], [0] * 3)]})
    monkeypatch.setattr(checker, "MOST_PRODUCTS", 100)
    assert "Unchecked" in verdict(problem, Fraction(nearest * 0.5), {"parts": [empty(4, [-1], [0])]})


def test_a_round_that_ignores_the_rounding_of_float32_is_refused() -> None:
    """A row that float32 puts in the target and exact numbers do not: no round may exclude it."""
    ulp = 2.0**-23
    space = FeatureSpace({"x": real(1.0, 1.0 + 20 * ulp)})
    layers = (np.array([[1.0]]), np.array([[1.0]])), (np.array([0.0]), np.array([-1.0 - 5 * ulp]))
    form = Network(space, (Column("x", 0, None),), *layers, slopes=(np.zeros(1),), unit=SINGLE)
    problem = small(form, (1.0 + 10 * ulp,), 0)
    nearer = (1.0 + 5.25 * ulp,)
    assert problem.is_reached(nearer)
    assert form.exact_scores(nearer)[0] > 0
    part = empty(1, [-2, -1, -1], [1, 1, 1]) | {"mix": np.ones((3, 1))}
    # In exact numbers nothing up to 5 units in the last place is reached, which is a quarter of the range away.
    assert "leaf" in verdict(problem, Fraction(249, 1000), {"parts": [part]})
    exact = replace(form, unit=UNIT)
    assert verdict(small(exact, problem.factual, 0), Fraction(249, 1000), {"parts": [part]}) == ""
