"""What moves cost: the distance of one step of each feature from a row, and of each change of an answer."""

from __future__ import annotations

import math

from mace.distances import Metric, distance_up
from mace.errors import InvalidDistance
from mace.exact import float_up
from mace.space import Categorical, Date, FeatureSpace, Integer, Ordinal, Point, Real, Value

LEAST_STEPS = 30
"""How many steps of a number, a power of ten, fit into its range at least: a year of an age, a thousand of an income."""


def costs(space: FeatureSpace, metric: Metric, factual: Point) -> list[tuple[str, str, float]]:
    """Return one step of each feature that has more than one value: the feature, the change in words, and its distance."""
    found = []
    for index, name in enumerate(space):
        moved = _moved(space, name, factual[index])
        if moved is not None:
            value, change = moved
            point = (*factual[:index], value, *factual[index + 1 :])
            found.append((name, change, float_up(distance_up(metric, metric.measure(point)))))
    return found


def weights_of(space: FeatureSpace, metric: Metric, factual: Point, point: Point) -> dict[str, float]:
    """Return the distance of each change alone; none where a function that measures it refuses such a row."""
    found: dict[str, float] = {}
    for index, (name, new, old) in enumerate(zip(space, point, factual, strict=True)):
        if new != old:
            alone = (*factual[:index], new, *factual[index + 1 :])
            try:
                found[name] = float_up(distance_up(metric, metric.measure(alone)))
            except InvalidDistance:
                return {}
    return found


def _moved(space: FeatureSpace, name: str, own: Value) -> tuple[Value, str] | None:
    """Return a value next to one's own, and how it is called; ``None`` where there is no other."""
    feature = space[name]
    if feature.size == 1:
        return None
    if isinstance(feature, Categorical):
        return (1 if own == 0 else 0), "another level"
    if own is None:
        return feature.low if not isinstance(feature, Ordinal) else 0, "any value"
    if isinstance(feature, Ordinal):
        other = int(own) + (1 if own < len(feature.levels) - 1 else -1)
        return other, f"{feature.levels[int(own)]} -> {feature.levels[other]}"
    step = _step(feature, space.round_to.get(name))
    by = step if own + step <= feature.high else -step
    value = own + by
    unit = f" {feature.unit}{'' if abs(by) == 1 else 's'}" if isinstance(feature, Date) else ""
    return (int(value) if isinstance(feature, Integer) else feature.nearest(float(value))), f"{by:+g}{unit}"


def _step(feature: Real | Integer, unit: float | None) -> float:
    """Return a power of ten that is a small part of the range, or the step of the feature where that is larger."""
    power = 10.0 ** math.floor(math.log10(float(feature.high) - float(feature.low)) - math.log10(LEAST_STEPS))
    least = feature.step or unit or (1 if isinstance(feature, Integer) else 0.0)
    return max(power, float(least))
