"""Questions over features that hardly have a range, or whose range is nearly all floats."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from random_problems import from_source
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

import mace
from mace.distances import as_distance

TINY = 5e-324


def neighbours(at: float, count: int) -> list[float]:
    """Return a float32 and those above it."""
    found = [np.float32(at)]
    for _ in range(count - 1):
        found.append(np.nextafter(found[-1], np.float32(np.inf)))
    return [float(each) for each in found]


@pytest.mark.parametrize(
    "at", [-0.1, *(pytest.param(at, marks=pytest.mark.slow) for at in (0.1, 1.0, -1.0, 1e-45, -3e-45))]
)
def test_ranges_over_columns_of_float32_are_proved_of_each_of_their_values(at: float) -> None:
    """Their ends are decimals, as constraints read them: as floats of 64 bits they would leave out values that they show."""
    values = neighbours(at, 5)
    space = mace.FeatureSpace({name: mace.real(values[0], values[-1], dtype="float32") for name in "ab"})
    places = {value: k for k, value in enumerate(values)}
    every = pd.DataFrame(list(itertools.product(range(5), range(5))), columns=["a", "b"])
    labels = ((every.a * every.b > 3) & (every.a != 3)).to_numpy()
    tree = DecisionTreeClassifier(random_state=0).fit(every, labels)
    inner = tree.tree_.children_left != -1
    tree.tree_.threshold[inner] = [
        (values[math.floor(k)] + values[math.ceil(k)]) / 2 for k in tree.tree_.threshold[inner]
    ]
    table = dict(zip(itertools.product(values, values), labels.tolist(), strict=True))
    explainer = mace.Explainer(tree, space)
    assert explainer.predict_many([{"a": a, "b": b} for a, b in table]) == labels.tolist()
    for a, b in itertools.product(values, values):
        own, reasons = {"a": a, "b": b}, explainer.reasons({"a": a, "b": b}, certify=True)
        assert reasons.complete
        for reason in reasons:
            assert mace.verify(reason.ranges_certificate, tree).valid
            ranges = reason.ranges
            held = {
                name: [v for v in places if name not in ranges or _is_in(space[name], v, ranges[name])] for name in "ab"
            }
            assert all(own[name] in held[name] for name in reason.features)
            assert {table[row] for row in itertools.product(held["a"], held["b"])} == {table[a, b]}, (own, reason)


def _is_in(feature: Any, value: float, ends: Any) -> bool:
    return float(feature.text(ends.low)) <= float(feature.text(value)) <= float(feature.text(ends.high))


def test_the_end_of_a_range_of_float32_is_its_decimal() -> None:
    values = neighbours(-1.0, 3)
    space = mace.FeatureSpace({"x": mace.real(values[0], values[-1], dtype="float32")})
    model = from_source("def model(x):\n    return 2 if x > -0.9999999 else 1\n", "model")
    reasons = mace.Explainer(model, space).reasons({"x": values[1]})
    assert reasons[0].ranges is not None
    assert (reasons[0].ranges["x"].low, reasons[0].ranges["x"].high) == (-1.0, -0.99999994)
    assert "x is at most -0.99999994" in str(reasons)


def test_a_change_that_is_too_small_for_a_float_is_a_change() -> None:
    """Brute force visits rows in the order of distances in floats, and must not end where one of them counts nothing."""
    space = mace.FeatureSpace(
        {**{name: mace.real(0, 2, step=1) for name in "ad"}, "b": mace.integer(0, 1), "c": mace.integer(0, 1)}
    )
    model = from_source(
        "def model(a, d, b, c):\n    if a == 0 and d != 0:\n        return 1\n    return 1 if c == 1 and d != 0 and a != 0 else 0\n",
        "model",
    )
    distance = mace.Distance(l0=1, weights={"a": 5, "d": 9, "b": 1, "c": 2})
    row = {"a": TINY, "d": TINY, "b": 0, "c": 0}
    answer = mace.Explainer(model, space).explain(row, 1, distance, solver="enumerate")
    assert answer[0].values == {"a": TINY, "d": TINY, "b": 0, "c": 1}
    near = mace.near_data([{"a": 0.0, "d": 0.0, "b": 0, "c": 0}], radius=0.25, distance="l0")
    assert not near.bind(space, space.point(row)).holds(dict(zip(space, space.point(row), strict=True)))


def test_a_range_that_no_float_divides_is_refused_by_near_data() -> None:
    space = mace.FeatureSpace({"x": mace.real(0, 1e-320), "y": mace.real(0, 1)})
    model = from_source("def model(x, y):\n    return 1 if y > 0.5 else 0\n", "model")
    with pytest.raises(mace.InvalidConstraint, match="too narrow"):
        mace.Explainer(model, space).explain([0.0, 0.0], constraints=mace.near_data([{"x": 0.0, "y": 1.0}]))


def test_a_range_wider_than_all_floats_is_refused() -> None:
    with pytest.raises(mace.InvalidSpace, match=r"'x' reaches .* wider than the largest float"):
        mace.FeatureSpace({"x": mace.real(-1.7e308, 1.7e308)})


@pytest.mark.parametrize("distance", ["l1", "l2", "linf", "l0"])
def test_the_search_measures_ranges_of_few_of_the_smallest_floats(distance: str) -> None:
    space = mace.FeatureSpace({"x": mace.real(0, 4 * TINY), "y": mace.real(0, 1), "z": mace.integer(2, 2)})
    model = from_source("def model(x, y, z):\n    return 1 if y > 0.5 else 0\n", "model")
    answer = mace.Explainer(model, space).explain([TINY, 0.0, 2], distance=distance, solver="search")
    assert answer[0].values["x"] == TINY
    assert answer[0].values["y"] > 0.5


@pytest.mark.parametrize("norm", ["l0", "l1", "l2", "linf"])
@pytest.mark.parametrize("solver", ["search", "enumerate", "auto"])
def test_weights_whose_sum_is_no_float(norm: str, solver: str) -> None:
    space = mace.FeatureSpace({"x": mace.integer(0, 4), "y": mace.integer(0, 4)})
    tree = DecisionTreeClassifier().fit([[0, 0], [4, 0], [0, 4], [4, 4]], [0, 1, 1, 1])
    distance = mace.Distance(**{norm: 1.0}, weights={"x": 1.7e308, "y": 1e308})
    answer = mace.Explainer(tree, space).explain([0, 0], distance=distance, solver=solver)
    assert answer[0].values == {"x": 0, "y": 3}


def test_deviations_far_below_a_range_make_weights_that_are_no_floats() -> None:
    space = mace.FeatureSpace({"x": mace.real(-1e300, 1e300), "y": mace.integer(0, 4)})
    people = pd.DataFrame({"x": [0.0, TINY, 2 * TINY, 3 * TINY], "y": [0, 1, 2, 3]})
    model = from_source("def model(x, y):\n    return 1 if y > 2 else 0\n", "model")
    distance = mace.Distance(l1=1, weights="mad", data=people)
    metric = as_distance(distance).from_factual(space, (0.0, 0))
    found = metric.floats(np.array([[1.0, 0.0], [0.0, 1.0]]))
    assert np.isfinite(found).all()
    assert mace.Explainer(model, space).explain([0.0, 0], distance=distance)[0].values == {"x": 0.0, "y": 3}


def test_a_linear_model_over_float32_has_regions_of_rows_that_it_calls_so() -> None:
    values = neighbours(0.7, 6)
    space = mace.FeatureSpace({"a": mace.real(values[0], values[-1], dtype="float32"), "b": mace.integer(0, 3)})
    frame = pd.DataFrame(list(itertools.product(values, range(4))), columns=["a", "b"]).astype({"a": "float32"})
    model = make_pipeline(mace.Encoder(space), LogisticRegression()).fit(frame, frame.b > 1)
    model[-1].coef_, model[-1].intercept_ = np.array([[2.0**22, 1.0]]), np.array([-(2.0**22) * values[3] - 1.0])
    explainer = mace.Explainer(model, space)
    answer = explainer.explain({"a": values[0], "b": 0}, True)[0]
    region = explainer.region(answer, ["a", "b"])
    inside = [
        {"a": a, "b": b}
        for a, b in itertools.product(values, range(4))
        if _is_in(space["a"], a, region["a"]) and region["b"].low <= b <= region["b"].high
    ]
    assert answer.values in inside
    assert set(explainer.predict_many(inside)) == {True}


def test_a_region_holds_no_value_off_the_grid_that_the_answer_changes() -> None:
    """The row itself may keep such a value, which is none of the grid, and nothing is proved of it around the answer."""
    space = mace.FeatureSpace({"x": mace.integer(0, 40, step=10), "y": mace.real(0, 1)})
    model = from_source("def model(x, y):\n    return 'no' if 11 < x < 19 else 'yes'\n", "model")
    answer = mace.Explainer(model, space).explain([13, 0.5], "yes", constraints=mace.only("x"))[0]
    assert answer.values == {"x": 10, "y": 0.5}
    region = mace.Explainer(model, space).region(answer)
    assert (region["x"].low, region["x"].high) == (0, 10)
