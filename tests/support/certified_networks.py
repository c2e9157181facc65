"""Small networks with certificates."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from random_networks import asked

from mace.distances import as_distance
from mace.forms import Network, Outcomes
from mace.problem import Problem
from mace.space import Point


def place(rng: np.random.Generator, axis: Any, low: float | None = None, high: float | None = None) -> float:
    """Return a random place of an axis, often the factual's own or near it."""
    first = axis.spans[0, 0] if low is None else low
    last = axis.spans[-1, 1] if high is None else high
    if first <= axis.home <= last and rng.random() < 0.5:
        return float(axis.home)
    if axis.has_levels or axis.is_grid or axis.is_whole:
        whole = np.arange(np.ceil(first), np.floor(last) + 1) if last - first < 10**5 else np.array([first, last])
        return float(rng.choice(whole)) if len(whole) else float(axis.home)
    near = axis.home + rng.normal(0, 0.05) * (axis.spans[-1, 1] - axis.spans[0, 0])
    return float(np.clip(near if rng.random() < 0.5 else rng.uniform(first, last), first, last))


def inside(form: Network, point: Point, units: Any) -> None:
    """Assert that every unit's exact sum lies within its bounds."""
    cut = replace(form, weights=form.weights[:1], biases=form.biases[:1], slopes=(), sizes=None)
    for k in range(len(form.biases) - 1):
        cut = replace(
            form, weights=form.weights[: k + 1], biases=form.biases[: k + 1], slopes=form.slopes[:k], sizes=None
        )
        sums = cut.exact_scores(point)
        for i, value in enumerate(sums):
            assert Fraction(float(units.low[k][0, i])) <= value <= Fraction(float(units.high[k][0, i]))


def small(form: Network, factual: Point, wanted: int) -> Problem:
    metric = as_distance("l1").from_factual(form.space, factual)
    return Problem(form.space, form, asked(form), Outcomes(frozenset([Fraction(wanted)])), factual, metric)
