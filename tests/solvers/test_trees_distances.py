"""Limits on distances from rows inside the tree lane: near data, and far from earlier answers, against brute force and other lanes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from random_distances import difference, fault, random_limited
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline

import mace
from mace.constraints.views import View
from mace.solvers import trees

SPACE = mace.FeatureSpace(
    {
        "a": mace.integer(0, 20),
        "b": mace.real(0, 1),
        "k": mace.categorical(["x", "y", "z"]),
        "o": mace.ordinal(["p", "q", "r"]),
    }
)


@pytest.mark.parametrize("seed", range(60))
def test_answers_and_certificates_agree_with_brute_force(seed: int) -> None:
    case = random_limited(seed)
    if case is not None:
        assert fault(case) in (None, "skipped")


@pytest.mark.parametrize("seed", range(24))
def test_over_real_features_answers_agree_with_those_of_boxes(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    case = random_limited(1000 + seed, finite=False)
    if case is None:
        return
    options = case.options | {"certify": True, "time_limit": 10, "count": 1, "diversity": None}
    first = case.explainer.explain(case.row, **options)
    monkeypatch.setattr(trees, "TAKES", tuple(view for view in trees.TAKES if view is not View.DISTANCES))
    second = case.explainer.explain(case.row, **options)
    assert difference(case, first, second) is None


def _explainer(seed: int = 0) -> tuple[mace.Explainer, pd.DataFrame]:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "a": rng.integers(0, 21, 200),
            "b": rng.uniform(0, 1, 200),
            "k": rng.choice(["x", "y", "z"], 200),
            "o": rng.choice(["p", "q", "r"], 200),
        }
    )
    labels = (frame.a / 20 + frame.b + 0.3 * (frame.k == "y") > 1.1).astype(int)
    model = make_pipeline(mace.Encoder(SPACE), RandomForestClassifier(10, max_depth=5, random_state=0)).fit(
        frame, labels
    )
    return mace.Explainer(model, SPACE), frame


ROW: dict[str, Any] = {"a": 4, "b": 0.25, "k": "x", "o": "q"}


@pytest.mark.parametrize("distance", ["l1", "l0", "linf"])
def test_the_lane_of_trees_takes_near_data_of_its_own_distance(distance: str) -> None:
    explainer, frame = _explainer()
    near = mace.near_data(frame.iloc[:60], k=2, radius=0.3 if distance == "l0" else 0.12, distance=distance)
    answer = explainer.explain(ROW, distance=distance, constraints=[near], certify=True)
    assert answer.status == "optimal"
    assert answer[0].certificate is not None
    assert answer[0].certificate.evidence["lane"] == "trees"
    assert mace.verify(answer[0].certificate, explainer.model).valid


def test_near_data_of_another_distance_is_left_to_boxes() -> None:
    explainer, frame = _explainer()
    near = mace.near_data(frame.iloc[:30], radius=0.2, distance="linf")
    answer = explainer.explain(ROW, constraints=[near], certify=True)
    assert answer.status == "optimal"
    assert answer[0].certificate is not None
    assert answer[0].certificate.evidence["lane"] == "boxes"


def test_answers_that_lie_apart_are_found_by_the_lane_of_trees() -> None:
    explainer, _ = _explainer()
    answer = explainer.explain(ROW, count=4, diversity=mace.differ(distance=0.05), certify=True)
    assert len(answer) == 4
    for number, each in enumerate(answer):
        assert each.solver == "trees"
        assert each.status == "optimal"
        assert each.certificate is not None
        assert mace.verify(each.certificate, explainer.model).valid
        for other in answer[:number]:
            apart = [
                abs(each.values["a"] - other.values["a"]) / 20,
                abs(each.values["b"] - other.values["b"]),
                each.values["k"] != other.values["k"],
                abs("pqr".index(each.values["o"]) - "pqr".index(other.values["o"])) / 2,
            ]
            assert sum(apart) / 4 >= 0.05 - 1e-9


def test_a_proof_does_not_hold_with_a_wider_radius_or_a_row_more() -> None:
    explainer, frame = _explainer()
    near = mace.near_data(frame.iloc[:25], k=2, radius=0.06)
    (best,) = explainer.explain(ROW, constraints=[near], certify=True)
    plain = explainer.explain(ROW)[0]
    assert best.distance > plain.distance
    assert best.certificate is not None
    claimed = best.certificate.to_dict()
    claimed["statement"]["constraints"][0]["arguments"][2] = 0.3
    assert mace.verify(claimed, explainer.model).outcome == "refuted"
    claimed = best.certificate.to_dict()
    table = claimed["statement"]["constraints"][0]["arguments"][0]
    table["rows"] += [[plain.values[name] for name in table["columns"]]] * 2
    assert mace.verify(claimed, explainer.model).outcome == "refuted"


def test_radius_0_asks_for_a_row_of_the_data_itself() -> None:
    explainer, frame = _explainer()
    answer = explainer.explain(ROW, constraints=[mace.near_data(frame, radius=0.0)], certify=True)
    assert answer.status == "optimal"
    assert answer[0].values in frame.to_dict("records")
    assert answer[0].certificate is not None
    assert mace.verify(answer[0].certificate, explainer.model).valid
