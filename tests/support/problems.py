"""Problems of explainers, and points near a row, for tests of the lanes."""

from __future__ import annotations

from typing import Any

import numpy as np

from mace import Explainer, FeatureSpace, InvalidTarget
from mace.problem import Problem


def problem_of(explainer: Explainer, row: Any, question: dict[str, Any]) -> Problem:
    from mace.distances import as_distance
    from mace.targets import goal_of, reached

    factual = explainer.space.point(row)
    reading = explainer._reading
    goal, ask = goal_of(question.get("target"), reading, reading.ask([factual])[0])
    if reached(question.get("target"), reading, factual, reading.ask([factual])[0]):
        raise InvalidTarget("there is no question: the row is at the target already")
    return Problem(
        space=explainer.space,
        form=reading.form,
        ask=ask,
        goal=goal,
        factual=factual,
        metric=as_distance(question.get("distance", "l1")).from_factual(explainer.space, factual),
        conditions=tuple(c.bind(explainer.space, factual) for c in question.get("constraints", ())),
    )


def near(rng: np.random.Generator, space: FeatureSpace, factual: Any) -> Any:
    """Return a random point that mostly keeps the factual's values."""
    point = []
    for feature, own in zip(space.values(), factual, strict=True):
        if rng.random() < 0.4:
            point.append(own)
        elif hasattr(feature, "levels"):
            point.append(int(rng.integers(len(feature.levels))))
        elif feature.size is not None:
            point.append(feature.value_at(int(rng.integers(feature.size))))
        else:
            scale = float(rng.choice([1.0, 0.1, 0.01]))
            point.append(float(np.clip(own + scale * rng.normal() * float(feature.range), feature.low, feature.high)))
    return tuple(point)
