"""Compiling the kernels, or loading them from disk, before the first question: announced, and counted against no time limit."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from mace.distances import as_distance
from mace.forms import Outcomes, TreeEnsemble
from mace.problem import Problem
from mace.solvers.trees import kernels
from mace.space import Column, FeatureSpace, Point, categorical, real

LOGGER = logging.getLogger("mace")


@cache
def warm_up(exercise: Callable[[Problem], None]) -> None:
    """Exercise the kernels on a tiny problem, once a process, so that each is compiled or loaded."""
    if not is_on_disk():
        LOGGER.warning("Compiling the tree lane's kernels, once for this installation: about half a minute.")
    exercise(_tiny_problem())


def is_on_disk() -> bool:
    """Return whether the kernels were compiled before."""
    folder: Any = getattr(getattr(kernels.advance, "_cache", None), "cache_path", None)
    if not folder or not os.path.isdir(folder):
        return False
    return any(name.startswith("kernels.advance") and name.endswith(".nbi") for name in os.listdir(folder))


def _tiny_problem() -> Problem:
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
