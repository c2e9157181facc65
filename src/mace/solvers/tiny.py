"""Tiny problems, for the kernels of each lane to be compiled with."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from mace.distances import as_distance
from mace.forms import Network, Outcomes, TreeEnsemble
from mace.forms.decision import winner
from mace.problem import Problem
from mace.space import Column, FeatureSpace, Point, categorical, real

_SPACE = FeatureSpace({"x": real(0, 1), "c": categorical(["a", "b"])})
_COLUMNS = (Column("x", 0, None), Column("c", 1, (0.0, 1.0)))


def two_stumps() -> Problem:
    """Two stumps over a real and a categorical feature."""
    return _problem(
        TreeEnsemble(
            space=_SPACE,
            columns=_COLUMNS,
            roots=np.array([0, 3]),
            column=np.array([0, 0, 0, 1, 0, 0]),
            edge=np.array([0.5, 0.0, 0.0, 0.5, 0.0, 0.0]),
            left=np.array([1, -1, -1, 4, -1, -1]),
            right=np.array([2, -1, -1, 5, -1, -1]),
            missing_left=np.zeros(6, dtype=bool),
            value=np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 0.0], [0.75, 0.25], [0.25, 0.75]]),
        )
    )


def one_unit() -> Problem:
    """One bent unit over the same features."""
    return _problem(
        Network(
            space=_SPACE,
            columns=_COLUMNS,
            weights=(np.array([[1.0, 0.5]]), np.array([[1.0]])),
            biases=(np.array([-0.5]), np.array([-0.25])),
            slopes=(np.array([0.0]),),
        )
    )


def _problem(form: TreeEnsemble | Network) -> Problem:
    factual: Point = (0.2, 0)
    return Problem(
        space=_SPACE,
        form=form,
        ask=lambda points: [Fraction(winner(form.exact_scores(point))) for point in points],
        goal=Outcomes(frozenset([Fraction(1)])),
        factual=factual,
        metric=as_distance("l1").from_factual(_SPACE, factual),
    )
