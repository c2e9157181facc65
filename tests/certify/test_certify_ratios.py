"""Certificates of the lane of ratios: honest ones are valid, and every way to forge one that is tried here is refuted."""

from __future__ import annotations

import copy
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import RandomForestClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression

import mace
from mace.certify.ratios.ends import Bracket
from mace.certify.ratios.linear import is_above
from mace.forms import Network, Normalised, Polyline, Sigmoid
from mace.solvers.ratios.bounds import above

SPACE = mace.FeatureSpace({"a": mace.real(0, 4), "b": mace.real(0, 4)})
ROW = {"a": 0.5, "b": 0.5}


def _fitted(kind: str) -> Any:
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 4, (150, 2))
    labels = np.searchsorted([2.5, 5.0], X[:, 0] + 0.8 * X[:, 1] + rng.normal(0, 0.5, 150))
    models = {
        "calibrated": CalibratedClassifierCV(LogisticRegression(), cv=2),
        "trees": CalibratedClassifierCV(RandomForestClassifier(3, max_depth=3, random_state=0), cv=2),
        "votes": VotingClassifier([("a", LogisticRegression()), ("b", LogisticRegression(C=0.1))], voting="soft"),
    }
    return models[kind].fit(X, labels)


@pytest.fixture(scope="module")
def proved() -> dict[str, tuple[Any, dict[str, Any]]]:
    made = {}
    for kind in ("calibrated", "trees", "votes"):
        model = _fitted(kind)
        found = mace.Explainer(model, SPACE).explain(ROW, 2, distance="l1", certify=True, time_limit=60)
        assert found.status == "optimal"
        made[kind] = model, found[0].certificate.to_dict()
    return made


Change = Callable[[dict[str, Any]], None]


def _first(evidence: dict[str, Any]) -> Any:
    return next(entry for entry in evidence["boxes"][0]["linear"] if entry is not None)


def lower_a_shift(evidence: dict[str, Any]) -> None:
    _first(evidence)["shifts"] = _first(evidence)["shifts"] - 0.1


def turn_a_slope(evidence: dict[str, Any]) -> None:
    _first(evidence)["slopes"] = _first(evidence)["slopes"] + 0.2


def leave_a_box_out(evidence: dict[str, Any]) -> None:
    del evidence["boxes"][0]


def leave_linear_functions_out(evidence: dict[str, Any]) -> None:
    evidence["boxes"][0]["linear"] = []


def exclude_the_answer(evidence: dict[str, Any]) -> None:
    evidence["excluded"] = [[3.9, 3.9]]


def write_no_numbers(evidence: dict[str, Any]) -> None:
    _first(evidence)["slopes"] = np.full_like(_first(evidence)["slopes"], np.nan)


FORGED = [
    lower_a_shift,
    turn_a_slope,
    leave_a_box_out,
    leave_linear_functions_out,
    exclude_the_answer,
    write_no_numbers,
]


@pytest.mark.parametrize("kind", ["calibrated", "trees", "votes"])
def test_an_honest_proof_is_valid(kind: str, proved: dict[str, tuple[Any, dict[str, Any]]]) -> None:
    model, written = proved[kind]
    assert mace.verify(mace.Certificate.from_dict(written), model).outcome == "valid"


@pytest.mark.parametrize("change", FORGED)
@pytest.mark.parametrize("kind", ["calibrated", "trees", "votes"])
def test_a_forged_proof_is_refuted(kind: str, change: Change, proved: dict[str, tuple[Any, dict[str, Any]]]) -> None:
    model, written = proved[kind]
    certificate = mace.Certificate.from_dict(copy.deepcopy(written))
    change(certificate.evidence)
    assert mace.verify(certificate, model).outcome == "refuted"


def test_a_bound_that_is_raised_is_refuted(proved: dict[str, tuple[Any, dict[str, Any]]]) -> None:
    model, written = proved["calibrated"]
    certificate = mace.Certificate.from_dict(copy.deepcopy(written))
    certificate.claim["lower"] = certificate.claim["upper"] = certificate.claim["upper"] * 1.2
    assert mace.verify(certificate, model).outcome == "refuted"


NUMBERS = st.floats(-4, 4).map(lambda x: round(x, 3))
CURVES: dict[str, Callable[[list[float]], tuple[Any, ...]]] = {
    "softmax": lambda numbers: (),
    "sigmoids": lambda numbers: tuple(Sigmoid(-2 * x, x / 2) for x in numbers),
    "polylines": lambda numbers: tuple(Polyline((-1.0, 0.5 + abs(x), 5.0), (0.0, 0.4, 1.0)) for x in numbers),
}


@pytest.mark.parametrize("is_softmax", [False, True])
@pytest.mark.parametrize("kind", CURVES)
@given(
    st.lists(NUMBERS, min_size=3, max_size=3),
    st.lists(NUMBERS, min_size=3, max_size=3),
    st.lists(st.floats(0, 1), min_size=3, max_size=3),
    st.integers(-4, 1),
)
def test_linear_functions_lie_above_and_the_checker_sees_it(
    kind: str, is_softmax: bool, at: list[float], weights: list[float], share: list[float], width: int
) -> None:
    curves = CURVES[kind](weights)
    if not is_softmax and not curves:
        return
    names = [f"x{k}" for k in range(3)]
    space = mace.FeatureSpace({name: mace.real(-20, 20) for name in names})
    columns = tuple(mace.space.Column(name, k, None) for k, name in enumerate(names))
    part = Normalised(Network(space, columns, (np.eye(3),), (np.zeros(3),)), is_softmax, curves, np.eye(3))
    box = tuple((Fraction(x), Fraction(x) + Fraction(2) ** (2 * width)) for x in at)
    rows = np.array([weights])
    made = above(part, rows, box)
    scores = [Bracket(float(a), float(b)) for a, b in zip(*part.form.score_bounds(box), strict=True)]
    point = np.array([[float(a) + s * float(b - a) for (a, b), s in zip(box, share, strict=True)]])
    value = float((rows @ part.chances(point)[0])[0])
    assert value <= float((made.slope @ point[0] + made.shift)[0])
    row, slope, shift = list(map(Fraction, weights)), made.slope[0].tolist(), float(made.shift[0])
    assert is_above(part, scores, row, slope, shift)
    assert not is_above(part, scores, row, slope, value - float(made.slope[0] @ point[0]) - 1e-6)
