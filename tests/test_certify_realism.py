"""Certificates of near_data and typical: what holds is valid, what does not is refuted, whatever was changed in between."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline

import mace
from mace.certify.cover import Box, check_cover
from mace.certify.crowds import Crowd, Rows
from mace.certify.spans import Piece, Span
from mace.certify.verdict import Refuted
from mace.problem import Problem
from mace.space import Point, grid_values
from realistic import explainer_of, frame_of, rows_of
from tampering import is_true, outcome_of, parts_of
from test_certify_boxes import proof_of
from test_realism import NEAR
from test_solvers import problem_of

# ---- that boxes leave out no row with enough neighbours

GAPS = mace.FeatureSpace(
    {
        "a": mace.integer(0, 3),
        "b": mace.real(0, 1, step=0.5, missing=True),
        "c": mace.ordinal(["low", "mid", "high"]),
        "d": mace.categorical(["x", "y", "z", math.nan]),
    }
)
NORMS: list[Any] = ["l0", "l1", "l2", "linf", mace.Distance(l0=0.2, l1=0.5, linf=0.3, weights={"a": 3.0})]


def gaps_points() -> list[Point]:
    return list(itertools.product(*([*grid_values(each), *([None] if each.missing else [])] for each in GAPS.values())))


@cache
def gaps_explainer() -> mace.Explainer:
    points = gaps_points()
    model = make_pipeline(mace.Encoder(GAPS), HistGradientBoostingClassifier(max_iter=2, min_samples_leaf=2))
    return mace.Explainer(model.fit(GAPS.frame_of(points), [point[0] > 1 for point in points]), GAPS)


def near_problem(seed: int) -> tuple[Problem, Fraction | None]:
    """Return a question with one or two ``near_data`` and perhaps a rule, and a bound up to which boxes must cover it."""
    rng = np.random.default_rng(seed)
    points = gaps_points()

    def some(count: int) -> pd.DataFrame:
        return pd.DataFrame([GAPS.values_of(points[int(rng.integers(len(points)))]) for _ in range(count)])

    explainer = gaps_explainer()
    distance = NORMS[int(rng.integers(len(NORMS)))]
    constraints: list[Any] = []
    for _ in range(1 + (seed % 4 == 0)):
        count = int(rng.integers(1, 9))
        norm = distance if rng.random() < 0.6 else NORMS[int(rng.integers(len(NORMS)))]
        radius = float(rng.choice([0.0, 0.125, 0.25, 1 / 3, 0.5, 0.75]))
        constraints.append(mace.near_data(some(count), int(rng.integers(1, min(count, 3) + 1)), radius, norm))
    if seed % 3 == 0:
        constraints.append(mace.rule("at most 2 features change"))
    row = GAPS.values_of(points[int(rng.integers(len(points)))])
    problem = problem_of(explainer, row, {"distance": distance, "constraints": constraints})
    lower = None if rng.random() < 0.2 else Fraction(float(rng.choice([0.25, 0.375, 0.5, 0.8, 1.0])))
    return problem, lower


def must_be_covered(problem: Problem, lower: Fraction | None) -> list[Point]:
    power = problem.metric.power
    return [
        point
        for point in gaps_points()
        if (lower is None or problem.metric.measure(point) < lower**power) and problem.is_plausible(point)
    ]


def around(points: list[Point]) -> Box:
    """Return the smallest box with some points."""
    spans = []
    for feature, values in zip(GAPS.values(), zip(*points, strict=True), strict=True):
        known = [value for value in values if value is not None]
        if hasattr(feature, "levels"):
            spans.append(Span(1.0, 0.0, frozenset(known), False, None in values))
        else:
            low, high = (min(known), max(known)) if known else (1.0, 0.0)
            spans.append(Span(low, high, None, isinstance(feature, type(GAPS["a"])), None in values))
    return tuple(spans)


def is_covered(problem: Problem, lower: Fraction | None, boxes: list[Box]) -> bool:
    try:
        check_cover(problem, lower, boxes)
    except Refuted as refuted:
        assert "lie in no box" in str(refuted)  # noqa: PT017
        return False
    return True


def disagreements(seeds: range) -> tuple[int, int, int]:
    """Return how often the cover and brute force differ, and how many questions had nothing, and something, to cover."""
    wrong = nothing = something = 0
    for seed in seeds:
        problem, lower = near_problem(seed)
        rng = np.random.default_rng([seed, 1])
        inside = must_be_covered(problem, lower)
        nothing, something = nothing + (not inside), something + bool(inside)
        wrong += is_covered(problem, lower, []) != (not inside)
        if inside:
            order = rng.permutation(len(inside))
            parts = [[inside[i] for i in part] for part in np.array_split(order, min(3, len(inside)))]
            wrong += not is_covered(problem, lower, [around(part) for part in parts])
            # One row alone is left out of every box.
            lone, rest = inside[int(order[0])], [inside[i] for i in order[1:]]
            wrong += is_covered(problem, lower, [around([point]) for point in rest if point != lone])
    return wrong, nothing, something


def test_boxes_cover_exactly_the_rows_with_enough_neighbours() -> None:
    wrong, nothing, something = disagreements(range(40))
    assert wrong == 0
    assert nothing >= 8
    assert something >= 8


def _one_too_few(settled: Callable[..., Any]) -> Callable[..., Any]:
    def careless(self: Rows, piece: Piece, crowd: Crowd) -> Any:
        self.least += 1
        try:
            return settled(self, piece, crowd)
        finally:
            self.least -= 1

    return careless


def _short_of_the_radius(settled: Callable[..., Any]) -> Callable[..., Any]:
    def careless(self: Rows, piece: Piece, crowd: Crowd) -> Any:
        limit, self.limit = self.limit, self.limit - 1000
        try:
            return settled(self, piece, crowd)
        finally:
            self.limit = limit

    return careless


def _without_the_radius(settled: Callable[..., Any]) -> Callable[..., Any]:
    def careless(self: Rows, piece: Piece, crowd: Crowd) -> Any:
        way, self.way = self.way, None if self.way is None else self.way // 2
        try:
            return settled(self, piece, crowd)
        finally:
            self.way = way

    return careless


@pytest.mark.parametrize("broken", [_one_too_few, _short_of_the_radius, _without_the_radius])
def test_a_checker_that_counts_rows_wrongly_is_found_out(
    broken: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Rows, "settled", broken(Rows.settled))
    assert disagreements(range(20))[0] > 0


# ---- near data

NEAR_CASES = [(("forest", "linear", "network")[number % 3], *case) for number, case in enumerate([*NEAR, *NEAR[:4]])]


@pytest.mark.parametrize(("kind", "k", "radius", "norm"), NEAR_CASES)
def test_answers_near_data_are_proved(kind: str, k: int, radius: float, norm: str) -> None:
    explainer = explainer_of(kind)
    constraint = mace.near_data(frame_of(11, 25), k=k, radius=radius, distance=norm)
    (row,) = rows_of(explainer, 0, 1)
    for distance, more in (("l1", []), (norm, ["at most 2 features change"])):
        answer = explainer.explain(row, target=1, constraints=[constraint, *more], distance=distance, certify=True)
        proof = proof_of(answer)
        assert proof.evidence["lane"] == "boxes"
        assert str(mace.verify(proof, explainer.model)) == "valid"
        assert is_true(proof, explainer.model)


def test_diverse_answers_near_data_are_proved() -> None:
    for kind in ("forest", "network"):
        explainer = explainer_of(kind)
        (row,) = rows_of(explainer, 0, 1)
        near = mace.near_data(frame_of(5, 30), k=2, radius=0.1)
        answer = explainer.explain(row, target=1, constraints=[near, "a + b <= 6"], count=3, certify=True)
        assert len(answer) == 3
        for each in answer:
            assert each.certificate is not None
            assert str(mace.verify(each.certificate, explainer.model)) == "valid"


def test_missing_values_near_data_are_proved() -> None:
    space = mace.FeatureSpace(
        {"a": mace.real(0, 10), "b": mace.real(0, 10, missing=True), "c": mace.categorical(["p", "q"])}
    )
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "a": rng.uniform(0, 10, 300),
            "b": np.where(rng.random(300) < 0.3, np.nan, rng.uniform(0, 10, 300)),
            "c": rng.choice(["p", "q"], 300),
        }
    )
    labels = frame.a + frame.b.fillna(3) + 2 * (frame.c == "q") > 12
    model = make_pipeline(mace.Encoder(space), HistGradientBoostingClassifier(max_iter=8, max_depth=3))
    explainer = mace.Explainer(model.fit(frame, labels), space)
    for number, row in enumerate(row for row in frame.to_dict("records") if not explainer.predict(row)):
        if number == 4:
            break
        near = mace.near_data(frame[labels].iloc[:60], k=1 + number % 2, radius=0.04)
        answer = explainer.explain(row, target=True, constraints=[near], certify=True)
        assert answer.status == "optimal"
        assert str(mace.verify(proof_of(answer), model)) == "valid"


# ---- changed certificates


def dropped_box(data: dict[str, Any], rng: np.random.Generator) -> None:
    boxes = data["evidence"]["boxes"]
    boxes.pop(int(rng.integers(len(boxes))))


def widened_box(data: dict[str, Any], rng: np.random.Generator) -> None:
    boxes = data["evidence"]["boxes"]
    boxes[int(rng.integers(len(boxes)))]["ranges"] = {}


def raised_lower(data: dict[str, Any], rng: np.random.Generator) -> None:
    claim = data["claim"]
    claim.update(status="unknown", lower=(claim["lower"] or 0.0) + 0.2, upper=None, counterfactual=None)


def nothing_possible(data: dict[str, Any], rng: np.random.Generator) -> None:
    data["claim"].update(status="infeasible", lower=None, upper=None, counterfactual=None)


def _near(data: dict[str, Any]) -> list[Any]:
    arguments: list[Any] = data["statement"]["constraints"][0]["arguments"]
    return arguments


def dropped_row(data: dict[str, Any], rng: np.random.Generator) -> None:
    rows = _near(data)[0]["rows"]
    rows.pop(int(rng.integers(len(rows))))


def added_row(data: dict[str, Any], rng: np.random.Generator) -> None:
    values = data["claim"]["counterfactual"] or data["statement"]["factual"]
    _near(data)[0]["rows"].append([values[name] for name in _near(data)[0]["columns"]])
    factual = data["statement"]["factual"]
    _near(data)[0]["rows"] += [[factual[name] for name in _near(data)[0]["columns"]]] * _near(data)[1]


def wider_radius(data: dict[str, Any], rng: np.random.Generator) -> None:
    _near(data)[2] += 0.15


def fewer_neighbours(data: dict[str, Any], rng: np.random.Generator) -> None:
    _near(data)[1] = 1


CHANGES = [
    dropped_box, widened_box, raised_lower, nothing_possible, dropped_row, added_row, wider_radius, fewer_neighbours
]  # fmt: skip


def test_a_changed_certificate_near_data_is_valid_only_where_it_is_true() -> None:
    """Whatever makes a claim false is refuted; a proof that lacks a box is refused, unless the others hold its rows too."""
    false: dict[str, int] = {change.__name__: 0 for change in CHANGES}
    refused = 0
    for seed, kind in enumerate(("forest", "linear", "forest", "network")):
        rng = np.random.default_rng(seed)
        explainer = explainer_of(kind)
        k, radius, norm = NEAR[1 + seed]
        near = mace.near_data(frame_of(seed, 12), k=min(k, 3), radius=radius, distance=norm)
        row = rows_of(explainer, 0, 5)[seed]
        proof = proof_of(explainer.explain(row, target=1, constraints=[near], distance=norm, certify=True))
        for change in CHANGES:
            data = parts_of(proof)
            change(data, rng)
            outcome = outcome_of(data, explainer.model)[0]
            if not is_true(replace(proof, statement=data["statement"], claim=data["claim"]), explainer.model):
                false[change.__name__] += 1
                assert outcome == "refuted", (change, seed)
            refused += change is dropped_box and outcome == "refuted"
    assert all(false[change.__name__] for change in (raised_lower, nothing_possible, added_row, wider_radius))
    assert refused
