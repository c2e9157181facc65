"""What noise can turn values and rows into, from the definition of ``robust`` alone."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from typing import Any

from mace.certify.enumerate import MOST_POINTS
from mace.certify.verdict import Unchecked
from mace.constraints.robust import RobustCondition
from mace.exact import greatest_float, least_float
from mace.problem import Problem
from mace.space import Categorical, Point, Real, Value, grid_values
from mace.space.decimals import decimal_of, dtype_of

Ends = tuple[Fraction, Fraction]


def around(noise: RobustCondition, name: str, low: float, high: float) -> Ends:
    """Return the least and the greatest number that noise can turn a value of a feature between two others into.

    Noise is a difference of at most the radius, and so the same numbers are those that it can turn into a value between the two.
    """
    feature, radius = noise.space[name], noise.radii[name]
    least, most = Fraction(low) - radius, Fraction(high) + radius
    if noise.written and isinstance(feature, Real):
        # The difference is one of decimals, which rise with the floats that they are written for.
        first = least_float(decimal_of(feature, low) - radius, dtype_of(feature))
        last = greatest_float(decimal_of(feature, high) + radius, dtype_of(feature))
        least, most = (
            (Fraction(first) if math.isfinite(first) else least),
            (Fraction(last) if math.isfinite(last) else most),
        )
    return least, most


def noisy_rows(problem: Problem, noise: RobustCondition, row: Point) -> Iterator[Point]:
    """Yield the rows within the noise of one, itself first."""
    values = [
        _noisy_values(problem.space[name], value, noise.radii.get(name, Fraction(0)), written=noise.written)
        for name, value in zip(problem.space, row, strict=True)
    ]
    if math.prod(map(len, values)) > MOST_POINTS:
        raise Unchecked("noise makes too many rows of one to be enumerated")
    yield from itertools.product(*values)


def _noisy_values(feature: Any, value: Value, radius: Fraction, *, written: bool) -> list[Value]:
    if value is None or isinstance(feature, Categorical) or not radius:
        return [value]
    number = partial(decimal_of, feature) if written else Fraction
    near = [v for v in grid_values(feature) if v is not None and abs(number(v) - number(value)) <= radius]
    return [value, *(each for each in near if each != value)]
