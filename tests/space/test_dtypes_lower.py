"""The bound on float32 and float16 frames, against every row that the columns can hold."""

from __future__ import annotations

import warnings
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from families import FAMILIES, FITTED_IN_FLOAT16, fitted, labels_of
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeClassifier

import mace

ENDS = {"float32": (1.0, 1.0 + 2.0**-14), "float16": (1.0, 1.5)}
"""So narrow that there are 513 numbers of each dtype between them."""

COUNT = 513

CASES = [(family, dtype) for family in FAMILIES for dtype in ENDS if dtype == "float32" or family in FITTED_IN_FLOAT16]
CASES.remove(("powers, forest", "float16"))


@cache
def every_row(dtype: str) -> pd.DataFrame:
    """Return every pair of numbers of a dtype."""
    low, high = ENDS[dtype]
    values = np.linspace(low, high, COUNT).astype(dtype)
    assert len(np.unique(values)) == COUNT
    assert np.array_equal(np.nextafter(values[:-1], values[-1]), values[1:])
    return pd.DataFrame({"a": np.repeat(values, COUNT), "b": np.tile(values, COUNT)})


@cache
def decimals(dtype: str) -> list[Fraction]:
    """Return the shortest decimal of every number of a dtype: what constraints speak of."""
    low, high = ENDS[dtype]
    return [Fraction(str(value)) for value in np.linspace(low, high, COUNT).astype(dtype)]


def standing(flips: NDArray[np.bool_], values: list[Fraction], radius: Fraction) -> NDArray[np.bool_]:
    """Return whether all pairs within a radius of each pair, both numbers' decimals moved, flip."""
    near = [[k for k, other in enumerate(values) if abs(value - other) <= radius] for value in values]
    lines = np.array([flips[each[0] : each[-1] + 1].all(axis=0) for each in near])
    return np.array([lines[:, each[0] : each[-1] + 1].all(axis=1) for each in near]).T


def distances(rows: pd.DataFrame, row: pd.DataFrame, dtype: str, distance: str) -> NDArray[np.float64]:
    """Return the distance of every row, by its definition."""
    low, high = ENDS[dtype]
    changes = np.abs(rows.to_numpy().astype(np.float64) - row.to_numpy().astype(np.float64)) / (high - low)
    return changes.mean(axis=1) if distance == "l1" else changes.max(axis=1)


@pytest.mark.parametrize(("family", "dtype"), CASES)
def test_nothing_nearer_than_lower_flips(family: str, dtype: str) -> None:
    rows = every_row(dtype)
    frame = rows.sample(250, random_state=3, ignore_index=True)
    model = fitted(family, frame, labels_of(frame))
    low, high = ENDS[dtype]
    space = mace.FeatureSpace.from_frame(frame).replace(a=mace.real(low, high), b=mace.real(low, high))
    explainer = mace.Explainer(model, space)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outcomes = np.ravel(model.predict(rows))
    is_exact = "regression" not in family and "network" not in family and "components" not in family
    for k, distance in ((0, "l1"), (1, "linf")):
        row = frame.iloc[[k]]
        flips = outcomes != np.ravel(model.predict(row))[0]
        explanation = explainer.explain(row, distance=distance, certify=True, time_limit=2)
        if not flips.any():
            assert len(explanation) == 0
            continue
        nearest = float(distances(rows[flips], row, dtype, distance).min())
        assert explanation.status != "infeasible"
        assert explanation.lower <= nearest * (1 + 2.0**-50)
        if is_exact:
            assert explanation.status == "optimal"
        if len(explanation):
            check_answer(model, explanation, rows, nearest)


def check_answer(model: Any, explanation: mace.Explanation, rows: pd.DataFrame, nearest: float) -> None:
    """Check that an answer is one of the rows, flips, is no nearer than the nearest, and has a proof."""
    best = explanation[0]
    answer = explanation.to_frame().iloc[[1]][["a", "b"]]
    assert (rows == answer.to_numpy()).all(axis=1).any()
    assert np.ravel(model.predict(answer))[0] != explanation.prediction
    assert best.distance >= nearest * (1 - 2.0**-50)
    assert mace.verify(best.certificate, model).valid


@pytest.mark.parametrize("dtype", ENDS)
@pytest.mark.parametrize("family", ["histogram boosting", "bins, logistic regression", "encoder, scaler, network"])
def test_noise_is_that_of_the_numbers_of_the_dtype(family: str, dtype: str) -> None:
    rows, around = every_row(dtype), 10
    frame = rows.sample(250, random_state=3, ignore_index=True)
    model = fitted(family, frame, labels_of(frame))
    low, high = ENDS[dtype]
    space = mace.FeatureSpace.from_frame(frame).replace(a=mace.real(low, high), b=mace.real(low, high))
    row, radius = frame.iloc[[0]], around * (high - low) / (COUNT - 1)
    flips = (np.ravel(model.predict(rows)) != np.ravel(model.predict(row))[0]).reshape(COUNT, COUNT)
    stands = standing(flips, decimals(dtype), Fraction(repr(radius))).ravel()
    robust = mace.robust({"a": radius, "b": radius})
    explanation = mace.Explainer(model, space).explain(row, constraints=[robust], certify=True, time_limit=3)
    assert explanation.lower <= distances(rows[stands], row, dtype, "l1").min() * (1 + 2.0**-50)
    answer = explanation.to_frame().iloc[[1]][["a", "b"]]
    assert stands[(rows == answer.to_numpy()).all(axis=1)].all()
    assert mace.verify(explanation[0].certificate, model).valid


@pytest.mark.parametrize("constraint", ["a <= b", "a + b <= 2.6"])
@pytest.mark.parametrize("solver", ["auto", "milp", "smt"])
@pytest.mark.parametrize("family", ["tree", "logistic regression"])
def test_every_lane_keeps_to_the_numbers_of_the_dtype(family: str, solver: str, constraint: str) -> None:
    rows = every_row("float16")
    frame = rows.sample(250, random_state=3, ignore_index=True)
    tree = DecisionTreeClassifier(max_depth=3, random_state=0)
    model = tree.fit(frame, labels_of(frame)) if family == "tree" else fitted(family, frame, labels_of(frame))
    low, high = ENDS["float16"]
    space = mace.FeatureSpace.from_frame(frame).replace(a=mace.real(low, high), b=mace.real(low, high))
    row = frame.iloc[[2]]
    flips = np.ravel(model.predict(rows)) != np.ravel(model.predict(row))[0]
    exact = decimals("float16")
    flips &= np.array([a <= b if "<= b" in constraint else a + b <= Fraction("2.6") for a in exact for b in exact])
    explanation = mace.Explainer(model, space).explain(row, constraints=[constraint], solver=solver, time_limit=3)
    assert explanation.lower <= distances(rows[flips], row, "float16", "l1").min() * (1 + 2.0**-50)
    for best in explanation:
        answer = pd.DataFrame([best.values]).astype("float16")
        assert flips[(rows == answer.to_numpy()).all(axis=1)].all()
        assert answer.astype(np.float64).to_dict("records")[0] == best.values
