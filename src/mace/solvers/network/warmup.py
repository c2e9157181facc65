"""A tiny problem, for the kernels to be compiled with."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from mace.distances import as_distance
from mace.forms import Network, Outcomes
from mace.problem import Problem
from mace.space import Column, FeatureSpace, Point, categorical, real


def tiny_problem() -> Problem:
    """One bent unit over a real and a categorical feature."""
    space = FeatureSpace({"x": real(0, 1), "c": categorical(["a", "b"])})
    form = Network(
        space=space,
        columns=(Column("x", 0, None), Column("c", 1, (0.0, 1.0))),
        weights=(np.array([[1.0, 0.5]]), np.array([[1.0]])),
        biases=(np.array([-0.5]), np.array([-0.25])),
        slopes=(np.array([0.0]),),
    )

    def ask(points: Sequence[Point]) -> list[Fraction]:
        scores = (form.exact_scores(point)[0] for point in points)
        return [Fraction(int(score > 0)) for score in scores]

    factual: Point = (0.2, 0)
    metric = as_distance("l1").from_factual(space, factual)
    return Problem(space, form, ask, Outcomes(frozenset([Fraction(1)])), factual, metric)
