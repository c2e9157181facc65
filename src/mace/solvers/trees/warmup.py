"""A tiny problem, for the kernels to be compiled with."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from mace.distances import as_distance
from mace.forms import Outcomes, TreeEnsemble
from mace.problem import Problem
from mace.space import Column, FeatureSpace, Point, categorical, real


def tiny_problem() -> Problem:
    """Two stumps over a real and a categorical feature."""
    space = FeatureSpace({"x": real(0, 1), "c": categorical(["a", "b"])})
    form = TreeEnsemble(
        space=space,
        columns=(Column("x", 0, None), Column("c", 1, (0.0, 1.0))),
        roots=np.array([0, 3]),
        column=np.array([0, 0, 0, 1, 0, 0]),
        edge=np.array([0.5, 0.0, 0.0, 0.5, 0.0, 0.0]),
        left=np.array([1, -1, -1, 4, -1, -1]),
        right=np.array([2, -1, -1, 5, -1, -1]),
        missing_left=np.zeros(6, dtype=bool),
        value=np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 0.0], [0.75, 0.25], [0.25, 0.75]]),
    )

    def ask(points: Sequence[Point]) -> list[Fraction]:
        return [Fraction(int(point[0] is not None and point[0] > 0.5)) for point in points]

    factual: Point = (0.2, 0)
    metric = as_distance("l1").from_factual(space, factual)
    return Problem(space, form, ask, Outcomes(frozenset([Fraction(1)])), factual, metric)
