"""Compiling the kernels, or loading them from disk, before the first question: announced, and counted against no time limit."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from mace.distances import as_distance
from mace.forms import Network, Outcomes
from mace.problem import Bounds, Problem
from mace.solvers.network import kernels
from mace.space import Column, FeatureSpace, Point, categorical, real

LOGGER = logging.getLogger("mace")

_WARM: set[bool] = set()


def warm_up(solve: Callable[[Problem], Bounds]) -> None:
    """Solve a tiny problem, once a process, so that each kernel is compiled or loaded."""
    if _WARM:
        return
    if not is_on_disk():
        LOGGER.warning("Compiling the network lane's kernels, once for this installation: about half a minute.")
    solve(_tiny_problem())
    _WARM.add(True)


def is_on_disk() -> bool:
    """Return whether the kernels were compiled before."""
    folder: Any = getattr(getattr(kernels.advance, "_cache", None), "cache_path", None)
    if not folder or not os.path.isdir(folder):
        return False
    return any(name.startswith("kernels.advance") and name.endswith(".nbi") for name in os.listdir(folder))


def _tiny_problem() -> Problem:
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
