"""Near data inside the search over boxes: its bounds against brute force, and how few boxes it takes."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

import mace
from mace.distances import as_distance, point_values
from mace.problem import Limits, Problem
from mace.reductions.regions import Region, has_point, whole_region
from mace.solvers.boxes.near_data import neighbours_cut
from mace.solvers.boxes.ways import ROOM
from mace.space import FeatureSpace, Point, Real, grid_values

SPACE = FeatureSpace(
    {
        "a": mace.integer(0, 5),
        "b": mace.real(0, 2, step=0.5, missing=True),
        "o": mace.ordinal(["low", "mid", "high"]),
        "k": mace.categorical(["x", "y", "z"]),
    }
)
WIDE = SPACE.replace(b=Real(0, 8, step=2, missing=True, observed=(0, 2)))
"""Values of ``b`` may differ by more than both differ from a missing one."""
NORMS: tuple[Any, ...] = ("l1", "l0", "linf", "l2", mace.Distance(l0=0.5, l1=0.5), mace.Distance(l1=0.5, linf=0.5))


def points_of(space: FeatureSpace) -> list[Point]:
    """Return every point of a finite space."""
    values = ([*grid_values(feature), *([None] if feature.missing else [])] for feature in space.values())
    return list(itertools.product(*values))


def _region(rng: np.random.Generator, space: FeatureSpace, factual: Point) -> Region:
    """Return a random part of the domain, cut as the search cuts."""
    region = whole_region(space, factual)
    for name in rng.permutation(list(space))[: int(rng.integers(4))]:
        left = region[name]
        if left.levels is not None:
            region[name] = left.only(int(k) for k in rng.permutation(3)[:2])
        elif rng.random() < 0.5:
            region[name] = left.between(left.low, (left.low + left.high) / 2)
        else:
            region[name] = left.between((left.low + left.high) / 2, left.high)
    return region


@pytest.mark.parametrize("seed", range(30))
def test_no_row_of_a_box_that_is_near_enough_data_is_lost_or_nearer_than_the_bound(seed: int) -> None:
    rng = np.random.default_rng([seed, 7])
    space = (SPACE, WIDE)[seed % 2]
    points = points_of(space)
    drawn = [points[place] for place in rng.integers(len(points), size=9)]
    factual, rows = drawn[0], drawn[1:]
    norm, k = NORMS[seed // 2 % len(NORMS)], int(rng.integers(1, 4))
    frame = pd.DataFrame([space.values_of(row) for row in rows])
    near = mace.near_data(frame, k=k, radius=float(rng.choice([0.1, 0.25, 0.5])), distance=norm)
    metric = as_distance(norm).from_factual(space, factual)
    nobody: Any = None  # neither the model nor the goal is looked at
    problem = Problem(space, nobody, nobody, nobody, factual, metric)
    condition: Any = near.bind(space, factual)
    allowed = [point for point in points if condition.holds(point_values(space, point))]
    region = _region(rng, space, factual)
    sides: list[Any] = [neighbours_cut(condition, problem, Limits())]
    left = sides[0].narrow(region)
    inside = [point for point in allowed if has_point(region, point)]
    assert left.region is not None or not inside
    for point in inside:
        assert has_point(left.region, point)
        assert left.floor**metric.power <= metric.measure(point)
    # The two sides of a row, and of a further one, down to enough neighbours: no row that fulfils the condition is in neither.
    for _ in range(4):
        place = next(
            (n for n, side in enumerate(sides) if not side.has_enough and side.alive.sum() > side.needed.sum()), None
        )
        if place is not None:
            sides += [side for _, side in sides.pop(place).branch(region, factual)]
    kept = [each for side in sides if (each := side.narrow(region)).region is not None]
    for point in inside:
        cost = metric.measure(point)
        assert any(has_point(each.region, point) and each.floor**metric.power <= cost for each in kept)


@pytest.mark.parametrize("norm", ["l1", "l0", "linf", mace.Distance(l0=0.5, l1=0.5)])
def test_the_bound_by_way_of_the_nearest_row_is_exact(norm: Any) -> None:
    points = points_of(SPACE)
    factual, *rows = (points[place] for place in np.random.default_rng(3).integers(len(points), size=9))
    metric = as_distance(norm).from_factual(SPACE, factual)
    near = mace.near_data(pd.DataFrame([SPACE.values_of(row) for row in rows]), radius=0.1, distance=norm)
    nobody: Any = None
    problem, condition = Problem(SPACE, nobody, nobody, nobody, factual, metric), cast(Any, near.bind(SPACE, factual))
    left = neighbours_cut(condition, problem, Limits()).narrow(whole_region(SPACE, factual))
    assert left.floor == min(map(metric.measure, rows)) - Fraction(1, 10) - condition.off - ROOM


def test_a_way_over_a_missing_value_is_short() -> None:
    space = FeatureSpace({"a": mace.real(0, 10, step=1, missing=True), "b": mace.integer(0, 1)})
    frame = pd.DataFrame({"a": [0.0, 1.0, 2.0, np.nan, np.nan, 9.0, 10.0], "b": [0, 0, 0, 0, 1, 0, 1]})
    labels = frame.a.isna().astype(int)
    model = make_pipeline(mace.Encoder(space), DecisionTreeClassifier(random_state=0)).fit(frame, labels)
    explainer = mace.Explainer(model, space, outside="keep")
    near = mace.near_data([{"a": 0.0, "b": 0}], radius=0.5)
    answer = explainer.explain({"a": 60.0, "b": 0}, constraints=[near], certify=True)
    assert answer.status == "optimal"
    assert answer[0].distance == 0.5
    assert answer[0].certificate is not None
    assert mace.verify(answer[0].certificate, model).valid
