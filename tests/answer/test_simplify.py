"""Among equally near answers the plainest values win."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

import mace


def steps(*edges: float) -> mace.Explainer:
    """Return an explainer of a tree that changes its mind at some values of x, from 0 below all of them."""
    x = np.array([[edge + move, 5.0] for edge in edges for move in (-0.001, 0.001)])
    labels = [number % 2 for number in range(len(edges) + 1) for _ in range(2)][1:-1]
    model = DecisionTreeClassifier().fit(x, labels)
    return mace.Explainer(model, mace.FeatureSpace({"x": mace.real(0, 2000), "z": mace.real(0, 10)}))


@pytest.mark.parametrize(
    ("edges", "constraints", "value"),
    [
        ((676.34,), (), 670.0),
        ((676.34,), ("x >= 673",), 676.0),
        ((676.34,), ("x >= 676.15",), 676.3),
        ((676.05, 676.34), (), 676.3),
        ((5.0, 676.34), (), 670.0),
    ],
)
def test_a_number_that_costs_the_same_anywhere_is_plain(
    edges: tuple[float, ...], constraints: tuple[str, ...], value: float
) -> None:
    explainer = steps(*edges)
    found = explainer.explain([1001.0, 5.0], distance="l0", constraints=constraints, certify=True)
    assert found[0].values == {"x": value, "z": 5.0}
    assert found.status == "optimal"
    assert mace.verify(found[0].certificate, explainer.model).valid


def test_where_every_step_costs_nothing_is_moved() -> None:
    explainer = steps(676.34)
    for distance in ("l1", "l2", "linf", mace.Distance(l0=0.5, l1=0.5)):
        value = explainer.explain([1001.0, 5.0], distance=distance)[0].values["x"]
        assert 676.33 < float(value) < 676.35


def test_linf_moves_freely_what_is_not_the_greatest_change() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.uniform(0, 2000, 300), "z": rng.uniform(0, 10, 300)})
    model = DecisionTreeClassifier(max_depth=2).fit(frame, ((frame.x > 1234.5678) & (frame.z > 7.6543)).astype(int))
    space = mace.FeatureSpace({"x": mace.real(0, 2000), "z": mace.real(0, 10)})
    best = mace.Explainer(model, space).explain({"x": 1000.0, "z": 2.0}, 1, distance="linf")[0]
    assert best.values["x"] == 1300.0 or len(str(best.values["x"])) <= 6
    assert best.distance == pytest.approx((float(best.values["z"]) - 2) / 10)


def digits(value: Any) -> int:
    return len(str(value).replace(".", "").strip("0"))


@pytest.mark.parametrize("distance", ["l0", "linf"])
def test_plain_answers_are_as_near_and_little_farther(distance: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.normal(size=(300, 4)) * [1, 10, 100, 1000], columns=list("abcd"))
    frame["d"] = frame.d.round().astype(int)
    labels = (frame.a + frame.b / 10 - frame.c / 100 + frame.d / 1000 > 0).astype(int)
    model = RandomForestClassifier(8, max_depth=4, random_state=0).fit(frame, labels)
    explainer = mace.Explainer(model, mace.FeatureSpace.from_frame(frame))
    rows = [frame.iloc[k].to_dict() for k in range(8)]
    plain = [explainer.explain(row, distance=distance)[0] for row in rows]
    monkeypatch.setattr("mace.answer.simplify.plainest", lambda problem, point, limits: point)
    raw = [explainer.explain(row, distance=distance)[0] for row in rows]
    shorter = 0
    for row, one, other in zip(rows, plain, raw, strict=True):
        assert one.distance == other.distance
        assert {change.feature for change in one.changes} == {change.feature for change in other.changes}
        for change in one.changes:
            moved = float(other.values[change.feature]) - row[change.feature]
            farther = (float(change.after) - row[change.feature]) / moved
            assert 1 <= farther <= 1.1 + 1e-9
            shorter += digits(change.after) < digits(other.values[change.feature])
    assert shorter >= 5
