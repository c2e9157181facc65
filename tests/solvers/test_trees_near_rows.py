"""Trees that are asked to stay near rows of data: bounds and answers against brute force, certificates that are valid, bounds on demand."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from problems import problem_of
from random_ensembles import random_ensemble
from random_problems import Case
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from tiers import interpreted
from trees_referee import compare

import mace
from mace import Explainer
from mace.constraints.near_data import Neighbour, Neighbours
from mace.problem import Limits, Problem
from mace.solvers import trees
from mace.space import Feature, Point, Real, Value, grid_values

RADII = (0.0, 0.05, 0.15, 0.3, 0.5)
NEARLY = 1e-6
"""Answers are as near as can be to within the accuracy."""


def _value(feature: Feature, rng: np.random.Generator) -> Value:
    """Return a random value of a feature, or that it is missing."""
    if feature.missing and rng.random() < 0.2:
        return None
    if isinstance(feature, Real) and feature.size is None:
        return feature.low + float(np.float32(rng.random() * (feature.high - feature.low) / 2))
    values = list(grid_values(feature))
    return values[int(rng.integers(len(values)))]


def near_rows(case: Case, seed: int) -> Case:
    """Return a case with a ``near_data`` of random rows, under the distance that is asked for or another one."""
    rng = np.random.default_rng([seed, 5])
    points = [tuple(_value(feature, rng) for feature in case.space.values()) for _ in range(12)]
    frame = pd.DataFrame([case.space.values_of(point) for point in points], columns=list(case.space))
    asked = case.question["distance"]
    norm = asked if rng.random() < 0.7 else str(rng.choice(["l0", "l1", "l2", "linf"]))
    near = mace.near_data(frame, k=int(rng.integers(1, 4)), radius=float(rng.choice(RADII)), distance=norm)
    given = list(case.question.get("constraints") or ())
    return replace(case, question={**case.question, "constraints": [*given, near]})


def points_of(case: Case) -> list[Point]:
    values = [[*grid_values(feature), *([None] if feature.missing else [])] for feature in case.space.values()]
    return [tuple(point) for point in itertools.product(*values)]


def near_some(seed: int) -> tuple[Problem, list[Point]]:
    """Return a question about points near up to three rows, and the points of its space that are counterfactuals near them."""
    case = near_rows(random_ensemble(seed), seed)
    problem = problem_of(Explainer(case.model, case.space), case.row, case.question)
    data: Any = problem.conditions[-1]
    assert isinstance(data, Neighbours)
    rows = np.random.default_rng(seed).choice(len(data.rows), data.least, replace=False)
    conditions = (*problem.conditions[:-1], *(Neighbour(data, int(row)) for row in rows))
    problem = replace(problem, conditions=conditions)
    plausible = [point for point in points_of(case) if problem.is_plausible(point)]
    accepted = [problem.goal.accepts(outcome) for outcome in problem.ask(plausible)] if plausible else []
    return problem, [point for point, is_good in zip(plausible, accepted, strict=True) if is_good]


def check_bounds(problem: Problem, good: list[Point], within: Fraction | None = None) -> None:
    found = trees.solve(problem, Limits(within=within))
    distances = [problem.distance(point) for point in good]
    assert not (found.is_infeasible and good)
    assert all(found.lower <= distance for distance in distances)
    if found.point is None and within is not None and not found.is_infeasible:
        assert found.lower >= within
    if found.point is not None and found.point in good:
        assert found.upper == min(distances)


@pytest.mark.parametrize("seed", range(70_000, 70_040))
def test_no_counterfactual_near_its_rows_is_nearer_than_the_bound(seed: int) -> None:
    try:
        problem, good = near_some(seed)
    except mace.InvalidTarget:
        return
    check_bounds(problem, good)
    for share in (0.3, 0.9, 1.1):
        check_bounds(problem, good, Fraction(share) * (min(map(problem.distance, good)) if good else Fraction(1, 2)))


@pytest.mark.parametrize("seed", range(71_000, 71_005))
def test_bounds_of_interpreted_kernels_hold_as_well(seed: int) -> None:
    try:
        problem, good = near_some(seed)
    except mace.InvalidTarget:
        return
    with interpreted():
        check_bounds(problem, good)


@pytest.mark.parametrize("seed", range(72_000, 72_040))
def test_answers_near_data_equal_brute_force(seed: int) -> None:
    assert compare(near_rows(random_ensemble(seed), seed), "enumerate", NEARLY) is None


@pytest.mark.parametrize("seed", range(73_000, 73_030))
def test_certificates_of_answers_near_data_are_valid(seed: int) -> None:
    case = near_rows(random_ensemble(seed, finite=seed % 2 == 0), seed)
    try:
        found = Explainer(case.model, case.space).explain(case.row, **case.question, solver="trees", certify=True)
    except mace.InvalidTarget:
        return
    for certificate in [each.certificate for each in found] + [found.certificate]:
        if certificate is not None:
            read = mace.Certificate.from_json(certificate.to_json())
            assert mace.verify(read, case.model) == mace.Verdict("valid")


def test_a_proof_near_rows_is_no_proof_of_all_of_its_box() -> None:
    levels = ["x", "y", "z"]
    frame = pd.DataFrame(np.random.default_rng(0).choice(levels, (300, 6)), columns=list("abcdef"))
    space = mace.FeatureSpace({name: mace.categorical(levels) for name in frame})
    model = make_pipeline(mace.Encoder(space), RandomForestClassifier(20, random_state=0))
    model.fit(frame, (frame.a == "y").astype(int))
    explainer, row = Explainer(model, space), dict.fromkeys(frame, "x")
    good = frame[(model.predict(frame) == 1) & ((frame == "x").sum(axis=1) == 0)]
    near = mace.near_data(good, k=2, radius=0.35)
    found = explainer.explain(row, constraints=[near], certify=True)[0].certificate
    assert found is not None
    assert mace.verify(found, model).valid
    data = json.loads(found.to_json())
    named = [box for box in data["evidence"]["boxes"] if box.get("neighbours")]
    assert named
    for box in named:
        del box["neighbours"]
    assert mace.verify(mace.Certificate.from_json(json.dumps(data)), model).outcome == "refuted"
    for box in named:
        box["neighbours"] = [[0, len(good)]]
    assert mace.verify(mace.Certificate.from_json(json.dumps(data)), model).outcome == "refuted"
