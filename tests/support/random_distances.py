"""Random questions to tree ensembles with limits on distances from rows: near data, and far from earlier answers; by definition."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
from random_constraints import TOLERANCE, estimator_of, random_row, random_text
from sklearn.pipeline import make_pipeline

import mace
from mace.distances import as_distance, point_values
from mace.space import FeatureSpace, Point, grid_values

NORMS: tuple[Any, ...] = (
    "l1",
    "l1",
    "l0",
    "linf",
    "l2",
    mace.Distance(l0=0.5, l1=0.5),
    "weighted",
    mace.Distance(l1=0.5, linf=0.5),
)


@dataclass(frozen=True)
class Limited:
    """A question, the frames, numbers, radii and norms of its ``near_data``, its texts, and how far answers lie from each other."""

    family: str
    explainer: mace.Explainer
    row: dict[str, Any]
    distance: Any
    near: tuple[tuple[pd.DataFrame, int, float, Any], ...]
    texts: tuple[str, ...]
    apart: float | None

    @property
    def options(self) -> dict[str, Any]:
        """The options of ``explain``."""
        near = [mace.near_data(frame, k, radius, norm) for frame, k, radius, norm in self.near]
        options: dict[str, Any] = {"distance": self.distance, "constraints": [*near, *self.texts]}
        if self.apart is not None:
            options |= {"count": 3, "diversity": mace.differ(distance=self.apart)}
        return options


def random_limited(seed: int, *, finite: bool = True) -> Limited | None:
    """Return the question of a seed; ``None`` where its labels came out all alike. With real features unless ``finite``."""
    rng = np.random.default_rng([seed, 41])
    family = ("forest", "boosting")[seed % 2]
    space = _space(rng, finite=finite, missing=family == "forest" and rng.random() < 0.5)
    frame = pd.DataFrame([_row(rng, space) for _ in range(100)])
    score = sum(rng.normal() * _numbers(space, frame, name) for name in space) + 0.4 * rng.normal(size=100)
    labels = (score > np.median(score)).astype(int)
    if labels.nunique() < 2:
        return None
    model = make_pipeline(mace.Encoder(space), estimator_of(family, seed)).fit(frame, labels)
    distance = _norm(rng, space)
    kind = int(rng.integers(4))
    near = tuple(_near(rng, space, distance) for _ in range((1, 2, 0, 1)[kind]))
    apart = float(rng.choice([0.05, 0.1, 0.25, 0.3])) if kind > 1 else None
    texts = (random_text(rng, space, depth=1),) if rng.random() < 0.3 and not _has_missing(space) else ()
    return Limited(family, mace.Explainer(model, space), _row(rng, space), distance, near, texts, apart)


def _norm(rng: np.random.Generator, space: FeatureSpace) -> Any:
    norm = NORMS[int(rng.integers(len(NORMS)))]
    first, second, *_ = space
    return mace.Distance(l1=1.0, weights={first: 2.0, second: 0.5}) if norm == "weighted" else norm


def _space(rng: np.random.Generator, *, finite: bool, missing: bool) -> FeatureSpace:
    features: dict[str, Any] = {
        "a": mace.integer(0, int(rng.integers(3, 7))),
        "b": mace.integer(-2, int(rng.integers(0, 4))),
        "r": mace.real(0, 2, step=0.25 if finite else None, missing=missing),
        "o": mace.ordinal(["low", "mid", "high"]),
        "k": mace.categorical(["x", "y", "z"]),
    }
    if not finite:
        features["s"] = mace.real(-1, 3)
    kept = rng.permutation(list(features))[: int(rng.integers(3, 6))]
    return FeatureSpace({name: features[name] for name in features if name in kept})


def _has_missing(space: FeatureSpace) -> bool:
    return any(feature.missing for feature in space.values())


def _row(rng: np.random.Generator, space: FeatureSpace) -> dict[str, Any]:
    row = random_row(rng, space)
    return {name: np.nan if space[name].missing and rng.random() < 0.3 else value for name, value in row.items()}


def _numbers(space: FeatureSpace, frame: pd.DataFrame, name: str) -> Any:
    levels = getattr(space[name], "levels", None)
    return frame[name].map(list(levels).index) if levels else frame[name].fillna(0.6)


def _near(rng: np.random.Generator, space: FeatureSpace, distance: Any) -> tuple[pd.DataFrame, int, float, Any]:
    rows = int(rng.integers(4, 30))
    norm = distance if rng.random() < 0.7 else _norm(rng, space)
    radius = float(rng.choice([0.0, 0.05, 0.1, 0.125, 0.2, 0.25]))
    return pd.DataFrame([_row(rng, space) for _ in range(rows)]), int(rng.integers(1, 4)), radius, norm


# ---- by definition


def fault(case: Limited, solver: str = "auto") -> str | None:
    """Return what is wrong with the answers or their certificates; ``None`` where nothing is, ``"skipped"`` where it is not decided."""
    explainer, space = case.explainer, case.explainer.space
    answer = explainer.explain(case.row, certify=True, time_limit=60, solver=solver, **case.options)
    factual = space.point(case.row)
    points = [tuple(point) for point in itertools.product(*_values(space, factual))]
    said = explainer.predict_many([space.values_of(point) for point in points])
    metric = as_distance(case.distance).from_factual(space, factual)
    before = explainer.predict(case.row)
    valid = [
        (metric.measure(point), point)
        for point, label in zip(points, said, strict=True)
        if label != before and _is_allowed(case, factual, point)
    ]
    earlier: list[Point] = []
    for number in range(1 if case.apart is None else 3):
        left = [cost for cost, point in valid if _is_apart(case, earlier, point)]
        best = min(left, default=None)
        best = best if best is None or metric.power == 1 else Fraction(math.sqrt(best))
        if number >= len(answer):
            if best is not None and (answer.exhausted or answer.status == "infeasible"):
                return f"answer {number} exists at {float(best)!r}, and is said not to"
            return _of_certificate(answer.certificate, case, best) if number == 0 and best is None else None
        each = answer[number]
        if best is None:
            return f"answer {number} at {each.distance!r}, where there is none"
        if each.lower > float(best) + 1e-12:
            return f"answer {number}: lower {each.lower!r}, above a row at {float(best)!r}"
        if each.status != "optimal":
            return "skipped"
        if abs(each.distance - float(best)) > 2 * TOLERANCE:
            return f"answer {number}: distance {each.distance!r}, brute force {float(best)!r}"
        wrong = _of_certificate(each.certificate, case, best)
        if wrong is not None:
            return f"answer {number}: {wrong}"
        earlier.append(space.point(each.values))
    return None


def _of_certificate(certificate: mace.Certificate | None, case: Limited, best: Fraction | None) -> str | None:
    if certificate is None:
        return "no certificate"
    verdict = mace.verify(mace.Certificate.from_json(certificate.to_json()), case.explainer.model)
    if not verdict.valid:
        return f"certificate: {verdict}"
    if best is not None:
        raised = certificate.to_dict()
        raised["claim"] = {"status": "unknown", "lower": float(best) + 1e-3, "upper": None, "counterfactual": None}
        if mace.verify(raised, case.explainer.model).valid:
            return "a certificate with a bound beyond the answer is accepted"
    return None


def _values(space: FeatureSpace, factual: Point) -> Iterator[list[Any]]:
    for feature, own in zip(space.values(), factual, strict=True):
        yield list(dict.fromkeys([*grid_values(feature), own, *([None] if feature.missing else [])]))


def _is_allowed(case: Limited, factual: Point, point: Point) -> bool:
    space = case.explainer.space
    if not all(mace.rule(text).bind(space, factual).holds(point_values(space, point)) for text in case.texts):
        return False
    for frame, k, radius, norm in case.near:
        metrics = [_metric(space, norm, space.point(row)) for row in frame.to_dict("records")]
        limit = Fraction(str(radius)) ** metrics[0].power
        if sum(metric.measure(point) <= limit for metric in metrics) < k:
            return False
    return True


def _is_apart(case: Limited, earlier: list[Point], point: Point) -> bool:
    metrics = [_metric(case.explainer.space, case.distance, other) for other in earlier]
    return all(metric.measure(point) >= Fraction(str(case.apart)) ** metric.power for metric in metrics)


def _metric(space: FeatureSpace, norm: Any, row: Point) -> Any:
    return as_distance(norm).written_from(space, row)


# ---- against another way


def difference(case: Limited, first: mace.Explanation, second: mace.Explanation) -> str | None:
    """Return how two answers to a question over real features contradict each other; ``None`` where they do not."""
    for one, other in ((first, second), (second, first)):
        if one.status == "infeasible" and len(other):
            return f"infeasible, and an answer at {other[0].distance!r}"
        if len(other) and one.lower > other[0].distance + 1e-9:
            return f"lower {one.lower!r}, and an answer at {other[0].distance!r}"
    certificate = first[0].certificate if len(first) else first.certificate
    if first.status in ("optimal", "infeasible"):
        assert certificate is not None
        verdict = mace.verify(certificate, case.explainer.model)
        if not verdict.valid:
            return f"certificate: {verdict}"
    return None
