"""A referee that knows nothing of cells: brute force over raw values, its real ones found by bisecting the real model.

Along one real feature a tree ensemble changes only at finitely many floats. They are found by asking the real model's scores along
that feature, the others held at the values of many rows, and bisecting every change down to two neighbouring floats. The nearest
counterfactual has, in each real feature, the factual's own value, an end of the feature's range, an end that a constraint sets, or a
float beside such a change.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from random_problems import Case

import mace
from mace.problem import Problem
from mace.space import Point, Real

BACKGROUND = 60
"""Rows beside which a feature is moved."""

PROBES = 160
"""Values asked first; a change between two of them is bisected, and again to both sides of it."""

MOST_POINTS = 60_000

Scores = Callable[[list[Point]], np.ndarray]


def scores_of(model: Any, space: mace.FeatureSpace) -> Scores:
    """Return the real model's scores of points: probabilities, or predictions of a regressor."""
    last = getattr(model, "steps", [(None, model)])[-1][1]
    ask = model.decision_function if hasattr(last, "decision_function") else None
    if ask is None:
        ask = model.predict_proba if hasattr(last, "predict_proba") else model.predict
    return lambda points: np.asarray(ask(space.frame_of(points))).reshape(len(points), -1)


def candidates(problem: Problem, scores: Scores, rng: np.random.Generator) -> list[list[Any]]:
    """Return the values of each feature that the nearest counterfactual may have."""
    features = list(problem.space.values())
    backgrounds = [tuple(_random_value(rng, feature) for feature in features) for _ in range(BACKGROUND)]
    backgrounds.append(problem.factual)
    found: list[list[Any]] = []
    for j, feature in enumerate(features):
        own = problem.factual[j]
        values: set[Any] = {own}
        if isinstance(feature, Real) and feature.size is None:
            values |= {feature.low, feature.high} | _numbers(problem)
            values |= _edges(lambda xs, j=j: _along(j, xs, backgrounds, scores), feature)
            values = {v for v in values if v is None or feature.low <= v <= feature.high or v == own}
        elif hasattr(feature, "levels"):
            values |= set(range(len(feature.levels)))
        else:
            values |= {feature.value_at(k) for k in range(feature.size)}
        if feature.missing:
            values.add(None)
        found.append(sorted(values - {None}) + ([None] if None in values else []))
    return found


def _along(j: int, xs: list[float], backgrounds: list[Point], scores: Scores) -> np.ndarray:
    """Return the scores of all rows with feature j at each of some values."""
    return scores([(*b[:j], x, *b[j + 1 :]) for x in xs for b in backgrounds]).reshape(len(xs), -1)


def _numbers(problem: Problem) -> set[float]:
    """Return the numbers that the conditions name, and their neighbours."""
    fractions = re.findall(r"Fraction\((-?\d+), (\d+)\)", repr(problem.conditions))
    named = {int(top) / int(bottom) for top, bottom in fractions}
    return named | {math.nextafter(n, end) for n in named for end in (-math.inf, math.inf)}


def _random_value(rng: np.random.Generator, feature: Any) -> Any:
    if feature.missing and rng.random() < 0.2:
        return None
    if hasattr(feature, "levels"):
        return int(rng.integers(len(feature.levels)))
    if feature.size is not None:
        return feature.value_at(int(rng.integers(feature.size)))
    return float(rng.uniform(feature.low, feature.high))


def _edges(signatures: Callable[[list[float]], np.ndarray], feature: Real) -> set[float]:
    """Return the floats on both sides of every change of the scores along a feature."""
    probes = sorted(set(np.linspace(feature.low, feature.high, PROBES).tolist()))
    seen = dict(zip(probes, signatures(probes), strict=True))
    edges: set[float] = set()
    pending = list(itertools.pairwise(probes))
    while pending:
        changed = [(low, high) for low, high in pending if not np.array_equal(seen[low], seen[high])]
        edges |= {x for low, high in changed for x in (low, high) if math.nextafter(low, high) == high}
        wide = [(low, high) for low, high in changed if math.nextafter(low, high) < high]
        middles = [low + (high - low) / 2 for low, high in wide]
        if middles:
            seen.update(zip(middles, signatures(middles), strict=True))
        pending = [pair for (low, high), x in zip(wide, middles, strict=True) for pair in ((low, x), (x, high))]
    return edges


def nearest(case: Case, problem: Problem, seed: int) -> tuple[Fraction | None, Point | None] | None:
    """Return the least distance of a valid point among all candidates, and the point; ``None`` where there are too many to try."""
    values = candidates(problem, scores_of(case.model, case.space), np.random.default_rng(seed))
    if math.prod(map(len, values)) > MOST_POINTS:
        return None
    points = [point for point in itertools.product(*values) if problem.is_plausible(point)]
    points.sort(key=problem.distance)
    for start in range(0, len(points), 2000):
        chunk = points[start : start + 2000]
        for point, outcome in zip(chunk, problem.ask(chunk), strict=True):
            if problem.goal.accepts(outcome) and problem.is_reached(point):
                return problem.distance(point), point
    return None, None


def disagreement(case: Case, seed: int) -> str | None:
    """Return how the tree lane and brute force over raw values differ; ``"skipped"`` where there is no question or too much to try."""
    from problems import problem_of

    question = {name: value for name, value in case.question.items() if name not in ("count", "diversity")}
    explainer = mace.Explainer(case.model, case.space)
    try:
        answer = explainer.explain(case.row, solver="trees", **question)
    except mace.InvalidTarget:
        return "skipped"
    if answer.status == "reached":
        return "skipped"
    problem = problem_of(explainer, case.row, question)
    truth = nearest(case, problem, seed)
    if truth is None or answer.status == "feasible":
        return "skipped"
    distance, point = truth
    if distance is None:
        return None if answer.status == "infeasible" else f"{answer.status}, raw values: none"
    if not answer:
        return f"{answer.status}, raw values: {point} at {float(distance)!r}"
    found = problem.distance(case.space.point(answer[0].values))
    if found == distance:
        return None
    return f"{float(found)!r} {answer[0].values}, raw values: {float(distance)!r} {point}"
