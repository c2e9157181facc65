"""What is served, as plain data: the model, its features, its people in summary, the rules in force."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import mace
from mace.answer.plain import plain
from mace.constraints.fixed import Fixed
from mace.constraints.monotone import Monotone
from mace.service.opened import Opened
from mace.service.scores import RowScores
from mace.space import Categorical, Date, Feature, FeatureSpace, Integer, Ordinal, Point
from mace.space.features import shown_level

BINS = 20
"""Bars of a histogram."""


def about(opened: Opened, points: list[Point] | None, count: int) -> dict[str, Any]:
    """Return the answer of ``/v1/model``; ``points`` are those of ``count`` people who fit the space."""
    explainer, source = opened.explainer, opened.source
    target = opened.target
    return {
        "name": source.name,
        "family": explainer._reading.family,
        "mace": mace.__version__,
        "classes": None if explainer.classes is None else list(explainer.classes),
        "target": target if target is None or isinstance(target, str | int | float | bool) else str(target),
        **RowScores(explainer, target).head,
        "protected": list(explainer.space.protected),
        "rules": [{"text": text} for text, _ in opened.rules],
        "features": _features(opened, points),
        "space": explainer.space.to_dict(),
        "people": None if points is None else {"count": count, "id": source.id},
        "limits": source.limits.shown(),
    }


def _features(opened: Opened, points: list[Point] | None) -> list[dict[str, Any]]:
    space = opened.explainer.space
    stated = space.to_dict()["features"]
    locked = {name for _, rule in opened.rules if isinstance(rule, Fixed) for name in rule.features}
    moves = {name: rule for _, rule in opened.rules if isinstance(rule, Monotone) for name in rule.features}
    made = []
    for place, (name, feature) in enumerate(space.items()):
        levels = (
            [plain(shown_level(each)) for each in feature.levels]
            if isinstance(feature, Ordinal | Categorical)
            else None
        )
        made.append(
            {
                "name": name,
                **_wording(space, name),
                "kind": stated[name]["kind"],
                "low": None if levels else _end(feature, feature.low),  # type: ignore[union-attr]
                "high": None if levels else _end(feature, feature.high),  # type: ignore[union-attr]
                "step": getattr(feature, "step", None),
                "round_to": space.round_to.get(name),
                "levels": levels,
                "missing": bool(getattr(feature, "missing", False)),
                "protected": name in space.protected,
                "locked": name in locked,
                "direction": _direction(moves.get(name)),
                "population": None if points is None else _population(feature, [point[place] for point in points]),
            }
        )
    return made


def _wording(space: FeatureSpace, name: str) -> dict[str, Any]:
    """Return what people call a feature and count it in, where the space says so."""
    wording = space.to_dict().get("wording", {})
    return {"title": wording.get("names", {}).get(name), "unit": wording.get("units", {}).get(name)}


def _direction(rule: Monotone | None) -> str | None:
    return None if rule is None else "up" if rule.name == "increases" else "down"


def _end(feature: Feature, value: int | float) -> Any:
    return feature.text(value) if isinstance(feature, Date) else value


def _population(feature: Feature, values: list[Any]) -> dict[str, Any]:
    """Return how the people are spread over a feature."""
    known = [value for value in values if value is not None and not math.isnan(value)]
    made: dict[str, Any] = {"count": len(values), "missing": len(values) - len(known)}
    if isinstance(feature, Ordinal | Categorical):
        counts = np.bincount(np.array(known, dtype=int), minlength=len(feature.levels))
        return made | {"counts": counts.tolist()}
    if not known:
        return made | {"low": None, "high": None, "quartiles": None, "edges": [], "counts": []}
    numbers = np.array(known, dtype=float)
    counts, edges = np.histogram(numbers, bins=BINS, range=(float(feature.low), float(feature.high)))
    quartiles = np.quantile(numbers, [0.25, 0.5, 0.75], method="inverted_cdf").tolist()
    whole = int if isinstance(feature, Integer) else float
    return made | {
        "low": _end(feature, whole(numbers.min())),
        "high": _end(feature, whole(numbers.max())),
        "quartiles": [_end(feature, whole(value)) for value in quartiles],
        "edges": edges.tolist(),
        "counts": counts.tolist(),
    }
