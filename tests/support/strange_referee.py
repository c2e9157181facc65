"""What is wrong with answers to the questions of ``random_strange``: of every lane, several of them, and ranges around them."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import random_degenerate
import random_reasons
from problems import problem_of
from random_degenerate import Degenerate, counterfactuals

import mace
from mace.constraints.typical import Typical
from mace.distances import as_distance
from mace.distances.distance import point_values
from mace.space import Point

LANES = ("auto", "trees", "network", "curves", "milp", "enumerate")
LIMIT = 5.0
"""Seconds for lanes that may search for long."""


def fault_of_lanes(case: Degenerate) -> str | None:
    """Return what is wrong with an answer of a lane, what it told on the way, or its certificate; ``"skipped"`` where nothing is asked."""
    explainer = mace.Explainer(case.model, case.space)
    problem = problem_of(explainer, case.row, case.question)
    truth = counterfactuals(case, problem)
    nearest, accuracy = min(truth.values(), default=None), Fraction(case.question.get("accuracy", 1e-6))
    for lane in LANES:
        told: list[tuple[float, float]] = []

        def note(lower: float, upper: float, _: int, told: list[tuple[float, float]] = told) -> None:
            told.append((lower, upper))

        asked = case.question | {"solver": lane, "time_limit": LIMIT if lane in ("curves", "milp") else None}
        try:
            answer = explainer.explain(case.row, certify=True, on_progress=note, **asked)
        except mace.InvalidOption:
            if lane == "auto":
                raise
            continue
        fault = random_degenerate._fault(answer, truth, nearest, accuracy, told)
        if fault is not None:
            return f"{lane}: {fault}: {answer.status} ({answer.reason}), {answer.lower!r}; brute force {nearest}"
        proof = answer[0].certificate if len(answer) else answer.certificate
        fault = None if proof is None else random_degenerate._fault_of_proof(case, proof, truth, nearest)
        if fault is not None:
            return f"{lane}: {fault}"
    return None


def fault_of_several(case: Degenerate, seed: int) -> str | None:
    """Return what is wrong with several answers: each is the nearest of those that differ from the earlier ones, until there is none."""
    rng, explainer = np.random.default_rng([seed, 9]), mace.Explainer(case.model, case.space)
    problem = problem_of(explainer, case.row, case.question)
    left = counterfactuals(case, problem)
    differ = [
        mace.differ(features=1, by=0),
        mace.differ(),
        mace.differ(features=2, by=0.3),
        mace.differ(in_sets=True),
        mace.differ(distance=float(rng.choice([1e-12, 0.1, 0.5, 1]))),
    ][int(rng.integers(5))]
    count, accuracy = int(rng.choice([2, 3, 5])), Fraction(case.question.get("accuracy", 1e-6))
    answer = explainer.explain(case.row, count=count, diversity=differ, certify=True, **case.question)
    for one in answer:
        point, nearest = case.space.point(one.values), min(left.values(), default=None)
        if nearest is None or point not in left:
            return f"{differ}: {one.values} is no answer"
        if Fraction(one.lower) > nearest or (one.status == "optimal" and left[point] - nearest > accuracy):
            return f"{differ}: {one.values} at {one.distance!r}, lower {one.lower!r}, brute force {nearest}"
        if _is_refuted(case, one.certificate):
            return f"{differ}: the certificate of {one.values} is refuted"
        conditions = differ.bind(case.space, problem.factual, point, as_distance(case.question["distance"]))
        left = {
            each: far
            for each, far in left.items()
            if all(condition.holds(point_values(case.space, each)) for condition in conditions)
        }
    if answer.exhausted and left:
        return f"{differ}: said to be exhausted, and {len(left)} are left"
    if not answer.exhausted and len(answer) < count and not answer.reason:
        return f"{differ}: {len(answer)} answers, and no reason why there are no more"
    again = mace.Explanation.from_json(answer.to_json())
    return None if again.to_json() == answer.to_json() else "written and read it is another"


def _is_refuted(case: Degenerate, proof: mace.Certificate) -> bool:
    forests = [each.fitted(case.space) for each in case.question["constraints"] if isinstance(each, Typical)]
    return mace.verify(mace.Certificate.from_json(proof.to_json()), case.model, forests=forests).outcome == "refuted"


def fault_of_ranges(case: Degenerate) -> str | None:
    """Return what is wrong with reasons, their ranges, and the region around the nearest answer: every row in them is as they say."""
    explainer = mace.Explainer(case.model, case.space)
    problem = problem_of(explainer, case.row, case.question)
    truth = counterfactuals(case, problem)
    asked = {"target": case.question["target"], "constraints": case.question["constraints"]}
    reasons = explainer.reasons(case.row, **asked, count=1000, certify=True, time_limit=20)
    for reason in reasons:
        if reason.ranges is None:
            continue
        inside = [point for point in truth if all(_holds(case, reason.ranges, name, point) for name in reason.features)]
        if inside:
            return f"{reason}: {inside[0]} is in these ranges and reaches the target"
        if any(_is_refuted(case, each) for each in (reason.certificate, reason.ranges_certificate) if each is not None):
            return f"{reason}: a certificate is refuted"
    if reasons.complete and not reasons.reason:
        changed = random_reasons.minimal(
            frozenset(name for name, new, old in zip(case.space, point, problem.factual, strict=True) if new != old)
            for point in truth
        )
        every = random_reasons.subsets(case.space)
        wanted = random_reasons.minimal(names for names in every if all(names & each for each in changed))
        if {frozenset(each.features) for each in reasons} != wanted:
            return f"reasons {[each.features for each in reasons]}, brute force {sorted(map(sorted, wanted))}"
    return _fault_of_region(case, explainer)


def _fault_of_region(case: Degenerate, explainer: mace.Explainer) -> str | None:
    answer = explainer.explain(case.row, time_limit=LIMIT, **case.question)
    if not answer or explainer.classes is None:
        return None
    try:
        region = explainer.region(answer[0], time_limit=20)
    except mace.InvalidOption:
        return None
    at = case.space.point(answer[0].values)
    rows = [
        point
        for point in itertools.product(*case.values)
        if all(
            _holds(case, region, name, point) if name in region else point[j] == at[j]
            for j, name in enumerate(case.space)
        )
    ]
    said = set(explainer.predict_many([case.space.values_of(point) for point in rows]))
    return (
        None
        if said <= {answer[0].prediction}
        else f"{region} holds rows of {said}, and is about {answer[0].prediction}"
    )


def _holds(case: Degenerate, ranges: Any, name: str, point: Point) -> bool:
    """Return whether a point has a feature in its range; where it has none it is missing."""
    feature, value = case.space[name], point[case.space.index(name)]
    if name not in ranges or value is None:
        return name not in ranges and value is None
    levels = getattr(feature, "levels", None)
    if ranges[name].levels is not None:
        assert levels is not None
        return levels[value] in ranges[name].levels
    if levels is not None:
        return bool(levels.index(ranges[name].low) <= value <= levels.index(ranges[name].high))
    text = feature.text if hasattr(feature, "decimal") else repr
    return float(text(ranges[name].low)) <= float(text(value)) <= float(text(ranges[name].high))
